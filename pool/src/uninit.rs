//! A buffer of its whole length, whose bytes say in their type that nobody wrote them yet.

use crate::buffer::Buffer;
use crate::lease::Lease;

/// See [`BufferPool::get_uninit`](crate::BufferPool::get_uninit).
pub struct UninitBuffer {
    lease: Lease,
    /// What was asked for: 0..=lease.cap().
    len: usize,
}

impl UninitBuffer {
    #[inline(always)]
    pub(crate) fn from_lease(lease: Lease, len: usize) -> Self {
        Self { lease, len }
    }

    /// The buffer, all of it written.
    ///
    /// # Safety
    /// Every byte has been initialised.
    pub unsafe fn assume_init(self) -> Buffer {
        // SAFETY: the caller initialised all of it.
        unsafe { Buffer::from_lease(self.lease, self.len, self.len) }
    }
}
