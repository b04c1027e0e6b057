//! Segments: their names, files and locks, what a header page may be trusted to say, and when a name is stale.

mod attempts;
mod file;
mod format;
mod link;
pub(crate) mod name;
pub(crate) mod named;
mod offsets;
mod options;
mod staged;
mod stale;
mod subscribers;
pub mod survey;
mod undelivered;
pub(crate) mod unnamed;
mod words;

use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as WordU64, Ordering};

pub(crate) use attempts::Attempts;
pub(crate) use format::TopicGeometry;
pub(crate) use format::{
    HeaderPage, RegionGeometry, RingGeometry, Spec, Valid, format, round_capacity, validate, validate_knowing,
};
pub(crate) use link::{Link, Probe, Role, SocketLink};
pub(crate) use name::Name;
pub(crate) use named::{Named, NamedLink, Request, SlotLocks, named};
pub(crate) use options::{Intent, SegmentOptions, segment_options};
pub(crate) use subscribers::SubscribersMap;

use crate::error::Result;
use crate::layout::{BLOCK_OFFSETS, HEADER_SIZE, RegionBlock, RingBlock, TopicBlock};
use crate::origin::Origin;
use crate::ring::log::{Ring, Shape};
use crate::sys::fork;
use crate::sys::mem::{Access, MirrorMap, PageMap, page_size};
use crate::sys::placement::{self, PlacementOptions};

/// The header page, mapped apart from the data so that a stray access to either cannot reach the other.
#[derive(Debug)]
pub struct HeaderMap {
    page: PageMap,
    /// Of a topic: kept as long, because words of both are slept on.
    _area: Option<SubscribersMap>,
}

/// What keeps a ring's words mapped.
pub type Header = HeaderMap;

impl HeaderMap {
    /// Maps the header page of a file that holds at least [`HeaderMap::mapped_len`] bytes.
    pub(crate) fn map(fd: BorrowedFd<'_>, access: Access) -> Result<Self> {
        Ok(Self { page: PageMap::map(fd, 0, Self::mapped_len(), access)?, _area: None })
    }

    /// Maps the header page in the caller's own shared memory a second time, so that it outlives the caller's mapping.
    ///
    /// # Safety
    /// `ptr` is the page-aligned start of one mapping of at least [`HeaderMap::mapped_len`] bytes.
    pub(crate) unsafe fn duplicate(ptr: *mut u8) -> Result<Self> {
        // SAFETY: passed on from the caller.
        Ok(Self { page: unsafe { PageMap::duplicate(ptr, Self::mapped_len()) }?, _area: None })
    }

    /// With a topic's subscribers' area, which then lives as long.
    pub(crate) fn with_area(self, area: SubscribersMap) -> Self {
        Self { _area: Some(area), ..self }
    }

    /// The header page's bytes here: [`HEADER_SIZE`], or the page size where that is larger.
    pub(crate) fn mapped_len() -> usize {
        page_size().max(HEADER_SIZE)
    }

    /// A private copy to [`validate`].
    pub(crate) fn snapshot(&self) -> HeaderPage {
        let mut page = HeaderPage::zeroed();
        for (i, bytes) in page.0.chunks_exact_mut(8).enumerate() {
            // SAFETY: inside the mapping and aligned; others may write meanwhile, hence an atomic load.
            let word = unsafe { WordU64::from_ptr(self.page.as_ptr().add(i * 8).cast()) };
            // Relaxed: each word stands for itself, and nothing is read because of it before it was checked.
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        page
    }

    /// Ring block 0 or 1. Valid as long as this map.
    pub(crate) fn ring_block(&self, block: usize) -> NonNull<RingBlock> {
        // SAFETY: the offset lies inside the mapped page, so the result is not null.
        unsafe { NonNull::new_unchecked(self.page.as_ptr().add(BLOCK_OFFSETS[block]).cast()) }
    }

    /// The topic's block. Valid as long as this map.
    pub(crate) fn topic_block(&self) -> NonNull<TopicBlock> {
        self.ring_block(0).cast()
    }

    /// The region's block. Valid as long as this map.
    pub(crate) fn region_block(&self) -> NonNull<RegionBlock> {
        self.ring_block(0).cast()
    }
}

/// All that a `Sender` or a `Receiver` stands on. Drop it after the role's closed flag is set and the peer is woken:
/// the fields then go in this order, the role's lock last. In a fork's child nothing is unmapped or unlocked.
#[derive(Debug)]
pub struct Attachment<L: Shape = Ring> {
    pub(crate) data: MirrorMap,
    /// Keeps `block` mapped.
    pub(crate) header: Arc<HeaderMap>,
    /// Points into `header`.
    pub(crate) block: NonNull<L::Block>,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    /// Where the log lies besides that.
    pub(crate) place: L::Place,
    pub(crate) origin: Origin,
    pub(crate) link: Link,
    pub(crate) fork: fork::Entry,
}

// SAFETY: `block` points into `header`, which the attachment keeps alive and which has no affinity to a thread.
unsafe impl<L: Shape> Send for Attachment<L> {}

impl Attachment {
    /// To the ring in block number `block`.
    pub(crate) fn new(
        data: MirrorMap,
        header: Arc<HeaderMap>,
        block: usize,
        ring: &RingGeometry,
        origin: Origin,
        link: Link,
        fork: fork::Entry,
    ) -> Self {
        let (block, capacity, align) = (header.ring_block(block), ring.capacity, ring.align);
        Self { data, header, block, capacity, align, place: (), origin, link, fork }
    }
}

impl Named {
    /// Maps a ring's data for a role whose lock this handle holds.
    pub(crate) fn into_attachment(
        self,
        access: Access,
        placement: &PlacementOptions,
        origin: Origin,
    ) -> Result<Attachment> {
        let geometry = self.valid.rings[0].expect("a ring was asked for, and its kind was checked");
        let data = map_data(self.file.as_fd(), &geometry, access, placement)?;
        let fork = self.link.entry().clone();
        Ok(Attachment::new(data, self.header, 0, &geometry, origin, Link::Named(self.link), fork))
    }
}

/// Maps a ring's data.
pub(crate) fn map_data(
    file: BorrowedFd<'_>,
    geometry: &RingGeometry,
    access: Access,
    placement: &PlacementOptions,
) -> Result<MirrorMap> {
    let capacity = geometry.capacity as usize;
    let data = MirrorMap::map(file, geometry.data_offset, capacity, access)?;
    // SAFETY: the mapping is alive and `capacity` bytes long, twice.
    unsafe { placement::apply(data.as_ptr(), capacity, 2, access == Access::ReadWrite, placement) }?;
    Ok(data)
}
