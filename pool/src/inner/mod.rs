//! A pool behind its handles and buffers: what it is, how long it lives, and its memory.

mod getting;
mod returning;
mod upkeep;

use crate::account::Account;
use crate::block::Block;
use crate::builder::Options;
use crate::cache::Cache;
use crate::class;
use crate::error::Result;
use crate::hot::{self, Attached, Hot, NO_SLOT};
use crate::registry::{self, Registry};
use crate::shard::{Shard, Sizes};
use crate::sys::fence;
use crate::sys::memory::{self, Kind, Pinned};
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Idle blocks on their way, with their classes.
pub(crate) type Spares = Vec<(usize, NonNull<u8>)>;

/// What a pool is. It lives as long as it has a handle or owns a block.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Which slot of each thread its cache stands in; [`NO_SLOT`]: it has none. Its own until it is freed.
    slot: usize,
    options: Options,
    kind: Kind,
    /// The class of the shortest block.
    smallest: usize,
    sizes: Arc<Sizes>,
    /// A power of two of them.
    shards: Box<[Shard]>,
    account: Account,
    /// Blocks that the pool owns, in use or idle; one for all handles together; one for each call under way whose
    /// block may be freed by another thread meanwhile.
    references: AtomicUsize,
    handles: AtomicUsize,
    /// The class of the vector that was put last, or of what was preallocated: what `take` looks for.
    usual: AtomicUsize,
    /// A thread is freeing what is too much before it grows.
    makes_room: AtomicBool,
    guarded: UnsafeCell<Guarded>,
    /// Where the blocks begin that are pinned; empty without `pinned_memory`. Its lock is the last in the order.
    pinned: Mutex<HashSet<usize>>,
}

/// What the registry's lock protects.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) caches: Vec<Attached>,
    /// The last handle is gone.
    pub(crate) closed: bool,
    /// The most that was in use of late: falls a little with each allocation.
    recent_peak: usize,
    /// What `preallocate` asked for: so much is never too much.
    wanted: usize,
}

impl Guarded {
    /// Blocks of these classes in all caches, as of a moment ago.
    fn cached(&self, classes: std::ops::RangeInclusive<usize>) -> usize {
        let count = classes.end() + 1 - classes.start();
        // SAFETY: as below.
        let caches = self.caches.iter().map(|one| unsafe { one.cache.as_ref() });
        caches.map(|cache| cache.counts().skip(*classes.start()).take(count).sum::<usize>()).sum()
    }

    /// Bytes in all caches, as of a moment ago.
    fn cached_bytes(&self, sizes: &Sizes) -> usize {
        // SAFETY: a cache in the list is alive, and `self` is only reached with the registry's lock.
        let counts = self.caches.iter().flat_map(|one| unsafe { one.cache.as_ref() }.counts().zip(sizes));
        counts.map(|(count, size)| count * size).sum()
    }
}

// SAFETY: `guarded` is reached only with the registry's lock (its `&mut`), `pinned` and the shards have locks of their
// own, and the rest is atomic or never changes.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Inner {
    /// A pool with one handle.
    pub(crate) fn open(options: Options) -> NonNull<Self> {
        registry::heed_forks();
        let (kind, smallest) = (options.kind(), options.smallest_class());
        let sizes: Arc<Sizes> = Arc::new(std::array::from_fn(|class| memory::size_of(&kind, class::size(class))));
        let mut registry = registry::lock();
        let caches = options.tls_cache_size > 0 && fence::available();
        let slot = if caches { registry.free_slot() } else { NO_SLOT };
        let guarded = Guarded { caches: Vec::new(), closed: false, recent_peak: 0, wanted: 0 };
        let pool = Box::leak(Box::new(Self {
            slot,
            kind,
            smallest,
            shards: (0..options.num_shards).map(|_| Shard::new(Arc::clone(&sizes))).collect(),
            sizes,
            account: Account::new(options.max_bytes),
            references: AtomicUsize::new(1),
            handles: AtomicUsize::new(1),
            usual: AtomicUsize::new(smallest),
            makes_room: AtomicBool::new(false),
            guarded: UnsafeCell::new(guarded),
            pinned: Mutex::new(HashSet::new()),
            options,
        }));
        let pool = NonNull::from(pool);
        registry.add(pool);
        pool
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether blocks are what `Vec` would have allocated.
    pub(crate) fn is_plain(&self) -> bool {
        !self.kind.mapped()
    }

    /// How long the blocks of a class are.
    pub(crate) fn size(&self, class: usize) -> usize {
        self.sizes[class]
    }

    fn block(&self, class: usize, ptr: NonNull<u8>) -> Block {
        Block { ptr, cap: self.sizes[class] }
    }

    /// Overwrites a block with zeros.
    ///
    /// # Safety
    /// The block is the caller's and of this class.
    #[cold]
    pub(crate) unsafe fn zero(&self, class: usize, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { memory::zero(self.block(class, block)) };
    }

    /// The shortest block.
    pub(crate) fn smallest(&self) -> usize {
        class::size(self.smallest)
    }

    /// What the registry's lock protects: the borrow of the registry is the proof of holding it, and that nobody else on
    /// this thread looks at it.
    pub(crate) fn guarded<'a>(&'a self, _registry: &'a mut Registry) -> &'a mut Guarded {
        // SAFETY: see above.
        unsafe { &mut *self.guarded.get() }
    }

    pub(crate) fn new_cache(&self) -> Box<Cache> {
        Cache::new(self.smallest, self.options.tls_cache_size)
    }

    fn shard_of(&self, hot: &Hot) -> &Shard {
        &self.shards[hot.thread() & (self.shards.len() - 1)]
    }

    pub(crate) fn add_handle(&self) {
        // Relaxed: the caller has a handle, so the count cannot reach 0 meanwhile.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// # Safety
    /// The handle is the caller's and not used any more.
    pub(crate) unsafe fn drop_handle(pool: NonNull<Self>) {
        // SAFETY: the handles' reference keeps it alive.
        let this = unsafe { pool.as_ref() };
        // AcqRel: what was done through other handles comes before the closing.
        if this.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            for (class, block) in this.close() {
                // SAFETY: taken out of a shard, so nobody has it.
                unsafe { this.free(class, block) };
            }
            // SAFETY: the handles' reference.
            unsafe { Self::release(pool) };
        }
    }

    pub(crate) fn retain(&self) {
        // Relaxed: the caller has a reference.
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// # Safety
    /// The reference is the caller's, which does not use the pool any more.
    pub(crate) unsafe fn release(pool: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it alive until here. AcqRel: everything that others did with it comes
        // before its end.
        if unsafe { pool.as_ref() }.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            registry::lock().remove(pool);
            // SAFETY: no handle, no block, no call, no cache (`close` took them) and no entry: nobody can reach it.
            drop(unsafe { Box::from_raw(pool.as_ptr()) });
        }
    }

    /// Lets nothing be kept any more, and gives what was.
    fn close(&self) -> Spares {
        let mut blocks = Vec::new();
        let mut registry = registry::lock();
        let guarded = self.guarded(&mut registry);
        guarded.closed = true;
        let mut caches = std::mem::take(&mut guarded.caches);
        hot::with(|hot| {
            let sink = |class, block| blocks.push((class, block));
            // SAFETY: under the registry's lock; threads that end take their entries out under it.
            if !unsafe { hot::take_back(&caches, self.slot, hot, false, fence::heavy, sink) } {
                // The caches of other threads cannot be taken, then: they come back when those threads end.
                let others = |one: &Attached| !ptr::eq(one.hot.as_ptr(), hot);
                guarded.caches = caches.iter().copied().filter(others).collect();
                guarded.caches.iter().for_each(|_| self.retain());
                caches.retain(|one| !others(one));
            }
        });
        for one in caches {
            // SAFETY: a thread whose cache was in the list lives.
            unsafe { one.hot.as_ref() }.set_attached(self.slot, false);
            // SAFETY: taken out of its slot and of the list.
            unsafe { registry::free_cache(one.cache) };
        }
        drop(registry);
        for shard in &self.shards {
            let mut locked = shard.lock();
            locked.close();
            locked.drain(|class, block| blocks.push((class, block)));
        }
        blocks
    }

    /// Allocates what was reserved.
    fn allocate(&self, size: usize, zeroed: bool) -> Result<NonNull<u8>> {
        let (block, pinned) = memory::allocate(&self.kind, size, zeroed)?;
        // Relaxed: figures.
        match pinned {
            Pinned::NotAsked => {}
            Pinned::Yes => {
                self.pinned_blocks().insert(block.ptr.as_ptr() as usize);
                self.account.pinned.fetch_add(block.cap, Ordering::Relaxed);
            }
            Pinned::Refused => _ = self.account.unpinned.fetch_add(block.cap, Ordering::Relaxed),
        }
        self.account.allocations.fetch_add(1, Ordering::Relaxed);
        self.account.settle();
        self.retain();
        Ok(block.ptr)
    }

    pub(crate) fn pinned_blocks(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a block out of the books, except for its reference.
    fn disown(&self, class: usize, block: NonNull<u8>) {
        if self.kind.pinned {
            let was_pinned = self.pinned_blocks().remove(&(block.as_ptr() as usize));
            let figure = if was_pinned { &self.account.pinned } else { &self.account.unpinned };
            // Relaxed: a figure.
            figure.fetch_sub(self.sizes[class], Ordering::Relaxed);
        }
    }

    /// Gives a block's memory to the system.
    ///
    /// # Safety
    /// The block is of this pool, and nobody has it. With the last reference the pool goes, unless the caller has
    /// another one: it must.
    pub(crate) unsafe fn free(&self, class: usize, block: NonNull<u8>) {
        self.disown(class, block);
        // Relaxed: a figure.
        self.account.freed.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { memory::free(&self.kind, self.block(class, block)) };
        // After the memory is gone, so that the limit is never exceeded.
        self.account.release(self.sizes[class]);
        // Relaxed: the caller has another reference, so this is not the last.
        self.references.fetch_sub(1, Ordering::Relaxed);
    }

    /// In a fork's child: the threads of other caches are not there, and what is pinned there is not pinned here.
    pub(crate) fn forget_other_threads(&self, registry: &mut Registry, hot: &Hot) {
        let guarded = self.guarded(registry);
        let (own, others) = guarded.caches.iter().partition(|one| ptr::eq(one.hot.as_ptr(), hot));
        guarded.caches = own;
        for Attached { cache, .. } in others {
            // SAFETY: in the list until now. Relaxed: a figure.
            self.shards[0].former_hits.fetch_add(unsafe { cache.as_ref() }.hits(), Ordering::Relaxed);
            // SAFETY: out of the list, and its thread is not here. `stop` has emptied it; where it could not, because the
            // system refused the fence, the blocks in it are lost to the child.
            unsafe { registry::free_cache(cache) };
        }
        // Relaxed: this is the child's only thread; the thread that was making room is not in it.
        self.makes_room.store(false, Ordering::Relaxed);
        let pinned = self.account.pinned.swap(0, Ordering::Relaxed);
        self.account.unpinned.fetch_add(pinned, Ordering::Relaxed);
        self.pinned_blocks().clear();
    }
}
