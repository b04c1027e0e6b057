//! An allocation: where it is and how long.

use std::ptr::NonNull;

/// Memory that the pool allocated. Not an owner: it is `Copy`, and its only owner is the place where it stands (a lease,
/// a bin, a shard), by that place's rules.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where it begins.
    pub ptr: NonNull<u8>,
    /// Bytes; at least the size of the class in whose bin it stands.
    pub cap: usize,
}

// SAFETY: a block is an address and a length; who may touch the memory is decided where blocks are kept.
unsafe impl Send for Block {}
