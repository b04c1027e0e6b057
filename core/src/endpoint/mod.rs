//! What one side of a ring stands on, whichever role it holds: its words and its peer's, how it attaches, waits, learns
//! of the peer's end, and closes. The positions, and the rules for them, are the side's own (`ring/`).

pub(crate) mod calls;
pub(crate) mod end;
pub(crate) mod state;
mod waker;
pub(crate) mod word;

pub use waker::Waker;

use crate::layout::{ROLE_CLOSED, ROLE_MEMBARRIER_CAPABLE, RingBlock, RoleLine};
use crate::ready::Readiness;
use crate::segment::{Attachment, Role};
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::sys::fork;
use crate::wait::{Deadline, WaitLimit, WaitPolicy, Waiting, Word};
use crate::{Error, ErrorKind, Result};
use std::cell::Cell;
use word::RoleWord;

/// One side of a ring but for its positions.
pub(crate) struct Endpoint {
    role: Role,
    word: RoleWord,
    pub(crate) waiting: Waiting,
    /// The descriptor for event loops, once it was asked for. It is the word's one waiter then.
    pub(crate) readiness: Option<Readiness>,
    /// How often this role was taken, this time included.
    epoch: u32,
    /// A receiver's: the sender's epoch whose close an earlier receiver has seen, or 0. That one is not delivered again.
    delivered: u32,
    /// The last epoch of the peer that was found closed or dead, or 0. A successor takes the role's lock first and raises
    /// the epoch after that: between the two it must not pass for the one that is gone.
    gone: Cell<u32>,
    /// Unregisters the side's state; so it goes before the box does that holds both.
    _watch: Option<fork::Watch>,
    /// Last: its locks tell the peer that everything above is done.
    pub(crate) attachment: Attachment,
}

/// A role's own line, and its peer's.
pub(crate) fn lines(block: &RingBlock, role: Role) -> (&RoleLine, &RoleLine) {
    match role {
        Role::Producer => (&block.producer, &block.consumer),
        Role::Consumer => (&block.consumer, &block.producer),
    }
}

impl Endpoint {
    /// Over an attachment whose role lock this process holds. Nothing is said to the peer before
    /// [`attach`](Self::attach).
    pub(crate) fn new(attachment: Attachment, role: Role, policy: WaitPolicy, membarrier_capable: bool) -> Self {
        // SAFETY: the attachment keeps the block mapped, and lives as long as the word.
        let word = unsafe {
            let (mine, peer) = lines(attachment.block.as_ref(), role);
            RoleWord::new(mine, peer, membarrier_capable)
        };
        Self {
            role,
            word,
            waiting: Waiting::new(policy),
            readiness: None,
            epoch: 0,
            delivered: 0,
            gone: Cell::new(0),
            _watch: None,
            attachment,
        }
    }

    /// Attaches: sets this role's words, under the role lock, and wakes the peer so that it checks.
    ///
    /// # Safety
    /// `state`, into which a fork's child has `Detached` stored, lives as long as this.
    pub(crate) unsafe fn attach(&mut self, state: *const AtomicU32, membarrier_capable: bool) {
        // SAFETY: passed on from the caller; the watch goes with this.
        self._watch = Some(unsafe { self.attachment.fork.watch(state) });
        let (mine, peer) = (self.word.mine(), self.word.peer());
        if self.role == Role::Consumer {
            // Relaxed: the role lock orders it after the earlier receiver's store.
            let seen = mine.close_seen.load(Ordering::Relaxed);
            self.delivered = end::closed_epoch(peer).filter(|&epoch| epoch == seen).unwrap_or(0);
        }
        // A left-over 1 of a dead holder would cost the peer a wake-up call.
        self.word.disarm();
        // Release, in this order: who sees the new epoch sees the flags of the new holder, not a `closed` of the old one.
        mine.flags.store(if membarrier_capable { ROLE_MEMBARRIER_CAPABLE } else { 0 }, Ordering::Release);
        self.epoch = mine.epoch.load(Ordering::Relaxed).wrapping_add(1).max(1);
        mine.epoch.store(self.epoch, Ordering::Release);
        self.announce();
    }

    /// Says that this side closes, after everything was published, and wakes the peer. The role stays until this goes.
    pub(crate) fn close(&mut self) {
        if self.readiness.is_some() {
            // Nobody waits by the word any more, also where the descriptor is armed.
            self.word.disarm();
        }
        let mine = self.word.mine();
        // Release: the last publish goes before the flag. Relaxed load: this role is the only writer.
        mine.flags.store(mine.flags.load(Ordering::Relaxed) | ROLE_CLOSED, Ordering::Release);
        self.announce();
    }

    fn announce(&self) {
        // SeqCst: a peer that is about to sleep either sees the new words in its second check or is woken below.
        fence(Ordering::SeqCst);
        if keep(Step::Announce) {
            word::wake(&self.word.peer().wait);
        }
    }

    /// Waits until `ready` says true; true then. Without a deadline it does not wait, and false is "not now": it has asked
    /// whether the peer has ended (the closed flag every time, a system call for its life every 100 ms) and armed the
    /// readiness descriptor, where there is one.
    pub(crate) fn wait(&mut self, deadline: Option<Deadline>, ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        let Self { word, waiting, readiness, role, delivered, gone, attachment, .. } = self;
        let ended = |ask_kernel| end::check(word.peer(), &attachment.link, *role, *delivered, gone, ask_kernel);
        match deadline {
            Some(deadline) => waiting.until(word, readiness.as_ref(), deadline, ready, ended).map(|()| true),
            None => waiting.once(word, readiness.as_ref(), ready, ended),
        }
    }

    /// The epoch of the living peer, or of one that attached during the call: it may have sent and gone again. With
    /// `WaitLimit::None` it arms the readiness descriptor, where there is one, and is `Empty` if nobody is there.
    pub(crate) fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        let Self { word, waiting, readiness, role, gone, attachment, .. } = self;
        let (peer, link) = (word.peer(), &attachment.link);
        // Acquire: pairs with the peer's attach.
        let epoch = || peer.epoch.load(Ordering::Acquire);
        let before = epoch();
        // A peer that closed or died stays so under this epoch: its successor holds the lock before it raises the epoch,
        // and the lock alone would pass for the life of the predecessor.
        let alive = before != gone.get() && end::is_alive(peer, link, *role, before);
        if !alive {
            gone.set(before);
        }
        let ready = || Ok(alive || epoch() != before);
        let ended = |_: bool| {
            if link.endings_are_final() {
                return end::check(peer, link, *role, 0, gone, true);
            }
            if link.name_vanished() { Err(end::name_vanished()) } else { Ok(()) }
        };
        let outcome = waiting.without_polling(|waiting| match wait_limit.deadline() {
            Some(deadline) => waiting.until(word, readiness.as_ref(), deadline, ready, ended),
            None if alive => Ok(()),
            None => match waiting.once(word, readiness.as_ref(), ready, ended)? {
                true => Ok(()),
                false => Err(ErrorKind::Empty.into()),
            },
        });
        if wait_limit != WaitLimit::None
            && outcome.is_err()
            && let Some(readiness) = readiness
        {
            // It was armed for the peer; messages or room, which it is for, were not checked.
            readiness.signal();
        }
        outcome.map(|()| epoch())
    }

    /// Whether somebody is attached as the peer and lives (one system call).
    pub(crate) fn is_peer_alive(&self) -> bool {
        !self.is_detached() && end::is_alive(self.word.peer(), &self.attachment.link, self.role, self.peer_epoch())
    }

    /// How often a peer has attached.
    pub(crate) fn peer_epoch(&self) -> u32 {
        // Acquire: pairs with the peer's attach.
        self.word.peer().epoch.load(Ordering::Acquire)
    }

    pub(crate) fn name(&self) -> Option<&std::ffi::OsStr> {
        self.attachment.origin.name()
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether the peer sleeps, or is about to.
    pub(crate) fn peer_waits(&self) -> bool {
        // Relaxed: a poll, which the caller repeats.
        self.word.peer().wait.load(Ordering::Relaxed) != 0
    }

    /// Whether this is a fork's child, where the ring is the parent's.
    pub(crate) fn is_detached(&self) -> bool {
        self.attachment.fork.is_detached()
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::new(&self.word, self.attachment.header.clone())
    }

    pub(crate) fn readiness(&mut self) -> Result<&Readiness> {
        if self.readiness.is_none() {
            let made = Readiness::for_role(&self.attachment, self.role, self.word.mine(), self.word.peer())?;
            self.readiness = Some(made);
        }
        Ok(self.readiness.as_ref().expect("made above"))
    }

    /// The error with the ring's name, where it is about the ring's state.
    #[cold]
    pub(crate) fn with_name(&self, e: Error) -> Error {
        e.of(&self.attachment.origin)
    }
}
