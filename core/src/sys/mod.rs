//! Everything that talks to the operating system. What all of them do alike is here; what one does in its own way is in
//! the module of the same name and with the same signatures in `linux/` and in `macos/`.

use std::fmt::Display;

use rustix::io::Errno;

use crate::error::Error;

#[cfg(not(loom))]
pub(crate) mod clock;
#[cfg(not(loom))]
pub(crate) mod fork;
#[cfg(not(loom))]
pub(crate) mod fs;
#[cfg(not(loom))]
pub(crate) mod lock;
#[cfg(not(loom))]
pub(crate) mod mem;
#[cfg(not(loom))]
pub(crate) mod placement;
#[cfg(not(loom))]
pub(crate) mod socket;
mod wake;

#[cfg(all(target_os = "linux", not(loom)))]
#[path = "linux/mod.rs"]
mod backend;
#[cfg(all(target_os = "macos", not(loom)))]
#[path = "macos/mod.rs"]
mod backend;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Ramway knows Linux and macOS: another system needs a folder beside sys/linux with the same modules");

#[cfg(not(loom))]
pub(crate) use backend::{event, futex, membarrier, memfd};

/// What loom runs the protocol on.
#[cfg(loom)]
pub(crate) mod model;
#[cfg(loom)]
pub(crate) use model::*;

/// For `map_err`: the error of a system call while `what` was done.
pub(crate) fn os<D: Display>(what: D) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::os(errno.raw_os_error(), what)
}

/// The error number of the C library's call that has just failed in this thread.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
