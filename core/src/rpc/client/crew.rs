//! What the handles of a client share that many threads or tasks use, and how its leader receives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker as TaskWaker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::lead::{self, Crew, Lead};
use super::ledger::{Ledger, TICKETS, Taken};
use super::pump::{self, Flushed, Request};
use super::raw::{Peer, RawClient, window};
use super::reply::CallOptions;
use crate::facts::{RPC_FRAMES_PER_ROUND, UNORDERED_INTERVAL};
use crate::ring::raw::WaitLimit;
use crate::rpc::{CallError, CallResult};
use crate::select::Source;
use crate::sys::fork;
use crate::{ErrorKind, Receiver, Result, Select, SelectWaker, Sender, Waker};

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
    /// Of the last one who waited for a place for a call.
    #[cfg(feature = "tokio")]
    last_ticket: std::sync::atomic::AtomicU64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    pub(crate) lead: Lead<TaskWaker>,
    /// `None` while the leader waits with it.
    pub(crate) rx: Option<Receiver>,
    /// `None` while the leader waits for room with both; nobody else could send then.
    pub(crate) tx: Option<Sender>,
    select: Option<Select>,
    /// A frame of this many bytes had no room when it was last tried.
    pub(crate) blocked: Option<usize>,
    /// Who is to be woken as soon as the lock is free.
    woken: Vec<TaskWaker>,
    closed: bool,
}

impl State {
    /// Sends what is due, as far as there is room.
    pub(crate) fn send_due(&mut self) {
        let Some(tx) = &mut self.tx else { return };
        if !self.ledger.may_be_due() {
            self.blocked = None;
            return;
        }
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
    pub(crate) fn progress(&mut self) -> bool {
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
    pub(crate) fn note_changed(&mut self) {
        while let Some(call) = self.ledger.next_changed() {
            self.woken.extend(self.lead.owner(call));
        }
        if self.ledger.sends_at_once() {
            self.woken.extend(self.lead.from(TICKETS));
        }
    }

    pub(crate) fn take_woken(&mut self) -> Vec<TaskWaker> {
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
pub(crate) fn unlock(mut guard: MutexGuard<'_, State>) {
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
            self.tell_leader(guard);
        }
        guard.ledger.is_ready(call)
    }

    fn is_over(&self, limit: &Until) -> bool {
        limit.0.is_some() && limit.left().is_zero()
    }

    fn waiter(&self, _: u64) -> TaskWaker {
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
                let _ = rx.half.wait_for_answer(limit);
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
    pub(crate) fn new(raw: RawClient) -> Self {
        let RawClient { tx, rx, mut ledger, select, peer, .. } = raw;
        ledger.list_changed();
        Self {
            waker: rx.waker(),
            room_waker: select.waker(),
            peer,
            max_in_flight: ledger.max_in_flight(),
            max_len: tx.max_message_len(),
            generation: fork::generation(),
            #[cfg(feature = "tokio")]
            last_ticket: std::sync::atomic::AtomicU64::new(TICKETS),
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
    pub(crate) fn is_detached(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(crate) fn start(&self, method: u32, body: &[u8], options: &CallOptions<'_>, stream: bool) -> CallResult<u64> {
        let window = window(options, stream)?;
        if self.is_detached() {
            return Err(CallError::of_error(ErrorKind::Detached.into(), false));
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        let request = Request { method, body, options: *options, window };
        let started = pump::start(&mut state.ledger, state.tx.as_mut(), self.max_len, &request);
        if started.is_ok() {
            // Of those that go first, too; and whether this one has found no room.
            state.send_due();
        }
        self.unlock_after_send(guard);
        started
    }

    /// Unlocks after something was to be sent.
    pub(crate) fn unlock_after_send(&self, mut guard: MutexGuard<'_, State>) {
        guard.note_changed();
        self.tell_leader(&mut guard);
        unlock(guard);
    }

    /// After something was to be sent: a leader that waits for replies alone has to wait for room, too, if there is none; one that
    /// waits for room has to look whether what is owed fits, which goes first.
    fn tell_leader(&self, state: &mut State) {
        match (&state.rx, &state.tx) {
            // A task that leads.
            (Some(_), _) if state.blocked.is_some() => state.woken.extend(state.lead.leader()),
            (None, Some(_)) if state.blocked.is_some() => self.waker.wake(),
            (None, None) if state.ledger.owes() => self.room_waker.wake(),
            _ => {}
        }
    }

    pub(crate) fn wait(&self, call: u64, timeout: Option<Duration>) -> CallResult<bool> {
        if self.is_detached() {
            return Err(CallError::of_error(ErrorKind::Detached.into(), true));
        }
        if timeout == Some(Duration::ZERO) {
            let mut guard = self.lock();
            if !guard.ledger.is_ready(call) {
                guard.progress();
            }
            let ready = guard.ledger.is_ready(call);
            self.unlock_after_send(guard);
            return Ok(ready);
        }
        Ok(lead::wait(self, call, &Until::after(timeout)))
    }

    pub(crate) fn take(&self, call: u64) -> Taken {
        if self.is_detached() {
            return Taken::End(Err(CallError::of_error(ErrorKind::Detached.into(), true)));
        }
        let mut guard = self.lock();
        let taken = guard.ledger.take(call);
        if let Taken::Element(_) = taken {
            guard.send_due();
        }
        self.unlock_after_send(guard);
        taken
    }

    pub(crate) fn progress(&self) {
        if self.is_detached() {
            return;
        }
        let mut guard = self.lock();
        guard.progress();
        self.unlock_after_send(guard);
    }

    pub(crate) fn let_go(&self, call: u64) {
        if self.is_detached() {
            return;
        }
        let mut guard = self.lock();
        guard.ledger.let_go(call);
        guard.send_due();
        self.unlock_after_send(guard);
    }

    /// A number for who waits for a place for a call.
    #[cfg(feature = "tokio")]
    pub(crate) fn ticket(&self) -> u64 {
        // Relaxed: only that each gets another one counts.
        self.last_ticket.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
    }

    /// [`let_go`](Self::let_go) of one who may lead, or was woken to.
    #[cfg(feature = "tokio")]
    pub(crate) fn leave(&self, call: u64) {
        if self.is_detached() {
            return;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        state.lead.unregister(call);
        state.lead.give_up(call);
        state.ledger.let_go(call);
        state.send_due();
        state.woken.extend(state.lead.next());
        self.unlock_after_send(guard);
    }

    pub(crate) fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// Calls that are sent and have no final reply. 0 in a fork's child.
    pub(crate) fn in_flight(&self) -> usize {
        if self.is_detached() { 0 } else { self.lock().ledger.in_flight() }
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    pub(crate) fn max_len(&self) -> usize {
        self.max_len
    }

    fn end_calls(&self, state: &mut State) {
        state.ledger.close();
        state.note_changed();
        state.woken.extend(state.lead.all());
    }

    /// Ends all calls, and keeps the connection.
    ///
    /// # Errors
    /// `Detached` if that was done before.
    #[cfg(feature = "tokio")]
    pub(crate) fn end(&self) -> Result<()> {
        if self.is_detached() {
            return Err(ErrorKind::Detached.into());
        }
        let mut guard = self.lock();
        if std::mem::replace(&mut guard.closed, true) {
            return Err(ErrorKind::Detached.into());
        }
        self.end_calls(&mut guard);
        unlock(guard);
        Ok(())
    }

    pub(crate) fn close(&self) -> Result<()> {
        if self.is_detached() {
            return Err(ErrorKind::Detached.into());
        }
        let mut guard = self.lock();
        if guard.closed {
            return Err(ErrorKind::Detached.into());
        }
        guard.closed = true;
        self.end_calls(&mut guard);
        let state = &mut *guard;
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
