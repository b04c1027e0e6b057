//! Unix sockets: what is set at once with the call that makes them, and who is at the other end.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::files::proc_path;
use crate::sys::socket::Credentials;
use crate::sys::{last_errno, os};
use crate::{Error, ErrorKind, Result};

/// The longest path that fits into a `sockaddr_un` with its terminating NUL.
pub(crate) const PATH_LIMIT: usize = 107;

/// How many descriptors one receive takes in order to count and close them; the kernel closes any more itself.
pub(crate) const DESCRIPTORS: usize = 8;

/// No signal for a peer that is gone, and no waiting.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
pub(crate) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC.union(RecvFlags::DONTWAIT);

/// What to poll for in order to learn of the other end's hang-up.
pub(crate) const HANG_UP: PollFlags = PollFlags::RDHUP;
/// What then tells of it.
pub(crate) const HUNG_UP: PollFlags = PollFlags::HUP.union(PollFlags::RDHUP).union(PollFlags::ERR);

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A short path to an open directory.
pub(crate) fn short_path(dir: BorrowedFd<'_>) -> Option<String> {
    Some(proc_path(dir))
}

/// Received descriptors are close-on-exec from the start.
pub(crate) fn close_on_exec(_fd: impl AsFd) {}

/// A new stream socket.
pub(crate) fn stream() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)
}

/// The next connection; `AGAIN` if there is none.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, FLAGS)
}

/// Gives a socket its mode before it has a name, so that at no time the name has more permission bits than asked for.
pub(crate) fn mode_before_bind(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(fd, mode.into())
}

/// `bind` takes the umask's bits away; this gives those back that were asked for.
pub(crate) fn set_mode(dir: BorrowedFd<'_>, file_name: &OsStr, mode: u32) -> Result<()> {
    let what = "setting the socket's mode";
    // O_PATH and no links followed: what is checked here is what is changed below, also if the name changes meanwhile.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, file_name, flags, Mode::empty()).map_err(os(what))?;
    let stat = rustix::fs::fstat(&fd).map_err(os(what))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "another program replaced the socket just after it was bound; stop it, or pick another name",
        ));
    }
    if stat.st_mode & 0o7777 == mode {
        return Ok(());
    }
    rustix::fs::chmod(proc_path(fd.as_fd()), mode.into()).map_err(os(what))
}

/// Who is at the other end of a connected socket.
pub(crate) fn credentials(fd: BorrowedFd<'_>) -> Result<Credentials> {
    // Not rustix's, whose `Pid` cannot hold the 0 that a peer of another PID namespace has.
    let mut cred = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `cred` is a ucred of `len` bytes, and any bit pattern is a valid one.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut cred).cast(), &raw mut len)
    };
    if result != 0 {
        return Err(Error::os(last_errno(), "SO_PEERCRED"));
    }
    Ok(Credentials { pid: u32::try_from(cred.pid).unwrap_or(0), uid: cred.uid })
}

/// The number that stands for every user who has none in our user namespace: it says nothing about who somebody is.
pub(crate) fn overflow_uid() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(65534)
}
