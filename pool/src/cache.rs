//! What one thread keeps of one pool: for each size class a few blocks, the last one in the first out.

use crate::block::Block;
use crate::class::{self, CLASSES};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, Place};
use std::ptr::NonNull;

/// Bytes of one class that a thread keeps, unless a single block is longer: enough for batches of megabytes, which
/// is what a pipeline hands on, without a thread sitting on gigabytes.
const CLASS_BYTES: usize = 8 << 20;

/// The blocks of a class.
///
/// A `Relaxed` atomic costs what a plain word costs; it is one because `stats` reads it from other threads.
#[derive(Debug)]
struct Bin {
    /// Blocks in it: 0..=limit.
    count: AtomicU32,
    /// Places it has; 0 for a class that the pool does not use, else at least 1.
    limit: u32,
    /// The first of its `limit` places, of which the first `count` hold blocks.
    places: NonNull<Place<Block>>,
}

/// A thread's cache of a pool. The thread touches it between [`Hot`](crate::hot::Hot)'s enter and leave, others only
/// after they have taken it away from the thread.
///
/// Counters that change together do not stand side by side: the compiler would load both with one instruction right
/// after they were stored one by one, which the processor cannot forward (5 ns a call, measured).
#[derive(Debug)]
#[repr(C)]
pub struct Cache {
    bins: [Bin; CLASSES],
    /// Bytes of all blocks in it.
    bytes: AtomicUsize,
    /// What a hit counts: 1, or 0 without `track_stats`.
    step: u64,
    /// Gets that found a block here.
    hits: AtomicU64,
    /// The class that the thread last put a vector into.
    last_put: AtomicU32,
    /// The places of all bins.
    _places: Box<[Place<Block>]>,
}

// SAFETY: a cache moves to whoever took it away; its pointers lead into its own boxed slice, which moves with it.
unsafe impl Send for Cache {}

/// How many blocks of a class a thread keeps.
fn limit(class: usize, smallest: usize, most: usize) -> usize {
    if class < smallest || most == 0 { 0 } else { (CLASS_BYTES / class::size(class)).clamp(1, most) }
}

impl Cache {
    /// An empty one, for the classes from `smallest` on, with up to `most` blocks of each.
    pub fn new(smallest: usize, most: usize, count_hits: bool) -> Box<Self> {
        let places = (0..CLASSES).map(|class| limit(class, smallest, most)).sum();
        let nowhere = Block { ptr: NonNull::dangling(), cap: 0 };
        let places: Box<[Place<Block>]> = (0..places).map(|_| Place::new(nowhere)).collect();
        let mut first = 0;
        let bins = std::array::from_fn(|class| {
            let limit = limit(class, smallest, most);
            let bin =
                Bin { count: AtomicU32::new(0), limit: limit as u32, places: NonNull::from(&places[first..]).cast() };
            first += limit;
            bin
        });
        let cache = Self {
            bins,
            bytes: AtomicUsize::new(0),
            step: u64::from(count_hits),
            hits: AtomicU64::new(0),
            last_put: AtomicU32::new(smallest as u32),
            _places: places,
        };
        Box::new(cache)
    }

    /// A block of this class, if there is one.
    ///
    /// # Safety
    /// The caller has the cache to itself; `class < CLASSES`.
    #[inline(always)]
    pub unsafe fn pop(&self, class: usize) -> Option<Block> {
        // SAFETY: `class < CLASSES`.
        let bin = unsafe { self.bins.get_unchecked(class) };
        let count = bin.count.load(Ordering::Relaxed);
        if count == 0 {
            return None;
        }
        // Relaxed, here and in the rest: only the caller writes, and a reader of statistics needs no order.
        bin.count.store(count - 1, Ordering::Relaxed);
        // SAFETY: the first `count` places hold blocks, and nobody else touches them.
        let block = unsafe { bin.places.add(count as usize - 1).as_ref().get() };
        self.bytes.store(self.bytes.load(Ordering::Relaxed).wrapping_sub(block.cap), Ordering::Relaxed);
        Some(block)
    }

    /// Counts a get that found a block.
    #[inline(always)]
    pub fn hit(&self) {
        self.hits.store(self.hits.load(Ordering::Relaxed).wrapping_add(self.step), Ordering::Relaxed);
    }

    /// Keeps a block; `false` if there is no place left in its bin.
    ///
    /// # Safety
    /// As of [`pop`](Self::pop); the block is the caller's, and the cache's if kept.
    #[inline(always)]
    pub unsafe fn push(&self, class: usize, block: Block) -> bool {
        // SAFETY: `class < CLASSES`.
        let bin = unsafe { self.bins.get_unchecked(class) };
        let count = bin.count.load(Ordering::Relaxed);
        if count >= bin.limit {
            return false;
        }
        // SAFETY: `count < limit`, so it is one of the bin's places, and nobody else touches it.
        unsafe { bin.places.add(count as usize).as_ref().set(block) };
        bin.count.store(count + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed).wrapping_add(block.cap), Ordering::Relaxed);
        true
    }

    /// Takes everything out.
    ///
    /// # Safety
    /// The caller has the cache to itself.
    pub unsafe fn drain(&self, mut sink: impl FnMut(usize, Block)) {
        for class in 0..CLASSES {
            // SAFETY: the caller's promise.
            while let Some(block) = unsafe { self.pop(class) } {
                sink(class, block);
            }
        }
    }

    /// How many blocks go to or come from a shard at a time: half of what the bin can hold, and at least one.
    pub fn batch(&self, class: usize) -> usize {
        (self.bins[class].limit as usize / 2).max(1)
    }

    /// Bytes of all blocks in it, as of a moment ago.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Blocks in it, as of a moment ago.
    pub fn len(&self) -> usize {
        self.bins.iter().map(|bin| bin.count.load(Ordering::Relaxed) as usize).sum()
    }

    /// Gets that found a block here.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// The class that the thread last put a vector into.
    pub fn last_put(&self) -> &AtomicU32 {
        &self.last_put
    }
}
