//! Ctrl-C and SIGTERM: noticed at the next pause of at most [`SLICE`], so that the handles are given back in order.
//! A second signal ends the process at once.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Failure, Outcome};

/// No wait is longer than this without a check for signals.
pub const SLICE: Duration = Duration::from_millis(100);

/// Whether and by which signal this process was asked to end.
#[derive(Clone)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    /// Readable once a signal came, so that a poll ends.
    pipe: Arc<UnixStream>,
}

impl Interrupt {
    /// Takes over SIGINT and SIGTERM.
    pub fn install() -> Outcome<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let install = || -> io::Result<UnixStream> {
            let (pipe, write) = UnixStream::pair()?;
            for number in [SIGINT, SIGTERM] {
                let seen = Arc::new(AtomicBool::new(false));
                // In this order: the first signal finds `seen` false, the second one ends the process.
                signal_hook::flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&seen))?;
                signal_hook::flag::register(number, seen)?;
                signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)?;
                signal_hook::low_level::pipe::register(number, write.try_clone()?)?;
            }
            Ok(pipe)
        };
        let pipe = install().map_err(|error| Failure::io(&error, "cannot watch for Ctrl-C"))?;
        Ok(Self { signal, pipe: Arc::new(pipe) })
    }

    /// Sets this flag too when a signal comes, for a caller that cannot ask.
    pub fn also(&self, flag: &Arc<AtomicBool>) -> Outcome {
        for number in [SIGINT, SIGTERM] {
            signal_hook::flag::register(number, Arc::clone(flag))
                .map_err(|error| Failure::io(&error, "cannot watch for Ctrl-C"))?;
        }
        Ok(())
    }

    /// Fails with 130 (or 143) once a signal came.
    pub fn check(&self) -> Outcome {
        // Relaxed: the number is all that the handler tells.
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Failure::new(128 + number as u8, "interrupted")),
        }
    }

    /// Waits until `fd` can be read (or written) or hangs up, a signal comes, or `timeout` has passed. Gives whether
    /// `fd` is ready.
    pub fn ready(&self, fd: BorrowedFd<'_>, for_what: PollFlags, timeout: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&fd, for_what), PollFd::new(&*self.pipe, PollFlags::IN)];
        let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
