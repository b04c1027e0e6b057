//! Everything that differs between operating systems. Each system has the same modules with the same signatures.

#[cfg(all(target_os = "linux", not(loom)))]
mod linux;
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::*;

/// What loom runs the protocol on.
#[cfg(loom)]
pub(crate) mod model;
#[cfg(loom)]
pub(crate) use model::*;
