//! A descriptor that one thread makes readable and another one polls: a pipe that never blocks.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};

/// See the module. Signals add up until they are cleared.
#[derive(Debug)]
pub(crate) struct Event {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Event {
    /// Unreadable at first.
    pub(crate) fn new() -> Result<Self> {
        let os = |errno: i32| Error::os(errno, "making a pipe for a readiness descriptor");
        // Both ends are close-on-exec.
        let (reader, writer) = std::io::pipe().map_err(|e| os(e.raw_os_error().unwrap_or(libc::EIO)))?;
        let (reader, writer): (OwnedFd, OwnedFd) = (reader.into(), writer.into());
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true).map_err(|e| os(e.raw_os_error()))?;
        }
        Ok(Self { reader, writer })
    }

    /// Makes it readable.
    pub(crate) fn signal(&self) {
        // Fails only if the pipe is full: then it is readable already.
        let _ = rustix::io::write(&self.writer, &[1]);
    }

    /// Makes it unreadable.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 256];
        // A full buffer may have left some; anything else is the end, or an error that leaves nothing to be read.
        while matches!(rustix::io::read(&self.reader, &mut bytes), Ok(n) if n == bytes.len()) {}
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
