//! A client that several threads use: one of them waits for replies and hands those of the others to them.
//!
//! The one that waits, the leader, holds the lock while it sleeps. Who wants the lock counts itself in `wanted` and wakes the
//! leader, which lets it go before. Others that wait for a reply sleep on a slot of their own, not on the lock: the leader puts
//! what came there, or passes its role on when it leaves. So somebody leads whenever somebody waits.

use ramway::rpc::{RawClient, Taken};
use ramway::{ErrorKind, SelectWaker, Waker};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub(crate) struct Calls {
    state: Mutex<State>,
    /// Threads that want the lock while the leader has it.
    wanted: AtomicUsize,
    /// Calls that were let go of by those who could not wait for the lock.
    dropped: Mutex<Vec<u64>>,
    waker: Waker,
    room_waker: SelectWaker,
    /// Whose it is: in a fork's child a lock may be held by a thread that does not exist.
    process: u32,
}

pub(crate) struct State {
    /// `None` once it is closed.
    raw: Option<RawClient>,
    /// Some thread receives for all.
    has_leader: bool,
    /// Those that wait for another's receiving, by their calls.
    followers: HashMap<u64, Arc<Slot>>,
}

#[derive(Default)]
struct Slot {
    got: Mutex<Got>,
    told: Condvar,
}

#[derive(Default)]
enum Got {
    #[default]
    Nothing,
    /// The leader has left, or the client was closed: look again.
    Look,
    Taken(Taken),
}

impl Slot {
    fn put(&self, got: Got) {
        *self.got.lock().unwrap_or_else(PoisonError::into_inner) = got;
        self.told.notify_one();
    }

    /// What there is by then.
    fn wait(&self, until: Instant) -> Got {
        let mut got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        while matches!(*got, Got::Nothing) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (got, _) = self.told.wait_timeout(got, left).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut got)
    }
}

/// How a wait has ended.
pub(crate) enum Waited {
    Taken(Taken),
    /// The time has passed, or a signal arrived.
    NotYet,
    /// The client was closed here.
    Closed,
}

impl State {
    /// The client, unless it is closed.
    pub(crate) fn raw(&mut self) -> Option<&mut RawClient> {
        self.raw.as_mut()
    }

    /// Gives followers what has come for them.
    fn hand_out(&mut self) {
        let Some(raw) = &mut self.raw else { return };
        while let Some(call) = raw.next_changed() {
            let Some(slot) = self.followers.remove(&call) else { continue };
            match raw.take(call) {
                Taken::NotYet => drop(self.followers.insert(call, slot)),
                taken => slot.put(Got::Taken(taken)),
            }
        }
    }

    /// The leader leaves: one of the others takes its place.
    fn leave(&mut self) {
        self.has_leader = false;
        self.pass_on();
    }

    fn pass_on(&mut self) {
        if !self.has_leader
            && let Some(&call) = self.followers.keys().next()
            && let Some(slot) = self.followers.remove(&call)
        {
            slot.put(Got::Look);
        }
    }
}

impl Calls {
    pub(crate) fn new(mut raw: RawClient) -> Self {
        raw.set_interruptible(true);
        raw.list_changed();
        Self {
            waker: raw.waker(),
            room_waker: raw.room_waker(),
            wanted: AtomicUsize::new(0),
            dropped: Mutex::default(),
            process: std::process::id(),
            state: Mutex::new(State { raw: Some(raw), has_leader: false, followers: HashMap::new() }),
        }
    }

    /// Whether this is a fork's child, in which nothing of it is waited for.
    pub(crate) fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    /// The state, if nobody has it now. Never waits.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(self.without_dropped(state)),
            Err(TryLockError::Poisoned(broken)) => Some(self.without_dropped(broken.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The state. The leader is woken for it; without the interpreter lock only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        if let Some(state) = self.try_lock() {
            return state;
        }
        // SeqCst, before the wake: a leader that the wake ends sees that somebody wants the lock.
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.wake();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        self.without_dropped(state)
    }

    fn wake(&self) {
        self.waker.wake();
        self.room_waker.wake();
    }

    /// The lock is let go of for those who want it, and taken again.
    fn yielded<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        drop(state);
        while self.wanted.load(Ordering::SeqCst) != 0 {
            // Each of them has the lock for the length of a send.
            std::thread::yield_now();
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.without_dropped(state)
    }

    fn without_dropped<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let dropped = std::mem::take(&mut *self.dropped.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(raw) = &mut state.raw {
            dropped.into_iter().for_each(|call| raw.cancel(call));
        }
        state
    }

    /// Lets go of a call. Never waits: where another thread has the lock it is done by that.
    pub(crate) fn let_go(&self, call: u64) {
        if self.is_foreign() {
            return;
        }
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        if self.try_lock().is_none() {
            self.wake();
        }
    }

    /// What has come for a call, waiting for at most `limit`. A signal ends the wait before.
    pub(crate) fn wait(&self, call: u64, limit: Duration) -> Waited {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        let waited = loop {
            let Some(raw) = &mut state.raw else { break Waited::Closed };
            match raw.take(call) {
                Taken::NotYet => {}
                taken => break Waited::Taken(taken),
            }
            if !state.has_leader {
                state.has_leader = true;
                let waited;
                (waited, state) = self.lead(state, call, until);
                state.leave();
                return waited;
            }
            let slot = Arc::new(Slot::default());
            state.followers.insert(call, slot.clone());
            drop(state);
            let got = slot.wait(until);
            if let Got::Taken(taken) = got {
                // Its leader has taken it out of the followers.
                return Waited::Taken(taken);
            }
            state = self.lock();
            state.followers.remove(&call);
            if let Got::Taken(taken) = slot.wait(Instant::now()) {
                break Waited::Taken(taken);
            }
            if matches!(got, Got::Nothing) {
                break Waited::NotYet;
            }
        };
        // It may have been told to lead, and needs it no more.
        state.pass_on();
        waited
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        call: u64,
        until: Instant,
    ) -> (Waited, MutexGuard<'a, State>) {
        loop {
            let Some(raw) = &mut state.raw else { return (Waited::Closed, state) };
            let more = raw.progress();
            let taken = raw.take(call);
            state.hand_out();
            if !matches!(taken, Taken::NotYet) {
                return (Waited::Taken(taken), state);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (Waited::NotYet, state);
            }
            let Some(raw) = &mut state.raw else { return (Waited::Closed, state) };
            let interrupted = !more && raw.wait_for_news(left).is_err_and(|e| e.kind() == ErrorKind::Interrupted);
            if self.wanted.load(Ordering::SeqCst) != 0 {
                state = self.yielded(state);
            } else if interrupted {
                // A signal, or a call that was dropped.
                return (Waited::NotYet, state);
            }
        }
    }

    /// Ends the connection: what is under way ends with it, also for those that wait.
    pub(crate) fn close(&self) -> ramway::Result<()> {
        let mut state = self.lock();
        let raw = state.raw.take();
        state.followers.drain().for_each(|(_, slot)| slot.put(Got::Look));
        drop(state);
        raw.map_or(Ok(()), RawClient::close)
    }
}
