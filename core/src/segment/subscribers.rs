//! A topic's subscribers' area, mapped apart from the header page, which subscribers cannot write, and from the data.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use super::format::TopicGeometry;
use crate::error::Result;
use crate::layout::SubscribersHead;
use crate::sys::mem::{Access, PageMap, page_size};

/// The mapped subscribers' area.
#[derive(Debug)]
pub(crate) struct SubscribersMap(PageMap);

impl SubscribersMap {
    /// Maps the area of a file with this geometry, which was checked against the file's length.
    pub(crate) fn map(fd: BorrowedFd<'_>, geometry: &TopicGeometry, access: Access) -> Result<Self> {
        // The data follows on a page of its own, so the file has all of the last page.
        let len = (geometry.subs_len() as usize).next_multiple_of(page_size());
        Ok(Self(PageMap::map(fd, geometry.subs_offset, len, access)?))
    }

    /// The words at its start; the slots follow. Valid as long as this map.
    pub(crate) fn head(&self) -> NonNull<SubscribersHead> {
        // SAFETY: the start of a mapping is not null.
        unsafe { NonNull::new_unchecked(self.0.as_ptr().cast()) }
    }
}
