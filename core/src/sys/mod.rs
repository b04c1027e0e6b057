//! Everything that talks to the operating system. What all of them do alike is here; what one does in its own way is in
//! the module of the same name and with the same signatures in `linux/` and in `macos/`.

use std::fmt::Display;

use rustix::io::Errno;

use crate::error::Error;

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod fs;
pub(crate) mod futex;
pub(crate) mod lock;
pub(crate) mod mem;
pub(crate) mod placement;
pub(crate) mod socket;
mod wake;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod backend;
#[cfg(target_os = "macos")]
#[path = "macos/mod.rs"]
mod backend;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Ramway knows Linux and macOS: another system needs a folder beside sys/linux with the same modules");

pub(crate) use backend::{closes, event, membarrier, memfd};

/// For `map_err`: the error of a system call while `what` was done.
pub(crate) fn os<D: Display>(what: D) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::os(errno.raw_os_error(), what)
}

/// The error number of the C library's call that has just failed in this thread.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
