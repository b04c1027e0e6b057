//! A topic's subscribers' area, mapped apart from the header page, which subscribers cannot write, and from the data.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use super::format::TopicGeometry;
use crate::error::Result;
use crate::layout::{SLOTS_OFFSET, Slot, SubscribersHead};
use crate::sys::mem::{Access, PageMap, page_size};

/// The mapped subscribers' area.
#[derive(Debug)]
#[allow(dead_code)] // Until topics are opened.
pub(crate) struct SubscribersMap {
    map: PageMap,
    slots: u32,
}

#[allow(dead_code)] // Until topics are opened.
impl SubscribersMap {
    /// Maps the area of a file with this geometry, which was checked against the file's length.
    pub(crate) fn map(fd: BorrowedFd<'_>, geometry: &TopicGeometry, access: Access) -> Result<Self> {
        // The data follows on a page of its own, so the file has all of the last page.
        let len = (geometry.subs_len() as usize).next_multiple_of(page_size());
        Ok(Self { map: PageMap::map(fd, geometry.subs_offset, len, access)?, slots: geometry.slots })
    }

    /// The publisher's futex word and the subscribers' shared word. Valid as long as this map.
    pub(crate) fn head(&self) -> NonNull<SubscribersHead> {
        // SAFETY: the start of a mapping is not null.
        unsafe { NonNull::new_unchecked(self.map.as_ptr().cast()) }
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Slot `i`. Valid as long as this map.
    ///
    /// # Panics
    /// If there is no such slot.
    pub(crate) fn slot(&self, i: u32) -> NonNull<Slot> {
        assert!(i < self.slots, "slot {i} of {}", self.slots);
        // SAFETY: `i` slots of `size_of::<Slot>()` bytes behind `SLOTS_OFFSET` lie inside the mapping, so the result is not
        // null. Both are multiples of a slot's alignment.
        unsafe { NonNull::new_unchecked(self.map.as_ptr().add(SLOTS_OFFSET).cast::<Slot>().add(i as usize)) }
    }
}
