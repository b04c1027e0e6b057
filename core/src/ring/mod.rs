//! One producer, one consumer, framed messages, zero-copy on both sides.

#[cfg(not(loom))]
mod builder;
// For the C ABI and the bindings; not part of the stable API.
#[doc(hidden)]
pub mod consumer;
mod frame;
mod message;
mod peer;
#[doc(hidden)]
pub mod producer;
#[doc(hidden)]
pub mod raw;
mod receiver;
mod send_batch;
mod sender;
mod slot;
mod tensor;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod unnamed;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod window;

#[cfg(not(loom))]
pub use builder::{Ring, RingBuilder};
pub use message::{Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage};
pub use peer::Waker;
pub use receiver::Receiver;
pub use send_batch::SendBatch;
pub use sender::Sender;
pub use slot::Slot;
pub use tensor::TensorSlot;

use crate::layout::{ROLE_CLOSED, ROLE_MEMBARRIER_CAPABLE, RoleLine};
use crate::sync::{Ordering, Step, fence, keep};
use crate::wait;
use crate::{Error, ErrorKind};

/// Attaches: sets this role's words, under the role lock, and wakes the peer so that it checks. Returns the epoch.
fn announce(mine: &RoleLine, peer: &RoleLine, membarrier_capable: bool) -> u32 {
    // Relaxed: a left-over 1 of a dead holder would cost the peer a wake-up call; nothing is ordered by it.
    mine.wait.store(0, Ordering::Relaxed);
    // Release, in this order: who sees the new epoch sees the flags of the new holder, not a `closed` of the old one.
    mine.flags.store(if membarrier_capable { ROLE_MEMBARRIER_CAPABLE } else { 0 }, Ordering::Release);
    let epoch = mine.epoch.load(Ordering::Relaxed).wrapping_add(1).max(1);
    mine.epoch.store(epoch, Ordering::Release);
    // SeqCst: a peer that is about to sleep either sees this epoch in its second check or is woken below.
    fence(Ordering::SeqCst);
    if keep(Step::Announce) {
        wait::wake(peer);
    }
    epoch
}

/// Sets the closed flag, after everything was published, and wakes the peer.
fn announce_close(mine: &RoleLine, peer: &RoleLine) {
    // Release: the last publish goes before the flag. Relaxed load: this role is the only writer.
    mine.flags.store(mine.flags.load(Ordering::Relaxed) | ROLE_CLOSED, Ordering::Release);
    // SeqCst: as in `announce`.
    fence(Ordering::SeqCst);
    if keep(Step::Announce) {
        wait::wake(peer);
    }
}

fn corrupt() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "the ring's positions or a frame's length are not what any correct peer writes; this handle stays dead. \
         Recreate the ring, and see SECURITY.md if the peer is not trusted",
    )
}

/// The error for a kind that the hot path met.
#[cold]
fn fail(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::Corrupt => corrupt(),
        kind => kind.into(),
    }
}
