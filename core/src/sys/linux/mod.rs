//! Linux: memfd and tmpfs files, open-file-description locks, futexes, membarrier.

pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod fork;
pub(crate) mod fs;
pub(crate) mod futex;
pub(crate) mod lock;
pub(crate) mod mem;
pub(crate) mod membarrier;
pub(crate) mod memfd;
pub(crate) mod placement;
pub(crate) mod socket;
mod space;
