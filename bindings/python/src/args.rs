//! What callers pass: names, time-outs, wait policies, bytes.

use crate::errors::error;
use crate::tensor::dlpack::{LARGE, copy_bytes};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyDict, PyInt, PyMemoryView, PySlice, PyString};
use pyo3::{ffi, intern};
use ramway::{ErrorKind, WaitPolicy};
use std::ffi::{CStr, c_int};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The static method that a pickled ring or topic was made by.
pub(crate) fn intent(name: &str) -> &'static str {
    match name {
        "create" => "create",
        "open" => "open",
        _ => "open_or_create",
    }
}

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

/// How long a call may take: `None` forever, 0 one poll.
#[derive(Clone, Copy)]
pub(crate) struct Timeout(pub(crate) Option<Duration>);

impl Timeout {
    pub(crate) const FOREVER: Self = Self(None);
    pub(crate) const NOW: Self = Self(Some(Duration::ZERO));
    pub(crate) const SECOND: Self = Self(Some(Duration::from_secs(1)));
    pub(crate) const TEN_SECONDS: Self = Self(Some(Duration::from_secs(10)));

    /// What is left of it at any time from now on.
    pub(crate) fn counting(self) -> impl Fn() -> Self {
        let deadline = self.0.and_then(|timeout| Instant::now().checked_add(timeout));
        move || Self(deadline.map(|at| at.saturating_duration_since(Instant::now())))
    }

    /// For calls of the core that know no "forever".
    pub(crate) fn limit(self) -> Duration {
        self.0.unwrap_or(Duration::MAX)
    }
}

impl From<Option<Seconds>> for Timeout {
    #[inline(always)]
    fn from(given: Option<Seconds>) -> Self {
        Self(given.map(|Seconds(duration)| duration))
    }
}

/// A number of seconds from 0 on.
pub(crate) struct Seconds(Duration);

impl Seconds {
    pub(crate) const ZERO: Self = Self(Duration::ZERO);

    pub(crate) fn length(&self) -> Duration {
        self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = object.extract()?;
        if seconds.is_nan() || seconds < 0.0 {
            let text = format!("a time-out of {seconds} s: expected None or a number of seconds from 0 on");
            return Err(error(object.py(), ErrorKind::InvalidArgument, text));
        }
        // Longer than any process lives: as good as forever.
        Ok(Self(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
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

/// Bytes of a caller's object, borrowed for one call.
pub(crate) struct Bytes {
    view: ffi::Py_buffer,
}

impl Bytes {
    /// None.
    pub(crate) fn empty() -> Self {
        Self { view: ffi::Py_buffer::new() }
    }

    /// The bytes of anything with the buffer protocol, one after another in memory (C order).
    #[inline]
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(object, ffi::PyBUF_SIMPLE)
    }

    /// The same, for a message.
    ///
    /// # Errors
    /// `InvalidArgument` for addresses of Python objects, which mean nothing in another process.
    #[inline]
    pub(crate) fn of_message(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = Self::of(object)?;
        if !object.is_exact_instance_of::<PyByteArray>() {
            refuse_objects(object)?;
        }
        Ok(bytes)
    }

    /// The same, to write a message to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = Self::get(object, ffi::PyBUF_WRITABLE)?;
        refuse_objects(object)?;
        Ok(bytes)
    }

    /// Bytes in a row that are only bytes (`B`); `None` for all else.
    fn plain(object: &Bound<'_, PyAny>) -> Option<Self> {
        let bytes = Self::get(object, ffi::PyBUF_ND | ffi::PyBUF_FORMAT).ok()?;
        (bytes.view.ndim == 1 && bytes.view.itemsize == 1 && bytes.format().is_none_or(|format| format == b"B"))
            .then_some(bytes)
    }

    /// What the elements are, where the buffer says so.
    fn format(&self) -> Option<&[u8]> {
        // SAFETY: a string that lives as long as the view.
        (!self.view.format.is_null()).then(|| unsafe { CStr::from_ptr(self.view.format) }.to_bytes())
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

// SAFETY: made and dropped by an attached thread; between the two only the bytes are read.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

/// `InvalidArgument` if the elements of a buffer hold Python objects.
fn refuse_objects(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let refused = |what: String| {
        let text = format!("{what} has Python objects in it, which mean nothing in another process");
        Err(error(py, ErrorKind::InvalidArgument, text))
    };
    // NumPy's, which has no format for some dtypes.
    if let Ok(descr) = object.getattr(intern!(py, "dtype")) {
        let objects = descr.getattr(intern!(py, "hasobject")).and_then(|has| has.is_truthy());
        return if objects.unwrap_or(false) { refused(format!("an array of {descr}")) } else { Ok(()) };
    }
    match Bytes::get(object, ffi::PyBUF_ND | ffi::PyBUF_FORMAT) {
        Ok(bytes) if bytes.format().is_some_and(has_objects) => refused("this buffer".into()),
        _ => Ok(()),
    }
}

/// Whether a `struct` format has an `O`, outside of the names of fields (`:name:`).
fn has_objects(format: &[u8]) -> bool {
    format.split(|&letter| letter == b':').step_by(2).any(|part| part.contains(&b'O'))
}

/// `owner[key] = value` as a memoryview of the owner does it; large pieces without the interpreter lock.
pub(crate) fn assign<'py, T>(
    owner: &Bound<'py, T>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let (py, owner) = (owner.py(), owner.as_any());
    if let Ok(slice) = key.cast::<PySlice>()
        && let Some(from) = Bytes::plain(value)
        && from.len() >= LARGE
    {
        let to = Bytes::get(owner, ffi::PyBUF_WRITABLE)?;
        let place = slice.indices(to.len() as isize)?;
        if place.step == 1 && place.slicelength == from.len() {
            // Both are exported, and stay.
            copy_bytes(py, from.view.buf.cast(), to.as_mut_ptr().wrapping_add(place.start as usize), from.len());
            return Ok(());
        }
    }
    PyMemoryView::from(owner)?.set_item(key, value)
}

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
        value.extract().map(Some).map_err(|e| named(&value, name, e))
    }

    /// `TypeError` for what is left and not one of these.
    pub(crate) fn check_only(&self, names: &[&str]) -> PyResult<()> {
        for name in self.left.keys() {
            if !names.contains(&name.extract::<String>()?.as_str()) {
                return Err(unexpected(&name));
            }
        }
        Ok(())
    }

    /// What is left, as if only that had been given.
    pub(crate) fn rest(self) -> PyResult<Self> {
        Ok(Self { given: self.left.copy()?, left: self.left })
    }

    /// Whether it was given, be it as None.
    pub(crate) fn has(&self, name: &str) -> PyResult<bool> {
        self.left.contains(name)
    }

    pub(crate) fn flag(&mut self, name: &str, default: bool) -> PyResult<bool> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    /// Seconds; given as None, as long as it takes.
    pub(crate) fn timeout(&mut self, name: &str, default: Timeout) -> PyResult<Timeout> {
        if !self.has(name)? {
            return Ok(default);
        }
        Ok(self.get::<Seconds>(name)?.into())
    }

    /// `InvalidArgument` for options of named segments that `intent`, a static method of `class`, would ignore.
    pub(crate) fn refuse_idle(&self, class: &str, intent: &str) -> PyResult<()> {
        let call = format!("{class}.{intent}");
        if intent != "create" {
            self.refuse(&call, &["discard"], "create")?;
        }
        if intent == "open" {
            self.refuse(&call, &["persistent", "mode", "huge_pages", "numa_node"], "create and open_or_create")?;
        }
        Ok(())
    }

    /// `InvalidArgument` for options that `call` would ignore.
    pub(crate) fn refuse(&self, call: &str, names: &[&str], belongs_to: &str) -> PyResult<()> {
        for name in names {
            match self.left.get_item(name)? {
                Some(value) if value.is_none() || value.is(PyBool::new(value.py(), false)) => {
                    self.left.del_item(name)?
                }
                // What is neither a number nor a bool is refused when it is taken.
                Some(value) if value.is_instance_of::<PyInt>() => {
                    let text =
                        format!("{name}={value}: {name} applies to {belongs_to} only, and {call} would ignore it");
                    return Err(error(self.left.py(), ErrorKind::InvalidArgument, text));
                }
                _ => (),
            }
        }
        Ok(())
    }

    /// What was given, after everything known was taken.
    pub(crate) fn finish(self) -> PyResult<Py<PyDict>> {
        match self.left.keys().get_item(0) {
            Ok(name) => Err(unexpected(&name)),
            Err(_) => Ok(self.given.unbind()),
        }
    }
}

fn unexpected(name: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("unexpected keyword argument {name:?}"))
}

/// Hands the options of these names that were given to the methods of these names of a core builder.
macro_rules! pass {
    ($options:ident => $builder:ident: $($name:ident),*) => {
        $(if let Some(value) = $options.get(stringify!($name))? {
            $builder = $builder.$name(value);
        })*
    };
}
pub(crate) use pass;

/// The same error with the argument's name before its text, where it is one of the built-in ones for arguments.
fn named(value: &Bound<'_, PyAny>, name: &str, cause: PyErr) -> PyErr {
    let py = value.py();
    if cause.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("{name}: {}", cause.value(py)));
    }
    if !cause.is_instance_of::<PyOverflowError>(py) {
        return cause;
    }
    let text = match value.lt(0) {
        Ok(true) => format!("{name}={value}: expected an integer from 0 on"),
        Ok(false) => format!("{name}={value}: this integer is too large"),
        Err(_) => format!("{name}={value}: {}", cause.value(py)),
    };
    error(py, ErrorKind::InvalidArgument, text)
}

/// Integer arguments, each by a function of its name: its errors say which one it is.
macro_rules! integers {
    ($($name:ident: $type:ty,)*) => {
        $(pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$type> {
            value.extract().map_err(|e: PyErr| {
                // pyo3 says itself whose type is wrong.
                if e.is_instance_of::<PyTypeError>(value.py()) { e } else { named(value, stringify!($name), e) }
            })
        })*
    };
}

integers! {
    type_id: u32,
    tag: u64,
    n: usize,
    max: usize,
    offset: usize,
    first: usize,
    size: u64,
    capacity: u64,
    count: u32,
    fd: i32,
    history: u64,
    after_seq: u64,
    method: u32,
    window: u32,
}

/// Methods of a class, with each argument said once instead of in the signature, in its type and in its conversion:
///
///     calls! {
///         Sender as slf:
///         /// The docstring.
///         send(data: any, type_id: u32 = 0, * timeout) -> () { slf.get().put(data, type_id, timeout) }
///     }
///
/// `any` is an object of Python's. Of an integer, the function of its name above says in errors which argument it is.
/// Without a type it is a [`Timeout`], which may be left out; after a `*` by keyword alone. Where the class is in
/// brackets, `Bus` has the same method, which hands the call on to that end of it.
macro_rules! calls {
    ([$class:ident] as $slf:ident: $($(#[$($doc:tt)*])* $name:ident($($args:tt)*) -> $return:ty $body:block)*) => {
        $($crate::args::calls!(@ [$class] [$slf [$(#[$($doc)*])*] $name $return $body] [] [] [] [] $($args)*);)*
    };
    ($class:ident as $slf:ident: $($(#[$($doc:tt)*])* $name:ident($($args:tt)*) -> $return:ty $body:block)*) => {
        $($crate::args::calls!(@ $class [$slf [$(#[$($doc)*])*] $name $return $body] [] [] [] [] $($args)*);)*
    };
    (@ $class:tt $call:tt [$($signature:tt)*] [$($parameter:tt)*] [$($name:ident)*] [$($let:tt)*]
        $arg:ident: any $(, $($rest:tt)*)?) => {
        $crate::args::calls!(@ $class $call [$($signature)* $arg,] [$($parameter)* $arg: &Bound<'py, PyAny>,]
            [$($name)* $arg] [$($let)*] $($($rest)*)?);
    };
    (@ $class:tt $call:tt [$($signature:tt)*] [$($parameter:tt)*] [$($name:ident)*] [$($let:tt)*]
        $arg:ident: $integer:ident $(= $default:tt)? $(, $($rest:tt)*)?) => {
        $crate::args::calls!(@ $class $call [$($signature)* $arg $(= $default)?,]
            [$($parameter)* #[pyo3(from_py_with = $crate::args::$arg)] $arg: $integer,]
            [$($name)* $arg] [$($let)*] $($($rest)*)?);
    };
    (@ $class:tt $call:tt [$($signature:tt)*] [$($parameter:tt)*] [$($name:ident)*] [$($let:tt)*] * $arg:ident) => {
        $crate::args::calls!(@ $class $call [$($signature)* *,] [$($parameter)*] [$($name)*] [$($let)*] $arg);
    };
    (@ $class:tt $call:tt [$($signature:tt)*] [$($parameter:tt)*] [$($name:ident)*] [$($let:tt)*] $arg:ident) => {
        $crate::args::calls!(@ $class $call [$($signature)* $arg = None,]
            [$($parameter)* $arg: Option<$crate::args::Seconds>,]
            [$($name)* $arg] [$($let)* let $arg = $crate::args::Timeout::from($arg);]);
    };
    (@ [$class:ident] [$slf:ident $doc:tt $name:ident $return:ty $body:block] [$($signature:tt)*] [$($parameter:tt)*]
        [$($arg:ident)*] $let:tt) => {
        #[pymethods]
        impl $crate::bus::Bus {
            #[doc = concat!("`", stringify!($class), ".", stringify!($name), "`.")]
            #[pyo3(signature = ($($signature)*))]
            fn $name<'py>($slf: &Bound<'py, Self>, $($parameter)*) -> PyResult<$return> {
                $class::$name(<$class as $crate::bus::Half>::of($slf)?, $($arg),*)
            }
        }
        $crate::args::calls!(@ $class [$slf $doc $name $return $body] [$($signature)*] [$($parameter)*] [$($arg)*] $let);
    };
    (@ $class:ident [$slf:ident [$($doc:tt)*] $name:ident $return:ty $body:block] [$($signature:tt)*] [$($parameter:tt)*]
        $args:tt [$($let:tt)*]) => {
        #[pymethods]
        impl $class {
            $($doc)*
            #[pyo3(signature = ($($signature)*))]
            #[inline]
            pub(crate) fn $name<'py>($slf: &Bound<'py, Self>, $($parameter)*) -> PyResult<$return> {
                $($let)*
                $body
            }
        }
    };
}
pub(crate) use calls;
