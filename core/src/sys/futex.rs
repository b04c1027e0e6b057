//! Futexes: the calls of the system's backend, and what a word of 64 bits needs, of which the kernel compares the lower half.

pub(crate) use super::backend::futex::{WAIT_ANY_MAX, wait, wait_any, wake_all};
pub(crate) use super::wake::Wake;
use crate::sync::{AtomicU32, AtomicU64};
use std::time::Duration;

/// The half of a word that holds its lower bits. It is only handed to the kernel.
pub(crate) fn low(word: &AtomicU64) -> &AtomicU32 {
    // SAFETY: the lower half comes first (little-endian), has the alignment of the whole, and lives as long.
    unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
}

/// [`wait`] on the lower half of a word of 64 bits.
pub(crate) fn wait_low(word: &AtomicU64, expected: u32, timeout: Duration) -> Wake {
    wait(low(word), expected, timeout)
}

/// [`wake_all`] on the lower half of a word of 64 bits.
#[cold]
pub(crate) fn wake_all_low(word: &AtomicU64) {
    wake_all(low(word));
}
