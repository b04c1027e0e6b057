//! Readiness without io_uring: an event descriptor, and a thread that sleeps on the word in the handle's place.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Descriptor;
use super::word::MappedWord;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::event::Event;
use crate::sys::futex;

/// The thread has nothing to do.
const IDLE: u32 = 0;
/// The thread sleeps on the word, or is about to.
const ARMED: u32 = 1;
/// The thread is to end.
const QUIT: u32 = 2;

/// The longest sleep of the thread: nothing else needs it to wake up.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

#[derive(Debug)]
pub(super) struct Helper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    event: Event,
    word: MappedWord,
    command: AtomicU32,
    /// What to sleep on and for how long at most; written before `command` becomes ARMED.
    expected: AtomicU32,
    limit_ns: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("event", &self.event).finish_non_exhaustive()
    }
}

impl Helper {
    pub(super) fn new(word: MappedWord) -> Result<Self> {
        let event = Event::new()?;
        let shared = Arc::new(Shared {
            event,
            word,
            command: AtomicU32::new(IDLE),
            expected: AtomicU32::new(0),
            limit_ns: AtomicU64::new(0),
        });
        let thread = spawn("ramway-wait", {
            let shared = shared.clone();
            move || shared.run()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    fn sleeps_without_limit(&self) -> bool {
        // Relaxed: written by this side.
        self.shared.command.load(Ordering::Relaxed) == ARMED
            && u128::from(self.shared.limit_ns.load(Ordering::Relaxed)) == FOREVER.as_nanos()
    }
}

/// A thread with a small stack that takes no signals: they are for the application's own threads.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    // SAFETY: both sets live on the stack; only this thread's mask changes, and it is put back.
    let spawned = unsafe {
        let (mut all, mut before) = (std::mem::zeroed::<libc::sigset_t>(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new().name(name.into()).stack_size(64 << 10).spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned
    };
    spawned.map_err(|e| Error::new(ErrorKind::Os, format!("starting the thread {name} for readiness descriptors: {e}")))
}

impl Shared {
    fn run(&self) {
        loop {
            // Acquire: pairs with the release in `submit`.
            match self.command.load(Ordering::Acquire) {
                ARMED => {
                    let expected = self.expected.load(Ordering::Relaxed);
                    let limit = Duration::from_nanos(self.limit_ns.load(Ordering::Relaxed));
                    // A signal to say so when it was interrupted, too: readiness without a reason is allowed.
                    futex::wait(&self.word, expected, limit);
                    // Relaxed: if it fails, the command is QUIT.
                    let _ = self.command.compare_exchange(ARMED, IDLE, Ordering::Relaxed, Ordering::Relaxed);
                    self.event.signal();
                }
                QUIT => return,
                // Why this wait ended does not matter: load the command again.
                _ => drop(futex::wait(&self.command, IDLE, FOREVER)),
            }
        }
    }
}

impl Descriptor for Helper {
    fn fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }

    fn consume(&self) {
        self.shared.event.clear();
    }

    fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        if limit.is_some() && self.sleeps_without_limit() {
            // It must not sleep on: until it is seen to have ended, because it may not have begun yet. (Relaxed: only
            // that it has ended counts.)
            while self.shared.command.load(Ordering::Relaxed) == ARMED {
                futex::wake_all(&self.shared.word);
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        // Relaxed: only this side makes it ARMED. If the thread has just woken up and not yet said IDLE, its signal is
        // still to come, which is after the caller's `consume`.
        if self.shared.command.load(Ordering::Relaxed) == IDLE {
            self.shared.expected.store(expected, Ordering::Relaxed);
            self.shared.limit_ns.store(limit.unwrap_or(FOREVER).as_nanos() as u64, Ordering::Relaxed);
            // Release: the two stores above go first.
            self.shared.command.store(ARMED, Ordering::Release);
            futex::wake_all(&self.shared.command);
        }
        Ok(())
    }

    fn signal(&self) {
        self.shared.event.signal();
    }

    fn hung_up(&self) -> bool {
        // The checker polls the socket in this case.
        false
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // Release: pairs with the load in `run`.
        self.shared.command.store(QUIT, Ordering::Release);
        futex::wake_all(&self.shared.command);
        // Until it is seen to have ended: it may be between its load of the command and its sleep on the word.
        while !thread.is_finished() {
            futex::wake_all(&self.shared.word);
            std::thread::sleep(Duration::from_micros(50));
        }
        let _ = thread.join();
    }
}
