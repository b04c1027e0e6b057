//! Two eventfds, which carry a signal and no bytes.

use super::futex::can_signal;
use super::pipe::inherited;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub(crate) struct EventFds;

struct Signals {
    out: File,
    input: File,
}

/// A semaphore: a `read` takes one signal, so that two that came together are not one.
fn eventfd() -> Result<OwnedFd> {
    // SAFETY: the call makes a descriptor, which is then owned here.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_SEMAPHORE) {
            -1 => Err(Error::last_os_error().into()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

impl Mechanism for EventFds {
    fn about(&self) -> About {
        About::new("eventfd", Kind::Kernel, false, "two eventfds with blocking reads, which carry no bytes")
    }

    fn can(&self, burst: &Burst) -> bool {
        can_signal(burst)
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let (there, back) = (eventfd()?, eventfd()?);
        let fds = vec![there.as_raw_fd(), back.as_raw_fd()];
        let ticket = format!("{},{}", fds[0], fds[1]);
        let finish = move || Ok(Box::new(Signals { out: there.into(), input: back.into() }) as Box<dyn End>);
        Ok(Prepared::new(ticket, finish).inherit(fds))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let mut fds = inherited(ticket)?.into_iter().map(File::from);
        let (input, out) = (fds.next().ok_or("no eventfd")?, fds.next().ok_or("no second eventfd")?);
        Ok(Box::new(Signals { out, input }))
    }
}

impl Channel for Signals {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, _size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(&mut []);
        self.out.write_all(&1u64.to_ne_bytes())?;
        Ok(())
    }

    fn receive(&mut self, _size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        self.input.read_exact(&mut [0; 8])?;
        read(&[]);
        Ok(1)
    }
}
