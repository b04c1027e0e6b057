//! What one thread uses at a time, and is told so if it does not.

use crate::status::{Failure, Outcome};
use ramway_core::{ErrorKind, SelectWaker};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle's inside, whose calls may last: another thread's call meanwhile is `RAMWAY_BUSY`, but for the waker.
#[derive(Debug)]
pub(crate) struct Exclusive<T> {
    in_use: AtomicBool,
    /// The process that made it.
    process: u32,
    waker: SelectWaker,
    inside: UnsafeCell<T>,
}

/// The use of an [`Exclusive`], which ends when dropped.
#[derive(Debug)]
pub(crate) struct Entered<'a, T> {
    of: &'a Exclusive<T>,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(inside: T, waker: SelectWaker) -> Self {
        Self { in_use: AtomicBool::new(false), process: std::process::id(), waker, inside: UnsafeCell::new(inside) }
    }

    #[inline]
    pub(crate) fn enter(&self, what: &str) -> Outcome<Entered<'_, T>> {
        // Acquire: sees what the last user did. It pairs with the release when that one went.
        if self.in_use.swap(true, Ordering::Acquire) {
            return Err(self.why_not(what));
        }
        Ok(Entered { of: self })
    }

    #[cold]
    fn why_not(&self, what: &str) -> Failure {
        if self.is_of_parent() {
            // A thread of the parent was using it during the fork: its inside is halfway through something.
            return ErrorKind::Detached.into();
        }
        let text = format!(
            "{what} is in use: by another thread, or by the call whose callback this is; one thread at a time may use it"
        );
        Failure::Own(crate::status::ramway_status::RAMWAY_BUSY, text)
    }

    fn is_of_parent(&self) -> bool {
        std::process::id() != self.process
    }

    /// Ends the wait of the thread that uses it now, or else the next one. Any thread.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Frees what [`Box::into_raw`] gave. Nothing happens if somebody uses it.
    ///
    /// # Safety
    /// `this` came from `Box::into_raw` and is not freed; after success nobody uses it again.
    pub(crate) unsafe fn free(this: *mut Self, what: &str) -> Outcome {
        // SAFETY: the caller's.
        let shared = unsafe { &*this };
        match shared.enter(what) {
            Ok(entered) => {
                std::mem::forget(entered);
                // SAFETY: the caller's; this thread is the only user, and the guard that would end that is forgotten.
                drop(unsafe { Box::from_raw(this) });
            }
            // What is halfway through something is not dropped: its memory goes with the child.
            Err(_) if shared.is_of_parent() => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `in_use` was false when this one entered, and is true until it goes: nobody else reaches the inside.
        unsafe { &*self.of.inside.get() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.of.inside.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: the next user sees what this one did.
        self.of.in_use.store(false, Ordering::Release);
    }
}
