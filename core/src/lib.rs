//! Shared memory between the processes of one machine.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bus;
mod error;
pub mod layout;
mod region;
pub mod ring;
mod segment;
mod sync;
mod sys;
mod wait;

pub use bus::{Bus, Connector, Listener, ListenerBuilder};
pub use error::{Error, ErrorKind, Result};
pub use region::{Region, RegionBuilder};
pub use ring::{
    Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage, Receiver, Ring, RingBuilder, Sender, Slot,
};
pub use wait::WaitPolicy;
