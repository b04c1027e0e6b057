//! The operating system: memory of its own, the fence, fork, the processors.
