mod fetch;

use crate::args::{Bytes, Policy, Timeout};
use crate::dlpack::copy_bytes;
use crate::errors::{OrRaise, error, raise};
use crate::handle::{Gil, Handle, Owner};
use crate::hot;
use crate::lent::Lent;
use crate::message::{Message, copy_of};
use crate::operation::at_least_one;
use crate::waiting::{self, LOOKS, POLL_INTERVAL};
use crate::watch::Waits;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use ramway::ring::consumer::Frame;
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, WaitPolicy};
use std::os::fd::{AsRawFd, RawFd};

/// The receiving end of a ring. One per ring, in the whole system.
///
/// `for msg in rx` gives the messages until the sender closes; a sender that died raises PeerDeadError. A message is a
/// read-only view of the shared memory and keeps its place in the ring while it, or a view of it (memoryview, NumPy
/// array), is alive: several may be kept, and the sender waits when the ring is full of them. Only what was received
/// last, which the variable of a loop still names while the next receive waits, is moved to private memory (a copy) when
/// it takes much of the ring and nobody has a view of it.
///
/// One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C.
#[pyclass(frozen, weakref, module = "ramway")]
pub(crate) struct Receiver {
    pub(crate) core: Handle<ramway::Receiver>,
    pub(crate) lent: Gil<Lent>,
    /// Up to where the ring may take its memory back, where that could not be said at once because another thread was
    /// in a call.
    owed: Gil<Option<u64>>,
    policy: Gil<WaitPolicy>,
    /// Looks before a receive gives the interpreter lock up: 1 where waiting does not begin with looking.
    looks: Gil<u32>,
    /// The descriptor, once somebody has it.
    polled: Gil<Option<RawFd>>,
    /// Whether the sender was told of the close.
    said: Gil<bool>,
    /// The task that waits for a message.
    pub(crate) waits: Waits,
    pub(crate) writable_views: bool,
}

impl Owner for Receiver {
    type End = ramway::Receiver;

    fn handle(&self) -> &Handle<ramway::Receiver> {
        &self.core
    }

    #[cold]
    fn left(&self) {
        self.finish();
    }
}

impl Receiver {
    pub(crate) fn wrap(mut core: ramway::Receiver, name: Option<String>, policy: WaitPolicy, writable: bool) -> Self {
        core.set_interruptible(true);
        let looks = if core.raw().polls() { LOOKS } else { 1 };
        let waker = core.waker();
        Self {
            core: Handle::new(core, waker, "receiver", name),
            lent: Gil::default(),
            owed: Gil::default(),
            policy: Gil::new(policy),
            looks: Gil::new(looks),
            polled: Gil::default(),
            said: Gil::default(),
            waits: Waits::default(),
            writable_views: writable,
        }
    }

    /// wait_for_peer that does not wait: None if there is no peer.
    pub(crate) fn peer(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let found = self.enter(py)?.raw().wait_for_peer(WaitLimit::None);
        found.map(Some).or_else(|e| if e.kind() == ErrorKind::Empty { Ok(None) } else { Err(raise(py, e)) })
    }

    #[inline]
    fn message(slf: &Bound<'_, Self>, (frame, number): (Frame, u64)) -> PyResult<Py<Message>> {
        Message::make(slf, frame, number)
    }
}

#[pymethods]
impl Receiver {
    /// The next message, also while others are held, which keep their places in the ring; waits up to `timeout` seconds for
    /// it, without one as long as it takes.
    ///
    /// Raises TimedOutError, ClosedError after the last message of a sender that closed, PeerDeadError of one that
    /// died, BusyError if messages that are still held fill the ring.
    #[pyo3(signature = (timeout = Timeout::FOREVER), text_signature = "($self, timeout=None)")]
    pub(crate) fn recv(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<Py<Message>> {
        let fetched = slf.get().fetch(slf.py(), timeout)?;
        Self::message(slf, fetched)
    }

    /// The next message, or None if there is none now. Raises ClosedError, PeerDeadError.
    pub(crate) fn try_recv(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Message>>> {
        slf.get().try_fetch(slf.py())?.map(|fetched| Self::message(slf, fetched)).transpose()
    }

    /// A list of up to `max` messages: waits for the first one, takes what is there then.
    #[pyo3(signature = (max = 1024, timeout = Timeout::FOREVER), text_signature = "($self, max=1024, timeout=None)")]
    pub(crate) fn recv_batch<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
        timeout: Timeout,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, this) = (slf.py(), slf.get());
        at_least_one(py, max)?;
        let list = PyList::empty(py);
        let mut fetched = this.fetch(py, timeout)?;
        let first = fetched.1;
        loop {
            list.append(Self::message(slf, fetched)?)?;
            this.lent.with(|lent| lent.batch_since(first));
            if list.len() == max {
                return Ok(list);
            }
            let mut core = this.enter(py)?;
            // An error of the ring ends the batch too, and stays for the next receive.
            let Ok(Some(frame)) = core.raw().look(1) else { return Ok(list) };
            fetched = this.lend(&mut core, frame);
        }
    }

    /// recv_batch that does not wait: an empty list if there is no message now.
    #[pyo3(signature = (max = 1024))]
    pub(crate) fn try_recv_batch<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, this) = (slf.py(), slf.get());
        at_least_one(py, max)?;
        if this.try_fetch(py)?.is_none() {
            return Ok(PyList::empty(py));
        }
        this.put_back(py)?;
        Self::recv_batch(slf, max, Timeout::NOW)
    }

    /// The next message's bytes, copied. The message is given back at once.
    #[pyo3(signature = (timeout = Timeout::FOREVER), text_signature = "($self, timeout=None)")]
    pub(crate) fn recv_bytes<'py>(&self, py: Python<'py>, timeout: Timeout) -> PyResult<Bound<'py, PyBytes>> {
        let (frame, number) = self.fetch(py, timeout)?;
        // SAFETY: the frame is readable until it is given back, below.
        match unsafe { copy_of(py, &frame) } {
            Ok(bytes) => {
                self.give_back(number);
                Ok(bytes)
            }
            Err(e) => {
                self.put_back(py)?;
                Err(e)
            }
        }
    }

    /// Copies the next message to the start of a writable buffer; gives its length in bytes.
    ///
    /// Every byte is read once: the way to receive from a peer that may go on writing. A message that is longer than the
    /// buffer raises TooLargeError, and stays for the next receive.
    #[pyo3(signature = (buffer, timeout = Timeout::FOREVER), text_signature = "($self, buffer, timeout=None)")]
    pub(crate) fn recv_into(&self, buffer: &Bound<'_, PyAny>, timeout: Timeout) -> PyResult<usize> {
        let py = buffer.py();
        let target = Bytes::writable(buffer)?;
        let (frame, number) = self.fetch(py, timeout)?;
        if frame.len > target.len() {
            self.put_back(py)?;
            let text = format!("a message of {} bytes does not fit into a buffer of {}", frame.len, target.len());
            return Err(error(py, ErrorKind::TooLarge, text));
        }
        // The frame is readable until it is given back, below; the buffer is writable and long enough.
        copy_bytes(py, frame.data, target.as_mut_ptr(), frame.len);
        self.give_back(number);
        Ok(frame.len)
    }

    /// recv_into that does not wait: None if there is no message now.
    pub(crate) fn try_recv_into(&self, buffer: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let py = buffer.py();
        if self.try_fetch(py)?.is_none() {
            return Ok(None);
        }
        self.put_back(py)?;
        self.recv_into(buffer, Timeout::NOW).map(Some)
    }

    /// Tells the sender that nothing more will be read (it gets ClosedError where it would wait), and gives the role up
    /// when the last message and view of this receiver has gone. What was not given back stays in a named ring for the
    /// next receiver. Calls after this raise DetachedError, and so does one of another thread that waits meanwhile;
    /// closing again does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.shut() {
            self.waits.close(py);
            self.finish();
        }
        Ok(())
    }

    /// A descriptor for event loops (select, epoll) that stays readable until a try_recv gives None: when it is readable,
    /// call try_recv until it does. recv would block after the last message.
    ///
    /// It becomes readable when try_recv would give a message, or raise because the sender is gone. Made at the first
    /// call; it belongs to the receiver: do not read from it, do not close it.
    pub(crate) fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        // Also after the end of the stream: who looks for it wants to leave its loop.
        if let Some(fd) = self.polled.get().filter(|_| self.core.is_ours()) {
            return Ok(fd);
        }
        let fd = self.enter(py)?.readiness().or_raise(py)?.as_raw_fd();
        self.polled.set(Some(fd));
        Ok(fd)
    }

    /// Waits up to `timeout` seconds, without one as long as it takes, until a sender is attached that has not closed and
    /// whose process lives; gives its epoch, which is peer_epoch. At once if there is one already. After PeerDeadError or
    /// ClosedError on a named ring this waits for the successor.
    ///
    /// Raises TimedOutError; ClosedError if the ring's name was removed, so that nobody can come; on a bus and a pair
    /// ClosedError or PeerDeadError if the sender is gone, because no other one comes.
    #[pyo3(signature = (timeout = Timeout::FOREVER), text_signature = "($self, timeout=None)")]
    fn wait_for_peer(&self, py: Python<'_>, timeout: Timeout) -> PyResult<u32> {
        let mut core = self.enter(py)?;
        let attempt = |wait_limit| core.raw().wait_for_peer(wait_limit);
        waiting::wait(py, timeout, POLL_INTERVAL, attempt, |py| self.core.check_open(py))
            .map_err(|e| self.core.missing(py, e, "no living sender"))
    }

    /// Whether close was called.
    #[getter]
    pub(crate) fn closed(&self) -> bool {
        self.core.is_shut()
    }

    /// The ring's name; None on a bus or a pair.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.core.name()
    }

    /// Bytes of the data area.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.capacity())
    }

    /// Every payload begins on a multiple of this many bytes.
    #[getter]
    fn align(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.align())
    }

    /// The longest message that the sender can send, in bytes.
    #[getter]
    fn max_message_len(&self, py: Python<'_>) -> PyResult<usize> {
        let room = self.enter(py)?.capacity() - ramway::layout::FRAME_HEADER as usize;
        Ok(room.min(ramway::layout::MESSAGE_MAX as usize))
    }

    /// Bytes of the ring, frame headers included, that are sent and not given back. Can be stale.
    #[getter]
    fn used(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.len())
    }

    /// Bytes of the ring that messages still held here keep.
    #[getter]
    fn lent(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.enter(py)?.raw().lent())
    }

    /// Whether a sender is attached and its process lives.
    #[getter]
    pub(crate) fn peer_alive(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.is_peer_alive())
    }

    /// How often a sender has attached; 0 = never yet.
    #[getter]
    fn peer_epoch(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.enter(py)?.peer_epoch())
    }

    /// How often a receiver has attached, this one included.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.enter(py)?.epoch())
    }

    /// How blocking calls wait: 'spin', 'hybrid' or 'block'. May be set.
    #[getter]
    fn get_wait(&self) -> &'static str {
        Policy(self.policy.get()).name()
    }

    #[setter]
    fn set_wait(&self, py: Python<'_>, policy: Policy) -> PyResult<()> {
        let mut core = self.enter(py)?;
        core.set_wait_policy(policy.0);
        self.policy.set(policy.0);
        self.looks.set(if core.raw().polls() { LOOKS } else { 1 });
        Ok(())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::messages(slf)
    }

    #[pyo3(name = "__next__")]
    pub(crate) fn next(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Message>>> {
        match slf.get().fetch(slf.py(), Timeout::FOREVER) {
            Ok(fetched) => Self::message(slf, fetched).map(Some),
            Err(e) if crate::errors::is(slf.py(), &e, ErrorKind::Closed) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Receiver cannot be pickled: pass its name (or a Ring) and open it there"))
    }

    fn __repr__(&self) -> String {
        let closed = if self.core.is_shut() { ", closed" } else { "" };
        format!("<ramway.Receiver {:?}{closed}>", self.core.name().unwrap_or(""))
    }
}
