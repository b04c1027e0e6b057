//! `ramway.Bus`: two rings between a listener and a connector, as one object.

pub(crate) mod listener;

use crate::args::{Name, Options, Policy, Timeout, pass};
use crate::bus::listener::How;
use crate::endpoint::End;
use crate::errors::{self, OrRaise, error};
use crate::ring::receiver::Receiver;
use crate::ring::sender::Sender;
use crate::waiting::unless_signalled;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ramway::ErrorKind;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// A full-duplex connection to one process of this machine: a `Sender` and a `Receiver`, each with a ring of its own in
/// memory that is safe against a hostile peer (see SECURITY.md).
///
/// `Bus.listen` takes one peer at a name, `Bus.connect` is the other side; a `Listener` takes many. `bus.send`,
/// `bus.recv`, `for msg in bus` and the others are those of `bus.sender` and `bus.receiver`, which two threads may use
/// at the same time. After the last message the receiver raises `ClosedError` (iteration ends) if the peer closed,
/// `PeerDeadError` if its process died. Both are final.
#[pyclass(module = "ramway", frozen, weakref)]
pub(crate) struct Bus {
    sender: Option<Py<Sender>>,
    receiver: Option<Py<Receiver>>,
    name: String,
    peer_uid: u32,
    peer_pid: Option<u32>,
}

impl Bus {
    pub(crate) fn wrap(py: Python<'_>, core: ramway::Bus, name: &str, wait: Policy, writable: bool) -> PyResult<Self> {
        let (peer_uid, peer_pid) = (core.peer_uid(), core.peer_pid());
        let (sender, receiver) = core.split();
        let shown = || Some(name.to_owned());
        let sender = sender.map(|core| Py::new(py, Sender::wrap(End::Ring(core), shown(), wait.0))).transpose()?;
        let receiver =
            receiver.map(|core| Py::new(py, Receiver::wrap(End::Ring(core), shown(), wait.0, writable))).transpose()?;
        Ok(Self { sender, receiver, name: name.to_owned(), peer_uid, peer_pid })
    }

    #[cold]
    fn missing(&self, py: Python<'_>, ways: &str) -> PyErr {
        let text = format!("the bus '{}' is {ways}: its listener gave the other direction a capacity of 0", self.name);
        error(py, ErrorKind::Unsupported, text)
    }
}

/// An end of a bus. The calls of it that the bus has too are generated where the end has them (`args::calls`).
pub(crate) trait Half: Sized {
    /// # Errors
    /// `UnsupportedError` if the listener gave this direction no capacity.
    fn of<'a, 'py>(bus: &'a Bound<'py, Bus>) -> PyResult<&'a Bound<'py, Self>>;
}

impl Half for Sender {
    #[inline]
    fn of<'a, 'py>(bus: &'a Bound<'py, Bus>) -> PyResult<&'a Bound<'py, Self>> {
        let (py, this) = (bus.py(), bus.get());
        Ok(this.sender.as_ref().ok_or_else(|| this.missing(py, "receive-only"))?.bind(py))
    }
}

impl Half for Receiver {
    #[inline]
    fn of<'a, 'py>(bus: &'a Bound<'py, Bus>) -> PyResult<&'a Bound<'py, Self>> {
        let (py, this) = (bus.py(), bus.get());
        Ok(this.receiver.as_ref().ok_or_else(|| this.missing(py, "send-only"))?.bind(py))
    }
}

/// One attempt to connect, for `ramway._aio`: `run` in a thread, `give_up` in the event loop's.
#[pyclass(module = "ramway._ramway", frozen)]
pub(crate) struct Connecting {
    connector: ramway::Connector,
    name: String,
    wait: Policy,
    writable_views: bool,
    given_up: AtomicBool,
}

impl Connecting {
    fn new(py: Python<'_>, name: &Name, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, given)?;
        let mut connector = ramway::Bus::connector(&name.0);
        pass!(options => connector: membarrier);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            connector = connector.allow_uids(&uids);
        }
        let timeout = options.timeout("timeout", Timeout::TEN_SECONDS)?;
        let wait = options.get("wait")?.unwrap_or(Policy::HYBRID);
        let writable_views = options.flag("writable_views", false)?;
        options.finish()?;
        let connector = connector.timeout(timeout.limit()).wait_policy(wait.0).writable_views(writable_views);
        Ok(Self { connector, name: name.shown(), wait, writable_views, given_up: AtomicBool::new(false) })
    }
}

#[pymethods]
impl Connecting {
    /// Connects. Blocks, without the interpreter lock.
    fn run(&self, py: Python<'_>) -> PyResult<Bus> {
        let connected = unless_signalled(py, |go_on| {
            // Relaxed: the flag is all that there is to see.
            self.connector.connect_while(|| !self.given_up.load(Ordering::Relaxed) && go_on())
        })?;
        Bus::wrap(py, connected, &self.name, self.wait, self.writable_views)
    }

    /// Ends `run` within 100 ms, with `WaitInterruptedError`.
    fn give_up(&self) {
        // Relaxed: as above.
        self.given_up.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Bus {
    /// Listens at `name`, takes one peer and removes the name again. Waits for the peer at most `timeout` seconds
    /// (`None`: as long as it takes). At most one connector is ever told that it is welcome.
    ///
    /// The other arguments are those of `Listener.bind`. Raises what it and `accept` do.
    #[staticmethod]
    #[pyo3(signature = (name, capacity=1 << 20, **options), text_signature = "(name, capacity=1048576, *, to_peer=None, \
        from_peer=None, align=16, mode=None, allow_uids=(), handshake_timeout=1.0, backlog=128, wait='hybrid', \
        membarrier=True, writable_views=False, timeout=None)")]
    fn listen(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let how = How::new(&name, capacity, &mut options)?;
        let timeout = options.timeout("timeout", Timeout::FOREVER)?;
        options.finish()?;
        let listener = py.detach(|| how.builder.bind_one()).or_raise(py)?;
        let shown = name.shown();
        let core = listener::accept(py, &listener, &shown, timeout, |_| Ok(()))?;
        Self::wrap(py, core, &shown, how.wait, how.writable_views)
    }

    /// `listen` for asyncio: a coroutine that gives the bus. It listens from when it is awaited.
    #[staticmethod]
    #[pyo3(signature = (name, capacity=1 << 20, **options), text_signature = "(name, capacity=1048576, *, to_peer=None, \
        from_peer=None, align=16, mode=None, allow_uids=(), handshake_timeout=1.0, backlog=128, wait='hybrid', \
        membarrier=True, writable_views=False)")]
    fn listen_async<'py>(
        py: Python<'py>,
        name: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(py));
        py.import("ramway._aio")?.getattr("listen")?.call1((name, capacity, options))
    }

    /// Connects to the listener at `name` (or at the path of its socket), waiting at most `timeout` seconds (`None`: as
    /// long as it takes) for one that is not there yet, does not accept, or is flooded. `allow_uids` are other users
    /// whose listeners will do.
    ///
    /// Raises `NotFoundError` if there was no listener within the time, `TimedOutError` if there was one but it did not
    /// answer, `PermissionDeniedError`, `AbiMismatchError`, `CorruptError`, or the listener's reason not to.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, timeout=10.0, wait='hybrid', membarrier=True, \
        writable_views=False, allow_uids=())")]
    fn connect(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Connecting::new(py, &name, options)?.run(py)
    }

    /// `connect` for asyncio: an awaitable of the bus.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, timeout=10.0, wait='hybrid', membarrier=True, \
        writable_views=False, allow_uids=())")]
    fn connect_async<'py>(
        py: Python<'py>,
        name: Name,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let attempt = Connecting::new(py, &name, options)?;
        py.import("ramway._aio")?.getattr("connect")?.call1((Py::new(py, attempt)?,))
    }

    /// The sending end. Raises `UnsupportedError` if the listener gave this direction no capacity.
    #[getter]
    fn sender(slf: &Bound<'_, Self>) -> PyResult<Py<Sender>> {
        Ok(Sender::of(slf)?.clone().unbind())
    }

    /// The receiving end. Raises `UnsupportedError` if the listener gave this direction no capacity.
    #[getter]
    pub(crate) fn receiver(slf: &Bound<'_, Self>) -> PyResult<Py<Receiver>> {
        Ok(Receiver::of(slf)?.clone().unbind())
    }

    /// The name that it was listened at or connected to.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The user that the peer acted as when the connection was made, as the kernel recorded it.
    #[getter]
    fn peer_uid(&self) -> u32 {
        self.peer_uid
    }

    /// The peer's process when the connection was made; `None` if it has no number in our PID namespace. It says who
    /// asked; numbers are used again.
    #[getter]
    fn peer_pid(&self) -> Option<u32> {
        self.peer_pid
    }

    /// Whether the peer still holds an end of the bus, and its process lives. `False` once this side is closed.
    #[getter]
    fn peer_alive(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(sender) = &self.sender
            && !sender.get().closed()
            && sender.get().peer_alive(py)?
        {
            return Ok(true);
        }
        match &self.receiver {
            Some(receiver) if !receiver.get().closed() => receiver.get().peer_alive(py),
            _ => Ok(false),
        }
    }

    /// Whether both ends are closed.
    #[getter]
    fn closed(&self) -> bool {
        self.sender.as_ref().is_none_or(|sender| sender.get().closed())
            && self.receiver.as_ref().is_none_or(|receiver| receiver.get().closed())
    }

    /// Closes both ends: the peer receives what was sent, then `ClosedError`. Views of messages keep their memory. A
    /// thread that waits in a call of one of them gets `DetachedError`.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let sender = self.sender.as_ref().map_or(Ok(()), |sender| sender.get().close(py));
        let receiver = self.receiver.as_ref().map_or(Ok(()), |receiver| receiver.get().close(py));
        match sender.and(receiver) {
            // An earlier call has said so, and what there was to close is closed.
            Err(e) if errors::is(py, &e, ErrorKind::PeerDead) => Ok(()),
            closed => closed,
        }
    }

    /// Closes both ends without telling the peer that this was all: it gets `PeerDeadError` after the last message, as if
    /// this process had been killed.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        let sender = self.sender.as_ref().map_or(Ok(()), |sender| sender.get().abandon(py));
        let receiver = self.receiver.as_ref().map_or(Ok(()), |receiver| receiver.get().close(py));
        sender.and(receiver)
    }

    /// `Receiver.fileno`.
    fn fileno(slf: &Bound<'_, Self>) -> PyResult<RawFd> {
        Receiver::of(slf)?.get().fileno(slf.py())
    }

    /// Iterates over the messages, as the receiver does.
    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<Receiver>> {
        Self::receiver(slf)
    }

    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Receiver::__aiter__(Receiver::of(slf)?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes, or after an exception abandons.
    #[pyo3(signature = (kind, _value = None, _traceback = None, /))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_none() { self.close(kind.py()) } else { self.abandon(kind.py()) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sender)?;
        visit.call(&self.receiver)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Bus cannot be pickled: pass the listener's name, and connect to it there"))
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { " closed" } else { "" };
        match self.peer_pid {
            Some(pid) => format!("<ramway.Bus '{}' with process {pid}{closed}>", self.name),
            None => format!("<ramway.Bus '{}'{closed}>", self.name),
        }
    }
}
