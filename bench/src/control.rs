//! The page by which the leading process tells the following one what comes next.

use crate::area::{Area, futex_wait, futex_wake};
use crate::{Result, clock};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

/// Samples that the following process can hand over after one burst.
pub(crate) const SAMPLES_MAX: usize = 1024;
const SAMPLES: usize = 4096;
const LENGTH: usize = SAMPLES + SAMPLES_MAX * 8;

/// No burst of any candidate takes this long; a wait beyond it means that the other process hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// What `follow` reports instead of a burst's number if it failed.
const FAILED: u32 = u32::MAX;
const QUIT: u64 = u64::MAX;

// One line each, so that a poll of one does not disturb another.
const BURST: usize = 0;
const READY: usize = 128;
const DONE: usize = 256;
const CASE: usize = 384;
const ARMED: usize = 512;
const SENT: usize = 640;
const COUNT: usize = 768;

pub(crate) struct Control {
    area: Area,
    burst: u32,
}

impl Control {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { area: Area::new(LENGTH)?, burst: 0 })
    }

    pub(crate) fn inherited(fd: RawFd) -> Result<Self> {
        Ok(Self { area: Area::inherited(fd, LENGTH)?, burst: 0 })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.area.fd()
    }

    /// Leader: starts a burst of a case, once the follower has come to it.
    pub(crate) fn start(&mut self, case: usize) -> Result<()> {
        self.announce(case as u64);
        let (ready, burst) = (self.area.half_word(READY), self.burst);
        // Acquire, here and below: pairs with the other side's release store of the same word.
        spin_until(|| matches!(ready.load(Acquire), n if n == burst || n == FAILED))
    }

    /// Leader: waits for the follower to be through.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let done = self.area.half_word(DONE);
        let began = Instant::now();
        let mut tries = 0u32;
        // Without yielding: this wait is inside what is measured.
        while done.load(Acquire) != self.burst {
            std::hint::spin_loop();
            tries = tries.wrapping_add(1);
            if tries.is_multiple_of(65_536) && (done.load(Acquire) == FAILED || began.elapsed() > PATIENCE) {
                return Err("the second process failed or hangs; what it said is on stderr".into());
            }
        }
        Ok(())
    }

    /// Leader: the samples of the burst that just finished.
    pub(crate) fn samples(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.area.word(COUNT).load(Relaxed) as usize;
        (0..count.min(SAMPLES_MAX)).map(|i| self.area.word(SAMPLES + i * 8).load(Relaxed))
    }

    /// Leader: ends the follower's loop.
    pub(crate) fn quit(&mut self) {
        self.announce(QUIT);
    }

    fn announce(&mut self, case: u64) {
        self.burst += 1;
        self.area.word(CASE).store(case, Relaxed);
        self.area.word(COUNT).store(0, Relaxed);
        self.area.half_word(ARMED).store(0, Relaxed);
        // SeqCst: before the wake-up, so that a follower that is about to sleep sees it or is woken.
        self.area.half_word(BURST).store(self.burst, SeqCst);
        futex_wake(self.area.half_word(BURST));
    }

    /// Follower: the next case, or `None` at the end. Sleeps if there is none for a while, so that mechanisms that live
    /// in the leading process alone have this processor to themselves.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let word = self.area.half_word(BURST);
        for _ in 0..2_000 {
            if word.load(Acquire) != self.burst {
                break;
            }
            std::hint::spin_loop();
        }
        while word.load(Acquire) == self.burst {
            futex_wait(word, self.burst);
        }
        self.burst = word.load(Acquire);
        let case = self.area.word(CASE).load(Relaxed);
        (case != QUIT).then_some(case as usize)
    }

    pub(crate) fn ready(&self) {
        self.area.half_word(READY).store(self.burst, Release);
    }

    pub(crate) fn done(&self) {
        self.area.half_word(DONE).store(self.burst, Release);
    }

    pub(crate) fn failed(&self) {
        self.area.half_word(READY).store(FAILED, Release);
        self.area.half_word(DONE).store(FAILED, Release);
    }

    /// Follower: "I am about to sleep for the n-th time in this burst."
    pub(crate) fn arm(&self, n: u32) {
        self.area.half_word(ARMED).store(n, Release);
    }

    /// Leader: waits for [`arm`](Self::arm), gives the follower time to fall asleep and its processor to go idle, and
    /// notes when it is going to be woken.
    pub(crate) fn let_sleep(&self, n: u32) -> Result<()> {
        let armed = self.area.half_word(ARMED);
        spin_until(|| armed.load(Acquire) == n)?;
        // A spread of times, so that no beat with a timer of the kernel is measured.
        let nap = Duration::from_micros(60 + u64::from(n * 37 % 80));
        let began = Instant::now();
        while began.elapsed() < nap {
            std::hint::spin_loop();
        }
        self.area.word(SENT).store(clock::now(), Release);
        Ok(())
    }

    /// Follower: how long ago, in ticks, the leader began to wake it; kept as a sample.
    pub(crate) fn woken(&self) {
        let now = clock::now();
        self.sample(now.saturating_sub(self.area.word(SENT).load(Acquire)));
    }

    pub(crate) fn sample(&self, value: u64) {
        let count = self.area.word(COUNT).load(Relaxed) as usize;
        if count < SAMPLES_MAX {
            self.area.word(SAMPLES + count * 8).store(value, Relaxed);
            self.area.word(COUNT).store(count as u64 + 1, Relaxed);
        }
    }
}

/// For waits outside of what is measured: gives the processor away now and then.
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    let mut tries = 0u32;
    while !condition() {
        tries += 1;
        if tries.is_multiple_of(4096) {
            std::thread::yield_now();
            if began.elapsed() > PATIENCE {
                return Err("the other process hangs".into());
            }
        }
        std::hint::spin_loop();
    }
    Ok(())
}
