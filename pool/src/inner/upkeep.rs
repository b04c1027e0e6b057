//! What a handle can ask for beside buffers.

use super::Inner;
use crate::error::{Error, ErrorKind, Result};
use crate::hot::{self, Hot};
use crate::registry;
use crate::shard::Shard;
use crate::stats::Stats;
use crate::sys::memory;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

impl Inner {
    /// Allocates `count` idle blocks for `len` bytes each.
    pub(crate) fn preallocate(&self, count: usize, len: usize) -> Result<()> {
        let class = self.class_for(len)?;
        self.set_usual(class);
        let size = self.sizes[class];
        for _ in 0..count {
            if !self.account.reserve(size) {
                return Err(self.limit_reached(size));
            }
            let block = self.allocate(size, false).inspect_err(|_| self.account.release(size))?;
            if !hot::with(|hot| self.shelve_anywhere(hot, class, block)) {
                // SAFETY: it found no place, so nobody has it; the caller has a handle.
                unsafe { self.free(class, block) };
                let most = self.options.max_buffers_per_shard.saturating_mul(self.shards.len());
                let text = format!(
                    "{count} idle buffers: max_buffers_per_shard and num_shards allow {most}, caches of threads apart"
                );
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            let mut registry = registry::lock();
            let guarded = self.guarded(&mut registry);
            guarded.wanted = guarded.wanted.saturating_add(size);
        }
        Ok(())
    }

    pub(super) fn shelve_anywhere(&self, hot: &Hot, class: usize, block: NonNull<u8>) -> bool {
        let own = hot.thread();
        (0..self.shards.len()).any(|at| {
            let mut locked = self.shards[(own + at) & (self.shards.len() - 1)].lock();
            let fits = locked.room(self.options.max_buffers_per_shard) > 0;
            if fits {
                locked.push(class, block);
            }
            fits
        })
    }

    /// Touches the pages of all idle blocks; gives their bytes.
    pub(crate) fn warm(&self) -> usize {
        let mut touched = 0;
        hot::with(|hot| self.gather(&mut registry::lock(), hot, true));
        for shard in &self.shards {
            // Out of the shard meanwhile: touching gigabytes takes its time, and others want the lock.
            let mut blocks = Vec::new();
            shard.lock().drain(|class, block| blocks.push((class, block)));
            for &(class, block) in &blocks {
                // SAFETY: taken out of the shard, so nobody else has it.
                unsafe { memory::touch(self.block(class, block)) };
                touched += self.sizes[class];
            }
            let mut locked = shard.lock();
            blocks.into_iter().for_each(|(class, block)| locked.push(class, block));
        }
        touched
    }

    /// Frees idle blocks until at most `keep` bytes are idle; gives the bytes freed.
    pub(crate) fn trim(&self, hot: &Hot, keep: usize) -> usize {
        let freed = self.free_idle(hot, keep);
        let mut registry = registry::lock();
        let guarded = self.guarded(&mut registry);
        (guarded.recent_peak, guarded.wanted) = (0, 0);
        freed
    }

    /// The same, without forgetting what the pool may hold.
    pub(super) fn free_idle(&self, hot: &Hot, keep: usize) -> usize {
        self.gather(&mut registry::lock(), hot, true);
        let mut shards = self.lock_shards();
        let idle: usize = self.shards.iter().map(Shard::bytes).sum();
        let spares = self.unshelve(&mut shards, idle.saturating_sub(keep));
        drop(shards);
        let freed = spares.iter().map(|&(class, _)| self.sizes[class]).sum();
        self.free_all(spares);
        freed
    }

    /// What the pool holds and did.
    pub(crate) fn stats(&self) -> Stats {
        let mut registry = registry::lock();
        let guarded = self.guarded(&mut registry);
        // SAFETY: under the registry's lock the caches in the list are alive.
        let caches = guarded.caches.iter().map(|one| unsafe { one.cache.as_ref() });
        let (mut hits, mut idle_bytes, mut idle_buffers) = (0, guarded.cached_bytes(&self.sizes), 0);
        for cache in caches {
            hits += cache.hits();
            idle_buffers += cache.counts().sum::<usize>();
        }
        let mut gets = 0;
        for shard in &self.shards {
            let locked = shard.lock();
            // Relaxed, all of them: figures.
            gets += shard.misses.load(Ordering::Relaxed);
            hits += shard.former_hits.load(Ordering::Relaxed);
            idle_bytes += shard.bytes();
            idle_buffers += locked.len();
        }
        let account = &self.account;
        let held_bytes = account.held();
        let idle_bytes = idle_bytes.min(held_bytes);
        Stats {
            gets: if self.options.track_stats { gets + hits } else { 0 },
            hits: if self.options.track_stats { hits } else { 0 },
            allocations: account.allocations.load(Ordering::Relaxed),
            adopted: account.adopted.load(Ordering::Relaxed),
            freed: account.freed.load(Ordering::Relaxed),
            refused: account.refused.load(Ordering::Relaxed),
            held_bytes,
            // What is just being allocated is held, and not yet in the peak.
            peak_held_bytes: account.peak().max(held_bytes),
            in_use_bytes: held_bytes - idle_bytes,
            idle_bytes,
            idle_buffers,
            pinned_bytes: account.pinned.load(Ordering::Relaxed),
            unpinned_bytes: account.unpinned.load(Ordering::Relaxed),
            threads: guarded.caches.len(),
            max_bytes: Some(account.limit()).filter(|&limit| limit != usize::MAX),
        }
    }
}
