//! Many processes at one end: an [`Inbox`] receives from many producers, an [`Outbox`] gives work to many workers. Both are
//! a listener, a one-way bus for each peer, and a [`Select`](crate::Select) over them.

mod inbox;
mod options;
mod outbox;

pub use inbox::{Inbox, InboxBuilder, Incoming, Left, Peer};
pub(crate) use options::{Options, listener_options};
pub use outbox::{Outbox, OutboxBuilder, Undelivered};

use crate::sys::clock;
use crate::wait::POLL_INTERVAL;
use crate::{Bus, ErrorKind, Listener, Result};
use std::time::Duration;

/// How often a side that has enough to do looks for new peers all the same.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(1);

/// The methods that set [`Options`], the field `options`.
macro_rules! peer_options {
    ($peer:literal) => {
        #[doc = concat!("Bytes of the ring of every ", $peer, ", rounded up to a power of two of at least a page. Default 1 MiB.")]
        pub fn capacity(mut self, bytes: u64) -> Self {
            self.options.capacity = bytes;
            self
        }

        #[doc = concat!("How many ", $peer, "s there may be at a time; one beyond is refused (`Busy`). Default 128.")]
        pub fn max_peers(mut self, count: usize) -> Self {
            self.options.max_peers = count;
            self
        }

        crate::many::listener_options!();
    };
}
use peer_options;

/// Takes those that are through, without waiting.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) listener: Listener,
    /// When it was last looked for new ones, in coarse nanoseconds.
    asked: u64,
    /// The number of the last peer.
    last: u64,
}

impl Door {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { listener, asked: clock::coarse_ns(), last: 0 }
    }

    /// Whether it is time to look for new ones although there is enough to do. `now` in coarse nanoseconds, as below.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.asked) >= ACCEPT_INTERVAL.as_nanos() as u64
    }

    /// The next one that is through.
    pub(crate) fn take(&mut self) -> Result<Option<(Peer, Bus)>> {
        self.asked = clock::coarse_ns();
        match self.listener.try_accept() {
            Ok(bus) => {
                self.last += 1;
                let peer = Peer { id: self.last, uid: bus.peer_uid(), pid: bus.peer_pid() };
                Ok(Some((peer, bus)))
            }
            Err(e) if e.kind() == ErrorKind::Empty => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Until when a handshake needs no attention.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.listener.due_in()
    }
}

/// When the kernel is asked which peers live. A wait asks it too; but a side that has always enough to do never waits, and
/// the end of one peer must not go unseen as long as the others are busy.
#[derive(Debug)]
pub(crate) struct LastAsked(u64);

impl LastAsked {
    pub(crate) fn new() -> Self {
        Self(clock::coarse_ns())
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.0) >= POLL_INTERVAL.as_nanos() as u64
    }

    pub(crate) fn asked(&mut self, now: u64) {
        self.0 = now;
    }
}
