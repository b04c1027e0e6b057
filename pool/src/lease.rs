//! A block that somebody has, and that goes back to its pool when dropped.

use crate::hot;
use crate::inner::Inner;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The only owner of a block: nobody else has a pointer to its memory.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Where the block begins.
    block: NonNull<u8>,
    /// Alive as long as the block is: it has a reference.
    pool: NonNull<Inner>,
    tag: Tag,
}

/// A block's class in the lowest bits, and what else its return needs to know of its pool. One whole word: as fields of
/// their own they were stored one by one and loaded together, which the processor cannot forward (13 ns a call).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag(usize);

impl Tag {
    const SLOT: u32 = 16;
    const ZERO: usize = 1 << 31;

    /// A pool's: its slot, below SLOTS, and `zero_on_return`.
    pub(crate) fn new(slot: usize, zero: bool) -> Self {
        Self(slot << Self::SLOT | if zero { Self::ZERO } else { 0 })
    }

    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        self.0 >> Self::SLOT & 0xff
    }

    #[inline(always)]
    fn class(self) -> usize {
        self.0 & 0xff
    }
}

// SAFETY: a lease is the only owner of plain memory, and its drop may be called on any thread.
unsafe impl Send for Lease {}
// SAFETY: a shared lease gives addresses only.
unsafe impl Sync for Lease {}

impl Lease {
    /// # Safety
    /// The block is the caller's, of this pool and class, with its reference; the tag is the pool's.
    #[inline(always)]
    pub(crate) unsafe fn new(block: NonNull<u8>, pool: NonNull<Inner>, tag: Tag, class: usize) -> Self {
        Self { block, pool, tag: Tag(tag.0 | class) }
    }

    /// Where the memory begins; valid for what was asked for, uninitialised as far as nobody wrote to it.
    #[inline(always)]
    pub(crate) fn ptr(&self) -> NonNull<u8> {
        self.block
    }

    /// The block as a vector of `len` bytes that the pool does not know any more. Without a copy where the block came
    /// from the global allocator with an alignment of 1; else (`alignment`, `pinned_memory`, `huge_pages`) the bytes are
    /// copied and the block goes back.
    ///
    /// # Safety
    /// The first `len` bytes are initialised, and no more than was asked for.
    pub(crate) unsafe fn into_vec(self, len: usize) -> Vec<u8> {
        // SAFETY: the block's reference keeps the pool alive.
        let pool = unsafe { self.pool.as_ref() };
        let cap = pool.size(self.tag.class());
        if !pool.is_plain() {
            // SAFETY: the caller's promise.
            return unsafe { std::slice::from_raw_parts(self.ptr().as_ptr(), len) }.to_vec();
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: the block is ours, and the lease is not used any more.
        unsafe { Inner::let_go(this.pool, this.tag.class(), this.block) };
        // SAFETY: such blocks are allocated as a vector of bytes of this capacity would be.
        unsafe { Vec::from_raw_parts(this.block.as_ptr(), len, cap) }
    }
}

impl Drop for Lease {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tag.0 & Tag::ZERO != 0 {
            // SAFETY: the block is ours, and its reference keeps the pool alive.
            unsafe { self.pool.as_ref().zero(self.tag.class(), self.block) };
        }
        // SAFETY: the block is ours and of the pool that has this slot; it is not used any more if kept.
        let kept = hot::with(|hot| unsafe { hot.push(self.tag.slot(), self.tag.class(), self.block) });
        if !kept {
            // SAFETY: as above, and its reference keeps the pool alive.
            unsafe { Inner::put_back(self.pool, self.tag.class(), self.block) };
        }
    }
}
