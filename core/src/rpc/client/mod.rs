//! The side that calls.
//!
//! | file | what |
//! | --- | --- |
//! | `ledger.rs`, `ledger/direct.rs`, `call.rs`, `ids.rs`, `deadlines.rs` | the state of all calls, without input and output |
//! | `pump.rs` | between that and the bus: never waits |
//! | `raw.rs` | a client whose calls are numbers, and how it waits |
//! | `pending.rs` | calls as their owners hold them |
//! | `shared.rs` | a client that many threads use |
//! | `crew.rs`, `lead.rs` | what those who use it share, and which of them receives |
//! | `reply.rs` | what is sent with a call, and what comes back |
//! | `connector.rs` | how to connect |

mod call;
mod connector;
pub(crate) mod crew;
mod deadlines;
mod ids;
pub(crate) mod lead;
mod ledger;
mod pending;
mod pump;
mod raw;
mod reply;
mod shared;

use std::ffi::OsStr;
use std::time::Duration;

pub use connector::ClientConnector;
pub use ledger::Taken;
#[cfg(feature = "tokio")]
pub(super) use ledger::no_such_call;
pub use pending::{Pending, Stream, StreamIter};
#[doc(hidden)] // for the bindings; not part of the stable API
pub use pump::InPlace;
#[cfg(test)]
pub(super) use pump::Request;
pub use raw::RawClient;
pub use reply::{CallOptions, MethodInfo, Reply, ReplyView};
pub use shared::{SharedClient, SharedPending, SharedStream};

use super::CallResult;
use crate::{Readiness, Result, WaitPolicy};
use pending::Home;

/// Calls the methods of a [`Server`](super::Server) of this machine.
///
/// It is used by one at a time and takes no lock; [`shared`](Self::shared) makes one that many threads use. It does not connect
/// again by itself, and repeats no call by itself: [`CallError::may_have_run`](super::CallError::may_have_run) says what can be made
/// again without being made twice.
///
/// Replies are received, time limits looked at and cancelled calls told to the server inside its calls. Who has calls under way and
/// waits elsewhere calls [`progress`](Self::progress) now and then, or whenever [`readiness`](Self::readiness) and
/// [`due_in`](Self::due_in) say so.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ramway::rpc::{CallOptions, Client};
/// use std::time::Duration;
///
/// let mut client = Client::connect("store")?;
/// println!("{:?}", client.call(7, b"key")?.body());
/// match client.call_with(7, b"key", &CallOptions::new().timeout(Duration::from_millis(5))) {
///     Ok(reply) => println!("{:?}", reply.body()),
///     Err(error) if error.is_timed_out() => println!("too late; may have run: {}", error.may_have_run()),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Client {
    pub(super) raw: RawClient,
    home: Home,
}

impl Client {
    /// Connects to the server at `name` (a plain name or a path), waiting up to 10 s for one that is not there yet.
    ///
    /// # Errors
    /// Those of [`ClientConnector::connect`].
    pub fn connect(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::connector(name).connect()
    }

    /// Options for connecting.
    pub fn connector(name: impl AsRef<OsStr>) -> ClientConnector {
        ClientConnector::new(name.as_ref())
    }

    fn new(raw: RawClient) -> Self {
        Self { raw, home: Home::default() }
    }

    /// Sends a request and waits for its reply, as long as it takes.
    ///
    /// # Errors
    /// What the server said ([`CallError::status`](super::CallError::status)), or: `TooLarge` for a request that the server's rings
    /// cannot hold, or a reply beyond `max_buffered`; `Closed` if the server closed (the call was not run) and `PeerDead`
    /// if it died (it may have been); `Corrupt` if the server broke the rules, which ends all calls; `Interrupted` if
    /// [so asked](Self::set_interruptible); `Detached` in a fork's child.
    #[inline]
    pub fn call(&mut self, method: u32, body: &[u8]) -> CallResult<Reply> {
        self.call_with(method, body, &CallOptions::new())
    }

    /// [`call`](Self::call) with a time limit or metadata.
    ///
    /// # Errors
    /// As for [`call`](Self::call); `TimedOut` when the time limit has passed.
    #[inline]
    pub fn call_with(&mut self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Reply> {
        if self.home.any_dropped() {
            self.cancel_dropped();
        }
        self.raw.call(method, body, options)
    }

    /// [`call_with`](Self::call_with) that reads the reply in the ring, where the server wrote it, without a copy: what is long, or is
    /// decoded at once. `read` is called with a successful reply, and what it gives is the result; until it returns, the ring does not
    /// have the reply's place back. A reply longer than `max_buffered` can be read so too.
    ///
    /// ```
    /// # use ramway::rpc::{CallOptions, Client, Server};
    /// # let name = format!("/dev/shm/ramway-doc-in-place-{}.sock", std::process::id());
    /// # let mut server = Server::bind(&name)?;
    /// # server.method(1, |request| Ok(request.body().to_vec()))?;
    /// # let stopper = server.stopper();
    /// # let serving = std::thread::spawn(move || server.run());
    /// let mut client = Client::connect(&name)?;
    /// let sum = client.call_in_place(1, &[1, 2, 3], &CallOptions::new(), |reply| {
    ///     reply.body().iter().map(|byte| u32::from(*byte)).sum::<u32>()
    /// })?;
    /// assert_eq!(sum, 6);
    /// # stopper.shutdown(std::time::Duration::from_secs(1));
    /// # serving.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`call_with`](Self::call_with).
    #[inline]
    pub fn call_in_place<T>(
        &mut self,
        method: u32,
        body: &[u8],
        options: &CallOptions<'_>,
        read: impl FnOnce(ReplyView<'_>) -> T,
    ) -> CallResult<T> {
        if self.home.any_dropped() {
            self.cancel_dropped();
        }
        self.raw.call_in_place(&pump::Request { method, body, options: *options, window: 0 }, read)
    }

    /// Sends a request and gives the call that is under way. It does not wait: what cannot be sent yet, because the server's
    /// limit of calls in flight is reached or the ring is full, is kept, and sent in order.
    ///
    /// # Errors
    /// As for [`call`](Self::call), of what keeps the call from being made.
    pub fn start(&mut self, method: u32, body: &[u8]) -> CallResult<Pending> {
        self.start_with(method, body, &CallOptions::new())
    }

    /// [`start`](Self::start) with a time limit or metadata.
    ///
    /// # Errors
    /// As for [`start`](Self::start); `TimedOut` for a time limit of 0.
    pub fn start_with(&mut self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Pending> {
        self.cancel_dropped();
        let number = self.raw.start(method, body, options, false)?;
        Ok(Pending::new(number, self))
    }

    /// Sends a request whose reply is a stream. It does not wait, as [`start`](Self::start).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn stream(&mut self, method: u32, body: &[u8]) -> CallResult<Stream> {
        self.stream_with(method, body, &CallOptions::new())
    }

    /// [`stream`](Self::stream) with a window, a time limit (of the whole stream) or metadata.
    ///
    /// # Errors
    /// As for [`start`](Self::start); `InvalidArgument` for a window of 0.
    pub fn stream_with(&mut self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Stream> {
        self.cancel_dropped();
        let number = self.raw.start(method, body, options, true)?;
        Ok(Stream::new(number, self))
    }

    /// Waits until the server has answered: it is there and reads.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn ping(&mut self) -> CallResult<()> {
        self.ping_with(&CallOptions::new())
    }

    /// [`ping`](Self::ping) with a time limit.
    ///
    /// # Errors
    /// As for [`call_with`](Self::call_with).
    pub fn ping_with(&mut self, options: &CallOptions<'_>) -> CallResult<()> {
        self.call_with(crate::facts::METHOD_PING, &[], options).map(drop)
    }

    /// The numbers and names of the server's methods, in the order of the numbers.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn describe(&mut self) -> CallResult<Vec<MethodInfo>> {
        self.describe_with(&CallOptions::new())
    }

    /// [`describe`](Self::describe) with a time limit.
    ///
    /// # Errors
    /// As for [`call_with`](Self::call_with).
    pub fn describe_with(&mut self, options: &CallOptions<'_>) -> CallResult<Vec<MethodInfo>> {
        MethodInfo::parse(self.call_with(crate::facts::METHOD_DESCRIBE, &[], options)?.body())
    }

    /// How many calls the server lets this client have in flight. Those beyond wait in the client, in their order.
    pub fn max_in_flight(&self) -> u32 {
        self.raw.max_in_flight()
    }

    /// How many calls are sent and have no final reply: also those that were cancelled, until the server has ended them.
    pub fn in_flight(&self) -> usize {
        self.raw.in_flight()
    }

    /// Receives what is there; then, whether a call that is made now is sent at once, as far as the server's limit and the calls
    /// before it go. Never waits. Of a connection that is over it is true: a call says how it ended.
    pub fn poll_ready(&mut self) -> bool {
        self.progress();
        self.raw.is_ready() || self.raw.check().is_err()
    }

    /// Receives replies that are there, ends the calls whose time is over, and tells the server what is to be told. Never waits.
    /// True: there may be more to receive.
    pub fn progress(&mut self) -> bool {
        self.cancel_dropped();
        self.raw.progress()
    }

    /// Waits for news for at most `timeout`: replies, the end of the connection, room for calls that could not be sent, or that a
    /// call has timed out. Then it acts as [`progress`](Self::progress). For those who have many calls under way. It may return
    /// without a reason.
    ///
    /// # Errors
    /// `Interrupted` if [so asked](Self::set_interruptible).
    pub fn wait_for_news(&mut self, timeout: Duration) -> Result<()> {
        if !self.progress() {
            self.raw.wait_for_news(timeout)?;
            self.progress();
        }
        Ok(())
    }

    /// A descriptor for event loops: readable when [`progress`](Self::progress) has something to receive, or the server is gone.
    /// Poll it for at most [`due_in`](Self::due_in); then call `progress` until it says false.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`](crate::Receiver::readiness).
    pub fn readiness(&mut self) -> Result<&Readiness> {
        self.raw.readiness()
    }

    /// When [`progress`](Self::progress) is to be called although the descriptor is not readable, because a call times out or
    /// there may be room for one that could not be sent; `None`: never.
    pub fn due_in(&mut self) -> Option<Duration> {
        self.raw.due_in()
    }

    /// How calls wait from now on.
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.raw.set_wait_policy(policy);
    }

    /// Whether a wait returns `Interrupted` after a signal handler ran (default: it goes on). For runtimes that act on signals
    /// outside their handlers.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.raw.set_interruptible(yes);
    }

    /// The user that the server acted as when the connection was made, as the kernel recorded it.
    pub fn peer_uid(&self) -> u32 {
        self.raw.peer_uid()
    }

    /// The server's process when the connection was made; `None` if it has no number in our PID namespace.
    pub fn peer_pid(&self) -> Option<u32> {
        self.raw.peer_pid()
    }

    /// Whether the server's process holds its end of the connection (one system call). A stopped process does.
    pub fn is_peer_alive(&self) -> bool {
        self.raw.is_peer_alive()
    }

    /// The longest request: its metadata, rounded up to 16 bytes, and its body together.
    pub fn max_request_len(&self) -> usize {
        self.raw.max_request_len() - crate::facts::RPC_HEADER
    }

    /// The same client for many threads at a time. Calls that are under way are cancelled.
    pub fn shared(self) -> SharedClient {
        self.raw.shared()
    }

    /// For those who have calls by number.
    #[doc(hidden)]
    pub fn into_raw(mut self) -> RawClient {
        self.raw.cancel_all();
        self.raw
    }

    /// Ends the connection: the server cancels what is under way. Dropping does the same without the chance of an error.
    ///
    /// # Errors
    /// What the connection was already dead of: `Corrupt`, `Detached`, `PeerDead`.
    pub fn close(self) -> Result<()> {
        self.raw.close()
    }

    /// Tells the server of the calls whose owners have let go of them.
    fn cancel_dropped(&mut self) {
        if self.home.any_dropped() {
            for number in self.home.take_dropped() {
                self.raw.ledger.let_go(number);
            }
            self.raw.send_due();
        }
    }
}
