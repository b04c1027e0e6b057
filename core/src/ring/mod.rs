//! One producer, one consumer, framed messages, zero-copy on both sides.

#[cfg(not(loom))]
mod builder;
// For the C ABI and the bindings; not part of the stable API.
#[doc(hidden)]
pub mod consumer;
mod frame;
mod half;
mod message;
#[cfg(not(loom))]
pub(crate) mod options;
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

pub use crate::endpoint::Waker;
#[cfg(not(loom))]
pub use builder::{Ring, RingBuilder};
pub use message::{Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage};
pub use receiver::Receiver;
pub use send_batch::SendBatch;
pub use sender::Sender;
pub use slot::Slot;
pub use tensor::TensorSlot;

use crate::{Error, ErrorKind};

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
