//! `ramway.rpc.Client`: calls that wait, from any thread; and what `ramway.rpc.AsyncClient` stands on.

use crate::args::{Bytes, Name, Options, Policy, Seconds, Timeout, pass};
use crate::endpoint::Gil;
use crate::errors::OrRaise;
use crate::rpc::Method;
use crate::rpc::calls::{Calls, State, Waited};
use crate::rpc::pending::{Pending, Stream};
use crate::rpc::reply::{Reply, call_error, raise_call};
use crate::waiting::{poll_interval, unless_signalled};
use pyo3::exceptions::{PyStopAsyncIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ramway::rpc::{CallOptions, CallResult, ClientConnector, RawClient, Taken};
use ramway::{ErrorKind, WaitPolicy};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use ramway::facts::{METHOD_DESCRIBE, METHOD_PING, RPC_WINDOW_DEFAULT};

/// Calls the methods of an RPC server of this machine: `Client.connect(name)` makes one.
///
/// It may be used by any number of threads at once; calls that wait let other threads run and answer Ctrl-C, within 100 ms. A
/// method is its number, or a name, whose number is `method_id(name)`. A body is anything with the buffer protocol.
///
/// What has no reply is raised as a CallError, which says how the call ended and whether it may have run; nothing is repeated by
/// itself, and a client does not connect again by itself. It is a context manager that closes.
#[pyclass(frozen, weakref, module = "ramway.rpc")]
pub(crate) struct Client {
    pub(crate) calls: Calls,
    pub(crate) name: String,
    policy: WaitPolicy,
    max_in_flight: u32,
    max_request_len: usize,
    peer: (u32, Option<u32>),
    closed: Gil<bool>,
    /// Of an event loop: those that wait for a call's one reply, by its number.
    futures: Gil<HashMap<u64, Py<PyAny>>>,
}

/// What a caller says of a call besides its method and its body.
pub(crate) struct Request {
    pub(crate) method: u32,
    pub(crate) body: Bytes,
    pub(crate) meta: Option<Bytes>,
    pub(crate) timeout: Timeout,
    /// 0: one reply.
    pub(crate) window: u32,
}

impl Request {
    pub(crate) fn new(
        Method(method): Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
        window: u32,
    ) -> PyResult<Self> {
        Ok(Self {
            method,
            body: body.map_or_else(|| Ok(Bytes::empty()), Bytes::of_message)?,
            meta: meta.map(Bytes::of_message).transpose()?,
            timeout: timeout.into(),
            window,
        })
    }

    fn start(&self, raw: &mut RawClient, is_stream: bool) -> CallResult<u64> {
        let mut options = CallOptions::new().window(self.window);
        if let Some(timeout) = self.timeout.0 {
            options = options.timeout(timeout);
        }
        if let Some(meta) = &self.meta {
            options = options.meta(meta.as_slice());
        }
        raw.start(self.method, self.body.as_slice(), &options, is_stream)
    }
}

impl Client {
    fn wrap(raw: RawClient, name: String, policy: WaitPolicy) -> Self {
        Self {
            name,
            policy,
            max_in_flight: raw.max_in_flight(),
            max_request_len: raw.max_request_len(),
            peer: (raw.peer_uid(), raw.peer_pid()),
            calls: Calls::new(raw),
            closed: Gil::default(),
            futures: Gil::default(),
        }
    }

    /// Does it with the core's client, without the interpreter lock where that takes waiting.
    ///
    /// # Errors
    /// It is closed, or this is a fork's child, in which the thread that has the lock does not exist.
    pub(crate) fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut RawClient) -> T + Send) -> PyResult<T> {
        let act = |state: &mut State| state.raw().map(act);
        let done = match self.calls.try_lock() {
            Some(mut state) => act(&mut state),
            None if self.calls.is_foreign() => None,
            None => py.detach(|| act(&mut self.calls.lock())),
        };
        done.ok_or_else(|| self.refusal(py))
    }

    pub(crate) fn begin(&self, py: Python<'_>, request: &Request, is_stream: bool) -> PyResult<u64> {
        self.with(py, |raw| request.start(raw, is_stream))?.map_err(|e| raise_call(py, &e))
    }

    #[cold]
    pub(crate) fn refusal(&self, py: Python<'_>) -> PyErr {
        let foreign = if self.calls.is_foreign() { "belongs to the parent process" } else { "is closed" };
        call_error(py, ErrorKind::Detached, &format!("the RPC client of '{}' {foreign}", self.name), false)
    }

    /// What has come for a call within the time; `None`: the time has passed. An exception of a signal's handler comes through.
    pub(crate) fn wait(&self, py: Python<'_>, call: u64, timeout: Timeout) -> PyResult<Option<Taken>> {
        let until = timeout.0.and_then(|timeout| Instant::now().checked_add(timeout));
        let interval = poll_interval(self.policy);
        loop {
            if self.calls.is_foreign() {
                return Err(self.refusal(py));
            }
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            let limit = left.map_or(interval, |left| left.min(interval));
            match py.detach(|| self.calls.wait(call, limit)) {
                Waited::Taken(taken) => return Ok(Some(taken)),
                Waited::Closed => {
                    let text = format!("the RPC client of '{}' was closed while the call was under way", self.name);
                    return Err(call_error(py, ErrorKind::Closed, &text, true));
                }
                Waited::NotYet => {
                    py.check_signals()?;
                    if left.is_some_and(|left| left.is_zero()) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Makes a call with one reply, and waits for it.
    fn call_and_wait(&self, py: Python<'_>, request: &Request) -> PyResult<ramway::rpc::Reply> {
        let call = self.begin(py, request, false)?;
        loop {
            match self.wait(py, call, Timeout::FOREVER) {
                Ok(Some(Taken::End(outcome))) => return outcome.map_err(|e| raise_call(py, &e)),
                Ok(_) => {}
                Err(raised) => {
                    self.calls.let_go(call);
                    return Err(raised);
                }
            }
        }
    }

    /// The futures of the calls that are there, each with what came of it.
    fn deliver(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let mut streams = Vec::new();
        loop {
            let Some(call) = self.with(py, RawClient::next_changed)? else { return Ok(streams) };
            let Some(future) = self.futures.with(|futures| futures.remove(&call)) else {
                streams.push(call);
                continue;
            };
            let taken = self.with(py, |raw| raw.take(call))?;
            let future = future.bind(py);
            if future.call_method0(intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            match taken {
                Taken::End(Ok(reply)) => {
                    future.call_method1(intern!(py, "set_result"), (Reply::new(reply),))?;
                }
                Taken::End(Err(failed)) => {
                    future.call_method1(intern!(py, "set_exception"), (raise_call(py, &failed),))?;
                }
                Taken::NotYet | Taken::Element(_) => {}
            }
        }
    }
}

/// A number and, if the number was made from one, a name.
fn describe(py: Python<'_>, reply: &ramway::rpc::Reply) -> PyResult<Py<PyAny>> {
    let parse = py.import("ramway._rpc")?.getattr("_methods")?;
    Ok(parse.call1((reply.body(),))?.unbind())
}

#[pymethods]
impl Client {
    /// Connects to the server at `name`, a plain name or a path, waiting at most `timeout` seconds for one that is not there yet.
    /// `allow_uids` are other users whose servers will do, `wait` is how calls wait ("spin", "hybrid" or "block"), `max_buffered`
    /// the bytes of replies that nobody has taken yet, all calls together (None: 4 times the ring's capacity).
    ///
    /// Raises TimedOutError, PermissionDeniedError, BusyError if the server has as many clients as it takes, AbiMismatchError where
    /// a plain Listener is.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, timeout=10.0, allow_uids=(), wait='hybrid', \
        max_buffered=None, membarrier=True)")]
    fn connect(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Connecting::new(py, name, options)?.run(py)
    }

    /// Sends a request and waits for its reply, for at most `timeout` seconds (None: as long as it takes). `meta` are bytes that say
    /// something about the call.
    ///
    /// Raises CallError.
    #[pyo3(signature = (method, body = None, *, timeout = None, meta = None),
        text_signature = "($self, method, body=b'', *, timeout=None, meta=None)")]
    fn call(
        &self,
        py: Python<'_>,
        method: Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Reply> {
        self.call_and_wait(py, &Request::new(method, body, timeout, meta, 0)?).map(Reply::new)
    }

    /// Sends a request and gives the call that is under way, without waiting: what cannot be sent yet, because the server's limit
    /// of calls in flight is reached or the ring is full, is kept, and sent in order by this client's later calls. Letting go of
    /// what this gives cancels the call.
    ///
    /// Raises CallError for what keeps the call from being made.
    #[pyo3(signature = (method, body = None, *, timeout = None, meta = None),
        text_signature = "($self, method, body=b'', *, timeout=None, meta=None)")]
    fn start(
        slf: &Bound<'_, Self>,
        method: Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pending> {
        let call = slf.get().begin(slf.py(), &Request::new(method, body, timeout, meta, 0)?, false)?;
        Ok(Pending::new(slf.clone().unbind(), call))
    }

    /// Sends a request whose reply is a stream, which is iterated over. At most `window` elements are under way: a slow reader stops
    /// its own stream and nothing else. `timeout` is that of the whole stream. Letting go of the stream cancels the call.
    ///
    /// Raises CallError for what keeps the call from being made, InvalidArgumentError for a window of 0.
    #[pyo3(signature = (method, body = None, *, timeout = None, meta = None, window = RPC_WINDOW_DEFAULT),
        text_signature = "($self, method, body=b'', *, timeout=None, meta=None, window=16)")]
    fn stream(
        slf: &Bound<'_, Self>,
        method: Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = crate::args::window)] window: u32,
    ) -> PyResult<Stream> {
        let call = slf.get().begin(slf.py(), &Request::new(method, body, timeout, meta, window)?, true)?;
        Ok(Stream::new(slf.clone().unbind(), call))
    }

    /// Waits until the server has answered: it is there and reads.
    #[pyo3(signature = (timeout = None))]
    fn ping(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<()> {
        self.call_and_wait(py, &Request::new(Method(METHOD_PING), None, timeout, None, 0)?).map(drop)
    }

    /// The server's methods, as a list of MethodInfo in the order of the numbers.
    #[pyo3(signature = (timeout = None))]
    fn describe(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Py<PyAny>> {
        let request = Request::new(Method(METHOD_DESCRIBE), None, timeout, None, 0)?;
        describe(py, &self.call_and_wait(py, &request)?)
    }

    /// How many calls are sent and have no final reply: also those that were cancelled, until the server has ended them.
    #[getter]
    fn in_flight(&self, py: Python<'_>) -> usize {
        let counted = self.with(py, |raw| {
            raw.progress();
            raw.in_flight()
        });
        counted.unwrap_or(0)
    }

    /// How many calls the server lets this client have in flight. Those beyond wait in the client, in their order.
    #[getter]
    fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// Bytes of the longest request, its metadata (rounded up to 16) and its body together.
    #[getter]
    fn max_request_len(&self) -> usize {
        self.max_request_len - ramway::facts::RPC_HEADER
    }

    /// The user that the server acted as when the connection was made.
    #[getter]
    fn peer_uid(&self) -> u32 {
        self.peer.0
    }

    /// The server's process when the connection was made; None if it has no number in this PID namespace.
    #[getter]
    fn peer_pid(&self) -> Option<u32> {
        self.peer.1
    }

    /// The name that it was connected by.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.get()
    }

    /// Ends the connection: the server cancels what is under way, and calls that wait in other threads end with ClosedError.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.set(true);
        if self.calls.is_foreign() {
            return Ok(());
        }
        match py.detach(|| self.calls.close()) {
            // What a dead server's connection says when it is closed was or will be said by its calls.
            Err(e) if matches!(e.kind(), ErrorKind::PeerDead | ErrorKind::Closed) => Ok(()),
            closed => closed.or_raise(py),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().closed.get() {
            return Err(slf.get().refusal(slf.py()));
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// For `ramway._rpc`: makes a call for a future of an event loop; with None its reply is a stream.
    #[pyo3(signature = (method, body, timeout, meta, future, window))]
    fn _begin(
        &self,
        py: Python<'_>,
        method: Method,
        body: Option<&Bound<'_, PyAny>>,
        timeout: Option<Seconds>,
        meta: Option<&Bound<'_, PyAny>>,
        future: Option<Py<PyAny>>,
        #[pyo3(from_py_with = crate::args::window)] window: u32,
    ) -> PyResult<u64> {
        let call = self.begin(py, &Request::new(method, body, timeout, meta, window)?, future.is_none())?;
        if let Some(future) = future {
            self.futures.with(|futures| drop(futures.insert(call, future)));
        }
        Ok(call)
    }

    /// Receives what is there and gives it to its futures; the streams that have something to be taken.
    fn _progress(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        while self.with(py, RawClient::progress)? {}
        self.deliver(py)
    }

    /// What has come of a stream: an element, or None for nothing yet.
    fn _take(&self, py: Python<'_>, call: u64) -> PyResult<Option<Reply>> {
        match self.with(py, |raw| raw.take(call))? {
            Taken::NotYet => Ok(None),
            Taken::Element(element) => Ok(Some(Reply::new(element))),
            Taken::End(Ok(_)) => Err(PyStopAsyncIteration::new_err(())),
            Taken::End(Err(failed)) => Err(raise_call(py, &failed)),
        }
    }

    /// Lets go of a call.
    fn _cancel(&self, call: u64) {
        let future = self.futures.with(|futures| futures.remove(&call));
        self.calls.let_go(call);
        drop(future);
    }

    /// In how many seconds `_progress` is to be called though the descriptor is not readable; None: never.
    fn _due_in(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.with(py, RawClient::due_in)?.map(|due| due.as_secs_f64()))
    }

    /// The descriptor that is readable when `_progress` has something to do.
    fn _descriptor(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.with(py, |raw| raw.readiness().map(|readiness| readiness.as_fd().as_raw_fd()))?.or_raise(py)
    }

    /// Ends all calls of an event loop's futures: the client was closed.
    fn _end_futures(&self, py: Python<'_>) -> PyResult<()> {
        let futures = self.futures.with(std::mem::take);
        let text = format!("the RPC client of '{}' was closed while the call was under way", self.name);
        for future in futures.into_values() {
            let future = future.bind(py);
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                let raised = call_error(py, ErrorKind::Closed, &text, true);
                future.call_method1(intern!(py, "set_exception"), (raised,))?;
            }
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.futures.with(|futures| futures.values().try_for_each(|future| visit.call(future)))
    }

    fn __clear__(&self) {
        drop(self.futures.with(std::mem::take));
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Client cannot be pickled: pass its name, and connect to it there"))
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed.get() { " closed" } else { "" };
        format!("<ramway.rpc.Client of '{}'{closed}>", self.name)
    }
}

/// One attempt to connect, for `ramway._aio`: `run` in a thread, `give_up` in the event loop's.
#[pyclass(module = "ramway._ramway", frozen, name = "_RpcConnecting")]
pub(crate) struct Connecting {
    connector: ClientConnector,
    name: String,
    policy: WaitPolicy,
    given_up: AtomicBool,
}

#[pymethods]
impl Connecting {
    #[new]
    #[pyo3(signature = (name, options))]
    fn new(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let mut connector = ramway::rpc::Client::connector(&name.0);
        pass!(options => connector: membarrier, max_buffered);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            connector = connector.allow_uids(&uids);
        }
        let timeout = options.timeout("timeout", Timeout::TEN_SECONDS)?;
        let Policy(policy) = options.get("wait")?.unwrap_or(Policy::HYBRID);
        options.finish()?;
        let connector = connector.timeout(timeout.limit()).wait_policy(policy);
        Ok(Self { connector, name: name.shown(), policy, given_up: AtomicBool::new(false) })
    }

    /// Connects. Blocks, without the interpreter lock.
    fn run(&self, py: Python<'_>) -> PyResult<Client> {
        let raw = unless_signalled(py, |go_on| {
            // Relaxed: the flag is all that there is to see.
            self.connector.connect_raw(|| !self.given_up.load(Ordering::Relaxed) && go_on())
        })?;
        Ok(Client::wrap(raw, self.name.clone(), self.policy))
    }

    /// Ends `run` within 100 ms, with `WaitInterruptedError`.
    fn give_up(&self) {
        // Relaxed: as above.
        self.given_up.store(true, Ordering::Relaxed);
    }
}
