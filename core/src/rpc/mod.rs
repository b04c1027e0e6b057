//! Calls between the processes of one machine: a [`Client`] calls methods of a [`Server`] over a bus of its own, with time limits,
//! cancelling, and replies that are streams.
//!
//! What goes over the bus is described in `docs/ABI.md`, section 20.

mod client;
#[cfg(test)]
mod cost;
mod frame;
mod server;
mod status;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use client::{
    CallOptions, Client, ClientConnector, MethodInfo, Pending, Reply, ReplyView, SharedClient, SharedPending,
    SharedStream, Stream, StreamIter,
};
#[doc(hidden)] // for the bindings; not part of the stable API
pub use client::{InPlace, RawClient, Taken};
pub use frame::method_id;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub use server::TaskRequest;
pub use server::{
    AnyMethod, Call, Cancellation, Fault, IntoReply, MethodKey, Request, Server, ServerBuilder, Stopper, Written,
};
pub use status::{CallError, CallResult, Status};
