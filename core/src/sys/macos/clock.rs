//! The clock that is read in every slow wait.

unsafe extern "C" {
    fn clock_gettime_nsec_np(clock: libc::clockid_t) -> u64;
}

/// Nanoseconds of monotonic time, a little old, for less than an exact reading.
pub(crate) fn coarse_ns() -> u64 {
    // SAFETY: reads a clock, touches no memory of ours.
    unsafe { clock_gettime_nsec_np(libc::CLOCK_MONOTONIC_RAW_APPROX) }
}
