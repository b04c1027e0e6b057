//! Shared memory between the processes of one machine: no broker, no daemon, and no copy that nobody asked for.
//!
//! | | |
//! | --- | --- |
//! | [`Ring`] | messages one way, from one [`Sender`] to one [`Receiver`]; named, so that it survives its processes, or between two threads |
//! | [`Bus`] | two rings and a socket: a connection that a [`Listener`] accepts, safe against a hostile peer |
//! | [`Region`] | named bytes of a layout of your own, with `notify` and `wait` |
//! | [`rpc`] | calls: a [`Client`](rpc::Client) and a [`Server`](rpc::Server) over a bus, with time limits, cancelling and streams |
//!
//! ```
//! use ramway::{ErrorKind, Ring};
//!
//! # fn main() -> ramway::Result<()> {
//! # let name = format!("/dev/shm/ramway-doc-crate-{}", std::process::id());
//! // Two processes, whichever starts first. `name` is a plain name ("video") or a path.
//! let mut sender = Ring::open_or_create(&name).capacity(1 << 20).sender()?;
//! let mut receiver = Ring::open_or_create(&name).receiver()?;
//!
//! sender.send(1, b"copied in")?;
//! let mut slot = sender.reserve(8)?.with_type_id(2).with_tag(7);
//! slot[..7].copy_from_slice(b"written");
//! slot.commit(7)?;
//! sender.close()?;
//!
//! assert_eq!(&*receiver.recv()?, b"copied in");
//! assert_eq!(&*receiver.recv()?, b"written"); // a view of the shared memory, given back when dropped
//! assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::Closed);
//! # Ok(()) }
//! ```
//!
//! A message can be a [tensor]: [`Sender::send_tensor`] and [`Message::tensor`] carry elements with their type and shape,
//! as every other language writes and reads them.
//!
//! # What holds everywhere
//!
//! - Whatever a sender has committed is received, also if its process is killed right after. What a receiver had not
//!   released when it was killed, its successor receives again.
//! - A call named `try_…` never waits, one named `…_timeout` waits for at most that long, measured on a monotonic clock
//!   from the call, and any other waits as long as it takes. [`WaitPolicy`] says how. A peer that dies ends the wait
//!   within 200 ms of the kernel releasing it; a stopped or slow one is alive.
//! - Handles may move between threads. A [`Sender`] or [`Receiver`] is used by one at a time, a [`Region`] or
//!   [`Listener`] may be shared.
//! - In a child made by `fork` every call on an inherited handle is [`ErrorKind::Detached`], and dropping it changes
//!   nothing for the parent.
//! - Every fallible call gives an [`Error`] whose [`kind`](Error::kind) has the same name and number in every language.
//!
//! # Environment
//!
//! | | |
//! | --- | --- |
//! | `RAMWAY_DIR` | where plain names stand; by default `/dev/shm/ramway-<euid>`, on macOS `/tmp/ramway-<euid>` |
//! | `RAMWAY_MEMBARRIER=0` | this process does not register with `membarrier`; both sides then fence at every message |
//! | `RAMWAY_READINESS` | `uring` or `thread`: how a [`Readiness`] descriptor is made |
//!
//! # Features
//!
//! `tokio` adds the modules `ramway::tokio`, senders, receivers and regions for tasks, and `ramway::rpc::tokio`, a client of RPC.
//! `tower` makes that client a `tower::Service`.
//!
//! Linux on 64-bit little-endian machines; the macOS backend compiles, and only the project's test workflow runs it. What is shared is a
//! format, described to the byte in `docs/ABI.md`; [`layout`] has it as Rust types.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bus;
mod endpoint;
mod error;
#[doc(hidden)]
pub mod facts;
pub mod layout;
mod many;
mod origin;
mod ready;
mod region;
pub mod ring;
pub mod rpc;
#[cfg(test)]
mod runner;
mod segment;
mod select;
mod sync;
mod sys;
pub mod tensor;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod topic;
mod wait;

/// Buffers for input and output, for the threads of one process: the crate `ramway-pool`, which uses nothing of this one.
pub use ramway_pool as pool;

#[doc(hidden)]
pub use bus::Place;
pub use bus::{Bus, Connector, Listener, ListenerBuilder};
pub use error::{Error, ErrorKind, Result};
pub use many::{Inbox, InboxBuilder, Incoming, Left, Outbox, OutboxBuilder, Peer, Undelivered};
pub use ready::Readiness;
#[doc(hidden)]
pub use ready::cooperate;
pub use region::{Region, RegionBuilder};
pub use ring::{
    Batch, BatchIter, Iter, Message, MessageView, Meta, OwnedMessage, Receiver, SendBatch, Sender, Slot, TensorSlot,
    Waker,
};
pub use ring::{Ring, RingBuilder};
pub use segment::survey;
#[doc(hidden)]
pub use select::Holding;
pub use select::{Readable, Room, Select, SelectWaker, Source};
pub use topic::{Lag, Policy, Publisher, Subscriber, SubscriberInfo, Topic, TopicBuilder, TopicMessage, TopicMeta};
pub use wait::WaitPolicy;
