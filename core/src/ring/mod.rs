//! One producer, one consumer, framed messages, zero-copy on both sides.

mod builder;
// For the C ABI and the bindings; not part of the stable API.
#[doc(hidden)]
pub mod consumer;
mod frame;
pub(crate) mod half;
#[doc(hidden)]
pub mod log;
mod message;
pub(crate) mod options;
#[doc(hidden)]
pub mod producer;
#[doc(hidden)]
pub mod raw;
mod receiver;
mod send_batch;
mod sender;
mod sent;
mod slot;
mod tensor;
#[cfg(test)]
mod tests;
mod unnamed;
#[doc(hidden)]
pub mod window;

pub use crate::endpoint::Waker;
pub use builder::RingBuilder;
pub use log::Ring;
pub use message::{Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage};
pub use receiver::Receiver;
pub use send_batch::SendBatch;
pub use sender::Sender;
pub use slot::Slot;
pub use tensor::TensorSlot;

use crate::endpoint::state::fail;
