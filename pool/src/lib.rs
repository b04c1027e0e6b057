//! A pool of I/O buffers for the threads of one process.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block;
mod buffer;
mod builder;
mod error;
mod lease;
mod pool;
mod stats;
mod sys;
mod uninit;

pub use buffer::Buffer;
pub use builder::Builder;
pub use error::{Error, ErrorKind, Result};
pub use pool::BufferPool;
pub use stats::Stats;
pub use uninit::UninitBuffer;
