//! `ramway.Inbox`: many producers into one consumer.

use crate::args::{Name, Options, Policy, Seconds, Timeout, pass};
use crate::endpoint::{End, Flag, Gil, Using};
use crate::errors::{OrRaise, error, is};
use crate::many::member::Member;
use crate::many::sources::{Entry, Next, Sources, Value};
use crate::ring::receiver::Receiver;
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use pyo3::exceptions::{PyStopAsyncIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ramway::{ErrorKind, WaitPolicy};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

/// Receives from any number of producers, each with a ring of its own: a slow consumer pushes back on each producer by itself, and
/// one that dies takes nothing of the others with it. `Inbox.bind(name)` makes one.
///
/// A producer is `Bus.connect(name)` and its sender, in any language. The inbox gives pairs of a Peer and what came from it: a
/// Message, or, after its last message, a Left (Left.CLOSED, Left.DIED, Left.CORRUPT) that says how it went. Messages of one
/// producer stay in order; producers are served in turn, message by message.
///
/// `for peer, msg in inbox` and `async for peer, msg in inbox` give them until the inbox was closed and all producers have gone.
/// Messages live as a Receiver's: read-only views of their own producer's ring, which waits when that is full of them; what was
/// received last is moved to private memory when it is in the way. Messages that are held never make the inbox raise BusyError,
/// because another producer may have something.
///
/// One thread or task at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C, within
/// 100 ms. What is not received when the inbox goes is lost.
#[pyclass(frozen, weakref, module = "ramway")]
pub(crate) struct Inbox {
    pub(crate) sources: Sources,
    name: String,
    path: String,
    wait: WaitPolicy,
    writable_views: bool,
    /// The number of the last producer.
    last: Gil<u64>,
    /// It takes no new producer.
    closed: Flag,
    /// It was left behind: nothing more comes.
    gone: Flag,
}

/// The options that an inbox and an outbox share. Gives the builder's arguments to `$set`.
pub(crate) fn max_peers(py: Python<'_>, options: &mut Options<'_>, name: &str) -> PyResult<usize> {
    let max_peers = options.get::<usize>("max_peers")?.unwrap_or(128);
    if max_peers == 0 {
        let text = format!("max_peers=0: '{name}' would take nobody; expected at least 1");
        return Err(error(py, ErrorKind::InvalidArgument, text));
    }
    Ok(max_peers)
}

/// A Peer.
pub(crate) fn peer(py: Python<'_>, id: u64, uid: u32, pid: Option<u32>) -> PyResult<Py<PyAny>> {
    Ok(py.import("ramway._many")?.getattr("Peer")?.call1((id, uid, pid))?.unbind())
}

impl Inbox {
    /// What comes next, if it is there. The end is StopAsyncIteration of a `stream`, else ClosedError.
    pub(crate) fn next(slf: &Bound<'_, Self>, stream: bool) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        if this.closed.get() {
            this.refuse_more();
        }
        loop {
            match this.sources.next(py) {
                Next::Value(_, Value::Bus(bus)) => this.take(py, bus)?,
                Next::Value(entry, Value::Message(message)) => {
                    let pair = PyTuple::new(py, [entry.who.clone_ref(py), message.into_any()])?;
                    return Ok(Some(pair.into_any().unbind()));
                }
                Next::Value(_, Value::Object(_)) => unreachable!("an inbox has producers and a door"),
                Next::Raised(entry, cause) => {
                    if let Some(found) = this.left(py, &entry, cause)? {
                        return Ok(Some(found));
                    }
                }
                Next::Nothing => return Ok(None),
                Next::Nobody if this.gone.get() => return Err(this.refusal(py)),
                Next::Nobody if stream => return Err(PyStopAsyncIteration::new_err(())),
                Next::Nobody => {
                    let text = format!("the inbox '{}' was closed, and every producer has gone", this.name);
                    return Err(error(py, ErrorKind::Closed, text));
                }
            }
        }
    }

    /// A duplicate of what `fileno` gives.
    pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<OwnedFd> {
        if self.gone.get() {
            return Err(self.refusal(py));
        }
        self.sources.duplicate(py)
    }

    fn next_within(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let left = timeout.counting();
        loop {
            if let Some(found) = Self::next(slf, false)? {
                return Ok(found);
            }
            let left = left();
            match this.sources.wait(py, left) {
                Ok(false) if left.0.is_some_and(|left| left.is_zero()) => {
                    let text = format!("the inbox '{}' had no message within the time", this.name);
                    return Err(error(py, ErrorKind::TimedOut, text));
                }
                // Another thread has closed it: `next` finds that.
                Err(e) if this.closed.get() && is(py, &e, ErrorKind::Interrupted) => {}
                waited => drop(waited?),
            }
        }
    }

    /// Takes a new producer.
    fn take(&self, py: Python<'_>, bus: ramway::Bus) -> PyResult<()> {
        let id = self.last.with(|last| {
            *last += 1;
            *last
        });
        let who = peer(py, id, bus.peer_uid(), bus.peer_pid())?;
        let (_, receiver, place) = bus.split_counted();
        let receiver = receiver.expect("every bus of an inbox has this direction");
        let receiver = Receiver::wrap(End::Ring(receiver), Some(self.name.clone()), self.wait, self.writable_views);
        self.sources.add(py, who, Member::Receiver(Py::new(py, receiver)?), Some(place))
    }

    /// Somebody has gone: who, and how. `None` if another thread has told that.
    fn left(&self, py: Python<'_>, entry: &Arc<Entry>, cause: PyErr) -> PyResult<Option<Py<PyAny>>> {
        let how = match &entry.member {
            Member::Receiver(_) if is(py, &cause, ErrorKind::Closed) => "CLOSED",
            Member::Receiver(_) if is(py, &cause, ErrorKind::PeerDead) => "DIED",
            Member::Receiver(_) if is(py, &cause, ErrorKind::Corrupt) => "CORRUPT",
            _ => return Err(cause),
        };
        if !self.sources.remove(entry) {
            return Ok(None);
        }
        if let Member::Receiver(receiver) = &entry.member {
            receiver.get().close(py)?;
        }
        let left = py.import("ramway._many")?.getattr("Left")?.getattr(how)?;
        Ok(Some(PyTuple::new(py, [entry.who.clone_ref(py), left.unbind()])?.into_any().unbind()))
    }

    /// Takes no new producer, and tells those that are there that nothing more is wanted. One whose end is in use is told by the
    /// thread that uses it, which waits and is woken: at its next attempt.
    fn refuse_more(&self) {
        for entry in self.sources.all() {
            let Member::Receiver(receiver) = &entry.member else {
                self.sources.remove(&entry);
                continue;
            };
            if !entry.told.get()
                && let Some(mut core) = Using::try_of(receiver.get())
                && let End::Ring(receiver) = &mut *core
            {
                receiver.raw().refuse_more();
                entry.told.set(true);
            }
        }
    }

    fn refusal(&self, py: Python<'_>) -> PyErr {
        error(py, ErrorKind::Detached, format!("the inbox '{}' is closed", self.name))
    }
}

#[pymethods]
impl Inbox {
    /// Listens at `name`, which must not be a live listener's. `capacity` is the bytes of each producer's ring; beyond `max_peers`
    /// producers at a time one is refused (BusyError). The other options are those of Listener.bind.
    ///
    /// Raises what Listener.bind does; InvalidArgumentError for at most 0 producers.
    #[staticmethod]
    #[pyo3(signature = (name, capacity=1 << 20, **options), text_signature = "(name, capacity=1048576, *, max_peers=128, \
        align=16, mode=None, allow_uids=(), handshake_timeout=1.0, backlog=128, wait='hybrid', membarrier=True, \
        writable_views=False)")]
    fn bind(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let mut options = Options::new(py, options)?;
        let shown = name.shown();
        let max_peers = max_peers(py, &mut options, &shown)?;
        let mut builder = ramway::Listener::builder(&name.0).capacities(0, capacity);
        pass!(options => builder: align, mode, backlog, membarrier);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            builder = builder.allow_uids(&uids);
        }
        let handshake_timeout = options.timeout("handshake_timeout", Timeout::SECOND)?;
        let wait = options.get("wait")?.unwrap_or(Policy::HYBRID);
        let writable_views = options.flag("writable_views", false)?;
        options.finish()?;
        let builder = builder.handshake_timeout(handshake_timeout.limit()).wait_policy(wait.0);
        let builder = builder.writable_views(writable_views);
        let listener = py.detach(|| builder.bind_at_most(max_peers)).or_raise(py)?;
        let inbox = Self {
            sources: Sources::new(wait, "inbox"),
            path: listener.path().to_string_lossy().into_owned(),
            name: shown,
            wait: wait.0,
            writable_views,
            last: Gil::default(),
            closed: Flag::default(),
            gone: Flag::default(),
        };
        inbox.sources.add(py, py.None(), Member::Door(Arc::new(listener)), None)?;
        Py::new(py, inbox)
    }

    /// The next message or departure, as a pair of a Peer and a Message or a Left; waits up to `timeout` seconds for it, without
    /// one as long as it takes.
    ///
    /// Raises TimedOutError; ClosedError once the inbox was closed and every producer has gone; NoSpaceError or OsError if a
    /// producer could not be taken for want of memory or descriptors (it was told, and the next call goes on).
    #[pyo3(signature = (timeout = None))]
    fn recv(slf: &Bound<'_, Self>, timeout: Option<Seconds>) -> PyResult<Py<PyAny>> {
        Self::next_within(slf, timeout.into())
    }

    /// recv that does not wait: None if there is nothing now.
    fn try_recv(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        Self::next(slf, false)
    }

    /// recv for asyncio: an awaitable of the next pair, which is received when that is awaited: cancelling it loses nothing.
    fn recv_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Incoming { inbox: slf.clone().unbind(), stream: false })
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Incoming { inbox: slf.clone().unbind(), stream: true })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        match Self::next_within(slf, Timeout::FOREVER) {
            Err(e) if is(slf.py(), &e, ErrorKind::Closed) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Those that are connected, as a list of Peer.
    fn peers(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let all = self.sources.all();
        let producers = all.iter().filter(|entry| matches!(entry.member, Member::Receiver(_)));
        producers.map(|entry| entry.who.clone_ref(py)).collect()
    }

    /// Takes no new producer, and tells those that are there that nothing more is wanted: their next send is ClosedError. What they
    /// have sent before is still received, and each one's departure; then the iteration ends. A message that is sent while this
    /// runs may be lost. From any thread, also while another one or a task waits in recv.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.set(true);
        self.refuse_more();
        self.sources.wake(py);
        Ok(())
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.get()
    }

    /// The name that it was made by.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The socket's path, which producers can be given in place of the name.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// A descriptor for event loops and select: readable while try_recv may give something; call that until it gives None. It
    /// belongs to the inbox: do not read from it, do not close it. Connectors that have gone silent are refused inside calls only.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        if self.gone.get() {
            return Err(self.refusal(py));
        }
        self.sources.fd(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes, and lets all producers go: what is not received is lost.
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)?;
        self.gone.set(true);
        for entry in self.sources.all() {
            self.sources.remove(&entry);
            if let Member::Receiver(receiver) = &entry.member {
                receiver.get().close(py)?;
            }
        }
        self.sources.waits.close(py);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.sources.traverse(&visit)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an Inbox cannot be pickled: pass its name, and connect to it there"))
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed.get() { " closed" } else { "" };
        let producers = self.sources.all().iter().filter(|entry| matches!(entry.member, Member::Receiver(_))).count();
        format!("<ramway.Inbox '{}' with {producers} producers{closed}>", self.name)
    }
}
