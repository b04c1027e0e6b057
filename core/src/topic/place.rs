//! Where a topic lies in this process: its block, its subscribers' area, and which slot is this side's.

use crate::facts;
use crate::layout::{SLOTS_OFFSET, Slot, SubscribersHead, TOPIC_LOSSY_ONLY, TOPIC_MAY_EJECT, TopicBlock};
use crate::segment::SlotLocks;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, keep};
use std::ptr::NonNull;

/// How a subscriber reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// The publisher waits for it: it sees every message.
    #[default]
    Reliable = 0,
    /// The publisher never waits for it: it sees every message that it is fast enough for, and how many it lost.
    Lossy = 1,
    /// The publisher never waits for it: it reads the newest message.
    Latest = 2,
}

impl Policy {
    /// Of whom a slot belongs to: `reliable` if the publisher waits, or waited, for it (GATING, DURABLE or EJECTED), and
    /// what its flags say.
    pub(super) fn of_slot(reliable: bool, latest: bool) -> Self {
        match (reliable, latest) {
            (true, _) => Self::Reliable,
            (false, true) => Self::Latest,
            (false, false) => Self::Lossy,
        }
    }
}

/// Where a topic lies besides its block and its data, and what one side of it is.
#[derive(Debug)]
pub struct Place {
    words: Words,
    /// Whose slots are alive.
    pub(super) locks: SlotLocks,
    /// What the side was opened as.
    pub(super) side: SideOptions,
}

/// What one side is.
#[derive(Debug)]
pub(super) enum SideOptions {
    Publisher {
        /// Nanoseconds after which a subscriber that blocks is ejected; 0 = never.
        eject_after: u64,
        /// Every message says when it was sent.
        timestamps: bool,
    },
    Subscriber(super::join::Joined),
}

impl Place {
    pub(super) fn new(words: Words, locks: SlotLocks, side: SideOptions) -> Self {
        Self { words, locks, side }
    }

    /// What both the positions and the words of a side need of it.
    pub(super) fn words(&self) -> Words {
        self.words
    }
}

/// The shared words of the subscribers' area. A copy of where they are, valid as long as the area is mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Where the area begins in this process.
    pub area: NonNull<SubscribersHead>,
    slots: u32,
    flags: u32,
}

// SAFETY: `area` leads into a mapping that the attachment's header keeps and that has no thread affinity; what is there is
// atomic.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// # Safety
    /// `area` is the start of a mapped area with this many slots, which stays mapped as long as this, or a copy of it, is
    /// used.
    pub(super) unsafe fn new(area: NonNull<SubscribersHead>, slots: u32, flags: u32) -> Self {
        Self { area, slots, flags }
    }

    pub(super) fn area<'a>(&self) -> &'a SubscribersHead {
        // SAFETY: mapped as long as this is used, by the contract of `new`; it is atomics all through.
        unsafe { self.area.as_ref() }
    }

    /// The word that the publisher sleeps on.
    pub(super) fn publisher_wait<'a>(&self) -> &'a AtomicU32 {
        &self.area().publisher_wait
    }

    /// The subscribers' word: low half the futex word, high half `changes`.
    #[inline(always)]
    pub(super) fn word<'a>(&self) -> &'a AtomicU64 {
        &self.area().word
    }

    /// How often a subscriber has come or gone.
    pub(super) fn changes(&self) -> u32 {
        // Acquire: pairs with the joiner's addition, after which its slot is to be seen.
        changes_of(self.word().load(Ordering::Acquire))
    }

    /// A subscriber came, went, or chose its cursor anew.
    pub(super) fn count_change(&self) {
        // Release: what was stored into the slot before is visible to who sees the new count.
        self.word().fetch_add(1 << 32, Ordering::Release);
    }

    pub(super) fn slot_count(&self) -> u32 {
        self.slots
    }

    pub(super) fn slot<'a>(&self, index: u32) -> &'a Slot {
        debug_assert!(index < self.slots);
        // SAFETY: the area has `slots` slots, which lie right behind its head.
        unsafe { &*self.area.as_ptr().cast::<u8>().add(SLOTS_OFFSET).cast::<Slot>().add(index as usize) }
    }

    pub(super) fn slots<'a>(&self) -> impl Iterator<Item = (u32, &'a Slot)> + use<'a> {
        let words = *self;
        (0..self.slots).map(move |index| (index, words.slot(index)))
    }

    pub(super) fn may_gate(&self) -> bool {
        self.flags & TOPIC_LOSSY_ONLY == 0
    }

    pub(super) fn may_eject(&self) -> bool {
        self.flags & TOPIC_MAY_EJECT != 0
    }
}

pub(super) fn changes_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The subscriber's state of a slot: an epoch and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
    pub(super) fn load(slot: &Slot) -> Self {
        // Acquire: pairs with the join's release, before which the cursor was stored.
        Self(slot.state.load(Ordering::Acquire))
    }

    pub(super) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The next epoch, with these flags.
    pub(super) fn next(self, flags: u64) -> Self {
        Self(u64::from(self.epoch().wrapping_add(1).max(1)) << 32 | flags)
    }

    /// This epoch without flags.
    pub(super) fn without_flags(self) -> Self {
        self.with_only(0)
    }

    /// This epoch, with those of the flags that are among these.
    pub(super) fn with_only(self, flags: u64) -> Self {
        // The epoch tells one subscriber of the slot from the next: whoever has loaded the state of one must not change
        // another's by it.
        Self(self.0 & (flags | if keep(Step::KeepEpoch) { !0xFFFF_FFFF } else { 0 }))
    }

    /// Sets the state of a slot whose lock is held and that does not gate: nobody else changes it but for its flags, by a
    /// [`swap`](Self::swap) from the state of a subscriber that is gone, which this makes fail.
    pub(super) fn set(self, slot: &Slot) {
        // Release: the cursor and the slot's other words go first. An exchange where a store would do: so that all changes of a
        // state are read-modify-writes, which the models' memory keeps in one order.
        slot.state.swap(self.0, Ordering::Release);
    }

    /// Changes the slot from this state to `to`, unless it has changed already.
    pub(super) fn swap(self, slot: &Slot, to: Self) -> Result<(), Self> {
        // AcqRel: what was done before is visible to who sees the new state; a failure gives the state that is there.
        slot.state.compare_exchange(self.0, to.0, Ordering::AcqRel, Ordering::Acquire).map(|_| ()).map_err(Self)
    }
}

/// The block of a topic, valid as long as the header page is mapped.
///
/// # Safety
/// `block` is the block of a mapped topic, and is used no longer than it is mapped.
#[inline(always)]
pub(super) unsafe fn block<'a>(block: *const TopicBlock) -> &'a TopicBlock {
    // SAFETY: the caller's; it is atomics all through but for the geometry, which nobody writes after creation.
    unsafe { &*block }
}

/// Which of the 16 parts of the data a position lies in, of all laps.
pub(super) fn chunk_of(position: u64, capacity: u64) -> u64 {
    position / chunk_size(capacity)
}

pub(super) fn chunk_size(capacity: u64) -> u64 {
    capacity / facts::TOPIC_CHUNKS
}
