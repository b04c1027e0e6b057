//! The atomics that the protocol uses: the real ones, or loom's when the protocol is being model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, compiler_fence, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

pub(crate) use std::sync::atomic::Ordering;

/// In a model the waker's compiler barrier is the point where the sleeper's membarrier may strike.
#[cfg(loom)]
pub(crate) fn compiler_fence(_: Ordering) {
    crate::sys::membarrier::interrupt_point();
}

/// The loop hint of a spinning side: without it the round trip is 1.2 to 1.6 times longer (`docs/adr/`).
#[inline(always)]
pub(crate) fn spin_hint() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
