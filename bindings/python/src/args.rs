//! What callers pass: names, time-outs, wait policies, bytes.

use crate::errors::error;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use ramway::{ErrorKind, WaitPolicy};
use std::ffi::c_int;
use std::path::PathBuf;
use std::time::Duration;

/// `str` or `os.PathLike`; the core decides what a good name is.
pub(crate) struct Name(pub(crate) PathBuf);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let path: PathBuf = object.extract().map_err(|e: PyErr| {
            // A str that is no text, such as "\ud800".
            if e.is_instance_of::<PyValueError>(object.py()) {
                return e;
            }
            let kind = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("a name is a str or an os.PathLike of str, not {kind}"))
        })?;
        Ok(Self(path))
    }
}

impl Name {
    pub(crate) fn shown(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

/// Seconds, or `None` for ever. 0 is one look.
#[derive(Clone, Copy)]
pub(crate) struct Timeout(pub(crate) Option<Duration>);

impl Timeout {
    pub(crate) const FOREVER: Self = Self(None);
    pub(crate) const NOW: Self = Self(Some(Duration::ZERO));
    pub(crate) const SECOND: Self = Self(Some(Duration::from_secs(1)));

    /// For calls of the core that know no "for ever".
    pub(crate) fn limit(self) -> Duration {
        self.0.unwrap_or(Duration::MAX)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Timeout {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Self(None));
        }
        duration(object.py(), object.extract()?).map(|d| Self(Some(d)))
    }
}

/// A length of time in seconds.
pub(crate) fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        let text = format!("a time-out of {seconds} s: expected None or a number of seconds from 0 on");
        return Err(error(py, ErrorKind::InvalidArgument, text));
    }
    // Longer than any process lives: as good as for ever.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// "spin", "hybrid" or "block".
#[derive(Clone, Copy)]
pub(crate) struct Policy(pub(crate) WaitPolicy);

impl Policy {
    pub(crate) const HYBRID: Self = Self(WaitPolicy::Hybrid);

    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            WaitPolicy::Spin => "spin",
            WaitPolicy::Hybrid => "hybrid",
            WaitPolicy::Block => "block",
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Policy {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let name = object.cast::<PyString>().map_err(PyErr::from)?.to_string_lossy().into_owned();
        match name.as_str() {
            "spin" => Ok(Self(WaitPolicy::Spin)),
            "hybrid" => Ok(Self(WaitPolicy::Hybrid)),
            "block" => Ok(Self(WaitPolicy::Block)),
            other => {
                let text = format!("wait={other:?}: expected 'spin', 'hybrid' or 'block'");
                Err(error(object.py(), ErrorKind::InvalidArgument, text))
            }
        }
    }
}

/// Bytes of somebody's, borrowed for one call.
pub(crate) struct Bytes {
    view: ffi::Py_buffer,
}

impl Bytes {
    /// The bytes of anything with the buffer protocol, one after another in memory (C order).
    #[inline]
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(object, ffi::PyBUF_SIMPLE)
    }

    /// The same, to write to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(object, ffi::PyBUF_WRITABLE)
    }

    #[inline]
    fn get(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = ffi::Py_buffer::new();
        // SAFETY: the interpreter is attached, `object` is alive, `view` is ours.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut view, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { view })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.view.len as usize
    }

    #[inline]
    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        self.view.buf.cast()
    }

    /// The bytes. Python lets others write to them meanwhile: copy them, decide nothing by them twice.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.view.len == 0 {
            return &[];
        }
        // SAFETY: a simple view of `len` bytes that stays until it is released.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast(), self.len()) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: filled in by `PyObject_GetBuffer`, released once, with the interpreter attached: values of this type
        // live within a call from Python.
        unsafe { ffi::PyBuffer_Release(&mut self.view) }
    }
}

// SAFETY: made and dropped by an attached thread; between the two only the bytes are looked at.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

/// Keyword arguments that are taken one by one; what is left over is a mistake.
pub(crate) struct Options<'py> {
    left: Bound<'py, PyDict>,
    given: Bound<'py, PyDict>,
}

impl<'py> Options<'py> {
    pub(crate) fn new(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let given = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
        Ok(Self { left: given.copy()?, given })
    }

    /// `None` where it was not given, or given as None.
    pub(crate) fn get<T>(&mut self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        let Some(value) = self.left.get_item(name)? else { return Ok(None) };
        self.left.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract().map(Some).map_err(|e| named(self.left.py(), name, e))
    }

    pub(crate) fn flag(&mut self, name: &str, default: bool) -> PyResult<bool> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    /// Seconds.
    pub(crate) fn seconds(&mut self, name: &str) -> PyResult<Option<Duration>> {
        self.get::<f64>(name)?.map(|seconds| duration(self.left.py(), seconds)).transpose()
    }

    /// What was given, after everything known was taken.
    pub(crate) fn finish(self) -> PyResult<Py<PyDict>> {
        match self.left.keys().get_item(0) {
            Ok(name) => Err(PyTypeError::new_err(format!("unexpected keyword argument {}", name.repr()?))),
            Err(_) => Ok(self.given.unbind()),
        }
    }
}

/// The same error with the argument's name before its text, where it is one of the built-in ones for arguments.
fn named(py: Python<'_>, name: &str, cause: PyErr) -> PyErr {
    if cause.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("{name}: {}", cause.value(py)))
    } else if cause.is_instance_of::<PyOverflowError>(py) {
        error(py, ErrorKind::InvalidArgument, format!("{name}: {}", cause.value(py)))
    } else {
        cause
    }
}
