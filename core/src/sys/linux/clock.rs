//! The clock that is read in every slow wait.

/// Nanoseconds of monotonic time, up to one tick (1 to 10 ms) old, for about 5 ns instead of 25.
pub(crate) fn coarse_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The C library's call, not rustix's: in a static program for musl rustix does not find the vDSO, and every reading of the clock
    // was a system call.
    // SAFETY: it writes to one struct, which outlives it. It does not fail: every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
