//! The operating system: memory of its own, the fence, fork, the processors. Models (`cfg(loom)`) and the interpreter
//! (`cfg(miri)`) have none: there nothing is mapped, pinned, fenced or told of forks, and all memory comes from the global
//! allocator.
#![allow(dead_code)] // until the core calls it

pub(crate) mod fence;
pub(crate) mod fork;
pub(crate) mod memory;
pub(crate) mod topology;
