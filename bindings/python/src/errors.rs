//! A core error becomes the exception of `ramway._errors` that stands for its kind.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use ramway::ErrorKind;

/// `KINDS` of `ramway._errors`: the class of kind n at n − 1.
static KINDS: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();

/// The exception for a core error.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: ramway::Error) -> PyErr {
    let raised = make(py, error.kind(), &error.to_string(), error.raw_os_error()).and_then(|raised| {
        if let Some(lost) = error.lost() {
            raised.value(py).setattr("lost", lost)?;
        }
        Ok(raised)
    });
    raised.unwrap_or_else(|broken| broken)
}

/// The exception of a kind, for what the binding itself has to say.
#[cold]
pub(crate) fn error(py: Python<'_>, kind: ErrorKind, text: impl AsRef<str>) -> PyErr {
    make(py, kind, text.as_ref(), None).unwrap_or_else(|broken| broken)
}

/// What an [`os_error`] calls a descriptor's duplicate.
pub(crate) const DUPLICATE: &str = "a duplicate of the handle's descriptor";

/// The exception for a failed call of the system.
#[cold]
pub(crate) fn os_error(py: Python<'_>, call: &str, cause: std::io::Error) -> PyErr {
    let made = make(py, ErrorKind::Os, &format!("{call}: {cause}"), cause.raw_os_error());
    made.unwrap_or_else(|broken| broken)
}

fn make(py: Python<'_>, kind: ErrorKind, text: &str, errno: Option<i32>) -> PyResult<PyErr> {
    let more_descriptors =
        "; this process has as many descriptors as it may: close some, or raise the limit (`ulimit -n`)";
    let text = if errno == Some(libc::EMFILE) { &format!("{text}{more_descriptors}") } else { text };
    let kinds = KINDS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("ramway._errors")?.getattr("KINDS")?.cast_into::<PyTuple>()?.unbind())
    })?;
    let exception = kinds.bind(py).get_item(kind.code() as usize - 1)?.call1((text,))?;
    if let Some(errno) = errno {
        exception.setattr("errno", errno)?;
    }
    Ok(PyErr::from_value(exception))
}

/// What every call into the core ends with.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for ramway::Result<T> {
    #[inline(always)]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, error))
    }
}

/// Runs what a destructor asks of Python. The interpreter also calls destructors while an exception is on its way to
/// its handler: it stays.
#[cfg(Py_GIL_DISABLED)]
pub(crate) fn beside_any<R>(_py: Python<'_>, work: impl FnOnce() -> R) -> R {
    // SAFETY: attached; the reference that is taken is given back, once.
    unsafe {
        let raised = ffi::PyErr_GetRaisedException();
        let done = work();
        ffi::PyErr_SetRaisedException(raised);
        done
    }
}

/// The same by the older calls, which the stable ABI of 3.11 has.
#[cfg(not(Py_GIL_DISABLED))]
pub(crate) fn beside_any<R>(_py: Python<'_>, work: impl FnOnce() -> R) -> R {
    let (mut kind, mut value, mut traceback) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: attached; the references that are fetched are given back by the restoring, once.
    unsafe {
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        let done = work();
        ffi::PyErr_Restore(kind, value, traceback);
        done
    }
}

/// `None` for the error of that kind.
pub(crate) fn unless<T>(py: Python<'_>, kind: ErrorKind, outcome: PyResult<T>) -> PyResult<Option<T>> {
    match outcome {
        Err(e) if is(py, &e, kind) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Whether an exception is one of Ramway's, of any kind.
#[cold]
pub(crate) fn is_ours(py: Python<'_>, exception: &PyErr) -> bool {
    let Some(kinds) = KINDS.get(py) else { return false };
    kinds.bind(py).iter().any(|class| exception.is_instance(py, &class))
}

/// Whether an exception is that of a kind.
#[cold]
pub(crate) fn is(py: Python<'_>, exception: &PyErr, kind: ErrorKind) -> bool {
    let Some(kinds) = KINDS.get(py) else { return false };
    kinds.bind(py).get_item(kind.code() as usize - 1).is_ok_and(|class| exception.is_instance(py, &class))
}
