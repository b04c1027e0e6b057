use super::Slot;
use super::half::Half;
use super::log::{Log, Ring};
use super::producer::{NO_SLOT, Producer, Writing};
use crate::endpoint::calls::endpoint_calls;
use crate::layout::TYPE_ID_RESERVED;
use crate::segment::{Attachment, Link};
use crate::wait::{Deadline, WaitLimit, WaitPolicy};
use crate::{Error, ErrorKind, Result};
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
pub struct Sender<L: Log = Ring> {
    pub(crate) half: Box<Half<Producer<L>>>,
    /// Drop without saying "closed".
    abandoned: bool,
    /// Made while its thread was unwinding: what it is dropped in says nothing about it.
    made_unwinding: bool,
}

endpoint_calls! {
    Sender, "sender", "receiver";

    /// A descriptor that becomes readable when [`try_send`](Self::try_send) has something else to say than the last
    /// `Full`: there is room, or the receiver is gone. Made at the first call; from then on the blocking calls wait by
    /// it too.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`](crate::Receiver::readiness).
    readiness;

    /// Waits until a receiver is attached that has not closed and whose process lives, as long as it takes; gives its
    /// [epoch](Self::peer_epoch). At once if there is one already. One that attaches during the call ends it, also if it is
    /// gone again.
    ///
    /// # Errors
    /// Where an end is final (a bus, a pair): `Closed` or `PeerDead` at once if the receiver is gone. `Closed` if the
    /// ring's name was removed, so that nobody can come. `Interrupted` by a [`Waker`](crate::Waker), or by a signal if
    /// [so asked](Self::set_interruptible). `Corrupt`, `Detached`.
    wait_for_peer;
}

impl<L: Log> Sender<L> {
    /// Takes the producer's role of an attachment whose role lock this process holds.
    pub(crate) fn attach(attachment: Attachment<L>, policy: WaitPolicy, use_membarrier: bool) -> Result<Self> {
        let half = Half::attach(attachment, policy, use_membarrier)?;
        Ok(Self { half, abandoned: false, made_unwinding: std::thread::panicking() })
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
            let one = self.half.reserve_until(payload.len(), wait_limit, &mut deadline).and_then(|to| {
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
        self.half.hot.publish();
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
    pub fn reserve(&mut self, len: usize) -> Result<Slot<'_, L>> {
        self.slot(len, WaitLimit::Forever)
    }

    /// [`reserve`](Self::reserve) that does not wait: `Full` if there is no room now.
    #[inline(always)]
    pub fn try_reserve(&mut self, len: usize) -> Result<Slot<'_, L>> {
        self.slot(len, WaitLimit::None)
    }

    /// [`reserve`](Self::reserve) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn reserve_timeout(&mut self, len: usize, timeout: Duration) -> Result<Slot<'_, L>> {
        self.slot(len, WaitLimit::For(timeout))
    }

    /// Makes every [`commit_unflushed`](Slot::commit_unflushed) so far visible. Never waits.
    #[inline(always)]
    pub fn flush(&mut self) -> Result<()> {
        self.half.check()?;
        self.half.hot.publish();
        Ok(())
    }

    /// The longest payload that ever fits: `min(capacity − 16, 2^31 − 17)`. It fits whenever the ring is empty.
    pub fn max_message_len(&self) -> usize {
        self.half.hot.max_len as usize
    }

    /// Bytes, frame headers and padding included, that the receiver has not released, by a load of the shared
    /// position: can be stale when it returns. What is committed but not flushed counts.
    pub fn len(&self) -> usize {
        self.half.hot.len() as usize
    }

    /// Whether the receiver has released everything; can be stale.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tag of the last message that is visible to receivers (0 if it was sent without one), by any sender of
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
        self.half.hot.last_tag()
    }

    /// Flushes, tells the receiver that this was all, and gives the role up. Dropping does the same without the
    /// chance of an error.
    ///
    /// # Errors
    /// What the handle was already dead of: `Corrupt`, `Detached` in a forked child, or `PeerDead` on a bus where an
    /// earlier call has said so.
    pub fn close(self) -> Result<()> {
        self.half.check().or_else(|e| if e.kind() == ErrorKind::Closed { Ok(()) } else { Err(e) })
    }

    /// Gives the role up without telling the receiver that this was all: it is told `PeerDead`, as if this process
    /// had been killed, so that half a stream is not taken for a whole one. What was committed is delivered.
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
    fn slot(&mut self, len: usize, wait_limit: WaitLimit) -> Result<Slot<'_, L>> {
        let data = self.reserve_raw(len, wait_limit)?;
        Ok(Slot { sender: self, data, len, type_id: 0, tag: 0 })
    }

    /// The slot's payload; with `WaitLimit::None` it does not wait.
    #[inline(always)]
    pub(crate) fn reserve_raw(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        self.half.reserve(len, wait_limit)
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
        unsafe { self.half.hot.frame(to, len as u64, type_id, tag, flush) }.map_err(|kind| self.half.error(kind))
    }
}

impl<L: Writing> Half<Producer<L>> {
    /// The slot's payload; with `WaitLimit::None` it does not wait.
    #[inline(always)]
    pub(super) fn reserve(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        loop {
            match self.hot.try_reserve(len as u64) {
                Ok(to) => return Ok(to),
                Err(kind) => self.reserve_slow(len, kind, wait_limit)?,
            }
        }
    }

    /// [`reserve`](Self::reserve) of one of several messages that share a time: `deadline` is set at the first wait.
    fn reserve_until(&mut self, len: usize, wait_limit: WaitLimit, deadline: &mut Option<Deadline>) -> Result<*mut u8> {
        loop {
            match self.hot.try_reserve(len as u64) {
                Ok(to) => return Ok(to),
                Err(kind) => self.refused(len, kind, wait_limit, deadline)?,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn reserve_slow(&mut self, len: usize, refusal: ErrorKind, wait_limit: WaitLimit) -> Result<()> {
        self.refused(len, refusal, wait_limit, &mut None)
    }

    /// What follows a refusal. `Ok`: there is room now; why it returns no address: see `Half::recv` of the receiver.
    #[cold]
    fn refused(
        &mut self,
        len: usize,
        refusal: ErrorKind,
        wait_limit: WaitLimit,
        deadline: &mut Option<Deadline>,
    ) -> Result<()> {
        match refusal {
            ErrorKind::Full => {
                if deadline.is_none() {
                    *deadline = wait_limit.deadline();
                }
                let size = L::frame_size(len as u64, self.hot.align);
                self.wait(*deadline, |hot| L::fits_after_refresh(hot, size))
            }
            ErrorKind::TooLarge => {
                let text = format!(
                    "a message of {len} bytes can never fit: this {} of {} bytes takes at most {}; create it with \
                     a larger capacity or cut the message",
                    L::NAME,
                    self.hot.capacity,
                    self.hot.max_len
                );
                Err(self.endpoint.with_name(Error::new(ErrorKind::TooLarge, text)))
            }
            kind => Err(self.error(kind)),
        }
    }
}

impl<L: Log> Drop for Sender<L> {
    fn drop(&mut self) {
        let half = &mut *self.half;
        if half.endpoint.is_detached() {
            return;
        }
        half.hot.publish();
        // On a pair only a close tells.
        let unwinding = std::thread::panicking() && !self.made_unwinding;
        if (self.abandoned || unwinding) && !matches!(half.endpoint.attachment.link, Link::None) {
            return;
        }
        half.close();
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
