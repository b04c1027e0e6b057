//! A get that the thread's cache cannot serve: from a shard, from a longer class, from the system.

use super::{Inner, Spares};
use crate::class::{self, CLASSES};
use crate::error::{Error, ErrorKind, Result};
use crate::hot::{self, Hot, NO_SLOT};
use crate::registry;
use crate::shard::Shard;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// How many classes above its own a get looks before it allocates: a block up to one and a half times as long as was
/// asked for is better than one more. (Zipf sizes of 1 KiB to 1 MB, 256 buffers alive: 6.7 % of the gets allocate, with one
/// class 22 %, with eight 1.6 %; the pool then holds at most 1.28, 1.21 and 1.40 times of what was at most asked for.)
const LOOK_HIGHER: usize = 4;

/// The share of the recent peak by which it falls with each allocation, if less is in use. (The same load with a 256th:
/// 4.1 % and 1.30.)
const DECAY: usize = 64;

/// How much more than the recent peak a pool may hold and still allocate, in percent. (The same load with 10 and 20 %:
/// 12 % and 1.23, 4 % and 1.34.)
const SLACK: usize = 15;

impl Inner {
    /// A block for `len` bytes, its class, and whether it is known to hold nothing but zeros.
    #[cold]
    pub(crate) fn refill(&self, len: usize, zeroed: bool) -> Result<(NonNull<u8>, usize, bool)> {
        let class = self.class_for(len)?;
        hot::with(|hot| {
            self.attach(hot);
            if self.options.track_stats {
                // Relaxed: a figure.
                self.shard_of(hot).misses.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(block) = self.take_shelved(hot, class) {
                return Ok((block, class, false));
            }
            for higher in class + 1..=(class + LOOK_HIGHER).min(CLASSES - 1) {
                let kept = hot.enter(self.slot, |cache| {
                    // SAFETY: `enter` gives the cache to this thread alone; the class is below CLASSES.
                    unsafe { cache.pop(higher) }
                });
                if let Some(block) = kept.flatten().or_else(|| self.take_shelved(hot, higher)) {
                    return Ok((block, higher, false));
                }
            }
            let block = self.grow(hot, class, zeroed)?;
            Ok((block, class, zeroed))
        })
    }

    pub(super) fn class_for(&self, len: usize) -> Result<usize> {
        if len > class::LARGEST {
            let text = format!("a buffer of {len} bytes: no pool has any longer than {} bytes", class::LARGEST);
            return Err(Error::new(ErrorKind::TooLarge, text));
        }
        Ok(class::of(len.max(self.smallest())))
    }

    pub(super) fn attach(&self, hot: &Hot) {
        if self.slot != NO_SLOT && !hot.has(self.slot) {
            registry::attach(self, hot);
        }
    }

    /// A block of this class from a shard, and some more for the thread's cache.
    pub(super) fn take_shelved(&self, hot: &Hot, class: usize) -> Option<NonNull<u8>> {
        let own = hot.thread();
        for at in 0..self.shards.len() {
            let shard = &self.shards[(own + at) & (self.shards.len() - 1)];
            if !shard.seems_to_hold(class) {
                continue;
            }
            let mut locked = shard.lock();
            let Some(block) = locked.pop(class) else { continue };
            // With the lock held, so that who looks for idle blocks finds them in one place or the other.
            hot.enter(self.slot, |cache| {
                for _ in 1..cache.batch(class) {
                    let Some(more) = locked.pop(class) else { break };
                    // SAFETY: `enter` gives the cache to this thread alone.
                    if !unsafe { cache.push(class, more) } {
                        locked.push(class, more);
                        break;
                    }
                }
            });
            return Some(block);
        }
        None
    }

    /// One more block.
    pub(super) fn grow(&self, hot: &Hot, class: usize, zeroed: bool) -> Result<NonNull<u8>> {
        let size = self.sizes[class];
        self.make_room(hot, size);
        loop {
            if !self.account.reserve(size) && !self.reclaim(hot, size) {
                // Relaxed: a figure.
                self.account.refused.fetch_add(1, Ordering::Relaxed);
                return Err(self.limit_reached(size));
            }
            match self.allocate(size, zeroed) {
                Ok(block) => return Ok(block),
                Err(error) => {
                    self.account.release(size);
                    if self.trim(hot, 0) == 0 {
                        return Err(error);
                    }
                }
            }
        }
    }

    pub(super) fn limit_reached(&self, size: usize) -> Error {
        let (held, limit) = (self.account.held(), self.account.limit());
        let text = format!(
            "a buffer of {size} bytes: the pool holds {held} of the {limit} bytes that max_bytes allows, and too few of \
             them are idle; drop buffers first, or build the pool with a larger max_bytes"
        );
        Error::new(ErrorKind::LimitReached, text)
    }

    /// Frees idle blocks before the pool grows by `size`, if it holds much more than what was in use of late.
    pub(super) fn make_room(&self, hot: &Hot, size: usize) {
        let mut registry = registry::lock();
        let cached = self.guarded(&mut registry).cached_bytes(&self.sizes);
        let shelved: usize = self.shards.iter().map(Shard::bytes).sum();
        let (held, idle) = (self.account.held(), shelved + cached);
        let guarded = self.guarded(&mut registry);
        let fallen = guarded.recent_peak - guarded.recent_peak / DECAY;
        guarded.recent_peak = fallen.max(held.saturating_sub(idle).saturating_add(size));
        let enough = guarded.recent_peak.saturating_add(guarded.recent_peak / 100 * SLACK).max(guarded.wanted);
        let excess = held.saturating_add(size).saturating_sub(enough).min(idle);
        if excess == 0 {
            return;
        }
        // Taking all caches away costs microseconds, and their threads their next hits.
        if shelved < excess && cached >= held / 8 {
            self.gather(&mut registry, hot);
        }
        drop(registry);
        for (class, block) in self.unshelve(excess) {
            // SAFETY: taken out of a shard, so nobody has it.
            unsafe { self.free(class, block) };
        }
    }

    /// Frees idle blocks until `size` bytes are reserved; `false` if there are too few. Under the registry's lock from
    /// beginning to end, so that of several threads at the limit each finds what another one has just freed.
    pub(super) fn reclaim(&self, hot: &Hot, size: usize) -> bool {
        let mut registry = registry::lock();
        loop {
            if self.account.reserve(size) {
                return true;
            }
            self.gather(&mut registry, hot);
            let blocks = self.unshelve(size);
            if blocks.is_empty() {
                return self.account.reserve(size);
            }
            for (class, block) in blocks {
                // SAFETY: taken out of a shard, so nobody has it. The caller has a handle, so that this is not the last
                // reference, whose drop would want the registry's lock.
                unsafe { self.free(class, block) };
            }
        }
    }

    /// Takes idle blocks of `bytes` out of the shards, or all if there are fewer: first of the class of which most bytes
    /// are idle.
    pub(super) fn unshelve(&self, bytes: usize) -> Spares {
        let (mut blocks, mut got) = (Vec::new(), 0);
        while got < bytes {
            let heaviest = |shard: &Shard| shard.lock().heaviest().map_or((0, 0), |(class, bytes)| (bytes, class));
            let fullest = self.shards.iter().map(|shard| (heaviest(shard), shard)).max_by_key(|(found, _)| found.0);
            let Some(((total @ 1.., class), shard)) = fullest else { break };
            let mut locked = shard.lock();
            // A quarter of it at a time, and then look again.
            let mut share = 0;
            while share <= total / 4 && got < bytes {
                let Some(block) = locked.pop(class) else { break };
                share += self.sizes[class];
                got += self.sizes[class];
                blocks.push((class, block));
            }
            if share == 0 {
                break; // somebody else was faster
            }
        }
        blocks
    }
}
