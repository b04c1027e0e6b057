//! What one thread keeps of one pool: for each size class a few blocks, the last one in the first out.

use crate::class::{self, CLASSES};
use crate::sync::{AtomicU64, Ordering, Place};
use std::ptr::NonNull;

/// Bytes of one class that a thread keeps, unless a single block is longer: enough for batches of megabytes, which
/// is what a pipeline hands on, without a thread sitting on gigabytes.
const CLASS_BYTES: usize = 8 << 20;

/// The blocks of a class: only where they begin, since all blocks of a class are of one length.
#[derive(Debug)]
struct Bin {
    /// How many blocks are in it in the lowest eight bits, 0..=limit, and above them how many gets it has served: one
    /// addition for both. A `Relaxed` atomic costs what a plain word costs; it is one because `stats` reads it from other
    /// threads.
    word: AtomicU64,
    /// The first of its places, of which as many as there are blocks hold one.
    places: NonNull<Place<NonNull<u8>>>,
    /// Places it has; 0 for a class that the pool does not use, else at least 1.
    limit: u64,
}

/// What a block more adds to a bin's word, and one less subtracts.
const BLOCK: u64 = 1;
/// What a get adds.
const GET: u64 = 1 << 8;

fn blocks(word: u64) -> u64 {
    word % GET
}

/// A thread's cache of a pool. The thread touches it between [`Hot`](crate::hot::Hot)'s enter and leave, others only
/// after they have taken it away from the thread.
#[derive(Debug)]
pub struct Cache {
    bins: [Bin; CLASSES],
    /// The places of all bins.
    /// Owned by a pointer: moving a box would take the right to the places from the bins' pointers.
    places: NonNull<[Place<NonNull<u8>>]>,
}

// SAFETY: a cache moves to the thread that took it away; its pointers lead into its own allocation, which goes with it.
unsafe impl Send for Cache {}

/// How many blocks of a class a thread keeps.
fn limit(class: usize, smallest: usize, most: usize) -> usize {
    if class < smallest || most == 0 { 0 } else { (CLASS_BYTES / class::size(class)).clamp(1, most) }
}

impl Cache {
    /// An empty one, for the classes from `smallest` on, with up to `most` blocks of each: at most 64.
    pub fn new(smallest: usize, most: usize) -> Box<Self> {
        let places = (0..CLASSES).map(|class| limit(class, smallest, most)).sum();
        let places: Box<[Place<NonNull<u8>>]> = (0..places).map(|_| Place::new(NonNull::dangling())).collect();
        let places = NonNull::from(Box::leak(places));
        let mut first = 0;
        let bins = std::array::from_fn(|class| {
            let limit = limit(class, smallest, most);
            // SAFETY: `first` places come before.
            let places = unsafe { places.cast().add(first) };
            first += limit;
            Bin { word: AtomicU64::new(0), places, limit: limit as u64 }
        });
        Box::new(Self { bins, places })
    }

    /// A block of this class, if there is one.
    ///
    /// # Safety
    /// The caller has the cache to itself; `class < CLASSES`.
    #[inline(always)]
    unsafe fn pop_as(&self, class: usize, counted: u64) -> Option<NonNull<u8>> {
        // SAFETY: `class < CLASSES`.
        let bin = unsafe { self.bins.get_unchecked(class) };
        // Relaxed, here and in the rest: only the caller writes, and a reader of statistics needs no order.
        let word = bin.word.load(Ordering::Relaxed);
        if blocks(word) == 0 {
            return None;
        }
        bin.word.store(word.wrapping_add(counted).wrapping_sub(BLOCK), Ordering::Relaxed);
        // SAFETY: the first `blocks(word)` places hold blocks, and nobody else touches them.
        Some(unsafe { bin.places.add(blocks(word) as usize - 1).as_ref().get() })
    }

    /// A block of this class for somebody who wants it, if there is one.
    ///
    /// # Safety
    /// The caller has the cache to itself; `class < CLASSES`.
    #[inline(always)]
    pub unsafe fn get(&self, class: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        unsafe { self.pop_as(class, GET) }
    }

    /// A block of this class that is to stand somewhere else.
    ///
    /// # Safety
    /// As of [`get`](Self::get).
    pub unsafe fn pop(&self, class: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        unsafe { self.pop_as(class, 0) }
    }

    /// Keeps a block; `false` if there is no place left in its bin.
    ///
    /// # Safety
    /// As of [`get`](Self::get); the block is the caller's, and the cache's if kept.
    #[inline(always)]
    pub unsafe fn push(&self, class: usize, block: NonNull<u8>) -> bool {
        // SAFETY: `class < CLASSES`.
        let bin = unsafe { self.bins.get_unchecked(class) };
        let word = bin.word.load(Ordering::Relaxed);
        if blocks(word) >= bin.limit {
            return false;
        }
        // SAFETY: fewer blocks than places, so it is one of them, and nobody else touches it.
        unsafe { bin.places.add(blocks(word) as usize).as_ref().set(block) };
        bin.word.store(word.wrapping_add(BLOCK), Ordering::Relaxed);
        true
    }

    /// Takes everything out.
    ///
    /// # Safety
    /// The caller has the cache to itself.
    pub unsafe fn drain(&self, mut sink: impl FnMut(usize, NonNull<u8>)) {
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

    /// How many blocks of each class are in it, as of a moment ago.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.bins.iter().map(|bin| blocks(bin.word.load(Ordering::Relaxed)) as usize)
    }

    /// Gets that found a block here.
    pub fn hits(&self) -> u64 {
        self.bins.iter().map(|bin| bin.word.load(Ordering::Relaxed) / GET).sum()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`, and the bins go with it.
        drop(unsafe { Box::from_raw(self.places.as_ptr()) });
    }
}
