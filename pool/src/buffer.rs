//! A buffer with room for as many bytes as were asked for, of which only those are visible that its owner wrote.

use crate::lease::Lease;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// A buffer of a pool.
pub struct Buffer {
    lease: Lease,
    /// What was asked for: 0..=lease.cap(). Never grows.
    room: usize,
    /// How much of it this owner initialised: 0..=room.
    len: usize,
    /// Where `io::Write` and `io::Seek` stand; may lie beyond.
    pos: usize,
}

impl Buffer {
    /// # Safety
    /// The first `len` bytes are this owner's: initialised, and nobody else's old ones. `len <= room <= lease.cap()`.
    #[inline(always)]
    pub(crate) unsafe fn from_lease(lease: Lease, room: usize, len: usize) -> Self {
        Self { lease, room, len, pos: 0 }
    }

    /// What was asked for, in bytes. It never grows.
    pub fn capacity(&self) -> usize {
        self.room
    }

    /// The bytes between `len()` and `capacity()`, to be written by whoever knows how, and then said by [`set_len`](Self::set_len).
    pub fn spare_capacity_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the block is ours for `room` bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.lease.ptr().as_ptr().add(self.len).cast(), self.room - self.len)
        }
    }

    /// Says that the first `len` bytes are written.
    ///
    /// # Safety
    /// `len <= capacity()`, and all of them are initialised.
    pub unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.room);
        self.len = len;
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised and ours.
        unsafe { std::slice::from_raw_parts(self.lease.ptr().as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lease.ptr().as_ptr(), self.len) }
    }
}
