//! Calls that are under way, as their owner holds them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::Client;
use super::ledger::{Taken, no_such_call};
use super::reply::Reply;
use crate::rpc::{CallError, CallResult};
use crate::{Error, ErrorKind};

/// Calls whose owners let go of them without their client at hand. Of one client; also what tells its calls from another's.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Whether there are any.
    any: AtomicBool,
    calls: Mutex<Vec<u64>>,
}

impl Dropped {
    fn add(&self, call: u64) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        // Relaxed: who drops a call and who then uses the client have their own order, or none.
        self.any.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn take(&self) -> Vec<u64> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut calls)
    }
}

/// The number of a call, which is let go of when this is dropped.
#[derive(Debug)]
struct Owned {
    /// `None` once the outcome was taken.
    number: Option<u64>,
    home: Arc<Dropped>,
}

impl Owned {
    /// The number, if the call is this client's and under way.
    fn of(&self, client: &Client) -> CallResult<u64> {
        if !Arc::ptr_eq(&self.home, &client.dropped) {
            let text = "this call was made by another client: wait for it with that one";
            return Err(CallError::of_error(Error::new(ErrorKind::InvalidArgument, text), false));
        }
        self.number.ok_or_else(no_such_call)
    }

    /// Waits for at most `timeout`; what has come.
    fn take(&mut self, client: &mut Client, timeout: Option<Duration>) -> CallResult<Taken> {
        let number = self.of(client)?;
        client.cancel_dropped();
        client.raw.wait(number, timeout).map_err(|e| CallError::of_error(e, true))?;
        let taken = client.raw.take(number);
        if let Taken::End(_) = taken {
            self.number = None;
        }
        Ok(taken)
    }

    fn cancel(&mut self, client: &mut Client) {
        if let Ok(number) = self.of(client) {
            self.number = None;
            client.raw.cancel(number);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.home.add(number);
        }
    }
}

/// A call that is under way: made by [`Client::start`]. There may be any number of them at a time.
///
/// Dropping it cancels the call: the server is told by the client's next call, or by [`Client::progress`].
/// [`cancel`](Self::cancel) tells it at once.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut client = ramway::rpc::Client::connect("store")?;
/// let first = client.start(7, b"one")?;
/// let second = client.start(7, b"two")?;
/// println!("{:?}, {:?}", second.wait(&mut client)?.body(), first.wait(&mut client)?.body());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping a call cancels it"]
pub struct Pending(Owned);

impl Pending {
    pub(super) fn new(number: u64, client: &Client) -> Self {
        Self(Owned { number: Some(number), home: client.dropped.clone() })
    }

    /// Waits for the reply, as long as it takes: the call's own time limit ends the wait.
    ///
    /// # Errors
    /// How the call ended, as for [`Client::call`]. `InvalidArgument` with another client than the call's, or if the outcome was
    /// taken before. `Interrupted`: the call goes on, but this was its only handle, so it is cancelled.
    pub fn wait(mut self, client: &mut Client) -> CallResult<Reply> {
        loop {
            match self.0.take(client, None)? {
                Taken::End(outcome) => return outcome,
                Taken::NotYet | Taken::Element(_) => {}
            }
        }
    }

    /// [`wait`](Self::wait) for at most `timeout`; `Poll::Pending` if the time has passed. The call goes on then.
    pub fn wait_timeout(&mut self, client: &mut Client, timeout: Duration) -> Poll<CallResult<Reply>> {
        match self.0.take(client, Some(timeout)) {
            Ok(Taken::End(outcome)) => Poll::Ready(outcome),
            Ok(_) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The reply if it is there. Never waits.
    pub fn poll(&mut self, client: &mut Client) -> Poll<CallResult<Reply>> {
        self.wait_timeout(client, Duration::ZERO)
    }

    /// Cancels the call, and tells the server at once. A call that the server has begun goes on until its handler ends or sees
    /// that it was cancelled.
    pub fn cancel(mut self, client: &mut Client) {
        self.0.cancel(client);
    }
}

/// A call whose reply is a stream: made by [`Client::stream`].
///
/// The server sends at most as many elements as the [window](super::CallOptions::window) allows before they are taken here: who
/// reads slowly stops the server's handler, and nothing else. Dropping the stream cancels the call, as dropping a [`Pending`]
/// does.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut client = ramway::rpc::Client::connect("store")?;
/// let mut lines = client.stream(8, b"log")?;
/// for line in lines.iter(&mut client) {
///     println!("{:?}", line?.body());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping a stream cancels its call"]
pub struct Stream(Owned);

impl Stream {
    pub(super) fn new(number: u64, client: &Client) -> Self {
        Self(Owned { number: Some(number), home: client.dropped.clone() })
    }

    /// The next element, waiting for it as long as it takes. `None`: the stream is complete. After `None` or an error the stream
    /// has ended, and gives `None`.
    ///
    /// # Errors
    /// How the call ended, as for [`Client::call`]: what was received before comes first.
    #[allow(clippy::should_implement_trait, reason = "it takes the client: see `iter`")]
    pub fn next(&mut self, client: &mut Client) -> Option<CallResult<Reply>> {
        loop {
            if let Poll::Ready(next) = self.take(client, None) {
                return next;
            }
        }
    }

    /// [`next`](Self::next) that waits for at most `timeout`; `Poll::Pending` if the time has passed. The stream goes on then.
    pub fn next_timeout(&mut self, client: &mut Client, timeout: Duration) -> Poll<Option<CallResult<Reply>>> {
        self.take(client, Some(timeout))
    }

    /// The next element if it is there. Never waits.
    pub fn try_next(&mut self, client: &mut Client) -> Poll<Option<CallResult<Reply>>> {
        self.take(client, Some(Duration::ZERO))
    }

    /// The elements in a loop, each waited for. After an error there is nothing more.
    pub fn iter<'a>(&'a mut self, client: &'a mut Client) -> StreamIter<'a> {
        StreamIter { stream: self, client }
    }

    /// Cancels the call, and tells the server at once.
    pub fn cancel(mut self, client: &mut Client) {
        self.0.cancel(client);
    }

    fn take(&mut self, client: &mut Client, timeout: Option<Duration>) -> Poll<Option<CallResult<Reply>>> {
        if self.0.number.is_none() {
            return Poll::Ready(None);
        }
        match self.0.take(client, timeout) {
            Ok(Taken::Element(element)) => Poll::Ready(Some(Ok(element))),
            Ok(Taken::End(Ok(_))) => Poll::Ready(None),
            Ok(Taken::End(Err(error))) | Err(error) => Poll::Ready(Some(Err(error))),
            Ok(Taken::NotYet) => Poll::Pending,
        }
    }
}

/// The elements of a [`Stream`].
#[derive(Debug)]
pub struct StreamIter<'a> {
    stream: &'a mut Stream,
    client: &'a mut Client,
}

impl Iterator for StreamIter<'_> {
    type Item = CallResult<Reply>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next(self.client)
    }
}
