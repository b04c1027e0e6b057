//! The words of a topic's two sides.
//!
//! The publisher has a futex word of its own, as a role of a ring has: 1 while it sleeps, and any subscriber wakes it. The
//! subscribers share one: bit 0 says that somebody sleeps, the rest counts the wake-ups, and the upper half of the same 64
//! bits counts the subscribers' comings and goings. A sleeper sets the bit and sleeps on the exact value. The publisher adds
//! 1 where it finds the bit, which clears it, changes the value, and is never undone by another sleeper: with a word that is
//! only 0 or 1, a second sleeper could set what the publisher had just cleared for the first.

use super::place::{State, Words, changes_of};
use crate::Result;
use crate::endpoint::Waker;
use crate::endpoint::end::{self, OnePeer};
use crate::endpoint::side::{FacesOne, Side};
use crate::endpoint::waker::Target;
use crate::endpoint::word::{OwnWord, attach_role, close_role, does_not_fence, wake, wake_subscribers};
use crate::facts::UNORDERED_INTERVAL;
use crate::layout::{PublisherLine, SLOT_ACTIVE, SLOT_DURABLE, SLOT_EJECTED, SLOT_GATING, Slot};
use crate::ready::Readiness;
use crate::segment::{Header, Link, SlotLocks};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, keep};
use crate::sys::futex::{self, Wake};
use crate::wait::{Armed, POLL_INTERVAL, Word};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

const AWAKE: u32 = 0;
const SLEEPS: u32 = 1;

/// The bit of the subscribers' word that says that somebody sleeps.
pub(super) const SOMEBODY_SLEEPS: u64 = 1;

/// A death wakes nobody, and nobody tells when a subscriber is to be ejected: so the publisher's descriptor becomes readable
/// by itself after this, which a limit shorter than the interval asks for.
const PUBLISHER_INTERVAL: Duration = Duration::from_millis(POLL_INTERVAL.as_millis() as u64 - 1);

/// The publisher's words.
#[derive(Debug)]
pub struct PublisherWord {
    line: NonNull<PublisherLine>,
    words: Words,
    eject_after: u64,
    locks: SlotLocks,
    own: OwnWord,
}

impl PublisherWord {
    /// # Safety
    /// The line and the words stay mapped as long as this.
    pub(super) unsafe fn new(
        line: &PublisherLine,
        words: Words,
        eject_after: u64,
        locks: SlotLocks,
        membarrier_capable: bool,
    ) -> Self {
        Self { line: line.into(), words, eject_after, locks, own: OwnWord::new(membarrier_capable) }
    }

    fn line(&self) -> &PublisherLine {
        // SAFETY: mapped as long as `self`, by the contract of `new`.
        unsafe { self.line.as_ref() }
    }

    /// Whether a subscriber, as a waker, does not fence: asked after this side's fence.
    fn unordered(&self) -> bool {
        self.words.slots().any(|(_, slot)| State::load(slot).has(SLOT_GATING) && does_not_fence(&slot.flags))
    }

    /// After which it checks by itself.
    fn interval(&self) -> Duration {
        let eject = if self.eject_after == 0 { PUBLISHER_INTERVAL } else { Duration::from_nanos(self.eject_after) };
        eject.clamp(UNORDERED_INTERVAL, PUBLISHER_INTERVAL)
    }

    /// What is slept on.
    pub(crate) fn futex(&self) -> &AtomicU32 {
        self.words.publisher_wait()
    }

    /// How many gating subscribers live (a system call for each).
    pub(super) fn living_subscribers(&self) -> usize {
        let gates = |slot: &Slot| State::load(slot).has(SLOT_GATING);
        self.words.slots().filter(|(index, slot)| gates(slot) && self.locks.is_held(*index)).count()
    }
}

impl Word for PublisherWord {
    fn arm(&self) -> Armed {
        let expected = self.set();
        let longest = self.own.order(Some(&self.line().role.flags), || self.unordered());
        Armed { expected, longest: longest.min(self.interval()) }
    }

    fn set(&self) -> u32 {
        // Relaxed: what follows orders it.
        self.words.publisher_wait().store(SLEEPS, Ordering::Relaxed);
        SLEEPS
    }

    fn longest(&self, membarrier: bool) -> Duration {
        self.own.longest(membarrier, || self.unordered()).min(self.interval())
    }

    fn disarm(&self) {
        // Relaxed: a subscriber that still sees 1 makes one wake-up call too many, nothing else.
        self.words.publisher_wait().store(AWAKE, Ordering::Relaxed);
    }

    fn sleep(&self, expected: u32, timeout: Duration) -> Wake {
        futex::wait(self.words.publisher_wait(), expected, timeout)
    }

    fn value(&self) -> u32 {
        // Relaxed: orders nothing.
        self.words.publisher_wait().load(Ordering::Relaxed)
    }

    fn interrupt(&self) -> Option<&AtomicU32> {
        Some(&self.own.interrupt)
    }
}

impl Side for PublisherWord {
    fn attach(&mut self) -> u32 {
        // A left-over 1 of a dead publisher would cost a subscriber a wake-up call.
        self.disarm();
        let line = self.line();
        // Relaxed: subscribers only show it.
        line.eject_after.store(self.eject_after, Ordering::Relaxed);
        attach_role(&line.role, self.own.first_flags())
    }

    fn close(&self) {
        close_role(&self.line().role);
    }

    fn wake_other(&self) {
        wake_subscribers(self.words.word());
    }

    /// Subscribers come and go: none of them ends a publisher.
    fn check_end(&self, link: &Link, ask_kernel: bool) -> Result<()> {
        if ask_kernel && link.name_vanished() { Err(end::name_vanished()) } else { Ok(()) }
    }

    fn other_epoch(&self) -> u32 {
        self.words.changes()
    }

    fn is_other_alive(&self, _: &Link) -> bool {
        self.living_subscribers() != 0
    }

    fn other_waits(&self) -> bool {
        // Relaxed: a poll, which the caller repeats.
        self.words.word().load(Ordering::Relaxed) & SOMEBODY_SLEEPS != 0
    }

    fn waker(&self, header: Arc<Header>) -> Waker {
        Waker::new(self.own.interrupt.clone(), Target::Own(NonNull::from(self.words.publisher_wait())), header)
    }

    fn readiness(&self, link: &Link, header: Arc<Header>) -> Result<Readiness> {
        Readiness::for_publisher(link, self.words.publisher_wait(), header)
    }
}

/// The words of a subscriber, of any policy.
#[derive(Debug)]
pub struct SubscriberWord {
    words: Words,
    publisher: OnePeer,
    /// `None`: it shows itself to nobody.
    slot: Option<NonNull<Slot>>,
    /// Its cursor stays when it goes.
    durable: bool,
    /// Without it nobody can be told to wake this side, which then sleeps for short intervals.
    writable: bool,
    /// How often the slot was taken, this time included; 1 without a slot.
    epoch: u32,
    own: OwnWord,
}

impl SubscriberWord {
    /// # Safety
    /// The line, the words and the slot stay mapped as long as this.
    pub(super) unsafe fn new(
        publisher: OnePeer,
        words: Words,
        joined: &super::join::Joined,
        membarrier_capable: bool,
    ) -> Self {
        let slot = joined.slot.map(|index| NonNull::from(words.slot(index)));
        let (durable, writable, epoch) = (joined.durable, joined.writable, joined.epoch);
        let mut publisher = publisher;
        publisher.forget_close(joined.close_seen);
        Self { words, publisher, slot, durable, writable, epoch, own: OwnWord::new(membarrier_capable) }
    }

    fn slot(&self) -> Option<&Slot> {
        // SAFETY: mapped as long as `self`, by the contract of `new`.
        self.slot.map(|slot| unsafe { slot.as_ref() })
    }

    /// Whether the publisher, as a waker, does not fence: asked after this side's fence.
    fn unordered(&self) -> bool {
        does_not_fence(&self.publisher.line().flags)
    }

    /// The word whose lower half is slept on.
    pub(crate) fn shared(&self) -> &AtomicU64 {
        self.words.word()
    }

    fn publisher_waits(&self) -> &AtomicU32 {
        self.words.publisher_wait()
    }

    /// Gives the slot up for good: its label and cursor are forgotten when this side goes.
    pub(super) fn forget_durable(&mut self) {
        self.durable = false;
    }
}

impl Word for SubscriberWord {
    fn arm(&self) -> Armed {
        if !self.writable {
            // The publisher is not told, so no order would help; the sleep is short.
            return Armed { expected: self.set(), longest: UNORDERED_INTERVAL };
        }
        let (expected, could) = (self.set(), self.own.is_membarrier_capable());
        let longest = self.own.order(self.slot().map(|slot| &slot.flags), || self.unordered());
        if could && !self.own.is_membarrier_capable() && self.slot().is_some() {
            // The publisher looks at a slot's flags where the count has changed.
            self.words.count_change();
        }
        Armed { expected, longest }
    }

    fn set(&self) -> u32 {
        let word = self.words.word();
        // Relaxed: what follows orders it, where this side can write; else it cannot be woken.
        let value = if self.writable {
            word.fetch_or(SOMEBODY_SLEEPS, Ordering::Relaxed) | SOMEBODY_SLEEPS
        } else {
            word.load(Ordering::Relaxed)
        };
        value as u32
    }

    fn longest(&self, membarrier: bool) -> Duration {
        if self.writable { self.own.longest(membarrier, || self.unordered()) } else { UNORDERED_INTERVAL }
    }

    fn disarm(&self) {
        // The bit stays: another subscriber may sleep by it. It costs the publisher one wake-up call.
    }

    fn sleep(&self, expected: u32, timeout: Duration) -> Wake {
        futex::wait_low(self.words.word(), expected, timeout)
    }

    fn value(&self) -> u32 {
        // Relaxed: orders nothing.
        self.words.word().load(Ordering::Relaxed) as u32
    }

    fn interrupt(&self) -> Option<&AtomicU32> {
        Some(&self.own.interrupt)
    }
}

impl Side for SubscriberWord {
    fn attach(&mut self) -> u32 {
        // The join has set the slot's words.
        self.epoch
    }

    /// Leaves: no longer gates, unless the cursor is to stay.
    fn close(&self) {
        let Some(slot) = self.slot() else { return };
        let mut state = State::load(slot);
        loop {
            let stay = if self.durable { SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED } else { 0 };
            match state.swap(slot, state.with_only(stay)) {
                Ok(()) => break,
                // The publisher has ejected it meanwhile.
                Err(now) => state = now,
            }
        }
        self.words.count_change();
    }

    fn wake_other(&self) {
        if self.writable {
            wake(self.publisher_waits());
        }
    }

    fn check_end(&self, link: &Link, ask_kernel: bool) -> Result<()> {
        self.publisher.check(link, ask_kernel)
    }

    fn other_epoch(&self) -> u32 {
        self.publisher.epoch()
    }

    fn is_other_alive(&self, link: &Link) -> bool {
        self.publisher.is_alive(link)
    }

    fn other_waits(&self) -> bool {
        // Relaxed: a poll, which the caller repeats.
        self.publisher_waits().load(Ordering::Relaxed) != AWAKE
    }

    fn waker(&self, header: Arc<Header>) -> Waker {
        let word = NonNull::from(self.words.word());
        let target = if self.writable { Target::Shared(word) } else { Target::None };
        Waker::new(self.own.interrupt.clone(), target, header)
    }

    fn readiness(&self, link: &Link, header: Arc<Header>) -> Result<Readiness> {
        if !self.writable {
            let text = "a readiness descriptor of a subscriber that may not write to the topic: such a subscriber cannot \
                        be woken";
            return Err(crate::Error::new(crate::ErrorKind::Unsupported, text));
        }
        Readiness::for_subscriber(link, self.words.word(), self.publisher.line(), header)
    }
}

impl FacesOne for SubscriberWord {
    fn peer(&self) -> &OnePeer {
        &self.publisher
    }
}

/// What follows a publish where the subscribers' word is not the one that was acted on last: `seen` is that one, always
/// even. True if subscribers came or went.
#[cold]
pub(super) fn after_publish(words: &Words, seen: &mut u64) -> bool {
    let word = words.word();
    // Relaxed: ordered after the publish by the caller.
    let mut now = word.load(Ordering::Relaxed);
    if now & SOMEBODY_SLEEPS != 0 {
        // Relaxed: the sleepers' kernel compares the value under its own lock. One addition clears the bit and counts.
        now = if keep(Step::CountWakeUps) {
            word.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
        } else {
            word.fetch_and(!SOMEBODY_SLEEPS, Ordering::Relaxed) & !SOMEBODY_SLEEPS
        };
        if keep(Step::Announce) {
            futex::wake_all_low(word);
        }
    }
    let came_or_went = changes_of(now) != changes_of(*seen);
    // Even, whatever a hostile subscriber stores: an odd one would be taken for "nothing new".
    *seen = now & !SOMEBODY_SLEEPS;
    came_or_went
}

/// Whether every active subscriber can membarrier, so that the publisher may leave its fence out.
pub(super) fn all_can_membarrier(words: &Words) -> bool {
    let capable = |slot: &Slot| {
        // Relaxed: stored before the state that was acquired.
        slot.flags.load(Ordering::Relaxed) & crate::layout::ROLE_MEMBARRIER_CAPABLE != 0
    };
    words.slots().all(|(_, slot)| !State::load(slot).has(SLOT_ACTIVE) || capable(slot))
}
