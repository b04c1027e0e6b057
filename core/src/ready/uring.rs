//! Readiness by io_uring: a `FUTEX_WAIT` request whose completion makes the ring's own descriptor readable.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::Descriptor;
use super::word::MappedWord;
use crate::error::{Error, ErrorKind, Result};
use crate::segment::Probe;

/// `linux/futex.h`: the word is 32 bits wide; without `FUTEX2_PRIVATE` it is keyed by the file.
const FUTEX2_SIZE_U32: u32 = 2;
const MATCH_ANY: u64 = u32::MAX as u64;

/// What a completion is of.
const FUTEX: u64 = 1;
const HANG_UP: u64 = 2;
const OTHER: u64 = 3;

pub(super) struct Uring {
    ring: Mutex<State>,
    /// The ring's descriptor, which lives as long as the ring.
    fd: std::os::fd::RawFd,
    hung_up: AtomicBool,
    word: MappedWord,
    /// A bus's socket, to be polled for a hang-up.
    socket: Option<Probe>,
}

struct State {
    ring: IoUring,
    /// A wait on the word is in the kernel. Set before it is submitted, cleared when its completion is consumed.
    waiting: bool,
    /// So is a poll of the socket.
    polling: bool,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("fd", &self.fd).finish_non_exhaustive()
    }
}

impl Uring {
    /// `Unsupported` where the kernel has no io_uring, forbids it, or lacks the request.
    pub(super) fn new(word: MappedWord, socket: Option<Probe>) -> Result<Self> {
        let no = |what: &str, e: std::io::Error| match e.raw_os_error().unwrap_or(0) {
            libc::ENOSYS | libc::EPERM | libc::EACCES | libc::EINVAL => {
                Error::new(ErrorKind::Unsupported, format!("{what}: {e}"))
            }
            // No more descriptors or memory: a thread would not help.
            errno => Error::os(errno, what),
        };
        // At most a wait, a poll, a time-out, a nothing and two cancellations are under way at once.
        let mut builder = IoUring::builder();
        // Relaxed: said before the first descriptor is made, and a hint for any other.
        if super::COOPERATIVE.load(Ordering::Relaxed) {
            builder.setup_coop_taskrun();
        }
        let ring = builder.build(8).map_err(|e| no("io_uring_setup", e))?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|e| no("asking what io_uring can do", e))?;
        if !probe.is_supported(opcode::FutexWait::CODE) {
            let text = "this kernel's io_uring cannot wait on a futex: Linux 6.7 can";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let fd = ring.as_raw_fd();
        let ring = Mutex::new(State { ring, waiting: false, polling: false });
        Ok(Self { ring, fd, hung_up: AtomicBool::new(false), word, socket })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in here leaves at worst a request that is still pending: spurious readiness.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// # Safety
    /// What the request points to stays valid until it is complete or cancelled.
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: passed on from the caller. The queue has room: every push is followed by a submit of all of it.
        let _ = unsafe { self.ring.submission().push(entry) };
    }

    fn submit(&self) -> Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) => return Err(Error::os(e.raw_os_error().unwrap_or(0), "arming a readiness descriptor")),
            }
        }
    }
}

impl Descriptor for Uring {
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring lives as long as `self` and closes its descriptor only when it goes.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    fn consume(&self) {
        let mut state = self.state();
        let State { ring, waiting, polling } = &mut *state;
        for completion in ring.completion() {
            match completion.user_data() {
                FUTEX => *waiting = false,
                HANG_UP => {
                    *polling = false;
                    // Anything negative is a cancellation, by the end of the thread that had submitted it.
                    if completion.result() >= 0 {
                        // Relaxed: loaded by the caller of this.
                        self.hung_up.store(true, Ordering::Relaxed);
                    }
                }
                _ => {}
            }
        }
    }

    fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        let mut state = self.state();
        if !state.waiting {
            let word = self.word.as_ptr().cast_const();
            let wait = opcode::FutexWait::new(word, expected.into(), MATCH_ANY, FUTEX2_SIZE_U32).build();
            // SAFETY: `self.word` keeps the word mapped, and the request is cancelled before that goes.
            unsafe { state.push(&wait.user_data(FUTEX)) };
            state.waiting = true;
        }
        if let Some(socket) = self.socket.as_ref().and_then(Probe::socket)
            && !state.polling
            // Relaxed: a poll too many is harmless.
            && !self.hung_up.load(Ordering::Relaxed)
        {
            // HUP and ERR are always polled for.
            let poll = opcode::PollAdd::new(types::Fd(socket.as_raw_fd()), libc::POLLRDHUP as u32).build();
            // SAFETY: points to nothing.
            unsafe { state.push(&poll.user_data(HANG_UP)) };
            state.polling = true;
        }
        let time = limit.map(|limit| types::Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos()));
        if let Some(time) = &time {
            // SAFETY: the kernel copies the time when it takes the request, which is before `submit` returns.
            unsafe { state.push(&opcode::Timeout::new(time).build().user_data(OTHER)) };
        }
        // Also what a failed call has left in the queue.
        if state.ring.submission().is_empty() { Ok(()) } else { state.submit() }
    }

    fn signal(&self) {
        let mut state = self.state();
        if state.ring.completion().is_empty() {
            // SAFETY: points to nothing.
            unsafe { state.push(&opcode::Nop::new().build().user_data(OTHER)) };
            // A failure for lack of memory leaves it unreadable; the next `try_` call signals again.
            let _ = state.submit();
        }
    }

    fn hung_up(&self) -> bool {
        // Relaxed: a hint, after which the socket is asked.
        self.hung_up.load(Ordering::Relaxed)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut state = self.state();
        // The kernel would cancel them some time after the close; the word and the socket go now.
        for request in [FUTEX, HANG_UP] {
            // SAFETY: points to nothing.
            unsafe { state.push(&opcode::AsyncCancel::new(request).build().user_data(OTHER)) };
        }
        let _ = state.submit();
    }
}
