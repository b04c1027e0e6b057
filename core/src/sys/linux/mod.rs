//! Linux: memfd and tmpfs files, open-file-description locks, futexes, membarrier.

pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod mem;
pub(crate) mod placement;
mod space;
