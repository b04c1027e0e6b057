//! Generated from format/facts.toml by `make facts`: edit that, not this.
//!
//! The status numbers, and those that calls take and give.

use ramway_core::ErrorKind;

/// What a segment is. Shared bytes with notify and wait; block 0 is the region's.
pub const RAMWAY_KIND_REGION: u32 = 1;
/// What a segment is. One ring, in block 0.
pub const RAMWAY_KIND_RING: u32 = 2;
/// What a segment is. The lock of a listening socket; no block.
pub const RAMWAY_KIND_LISTENER: u32 = 4;
/// What a segment is. One log with one publisher and many subscribers; block 0 is the topic's.
pub const RAMWAY_KIND_TOPIC: u32 = 5;
/// A tensor has at most this many dimensions.
pub const RAMWAY_NDIM_MAX: usize = 32;
/// The type id of a message that is a tensor: `ramway_message_tensor` reads it.
pub const RAMWAY_TYPE_ID_TENSOR: u32 = 0xFFFF0001;
/// The code of int8, int16, int32, int64.
pub const RAMWAY_DTYPE_INT: u8 = 0;
/// The code of uint8, uint16, uint32, uint64.
pub const RAMWAY_DTYPE_UINT: u8 = 1;
/// The code of float16, float32, float64.
pub const RAMWAY_DTYPE_FLOAT: u8 = 2;
/// The upper half of a binary32.
pub const RAMWAY_DTYPE_BFLOAT: u8 = 4;
/// The code of complex64, complex128.
pub const RAMWAY_DTYPE_COMPLEX: u8 = 5;
/// One byte, 0 or 1; a peer can send any byte.
pub const RAMWAY_DTYPE_BOOL: u8 = 6;
/// 8 bits: 3 of exponent, 4 of mantissa.
pub const RAMWAY_DTYPE_FLOAT8_E3M4: u8 = 7;
/// 8 bits: 4 of exponent, 3 of mantissa, with infinities.
pub const RAMWAY_DTYPE_FLOAT8_E4M3: u8 = 8;
/// 8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.
pub const RAMWAY_DTYPE_FLOAT8_E4M3B11FNUZ: u8 = 9;
/// 8 bits: 4 of exponent, 3 of mantissa, no infinities.
pub const RAMWAY_DTYPE_FLOAT8_E4M3FN: u8 = 10;
/// 8 bits: 4 of exponent, 3 of mantissa, one NaN.
pub const RAMWAY_DTYPE_FLOAT8_E4M3FNUZ: u8 = 11;
/// 8 bits: 5 of exponent, 2 of mantissa, with infinities.
pub const RAMWAY_DTYPE_FLOAT8_E5M2: u8 = 12;
/// 8 bits: 5 of exponent, 2 of mantissa, one NaN.
pub const RAMWAY_DTYPE_FLOAT8_E5M2FNUZ: u8 = 13;
/// 8 bits of exponent: a power of two.
pub const RAMWAY_DTYPE_FLOAT8_E8M0FNU: u8 = 14;
/// RPC methods from here up are Ramway's own: an application's are below.
pub const RAMWAY_METHOD_RESERVED: u32 = 0xFFFF0000;
/// How a server says that a call has ended. The call succeeded.
pub const RAMWAY_RPC_OK: u32 = 0;
/// How a server says that a call has ended. The handler replied with an error of its own: a number and a text.
pub const RAMWAY_RPC_APPLICATION: u32 = 1;
/// How a server says that a call has ended. The server has no such method. The call was not run.
pub const RAMWAY_RPC_NO_SUCH_METHOD: u32 = 2;
/// How a server says that a call has ended. The call's time was over before it was begun. It was not run.
pub const RAMWAY_RPC_TIMED_OUT: u32 = 3;
/// How a server says that a call has ended. The call was cancelled.
pub const RAMWAY_RPC_CANCELLED: u32 = 4;
/// How a server says that a call has ended. A limit of the server was reached. The call was not run.
pub const RAMWAY_RPC_OVERLOADED: u32 = 5;
/// How a server says that a call has ended. The call was run, but its reply is longer than the ring or than the
/// server's limit of bytes.
pub const RAMWAY_RPC_REPLY_TOO_LARGE: u32 = 6;
/// How a server says that a call has ended. The server is shutting down. The call was not run.
pub const RAMWAY_RPC_DRAINING: u32 = 7;
/// How a server says that a call has ended. The handler failed in a way that it did not mean to: a panic, an exception.
pub const RAMWAY_RPC_HANDLER_FAILED: u32 = 8;

/// What a call returns: 0 for success, else one of the error numbers that all of Ramway's languages share. New
/// numbers may be added at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ramway_status {
    /// Success.
    RAMWAY_OK = 0,
    /// Nothing has this name.
    RAMWAY_NOT_FOUND = 1,
    /// The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.
    RAMWAY_ALREADY_EXISTS = 2,
    /// An argument cannot be right, a null pointer for example; the message says which and what was expected.
    RAMWAY_INVALID_ARGUMENT = 3,
    /// The role is held by another handle; or a slot is open (`ramway_reserve`), or a message or batch is not released
    /// (`ramway_recv`), and the call would need a second one.
    RAMWAY_BUSY = 4,
    /// The ring or topic has no room for this message now, and the call was told not to wait.
    RAMWAY_FULL = 5,
    /// There is no message (connection, notification) now, and the call was told not to wait.
    RAMWAY_EMPTY = 6,
    /// The message can never fit into this ring, or (`ramway_recv_into`) not into this buffer.
    RAMWAY_TOO_LARGE = 7,
    /// The time-out passed.
    RAMWAY_TIMED_OUT = 8,
    /// The peer closed, and everything that it had sent has been received. On a named ring a successor may come.
    RAMWAY_CLOSED = 9,
    /// This handle belongs to the parent of a forked process.
    RAMWAY_DETACHED = 10,
    /// The peer's process died without closing, and everything that it had committed has been received.
    RAMWAY_PEER_DEAD = 11,
    /// The shared memory holds what no correct peer writes; the handle stays dead.
    RAMWAY_CORRUPT = 12,
    /// Not Ramway's, or a version, byte order, feature or page size that this side cannot use.
    RAMWAY_ABI_MISMATCH = 13,
    /// The operating system, or a check of the peer's user, refuses.
    RAMWAY_PERMISSION_DENIED = 14,
    /// Not enough memory or file system space.
    RAMWAY_NO_SPACE = 15,
    /// A signal handler ran while the call waited, and the handle was told to stop for that.
    RAMWAY_INTERRUPTED = 16,
    /// This kernel, file system or setting cannot do what was asked.
    RAMWAY_UNSUPPORTED = 17,
    /// Any other error of the operating system (`ramway_last_errno` has its number), or a bug in Ramway that was caught
    /// before it could cross into C.
    RAMWAY_OS = 18,
    /// The publisher of a topic ejected this subscriber, which was too slow; `ramway_last_lost` says how many messages
    /// were lost.
    RAMWAY_LAGGED = 19,
}

impl From<ErrorKind> for ramway_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::RAMWAY_NOT_FOUND,
            ErrorKind::AlreadyExists => Self::RAMWAY_ALREADY_EXISTS,
            ErrorKind::InvalidArgument => Self::RAMWAY_INVALID_ARGUMENT,
            ErrorKind::Busy => Self::RAMWAY_BUSY,
            ErrorKind::Full => Self::RAMWAY_FULL,
            ErrorKind::Empty => Self::RAMWAY_EMPTY,
            ErrorKind::TooLarge => Self::RAMWAY_TOO_LARGE,
            ErrorKind::TimedOut => Self::RAMWAY_TIMED_OUT,
            ErrorKind::Closed => Self::RAMWAY_CLOSED,
            ErrorKind::Detached => Self::RAMWAY_DETACHED,
            ErrorKind::PeerDead => Self::RAMWAY_PEER_DEAD,
            ErrorKind::Corrupt => Self::RAMWAY_CORRUPT,
            ErrorKind::AbiMismatch => Self::RAMWAY_ABI_MISMATCH,
            ErrorKind::PermissionDenied => Self::RAMWAY_PERMISSION_DENIED,
            ErrorKind::NoSpace => Self::RAMWAY_NO_SPACE,
            ErrorKind::Interrupted => Self::RAMWAY_INTERRUPTED,
            ErrorKind::Unsupported => Self::RAMWAY_UNSUPPORTED,
            ErrorKind::Lagged => Self::RAMWAY_LAGGED,
            // `ErrorKind` may grow; a number that this library does not know is not made up.
            _ => Self::RAMWAY_OS,
        }
    }
}
