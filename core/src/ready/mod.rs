//! A file descriptor that becomes readable when a handle's `try_` call would succeed or its peer is gone, for event
//! loops.
//!
//! It is unreadable only between a `try_` call that found nothing and the next wake-up. So that call arms it: consume
//! what made it readable; arm the wait word; check again; then either signal or submit a wait on the
//! word. The kernel, or a helper thread, turns the wake-up into readability. A waker cannot tell this from a sleeper.
//!
//! A named ring's peer that is killed wakes nobody: one thread per process ([`checker`]) checks for that.

pub(crate) mod checker;
mod helper;
mod make;
#[cfg(target_os = "linux")]
mod uring;
mod word;

pub(crate) use word::MappedWord;

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use crate::error::Result;
use crate::sys::futex::Wake;

/// See [`cooperate`].
#[cfg(target_os = "linux")]
static COOPERATIVE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// From now on a wake-up does not interrupt the thread that last found nothing where that computes: the descriptor is
/// readable once the thread enters the kernel, for a poll for example, or at its next timer tick. For runtimes whose
/// polling thread is that thread: a message to a waiting asyncio task cost 0.8 × the time (docs/adr/0020).
#[doc(hidden)] // for the bindings; not part of the stable API
pub fn cooperate() {
    #[cfg(target_os = "linux")]
    // Relaxed: orders nothing.
    COOPERATIVE.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// What turns a wake-up of a word into readability of a descriptor. Every method may be called from any thread.
pub(crate) trait Descriptor: Send + Sync + std::fmt::Debug {
    /// The descriptor to poll.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Makes it unreadable, until the next event.
    fn consume(&self);

    /// Has it become readable at the next wake-up of the word (at once if the word does not hold `expected`), and
    /// after `limit`. Does nothing if such a wait is pending, whatever value that one began with.
    fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()>;

    /// Makes it readable now.
    fn signal(&self);

    /// Whether the peer's socket has hung up. True forever after.
    fn hung_up(&self) -> bool;

    /// Blocks until it is readable, for at most `timeout`.
    fn wait(&self, timeout: Duration) -> Wake {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let fd = self.fd();
        let is_readable = |timeout: Duration| {
            let tv_sec = timeout.as_secs().min(i64::MAX as u64) as i64;
            let timeout = Timespec { tv_sec, tv_nsec: timeout.subsec_nanos().into() };
            poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).map(|readable| readable > 0)
        };
        match is_readable(timeout) {
            Ok(false) => Wake::TimedOut,
            Ok(true) => Wake::Woken,
            // By a signal, or by io_uring's own work in this thread, which is the wake-up.
            Err(_) if is_readable(Duration::ZERO) == Ok(true) => Wake::Woken,
            Err(_) => Wake::Interrupted,
        }
    }
}

/// A descriptor for event loops (`epoll`, `poll`, io_uring, tokio, libuv, asyncio), of a
/// [`Receiver`](crate::Receiver::readiness), [`Sender`](crate::Sender::readiness) or
/// [`Region`](crate::Region::readiness).
///
/// Poll it for reading, level- or edge-triggered. It is readable from the start, and whenever the handle's `try_` calls
/// have not yet said that there is nothing (`Empty`, `Full`, `false`) or something has happened since. So: when it is
/// readable, call `try_recv` (`try_send`, `try_wait`) until it finds nothing, which makes it unreadable. It may be
/// readable without a reason; it is never unreadable although there is something. While the peer is gone it stays readable.
///
/// Never read from it, and do not close it: it belongs to the handle. It is closed with it, and means nothing in a
/// fork's child.
///
/// It is an io_uring with a request that waits for the wake-up (Linux 6.7), or, where that is not allowed, an eventfd
/// and a thread. `RAMWAY_READINESS=uring` or `thread` in the environment chooses. With io_uring, a wake-up may interrupt
/// a system call of the thread that last found nothing, as a signal would (`epoll_wait` gives `EINTR`, and the next one
/// sees the event).
///
/// ```
/// use std::os::fd::AsFd;
/// # fn readable(fd: impl AsFd) -> bool {
/// #     let fd = fd.as_fd();
/// #     let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
/// #     let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
/// #     rustix::event::poll(&mut fds, Some(&now)).unwrap() == 1
/// # }
/// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
/// let fd = rx.readiness()?.as_fd().try_clone_to_owned().unwrap();
/// assert!(rx.try_recv().is_err());
/// assert!(!readable(&fd));
/// tx.send(0, b"x")?;
/// # while !readable(&fd) {}
/// assert!(readable(&fd));
/// assert_eq!(&*rx.try_recv()?, b"x");
/// # Ok::<(), ramway::Error>(())
/// ```
#[derive(Debug)]
pub struct Readiness {
    /// Not dropped in a fork's child, where its thread does not exist and its requests are the parent's.
    descriptor: ManuallyDrop<Box<dyn Descriptor>>,
    watched: checker::Watched,
    generation: u32,
}

impl Readiness {
    pub(crate) fn consume(&self) {
        self.descriptor.consume();
    }

    /// Whether somebody saw the peer die, or the name vanish, since the last call: worth a system call to make sure.
    pub(crate) fn take_report(&self) -> bool {
        if self.watched.take_died() {
            return true;
        }
        self.descriptor.hung_up()
    }

    pub(crate) fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        self.descriptor.submit(expected, limit)
    }

    pub(crate) fn signal(&self) {
        self.descriptor.signal();
    }

    /// Blocks until it is readable, for at most `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> Wake {
        self.descriptor.wait(timeout)
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if self.generation == crate::sys::fork::generation() {
            self.watched.unregister();
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.descriptor) };
        }
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.fd()
    }
}

impl AsRawFd for Readiness {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.fd().as_raw_fd()
    }
}
