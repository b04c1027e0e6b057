//! A pool of buffers for input and output, for the threads of one process: where a buffer of the size was there before,
//! getting one costs no allocation, no page fault and no zeroing.
//!
//! | | |
//! | --- | --- |
//! | [`BufferPool`] | gives buffers, and keeps them when they are dropped |
//! | [`Buffer`] | bytes that its owner wrote, with room for as many as were asked for |
//! | [`UninitBuffer`] | all bytes at once, uninitialised by their type |
//! | [`Builder`] | pinned, aligned or huge-page memory, limits, sizes of caches |
//!
//! ```
//! use ramway_pool::BufferPool;
//! use std::io::Write;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = BufferPool::new();
//!
//! let mut buffer = pool.get(1 << 20); // room for 1 MiB, nothing in it
//! buffer.write_all(b"from a file or a socket")?;
//! assert_eq!(buffer.len(), 23);
//!
//! let bytes = buffer.freeze(); // bytes::Bytes: cloned and sliced without copying
//! let other = bytes.slice(5..);
//! drop(bytes);
//! std::thread::spawn(move || assert!(other.starts_with(b"a file"))).join().unwrap();
//! assert_eq!(pool.len(), 1); // the last clone gave it back, on another thread
//! # Ok(()) }
//! ```
//!
//! # What holds everywhere
//!
//! - No safe call shows memory that nobody wrote, or what another owner of the memory wrote: see [`Buffer`].
//! - A buffer goes back to the pool that it came from, from whatever thread, also after that pool's last handle is gone.
//! - A pool never holds more than its `max_bytes`, at no moment, however many threads ask.
//! - A thread that ends gives back what it had in its cache.
//! - Before a pool allocates it gives back (unless another thread is at it) what is idle, if it holds over 15 % more than was in use of
//!   late, and over 4 MiB a thread.
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | `tokio` | `AsyncRead`, `AsyncWrite` and `AsyncSeek` for [`Buffer`] |
//! | `uring` | `IoBuf` and `IoBufMut` of `tokio-uring` for [`Buffer`] |
//! | `serde` | `Serialize` for [`Stats`] |
//!
//! It uses nothing else of Ramway, whose crate has it as `ramway::pool`. The caches of threads need `membarrier(2)`; where
//! that is missing (other systems than Linux, kernels before 4.14, `RAMWAY_MEMBARRIER=0` in the environment) every
//! get takes a lock.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(loom, allow(dead_code, unused_imports))] // a model needs a part of it

#[cfg(not(loom))]
mod account;
#[cfg(not(loom))]
mod block;
#[cfg(not(loom))]
mod buffer;
#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod bytes;
mod cache;
mod class;
#[cfg(not(loom))]
mod error;
#[cfg(all(unix, not(loom)))]
mod fd;
mod hot;
#[cfg(not(loom))]
mod inner;
#[cfg(not(loom))]
mod io;
#[cfg(not(loom))]
mod lease;
#[cfg(doctest)]
mod misuse;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod registry;
#[cfg(not(loom))]
mod shard;
#[cfg(not(loom))]
mod slice;
#[cfg(not(loom))]
mod stats;
mod sync;
#[cfg(not(loom))]
mod sys;
#[cfg(all(feature = "tokio", not(loom)))]
mod tokio;
#[cfg(not(loom))]
mod uninit;
#[cfg(all(feature = "uring", target_os = "linux", not(loom)))]
mod uring;

#[cfg(not(loom))]
pub use {
    buffer::Buffer,
    builder::Builder,
    error::{Error, ErrorKind, Result},
    pool::BufferPool,
    stats::Stats,
    uninit::UninitBuffer,
};

/// For the models in `tests/loom`: a thread's caches, and who takes them away.
#[cfg(loom)]
pub mod model {
    pub use crate::cache::Cache;
    pub use crate::hot::{Attached, Hot, take_back};
    pub use crate::sync::{Step, model::leave_out};
}
