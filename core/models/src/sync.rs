//! loom's atomics, and the steps that a model leaves out.

#[path = "../../src/sync/step.rs"]
mod step;

pub(crate) use crate::run::keep;
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
pub(crate) use std::sync::atomic::Ordering;
pub use step::Step;
pub(crate) use step::ordered;

/// The waker's compiler barrier is the point where the sleeper's membarrier may strike.
pub(crate) fn compiler_fence(_: Ordering) {
    crate::sys::membarrier::interrupt_point();
}

pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

/// A hint, which no model needs.
pub(crate) fn want_to_write(_: *mut u8) {}
