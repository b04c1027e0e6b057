//! A region's notification word: bit 0 = somebody sleeps on it, the rest counts notifications. Any number of waiters.
//!
//! A waiter sleeps only on the exact value that has its bit and the count it knows. The notifier's one addition comes
//! before the waiter's CAS, which then fails, or after it, and then it sees the bit. So neither side fences.

use crate::sync::{AtomicU32, Ordering};
use crate::sys::futex;
use std::time::Duration;

/// Somebody sleeps on the word.
pub(crate) const WAITING: u32 = 1;
/// One notification.
pub(crate) const NOTIFICATION: u32 = 2;

/// Counts one notification, after everything that this thread wrote before, and wakes everyone who sleeps.
#[inline]
pub(crate) fn notify(word: &AtomicU32) {
    // Release: whoever acquires the count sees what was written before.
    if word.fetch_add(NOTIFICATION, Ordering::Release) & WAITING != 0 {
        wake(word);
    }
}

#[cold]
fn wake(word: &AtomicU32) {
    // The bit goes first: whoever sets it again from now on sleeps on a value that has this notification in it.
    // Relaxed: the word's own order is all that counts. A bit that a killed waiter left costs this once.
    word.fetch_and(!WAITING, Ordering::Relaxed);
    futex::wake_all(word);
}

/// The notifications so far (an even number, wrapping), and all that their senders wrote before them.
#[inline]
pub(crate) fn count(word: &AtomicU32) -> u32 {
    // Acquire: pairs with the release in `notify`.
    word.load(Ordering::Acquire) & !WAITING
}

/// One round of a wait: the new count if it is not `known` any more, else `None` after a sleep of at most `longest`,
/// which may have been none at all.
pub(crate) fn round(word: &AtomicU32, known: u32, longest: Duration) -> Option<u32> {
    match arm(word, known) {
        Ok(value) => {
            futex::wait(word, value, longest);
            None
        }
        Err(changed) => changed,
    }
}

/// Says that somebody waits for more than `known` notifications. `Ok`: the value to sleep on. `Err`: the new count, or
/// nothing if another waiter or a notifier was faster and this is to be tried again.
pub(crate) fn arm(word: &AtomicU32, known: u32) -> Result<u32, Option<u32>> {
    // Acquire: as in `count`.
    let value = word.load(Ordering::Acquire);
    if value & !WAITING != known {
        return Err(Some(value & !WAITING));
    }
    // Relaxed: the count was compared in `value`, and the CAS fails if it has changed since.
    if value & WAITING != 0
        || word.compare_exchange(value, value | WAITING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        Ok(value | WAITING)
    } else {
        Err(None)
    }
}
