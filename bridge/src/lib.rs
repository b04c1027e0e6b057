//! `ramway-bridge`: rings, topics and buses of one machine on the next one, over Zenoh.

pub mod bridge;
pub mod config;
pub mod counters;
pub mod far_end;
pub mod link;
pub mod local;
pub mod log;
pub mod near_end;
pub mod place;
pub mod ring;
pub mod stream;
pub mod wire;
