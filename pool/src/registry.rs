//! What all pools and threads of the process share: which pool has which slot, and one lock under which caches are put
//! into slots and taken out of them. Lock order: this one, then a shard's. Nobody waits for it inside of a cache.

use crate::cache::Cache;
use crate::hot::{self, Attached, Hot, NO_SLOT};
use crate::inner::Inner;
use crate::shard::Locked;
use crate::sys::fork;
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// The pools of the process. Holding it (`&mut`) is the right to look into what [`Inner::guarded`] gives.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Pools that own a block or have a handle. Those with a slot other than [`NO_SLOT`] have one each.
    pools: Vec<NonNull<Inner>>,
}

// SAFETY: a pool stands in here from its making until right before it is freed, and the lock is held for both.
unsafe impl Send for Registry {}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { pools: Vec::new() });

pub(crate) fn lock() -> MutexGuard<'static, Registry> {
    // Nothing panics halfway through a change, so a poisoned registry is whole.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// A slot that no pool has, or [`NO_SLOT`].
    pub(crate) fn free_slot(&self) -> usize {
        (0..NO_SLOT).find(|&slot| self.with_slot(slot).is_none()).unwrap_or(NO_SLOT)
    }

    pub(crate) fn add(&mut self, pool: NonNull<Inner>) {
        self.pools.push(pool);
    }

    pub(crate) fn remove(&mut self, pool: NonNull<Inner>) {
        self.pools.retain(|&one| one != pool);
    }

    fn with_slot(&self, slot: usize) -> Option<NonNull<Inner>> {
        // SAFETY: pools in the list are alive.
        self.pools.iter().copied().find(|pool| unsafe { pool.as_ref() }.slot() == slot)
    }
}

/// Has the end of the calling thread heard of; `false` if that cannot be had. By a key of the C library's and not by a
/// thread-local: keys' destructors run after those of thread-locals, and run again for what other keys' destructors set.
fn hear_of_the_end() -> bool {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    unsafe extern "C" fn end(_: *mut libc::c_void) {
        hot::with(end_of_thread);
    }
    let made = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `end` may be called with any value on any thread that ends.
        (unsafe { libc::pthread_key_create(&mut key, Some(end)) } == 0).then_some(key)
    });
    // SAFETY: the key is made and never deleted; its value is only not null.
    made.is_some_and(|key| unsafe { libc::pthread_setspecific(key, NonNull::<u8>::dangling().as_ptr().cast()) } == 0)
}

/// Gives the calling thread a cache of this pool, unless it has one or is ending.
#[cold]
pub(crate) fn attach(pool: &Inner, hot: &Hot) {
    if hot.life() == hot::FRESH {
        hot.set_life(if hear_of_the_end() { hot::ENDS } else { hot::ENDED });
    }
    if hot.life() == hot::ENDED {
        return;
    }
    let mut registry = lock();
    let guarded = pool.guarded(&mut registry);
    // A cache that somebody was just taking away is back, now that the lock is ours.
    if guarded.closed || hot.has(pool.slot()) {
        return;
    }
    let cache = NonNull::from(Box::leak(pool.new_cache()));
    guarded.caches.push(Attached { hot: NonNull::from(hot), cache });
    hot.set_attached(pool.slot(), true);
    hot.install(pool.slot(), cache);
}

/// Gives back what the calling thread has in its caches.
fn end_of_thread(hot: &Hot) {
    hot.set_life(hot::ENDED);
    let mut left = Vec::new();
    let mut registry = lock();
    for slot in (0..NO_SLOT).filter(|&slot| hot.has(slot)) {
        let Some(pool) = registry.with_slot(slot) else { continue };
        // SAFETY: it is in the list, so it is alive.
        let inner = unsafe { pool.as_ref() };
        let guarded = inner.guarded(&mut registry);
        let Some(at) = guarded.caches.iter().position(|one| ptr::eq(one.hot.as_ptr(), hot)) else { continue };
        // Until `left` is done. A cache that outlived its pool's last handle has a reference already, see `close`.
        if !guarded.closed {
            inner.retain();
        }
        let one = guarded.caches.swap_remove(at);
        let mut blocks = Vec::new();
        // SAFETY: under the lock, and the only cache is this thread's own.
        unsafe { hot::take_back(&[one], slot, hot, false, || true, |class, block| blocks.push((class, block))) };
        // SAFETY: taken out of its slot and of the list, so nobody else has it; it came from a box.
        let cache = unsafe { Box::from_raw(one.cache.as_ptr()) };
        left.push((pool, inner.shelve(hot, &cache, blocks)));
    }
    drop(registry);
    for (pool, blocks) in left {
        for (class, block) in blocks {
            // SAFETY: what found no place in a shard is nobody's, and the reference keeps the pool alive.
            unsafe { pool.as_ref().free(class, block) };
        }
        // SAFETY: the reference from above, and the pool is not used any more.
        unsafe { Inner::release(pool) };
    }
}

/// What a fork holds between `prepare` and `parent` or `child`.
struct Forking {
    /// Dropped first: the locks' order, backwards.
    _pinned: Vec<MutexGuard<'static, HashSet<usize>>>,
    _shards: Vec<Locked<'static>>,
    registry: MutexGuard<'static, Registry>,
}

struct Held(UnsafeCell<Option<Forking>>);

// SAFETY: touched only by the thread that holds the registry's lock.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// Has every fork find the pools at rest, from the first pool on.
pub(crate) fn heed_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| fork::install(before_fork, after_fork_in_parent, after_fork_in_child));
}

/// Takes the caches of all threads back, since the child will have only one thread, and holds every lock, so that the
/// child finds none that a vanished thread holds.
extern "C" fn before_fork() {
    let mut registry = lock();
    let pools = registry.pools.clone();
    let (mut shards, mut pinned) = (Vec::new(), Vec::new());
    for pool in pools {
        // SAFETY: in the list, and taken out of it only under the lock, which this thread holds until the fork is done.
        let pool: &'static Inner = unsafe { pool.as_ref() };
        shards.extend(hot::with(|hot| pool.stop(&mut registry, hot)));
        pinned.push(pool.pinned_blocks());
    }
    // SAFETY: this thread holds the registry's lock.
    unsafe { *HELD.0.get() = Some(Forking { _pinned: pinned, _shards: shards, registry }) };
}

extern "C" fn after_fork_in_parent() {
    go_on(|_| {});
}

extern "C" fn after_fork_in_child() {
    go_on(|(pool, registry)| hot::with(|hot| pool.forget_other_threads(registry, hot)));
}

/// Lets the pools go on, after `each` of them was told.
fn go_on(each: impl Fn((&Inner, &mut Registry))) {
    // SAFETY: this thread has held the registry's lock since `before_fork`; in the child it is the only one.
    let Some(forking) = (unsafe { (*HELD.0.get()).take() }) else { return };
    let Forking { _pinned: pinned, _shards: shards, mut registry } = forking;
    drop(pinned);
    drop(shards);
    for pool in registry.pools.clone() {
        // SAFETY: in the list, so alive.
        let pool = unsafe { pool.as_ref() };
        each((pool, &mut registry));
        pool.go_on(&mut registry);
    }
}

/// A cache that is taken out of its slot and of its pool's list.
///
/// # Safety
/// Nobody else has it.
pub(crate) unsafe fn free_cache(cache: NonNull<Cache>) {
    // SAFETY: `attach` leaked a box.
    drop(unsafe { Box::from_raw(cache.as_ptr()) });
}
