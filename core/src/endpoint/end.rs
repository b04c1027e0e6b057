//! The end of a stream: when a peer counts as closed or dead (docs/ABI.md, section 8).
//!
//! This is the only place that decides it. Sender and receiver ask while they wait and at each `try_` call that finds
//! nothing, `wait_for_peer` asks on a bus, and the checker of readiness descriptors asks for handles that do not.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::layout::{ROLE_CLOSED, RoleLine};
use crate::segment::{Link, Role};
use crate::sync::{AtomicU32, Ordering, Step, keep};
use crate::{Error, ErrorKind, Result};

/// What is known of a peer without a system call.
pub(crate) struct Peer<'a> {
    pub(crate) epoch: &'a AtomicU32,
    pub(crate) flags: &'a AtomicU32,
    /// No successor can come: the peer was there when this end was made, also while its epoch is 0.
    pub(crate) is_final: bool,
    /// On a named ring, the epoch whose close was delivered to an earlier holder of this role, or 0. It ends nothing again.
    pub(crate) delivered: u32,
}

/// How a peer ended. The epoch is over: if the peer that ended is a successor of that epoch, the epoch's own peer has
/// ended as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed(u32),
    Dead(u32),
    /// The segment has lost its name, so no successor can attach.
    NameGone,
}

impl Peer<'_> {
    /// Whether the peer has ended. The kernel is asked only if `ask_kernel`: `name_gone` whether the segment has lost its
    /// name, `alive` whether somebody holds the peer's role.
    ///
    /// What was committed before the end is visible to a caller that checks after this has returned.
    pub(crate) fn end(
        &self,
        ask_kernel: bool,
        name_gone: impl FnOnce() -> bool,
        alive: impl Fn() -> bool,
    ) -> Option<End> {
        let epoch = self.load_epoch();
        if self.closed(epoch) {
            return Some(End::Closed(epoch));
        }
        if !ask_kernel {
            return None;
        }
        if name_gone() {
            return Some(End::NameGone);
        }
        if !self.came(epoch) || alive() {
            return None;
        }
        // A close comes before the lock or the socket goes: so check for it once more after that was seen gone. The epoch
        // too: the peer may have attached after the first load.
        let epoch = if keep(Step::EpochAfterDeath) { self.load_epoch() } else { epoch };
        if keep(Step::CloseBeforeDeath) && self.closed(epoch) {
            return Some(End::Closed(epoch));
        }
        // And a successor takes the lock before it clears the flag of that close.
        if keep(Step::SuccessorBeforeDeath) && alive() { None } else { Some(End::Dead(epoch)) }
    }

    fn load_epoch(&self) -> u32 {
        // Acquire: pairs with the Release of the peer's attach. Before the flags: those of the epoch's holder or of a later one.
        self.epoch.load(Ordering::Acquire)
    }

    fn closed(&self, epoch: u32) -> bool {
        // Acquire: pairs with the Release of the peer's close; what it published before is visible.
        epoch != 0 && self.came(epoch) && self.flags.load(Ordering::Acquire) & ROLE_CLOSED != 0
    }

    /// Whether there is a peer that can end. On a named ring nobody has to have come yet.
    fn came(&self, epoch: u32) -> bool {
        self.is_final || (epoch != 0 && epoch != self.delivered)
    }
}

/// The one peer of a side: its words, and what this side knows of its ends.
#[derive(Debug)]
pub struct OnePeer {
    line: NonNull<RoleLine>,
    /// The role of the side whose peer this is.
    me: Role,
    /// The epoch of the peer whose close an earlier holder of this side's role has seen, or 0. It is not delivered again.
    delivered: u32,
    /// The last epoch of the peer that was found closed or dead, or 0. A successor takes the role's lock first and raises
    /// the epoch after that: between the two it must not pass for the one that is gone.
    gone: Cell<u32>,
}

impl OnePeer {
    /// # Safety
    /// The line stays valid as long as this.
    pub(crate) unsafe fn new(line: &RoleLine, me: Role) -> Self {
        Self { line: line.into(), me, delivered: 0, gone: Cell::new(0) }
    }

    pub(crate) fn line(&self) -> &RoleLine {
        // SAFETY: valid as long as `self`, by the contract of `new`.
        unsafe { self.line.as_ref() }
    }

    /// `seen` is the epoch whose close an earlier holder of this side's role has seen.
    pub(crate) fn forget_close(&mut self, seen: u32) {
        self.delivered = closed_epoch(self.line()).filter(|&epoch| epoch == seen).unwrap_or(0);
    }

    /// How often a peer has attached.
    pub(crate) fn epoch(&self) -> u32 {
        // Acquire: pairs with the peer's attach.
        self.line().epoch.load(Ordering::Acquire)
    }

    /// [`Peer::end`] as an error.
    fn check_with(&self, link: &Link, delivered: u32, ask_kernel: bool) -> Result<()> {
        let RoleLine { epoch, flags, .. } = self.line();
        let peer = Peer { epoch, flags, is_final: link.endings_are_final(), delivered };
        let (kind, epoch) = match peer.end(ask_kernel, || link.name_vanished(), || link.peer_alive(self.me)) {
            None => return Ok(()),
            Some(End::NameGone) => return Err(name_vanished()),
            Some(End::Closed(epoch)) => (ErrorKind::Closed, epoch),
            Some(End::Dead(epoch)) => (ErrorKind::PeerDead, epoch),
        };
        self.gone.set(epoch);
        Err(kind.into())
    }

    /// How the peer has ended, as an error.
    pub(crate) fn check(&self, link: &Link, ask_kernel: bool) -> Result<()> {
        self.check_with(link, self.delivered, ask_kernel)
    }

    /// Whether a peer is attached, has not closed, and lives (one system call).
    pub(crate) fn is_alive(&self, link: &Link) -> bool {
        self.lives(link, self.epoch())
    }

    fn lives(&self, link: &Link, epoch: u32) -> bool {
        // Acquire: pairs with attach and close.
        epoch != 0 && self.line().flags.load(Ordering::Acquire) & ROLE_CLOSED == 0 && link.peer_alive(self.me)
    }

    /// Begins a wait for a peer: its epoch now, and whether it is there. A peer that closed or died stays so under its
    /// epoch: its successor holds the lock before it raises the epoch, and the lock alone would pass for the life of the
    /// predecessor.
    pub(crate) fn expect(&self, link: &Link) -> (u32, bool) {
        let before = self.epoch();
        let alive = before != self.gone.get() && self.lives(link, before);
        if !alive {
            self.gone.set(before);
        }
        (before, alive)
    }

    /// What ends a wait for a peer: an end that is final, or a name that is gone.
    pub(crate) fn check_expected(&self, link: &Link) -> Result<()> {
        if link.endings_are_final() {
            return self.check_with(link, 0, true);
        }
        if link.name_vanished() { Err(name_vanished()) } else { Ok(()) }
    }
}

/// The epoch of a peer that has closed in an orderly way, or `None`.
pub(crate) fn closed_epoch(peer: &RoleLine) -> Option<u32> {
    // Acquire, all three: the epoch is the closer's only if it is the same before and after its flag was seen.
    let epoch = peer.epoch.load(Ordering::Acquire);
    let closed = peer.flags.load(Ordering::Acquire) & ROLE_CLOSED != 0;
    (closed && peer.epoch.load(Ordering::Acquire) == epoch).then_some(epoch)
}

pub(crate) fn name_vanished() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the segment's name was removed while it was in use (rm, or systemd's RemoveIPC): no peer can find it any \
         more. Create it again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: u32 = 0;

    fn end_of(is_final: bool, delivered: u32, epoch: u32, flags: u32, name_gone: bool, alive: bool) -> Option<End> {
        let (epoch, flags) = (AtomicU32::new(epoch), AtomicU32::new(flags));
        let peer = Peer { epoch: &epoch, flags: &flags, is_final, delivered };
        let end = peer.end(true, || name_gone, || alive);
        let without_kernel = peer.end(false, || unreachable!(), || unreachable!());
        assert_eq!(without_kernel, end.filter(|end| matches!(end, End::Closed(_))));
        end
    }

    #[test]
    fn on_a_named_ring_a_peer_that_never_came_has_not_ended() {
        assert_eq!(end_of(false, 0, 0, OPEN, false, false), None);
        assert_eq!(end_of(false, 0, 0, ROLE_CLOSED, false, false), None);
        assert_eq!(end_of(false, 0, 0, OPEN, true, false), Some(End::NameGone));
    }

    #[test]
    fn on_a_bus_a_peer_that_hangs_up_before_it_attaches_is_dead() {
        assert_eq!(end_of(true, 0, 0, OPEN, false, false), Some(End::Dead(0)));
        assert_eq!(end_of(true, 0, 0, OPEN, false, true), None);
    }

    #[test]
    fn a_close_that_was_delivered_ends_nothing_again() {
        assert_eq!(end_of(false, 4, 4, ROLE_CLOSED, false, false), None);
        assert_eq!(end_of(false, 3, 4, ROLE_CLOSED, false, false), Some(End::Closed(4)));
        assert_eq!(end_of(false, 3, 4, OPEN, false, false), Some(End::Dead(4)));
        assert_eq!(end_of(false, 3, 4, OPEN, false, true), None);
    }

    #[test]
    fn a_close_is_an_end_also_where_the_name_is_gone_or_the_lock_is_held() {
        assert_eq!(end_of(false, 0, 1, ROLE_CLOSED, true, false), Some(End::Closed(1)));
        assert_eq!(end_of(false, 0, 1, ROLE_CLOSED, false, true), Some(End::Closed(1)));
        assert_eq!(end_of(false, 0, 1, OPEN, true, true), Some(End::NameGone));
    }

    #[test]
    fn a_peer_that_attaches_and_closes_while_the_kernel_is_asked_has_closed() {
        let (epoch, flags) = (AtomicU32::new(0), AtomicU32::new(OPEN));
        let peer = Peer { epoch: &epoch, flags: &flags, is_final: true, delivered: 0 };
        let attach_and_close = || {
            epoch.store(1, Ordering::Relaxed);
            flags.store(ROLE_CLOSED, Ordering::Relaxed);
            false
        };
        assert_eq!(peer.end(true, || false, attach_and_close), Some(End::Closed(1)));
    }
}
