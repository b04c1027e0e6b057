//! Calls and streams that are under way, for callers that wait.

use crate::args::{Seconds, Timeout};
use crate::endpoint::Gil;
use crate::errors::error;
use crate::rpc::client::Client;
use crate::rpc::reply::{Reply, call_error, raise_call};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use ramway::ErrorKind;
use ramway::rpc::Taken;

/// A call of a client. Dropped it is let go of.
struct Held {
    client: Py<Client>,
    /// `None` once the outcome was taken, or the call was cancelled.
    call: Gil<Option<u64>>,
}

impl Held {
    /// What has come within the time; `None`: nothing yet. The call is over with an outcome.
    fn take(&self, py: Python<'_>, call: u64, timeout: Timeout) -> PyResult<Option<Taken>> {
        let taken = self.client.get().wait(py, call, timeout);
        if let Ok(Some(Taken::End(_))) = taken {
            self.call.set(None);
        }
        taken
    }

    fn cancel(&self) {
        if let Some(call) = self.call.replace(None) {
            self.client.get().core.raw_cancel(call);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// A call that is under way: `Client.start` makes it. Letting go of it cancels the call.
#[pyclass(frozen, weakref, module = "ramway.rpc")]
pub(crate) struct Pending(Held);

impl Pending {
    pub(crate) fn new(client: Py<Client>, call: u64) -> Self {
        Self(Held { client, call: Gil::new(Some(call)) })
    }

    fn outcome(&self, py: Python<'_>, timeout: Timeout) -> PyResult<Option<Reply>> {
        let Some(call) = self.0.call.get() else {
            let text = "this call has ended, and its outcome was taken or it was cancelled: a call gives one outcome";
            return Err(call_error(py, ErrorKind::InvalidArgument, text, true));
        };
        match self.0.take(py, call, timeout)? {
            Some(Taken::End(outcome)) => outcome.map(|reply| Some(Reply::new(reply))).map_err(|e| raise_call(py, &e)),
            _ => Ok(None),
        }
    }
}

#[pymethods]
impl Pending {
    /// Waits for the reply. With a `timeout` it waits for at most that many seconds: then it raises TimedOutError (which is no
    /// CallError), and the call goes on.
    ///
    /// Raises CallError; InvalidArgumentError if the outcome was taken before.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Reply> {
        self.outcome(py, timeout.into())?
            .ok_or_else(|| error(py, ErrorKind::TimedOut, "the call had no reply within the time; it goes on"))
    }

    /// The reply if it is there, else None. Never waits.
    ///
    /// Raises CallError; InvalidArgumentError if the outcome was taken before.
    fn try_wait(&self, py: Python<'_>) -> PyResult<Option<Reply>> {
        self.outcome(py, Timeout::NOW)
    }

    /// Cancels the call: the server is told. One that it has begun goes on until its handler ends or sees that.
    fn cancel(&self) {
        self.0.cancel();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0.client)
    }

    fn __repr__(&self) -> String {
        let over = if self.0.call.get().is_none() { "that is over" } else { "under way" };
        format!("<ramway.rpc.Pending of '{}' {over}>", self.0.client.get().name)
    }
}

/// A stream of replies, to iterate over: `Client.stream` makes it. Letting go of it cancels the call.
#[pyclass(frozen, weakref, module = "ramway.rpc")]
pub(crate) struct Stream(Held);

impl Stream {
    pub(crate) fn new(client: Py<Client>, call: u64) -> Self {
        Self(Held { client, call: Gil::new(Some(call)) })
    }

    /// `None`: it is complete, or over. `Err(None)`: nothing yet.
    fn element(&self, py: Python<'_>, timeout: Timeout) -> Result<Option<Reply>, Option<PyErr>> {
        let Some(call) = self.0.call.get() else { return Ok(None) };
        match self.0.take(py, call, timeout)? {
            Some(Taken::Element(element)) => Ok(Some(Reply::new(element))),
            Some(Taken::End(Ok(_))) => Ok(None),
            Some(Taken::End(Err(failed))) => Err(Some(raise_call(py, &failed))),
            Some(Taken::NotYet) | None => Err(None),
        }
    }
}

#[pymethods]
impl Stream {
    /// The next element, waiting for it; None once the stream is complete or was cancelled. With a `timeout` it waits for at most
    /// that many seconds: then it raises TimedOutError (which is no CallError), and the stream goes on.
    ///
    /// Raises CallError, after what was received before; then there is nothing more.
    #[pyo3(signature = (timeout = None))]
    fn next(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Option<Reply>> {
        let nothing = || error(py, ErrorKind::TimedOut, "the stream had no element within the time; it goes on");
        self.element(py, timeout.into()).map_err(|raised| raised.unwrap_or_else(nothing))
    }

    /// `next` that does not wait.
    ///
    /// Raises EmptyError if there is no element now; CallError.
    fn try_next(&self, py: Python<'_>) -> PyResult<Option<Reply>> {
        let nothing = || error(py, ErrorKind::Empty, "the stream has no element now");
        self.element(py, Timeout::NOW).map_err(|raised| raised.unwrap_or_else(nothing))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Reply>> {
        self.next(py, None)
    }

    /// Cancels the call: the server is told, and nothing more comes.
    fn cancel(&self) {
        self.0.cancel();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0.client)
    }

    fn __repr__(&self) -> String {
        let over = if self.0.call.get().is_none() { "that is over" } else { "under way" };
        format!("<ramway.rpc.Stream of '{}' {over}>", self.0.client.get().name)
    }
}
