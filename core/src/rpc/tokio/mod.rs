//! RPC for tasks (feature `tokio`).

mod client;

pub use client::{Client, Pending, Stream};
