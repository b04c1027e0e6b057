//! What the hot path asks of an endpoint: whether the handle is dead, and what its peer last said of itself.

use super::word::wake_if_waiting;
use crate::layout::{ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RoleLine};
use crate::ring::log::Shape;
use crate::sync::{AtomicU32, Ordering, Step, fence, keep};
use crate::{Error, ErrorKind};

/// The part of an endpoint that lies among the positions of a side. `repr(C)`, because `ramway_inline.h` reads it too.
#[repr(C)]
#[derive(Debug)]
pub struct State {
    /// 0, or the code of the [`ErrorKind`] that this handle is dead of. Atomic because a fork's child handler stores
    /// `Detached` into it, on the only thread that the child has.
    pub state: AtomicU32,
    /// The peer's flags as last acted upon; a difference is looked into on the slow path.
    pub peer_flags: u32,
    /// 1: change a position without a fence (this process is registered with membarrier, and the peer can use it).
    pub fence_free: u32,
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
        Self { state: AtomicU32::new(0), peer_flags: 0, fence_free: 0 }
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

    /// Decides whether this side, as a waker, may leave its fence out: if it is registered, and whoever it wakes can
    /// membarrier. It says so in its own flags, `mine`, and fences after saying so.
    pub(crate) fn decide_fence(&mut self, mine: &AtomicU32, sleepers_can_membarrier: bool, rules: Rules) {
        let fence_free = rules.membarrier_capable != 0 && sleepers_can_membarrier;
        self.fence_free = fence_free.into();
        // Relaxed loads and stores: this role is the only writer of its flags.
        let before = mine.load(Ordering::Relaxed);
        let after = if fence_free { before | ROLE_FENCE_FREE } else { before & !ROLE_FENCE_FREE };
        if after != before {
            mine.store(after, Ordering::Relaxed);
            if keep(Step::FenceFreeFence) {
                // SeqCst: the flag ROLE_FENCE_FREE is visible before the first publish without a fence; and on the way back, a
                // sleeper that no longer sees the bit can rely on fences from here on.
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

/// The slow half of a wake-up of a peer that sleeps on `wait`, after its flags were acted upon.
#[cold]
pub(crate) fn wake_after_change(wait: &AtomicU32) {
    // SeqCst: whatever was agreed on just now, this time the position goes before the load of `wait`.
    fence(Ordering::SeqCst);
    wake_if_waiting(wait);
}
