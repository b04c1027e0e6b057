//! The bytes of a segment: `docs/ABI.md` as Rust types; its numbers are in [`facts`]. Nothing here maps memory or decides what to trust.

use crate::facts;
use crate::sync::{AtomicU32, AtomicU64};

pub use crate::facts::{
    ALIGN_MAX, ALIGN_MIN, BYTE_ORDER, FEATURES_KNOWN, FLAG_PERSISTENT, FRAME_HEADER, HEADER_SIZE, Kind, MAGIC,
    MESSAGE_MAX, ROLE_CLOSED, ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, SLOT_ACTIVE, SLOT_DURABLE, SLOT_EJECTED,
    SLOT_FLAG_FENCE_FREE, SLOT_FLAG_LATEST, SLOT_FLAG_MEMBARRIER_CAPABLE, SLOT_GATING, TOPIC_ALIGN_MIN, TOPIC_CHUNKS,
    TOPIC_FLAGS_KNOWN, TOPIC_FRAME_HEADER, TOPIC_LOSSY_ONLY, TOPIC_MAY_EJECT, TOPIC_MESSAGE_MAX, TOPIC_SLOTS_MAX,
    TYPE_ID_RESERVED, TYPE_ID_TENSOR, VERSION_MAJOR, VERSION_MINOR, VERSION_MINOR_TOPIC, WORD_ASLEEP, WORD_CHANGE,
    WORD_WAKE,
};

/// Where block 0 and block 1 begin in the header page.
pub const BLOCK_OFFSETS: [usize; 2] = [facts::BLOCK0, facts::BLOCK1];

/// The first line of every segment. Written once, before anyone else can see the segment; never changed after.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`BYTE_ORDER`].
    pub byte_order: u32,
    /// [`VERSION_MAJOR`].
    pub version_major: u16,
    /// [`VERSION_MINOR`].
    pub version_minor: u16,
    /// A [`Kind`].
    pub kind: u32,
    /// [`FLAG_PERSISTENT`] or 0.
    pub flags: u32,
    /// Feature bits that a reader must know to use the segment.
    pub features_required: u32,
    /// Feature bits that a reader may ignore.
    pub features_optional: u32,
    /// The length of the whole segment in bytes, header page included; equals the file's.
    pub size: u64,
    /// When it was made, in nanoseconds since 1970 (wall clock; for people, nothing is decided by it).
    pub created_ns: u64,
    /// The kernel's boot id as 16 raw bytes; all zero for a segment without a name. A named segment of another
    /// boot is stale.
    pub boot_id: [u8; 16],
}

/// Where a block's data lies. Written once, like [`SegmentHeader`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// From the start of the segment; a multiple of the creator's (huge) page.
    pub data_offset: u64,
    /// Bytes of data; a ring's is a power of two and at least a page (0: this direction of a bus does not exist),
    /// a region's is `len` rounded up to a page.
    pub capacity: u64,
    /// A region's length as it was asked for; 0 in a ring.
    pub len: u64,
    /// A ring's payload alignment, a power of two from [`ALIGN_MIN`] to [`ALIGN_MAX`]; 0 in a region.
    pub align: u32,
    /// 0.
    pub reserved: u32,
}

/// 128 bytes to itself: two cache lines, because the adjacent-line prefetcher moves them in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Line<T>(pub T);

impl<T> std::ops::Deref for Line<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Where a frame of the producer ended, and its tag: what a restarted producer asks for. Written only for a frame
/// that is published last and whose tag is not 0.
#[repr(C)]
#[derive(Debug)]
pub struct LastTag {
    /// The value of `tail` after the frame. It counts only if it equals `tail` now; if neither does, the last
    /// frame's tag is 0. A new producer sets an `end` that does not equal `tail` to 1, which no frame ends at.
    pub end: AtomicU64,
    /// The frame's tag.
    pub tag: AtomicU64,
}

/// Written by the producer only.
#[repr(C)]
#[derive(Debug)]
pub struct TailLine {
    /// End of the last published frame: a byte position that only grows (wrapping).
    /// Invariant: ≡ align − 16 (mod align); tail − head is in 0 ..= capacity.
    pub tail: AtomicU64,
    /// Two records, written in turn before `tail`, so that a kill between the two stores leaves the older one whole.
    pub last_tags: [LastTag; 2],
}

/// Written by the consumer only.
#[repr(C)]
#[derive(Debug)]
pub struct HeadLine {
    /// Start of the first frame that is not released: same rules as `tail`, never ahead of it.
    pub head: AtomicU64,
}

/// What one side says of itself. Written by the holder of the role, except that a waker clears `wait`.
#[repr(C)]
#[derive(Debug)]
pub struct RoleLine {
    /// The futex: 1 while the holder sleeps or is about to, else 0. At most one waiter.
    pub wait: AtomicU32,
    /// [`ROLE_MEMBARRIER_CAPABLE`], [`ROLE_FENCE_FREE`], [`ROLE_CLOSED`]; written afresh at each attach.
    pub flags: AtomicU32,
    /// How often this role has been attached (wrapping, skipping 0): 0 means never.
    pub epoch: AtomicU32,
    /// Consumer only: the producer's epoch whose orderly close it has delivered; 0 if none.
    pub close_seen: AtomicU32,
}

/// A ring's part of the header page.
#[repr(C)]
#[derive(Debug)]
pub struct RingBlock {
    /// Where the data lies; read once at attach, never again.
    pub geometry: Line<Geometry>,
    /// The producer's position.
    pub tail: Line<TailLine>,
    /// The consumer's position.
    pub head: Line<HeadLine>,
    /// The producer's role words.
    pub producer: Line<RoleLine>,
    /// The consumer's role words.
    pub consumer: Line<RoleLine>,
}

/// A region's part of the header page.
#[repr(C)]
pub struct RegionBlock {
    /// Where the data lies.
    pub geometry: Line<Geometry>,
    /// Bit 0: somebody waits. The rest counts notifications (wrapping).
    pub notify: Line<AtomicU32>,
}

/// Where a topic's parts lie, and what its creator decided. Written once, like [`SegmentHeader`]. Its first words are
/// those of a [`Geometry`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TopicGeometry {
    /// From the start of the segment; a multiple of the creator's (huge) page.
    pub data_offset: u64,
    /// Bytes of data: a power of two and at least a page.
    pub capacity: u64,
    /// 0.
    pub len: u64,
    /// The payloads' alignment, a power of two from [`TOPIC_ALIGN_MIN`] to [`ALIGN_MAX`], at most half of the capacity.
    pub align: u32,
    /// 0.
    pub reserved: u32,
    /// How many [`Slot`]s there are, 1 to [`TOPIC_SLOTS_MAX`].
    pub slots: u32,
    /// [`TOPIC_LOSSY_ONLY`], [`TOPIC_MAY_EJECT`].
    pub flags: u32,
    /// Where the subscribers' area begins, from the start of the segment; a multiple of the creator's (huge) page.
    pub subs_offset: u64,
}

/// Written by the publisher only, at each publish.
#[repr(C)]
#[derive(Debug)]
pub struct TopicPositions {
    /// End of the last published frame: a byte position that only grows (wrapping).
    /// Invariant: ≡ align − 32 (mod align).
    pub tail: AtomicU64,
    /// Start of the last published frame; equal to `tail` while none was ever published.
    pub last: AtomicU64,
}

/// What the publisher says of itself. Written by it alone.
#[repr(C)]
#[derive(Debug)]
pub struct PublisherLine {
    /// `wait` and `close_seen` stay 0: the publisher's futex word is in the [`SubscribersHead`], because subscribers
    /// write it.
    pub role: RoleLine,
    /// After how many nanoseconds a subscriber that holds the publisher back is ejected; 0 is never.
    pub eject_after: AtomicU64,
}

/// A topic's part of the header page. After creation the publisher alone writes it; subscribers map it read-only.
#[repr(C)]
#[derive(Debug)]
pub struct TopicBlock {
    /// Where the parts lie; read once at attach, never again.
    pub geometry: Line<TopicGeometry>,
    /// The publisher's positions.
    pub positions: Line<TopicPositions>,
    /// Everything below `claim − capacity` is overwritten, or may be at any moment. On a line of its own: beside `tail`
    /// a lossy subscriber costs the publisher twice its time.
    pub claim: Line<AtomicU64>,
    /// For each of the [`TOPIC_CHUNKS`] parts of the data area the position of a frame that begins there.
    pub starts: Line<[AtomicU64; TOPIC_CHUNKS as usize]>,
    /// The publisher's role words.
    pub publisher: Line<PublisherLine>,
}

/// What a topic's subscribers' area begins with. The [`Slot`]s follow at [`SLOTS_OFFSET`].
#[repr(C)]
#[derive(Debug)]
pub struct SubscribersHead {
    /// The publisher's futex word, as [`RoleLine::wait`]: 1 while it sleeps or is about to, cleared by who wakes it.
    pub publisher_wait: Line<AtomicU32>,
    /// Low half: the futex word that all subscribers share; bit 0 says that one sleeps, the rest counts. High half: counts
    /// changes of the slots. Accessed as one u64 only ([`WORD_ASLEEP`], [`WORD_CHANGE`], [`WORD_WAKE`]).
    pub word: Line<AtomicU64>,
}

/// Where the slots begin in the subscribers' area.
pub const SLOTS_OFFSET: usize = facts::OFF_SUBS_SLOTS;

/// One subscriber's words. Its holder writes them, except that the publisher writes `eject_seq` and takes flags out of
/// `state`.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Slot {
    /// Start of the first frame that is not released.
    pub cursor: AtomicU64,
    /// The epoch in the high half; [`SLOT_ACTIVE`], [`SLOT_GATING`], [`SLOT_DURABLE`], [`SLOT_EJECTED`] in the low one.
    pub state: AtomicU64,
    /// [`SLOT_FLAG_MEMBARRIER_CAPABLE`], [`SLOT_FLAG_FENCE_FREE`], [`SLOT_FLAG_LATEST`].
    pub flags: AtomicU32,
    /// The publisher's epoch whose orderly close was delivered here; 0 if none.
    pub close_seen: AtomicU32,
    /// How many messages this subscriber has lost. Nothing is decided by it.
    pub lost: AtomicU64,
    /// `seq` of the frame at the cursor when the publisher ejected this subscriber.
    pub eject_seq: AtomicU64,
    /// 0.
    pub reserved: [AtomicU64; 3],
    /// UTF-8, padded with zeros, compared whole, eight bytes at a time in memory order; all zero is none.
    pub label: [AtomicU64; facts::LABEL_MAX / 8],
}

/// The epoch in a slot's `state`.
pub const fn slot_epoch(state: u64) -> u32 {
    (state >> 32) as u32
}

/// A slot's `state` out of its parts.
pub const fn slot_state(epoch: u32, flags: u64) -> u64 {
    (epoch as u64) << 32 | flags
}

/// Bytes of a subscribers' area with so many slots.
pub const fn subscribers_len(slots: u32) -> u64 {
    SLOTS_OFFSET as u64 + facts::SLOT_SIZE as u64 * slots as u64
}

/// The first position of a topic with this alignment.
pub const fn first_topic_position(align: u32) -> u64 {
    align as u64 - TOPIC_FRAME_HEADER
}

/// Whether a frame of a topic with this alignment could begin there.
pub const fn is_topic_position(position: u64, align: u32) -> bool {
    position & (align as u64 - 1) == first_topic_position(align)
}

/// How many bytes a topic's frame with a payload of `len` takes. Cannot overflow for a `len` up to 2^32.
#[inline(always)]
pub const fn topic_frame_size(len: u64, align: u32) -> u64 {
    let mask = align as u64 - 1;
    (TOPIC_FRAME_HEADER + len + mask) & !mask
}

/// The longest payload that a topic of this capacity can ever hold: a whole frame takes at most half of it, so that the
/// newest message stays while the next one is written. The alignment divides the half, so it plays no part.
pub const fn max_topic_message_len(capacity: u64) -> u64 {
    let fits = (capacity / 2).saturating_sub(TOPIC_FRAME_HEADER);
    if fits < TOPIC_MESSAGE_MAX { fits } else { TOPIC_MESSAGE_MAX }
}

/// The first position of a ring with this alignment.
pub const fn first_position(align: u32) -> u64 {
    align as u64 - FRAME_HEADER
}

/// Whether two positions could be those of a ring at rest: where frames can begin, and at most a capacity apart.
pub const fn positions_agree(tail: u64, head: u64, capacity: u64, align: u32) -> bool {
    let mask = align as u64 - 1;
    let first = first_position(align);
    tail & mask == first && head & mask == first && tail.wrapping_sub(head) <= capacity
}

/// The same for a topic's positions, the later one first.
pub const fn topic_positions_agree(later: u64, earlier: u64, capacity: u64, align: u32) -> bool {
    is_topic_position(later, align) && is_topic_position(earlier, align) && later.wrapping_sub(earlier) <= capacity
}

/// How many bytes a frame with a payload of `len` takes. Cannot overflow for a `len` up to 2^32.
#[inline(always)]
pub const fn frame_size(len: u64, align: u32) -> u64 {
    let mask = align as u64 - 1;
    (FRAME_HEADER + len + mask) & !mask
}

/// The longest payload that a ring of this capacity can ever hold.
pub const fn max_message_len(capacity: u64) -> u64 {
    let fits = capacity.saturating_sub(FRAME_HEADER);
    if fits < MESSAGE_MAX { fits } else { MESSAGE_MAX }
}
