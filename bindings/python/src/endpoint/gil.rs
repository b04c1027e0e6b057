//! State of Python objects that changes in one thread at a time: in the one that has the interpreter lock; on a free-threaded
//! interpreter, which has none, in the one that has the value's own lock.
//!
//! A lock of a value is held for a few instructions, by [`Gil::with`] alone. So a thread that waits for one never waits for
//! Python, and the garbage collector, which stops all threads, never meets one that is held by a thread it has stopped.

#[cfg(not(Py_GIL_DISABLED))]
use std::cell::UnsafeCell;
#[cfg(Py_GIL_DISABLED)]
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// A value that changes in one thread at a time.
#[cfg(not(Py_GIL_DISABLED))]
#[derive(Default)]
pub(crate) struct Gil<T>(UnsafeCell<T>);

// SAFETY: the methods are called with the interpreter lock held (only pyo3's own entry points lead here), and keep no
// reference beyond the call.
#[cfg(not(Py_GIL_DISABLED))]
unsafe impl<T: Send> Sync for Gil<T> {}

#[cfg(not(Py_GIL_DISABLED))]
impl<T> Gil<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Runs `change`, which neither gives the interpreter lock up, nor calls back into Python, nor waits.
    #[inline(always)]
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: under the interpreter lock, and no reference to the value exists: what `change` promises keeps this the
        // only one.
        change(unsafe { &mut *self.0.get() })
    }
}

/// A value that changes in one thread at a time.
#[cfg(Py_GIL_DISABLED)]
#[derive(Default)]
pub(crate) struct Gil<T>(Mutex<T>);

#[cfg(Py_GIL_DISABLED)]
impl<T> Gil<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Runs `change`, which neither detaches from the interpreter, nor calls back into Python, nor waits.
    #[inline(always)]
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Gil<T> {
    #[inline(always)]
    pub(crate) fn set(&self, value: T) {
        self.replace(value);
    }

    /// The old value, which its caller drops: that can run anything.
    #[inline(always)]
    pub(crate) fn replace(&self, value: T) -> T {
        self.with(|old| std::mem::replace(old, value))
    }
}

impl<T: Copy> Gil<T> {
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        self.with(|value| *value)
    }
}

/// A `Gil<bool>` that takes no lock. Two threads each store one flag and then load the other's: at least one of them sees what the
/// other has stored.
#[derive(Default)]
pub(crate) struct Flag(#[cfg(not(Py_GIL_DISABLED))] Gil<bool>, #[cfg(Py_GIL_DISABLED)] AtomicBool);

#[cfg(not(Py_GIL_DISABLED))]
impl Flag {
    #[inline(always)]
    pub(crate) fn get(&self) -> bool {
        self.0.get()
    }

    #[inline(always)]
    pub(crate) fn replace(&self, value: bool) -> bool {
        self.0.replace(value)
    }
}

#[cfg(Py_GIL_DISABLED)]
impl Flag {
    #[inline(always)]
    pub(crate) fn get(&self) -> bool {
        // SeqCst: in one order with what is stored in other flags, as the type says.
        self.0.load(Ordering::SeqCst)
    }

    #[inline(always)]
    pub(crate) fn replace(&self, value: bool) -> bool {
        // SeqCst: as above.
        self.0.swap(value, Ordering::SeqCst)
    }
}

impl Flag {
    #[inline(always)]
    pub(crate) fn set(&self, value: bool) {
        self.replace(value);
    }
}
