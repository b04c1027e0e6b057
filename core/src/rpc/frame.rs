//! The bytes of RPC frames: what is written before a body, and how what was received is checked.
//!
//! A received frame lies in memory that the other side can write. Its header is copied first; lengths are checked on the copy.

use crate::facts::{
    CALL_OFF_META_LEN, CALL_OFF_METHOD, CALL_OFF_TIMEOUT_US, CALL_OFF_WINDOW, METHOD_RESERVED, REPLY_OFF_CODE,
    REPLY_OFF_FLAGS, REPLY_OFF_META_LEN, REPLY_OFF_STATUS, RPC_ELEMENT, RPC_HEADER,
};
use crate::rpc::Status;
use std::ops::Range;
use std::time::Duration;

/// The number of a method's name: FNV-1a of 32 bits over its UTF-8 bytes, kept below the methods of Ramway's own.
///
/// ```
/// use ramway::rpc::method_id;
/// assert_eq!(method_id(""), 0x811C_9DC5);
/// assert_ne!(method_id("Store.Get"), method_id("Store.Put"));
/// ```
pub const fn method_id(name: &str) -> u32 {
    let (bytes, mut hash, mut i) = (name.as_bytes(), 0x811C_9DC5_u32, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    if hash >= METHOD_RESERVED { hash - METHOD_RESERVED } else { hash }
}

/// A CALL's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHeader {
    /// Microseconds that the call has left; 0 = no limit.
    pub(crate) timeout_us: u32,
    pub(crate) method: u32,
    /// 0: one reply; else how many elements of its stream may be under way.
    pub(crate) window: u32,
}

/// A REPLY's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyHeader {
    /// `Ok` of an element.
    pub(crate) status: Status,
    /// An element of a stream; else the final REPLY.
    pub(crate) element: bool,
    /// The application's number.
    pub(crate) code: u32,
}

/// Where metadata and body of a payload lie in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) meta: Range<usize>,
    pub(crate) body: Range<usize>,
}

/// The length of a payload, and where its body begins; `None`: no payload is that long.
#[inline]
pub(crate) fn payload_len(meta: usize, body: usize) -> Option<(usize, usize)> {
    // The header, and the metadata rounded up to a multiple of its length.
    let start = meta.checked_add(2 * RPC_HEADER - 1)? & !(RPC_HEADER - 1);
    Some((start.checked_add(body)?, start))
}

const _: () = assert!(RPC_HEADER.is_power_of_two());

/// A header of these values at these places. Made of one number, so that it is not written in parts and read as a whole.
#[inline]
fn header(values: [(usize, u32); 4]) -> [u8; RPC_HEADER] {
    values.into_iter().fold(0, |sum, (at, value)| sum | u128::from(value) << (8 * at)).to_le_bytes()
}

fn get(header: &[u8; RPC_HEADER], at: usize) -> u32 {
    u32::from_le_bytes(header[at..at + 4].try_into().expect("the slice has 4 bytes"))
}

impl CallHeader {
    /// `meta_len` is below 2^31, as every payload is.
    pub(crate) fn encode(self, meta_len: usize) -> [u8; RPC_HEADER] {
        header([
            (CALL_OFF_TIMEOUT_US, self.timeout_us),
            (CALL_OFF_META_LEN, meta_len as u32),
            (CALL_OFF_METHOD, self.method),
            (CALL_OFF_WINDOW, self.window),
        ])
    }

    /// Of a payload of `len` bytes that begins with these; `None`: no correct client sends it.
    #[inline]
    pub(crate) fn decode(header: &[u8; RPC_HEADER], len: usize) -> Option<(Self, Parts)> {
        let call = Self {
            timeout_us: get(header, CALL_OFF_TIMEOUT_US),
            method: get(header, CALL_OFF_METHOD),
            window: get(header, CALL_OFF_WINDOW),
        };
        Some((call, parts(get(header, CALL_OFF_META_LEN), len)?))
    }
}

impl ReplyHeader {
    /// `meta_len` is below 2^31, as every payload is.
    pub(crate) fn encode(self, meta_len: usize) -> [u8; RPC_HEADER] {
        header([
            (REPLY_OFF_STATUS, self.status as u32),
            (REPLY_OFF_FLAGS, if self.element { RPC_ELEMENT } else { 0 }),
            (REPLY_OFF_CODE, self.code),
            (REPLY_OFF_META_LEN, meta_len as u32),
        ])
    }

    /// Of a payload of `len` bytes that begins with these; `None`: no correct server sends it.
    #[inline]
    pub(crate) fn decode(header: &[u8; RPC_HEADER], len: usize) -> Option<(Self, Parts)> {
        let status = Status::from_code(get(header, REPLY_OFF_STATUS))?;
        let (flags, code) = (get(header, REPLY_OFF_FLAGS), get(header, REPLY_OFF_CODE));
        let element = flags == RPC_ELEMENT;
        let right = flags & !RPC_ELEMENT == 0
            && (!element || status == Status::Ok)
            && (code == 0 || status == Status::Application);
        let parts = parts(get(header, REPLY_OFF_META_LEN), len)?;
        right.then_some((Self { status, element, code }, parts))
    }
}

#[inline]
fn parts(meta_len: u32, len: usize) -> Option<Parts> {
    let (start, _) = payload_len(meta_len as usize, 0)?;
    (start <= len).then(|| Parts { meta: RPC_HEADER..RPC_HEADER + meta_len as usize, body: start..len })
}

/// What a CALL says of its time: what is `left`, in microseconds, rounded up and at least 1; 0: no limit.
pub(crate) fn timeout_us(left: Option<Duration>) -> u32 {
    let Some(left) = left else { return 0 };
    u32::try_from(left.as_nanos().div_ceil(1000)).map_or(0, |us| us.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_number_is_below_the_reserved_ones() {
        assert_eq!(method_id("Store.Get"), 0xBADE_BBDC);
        for i in 0..300_000u32 {
            assert!(method_id(&i.to_string()) < METHOD_RESERVED);
        }
    }

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let call = CallHeader { timeout_us: 1, method: 7, window: 3 };
        let (len, start) = payload_len(5, 9).unwrap();
        assert_eq!((len, start), (41, 32));
        assert_eq!(call.encode(5), [1, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(CallHeader::decode(&call.encode(5), len), Some((call, Parts { meta: 16..21, body: 32..41 })));
        assert_eq!(CallHeader::decode(&call.encode(5), 31), None, "its metadata and the padding do not fit");
        assert_eq!(CallHeader::decode(&call.encode(u32::MAX as usize), 100), None);
    }

    #[test]
    fn a_reply_that_no_server_sends_is_refused() {
        let good = ReplyHeader { status: Status::Application, element: false, code: 9 };
        assert_eq!(good.encode(0), [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ReplyHeader::decode(&good.encode(0), 20), Some((good, Parts { meta: 16..16, body: 16..20 })));
        let with = |at: usize, value: u32| {
            let mut header = ReplyHeader { status: Status::Ok, element: false, code: 0 }.encode(0);
            header[at..at + 4].copy_from_slice(&value.to_le_bytes());
            ReplyHeader::decode(&header, 16)
        };
        assert!(with(REPLY_OFF_FLAGS, 1).is_some());
        assert_eq!(with(REPLY_OFF_FLAGS, 2), None);
        assert_eq!(with(REPLY_OFF_STATUS, 9), None);
        assert_eq!(with(REPLY_OFF_CODE, 1), None);
        assert_eq!(with(REPLY_OFF_META_LEN, 1), None);
        let element = ReplyHeader { status: Status::Cancelled, element: true, code: 0 };
        assert_eq!(ReplyHeader::decode(&element.encode(0), 16), None);
    }

    #[test]
    fn what_is_left_of_a_time_limit_is_rounded_up() {
        assert_eq!(timeout_us(None), 0);
        assert_eq!(timeout_us(Some(Duration::from_nanos(1))), 1);
        assert_eq!(timeout_us(Some(Duration::from_nanos(1001))), 2);
        assert_eq!(timeout_us(Some(Duration::from_micros(u32::MAX.into()))), u32::MAX);
        assert_eq!(timeout_us(Some(Duration::from_micros(u64::from(u32::MAX) + 1))), 0);
        assert_eq!(timeout_us(Some(Duration::MAX)), 0);
    }
}
