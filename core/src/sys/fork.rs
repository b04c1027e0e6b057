//! What a fork's child must know: its handles belong to the parent.
//!
//! A child inherits descriptors and mappings, but neither role nor lock: an unlock, a last-one-out or a second
//! producer from there would take away what the parent has. So the child's copies of lock descriptions and sockets
//! are closed before `fork` returns, each handle's state says `Detached`, and mappings are left alone.
//!
//! Only `fork()` of the C library runs these handlers. `vfork` and `posix_spawn` need none: an exec follows, and every
//! descriptor is CLOEXEC. A child made by the raw system call keeps the parent's locks alive until it ends.

use std::cell::UnsafeCell;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use crate::error::{ErrorKind, Result};

/// How many forks lie between this process and the first one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { slots: Vec::new(), free: Vec::new(), hooks: Vec::new() });
static INSTALL: Once = Once::new();

struct Registry {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    hooks: Vec<fn()>,
}

struct Slot {
    fds: Vec<RawFd>,
    detached: *const AtomicBool,
    states: Vec<*const AtomicU32>,
}

// SAFETY: the pointers are followed only in a fork's child, by its only thread; what they point to is atomic and, by
// the contracts of `Entry` and `Watch`, outlives its registration.
unsafe impl Send for Slot {}

fn registry() -> MutexGuard<'static, Registry> {
    // Nothing in here panics halfway through a change, so a poisoned registry is whole.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registry's guard between `prepare` and `parent` or `child`, which run on the forking thread.
struct Held(UnsafeCell<Option<MutexGuard<'static, Registry>>>);

// SAFETY: touched only by the thread that holds the registry's mutex.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

extern "C" fn prepare() {
    let guard = registry();
    // SAFETY: this thread holds the mutex, so nobody else touches the cell.
    unsafe { *HELD.0.get() = Some(guard) };
}

extern "C" fn parent() {
    // SAFETY: as in `prepare`; taking the guard out unlocks last, when the cell is empty again.
    drop(unsafe { (*HELD.0.get()).take() });
}

/// Runs in the child before `fork` returns. Other threads may have held any lock, the allocator's too: only system
/// calls and atomic stores here, nothing is allocated or freed.
extern "C" fn child() {
    // Relaxed here and in the stores below: this is the child's only thread.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as in `prepare`: the forking thread is the child's only one and holds the mutex.
    let Some(guard) = (unsafe { (*HELD.0.get()).take() }) else { return };
    for slot in guard.slots.iter().flatten() {
        // SAFETY: `detached` lives in the entry, which is registered, so it is alive.
        if unsafe { (*slot.detached).swap(true, Ordering::Relaxed) } {
            // Inherited from further up: its descriptors are closed, and their numbers may be someone else's.
            continue;
        }
        for &fd in &slot.fds {
            // SAFETY: the entry owns this descriptor and will not close it again, because it is detached now.
            unsafe { libc::close(fd) };
        }
        for &state in &slot.states {
            // SAFETY: the caller of `watch` keeps the state alive as long as the watch.
            unsafe { (*state).store(ErrorKind::Detached as u32, Ordering::Relaxed) };
        }
    }
    for hook in &guard.hooks {
        hook();
    }
}

/// Installs the handlers, once per process. Everything that maps memory or registers an entry calls it first.
pub(crate) fn install() {
    INSTALL.call_once(|| {
        // SAFETY: the three handlers are sound whenever `fork` is called, see each of them. It fails only for lack of
        // memory; a fork's child is then not told, which the documentation of `fork` in the guides excludes.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

/// Changes in a fork's child: an owner that remembers another value was inherited.
pub(crate) fn generation() -> u32 {
    // Relaxed: it changes only inside `fork`, which orders everything.
    GENERATION.load(Ordering::Relaxed)
}

/// Has `hook` called in every fork's child, after the entries. It may only make system calls and atomic accesses.
pub(crate) fn on_child(hook: fn()) {
    install();
    registry().hooks.push(hook);
}

/// Descriptors that a fork's child must not keep, and who wants to know. Clones are the same entry; the drop of the
/// last one closes the descriptors.
#[derive(Clone, Debug)]
pub(crate) struct Entry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: usize,
    fds: Vec<RawFd>,
    /// Boxed apart from the `Arc`: its address is registered before the entry exists.
    detached: Box<AtomicBool>,
}

impl Entry {
    /// An entry for descriptors that are open already. A fork since they were opened has leaked them into the child
    /// until its exec: for descriptions that hold locks use [`Entry::open`].
    pub(crate) fn new(fds: Vec<OwnedFd>) -> Self {
        install();
        Self::register(&mut registry(), fds)
    }

    /// Runs `open`, which must not fork, block or make entries, with forks held off, so that no child can inherit its
    /// descriptors unregistered.
    pub(crate) fn open(open: impl FnOnce() -> Result<Vec<OwnedFd>>) -> Result<Self> {
        install();
        let mut registry = registry();
        Ok(Self::register(&mut registry, open()?))
    }

    /// One as a fork's child has it, with nothing that could be asked.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        let entry = Self::register(&mut registry(), Vec::new());
        entry.0.detached.store(true, Ordering::Relaxed);
        entry
    }

    fn register(registry: &mut Registry, fds: Vec<OwnedFd>) -> Self {
        let fds: Vec<RawFd> = fds.into_iter().map(IntoRawFd::into_raw_fd).collect();
        let detached = Box::new(AtomicBool::new(false));
        let slot = Slot { fds: fds.clone(), detached: &*detached, states: Vec::new() };
        let id = match registry.free.pop() {
            Some(id) => {
                registry.slots[id] = Some(slot);
                id
            }
            None => {
                registry.slots.push(Some(slot));
                registry.slots.len() - 1
            }
        };
        Self(Arc::new(Inner { id, fds, detached }))
    }

    /// Has [`ErrorKind::Detached`] stored into `state` in a fork's child, until the watch is dropped.
    ///
    /// # Safety
    /// `state` outlives the watch: it is followed in the child without another check.
    pub(crate) unsafe fn watch(&self, state: *const AtomicU32) -> Watch {
        if let Some(slot) = &mut registry().slots[self.0.id] {
            slot.states.push(state);
        }
        Watch { entry: self.clone(), state }
    }

    /// Whether this is a fork's child that inherited the entry.
    pub(crate) fn is_detached(&self) -> bool {
        // Relaxed: set inside `fork`, which orders everything.
        self.0.detached.load(Ordering::Relaxed)
    }

    /// Descriptor number `i`. Meaningless once detached: ask [`Entry::is_detached`] first.
    pub(crate) fn fd(&self, i: usize) -> BorrowedFd<'_> {
        debug_assert!(!self.is_detached());
        // SAFETY: the entry owns the descriptor and closes it only when the last clone goes.
        unsafe { BorrowedFd::borrow_raw(self.0.fds[i]) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The registry is locked while the descriptors close: between the two a fork would either close a number that
        // is someone else's by then, or leak a description whose locks would outlive this process.
        let mut registry = registry();
        registry.slots[self.id] = None;
        registry.free.push(self.id);
        // Relaxed: as in `is_detached`.
        if !self.detached.load(Ordering::Relaxed) {
            for &fd in &self.fds {
                // SAFETY: this entry owns the descriptor, and nobody else closes it in this process.
                unsafe { libc::close(fd) };
            }
        }
    }
}

/// A registered state word; see [`Entry::watch`].
#[derive(Debug)]
pub(crate) struct Watch {
    entry: Entry,
    state: *const AtomicU32,
}

// SAFETY: the pointer is only compared here; it is followed under the conditions of `Slot`.
unsafe impl Send for Watch {}
// SAFETY: as above.
unsafe impl Sync for Watch {}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(slot) = &mut registry().slots[self.entry.0.id]
            && let Some(at) = slot.states.iter().position(|&state| std::ptr::eq(state, self.state))
        {
            slot.states.swap_remove(at);
        }
    }
}
