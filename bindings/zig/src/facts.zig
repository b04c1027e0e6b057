//! Generated from format/facts.toml by `make facts`: edit that, not this.

// The segment header's values.

/// The first eight bytes of every segment.
pub const magic = "RAMWAY\r\n";
/// Written in the creator's byte order, so that a reader of the other order sees it swapped.
pub const byte_order: u32 = 0x0A0B0C0D;
/// What a reader of the other byte order sees.
pub const byte_order_swapped: u32 = 0x0D0C0B0A;
/// A reader refuses another major version.
pub const version_major: u16 = 1;
/// What the creator of a topic writes: the minor version that brought topics.
pub const version_minor_topic: u16 = 1;
/// The required feature bits of everything but an RPC's bus. Any other set bit is AbiMismatch.
pub const features_known: u32 = 0;
/// In the segment's flags: the last one out leaves the name in place.
pub const flag_persistent: u32 = 1;

// The header page.

/// The length of the header page in bytes: a segment's data begins here or later.
pub const header_size = 4096;
/// Where block 0 begins in the header page.
pub const block0 = 0x400;

// Frames.

/// The length of what precedes every payload: len u32, type id u32, tag u64.
pub const frame_header = 16;
/// The smallest and default alignment of payloads.
pub const align_min: u32 = 16;
/// The largest alignment of payloads.
pub const align_max: u32 = 4096;
/// No message is longer, whatever the capacity: with its header it stays below 2^31.
pub const message_max: u32 = 2_147_483_631;
/// Type ids from here up are Ramway's own.
pub const type_id_reserved: u32 = 0xFFFF0000;
/// In the `end` of a last-tag record: no frame ends here, because positions are multiples of 16.
pub const no_position: u64 = 1;

// Frames of a topic.

/// The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64.
pub const topic_frame_header = 32;
/// The smallest and default alignment of a topic's payloads.
pub const topic_align_min: u32 = 32;
/// No message of a topic is longer, whatever the capacity: with its header it stays below 2^31.
pub const topic_message_max: u32 = 2_147_483_615;

// A topic's parts.

/// Parts of a topic's data area that have an entry in `starts` each. The publisher announces in advance, in whole
/// parts, what it will overwrite.
pub const topic_chunks = 16;
/// A topic has at most this many slots for subscribers.
pub const topic_slots_max: u32 = 1024;
/// In the creator's flags: no subscriber may hold the publisher back.
pub const topic_lossy_only: u32 = 1;
/// In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they
/// receive.
pub const topic_may_eject: u32 = 2;
/// The creator's flags that this version knows. Any other set bit is AbiMismatch.
pub const topic_flags_known: u32 = 3;

// A subscriber's slot.

/// The length of a slot in bytes.
pub const slot_size = 128;
/// The longest label of a subscriber, in bytes of UTF-8.
pub const label_max = 64;

// The bits of a slot's state; its epoch is the upper half.

/// A subscriber has the slot.
pub const slot_active: u32 = 1;
/// The publisher does not overwrite what lies at the slot's cursor or after it.
pub const slot_gating: u32 = 2;
/// The slot, its label and its cursor stay when its subscriber goes.
pub const slot_durable: u32 = 4;
/// The publisher has ejected the subscriber: it does not gate any more.
pub const slot_ejected: u32 = 8;

// The bits of a slot's flags, which its subscriber writes.

/// As of a role: a real membarrier succeeded in the subscriber's process.
pub const slot_flag_membarrier_capable: u32 = 1;
/// As of a role: the subscriber does not fence before it wakes the publisher.
pub const slot_flag_fence_free: u32 = 2;
/// The subscriber reads the newest message only: for people who look at the topic.
pub const slot_flag_latest: u32 = 8;

// The subscribers' shared word, which is accessed as one u64 only.

/// A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a
/// wake-up.
pub const word_asleep: u64 = 1;
/// Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for, and
/// keeps the bit.
pub const word_wake: u64 = 2;
/// A subscriber that joins or leaves adds this: the upper half counts changes of the slots.
pub const word_change: u64 = 4_294_967_296;

// The bits of a role's flags.

/// A real membarrier succeeded in the holder's process.
pub const role_membarrier_capable: u32 = 1;
/// As a waker, the holder does not fence.
pub const role_fence_free: u32 = 2;
/// The holder closed in an orderly way.
pub const role_closed: u32 = 4;

// The bytes of a segment's file that are locked.

/// Shared: in use by a handle. Exclusive: the last one out, or a cleaner, decides about the name.
pub const byte_in_use = 0;
/// Exclusive: the producer's role is held.
pub const byte_producer = 1;
/// Exclusive: the consumer's role is held.
pub const byte_consumer = 2;
/// Exclusive, of a topic: the publisher's role is held.
pub const byte_publisher = 1;
/// Exclusive, of a topic: a subscriber with a label looks for its slot.
pub const byte_join = 2;
/// Exclusive, of a topic: this byte and the slot's number is the life of the slot's subscriber.
pub const byte_slot = 16;

// Names and directories.

/// The longest name in the Ramway directory, in bytes.
pub const name_max = 80;
/// A listener's socket is NAME and this; no other name ends so.
pub const socket_suffix = ".sock";

// How a call waits. A poll takes 25 ns: a load and a PAUSE.

/// Polls before a call sleeps, at most: 75 µs, about what a sleep and the wake-up from it cost (decision 18).
pub const spin_max = 3000;
/// The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
/// death within two intervals.
pub const poll_interval_ns: u64 = 100_000_000;
/// The longest sleep where the waker does not fence and this side cannot make it: the wake-up may be missed, so it is
/// short.
pub const unordered_interval_ns: u64 = 1_000_000;

// Topics.

/// A topic's slots for subscribers, by default.
pub const topic_slots_default: u32 = 32;
/// How often a call that does not wait lets the publisher overtake it before it gives up and says Empty.
pub const overtaken_max = 16;
/// A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the
/// capacity (a half) behind `claim`: farther back it would be overtaken again.
pub const resume_fraction = 2;

// Opening and creating.

/// How long a race with another process (a segment that is just going away) is tried again, at least.
pub const race_timeout_ns: u64 = 1_000_000_000;
/// A ring's capacity in bytes, by default.
pub const capacity_default: u64 = 1_048_576;

// Where the fields of the segment header are, from the segment's start.

/// 8 bytes.
pub const off_magic = 0x00;
/// u32: `0x0A0B0C0D`, so the bytes are `0D 0C 0B 0A`.
pub const off_byte_order = 0x08;
/// u16: 1.
pub const off_version_major = 0x0C;
/// u16: 0, of a topic 1 (section 15).
pub const off_version_minor = 0x0E;
/// u32.
pub const off_kind = 0x10;
/// u32: bit 0 `PERSISTENT`: the last one out leaves the name in place.
pub const off_flags = 0x14;
/// u32: 0, of an RPC's bus 1 ([section 20](#20-rpc)).
pub const off_features_required = 0x18;
/// u32: 0.
pub const off_features_optional = 0x1C;
/// u64: length of the whole segment in bytes, header page included.
pub const off_size = 0x20;
/// u64: wall clock at creation, nanoseconds since 1970.
pub const off_created_ns = 0x28;
/// 16 bytes: the kernel's boot id (`/proc/sys/kernel/random/boot_id`) as 16 raw bytes in the order in which they are
/// printed.
pub const off_boot_id = 0x30;

// Where the fields of a block's geometry are, from the block's start.

/// u64: segment offset of the data area.
pub const off_data_offset = 0x000;
/// u64: bytes of data. Ring: a power of two, ≥ that page, ≥ `align`.
pub const off_capacity = 0x008;
/// u64: region: the length that was asked for.
pub const off_len = 0x010;
/// u32: ring: alignment of payloads, a power of two from 16 to 4096.
pub const off_align = 0x018;

// Where a ring's words are, from the block's start.

/// u64: end of the last published frame.
pub const off_tail = 0x080;
/// Two last-tag records: the end and the tag of a published frame.
pub const off_last_tags = 0x088;
/// u64: start of the first frame that is not released.
pub const off_head = 0x100;
/// The producer's role line.
pub const off_producer = 0x180;
/// The consumer's role line.
pub const off_consumer = 0x200;

// A last-tag record, from its start.

/// The value of `tail` after the frame.
pub const last_tag_end = 0x0;
/// The frame's tag.
pub const last_tag_tag = 0x8;
/// The length of a record.
pub const last_tag_size = 0x10;

// A role's words, from the start of its line.

/// The futex: 1 while the holder sleeps or is about to.
pub const off_role_wait = 0x0;
/// The role's flags, written anew at each attach.
pub const off_role_flags = 0x4;
/// How often the role was attached; 0 = never.
pub const off_role_epoch = 0x8;
/// Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none.
pub const off_role_close_seen = 0xC;

// Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.

/// u32: how many slots there are, 1 to 1024.
pub const off_topic_slots = 0x020;
/// u32: bit 0 `LOSSY_ONLY`, bit 1 `MAY_EJECT`.
pub const off_topic_flags = 0x024;
/// u64: segment offset of the subscribers' area.
pub const off_topic_subs_offset = 0x028;
/// u64: end of the last published frame.
pub const off_topic_tail = 0x080;
/// u64: start of the last published frame.
pub const off_topic_last = 0x088;
/// u64: everything below `claim − capacity` is overwritten, or may be at any moment.
pub const off_topic_claim = 0x100;
/// u64[16]: for each sixteenth of the data area a position where a frame begins in it.
pub const off_topic_starts = 0x180;
/// The publisher's role line. Its futex word is in the subscribers' area.
pub const off_topic_publisher = 0x200;
/// u64: nanoseconds after which a subscriber that holds the publisher back is ejected.
pub const off_topic_eject_after = 0x210;

// Where the words of a topic's subscribers' area are, from its start.

/// The publisher's futex word.
pub const off_subs_wait = 0x0000;
/// u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts).
pub const off_subs_word = 0x0080;
/// Slot 0; the others follow.
pub const off_subs_slots = 0x1000;

// Where the words of a subscriber's slot are, from its start.

/// u64: start of the first frame that is not released.
pub const off_slot_cursor = 0x00;
/// u64: high half: epoch.
pub const off_slot_state = 0x08;
/// u32: bit 0 `MEMBARRIER_CAPABLE`, bit 1 `FENCE_FREE`, bit 3 `LATEST`.
pub const off_slot_flags = 0x10;
/// u32: the publisher's epoch whose orderly close was delivered, 0 = none.
pub const off_slot_close_seen = 0x14;
/// u64: how many messages this subscriber has lost.
pub const off_slot_lost = 0x18;
/// u64: `seq` of the frame at the cursor when the subscriber was ejected.
pub const off_slot_eject_seq = 0x20;
/// 64 bytes: UTF-8, padded with zeros, compared whole.
pub const off_slot_label = 0x40;

// A frame's fields, from its start. The payload follows.

/// Bytes of payload.
pub const frame_len = 0x00;
/// The user's type id, or one of Ramway's own.
pub const frame_type_id = 0x04;
/// The user's tag.
pub const frame_tag = 0x08;

// A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.

/// The message's number: the first has 1, and it rises.
pub const topic_frame_seq = 0x10;
/// When it was published, or 0.
pub const topic_frame_time = 0x18;

// What a segment holds.

/// Shared bytes with notify and wait; block 0 is the region's.
pub const kind_region: u32 = 1;
/// One ring, in block 0.
pub const kind_ring: u32 = 2;
/// Two rings: block 0 from the listener to the connector, block 1 back.
pub const kind_bus: u32 = 3;
/// The lock of a listening socket; no block.
pub const kind_listener: u32 = 4;
/// One log with one publisher and many subscribers; block 0 is the topic's.
pub const kind_topic: u32 = 5;

/// The errors, as section 14 of docs/ABI.md names them.
pub const Error = error{
    NotFound,
    AlreadyExists,
    InvalidArgument,
    Busy,
    Full,
    Empty,
    TooLarge,
    TimedOut,
    Closed,
    Detached,
    PeerDead,
    Corrupt,
    AbiMismatch,
    PermissionDenied,
    NoSpace,
    Interrupted,
    Unsupported,
    Os,
    Lagged,
};

/// An error's number.
pub fn number(e: Error) u32 {
    return switch (e) {
        error.NotFound => 1,
        error.AlreadyExists => 2,
        error.InvalidArgument => 3,
        error.Busy => 4,
        error.Full => 5,
        error.Empty => 6,
        error.TooLarge => 7,
        error.TimedOut => 8,
        error.Closed => 9,
        error.Detached => 10,
        error.PeerDead => 11,
        error.Corrupt => 12,
        error.AbiMismatch => 13,
        error.PermissionDenied => 14,
        error.NoSpace => 15,
        error.Interrupted => 16,
        error.Unsupported => 17,
        error.Os => 18,
        error.Lagged => 19,
    };
}
