//! A get that the thread's cache cannot serve: from a shard, from a longer class, from the system.

use super::{Inner, Spares};
use crate::class::{self, CLASSES};
use crate::error::{Error, ErrorKind, Result};
use crate::hot::{self, Hot, NO_SLOT};
use crate::registry;
use crate::shard::{Locked, Shard};
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

/// Bytes a thread that are never too much: what threads with a mixed load keep of each size, although only a few of them
/// have a buffer at any moment. (Eight threads, one buffer of 1 KiB to 1 MiB each at a time: without it, one get in 60
/// allocates, forever.)
const THREAD_BYTES: usize = 4 << 20;

/// From this size on it is better to take an idle block out of another thread's cache than to free it and allocate one:
/// some microseconds for the barrier and for that thread's next gets, against a page fault for each 4 KiB.
const WORTH_TAKING: usize = 64 << 10;

impl Inner {
    /// A block for `len` bytes, its class, and whether it is known to hold nothing but zeros.
    #[cold]
    pub(crate) fn refill(&self, len: usize, zeroed: bool) -> Result<(NonNull<u8>, usize, bool)> {
        let class = self.class_for(len)?;
        hot::with(|hot| {
            self.attach(hot);
            let found = match self.take_suitable(hot, class) {
                Some((block, class)) => (block, class, false),
                None => self.grow(hot, class, zeroed)?,
            };
            self.count_miss(hot);
            Ok(found)
        })
    }

    fn count_miss(&self, hot: &Hot) {
        if self.options.track_stats {
            // Relaxed: a figure.
            self.shard_of(hot).misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An idle block of this class that the thread's cache did not have, or of one a little longer, and its class.
    #[cold]
    pub(crate) fn refill_idle(&self, class: usize) -> Option<(NonNull<u8>, usize)> {
        hot::with(|hot| {
            self.attach(hot);
            let found = self.take_suitable(hot, class);
            if found.is_some() {
                self.count_miss(hot);
            }
            found
        })
    }

    /// An idle block of this class, or of one a little longer, and its class.
    fn take_suitable(&self, hot: &Hot, class: usize) -> Option<(NonNull<u8>, usize)> {
        (class..=(class + LOOK_HIGHER).min(CLASSES - 1)).find_map(|class| {
            // SAFETY: `enter` gives the cache to this thread alone; the class is below CLASSES.
            let kept = hot.enter(self.slot, |cache| unsafe { cache.pop(class) });
            Some((kept.flatten().or_else(|| self.take_shelved(hot, class))?, class))
        })
    }

    pub(crate) fn class_for(&self, len: usize) -> Result<usize> {
        if len > class::LARGEST {
            let text = format!("a buffer of {len} bytes: no pool has any longer than {} bytes", class::LARGEST);
            return Err(Error::new(ErrorKind::TooLarge, text));
        }
        Ok(class::of(len.max(self.smallest())))
    }

    pub(super) fn attach(&self, hot: &Hot) {
        if self.slot != NO_SLOT && !hot.has(self.slot) && !hot.is_attached(self.slot) {
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

    /// One more block: a new one, unless the pool holds so much that an idle one of another thread's is better.
    fn grow(&self, hot: &Hot, class: usize, zeroed: bool) -> Result<(NonNull<u8>, usize, bool)> {
        let size = self.sizes[class];
        if size > self.account.limit() {
            // Nothing is freed for what can never be had.
            return Err(self.refuse(size));
        }
        if let Some((block, class)) = self.make_room(hot, class) {
            return Ok((block, class, false));
        }
        let mut again = true;
        loop {
            if !self.account.reserve(size) {
                match self.reclaim(hot, class) {
                    Reclaimed::Room => {}
                    Reclaimed::Block(block, class) => return Ok((block, class, false)),
                    Reclaimed::Nothing => return Err(self.refuse(size)),
                }
            }
            match self.allocate(size, zeroed) {
                Ok(block) => return Ok((block, class, zeroed)),
                Err(error) => {
                    self.account.release(size);
                    // Once more without what is idle: other threads make idle memory all the time.
                    if !std::mem::take(&mut again) || self.free_idle(hot, 0) == 0 {
                        // An allocation that was refused was never in use.
                        self.guarded(&mut registry::lock()).recent_peak = 0;
                        return Err(error);
                    }
                }
            }
        }
    }

    fn refuse(&self, size: usize) -> Error {
        // Relaxed: a figure.
        self.account.refused.fetch_add(1, Ordering::Relaxed);
        self.limit_reached(size)
    }

    pub(super) fn limit_reached(&self, size: usize) -> Error {
        let (held, limit) = (self.account.held(), self.account.limit());
        let text = format!(
            "a buffer of {size} bytes: the pool holds {held} of the {limit} bytes that max_bytes allows, and too few of \
             them are idle; drop buffers first, or build the pool with a larger max_bytes"
        );
        Error::new(ErrorKind::LimitReached, text)
    }

    /// Before the pool grows by a block: if it holds much more than what was in use of late, frees idle blocks, or finds
    /// one in another thread's cache that will do.
    ///
    /// Leaves that to another thread that is at it: who waits here may lose its processor for milliseconds. (Eight threads
    /// with a mixed load on two processors: three quarters of their time went by like this.)
    fn make_room(&self, hot: &Hot, class: usize) -> Option<(NonNull<u8>, usize)> {
        // Relaxed, both: only that one thread does it at a time; what it looks at has locks of its own.
        if self.makes_room.swap(true, Ordering::Relaxed) {
            return None;
        }
        let found = self.make_room_alone(hot, class);
        self.makes_room.store(false, Ordering::Relaxed);
        found
    }

    fn make_room_alone(&self, hot: &Hot, class: usize) -> Option<(NonNull<u8>, usize)> {
        let size = self.sizes[class];
        let mut registry = registry::lock();
        let guarded = self.guarded(&mut registry);
        let (cached, threads) = (guarded.cached_bytes(&self.sizes), guarded.caches.len());
        let shelved: usize = self.shards.iter().map(Shard::bytes).sum();
        let (held, idle) = (self.account.held(), shelved + cached);
        let fallen = guarded.recent_peak - guarded.recent_peak / DECAY;
        guarded.recent_peak = fallen.max(held.saturating_sub(idle).saturating_add(size));
        let enough = guarded.recent_peak.saturating_add(guarded.recent_peak / 100 * SLACK);
        let enough = enough.max(guarded.wanted).max(threads.saturating_mul(THREAD_BYTES));
        let excess = held.saturating_add(size).saturating_sub(enough).min(idle);
        if excess == 0 {
            return None;
        }
        if size >= WORTH_TAKING && guarded.cached(class..=class + LOOK_HIGHER) > 0 {
            self.gather(&mut registry, hot, false);
            return self.take_suitable(hot, class);
        }
        // Taking all caches away costs microseconds, and their threads their next hits.
        if shelved < excess && cached >= held / 8 {
            self.gather(&mut registry, hot, false);
        }
        let spares = self.unshelve(&mut self.lock_shards(), excess);
        self.free_all(spares);
        None
    }

    /// Makes room for a block at the limit, or finds an idle one that will do. Meanwhile nothing idle can move, so that it
    /// gives up only if at one moment there was not enough.
    fn reclaim(&self, hot: &Hot, class: usize) -> Reclaimed {
        let mut registry = registry::lock();
        // Mostly what can be had without waiting for anybody is enough.
        self.gather(&mut registry, hot, false);
        let found = self.reclaim_shelved(&mut self.lock_shards(), class);
        if !matches!(found, Reclaimed::Nothing) {
            return found;
        }
        let mut shards = self.stop(&mut registry, hot);
        let found = self.reclaim_shelved(&mut shards, class);
        drop(shards);
        self.go_on(&mut registry);
        found
    }

    fn reclaim_shelved(&self, shards: &mut [Locked<'_>], class: usize) -> Reclaimed {
        loop {
            if self.account.reserve(self.sizes[class]) {
                return Reclaimed::Room;
            }
            let suitable = (class..=(class + LOOK_HIGHER).min(CLASSES - 1))
                .find_map(|class| shards.iter_mut().find_map(|shard| Some((shard.pop(class)?, class))));
            if let Some((block, class)) = suitable {
                return Reclaimed::Block(block, class);
            }
            // Nothing is freed where all of it would not be enough.
            let idle: usize = self.shards.iter().map(Shard::bytes).sum();
            if self.account.held().saturating_sub(idle).saturating_add(self.sizes[class]) > self.account.limit() {
                return Reclaimed::Nothing;
            }
            let spares = self.unshelve(shards, self.sizes[class]);
            if spares.is_empty() {
                return Reclaimed::Nothing;
            }
            self.free_all(spares);
        }
    }

    pub(super) fn lock_shards(&self) -> Vec<Locked<'_>> {
        self.shards.iter().map(Shard::lock).collect()
    }

    /// Takes idle blocks of `bytes` out of the shards, or all if there are fewer: first of the class of which most bytes
    /// are idle.
    pub(super) fn unshelve(&self, shards: &mut [Locked<'_>], bytes: usize) -> Spares {
        let (mut blocks, mut got) = (Vec::new(), 0);
        while got < bytes {
            let fullest = shards.iter_mut().filter_map(|shard| Some((shard.heaviest()?, shard)));
            let Some(((class, total), shard)) = fullest.max_by_key(|((_, total), _)| *total) else { break };
            // A quarter of it at a time, and then look again.
            let mut share = 0;
            while share <= total / 4 && got < bytes {
                let Some(block) = shard.pop(class) else { break };
                share += self.sizes[class];
                got += self.sizes[class];
                blocks.push((class, block));
            }
        }
        blocks
    }

    /// Gives blocks that were taken out of shards to the system. The caller has a handle, so that none of them is the
    /// pool's last reference, whose drop would want the registry's lock.
    pub(super) fn free_all(&self, spares: Spares) {
        for (class, block) in spares {
            // SAFETY: taken out of a shard, so nobody has it.
            unsafe { self.free(class, block) };
        }
    }
}

/// What [`Inner::reclaim`] found.
enum Reclaimed {
    /// The block's size is reserved.
    Room,
    /// An idle block and its class.
    Block(NonNull<u8>, usize),
    Nothing,
}
