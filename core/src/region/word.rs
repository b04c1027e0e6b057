//! A region's notification word: bit 0 = somebody sleeps on it, the rest counts notifications. Any number of waiters.
//!
//! A waiter sleeps only on the exact value that has its bit and the count it knows. The notifier's one addition comes
//! before the waiter's CAS, which then fails, or after it, and then it sees the bit. So neither side fences.

use crate::facts::REGION_POLL_INTERVAL;
pub(crate) use crate::facts::{NOTIFY_ONE, NOTIFY_WAITING};
use crate::sync::{AtomicU32, Ordering};
use crate::sys::futex::{self, Wake};
use crate::wait::{Armed, Word};
use std::time::Duration;

/// In the tests of this module no interval comes to the rescue of a lost wake-up.
#[cfg(test)]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(3_600);
#[cfg(not(test))]
use crate::wait::POLL_INTERVAL;

/// Counts one notification, after everything that this thread wrote before, and wakes everyone who sleeps.
#[inline]
pub(crate) fn notify(word: &AtomicU32) {
    // Release: a reader that acquires the count sees what was written before.
    if word.fetch_add(NOTIFY_ONE, Ordering::Release) & NOTIFY_WAITING != 0 {
        wake(word);
    }
}

#[cold]
fn wake(word: &AtomicU32) {
    // The bit goes first: a waiter that sets it again from now on sleeps on a value that has this notification in it.
    // Relaxed: the word's own order is all that counts. A bit that a killed waiter left costs this once.
    word.fetch_and(!NOTIFY_WAITING, Ordering::Relaxed);
    futex::wake_all(word);
}

/// The notifications so far (an even number, wrapping), and all that their senders wrote before them.
#[inline]
pub(crate) fn count(word: &AtomicU32) -> u32 {
    // Acquire: pairs with the release in `notify`.
    word.load(Ordering::Acquire) & !NOTIFY_WAITING
}

/// The word for a waiter that knows of this many notifications.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionWord<'a> {
    pub(crate) word: &'a AtomicU32,
    pub(crate) known: u32,
    /// Without it nobody can be told to wake this waiter, which then sleeps for short intervals.
    pub(crate) writable: bool,
}

impl Word for RegionWord<'_> {
    fn arm(&self) -> Armed {
        // Relaxed: the check that follows acquires, and a CAS fails where the count has changed since.
        let mut value = self.word.load(Ordering::Relaxed);
        // With another count the check ends the wait: no bit, which would cost the notifier a system call.
        while self.writable && value == self.known {
            match self.word.compare_exchange(value, value | NOTIFY_WAITING, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => value |= NOTIFY_WAITING,
                Err(now) => value = now,
            }
        }
        Armed { expected: value, longest: if self.writable { POLL_INTERVAL } else { REGION_POLL_INTERVAL } }
    }

    /// Other waiters sleep on the same bit.
    fn set(&self) -> u32 {
        self.arm().expected
    }

    fn longest(&self, _: bool) -> Duration {
        // Ordered by its own exchange.
        if self.writable { POLL_INTERVAL } else { REGION_POLL_INTERVAL }
    }

    fn disarm(&self) {}

    fn sleep(&self, expected: u32, timeout: Duration) -> Wake {
        futex::wait(self.word, expected, timeout)
    }

    fn value(&self) -> u32 {
        // Relaxed: orders nothing.
        self.word.load(Ordering::Relaxed)
    }

    fn interrupt(&self) -> Option<&AtomicU32> {
        None
    }
}
