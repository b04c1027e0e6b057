//! How a region's handle waits: blocking, by a look, or by a descriptor.

use std::time::{Duration, Instant};

use super::{Region, word};
use crate::error::{Error, ErrorKind, Result};
use crate::ready::{Readiness, Word};
use crate::sync::{Ordering, spin_hint};
use crate::sys::clock;
#[cfg(not(test))]
use crate::wait::POLL_INTERVAL;
use crate::wait::{Deadline, POLLS_PER_CHECK, SHORT_WAIT, SPIN_MAX, SPIN_MIN, WaitPolicy};

/// In this module's own tests no round comes to the rescue of a lost wake-up.
#[cfg(test)]
const POLL_INTERVAL: Duration = Duration::from_secs(3_600);

/// A handle without write permission cannot say that it waits, so it looks this often.
const POLL: Duration = Duration::from_millis(1);

impl Region {
    /// Blocks until somebody notifies, for at most `timeout` (`None`: forever). `true`: there was a notification
    /// since the last `wait` or `try_wait` that returned `true`, or since the handle was opened, even if it came
    /// before this call; any number of them count as one. `false`: the time passed.
    ///
    /// A read-only handle cannot be woken and looks every millisecond instead.
    ///
    /// # Errors
    /// `Closed` if the region's name was removed while this waited: no one can join any more; `Detached`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        // Relaxed: nothing is read because of what was seen earlier.
        match self.wait_since(self.seen.load(Ordering::Relaxed), timeout)? {
            Some(count) => {
                self.seen.store(count, Ordering::Relaxed);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// [`wait`](Self::wait) without waiting.
    ///
    /// # Errors
    /// `Detached`; with a [readiness descriptor](Self::readiness) also `Closed`.
    pub fn try_wait(&self) -> Result<bool> {
        let count = self.notifications()?;
        // Relaxed: as in `wait`.
        let seen = self.seen.swap(count, Ordering::Relaxed);
        match self.readiness.get() {
            Some(readiness) if seen == count => self.rearm(readiness, count),
            _ => Ok(seen != count),
        }
    }

    /// Arms the descriptor and looks again.
    fn rearm(&self, readiness: &Readiness, seen: u32) -> Result<bool> {
        readiness.consume();
        loop {
            let armed = word::arm(self.word(), seen);
            // After arming: whoever reports that the name is gone says so and then wakes the word.
            if readiness.look()
                && let Err(gone) = self.look(seen)
            {
                readiness.signal();
                return Err(gone);
            }
            match armed {
                Ok(value) => {
                    readiness.submit(value, None)?;
                    return Ok(false);
                }
                Err(Some(count)) => {
                    self.seen.store(count, Ordering::Relaxed);
                    readiness.signal();
                    return Ok(true);
                }
                Err(None) => {}
            }
        }
    }

    /// A descriptor that becomes readable when [`try_wait`](Self::try_wait) would say `true`, or the region's name is
    /// gone. Made at the first call. Calls from several threads share it, as they share what was seen.
    ///
    /// # Errors
    /// `Unsupported` for a read-only handle, which cannot say that it waits, and if `RAMWAY_READINESS` asks for what
    /// this system does not have; `Os` if there are no more descriptors or threads; `Detached`.
    pub fn readiness(&self) -> Result<&Readiness> {
        self.attached()?;
        if !self.writable {
            let text = "a readiness descriptor of a region that was opened read-only: such a handle cannot be woken";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness);
        }
        // SAFETY: the word lies in the header page.
        let word = unsafe { Word::new(self.word(), self.header.clone()) };
        // If another thread was faster, this one's goes again.
        let new = Readiness::for_region(word, &self.link)?;
        Ok(self.readiness.get_or_init(|| new))
    }

    /// A number that changes with each notification, for [`wait_since`](Self::wait_since).
    ///
    /// # Errors
    /// `Detached`.
    pub fn notifications(&self) -> Result<u32> {
        self.attached()?;
        Ok(self.count())
    }

    /// Blocks until the [number of notifications](Self::notifications) differs from `count` and returns it, or `None`
    /// once `timeout` has passed. For several waiters on one handle; 2^31 notifications meanwhile look like none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_since(&self, count: u32, timeout: Option<Duration>) -> Result<Option<u32>> {
        self.attached()?;
        let changed = || Some(self.count()).filter(|now| *now != count);
        if let Some(now) = changed() {
            return Ok(Some(now));
        }
        let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
        if let Some(now) = self.spin(deadline, changed) {
            return Ok(Some(now));
        }
        let started = Instant::now();
        let mut looked = started;
        loop {
            let Some(left) = deadline.left() else {
                self.look(count)?;
                return Ok(changed());
            };
            if looked.elapsed() >= POLL_INTERVAL {
                self.look(count)?;
                looked = Instant::now();
            }
            let changed = if self.writable {
                word::round(self.word(), count, left.min(POLL_INTERVAL))
            } else {
                std::thread::sleep(left.min(POLL));
                changed()
            };
            if let Some(now) = changed {
                self.adapt(started);
                return Ok(Some(now));
            }
        }
    }

    /// The slow look: is there still a region that anyone could notify?
    #[cold]
    fn look(&self, count: u32) -> Result<()> {
        self.attached()?;
        // The count again after the name: what was notified before the end is delivered before the end is.
        if self.link.name_vanished() && self.count() == count {
            let text = "the region's name was removed while this handle waited; nobody can open it any more";
            return Err(Error::new(ErrorKind::Closed, text));
        }
        Ok(())
    }

    fn spin(&self, deadline: Deadline, changed: impl Fn() -> Option<u32>) -> Option<u32> {
        let alone = clock::cpus_online() == 1;
        match self.policy {
            WaitPolicy::Block => None,
            WaitPolicy::Hybrid if alone => None,
            WaitPolicy::Hybrid => {
                // Relaxed here and in `adapt`: a guess, not a protocol.
                let budget = self.budget.load(Ordering::Relaxed);
                for _ in 0..budget {
                    if let Some(now) = changed() {
                        self.budget.store((budget * 2).min(SPIN_MAX), Ordering::Relaxed);
                        return Some(now);
                    }
                    spin_hint();
                }
                None
            }
            WaitPolicy::Spin => {
                let mut next_look = clock::coarse_ns() + POLL_INTERVAL.as_nanos() as u64;
                loop {
                    // 2,000 looks are 50 µs: rare enough for a clock, often enough for a deadline.
                    for _ in 0..if alone { 1 } else { POLLS_PER_CHECK } {
                        if let Some(now) = changed() {
                            return Some(now);
                        }
                        spin_hint();
                    }
                    // Also where there are more CPUs: who notifies may be bound to this one.
                    std::thread::yield_now();
                    let now = clock::coarse_ns();
                    let look = now >= next_look;
                    if look {
                        next_look = now + POLL_INTERVAL.as_nanos() as u64;
                    }
                    // What ends the wait is told by the loop that follows.
                    if deadline.left().is_none() || self.attached().is_err() || (look && self.link.name_vanished()) {
                        return None;
                    }
                }
            }
        }
    }

    /// A wait that was short would have been better spent spinning.
    fn adapt(&self, started: Instant) {
        let budget = self.budget.load(Ordering::Relaxed);
        // The time before `started` by the looks, so that a wait which ends while it spins has read no clock.
        let spun = Duration::from_nanos(25) * budget;
        let short = started.elapsed() + spun < SHORT_WAIT;
        let next = if short { (budget * 2).min(SPIN_MAX) } else { (budget / 2).max(SPIN_MIN) };
        self.budget.store(next, Ordering::Relaxed);
    }
}
