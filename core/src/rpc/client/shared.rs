//! A client that many threads use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker as TaskWaker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::lead::{self, Crew, Lead};
use super::ledger::{Ledger, Taken};
use super::pump::{self, Flushed, Request};
use super::raw::{Peer, RawClient, window};
use super::reply::{CallOptions, MethodInfo, Reply};
use crate::facts::{METHOD_DESCRIBE, METHOD_PING, RPC_FRAMES_PER_ROUND, UNORDERED_INTERVAL};
use crate::ring::raw::WaitLimit;
use crate::rpc::{CallError, CallResult};
use crate::select::Source;
use crate::sys::fork;
use crate::{Error, ErrorKind, Receiver, Result, Select, SelectWaker, Sender, Waker};

/// What all handles of one client share.
#[derive(Debug)]
pub(crate) struct Core {
    state: Mutex<State>,
    /// End the leader's wait: for replies, and for room.
    waker: Waker,
    room_waker: SelectWaker,
    peer: Peer,
    max_in_flight: u32,
    max_len: usize,
    generation: u32,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(super) ledger: Ledger,
    pub(super) lead: Lead<TaskWaker>,
    /// `None` while the leader waits with it.
    pub(super) rx: Option<Receiver>,
    /// `None` while the leader waits for room with both; nobody else could send then.
    pub(super) tx: Option<Sender>,
    select: Option<Select>,
    /// A frame of this many bytes had no room when it was last tried.
    pub(super) blocked: Option<usize>,
    /// Who is to be woken as soon as the lock is free.
    woken: Vec<TaskWaker>,
    closed: bool,
}

impl State {
    /// Sends what is due, as far as there is room.
    pub(super) fn send_due(&mut self) {
        let Some(tx) = &mut self.tx else { return };
        self.blocked = match pump::flush(&mut self.ledger, tx) {
            Ok(Flushed::All | Flushed::Gone) => None,
            Ok(Flushed::Blocked(len)) => Some(len),
            Err(error) => {
                self.ledger.end(error.kind(), error.to_string());
                None
            }
        };
    }

    /// Receives what is there, ends what has timed out, sends what is due. True: there may be more to receive.
    pub(super) fn progress(&mut self) -> bool {
        let mut more = self.rx.is_some();
        if let Some(rx) = &mut self.rx {
            for _ in 0..RPC_FRAMES_PER_ROUND {
                match pump::receive(&mut self.ledger, rx) {
                    Ok(true) => {}
                    Ok(false) => {
                        more = false;
                        break;
                    }
                    Err(error) => {
                        self.ledger.end(error.kind(), error.to_string());
                        more = false;
                        break;
                    }
                }
            }
        }
        if self.ledger.has_deadlines() {
            self.ledger.expire(Instant::now());
        }
        self.send_due();
        self.note_changed();
        more
    }

    /// Finds who is to be woken.
    pub(super) fn note_changed(&mut self) {
        while let Some(call) = self.ledger.next_changed() {
            self.woken.extend(self.lead.owner(call));
        }
    }

    pub(super) fn take_woken(&mut self) -> Vec<TaskWaker> {
        std::mem::take(&mut self.woken)
    }
}

/// How long one waits.
#[derive(Clone, Copy)]
pub(crate) struct Until(Option<Instant>);

impl Until {
    fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// One for each thread, for all of its waits.
    static WAKER: TaskWaker = Arc::new(ThreadWaker(std::thread::current())).into();
}

/// Unlocks, and wakes who is to be woken.
pub(super) fn unlock(mut guard: MutexGuard<'_, State>) {
    let woken = guard.take_woken();
    drop(guard);
    for waker in woken {
        waker.wake();
    }
}

impl Crew for Core {
    type Guard<'a> = MutexGuard<'a, State>;
    type Waiter = TaskWaker;
    type Limit = Until;

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics halfway through a change but a failed allocation, which ends the process.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lead<'a>(guard: &'a mut MutexGuard<'_, State>) -> &'a mut Lead<TaskWaker> {
        &mut guard.lead
    }

    fn is_done(&self, guard: &mut MutexGuard<'_, State>, call: u64) -> bool {
        if guard.ledger.is_ready(call) {
            return true;
        }
        if guard.ledger.deadline(call).is_some_and(|at| at <= Instant::now()) {
            guard.ledger.expire(Instant::now());
            guard.send_due();
            guard.note_changed();
        }
        guard.ledger.is_ready(call)
    }

    fn is_over(&self, limit: &Until) -> bool {
        limit.0.is_some() && limit.left().is_zero()
    }

    fn waiter(&self) -> TaskWaker {
        WAKER.with(TaskWaker::clone)
    }

    fn receive<'a>(&'a self, mut guard: MutexGuard<'a, State>, call: u64, limit: &Until) -> MutexGuard<'a, State> {
        // What has come already needs no wait.
        let more = guard.progress();
        if more || !guard.woken.is_empty() || guard.ledger.is_ready(call) {
            unlock(guard);
            return self.lock();
        }
        let mut left = limit.left();
        if let Some(at) = guard.ledger.next_deadline() {
            left = left.min(at.saturating_duration_since(Instant::now()));
        }
        let Some(mut rx) = guard.rx.take() else { return guard };
        let blocked = guard.blocked;
        let by_descriptor = rx.has_descriptor();
        let room = if blocked.is_some() && !by_descriptor { guard.tx.take().zip(guard.select.take()) } else { None };
        unlock(guard);
        let room = match room {
            Some((mut tx, mut select)) => {
                let timeout = (left != Duration::MAX).then_some(left);
                let _ = select.wait(&mut [&mut tx.room(blocked.unwrap_or(0)), &mut rx], timeout);
                Some((tx, select))
            }
            None => {
                // A select cannot wait where there is a descriptor: short waits, with a look for room after each.
                let left = if blocked.is_some() { left.min(UNORDERED_INTERVAL) } else { left };
                let limit = if left == Duration::MAX { WaitLimit::Forever } else { WaitLimit::For(left) };
                let _ = rx.half.wait_for_frame(limit, None);
                None
            }
        };
        // What the wait said is met again below: a frame, room, the end, or that the time has passed.
        let mut guard = self.lock();
        if guard.closed {
            // Both go here: nobody else had them.
            return guard;
        }
        guard.rx = Some(rx);
        if let Some((tx, select)) = room {
            (guard.tx, guard.select) = (Some(tx), Some(select));
        }
        guard.progress();
        let woken = guard.take_woken();
        if woken.is_empty() {
            return guard;
        }
        drop(guard);
        woken.into_iter().for_each(TaskWaker::wake);
        self.lock()
    }

    fn sleep<'a>(&'a self, guard: MutexGuard<'a, State>, call: u64, limit: &Until) -> MutexGuard<'a, State> {
        let mut left = limit.left();
        if let Some(at) = guard.ledger.deadline(call) {
            left = left.min(at.saturating_duration_since(Instant::now()));
        }
        unlock(guard);
        if left == Duration::MAX {
            std::thread::park()
        } else {
            std::thread::park_timeout(left)
        }
        self.lock()
    }

    fn wake(&self, waiter: TaskWaker) {
        waiter.wake();
    }
}

impl Core {
    pub(super) fn new(raw: RawClient) -> Self {
        let RawClient { tx, rx, mut ledger, select, peer, .. } = raw;
        ledger.list_changed();
        Self {
            waker: rx.waker(),
            room_waker: select.waker(),
            peer,
            max_in_flight: ledger.max_in_flight(),
            max_len: tx.max_message_len(),
            generation: fork::generation(),
            state: Mutex::new(State {
                ledger,
                lead: Lead::default(),
                rx: Some(rx),
                tx: Some(tx),
                select: Some(select),
                blocked: None,
                woken: Vec::new(),
                closed: false,
            }),
        }
    }

    /// Not in a fork's child, where the lock may have been held by a thread that is not there.
    pub(super) fn is_detached(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(super) fn start(&self, method: u32, body: &[u8], options: &CallOptions<'_>, stream: bool) -> CallResult<u64> {
        let window = window(options, stream)?;
        if self.is_detached() {
            return Err(CallError::of_error(ErrorKind::Detached.into(), false));
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        let was_blocked = state.blocked.is_some();
        let request = Request { method, body, options: *options, window };
        let started = pump::start(&mut state.ledger, state.tx.as_mut(), self.max_len, &request);
        if started.is_ok() {
            // Of those that go first, too; and whether this one has found no room.
            state.send_due();
        }
        self.unlock_after_send(guard, was_blocked);
        started
    }

    /// Unlocks after something was to be sent: a leader that waits for replies alone has to wait for room, too.
    pub(super) fn unlock_after_send(&self, mut guard: MutexGuard<'_, State>, was_blocked: bool) {
        guard.note_changed();
        let receives_only = guard.rx.is_none() && guard.tx.is_some() && guard.blocked.is_some() && !was_blocked;
        let waits_for_room = guard.rx.is_none() && guard.tx.is_none() && guard.ledger.owes();
        unlock(guard);
        if receives_only {
            self.waker.wake();
        }
        if waits_for_room {
            self.room_waker.wake();
        }
    }

    pub(super) fn wait(&self, call: u64, timeout: Option<Duration>) -> CallResult<bool> {
        if self.is_detached() {
            return Err(CallError::of_error(ErrorKind::Detached.into(), true));
        }
        if timeout == Some(Duration::ZERO) {
            let mut guard = self.lock();
            let was_blocked = guard.blocked.is_some();
            if !guard.ledger.is_ready(call) {
                guard.progress();
            }
            let ready = guard.ledger.is_ready(call);
            self.unlock_after_send(guard, was_blocked);
            return Ok(ready);
        }
        Ok(lead::wait(self, call, &Until::after(timeout)))
    }

    pub(super) fn take(&self, call: u64) -> Taken {
        if self.is_detached() {
            return Taken::End(Err(CallError::of_error(ErrorKind::Detached.into(), true)));
        }
        let mut guard = self.lock();
        let was_blocked = guard.blocked.is_some();
        let taken = guard.ledger.take(call);
        if let Taken::Element(_) = taken {
            guard.send_due();
        }
        self.unlock_after_send(guard, was_blocked);
        taken
    }

    pub(super) fn let_go(&self, call: u64) {
        if self.is_detached() {
            return;
        }
        let mut guard = self.lock();
        let was_blocked = guard.blocked.is_some();
        guard.ledger.let_go(call);
        guard.send_due();
        self.unlock_after_send(guard, was_blocked);
    }

    fn progress(&self) {
        if self.is_detached() {
            return;
        }
        let mut guard = self.lock();
        let was_blocked = guard.blocked.is_some();
        guard.progress();
        self.unlock_after_send(guard, was_blocked);
    }

    pub(super) fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    pub(super) fn max_len(&self) -> usize {
        self.max_len
    }

    pub(super) fn close(&self) -> Result<()> {
        if self.is_detached() {
            return Err(ErrorKind::Detached.into());
        }
        let mut guard = self.lock();
        if guard.closed {
            return Err(ErrorKind::Detached.into());
        }
        guard.closed = true;
        guard.ledger.close();
        let state = &mut *guard;
        state.note_changed();
        state.woken.extend(state.lead.all());
        let (tx, rx) = (state.tx.take(), state.rx.take());
        unlock(guard);
        // A leader that waits drops what it has.
        self.waker.wake();
        self.room_waker.wake();
        let sent = tx.map_or(Ok(()), Sender::close);
        let received = rx.map_or(Ok(()), Receiver::close);
        sent.and(received)
    }
}

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
    pub(super) fn new(raw: RawClient) -> Self {
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
        MethodInfo::parse(self.call(METHOD_DESCRIBE, &[])?.body())
    }

    /// How many calls the server lets this client have in flight.
    pub fn max_in_flight(&self) -> u32 {
        self.core.max_in_flight()
    }

    /// How many calls are sent and have no final reply, by what was received so far. 0 in a fork's child.
    pub fn in_flight(&self) -> usize {
        if self.core.is_detached() { 0 } else { self.core.lock().ledger.in_flight() }
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
        let Some(number) = self.number else {
            let text = "this call has ended, and its outcome was taken: a call gives one outcome";
            return Err(CallError::of_error(Error::new(ErrorKind::InvalidArgument, text), false));
        };
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
