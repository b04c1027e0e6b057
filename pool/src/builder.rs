//! Options of a pool.

use crate::error::Result;
use crate::pool::BufferPool;

/// Options of a pool, see [`BufferPool::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct Builder {
    pub(crate) tls_cache_size: Option<usize>,
    pub(crate) min_buffer_size: Option<usize>,
    pub(crate) max_buffers_per_shard: Option<usize>,
    pub(crate) num_shards: Option<usize>,
    pub(crate) pinned_memory: bool,
    pub(crate) huge_pages: bool,
    pub(crate) alignment: Option<usize>,
    pub(crate) max_bytes: Option<usize>,
    pub(crate) zero_on_return: bool,
    pub(crate) track_stats: Option<bool>,
}

impl Builder {
    /// The pool.
    ///
    /// # Errors
    /// An option is wrong.
    pub fn build(&self) -> Result<BufferPool> {
        Ok(BufferPool::from_options(Options {
            tls_cache_size: 8,
            min_buffer_size: 1024,
            max_buffers_per_shard: 1024,
            num_shards: 2,
            pinned_memory: self.pinned_memory,
            huge_pages: self.huge_pages,
            alignment: self.alignment.unwrap_or(1),
            max_bytes: self.max_bytes.unwrap_or(usize::MAX),
            zero_on_return: self.zero_on_return,
            track_stats: self.track_stats.unwrap_or(true),
        }))
    }
}

/// The options, checked and with every default filled in.
#[derive(Clone, Debug)]
#[allow(dead_code)]
pub(crate) struct Options {
    /// Buffers of a size class that a thread keeps: 0..=64.
    pub(crate) tls_cache_size: usize,
    /// A power of two, 64..=1 GiB.
    pub(crate) min_buffer_size: usize,
    /// Idle buffers that a shard keeps, of all classes together: 0..
    pub(crate) max_buffers_per_shard: usize,
    /// A power of two, 1..=256.
    pub(crate) num_shards: usize,
    /// Lock the memory.
    pub(crate) pinned_memory: bool,
    /// Ask for huge pages.
    pub(crate) huge_pages: bool,
    /// A power of two; 1: whatever the allocator gives.
    pub(crate) alignment: usize,
    /// Of all that the pool owns; `usize::MAX`: no limit.
    pub(crate) max_bytes: usize,
    /// Overwrite what a buffer held before anybody else can get it.
    pub(crate) zero_on_return: bool,
    /// Count gets and hits.
    pub(crate) track_stats: bool,
}
