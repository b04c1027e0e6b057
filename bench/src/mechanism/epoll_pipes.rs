//! Several pipes, one of which is busy, and an epoll instance over all of them: what a `Select` over rings is beside. Nothing
//! polls; each message is an `epoll_wait` and a `read`.

use super::pipe::{can_stream, inherited, pipe};
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Over `N` pipes each way.
pub(crate) struct Waited<const N: usize>;

/// Beyond it the other process hangs.
const WAIT_MAX_MS: i32 = 60_000;
/// The largest message: what a pipe takes at once, so that each `write` is one message and no `read` gets a part.
const LARGEST: usize = 4096;

struct Many {
    /// All of them have their write end; one writes.
    writers: Vec<File>,
    readers: Vec<File>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
}

impl Many {
    fn open(writers: Vec<OwnedFd>, readers: Vec<OwnedFd>) -> Result<Box<dyn End>> {
        // SAFETY: makes a descriptor, which is then owned here.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        for (at, reader) in readers.iter().enumerate() {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: at as u64 };
            // SAFETY: the event outlives the call.
            let added =
                unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, reader.as_raw_fd(), &mut event) };
            if added != 0 {
                return Err(Error::last_os_error().into());
            }
        }
        let files = |fds: Vec<OwnedFd>| fds.into_iter().map(File::from).collect();
        let buffer = vec![0; LARGEST];
        Ok(Box::new(Self { writers: files(writers), readers: files(readers), epoll, buffer }))
    }
}

impl<const N: usize> Mechanism for Waited<N> {
    fn about(&self) -> About {
        let what = format!("{N} pipes each way, of which one carries messages: `epoll_wait`, then `read`");
        About::new(&format!("epoll-{N}"), Kind::Kernel, true, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        let test = matches!(burst.test, Test::Rtt | Test::OneWay);
        test && can_stream(burst) && burst.mode != Mode::Batch && burst.size <= LARGEST
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let (mut mine, mut theirs) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for _ in 0..N {
            let (there_read, there_write) = pipe()?;
            let (back_read, back_write) = pipe()?;
            mine.0.push(there_write);
            mine.1.push(back_read);
            theirs.0.push(back_write);
            theirs.1.push(there_read);
        }
        let inherit: Vec<_> = theirs.0.iter().chain(&theirs.1).map(OwnedFd::as_raw_fd).collect();
        let ticket = inherit.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let finish = move || {
            // The child has its own copies; with these open its death would go unnoticed.
            drop(theirs);
            Many::open(mine.0, mine.1)
        };
        Ok(Prepared::new(ticket, finish).inherit(inherit))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let mut writers = inherited(ticket)?;
        let readers = writers.split_off(N);
        Many::open(writers, readers)
    }
}

impl Channel for Many {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(&mut self.buffer[..size]);
        let busy = self.writers.len() / 2;
        Ok(self.writers[busy].write_all(&self.buffer[..size])?)
    }

    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        loop {
            // SAFETY: room for one event.
            match unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &mut event, 1, WAIT_MAX_MS) } {
                0 => return Err("the other process does not answer".into()),
                1 => break,
                _ if Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
                _ => return Err(Error::last_os_error().into()),
            }
        }
        let reader = self.readers.get_mut(event.u64 as usize).ok_or("an event of no pipe")?;
        reader.read_exact(&mut self.buffer[..size])?;
        read(&self.buffer[..size]);
        Ok(1)
    }
}
