//! Everything that talks to the operating system. What all of them do alike is here; what one does in its own way is in
//! the module of the same name and with the same signatures in `linux/` and in `macos/`.

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
mod os;
#[cfg(all(target_os = "macos", not(loom)))]
#[path = "macos/mod.rs"]
mod os;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Ramway knows Linux and macOS: another system needs a folder beside sys/linux with the same modules");

#[cfg(not(loom))]
pub(crate) use os::{event, futex, membarrier, memfd};

/// What loom runs the protocol on.
#[cfg(loom)]
pub(crate) mod model;
#[cfg(loom)]
pub(crate) use model::*;
