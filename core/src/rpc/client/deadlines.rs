//! When calls time out, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A heap of deadlines. One whose call has ended stays in it until its time has come, or until more than half of them are such:
/// so a call costs a push, whatever becomes of it, and what is kept is at most twice what is needed.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Calls that have a deadline and no outcome.
    live: usize,
}

/// Fewer deadlines than this are not worth tidying.
const FEW: usize = 64;

impl Deadlines {
    /// `is_live` says whether a call has no outcome yet.
    pub(super) fn add(&mut self, at: Instant, call: u64, is_live: impl Fn(u64) -> bool) {
        if self.heap.len() >= FEW && self.heap.len() > 2 * self.live {
            self.heap.retain(|Reverse((_, call))| is_live(*call));
        }
        self.live += 1;
        self.heap.push(Reverse((at, call)));
    }

    /// A call with a deadline has its outcome.
    pub(super) fn decided(&mut self) {
        self.live -= 1;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The next call whose time is over; it is no longer here then.
    pub(super) fn next_over(&mut self, now: Instant, is_live: impl Fn(u64) -> bool) -> Option<u64> {
        if self.first(is_live)? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, call))| call)
    }

    /// How many are kept, those of calls that have ended included.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.heap.len()
    }

    /// When the first time-out is due.
    #[inline]
    pub(super) fn first(&mut self, is_live: impl Fn(u64) -> bool) -> Option<Instant> {
        if self.live == 0 && !self.heap.is_empty() {
            self.heap.clear();
        }
        while let Some(Reverse((at, call))) = self.heap.peek() {
            if is_live(*call) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }
}
