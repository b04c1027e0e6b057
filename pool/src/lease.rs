//! A block that somebody has, and that goes back to its pool when dropped.

use crate::block::Block;
use crate::error::Result;
use std::ptr::NonNull;

/// The only owner of a block: nobody else has a pointer to its memory.
pub(crate) struct Lease {
    block: Block,
}

impl Lease {
    pub(crate) fn get(len: usize, zeroed: bool) -> Result<Self> {
        let mut v = std::mem::ManuallyDrop::new(if zeroed { vec![0; len.max(1)] } else { Vec::with_capacity(len.max(1)) });
        // SAFETY: a vector's pointer is not null.
        Ok(Self { block: Block { ptr: unsafe { NonNull::new_unchecked(v.as_mut_ptr()) }, cap: v.capacity() } })
    }

    /// Where the memory begins; valid for `cap` bytes, uninitialised as far as nobody wrote to it.
    #[inline(always)]
    pub(crate) fn ptr(&self) -> NonNull<u8> {
        self.block.ptr
    }

    /// Bytes of the allocation, at least what was asked for.
    #[inline(always)]
    pub(crate) fn cap(&self) -> usize {
        self.block.cap
    }

    /// The block as a vector of `len` bytes that the pool does not know any more. Without a copy where the block came
    /// from the global allocator with an alignment of 1; else (`alignment`, `pinned_memory`, `huge_pages`) the bytes are
    /// copied and the block goes back.
    ///
    /// # Safety
    /// The first `len` bytes are initialised.
    pub(crate) unsafe fn into_vec(self, len: usize) -> Vec<u8> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: see above.
        unsafe { Vec::from_raw_parts(this.block.ptr.as_ptr(), len, this.block.cap) }
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: made by a vector.
        drop(unsafe { Vec::from_raw_parts(self.block.ptr.as_ptr(), 0, self.block.cap) });
    }
}

// SAFETY: a lease is the only owner of plain memory, and its drop may be called on any thread.
unsafe impl Send for Lease {}
// SAFETY: a shared lease gives addresses only.
unsafe impl Sync for Lease {}
