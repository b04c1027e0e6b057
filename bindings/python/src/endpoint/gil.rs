//! State of Python objects, ordered by the interpreter lock.

use std::cell::UnsafeCell;

/// A value that changes only under the interpreter lock.
#[derive(Default)]
pub(crate) struct Gil<T>(UnsafeCell<T>);

// SAFETY: the methods are called with the interpreter lock held (only pyo3's own entry points lead here), and keep no
// reference beyond the call.
unsafe impl<T: Send> Sync for Gil<T> {}

impl<T> Gil<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: T) {
        self.replace(value);
    }

    #[inline(always)]
    pub(crate) fn replace(&self, value: T) -> T {
        // SAFETY: under the interpreter lock, and no reference to the old value exists.
        std::mem::replace(unsafe { &mut *self.0.get() }, value)
    }

    /// Runs `change`, which neither gives the interpreter lock up nor calls back into Python.
    #[inline(always)]
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: as above; what `change` promises keeps this the only reference.
        change(unsafe { &mut *self.0.get() })
    }
}

impl<T: Copy> Gil<T> {
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        // SAFETY: under the interpreter lock.
        unsafe { *self.0.get() }
    }
}
