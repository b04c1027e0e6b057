use crate::args::{Bytes, Policy, Timeout};
use crate::dlpack::copy_bytes;
use crate::errors::{self, OrRaise, error, raise};
use crate::handle::{Gil, Handle, Owner, Using};
use crate::slot::{Slot, SlotState};
use crate::waiting::{self, POLL_INTERVAL, poll_interval, wait};
use crate::watch::Waits;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ramway::layout::TYPE_ID_RESERVED;
use ramway::ring::raw::WaitLimit;
use ramway::ring::window::Window;
use ramway::{ErrorKind, WaitPolicy};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// The sending end of a ring. One per ring, in the whole system.
///
/// A message is visible to the receiver as soon as send returns, and is delivered even if this process is killed right
/// after. One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C.
#[pyclass(frozen, weakref, module = "ramway")]
pub(crate) struct Sender {
    pub(crate) core: Handle<ramway::Sender>,
    /// The slot that is open.
    slot: Gil<Option<Arc<SlotState>>>,
    /// The mapping that views of slots lead into, once one was asked for. Cut off with them, and then not used again.
    pub(crate) window: Gil<Option<Arc<Window>>>,
    pub(crate) policy: Gil<WaitPolicy>,
    /// The task that waits for room.
    pub(crate) waits: Waits,
    /// The descriptor, once somebody has it.
    polled: Gil<Option<RawFd>>,
    /// How it ends, once it is shut.
    ending: Gil<Ending>,
}

/// What the receiver is told.
#[derive(Clone, Copy, Default)]
enum Ending {
    /// That this was all.
    #[default]
    Close,
    /// Nothing, as if the process had been killed.
    Abandon,
}

impl Owner for Sender {
    type End = ramway::Sender;

    fn handle(&self) -> &Handle<ramway::Sender> {
        &self.core
    }

    #[cold]
    fn left(&self) {
        // Whoever closed has gone on: there is nobody to tell an error.
        Python::attach(|py| drop(self.finish(py)));
    }
}

impl Sender {
    pub(crate) fn wrap(mut core: ramway::Sender, name: Option<String>, policy: WaitPolicy) -> Self {
        core.set_interruptible(true);
        let waker = core.waker();
        Self {
            core: Handle::new(core, waker, "sender", name),
            slot: Gil::default(),
            window: Gil::default(),
            policy: Gil::new(policy),
            waits: Waits::default(),
            polled: Gil::default(),
            ending: Gil::default(),
        }
    }

    /// The end, with no slot open: what begins a message of its own.
    #[inline]
    pub(crate) fn begin(&self, py: Python<'_>, type_id: u32) -> PyResult<Using<'_, Self>> {
        check_type_id(py, type_id)?;
        let core = self.enter(py)?;
        if self.slot.with(|slot| slot.is_some()) {
            return Err(slot_open(py));
        }
        Ok(core)
    }

    /// The end, whether a slot is open or not.
    #[inline]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Using<'_, Self>> {
        Using::of(self, py)
    }

    /// Room for `len` bytes within the time; without one, FullError.
    #[inline]
    pub(crate) fn room(
        &self,
        py: Python<'_>,
        core: &mut ramway::Sender,
        len: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<*mut u8> {
        match core.raw().reserve(len, WaitLimit::None) {
            Ok(to) => Ok(to),
            Err(e) if e.kind() == ErrorKind::Full => match timeout {
                None => Err(raise(py, e)),
                Some(timeout) => self.wait(py, core, len, timeout),
            },
            Err(e) => Err(raise(py, e)),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, py: Python<'_>, core: &mut ramway::Sender, len: usize, timeout: Timeout) -> PyResult<*mut u8> {
        let attempt = |wait_limit| core.raw().reserve(len, wait_limit).map(|to| to.expose_provenance());
        let between = |py: Python<'_>| self.core.check_open(py);
        wait(py, timeout, poll_interval(self.policy.get()), attempt, between)
            .map(std::ptr::with_exposed_provenance_mut)
            .map_err(|e| self.core.missing(py, e, "no room"))
    }

    /// Sends a copy of the bytes.
    #[inline]
    fn put(
        &self,
        py: Python<'_>,
        data: &[u8],
        type_id: u32,
        tag: u64,
        timeout: Option<Timeout>,
        flush: bool,
    ) -> PyResult<()> {
        let mut core = self.begin(py, type_id)?;
        let to = self.room(py, &mut core, data.len(), timeout)?;
        // Into what is reserved for this many bytes, and nobody else's.
        copy_bytes(py, data.as_ptr(), to, data.len());
        core.raw().commit(data.len(), type_id, tag, flush).or_raise(py)
    }

    #[inline]
    fn put_object(
        &self,
        data: &Bound<'_, PyAny>,
        type_id: u32,
        tag: u64,
        timeout: Option<Timeout>,
        flush: bool,
    ) -> PyResult<()> {
        // Bytes themselves need no view.
        if let Ok(bytes) = data.cast_exact::<PyBytes>() {
            return self.put(data.py(), bytes.as_bytes(), type_id, tag, timeout, flush);
        }
        self.put(data.py(), Bytes::of_message(data)?.as_slice(), type_id, tag, timeout, flush)
    }

    /// Sends a message gathered from the buffers of an iterable.
    fn put_pieces(&self, pieces: &Bound<'_, PyAny>, type_id: u32, tag: u64, timeout: Option<Timeout>) -> PyResult<()> {
        let py = pieces.py();
        let pieces = pieces.try_iter()?.map(|piece| Bytes::of_message(&piece?)).collect::<PyResult<Vec<Bytes>>>()?;
        let len = pieces.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.len()));
        let mut core = self.begin(py, type_id)?;
        let mut to = self.room(py, &mut core, len, timeout)?;
        for piece in &pieces {
            // Into what is reserved for all of them together.
            copy_bytes(py, piece.as_slice().as_ptr(), to, piece.len());
            to = to.wrapping_add(piece.len());
        }
        core.raw().commit(len, type_id, tag, true).or_raise(py)
    }

    /// An open slot of `len` bytes.
    pub(crate) fn open_slot(
        slf: &Bound<'_, Self>,
        len: usize,
        type_id: u32,
        tag: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Slot> {
        let (py, this) = (slf.py(), slf.get());
        let mut core = this.begin(py, type_id)?;
        let to = this.room(py, &mut core, len, timeout)?;
        if this.core.is_shut() {
            // Closed while it waited for the room.
            core.raw().abort();
            return Err(this.core.cannot(py));
        }
        let state = Arc::new(SlotState::new(to, len));
        this.slot.set(Some(state.clone()));
        Ok(Slot::new(slf.clone().unbind(), state, type_id, tag))
    }

    /// The mapping that views of slots lead into; none where the ring's memory cannot be mapped again.
    pub(crate) fn window(&self, py: Python<'_>) -> PyResult<Option<Arc<Window>>> {
        let known = self.window.with(|window| window.clone());
        if known.is_some() {
            return Ok(known);
        }
        let new = match self.enter(py)?.raw().window() {
            Ok(new) => Some(Arc::new(new)),
            Err(e) if e.kind() == ErrorKind::Unsupported => None,
            Err(e) => return Err(raise(py, e)),
        };
        self.window.set(new.clone());
        Ok(new)
    }

    /// The open slot is committed or aborted. The caller has seen to its views.
    pub(crate) fn slot_done(&self) {
        self.slot.set(None);
    }

    /// wait_for_peer that does not wait: None if there is no peer.
    pub(crate) fn peer(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let found = self.enter(py)?.raw().wait_for_peer(WaitLimit::None);
        found.map(Some).or_else(|e| if e.kind() == ErrorKind::Empty { Ok(None) } else { Err(raise(py, e)) })
    }

    fn shut(&self, py: Python<'_>, ending: Ending) -> PyResult<()> {
        // Views that cannot be cut off are refused before anything is changed. While another thread is in a call, that
        // one sees to the slot.
        if !self.core.is_shut()
            && !self.core.is_busy()
            && let Some(slot) = self.slot.with(|slot| slot.clone())
        {
            let _using = self.enter(py)?;
            slot.cut_off(py, self)?;
            self.slot.set(None);
        }
        if !self.core.shut() {
            return Ok(());
        }
        self.ending.set(ending);
        self.waits.close(py);
        self.finish(py)
    }

    /// Releases the end of a handle that is shut, once nobody uses it.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.is_busy() {
            return Ok(());
        }
        if let Some(slot) = self.slot.with(|slot| slot.clone()) {
            // Entered, so that the slot's own end leaves the sender alone meanwhile.
            let Some(_entered) = self.core.try_enter() else { return Ok(()) };
            if slot.cut_off(py, self).is_err() {
                // Its views lead into the ring's own memory: the slot's end is the sender's.
                return Ok(());
            }
            self.slot.set(None);
        }
        let end = match self.ending.get() {
            Ending::Close => ramway::Sender::close,
            Ending::Abandon => |core: ramway::Sender| {
                core.abandon();
                Ok(())
            },
        };
        match self.core.take().map(end) {
            // Whoever closes has been told that the peer died, or was not going to ask. And a fork's child leaves its
            // parent's `with` blocks when it exits.
            Some(Err(e)) if !matches!(e.kind(), ErrorKind::PeerDead | ErrorKind::Detached) => Err(raise(py, e)),
            _ => Ok(()),
        }
    }
}

#[cold]
fn slot_open(py: Python<'_>) -> PyErr {
    error(py, ErrorKind::Busy, "a slot of this sender is open: commit it or abort it first")
}

#[inline]
pub(crate) fn check_type_id(py: Python<'_>, type_id: u32) -> PyResult<()> {
    if type_id >= TYPE_ID_RESERVED { Err(reserved(py, type_id)) } else { Ok(()) }
}

#[cold]
fn reserved(py: Python<'_>, type_id: u32) -> PyErr {
    let text = format!("type_id={type_id:#x} is Ramway's own: applications use ids below {TYPE_ID_RESERVED:#x}");
    error(py, ErrorKind::InvalidArgument, text)
}

#[pymethods]
impl Sender {
    /// Sends a copy of anything with the buffer protocol (bytes, bytearray, a C-contiguous array, ...), waiting for room
    /// up to `timeout` seconds, without one as long as it takes.
    ///
    /// Raises TimedOutError, TooLargeError (longer than max_message_len), ClosedError or PeerDeadError if there is no
    /// room and nobody left to make any (on a bus: as soon as the peer closed). After an error nothing was sent.
    #[pyo3(signature = (data, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, data, type_id=0, tag=0, *, timeout=None)")]
    pub(crate) fn send(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<()> {
        self.put_object(data, type_id, tag, Some(timeout), true)
    }

    /// send that does not wait: FullError if there is no room now.
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    pub(crate) fn try_send(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        self.put_object(data, type_id, tag, None, true)
    }

    /// Sends one message that is gathered from several buffers, one after another. Waits and raises as send does.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, pieces, type_id=0, tag=0, *, timeout=None)")]
    pub(crate) fn send_vectored(
        &self,
        pieces: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<()> {
        self.put_pieces(pieces, type_id, tag, Some(timeout))
    }

    /// send_vectored that does not wait: FullError if there is no room now.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0))]
    pub(crate) fn try_send_vectored(
        &self,
        pieces: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        self.put_pieces(pieces, type_id, tag, None)
    }

    /// Sends many messages, all with this type and tag, and publishes them together, or earlier when the ring fills up:
    /// then it waits for room, for all of them together up to `timeout` seconds. Gives how many were sent.
    ///
    /// An error of Ramway's, TimedOutError too, is raised if it meets the first message. A later one ends the batch with
    /// the number sent so far, and the next call meets it. What the iterable raises, and TypeError for what is no
    /// buffer, is raised in any case; the messages before it were sent.
    #[pyo3(signature = (messages, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, messages, type_id=0, tag=0, *, timeout=None)")]
    pub(crate) fn send_batch(
        &self,
        messages: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<usize> {
        let py = messages.py();
        let mut sent = 0;
        let left = timeout.counting();
        let outcome = (|| {
            for message in messages.try_iter()? {
                self.put_object(&message?, type_id, tag, Some(left()), false)?;
                sent += 1;
            }
            Ok(())
        })();
        let flushed = self.flush(py);
        match outcome.and(flushed) {
            Err(e) if sent == 0 || !errors::is_ours(py, &e) => Err(e),
            _ => Ok(sent),
        }
    }

    /// try_send that leaves the message to the next flush: for `ramway._aio`.
    fn _try_put(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        self.put_object(data, type_id, tag, None, false)
    }

    /// A slot of `n` bytes to be written in place:
    ///
    ///     with tx.reserve(n) as slot:
    ///         slot[:5] = b"hello"
    ///         slot.commit(5)
    ///
    /// Without a commit the end of the block commits all `n` bytes; an exception inside aborts. One slot at a time
    /// (BusyError). Waits and raises as send does.
    #[pyo3(signature = (n, type_id = 0, tag = 0, *, timeout = Timeout::FOREVER),
           text_signature = "($self, n, type_id=0, tag=0, *, timeout=None)")]
    pub(crate) fn reserve(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Timeout,
    ) -> PyResult<Slot> {
        Self::open_slot(slf, n, type_id, tag, Some(timeout))
    }

    /// reserve that does not wait: FullError if there is no room now.
    #[pyo3(signature = (n, type_id = 0, tag = 0))]
    pub(crate) fn try_reserve(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Slot> {
        Self::open_slot(slf, n, type_id, tag, None)
    }

    /// Makes every slot that was committed with flush=False visible. Never waits.
    pub(crate) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.enter(py)?.flush().or_raise(py)
    }

    /// Tells the receiver that this was all, and gives the role up; an open slot is aborted. Calls after this raise
    /// DetachedError, and so does one of another thread that waits for room meanwhile; closing again does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shut(py, Ending::Close)
    }

    /// Gives the role up without telling the receiver that this was all: it gets PeerDeadError after the last message,
    /// as if this process had been killed.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.shut(py, Ending::Abandon)
    }

    /// A descriptor for event loops: after a FullError of try_send it becomes readable when try_send has something else
    /// to say. It stays readable until a try_send raises FullError again, so try_send in a loop until then. Made at the
    /// first call; it belongs to the sender: do not read from it, do not close it.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        // As the receiver's.
        if let Some(fd) = self.polled.get().filter(|_| self.core.is_ours()) {
            return Ok(fd);
        }
        let fd = self.enter(py)?.readiness().or_raise(py)?.as_raw_fd();
        self.polled.set(Some(fd));
        Ok(fd)
    }

    /// Waits up to `timeout` seconds, without one as long as it takes, until a receiver is attached that has not closed
    /// and whose process lives; gives its epoch, which is peer_epoch. At once if there is one already.
    ///
    /// Raises TimedOutError; ClosedError if the ring's name was removed, so that nobody can come; on a bus and a pair
    /// ClosedError or PeerDeadError if the receiver is gone, because no other one comes.
    #[pyo3(signature = (timeout = Timeout::FOREVER), text_signature = "($self, timeout=None)")]
    fn wait_for_peer(&self, py: Python<'_>, timeout: Timeout) -> PyResult<u32> {
        let mut core = self.enter(py)?;
        let attempt = |wait_limit| core.raw().wait_for_peer(wait_limit);
        waiting::wait(py, timeout, POLL_INTERVAL, attempt, |py| self.core.check_open(py))
            .map_err(|e| self.core.missing(py, e, "no living receiver"))
    }

    /// Whether close or abandon was called.
    #[getter]
    pub(crate) fn closed(&self) -> bool {
        self.core.is_shut()
    }

    /// The ring's name; None on a bus or a pair.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.core.name()
    }

    /// Bytes of the data area; a message takes 16 bytes more than its payload, rounded up to align.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.capacity())
    }

    /// Every payload begins on a multiple of this many bytes.
    #[getter]
    fn align(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.align())
    }

    /// The longest message that ever fits, in bytes.
    #[getter]
    fn max_message_len(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.max_message_len())
    }

    /// Bytes of the ring, frame headers included, that the receiver has not given back. Can be stale.
    #[getter]
    fn used(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.len())
    }

    /// Whether a receiver is attached and its process lives.
    #[getter]
    pub(crate) fn peer_alive(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.is_peer_alive())
    }

    /// How often a receiver has attached; 0 = never yet.
    #[getter]
    fn peer_epoch(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.enter(py)?.peer_epoch())
    }

    /// How often a sender has attached, this one included.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.enter(py)?.epoch())
    }

    /// The tag of the last message that was sent, by whichever sender of this ring; None before the first. A restarted
    /// producer asks this where to go on.
    #[getter]
    fn last_tag(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.enter(py)?.last_tag())
    }

    /// How blocking calls wait: 'spin', 'hybrid' or 'block'. May be set.
    #[getter]
    fn get_wait(&self) -> &'static str {
        Policy(self.policy.get()).name()
    }

    #[setter]
    fn set_wait(&self, py: Python<'_>, policy: Policy) -> PyResult<()> {
        self.enter(py)?.set_wait_policy(policy.0);
        self.policy.set(policy.0);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes, or after an exception abandons: what was sent is then not passed off as all that there is.
    #[pyo3(signature = (kind, _value = None, _traceback = None, /))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ending = if kind.is_none() { Ending::Close } else { Ending::Abandon };
        self.shut(kind.py(), ending)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Sender cannot be pickled: pass its name (or a Ring) and open it there"))
    }

    fn __repr__(&self) -> String {
        let closed = if self.core.is_shut() { ", closed" } else { "" };
        format!("<ramway.Sender {:?}{closed}>", self.core.name().unwrap_or(""))
    }
}
