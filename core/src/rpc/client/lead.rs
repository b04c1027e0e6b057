//! Who receives where many wait for one client: one of them leads, and receives for all; the others sleep.
//!
//! The leader wakes the owners of what has come. Who leaves, for whatever reason, while nobody leads and others wait, wakes one of
//! them. A new caller that finds nobody leading leads at once: who was woken then sleeps again. To look whether there is something
//! and to register for being woken is one locked step. `core/models` shows that each of these is needed.

use std::collections::BTreeMap;

use crate::sync::{Step, keep};

/// The part that is locked. `W` wakes one who waits.
#[derive(Debug)]
pub struct Lead<W> {
    /// The call whose owner receives.
    leader: Option<u64>,
    /// Who sleeps, by call. One owner waits for a call at a time.
    waiting: BTreeMap<u64, W>,
}

impl<W> Default for Lead<W> {
    fn default() -> Self {
        Self { leader: None, waiting: BTreeMap::new() }
    }
}

impl<W> Lead<W> {
    /// Whether the owner of `call` leads: from now on, or as before.
    pub fn take(&mut self, call: u64) -> bool {
        *self.leader.get_or_insert(call) == call
    }

    /// The owner of `call` no longer leads, if it did.
    pub fn give_up(&mut self, call: u64) -> bool {
        let led = self.leader == Some(call);
        if led {
            self.leader = None;
        }
        led
    }

    /// Has the owner of `call` woken when something comes for it, or when somebody has to lead.
    pub fn register(&mut self, call: u64, waiter: W) {
        self.waiting.insert(call, waiter);
    }

    pub fn unregister(&mut self, call: u64) {
        self.waiting.remove(&call);
    }

    /// Something has come for `call`: who is to be woken.
    pub fn owner(&mut self, call: u64) -> Option<W> {
        self.waiting.remove(&call)
    }

    /// The leader, where it is registered as well: who is to be woken, so that it looks again.
    pub fn leader(&mut self) -> Option<W> {
        self.waiting.remove(&self.leader?)
    }

    /// Somebody leaves: who is to be woken, so that somebody leads.
    pub fn next(&mut self) -> Option<W> {
        if self.leader.is_some() {
            return None;
        }
        self.waiting.pop_first().map(|(_, waiter)| waiter)
    }

    /// All who sleep and whose numbers are at least this.
    pub fn from(&mut self, number: u64) -> impl Iterator<Item = W> {
        self.waiting.split_off(&number).into_values()
    }

    /// All who sleep.
    pub fn all(&mut self) -> impl Iterator<Item = W> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

/// What those who wait have in common.
pub trait Crew {
    /// The locked state.
    type Guard<'a>
    where
        Self: 'a;
    /// Wakes one who waits.
    type Waiter;
    /// How long one waits.
    type Limit;

    fn lock(&self) -> Self::Guard<'_>;

    fn lead<'a>(guard: &'a mut Self::Guard<'_>) -> &'a mut Lead<Self::Waiter>;

    /// Whether there is something to be taken for a call.
    fn is_done(&self, guard: &mut Self::Guard<'_>, call: u64) -> bool;

    /// Whether the time to wait has passed.
    fn is_over(&self, limit: &Self::Limit) -> bool;

    /// What wakes this thread, which waits for `call`.
    fn waiter(&self, call: u64) -> Self::Waiter;

    /// As the leader, for whose call nothing has come: unlocks, waits until something comes, locks, and hands it out to the
    /// owners.
    fn receive<'a>(&'a self, guard: Self::Guard<'a>, call: u64, limit: &Self::Limit) -> Self::Guard<'a>;

    /// Registered: unlocks, sleeps until the waiter is woken, locks.
    fn sleep<'a>(&'a self, guard: Self::Guard<'a>, call: u64, limit: &Self::Limit) -> Self::Guard<'a>;

    fn wake(&self, waiter: Self::Waiter);
}

/// Waits until there is something to be taken for a call: true; false if the time has passed.
pub fn wait<C: Crew>(crew: &C, call: u64, limit: &C::Limit) -> bool {
    let mut guard = crew.lock();
    let mut led = false;
    let done = loop {
        if crew.is_done(&mut guard, call) {
            break true;
        }
        if crew.is_over(limit) {
            break false;
        }
        if C::lead(&mut guard).take(call) {
            led = true;
            guard = crew.receive(guard, call, limit);
            // Taken again below, as nobody comes between.
            C::lead(&mut guard).give_up(call);
            continue;
        }
        if !keep(Step::LookAndRegister) {
            drop(guard);
            guard = crew.lock();
        }
        C::lead(&mut guard).register(call, crew.waiter(call));
        guard = crew.sleep(guard, call, limit);
        C::lead(&mut guard).unregister(call);
    };
    let next = if keep(if led { Step::PassLead } else { Step::PassOn }) { C::lead(&mut guard).next() } else { None };
    drop(guard);
    if let Some(next) = next {
        crew.wake(next);
    }
    done
}
