//! The page by which the leading process tells the following one what comes next, and hears what it measured.

use crate::area::{Area, futex_wait, futex_wait_untimed, futex_wake};
use crate::case::{Burst, Test};
use crate::usage::{Usage, Used};
use crate::{Result, clock};
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

/// Samples that the following process can hand over after one burst.
pub(crate) const SAMPLES_MAX: u64 = 1 << 14;

/// The most samples of one burst: where the leading process takes them, they need not fit here.
pub(crate) fn samples_max(test: Test) -> u64 {
    if matches!(test, Test::Rtt | Test::Pauses | Test::Call) { 16 * SAMPLES_MAX } else { SAMPLES_MAX }
}

const SAMPLES: usize = 4096;
const LENGTH: usize = SAMPLES + SAMPLES_MAX as usize * 8;

/// No candidate takes this long to come to a burst; a wait beyond it means that the other process hangs.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// What the follower reports instead of a burst's number if it failed.
const FAILED: u32 = u32::MAX;

// One line each, so that a poll of one does not disturb another.
const BURST: usize = 0;
const READY: usize = 128;
const DONE: usize = 256;
const ARMED: usize = 384;
const SENT: usize = 512;
/// How many samples there are.
const COUNT: usize = 640;
/// When the follower was through, and what it used.
const ENDED: usize = 768;
/// The number of the burst that has begun.
const GO: usize = 896;
/// Eight parts for each side: 24 bytes of name and a word of ticks.
const PARTS: usize = 1024;
const PARTS_MAX: usize = 8;
const PART: usize = 32;
/// Length and JSON of the burst; length 0 ends the follower.
const TEXT: usize = 2048;

/// What ties the two processes' halves of a burst together. A [`Channel`](crate::Channel) never sees it; an
/// [`End`](crate::End) of its own may want to say when what it measures began and ended, and what it was made of.
pub struct Control {
    area: Area,
    burst: u32,
    follows: bool,
    usage: Cell<Option<Usage>>,
    began: Cell<u64>,
    ended: Cell<u64>,
    used: Cell<Used>,
    ratios: RefCell<Vec<(String, f64)>>,
    operations: Cell<Option<u64>>,
}

impl Control {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self::over(Area::new(LENGTH)?, false))
    }

    pub(crate) fn inherited(fd: RawFd) -> Result<Self> {
        Ok(Self::over(Area::inherited(fd, LENGTH)?, true))
    }

    fn over(area: Area, follows: bool) -> Self {
        let (usage, used) = (Cell::new(None), Cell::new(Used::default()));
        let (began, ended, ratios, operations) = (Cell::new(0), Cell::new(0), RefCell::default(), Cell::new(None));
        Self { area, burst: 0, follows, usage, began, ended, used, ratios, operations }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.area.fd()
    }

    /// What is measured begins now: for an end that has something to prepare first. Without a call it begins with
    /// `lead` and `follow`.
    pub fn begin(&self) {
        self.usage.set(Some(Usage::begin()));
        self.began.set(clock::now());
    }

    /// What is measured has ended: for an end that has something to clean up. Without a call it ends with `lead` and
    /// `follow`.
    pub fn end(&self) {
        if let Some(usage) = self.usage.take() {
            self.ended.set(clock::now());
            self.used.set(usage.end());
        }
    }

    /// What is measured had ended then already, in ticks of [`clock`](crate::clock): after [`end`](Self::end), for an end that
    /// learns of it later.
    pub fn ended_at(&self, ticks: u64) {
        self.ended.set(ticks);
    }

    /// Leader: how many operations the burst was, where that is not what was asked for.
    pub fn operations(&self, count: u64) {
        self.operations.set(Some(count));
    }

    /// Leader: what [`operations`](Self::operations) was told since the burst began.
    pub(crate) fn counted(&self) -> Option<u64> {
        self.operations.take()
    }

    /// Adds ticks of [`clock`](crate::clock) to a part of the operations, of which a side can have eight. The names are
    /// short (24 bytes count); the report divides by the number of operations.
    pub fn part(&self, name: &str, ticks: u64) {
        let mut padded = [0u8; 24];
        let len = name.len().min(padded.len());
        padded[..len].copy_from_slice(&name.as_bytes()[..len]);
        for slot in 0..PARTS_MAX {
            let at = self.part_at(usize::from(self.follows), slot);
            // SAFETY: this side's slots; the other side reads them when this one is through.
            let there = unsafe { &mut *self.area.bytes(at, 24).cast::<[u8; 24]>() };
            if there[0] == 0 {
                *there = padded;
            }
            if *there == padded {
                let word = self.area.word(at + 24);
                word.store(word.load(Relaxed) + ticks, Relaxed);
                return;
            }
        }
    }

    /// Leader: what the burst has shown besides times, as a plain number; the report has the median over the rounds.
    pub fn ratio(&self, name: &str, value: f64) {
        self.ratios.borrow_mut().push((name.to_owned(), value));
    }

    /// Leader: what [`ratio`](Self::ratio) was told since the burst began.
    pub(crate) fn ratios(&self) -> Vec<(String, f64)> {
        self.ratios.take()
    }

    fn part_at(&self, side: usize, slot: usize) -> usize {
        PARTS + (side * PARTS_MAX + slot) * PART
    }

    /// Leader: names and ticks of both sides' parts.
    pub(crate) fn parts(&self) -> Vec<(String, u64)> {
        let mut parts: Vec<(String, u64)> = Vec::new();
        for (side, slot) in (0..2).flat_map(|side| (0..PARTS_MAX).map(move |slot| (side, slot))) {
            let at = self.part_at(side, slot);
            // SAFETY: both sides are through.
            let name = unsafe { *self.area.bytes(at, 24).cast::<[u8; 24]>() };
            let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
            if name.is_empty() {
                continue;
            }
            let ticks = self.area.word(at + 24).load(Relaxed);
            match parts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += ticks,
                None => parts.push((name, ticks)),
            }
        }
        parts
    }

    /// Leader: starts a burst, once the follower has come to it.
    pub(crate) fn start(&mut self, burst: &Burst) -> Result<()> {
        let text = serde_json::to_vec(burst)?;
        self.ratios.take();
        self.operations.take();
        for (side, slot) in (0..2).flat_map(|side| (0..PARTS_MAX).map(move |slot| (side, slot))) {
            let at = self.part_at(side, slot);
            // SAFETY: the follower is between two bursts.
            unsafe { self.area.bytes(at, PART).write_bytes(0, PART) };
        }
        self.announce(&text)?;
        self.wait_for(READY)
    }

    /// Leader: what is measured begins on both sides.
    pub(crate) fn go(&self) {
        self.begin();
        self.tell(GO, self.burst);
    }

    /// Follower: waits for [`go`](Self::go), so that nothing is counted that the leader does not measure.
    pub(crate) fn ready(&self) -> Result<()> {
        self.tell(READY, self.burst);
        self.wait_for(GO)?;
        self.begin();
        Ok(())
    }

    /// Leader: waits for the follower to be through.
    pub(crate) fn finish(&self) -> Result<()> {
        self.wait_for(DONE)
    }

    /// Until the other process has put the burst's number there. Polls for a while, and then sleeps: one that is traced,
    /// or that has much left to read, may need the processor.
    fn wait_for(&self, offset: usize) -> Result<()> {
        let word = self.area.half_word(offset);
        let began = Instant::now();
        for _ in 0..10_000 {
            // Acquire, here and below: pairs with the other side's store of the same word.
            if word.load(Acquire) == self.burst {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        loop {
            match word.load(Acquire) {
                at if at == self.burst => return Ok(()),
                FAILED => return Err("the second process failed".into()),
                at => futex_wait(word, at),
            }
            if began.elapsed() > WAIT_MAX {
                return Err("the other process hangs".into());
            }
        }
    }

    /// Leader: from the beginning until both were through, in ticks.
    pub(crate) fn elapsed(&self) -> u64 {
        let follower = self.area.word(ENDED).load(Relaxed);
        self.ended.get().max(follower).saturating_sub(self.began.get())
    }

    /// Leader: what both used.
    pub(crate) fn used(&self) -> [Used; 2] {
        [self.used.get(), Used::from_words(std::array::from_fn(|i| self.area.word(ENDED + 8 + i * 8).load(Relaxed)))]
    }

    /// Leader: the samples that the follower took in the burst that just finished, in ticks.
    pub(crate) fn samples(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.area.word(COUNT).load(Relaxed);
        (0..count.min(SAMPLES_MAX) as usize).map(|i| self.area.word(SAMPLES + i * 8).load(Relaxed))
    }

    /// Leader: ends the follower's loop.
    pub(crate) fn quit(&mut self) {
        // An empty text always fits.
        let _ = self.announce(b"");
    }

    fn announce(&mut self, text: &[u8]) -> Result<()> {
        if text.len() > SAMPLES - TEXT - 8 {
            return Err("the burst does not fit into the control page".into());
        }
        self.burst += 1;
        // SAFETY: the follower is between two bursts and looks at the text when `BURST` has changed.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.area.bytes(TEXT + 8, text.len()), text.len()) };
        self.area.word(TEXT).store(text.len() as u64, Relaxed);
        self.area.word(COUNT).store(0, Relaxed);
        self.area.half_word(ARMED).store(0, Relaxed);
        // SeqCst: before the wake-up, so that a follower that is about to sleep sees it or is woken.
        self.area.half_word(BURST).store(self.burst, SeqCst);
        futex_wake(self.area.half_word(BURST));
        Ok(())
    }

    /// Follower: the next burst, or `None` at the end. Sleeps if no burst comes for a while, so that mechanisms that live
    /// in the leading process alone have this processor to themselves.
    pub(crate) fn next(&mut self) -> Result<Option<Burst>> {
        let word = self.area.half_word(BURST);
        for _ in 0..2_000 {
            if word.load(Acquire) != self.burst {
                break;
            }
            std::hint::spin_loop();
        }
        while word.load(Acquire) == self.burst {
            futex_wait_untimed(word, self.burst);
        }
        self.burst = word.load(Acquire);
        let len = self.area.word(TEXT).load(Relaxed) as usize;
        if len == 0 {
            return Ok(None);
        }
        // SAFETY: the leader has written the text before the burst's number, and leaves it alone until `done`.
        let text = unsafe { std::slice::from_raw_parts(self.area.bytes(TEXT + 8, len), len) };
        Ok(Some(serde_json::from_slice(text)?))
    }

    /// Stores this and wakes the other process if it sleeps there.
    fn tell(&self, offset: usize, value: u32) {
        let word = self.area.half_word(offset);
        // SeqCst: before the wake-up, as in `announce`.
        word.store(value, SeqCst);
        futex_wake(word);
    }

    /// Follower: hands over what [`end`](Self::end) has noted.
    pub(crate) fn done(&self) {
        self.area.word(ENDED).store(self.ended.get(), Relaxed);
        for (i, word) in self.used.get().to_words().into_iter().enumerate() {
            self.area.word(ENDED + 8 + i * 8).store(word, Relaxed);
        }
        self.tell(DONE, self.burst);
    }

    pub(crate) fn failed(&self) {
        self.tell(READY, FAILED);
        self.tell(DONE, FAILED);
    }

    /// Follower: "I am about to sleep for the n-th time in this burst."
    pub fn arm(&self, n: u64) {
        self.area.half_word(ARMED).store(n as u32, Release);
    }

    /// Leader: waits for [`arm`](Self::arm), gives the follower time to fall asleep and its processor to go idle, and
    /// notes when it is going to be woken.
    ///
    /// # Errors
    /// The other process hangs.
    pub fn let_sleep(&self, n: u64) -> Result<()> {
        let armed = self.area.half_word(ARMED);
        spin_until(|| matches!(armed.load(Acquire), at if at == n as u32))?;
        // A spread of times, so that no beat with a timer of the kernel is measured.
        let nap = Duration::from_micros(60 + n * 37 % 80);
        let began = Instant::now();
        while began.elapsed() < nap {
            std::hint::spin_loop();
        }
        self.sending(clock::now());
        Ok(())
    }

    /// Leader: when the operation that follows began, or was due.
    #[inline(always)]
    pub fn sending(&self, ticks: u64) {
        self.area.word(SENT).store(ticks, Release);
    }

    /// Follower: what the leader said last with [`sending`](Self::sending).
    #[inline(always)]
    pub fn sent(&self) -> u64 {
        self.area.word(SENT).load(Acquire)
    }

    /// Follower: how long ago, in ticks, the leader began to wake it; kept as a sample.
    pub fn woken(&self) {
        let now = clock::now();
        self.sample(now.saturating_sub(self.sent()));
    }

    /// Follower: ticks of `group` operations.
    #[inline(always)]
    pub fn sample(&self, ticks: u64) {
        let count = self.area.word(COUNT).load(Relaxed);
        if count < SAMPLES_MAX {
            self.area.word(SAMPLES + count as usize * 8).store(ticks, Relaxed);
            self.area.word(COUNT).store(count + 1, Relaxed);
        }
    }
}

/// For waits outside of what is measured: gives the processor away every few milliseconds.
pub(crate) fn spin_until(condition: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    let mut tries = 0u32;
    while !condition() {
        tries = tries.wrapping_add(1);
        if tries.is_multiple_of(1 << 16) {
            std::thread::yield_now();
            if began.elapsed() > WAIT_MAX {
                return Err("the other process hangs".into());
            }
        }
        std::hint::spin_loop();
    }
    Ok(())
}
