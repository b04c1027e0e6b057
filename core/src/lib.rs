//! Shared memory between the processes of one machine.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(loom, allow(dead_code))] // a model needs a part of it

#[cfg(not(loom))]
mod bus;
mod error;
pub mod layout;
mod ready;
#[cfg(not(loom))]
mod region;
pub mod ring;
#[cfg(not(loom))]
mod segment;
#[cfg(loom)]
#[path = "sys/model/segment.rs"]
mod segment;
mod sync;
mod sys;
#[cfg(all(feature = "tokio", not(loom)))]
pub mod tokio;
mod wait;

#[cfg(not(loom))]
pub use bus::{Bus, Connector, Listener, ListenerBuilder};
pub use error::{Error, ErrorKind, Result};
pub use ready::Readiness;
#[cfg(not(loom))]
pub use region::{Region, RegionBuilder};
pub use ring::{Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage, Receiver, Sender, Slot};
#[cfg(not(loom))]
pub use ring::{Ring, RingBuilder};
#[cfg(not(loom))]
pub use segment::survey;
pub use wait::WaitPolicy;

/// For the models in `tests/loom`: the ring over a model of the operating system.
#[cfg(loom)]
pub mod model {
    pub use crate::segment::Ring;
    pub use crate::sync::Step;
    pub use crate::sys::model::{
        Notifications, Poll, clock_runs, fails_without, forbid_membarrier, holds, interrupt_point, process, time_passes,
    };
}
