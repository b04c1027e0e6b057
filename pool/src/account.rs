//! What a pool owns, in bytes: counted before it is allocated, so that the limit holds at every moment.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The figures of a pool. None of them orders anything, so all accesses are `Relaxed`: that no two threads take the same
/// room comes from the compare-exchange alone.
#[derive(Debug)]
pub(crate) struct Account {
    /// Bytes of all blocks that are the pool's, also of those that are just being allocated: 0..=limit.
    held: AtomicUsize,
    /// The most that `held` ever was when a block had just been made.
    peak: AtomicUsize,
    limit: usize,
    pub(crate) pinned: AtomicUsize,
    pub(crate) unpinned: AtomicUsize,
    pub(crate) allocations: AtomicU64,
    pub(crate) adopted: AtomicU64,
    pub(crate) freed: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Account {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            limit,
            pinned: AtomicUsize::new(0),
            unpinned: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            adopted: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Makes room for `size` bytes more; `false` if the limit does not allow it.
    pub(crate) fn reserve(&self, size: usize) -> bool {
        let grown = |held: usize| held.checked_add(size).filter(|&sum| sum <= self.limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    /// What was reserved is there.
    pub(crate) fn settle(&self) {
        self.peak.fetch_max(self.held(), Ordering::Relaxed);
    }

    /// Gives room back.
    pub(crate) fn release(&self, size: usize) {
        self.held.fetch_sub(size, Ordering::Relaxed);
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// `usize::MAX`: none.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}
