//! A second mapping of a sender's data, for views of a slot that a language cannot take back.

use crate::Result;
use crate::sys::mem::{MirrorMap, page_size};

/// The same memory as a ring's data area, at another address. Views of slots lead here, so that they can be cut off
/// from the ring without touching the mapping that the sender itself works on.
#[derive(Debug)]
pub struct Window {
    map: MirrorMap,
    /// Where the sender has the same bytes.
    data: *const u8,
    /// Of the data area; the map is twice as long.
    capacity: usize,
}

// SAFETY: the addresses have no affinity to a thread; `data` is only read, and only in `cut`, whose caller vouches for it.
unsafe impl Send for Window {}
// SAFETY: as above; nothing changes behind `&Window` but mappings, under the rules of `cut`.
unsafe impl Sync for Window {}

impl Window {
    /// # Safety
    /// `data` is a mirrored data area of `capacity` bytes.
    pub(super) unsafe fn new(data: *mut u8, capacity: usize) -> Result<Self> {
        let access = crate::sys::mem::Access::ReadWrite;
        // SAFETY: the first half of the area is one mapping, and page-aligned.
        let map = unsafe { MirrorMap::duplicate(data, capacity, access) }?;
        Ok(Self { map, data, capacity })
    }

    /// Where the window shows the byte that the sender has at `address`.
    pub fn at(&self, address: *const u8) -> *mut u8 {
        self.map.as_ptr().wrapping_add(address.addr().wrapping_sub(self.data.addr()))
    }

    /// Puts private memory in the place of the pages that hold `len` bytes from `address` (the sender's). It holds what
    /// they hold now: views of these bytes go on showing them, and no longer lead into the ring. The other pages stay,
    /// so a window that was cut is not for another slot.
    ///
    /// # Safety
    /// The sender's mapping is alive, and `address` is a slot of it, which is open: its bytes are nobody else's.
    pub unsafe fn cut(&self, address: *const u8, len: usize) -> Result<()> {
        let page = page_size();
        let offset = address.addr() - self.data.addr();
        let start = offset & !(page - 1);
        let end = (offset + len.max(1)).next_multiple_of(page).min(2 * self.capacity);
        // SAFETY: the pages lie in the window, whose views show private memory from now on.
        unsafe { self.map.replace(start, end - start) }?;
        // SAFETY: both ranges are mapped and `len` bytes long; the slot is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(address, self.map.as_ptr().add(offset), len) };
        Ok(())
    }
}
