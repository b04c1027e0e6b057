//! A pool of a model: threads with their caches, the registry, and blocks whose memory loom watches.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex, MutexGuard};
use ramway_pool::model::{Attached, Cache, Hot, Step, take_back};
use std::ptr::NonNull;

/// The pool's slot, the class of all blocks, and how many of them a cache holds.
const SLOT: usize = 0;
const CLASS: usize = 7;
const MOST: usize = 2;

/// Whether the kernel has a barrier for the thread that takes caches away.
#[derive(Clone, Copy, PartialEq)]
pub enum Fence {
    Works,
    Refused,
}

/// What is behind the registry's lock.
pub struct Registry {
    attached: Vec<Attached>,
    /// Blocks that no thread has in its cache.
    pub shelf: Vec<NonNull<u8>>,
}

// SAFETY: blocks are only addresses here; loom watches who writes to them.
unsafe impl Send for Registry {}

/// What the threads of a model share.
#[derive(Clone)]
pub struct World {
    registry: Arc<Mutex<Registry>>,
    blocks: usize,
}

/// A thread of the model, with its caches.
#[derive(Clone)]
pub struct Thread {
    hot: Arc<Hot>,
    world: World,
}

/// The memory of a block.
struct Memory(UnsafeCell<u32>);

/// Writes to a block's memory: a race unless the caller is its only owner.
fn write(block: NonNull<u8>) {
    // SAFETY: `World::new` made it; loom checks that nobody else has access.
    unsafe { block.cast::<Memory>().as_ref().0.with_mut(|at| *at += 1) };
}

impl World {
    /// With this many blocks, all on the shelf.
    pub fn new(blocks: usize) -> Self {
        let shelf = (0..blocks).map(|_| NonNull::from(Box::leak(Box::new(Memory(UnsafeCell::new(0))))).cast());
        let registry = Registry { attached: Vec::new(), shelf: shelf.collect() };
        Self { registry: Arc::new(Mutex::new(registry)), blocks }
    }

    pub fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap()
    }

    /// A thread with a cache that holds `full` blocks from the shelf.
    pub fn thread(&self, full: usize) -> Thread {
        let hot = Arc::new(Hot::new());
        let cache = Cache::new(CLASS, MOST);
        let mut registry = self.lock();
        for _ in 0..full {
            // SAFETY: nobody else knows the cache yet.
            assert!(unsafe { cache.push(CLASS, registry.shelf.pop().unwrap()) });
        }
        let cache = NonNull::from(Box::leak(cache));
        registry.attached.push(Attached { hot: NonNull::from(&*hot), cache });
        hot.install(SLOT, cache);
        drop(registry);
        Thread { hot, world: self.clone() }
    }

    /// When all threads are done: every block is in one place, and what was done to them can be seen from here.
    pub fn end(self, uses: u32) {
        let mut registry = self.lock();
        let Registry { attached, shelf } = &mut *registry;
        for one in attached.drain(..) {
            // SAFETY: the other threads are joined; the cache was leaked by `thread`.
            unsafe { Box::from_raw(one.cache.as_ptr()).drain(|_, block| shelf.push(block)) };
        }
        shelf.sort();
        shelf.dedup();
        assert_eq!(shelf.len(), self.blocks, "blocks that are lost, or in two places");
        // SAFETY: made by `new`; each is here once.
        let used = shelf.drain(..).map(|block| unsafe { Box::from_raw(block.cast::<Memory>().as_ptr()) });
        // SAFETY: nobody else has it; loom checks.
        let sum: u32 = used.map(|memory| memory.0.with(|at| unsafe { *at })).sum();
        assert_eq!(sum, uses);
    }
}

impl Thread {
    /// Gets a block, writes to it, and gives it back: from and to its cache, and where that has nothing or no room, or is
    /// being taken away, the shelf. Says whether there was a block.
    pub fn use_one(&self) -> bool {
        let cached = self.hot.get(SLOT, CLASS);
        let Some(block) = cached.or_else(|| self.world.lock().shelf.pop()) else { return false };
        write(block);
        // SAFETY: the block is ours, and there is one pool only.
        if !unsafe { self.hot.push(SLOT, CLASS, block) } {
            self.world.lock().shelf.push(block);
        }
        true
    }

    /// Takes all caches back onto the shelf; with `keep` their threads get them again, empty.
    pub fn take_all(&self, keep: bool, fence: Fence) {
        let mut registry = self.world.lock();
        let Registry { attached, shelf } = &mut *registry;
        let barrier = || {
            if crate::takes(Step::TakerFence) {
                loom::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            }
            fence == Fence::Works
        };
        // SAFETY: with the lock; threads live until they are joined, and their ends take them out of the list.
        let taken = unsafe { take_back(attached, SLOT, &self.hot, keep, barrier, |_, block| shelf.push(block)) };
        if keep {
            return;
        }
        assert!(taken);
        for one in attached.drain(..) {
            // SAFETY: taken away, so it is ours: the write is a race if its thread may still be inside.
            let cache = unsafe { Box::from_raw(one.cache.as_ptr()) };
            let block = shelf.pop();
            if let Some(block) = block {
                // SAFETY: as above; the block goes back to where it was.
                unsafe { assert!(cache.push(CLASS, block) && cache.pop(CLASS) == Some(block)) };
                shelf.push(block);
            }
        }
    }

    /// Writes to every block on the shelf. Gives how many that were.
    pub fn write_shelved(&self) -> u32 {
        let registry = self.world.lock();
        registry.shelf.iter().for_each(|&block| write(block));
        registry.shelf.len() as u32
    }

    /// The end of this thread: its cache goes back.
    pub fn end(self) {
        let mut registry = self.world.lock();
        let Registry { attached, shelf } = &mut *registry;
        let own = |one: &Attached| std::ptr::eq(one.hot.as_ptr(), &*self.hot);
        let Some(at) = attached.iter().position(own) else { return };
        let one = attached.swap_remove(at);
        // SAFETY: with the lock, and it is this thread's own.
        unsafe { take_back(&[one], SLOT, &self.hot, false, || unreachable!(), |_, block| shelf.push(block)) };
        // SAFETY: taken out of its slot and of the list; leaked by `thread`.
        drop(unsafe { Box::from_raw(one.cache.as_ptr()) });
    }
}
