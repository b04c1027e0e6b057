//! Whether an end is in use: by a call, which other threads' calls are not to wait for, or for a moment.

#[cfg(not(Py_GIL_DISABLED))]
use crate::endpoint::Gil;
#[cfg(Py_GIL_DISABLED)]
use std::sync::atomic::{AtomicU8, Ordering};

/// Under the interpreter lock only a call that gives the lock up is ever met by another thread.
#[cfg(not(Py_GIL_DISABLED))]
#[derive(Default)]
pub(super) struct InUse(Gil<bool>);

#[cfg(not(Py_GIL_DISABLED))]
impl InUse {
    /// Begins a use; false if there is one.
    #[inline(always)]
    pub(super) fn begin(&self) -> bool {
        !self.0.replace(true)
    }

    #[inline(always)]
    pub(super) fn begin_briefly(&self) -> bool {
        self.begin()
    }

    #[inline(always)]
    pub(super) fn is_in_call(&self) -> bool {
        self.0.get()
    }

    #[inline(always)]
    pub(super) fn end(&self) {
        self.0.set(false);
    }
}

#[cfg(Py_GIL_DISABLED)]
#[derive(Default)]
pub(super) struct InUse(AtomicU8);

#[cfg(Py_GIL_DISABLED)]
const FREE: u8 = 0;
/// By a thread that is in a call.
#[cfg(Py_GIL_DISABLED)]
const CALL: u8 = 1;
/// By a thread that is done in a few instructions.
#[cfg(Py_GIL_DISABLED)]
const BRIEFLY: u8 = 2;

#[cfg(Py_GIL_DISABLED)]
impl InUse {
    /// Begins a use; false if a thread is in a call.
    #[inline(always)]
    pub(super) fn begin(&self) -> bool {
        self.begin_as(CALL)
    }

    /// The same for a few instructions, which neither wait nor run Python.
    #[inline(always)]
    pub(super) fn begin_briefly(&self) -> bool {
        self.begin_as(BRIEFLY)
    }

    #[inline(always)]
    fn begin_as(&self, use_: u8) -> bool {
        loop {
            // SeqCst, also when it fails: what was stored before it is seen by the one who has the end and looks after it left
            // (`Flag`), or that one has left. Acquire is what orders the uses of the end itself.
            match self.0.compare_exchange(FREE, use_, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(CALL) => return false,
                // For a moment, unless its thread was put off the processor.
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    #[inline(always)]
    pub(super) fn is_in_call(&self) -> bool {
        // SeqCst: in one order with `Flag`s.
        self.0.load(Ordering::SeqCst) == CALL
    }

    #[inline(always)]
    pub(super) fn end(&self) {
        // SeqCst: before this thread looks at what others left for it. Release is what orders the uses of the end itself.
        self.0.store(FREE, Ordering::SeqCst);
    }
}
