//! A pool behind its handles and buffers: every way but the fast one.

use crate::account::Account;
use crate::block::Block;
use crate::builder::Options;
use crate::cache::Cache;
use crate::class::{self, CLASSES};
use crate::error::{Error, ErrorKind, Result};
use crate::hot::{self, Attached, Hot, NO_SLOT};
use crate::registry::{self, Registry};
use crate::shard::{Shard, Sizes};
use crate::stats::Stats;
use crate::sys::fence;
use crate::sys::memory::{self, Kind, Pinned};
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many classes above its own a get looks before it allocates: a block up to one and a half times as long as was
/// asked for is better than one more. (Zipf sizes, 256 buffers alive: 1.4 % of the gets allocate; 4 % with one class.)
const LOOK_HIGHER: usize = 4;

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
    /// Blocks that the pool owns, whoever has them; one for all handles together; one for each call under way whose
    /// block may be freed by another thread meanwhile.
    references: AtomicUsize,
    handles: AtomicUsize,
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
    /// The most that was in use of late: falls by 1/256 with each allocation.
    recent_peak: usize,
    /// What `preallocate` asked for: so much is never too much.
    wanted: usize,
}

impl Guarded {
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
        let kind = Kind { align: options.alignment, pinned: options.pinned_memory, huge: options.huge_pages };
        // What is mapped takes whole pages, so shorter classes would only waste them.
        let least = memory::size_of(&kind, options.min_buffer_size);
        let smallest = class::of(least.max(options.min_buffer_size).min(class::LARGEST));
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
            guarded: UnsafeCell::new(guarded),
            pinned: Mutex::new(HashSet::new()),
            options,
        }));
        registry.add(NonNull::from(&*pool));
        NonNull::from(pool)
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
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

    // ---- references

    pub(crate) fn add_handle(&self) {
        // Relaxed: whoever clones has a handle, so the count cannot reach 0 meanwhile.
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
        // Relaxed: whoever calls has a reference.
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
                // Not to be had from other threads, then: their ends give them back.
                let others = |one: &Attached| !ptr::eq(one.hot.as_ptr(), hot);
                guarded.caches = caches.iter().copied().filter(others).collect();
                guarded.caches.iter().for_each(|_| self.retain());
                caches.retain(|one| !others(one));
            }
        });
        for one in caches {
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

    // ---- getting

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

    fn class_for(&self, len: usize) -> Result<usize> {
        if len > class::LARGEST {
            let text = format!("a buffer of {len} bytes: no pool has any longer than {} bytes", class::LARGEST);
            return Err(Error::new(ErrorKind::TooLarge, text));
        }
        Ok(class::of(len.max(self.smallest())))
    }

    fn attach(&self, hot: &Hot) {
        if self.slot != NO_SLOT && !hot.has(self.slot) {
            registry::attach(self, hot);
        }
    }

    /// A block of this class from a shard, and some more for the thread's cache.
    fn take_shelved(&self, hot: &Hot, class: usize) -> Option<NonNull<u8>> {
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
    fn grow(&self, hot: &Hot, class: usize, zeroed: bool) -> Result<NonNull<u8>> {
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
        self.retain();
        Ok(block.ptr)
    }

    pub(crate) fn pinned_blocks(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit_reached(&self, size: usize) -> Error {
        let (held, limit) = (self.account.held(), self.account.limit());
        let text = format!(
            "a buffer of {size} bytes: the pool holds {held} of the {limit} bytes that max_bytes allows, and too few of \
             them are idle; drop buffers first, or build the pool with a larger max_bytes"
        );
        Error::new(ErrorKind::LimitReached, text)
    }

    /// Frees idle blocks before the pool grows by `size`, if it holds more than a fifth above what was in use of late.
    fn make_room(&self, hot: &Hot, size: usize) {
        let mut registry = registry::lock();
        let cached = self.guarded(&mut registry).cached_bytes(&self.sizes);
        let shelved: usize = self.shards.iter().map(Shard::bytes).sum();
        let (held, idle) = (self.account.held(), shelved + cached);
        let guarded = self.guarded(&mut registry);
        let fallen = guarded.recent_peak - guarded.recent_peak / 256;
        guarded.recent_peak = fallen.max(held.saturating_sub(idle).saturating_add(size));
        let enough = guarded.recent_peak.saturating_add(guarded.recent_peak / 5).max(guarded.wanted);
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
    fn reclaim(&self, hot: &Hot, size: usize) -> bool {
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
    fn unshelve(&self, bytes: usize) -> Spares {
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

    // ---- what a handle can ask for

    /// Allocates `count` idle blocks for `len` bytes each.
    pub(crate) fn preallocate(&self, count: usize, len: usize) -> Result<()> {
        let class = self.class_for(len)?;
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

    fn shelve_anywhere(&self, hot: &Hot, class: usize, block: NonNull<u8>) -> bool {
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
        hot::with(|hot| self.gather(&mut registry::lock(), hot));
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
        let mut registry = registry::lock();
        self.gather(&mut registry, hot);
        let guarded = self.guarded(&mut registry);
        (guarded.recent_peak, guarded.wanted) = (0, 0);
        drop(registry);
        let idle: usize = self.shards.iter().map(Shard::bytes).sum();
        let blocks = self.unshelve(idle.saturating_sub(keep));
        let freed = blocks.iter().map(|&(class, _)| self.sizes[class]).sum();
        for (class, block) in blocks {
            // SAFETY: taken out of a shard, so nobody has it; the caller has a handle.
            unsafe { self.free(class, block) };
        }
        freed
    }

    /// Makes a vector's memory the pool's, or drops it.
    pub(crate) fn adopt(pool: NonNull<Self>, mut vector: Vec<u8>) {
        // SAFETY: the caller has a handle.
        let this = unsafe { pool.as_ref() };
        let cap = vector.capacity();
        let fits = (this.smallest()..=class::LARGEST).contains(&cap);
        if !this.is_plain() || !fits {
            return;
        }
        let class = class::within(cap);
        vector.shrink_to(class::size(class));
        // An allocator may leave it as it was.
        if vector.capacity() != class::size(class) || !this.account.reserve(class::size(class)) {
            return;
        }
        let mut vector = ManuallyDrop::new(vector);
        // SAFETY: a vector with a capacity has memory.
        let block = unsafe { NonNull::new_unchecked(vector.as_mut_ptr()) };
        if this.options.zero_on_return {
            // SAFETY: it is ours alone now.
            unsafe { this.zero(class, block) };
        }
        // Relaxed: a figure.
        this.account.adopted.fetch_add(1, Ordering::Relaxed);
        this.retain();
        hot::with(|hot| {
            // SAFETY: the block is ours and of this pool; the pool has a handle.
            if !unsafe { hot.push(this.slot, class, block) } {
                // SAFETY: as above.
                unsafe { Self::put_back(pool, class, block) };
            }
            // Relaxed: the thread's own word, but for the statistics of nobody.
            hot.enter(this.slot, |cache| cache.last_put().store(class as u32, Ordering::Relaxed));
        });
    }

    /// How much room a vector gets that nobody said a length for: as much as the one that this thread put last.
    pub(crate) fn usual(&self) -> usize {
        // Relaxed: as above.
        let class = hot::with(|hot| hot.enter(self.slot, |cache| cache.last_put().load(Ordering::Relaxed)));
        class.map_or(self.smallest(), |class| class::size(class as usize))
    }

    /// A block leaves the pool as the memory of a vector.
    ///
    /// # Safety
    /// The block is the caller's and of this pool, which the caller does not use any more but for a handle.
    pub(crate) unsafe fn let_go(pool: NonNull<Self>, class: usize, block: NonNull<u8>) {
        // SAFETY: the block's reference keeps the pool alive until here.
        let this = unsafe { pool.as_ref() };
        this.disown(class, block);
        this.account.release(this.sizes[class]);
        // SAFETY: the block's reference.
        unsafe { Self::release(pool) };
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
            peak_held_bytes: account.peak(),
            in_use_bytes: held_bytes - idle_bytes,
            idle_bytes,
            idle_buffers,
            pinned_bytes: account.pinned.load(Ordering::Relaxed),
            unpinned_bytes: account.unpinned.load(Ordering::Relaxed),
            threads: guarded.caches.len(),
            max_bytes: Some(account.limit()).filter(|&limit| limit != usize::MAX),
        }
    }

    // ---- giving back

    /// Gives a block back that found no place in the thread's cache.
    ///
    /// # Safety
    /// The block is the caller's, of this pool and class, and its reference keeps the pool alive until here.
    #[cold]
    pub(crate) unsafe fn put_back(pool: NonNull<Self>, class: usize, block: NonNull<u8>) {
        // SAFETY: the caller's promise; from here on by a reference of this call, since the block may be freed by
        // another thread as soon as it stands in a shard.
        let this = unsafe { pool.as_ref() };
        this.retain();
        if let Some(block) = hot::with(|hot| this.keep(hot, class, block)) {
            // SAFETY: it found no place, so it is still ours alone.
            unsafe { this.free(class, block) };
        }
        // SAFETY: the reference from above.
        unsafe { Self::release(pool) };
    }

    /// Keeps a block, in the thread's cache or in its shard; gives it if there is no room.
    fn keep(&self, hot: &Hot, class: usize, block: NonNull<u8>) -> Option<NonNull<u8>> {
        self.attach(hot);
        let mut locked = self.shard_of(hot).lock();
        let room = locked.room(self.options.max_buffers_per_shard);
        locked.reserve(class, hot.enter(self.slot, |cache| cache.batch(class)).unwrap_or(1));
        // With the lock held, as in `take_shelved`. Nothing is allocated inside: `reserve` made room.
        let kept = hot.enter(self.slot, |cache| {
            // SAFETY: `enter` gives the cache to this thread alone, and the block is ours.
            if unsafe { cache.push(class, block) } {
                return true;
            }
            for _ in 0..cache.batch(class).min(room) {
                // SAFETY: as above.
                let Some(older) = (unsafe { cache.pop(class) }) else { break };
                locked.push(class, older);
            }
            // SAFETY: as above.
            unsafe { cache.push(class, block) }
        });
        if kept == Some(true) {
            return None;
        }
        if room == 0 {
            return Some(block);
        }
        locked.push(class, block);
        None
    }

    /// Puts the blocks of a cache that is no more into shards; gives those for which there is no room.
    pub(crate) fn shelve(&self, hot: &Hot, cache: &Cache, blocks: Spares) -> Spares {
        let shard = self.shard_of(hot);
        // Relaxed: a figure.
        shard.former_hits.fetch_add(cache.hits(), Ordering::Relaxed);
        let mut left = Vec::new();
        let mut locked = shard.lock();
        for (class, block) in blocks {
            if locked.room(self.options.max_buffers_per_shard) > 0 {
                locked.push(class, block);
            } else {
                left.push((class, block));
            }
        }
        left
    }

    /// Empties the caches of all threads into the calling thread's shard, and gives them back to their threads.
    pub(crate) fn gather(&self, registry: &mut Registry, hot: &Hot) {
        let mut blocks = Vec::new();
        let Guarded { caches, closed: false, .. } = self.guarded(registry) else { return };
        let sink = |class, block| blocks.push((class, block));
        // SAFETY: under the registry's lock; threads that end take their entries out under it.
        unsafe { hot::take_back(caches, self.slot, hot, true, fence::heavy, sink) };
        let mut locked = self.shard_of(hot).lock();
        for (class, block) in blocks {
            // Beyond `max_buffers_per_shard` for a while: whoever gathers is about to free or to fork.
            locked.push(class, block);
        }
    }

    /// In a fork's child: the threads of other caches are not there, and what is pinned there is not pinned here.
    pub(crate) fn forget_other_threads(&self, registry: &mut Registry, hot: &Hot) {
        let guarded = self.guarded(registry);
        guarded.caches.retain(|one| ptr::eq(one.hot.as_ptr(), hot));
        // Relaxed: this is the child's only thread.
        let pinned = self.account.pinned.swap(0, Ordering::Relaxed);
        self.account.unpinned.fetch_add(pinned, Ordering::Relaxed);
        self.pinned_blocks().clear();
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
}
