//! One core end behind a Python object: used by one thread at a time, and gone once it is closed.
//!
//! The interpreter lock orders everything here: fields change only while it is held. A call that waits gives it up while
//! it uses the end, which is then marked as being in use. Closing does not wait for such a call: it ends its wait, and
//! the call releases the end when it leaves ([`Using`]).
//!
//! A free-threaded interpreter has no such lock. There every field has one of its own (`gil.rs`), and the mark says whose the end
//! is ([`InUse`]): who finds it in use leaves a note (that the handle is shut, what was given back), and who leaves it looks for
//! notes. Each of the two stores before it looks, so that one of them sees the other's.

mod calls;
mod end;
mod gil;
mod in_use;
mod shared;

pub(crate) use end::{CoreEnd, End, ReceiverEnd, Role, SenderEnd, either};
pub(crate) use gil::{Flag, Gil};
use in_use::InUse;
pub(crate) use shared::{Shared, shared_calls};

use crate::errors::{error, is};
use crate::waiting::FIRST_POLLS;
use crate::waiting::watch::Waits;
use pyo3::prelude::*;
use ramway::{ErrorKind, WaitPolicy, Waker};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;

/// A core end, and what the objects of both roles share; their methods are in `calls.rs`.
pub(crate) struct Endpoint<T> {
    busy: InUse,
    /// Closed, as far as callers can tell; the end may still be there, for the views of its messages.
    shut: Flag,
    /// `None` once it was taken. Used by the holder of `busy` alone.
    end: UnsafeCell<Option<T>>,
    /// For the texts of errors.
    role: &'static Role,
    name: Option<String>,
    /// Ends the wait of the thread that uses the end. Keeps a page mapped, and goes with the end.
    waker: Gil<Option<Waker>>,
    /// Whose it is: in a fork's child nobody ends the calls that other threads were in.
    process: u32,
    /// How blocking calls wait.
    pub(crate) policy: Gil<WaitPolicy>,
    /// Polls before a call gives the interpreter lock up: 1 where waiting does not begin with polling.
    pub(crate) first_polls: Gil<u32>,
    /// The task that waits for this end.
    pub(crate) waits: Waits,
    /// The readiness descriptor, once it was asked for.
    descriptor: Gil<Option<RawFd>>,
}

// SAFETY: `end` is used only between a `begin` of `busy` that said yes and its `end`, by one thread at a time.
unsafe impl<T: Send> Sync for Endpoint<T> {}

impl<T> Endpoint<T> {
    pub(crate) fn new(mut end: T, name: Option<String>, policy: WaitPolicy) -> Self
    where
        T: CoreEnd,
    {
        end.let_signals_interrupt();
        let (polls, waker, role) = (end.raw_endpoint().polls(), end.waker(), end.role());
        let new = Self {
            busy: InUse::default(),
            shut: Flag::default(),
            end: UnsafeCell::new(Some(end)),
            role,
            name,
            waker: Gil::new(Some(waker)),
            process: std::process::id(),
            policy: Gil::default(),
            first_polls: Gil::new(1),
            waits: Waits::default(),
            descriptor: Gil::default(),
        };
        new.wait_by(policy, polls);
        new
    }

    /// `polls`: whether waiting by this policy begins with polling.
    fn wait_by(&self, policy: WaitPolicy, polls: bool) {
        self.policy.set(policy);
        self.first_polls.set(if polls { FIRST_POLLS } else { 1 });
    }

    /// The end, for as long as the guard lives, across a release of the interpreter lock too.
    #[inline(always)]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Entered<'_, T>> {
        if self.shut.get() {
            return Err(self.refusal(py));
        }
        self.try_enter().ok_or_else(|| self.refusal(py))
    }

    /// The end, also when it is shut, unless it was taken or another thread uses it just now.
    #[inline(always)]
    pub(crate) fn try_enter(&self) -> Option<Entered<'_, T>> {
        if self.busy.begin() { self.entered() } else { None }
    }

    /// [`try_enter`](Self::try_enter) for what takes a few instructions and neither waits nor runs Python. It makes no other
    /// thread's call `Busy`: that waits until this is over.
    #[inline(always)]
    pub(crate) fn try_enter_briefly(&self) -> Option<Entered<'_, T>> {
        if self.busy.begin_briefly() { self.entered() } else { None }
    }

    /// The end for the one who has just begun to use it.
    #[inline(always)]
    fn entered(&self) -> Option<Entered<'_, T>> {
        // SAFETY: it was not in use, so nobody else has a reference.
        match unsafe { &mut *self.end.get() }.as_mut() {
            Some(end) => Some(Entered { end, busy: &self.busy }),
            None => {
                self.busy.end();
                None
            }
        }
    }

    #[inline(always)]
    pub(crate) fn is_shut(&self) -> bool {
        self.shut.get()
    }

    /// Whether a thread is in a call of it.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.is_in_call()
    }

    pub(crate) fn role(&self) -> &'static Role {
        self.role
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// From now on every call is `Detached`, also one that waits. False if it was shut before.
    pub(crate) fn shut(&self, py: Python<'_>) -> bool {
        let first = !self.shut.replace(true);
        if first {
            if self.busy.is_in_call() {
                self.waker.with(|waker| waker.as_ref().map(Waker::wake));
            }
            self.waits.close(py);
        }
        first
    }

    /// For a call that waits, after each poll interval: `Detached` if the handle was shut meanwhile.
    pub(crate) fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.shut.get() { Err(self.refusal(py)) } else { Ok(()) }
    }

    /// The end itself, once; `None` while a thread uses it.
    pub(crate) fn take(&self) -> Option<T> {
        if !self.busy.begin() {
            return None;
        }
        self.waker.set(None);
        // SAFETY: as in `entered`.
        let end = unsafe { &mut *self.end.get() }.take();
        self.busy.end();
        end
    }

    pub(crate) fn has_descriptor(&self) -> bool {
        self.descriptor.get().is_some()
    }

    /// The descriptor that was asked for before. Also after the end of the stream: who polls for that wants to leave its
    /// event loop.
    pub(crate) fn known_descriptor(&self) -> Option<RawFd> {
        self.descriptor.get().filter(|_| !self.shut.get() && !self.is_inherited())
    }

    /// The error of a wait; a time-out says what did not come, and where.
    #[cold]
    pub(crate) fn missing(&self, py: Python<'_>, cause: PyErr, what: &str) -> PyErr {
        if !is(py, &cause, ErrorKind::TimedOut) {
            return cause;
        }
        error(py, ErrorKind::TimedOut, format!("this {} had {what} within the time", self.what()))
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    fn what(&self) -> String {
        match &self.name {
            Some(name) => format!("{} of '{name}'", self.role.name),
            None => self.role.name.to_owned(),
        }
    }

    /// Why nobody may enter now.
    #[cold]
    pub(crate) fn refusal(&self, py: Python<'_>) -> PyErr {
        let what = self.what();
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
    busy: &'a InUse,
}

impl<T> Drop for Entered<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.busy.end();
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

    fn endpoint(&self) -> &Endpoint<Self::End>;

    /// Nobody uses the end any more, and the handle is shut: releases the end, unless something else keeps it.
    fn left(&self);

    /// Nobody uses the end any more: does what other threads found to do and left for that. Under the interpreter lock the next
    /// call does it.
    #[cfg(Py_GIL_DISABLED)]
    fn catch_up(&self) {}
}

/// Exclusive use of an owner's end, after which the end goes if the handle was closed meanwhile.
pub(crate) struct Using<'a, O: Owner> {
    /// Goes first: then nobody uses the end.
    entered: Entered<'a, O::End>,
    _leaving: Leaving<'a, O>,
}

/// What comes after a use of an owner's end.
pub(crate) struct Leaving<'a, O: Owner>(pub(crate) &'a O);

impl<O: Owner> Drop for Leaving<'_, O> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(Py_GIL_DISABLED)]
        self.0.catch_up();
        if self.0.endpoint().is_shut() {
            self.0.left();
        }
    }
}

impl<'a, O: Owner> Using<'a, O> {
    #[inline(always)]
    pub(crate) fn of(owner: &'a O, py: Python<'_>) -> PyResult<Self> {
        let using = Self { entered: owner.endpoint().enter(py)?, _leaving: Leaving(owner) };
        // Shut since that was looked at: who shut it may not have seen that it is in use.
        #[cfg(Py_GIL_DISABLED)]
        if owner.endpoint().is_shut() {
            drop(using);
            return Err(owner.endpoint().refusal(py));
        }
        Ok(using)
    }

    /// [`try_enter`](Endpoint::try_enter).
    pub(crate) fn try_of(owner: &'a O) -> Option<Self> {
        Some(Self { entered: owner.endpoint().try_enter()?, _leaving: Leaving(owner) })
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
