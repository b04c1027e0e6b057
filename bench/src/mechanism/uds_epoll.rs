//! A Unix stream socket pair as an event loop uses it: non-blocking, edge-triggered epoll at both ends. A read or write
//! that did less than was asked has exhausted the socket, so the next thing is `epoll_wait`, not a call that fails.

use super::pipe::{Pending, can_stream, inherited};
use super::uds::enlarge;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub(crate) struct Epoll;

/// What one `recv` asks for: the largest message, or many small ones.
const READ: usize = 1 << 20;
/// Beyond it the other process hangs.
const WAIT_MAX_MS: i32 = 60_000;

struct Stream {
    socket: OwnedFd,
    epoll: OwnedFd,
    /// Whether the socket has not yet said that it has nothing, or no room.
    readable: bool,
    writable: bool,
    out: Pending,
    /// Read and not yet handed out: from `next` to `end`.
    input: Vec<u8>,
    next: usize,
    end: usize,
}

impl Stream {
    fn open(socket: OwnedFd) -> Result<Box<dyn End>> {
        enlarge(&socket);
        // SAFETY: changes this socket's flags, and makes a descriptor, which is then owned here.
        let epoll = unsafe {
            let flags = libc::fcntl(socket.as_raw_fd(), libc::F_GETFL);
            let set = libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if set != 0 || fd < 0 {
                return Err(Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: 0 };
        // SAFETY: the event outlives the call.
        let added = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &mut event) };
        if added != 0 {
            return Err(Error::last_os_error().into());
        }
        let (out, input) = (Pending::default(), vec![0; 2 * READ]);
        Ok(Box::new(Self { socket, epoll, readable: false, writable: true, out, input, next: 0, end: 0 }))
    }

    /// Waits for the next edge.
    fn wait(&mut self) -> Result<()> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event.
        match unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &mut event, 1, WAIT_MAX_MS) } {
            0 => return Err("the other process does not answer".into()),
            -1 if Error::last_os_error().raw_os_error() != Some(libc::EINTR) => {
                return Err(Error::last_os_error().into());
            }
            _ => {}
        }
        let events = event.events as i32;
        self.readable |= events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        self.writable |= events & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut sent = 0;
        while sent < self.out.bytes().len() {
            if !self.writable {
                self.wait()?;
                continue;
            }
            let rest = &self.out.bytes()[sent..];
            // SAFETY: the pointer and the length are of one slice.
            let more =
                unsafe { libc::send(self.socket.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
            self.writable = more == rest.len() as isize;
            sent += count(more)?;
        }
        self.out.clear();
        Ok(())
    }

    /// Reads what is there, at most `READ`.
    fn read(&mut self) -> Result<()> {
        while !self.readable {
            self.wait()?;
        }
        let room = &mut self.input[self.end..self.end + READ];
        // SAFETY: the pointer and the length are of one slice.
        let got = unsafe { libc::recv(self.socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        if got == 0 {
            return Err("the other process closed".into());
        }
        self.readable = got == room.len() as isize;
        self.end += count(got)?;
        Ok(())
    }
}

/// How much; 0 if there was nothing, or no room.
fn count(result: isize) -> Result<usize> {
    usize::try_from(result).or_else(|_| {
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(0),
            _ => Err(error.into()),
        }
    })
}

impl Mechanism for Epoll {
    fn about(&self) -> About {
        let what = "a Unix stream socket pair, non-blocking, edge-triggered epoll at both ends";
        About::new("uds-epoll", Kind::Kernel, true, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst)
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let (mine, theirs) = UnixStream::pair()?;
        let inherit = vec![theirs.as_raw_fd()];
        let ticket = inherit[0].to_string();
        let finish = move || {
            drop(theirs);
            Stream::open(mine.into())
        };
        Ok(Prepared::new(ticket, finish).inherit(inherit))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Stream::open(inherited(ticket)?.pop().ok_or("no socket")?)
    }
}

impl Channel for Stream {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(self.out.add(size));
        if flush { self.flush() } else { Ok(()) }
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        if self.end - self.next < size {
            self.input.copy_within(self.next..self.end, 0);
            self.end -= self.next;
            self.next = 0;
            if self.input.len() < size + READ {
                self.input.resize(size + READ, 0);
            }
            while self.end < size {
                self.read()?;
            }
        }
        let mut count = 0;
        while count < max && self.end - self.next >= size {
            read(&self.input[self.next..self.next + size]);
            self.next += size;
            count += 1;
        }
        Ok(count)
    }
}
