//! Where idle blocks stand that no thread has in its cache: stacks by size class, behind a mutex. Threads come here with
//! batches (the magazines of Bonwick and Adams, "Magazines and Vmem", 2001), so that the lock is taken once for several
//! blocks, and each thread has a shard that is its own as long as there are as many as threads.

use crate::class::CLASSES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One of the places for idle blocks, alone in its cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    sizes: Arc<Sizes>,
    stacks: Mutex<Stacks>,
    /// Bit `class % 64` of word `class / 64`: whether that stack holds anything. Written under the lock; a hint to
    /// those who come without it.
    filled: [AtomicU64; CLASSES / 64],
    /// Bytes of all blocks in it. Written under the lock.
    bytes: AtomicUsize,
    /// Gets that this shard's threads made and their caches did not have; hits of caches that are gone.
    pub(crate) misses: AtomicU64,
    pub(crate) former_hits: AtomicU64,
}

// SAFETY: what stands here is nobody's but the shard's, and comes and goes under its lock.
unsafe impl Send for Shard {}
// SAFETY: as above.
unsafe impl Sync for Shard {}

/// How long the blocks of each class are.
pub(crate) type Sizes = [usize; CLASSES];

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// Set when the last handle of the pool is gone: nothing comes in any more.
    closed: bool,
    /// Blocks in all stacks.
    count: usize,
    stacks: [Vec<NonNull<u8>>; CLASSES],
}

/// A shard whose lock the caller holds.
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
    stacks: MutexGuard<'a, Stacks>,
}

impl Shard {
    pub(crate) fn new(sizes: Arc<Sizes>) -> Self {
        let stacks = Stacks { closed: false, count: 0, stacks: [const { Vec::new() }; CLASSES] };
        Self {
            sizes,
            stacks: Mutex::new(stacks),
            filled: [const { AtomicU64::new(0) }; CLASSES / 64],
            bytes: AtomicUsize::new(0),
            misses: AtomicU64::new(0),
            former_hits: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        // Nothing panics halfway through a change, so a poisoned shard is whole.
        Locked { shard: self, stacks: self.stacks.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Whether there seems to be a block of this class: may be out of date in either direction.
    #[inline]
    pub(crate) fn seems_to_hold(&self, class: usize) -> bool {
        // Relaxed: a hint, which the lock confirms.
        self.filled[class / 64].load(Ordering::Relaxed) & (1 << (class % 64)) != 0
    }

    /// Bytes of all blocks in it, as of a moment ago.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a figure.
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Locked<'_> {
    /// How many more blocks may stand here if at most `most` may; none once the pool is closed.
    pub(crate) fn room(&self, most: usize) -> usize {
        if self.stacks.closed { 0 } else { most.saturating_sub(self.stacks.count) }
    }

    /// Makes sure that `count` blocks can be pushed without an allocation.
    pub(crate) fn reserve(&mut self, class: usize, count: usize) {
        self.stacks.stacks[class].reserve(count);
    }

    pub(crate) fn push(&mut self, class: usize, block: NonNull<u8>) {
        let stacks = &mut *self.stacks;
        stacks.stacks[class].push(block);
        stacks.count += 1;
        if stacks.stacks[class].len() == 1 {
            self.mark(class, true);
        }
        // Relaxed, here and below: only written under the lock.
        self.shard.bytes.store(self.shard.bytes() + self.shard.sizes[class], Ordering::Relaxed);
    }

    pub(crate) fn pop(&mut self, class: usize) -> Option<NonNull<u8>> {
        let stacks = &mut *self.stacks;
        let block = stacks.stacks[class].pop()?;
        stacks.count -= 1;
        if stacks.stacks[class].is_empty() {
            self.mark(class, false);
        }
        self.shard.bytes.store(self.shard.bytes() - self.shard.sizes[class], Ordering::Relaxed);
        Some(block)
    }

    fn mark(&self, class: usize, filled: bool) {
        let (word, bit) = (&self.shard.filled[class / 64], 1 << (class % 64));
        // Relaxed: only written under the lock, and read as a hint.
        let old = word.load(Ordering::Relaxed);
        word.store(if filled { old | bit } else { old & !bit }, Ordering::Relaxed);
    }

    /// The class of which most bytes stand here, and how many.
    pub(crate) fn heaviest(&self) -> Option<(usize, usize)> {
        (0..CLASSES)
            .filter(|&class| self.shard.seems_to_hold(class))
            .map(|class| (class, self.shard.sizes[class] * self.stacks.stacks[class].len()))
            .max_by_key(|&(_, bytes)| bytes)
    }

    /// Lets nothing come in any more.
    pub(crate) fn close(&mut self) {
        self.stacks.closed = true;
    }

    /// Takes everything out.
    pub(crate) fn drain(&mut self, mut sink: impl FnMut(usize, NonNull<u8>)) {
        for class in 0..CLASSES {
            while let Some(block) = self.pop(class) {
                sink(class, block);
            }
        }
    }

    /// Blocks in it.
    pub(crate) fn len(&self) -> usize {
        self.stacks.count
    }
}
