//! The structs of `layout` have every field where `facts` says.

use std::mem::{offset_of, size_of};

use crate::facts;
use crate::layout::{
    Geometry, LastTag, Line, PublisherLine, RegionBlock, RingBlock, RoleLine, SLOTS_OFFSET, SegmentHeader, Slot,
    SubscribersHead, TailLine, TopicBlock, TopicGeometry, TopicPositions,
};

const _: () = {
    assert!(offset_of!(SegmentHeader, magic) == facts::OFF_MAGIC);
    assert!(offset_of!(SegmentHeader, byte_order) == facts::OFF_BYTE_ORDER);
    assert!(offset_of!(SegmentHeader, version_major) == facts::OFF_VERSION_MAJOR);
    assert!(offset_of!(SegmentHeader, version_minor) == facts::OFF_VERSION_MINOR);
    assert!(offset_of!(SegmentHeader, kind) == facts::OFF_KIND);
    assert!(offset_of!(SegmentHeader, flags) == facts::OFF_FLAGS);
    assert!(offset_of!(SegmentHeader, features_required) == facts::OFF_FEATURES_REQUIRED);
    assert!(offset_of!(SegmentHeader, features_optional) == facts::OFF_FEATURES_OPTIONAL);
    assert!(offset_of!(SegmentHeader, size) == facts::OFF_SIZE);
    assert!(offset_of!(SegmentHeader, created_ns) == facts::OFF_CREATED_NS);
    assert!(offset_of!(SegmentHeader, boot_id) == facts::OFF_BOOT_ID);
    assert!(size_of::<SegmentHeader>() == 0x40);

    assert!(offset_of!(Geometry, data_offset) == facts::OFF_DATA_OFFSET);
    assert!(offset_of!(Geometry, capacity) == facts::OFF_CAPACITY);
    assert!(offset_of!(Geometry, len) == facts::OFF_LEN);
    assert!(offset_of!(Geometry, align) == facts::OFF_ALIGN);

    assert!(offset_of!(RingBlock, tail) == facts::OFF_TAIL);
    assert!(offset_of!(RingBlock, tail) + offset_of!(TailLine, last_tags) == facts::OFF_LAST_TAGS);
    assert!(offset_of!(LastTag, end) == facts::LAST_TAG_END);
    assert!(offset_of!(LastTag, tag) == facts::LAST_TAG_TAG);
    assert!(size_of::<LastTag>() == facts::LAST_TAG_SIZE);
    assert!(offset_of!(RingBlock, head) == facts::OFF_HEAD);
    assert!(offset_of!(RingBlock, producer) == facts::OFF_PRODUCER);
    assert!(offset_of!(RingBlock, consumer) == facts::OFF_CONSUMER);
    assert!(offset_of!(RoleLine, wait) == facts::OFF_ROLE_WAIT);
    assert!(offset_of!(RoleLine, flags) == facts::OFF_ROLE_FLAGS);
    assert!(offset_of!(RoleLine, epoch) == facts::OFF_ROLE_EPOCH);
    assert!(offset_of!(RoleLine, close_seen) == facts::OFF_ROLE_CLOSE_SEEN);
    assert!(size_of::<RingBlock>() == facts::RING_BLOCK_SIZE);

    assert!(offset_of!(RegionBlock, notify) == facts::OFF_NOTIFY);
    assert!(size_of::<RegionBlock>() == facts::REGION_BLOCK_SIZE);

    assert!(offset_of!(TopicGeometry, data_offset) == facts::OFF_DATA_OFFSET);
    assert!(offset_of!(TopicGeometry, capacity) == facts::OFF_CAPACITY);
    assert!(offset_of!(TopicGeometry, len) == facts::OFF_LEN);
    assert!(offset_of!(TopicGeometry, align) == facts::OFF_ALIGN);
    assert!(offset_of!(TopicGeometry, slots) == facts::OFF_TOPIC_SLOTS);
    assert!(offset_of!(TopicGeometry, flags) == facts::OFF_TOPIC_FLAGS);
    assert!(offset_of!(TopicGeometry, subs_offset) == facts::OFF_TOPIC_SUBS_OFFSET);
    assert!(offset_of!(TopicBlock, positions) + offset_of!(TopicPositions, tail) == facts::OFF_TOPIC_TAIL);
    assert!(offset_of!(TopicBlock, positions) + offset_of!(TopicPositions, last) == facts::OFF_TOPIC_LAST);
    assert!(offset_of!(TopicBlock, claim) == facts::OFF_TOPIC_CLAIM);
    assert!(offset_of!(TopicBlock, starts) == facts::OFF_TOPIC_STARTS);
    assert!(offset_of!(TopicBlock, publisher) == facts::OFF_TOPIC_PUBLISHER);
    assert!(offset_of!(PublisherLine, role) == 0);
    assert!(offset_of!(TopicBlock, publisher) + offset_of!(PublisherLine, eject_after) == facts::OFF_TOPIC_EJECT_AFTER);
    assert!(size_of::<TopicBlock>() == facts::TOPIC_BLOCK_SIZE);

    assert!(offset_of!(SubscribersHead, publisher_wait) == facts::OFF_SUBS_WAIT);
    assert!(offset_of!(SubscribersHead, word) == facts::OFF_SUBS_WORD);
    assert!(size_of::<SubscribersHead>() <= SLOTS_OFFSET);
    assert!(offset_of!(Slot, cursor) == facts::OFF_SLOT_CURSOR);
    assert!(offset_of!(Slot, state) == facts::OFF_SLOT_STATE);
    assert!(offset_of!(Slot, flags) == facts::OFF_SLOT_FLAGS);
    assert!(offset_of!(Slot, close_seen) == facts::OFF_SLOT_CLOSE_SEEN);
    assert!(offset_of!(Slot, lost) == facts::OFF_SLOT_LOST);
    assert!(offset_of!(Slot, eject_seq) == facts::OFF_SLOT_EJECT_SEQ);
    assert!(offset_of!(Slot, label) == facts::OFF_SLOT_LABEL);
    assert!(size_of::<Slot>() == facts::SLOT_SIZE);
    assert!(facts::OFF_SLOT_LABEL + facts::LABEL_MAX == facts::SLOT_SIZE);
    assert!(size_of::<Line<u8>>() == facts::LINE_SIZE);
};
