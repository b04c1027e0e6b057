//! What comes back from a call: a reply, or an exception.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use ramway::rpc::CallError;
use std::ffi::{c_int, c_void};

/// What a server replied: a copy, which belongs to the caller. `memoryview(reply)` is the body without another copy.
#[pyclass(frozen, module = "ramway.rpc")]
pub(crate) struct Reply {
    core: ramway::rpc::Reply,
    body: PyOnceLock<Py<PyBytes>>,
}

impl Reply {
    pub(crate) fn new(core: ramway::rpc::Reply) -> Self {
        Self { core, body: PyOnceLock::new() }
    }
}

#[pymethods]
impl Reply {
    /// The reply's bytes.
    #[getter]
    fn body(&self, py: Python<'_>) -> Py<PyBytes> {
        self.body.get_or_init(py, || PyBytes::new(py, self.core.body()).unbind()).clone_ref(py)
    }

    /// The reply's metadata: bytes that the application defines; empty if the server gave none.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.core.meta())
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let body = slf.get().core.body();
        // SAFETY: `view` is the caller's to fill in. It takes a reference to this object, whose bytes never change or move.
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                body.as_ptr().cast_mut().cast::<c_void>(),
                body.len() as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if failed != 0 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        format!("<ramway.rpc.Reply of {} bytes>", self.core.body().len())
    }
}

/// The exception for a call that has no reply: a `CallError`, and of its own kind where this side ended it.
#[cold]
pub(crate) fn raise_call(py: Python<'_>, error: &CallError) -> PyErr {
    let (kind, status) = (error.kind().map(ramway::ErrorKind::code), error.status().map(|status| status.name()));
    make(py, status, kind, error.code(), &error.text(), &error.to_string(), error.may_have_run())
}

/// The same of what the binding itself has to say.
#[cold]
pub(crate) fn call_error(py: Python<'_>, kind: ramway::ErrorKind, text: &str, may_have_run: bool) -> PyErr {
    make(py, None, Some(kind.code()), 0, text, text, may_have_run)
}

fn make(
    py: Python<'_>,
    status: Option<&str>,
    kind: Option<i32>,
    code: u32,
    text: &str,
    shown: &str,
    may_have_run: bool,
) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MAKE
        .import(py, "ramway._rpc_errors", "call_error")
        .and_then(|make| make.call1((status, kind, code, text, shown, may_have_run)));
    made.map_or_else(|broken| broken, PyErr::from_value)
}

/// For `ramway._rpc`: what a server's description of its methods is not.
#[pyfunction]
pub(crate) fn _corrupt_description(py: Python<'_>) -> Py<PyAny> {
    let text = "the server's description of its methods is not lines of a number and a name";
    call_error(py, ramway::ErrorKind::Corrupt, text, true).into_value(py).into_any()
}
