use super::consumer::{Consumer, Frame, Reading};
use super::half::Half;
use super::log::{Log, Ring};
use super::{Batch, Iter, Message, sent};
use crate::endpoint::calls::endpoint_calls;
use crate::segment::{Attachment, Link};
use crate::sync::spin_hint;
use crate::wait::{Deadline, FIRST_POLLS, WaitLimit, WaitPolicy};
use crate::{Error, ErrorKind, Result};
use std::time::Duration;

/// The longest frame of an answer that is asked for while it is waited for, in bytes: one in two lines. Of longer ones the rest
/// comes later anyway, and to ask for their beginning made a round trip of 1 KiB longer (docs/adr/0032).
const ANSWER_AHEAD: u32 = 128;

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
pub struct Receiver<L: Log = Ring> {
    pub(crate) half: Box<Half<Consumer<L>>>,
    /// Drop without saying "closed".
    abandoned: bool,
}

endpoint_calls! {
    Receiver, "receiver", "sender";

    /// A descriptor that becomes readable when [`try_recv`](Self::try_recv) has something to say: a message, or that
    /// the sender is gone. Made at the first call; from then on the blocking calls wait by it too.
    ///
    /// # Errors
    /// `Unsupported` if `RAMWAY_READINESS` asks for what this system does not have, `InvalidArgument` if it is neither
    /// `uring` nor `thread`, `Os` if there are no more descriptors or threads, `Detached`.
    readiness;

    /// Waits until a sender is attached that has not closed and whose process lives, as long as it takes; gives its
    /// [epoch](Self::peer_epoch). At once if there is one already. One that attaches during the call ends it, also if it is
    /// gone again: its messages may be there. Messages stay where they are.
    ///
    /// After `PeerDead` or `Closed` on a named ring this waits for the successor:
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-peer-{}", std::process::id());
    /// # let mut rx = ramway::Ring::create(&name).receiver()?;
    /// # let next = ramway::Ring::open(&name).sender()?;
    /// let epoch = rx.wait_for_peer()?;
    /// assert_eq!(epoch, rx.peer_epoch());
    /// # drop(next);
    /// # assert!(rx.recv().is_err()); // a close that nobody saw would keep the name
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`](crate::Sender::wait_for_peer).
    wait_for_peer;
}

impl<L: Log> Receiver<L> {
    /// Takes the consumer's role of an attachment whose role lock this process holds.
    pub(crate) fn attach(attachment: Attachment<L>, policy: WaitPolicy, use_membarrier: bool) -> Result<Self> {
        Ok(Self { half: Half::attach(attachment, policy, use_membarrier)?, abandoned: false })
    }

    /// The next message, waiting for it as long as it takes.
    ///
    /// # Errors
    /// After the last message: `Closed` if the sender closed, `PeerDead` if it died (within 200 ms of the kernel
    /// releasing its files). On a named ring both end when a successor attaches, so calling again is meaningful;
    /// a sender that never attached is waited for. `Corrupt`, `Detached`.
    #[inline(always)]
    pub fn recv(&mut self) -> Result<Message<'_, L>> {
        self.message(WaitLimit::Forever)
    }

    /// [`recv`](Self::recv) that does not wait: `Empty` if there is no message now.
    #[inline(always)]
    pub fn try_recv(&mut self) -> Result<Message<'_, L>> {
        self.message(WaitLimit::None)
    }

    /// [`recv`](Self::recv) that waits for at most `timeout`, then gives `TimedOut`.
    #[inline(always)]
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Message<'_, L>> {
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
    pub fn recv_batch(&mut self, max: usize) -> Result<Batch<'_, L>> {
        self.batch(max, WaitLimit::Forever)
    }

    /// [`recv_batch`](Self::recv_batch) that does not wait: `Empty` if there is no message now.
    #[inline(always)]
    pub fn try_recv_batch(&mut self, max: usize) -> Result<Batch<'_, L>> {
        self.batch(max, WaitLimit::None)
    }

    /// [`recv_batch`](Self::recv_batch) that waits for the first message for at most `timeout`.
    pub fn recv_batch_timeout(&mut self, max: usize, timeout: Duration) -> Result<Batch<'_, L>> {
        self.batch(max, WaitLimit::For(timeout))
    }

    /// Copies the next message into `buffer`, replacing what was there, and releases it. The one way to read that a
    /// peer cannot disturb by rewriting what it sent: every byte is read once.
    pub fn recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<L::Meta> {
        self.copy(buffer, WaitLimit::Forever)
    }

    /// [`recv_into`](Self::recv_into) that does not wait.
    pub fn try_recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<L::Meta> {
        self.copy(buffer, WaitLimit::None)
    }

    /// [`recv_into`](Self::recv_into) that waits for at most `timeout`.
    pub fn recv_into_timeout(&mut self, buffer: &mut Vec<u8>, timeout: Duration) -> Result<L::Meta> {
        self.copy(buffer, WaitLimit::For(timeout))
    }

    /// [`recv_into`](Self::recv_into) a buffer of a fixed size: the message is its first [`len`](crate::Meta::len) bytes.
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
    pub fn recv_into_slice(&mut self, buffer: &mut [u8]) -> Result<L::Meta> {
        self.copy_to(buffer, WaitLimit::Forever)
    }

    /// [`recv_into_slice`](Self::recv_into_slice) that does not wait.
    pub fn try_recv_into_slice(&mut self, buffer: &mut [u8]) -> Result<L::Meta> {
        self.copy_to(buffer, WaitLimit::None)
    }

    /// [`recv_into_slice`](Self::recv_into_slice) that waits for at most `timeout`.
    pub fn recv_into_slice_timeout(&mut self, buffer: &mut [u8], timeout: Duration) -> Result<L::Meta> {
        self.copy_to(buffer, WaitLimit::For(timeout))
    }

    /// Copies of the messages, one after another, until the sender closes. An error, `PeerDead` too, is the last item; on a
    /// topic, `Lagged` is not.
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
    pub fn iter(&mut self) -> Iter<'_, L> {
        Iter { receiver: self, done: false }
    }

    /// Bytes, frame headers and padding included, that are published and not released, by a load of the shared
    /// position: can be stale when it returns.
    pub fn len(&self) -> usize {
        self.half.hot.len() as usize
    }

    /// Whether nothing is published; can be stale.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells the sender that nothing more will be read, and gives the role up. What is not released stays for the next
    /// receiver of a named ring. Dropping does the same without the chance of an error.
    ///
    /// # Errors
    /// What the handle was already dead of: `Corrupt`, or `Detached` in a forked child.
    pub fn close(self) -> Result<()> {
        match self.half.check() {
            Err(e) if !matches!(e.kind(), ErrorKind::Closed | ErrorKind::PeerDead) => Err(e),
            _ => Ok(()),
        }
    }

    /// Gives the role up as a killed process does: the sender is told `PeerDead`. For the bridge, whose own receiver is elsewhere.
    #[doc(hidden)]
    pub fn abandon(mut self) {
        self.abandoned = true;
    }

    #[inline(always)]
    fn message(&mut self, wait_limit: WaitLimit) -> Result<Message<'_, L>> {
        let half = &mut *self.half;
        // Of a message that was forgotten (`mem::forget`): its borrow has ended all the same.
        half.hot.release();
        let frame = half.recv(wait_limit)?;
        Ok(Message { frame, hot: &mut half.hot })
    }

    #[inline(always)]
    fn batch(&mut self, max: usize, wait_limit: WaitLimit) -> Result<Batch<'_, L>> {
        if max == 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, "a batch of at most 0 messages: ask for at least 1"));
        }
        let half = &mut *self.half;
        half.hot.release();
        let first = half.recv(wait_limit)?;
        Ok(self.batch_of(first, max))
    }

    /// A batch of up to `max` messages, of which the first was just received.
    #[inline(always)]
    pub(crate) fn batch_of(&mut self, first: Frame<L>, max: usize) -> Batch<'_, L> {
        Batch { hot: &mut self.half.hot, first: Some(first), left: max - 1 }
    }

    fn copy(&mut self, buffer: &mut Vec<u8>, wait_limit: WaitLimit) -> Result<L::Meta> {
        let frame = self.copy_with(wait_limit, |len| {
            buffer.clear();
            // At most what is published, so at most the capacity, whatever the peer wrote.
            buffer.reserve(len);
            Ok(buffer.as_mut_ptr())
        })?;
        // SAFETY: this many bytes were written, and there was room for them.
        unsafe { buffer.set_len(frame.len) };
        Ok(L::meta(&frame))
    }

    fn copy_to(&mut self, buffer: &mut [u8], wait_limit: WaitLimit) -> Result<L::Meta> {
        let frame =
            self.copy_with(
                wait_limit,
                |len| if len <= buffer.len() { Ok(buffer.as_mut_ptr()) } else { Err(buffer.len()) },
            )?;
        Ok(L::meta(&frame))
    }

    /// Copies the next message to where `room` says that there is room for its length, and releases it. `Err`: there is
    /// room for this many bytes only.
    fn copy_with(
        &mut self,
        wait_limit: WaitLimit,
        mut room: impl FnMut(usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<L>> {
        let half = &mut *self.half;
        half.hot.release();
        L::copy_next(half, wait_limit, |_, len| room(len))
    }
}

impl<L: Reading> Half<Consumer<L>> {
    /// The next frame; with `WaitLimit::None` it does not wait.
    ///
    /// What is not inlined returns no frame. One that came through memory in one case and in registers in the other
    /// would go through memory in both, by loads that are wider than the stores before them: the processor cannot
    /// forward those, which costs 10 to 15 ns (docs/adr/0018).
    #[inline(always)]
    pub(crate) fn recv(&mut self, wait_limit: WaitLimit) -> Result<Frame<L>> {
        // Only where the log can move on does one call wait more than once.
        let mut deadline = None;
        loop {
            if !self.hot.has_cached_frame() {
                self.poll(wait_limit, L::MOVES_ON.then_some(&mut deadline), false)?;
            }
            match self.hot.cached_frame() {
                Ok(Some(frame)) => return Ok(frame),
                // Of a topic: the publisher has overwritten it.
                Ok(None) => self.moved_on(wait_limit, &mut deadline)?,
                Err(kind) => return Err(self.error(kind)),
            }
        }
    }

    /// Copies the next frame as [`Reading::copy_next`] says, where a frame can be read in place until it is released.
    #[inline(always)]
    pub(crate) fn copy_of_view(
        &mut self,
        wait_limit: WaitLimit,
        mut room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<L>> {
        let frame = self.recv(wait_limit)?;
        match room(frame.data, frame.len) {
            // SAFETY: the frame's bytes lie in the mapping, there is room for them, and the two do not overlap. A peer that
            // writes meanwhile makes the copy a mix of old and new bytes, not an invalid one.
            Ok(to) => unsafe { to.copy_from_nonoverlapping(frame.data, frame.len) },
            Err(room) => {
                // Nothing else is unreleased: back to `released` is back by this one.
                self.hot.go_back(self.hot.released);
                return Err(self.too_long_for(frame.len, room));
            }
        }
        self.hot.release();
        Ok(frame)
    }

    #[cold]
    pub(crate) fn too_long_for(&self, len: usize, room: usize) -> Error {
        let text = format!("a message of {len} bytes into a buffer of {room}");
        self.endpoint.with_name(Error::new(ErrorKind::TooLarge, text))
    }

    /// Gives `Ok` once a frame is there; with `WaitLimit::None` it does not wait. `deadline`: see [`poll`](Self::poll).
    pub(crate) fn wait_for_frame(
        &mut self,
        wait_limit: WaitLimit,
        deadline: Option<&mut Option<Deadline>>,
    ) -> Result<()> {
        if self.hot.has_cached_frame() { Ok(()) } else { self.poll(wait_limit, deadline, false) }
    }

    /// [`wait_for_frame`](Self::wait_for_frame) for an answer, whatever this thread has sent last.
    #[inline]
    pub(crate) fn wait_for_answer(&mut self, wait_limit: WaitLimit) -> Result<()> {
        if self.hot.has_cached_frame() { Ok(()) } else { self.poll(wait_limit, None, true) }
    }

    /// A frame was gone when it was asked for. `Ok`: the call may look again.
    #[cold]
    #[inline(never)]
    pub(crate) fn moved_on(&mut self, wait_limit: WaitLimit, deadline: &mut Option<Deadline>) -> Result<()> {
        if wait_limit == WaitLimit::None {
            if let Some(readiness) = &self.endpoint.readiness {
                // Nothing was armed, and there may be something.
                readiness.signal();
            }
            return Err(ErrorKind::Empty.into());
        }
        if self.endpoint.is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        if deadline.is_none() {
            *deadline = wait_limit.deadline();
        }
        if deadline.as_ref().is_some_and(|deadline| deadline.left().is_none()) {
            return Err(ErrorKind::TimedOut.into());
        }
        // The sender may need this processor.
        std::thread::yield_now();
        Ok(())
    }

    /// Whether `try_recv` would give a message; the same errors if not.
    #[cfg(feature = "tokio")]
    pub(crate) fn try_ready(&mut self) -> Result<()> {
        self.check()?;
        self.hot.release();
        self.wait_for_frame(WaitLimit::None, None)
    }

    /// Gives `Ok` once a frame is there. `deadline` is of a call that may come back here: it is set at the first wait.
    /// Each of the first polls [asks for the next frame's lines](Consumer::want_next_frame) if this is a wait for an `answer`, which
    /// it is also where this thread has sent something short since it last waited.
    #[inline(always)]
    fn poll(&mut self, wait_limit: WaitLimit, deadline: Option<&mut Option<Deadline>>, answer: bool) -> Result<()> {
        let mut there = self.hot.refresh();
        if matches!(there, Ok(false)) && wait_limit != WaitLimit::None && self.endpoint.waiting.polls() {
            // The first polls of the wait, here rather than in `recv_slow`: an answer that comes within a microsecond
            // does not pay for getting there and back (a round trip of 1.33 instead of 1.63 × the raw flag's,
            // docs/adr/0016).
            // Bytes to ask for. An answer is taken to be as long as what it answers.
            let sent = sent::take();
            let ahead = if sent != 0 && sent <= ANSWER_AHEAD { sent } else { u32::from(answer) };
            let mut polls = FIRST_POLLS;
            while polls != 0 {
                there = self.hot.refresh();
                if !matches!(there, Ok(false)) {
                    break;
                }
                if ahead != 0 {
                    self.hot.want_next_frame(ahead);
                }
                spin_hint();
                // Or the loop is unrolled 32 times, 1 KiB at every place where a message is received.
                polls = std::hint::black_box(polls - 1);
            }
        }
        if matches!(there, Ok(true)) { Ok(()) } else { self.recv_slow(wait_limit, deadline) }
    }

    #[cold]
    #[inline(never)]
    fn recv_slow(&mut self, wait_limit: WaitLimit, deadline: Option<&mut Option<Deadline>>) -> Result<()> {
        self.check()?;
        if let Some(pending) = L::take_pending(&mut self.hot) {
            return Err(pending);
        }
        let until = match deadline {
            Some(kept) => {
                if kept.is_none() {
                    *kept = wait_limit.deadline();
                }
                *kept
            }
            None => wait_limit.deadline(),
        };
        self.wait(until, Consumer::<L>::has_frame)
    }
}

impl<L: Log> Drop for Receiver<L> {
    fn drop(&mut self) {
        // On a pair only a close tells.
        if self.abandoned && !matches!(self.half.endpoint.attachment.link, Link::None) {
            return;
        }
        self.half.close();
    }
}
