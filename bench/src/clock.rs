//! A clock that two processes share and that costs little beside 100 ns: the time stamp counter where it is constant and
//! never stops, else CLOCK_MONOTONIC.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A point in time, in ticks that only [`ps`] can turn into a duration. The same in every process of this machine.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if counter_is_constant() {
        // SAFETY: reads a counter that every x86-64 processor has.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    monotonic_ns()
}

pub(crate) fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Any of the kernel's clocks.
pub(crate) fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct that it is given.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter_is_constant() -> bool {
    static CONSTANT: OnceLock<bool> = OnceLock::new();
    *CONSTANT.get_or_init(|| {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.contains(flag))
    })
}

/// What [`now`] reads.
pub(crate) fn source() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if counter_is_constant() {
        return "time stamp counter";
    }
    "CLOCK_MONOTONIC"
}

static RATE: OnceLock<f64> = OnceLock::new();

/// Picoseconds of a tick. The first call measures it, which takes 20 ms, unless [`learn`] was called before.
pub(crate) fn rate() -> f64 {
    *RATE.get_or_init(|| {
        let (begin, first) = (Instant::now(), now());
        while begin.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        begin.elapsed().as_nanos() as f64 * 1000.0 / (now() - first) as f64
    })
}

/// What another process of this machine has measured.
pub(crate) fn learn(ps_per_tick: f64) {
    // A process that has measured it already keeps its own.
    let _ = RATE.set(ps_per_tick);
}

/// Picoseconds of a number of ticks.
pub fn ps(ticks: u64) -> f64 {
    ticks as f64 * rate()
}

/// Ticks of a number of nanoseconds.
pub fn ticks(ns: u64) -> u64 {
    (ns as f64 * 1000.0 / rate()) as u64
}
