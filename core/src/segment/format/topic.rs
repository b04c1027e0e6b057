//! A topic's part of the header page: the geometry of its three parts, filled in and checked.

use std::mem::offset_of;

use super::{HeaderPage, Spec, corrupt, data_range, lies_in, mismatch, round_capacity, too_big};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{
    self, ALIGN_MAX, BLOCK_OFFSETS, HEADER_SIZE, Kind, TOPIC_ALIGN_MIN, TOPIC_FLAGS_KNOWN, TOPIC_LOSSY_ONLY,
    TOPIC_MAY_EJECT, TOPIC_SLOTS_MAX, TopicBlock, TopicPositions, first_topic_position, subscribers_len,
};
use crate::sys::mem::page_size;

/// Where a topic's parts lie, and what its creator decided: checked to be inside the segment, mappable here, and
/// consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicGeometry {
    pub(crate) data_offset: u64,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    /// 1 ..= [`TOPIC_SLOTS_MAX`].
    pub(crate) slots: u32,
    /// [`TOPIC_LOSSY_ONLY`], [`TOPIC_MAY_EJECT`], and nothing else.
    pub(crate) flags: u32,
    pub(crate) subs_offset: u64,
}

impl TopicGeometry {
    /// The subscribers' area in bytes, without the rest of its last page.
    pub(crate) fn subs_len(&self) -> u64 {
        subscribers_len(self.slots)
    }

    /// No subscriber may hold the publisher back.
    pub(crate) fn is_lossy_only(&self) -> bool {
        self.flags & TOPIC_LOSSY_ONLY != 0
    }

    /// A publisher may eject a subscriber.
    pub(crate) fn may_eject(&self) -> bool {
        self.flags & TOPIC_MAY_EJECT != 0
    }
}

impl Spec {
    /// A topic with at least this capacity. Each of its three parts begins on a multiple of `granule`, the creator's (huge)
    /// page.
    pub(crate) fn topic(capacity: u64, align: u32, slots: u32, flags: u32, granule: usize) -> Result<Self> {
        let invalid = |text| Err(Error::new(ErrorKind::InvalidArgument, text));
        if !align.is_power_of_two() || !(TOPIC_ALIGN_MIN..=ALIGN_MAX).contains(&align) {
            return invalid(format!(
                "alignment {align}: a topic's is a power of two from {TOPIC_ALIGN_MIN} to {ALIGN_MAX}"
            ));
        }
        if !(1..=TOPIC_SLOTS_MAX).contains(&slots) {
            return invalid(format!("{slots} slots for subscribers: expected 1 to {TOPIC_SLOTS_MAX}"));
        }
        let mut spec = Self::empty(Kind::Topic, granule);
        // A whole frame takes at most half of the capacity.
        let capacity = round_capacity(capacity.max(2 * u64::from(align)), granule)?;
        let subs_offset = spec.size;
        let data_offset = (subs_offset + subscribers_len(slots)).next_multiple_of(granule.max(HEADER_SIZE) as u64);
        debug_assert_eq!(flags & !TOPIC_FLAGS_KNOWN, 0);
        spec.size = data_offset.checked_add(capacity).ok_or_else(|| too_big(capacity))?;
        spec.topic = Some(TopicGeometry { data_offset, capacity, align, slots, flags, subs_offset });
        Ok(spec)
    }
}

const BASE: usize = BLOCK_OFFSETS[0];

/// Writes the block of a new, empty topic: every position is the first one.
pub(super) fn format(page: &mut HeaderPage, geometry: &TopicGeometry) {
    page.put(BASE + offset_of!(layout::TopicGeometry, data_offset), &geometry.data_offset.to_ne_bytes());
    page.put(BASE + offset_of!(layout::TopicGeometry, capacity), &geometry.capacity.to_ne_bytes());
    page.put(BASE + offset_of!(layout::TopicGeometry, align), &geometry.align.to_ne_bytes());
    page.put(BASE + offset_of!(layout::TopicGeometry, slots), &geometry.slots.to_ne_bytes());
    page.put(BASE + offset_of!(layout::TopicGeometry, flags), &geometry.flags.to_ne_bytes());
    page.put(BASE + offset_of!(layout::TopicGeometry, subs_offset), &geometry.subs_offset.to_ne_bytes());
    let first = first_topic_position(geometry.align).to_ne_bytes();
    let positions = BASE + offset_of!(TopicBlock, positions);
    page.put(positions + offset_of!(TopicPositions, tail), &first);
    page.put(positions + offset_of!(TopicPositions, last), &first);
    page.put(BASE + offset_of!(TopicBlock, claim), &first);
    let starts = BASE + offset_of!(TopicBlock, starts);
    for entry in (starts..starts + size_of::<[u64; layout::TOPIC_CHUNKS as usize]>()).step_by(8) {
        page.put(entry, &first);
    }
}

/// The checks of section 16 of `docs/ABI.md`, in its order.
pub(super) fn validate(page: &HeaderPage, file_size: u64) -> Result<TopicGeometry> {
    let (data_offset, capacity) = data_range(page, 0, file_size)?;
    if !capacity.is_power_of_two() || capacity < HEADER_SIZE as u64 {
        return corrupt(format!(
            "the topic has a capacity of {capacity} bytes, expected a power of two of at least a page"
        ));
    }
    let align = page.u32(BASE + offset_of!(layout::TopicGeometry, align));
    if !align.is_power_of_two() || !(TOPIC_ALIGN_MIN..=ALIGN_MAX).contains(&align) || u64::from(align) > capacity / 2 {
        return corrupt(format!(
            "the topic has an alignment of {align}, expected a power of two from {TOPIC_ALIGN_MIN} to {ALIGN_MAX}, at \
             most half of its capacity of {capacity} bytes"
        ));
    }
    let slots = page.u32(BASE + offset_of!(layout::TopicGeometry, slots));
    if !(1..=TOPIC_SLOTS_MAX).contains(&slots) {
        return corrupt(format!("the topic has {slots} slots for subscribers, expected 1 to {TOPIC_SLOTS_MAX}"));
    }
    let subs_offset = page.u64(BASE + offset_of!(layout::TopicGeometry, subs_offset));
    let subs_len = subscribers_len(slots);
    // The area ends where the data begins, or before; so it lies in the file if it does not overflow.
    if !lies_in(subs_offset, subs_len, data_offset) {
        return corrupt(format!(
            "the topic's subscribers' area of {subs_len} bytes at {subs_offset} does not lie between the header page and \
             the data at {data_offset}"
        ));
    }
    let page_size = page_size() as u64;
    if !subs_offset.is_multiple_of(page_size) {
        return mismatch(format!(
            "the topic's subscribers' area at {subs_offset} cannot be mapped with this machine's pages of {page_size} bytes"
        ));
    }
    let flags = page.u32(BASE + offset_of!(layout::TopicGeometry, flags));
    let unknown = flags & !TOPIC_FLAGS_KNOWN;
    if unknown != 0 {
        return mismatch(format!(
            "the topic was made with flags {unknown:#x}, which this version of Ramway does not know: update it"
        ));
    }
    Ok(TopicGeometry { data_offset, capacity, align, slots, flags, subs_offset })
}
