//! How one thread sleeps on many words and descriptors.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::source::{ArmedWord, Source};
#[cfg(target_os = "linux")]
use super::uring::Uring;
use crate::Result;
use crate::facts::UNORDERED_INTERVAL;
use crate::sync::AtomicU32;
use crate::sys::futex;

/// Words that `futex_waitv` is given, at most. It costs 3.8 µs for one word and 10 µs for sixteen, each time; an io_uring
/// keeps what is armed.
const WAITV_MAX: usize = 8;

/// What is slept on.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Word(ArmedWord),
    Descriptor(BorrowedFd<'a>),
}

#[derive(Debug)]
pub(super) struct Sleeper {
    words: Vec<ArmedWord>,
    descriptors: Vec<RawFd>,
    /// `None`: not needed so far.
    #[cfg(target_os = "linux")]
    uring: Option<Uring>,
    /// The kernel does not allow one.
    #[cfg(target_os = "linux")]
    refused: bool,
}

impl Sleeper {
    pub(super) fn new() -> Self {
        Self {
            words: Vec::new(),
            descriptors: Vec::new(),
            #[cfg(target_os = "linux")]
            uring: None,
            #[cfg(target_os = "linux")]
            refused: std::env::var("RAMWAY_READINESS").is_ok_and(|method| method == "thread"),
        }
    }

    /// Other sources may follow. What is armed for a handle stays; a descriptor's number may be another file's now.
    pub(super) fn new_call(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(uring) = &mut self.uring {
            uring.forget_descriptors();
        }
    }

    /// Forgets what was added.
    pub(super) fn begin(&mut self) {
        self.words.clear();
        self.descriptors.clear();
    }

    pub(super) fn add(&mut self, target: Target<'_>) {
        match target {
            Target::Word(armed) => self.words.push(armed),
            Target::Descriptor(fd) => self.descriptors.push(fd.as_raw_fd()),
        }
    }

    /// Sleeps while no word has changed, no descriptor is readable and `interrupt` is 0, for at most `longest`. May return
    /// early without a reason.
    pub(super) fn sleep(&mut self, interrupt: &AtomicU32, longest: Duration) -> Result<()> {
        if self.descriptors.is_empty() && self.words.len() <= WAITV_MAX {
            self.sleep_on_words(interrupt, longest);
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        if !self.refused {
            if self.uring.is_none() {
                match Uring::new() {
                    Ok(uring) => self.uring = Some(uring),
                    Err(e) if e.kind() == crate::ErrorKind::Unsupported => self.refused = true,
                    Err(e) => return Err(e),
                }
            }
            if let Some(uring) = &mut self.uring {
                return uring.sleep(&self.words, &self.descriptors, interrupt, longest);
            }
        }
        if self.descriptors.is_empty() && self.words.len() < futex::WAIT_ANY_MAX {
            self.sleep_on_words(interrupt, longest);
        } else if self.descriptors.is_empty() {
            // As many words as the kernel takes, and the others after a short time.
            self.words.truncate(futex::WAIT_ANY_MAX - 1);
            self.sleep_on_words(interrupt, longest.min(UNORDERED_INTERVAL));
        } else {
            // The words are checked after a short time.
            let fds: Vec<_> = self.descriptors.iter().map(|fd| borrow(*fd)).collect();
            let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            let _ = poll(&mut fds, Some(&timespec(longest.min(UNORDERED_INTERVAL))));
        }
        Ok(())
    }

    fn sleep_on_words(&self, interrupt: &AtomicU32, longest: Duration) {
        let mut words: Vec<(&AtomicU32, u32)> = Vec::with_capacity(self.words.len() + 1);
        words.push((interrupt, 0));
        // SAFETY: the sources are borrowed as long as the wait takes, and keep their words mapped.
        words.extend(self.words.iter().map(|armed| (unsafe { armed.word.as_ref() }, armed.expected)));
        futex::wait_any(&words, longest);
    }
}

fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the sources are borrowed as long as the wait takes, and keep their descriptors open.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().min(i64::MAX as u64) as i64, tv_nsec: time.subsec_nanos().into() }
}

/// Adds the indices of the sources whose descriptors are readable.
pub(super) fn poll_descriptors<S: Source>(sources: &[S], ready: &mut Vec<usize>) {
    let (mut at, mut fds) = (Vec::new(), Vec::new());
    for (index, source) in sources.iter().enumerate() {
        if let Some(fd) = source.descriptor() {
            at.push(index);
            fds.push(borrow(fd.as_raw_fd()));
        }
    }
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    if poll(&mut polled, Some(&timespec(Duration::ZERO))).is_ok_and(|count| count > 0) {
        ready.extend(at.iter().zip(&polled).filter(|(_, fd)| !fd.revents().is_empty()).map(|(index, _)| *index));
    }
}
