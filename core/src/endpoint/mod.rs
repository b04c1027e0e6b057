//! What one side of a ring or a topic stands on, whichever side it is: its words and the other side's, how it attaches,
//! waits, learns of the other side's end, and closes. The positions, and the rules for them, are the side's own (`ring/`,
//! `topic/`).

pub(crate) mod calls;
pub mod end;
pub mod side;
pub(crate) mod state;
pub(crate) mod waker;
pub mod word;

pub use waker::Waker;

use crate::layout::{RingBlock, RoleLine};
use crate::ready::Readiness;
use crate::ring::log::Shape;
use crate::segment::{Attachment, Role};
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::sys::fork;
use crate::wait::{Deadline, WaitLimit, WaitPolicy, Waiting, take_interrupt};
use crate::{Error, ErrorKind, Result};
use side::{FacesOne, Side};

/// One side of a log `L` but for its positions; `W` are its words.
pub(crate) struct Endpoint<L: Shape, W> {
    pub(crate) word: W,
    pub(crate) waiting: Waiting,
    /// The descriptor for event loops, once it was asked for. It is the word's one waiter of this handle then.
    pub(crate) readiness: Option<Readiness>,
    /// How often this side was taken, this time included.
    epoch: u32,
    /// The number of this handle among those of the process, once it was asked for: see `select/`.
    pub(crate) handle: Option<std::num::NonZeroU64>,
    /// Unregisters the side's state; so it goes before the box does that holds both.
    _watch: Option<fork::Watch>,
    /// Last: its locks tell the other side that everything above is done.
    pub(crate) attachment: Attachment<L>,
}

/// A role's own line in a ring, and its peer's.
pub(crate) fn lines(block: &RingBlock, role: Role) -> (&RoleLine, &RoleLine) {
    match role {
        Role::Producer => (&block.producer, &block.consumer),
        Role::Consumer => (&block.consumer, &block.producer),
    }
}

impl<L: Shape, W: Side> Endpoint<L, W> {
    /// Over an attachment whose lock this process holds, and whose words `word` are. Nothing is said to the other side
    /// before [`attach`](Self::attach).
    pub(crate) fn new(attachment: Attachment<L>, word: W, policy: WaitPolicy) -> Self {
        Self { word, waiting: Waiting::new(policy), readiness: None, epoch: 0, handle: None, _watch: None, attachment }
    }

    /// Attaches: sets this side's words, under its lock, and wakes the other side so that it checks.
    ///
    /// # Safety
    /// `state`, into which a fork's child has `Detached` stored, lives as long as this.
    pub(crate) unsafe fn attach(&mut self, state: *const AtomicU32) {
        // SAFETY: passed on from the caller; the watch goes with this.
        self._watch = Some(unsafe { self.attachment.fork.watch(state) });
        self.epoch = self.word.attach();
        self.announce();
    }

    /// Says that this side closes, after everything was published, and wakes the other one. The lock stays until this
    /// goes.
    pub(crate) fn close(&mut self) {
        if self.readiness.is_some() {
            // This handle no longer waits by the word, also where the descriptor is armed.
            self.word.disarm();
        }
        self.word.close();
        self.announce();
    }

    fn announce(&self) {
        // SeqCst: a peer that is about to sleep either sees the new words in its second check or is woken below.
        fence(Ordering::SeqCst);
        if keep(Step::Announce) {
            self.word.wake_other();
        }
    }

    /// Waits until `ready` says true; true then. Without a deadline it does not wait, and false is "not now": it has asked
    /// whether the other side has ended (the closed flag every time, a system call for its life every 100 ms) and armed the
    /// readiness descriptor, where there is one.
    pub(crate) fn wait(&mut self, deadline: Option<Deadline>, ready: impl FnMut() -> Result<bool>) -> Result<bool> {
        let Self { word, waiting, readiness, attachment, .. } = self;
        let word = &*word;
        let ended = |ask_kernel| word.check_end(&attachment.link, ask_kernel);
        match deadline {
            Some(deadline) => waiting.until(word, readiness.as_ref(), deadline, ready, ended).map(|()| true),
            None => waiting.once(word, readiness.as_ref(), ready, ended),
        }
    }

    /// Waits for somebody to come, who `is_there` says has. With `WaitLimit::None` it arms the readiness descriptor, where
    /// there is one, and is `Empty` if nobody is there.
    pub(crate) fn wait_for_other(
        &mut self,
        wait_limit: WaitLimit,
        is_there: impl Fn(&W) -> bool,
        ended: impl Fn(&W, &Attachment<L>) -> Result<()>,
    ) -> Result<()> {
        let Self { word, waiting, readiness, attachment, .. } = self;
        let word = &*word;
        let there = is_there(word);
        let ready = || Ok(there || is_there(word));
        let ended = |_: bool| ended(word, attachment);
        let outcome = waiting.without_polling(|waiting| match wait_limit.deadline() {
            Some(deadline) => waiting.until(word, readiness.as_ref(), deadline, ready, ended),
            None if there => Ok(()),
            None => match waiting.once(word, readiness.as_ref(), ready, ended)? {
                true => Ok(()),
                false => Err(ErrorKind::Empty.into()),
            },
        });
        if wait_limit != WaitLimit::None
            && outcome.is_err()
            && let Some(readiness) = readiness
        {
            // It was armed for the other side; messages or room, which it is for, were not checked.
            readiness.signal();
        }
        outcome
    }

    /// Whether another thread wants this wait to end, for a call that does not come to sleep. Takes the request.
    pub(crate) fn is_interrupted(&self) -> bool {
        take_interrupt(&self.word)
    }

    /// Whether somebody is attached as the other side and lives (one system call).
    pub(crate) fn is_peer_alive(&self) -> bool {
        !self.is_detached() && self.word.is_other_alive(&self.attachment.link)
    }

    /// How often somebody has attached as the other side.
    pub(crate) fn peer_epoch(&self) -> u32 {
        self.word.other_epoch()
    }

    pub(crate) fn name(&self) -> Option<&std::ffi::OsStr> {
        self.attachment.origin.name()
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether the other side sleeps, or is about to.
    pub(crate) fn peer_waits(&self) -> bool {
        self.word.other_waits()
    }

    /// Whether this is a fork's child, where the segment is the parent's.
    pub(crate) fn is_detached(&self) -> bool {
        self.attachment.fork.is_detached()
    }

    pub(crate) fn waker(&self) -> Waker {
        self.word.waker(self.attachment.header.clone())
    }

    pub(crate) fn readiness(&mut self) -> Result<&Readiness> {
        if self.readiness.is_none() {
            self.readiness = Some(self.word.readiness(&self.attachment.link, self.attachment.header.clone())?);
        }
        Ok(self.readiness.as_ref().expect("made above"))
    }

    /// The error with the segment's name, where it is about the segment's state.
    #[cold]
    pub(crate) fn with_name(&self, e: Error) -> Error {
        e.of(&self.attachment.origin)
    }
}

impl<L: Shape, W: FacesOne> Endpoint<L, W> {
    /// The epoch of the living peer, or of one that attached during the call: it may have sent and gone again. With
    /// `WaitLimit::None` it arms the readiness descriptor, where there is one, and is `Empty` if nobody is there.
    pub(crate) fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        let (before, alive) = self.word.peer().expect(&self.attachment.link);
        self.wait_for_other(
            wait_limit,
            |word| alive || word.peer().epoch() != before,
            |word, attachment| word.peer().check_expected(&attachment.link),
        )?;
        Ok(self.word.peer().epoch())
    }
}
