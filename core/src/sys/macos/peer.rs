//! Unix sockets: every option is set after the fact, and `/proc` helps nobody.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};

use crate::sys::last_errno;
use crate::sys::socket::Credentials;
use crate::{Error, ErrorKind, Result};

/// The longest path that fits into a `sockaddr_un` with its terminating NUL.
pub(crate) const PATH_LIMIT: usize = 103;

/// How many descriptors one receive takes in order to count and close them: more than any message can hold, because
/// those that do not fit would stay open here forever.
pub(crate) const DESCRIPTORS: usize = 512;

/// A signal for a peer that is gone is switched off by an option of the socket.
pub(crate) const SEND: SendFlags = SendFlags::DONTWAIT;
pub(crate) const RECEIVE: RecvFlags = RecvFlags::DONTWAIT;

/// What to poll for in order to learn of the other end's hang-up. It is reported only to those who also ask for bytes.
pub(crate) const HANG_UP: PollFlags = PollFlags::IN.union(PollFlags::HUP);
/// What then tells of it.
pub(crate) const HUNG_UP: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// A short path to an open directory: there is none.
pub(crate) fn short_path(_dir: BorrowedFd<'_>) -> Option<String> {
    None
}

/// Keeps a descriptor from programs that are executed.
pub(crate) fn close_on_exec(fd: impl AsFd) {
    // Fails only for what is no descriptor.
    let _ = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
}

/// What every stream socket needs: close-on-exec, never blocking, no SIGPIPE.
fn prepare(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    close_on_exec(&fd);
    rustix::io::ioctl_fionbio(&fd, true)?;
    rustix::net::sockopt::set_socket_nosigpipe(&fd, true)?;
    Ok(fd)
}

/// A new stream socket.
pub(crate) fn stream() -> Result<OwnedFd, Errno> {
    rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).and_then(prepare)
}

/// The next connection; `AGAIN` if there is none.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // Its socket takes no more options where the connector is gone already.
    prepare(rustix::net::accept(listener)?).map_err(|e| if e == Errno::INVAL { Errno::CONNABORTED } else { e })
}

/// A socket has no mode before it is bound. Until [`set_mode`] has been called nobody listens, so nobody comes in.
pub(crate) fn mode_before_bind(_fd: BorrowedFd<'_>, _mode: u32) -> Result<(), Errno> {
    Ok(())
}

/// Gives a socket that was just bound exactly the permission bits `mode`.
pub(crate) fn set_mode(dir: BorrowedFd<'_>, file_name: &OsStr, mode: u32) -> Result<()> {
    let os = |e: Errno| Error::os(e.raw_os_error(), "setting the permissions of the socket");
    // Neither call follows a link. Who can exchange the name in between may write the directory, and gets no more.
    let stat = rustix::fs::statat(dir, file_name, AtFlags::SYMLINK_NOFOLLOW).map_err(os)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "another program replaced the socket just after it was bound; stop it, or pick another name",
        ));
    }
    rustix::fs::chmodat(dir, file_name, Mode::from_raw_mode(mode as u16), AtFlags::SYMLINK_NOFOLLOW).map_err(os)
}

/// Who is at the other end of a connected socket. A peer that has gone already has no user and is nobody's equal.
pub(crate) fn credentials(fd: BorrowedFd<'_>) -> Result<Credentials> {
    let (mut uid, mut gid) = (u32::MAX, u32::MAX);
    // SAFETY: both results live on the stack.
    if unsafe { libc::getpeereid(fd.as_raw_fd(), &raw mut uid, &raw mut gid) } != 0 {
        return match last_errno() {
            libc::ENOTCONN | libc::EINVAL => Ok(Credentials { pid: 0, uid: u32::MAX }),
            errno => Err(Error::os(errno, "getpeereid")),
        };
    }
    let mut pid: libc::pid_t = 0;
    let mut len = size_of::<libc::pid_t>() as libc::socklen_t;
    // SAFETY: `pid` has `len` bytes, and any bit pattern is a valid one. A failure leaves the 0, which is "unknown".
    unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_LOCAL, libc::LOCAL_PEERPID, (&raw mut pid).cast(), &raw mut len)
    };
    Ok(Credentials { pid: u32::try_from(pid).unwrap_or(0), uid })
}

/// There are no user namespaces, so no number stands for users without one.
pub(crate) fn overflow_uid() -> u32 {
    u32::MAX
}
