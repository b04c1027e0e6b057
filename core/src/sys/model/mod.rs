//! The operating system as loom sees it: just enough of futexes, membarrier, locks and clocks to run the real ring,
//! sender, receiver and waiting code over them, and no more order between the threads than Linux gives.
//!
//! `docs/adr/0015-models.md` says what is modelled, how, and what is not.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod futex;
mod kernel;
pub(crate) mod membarrier;
mod notify;
mod ready;
mod run;

pub use kernel::{clock_runs, process, time_passes};
pub use membarrier::{forbid as forbid_membarrier, interrupt_point};
pub use notify::Notifications;
pub use ready::Poll;
pub(crate) use run::keep;
pub use run::{fails_without, holds};
