//! Calls between the processes of one machine.

pub mod client;
pub mod method;
pub mod reply;
pub mod request;
pub mod server;
