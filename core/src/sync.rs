//! The atomics that the protocol uses: the real ones, or loom's when the protocol is being model-checked.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, compiler_fence, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

pub(crate) use std::sync::atomic::Ordering;

/// A step that the protocol cannot do without. Each has a model that fails when it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `Release` of a published position.
    Publish,
    /// `Acquire` of the other side's position.
    AcquirePosition,
    /// The fence of a waker that is not fence-free.
    WakerFence,
    /// The membarrier of a sleeper whose waker is fence-free.
    Membarrier,
    /// The fence of a sleeper without membarrier.
    SleeperFence,
    /// The short intervals of a sleeper that has no membarrier while its waker is fence-free.
    ShortIntervals,
    /// The fence between setting ROLE_FENCE_FREE (fence-free) and the first publish without a fence.
    FenceFreeFence,
    /// The check between arming and sleeping.
    Recheck,
    /// Arming again after every return from the sleep.
    Rearm,
    /// The check of the position after the end was seen.
    CheckAfterEnd,
    /// Loading the peer's epoch again after the lock or the socket was seen gone.
    EpochAfterDeath,
    /// The check for a close after the lock was seen free.
    CloseBeforeDeath,
    /// The check for a successor after that.
    SuccessorBeforeDeath,
    /// The wake-up at attach and close, whatever the wait word says.
    Announce,
}

/// Whether a step is taken: always, but for the models that show why.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn keep(_: Step) -> bool {
    true
}

#[cfg(loom)]
pub(crate) use crate::sys::keep;

/// The ordering of a step, or `Relaxed` where a model leaves it out.
#[inline(always)]
pub(crate) fn ordered(step: Step, ordering: Ordering) -> Ordering {
    if keep(step) { ordering } else { Ordering::Relaxed }
}

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

/// Asks for the line at `address`, to write to it: a hint, which no address makes fault.
#[inline(always)]
pub(crate) fn want_to_write(address: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch touches nothing that a program can see. `PREFETCHW` is in every x86-64 processor of AMD's, and
    // a prefetch or a NOP in every one of Intel's.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
