//! What every row's pool is asked before it is timed: that a buffer has one owner, and all the room that was asked for.

use super::Buffers;
use crate::Result;
use crate::channel::DAMAGED;
use std::collections::HashSet;

/// All buffers of a check together, at most.
const BYTES: usize = 128 << 20;
const WORD: usize = size_of::<u64>();

/// Buffers of this length that one thread has at a time in a check.
pub(super) fn at_once(len: usize) -> usize {
    (BYTES / len.max(1)).clamp(2, 16)
}

/// Several buffers at a time, twice so that the second ones have had an owner before: a word at both ends of each, which
/// nobody else may overwrite. `thread` makes the words those of this thread.
#[inline(never)]
pub(super) fn owners<B: Buffers>(from: &B, len: usize, thread: u64) -> Result<()> {
    // Without room for a word at each end there is nothing to look at.
    let len = len.max(2 * WORD);
    for pass in 0..2u64 {
        let mut all: Vec<_> = (0..at_once(len)).map(|_| from.get(len)).collect();
        let mut starts = HashSet::new();
        for (n, buffer) in (0..).zip(&mut all) {
            let start = B::start(buffer);
            if !starts.insert(start) {
                return Err(format!("{DAMAGED}: one buffer has two owners").into());
            }
            for end in ends(start, len) {
                // SAFETY: inside of the `len` bytes that this thread has just got.
                unsafe { end.write_unaligned(word(thread, pass, n)) };
            }
        }
        // Others write too.
        std::thread::yield_now();
        for (n, buffer) in (0..).zip(&mut all) {
            for end in ends(B::start(buffer), len) {
                // SAFETY: as above, and written just now.
                if unsafe { end.read_unaligned() } != word(thread, pass, n) {
                    return Err(format!("{DAMAGED}: somebody else has written to a buffer").into());
                }
            }
        }
    }
    Ok(())
}

fn ends(start: *mut u8, len: usize) -> [*mut u64; 2] {
    [start.cast(), start.wrapping_add(len - WORD).cast()]
}

fn word(thread: u64, pass: u64, n: u64) -> u64 {
    thread << 40 | pass << 32 | n
}
