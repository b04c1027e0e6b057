//! What the hot path asks of an endpoint: whether the handle is dead, and what its peer last said of itself.

use super::word::{AWAKE, wake_if_waiting};
use crate::layout::{ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RoleLine};
use crate::ring::log::Shape;
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::{Error, ErrorKind};

/// Wake-ups in a row after which the peer sleeps often: from then on this side fences, and the peer needs no membarrier. A fence is
/// some 10 ns, a membarrier microseconds (docs/adr/0031). Models come to few; there the first one changes nothing, because the second
/// check that goes with a change would hide what the other steps are for.
const OFTEN: u16 = if cfg!(loom) { 2 } else { 8 };

/// Fences in a row that woke nobody, after which the peer no longer sleeps often.
const FEW: u16 = if cfg!(loom) { 2 } else { 16 };

/// [`State::fences`] where the peer cannot membarrier, or this side cannot rely on it. When it has been counted down it is decided
/// anew, with the same outcome.
const FOR_GOOD: u16 = u16::MAX;

/// The part of an endpoint that lies among the positions of a side. `repr(C)`, because `ramway_inline.h` reads it too.
#[repr(C)]
#[derive(Debug)]
pub struct State {
    /// 0, or the code of the [`ErrorKind`] that this handle is dead of. Atomic because a fork's child handler stores
    /// `Detached` into it, on the only thread that the child has.
    pub state: AtomicU32,
    /// The peer's flags as last acted upon; a difference is looked into on the slow path.
    pub peer_flags: u32,
    /// 0: change a position without a fence (this process is registered with membarrier, and the peer uses it). Else: fence, and
    /// count down; at 0 the slow half decides anew.
    pub fences: u16,
    /// Wake-ups of the peer in a row, up to [`OFTEN`]. They are in a row until [`FEW`] fences wake nobody.
    woken: u16,
}

/// What never changes about an endpoint. As numbers of 32 bits, for `repr(C)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// 1: the peer's orderly close ends this handle (a bus, a pair); 0: a successor may come (a named ring).
    pub endings_are_final: u32,
    /// 1: this process is registered with membarrier.
    pub membarrier_capable: u32,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(0), peer_flags: 0, fences: FOR_GOOD, woken: 0 }
    }

    /// The error that the handle is dead of, if any.
    #[inline(always)]
    pub fn check(&self) -> Result<(), ErrorKind> {
        // Relaxed: stored by this thread only (see `state`).
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(dead(code)),
        }
    }

    /// Marks the handle dead of `kind`, unless it is dead already, and gives what it is dead of.
    #[cold]
    pub(crate) fn die(&self, kind: ErrorKind) -> ErrorKind {
        // Relaxed: see `state`.
        match self.state.load(Ordering::Relaxed) {
            0 => {
                self.state.store(kind.code() as u32, Ordering::Relaxed);
                kind
            }
            code => dead(code),
        }
    }

    /// Acts on the peer's flags, and gives them: see [`decide_fence`](Self::decide_fence). `mine` is this side's flags.
    pub(crate) fn follow_flags(&mut self, mine: &AtomicU32, peer: &RoleLine, rules: Rules) -> u32 {
        // Acquire: pairs with the attach or close that wrote them.
        self.peer_flags = peer.flags.load(Ordering::Acquire);
        self.decide_fence(mine, self.peer_flags & ROLE_MEMBARRIER_CAPABLE != 0, rules);
        self.peer_flags
    }

    /// Counts a fence after a change of the position. True: the slow half is to decide anew.
    #[inline(always)]
    pub(crate) fn count_down(&mut self) -> bool {
        self.fences -= 1;
        self.fences == 0
    }

    /// Counts in the slow half of a wake-up, before it is decided: whether somebody waits, who is then woken.
    pub(crate) fn count(&mut self, waits: bool) {
        if waits {
            self.woken = (self.woken + 1).min(OFTEN);
            if (1..=FEW).contains(&self.fences) {
                self.fences = FEW;
            }
        } else if self.woken == OFTEN && self.fences == 0 {
            // Counted down.
            self.woken = 0;
        }
    }

    /// Whether what this side says in its flags, `mine`, is no longer what it does.
    pub(crate) fn is_to_decide(&self, mine: &AtomicU32) -> bool {
        // Relaxed: only this side writes its flags. Where they say that it fences, 0 is counted down.
        self.fences == 0 && (self.woken == OFTEN || mine.load(Ordering::Relaxed) & ROLE_FENCE_FREE == 0)
    }

    /// Decides whether this side, as a waker, leaves its fence out: if it is registered, and whoever it wakes can membarrier and
    /// does not sleep often. It says so in its own flags, `mine`, and fences after saying so.
    pub(crate) fn decide_fence(&mut self, mine: &AtomicU32, sleepers_can_membarrier: bool, rules: Rules) {
        let may = rules.membarrier_capable != 0 && sleepers_can_membarrier;
        let fence_free = may && self.woken < OFTEN;
        self.fences = match (may, fence_free) {
            (false, _) => FOR_GOOD,
            (_, true) => 0,
            _ if self.fences == 0 => FEW,
            // What is left of them, where they are being counted.
            _ => self.fences.min(FEW),
        };
        // Relaxed load: this role is the only writer of its flags.
        let before = mine.load(Ordering::Relaxed);
        let after = if fence_free { before | ROLE_FENCE_FREE } else { before & !ROLE_FENCE_FREE };
        if after != before {
            // Release: a sleeper that no longer sees the bit, and makes no membarrier, sees what was published without a fence before.
            mine.store(after, Ordering::Release);
            if keep(Step::FenceFreeFence) {
                // SeqCst: the flag ROLE_FENCE_FREE is visible before the first publish without a fence: a sleeper that does not see
                // it is seen by that publish.
                fence(Ordering::SeqCst);
            }
        }
    }
}

#[cold]
fn dead(code: u32) -> ErrorKind {
    ErrorKind::from_code(code as i32).unwrap_or(ErrorKind::Detached)
}

/// The error for a kind that the hot path of a side of this log met.
#[cold]
pub(crate) fn fail<L: Shape>(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::Corrupt => {
            let text = format!(
                "the {0}'s positions or a frame's length are not what any correct peer writes; this handle stays dead. \
                 Recreate the {0}, and see SECURITY.md if the peer is not trusted",
                L::NAME
            );
            Error::new(kind, text)
        }
        kind => kind.into(),
    }
}

/// Whether the peer waits by this word: for [`State::count`].
pub(crate) fn is_waiting(wait: &AtomicU32) -> bool {
    // Relaxed: ordered after the publish by the caller.
    wait.load(Ordering::Relaxed) != AWAKE
}

/// The slow half of a wake-up of a peer that sleeps on `wait`, after its flags were acted upon.
#[cold]
pub(crate) fn wake_after_change(wait: &AtomicU32) {
    if keep(Step::FenceAfterChange) {
        // SeqCst: whatever was agreed on just now, this time the position goes before the load of `wait`.
        fence(Ordering::SeqCst);
    }
    wake_if_waiting(wait);
}
