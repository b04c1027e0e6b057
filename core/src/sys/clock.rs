//! Clocks and CPUs. Only monotonic time decides anything: a time-out never follows the wall clock.

use std::sync::OnceLock;

pub(crate) use super::backend::clock::coarse_ns;

/// CPUs that are online. Not those that this thread may run on: a process pinned to one CPU still wants to spin for
/// a peer that is pinned to another.
pub(crate) fn cpus_online() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| {
        // SAFETY: sysconf reads no memory of ours.
        let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        n.max(1) as usize
    })
}
