//! RPC for tasks (feature `tokio`).

mod client;
#[cfg(feature = "tower")]
mod service;

pub use client::{Client, Pending, Stream};
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use service::{Answer, Request};
