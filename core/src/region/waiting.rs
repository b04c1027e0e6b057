//! How a region's handle waits: blocking, without waiting, or by a descriptor.

use std::time::Duration;

use super::Region;
use super::word::RegionWord;
use crate::error::{Error, ErrorKind, Result};
use crate::ready::{MappedWord, Readiness};
use crate::sync::{AtomicU32, Ordering};
use crate::wait::{Deadline, Waiting, Word};

impl Region {
    /// Blocks until somebody notifies, for at most `timeout` (`None`: forever). `true`: there was a notification
    /// since the last `wait` or `try_wait` that returned `true`, or since the handle was opened, even if it came
    /// before this call; any number of them count as one. `false`: the time passed.
    ///
    /// A read-only handle cannot be woken and polls every millisecond instead.
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
        let known = self.seen.swap(count, Ordering::Relaxed);
        match self.readiness.get() {
            Some(readiness) if known == count => self.arm(readiness, count),
            _ => Ok(known != count),
        }
    }

    /// Arms the descriptor and checks again.
    fn arm(&self, readiness: &Readiness, known: u32) -> Result<bool> {
        let mut count = known;
        let changed = || self.changed(known, &mut count);
        let sleeper = self.sleeper(known);
        let found = Waiting::new(self.policy).once(&sleeper, Some(readiness), changed, |ask| self.check(ask))?;
        if found {
            // Relaxed: as in `wait`.
            self.seen.store(count, Ordering::Relaxed);
        }
        Ok(found)
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
        let word = unsafe { MappedWord::new(self.word(), self.header.clone()) };
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
    /// once `timeout` has passed. For several waiters on one handle; 2^31 notifications meanwhile are taken for none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_since(&self, count: u32, timeout: Option<Duration>) -> Result<Option<u32>> {
        self.attached()?;
        let now = self.count();
        if now != count { Ok(Some(now)) } else { self.wait_slow(count, timeout) }
    }

    #[inline(never)]
    fn wait_slow(&self, count: u32, timeout: Option<Duration>) -> Result<Option<u32>> {
        let mut now = count;
        let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
        // Relaxed, here and below: a guess, not a protocol.
        let mut waiting = Waiting::for_one_wait(self.policy, self.budget.load(Ordering::Relaxed));
        let ended = |ask| self.check(ask || deadline.left().is_none());
        // Not by the descriptor: any number of waiters sleep on the word itself.
        let outcome = waiting.until(&self.sleeper(count), None, deadline, || self.changed(count, &mut now), ended);
        self.budget.store(waiting.budget, Ordering::Relaxed);
        match outcome {
            Ok(()) => Ok(Some(now)),
            Err(e) if e.kind() == ErrorKind::TimedOut => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether `try_wait` would say true.
    pub(crate) fn has_news(&self) -> bool {
        // Relaxed: as in `wait`.
        self.count() != self.seen.load(Ordering::Relaxed)
    }

    /// Whether nobody can notify any more.
    pub(crate) fn has_ended(&self, ask_kernel: bool) -> bool {
        self.check(ask_kernel).is_err()
    }

    /// For who sleeps on several words: the word that says that somebody waits, and what it holds until a notification.
    pub(crate) fn set_word(&self) -> (&AtomicU32, u32) {
        // Relaxed: as in `wait`.
        (self.word(), self.sleeper(self.seen.load(Ordering::Relaxed)).set())
    }

    fn sleeper(&self, known: u32) -> RegionWord<'_> {
        RegionWord { word: self.word(), known, writable: self.writable }
    }

    /// Whether somebody has notified since the count was `known`; `now` is what it is then.
    #[inline(always)]
    fn changed(&self, known: u32, now: &mut u32) -> Result<bool> {
        *now = self.count();
        Ok(*now != known)
    }

    /// Whether there is still a region that anyone could notify; the name costs a system call.
    fn check(&self, ask_kernel: bool) -> Result<()> {
        self.attached()?;
        if ask_kernel && self.link.name_vanished() {
            let text = "the region's name was removed while this handle waited; nobody can open it any more";
            return Err(Error::new(ErrorKind::Closed, text));
        }
        Ok(())
    }
}
