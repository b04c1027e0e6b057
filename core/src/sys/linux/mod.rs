//! Linux: memfd and tmpfs files, `/proc`, futexes, membarrier, epoll.

pub(super) mod clock;
pub(crate) mod closes;
pub(crate) mod event;
pub(super) mod files;
pub(crate) mod futex;
mod limit;
pub(crate) mod membarrier;
pub(crate) mod memfd;
mod numa;
pub(super) mod pages;
pub(super) mod peer;
pub(super) mod placement;
pub(super) mod set;
mod space;
