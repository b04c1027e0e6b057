//! How a thread gets at its caches without an atomic operation, and how others take a cache away from it.
//!
//! A thread says in `busy` that it is inside, and then checks that the cache is still its own. A thread that takes the
//! cache away says so in the slot, and then checks whether the owner is inside. One of the two sees the other, if each side's
//! write comes before its read: for the thread the compiler keeps that order, and the processor need not, because the
//! other side runs `membarrier` in between, a full barrier on every processor that runs this process. (Asymmetric fences
//! as in hazard pointers and `membarrier(2)`; a fence on this side would double the cost of a get.)

use crate::cache::Cache;
use crate::class::CLASSES;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, Step, ordered, owner_barrier};
use std::ptr::{self, NonNull};

/// Slots of a thread: as many pools can have caches at a time, less one.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };

/// The slot of pools that have no caches: always empty.
pub(crate) const NO_SLOT: usize = SLOTS - 1;

/// What a thread has: its caches, by the slot of their pool.
#[derive(Debug)]
pub struct Hot {
    /// 1 while the thread is inside one of its caches. Written by the thread only.
    busy: AtomicU32,
    /// The number of the thread, from 1; 0 until it needs one. Written by the thread only.
    thread: AtomicU32,
    /// [`FRESH`], [`ENDS`] or [`ENDED`]. Written by the thread only.
    life: AtomicU32,
    /// Bit `slot`: whether the thread has a cache there, also while it is being taken away. Written under the registry's
    /// lock.
    attached: std::sync::atomic::AtomicU64,
    /// Null where the thread has no cache of that pool, or where it is just being taken away. Written only under the
    /// registry's lock.
    slots: [AtomicPtr<Cache>; SLOTS],
}

/// Nobody will hear of the thread's end yet.
pub(crate) const FRESH: u32 = 0;
/// The thread's end will give its caches back.
pub(crate) const ENDS: u32 = 1;
/// The thread has given its caches back, and gets none any more.
pub(crate) const ENDED: u32 = 2;

impl Hot {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self {
            busy: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            life: AtomicU32::new(FRESH),
            attached: std::sync::atomic::AtomicU64::new(0),
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS],
        }
    }

    /// A thread of a model.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            busy: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            life: AtomicU32::new(FRESH),
            attached: std::sync::atomic::AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Calls `inside` with the cache in this slot, which the thread has to itself until `inside` returns; `None` if it
    /// has none now. `inside` must not call anything that enters again, wait, or panic.
    ///
    /// `self` is the calling thread's own.
    #[inline(always)]
    pub fn enter<R>(&self, slot: usize, inside: impl FnOnce(&Cache) -> R) -> Option<R> {
        // Relaxed: the barrier below puts it before the load of the slot, and the taker's fence makes it seen.
        self.busy.store(1, Ordering::Relaxed);
        owner_barrier();
        // Acquire: a taker that gave the cache back has emptied it before (pairs with the Release in `take_back`).
        let cache = self.slots[slot % SLOTS].load(ordered(Step::GiveBack, Ordering::Acquire));
        // SAFETY: who clears the slot waits until this thread is outside before it touches or frees the cache.
        let result = unsafe { cache.as_ref() }.map(inside);
        // Release: a thread that sees this one outside sees what it did inside (pairs with the Acquire in `outside`).
        self.busy.store(0, ordered(Step::Leave, Ordering::Release));
        result
    }

    /// A block of this class from the cache in this slot.
    #[inline(always)]
    pub fn get(&self, slot: usize, class: usize) -> Option<NonNull<u8>> {
        if class >= CLASSES {
            return None;
        }
        // SAFETY: `enter` gives the cache to this thread alone, and the class is checked.
        self.enter(slot, |cache| unsafe { cache.get(class) }).flatten()
    }

    /// Keeps a block in the cache in this slot; `false` if it has no place for it.
    ///
    /// # Safety
    /// The block is the caller's, of the pool that has this slot, and the cache's if kept.
    #[inline(always)]
    pub unsafe fn push(&self, slot: usize, class: usize, block: NonNull<u8>) -> bool {
        // SAFETY: `enter` gives the cache to this thread alone; the mask keeps the class below CLASSES.
        self.enter(slot, |cache| unsafe { cache.push(class % CLASSES, block) }).unwrap_or(false)
    }

    /// Whether the thread is outside of all its caches. It stays inside for some nanoseconds, unless it loses its processor
    /// there; then a `patient` caller waits until it has one again, and another one hears `false`.
    fn outside(&self, patient: bool) -> bool {
        // Acquire: pairs with the Release at the end of `enter`.
        let inside = || self.busy.load(ordered(Step::TakerLoad, Ordering::Acquire)) != 0;
        let mut checks = 0;
        while inside() {
            if !patient && checks == SOON {
                return false;
            }
            pause(checks);
            checks += 1;
        }
        true
    }

    /// The cache in a slot. `None` while it is being taken away, too.
    pub fn has(&self, slot: usize) -> bool {
        // Relaxed: only whether there is one.
        !self.slots[slot].load(Ordering::Relaxed).is_null()
    }

    /// Whether the thread has a cache in a slot, also while it is being taken away.
    pub fn is_attached(&self, slot: usize) -> bool {
        // Relaxed, here and below: written under the registry's lock, and read by the thread itself, to which a late
        // answer costs a check under that lock or one get from a shard.
        self.attached.load(Ordering::Relaxed) & (1 << slot) != 0
    }

    /// Sets [`is_attached`](Self::is_attached).
    pub fn set_attached(&self, slot: usize, attached: bool) {
        let before = self.attached.load(Ordering::Relaxed);
        let after = if attached { before | 1 << slot } else { before & !(1 << slot) };
        self.attached.store(after, Ordering::Relaxed);
    }

    /// Puts a cache into an empty slot, or gives back one that was taken away.
    pub fn install(&self, slot: usize, cache: NonNull<Cache>) {
        // Release: the thread that finds the pointer finds the cache as it is now.
        self.slots[slot].store(cache.as_ptr(), ordered(Step::GiveBack, Ordering::Release));
    }

    /// The thread's number, from 0.
    pub fn thread(&self) -> usize {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        // Relaxed, all of them: a number that nobody else has, nothing more.
        let mut thread = self.thread.load(Ordering::Relaxed);
        if thread == 0 {
            thread = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).max(1);
            self.thread.store(thread, Ordering::Relaxed);
        }
        thread as usize - 1
    }

    /// What will become of the thread's caches when it ends.
    pub fn life(&self) -> u32 {
        // Relaxed: the thread's own word.
        self.life.load(Ordering::Relaxed)
    }

    /// Sets [`life`](Self::life).
    pub fn set_life(&self, life: u32) {
        // Relaxed: as above.
        self.life.store(life, Ordering::Relaxed);
    }
}

/// Checks after which a thread that is still inside has lost its processor.
const SOON: u32 = 100;

/// What to do between two checks.
fn pause(_checks: u32) {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    match _checks {
        ..SOON => std::hint::spin_loop(),
        SOON..200 => std::thread::yield_now(),
        // Yielding does not let a thread of lower real-time priority run.
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

/// A thread's cache of a pool, as the pool knows it.
#[derive(Clone, Copy, Debug)]
pub struct Attached {
    /// Of a thread that has not ended: its end takes the entry out.
    pub hot: NonNull<Hot>,
    /// It stands in that thread's slot, unless it is being taken away.
    pub cache: NonNull<Cache>,
}

// SAFETY: the pointers are followed only under the registry's lock, by the rules of `take_back`.
unsafe impl Send for Attached {}

/// Takes the caches in a slot away from their threads and empties them into `sink`. With `keep` they go back, empty;
/// else the slots stay empty, and the caches are the caller's. `fence` is a full barrier on every processor that runs
/// this process, or says `false`: then nothing is taken but what is `own`.
///
/// Waits for threads that lost their processor inside of a cache.
///
/// # Safety
/// The caller holds the lock under which slots are written, the threads live, and each cache stands in its thread's
/// slot. `own` is the calling thread's.
pub unsafe fn take_back(
    attached: &[Attached],
    slot: usize,
    own: &Hot,
    keep: bool,
    fence: impl FnOnce() -> bool,
    sink: impl FnMut(usize, NonNull<u8>),
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { take(attached, slot, own, keep, true, fence, sink) }
}

/// As [`take_back`] with `keep`, but leaves threads alone that lost their processor inside of a cache. (Eight threads on two
/// processors, of which each is inside for half of its time: who waited for them used half of a processor less.)
///
/// # Safety
/// As of [`take_back`].
pub unsafe fn take_what_can_be_had(
    attached: &[Attached],
    slot: usize,
    own: &Hot,
    fence: impl FnOnce() -> bool,
    sink: impl FnMut(usize, NonNull<u8>),
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { take(attached, slot, own, true, false, fence, sink) }
}

unsafe fn take(
    attached: &[Attached],
    slot: usize,
    own: &Hot,
    keep: bool,
    patient: bool,
    fence: impl FnOnce() -> bool,
    mut sink: impl FnMut(usize, NonNull<u8>),
) -> bool {
    let is_own = |one: &Attached| ptr::eq(one.hot.as_ptr(), own);
    for one in attached {
        // SAFETY: the thread lives. Relaxed: the fence puts it before the load of `busy`.
        unsafe { one.hot.as_ref() }.slots[slot].store(ptr::null_mut(), Ordering::Relaxed);
    }
    let fenced = attached.iter().all(is_own) || fence();
    for one in attached {
        // SAFETY: the thread lives.
        let hot = unsafe { one.hot.as_ref() };
        let ours = (fenced || is_own(one)) && hot.outside(patient);
        if ours {
            // SAFETY: the slot is empty and the thread outside, so it will not find the cache again: it is ours.
            unsafe { one.cache.as_ref().drain(&mut sink) };
        }
        // Where it is not ours the thread may be inside, and goes on as if nothing had happened.
        if keep || !ours {
            hot.install(slot, one.cache);
        }
    }
    fenced
}

#[cfg(not(loom))]
thread_local! {
    // `const` and without a destructor: reaching it is one address computation, and it can be reached until the thread
    // is gone, also from the destructors of other thread-locals.
    static HOT: Hot = const { Hot::new() };
}

/// Calls `f` with the calling thread's own.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Hot) -> R) -> R {
    HOT.with(f)
}
