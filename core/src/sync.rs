//! The atomics that the protocol uses. The models (`core/models`) put loom's in their place.

mod step;

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
pub(crate) use step::{Step, ordered};

/// Whether a step is taken: always, but for the models that show why.
#[inline(always)]
pub(crate) const fn keep(_: Step) -> bool {
    true
}

/// Told before bytes of a topic's data at or after an address are read that may be overwritten meanwhile, and before any are
/// written: for the models, whose memory would otherwise order what no memory orders.
#[inline(always)]
pub(crate) fn touch_data(_: *const u8) {}

/// The loop hint of a spinning side: without it the round trip is 1.2 to 1.6 times longer (`docs/adr/`).
#[inline(always)]
pub(crate) fn spin_hint() {
    std::hint::spin_loop();
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

/// Asks for the line at `address`, to read it: a hint, which no address makes fault.
#[inline(always)]
pub(crate) fn want_to_read(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch touches nothing that a program can see.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
