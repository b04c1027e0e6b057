//! Unix stream sockets: never blocking, close-on-exec, without SIGPIPE, and with a deadline wherever they wait.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SocketAddrUnix,
};

use super::backend::peer::{self, DESCRIPTORS, PATH_LIMIT};
pub(crate) use super::backend::peer::{credentials, overflow_uid};
pub(crate) use super::backend::set::Set;
use super::fs::{self, FileId};
use super::os;
use crate::{Error, ErrorKind, Result};

/// Who is at the other end, as the kernel recorded it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// 0 where the peer's process has no number in our PID namespace.
    pub pid: u32,
    /// [`overflow_uid`] where the peer's user has no number in our user namespace.
    pub uid: u32,
}

/// The address of a socket in a directory that is open already.
///
/// A path that does not fit into a `sockaddr_un` goes through a short one to the same directory, where there is such a
/// thing.
pub(crate) fn address(dir: BorrowedFd<'_>, dir_path: &OsStr, file_name: &OsStr) -> Result<SocketAddrUnix> {
    let join = |dir: &[u8]| {
        let mut path = dir.to_vec();
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(file_name.as_bytes());
        path
    };
    let mut path = join(dir_path.as_bytes());
    if path.len() > PATH_LIMIT
        && let Some(short) = peer::short_path(dir)
    {
        path = join(short.as_bytes());
    }
    if path.len() > PATH_LIMIT {
        let text = format!(
            "the socket's path {}/{} is too long: the system takes at most {PATH_LIMIT} bytes, and so at most {} in the \
             file name; pick a shorter name, or set RAMWAY_DIR to a shorter path",
            dir_path.to_string_lossy(),
            file_name.to_string_lossy(),
            PATH_LIMIT.saturating_sub(path.len() - file_name.len())
        );
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    SocketAddrUnix::new(path).map_err(os("the socket's address"))
}

fn stream() -> Result<OwnedFd> {
    peer::stream().map_err(os("socket(AF_UNIX)"))
}

/// A listening socket at `file_name`, which must be absent, with exactly the permission bits `mode`, and what `lstat`
/// says of its name.
pub(crate) fn listen(
    dir: BorrowedFd<'_>,
    dir_path: &OsStr,
    file_name: &OsStr,
    mode: u32,
    backlog: i32,
) -> Result<(OwnedFd, Stat)> {
    let address = address(dir, dir_path, file_name)?;
    let fd = stream()?;
    peer::mode_before_bind(fd.as_fd(), mode).map_err(os("fchmod of the socket"))?;
    match rustix::net::bind(&fd, &address) {
        Err(Errno::ADDRINUSE) => {
            let text = "another program made a socket of this name just now; stop it, or pick another name";
            return Err(Error::new(ErrorKind::AlreadyExists, text));
        }
        bound => bound.map_err(os("bind"))?,
    }
    let made = match fs::stat_at(dir, file_name) {
        Ok(Some(stat)) if fs::is_socket(&stat) => stat,
        Ok(_) => {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "another program replaced the socket just after it was bound; stop it, or pick another name",
            ));
        }
        Err(e) => return Err(os("checking the socket (lstat)")(e)),
    };
    // `bind` takes the umask's bits away; this gives those back that were asked for.
    let listening =
        peer::set_mode(dir, file_name, mode).and_then(|()| rustix::net::listen(&fd, backlog).map_err(os("listen")));
    if let Err(error) = listening {
        if fs::leads_to(dir, file_name, FileId::of(&made)) {
            let _ = fs::unlink(dir, file_name);
        }
        return Err(error);
    }
    Ok((fd, made))
}

/// What [`remove_dead`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    /// Nothing has the name, or has it any more.
    Nothing,
    /// Somebody listens there.
    Live,
    /// It is no socket but this.
    Other(&'static str),
}

/// Removes a socket where nobody listens: one that refuses a connection. Nothing else is proof of that. Never waits.
pub(crate) fn remove_dead(dir: BorrowedFd<'_>, dir_path: &OsStr, file_name: &OsStr) -> Result<Remains> {
    let Some(stat) = fs::stat_at(dir, file_name).map_err(os("checking the name (lstat)"))? else {
        return Ok(Remains::Nothing);
    };
    if !fs::is_socket(&stat) {
        return Ok(Remains::Other(fs::describe(&stat)));
    }
    match rustix::net::connect(&stream()?, &address(dir, dir_path, file_name)?) {
        Err(Errno::CONNREFUSED) if fs::leads_to(dir, file_name, FileId::of(&stat)) => {
            match fs::unlink(dir, file_name) {
                Ok(()) | Err(Errno::NOENT) => Ok(Remains::Nothing),
                Err(e) => Err(os("removing it, as nobody listens there")(e)),
            }
        }
        Err(Errno::NOENT) => Ok(Remains::Nothing),
        Err(e @ (Errno::ACCESS | Errno::PERM)) => Err(os("asking whether somebody listens there")(e)),
        // Connected, a full backlog, a socket of another type: somebody has it open.
        _ => Ok(Remains::Live),
    }
}

/// Why an attempt to connect met nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Nothing has this name.
    Absent,
    /// Something has this name, but nobody listens there.
    Refused,
    /// The listener lives and its backlog is full.
    Full,
}

/// One attempt to connect, which never waits.
pub(crate) fn connect(dir: BorrowedFd<'_>, dir_path: &OsStr, file_name: &OsStr) -> Result<Result<OwnedFd, Miss>> {
    let address = address(dir, dir_path, file_name)?;
    let fd = stream()?;
    match rustix::net::connect(&fd, &address) {
        Ok(()) => Ok(Ok(fd)),
        Err(Errno::NOENT) => Ok(Err(Miss::Absent)),
        // What is not a socket is refused by Linux and named by macOS.
        Err(Errno::CONNREFUSED | Errno::NOTSOCK) => Ok(Err(Miss::Refused)),
        Err(Errno::AGAIN | Errno::INPROGRESS | Errno::INTR) => Ok(Err(Miss::Full)),
        Err(e) => Err(os("connect")(e)),
    }
}

/// The next connection, if one waits; never blocks.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<Option<OwnedFd>> {
    loop {
        match peer::accept(listener) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::AGAIN) => return Ok(None),
            // A connector that is gone already is not the listener's failure.
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(e) => return Err(os("accept")(e)),
        }
    }
}

/// Whether it is descriptors that are missing, of the process or of the system.
pub(crate) fn is_shortage(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Sends all of `bytes`, and `descriptor` with them, in one piece or not at all: a peer that does not read is an error.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::NOBUFS);
    }
    let parts = [std::io::IoSlice::new(bytes)];
    loop {
        match rustix::net::sendmsg(fd, &parts, &mut control, peer::SEND) {
            Ok(sent) if sent == bytes.len() => return Ok(()),
            // A stream takes so few bytes whole or refuses them.
            Ok(_) => return Err(Errno::AGAIN),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// What one receive brought.
pub(crate) struct Received {
    /// How many bytes; 0 when the other end hung up.
    pub bytes: usize,
    /// The descriptors that came with them. Those that nobody takes are closed.
    pub descriptors: Vec<OwnedFd>,
    /// There were more descriptors, which the kernel closed.
    pub truncated: bool,
}

/// Receives at most `buffer.len()` bytes; `Ok(None)` when nothing is there yet. Descriptors are close-on-exec.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> rustix::io::Result<Option<Received>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [std::io::IoSliceMut::new(buffer)];
        match rustix::net::recvmsg(fd, &mut parts, &mut control, peer::RECEIVE) {
            Ok(message) => {
                let mut descriptors = Vec::new();
                for item in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(rights) = item {
                        descriptors.extend(rights);
                    }
                }
                descriptors.iter().for_each(peer::close_on_exec);
                let truncated = message.flags.contains(ReturnFlags::CTRUNC);
                return Ok(Some(Received { bytes: message.bytes, descriptors, truncated }));
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Waits until there is something to read or the other end hung up; `false` when the deadline passed first.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::IN | peer::HANG_UP)];
    loop {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        match rustix::event::poll(&mut polled, left.map(timespec).as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(e) => return Err(os("poll of the bus's socket")(e)),
        }
    }
}

/// Whether the other end of a connected socket is closed: the peer closed it or died. Never blocks; bytes that
/// the peer sends after the handshake say nothing and are left alone.
pub(crate) fn hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, peer::HANG_UP)];
    loop {
        match rustix::event::poll(&mut polled, Some(&timespec(Duration::ZERO))) {
            Ok(_) => return polled[0].revents().intersects(peer::HUNG_UP),
            Err(Errno::INTR) => {}
            // Only a descriptor that is not ours any more fails here; waiting on it would wait forever.
            Err(_) => return true,
        }
    }
}

/// As a `timespec`, where more than the kernel can count is as good as forever.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX).min(1 << 40);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn hang_up_is_seen_whatever_bytes_are_left() {
        let (a, b) = UnixStream::pair().unwrap();
        assert!(!hung_up(a.as_fd()));
        send(b.as_fd(), b"stray", None).unwrap();
        assert!(!hung_up(a.as_fd()));
        drop(b);
        assert!(hung_up(a.as_fd()));
        assert_eq!(send(a.as_fd(), b"x", None), Err(Errno::PIPE));
    }

    #[test]
    fn descriptors_arrive_close_on_exec_and_can_be_counted() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/").unwrap();
        send(a.as_fd(), b"one", Some(file.as_fd())).unwrap();
        let mut buffer = [0; 64];
        let got = receive(b.as_fd(), &mut buffer).unwrap().unwrap();
        assert_eq!((got.bytes, got.descriptors.len(), got.truncated), (3, 1, false));
        let flags = rustix::io::fcntl_getfd(&got.descriptors[0]).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        assert!(receive(b.as_fd(), &mut buffer).unwrap().is_none());
    }

    #[test]
    fn own_credentials() {
        let (a, _b) = UnixStream::pair().unwrap();
        let got = credentials(a.as_fd()).unwrap();
        assert_eq!(got, Credentials { pid: std::process::id(), uid: fs::effective_uid() });
    }

    #[test]
    fn long_paths_go_through_the_directory_and_too_long_names_are_refused() {
        let dir = std::fs::File::open("/tmp").unwrap();
        assert!(address(dir.as_fd(), OsStr::new("/tmp"), OsStr::new("x.sock")).is_ok());
        let long = "/".to_owned() + &"d".repeat(200);
        let got = address(dir.as_fd(), OsStr::new(&long), OsStr::new("x.sock")).unwrap();
        let want = format!("/proc/self/fd/{}/x.sock", dir.as_raw_fd());
        assert_eq!(got.path().as_deref().map(CStr::to_bytes), Some(want.as_bytes()));
        let name = "n".repeat(110);
        let error = address(dir.as_fd(), OsStr::new("/tmp"), OsStr::new(&name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
