//! What one thread uses at a time, and is told so if it does not.

use crate::status::{Failure, Outcome};
use ramway_core::{ErrorKind, SelectWaker};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What ends a wait from another thread.
pub(crate) trait Wakes {
    fn wake(&self);
}

impl Wakes for SelectWaker {
    fn wake(&self) {
        SelectWaker::wake(self);
    }
}

/// A handle's inside, whose calls may last: another thread's call meanwhile is `RAMWAY_BUSY`, but for the waker.
#[derive(Debug)]
pub(crate) struct Exclusive<T, W = SelectWaker> {
    in_use: AtomicBool,
    /// The thread whose callback runs, by [`this_thread`]; 0: none does.
    calls_back: AtomicUsize,
    /// The process that made it.
    process: u32,
    waker: W,
    inside: UnsafeCell<T>,
}

/// The use of an [`Exclusive`], which ends when dropped.
#[derive(Debug)]
pub(crate) struct Entered<'a, T, W = SelectWaker> {
    of: &'a Exclusive<T, W>,
    /// A call from a callback: the call that runs the callback goes on afterwards.
    is_nested: bool,
}

/// A number that no other living thread has; not 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl<T, W: Wakes> Exclusive<T, W> {
    pub(crate) fn new(inside: T, waker: W) -> Self {
        let (in_use, calls_back) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { in_use, calls_back, process: std::process::id(), waker, inside: UnsafeCell::new(inside) }
    }

    pub(crate) fn waker(&self) -> &W {
        &self.waker
    }

    #[inline]
    pub(crate) fn enter(&self, what: &str) -> Outcome<Entered<'_, T, W>> {
        // Acquire: sees what the last user did. It pairs with the release when that one went.
        if self.in_use.swap(true, Ordering::Acquire) {
            return Err(self.why_not(what));
        }
        Ok(Entered { of: self, is_nested: false })
    }

    /// [`enter`](Self::enter), also from a callback of a call on the same handle, which [`Entered::outside`] runs.
    #[inline]
    pub(crate) fn enter_nested(&self, what: &str) -> Outcome<Entered<'_, T, W>> {
        // Relaxed: a thread finds its own number only if it wrote it itself.
        if self.calls_back.load(Ordering::Relaxed) == this_thread() {
            return Ok(Entered { of: self, is_nested: true });
        }
        self.enter(what)
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

impl<T, W> Entered<'_, T, W> {
    /// Runs a callback, whose calls may [enter](Exclusive::enter_nested) meanwhile. Nothing borrows the inside then: `self` is
    /// borrowed mutably.
    pub(crate) fn outside<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let before = self.of.calls_back.swap(this_thread(), Ordering::Relaxed);
        let result = call();
        self.of.calls_back.store(before, Ordering::Relaxed);
        result
    }
}

impl<T, W> Deref for Entered<'_, T, W> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `in_use` was false when this one entered, and is true until it goes: nobody else reaches the inside. A nested
        // one is of the same thread, while the one that it is nested in runs a callback and borrows nothing.
        unsafe { &*self.of.inside.get() }
    }
}

impl<T, W> DerefMut for Entered<'_, T, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.of.inside.get() }
    }
}

impl<T, W> Drop for Entered<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        if self.is_nested {
            return;
        }
        // Release: the next user sees what this one did.
        self.of.in_use.store(false, Ordering::Release);
    }
}
