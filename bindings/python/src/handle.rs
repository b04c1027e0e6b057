//! One core end behind a Python object: used by one thread at a time, and gone once it is closed.
//!
//! The interpreter lock orders everything here: fields change only while it is held. A call that waits gives it up while
//! it uses the end, which is then marked as being in use. Closing does not wait for such a call: it ends its wait, and
//! the call releases the end when it leaves ([`Using`]).

use crate::errors::{error, is};
use pyo3::prelude::*;
use ramway::{ErrorKind, Waker};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

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

/// A core end.
pub(crate) struct Handle<T> {
    busy: Gil<bool>,
    /// Closed, as far as callers can tell; the end may still be there, for the views of its messages.
    shut: Gil<bool>,
    /// `None` once it was taken. Touched by whoever set `busy`, and by nobody else.
    end: UnsafeCell<Option<T>>,
    /// "sender", "receiver", and of what: for the texts of errors.
    what: &'static str,
    name: Option<String>,
    /// Ends the wait of the thread that uses the end. Keeps a page mapped, and goes with the end.
    waker: Gil<Option<Waker>>,
    /// Whose it is: in a fork's child nobody ends the calls that other threads were in.
    process: u32,
}

// SAFETY: `end` is used only between setting and clearing `busy`, which happens under the interpreter lock.
unsafe impl<T: Send> Sync for Handle<T> {}

impl<T> Handle<T> {
    pub(crate) fn new(end: T, waker: Waker, what: &'static str, name: Option<String>) -> Self {
        Self {
            busy: Gil::new(false),
            shut: Gil::new(false),
            end: UnsafeCell::new(Some(end)),
            what,
            name,
            waker: Gil::new(Some(waker)),
            process: std::process::id(),
        }
    }

    /// The end, for as long as the guard lives, across a release of the interpreter lock too.
    #[inline(always)]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Entered<'_, T>> {
        if self.busy.get() || self.shut.get() {
            return Err(self.cannot(py));
        }
        // SAFETY: not busy, so nobody else has a reference.
        match unsafe { &mut *self.end.get() } {
            Some(end) => {
                self.busy.set(true);
                Ok(Entered { end, busy: &self.busy })
            }
            None => Err(self.cannot(py)),
        }
    }

    /// The end, also when it is shut, unless it was taken or another thread uses it just now.
    #[inline(always)]
    pub(crate) fn try_enter(&self) -> Option<Entered<'_, T>> {
        if self.busy.get() {
            return None;
        }
        // SAFETY: as in `enter`.
        let end = unsafe { &mut *self.end.get() }.as_mut()?;
        self.busy.set(true);
        Some(Entered { end, busy: &self.busy })
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.shut.get()
    }

    /// Open, and not the parent's of a fork.
    pub(crate) fn is_ours(&self) -> bool {
        !self.shut.get() && !self.is_inherited()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// From now on every call is told that the handle is closed, also one that waits. False if it was shut before.
    pub(crate) fn shut(&self) -> bool {
        let first = !self.shut.replace(true);
        if first && self.busy.get() {
            self.waker.with(|waker| waker.as_ref().map(Waker::wake));
        }
        first
    }

    /// For a call that waits, between two rounds: `Detached` if the handle was shut meanwhile.
    pub(crate) fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.shut.get() { Err(self.cannot(py)) } else { Ok(()) }
    }

    /// The end itself, once; `None` while a thread uses it.
    pub(crate) fn take(&self) -> Option<T> {
        if self.busy.get() {
            return None;
        }
        self.waker.set(None);
        // SAFETY: as in `enter`.
        unsafe { &mut *self.end.get() }.take()
    }

    /// The error of a wait; a time-out says what did not come, and where.
    #[cold]
    pub(crate) fn missing(&self, py: Python<'_>, cause: PyErr, what: &str) -> PyErr {
        if !is(py, &cause, ErrorKind::TimedOut) {
            return cause;
        }
        let whose = self.name.as_ref().map_or_else(String::new, |name| format!(" of '{name}'"));
        error(py, ErrorKind::TimedOut, format!("this {}{whose} had {what} within the time", self.what))
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    #[cold]
    pub(crate) fn cannot(&self, py: Python<'_>) -> PyErr {
        let what = match &self.name {
            Some(name) => format!("{} of '{name}'", self.what),
            None => self.what.to_owned(),
        };
        if self.shut.get() {
            error(py, ErrorKind::Detached, format!("this {what} is closed"))
        } else if self.is_inherited() {
            error(py, ErrorKind::Detached, format!("this {what} was inherited across a fork: it is the parent's"))
        } else {
            let text = format!("another thread is in a call of this {what}, which only one at a time may use");
            error(py, ErrorKind::Busy, text)
        }
    }
}

/// Exclusive use of an end.
pub(crate) struct Entered<'a, T> {
    end: &'a mut T,
    busy: &'a Gil<bool>,
}

impl<T> Drop for Entered<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.busy.set(false);
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        self.end
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.end
    }
}

/// An object with an end, which can be closed while a call uses the end.
pub(crate) trait Owner {
    type End;

    fn handle(&self) -> &Handle<Self::End>;

    /// Nobody uses the end of a handle that is shut: releases it, unless something else keeps it.
    fn left(&self);
}

/// Exclusive use of an owner's end, after which the end goes if the handle was closed meanwhile.
pub(crate) struct Using<'a, O: Owner> {
    /// Goes first: then nobody uses the end.
    entered: Entered<'a, O::End>,
    _leaving: Leaving<'a, O>,
}

struct Leaving<'a, O: Owner>(&'a O);

impl<O: Owner> Drop for Leaving<'_, O> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.handle().is_shut() {
            self.0.left();
        }
    }
}

impl<'a, O: Owner> Using<'a, O> {
    #[inline(always)]
    pub(crate) fn of(owner: &'a O, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { entered: owner.handle().enter(py)?, _leaving: Leaving(owner) })
    }
}

impl<O: Owner> Deref for Using<'_, O> {
    type Target = O::End;
    #[inline(always)]
    fn deref(&self) -> &O::End {
        &self.entered
    }
}

impl<O: Owner> DerefMut for Using<'_, O> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut O::End {
        &mut self.entered
    }
}
