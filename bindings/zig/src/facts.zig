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
/// The required feature bits that this version knows. Any other set bit is AbiMismatch.
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
/// u16: 0.
pub const off_version_minor = 0x0E;
/// u32.
pub const off_kind = 0x10;
/// u32: bit 0 `PERSISTENT`: the last one out leaves the name in place.
pub const off_flags = 0x14;
/// u32: 0.
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

// A frame's fields, from its start. The payload follows.

/// Bytes of payload.
pub const frame_len = 0x00;
/// The user's type id, or one of Ramway's own.
pub const frame_type_id = 0x04;
/// The user's tag.
pub const frame_tag = 0x08;

// What a segment holds.

/// Shared bytes with notify and wait; block 0 is the region's.
pub const kind_region: u32 = 1;
/// One ring, in block 0.
pub const kind_ring: u32 = 2;
/// Two rings: block 0 from the listener to the connector, block 1 back.
pub const kind_bus: u32 = 3;
/// The lock of a listening socket; no block.
pub const kind_listener: u32 = 4;

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
    };
}
