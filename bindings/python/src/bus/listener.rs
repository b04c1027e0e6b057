//! `ramway.Listener`: a name that processes connect to, each with a bus of its own.

use crate::args::{Name, Options, Policy, Seconds, Timeout, pass};
use crate::bus::Bus;
use crate::endpoint::{Shared, shared_calls};
use crate::errors::{self, OrRaise, error};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use crate::waiting::{self, POLL_INTERVAL};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ramway::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

/// How a listener is made, by `Listener.bind` and by `Bus.listen`: `capacity`, and keyword arguments.
pub(crate) struct How {
    pub(crate) builder: ramway::ListenerBuilder,
    pub(crate) wait: Policy,
    pub(crate) writable_views: bool,
}

impl How {
    pub(crate) fn new(name: &Name, capacity: u64, options: &mut Options<'_>) -> PyResult<Self> {
        let to_peer = options.get("to_peer")?.unwrap_or(capacity);
        let from_peer = options.get("from_peer")?.unwrap_or(capacity);
        let mut builder = ramway::Listener::builder(&name.0).capacities(to_peer, from_peer);
        pass!(options => builder: align, mode, backlog, membarrier);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            builder = builder.allow_uids(&uids);
        }
        let handshake_timeout = options.timeout("handshake_timeout", Timeout::SECOND)?;
        let wait = options.get("wait")?.unwrap_or(Policy::HYBRID);
        let writable_views = options.flag("writable_views", false)?;
        let builder = builder.handshake_timeout(handshake_timeout.limit()).wait_policy(wait.0);
        Ok(Self { builder: builder.writable_views(writable_views), wait, writable_views })
    }
}

/// The next bus of a listener within the time. `still_open` is asked after each poll interval.
pub(crate) fn accept(
    py: Python<'_>,
    listener: &ramway::Listener,
    name: &str,
    timeout: Timeout,
    still_open: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<ramway::Bus> {
    let attempt = |wait_limit| listener.accept_timeout(waiting::limit(wait_limit));
    waiting::wait(py, timeout, POLL_INTERVAL, attempt, still_open).map_err(|e| {
        if !errors::is(py, &e, ErrorKind::TimedOut) {
            return e;
        }
        error(py, ErrorKind::TimedOut, format!("nobody connected to '{name}' within the time"))
    })
}

/// Accepts connections, each a `Bus` with memory of its own. `Listener.bind(name)` makes one.
///
/// `name` is `[A-Za-z0-9._-]{1,80}`, not starting with a dot, in the Ramway directory (`RAMWAY_DIR`); with a `/` it is
/// the path of the socket. `capacity` is the bytes of both rings of every bus, `to_peer` and `from_peer` those of one
/// direction (0 leaves it out), `align` what every payload's address is a multiple of. `mode` is the socket's permission
/// bits, `allow_uids` are other users that may connect, `handshake_timeout` is how long a connector may take for each
/// step, in seconds, `backlog` how many may wait for `accept`. `wait` and `writable_views` are those of every bus.
///
/// A connector that is silent, breaks the handshake or is another user's is refused and disturbs nobody: see `refused`
/// and `last_refusal`. All calls may be made from any thread. Closing removes the name; accepted buses live on.
///
/// Raises `AlreadyExistsError` if a live listener has the name, or something that is not Ramway's to remove,
/// `InvalidArgumentError`, `PermissionDeniedError`, `UnsupportedError`.
#[pyclass(module = "ramway", frozen, weakref)]
pub(crate) struct Listener {
    pub(crate) shared: Shared<ramway::Listener>,
    path: PathBuf,
    wait: Policy,
    writable_views: bool,
}

impl Listener {
    /// A duplicate of what `fileno` gives, which stays when the listener is closed.
    pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<OwnedFd> {
        let duplicate = self.shared.core(py)?.as_fd().try_clone_to_owned();
        duplicate.map_err(|e| errors::os_error(py, errors::DUPLICATE, e))
    }

    fn make(
        py: Python<'_>,
        name: &Name,
        capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
        bind: fn(&ramway::ListenerBuilder) -> ramway::Result<ramway::Listener>,
    ) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let how = How::new(name, capacity, &mut options)?;
        options.finish()?;
        let core = py.detach(|| bind(&how.builder)).or_raise(py)?;
        let path = core.path().to_owned();
        Ok(Self {
            shared: Shared::new(core, "listener", name.shown()),
            path,
            wait: how.wait,
            writable_views: how.writable_views,
        })
    }
}

#[pymethods]
impl Listener {
    /// Listens at `name`, which must not be a live listener's. See the class for the options and what is raised.
    #[staticmethod]
    #[pyo3(signature = (name, capacity=1 << 20, **options), text_signature = "(name, capacity=1048576, *, to_peer=None, \
        from_peer=None, align=16, mode=None, allow_uids=(), handshake_timeout=1.0, backlog=128, wait='hybrid', \
        membarrier=True, writable_views=False)")]
    fn bind(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::make(py, &name, capacity, options, ramway::ListenerBuilder::bind)
    }

    /// For one connection alone, for `ramway._aio`.
    #[staticmethod]
    #[pyo3(signature = (name, capacity, **options))]
    fn _bind_one(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::make(py, &name, capacity, options, ramway::ListenerBuilder::bind_one)
    }

    /// The next bus, waiting for it at most `timeout` seconds (`None`: forever).
    ///
    /// Raises `TimedOutError`; `NoSpaceError` if there is no memory for a bus and `OsError` if there are no descriptors
    /// left (the connector was told, and the listener goes on at the next call).
    #[pyo3(signature = (timeout = None))]
    fn accept(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Bus> {
        let (core, name) = (self.shared.core(py)?, &self.shared.name);
        let bus = accept(py, &core, name, timeout.into(), |py| self.shared.check_open(py))?;
        Bus::wrap(py, bus, name, self.wait, self.writable_views)
    }

    /// `accept` that does not wait: `None` if nobody has connected.
    fn try_accept(&self, py: Python<'_>) -> PyResult<Option<Bus>> {
        match self.accept(py, Some(Seconds::ZERO)) {
            Err(e) if errors::is(py, &e, ErrorKind::TimedOut) => Ok(None),
            accepted => accepted.map(Some),
        }
    }

    /// The socket's path, which connectors can be given in place of the name.
    #[getter]
    fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// How many connectors have been refused or have given up so far.
    #[getter]
    fn refused(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.shared.core(py)?.refused())
    }

    /// Why the last one was refused, for logs.
    #[getter]
    fn last_refusal(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.shared.core(py)?.last_refusal())
    }

    /// A descriptor for event loops: readable when `accept(0)` may make progress. It belongs to the listener: do not
    /// read from it, do not close it. Connectors that have gone silent are refused inside calls of `accept` only.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.shared.core(py)?.as_fd().as_raw_fd())
    }

    /// accept for asyncio: an awaitable of the next bus. One task at a time may wait (BusyError).
    fn accept_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Connection { listener: slf.clone().unbind(), stream: false })
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The buses that are accepted, until the listener is closed.
    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Connection { listener: slf.clone().unbind(), stream: true })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The buses that are accepted, until the listener is closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Bus>> {
        match self.accept(py, None) {
            Err(e) if self.shared.is_closed() && errors::is(py, &e, ErrorKind::Detached) => Ok(None),
            accepted => accepted.map(Some),
        }
    }

    fn __repr__(&self) -> String {
        let closed = if self.shared.is_closed() { " closed" } else { "" };
        format!("<ramway.Listener '{}'{closed}>", self.shared.name)
    }
}

shared_calls! {
    Listener, "pass its name, and connect to it there",
    /// Stops listening and removes the name. A thread that waits in `accept` meanwhile gets `DetachedError` within
    /// 100 ms, and the name goes then.
}
