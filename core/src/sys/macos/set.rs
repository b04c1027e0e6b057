//! A set of sockets to wait for together: a kqueue.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent_timespec, kqueue};
use rustix::io::Errno;

use super::peer::close_on_exec;
use crate::sys::os;
use crate::sys::socket::timespec;
use crate::{Error, Result};

/// A set of sockets; itself a descriptor that is readable when one of them is. Level-triggered for what is added as
/// lasting, else for one event at a time, until it is armed again.
pub(crate) struct Set(OwnedFd);

const LASTING: EventFlags = EventFlags::ADD.union(EventFlags::ENABLE);
/// Disabled by its first report.
const ONCE: EventFlags = LASTING.union(EventFlags::from_bits_retain(libc::EV_DISPATCH));

impl Set {
    pub(crate) fn new() -> Result<Self> {
        let fd = kqueue().map_err(os("kqueue"))?;
        close_on_exec(&fd);
        Ok(Self(fd))
    }

    /// Adds a socket that is reported as `token`.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64, lasting: bool) -> Result<()> {
        self.change(fd, token, if lasting { LASTING } else { ONCE }, "adding a socket to a kqueue")
    }

    /// Reports a socket once more that was not added as lasting.
    pub(crate) fn arm(&self, fd: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.change(fd, token, ONCE, "arming a socket in a kqueue")
    }

    /// Stops reporting a lasting socket, or goes on with it.
    pub(crate) fn enable(&self, fd: BorrowedFd<'_>, token: u64, yes: bool) -> Result<()> {
        let flags = if yes { LASTING } else { EventFlags::DISABLE };
        self.change(fd, token, flags, "arming a socket in a kqueue")
    }

    fn change(&self, fd: BorrowedFd<'_>, token: u64, flags: EventFlags, what: &str) -> Result<()> {
        let event = Event::new(EventFilter::Read(fd.as_raw_fd()), flags, token as *mut _);
        let mut none: [MaybeUninit<Event>; 0] = [];
        loop {
            // SAFETY: the socket is open now, and the kernel takes it out of the set when it closes.
            match unsafe { kevent_timespec(&self.0, &[event], &mut none[..], None) } {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(Error::os(e.raw_os_error(), what)),
            }
        }
    }

    /// Takes a socket out.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = self.change(fd, 0, EventFlags::DELETE, "");
    }

    /// The token of a socket with something to read or an end; `None` when the time is over or a signal came.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Option<u64>> {
        let mut events = [MaybeUninit::uninit(); 1];
        // SAFETY: nothing is added here.
        match unsafe { kevent_timespec(&self.0, &[], &mut events[..], Some(&timespec(timeout))) } {
            Ok((events, _)) => Ok(events.first().map(|event| event.udata() as u64)),
            Err(Errno::INTR) => Ok(None),
            Err(e) => Err(Error::os(e.raw_os_error(), "kevent")),
        }
    }
}

impl AsFd for Set {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
