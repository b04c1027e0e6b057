//! The wait word of a role: 1 while its holder sleeps, which its one peer wakes.
//!
//! The sleeper stores 1, orders that before its second check, and sleeps while the word is 1. The waker publishes, then
//! loads the word. Both would miss each other only if the waker's load went before its own store: either the waker
//! fences between the two, or (it is "fence-free") the sleeper makes it do so by `membarrier`. The idea of the asymmetric
//! fence is that of membarrier(2).

use super::end::OnePeer;
use super::lines;
use super::side::{FacesOne, Side};
use super::waker::{Target, Waker};
use crate::Result;
use crate::facts::{UNORDERED_INTERVAL, WORD_WAKE};
use crate::layout::{ROLE_CLOSED, ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RingBlock, RoleLine};
use crate::ready::Readiness;
use crate::segment::{Header, Link, Role};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, fence, keep};
use crate::sys::futex::{self, Wake};
use crate::sys::membarrier;
use crate::wait::{Armed, POLL_INTERVAL, Word};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

pub(super) const AWAKE: u32 = 0;
const SLEEPS: u32 = 1;

/// The words of a ring's side: its role's and its peer's.
#[derive(Debug)]
pub struct RoleWord {
    mine: NonNull<RoleLine>,
    peer: OnePeer,
    /// A consumer delivers closes, and says which.
    role: Role,
    own: OwnWord,
}

/// What a side keeps of its own wait word besides its place.
#[derive(Debug)]
pub(crate) struct OwnWord {
    /// This process can membarrier. Cleared if it ever fails.
    membarrier_capable: Cell<bool>,
    /// Set by a [`Waker`](crate::Waker): the wait that is running, or the next one, is to end.
    pub(crate) interrupt: Arc<AtomicU32>,
}

impl OwnWord {
    pub(crate) fn new(membarrier_capable: bool) -> Self {
        Self { membarrier_capable: Cell::new(membarrier_capable), interrupt: Arc::new(AtomicU32::new(0)) }
    }

    /// Whether this process can membarrier, as far as is known.
    pub(crate) fn is_membarrier_capable(&self) -> bool {
        self.membarrier_capable.get()
    }

    /// The flags of a side that attaches.
    pub(crate) fn first_flags(&self) -> u32 {
        if self.membarrier_capable.get() { ROLE_MEMBARRIER_CAPABLE } else { 0 }
    }

    /// Orders what this side has just stored into its word before everything that it checks after that, and gives the
    /// longest sleep: a short one where neither side makes the order, because the waker does not fence (`unordered`) and
    /// this side cannot make it. `flags` are this side's, which say whether it can; `None` where it cannot write.
    ///
    /// A membarrier is made only where the waker says that it does not fence. One that says so after this side has looked fences
    /// before it publishes anything without a fence, and then sees the word. One that takes it back after this side's fence has
    /// published before that, which this side sees with the flag.
    pub(crate) fn order(&self, flags: Option<&AtomicU32>, unordered: impl Fn() -> bool) -> Duration {
        self.fence();
        if !unordered() {
            return POLL_INTERVAL;
        }
        if self.membarrier_capable.get() {
            if !keep(Step::Membarrier) || membarrier::sync() {
                return POLL_INTERVAL;
            }
            // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
            self.membarrier_capable.set(false);
            if let Some(flags) = flags {
                // Relaxed: only this side writes its flags, and the fence below orders the store.
                flags.store(flags.load(Ordering::Relaxed) & !ROLE_MEMBARRIER_CAPABLE, Ordering::Relaxed);
            }
            self.fence();
            if !unordered() {
                return POLL_INTERVAL;
            }
        }
        if keep(Step::ShortIntervals) { UNORDERED_INTERVAL } else { POLL_INTERVAL }
    }

    fn fence(&self) {
        if keep(Step::SleeperFence) {
            // SeqCst: the word goes before the second check; pairs with the fencing waker's fence. And before the load of its flags.
            fence(Ordering::SeqCst);
        }
    }

    /// The longest sleep where another has made the order, by a membarrier or by a fence of this process alone.
    pub(crate) fn longest(&self, membarrier: bool, unordered: impl FnOnce() -> bool) -> Duration {
        let ordered = membarrier && self.membarrier_capable.get();
        if !ordered && unordered() { UNORDERED_INTERVAL } else { POLL_INTERVAL }
    }
}

impl RoleWord {
    /// # Safety
    /// The block stays valid as long as this.
    pub(crate) unsafe fn new(block: &RingBlock, role: Role, membarrier_capable: bool) -> Self {
        let (mine, peer) = lines(block, role);
        // SAFETY: passed on from the caller.
        let peer = unsafe { OnePeer::new(peer, role) };
        Self { mine: mine.into(), peer, role, own: OwnWord::new(membarrier_capable) }
    }

    fn mine(&self) -> &RoleLine {
        // SAFETY: valid as long as `self`, by the contract of `new`.
        unsafe { self.mine.as_ref() }
    }

    /// Whether the peer, as a waker, does not fence: asked after this side's fence.
    fn unordered(&self) -> bool {
        does_not_fence(&self.peer.line().flags)
    }

    /// What is slept on.
    pub(crate) fn futex(&self) -> &AtomicU32 {
        &self.mine().wait
    }
}

impl Word for RoleWord {
    fn arm(&self) -> Armed {
        let expected = self.set();
        Armed { expected, longest: self.own.order(Some(&self.mine().flags), || self.unordered()) }
    }

    fn set(&self) -> u32 {
        // Relaxed: what follows orders it.
        self.mine().wait.store(SLEEPS, Ordering::Relaxed);
        SLEEPS
    }

    fn longest(&self, membarrier: bool) -> Duration {
        self.own.longest(membarrier, || self.unordered())
    }

    fn disarm(&self) {
        // Relaxed: a waker that still sees 1 makes one wake-up call too many, nothing else.
        self.mine().wait.store(AWAKE, Ordering::Relaxed);
    }

    fn sleep(&self, expected: u32, timeout: Duration) -> Wake {
        futex::wait(&self.mine().wait, expected, timeout)
    }

    fn value(&self) -> u32 {
        // Relaxed: orders nothing.
        self.mine().wait.load(Ordering::Relaxed)
    }

    fn interrupt(&self) -> Option<&AtomicU32> {
        Some(&self.own.interrupt)
    }
}

impl Side for RoleWord {
    fn attach(&mut self) -> u32 {
        if self.role == Role::Consumer {
            // Relaxed: the role lock orders it after the earlier receiver's store.
            let seen = self.mine().close_seen.load(Ordering::Relaxed);
            self.peer.forget_close(seen);
        }
        // A left-over 1 of a dead holder would cost the peer a wake-up call.
        self.disarm();
        attach_role(self.mine(), self.own.first_flags())
    }

    fn close(&self) {
        close_role(self.mine());
    }

    fn wake_other(&self) {
        wake(&self.peer.line().wait);
    }

    fn check_end(&self, link: &Link, ask_kernel: bool) -> Result<()> {
        self.peer.check(link, ask_kernel)
    }

    fn other_epoch(&self) -> u32 {
        self.peer.epoch()
    }

    fn is_other_alive(&self, link: &Link) -> bool {
        self.peer.is_alive(link)
    }

    fn other_waits(&self) -> bool {
        // Relaxed: a poll, which the caller repeats.
        self.peer.line().wait.load(Ordering::Relaxed) != AWAKE
    }

    fn waker(&self, header: Arc<Header>) -> Waker {
        Waker::new(self.own.interrupt.clone(), Target::Own(NonNull::from(&self.mine().wait)), header)
    }

    fn readiness(&self, link: &Link, header: Arc<Header>) -> Result<Readiness> {
        Readiness::for_role(link, self.role, self.mine(), self.peer.line(), header)
    }
}

impl FacesOne for RoleWord {
    fn peer(&self) -> &OnePeer {
        &self.peer
    }
}

/// Whether the waker whose flags these are does not fence.
pub(crate) fn does_not_fence(flags: &AtomicU32) -> bool {
    // Acquire: pairs with the release of a waker that takes it back.
    flags.load(Ordering::Acquire) & ROLE_FENCE_FREE != 0
}

/// Sets the words of a role that its new holder takes, with these flags, and gives the epoch.
pub(crate) fn attach_role(mine: &RoleLine, flags: u32) -> u32 {
    // Release, in this order: who sees the new epoch sees the flags of the new holder, not a `closed` of the old one.
    mine.flags.store(flags, Ordering::Release);
    let epoch = mine.epoch.load(Ordering::Relaxed).wrapping_add(1).max(1);
    mine.epoch.store(epoch, Ordering::Release);
    epoch
}

/// Says that the holder of a role closes.
pub(crate) fn close_role(mine: &RoleLine) {
    // Release: the last publish goes before the flag. Relaxed load: this role is the only writer.
    mine.flags.store(mine.flags.load(Ordering::Relaxed) | ROLE_CLOSED, Ordering::Release);
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

/// Wakes every subscriber whether it sleeps or not, and changes the count, so that one that is about to sleep does not. `word` is
/// their one word, whose lower half is the futex (`topic/word.rs`).
#[cold]
pub(crate) fn wake_subscribers(word: &AtomicU64) {
    // Relaxed: ordered by the caller's fence. The bit that says that somebody sleeps stays as it is.
    word.fetch_add(WORD_WAKE, Ordering::Relaxed);
    futex::wake_all_low(word);
}
