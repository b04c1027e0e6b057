use super::producer::{NO_SLOT, Producer};
use super::{Slot, announce, announce_close, fail};
use crate::endpoint::end;
use crate::layout::{ROLE_CLOSED, TYPE_ID_RESERVED, frame_size};
use crate::segment::{Attachment, Link, Role};
use crate::sync::Ordering;
use crate::sys::{fork, membarrier};
use crate::wait::{Deadline, WaitLimit, WaitPolicy, Waiting};
use crate::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::io::IoSlice;
use std::time::Duration;

/// The sending end of a ring. One per ring, in the whole system; may move between threads, not be shared by them.
///
/// A message is visible to the receiver as soon as `send` or [`Slot::commit`] returns, and is delivered even if this
/// process is killed right after. No call allocates or enters the kernel unless it waits or wakes somebody who does.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
/// tx.send(7, b"hello")?;
/// let message = rx.recv()?;
/// assert_eq!((&*message, message.type_id()), (&b"hello"[..], 7));
/// # Ok(()) }
/// ```
pub struct Sender {
    /// Boxed: the fork registry and C's inline functions keep its address.
    pub(super) inner: Box<Inner>,
    /// Drop without saying "closed".
    abandoned: bool,
    /// Made while its thread was unwinding: what it is dropped in says nothing about it.
    made_unwinding: bool,
}

pub(crate) struct Inner {
    pub(crate) hot: Producer,
    pub(crate) waiting: Waiting,
    epoch: u32,
    /// The last epoch of the receiver that was found closed or dead, or 0. A successor takes the role's lock first and raises the
    /// epoch after that: between the two it must not pass for the one that is gone.
    pub(super) gone: Cell<u32>,
    /// Unregisters `hot.state`; so it goes before the box does.
    _watch: Option<fork::Watch>,
    /// Last: its locks tell the peer that everything above is done.
    pub(crate) attachment: Attachment,
}

// SAFETY: the raw pointers lead into mappings that `attachment` owns and that have no thread affinity; every method
// that touches private state takes `&mut self`.
unsafe impl Send for Sender {}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .field("epoch", &self.epoch())
            .field("peer_epoch", &self.peer_epoch())
            .finish_non_exhaustive()
    }
}

impl Sender {
    /// Takes the producer's role of an attachment whose role lock this process holds.
    pub(crate) fn attach(attachment: Attachment, policy: WaitPolicy, use_membarrier: bool) -> Result<Self> {
        let membarrier_capable = use_membarrier && membarrier::is_available();
        // SAFETY: the attachment owns both mappings and is kept beside the producer; its geometry was validated, and
        // its role lock (or the handshake, or the caller of `attach_sender`) makes this the only producer.
        let hot = unsafe {
            Producer::new(
                attachment.block.as_ptr(),
                attachment.data.as_ptr(),
                attachment.capacity,
                attachment.align,
                attachment.link.endings_are_final(),
                membarrier_capable,
            )
        }
        .map_err(fail)?;
        let mut inner = Box::new(Inner {
            hot,
            waiting: Waiting::new(policy, membarrier_capable),
            epoch: 0,
            gone: Cell::new(0),
            _watch: None,
            attachment,
        });
        // SAFETY: `hot.state` lives in the box, which outlives the watch beside it.
        inner._watch = Some(unsafe { inner.attachment.fork.watch(&inner.hot.state) });
        inner.epoch = announce(inner.hot.mine(), inner.hot.peer(), membarrier_capable);
        inner.hot.peer_changed();
        Ok(Self { inner, abandoned: false, made_unwinding: std::thread::panicking() })
    }

    /// Sends a message, waiting for room as long as it takes.
    ///
    /// `type_id` is the application's, below `0xFFFF_0000`. What was committed unflushed goes first.
    ///
    /// # Errors
    /// `TooLarge` if it is longer than [`max_message_len`](Self::max_message_len), `InvalidArgument` for a reserved
    /// `type_id`, `Closed` or `PeerDead` if there is no room and nobody left to make any (on a bus: as soon as the
    /// peer closed), `Corrupt`, `Detached`. After an error nothing of this message was sent.
    #[inline(always)]
    pub fn send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.send_tagged(type_id, 0, payload)
    }

    /// [`send`](Self::send) with a tag: a correlation id, a time stamp, a key. [`last_tag`](Self::last_tag) gives the
    /// last one back after a restart.
    #[inline(always)]
    pub fn send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.put(type_id, tag, payload, WaitLimit::Forever)
    }

    /// [`send`](Self::send) that does not wait: `Full` if there is no room now.
    #[inline(always)]
    pub fn try_send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.put(type_id, 0, payload, WaitLimit::None)
    }

    /// [`try_send`](Self::try_send) with a tag.
    #[inline(always)]
    pub fn try_send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.put(type_id, tag, payload, WaitLimit::None)
    }

    /// [`send`](Self::send) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn send_timeout(&mut self, type_id: u32, payload: &[u8], timeout: Duration) -> Result<()> {
        self.put(type_id, 0, payload, WaitLimit::For(timeout))
    }

    /// [`send_tagged`](Self::send_tagged) of one message gathered from several pieces.
    pub fn send_vectored(&mut self, type_id: u32, tag: u64, pieces: &[IoSlice<'_>]) -> Result<()> {
        user_type_id(type_id)?;
        let total = pieces.iter().try_fold(0usize, |sum, p| sum.checked_add(p.len())).unwrap_or(usize::MAX);
        let first = self.reserve_raw(total, WaitLimit::Forever)?;
        let mut to = first;
        for piece in pieces {
            // SAFETY: `to` walks through the `total` reserved bytes, which no one else reads or writes before commit.
            unsafe {
                to.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
                to = to.add(piece.len());
            }
        }
        // SAFETY: `first` is what was reserved, for `total` bytes.
        unsafe { self.commit_raw(first, total, type_id, tag, true) }
    }

    /// Sends many messages and publishes them together, or earlier when the ring fills up: then it waits for room.
    /// Gives how many were sent.
    ///
    /// # Errors
    /// As for [`send`](Self::send), if the first message fails. A later failure ends the batch with the number sent
    /// so far, and the next call meets the error.
    pub fn send_batch<T: AsRef<[u8]>>(&mut self, type_id: u32, messages: impl IntoIterator<Item = T>) -> Result<usize> {
        self.send_batch_with(type_id, 0, messages, WaitLimit::Forever)
    }

    /// [`send_batch`](Self::send_batch) with a tag, the same for all.
    pub fn send_batch_tagged<T: AsRef<[u8]>>(
        &mut self,
        type_id: u32,
        tag: u64,
        messages: impl IntoIterator<Item = T>,
    ) -> Result<usize> {
        self.send_batch_with(type_id, tag, messages, WaitLimit::Forever)
    }

    /// [`send_batch_tagged`](Self::send_batch_tagged) that waits for at most `timeout`, all its messages together, and
    /// ends with the number sent by then; `TimedOut` if that is 0.
    pub fn send_batch_timeout<T: AsRef<[u8]>>(
        &mut self,
        type_id: u32,
        tag: u64,
        messages: impl IntoIterator<Item = T>,
        timeout: Duration,
    ) -> Result<usize> {
        self.send_batch_with(type_id, tag, messages, WaitLimit::For(timeout))
    }

    fn send_batch_with<T: AsRef<[u8]>>(
        &mut self,
        type_id: u32,
        tag: u64,
        messages: impl IntoIterator<Item = T>,
        wait_limit: WaitLimit,
    ) -> Result<usize> {
        user_type_id(type_id)?;
        // Read at the first wait; one message's wait takes from the next one's.
        let mut deadline = None;
        let mut sent = 0;
        for message in messages {
            let payload = message.as_ref();
            let one = self.inner.reserve_until(payload.len(), wait_limit, &mut deadline).and_then(|to| {
                // SAFETY: as in `put`.
                unsafe {
                    to.copy_from_nonoverlapping(payload.as_ptr(), payload.len());
                    self.commit_raw(to, payload.len(), type_id, tag, false)
                }
            });
            match one {
                Ok(()) => sent += 1,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.inner.hot.publish();
        Ok(sent)
    }

    /// Sends a plain value by its bytes. [`Message::as_pod`](crate::Message::as_pod) reads it without a copy.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// tx.send_pod(1, &[1.5f64, 2.5])?;
    /// assert_eq!(rx.recv()?.as_pod::<[f64; 2]>()?, &[1.5, 2.5]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn send_pod<T: bytemuck::NoUninit>(&mut self, type_id: u32, value: &T) -> Result<()> {
        self.send(type_id, bytemuck::bytes_of(value))
    }

    /// Reserves room for a message of up to `len` bytes to be written in place, waiting as long as it takes.
    /// Nothing is visible before the slot is committed; dropping it leaves nothing behind.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// let mut slot = tx.reserve(100)?.with_type_id(3).with_tag(42);
    /// slot[..2].copy_from_slice(b"ok");
    /// slot.commit(2)?;
    /// let message = rx.recv()?;
    /// assert_eq!((&*message, message.type_id(), message.tag()), (&b"ok"[..], 3, 42));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    #[inline(always)]
    pub fn reserve(&mut self, len: usize) -> Result<Slot<'_>> {
        self.slot(len, WaitLimit::Forever)
    }

    /// [`reserve`](Self::reserve) that does not wait: `Full` if there is no room now.
    #[inline(always)]
    pub fn try_reserve(&mut self, len: usize) -> Result<Slot<'_>> {
        self.slot(len, WaitLimit::None)
    }

    /// [`reserve`](Self::reserve) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn reserve_timeout(&mut self, len: usize, timeout: Duration) -> Result<Slot<'_>> {
        self.slot(len, WaitLimit::For(timeout))
    }

    /// Makes every [`commit_unflushed`](Slot::commit_unflushed) so far visible. Never waits.
    #[inline(always)]
    pub fn flush(&mut self) -> Result<()> {
        self.inner.check()?;
        self.inner.hot.publish();
        Ok(())
    }

    /// Bytes of the data area; a frame takes 16 bytes more than its payload, rounded up to [`align`](Self::align).
    pub fn capacity(&self) -> usize {
        self.inner.hot.capacity as usize
    }

    /// Every payload begins on a multiple of this many bytes.
    pub fn align(&self) -> usize {
        self.inner.hot.align as usize
    }

    /// The longest payload that ever fits: `min(capacity − 16, 2^31 − 17)`. It fits whenever the ring is empty.
    pub fn max_message_len(&self) -> usize {
        self.inner.hot.max_len as usize
    }

    /// Bytes, frame headers and padding included, that the receiver has not released, by a load of the shared
    /// position: can be stale when it returns. What is committed but not flushed counts.
    pub fn len(&self) -> usize {
        let hot = &self.inner.hot;
        // Relaxed: a snapshot; clamped because the peer could write anything.
        let head = self.block().head.head.load(Ordering::Relaxed);
        hot.tail.wrapping_sub(head).min(hot.capacity) as usize
    }

    /// Whether the receiver has released everything; can be stale.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a receiver is attached and its process lives (one system call). A stopped process is alive.
    pub fn is_peer_alive(&self) -> bool {
        if self.inner.attachment.fork.is_detached() {
            return false;
        }
        let peer = self.inner.hot.peer();
        // Acquire: pairs with attach and close.
        peer.epoch.load(Ordering::Acquire) != 0
            && peer.flags.load(Ordering::Acquire) & ROLE_CLOSED == 0
            && self.inner.attachment.link.peer_alive(Role::Producer)
    }

    /// How often a receiver has attached; 0 = never yet. A change means that a successor took over.
    pub fn peer_epoch(&self) -> u32 {
        self.inner.hot.peer().epoch.load(Ordering::Acquire)
    }

    /// The name that the ring was opened by, or the bus; `None` of a pair or a ring from a descriptor.
    pub fn name(&self) -> Option<&std::ffi::OsStr> {
        self.inner.attachment.origin.name()
    }

    /// How often a sender has attached, this one included; 1 = the first.
    pub fn epoch(&self) -> u32 {
        self.inner.epoch
    }

    /// The tag of the last message that is visible to receivers (0 if it was sent without one), by whichever sender of
    /// this ring; `None` before the first. A restarted producer asks this where to go on.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, _rx) = ramway::Ring::pair(4096)?;
    /// assert_eq!(tx.last_tag(), None);
    /// tx.send_tagged(0, 17, b"")?;
    /// assert_eq!(tx.last_tag(), Some(17));
    /// # Ok(()) }
    /// ```
    pub fn last_tag(&self) -> Option<u64> {
        self.inner.hot.last_tag()
    }

    /// How this handle waits for room from now on.
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.inner.waiting.policy = policy;
    }

    /// Whether a blocking call returns `Interrupted` after a signal handler ran (default: it goes on waiting). For
    /// runtimes that act on signals outside their handlers.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.inner.waiting.interruptible = yes;
    }

    /// A descriptor that becomes readable when [`try_send`](Self::try_send) has something else to say than the last
    /// `Full`: there is room, or the receiver is gone. Made at the first call; from then on the blocking calls wait by
    /// it too.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`](crate::Receiver::readiness).
    #[cfg(not(loom))]
    pub fn readiness(&mut self) -> Result<&crate::Readiness> {
        self.inner.check()?;
        let Inner { hot, waiting, attachment, .. } = &mut *self.inner;
        if waiting.readiness.is_none() {
            waiting.readiness = Some(crate::Readiness::for_role(attachment, Role::Producer, hot.mine(), hot.peer())?);
        }
        Ok(waiting.readiness.as_ref().expect("made above"))
    }

    /// Flushes, tells the receiver that this was all, and gives the role up. Dropping does the same without the
    /// chance of an error.
    ///
    /// # Errors
    /// What the handle was already dead of: `Corrupt`, `Detached` in a forked child, or `PeerDead` on a bus where an
    /// earlier call has said so.
    pub fn close(self) -> Result<()> {
        self.inner.check().or_else(|e| if e.kind() == ErrorKind::Closed { Ok(()) } else { Err(e) })
    }

    /// Gives the role up without telling the receiver that this was all: it is told `PeerDead`, as if this process
    /// had been killed, so that half a stream does not pass for a whole one. What was committed is delivered.
    /// On a [pair](crate::Ring::pair) this is [`close`](Self::close), because there only a close tells.
    ///
    /// Dropping a sender because its thread panics does the same.
    pub fn abandon(mut self) {
        self.abandoned = true;
    }

    #[inline(always)]
    fn put(&mut self, type_id: u32, tag: u64, payload: &[u8], wait_limit: WaitLimit) -> Result<()> {
        user_type_id(type_id)?;
        let to = self.reserve_raw(payload.len(), wait_limit)?;
        // SAFETY: `to` has room for `payload.len()` bytes that no one else reads or writes before commit; `payload`
        // cannot overlap them, as nothing hands out a `&[u8]` into unreserved space. `to` was reserved last.
        unsafe {
            to.copy_from_nonoverlapping(payload.as_ptr(), payload.len());
            self.commit_raw(to, payload.len(), type_id, tag, true)
        }
    }

    #[inline(always)]
    fn slot(&mut self, len: usize, wait_limit: WaitLimit) -> Result<Slot<'_>> {
        let data = self.reserve_raw(len, wait_limit)?;
        Ok(Slot { sender: self, data, len, type_id: 0, tag: 0 })
    }

    /// The slot's payload; with `WaitLimit::None` it does not wait.
    #[inline(always)]
    pub(crate) fn reserve_raw(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        self.inner.reserve(len, wait_limit)
    }

    /// Makes `len` bytes from `to` a message.
    ///
    /// # Safety
    /// As for [`Producer::frame`].
    #[inline(always)]
    pub(crate) unsafe fn commit_raw(
        &mut self,
        to: *mut u8,
        len: usize,
        type_id: u32,
        tag: u64,
        flush: bool,
    ) -> Result<()> {
        // SAFETY: the caller vouches for `to` and `len`.
        unsafe { self.inner.hot.frame(to, len as u64, type_id, tag, flush) }
            .map_err(|kind| self.inner.with_name(fail(kind)))
    }

    fn block(&self) -> &crate::layout::RingBlock {
        // SAFETY: the attachment keeps the header page mapped.
        unsafe { &*self.inner.hot.block }
    }

    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn raw(&mut self) -> super::raw::RawSender<'_> {
        super::raw::RawSender { sender: self }
    }

    pub(crate) fn inner(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Inner {
    /// The slot's payload; with `WaitLimit::None` it does not wait.
    #[inline(always)]
    pub(super) fn reserve(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        loop {
            match self.hot.try_reserve(len as u64) {
                Ok(to) => return Ok(to),
                Err(kind) => self.reserve_slow(len, wait_limit, kind)?,
            }
        }
    }

    /// [`reserve`](Self::reserve) of one of several messages that share a time: `deadline` is set at the first wait.
    fn reserve_until(&mut self, len: usize, wait_limit: WaitLimit, deadline: &mut Option<Deadline>) -> Result<*mut u8> {
        loop {
            match self.hot.try_reserve(len as u64) {
                Ok(to) => return Ok(to),
                Err(ErrorKind::Full) => {
                    let deadline = *deadline.get_or_insert_with(|| wait_limit.deadline().unwrap_or(Deadline::NEVER));
                    self.wait_for_room(len as u64, Some(deadline)).map_err(|e| self.with_name(e))?;
                }
                Err(kind) => self.reserve_slow(len, WaitLimit::None, kind)?,
            }
        }
    }

    /// What this handle is dead of, if anything.
    pub(super) fn check(&self) -> Result<()> {
        self.hot.check().map_err(|kind| self.with_name(fail(kind)))
    }

    /// The error with the ring's name, where it is about the ring's state.
    #[cold]
    pub(super) fn with_name(&self, e: Error) -> Error {
        e.of(&self.attachment.origin)
    }

    /// Gives `Ok` once there is room; why it returns no address: see `Inner::recv` of the receiver.
    #[cold]
    #[inline(never)]
    fn reserve_slow(&mut self, len: usize, wait_limit: WaitLimit, kind: ErrorKind) -> Result<()> {
        let outcome = match (kind, wait_limit.deadline()) {
            (ErrorKind::Full, Some(deadline)) => self.wait_for_room(len as u64, Some(deadline)),
            (ErrorKind::Full, None) => {
                self.wait_for_room(len as u64, None)?;
                // It was armed after the check that found no room. Room that has come since is a success, and else
                // this is the answer.
                self.hot.try_reserve(len as u64).map(|_| ()).map_err(fail)
            }
            (ErrorKind::TooLarge, _) => Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "a message of {len} bytes can never fit: this ring of {} bytes takes at most {}; create it with \
                     a larger capacity or cut the message",
                    self.hot.capacity, self.hot.max_len
                ),
            )),
            (kind, _) => Err(fail(kind)),
        };
        outcome.map_err(|e| self.with_name(e))
    }

    /// Blocks until a payload of `len` bytes fits. Without a deadline it only checks whether the receiver is gone (the
    /// closed flag every time, a system call for its life every 100 ms) and arms the readiness descriptor.
    fn wait_for_room(&mut self, len: u64, deadline: Option<Deadline>) -> Result<()> {
        let Self { hot, waiting, attachment, gone, .. } = self;
        let (mine, peer) = (hot.mine(), hot.peer());
        let size = frame_size(len, hot.align);
        let link = &attachment.link;
        let ended = |ask_kernel| end::check(peer, link, Role::Producer, 0, gone, ask_kernel);
        let ready = || hot.fits_after_refresh(size).map_err(fail);
        let outcome = match deadline {
            Some(deadline) => waiting.until(mine, peer, deadline, ready, ended),
            None if waiting.readiness.is_some() => waiting.rearm(mine, peer, ready, ended, false).map(|_| ()),
            None => {
                let check_peer = waiting.is_time_to_check_peer();
                let (mut ready, mut ended) = (ready, ended);
                waiting.decide(&mut ready, &mut ended, check_peer).map(|_| ())
            }
        };
        if let Err(end) = &outcome
            && link.endings_are_final()
            && matches!(end.kind(), ErrorKind::Closed | ErrorKind::PeerDead)
        {
            hot.die(end.kind());
        }
        outcome
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let Inner { hot, waiting, attachment, .. } = &mut *self.inner;
        // In a forked child the ring is the parent's: touch nothing.
        if attachment.fork.is_detached() {
            return;
        }
        hot.publish();
        // On a pair only a close tells.
        let unwinding = std::thread::panicking() && !self.made_unwinding;
        if (self.abandoned || unwinding) && !matches!(attachment.link, Link::None) {
            return;
        }
        waiting.leave(hot.mine());
        announce_close(hot.mine(), hot.peer());
    }
}

#[inline(always)]
pub(super) fn user_type_id(type_id: u32) -> Result<()> {
    if type_id >= TYPE_ID_RESERVED { Err(reserved(type_id)) } else { Ok(()) }
}

#[cold]
fn reserved(type_id: u32) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("type id {type_id:#x} is Ramway's own: applications use ids below {TYPE_ID_RESERVED:#x}"),
    )
}

const _: () = assert!(NO_SLOT > crate::layout::MESSAGE_MAX);
