//! Everything that differs between operating systems. Each system has the same modules with the same signatures.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
