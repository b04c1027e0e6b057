//! A bus: two rings in sealed memory between a listener and a connector, and the socket whose hang-up tells either
//! that the other one is gone.

mod builder;
mod connector;
mod handshake;
mod listener;
mod memory;
mod place;

use std::ffi::OsStr;
use std::fmt;
use std::time::Duration;

pub use builder::ListenerBuilder;
pub use connector::Connector;
pub use listener::Listener;

use crate::sys::{fork, fs, socket};
use crate::{Error, ErrorKind, Message, Meta, Receiver, Result, Sender, Slot};
use listener::permit::Permit;
use memory::Halves;

/// A full-duplex connection to one process of this machine.
///
/// Each direction is a ring with a capacity of its own, which the listener chose; one may be missing. Both sides are
/// safe against a peer that writes anything into the shared memory at any time (`Corrupt`), as far as the
/// [`Receiver`]'s copying calls are used where the peer is not trusted: see `SECURITY.md`.
///
/// After the last message a receiver gets `Closed` if the peer closed, `PeerDead` if its process died; a blocked call
/// learns it within 200 ms. Both are final. A bus holds two descriptors. In a fork's child every call is `Detached`.
///
/// ```no_run
/// # fn one() -> ramway::Result<()> {
/// // One process:
/// let mut bus = ramway::Bus::listen("echo", 1 << 16)?;
/// let question = bus.recv()?.to_vec();
/// bus.send(1, &question)?;
/// # Ok(()) }
/// # fn other() -> ramway::Result<()> {
/// // Another one, started before or after:
/// let mut bus = ramway::Bus::connect("echo")?;
/// bus.send(1, b"anyone?")?;
/// assert_eq!(&*bus.recv()?, b"anyone?");
/// # Ok(()) }
/// ```
///
/// A message that was received borrows its bus until it is dropped. [`split`](Self::split) gives the ends apart, so that an
/// answer can be sent while the question is read in place:
///
/// ```no_run
/// # fn main() -> ramway::Result<()> {
/// let (Some(mut tx), Some(mut rx)) = ramway::Bus::listen("echo", 1 << 16)?.split() else {
///     unreachable!("this bus has both directions");
/// };
/// while let Ok(message) = rx.recv() {
///     tx.send(message.type_id(), &message)?;
/// }
/// # Ok(()) }
/// ```
pub struct Bus {
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// Descriptor 0 is the socket, which the halves share.
    socket: fork::Entry,
    peer: socket::Credentials,
    /// Of an RPC client: how many calls it may have in flight; else 0.
    max_in_flight: u32,
    /// Of a listener that counts its buses.
    _permit: Option<Permit>,
}

/// See [`Bus::split_counted`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    _permit: Option<Permit>,
}

impl Bus {
    /// Listens at `name`, takes one peer and removes the name again. Waits for the peer as long as it takes.
    ///
    /// Both directions get at least `capacity` bytes. For many peers, deadlines and other users see
    /// [`Listener::builder`].
    ///
    /// # Errors
    /// Those of [`Listener::bind`] and [`Listener::accept`].
    pub fn listen(name: impl AsRef<OsStr>, capacity: u64) -> Result<Self> {
        Listener::builder(name).capacity(capacity).accept_one(None)
    }

    /// Connects to the listener at `name`, waiting up to 10 s for one that is not there yet or is busy.
    ///
    /// # Errors
    /// Those of [`Connector::connect`].
    pub fn connect(name: impl AsRef<OsStr>) -> Result<Self> {
        Self::connector(name).connect()
    }

    /// Options for connecting.
    pub fn connector(name: impl AsRef<OsStr>) -> Connector {
        Connector::new(name.as_ref())
    }

    fn new(halves: Halves, socket: fork::Entry, peer: socket::Credentials, permit: Option<Permit>) -> Self {
        Self { sender: halves.sender, receiver: halves.receiver, socket, peer, max_in_flight: 0, _permit: permit }
    }

    /// The sending end, with all of its calls.
    ///
    /// # Errors
    /// `Unsupported` if the listener gave this direction no capacity.
    pub fn sender(&mut self) -> Result<&mut Sender> {
        self.sender.as_mut().ok_or_else(|| missing("receive-only"))
    }

    /// The receiving end, with all of its calls.
    ///
    /// # Errors
    /// `Unsupported` if the listener gave this direction no capacity.
    pub fn receiver(&mut self) -> Result<&mut Receiver> {
        self.receiver.as_mut().ok_or_else(|| missing("send-only"))
    }

    /// Of an RPC client: how many calls it may have in flight; else 0.
    #[doc(hidden)] // for the bridge; not part of the stable API
    pub fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// The sending end, if there is one.
    pub(crate) fn sends(&self) -> Option<&Sender> {
        self.sender.as_ref()
    }

    /// Gives the ends apart, for two threads say; `None` for a direction without capacity. The peer sees a hang-up when
    /// both are gone.
    pub fn split(self) -> (Option<Sender>, Option<Receiver>) {
        (self.sender, self.receiver)
    }

    /// [`split`](Self::split), and the bus's place among those that its listener counts, which is free again when that goes.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn split_counted(self) -> (Option<Sender>, Option<Receiver>, Place) {
        (self.sender, self.receiver, Place { _permit: self._permit })
    }

    /// [`Sender::send`].
    #[inline]
    pub fn send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.sender()?.send(type_id, payload)
    }

    /// [`Sender::try_send`].
    #[inline]
    pub fn try_send(&mut self, type_id: u32, payload: &[u8]) -> Result<()> {
        self.sender()?.try_send(type_id, payload)
    }

    /// [`Sender::send_timeout`].
    pub fn send_timeout(&mut self, type_id: u32, payload: &[u8], timeout: Duration) -> Result<()> {
        self.sender()?.send_timeout(type_id, payload, timeout)
    }

    /// [`Sender::send_tagged`].
    #[inline]
    pub fn send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.sender()?.send_tagged(type_id, tag, payload)
    }

    /// [`Sender::try_send_tagged`].
    #[inline]
    pub fn try_send_tagged(&mut self, type_id: u32, tag: u64, payload: &[u8]) -> Result<()> {
        self.sender()?.try_send_tagged(type_id, tag, payload)
    }

    /// [`Sender::reserve`].
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<Slot<'_>> {
        self.sender()?.reserve(len)
    }

    /// [`Sender::try_reserve`].
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<Slot<'_>> {
        self.sender()?.try_reserve(len)
    }

    /// [`Sender::reserve_timeout`].
    pub fn reserve_timeout(&mut self, len: usize, timeout: Duration) -> Result<Slot<'_>> {
        self.sender()?.reserve_timeout(len, timeout)
    }

    /// [`Receiver::recv`].
    #[inline]
    pub fn recv(&mut self) -> Result<Message<'_>> {
        self.receiver()?.recv()
    }

    /// [`Receiver::try_recv`].
    #[inline]
    pub fn try_recv(&mut self) -> Result<Message<'_>> {
        self.receiver()?.try_recv()
    }

    /// [`Receiver::recv_timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Message<'_>> {
        self.receiver()?.recv_timeout(timeout)
    }

    /// [`Receiver::recv_into`].
    #[inline]
    pub fn recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<Meta> {
        self.receiver()?.recv_into(buffer)
    }

    /// [`Receiver::try_recv_into`].
    #[inline]
    pub fn try_recv_into(&mut self, buffer: &mut Vec<u8>) -> Result<Meta> {
        self.receiver()?.try_recv_into(buffer)
    }

    /// [`Receiver::recv_into_timeout`].
    pub fn recv_into_timeout(&mut self, buffer: &mut Vec<u8>, timeout: Duration) -> Result<Meta> {
        self.receiver()?.recv_into_timeout(buffer, timeout)
    }

    /// Closes both ends: [`Sender::close`] and [`Receiver::close`]. Dropping does the same without the chance of an error.
    ///
    /// # Errors
    /// Theirs, the sender's first.
    pub fn close(self) -> Result<()> {
        let sent = self.sender.map_or(Ok(()), Sender::close);
        let received = self.receiver.map_or(Ok(()), Receiver::close);
        sent.and(received)
    }

    /// Releases both ends without telling the peer that this was all: it is told `PeerDead`. See [`Sender::abandon`].
    pub fn abandon(self) {
        if let Some(sender) = self.sender {
            sender.abandon();
        }
    }

    /// The user that the peer acted as when the connection was made, as the kernel recorded it.
    pub fn peer_uid(&self) -> u32 {
        self.peer.uid
    }

    /// The peer's process when the connection was made; `None` if it has no number in our PID namespace. It says who
    /// asked, nothing is decided by it: numbers are used again.
    pub fn peer_pid(&self) -> Option<u32> {
        (self.peer.pid != 0).then_some(self.peer.pid)
    }

    /// Whether the peer still holds its end of the bus (one system call). `false` in a fork's child.
    pub fn is_peer_alive(&self) -> bool {
        !self.socket.is_detached() && !socket::hung_up(self.socket.fd(0))
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("sender", &self.sender)
            .field("receiver", &self.receiver)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

fn missing(ways: &str) -> Error {
    let text = format!("this bus is {ways}: the listener gave the other direction a capacity of 0");
    Error::new(ErrorKind::Unsupported, text)
}

/// Whether the other end is a user that we deal with: our own or one that was named; never the one that stands for
/// all users without a number here.
fn check_peer(peer: socket::Credentials, others: &[u32], option: &str) -> Result<()> {
    let own = fs::effective_uid();
    let unknown = peer.uid == socket::overflow_uid() || peer.uid == u32::MAX;
    if !unknown && (peer.uid == own || others.contains(&peer.uid)) {
        return Ok(());
    }
    let text = if unknown {
        format!(
            "the other side is user {}, which stands for every user without a number in this user namespace and so proves \
             nothing; run {} as another user",
            peer.uid,
            if peer.uid == own { "both sides" } else { "it" }
        )
    } else {
        format!("the other side is user {}, we are user {own}; name it with `{option}` if it may take part", peer.uid)
    };
    Err(Error::new(ErrorKind::PermissionDenied, text))
}
