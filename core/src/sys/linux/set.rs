//! A set of sockets to wait for together: an epoll.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use crate::Result;
use crate::sys::os;
use crate::sys::socket::timespec;

/// A set of sockets to wait for together; itself a descriptor that is readable when one of them is. Level-triggered
/// for what is added as lasting, else for one event at a time, until it is armed again.
pub(crate) struct Set(OwnedFd);

const LASTING: EventFlags = EventFlags::IN;
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ONESHOT);

impl Set {
    pub(crate) fn new() -> Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC);
        Ok(Self(fd.map_err(os("epoll_create"))?))
    }

    /// Adds a socket that is reported as `token`.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64, lasting: bool) -> Result<()> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(token), if lasting { LASTING } else { ONCE })
            .map_err(os("adding a socket to epoll"))
    }

    /// Reports a socket once more that was not added as lasting.
    pub(crate) fn arm(&self, fd: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.change(fd, token, ONCE)
    }

    /// Stops reporting a lasting socket, or goes on with it.
    pub(crate) fn enable(&self, fd: BorrowedFd<'_>, token: u64, yes: bool) -> Result<()> {
        self.change(fd, token, if yes { LASTING } else { EventFlags::empty() })
    }

    fn change(&self, fd: BorrowedFd<'_>, token: u64, flags: EventFlags) -> Result<()> {
        epoll::modify(&self.0, fd, epoll::EventData::new_u64(token), flags).map_err(os("arming a socket in epoll"))
    }

    /// Takes a socket out.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// The token of a socket with something to read or an end; `None` when the time is over or a signal came.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Option<u64>> {
        let mut events = [MaybeUninit::uninit(); 1];
        match epoll::wait(&self.0, &mut events[..], Some(&timespec(timeout))) {
            Ok((events, _)) => Ok(events.first().map(|event| event.data.u64())),
            Err(Errno::INTR) => Ok(None),
            Err(e) => Err(os("epoll_wait")(e)),
        }
    }
}

impl AsFd for Set {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
