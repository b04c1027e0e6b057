//! A client that many threads use.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::crew::Core;
use super::ledger::{Taken, no_such_call};
use super::raw::RawClient;
use super::reply::{CallOptions, MethodInfo, Reply};
use crate::Result;
use crate::facts::{METHOD_DESCRIBE, METHOD_PING};
use crate::rpc::CallResult;

/// A client that many threads use at a time: made by [`Client::shared`](super::Client::shared). Clones are the same client.
///
/// Of those who wait for replies one receives, for all; it sleeps once and wakes the others. So a call costs one wake-up, or
/// two. Nothing is received while nobody waits.
///
/// ```no_run
/// # fn main() -> ramway::Result<()> {
/// let client = ramway::rpc::Client::connect("store")?.shared();
/// std::thread::scope(|scope| {
///     for key in [b"a", b"b"] {
///         let client = client.clone();
///         scope.spawn(move || println!("{:?}", client.call(7, key)));
///     }
/// });
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SharedClient {
    core: Arc<Core>,
}

impl SharedClient {
    pub(crate) fn new(raw: RawClient) -> Self {
        Self { core: Arc::new(Core::new(raw)) }
    }

    /// As [`Client::call`](super::Client::call).
    ///
    /// # Errors
    /// As there.
    pub fn call(&self, method: u32, body: &[u8]) -> CallResult<Reply> {
        self.call_with(method, body, &CallOptions::new())
    }

    /// As [`Client::call_with`](super::Client::call_with).
    ///
    /// # Errors
    /// As there.
    pub fn call_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Reply> {
        self.start_with(method, body, options)?.wait()
    }

    /// As [`Client::start`](super::Client::start).
    ///
    /// # Errors
    /// As there.
    pub fn start(&self, method: u32, body: &[u8]) -> CallResult<SharedPending> {
        self.start_with(method, body, &CallOptions::new())
    }

    /// As [`Client::start_with`](super::Client::start_with).
    ///
    /// # Errors
    /// As there.
    pub fn start_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<SharedPending> {
        let number = self.core.start(method, body, options, false)?;
        Ok(SharedPending(Owned { number: Some(number), core: self.core.clone() }))
    }

    /// As [`Client::stream`](super::Client::stream).
    ///
    /// # Errors
    /// As there.
    pub fn stream(&self, method: u32, body: &[u8]) -> CallResult<SharedStream> {
        self.stream_with(method, body, &CallOptions::new())
    }

    /// As [`Client::stream_with`](super::Client::stream_with).
    ///
    /// # Errors
    /// As there.
    pub fn stream_with(&self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<SharedStream> {
        let number = self.core.start(method, body, options, true)?;
        Ok(SharedStream(Owned { number: Some(number), core: self.core.clone() }))
    }

    /// As [`Client::ping`](super::Client::ping).
    ///
    /// # Errors
    /// As there.
    pub fn ping(&self) -> CallResult<()> {
        self.call(METHOD_PING, &[]).map(drop)
    }

    /// As [`Client::ping_with`](super::Client::ping_with).
    ///
    /// # Errors
    /// As there.
    pub fn ping_with(&self, options: &CallOptions<'_>) -> CallResult<()> {
        self.call_with(METHOD_PING, &[], options).map(drop)
    }

    /// As [`Client::describe`](super::Client::describe).
    ///
    /// # Errors
    /// As there.
    pub fn describe(&self) -> CallResult<Vec<MethodInfo>> {
        self.describe_with(&CallOptions::new())
    }

    /// As [`Client::describe_with`](super::Client::describe_with).
    ///
    /// # Errors
    /// As there.
    pub fn describe_with(&self, options: &CallOptions<'_>) -> CallResult<Vec<MethodInfo>> {
        MethodInfo::parse(self.call_with(METHOD_DESCRIBE, &[], options)?.body())
    }

    /// How many calls the server lets this client have in flight.
    pub fn max_in_flight(&self) -> u32 {
        self.core.max_in_flight()
    }

    /// How many calls are sent and have no final reply, by what was received so far. 0 in a fork's child.
    pub fn in_flight(&self) -> usize {
        self.core.in_flight()
    }

    /// The server's user when the connection was made.
    pub fn peer_uid(&self) -> u32 {
        self.core.peer().uid
    }

    /// The server's process when the connection was made; `None` if it has no number in our PID namespace.
    pub fn peer_pid(&self) -> Option<u32> {
        self.core.peer().pid
    }

    /// The longest request: its metadata, rounded up to 16 bytes, and its body together.
    pub fn max_request_len(&self) -> usize {
        self.core.max_len() - crate::facts::RPC_HEADER
    }

    /// Ends the connection, for all clones: calls under way end with `Closed`, and the server cancels them. The connection ends
    /// also when the last clone and the last call are dropped.
    ///
    /// # Errors
    /// What the connection was already dead of; `Detached` if it was closed before.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// For bindings: a call by its number.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    #[doc(hidden)]
    pub fn raw_start(&self, method: u32, body: &[u8], options: &CallOptions<'_>, stream: bool) -> CallResult<u64> {
        self.core.start(method, body, options, stream)
    }

    /// For bindings: waits until there is something to be taken; false if the time has passed. One waits for a call at a time.
    ///
    /// # Errors
    /// `Detached`.
    #[doc(hidden)]
    pub fn raw_wait(&self, call: u64, timeout: Option<Duration>) -> CallResult<bool> {
        self.core.wait(call, timeout)
    }

    /// For bindings: what has come for a call. After its end the number means nothing.
    #[doc(hidden)]
    pub fn raw_take(&self, call: u64) -> Taken {
        self.core.take(call)
    }

    /// For bindings: receives what is there, unless somebody waits for it, and tells the server what is to be told. Never waits.
    #[doc(hidden)]
    pub fn raw_progress(&self) {
        self.core.progress();
    }

    /// For bindings: lets go of a call.
    #[doc(hidden)]
    pub fn raw_cancel(&self, call: u64) {
        self.core.let_go(call);
    }
}

#[derive(Debug)]
struct Owned {
    /// `None` once the outcome was taken.
    number: Option<u64>,
    core: Arc<Core>,
}

impl Owned {
    fn take(&mut self, timeout: Option<Duration>) -> CallResult<Taken> {
        let Some(number) = self.number else { return Err(no_such_call()) };
        self.core.wait(number, timeout)?;
        let taken = self.core.take(number);
        if let Taken::End(_) = taken {
            self.number = None;
        }
        Ok(taken)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.core.let_go(number);
        }
    }
}

/// A call of a [`SharedClient`] that is under way. Dropping it cancels the call and tells the server at once.
#[derive(Debug)]
#[must_use = "dropping a call cancels it"]
pub struct SharedPending(Owned);

impl SharedPending {
    /// Waits for the reply, as long as it takes: the call's own time limit ends the wait.
    ///
    /// # Errors
    /// How the call ended, as for [`Client::call`](super::Client::call).
    pub fn wait(mut self) -> CallResult<Reply> {
        loop {
            if let Taken::End(outcome) = self.0.take(None)? {
                return outcome;
            }
        }
    }

    /// [`wait`](Self::wait) for at most `timeout`; `Poll::Pending` if the time has passed. The call goes on then.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Poll<CallResult<Reply>> {
        match self.0.take(Some(timeout)) {
            Ok(Taken::End(outcome)) => Poll::Ready(outcome),
            Ok(_) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The reply if it is there. Never waits but for the lock.
    pub fn poll(&mut self) -> Poll<CallResult<Reply>> {
        self.wait_timeout(Duration::ZERO)
    }

    /// Cancels the call, as dropping it does.
    pub fn cancel(self) {}
}

/// A call of a [`SharedClient`] whose reply is a stream. Dropping it cancels the call and tells the server at once.
#[derive(Debug)]
#[must_use = "dropping a stream cancels its call"]
pub struct SharedStream(Owned);

impl SharedStream {
    /// As [`Stream::next_timeout`](super::Stream::next_timeout).
    pub fn next_timeout(&mut self, timeout: Duration) -> Poll<Option<CallResult<Reply>>> {
        self.take(Some(timeout))
    }

    /// As [`Stream::try_next`](super::Stream::try_next).
    pub fn try_next(&mut self) -> Poll<Option<CallResult<Reply>>> {
        self.take(Some(Duration::ZERO))
    }

    /// Cancels the call, as dropping it does.
    pub fn cancel(self) {}

    fn take(&mut self, timeout: Option<Duration>) -> Poll<Option<CallResult<Reply>>> {
        if self.0.number.is_none() {
            return Poll::Ready(None);
        }
        match self.0.take(timeout) {
            Ok(Taken::Element(element)) => Poll::Ready(Some(Ok(element))),
            Ok(Taken::End(Ok(_))) => Poll::Ready(None),
            Ok(Taken::End(Err(error))) | Err(error) => Poll::Ready(Some(Err(error))),
            Ok(Taken::NotYet) => Poll::Pending,
        }
    }
}

/// The elements, each waited for as long as it takes. After an error, or where the stream is complete, there is nothing more.
impl Iterator for SharedStream {
    type Item = CallResult<Reply>;

    fn next(&mut self) -> Option<CallResult<Reply>> {
        loop {
            if let Poll::Ready(next) = self.take(None) {
                return next;
            }
        }
    }
}
