//! What a pool says of itself.

/// A pool's state at a moment, see [`BufferPool::stats`](crate::BufferPool::stats).
///
/// Bytes are those of the allocations, which are up to an eighth longer than what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Buffers that were got from the pool, `take` included. 0 without `track_stats`.
    pub gets: u64,
    /// Those of them that the calling thread's own cache had. 0 without `track_stats`.
    pub hits: u64,
    /// Allocations: gets that found nothing idle, `preallocate` included.
    pub allocations: u64,
    /// Vectors that `put` made the pool's own.
    pub adopted: u64,
    /// Allocations that were given back to the system.
    pub freed: u64,
    /// Gets that `max_bytes` refused.
    pub refused: u64,
    /// Bytes that the pool owns: `in_use_bytes` and `idle_bytes`.
    pub held_bytes: usize,
    /// The most that this ever was.
    pub peak_held_bytes: usize,
    /// Bytes of buffers that somebody has.
    pub in_use_bytes: usize,
    /// Bytes of buffers that nobody has.
    pub idle_bytes: usize,
    /// Buffers that nobody has.
    pub idle_buffers: usize,
    /// Bytes that are locked in memory (`pinned_memory`).
    pub pinned_bytes: usize,
    /// Bytes that should be and are not, because the system forbids it (`RLIMIT_MEMLOCK`).
    pub unpinned_bytes: usize,
    /// Threads that have a cache of this pool.
    pub threads: usize,
    /// `max_bytes`, if there is such a limit.
    pub max_bytes: Option<usize>,
}
