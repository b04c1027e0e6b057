//! The calls of one event loop: what `ramway.rpc.AsyncClient` stands on. Nothing here waits.

use crate::args::Seconds;
use crate::endpoint::Gil;
use crate::errors::OrRaise;
use crate::rpc::Method;
use crate::rpc::client::{Request, refusal};
use crate::rpc::reply::{Reply, call_error, raise_call};
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use ramway::ErrorKind;
use ramway::rpc::{RawClient, Taken};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};

#[pyclass(frozen, module = "ramway._ramway", name = "_RpcCalls")]
pub(crate) struct Calls {
    /// `None` once it is closed.
    core: Gil<Option<RawClient>>,
    name: String,
    max_in_flight: u32,
    max_request_len: usize,
    peer: (u32, Option<u32>),
    /// Those that wait for a call's one reply, by its number.
    futures: Gil<HashMap<u64, Py<PyAny>>>,
}

impl Calls {
    pub(crate) fn new(mut raw: RawClient, name: String) -> Self {
        raw.list_changed();
        Self {
            name,
            max_in_flight: raw.max_in_flight(),
            max_request_len: raw.max_request_len(),
            peer: (raw.peer_uid(), raw.peer_pid()),
            core: Gil::new(Some(raw)),
            futures: Gil::default(),
        }
    }

    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut RawClient) -> T) -> PyResult<T> {
        self.core.with(|core| core.as_mut().map(act)).ok_or_else(|| refusal(py, &self.name))
    }
}

fn is_done(future: &Bound<'_, PyAny>) -> PyResult<bool> {
    future.call_method0(intern!(future.py(), "done"))?.is_truthy()
}

#[pymethods]
impl Calls {
    /// Makes a call for a future of the event loop; with None its reply is a stream.
    #[allow(clippy::too_many_arguments)] // Python's keywords.
    #[pyo3(signature = (method, body, timeout, meta, future, window))]
    fn begin(
        &self,
        py: Python<'_>,
        method: Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
        future: Option<Py<PyAny>>,
        #[pyo3(from_py_with = crate::args::window)] window: u32,
    ) -> PyResult<u64> {
        let request = Request::new(method, body, timeout, meta, window)?;
        let call = self
            .with(py, |raw| raw.start(request.method, request.body.as_slice(), &request.options(), future.is_none()))?;
        let call = call.map_err(|e| raise_call(py, &e))?;
        if let Some(future) = future {
            self.futures.with(|futures| drop(futures.insert(call, future)));
        }
        Ok(call)
    }

    /// Receives what is there and gives it to its futures; the streams that have something to be taken.
    fn progress(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let mut streams = Vec::new();
        while self.with(py, RawClient::progress)? {}
        while let Some(call) = self.with(py, RawClient::next_changed)? {
            let Some(future) = self.futures.with(|futures| futures.remove(&call)) else {
                streams.push(call);
                continue;
            };
            let taken = self.with(py, |raw| raw.take(call))?;
            let future = future.bind(py);
            if is_done(future)? {
                continue;
            }
            match taken {
                Taken::End(Ok(reply)) => future.call_method1(intern!(py, "set_result"), (Reply::new(reply),))?,
                Taken::End(Err(failed)) => {
                    future.call_method1(intern!(py, "set_exception"), (raise_call(py, &failed),))?
                }
                Taken::NotYet | Taken::Element(_) => continue,
            };
        }
        Ok(streams)
    }

    /// What has come of a stream: an element, or None for nothing yet.
    fn take(&self, py: Python<'_>, call: u64) -> PyResult<Option<Reply>> {
        match self.with(py, |raw| raw.take(call))? {
            Taken::NotYet => Ok(None),
            Taken::Element(element) => Ok(Some(Reply::new(element))),
            Taken::End(Ok(_)) => Err(PyStopAsyncIteration::new_err(())),
            Taken::End(Err(failed)) => Err(raise_call(py, &failed)),
        }
    }

    /// Lets go of a call.
    fn cancel(&self, call: u64) {
        self.core.with(|core| {
            if let Some(raw) = core {
                raw.cancel(call);
            }
        });
        drop(self.futures.with(|futures| futures.remove(&call)));
    }

    /// In how many seconds `progress` is to be called though the descriptor is not readable; None: never.
    fn due_in(&self) -> Option<f64> {
        self.core.with(|core| core.as_mut().and_then(RawClient::due_in)).map(|due| due.as_secs_f64())
    }

    /// The descriptor that is readable when `progress` has something to do.
    fn descriptor(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.with(py, |raw| raw.readiness().map(|readiness| readiness.as_fd().as_raw_fd()))?.or_raise(py)
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.core.with(|core| core.as_ref().map_or(0, RawClient::in_flight))
    }

    #[getter]
    fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    #[getter]
    fn max_request_len(&self) -> usize {
        self.max_request_len - ramway::facts::RPC_HEADER
    }

    #[getter]
    fn peer_uid(&self) -> u32 {
        self.peer.0
    }

    #[getter]
    fn peer_pid(&self) -> Option<u32> {
        self.peer.1
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn closed(&self) -> bool {
        self.core.with(|core| core.is_none())
    }

    /// Ends the connection, and all calls.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.core.replace(None).map(RawClient::close);
        let futures = self.futures.replace(HashMap::new());
        let text = format!("the RPC client of '{}' was closed while the call was under way", self.name);
        for future in futures.into_values() {
            let future = future.bind(py);
            if !is_done(future)? {
                let raised = call_error(py, ErrorKind::Closed, &text, true);
                future.call_method1(intern!(py, "set_exception"), (raised,))?;
            }
        }
        match closed {
            None | Some(Ok(())) => Ok(()),
            // What a dead server's connection, or that of a fork's parent, says when it is closed was said by its calls.
            Some(Err(e)) if matches!(e.kind(), ErrorKind::PeerDead | ErrorKind::Closed | ErrorKind::Detached) => Ok(()),
            Some(Err(e)) => Err(crate::errors::raise(py, e)),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.futures.with(|futures| futures.values().try_for_each(|future| visit.call(future)))
    }

    fn __clear__(&self) {
        drop(self.futures.replace(HashMap::new()));
    }
}
