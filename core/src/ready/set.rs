//! One io_uring for the waits of many handles: for an event loop that polls one descriptor for all of them, has all that
//! were woken named in one call, and submits the next waits of all of them by one system call.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::Descriptor;
use super::uring::{FUTEX2_SIZE_U32, MATCH_ANY, open};
use super::word::MappedWord;
use crate::error::{Error, ErrorKind, Result};
use crate::segment::Probe;

const SUBMISSIONS: u32 = 256;
/// More completions than this stay with the kernel until the next submission.
const COMPLETIONS: u32 = 4096;

/// What a completion is of, in the low bits of its number; the rest is the member's.
const FUTEX: u64 = 0;
const HANG_UP: u64 = 1;
const SIGNAL: u64 = 2;
/// The member has left.
const GONE: u64 = 3;
const KIND_BITS: u32 = 2;
/// Of a completion that nobody waits for: no member has this number.
const NOBODY: u64 = 0;

/// The waits of many handles by one io_uring, whose descriptor is readable when one of them was woken. For the bindings; not
/// part of the stable API.
///
/// A handle that joined is named once for each wake-up. Whoever is told then makes `try_` calls until there is nothing, which
/// arms the handle's wait again. A blocking call, a `Select` and a descriptor of its own take a handle out of the set; that
/// names it, too, so that a task that waits for it tries, and has it join again.
#[derive(Debug)]
pub struct ReadySet(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The ring's descriptor, which lives as long as the ring.
    fd: RawFd,
}

struct State {
    ring: IoUring,
    members: HashMap<u64, Waits>,
    next: u64,
    /// Waits are submitted at the end of this, all at once.
    held: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

/// What is under way for a member.
struct Waits {
    /// What the set's owner calls it.
    token: u64,
    /// A wait on the word is in the kernel, or its completion was not taken yet. Set before it is submitted.
    waiting: bool,
    /// So is a poll of the socket.
    polling: bool,
    hung_up: Arc<AtomicBool>,
}

impl ReadySet {
    /// # Errors
    /// `Unsupported` where there is no io_uring that can wait on a futex, or where `RAMWAY_READINESS` asks for threads.
    pub fn new() -> Result<Self> {
        if std::env::var("RAMWAY_READINESS").is_ok_and(|method| !method.is_empty() && method != "uring") {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "RAMWAY_READINESS asks for other descriptors than io_uring's",
            ));
        }
        let ring = open(SUBMISSIONS, Some(COMPLETIONS))?;
        let fd = ring.as_raw_fd();
        let state = State { ring, members: HashMap::new(), next: NOBODY + 1, held: false };
        Ok(Self(Arc::new(Shared { state: Mutex::new(state), fd })))
    }

    /// Appends the tokens of the handles that were woken since the last call, and makes the descriptor unreadable.
    pub fn take(&self, woken: &mut Vec<u64>) {
        let mut state = self.0.state();
        loop {
            state.reap(woken);
            if !state.ring.submission().cq_overflow() {
                return;
            }
            // The kernel hands the rest over at a submission.
            if state.submit().is_err() {
                return;
            }
        }
    }

    /// From now on waits are not submitted before [`release`](Self::release). For the thread that polls the descriptor alone:
    /// nobody is told of a wake-up meanwhile.
    pub fn hold(&self) {
        self.0.state().held = true;
    }

    /// Submits what was held back.
    ///
    /// # Errors
    /// `Os` where the system has no memory for it; the next submission has it again.
    pub fn release(&self) -> Result<()> {
        let mut state = self.0.state();
        state.held = false;
        state.submit_pending()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl AsFd for ReadySet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring lives as long as `self` and closes its descriptor only when it goes.
        unsafe { BorrowedFd::borrow_raw(self.0.fd) }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in here leaves at worst a request that is still pending: a wake-up without a reason.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn reap(&mut self, woken: &mut Vec<u64>) {
        let Self { ring, members, .. } = self;
        for completion in ring.completion() {
            let number = completion.user_data();
            // Nobody's, or of a member that has left: it was named when it did.
            let Some(waits) = members.get_mut(&(number >> KIND_BITS)) else { continue };
            woken.push(waits.token);
            match number & ((1 << KIND_BITS) - 1) {
                FUTEX => waits.waiting = false,
                HANG_UP => {
                    waits.polling = false;
                    // Anything negative is a cancellation, by the end of the thread that had submitted it.
                    if completion.result() >= 0 {
                        // Relaxed: a hint, after which the socket is asked.
                        waits.hung_up.store(true, Ordering::Relaxed);
                    }
                }
                GONE => drop(members.remove(&(number >> KIND_BITS))),
                _ => {}
            }
        }
    }

    /// # Safety
    /// What the request points to stays valid until it is submitted, and after that as long as the kernel uses it.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        // SAFETY: passed on from the caller.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Waits)) {
        if let Some(waits) = self.members.get_mut(&number) {
            change(waits);
        }
    }

    fn submit_pending(&mut self) -> Result<()> {
        if self.ring.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    fn submit(&self) -> Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) => return Err(Error::os(e.raw_os_error().unwrap_or(0), "arming the waits of an event loop")),
            }
        }
    }
}

/// A handle in a set.
pub(super) struct Member {
    set: Arc<Shared>,
    number: u64,
    token: u64,
    word: MappedWord,
    /// A bus's socket, to be polled for a hang-up.
    socket: Option<Probe>,
    hung_up: Arc<AtomicBool>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Member {
    pub(super) fn new(set: &Arc<Shared>, token: u64, word: MappedWord, socket: Option<Probe>) -> Self {
        let hung_up = Arc::new(AtomicBool::new(false));
        let mut state = set.state();
        let number = state.next;
        state.next += 1;
        let waits = Waits { token, waiting: false, polling: false, hung_up: hung_up.clone() };
        state.members.insert(number, waits);
        drop(state);
        Self { set: set.clone(), number, token, word, socket, hung_up }
    }

    fn data(&self, kind: u64) -> u64 {
        self.number << KIND_BITS | kind
    }
}

impl Descriptor for Member {
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring lives as long as `self.set`, and closes its descriptor only when it goes.
        unsafe { BorrowedFd::borrow_raw(self.set.fd) }
    }

    /// The set's owner takes what has happened.
    fn consume(&self) {}

    fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        let mut state = self.set.state();
        let Some(&Waits { waiting, polling, .. }) = state.members.get(&self.number) else { return Ok(()) };
        if !waiting {
            let word = self.word.as_ptr().cast_const();
            let wait = opcode::FutexWait::new(word, expected.into(), MATCH_ANY, FUTEX2_SIZE_U32).build();
            // SAFETY: `self.word` keeps the word mapped, and the request is submitted and cancelled before that goes.
            unsafe { state.push(&wait.user_data(self.data(FUTEX)))? };
            state.change(self.number, |waits| waits.waiting = true);
        }
        if let Some(socket) = self.socket.as_ref().and_then(Probe::socket)
            && !polling
            // Relaxed: a poll too many is harmless.
            && !self.hung_up.load(Ordering::Relaxed)
        {
            // HUP and ERR are always polled for.
            let poll = opcode::PollAdd::new(types::Fd(socket.as_raw_fd()), libc::POLLRDHUP as u32).build();
            // SAFETY: points to nothing.
            unsafe { state.push(&poll.user_data(self.data(HANG_UP)))? };
            state.change(self.number, |waits| waits.polling = true);
        }
        if let Some(limit) = limit {
            let time = types::Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
            // SAFETY: the kernel copies the time when it takes the request, which is before the call here returns.
            unsafe { state.push(&opcode::Timeout::new(&time).build().user_data(self.data(SIGNAL)))? };
            return state.submit();
        }
        if state.held { Ok(()) } else { state.submit_pending() }
    }

    fn signal(&self) {
        let mut state = self.set.state();
        // A failure for lack of memory loses it; the next `try_` call signals again.
        // SAFETY: points to nothing.
        let _ = unsafe { state.push(&opcode::Nop::new().build().user_data(self.data(SIGNAL))) };
        if !state.held {
            let _ = state.submit_pending();
        }
    }

    fn hung_up(&self) -> bool {
        // Relaxed: a hint, after which the socket is asked.
        self.hung_up.load(Ordering::Relaxed)
    }

    fn place(&self) -> Option<(&Arc<Shared>, u64)> {
        Some((&self.set, self.token))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.set.state();
        // The kernel would cancel them some time after the word and the socket have gone.
        for kind in [FUTEX, HANG_UP] {
            // SAFETY: points to nothing.
            let _ = unsafe { state.push(&opcode::AsyncCancel::new(self.data(kind)).build().user_data(NOBODY)) };
        }
        // Names it: a task that waits for it is to try.
        // SAFETY: points to nothing.
        let _ = unsafe { state.push(&opcode::Nop::new().build().user_data(self.data(GONE))) };
        let _ = state.submit();
    }
}
