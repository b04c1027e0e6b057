//! Rings, topics and regions for [tokio] (feature `tokio`): built on their [readiness descriptors](crate::Readiness),
//! so a waiting handle costs neither a thread nor a timer.
//!
//! Make them inside a runtime with I/O enabled. A handle wakes the task that polled it last. All futures are
//! cancellation safe: one that is dropped before it is done has neither sent nor taken anything.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> ramway::Result<()> {
//! use ramway::tokio::{AsyncReceiver, AsyncSender};
//!
//! let (tx, rx) = ramway::Ring::pair(4096)?;
//! let (mut tx, mut rx) = (AsyncSender::new(tx)?, AsyncReceiver::new(rx)?);
//! tokio::spawn(async move { tx.send(1, b"hello").await });
//! assert_eq!(&*rx.recv().await?, b"hello");
//! assert_eq!(rx.recv().await.unwrap_err().kind(), ramway::ErrorKind::Closed);
//! # Ok(()) }
//! ```

use std::future::poll_fn;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use futures_core::Stream;
use futures_sink::Sink;

use crate::error::{Error, ErrorKind, Result};
use crate::ring::Ring;
use crate::ring::log::Log;
use crate::ring::raw::WaitLimit;
use crate::tensor::{Dtype, Plan};
use crate::{Batch, Message, OwnedMessage, Readiness, Receiver, Region, Sender, Slot, TensorSlot};

/// A readiness descriptor that stays its handle's. Goes before the handle does: tokio releases it by its number.
#[derive(Debug)]
pub(crate) struct Fd(pub(crate) RawFd);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

#[allow(deprecated, reason = "its safe successor is not there yet; `Fd` stays open for as long as it is registered")]
pub(crate) fn watch(readiness: &Readiness) -> Result<AsyncFd<Fd>> {
    AsyncFd::with_interest(Fd(readiness.as_raw_fd()), Interest::READABLE).map_err(failed)
}

pub(crate) fn failed(error: std::io::Error) -> Error {
    Error::os(error.raw_os_error().unwrap_or(libc::EIO), "polling a readiness descriptor in tokio")
}

/// Calls `attempt` until it says something else than `nothing`. Each time it does say so the descriptor is armed, and
/// what tokio remembers of earlier events is forgotten *before* the next attempt, so that no later one is.
fn poll_until<T>(
    fd: &AsyncFd<Fd>,
    cx: &mut Context<'_>,
    nothing: ErrorKind,
    mut attempt: impl FnMut() -> Result<T>,
) -> Poll<Result<T>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == nothing => {}
            outcome => return Poll::Ready(outcome),
        }
        match ready!(fd.poll_read_ready(cx)) {
            Ok(mut event) => event.clear_ready(),
            Err(error) => return Poll::Ready(Err(failed(error))),
        }
    }
}

/// Waits for a living peer: `attempt` gives what one check says, and the peer's epoch after it. A peer that attached between two
/// attempts ends the wait, also if it is gone again: where there is one peer, whose epoch was `before`.
async fn until_peer(
    fd: &AsyncFd<Fd>,
    before: Option<u32>,
    mut attempt: impl FnMut() -> (Result<u32>, u32),
) -> Result<u32> {
    poll_fn(|cx| {
        poll_until(fd, cx, ErrorKind::Empty, || match attempt() {
            (Err(error), now) if error.kind() == ErrorKind::Empty && before.is_some_and(|before| now != before) => {
                Ok(now)
            }
            (outcome, _) => outcome,
        })
    })
    .await
}

/// A [`Receiver`] for tasks, or a [`Subscriber`](crate::Subscriber): `AsyncReceiver<Topic>`. As a [`Stream`] it gives copies
/// of the messages and ends when the sender closes, or after an error other than `Lagged`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-tokio-topic-{}", std::process::id());
/// use ramway::Topic;
/// use ramway::tokio::{AsyncReceiver, AsyncSender};
///
/// let mut publisher = AsyncSender::new(Topic::create(&name).publisher()?)?;
/// let mut subscriber = AsyncReceiver::new(Topic::open(&name).subscriber()?)?;
/// publisher.send(1, b"to all").await?;
/// assert_eq!(subscriber.recv().await?.seq(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AsyncReceiver<L: Log = Ring> {
    fd: AsyncFd<Fd>,
    receiver: Receiver<L>,
    /// The stream has ended.
    done: bool,
}

impl<L: Log> AsyncReceiver<L> {
    /// Takes a receiver into the current runtime.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, as all of tokio's I/O does.
    pub fn new(mut receiver: Receiver<L>) -> Result<Self> {
        let fd = watch(receiver.readiness()?)?;
        Ok(Self { fd, receiver, done: false })
    }

    /// The next message, as [`Receiver::recv`].
    ///
    /// # Errors
    /// As for [`Receiver::recv`].
    pub async fn recv(&mut self) -> Result<Message<'_, L>> {
        let frame = loop {
            self.readable().await?;
            match self.receiver.half.recv(WaitLimit::None) {
                // Of a topic: overwritten since.
                Err(gone) if gone.kind() == ErrorKind::Empty => {}
                outcome => break outcome?,
            }
        };
        Ok(Message { frame, hot: &mut self.receiver.half.hot })
    }

    /// Up to `max` messages, at least one, as [`Receiver::recv_batch`].
    ///
    /// # Errors
    /// As for [`Receiver::recv_batch`].
    pub async fn recv_batch(&mut self, max: usize) -> Result<Batch<'_, L>> {
        if max == 0 {
            return self.receiver.try_recv_batch(max);
        }
        let first = loop {
            self.readable().await?;
            match self.receiver.half.recv(WaitLimit::None) {
                // As in `recv`.
                Err(gone) if gone.kind() == ErrorKind::Empty => {}
                outcome => break outcome?,
            }
        };
        Ok(self.receiver.batch_of(first, max))
    }

    /// Copies the next message, as [`Receiver::recv_into`].
    ///
    /// # Errors
    /// As for [`Receiver::recv_into`].
    pub async fn recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<L::Meta> {
        loop {
            self.readable().await?;
            match self.receiver.try_recv_into(buffer) {
                // As in `recv`.
                Err(gone) if gone.kind() == ErrorKind::Empty => {}
                outcome => return outcome,
            }
        }
    }

    /// Waits until [`Receiver::try_recv`] would give a message.
    ///
    /// # Errors
    /// As for [`Receiver::recv`].
    pub async fn readable(&mut self) -> Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// Waits until a living sender is attached, as [`Receiver::wait_for_peer`]; gives its epoch.
    ///
    /// # Errors
    /// As for [`Receiver::wait_for_peer`].
    pub async fn wait_for_peer(&mut self) -> Result<u32> {
        let Self { fd, receiver, .. } = self;
        let before = Some(receiver.peer_epoch());
        until_peer(fd, before, || (receiver.half.wait_for_peer(WaitLimit::None), receiver.peer_epoch())).await
    }

    /// [`readable`](Self::readable) for futures made by hand.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let receiver = &mut self.receiver;
        poll_until(&self.fd, cx, ErrorKind::Empty, || receiver.half.try_ready())
    }

    /// The receiver, for everything that does not wait.
    pub fn get_mut(&mut self) -> &mut Receiver<L> {
        &mut self.receiver
    }

    /// Takes the receiver out of the runtime.
    pub fn into_inner(self) -> Receiver<L> {
        self.receiver
    }
}

impl<L: Log> Stream for AsyncReceiver<L> {
    type Item = Result<L::Owned>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let mut data = Vec::new();
        let copied = loop {
            match ready!(self.poll_readable(cx)) {
                Ok(()) => match self.receiver.try_recv_into(&mut data) {
                    // As in `recv`.
                    Err(gone) if gone.kind() == ErrorKind::Empty => {}
                    copied => break copied,
                },
                Err(end) => break Err(end),
            }
        };
        Poll::Ready(match copied {
            Ok(meta) => Some(Ok(L::owned(meta, data))),
            Err(end) => {
                self.done = end.kind() != ErrorKind::Lagged;
                (end.kind() != ErrorKind::Closed).then_some(Err(end))
            }
        })
    }
}

/// A [`Sender`] for tasks, or a [`Publisher`](crate::Publisher): `AsyncSender<Topic>`. As a [`Sink`] it takes messages by
/// value; closing the sink closes the sender.
#[derive(Debug)]
pub struct AsyncSender<L: Log = Ring> {
    /// `None` once the sink was closed.
    open: Option<Open<L>>,
    /// What the sink has taken and not yet sent, because the ring was full.
    pending: Option<OwnedMessage>,
}

#[derive(Debug)]
struct Open<L: Log> {
    fd: AsyncFd<Fd>,
    sender: Sender<L>,
}

impl<L: Log> Open<L> {
    fn poll_send(&mut self, cx: &mut Context<'_>, type_id: u32, tag: u64, payload: &[u8]) -> Poll<Result<()>> {
        poll_until(&self.fd, cx, ErrorKind::Full, || self.sender.try_send_tagged(type_id, tag, payload))
    }
}

impl<L: Log> AsyncSender<L> {
    /// Takes a sender into the current runtime.
    ///
    /// # Errors
    /// As for [`Sender::readiness`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, as all of tokio's I/O does.
    pub fn new(mut sender: Sender<L>) -> Result<Self> {
        let fd = watch(sender.readiness()?)?;
        Ok(Self { open: Some(Open { fd, sender }), pending: None })
    }

    /// Sends a message, waiting for room as long as it takes. If the future is dropped before it is done, nothing was
    /// sent.
    ///
    /// # Errors
    /// As for [`Sender::send`].
    pub async fn send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.send_tagged(type_id, 0, payload).await
    }

    /// [`send`](Self::send) with a tag.
    ///
    /// # Errors
    /// As for [`Sender::send`].
    pub async fn send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        poll_fn(|cx| self.poll_pending(cx)).await?;
        poll_fn(|cx| self.open()?.poll_send(cx, type_id, tag, payload)).await
    }

    /// Waits until a living receiver is attached (of a topic: a reliable subscriber), as [`Sender::wait_for_peer`]; gives its
    /// epoch.
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`].
    pub async fn wait_for_peer(&mut self) -> Result<u32> {
        let Open { fd, sender } = self.open()?;
        // A topic's epoch counts all who come and go, also those whom nobody waits for.
        let before = (!L::MOVES_ON).then(|| sender.peer_epoch());
        until_peer(fd, before, || (sender.half.wait_for_peer(WaitLimit::None), sender.peer_epoch())).await
    }

    /// Reserves room for a message to be written in place, as [`Sender::reserve`].
    ///
    /// # Errors
    /// As for [`Sender::reserve`].
    pub async fn reserve(&mut self, len: usize) -> Result<Slot<'_, L>> {
        poll_fn(|cx| self.poll_pending(cx)).await?;
        poll_fn(|cx| {
            let Open { fd, sender } = self.open()?;
            poll_until(fd, cx, ErrorKind::Full, || sender.try_reserve(len).map(drop))
        })
        .await?;
        self.open()?.sender.try_reserve(len)
    }

    /// Reserves room for a tensor to be written in place, as [`Sender::reserve_tensor`].
    ///
    /// # Errors
    /// As for [`Sender::reserve_tensor`].
    pub async fn reserve_tensor(&mut self, dtype: Dtype, shape: &[u64]) -> Result<TensorSlot<'_, L>> {
        let room = Plan::new(dtype, shape)?.room();
        // A tensor's slot is dropped as any other: nothing is left of it.
        drop(self.reserve(room).await?);
        self.open()?.sender.try_reserve_tensor(dtype, shape)
    }

    /// The sender, for everything that does not wait.
    ///
    /// # Errors
    /// `Detached` once the sink was closed.
    pub fn get_mut(&mut self) -> Result<&mut Sender<L>> {
        Ok(&mut self.open()?.sender)
    }

    /// Takes the sender out of the runtime; `None` once the sink was closed. What the sink has taken and not yet
    /// sent is lost: flush it first.
    pub fn into_inner(self) -> Option<Sender<L>> {
        self.open.map(|open| open.sender)
    }

    fn open(&mut self) -> Result<&mut Open<L>> {
        self.open.as_mut().ok_or_else(|| ErrorKind::Detached.into())
    }

    /// Sends what the sink could not.
    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(message) = self.pending.take() {
            let sent = self.open()?.poll_send(cx, message.type_id, message.tag, &message.data);
            if sent.is_pending() {
                self.pending = Some(message);
                return Poll::Pending;
            }
            return sent;
        }
        Poll::Ready(Ok(()))
    }
}

impl<L: Log> Sink<OwnedMessage> for AsyncSender<L> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.open()?;
        self.poll_pending(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: OwnedMessage) -> Result<()> {
        if self.pending.is_some() {
            let text = "start_send before poll_ready said that there is room for another message";
            return Err(Error::new(ErrorKind::Busy, text));
        }
        match self.open()?.sender.try_send_tagged(message.type_id, message.tag, &message.data) {
            Err(full) if full.kind() == ErrorKind::Full => {
                self.pending = Some(message);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_pending(cx))?;
        Poll::Ready(self.open()?.sender.flush())
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.poll_pending(cx))?;
        // Out of tokio first, then closed: the descriptor's number is somebody else's after that.
        Poll::Ready(self.open.take().map_or(Ok(()), |Open { fd, sender }| {
            drop(fd);
            sender.close()
        }))
    }
}

/// A [`Region`] for tasks.
#[derive(Debug)]
pub struct AsyncRegion {
    fd: AsyncFd<Fd>,
    region: Region,
}

impl AsyncRegion {
    /// Takes a region into the current runtime.
    ///
    /// # Errors
    /// As for [`Region::readiness`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, as all of tokio's I/O does.
    pub fn new(region: Region) -> Result<Self> {
        let fd = watch(region.readiness()?)?;
        Ok(Self { fd, region })
    }

    /// Waits until somebody notifies, as [`Region::wait`]. One task at a time: those who wait on one handle share what
    /// it has seen.
    ///
    /// # Errors
    /// As for [`Region::wait`].
    pub async fn wait(&self) -> Result<()> {
        while !self.region.try_wait()? {
            self.fd.readable().await.map_err(failed)?.clear_ready();
        }
        Ok(())
    }

    /// The region, for everything that does not wait.
    pub fn get_ref(&self) -> &Region {
        &self.region
    }

    /// Takes the region out of the runtime.
    pub fn into_inner(self) -> Region {
        self.region
    }
}
