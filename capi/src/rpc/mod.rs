//! Calls between the processes of one machine.

mod callbacks;
pub mod client;
pub mod method;
pub mod reply;
pub mod request;
pub mod server;
