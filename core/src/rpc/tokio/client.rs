//! A client for tasks: of those who wait one leads, receives for all, and is woken by the descriptors; the others are woken by it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::io::unix::AsyncFd;
use ::tokio::time::{Sleep, sleep};

use crate::facts::{METHOD_DESCRIBE, METHOD_PING};
use crate::rpc::client::crew::{Core, State, unlock};
use crate::rpc::client::lead::Crew;
use crate::rpc::client::no_such_call;
use crate::rpc::{self, CallError, CallOptions, CallResult, MethodInfo, Reply, Taken};
use crate::tokio::{Fd, failed, watch};
use crate::{ErrorKind, Result};

/// An RPC client for tasks. Clones are the same client; any number of tasks use it at a time.
///
/// Its futures are cancellation safe: dropping one cancels its call, and tells the server at once. Of the tasks that wait one
/// receives for all: a task that never yields after it was woken keeps the others waiting, as it does everything else in its
/// runtime.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use ramway::rpc::CallOptions;
/// use std::time::Duration;
///
/// let client = tokio::task::spawn_blocking(|| ramway::rpc::Client::connect("store")).await??;
/// let client = ramway::rpc::tokio::Client::new(client)?;
/// let (one, two) = (client.start(7, b"one")?, client.start(7, b"two")?);
/// println!("{:?}, {:?}", one.await?.body(), two.await?.body());
/// let options = CallOptions::new().timeout(Duration::from_millis(5));
/// println!("{:?}", client.call_with(7, b"key", &options).await?.body());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    /// Of this clone, once it has waited for a place for a call.
    ticket: Option<u64>,
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), ticket: None }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.core.leave(ticket);
        }
    }
}

#[derive(Debug)]
struct Shared {
    // Before the ends: tokio releases the descriptors by their numbers.
    replies: AsyncFd<Fd>,
    room: AsyncFd<Fd>,
    core: Core,
}

impl Client {
    /// Takes a client into the current runtime. Calls that are under way are cancelled. Connecting blocks:
    /// `tokio::task::spawn_blocking` is the place for that.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`](crate::Receiver::readiness).
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled. A call with a time limit also needs time enabled.
    pub fn new(client: rpc::Client) -> Result<Self> {
        let mut raw = client.into_raw();
        let room = watch(raw.tx.readiness()?)?;
        let replies = watch(raw.rx.readiness()?)?;
        let shared = Arc::new(Shared { replies, room, core: Core::new(raw) });
        Ok(Self { shared, ticket: None })
    }

    /// As [`rpc::Client::call`](crate::rpc::Client::call).
    ///
    /// # Errors
    /// As there.
    pub async fn call(&self, method: u32, body: &[u8]) -> CallResult<Reply> {
        self.start(method, body)?.await
    }

    /// As [`rpc::Client::call_with`](crate::rpc::Client::call_with).
    ///
    /// # Errors
    /// As there.
    pub async fn call_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Reply> {
        self.start_with(method, body, options)?.await
    }

    /// Sends a request and gives the call that is under way, which is a future of its reply. The call is made at once, whether or
    /// not it is polled; what cannot be sent yet is sent as soon as some task waits for this client.
    ///
    /// # Errors
    /// As for [`rpc::Client::start`](crate::rpc::Client::start).
    pub fn start(&self, method: u32, body: &[u8]) -> CallResult<Pending> {
        self.start_with(method, body, &CallOptions::new())
    }

    /// [`start`](Self::start) with a time limit or metadata.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Pending> {
        self.under_way(method, body, options, false).map(Pending)
    }

    /// Sends a request whose reply is a stream.
    ///
    /// # Errors
    /// As for [`rpc::Client::start`](crate::rpc::Client::start).
    pub fn stream(&self, method: u32, body: &[u8]) -> CallResult<Stream> {
        self.stream_with(method, body, &CallOptions::new())
    }

    /// [`stream`](Self::stream) with a window, a time limit (of the whole stream) or metadata.
    ///
    /// # Errors
    /// As for [`rpc::Client::stream_with`](crate::rpc::Client::stream_with).
    pub fn stream_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Stream> {
        self.under_way(method, body, options, true).map(Stream)
    }

    fn under_way(&self, method: u32, body: &[u8], options: &CallOptions<'_>, stream: bool) -> CallResult<UnderWay> {
        let number = self.shared.core.start(method, body, options, stream)?;
        // The ledger decides; this only has the task polled then.
        let timer = options.timeout.map(|timeout| Box::pin(sleep(timeout)));
        Ok(UnderWay { number: Some(number), timer, shared: self.shared.clone() })
    }

    /// Waits until a call that is made now is sent at once, as far as the server's limit and the calls before it go. At once
    /// where the connection is over: a call says how it ended. Others may take the place first.
    ///
    /// # Errors
    /// `Detached`.
    pub async fn ready(&mut self) -> CallResult<()> {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// [`ready`](Self::ready) for futures made by hand. One task at a time: clones are for others.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<CallResult<()>> {
        let ticket = *self.ticket.get_or_insert_with(|| self.shared.core.ticket());
        let is_ready = |_: &Core, guard: &mut MutexGuard<'_, State>| {
            (guard.ledger.sends_at_once() || guard.ledger.check().is_err()).then_some(())
        };
        self.shared.poll(cx, ticket, is_ready)
    }

    /// As [`rpc::Client::ping`](crate::rpc::Client::ping).
    ///
    /// # Errors
    /// As there.
    pub async fn ping(&self) -> CallResult<()> {
        self.call(METHOD_PING, &[]).await.map(drop)
    }

    /// As [`rpc::Client::describe`](crate::rpc::Client::describe).
    ///
    /// # Errors
    /// As there.
    pub async fn describe(&self) -> CallResult<Vec<MethodInfo>> {
        MethodInfo::parse(self.call(METHOD_DESCRIBE, &[]).await?.body())
    }

    /// How many calls the server lets this client have in flight.
    pub fn max_in_flight(&self) -> u32 {
        self.shared.core.max_in_flight()
    }

    /// How many calls are sent and have no final reply, by what was received so far.
    pub fn in_flight(&self) -> usize {
        self.shared.core.in_flight()
    }

    /// The server's user when the connection was made.
    pub fn peer_uid(&self) -> u32 {
        self.shared.core.peer().uid
    }

    /// The server's process when the connection was made; `None` if it has no number in our PID namespace.
    pub fn peer_pid(&self) -> Option<u32> {
        self.shared.core.peer().pid
    }

    /// Ends all calls of all clones: those under way end with `Closed`. The connection itself ends when the last clone and
    /// the last call are dropped.
    ///
    /// # Errors
    /// `Detached` if it was closed before.
    pub fn close(&self) -> Result<()> {
        // Not the ends: tokio polls their descriptors as long as this lives.
        self.shared.core.end()
    }
}

#[derive(Debug)]
struct UnderWay {
    /// `None` once the outcome was taken.
    number: Option<u64>,
    timer: Option<Pin<Box<Sleep>>>,
    shared: Arc<Shared>,
}

/// Rounds of receiving in one poll, each of many frames, before other tasks of the runtime are let go on.
const ROUNDS: u32 = 8;

impl Shared {
    /// Waits as `ticket`, receiving for all if nobody else does, until `look` gives something.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        ticket: u64,
        mut look: impl FnMut(&Core, &mut MutexGuard<'_, State>) -> Option<T>,
    ) -> Poll<CallResult<T>> {
        let Self { replies, room, core } = self;
        if core.is_detached() {
            return Poll::Ready(Err(CallError::of_error(ErrorKind::Detached.into(), true)));
        }
        for _ in 0..ROUNDS {
            let mut guard = core.lock();
            guard.lead.unregister(ticket);
            let leads = guard.lead.take(ticket);
            let more = leads && guard.progress();
            if let Some(found) = look(core, &mut guard) {
                guard.lead.give_up(ticket);
                let next = guard.lead.next();
                unlock(guard);
                if let Some(next) = next {
                    next.wake();
                }
                return Poll::Ready(Ok(found));
            }
            let blocked = guard.blocked.is_some();
            // The leader, too: another task may end its call, or find no room.
            guard.lead.register(ticket, cx.waker().clone());
            unlock(guard);
            if !leads {
                return Poll::Pending;
            }
            if more {
                continue;
            }
            // What tokio remembers of earlier events is forgotten before the next round, which arms the descriptors.
            let mut again = false;
            for fd in [Some(replies), blocked.then_some(room)].into_iter().flatten() {
                match fd.poll_read_ready(cx) {
                    Poll::Ready(Ok(mut event)) => {
                        event.clear_ready();
                        again = true;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(CallError::of_error(failed(error), true))),
                    Poll::Pending => {}
                }
            }
            if !again {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl UnderWay {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Taken> {
        let Some(call) = self.number else {
            return Poll::Ready(Taken::End(Err(no_such_call())));
        };
        // Registers this task for the time limit; whether it has passed the ledger says.
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            self.timer = None;
        }
        let taken = ready!(self.shared.poll(cx, call, |core, guard| {
            core.is_done(guard, call).then(|| {
                let taken = guard.ledger.take(call);
                if let Taken::Element(_) = taken {
                    guard.send_due();
                }
                taken
            })
        }));
        match taken {
            Ok(Taken::End(outcome)) => {
                self.number = None;
                Poll::Ready(Taken::End(outcome))
            }
            Ok(taken) => Poll::Ready(taken),
            Err(error) => Poll::Ready(Taken::End(Err(error))),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(call) = self.number {
            self.shared.core.leave(call);
        }
    }
}

/// A call that is under way: a future of its reply. Dropping it cancels the call.
#[derive(Debug)]
#[must_use = "dropping a call cancels it"]
pub struct Pending(UnderWay);

impl Pending {
    /// Cancels the call, as dropping it does.
    pub fn cancel(self) {}
}

impl Future for Pending {
    type Output = CallResult<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallResult<Reply>> {
        loop {
            if let Taken::End(outcome) = ready!(self.0.poll(cx)) {
                return Poll::Ready(outcome);
            }
        }
    }
}

/// A call whose reply is a stream: a [`futures_core::Stream`] of its elements. It ends after an error. Dropping it cancels the
/// call.
#[derive(Debug)]
#[must_use = "dropping a stream cancels its call"]
pub struct Stream(UnderWay);

impl Stream {
    /// The next element; `None`: the stream is complete, or an error was given. If the future is dropped before it is done, nothing
    /// was taken.
    ///
    /// # Errors
    /// How the call ended: what was received before comes first.
    pub async fn next(&mut self) -> Option<CallResult<Reply>> {
        poll_fn(|cx| self.poll_element(cx)).await
    }

    /// [`next`](Self::next) for at most `timeout`; `Poll::Pending` if the time has passed. The stream goes on then.
    pub async fn next_timeout(&mut self, timeout: Duration) -> Poll<Option<CallResult<Reply>>> {
        match ::tokio::time::timeout(timeout, self.next()).await {
            Ok(next) => Poll::Ready(next),
            Err(_) => Poll::Pending,
        }
    }

    /// Cancels the call, as dropping it does.
    pub fn cancel(self) {}

    fn poll_element(&mut self, cx: &mut Context<'_>) -> Poll<Option<CallResult<Reply>>> {
        if self.0.number.is_none() {
            return Poll::Ready(None);
        }
        loop {
            match ready!(self.0.poll(cx)) {
                Taken::Element(element) => return Poll::Ready(Some(Ok(element))),
                Taken::End(Ok(_)) => return Poll::Ready(None),
                Taken::End(Err(error)) => return Poll::Ready(Some(Err(error))),
                Taken::NotYet => {}
            }
        }
    }
}

impl futures_core::Stream for Stream {
    type Item = CallResult<Reply>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallResult<Reply>>> {
        self.poll_element(cx)
    }
}
