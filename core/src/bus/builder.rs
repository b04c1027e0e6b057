//! How to listen.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use super::Bus;
use super::listener::{Listener, Settings};
use super::memory::{self, Plan};
use super::place::Place;
use crate::Result;
use crate::facts::{BACKLOG_DEFAULT, BYTE_LISTENER, CAPACITY_DEFAULT, HANDSHAKE_TIMEOUT};
use crate::layout::{ALIGN_MIN, Kind};
use crate::ring::options::{EndOptions, end_options};
use crate::segment::{Intent, Request, SegmentOptions, Spec, named};
use crate::sys::fork;
use crate::sys::mem::Access;

/// Options of a [`Listener`]: made by [`Listener::builder`].
#[derive(Clone, Debug)]
pub struct ListenerBuilder {
    name: OsString,
    to_peer: u64,
    from_peer: u64,
    align: u32,
    mode: Option<u32>,
    allowed: Vec<u32>,
    handshake_timeout: Duration,
    backlog: i32,
    /// Of an RPC server.
    max_in_flight: Option<u32>,
    end: EndOptions,
}

impl ListenerBuilder {
    pub(super) fn new(name: &OsStr) -> Self {
        Self {
            name: name.into(),
            to_peer: CAPACITY_DEFAULT,
            from_peer: CAPACITY_DEFAULT,
            align: ALIGN_MIN,
            mode: None,
            allowed: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            backlog: BACKLOG_DEFAULT as i32,
            max_in_flight: None,
            end: EndOptions::default(),
        }
    }

    /// Bytes of both rings of every bus, rounded up to a power of two of at least a page. Default 1 MiB.
    pub fn capacity(self, bytes: u64) -> Self {
        self.capacities(bytes, bytes)
    }

    /// Bytes of the ring to the peer and of the one from it, each rounded up as in [`capacity`](Self::capacity);
    /// 0 leaves that direction out.
    pub fn capacities(mut self, to_peer: u64, from_peer: u64) -> Self {
        (self.to_peer, self.from_peer) = (to_peer, from_peer);
        self
    }

    /// Alignment of every payload in bytes, a power of two from 16 (default) to 4096.
    pub fn align(mut self, align: u32) -> Self {
        self.align = align;
        self
    }

    /// Permission bits of the socket, exactly, whatever the umask. Default 0600, or 0666 with
    /// [`allow_uids`](Self::allow_uids).
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode & 0o777);
        self
    }

    /// Other users who may connect; without this, only our own effective user. They need a path that they can search:
    /// give the listener a path, or `RAMWAY_DIR` such a directory. A user without a number in our user namespace is
    /// refused even if its stand-in (usually 65534) is named.
    pub fn allow_uids(mut self, uids: &[u32]) -> Self {
        self.allowed = uids.to_vec();
        self
    }

    /// How long a connector may take for each message of the handshake before it is refused. Default 1 s. Up to 64
    /// handshakes run side by side, which is no option; when one more connector comes, the one that has been silent the
    /// longest is refused before its time.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// How many connectors may wait for [`accept`](Listener::accept) at a time; others keep trying until their
    /// deadline. Default 128; the kernel caps it at `net.core.somaxconn`.
    pub fn backlog(mut self, connectors: u32) -> Self {
        self.backlog = i32::try_from(connectors).unwrap_or(i32::MAX);
        self
    }

    /// Listens for RPC clients, each of which may have this many calls in flight.
    #[doc(hidden)] // for the server, and for tests that are a server by hand; not part of the stable API
    pub fn rpc(mut self, max_in_flight: u32) -> Self {
        self.max_in_flight = Some(max_in_flight);
        self
    }

    end_options!();

    /// Starts to listen.
    ///
    /// # Errors
    /// `AlreadyExists` if a live listener has the name, or something that is not ours to remove (it stays as it is);
    /// `InvalidArgument` for a bad name, capacity or alignment; `PermissionDenied`, `NoSpace`, `Unsupported`, `Os`.
    pub fn bind(&self) -> Result<Listener> {
        self.bind_for(usize::MAX, false)
    }

    /// [`bind`](Self::bind) for at most `peers` buses at a time: a connector beyond is refused (`Busy`).
    #[doc(hidden)] // for the bindings' inboxes; not part of the stable API
    pub fn bind_at_most(&self, peers: usize) -> Result<Listener> {
        self.bind_for(peers, true)
    }

    /// Listens, takes one peer, and removes the name again. At most one connector is ever told that it is welcome, so
    /// none believes that it is connected and is not. Waits for at most `timeout`, without one as long as it takes.
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind) and [`accept`](Listener::accept), and `TimedOut`.
    pub fn accept_one(&self, timeout: Option<Duration>) -> Result<Bus> {
        let listener = self.bind_for(1, false)?;
        listener.accept_until(timeout.and_then(|t| Instant::now().checked_add(t)))
    }

    /// [`accept_one`](Self::accept_one) in two steps, for languages that wait in intervals: only the first connector that
    /// comes through is ever told that it is welcome. Drop the listener after that.
    #[doc(hidden)]
    pub fn bind_one(&self) -> Result<Listener> {
        self.bind_for(1, false)
    }

    fn bind_for(&self, peers: usize, counts_buses: bool) -> Result<Listener> {
        let shown = self.name.to_string_lossy();
        self.try_bind(peers, counts_buses).map_err(|e| e.context(format_args!("listening at '{shown}'")))
    }

    fn try_bind(&self, peers: usize, counts_buses: bool) -> Result<Listener> {
        let name = self.name.to_string_lossy().into_owned();
        let plan = Plan {
            name,
            to_peer: self.to_peer,
            from_peer: self.from_peer,
            align: self.align,
            max_in_flight: self.max_in_flight,
        };
        memory::spec(&plan)?;
        let place = Place::resolve(&self.name, true)?;
        // Its mode is the default, 0600: a user who can open the file can lock it and so keep the next listener out. A
        // disk will do, because nothing but locks is shared through it.
        let options = SegmentOptions { allow_disk: true, ..SegmentOptions::default() };
        let segment = named(
            &place.segment,
            &Request {
                intent: Intent::Create,
                kind: Kind::Listener,
                spec: Some(Spec::listener().named()),
                check: &|_| Ok(()),
                role_byte: Some(BYTE_LISTENER),
                access: Access::ReadWrite,
                options: &options,
                go_on: &|| true,
            },
        )?;
        place.clear()?;
        let mode = self.mode.unwrap_or(if self.allowed.is_empty() { 0o600 } else { 0o666 });
        let mut own = None;
        let listening = fork::Entry::open(|| {
            let (fd, id) = place.listen(mode, self.backlog)?;
            own = Some(id);
            Ok(vec![fd])
        })?;
        let own = own.expect("the entry is there because it was made");
        let settings = Settings {
            peers,
            counts_buses,
            plan,
            allowed: self.allowed.clone(),
            handshake_timeout: self.handshake_timeout,
            end: self.end,
        };
        Listener::new(settings, place, own, listening, segment.link)
    }
}
