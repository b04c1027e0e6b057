//! The model's clock stands still but for [`time_passes`](super::time_passes).

use super::kernel::KERNEL;
use std::sync::atomic::Ordering;

pub(crate) fn coarse_ns() -> u64 {
    KERNEL.now.load(Ordering::Relaxed)
}

pub(crate) fn cpus_online() -> usize {
    super::kernel::CPUS
}
