//! The numbers of docs/ABI.md that this port uses.

pub const magic = "RAMWAY\r\n";
pub const byte_order: u32 = 0x0A0B0C0D;
pub const byte_order_swapped: u32 = 0x0D0C0B0A;
pub const version_major: u16 = 1;
pub const features_known: u32 = 0;
pub const header_size = 4096;

pub const kind_region: u32 = 1;
pub const kind_ring: u32 = 2;
pub const kind_listener: u32 = 4;
pub const flag_persistent: u32 = 1;

// Offsets in the header page.
pub const off_byte_order = 0x08;
pub const off_version_major = 0x0C;
pub const off_kind = 0x10;
pub const off_flags = 0x14;
pub const off_features_required = 0x18;
pub const off_size = 0x20;
pub const off_created = 0x28;
pub const off_boot_id = 0x30;

// Offsets in block 0, which begins here.
pub const block0 = 0x400;
pub const off_data_offset = 0x000;
pub const off_capacity = 0x008;
pub const off_align = 0x018;
pub const off_tail = 0x080;
pub const off_last_tags = 0x088;
pub const off_head = 0x100;
pub const off_producer = 0x180;
pub const off_consumer = 0x200;

/// What one side of a ring says of itself.
pub const RoleLine = extern struct { wait: u32, flags: u32, epoch: u32, close_seen: u32 };
pub const role_fence_free: u32 = 2;
pub const role_closed: u32 = 4;

pub const frame_header = 16;
pub const align_min = 16;
pub const align_max = 4096;
pub const message_max = (1 << 31) - 17;
pub const type_id_reserved: u32 = 0xFFFF0000;
pub const name_max = 80;

pub const byte_in_use = 0;
pub const byte_producer = 1;
pub const byte_consumer = 2;

pub const poll_interval_ms = 100;
pub const unfenced_poll_interval_ms = 1;
pub const spin_max = 3000;

/// The errors that this port gives, as section 14 names them.
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
