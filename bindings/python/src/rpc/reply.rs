//! What comes back from a call: a reply, or an exception.

use crate::errors::{OrRaise, raise};
use pyo3::ffi;
use pyo3::intern;
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
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || {
        let kind = error.kind().map(|kind| kind.code());
        let status = error.status().map(|status| status.name());
        let (code, text, may_have_run) = (error.code(), error.text(), error.may_have_run());
        let make = MAKE.import(py, "ramway._rpc", "_call_error")?;
        make.call1((status, kind, code, text, error.to_string(), may_have_run))
    };
    make().map_or_else(|broken| broken, PyErr::from_value)
}

/// The exception for a client that was closed here.
#[cold]
pub(crate) fn closed_here(py: Python<'_>, name: &str, may_have_run: bool) -> PyErr {
    let text = format!("the RPC client of '{name}' is closed");
    let error = ramway::Error::new(ramway::ErrorKind::Closed, text);
    raise(py, error)
}
