//! What tells one side that the other one lives, and releases the segment at the end.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::named::NamedLink;
use crate::facts::{BYTE_CONSUMER, BYTE_PRODUCER};
use crate::sys::fork;
use crate::sys::mem::Access;
use crate::sys::socket::hung_up;

/// A side of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Producer,
    Consumer,
}

impl Role {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Producer => Self::Consumer,
            Self::Consumer => Self::Producer,
        }
    }

    /// The byte that the holder of the role locks exclusively.
    pub(crate) fn lock_byte(self) -> u64 {
        match self {
            Self::Producer => BYTE_PRODUCER,
            Self::Consumer => BYTE_CONSUMER,
        }
    }

    /// A receiver maps the data read-only: it guards against our own mistakes.
    pub(crate) fn data_access(self) -> Access {
        match self {
            Self::Producer => Access::ReadWrite,
            Self::Consumer => Access::ReadOnly,
        }
    }
}

/// How a handle is tied to its peer.
#[derive(Debug)]
pub enum Link {
    /// Locks on a named segment.
    Named(NamedLink),
    /// The socket of a bus's handshake, shared by both of its halves.
    Socket(SocketLink),
    /// Two threads of one process, or memory that the caller brought: only the closed flag tells.
    None,
}

impl Link {
    /// Whether the other role is held by somebody alive. A slow-path question: one system call.
    pub(crate) fn peer_alive(&self, me: Role) -> bool {
        match self {
            Self::Named(link) => link.role_held_by_another(me.other().lock_byte()),
            Self::Socket(link) => link.peer_alive(),
            Self::None => true,
        }
    }

    /// Whether a named segment has lost its name, so that no successor can ever attach.
    pub(crate) fn name_vanished(&self) -> bool {
        match self {
            Self::Named(link) => link.name_vanished(),
            Self::Socket(_) | Self::None => false,
        }
    }

    /// Whether `Closed` and `PeerDead` are forever; on a named ring a successor may attach.
    pub(crate) fn endings_are_final(&self) -> bool {
        !matches!(self, Self::Named(_))
    }

    /// What asks the same questions apart from the handle: whether the peer of `me` lives, or only (`None`) whether the
    /// name is there. `None` if nothing but the closed flag tells.
    pub(crate) fn probe(&self, me: Option<Role>) -> Option<Probe> {
        match self {
            Self::Named(link) => {
                let byte = me.map(|me| me.other().lock_byte());
                Some(Probe { entry: link.entry().clone(), is_socket: false, has_name: link.has_name(), byte })
            }
            Self::Socket(link) => {
                Some(Probe { entry: link.entry.clone(), is_socket: true, has_name: false, byte: None })
            }
            Self::None => None,
        }
    }
}

/// See [`Link::probe`]. Keeps the descriptors open, not the locks held.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    entry: fork::Entry,
    is_socket: bool,
    /// A segment that was made with a name.
    has_name: bool,
    /// The peer's role, on a named ring.
    byte: Option<u64>,
}

impl Probe {
    /// Whether this asks a bus's socket.
    pub(crate) fn is_socket(&self) -> bool {
        self.is_socket
    }

    /// What to poll for the peer's hang-up.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        (self.is_socket && !self.entry.is_detached()).then(|| self.entry.fd(0))
    }

    /// A descriptor of the named segment, whose other descriptors' closes may be deaths.
    pub(crate) fn named(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_socket && !self.entry.is_detached()).then(|| self.entry.fd(0))
    }

    /// [`Link::peer_alive`].
    pub(crate) fn peer_alive(&self) -> bool {
        match (self.socket(), self.byte) {
            (Some(socket), _) => !hung_up(socket),
            (None, Some(byte)) => super::named::held_by_another(&self.entry, byte),
            (None, None) => true,
        }
    }

    /// [`Link::name_vanished`].
    pub(crate) fn name_vanished(&self) -> bool {
        self.has_name && super::named::has_no_name(&self.entry)
    }
}

/// The handshake's socket. Its last holder in this process closes it, which is the peer's notice.
#[derive(Debug)]
pub struct SocketLink {
    /// Descriptor 0 is the socket; a clone of the entry that the other half holds.
    pub(crate) entry: fork::Entry,
    /// The memfd stays open, so that `/proc/PID/fd` shows the bus to users who may inspect this process.
    pub(crate) _memory: Arc<OwnedFd>,
}

impl SocketLink {
    fn peer_alive(&self) -> bool {
        self.entry.is_detached() || !hung_up(self.entry.fd(0))
    }
}
