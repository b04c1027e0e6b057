//! Models of the protocol: `make loom` runs them, `docs/adr/0015-models.md` says what they stand on.
//!
//! The files of the crate `ramway` that the models are about are compiled here as they are. What stands around them there
//! is replaced: the atomics ([`sync`]), the operating system ([`sys`]), segments ([`segment`]) and the descriptors for event
//! loops ([`ready`]).
#![cfg(loom)]
#![allow(dead_code, reason = "the models use a part of what they compile")]
#![allow(missing_docs)]

#[path = "../../src/endpoint/mod.rs"]
mod endpoint;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/facts.rs"]
pub mod facts;
#[path = "../../src/layout.rs"]
pub mod layout;
#[path = "../../src/rpc/client/lead.rs"]
pub mod lead;
#[path = "../../src/rpc/server/news.rs"]
pub mod news;
#[path = "../../src/origin.rs"]
mod origin;
mod ready;
mod region;
pub mod ring;
mod run;
mod segment;
mod sync;
mod sys;
#[path = "../../src/tensor/mod.rs"]
pub mod tensor;
pub mod topic;
#[path = "../../src/wait.rs"]
mod wait;

pub use error::{Error, ErrorKind, Result};
pub use ready::{Poll, Readiness};
pub use region::Notifications;
pub use ring::{
    Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage, Receiver, SendBatch, Sender, Slot, TensorSlot,
    Waker,
};
pub use run::{Mortal, at_each_step, fails_without, fails_without_at_some_step, holds};
pub use segment::Ring;
pub use sync::Step;
pub use sys::{clock_runs, forbid_membarrier, interrupt_point, process, time_passes};
pub use wait::WaitPolicy;
