//! The operating system: memory of its own, the fence, fork, the processors. The interpreter (`cfg(miri)`) has none:
//! there nothing is mapped, pinned, fenced or told of forks, and all memory comes from the global allocator.

pub(crate) mod fence;
pub(crate) mod fork;
pub(crate) mod memory;
pub(crate) mod topology;
