//! What a publisher that cannot go on does about the subscribers that block it: it removes the dead ones, and ejects those
//! that have blocked it for too long.

use super::frame::read_header;
use super::place::{State, Words};
use super::publisher::{Blocked, Frames};
use crate::layout::{SLOT_DURABLE, SLOT_EJECTED, SLOT_GATING, Slot, is_topic_position};
use crate::segment::SlotLocks;
use crate::sync::{Ordering, Step, fence, keep};
use crate::sys::clock;
use crate::wait::POLL_INTERVAL;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Patrol {
    words: Words,
    locks: SlotLocks,
    /// Nanoseconds; 0 = never.
    eject_after: u64,
    /// When the kernel was last asked for the locks, in coarse nanoseconds; `None`: not since this side could go on.
    asked: Option<u64>,
    /// By slot: since when it blocks.
    blocking: Vec<Option<Blocking>>,
    /// How many of them, from the first one on, may say so.
    noted: usize,
}

/// A slot that blocks.
#[derive(Clone, Copy, Debug)]
struct Blocking {
    cursor: u64,
    /// A durable subscriber that was resumed has the time anew.
    epoch: u32,
    /// In coarse nanoseconds.
    since: u64,
}

/// How often the kernel is asked for the locks while this side is blocked: a little more often than it wakes by itself, so
/// that it asks in each of its rounds although both go by a clock of coarse ticks.
const ASK_INTERVAL: u64 = POLL_INTERVAL.as_nanos() as u64 - 15_000_000;

impl Patrol {
    pub(super) fn new(words: Words, locks: SlotLocks, eject_after: u64) -> Self {
        // Where no subscriber may gate none blocks.
        let slots = if words.may_gate() { words.slot_count() as usize } else { 0 };
        Self { words, locks, eject_after, asked: None, blocking: vec![None; slots], noted: 0 }
    }

    /// The publisher is not blocked.
    #[inline(always)]
    pub(super) fn goes_on(&mut self) {
        if self.asked.is_some() {
            self.asked = None;
            self.blocking[..self.noted].fill(None);
            self.noted = 0;
        }
    }

    /// Checks the slots that block. True: one of them no longer does.
    #[cold]
    pub(super) fn check(&mut self, blocked: &Blocked, frames: &Frames) -> bool {
        let now = clock::coarse_ns();
        // A subscriber that was killed is found after an interval, as a ring's peer is. The first check only begins it.
        let asked = *self.asked.get_or_insert(now);
        let ask = now.wrapping_sub(asked) >= ASK_INTERVAL;
        if ask {
            self.asked = Some(now);
        }
        let mut freed = false;
        for (index, slot) in self.words.slots() {
            let state = State::load(slot);
            if !state.has(SLOT_GATING) || !blocks(slot, blocked, frames.capacity) {
                if let Some(entry) = self.blocking.get_mut(index as usize) {
                    *entry = None;
                }
                continue;
            }
            // The state first, then the lock: a slot that was joined anew since has another epoch, and the swap fails.
            if ask && !state.has(SLOT_DURABLE) && !self.locks.is_held(index) {
                let state = if keep(Step::StateBeforeLock) { state } else { State::load(slot) };
                freed |= change(slot, state, state.without_flags());
                continue;
            }
            if self.is_overdue(index, slot, state.epoch(), now) {
                freed |= eject(slot, state, blocked, frames);
            }
        }
        freed
    }

    /// For how long a slot has blocked at its cursor; `None` if its subscriber has read something since, or is another one.
    pub(super) fn blocks_for(&self, index: u32) -> Option<Duration> {
        let at = (*self.blocking.get(index as usize)?)?;
        let slot = self.words.slot(index);
        let state = State::load(slot);
        // Relaxed: compared, nothing else.
        let stands =
            state.has(SLOT_GATING) && state.epoch() == at.epoch && slot.cursor.load(Ordering::Relaxed) == at.cursor;
        stands.then(|| Duration::from_nanos(clock::coarse_ns().saturating_sub(at.since)))
    }

    /// Whether the slot has blocked for too long at its cursor. Notes since when it does.
    fn is_overdue(&mut self, index: u32, slot: &Slot, epoch: u32, now: u64) -> bool {
        let Some(entry) = self.blocking.get_mut(index as usize) else { return false };
        // Relaxed: compared, nothing else.
        let cursor = slot.cursor.load(Ordering::Relaxed);
        match *entry {
            Some(at) if at.cursor == cursor && at.epoch == epoch => {
                self.eject_after != 0 && now.wrapping_sub(at.since) >= self.eject_after
            }
            _ => {
                *entry = Some(Blocking { cursor, epoch, since: now });
                self.noted = self.noted.max(index as usize + 1);
                false
            }
        }
    }
}

/// Whether a gating slot keeps the message from being written.
fn blocks(slot: &Slot, blocked: &Blocked, capacity: u64) -> bool {
    // Relaxed: the scan that follows acquires.
    let cursor = slot.cursor.load(Ordering::Relaxed);
    blocked.limit.wrapping_sub(cursor) <= capacity
        && blocked.tail.wrapping_add(blocked.size).wrapping_sub(cursor) > capacity
}

fn change(slot: &Slot, from: State, to: State) -> bool {
    let changed = from.swap(slot, to).is_ok();
    // SeqCst: a subscriber that joins this slot now sees the change before it sees what the publisher writes next.
    fence(Ordering::SeqCst);
    changed
}

/// Says the number of the first message that the subscriber has not released, then ejects it. A durable one keeps its label
/// and its cursor.
fn eject(slot: &Slot, state: State, blocked: &Blocked, frames: &Frames) -> bool {
    // Relaxed: only compared and used as a place, after a check.
    let cursor = slot.cursor.load(Ordering::Relaxed);
    let unread = blocked.published.wrapping_sub(cursor);
    let in_place = is_topic_position(cursor, frames.align);
    let seq = if in_place && unread != 0 && unread <= frames.capacity {
        // SAFETY: a position within the published bytes, aligned as frames are.
        unsafe { read_header(frames.data, cursor, frames.capacity) }.seq
    } else {
        0
    };
    // Relaxed: the swap publishes it.
    slot.eject_seq.store(seq, Ordering::Relaxed);
    let to = State(state.0 & !SLOT_GATING | SLOT_EJECTED);
    keep(Step::Eject) && change(slot, state, to)
}
