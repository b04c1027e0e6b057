//! A Unix stream socket pair.

use super::pipe::{Stream, inherited};
use crate::Result;
use crate::channel::{End, Mechanism, Prepared};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub(crate) struct Sockets;

fn stream(socket: OwnedFd) -> Result<Box<dyn End>> {
    let size: libc::c_int = 1 << 20;
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        // SAFETY: reads an int of the length that is passed. The kernel cuts the size to its limit.
        unsafe {
            let length = size_of_val(&size) as libc::socklen_t;
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const size).cast(), length);
        }
    }
    Ok(Box::new(Stream::new(socket.try_clone()?, socket)))
}

impl Mechanism for Sockets {
    fn name(&self) -> &'static str {
        "uds"
    }

    fn prepare(&self, _directory: &str, _capacity: u64) -> Result<Prepared> {
        let (mine, theirs) = UnixStream::pair()?;
        let inherit = vec![theirs.as_raw_fd()];
        let ticket = inherit[0].to_string();
        let finish = move || {
            drop(theirs);
            stream(mine.into())
        };
        Ok(Prepared { ticket, inherit, finish: Box::new(finish) })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        stream(inherited(ticket)?.pop().ok_or("no socket")?)
    }
}
