//! What a mechanism is: an end in each of two processes, and for those that carry messages the same loops over each.

use crate::Result;
use crate::clock;
use crate::control::Control;
use crate::plan::{Mode, Test};
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;

/// How much to do at a stretch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Burst {
    pub(crate) test: Test,
    pub(crate) mode: Mode,
    /// Bytes of a message; a multiple of 8.
    pub(crate) size: usize,
    /// Messages, round trips or wake-ups.
    pub(crate) count: u32,
    /// Round trips that are timed together: the counter of some machines ticks every 10 ns only.
    pub(crate) group: u32,
    /// Messages that are published together; 1 unless the mode is `batch`.
    pub(crate) batch: u32,
}

/// One side of a mechanism that is ready to be measured.
pub(crate) trait End {
    /// The half of the process that measures. Adds the ticks of every `group` round trips to `ticks` if the
    /// test is `rtt`.
    fn lead(&mut self, burst: &Burst, control: &Control, ticks: &mut Vec<u64>) -> Result<()>;
    /// The other half. Adds ticks per wake-up to the control page if the test is `wake`.
    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()>;
}

/// What the leading process has made ready before the following one exists.
pub(crate) struct Prepared {
    /// What the other process needs to know to join.
    pub(crate) ticket: String,
    /// Descriptors that it inherits under the same numbers. What owns them is inside `finish`.
    pub(crate) inherit: Vec<RawFd>,
    /// Called when the following process runs (it may be joining at the same time).
    pub(crate) finish: Box<dyn FnOnce() -> Result<Box<dyn End>>>,
}

/// One way of getting something from a process to another: a file of `mechanism/` each.
pub(crate) trait Mechanism: Sync {
    /// As the report spells it.
    fn name(&self) -> &'static str;
    /// The leading process's part, for messages of up to `capacity / 8` bytes. `directory` is its own and empty.
    fn prepare(&self, directory: &str, capacity: u64) -> Result<Prepared>;
    /// The following process's part.
    fn join(&self, ticket: &str) -> Result<Box<dyn End>>;
}

/// An end that carries messages both ways.
pub(crate) trait Channel {
    /// How the receiving side waits from now on.
    fn configure(&mut self, mode: Mode);
    /// Sends `size` bytes that `fill` writes; with `flush`, they and all before them are visible on return.
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()>;
    /// Receives at least one and at most `max` messages of `size` bytes and gives their space back. How many?
    fn receive(&mut self, size: usize, max: u32, read: impl FnMut(&[u8])) -> Result<u32>;
}

/// Writes every byte of a message: the 64-bit words `seed`, `seed + 1`, ….
#[inline(always)]
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    // The length as a constant, where it matters.
    match <&mut [u8; 32]>::try_from(&mut *bytes) {
        Ok(bytes) => fill_words(bytes, seed),
        Err(_) => fill_words(bytes, seed),
    }
}

#[inline(always)]
fn fill_words(bytes: &mut [u8], seed: u64) {
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&seed.wrapping_add(i as u64).to_ne_bytes());
    }
}

/// Reads every byte of a message.
#[inline(always)]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    match <&[u8; 32]>::try_from(bytes) {
        Ok(bytes) => sum_words(bytes),
        Err(_) => sum_words(bytes),
    }
}

#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("8 bytes"));
    bytes.chunks_exact(8).fold(0, |sum, chunk| sum.wrapping_add(word(chunk)))
}

/// Compares what was read with what `count` messages of seeds 0, 1, … hold.
pub(crate) fn verify(total: u64, size: usize, count: u32) -> Result<()> {
    let (words, count) = (size as u128 / 8, u128::from(count));
    let expected = words * (count * count.saturating_sub(1) / 2) + count * (words * words.saturating_sub(1) / 2);
    if total == expected as u64 { Ok(()) } else { Err("the bytes received are not the bytes sent".into()) }
}

impl<C: Channel> End for C {
    #[inline(never)]
    fn lead(&mut self, burst: &Burst, control: &Control, ticks: &mut Vec<u64>) -> Result<()> {
        let Burst { test, mode, size, count, group, batch } = *burst;
        self.configure(mode);
        match test {
            Test::Rtt => {
                let mut total = 0u64;
                let mut last = clock::now();
                for n in 0..count {
                    self.send(size, true, |bytes| fill(bytes, n.into()))?;
                    self.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
                    if (n + 1) % group == 0 {
                        let now = clock::now();
                        ticks.push(now - last);
                        last = now;
                    }
                }
                verify(total, size, count)
            }
            Test::OneWay => {
                for n in 0..count {
                    self.send(size, (n + 1) % batch == 0 || n + 1 == count, |bytes| fill(bytes, n.into()))?;
                }
                Ok(())
            }
            Test::Wake => {
                for n in 0..count {
                    control.let_sleep(n + 1)?;
                    self.send(size, true, |bytes| fill(bytes, n.into()))?;
                }
                Ok(())
            }
            // The time that the follower waits has passed: see `Pair::burst_after`.
            Test::Idle => self.send(size, true, |bytes| fill(bytes, 0)),
        }
    }

    #[inline(never)]
    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        let Burst { test, mode, size, count, batch, .. } = *burst;
        self.configure(mode);
        let mut total = 0u64;
        match test {
            Test::Rtt => {
                for n in 0..count {
                    self.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
                    self.send(size, true, |bytes| fill(bytes, n.into()))?;
                }
            }
            Test::OneWay => {
                let mut left = count;
                while left > 0 {
                    left -= self.receive(size, batch.min(left), |bytes| total = total.wrapping_add(sum(bytes)))?;
                }
            }
            Test::Wake => {
                for n in 0..count {
                    control.arm(n + 1);
                    self.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
                    control.woken();
                }
            }
            Test::Idle => {
                let before = cpu_time_ns();
                self.receive(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
                control.sample(cpu_time_ns() - before);
                return verify(total, size, 1);
            }
        }
        verify(total, size, count)
    }
}

/// User and system time of this process.
fn cpu_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
