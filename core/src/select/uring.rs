//! Sleeping on many words and descriptors by one io_uring: a wait is submitted once, and stays in the kernel until its word is
//! woken. So a wait for many costs what the few do that something has happened to.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::source::ArmedWord;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::AtomicU32;

/// `linux/futex.h`: the word is 32 bits wide; without `FUTEX2_PRIVATE` it is keyed by the file.
const FUTEX2_SIZE_U32: u32 = 2;
const MATCH_ANY: u64 = u32::MAX as u64;

const ENTRIES: u32 = 256;

/// What is waited for: a handle's word, a descriptor, or the waker's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Handle(u64),
    Descriptor(RawFd),
    Interrupt,
}

pub(super) struct Uring {
    ring: IoUring,
    /// The waits that are in the kernel, and the numbers that their completions bear.
    pending: HashMap<Key, u64>,
    by_number: HashMap<u64, Key>,
    next: u64,
}

/// Of a completion that nobody waits for.
const OTHER: u64 = 0;

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Uring {
    /// `Unsupported` where the kernel has no io_uring, forbids it, or lacks the request.
    pub(super) fn new() -> Result<Self> {
        let no = |what: &str, e: std::io::Error| match e.raw_os_error().unwrap_or(0) {
            libc::ENOSYS | libc::EPERM | libc::EACCES | libc::EINVAL => {
                Error::new(ErrorKind::Unsupported, format!("{what}: {e}"))
            }
            errno => Error::os(errno, what),
        };
        let ring = IoUring::new(ENTRIES).map_err(|e| no("io_uring_setup", e))?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|e| no("asking what io_uring can do", e))?;
        if !probe.is_supported(opcode::FutexWait::CODE) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this kernel's io_uring cannot wait on a futex: Linux 6.7 can",
            ));
        }
        Ok(Self { ring, pending: HashMap::new(), by_number: HashMap::new(), next: OTHER + 1 })
    }

    /// As [`Sleeper::sleep`](super::sleep::Sleeper::sleep).
    pub(super) fn sleep(
        &mut self,
        words: &[ArmedWord],
        descriptors: &[RawFd],
        interrupt: &AtomicU32,
        longest: Duration,
    ) -> Result<()> {
        self.forget_others(words, descriptors)?;
        let wait = |word: *const u32, expected: u32| {
            opcode::FutexWait::new(word, expected.into(), MATCH_ANY, FUTEX2_SIZE_U32).build()
        };
        self.submit(Key::Interrupt, || wait(interrupt.as_ptr().cast_const(), 0))?;
        for armed in words {
            // A wait that is pending since before still holds: every change of the word since then would have ended it.
            self.submit(Key::Handle(armed.handle), || {
                wait(armed.word.as_ptr().cast::<u32>().cast_const(), armed.expected)
            })?;
        }
        for fd in descriptors {
            self.submit(Key::Descriptor(*fd), || opcode::PollAdd::new(types::Fd(*fd), libc::POLLIN as u32).build())?;
        }
        let time = types::Timespec::new().sec(longest.as_secs()).nsec(longest.subsec_nanos());
        let args = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
            Err(e) => return Err(Error::os(e.raw_os_error().unwrap_or(0), "waiting for several sources")),
        }
        self.reap();
        Ok(())
    }

    fn reap(&mut self) {
        for completion in self.ring.completion() {
            if let Some(key) = self.by_number.remove(&completion.user_data()) {
                self.pending.remove(&key);
            }
        }
    }

    /// Submits a wait unless one is pending.
    fn submit(&mut self, key: Key, entry: impl FnOnce() -> squeue::Entry) -> Result<()> {
        if self.pending.contains_key(&key) {
            return Ok(());
        }
        let number = self.next;
        self.next += 1;
        self.push(&entry().user_data(number))?;
        self.pending.insert(key, number);
        self.by_number.insert(number, key);
        Ok(())
    }

    /// Cancels the waits for descriptors.
    pub(super) fn forget_descriptors(&mut self) {
        // What cannot be cancelled now is thrown away when it completes.
        let _ = self.forget(|key| !matches!(key, Key::Descriptor(_)));
    }

    /// Cancels the waits for what is not waited for any more.
    fn forget_others(&mut self, words: &[ArmedWord], descriptors: &[RawFd]) -> Result<()> {
        let wanted = |key: &Key| match key {
            Key::Handle(handle) => words.iter().any(|armed| armed.handle == *handle),
            Key::Descriptor(fd) => descriptors.contains(fd),
            Key::Interrupt => true,
        };
        if self.pending.len() <= words.len() + descriptors.len() + 1 && self.pending.keys().all(wanted) {
            return Ok(());
        }
        self.forget(wanted)
    }

    fn forget(&mut self, wanted: impl Fn(&Key) -> bool) -> Result<()> {
        let gone: Vec<_> = self.pending.iter().filter(|(key, _)| !wanted(key)).map(|(key, at)| (*key, *at)).collect();
        for (key, number) in gone {
            self.pending.remove(&key);
            self.by_number.remove(&number);
            self.push(&opcode::AsyncCancel::new(number).build().user_data(OTHER))?;
        }
        Ok(())
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        loop {
            // SAFETY: a word stays mapped while its handle is among the sources; the kernel finds it by its file from then on,
            // and a completion for a handle that has gone is thrown away by its number.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            match self.ring.submit() {
                Ok(_) => {}
                Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => self.reap(),
                Err(e) => return Err(Error::os(e.raw_os_error().unwrap_or(0), "arming several sources")),
            }
        }
    }
}
