//! The operating system as loom sees it: just enough of futexes, membarrier, locks and clocks to run the real ring,
//! sender, receiver and waiting code over them, and no more order between the threads than Linux gives.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod kernel;
pub(crate) mod membarrier;
#[path = "../../../src/sys/wake.rs"]
mod wake;

pub use kernel::{clock_runs, process, time_passes};
pub use membarrier::{forbid as forbid_membarrier, interrupt_point};
