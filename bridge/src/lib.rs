//! `ramway-bridge`: rings, topics and buses of one machine on the next one, over Zenoh.

pub mod bridge;
pub mod check;
pub mod command;
pub mod config;
pub mod counters;
pub mod far_end;
pub mod link;
pub mod local;
mod lock;
pub mod log;
pub mod lossy;
pub mod metrics;
pub mod near_end;
pub mod place;
pub mod registry;
pub mod report;
pub mod ring;
pub mod rpc;
pub mod service;
pub mod stream;
pub mod topic;
pub mod wire;
