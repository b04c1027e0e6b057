//! The files of `ring/` that are modelled: all but how a ring is opened, and what bindings build on.

#[path = "../../src/ring/consumer.rs"]
pub mod consumer;
#[path = "../../src/ring/frame.rs"]
mod frame;
#[path = "../../src/ring/half.rs"]
pub(crate) mod half;
#[path = "../../src/ring/log.rs"]
pub mod log;
#[path = "../../src/ring/message.rs"]
mod message;
#[path = "../../src/ring/producer.rs"]
pub mod producer;
#[path = "../../src/ring/receiver.rs"]
mod receiver;
#[path = "../../src/ring/send_batch.rs"]
mod send_batch;
#[path = "../../src/ring/sender.rs"]
mod sender;
#[path = "../../src/ring/sent.rs"]
mod sent;
#[path = "../../src/ring/slot.rs"]
mod slot;
#[path = "../../src/ring/tensor.rs"]
mod tensor;

pub use crate::endpoint::Waker;
use crate::endpoint::state::fail;
pub use message::{Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage};
pub use receiver::Receiver;
pub use send_batch::SendBatch;
pub use sender::Sender;
pub use slot::Slot;
pub use tensor::TensorSlot;
