//! What comes back and found no place in the thread's cache; vectors that come and go.

use super::{Guarded, Inner, Spares};
use crate::block::Block;
use crate::cache::Cache;
use crate::class;
use crate::hot::{self, Hot};
use crate::registry::Registry;
use crate::shard::Locked;
use crate::sys::{fence, memory};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

impl Inner {
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
    pub(super) fn keep(&self, hot: &Hot, class: usize, block: NonNull<u8>) -> Option<NonNull<u8>> {
        self.attach(hot);
        let mut locked = self.shard_of(hot).lock();
        let room = locked.room(self.options.max_buffers_per_shard);
        let batch = hot.enter(self.slot, |cache| cache.batch(class)).unwrap_or(0);
        locked.reserve(class, batch + 1);
        // With the lock held, as in `take_shelved`. Nothing is allocated inside: `reserve` made room.
        let kept = hot.enter(self.slot, |cache| {
            // SAFETY: `enter` gives the cache to this thread alone, and the block is ours.
            if unsafe { cache.push(class, block) } {
                return true;
            }
            for _ in 0..batch.min(room) {
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

    /// Empties the caches of all threads into the calling thread's shard, and gives them back to their threads. Who is not
    /// `patient` leaves out those that would have to be waited for.
    pub(crate) fn gather(&self, registry: &mut Registry, hot: &Hot, patient: bool) {
        let mut blocks = Vec::new();
        let Guarded { caches, closed: false, .. } = self.guarded(registry) else { return };
        let sink = |class, block| blocks.push((class, block));
        if patient {
            // SAFETY: under the registry's lock; threads that end take their entries out under it.
            unsafe { hot::take_back(caches, self.slot, hot, true, fence::heavy, sink) };
        } else {
            // SAFETY: as above.
            unsafe { hot::take_what_can_be_had(caches, self.slot, hot, fence::heavy, sink) };
        }
        let mut locked = self.shard_of(hot).lock();
        for (class, block) in blocks {
            // Beyond `max_buffers_per_shard` for a while: the caller is about to free them or to fork.
            locked.push(class, block);
        }
    }

    /// Empties the caches of all threads and locks all shards: until [`go_on`](Self::go_on) nothing idle moves, and
    /// who wants a block or brings one waits.
    pub(crate) fn stop(&self, registry: &mut Registry, hot: &Hot) -> Vec<Locked<'_>> {
        let mut blocks = Vec::new();
        // Caches that outlived the last handle are left to the ends of their threads.
        if let Guarded { caches, closed: false, .. } = self.guarded(registry) {
            let sink = |class, block| blocks.push((class, block));
            // SAFETY: under the registry's lock; threads that end take their entries out under it.
            unsafe { hot::take_back(caches, self.slot, hot, false, fence::heavy, sink) };
        }
        let mut shards = self.lock_shards();
        blocks.into_iter().for_each(|(class, block)| shards[0].push(class, block));
        shards
    }

    /// Gives the caches back to their threads.
    pub(crate) fn go_on(&self, registry: &mut Registry) {
        for one in &self.guarded(registry).caches {
            // SAFETY: a thread whose cache is in the list lives.
            unsafe { one.hot.as_ref() }.install(self.slot, one.cache);
        }
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
        // What it held is not kept, and it would not be shrunk below its length.
        vector.clear();
        if this.options.zero_on_return {
            // Before it is shrunk: what is cut off goes back to the allocator.
            // SAFETY: a vector with a capacity has memory, and of its own nothing is said to be initialised any more.
            unsafe { memory::zero(Block { ptr: NonNull::new_unchecked(vector.as_mut_ptr()), cap }) };
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
        // Relaxed: a figure.
        this.account.adopted.fetch_add(1, Ordering::Relaxed);
        this.account.settle();
        this.retain();
        this.set_usual(class);
        hot::with(|hot| {
            // SAFETY: the block is ours and of this pool; the pool has a handle.
            if !unsafe { hot.push(this.slot, class, block) } {
                // SAFETY: as above.
                unsafe { Self::put_back(pool, class, block) };
            }
        });
    }

    /// Remembers what `take` is to look for.
    pub(super) fn set_usual(&self, class: usize) {
        // Relaxed: a guess. Written only where it changes, so that threads which put alike share the line.
        if self.usual.load(Ordering::Relaxed) != class {
            self.usual.store(class, Ordering::Relaxed);
        }
    }

    /// What `take` is to look for.
    pub(crate) fn usual(&self) -> usize {
        // Relaxed: a guess.
        self.usual.load(Ordering::Relaxed)
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
}
