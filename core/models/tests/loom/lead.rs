//! A shared RPC client: of those who wait one receives for all, and nobody is left asleep with nobody to receive.

use crate::LOST;
use loom::sync::atomic::AtomicBool;
use loom::sync::{Condvar, Mutex, MutexGuard};
use ramway_models::lead::{Crew, Lead, wait};
use ramway_models::{Step, fails_without, holds};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const CALLS: usize = 3;

/// Calls are counted from 0. A waiter is its call.
struct Client {
    state: Mutex<State>,
    /// Replies that were sent and not received.
    ring: Mutex<Vec<u64>>,
    arrived: Condvar,
    /// Whether each call's owner was woken since it slept last.
    woken: [(Mutex<bool>, Condvar); CALLS],
    /// Whether the time of each call's owner has passed.
    over: [AtomicBool; CALLS],
}

#[derive(Default)]
struct State {
    lead: Lead<u64>,
    done: [bool; CALLS],
}

impl Client {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::default()),
            ring: Mutex::new(Vec::new()),
            arrived: Condvar::new(),
            woken: std::array::from_fn(|_| (Mutex::new(false), Condvar::new())),
            over: std::array::from_fn(|_| AtomicBool::new(false)),
        })
    }

    /// The server replies.
    fn reply(&self, call: u64) {
        self.ring.lock().unwrap().push(call);
        self.arrived.notify_one();
    }

    /// The time of a call's owner passes, wherever it waits.
    fn time_passes(&self, call: u64) {
        self.over[call as usize].store(true, Ordering::SeqCst);
        drop(self.ring.lock().unwrap());
        self.arrived.notify_one();
        let (woken, changed) = &self.woken[call as usize];
        drop(woken.lock().unwrap());
        changed.notify_one();
    }

    fn call(self: &Arc<Self>, call: u64) -> loom::thread::JoinHandle<()> {
        let client = self.clone();
        loom::thread::spawn(move || {
            let done = wait(&*client, call, &call);
            assert!(done || client.over[call as usize].load(Ordering::SeqCst));
        })
    }
}

impl Crew for Client {
    type Guard<'a> = MutexGuard<'a, State>;
    type Waiter = u64;
    type Limit = u64;

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn lead<'a>(guard: &'a mut MutexGuard<'_, State>) -> &'a mut Lead<u64> {
        &mut guard.lead
    }

    fn is_done(&self, guard: &mut MutexGuard<'_, State>, call: u64) -> bool {
        guard.done[call as usize]
    }

    fn is_over(&self, call: &u64) -> bool {
        self.over[*call as usize].load(Ordering::SeqCst)
    }

    fn waiter(&self, call: u64) -> u64 {
        call
    }

    fn receive<'a>(&'a self, guard: MutexGuard<'a, State>, call: u64, _: &u64) -> MutexGuard<'a, State> {
        drop(guard);
        let mut ring = self.ring.lock().unwrap();
        while ring.is_empty() && !self.is_over(&call) {
            ring = self.arrived.wait(ring).unwrap();
        }
        let replies = std::mem::take(&mut *ring);
        drop(ring);
        let mut guard = self.lock();
        for reply in replies {
            guard.done[reply as usize] = true;
            if let Some(owner) = guard.lead.owner(reply) {
                self.wake(owner);
            }
        }
        guard
    }

    fn sleep<'a>(&'a self, guard: MutexGuard<'a, State>, call: u64, _: &u64) -> MutexGuard<'a, State> {
        drop(guard);
        let (woken, changed) = &self.woken[call as usize];
        let mut woken = woken.lock().unwrap();
        while !*woken && !self.is_over(&call) {
            woken = changed.wait(woken).unwrap();
        }
        *woken = false;
        drop(woken);
        self.lock()
    }

    fn wake(&self, waiter: u64) {
        let (woken, changed) = &self.woken[waiter as usize];
        *woken.lock().unwrap() = true;
        changed.notify_one();
    }
}

/// Two who wait, and a server that replies to one after the other.
fn two_calls() {
    let client = Client::new();
    let callers = [client.call(0), client.call(1)];
    client.reply(0);
    client.reply(1);
    for caller in callers {
        caller.join().unwrap();
    }
}

/// Three who wait. The time of one passes, perhaps when it was just woken to lead.
fn one_gives_up() {
    let client = Client::new();
    let callers = [client.call(0), client.call(1), client.call(2)];
    client.reply(0);
    client.time_passes(1);
    client.reply(2);
    for caller in callers {
        caller.join().unwrap();
    }
}

#[test]
fn everybody_gets_a_reply() {
    holds(Some(3), two_calls);
    holds(Some(1), one_gives_up);
}

#[test]
fn who_looks_and_then_registers_sleeps_through_its_reply() {
    fails_without(&[Step::LookAndRegister], LOST, Some(3), two_calls);
}

#[test]
fn a_leader_that_leaves_without_waking_anybody_leaves_all_asleep() {
    fails_without(&[Step::PassLead], LOST, Some(3), two_calls);
}

#[test]
fn who_was_woken_to_lead_and_gives_up_wakes_another_one() {
    fails_without(&[Step::PassOn], LOST, Some(2), one_gives_up);
}
