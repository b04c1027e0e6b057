use super::consumer::{Consumer, Frame};
use super::{Batch, Iter, Message, Meta, announce, announce_close, fail};
use crate::endpoint::end;
use crate::layout::ROLE_CLOSED;
use crate::segment::{Attachment, Role};
use crate::sync::{Ordering, Step, keep, spin_hint};
use crate::sys::{fork, membarrier};
use crate::wait::{self, Deadline, FIRST_POLLS, WaitLimit, WaitPolicy, Waiting};
use crate::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::time::Duration;

/// The receiving end of a ring. One per ring, in the whole system; may move between threads, not be shared by them.
///
/// A received message is a view of the shared memory. It is given back when it is dropped; if this process is killed
/// before that, the next receiver gets it again. Views are for peers that do not rewrite what they sent (see
/// SECURITY.md): [`recv_into`](Self::recv_into) copies, and is safe against one that does.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
/// tx.send(0, b"one")?;
/// tx.send(0, b"two")?;
/// drop(tx);
/// assert_eq!(&*rx.recv()?, b"one");
/// assert_eq!(&*rx.recv()?, b"two");
/// assert_eq!(rx.recv().unwrap_err().kind(), ramway::ErrorKind::Closed);
/// # Ok(()) }
/// ```
pub struct Receiver {
    /// Boxed: the fork registry and C's inline functions keep its address.
    pub(super) inner: Box<Inner>,
}

pub(crate) struct Inner {
    pub(crate) hot: Consumer,
    pub(crate) waiting: Waiting,
    epoch: u32,
    /// The sender's epoch whose close an earlier receiver has seen, or 0: that one is not delivered again.
    old_close: u32,
    /// The last epoch of the sender that was found closed or dead, or 0. A successor takes the role's lock first and raises the
    /// epoch after that: between the two it must not pass for the one that is gone.
    pub(super) gone: Cell<u32>,
    /// Unregisters `hot.state`; so it goes before the box does.
    _watch: Option<fork::Watch>,
    /// Last: its locks tell the peer that everything above is done.
    pub(crate) attachment: Attachment,
}

// SAFETY: as for `Sender`.
unsafe impl Send for Receiver {}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .field("epoch", &self.epoch())
            .field("peer_epoch", &self.peer_epoch())
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// Takes the consumer's role of an attachment whose role lock this process holds.
    pub(crate) fn attach(attachment: Attachment, policy: WaitPolicy, use_membarrier: bool) -> Result<Self> {
        let membarrier_capable = use_membarrier && membarrier::is_available();
        // SAFETY: as in `Sender::attach`, for the consumer's role.
        let hot = unsafe {
            Consumer::new(
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
            old_close: 0,
            gone: Cell::new(0),
            _watch: None,
            attachment,
        });
        // SAFETY: `hot.state` lives in the box, which outlives the watch beside it.
        inner._watch = Some(unsafe { inner.attachment.fork.watch(&inner.hot.state) });
        // Relaxed: the role lock orders it after the earlier receiver's store.
        let seen = inner.hot.mine().close_seen.load(Ordering::Relaxed);
        inner.old_close = inner.hot.producer_closed().filter(|&epoch| epoch == seen).unwrap_or(0);
        inner.epoch = announce(inner.hot.mine(), inner.hot.peer(), membarrier_capable);
        inner.hot.peer_changed();
        Ok(Self { inner })
    }

    /// The next message, waiting for it as long as it takes.
    ///
    /// # Errors
    /// After the last message: `Closed` if the sender closed, `PeerDead` if it died (within 200 ms of the kernel
    /// releasing its files). On a named ring both end when a successor attaches, so calling again is meaningful;
    /// a sender that never attached is waited for. `Corrupt`, `Detached`.
    #[inline(always)]
    pub fn recv(&mut self) -> Result<Message<'_>> {
        self.message(WaitLimit::Forever)
    }

    /// [`recv`](Self::recv) that does not wait: `Empty` if there is no message now.
    #[inline(always)]
    pub fn try_recv(&mut self) -> Result<Message<'_>> {
        self.message(WaitLimit::None)
    }

    /// [`recv`](Self::recv) that waits for at most `timeout`, then gives `TimedOut`.
    #[inline(always)]
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Message<'_>> {
        self.message(WaitLimit::For(timeout))
    }

    /// Up to `max` messages (at least one: it waits for the first) that are released together when the batch drops.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// tx.send_batch(0, [b"a", b"b", b"c"])?;
    /// let mut all = Vec::new();
    /// for message in rx.recv_batch(64)?.iter() {
    ///     all.extend_from_slice(&message);
    /// }
    /// assert_eq!(all, b"abc");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`recv`](Self::recv). `InvalidArgument` for a `max` of 0.
    #[inline(always)]
    pub fn recv_batch(&mut self, max: usize) -> Result<Batch<'_>> {
        self.batch(max, WaitLimit::Forever)
    }

    /// [`recv_batch`](Self::recv_batch) that does not wait: `Empty` if there is no message now.
    #[inline(always)]
    pub fn try_recv_batch(&mut self, max: usize) -> Result<Batch<'_>> {
        self.batch(max, WaitLimit::None)
    }

    /// [`recv_batch`](Self::recv_batch) that waits for the first message for at most `timeout`.
    pub fn recv_batch_timeout(&mut self, max: usize, timeout: Duration) -> Result<Batch<'_>> {
        self.batch(max, WaitLimit::For(timeout))
    }

    /// Copies the next message into `buffer`, replacing what was there, and releases it. The one way to read that a
    /// peer cannot disturb by rewriting what it sent: every byte is read once.
    pub fn recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<Meta> {
        self.copy(buffer, WaitLimit::Forever)
    }

    /// [`recv_into`](Self::recv_into) that does not wait.
    pub fn try_recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<Meta> {
        self.copy(buffer, WaitLimit::None)
    }

    /// [`recv_into`](Self::recv_into) that waits for at most `timeout`.
    pub fn recv_into_timeout(&mut self, buffer: &mut Vec<u8>, timeout: Duration) -> Result<Meta> {
        self.copy(buffer, WaitLimit::For(timeout))
    }

    /// [`recv_into`](Self::recv_into) a buffer of a fixed size: the message is its first [`len`](Meta::len) bytes.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// tx.send(7, b"hello")?;
    /// let mut buffer = [0; 16];
    /// assert_eq!(rx.recv_into_slice(&mut [0; 4]).unwrap_err().kind(), ramway::ErrorKind::TooLarge);
    /// let meta = rx.recv_into_slice(&mut buffer)?;
    /// assert_eq!((meta.type_id, &buffer[..meta.len]), (7, &b"hello"[..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TooLarge` if it is longer than the buffer, with both lengths: it stays the next message. As for
    /// [`recv`](Self::recv).
    pub fn recv_into_slice(&mut self, buffer: &mut [u8]) -> Result<Meta> {
        self.copy_to(buffer, WaitLimit::Forever)
    }

    /// [`recv_into_slice`](Self::recv_into_slice) that does not wait.
    pub fn try_recv_into_slice(&mut self, buffer: &mut [u8]) -> Result<Meta> {
        self.copy_to(buffer, WaitLimit::None)
    }

    /// [`recv_into_slice`](Self::recv_into_slice) that waits for at most `timeout`.
    pub fn recv_into_slice_timeout(&mut self, buffer: &mut [u8], timeout: Duration) -> Result<Meta> {
        self.copy_to(buffer, WaitLimit::For(timeout))
    }

    /// Copies of the messages, one after another, until the sender closes. An error, `PeerDead` too, is the last item.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// tx.send(1, b"x")?;
    /// drop(tx);
    /// let all = rx.iter().collect::<ramway::Result<Vec<_>>>()?;
    /// assert_eq!(all[0].data, b"x");
    /// # Ok(()) }
    /// ```
    pub fn iter(&mut self) -> Iter<'_> {
        Iter { receiver: self, done: false }
    }

    /// Bytes of the data area.
    pub fn capacity(&self) -> usize {
        self.inner.hot.capacity as usize
    }

    /// Every payload begins on a multiple of this many bytes.
    pub fn align(&self) -> usize {
        self.inner.hot.align as usize
    }

    /// Bytes, frame headers and padding included, that are published and not released, by a load of the shared
    /// position: can be stale when it returns.
    pub fn len(&self) -> usize {
        let hot = &self.inner.hot;
        // SAFETY: the attachment keeps the header page mapped.
        let block = unsafe { &*hot.block };
        // Relaxed: a snapshot; clamped because the peer could write anything.
        block.tail.tail.load(Ordering::Relaxed).wrapping_sub(hot.released).min(hot.capacity) as usize
    }

    /// Whether nothing is published; can be stale.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a sender is attached and its process lives (one system call). A stopped process is alive.
    pub fn is_peer_alive(&self) -> bool {
        if self.inner.attachment.fork.is_detached() {
            return false;
        }
        let peer = self.inner.hot.peer();
        // Acquire: pairs with attach and close.
        peer.epoch.load(Ordering::Acquire) != 0
            && peer.flags.load(Ordering::Acquire) & ROLE_CLOSED == 0
            && self.inner.attachment.link.peer_alive(Role::Consumer)
    }

    /// How often a sender has attached; 0 = never yet. A change means that a successor took over.
    pub fn peer_epoch(&self) -> u32 {
        self.inner.hot.peer().epoch.load(Ordering::Acquire)
    }

    /// The name that the ring was opened by, or the bus; `None` of a pair or a ring from a descriptor.
    pub fn name(&self) -> Option<&std::ffi::OsStr> {
        self.inner.attachment.origin.name()
    }

    /// How often a receiver has attached, this one included; 1 = the first.
    pub fn epoch(&self) -> u32 {
        self.inner.epoch
    }

    /// How this handle waits for messages from now on.
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.inner.waiting.policy = policy;
    }

    /// Whether a blocking call returns `Interrupted` after a signal handler ran (default: it goes on waiting).
    pub fn set_interruptible(&mut self, yes: bool) {
        self.inner.waiting.interruptible = yes;
    }

    /// A descriptor that becomes readable when [`try_recv`](Self::try_recv) has something to say: a message, or that
    /// the sender is gone. Made at the first call; from then on the blocking calls wait by it too.
    ///
    /// # Errors
    /// `Unsupported` if `RAMWAY_READINESS` asks for what this system does not have, `InvalidArgument` if it is neither
    /// `uring` nor `thread`, `Os` if there are no more descriptors or threads, `Detached`.
    #[cfg(not(loom))]
    pub fn readiness(&mut self) -> Result<&crate::Readiness> {
        self.inner.check()?;
        let Inner { hot, waiting, attachment, .. } = &mut *self.inner;
        if waiting.readiness.is_none() {
            waiting.readiness = Some(crate::Readiness::for_role(attachment, Role::Consumer, hot.mine(), hot.peer())?);
        }
        Ok(waiting.readiness.as_ref().expect("made above"))
    }

    /// Tells the sender that nothing more will be read, and gives the role up. What is not released stays for the next
    /// receiver of a named ring. Dropping does the same without the chance of an error.
    ///
    /// # Errors
    /// What the handle was already dead of: `Corrupt`, or `Detached` in a forked child.
    pub fn close(self) -> Result<()> {
        match self.inner.check() {
            Err(e) if !matches!(e.kind(), ErrorKind::Closed | ErrorKind::PeerDead) => Err(e),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn message(&mut self, wait_limit: WaitLimit) -> Result<Message<'_>> {
        let inner = &mut *self.inner;
        // Of a message that was forgotten (`mem::forget`): its borrow has ended all the same.
        inner.hot.release();
        let frame = inner.recv(wait_limit)?;
        Ok(Message { frame, hot: &mut inner.hot })
    }

    #[inline(always)]
    fn batch(&mut self, max: usize, wait_limit: WaitLimit) -> Result<Batch<'_>> {
        if max == 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, "a batch of at most 0 messages: ask for at least 1"));
        }
        let inner = &mut *self.inner;
        inner.hot.release();
        let first = inner.recv(wait_limit)?;
        Ok(Batch { hot: &mut inner.hot, first: Some(first), left: max - 1 })
    }

    fn copy(&mut self, buffer: &mut Vec<u8>, wait_limit: WaitLimit) -> Result<Meta> {
        let inner = &mut *self.inner;
        inner.hot.release();
        let frame = inner.recv(wait_limit)?;
        buffer.clear();
        // At most what is published, so at most the capacity, whatever the peer wrote.
        buffer.reserve(frame.len);
        // SAFETY: the frame's bytes lie in the mapping, the buffer has room, and the two do not overlap. A peer that
        // writes meanwhile makes the copy a mix of old and new bytes, not an invalid one.
        unsafe {
            buffer.as_mut_ptr().copy_from_nonoverlapping(frame.data, frame.len);
            buffer.set_len(frame.len);
        }
        inner.hot.release();
        Ok(Meta { type_id: frame.type_id, tag: frame.tag, len: frame.len })
    }

    fn copy_to(&mut self, buffer: &mut [u8], wait_limit: WaitLimit) -> Result<Meta> {
        let inner = &mut *self.inner;
        inner.hot.release();
        let frame = inner.recv(wait_limit)?;
        if frame.len > buffer.len() {
            // Nothing else is lent out: back to `released` is back by this one.
            inner.hot.head = inner.hot.released;
            let text = format!("a message of {} bytes into a buffer of {}", frame.len, buffer.len());
            return Err(inner.with_name(Error::new(ErrorKind::TooLarge, text)));
        }
        // SAFETY: as in `copy`; the buffer has room.
        unsafe { buffer.as_mut_ptr().copy_from_nonoverlapping(frame.data, frame.len) };
        inner.hot.release();
        Ok(Meta { type_id: frame.type_id, tag: frame.tag, len: frame.len })
    }

    /// Whether [`try_recv`](Self::try_recv) would give a message; the same errors if not.
    #[cfg(not(loom))]
    pub(crate) fn try_ready(&mut self) -> Result<()> {
        let inner = &mut *self.inner;
        inner.check()?;
        inner.hot.release();
        if inner.has_frame()? {
            return Ok(());
        }
        if let Err(end) = inner.check_for_end() {
            return Err(inner.ended(end));
        }
        if inner.has_frame()? { Ok(()) } else { Err(ErrorKind::Empty.into()) }
    }

    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn raw(&mut self) -> super::raw::RawReceiver<'_> {
        super::raw::RawReceiver { receiver: self }
    }

    pub(crate) fn inner(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Inner {
    /// The next frame; with `WaitLimit::None` it does not wait.
    ///
    /// What is not inlined returns no frame. One that came through memory in one case and in registers in the other
    /// would go through memory in both, by loads that are wider than the stores before them: the processor cannot
    /// forward those, which costs 10 to 15 ns (docs/adr/0018).
    #[inline(always)]
    pub(crate) fn recv(&mut self, wait_limit: WaitLimit) -> Result<Frame> {
        if !self.hot.has_cached_frame() {
            self.poll(wait_limit)?;
        }
        self.hot.cached_frame().map_err(|kind| self.with_name(fail(kind)))
    }

    /// What this handle is dead of, if anything.
    pub(super) fn check(&self) -> Result<()> {
        self.hot.check().map_err(|kind| self.with_name(fail(kind)))
    }

    fn has_frame(&mut self) -> Result<bool> {
        self.hot.has_frame().map_err(|kind| self.with_name(fail(kind)))
    }

    /// The error with the ring's name, where it is about the ring's state.
    #[cold]
    pub(super) fn with_name(&self, e: Error) -> Error {
        e.of(&self.attachment.origin)
    }

    /// Gives `Ok` once a frame is there; with `WaitLimit::None` it does not wait.
    pub(super) fn wait(&mut self, wait_limit: WaitLimit) -> Result<()> {
        if self.hot.has_cached_frame() { Ok(()) } else { self.poll(wait_limit) }
    }

    /// Gives `Ok` once a frame is there.
    #[inline(always)]
    fn poll(&mut self, wait_limit: WaitLimit) -> Result<()> {
        let mut there = self.hot.refresh();
        if matches!(there, Ok(false)) && wait_limit != WaitLimit::None && self.waiting.polls() {
            // The first polls of the wait, here rather than in `recv_slow`: an answer that comes within a microsecond
            // does not pay for getting there and back (a round trip of 1.33 instead of 1.63 × the raw flag's,
            // docs/adr/0016).
            wait::first_pause();
            let mut polls = FIRST_POLLS;
            while polls != 0 {
                there = self.hot.refresh();
                if !matches!(there, Ok(false)) {
                    break;
                }
                spin_hint();
                // Or the loop is unrolled 32 times, 1 KiB at every place where a message is received.
                polls = std::hint::black_box(polls - 1);
            }
        }
        if matches!(there, Ok(true)) { Ok(()) } else { self.recv_slow(wait_limit) }
    }

    #[cold]
    #[inline(never)]
    fn recv_slow(&mut self, wait_limit: WaitLimit) -> Result<()> {
        self.check()?;
        let outcome = match wait_limit.deadline() {
            Some(deadline) => self.wait_for_frame(deadline),
            None => self.check_for_end(),
        };
        if let Err(end) = outcome {
            return Err(self.ended(end));
        }
        if !keep(Step::CheckAfterArming) && wait_limit == WaitLimit::None {
            return Err(ErrorKind::Empty.into());
        }
        if self.has_frame()? { Ok(()) } else { Err(ErrorKind::Empty.into()) }
    }

    /// Blocks until a frame is there.
    fn wait_for_frame(&mut self, deadline: Deadline) -> Result<()> {
        let Self { hot, waiting, attachment, old_close, gone, .. } = self;
        let (mine, peer) = (hot.mine(), hot.peer());
        let end = |check_peer| end::check(peer, &attachment.link, Role::Consumer, *old_close, gone, check_peer);
        waiting.until(mine, peer, deadline, || hot.has_frame().map_err(fail), end)
    }

    /// What an empty `try_recv` does: the closed flag every time, a system call for the peer's life every 100 ms.
    fn check_for_end(&mut self) -> Result<()> {
        let check_peer = self.waiting.is_time_to_check_peer();
        let Self { hot, waiting, attachment, old_close, gone, .. } = self;
        let (mine, peer) = (hot.mine(), hot.peer());
        let end = |check_peer| end::check(peer, &attachment.link, Role::Consumer, *old_close, gone, check_peer);
        let end = if waiting.readiness.is_some() {
            waiting.rearm(mine, peer, || hot.has_frame().map_err(fail), end, check_peer).map(|_| ())
        } else {
            end(check_peer)
        };
        self.waiting.saw_peer(check_peer && end.is_ok());
        // The second check, after the flag or the free lock was seen.
        if keep(Step::CheckAfterEnd) && end.is_err() && self.has_frame()? {
            return Ok(());
        }
        end
    }

    /// Records an end that is about to be returned.
    fn ended(&mut self, end: Error) -> Error {
        let kind = end.kind();
        // A dead peer is still dead at the next call, and a vanished name still gone.
        self.waiting.check_peer_again();
        if kind == ErrorKind::Closed
            && let Some(epoch) = self.hot.producer_closed()
        {
            // Release: whoever sees this close as delivered sees `head` where it was when it was.
            self.hot.mine().close_seen.store(epoch, Ordering::Release);
        }
        if matches!(kind, ErrorKind::Closed | ErrorKind::PeerDead) && self.hot.endings_are_final != 0 {
            self.hot.die(kind);
        }
        self.with_name(end)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let Inner { hot, waiting, attachment, .. } = &mut *self.inner;
        // In a forked child the ring is the parent's: touch nothing.
        if !attachment.fork.is_detached() {
            waiting.leave(hot.mine());
            announce_close(hot.mine(), hot.peer());
        }
    }
}
