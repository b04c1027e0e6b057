//! The wait word of a role: 1 while its holder sleeps, which its one peer wakes.
//!
//! The sleeper stores 1, orders that before its second check, and sleeps while the word is 1. The waker publishes, then
//! loads the word. Both would miss each other only if the waker's load went before its own store: either the waker
//! fences between the two, or (it is "fence-free") the sleeper makes it do so by `membarrier`. The idea of the asymmetric
//! fence is that of membarrier(2).

use crate::facts::UNORDERED_INTERVAL;
use crate::layout::{ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RoleLine};
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::sys::{futex, membarrier};
use crate::wait::{Armed, POLL_INTERVAL, Word};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

const AWAKE: u32 = 0;
const SLEEPS: u32 = 1;

/// The wait word of this side's role, and whose flags say how it is woken.
#[derive(Debug)]
pub(crate) struct RoleWord {
    mine: NonNull<RoleLine>,
    peer: NonNull<RoleLine>,
    /// This process can membarrier. Cleared if it ever fails.
    membarrier_capable: Cell<bool>,
    /// Set by a [`Waker`](crate::Waker): the wait that is running, or the next one, is to end.
    interrupt: Arc<AtomicU32>,
}

impl RoleWord {
    /// # Safety
    /// Both lines stay valid as long as this.
    pub(crate) unsafe fn new(mine: &RoleLine, peer: &RoleLine, membarrier_capable: bool) -> Self {
        Self {
            mine: mine.into(),
            peer: peer.into(),
            membarrier_capable: Cell::new(membarrier_capable),
            interrupt: Arc::new(AtomicU32::new(0)),
        }
    }

    /// This role's own words.
    pub(crate) fn mine(&self) -> &RoleLine {
        // SAFETY: valid as long as `self`, by the contract of `new`.
        unsafe { self.mine.as_ref() }
    }

    /// The peer's words.
    pub(crate) fn peer(&self) -> &RoleLine {
        // SAFETY: as above.
        unsafe { self.peer.as_ref() }
    }

    /// What a waker sets.
    pub(crate) fn interrupt_flag(&self) -> Arc<AtomicU32> {
        self.interrupt.clone()
    }
}

impl Word for RoleWord {
    fn arm(&self) -> Armed {
        let (mine, peer) = (self.mine(), self.peer());
        let armed = |longest| Armed { expected: SLEEPS, longest };
        // Relaxed: what follows orders it.
        mine.wait.store(SLEEPS, Ordering::Relaxed);
        if self.membarrier_capable.get() {
            if !keep(Step::Membarrier) || membarrier::sync() {
                return armed(POLL_INTERVAL);
            }
            // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
            self.membarrier_capable.set(false);
            // Relaxed: only this role writes its flags, and the fence below orders the store.
            let flags = mine.flags.load(Ordering::Relaxed);
            mine.flags.store(flags & !ROLE_MEMBARRIER_CAPABLE, Ordering::Relaxed);
        }
        // SeqCst fence: the store above goes before the second check; pairs with the fencing waker's fence.
        if keep(Step::SleeperFence) {
            fence(Ordering::SeqCst);
        }
        // Relaxed, after the fence: a waker that becomes fence-free fences between setting the flag and its first publish
        // without a fence.
        let unordered = peer.flags.load(Ordering::Relaxed) & ROLE_FENCE_FREE != 0;
        armed(if unordered && keep(Step::ShortIntervals) { UNORDERED_INTERVAL } else { POLL_INTERVAL })
    }

    fn disarm(&self) {
        // Relaxed: a waker that still sees 1 makes one wake-up call too many, nothing else.
        self.mine().wait.store(AWAKE, Ordering::Relaxed);
    }

    fn futex(&self) -> &AtomicU32 {
        &self.mine().wait
    }

    fn interrupt(&self) -> Option<&AtomicU32> {
        Some(&self.interrupt)
    }
}

/// The waker's slow half: called after the order between publishing and this load is made.
#[cold]
pub(crate) fn wake_if_waiting(word: &AtomicU32) {
    // Relaxed: ordered by the caller. Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
    if word.load(Ordering::Relaxed) != AWAKE {
        wake(word);
    }
}

/// Wakes the holder of a role whether it waits or not: for attach, close and epoch changes, which it must not sleep
/// through.
#[cold]
pub(crate) fn wake(word: &AtomicU32) {
    // Relaxed: a sleeper that re-armed meanwhile is woken without need and arms again.
    word.store(AWAKE, Ordering::Relaxed);
    futex::wake_all(word);
}
