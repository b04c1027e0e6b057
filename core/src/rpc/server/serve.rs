//! The rounds over all clients.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::builder::ServerBuilder;
use super::call::Call;
use super::connection::{Connection, Shared};
use super::hub::{Event, Hub};
use super::ledger::Limits;
use super::methods::{Handler, MethodKey, Methods};
use super::pool::Pool;
use super::request::{Fault, IntoReply, Request};
use super::streams::{Elements, Of};
use crate::many::{Door, LastAsked, Peer};
use crate::sys::clock;
use crate::sys::socket::Set;
use crate::wait::{POLL_INTERVAL, WaitPolicy};
use crate::{Error, ErrorKind, Listener, Result, Select};

/// Rounds of one [`Server::poll`], at most, so that the event loop's others are served too.
const ROUNDS_PER_POLL: usize = 16;

/// Serves calls of any number of clients at a name.
///
/// A method has a handler of one of three kinds. An *inline* handler ([`method`](Self::method)) runs on the server's thread, reads the
/// request where the client wrote it and writes its reply where the client reads it: the fastest, and everybody else waits as long as
/// it takes. One of the [`pool`](Self::pool) may block. A [`deferred`](Self::deferred) one gets the call itself, which is answered
/// later, from any thread or task.
///
/// Cancelled calls and calls whose time is over are told to stop; a call that has not begun by then is not run. Behind an inline
/// handler nothing is seen until it returns. The calls of a client that is gone are cancelled. A client that writes what no
/// correct client writes is dropped, and no other is disturbed. A handler that panics ends its call with
/// [`HandlerFailed`](crate::rpc::Status::HandlerFailed).
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-rpc-server-{}.sock", std::process::id());
/// use ramway::rpc::{Fault, Server};
/// use std::time::Duration;
///
/// let mut server = Server::bind(&name)?;
/// server.method("Text.Upper", |request| {
///     let text = std::str::from_utf8(request.body()).map_err(|e| Fault::new(1, e.to_string()))?;
///     Ok(text.to_uppercase())
/// })?;
/// server.stream("Text.Words", |request| {
///     let text = String::from_utf8_lossy(request.body()).into_owned();
///     let words: Vec<String> = text.split(' ').map(String::from).collect();
///     Ok(words.into_iter().map(Ok))
/// })?;
/// let stopper = server.stopper();
/// let serving = std::thread::spawn(move || server.run());
/// stopper.shutdown(Duration::from_secs(1)); // from a signal handler, say
/// serving.join().unwrap()
/// # }
/// ```
pub struct Server {
    /// `None` once it shuts down.
    pub(super) door: Option<Door>,
    path: PathBuf,
    pub(super) connections: Vec<Connection>,
    methods: Methods,
    limits: Limits,
    pub(super) select: Select,
    pub(super) policy: WaitPolicy,
    pub(super) hub: Arc<Hub>,
    pool: Pool,
    /// Those that are acted on, empty between two rounds.
    events: VecDeque<Event>,
    lives_asked: LastAsked,
    /// A wait has ended: somebody may want to come in.
    pub(super) has_waited: bool,
    drain: Option<Drain>,
    /// Of an event loop.
    pub(super) set: Option<Set>,
}

/// It takes no new call.
struct Drain {
    /// When what runs is cancelled; `None`: never.
    until: Option<Instant>,
    /// It was. Clients that have not read their replies by then are abandoned.
    gives_up: Option<Instant>,
}

/// Ends a server's [`run`](Server::run) from another thread, or from a signal handler: no call of it blocks, takes a lock or
/// allocates. Clones are the same.
#[derive(Clone)]
pub struct Stopper {
    hub: Arc<Hub>,
}

impl Stopper {
    /// As [`Server::shutdown`], by the thread that runs the server, whose `run` then returns `Ok`.
    pub fn shutdown(&self, limit: Duration) {
        self.hub.shut_down(limit);
    }

    /// Has the [`run`](Server::run) or [`run_timeout`](Server::run_timeout) that runs, or the next one, give `Interrupted`. The server
    /// stays as it is: it serves in the next call.
    pub fn interrupt(&self) {
        self.hub.interrupt();
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

impl Server {
    /// Listens at a name or path with the default options. Nothing is served before [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`ServerBuilder::bind`].
    pub fn bind(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::builder(name).bind()
    }

    /// Options for listening.
    pub fn builder(name: impl AsRef<OsStr>) -> ServerBuilder {
        ServerBuilder::new(name.as_ref())
    }

    pub(super) fn new(listener: Listener, limits: Limits, threads: usize, policy: WaitPolicy) -> Self {
        let mut select = Select::new();
        // The server polls itself, also for what other threads tell it.
        select.set_wait_policy(WaitPolicy::Block);
        let hub = Arc::new(Hub::new(select.waker()));
        let path = listener.path().to_path_buf();
        Self {
            door: Some(Door::new(listener)),
            path,
            connections: Vec::new(),
            methods: Methods::default(),
            limits,
            select,
            policy,
            pool: Pool::new(hub.clone(), threads),
            hub,
            events: VecDeque::new(),
            lives_asked: LastAsked::new(),
            has_waited: true,
            drain: None,
            set: None,
        }
    }

    /// A method whose handler runs on the server's thread. Its reply is bytes, or what it has [written in
    /// place](Request::write_with). Where the caller wants a stream, the reply is the only element.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-rpc-method-{}.sock", std::process::id());
    /// # let mut server = ramway::rpc::Server::bind(&name)?;
    /// use ramway::rpc::Fault;
    ///
    /// server.method(1, |request| Ok(request.write(request.body())))?; // the request again, copied once
    /// server.method(2, |request| Ok(request.body().len().to_le_bytes()))?;
    /// server.method("Refuse", |_| Err::<(), _>(Fault::new(7, "not today")))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` if the server has a method with this number, `InvalidArgument` for a number from `0xFFFF_0000` up or a name with
    /// control characters.
    pub fn method<R: IntoReply>(
        &mut self,
        key: impl MethodKey,
        mut handler: impl FnMut(&mut Request<'_>) -> Result<R, Fault> + Send + 'static,
    ) -> Result<()> {
        let run = move |request: &mut Request<'_>| {
            handler(request).map(|reply| {
                reply.write_to(request);
            })
        };
        self.methods.add(&key, Handler::Inline(Box::new(run)))
    }

    /// A method whose handler runs on one of the pool's threads, with a copy of the request, and may block. One client has at
    /// most half of the threads, rounded up, as long as others wait.
    ///
    /// # Errors
    /// As for [`method`](Self::method).
    pub fn pool<R: IntoReply>(
        &mut self,
        key: impl MethodKey,
        handler: impl Fn(&mut Request<'_>) -> Result<R, Fault> + Send + Sync + 'static,
    ) -> Result<()> {
        let run = move |request: &mut Request<'_>| {
            handler(request).map(|reply| {
                reply.write_to(request);
            })
        };
        self.methods.add(&key, Handler::Pool(Arc::new(run)))
    }

    /// A method whose handler gets the call itself, with a copy of the request, and has it answered later, from any thread. The handler
    /// runs on the server's thread.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-rpc-deferred-{}.sock", std::process::id());
    /// # let mut server = ramway::rpc::Server::bind(&name)?;
    /// let (calls, work) = std::sync::mpsc::channel::<ramway::rpc::Call>();
    /// std::thread::spawn(move || {
    ///     for call in work {
    ///         let reply = call.body().to_vec();
    ///         call.reply(reply);
    ///     }
    /// });
    /// server.deferred(1, move |call| drop(calls.send(call)))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`method`](Self::method).
    pub fn deferred(&mut self, key: impl MethodKey, handler: impl FnMut(Call) + Send + 'static) -> Result<()> {
        self.methods.add(&key, Handler::Deferred(Box::new(handler)))
    }

    /// A method whose reply is a stream: the handler and the iterator that it gives run on the server's thread. The iterator is asked
    /// for its next element only when the caller has room for it, and dropped when the call is cancelled. A caller that does not
    /// want a stream gets [`HandlerFailed`](crate::rpc::Status::HandlerFailed).
    ///
    /// # Errors
    /// As for [`method`](Self::method).
    pub fn stream<I, T>(
        &mut self,
        key: impl MethodKey,
        mut handler: impl FnMut(&Request<'_>) -> Result<I, Fault> + Send + 'static,
    ) -> Result<()>
    where
        I: IntoIterator<Item = Result<T, Fault>, IntoIter: Send + 'static>,
        T: AsRef<[u8]> + 'static,
    {
        let begin = move |request: &Request<'_>| handler(request).map(erased);
        self.methods.add(&key, Handler::Stream(Box::new(begin)))
    }

    /// [`stream`](Self::stream) on the pool's threads: both may block. A stream that waits for its caller holds no thread.
    ///
    /// # Errors
    /// As for [`method`](Self::method).
    pub fn pool_stream<I, T>(
        &mut self,
        key: impl MethodKey,
        handler: impl Fn(&Request<'_>) -> Result<I, Fault> + Send + Sync + 'static,
    ) -> Result<()>
    where
        I: IntoIterator<Item = Result<T, Fault>, IntoIter: Send + 'static>,
        T: AsRef<[u8]> + 'static,
    {
        let begin = move |request: &Request<'_>| handler(request).map(erased);
        self.methods.add(&key, Handler::PoolStream(Arc::new(begin)))
    }

    /// Serves until it is shut down by a [stopper](Self::stopper).
    ///
    /// # Errors
    /// `Interrupted` by a [stopper](Stopper::interrupt): the next call goes on. `Os` if there are no more descriptors to wait with.
    /// `Detached` in a fork's child. That a client could not be taken for want of memory or descriptors is no error here: it was
    /// told.
    pub fn run(&mut self) -> Result<()> {
        self.run_until(None)
    }

    /// [`run`](Self::run) for at most this long, then `TimedOut`.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_timeout(&mut self, timeout: Duration) -> Result<()> {
        self.run_until(Instant::now().checked_add(timeout))
    }

    /// Does what there is to do without waiting, for event loops: see [`descriptor`](Self::descriptor).
    ///
    /// # Errors
    /// `Closed` once it was shut down. As for [`run`](Self::run), without `Interrupted`.
    pub fn poll(&mut self) -> Result<()> {
        self.check()?;
        self.hub.news().is_awake();
        self.hub.consume();
        self.has_waited = true;
        let mut rounds = 0;
        while rounds < ROUNDS_PER_POLL && self.round()? {
            rounds += 1;
        }
        if self.is_over() {
            return Err(self.closed());
        }
        self.arm()
    }

    /// Takes no new client and no new call, waits for those that run for at most `limit`, cancels the rest, and closes. What is
    /// cancelled has 100 ms to end. A client all of whose calls are answered learns `Closed`, of the others those calls may have run
    /// (`PeerDead`).
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn shutdown(&mut self, limit: Duration) -> Result<()> {
        self.hub.shut_down(limit);
        self.run()
    }

    /// How the server waits from now on; see [`ServerBuilder::wait_policy`].
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.policy = policy;
    }

    /// What ends [`run`](Self::run) from another thread or a signal handler.
    pub fn stopper(&self) -> Stopper {
        Stopper { hub: self.hub.clone() }
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.connections.len()
    }

    /// Those that are connected.
    pub fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        self.connections.iter().map(|connection| connection.peer)
    }

    /// How many calls have a handler that has not ended, or wait for one.
    pub fn calls(&self) -> usize {
        self.connections.iter().map(Connection::open_calls).sum()
    }

    /// The socket's path, which clients can be given in place of the name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Until when there is nothing to do unless the [descriptor](Self::descriptor) says so; `None`: there is no such time.
    pub fn due_in(&self) -> Option<Duration> {
        if self.connections.iter().any(Connection::has_work) {
            return Some(Duration::ZERO);
        }
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        let calls = self.connections.iter().filter_map(Connection::next_deadline).min();
        let drain = self.drain.as_ref().and_then(|drain| drain.gives_up.or(drain.until));
        let handshakes = self.door.as_ref().and_then(Door::due_in);
        calls.into_iter().chain(drain).min().map(left).into_iter().chain(handshakes).min()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.hub.is_detached() {
            return Err(Error::new(ErrorKind::Detached, "this RPC server belongs to the parent process"));
        }
        Ok(())
    }

    /// Whether it was shut down.
    fn is_over(&self) -> bool {
        self.drain.is_some() && self.connections.is_empty()
    }

    fn closed(&self) -> Error {
        Error::new(ErrorKind::Closed, format!("the RPC server '{}' was shut down", self.path.display()))
    }

    fn run_until(&mut self, deadline: Option<Instant>) -> Result<()> {
        self.check()?;
        loop {
            let busy = self.round()?;
            if self.is_over() {
                return Ok(());
            }
            if self.hub.take_interrupt() {
                return Err(ErrorKind::Interrupted.into());
            }
            if busy && deadline.is_none() {
                continue;
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(ErrorKind::TimedOut.into());
            }
            if !busy {
                self.wait(deadline)?;
            }
        }
    }

    /// Does what there is to do, of each client a bounded part. True if there was anything.
    fn round(&mut self) -> Result<bool> {
        let now = clock::coarse_ns();
        if std::mem::take(&mut self.has_waited) || self.door.as_ref().is_some_and(|door| door.is_due(now)) {
            self.take_new()?;
        }
        let ask_kernel = self.lives_asked.is_due(now);
        if ask_kernel {
            self.lives_asked.asked(now);
        }
        let mut busy = self.time_out();
        if self.hub.news().is_there() {
            self.take_news();
            busy = true;
        }
        let draining = self.drain.is_some();
        let Self { connections, methods, pool, hub, .. } = self;
        let mut shared = Shared { methods, pool, hub, draining };
        let mut index = 0;
        while index < connections.len() {
            match connections[index].serve(&mut shared, ask_kernel) {
                Ok(more) => {
                    busy |= more;
                    index += 1;
                }
                Err(_) => {
                    connections.remove(index).let_go(pool);
                    busy = true;
                }
            }
        }
        if draining {
            self.drain();
        }
        Ok(busy)
    }

    /// Serves one client without looking at anything else. False: a round has to follow, because more clients than this one have
    /// something, or it is gone.
    #[inline]
    pub(super) fn serve_alone(&mut self, index: usize) -> bool {
        if self.drain.is_some() {
            return false;
        }
        let Self { connections, methods, pool, hub, .. } = self;
        let mut shared = Shared { methods, pool, hub, draining: false };
        match connections[index].serve(&mut shared, false) {
            // Those before it had nothing a moment ago.
            Ok(_) => !connections[index + 1..].iter_mut().any(Connection::peek),
            Err(_) => {
                connections.remove(index).let_go(pool);
                false
            }
        }
    }

    fn take_new(&mut self) -> Result<()> {
        let Some(door) = &mut self.door else { return Ok(()) };
        loop {
            match door.take() {
                Ok(Some((peer, bus))) => self.connections.extend(Connection::new(peer, bus, self.limits)),
                Ok(None) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Detached => return Err(e),
                // It was told, and tries again or not.
                Err(_) => return Ok(()),
            }
        }
    }

    /// Calls whose time is over.
    fn time_out(&mut self) -> bool {
        if self.connections.iter().all(|connection| connection.next_deadline().is_none()) {
            return false;
        }
        let now = Instant::now();
        self.each(|connection, shared| {
            let is_due = connection.next_deadline().is_some_and(|at| at <= now);
            connection.time_out(now, shared).map(|()| is_due)
        })
    }

    /// Does this for each client, and lets those go for which it fails. True if it was true for any.
    fn each(
        &mut self,
        mut act: impl FnMut(&mut Connection, &mut Shared<'_>) -> Result<bool, super::connection::Over>,
    ) -> bool {
        let Self { connections, methods, pool, hub, drain, .. } = self;
        let mut shared = Shared { methods, pool, hub, draining: drain.is_some() };
        let (mut any, mut index) = (false, 0);
        while index < connections.len() {
            match act(&mut connections[index], &mut shared) {
                Ok(yes) => {
                    any |= yes;
                    index += 1;
                }
                Err(_) => {
                    connections.remove(index).let_go(shared.pool);
                    any = true;
                }
            }
        }
        any
    }

    /// What other threads have told.
    fn take_news(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.hub.take(&mut events);
        if let Some(limit) = self.hub.take_shutdown() {
            self.begin_to_drain(limit);
        }
        let Self { connections, methods, pool, hub, drain, .. } = self;
        let mut shared = Shared { methods, pool, hub, draining: drain.is_some() };
        for Event { client, call, happened } in events.drain(..) {
            // Clients come in the order of their numbers.
            let Ok(index) = connections.binary_search_by_key(&client, |connection| connection.peer.id) else {
                continue;
            };
            if connections[index].happened(call, happened, &mut shared).is_err() {
                connections.remove(index).let_go(shared.pool);
            }
        }
        self.events = events;
    }

    fn begin_to_drain(&mut self, limit: Duration) {
        self.door = None;
        let until = Instant::now().checked_add(limit);
        let drain = self.drain.get_or_insert(Drain { until, gives_up: None });
        // The shorter time of two.
        drain.until = match (drain.until, until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Closes what has ended, and gives up what does not in time.
    fn drain(&mut self) {
        let Some(drain) = &mut self.drain else { return };
        let now = Instant::now();
        let (gives_up, cancels) = match (drain.gives_up, drain.until) {
            (Some(at), _) => (at <= now, false),
            (None, Some(until)) if until <= now => {
                drain.gives_up = now.checked_add(POLL_INTERVAL);
                (false, true)
            }
            (None, _) => (false, false),
        };
        if cancels {
            self.each(|connection, shared| connection.cancel_all(shared).map(|()| false));
        }
        let mut index = 0;
        while index < self.connections.len() {
            if gives_up || self.connections[index].is_quiet() {
                self.connections.remove(index).let_go(&self.pool);
            } else {
                index += 1;
            }
        }
    }
}

fn erased<I, T>(elements: I) -> Box<dyn Elements>
where
    I: IntoIterator<Item = Result<T, Fault>, IntoIter: Send + 'static>,
    T: AsRef<[u8]> + 'static,
{
    Box::new(Of(elements.into_iter()))
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("path", &self.path).field("clients", &self.clients()).finish_non_exhaustive()
    }
}

impl Drop for Server {
    /// Cancels what runs, and closes. A client with calls that have no reply learns that they may have run.
    fn drop(&mut self) {
        if self.hub.is_detached() {
            return;
        }
        for connection in self.connections.drain(..) {
            connection.let_go(&self.pool);
        }
    }
}
