//! A Unix stream socket pair.

use super::pipe::{Stream, can_stream, inherited};
use crate::Result;
use crate::case::Burst;
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub(crate) struct Sockets;

/// Asks for buffers of 1 MiB, of which an unprivileged process gets what net.core.wmem_max allows.
pub(super) fn enlarge(socket: &OwnedFd) {
    let size: libc::c_int = 1 << 20;
    let length = size_of_val(&size) as libc::socklen_t;
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        // SAFETY: reads an int of the length that is passed. The kernel cuts the size to its limit.
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const size).cast(), length) };
    }
}

fn stream(socket: OwnedFd, setup: &Setup) -> Result<Box<dyn End>> {
    enlarge(&socket);
    Ok(Box::new(Stream::new(socket.try_clone()?, socket, setup)))
}

impl Mechanism for Sockets {
    fn about(&self) -> About {
        About::new("uds", Kind::Kernel, true, "a Unix stream socket pair")
    }

    fn can(&self, burst: &Burst) -> bool {
        can_stream(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (mine, theirs) = UnixStream::pair()?;
        let inherit = vec![theirs.as_raw_fd()];
        let ticket = inherit[0].to_string();
        let end = stream(mine.into(), setup)?;
        let finish = move || {
            drop(theirs);
            Ok(end)
        };
        Ok(Prepared::new(ticket, finish).inherit(inherit))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        stream(inherited(ticket)?.pop().ok_or("no socket")?, setup)
    }
}
