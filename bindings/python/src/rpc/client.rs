//! `ramway.rpc.Client`: calls that wait, from any thread.

use crate::args::{Bytes, Name, Options, Policy, Seconds, Timeout, pass};
use crate::endpoint::Gil;
use crate::errors::OrRaise;
use crate::rpc::Method;
use crate::rpc::calls::Calls;
use crate::rpc::pending::{Pending, Stream};
use crate::rpc::reply::{Reply, call_error, raise_call};
use crate::waiting::{poll_interval, unless_signalled};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ramway::facts::{METHOD_DESCRIBE, METHOD_PING, RPC_WINDOW_DEFAULT};
use ramway::rpc::{CallOptions, ClientConnector, RawClient, SharedClient, Taken};
use ramway::{ErrorKind, WaitPolicy};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Calls the methods of an RPC server of this machine: `Client.connect(name)` makes one.
///
/// It may be used by any number of threads at once; calls that wait let other threads run and answer Ctrl-C, within 100 ms. A
/// method is its number, or a name, whose number is `method_id(name)`. A body is anything with the buffer protocol.
///
/// What has no reply is raised as a CallError, which says how the call ended and whether it may have run; nothing is repeated by
/// itself, and a client does not connect again by itself. It is a context manager that closes.
#[pyclass(frozen, weakref, module = "ramway.rpc")]
pub(crate) struct Client {
    /// One of the threads that wait receives for all. Its lock is never held by one that waits.
    pub(crate) core: SharedClient,
    pub(crate) name: String,
    policy: WaitPolicy,
    closed: Gil<bool>,
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

    /// What the core makes the call with.
    pub(crate) fn options(&self) -> CallOptions<'_> {
        let mut options = CallOptions::new().window(self.window);
        if let Some(timeout) = self.timeout.0 {
            options = options.timeout(timeout);
        }
        if let Some(meta) = &self.meta {
            options = options.meta(meta.as_slice());
        }
        options
    }
}

/// The exception for a call on a client that is closed.
#[cold]
pub(crate) fn refusal(py: Python<'_>, name: &str) -> PyErr {
    call_error(py, ErrorKind::Detached, &format!("the RPC client of '{name}' is closed"), false)
}

impl Client {
    fn wrap(raw: RawClient, name: String, policy: WaitPolicy) -> Self {
        Self { name, policy, core: raw.shared(), closed: Gil::default() }
    }

    fn begin(&self, py: Python<'_>, request: &Request, is_stream: bool) -> PyResult<u64> {
        if self.closed.get() {
            return Err(refusal(py, &self.name));
        }
        let started = self.core.raw_start(request.method, request.body.as_slice(), &request.options(), is_stream);
        started.map_err(|e| raise_call(py, &e))
    }

    /// What has come for a call within the time; `None`: the time has passed. An exception of a signal's handler comes through.
    pub(crate) fn wait(&self, py: Python<'_>, call: u64, timeout: Timeout) -> PyResult<Option<Taken>> {
        let until = timeout.0.and_then(|timeout| Instant::now().checked_add(timeout));
        let interval = poll_interval(self.policy);
        loop {
            let left = until.map(|at| at.saturating_duration_since(Instant::now()));
            let limit = left.map_or(interval, |left| left.min(interval));
            let waited = py.detach(|| match self.core.raw_wait(call, Some(limit)) {
                Ok(true) => Ok(self.core.raw_take(call)),
                Ok(false) => Ok(Taken::NotYet),
                Err(e) => Err(e),
            });
            match waited.map_err(|e| raise_call(py, &e))? {
                Taken::NotYet => py.check_signals()?,
                taken => return Ok(Some(taken)),
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
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
                    self.core.raw_cancel(call);
                    return Err(raised);
                }
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
        let attempt = Connecting::new(py, name, options)?;
        Ok(Self::wrap(attempt.connect(py)?, attempt.name, attempt.policy))
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
    fn in_flight(&self) -> usize {
        self.core.raw_progress();
        self.core.in_flight()
    }

    /// How many calls the server lets this client have in flight. Those beyond wait in the client, in their order.
    #[getter]
    fn max_in_flight(&self) -> u32 {
        self.core.max_in_flight()
    }

    /// Bytes of the longest request, its metadata (rounded up to 16) and its body together.
    #[getter]
    fn max_request_len(&self) -> usize {
        self.core.max_request_len()
    }

    /// The user that the server acted as when the connection was made.
    #[getter]
    fn peer_uid(&self) -> u32 {
        self.core.peer_uid()
    }

    /// The server's process when the connection was made; None if it has no number in this PID namespace.
    #[getter]
    fn peer_pid(&self) -> Option<u32> {
        self.core.peer_pid()
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
        if self.closed.replace(true) {
            return Ok(());
        }
        match py.detach(|| self.core.close()) {
            // What a dead server's connection, or that of a fork's parent, says when it is closed was or will be said by its calls.
            Err(e) if matches!(e.kind(), ErrorKind::PeerDead | ErrorKind::Closed | ErrorKind::Detached) => Ok(()),
            closed => closed.or_raise(py),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().closed.get() {
            return Err(refusal(slf.py(), &slf.get().name));
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
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
    fn run(&self, py: Python<'_>) -> PyResult<Calls> {
        Ok(Calls::new(self.connect(py)?, self.name.clone()))
    }

    /// Ends `run` within 100 ms, with `WaitInterruptedError`.
    fn give_up(&self) {
        // Relaxed: the flag is all that there is to see.
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl Connecting {
    fn connect(&self, py: Python<'_>) -> PyResult<RawClient> {
        unless_signalled(py, |go_on| {
            // Relaxed: as above.
            self.connector.connect_raw(|| !self.given_up.load(Ordering::Relaxed) && go_on())
        })
    }
}
