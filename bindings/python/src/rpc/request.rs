//! What a handler gets, and what its return value becomes.

use crate::args::Bytes;
use crate::endpoint::Gil;
use crate::many::inbox::peer;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};
use ramway::Peer;
use ramway::rpc::{Call, Cancellation, Fault};
use std::time::{Duration, Instant};

/// A call as its handler sees it: the request, a copy, and who makes it.
#[pyclass(frozen, module = "ramway.rpc")]
pub(crate) struct Request {
    /// The method's number.
    #[pyo3(get)]
    method: u32,
    /// The request's bytes.
    #[pyo3(get)]
    body: Py<PyBytes>,
    meta: Option<Py<PyBytes>>,
    peer: Peer,
    /// Whether the caller wants a stream.
    #[pyo3(get)]
    is_stream: bool,
    deadline: Option<Instant>,
    cancellation: Cancellation,
    reply_meta: Gil<Option<Py<PyAny>>>,
}

fn deadline(remaining: Option<Duration>) -> Option<Instant> {
    remaining.and_then(|left| Instant::now().checked_add(left))
}

fn copy(py: Python<'_>, meta: &[u8]) -> Option<Py<PyBytes>> {
    (!meta.is_empty()).then(|| PyBytes::new(py, meta).unbind())
}

impl Request {
    pub(crate) fn of_request(py: Python<'_>, request: &ramway::rpc::Request<'_>) -> Self {
        Self {
            method: request.method(),
            body: PyBytes::new(py, request.body()).unbind(),
            meta: copy(py, request.meta()),
            peer: request.peer(),
            is_stream: request.is_stream(),
            deadline: deadline(request.remaining()),
            cancellation: request.cancellation(),
            reply_meta: Gil::default(),
        }
    }

    pub(crate) fn of_call(py: Python<'_>, call: &Call) -> Self {
        Self {
            method: call.method(),
            body: PyBytes::new(py, call.body()).unbind(),
            meta: copy(py, call.meta()),
            peer: call.peer(),
            is_stream: call.is_stream(),
            deadline: deadline(call.remaining()),
            cancellation: call.cancellation(),
            reply_meta: Gil::default(),
        }
    }

    /// The metadata of the next reply or element, which only that has.
    pub(crate) fn take_reply_meta(&self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        let Some(meta) = self.reply_meta.replace(None) else { return Ok(None) };
        Bytes::of_message(meta.bind(py)).map(Some)
    }
}

#[pymethods]
impl Request {
    /// The request's metadata: bytes that the application defines; empty if the caller gave none.
    #[getter]
    fn meta(&self, py: Python<'_>) -> Py<PyBytes> {
        self.meta.as_ref().map_or_else(|| PyBytes::new(py, &[]).unbind(), |meta| meta.clone_ref(py))
    }

    /// The client, as a Peer.
    #[getter]
    fn peer(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        peer(py, self.peer.id, self.peer.uid, self.peer.pid)
    }

    /// The client's user when the connection was made, as the kernel recorded it.
    #[getter]
    fn peer_uid(&self) -> u32 {
        self.peer.uid
    }

    /// The client's process when the connection was made; None if it has no number in this PID namespace.
    #[getter]
    fn peer_pid(&self) -> Option<u32> {
        self.peer.pid
    }

    /// How many seconds the call has left; None without a limit.
    #[getter]
    fn remaining(&self) -> Option<f64> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Whether the call was cancelled, its time is over or its client is gone: nobody wants the reply any more. A handler that runs
    /// on the server's thread sees only that its time is over.
    #[getter]
    fn cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Metadata of the reply, or of the next element: bytes that the application defines. None is none.
    #[getter]
    fn reply_meta(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.reply_meta.with(|meta| meta.as_ref().map(|meta| meta.clone_ref(py)))
    }

    #[setter]
    fn set_reply_meta(&self, meta: Option<Py<PyAny>>) {
        drop(self.reply_meta.replace(meta));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.reply_meta.with(|meta| visit.call(&*meta))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let len = self.body.bind(py).as_bytes().len();
        format!("<ramway.rpc.Request of method {}, {len} bytes>", self.method)
    }
}

/// How a handler has failed.
pub(crate) enum Failed {
    /// It raised Fault.
    Fault(Fault),
    /// It raised another exception, which its caller is told as a text.
    Raised(String),
    /// It raised what is to end the program: KeyboardInterrupt, SystemExit. The caller is told too.
    Ends(String, PyErr),
}

impl Failed {
    #[cold]
    pub(crate) fn of(py: Python<'_>, raised: PyErr) -> Self {
        static FAULT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let fault = || -> PyResult<Option<Fault>> {
            let class = FAULT.import(py, "ramway._rpc_errors", "Fault")?;
            if !raised.is_instance(py, class) {
                return Ok(None);
            }
            let value = raised.value(py);
            let code = value.getattr("code")?.extract()?;
            Ok(Some(Fault::new(code, value.getattr("text")?.extract::<String>()?)))
        };
        match fault() {
            Ok(Some(fault)) => return Self::Fault(fault),
            Ok(None) => {}
            // A Fault whose attributes were changed to something else.
            Err(broken) => return Self::Raised(text(py, &broken)),
        }
        let text = text(py, &raised);
        if raised.is_instance_of::<PyException>(py) { Self::Raised(text) } else { Self::Ends(text, raised) }
    }
}

/// "TypeName: message", or the name alone.
fn text(py: Python<'_>, raised: &PyErr) -> String {
    let name = raised.get_type(py).name().map_or_else(|_| "Exception".into(), |name| name.to_string());
    match raised.value(py).str().map(|text| text.to_string_lossy().into_owned()) {
        Ok(text) if !text.is_empty() => format!("{name}: {text}"),
        _ => name,
    }
}

/// The bytes of what a handler has returned or yielded; None is no bytes.
pub(crate) fn bytes_of(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if value.is_none() {
        return Ok(Bytes::empty());
    }
    Bytes::of_message(value).map_err(|e| {
        if !e.is_instance_of::<PyTypeError>(value.py()) {
            return e;
        }
        let kind = value.get_type().name().map(|n| n.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("the handler {what} {kind}: expected bytes, another buffer or None"))
    })
}
