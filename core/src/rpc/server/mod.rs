//! The side that is called.
//!
//! | file | what |
//! | --- | --- |
//! | `ledger.rs` | what is known of a client's calls, without input or output |
//! | `connection.rs` | one client: frames in, replies out |
//! | `methods.rs`, `request.rs`, `call.rs`, `streams.rs` | handlers, what they get, and how they reply |
//! | `pool.rs`, `task.rs` | the threads for handlers that block; tokio's tasks |
//! | `hub.rs` | what other threads tell the server |
//! | `serve.rs`, `wait.rs`, `descriptor.rs` | the rounds over all clients, and how the server waits between two |

mod builder;
mod call;
mod connection;
mod descriptor;
mod hub;
mod ledger;
mod methods;
mod news;
mod pool;
mod request;
mod serve;
mod streams;
#[cfg(feature = "tokio")]
mod task;
mod wait;

pub use builder::ServerBuilder;
pub use call::{Call, Cancellation};
pub use methods::{AnyMethod, MethodKey};
pub use request::{Fault, IntoReply, Request, Written};
pub use serve::{Server, Stopper};
#[cfg(feature = "tokio")]
pub use task::TaskRequest;
