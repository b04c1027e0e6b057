//! The native half of the npm package `ramway`: it opens, waits, wakes and closes. Messages are read and written by
//! JavaScript itself, on typed arrays over the mapped memory (docs/adr/0021).
#![warn(missing_docs)]
// Clippy's --all-targets builds the library as a test too, and there #[napi] registers nothing.
#![cfg_attr(test, allow(dead_code, reason = "used by the runtime alone"))]

mod apart;
mod buffer;
mod bus;
mod endpoint;
mod error;
mod handle;
mod listener;
mod opening;
mod options;
mod region;
mod ring;
mod rpc;
mod rpc_client;
mod rpc_server;
mod segment;
mod teardown;
mod topic;
mod uv;
mod views;
mod wakeups;

/// The version of the package.
#[napi_derive::napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
