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

/// What a client has for its calls in order to hear of those that are let go of.
///
/// Each call has a reference of its own. One whose outcome was taken gives it back, for a later call: so a call does not count
/// references, which is an atomic read-modify-write on either end, and on x86 waits until all stores before it have left the
/// processor, that of `tail` among them (docs/adr/0033).
#[derive(Debug, Default)]
pub(super) struct Home {
    dropped: Arc<Dropped>,
    /// As many as there were calls at a time, at most.
    spare: Vec<Arc<Dropped>>,
}

impl Home {
    #[inline]
    pub(super) fn any_dropped(&self) -> bool {
        self.dropped.any()
    }

    #[cold]
    pub(super) fn take_dropped(&self) -> Vec<u64> {
        self.dropped.take()
    }

    /// For a new call.
    #[inline]
    fn reference(&mut self) -> Arc<Dropped> {
        match self.spare.pop() {
            Some(spare) => spare,
            None => self.dropped.clone(),
        }
    }
}

/// The number of a call, which is let go of when this is dropped. `None` once the outcome was taken.
#[derive(Debug)]
struct Owned(Option<(u64, Arc<Dropped>)>);

impl Owned {
    #[inline]
    fn new(number: u64, client: &mut Client) -> Self {
        Self(Some((number, client.home.reference())))
    }

    /// The number, if the call is this client's and under way.
    #[inline]
    fn of(&self, client: &Client) -> CallResult<u64> {
        match &self.0 {
            Some((number, home)) if Arc::ptr_eq(home, &client.home.dropped) => Ok(*number),
            Some(_) => Err(another_client()),
            None => Err(no_such_call()),
        }
    }

    /// The outcome was taken, or nobody asks for it any more.
    #[inline]
    fn is_over(&mut self, client: &mut Client) {
        if let Some((_, home)) = self.0.take() {
            client.home.spare.push(home);
        }
    }

    /// Waits for at most `timeout`; what has come.
    fn take(&mut self, client: &mut Client, timeout: Option<Duration>) -> CallResult<Taken> {
        let number = self.of(client)?;
        client.cancel_dropped();
        client.raw.wait(number, timeout).map_err(|e| CallError::of_error(e, true))?;
        let taken = client.raw.take(number);
        if let Taken::End(_) = taken {
            self.is_over(client);
        }
        Ok(taken)
    }

    fn cancel(&mut self, client: &mut Client) {
        if let Ok(number) = self.of(client) {
            self.is_over(client);
            client.raw.cancel(number);
        }
    }
}

#[cold]
fn another_client() -> CallError {
    let text = "this call was made by another client: wait for it with that one";
    CallError::of_error(Error::new(ErrorKind::InvalidArgument, text), false)
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        if let Some((number, home)) = &self.0 {
            home.add(*number);
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
    #[inline]
    pub(super) fn new(number: u64, client: &mut Client) -> Self {
        Self(Owned::new(number, client))
    }

    /// Waits for the reply, as long as it takes: the call's own time limit ends the wait.
    ///
    /// # Errors
    /// How the call ended, as for [`Client::call`]. `InvalidArgument` with another client than the call's, or if the outcome was
    /// taken before. `Interrupted`: the call goes on, but this was its only handle, so it is cancelled.
    #[inline]
    pub fn wait(mut self, client: &mut Client) -> CallResult<Reply> {
        let number = self.0.of(client)?;
        if client.home.any_dropped() {
            client.cancel_dropped();
        }
        // Whatever it gives, the number means nothing after it.
        self.0.is_over(client);
        client.raw.outcome(number)
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
    #[inline]
    pub(super) fn new(number: u64, client: &mut Client) -> Self {
        Self(Owned::new(number, client))
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
        if self.0.0.is_none() {
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
