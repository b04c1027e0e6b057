//! What the tests share: sizes that can be repeated, marks in buffers, and an end to what hangs.
#![allow(dead_code)] // each test binary uses a part of it

pub mod ledger;

use ramway_pool::{Buffer, BufferPool};
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Numbers that are the same for the same seed (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0..end
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// 0..2^bits, each doubling as often as the others.
    pub fn size(&mut self, bits: usize) -> usize {
        let bits = self.below(bits + 1);
        self.below(1 << bits)
    }
}

/// Writes an owner's mark all over.
pub fn mark(bytes: &mut [u8], owner: u64) {
    let mut written = bytes.len().min(8);
    bytes[..written].copy_from_slice(&owner.to_le_bytes()[..written]);
    while written < bytes.len() {
        let more = written.min(bytes.len() - written);
        bytes.copy_within(..more, written);
        written += more;
    }
}

/// Whether every byte is still of this owner's mark.
pub fn is_marked(bytes: &[u8], owner: u64) -> bool {
    let head = bytes.len().min(8);
    bytes[..head] == owner.to_le_bytes()[..head] && bytes[head..] == bytes[..bytes.len() - head]
}

/// A buffer that is full of its owner's mark.
pub fn marked(pool: &BufferPool, len: usize, owner: u64) -> Buffer {
    let mut buffer = pool.get(len);
    assert!(buffer.is_empty(), "a new buffer shows {} bytes", buffer.len());
    assert_eq!(buffer.capacity(), len);
    fill(&mut buffer, owner);
    buffer
}

/// Writes the owner's mark into all the room there is.
pub fn fill(buffer: &mut Buffer, owner: u64) {
    let zeros = [0; 4096];
    while buffer.len() < buffer.capacity() {
        let more = (buffer.capacity() - buffer.len()).min(zeros.len());
        buffer.write_all(&zeros[..more]).unwrap();
    }
    mark(buffer, owner);
}

/// Runs a test, and ends the process if it has not come to its end by then: a deadlock is a failure, not a hang.
pub fn within<R>(limit: Duration, test: impl FnOnce() -> R) -> R {
    let limit = if cfg!(miri) { limit * 100 } else { limit };
    let (done, ended) = channel::<()>();
    let guard = std::thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("not done after {limit:?}: a deadlock, or a machine that does nothing");
            std::process::abort();
        }
    });
    let result = test();
    drop(done);
    guard.join().unwrap();
    result
}

/// How often something is done: as often as said, or with `RAMWAY_POOL_TESTS=1/20` in the environment that part of it, for
/// a sanitizer, under which everything takes that much longer. Under miri a few times.
pub fn rounds(count: usize) -> usize {
    if cfg!(miri) {
        return count.min(3);
    }
    let part = std::env::var("RAMWAY_POOL_TESTS").unwrap_or_default();
    match part.strip_prefix("1/").map(str::parse::<usize>) {
        Some(Ok(divisor @ 1..)) => (count / divisor).max(1),
        _ => count,
    }
}

/// Bytes of the block that a pool makes for `len` bytes.
pub fn block_size(len: usize) -> usize {
    let pool = BufferPool::new();
    let _one = pool.get(len);
    pool.stats().held_bytes
}
