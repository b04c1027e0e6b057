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
    /// Bytes that should be and are not: the system forbids it (`RLIMIT_MEMLOCK`), or they were inherited by a fork.
    pub unpinned_bytes: usize,
    /// Threads that have a cache of this pool.
    pub threads: usize,
    /// `max_bytes`, if there is such a limit.
    pub max_bytes: Option<usize>,
}

impl std::fmt::Display for Stats {
    /// One line for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = if self.gets == 0 { 0.0 } else { 100.0 * self.hits as f64 / self.gets as f64 };
        write!(
            f,
            "gets: {}, {percent:.1} % from the thread's cache; allocations: {}, vectors put: {}, freed: {}; \
             held: {} (at most {}), in use: {}, idle: {}, idle buffers: {}",
            self.gets,
            self.allocations,
            self.adopted,
            self.freed,
            Bytes(self.held_bytes),
            Bytes(self.peak_held_bytes),
            Bytes(self.in_use_bytes),
            Bytes(self.idle_bytes),
            self.idle_buffers,
        )?;
        if let Some(limit) = self.max_bytes {
            write!(f, "; limit: {}, refused: {}", Bytes(limit), self.refused)?;
        }
        if self.pinned_bytes > 0 {
            write!(f, "; pinned: {}", Bytes(self.pinned_bytes))?;
        }
        if self.unpinned_bytes > 0 {
            write!(f, "; not pinned, though asked for: {}", Bytes(self.unpinned_bytes))?;
        }
        Ok(())
    }
}

/// Bytes, for people.
struct Bytes(usize);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes @ ..1024 => write!(f, "{bytes} B"),
            bytes @ ..0x10_0000 => write!(f, "{:.1} KiB", bytes as f64 / 1024.0),
            bytes @ ..0x4000_0000 => write!(f, "{:.1} MiB", bytes as f64 / 1_048_576.0),
            bytes => write!(f, "{:.2} GiB", bytes as f64 / 1_073_741_824.0),
        }
    }
}
