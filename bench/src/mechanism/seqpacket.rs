//! A Unix SOCK_SEQPACKET pair: message boundaries are the kernel's. Several messages go in one `sendmmsg`.

use super::pipe::{Pending, can_stream, inherited};
use super::uds::enlarge;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::OnceLock;

pub(crate) struct Packets;

struct Packet {
    socket: OwnedFd,
    /// One message after the other, and where each ends.
    out: Pending,
    ends: Vec<usize>,
    input: Vec<u8>,
    headers: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
}

/// What one system call carries at most; UIO_MAXIOV.
const CALL_MAX: usize = 1024;

fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: fills in the two descriptors, which are then owned here.
    let (one, other) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) != 0 {
            return Err(Error::last_os_error().into());
        }
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    };
    enlarge(&one);
    enlarge(&other);
    Ok((one, other))
}

/// The longest message: it has to fit into the send buffer, of which the kernel needs a few bytes for itself.
fn longest() -> usize {
    static LONGEST: OnceLock<usize> = OnceLock::new();
    *LONGEST.get_or_init(|| {
        let Ok((socket, _)) = pair() else { return usize::MAX };
        let mut size: libc::c_int = 0;
        let mut length = size_of_val(&size) as libc::socklen_t;
        // SAFETY: writes an int of the length that is passed.
        unsafe {
            let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUF);
            libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut size).cast(), &mut length);
        }
        (size as usize).saturating_sub(32)
    })
}

impl Packet {
    fn open(socket: OwnedFd) -> Box<dyn End> {
        let (out, ends, input) = (Pending::default(), Vec::new(), Vec::new());
        Box::new(Self { socket, out, ends, input, headers: Vec::new(), parts: Vec::new() })
    }

    /// Points one header each at the pieces of a buffer.
    fn point_at(&mut self, start: *mut u8, lengths: impl Iterator<Item = usize>) {
        let mut at = 0;
        self.parts.clear();
        self.parts.extend(lengths.map(|length| {
            let part = libc::iovec { iov_base: start.wrapping_add(at).cast(), iov_len: length };
            at += length;
            part
        }));
        self.headers.clear();
        self.headers.extend(self.parts.iter_mut().map(|part| {
            // SAFETY: all zero is an empty header.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header
        }));
    }

    fn flush(&mut self) -> Result<()> {
        let fd = self.socket.as_raw_fd();
        if self.ends.len() == 1 {
            let bytes = self.out.bytes();
            // SAFETY: the buffer outlives the call.
            let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
            check(sent)?;
        } else {
            let (start, ends) = (self.out.bytes().as_ptr().cast_mut(), std::mem::take(&mut self.ends));
            let begins = std::iter::once(0).chain(ends.iter().copied());
            self.point_at(start, ends.iter().zip(begins).map(|(end, begin)| end - begin));
            self.ends = ends;
            let mut sent = 0;
            while sent < self.headers.len() {
                let rest = &mut self.headers[sent..];
                let count = rest.len().min(CALL_MAX) as u32;
                // SAFETY: `count` headers, which point at `parts`, which point into `out`; all outlive the call.
                let more = unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), count, libc::MSG_NOSIGNAL) };
                sent += check(more as isize)?;
            }
        }
        self.out.clear();
        self.ends.clear();
        Ok(())
    }
}

fn check(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error().into())
}

/// Says what is wrong with a message that is not as long as it must be.
fn check_length(length: usize, size: usize) -> Result<()> {
    match length {
        _ if length == size => Ok(()),
        0 => Err("the other process closed".into()),
        _ => Err("the message received is not as long as the one sent".into()),
    }
}

impl Mechanism for Packets {
    fn about(&self) -> About {
        let what = "a Unix SOCK_SEQPACKET pair, blocking; sendmmsg and recvmmsg where several go together";
        About::new("seqpacket", Kind::Kernel, true, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst) && burst.size <= longest()
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let (mine, theirs) = pair()?;
        let inherit = vec![theirs.as_raw_fd()];
        let ticket = inherit[0].to_string();
        let finish = move || {
            // The other process has its own copy; with this open its death would go unnoticed.
            drop(theirs);
            Ok(Packet::open(mine))
        };
        Ok(Prepared::new(ticket, finish).inherit(inherit))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Packet::open(inherited(ticket)?.pop().ok_or("no socket")?))
    }
}

impl Channel for Packet {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(self.out.add(size));
        self.ends.push(self.out.bytes().len());
        if flush { self.flush() } else { Ok(()) }
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let max = (max as usize).min(CALL_MAX);
        if self.input.len() < size * max {
            self.input.resize(size * max, 0);
        }
        let (fd, start) = (self.socket.as_raw_fd(), self.input.as_mut_ptr());
        if max == 1 {
            // SAFETY: `size` bytes of the buffer. MSG_TRUNC: the length of the message, not of what was copied.
            let got = check(unsafe { libc::recv(fd, start.cast(), size, libc::MSG_TRUNC) })?;
            check_length(got, size)?;
            read(&self.input[..size]);
            return Ok(1);
        }
        self.point_at(start, std::iter::repeat_n(size, max));
        let flags = libc::MSG_WAITFORONE | libc::MSG_TRUNC;
        // SAFETY: `count` headers, which point at `parts`, which point into `input`; all outlive the call.
        let got = unsafe { libc::recvmmsg(fd, self.headers.as_mut_ptr(), max as u32, flags, null_mut()) };
        let got = check(got as isize)?;
        for (header, message) in self.headers[..got].iter().zip(self.input.chunks_exact(size)) {
            check_length(header.msg_len as usize, size)?;
            read(message);
        }
        Ok(got as u32)
    }
}
