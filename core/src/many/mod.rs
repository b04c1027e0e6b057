//! Many processes at one end: an [`Inbox`] receives from many producers, an [`Outbox`] gives work to many workers. Both are
//! a listener, a one-way bus for each peer, and a [`Select`](crate::Select) over them.

mod inbox;
mod outbox;

pub use inbox::{Inbox, InboxBuilder, Incoming, Left, Peer};
pub use outbox::{Outbox, OutboxBuilder, Undelivered};

use crate::facts::{CAPACITY_DEFAULT, HANDSHAKE_TIMEOUT};
use crate::sys::clock;
use crate::wait::POLL_INTERVAL;
use crate::{Bus, ErrorKind, Listener, Result};
use std::time::Duration;

/// How often a side that has enough to do looks for new peers all the same.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(1);

/// What both sides are opened with.
#[derive(Clone, Debug)]
struct Options {
    name: std::ffi::OsString,
    capacity: u64,
    align: u32,
    max_peers: usize,
    mode: Option<u32>,
    allowed: Vec<u32>,
    handshake_timeout: Duration,
    policy: crate::WaitPolicy,
}

impl Options {
    fn new(name: &std::ffi::OsStr) -> Self {
        Self {
            name: name.into(),
            capacity: CAPACITY_DEFAULT,
            align: crate::layout::ALIGN_MIN,
            max_peers: 128,
            mode: None,
            allowed: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            policy: crate::WaitPolicy::default(),
        }
    }

    /// Listens; `to_peer` and `from_peer` are the capacities of every bus.
    fn bind(&self, to_peer: u64, from_peer: u64) -> Result<Listener> {
        if self.max_peers == 0 {
            let text = format!("'{}' for at most 0 peers: expected at least 1", self.name.to_string_lossy());
            return Err(crate::Error::new(ErrorKind::InvalidArgument, text));
        }
        let mut builder = Listener::builder(&self.name)
            .capacities(to_peer, from_peer)
            .align(self.align)
            .allow_uids(&self.allowed)
            .handshake_timeout(self.handshake_timeout)
            .wait_policy(self.policy);
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        builder.bind_at_most(self.max_peers)
    }
}

/// The methods that set [`Options`], the field `options`.
macro_rules! peer_options {
    ($peer:literal) => {
        #[doc = concat!("Bytes of the ring of every ", $peer, ", rounded up to a power of two of at least a page. Default 1 MiB.")]
        pub fn capacity(mut self, bytes: u64) -> Self {
            self.options.capacity = bytes;
            self
        }

        /// Alignment of every payload in bytes, a power of two from 16 (default) to 4096.
        pub fn align(mut self, bytes: u32) -> Self {
            self.options.align = bytes;
            self
        }

        #[doc = concat!("How many ", $peer, "s there may be at a time; one beyond is refused (`Busy`). Default 128.")]
        pub fn max_peers(mut self, count: usize) -> Self {
            self.options.max_peers = count;
            self
        }

        /// As [`ListenerBuilder::mode`](crate::ListenerBuilder::mode).
        pub fn mode(mut self, mode: u32) -> Self {
            self.options.mode = Some(mode);
            self
        }

        /// As [`ListenerBuilder::allow_uids`](crate::ListenerBuilder::allow_uids).
        pub fn allow_uids(mut self, uids: &[u32]) -> Self {
            self.options.allowed = uids.to_vec();
            self
        }

        /// As [`ListenerBuilder::handshake_timeout`](crate::ListenerBuilder::handshake_timeout).
        pub fn handshake_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.handshake_timeout = timeout;
            self
        }

        /// How it waits; [`WaitPolicy::Hybrid`](crate::WaitPolicy::Hybrid) by default.
        pub fn wait_policy(mut self, policy: crate::WaitPolicy) -> Self {
            self.options.policy = policy;
            self
        }
    };
}
use peer_options;

/// Takes those that are through, without waiting.
#[derive(Debug)]
struct Door {
    listener: Listener,
    /// When it was last looked for new ones, in coarse nanoseconds.
    asked: u64,
    /// The number of the last peer.
    last: u64,
}

impl Door {
    fn new(listener: Listener) -> Self {
        Self { listener, asked: clock::coarse_ns(), last: 0 }
    }

    /// Whether it is time to look for new ones although there is enough to do. `now` in coarse nanoseconds, as below.
    fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.asked) >= ACCEPT_INTERVAL.as_nanos() as u64
    }

    /// The next one that is through.
    fn take(&mut self) -> Result<Option<(Peer, Bus)>> {
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
    fn due_in(&self) -> Option<Duration> {
        self.listener.due_in()
    }
}

/// When the kernel is asked which peers live. A wait asks it too; but a side that has always enough to do never waits, and
/// the end of one peer must not go unseen as long as the others are busy.
#[derive(Debug)]
struct LastAsked(u64);

impl LastAsked {
    fn new() -> Self {
        Self(clock::coarse_ns())
    }

    fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.0) >= POLL_INTERVAL.as_nanos() as u64
    }

    fn asked(&mut self, now: u64) {
        self.0 = now;
    }
}
