//! `ramway.Sender`: what is sent, how it waits for room, and how the end is given up.

use crate::args::{Bytes, Timeout, calls};
use crate::endpoint::{Endpoint, Gil, Owner, SenderEnd, Using};
use crate::errors::{self, OrRaise, error, raise};
use crate::ring::slot::{Slot, SlotState};
use crate::tensor::dlpack::copy_bytes;
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::room;
use crate::waiting::{poll_interval, wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ramway::layout::TYPE_ID_RESERVED;
use ramway::ring::raw::WaitLimit;
use ramway::ring::window::Window;
use ramway::{ErrorKind, WaitPolicy};
use std::sync::Arc;

/// The sending end of a ring. One per ring, in the whole system.
///
/// A message is visible to the receiver as soon as send returns, and is delivered even if this process is killed right
/// after. One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C.
#[pyclass(frozen, subclass, weakref, module = "ramway")]
pub(crate) struct Sender {
    pub(crate) endpoint: Endpoint<SenderEnd>,
    /// The slot that is open.
    slot: Gil<Option<Arc<SlotState>>>,
    /// The mapping that views of slots lead into, once one was asked for. Cut off with them, and then not used again.
    pub(crate) window: Gil<Option<Arc<Window>>>,
    /// How it ends, once it is shut.
    ending: Gil<Ending>,
}

/// What the receiver learns.
#[derive(Clone, Copy, Default)]
enum Ending {
    /// That this was all.
    #[default]
    Close,
    /// Nothing, as if the process had been killed.
    Abandon,
}

impl Owner for Sender {
    type End = SenderEnd;

    fn endpoint(&self) -> &Endpoint<SenderEnd> {
        &self.endpoint
    }

    #[cold]
    fn left(&self) {
        // The call that closed has returned: an error has nobody to reach.
        Python::attach(|py| drop(self.finish(py)));
    }
}

impl Sender {
    pub(crate) fn wrap(core: SenderEnd, name: Option<String>, policy: WaitPolicy) -> Self {
        Self {
            endpoint: Endpoint::new(core, name, policy),
            slot: Gil::default(),
            window: Gil::default(),
            ending: Gil::default(),
        }
    }

    /// The end, with no slot open: what begins a message of its own.
    #[inline]
    pub(crate) fn begin(&self, py: Python<'_>, type_id: u32) -> PyResult<Using<'_, Self>> {
        check_type_id(py, type_id)?;
        let mut core = self.enter(py)?;
        if self.slot.with(|slot| slot.is_some()) {
            self.drop_left_behind(py, &mut core)?;
        }
        Ok(core)
    }

    /// Ends a slot whose object has gone while a thread was in a call. BusyError if there still is one.
    #[cold]
    fn drop_left_behind(&self, py: Python<'_>, core: &mut SenderEnd) -> PyResult<()> {
        let Some(slot) = self.slot.with(|slot| slot.clone()) else { return Ok(()) };
        if !slot.left_behind.get() {
            return Err(slot_open(py));
        }
        // It has no views, and nobody can begin one.
        slot.cut_off(py, self)?;
        self.slot_done();
        core.abort();
        Ok(())
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
        core: &mut SenderEnd,
        len: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<*mut u8> {
        match core.reserve(len, WaitLimit::None) {
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
    fn wait(&self, py: Python<'_>, core: &mut SenderEnd, len: usize, timeout: Timeout) -> PyResult<*mut u8> {
        let attempt = |wait_limit| core.reserve(len, wait_limit).map(|to| to.expose_provenance());
        self.wait_by(py, timeout, attempt).map(std::ptr::with_exposed_provenance_mut)
    }

    /// Waits for room by `attempt`.
    pub(crate) fn wait_by<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Timeout,
        attempt: impl FnMut(WaitLimit) -> ramway::Result<T> + Send,
    ) -> PyResult<T> {
        let endpoint = &self.endpoint;
        wait(py, timeout, poll_interval(endpoint.policy.get()), attempt, |py| endpoint.check_open(py))
            .map_err(|e| endpoint.missing(py, e, "no room"))
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
        core.commit(data.len(), type_id, tag, flush).or_raise(py)
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
        core.commit(len, type_id, tag, true).or_raise(py)
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
        if this.endpoint.is_shut() {
            // Closed while it waited for the room.
            core.abort();
            return Err(this.endpoint.refusal(py));
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
        let new = match self.enter(py)?.window() {
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

    fn shut(&self, py: Python<'_>, ending: Ending) -> PyResult<()> {
        // Views that cannot be cut off are refused before anything is changed. While another thread is in a call, that
        // one sees to the slot.
        if !self.endpoint.is_shut()
            && !self.endpoint.is_busy()
            && let Some(slot) = self.slot.with(|slot| slot.clone())
            && let Some(_using) = Using::try_of(self)
        {
            slot.cut_off(py, self)?;
            self.slot.set(None);
        }
        if self.endpoint.is_shut() {
            return Ok(());
        }
        self.ending.set(ending);
        self.endpoint.shut(py);
        self.finish(py)
    }

    /// Releases the end of a handle that is shut, once nobody uses it.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if self.endpoint.is_busy() {
            return Ok(());
        }
        if let Some(slot) = self.slot.with(|slot| slot.clone()) {
            // Entered, so that the slot's own end leaves the sender alone meanwhile.
            let Some(_entered) = self.endpoint.try_enter() else { return Ok(()) };
            if slot.cut_off(py, self).is_err() {
                // Its views lead into the ring's own memory: the slot's end is the sender's.
                return Ok(());
            }
            self.slot.set(None);
        }
        let end = match self.ending.get() {
            Ending::Close => SenderEnd::close,
            Ending::Abandon => |core: SenderEnd| {
                core.abandon();
                Ok(())
            },
        };
        match self.endpoint.take().map(end) {
            // A caller that closes was told that the peer died, or does not ask. And a fork's child leaves its parent's
            // `with` blocks when it exits.
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

calls! {
    [Sender] as slf:

    /// Sends a copy of anything with the buffer protocol (bytes, bytearray, a C-contiguous array, ...), waiting for room
    /// up to `timeout` seconds, without one as long as it takes.
    ///
    /// Raises TimedOutError, TooLargeError (longer than max_message_len), ClosedError or PeerDeadError if there is no
    /// room and nobody left to make any (on a bus: as soon as the peer closed). After an error nothing was sent.
    send(data: any, type_id: u32 = 0, tag: u64 = 0, * timeout) -> () {
        slf.get().put_object(data, type_id, tag, Some(timeout), true)
    }

    /// send that does not wait: FullError if there is no room now.
    try_send(data: any, type_id: u32 = 0, tag: u64 = 0) -> () {
        slf.get().put_object(data, type_id, tag, None, true)
    }

    /// send for asyncio: an awaitable that is done once `data` is sent, which happens when that is awaited. One task at
    /// a time may wait for room (BusyError).
    send_async(data: any, type_id: u32 = 0, tag: u64 = 0) -> Wait {
        room(slf, "try_send", (data, type_id, tag))
    }

    /// Sends one message that is gathered from several buffers, one after another. Waits and raises as send does.
    send_vectored(pieces: any, type_id: u32 = 0, tag: u64 = 0, * timeout) -> () {
        slf.get().put_pieces(pieces, type_id, tag, Some(timeout))
    }

    /// send_vectored that does not wait: FullError if there is no room now.
    try_send_vectored(pieces: any, type_id: u32 = 0, tag: u64 = 0) -> () {
        slf.get().put_pieces(pieces, type_id, tag, None)
    }

    /// send_vectored for asyncio: an awaitable that is done once the message is sent.
    send_vectored_async(pieces: any, type_id: u32 = 0, tag: u64 = 0) -> Wait {
        // It may be tried several times.
        let pieces = pieces.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        room(slf, "try_send_vectored", (pieces, type_id, tag))
    }

    /// Sends many messages, all with this type and tag, and publishes them together, or earlier when the ring fills up:
    /// then it waits for room, for all of them together up to `timeout` seconds. Gives how many were sent.
    ///
    /// An error of Ramway's, TimedOutError too, is raised if it meets the first message. A later one ends the batch with
    /// the number sent so far, and the next call meets it. What the iterable raises, and TypeError for what is no
    /// buffer, is raised in any case; the messages before it were sent.
    send_batch(messages: any, type_id: u32 = 0, tag: u64 = 0, * timeout) -> usize {
        let (py, this) = (slf.py(), slf.get());
        let mut sent = 0;
        let left = timeout.counting();
        let outcome = (|| {
            for message in messages.try_iter()? {
                this.put_object(&message?, type_id, tag, Some(left()), false)?;
                sent += 1;
            }
            Ok(())
        })();
        match outcome.and(Self::flush(slf)) {
            Err(e) if sent == 0 || !errors::is_ours(py, &e) => Err(e),
            _ => Ok(sent),
        }
    }

    /// send_batch for asyncio: a coroutine that gives how many were sent. One that is cancelled has sent those before.
    send_batch_async(messages: any, type_id: u32 = 0, tag: u64 = 0) -> Bound<'py, PyAny> {
        slf.py().import("ramway._aio")?.getattr("send_batch")?.call1((slf, messages, type_id, tag))
    }

    /// A slot of `n` bytes to be written in place:
    ///
    ///     with tx.reserve(n) as slot:
    ///         slot[:5] = b"hello"
    ///         slot.commit(5)
    ///
    /// Without a commit the end of the block commits all `n` bytes; an exception inside aborts. One slot at a time
    /// (BusyError). Waits and raises as send does.
    reserve(n: usize, type_id: u32 = 0, tag: u64 = 0, * timeout) -> Slot {
        Self::open_slot(slf, n, type_id, tag, Some(timeout))
    }

    /// reserve that does not wait: FullError if there is no room now.
    try_reserve(n: usize, type_id: u32 = 0, tag: u64 = 0) -> Slot {
        Self::open_slot(slf, n, type_id, tag, None)
    }

    /// reserve for asyncio: an awaitable of the slot.
    reserve_async(n: usize, type_id: u32 = 0, tag: u64 = 0) -> Wait {
        room(slf, "try_reserve", (n, type_id, tag))
    }

    /// Makes every slot that was committed with flush=False visible. Never waits.
    flush() -> () {
        slf.get().enter(slf.py())?.flush().or_raise(slf.py())
    }
}

calls! {
    Sender as slf:

    /// try_send that leaves the message to the next flush: for `ramway._aio`.
    _try_put(data: any, type_id: u32, tag: u64) -> () {
        slf.get().put_object(data, type_id, tag, None, false)
    }
}

#[pymethods]
impl Sender {
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

    /// The tag of the last message that was sent, by any sender of this ring; None before the first. A restarted
    /// producer asks this where to go on.
    #[getter]
    fn last_tag(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.enter(py)?.last_tag())
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
}
