//! A topic's frames: the ring's 16 bytes, then the message's number and when it was sent.

use crate::layout::TOPIC_MESSAGE_MAX;
use crate::sync::touch_data;

/// The 32 bytes before a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Bytes of payload in the low half, the type id in the high half.
    pub(super) len_and_type: u64,
    pub(super) tag: u64,
    pub(super) seq: u64,
    /// Nanoseconds since 1970, or 0.
    pub(super) time: u64,
}

impl Header {
    pub(super) fn len(&self) -> u64 {
        self.len_and_type & 0xFFFF_FFFF
    }

    pub(super) fn type_id(&self) -> u32 {
        (self.len_and_type >> 32) as u32
    }

    /// Whether a frame of `size` bytes, which this header asks for, lies within the `left` bytes that are published.
    #[inline(always)]
    pub(super) fn is_plausible(&self, size: u64, left: u64) -> bool {
        self.len() <= TOPIC_MESSAGE_MAX && size <= left
    }
}

/// Reads the header of the frame at a position, each number once.
///
/// # Safety
/// `data` is a mirrored mapping of 2 × `capacity` bytes, and `at` a position that is aligned as frames are, to 16 at least.
#[inline(always)]
pub(super) unsafe fn read_header(data: *const u8, at: u64, capacity: u64) -> Header {
    touch_data(data);
    // SAFETY: the offset is below the capacity, and a header is shorter than the capacity; so it lies in the mapping. Volatile:
    // each number is read exactly once, so that who rewrites it cannot pass a check with one value and be used with another.
    unsafe {
        let words = data.add((at & (capacity - 1)) as usize).cast::<u64>();
        Header {
            len_and_type: u64::from_le(words.read_volatile()),
            tag: u64::from_le(words.add(1).read_volatile()),
            seq: u64::from_le(words.add(2).read_volatile()),
            time: u64::from_le(words.add(3).read_volatile()),
        }
    }
}

/// Writes a frame's header, which stands before its payload, in two stores of 16 bytes where the processor has them: that
/// costs 20 % of a batched message less than four of 8.
///
/// # Safety
/// `payload` is aligned to 32, and the 32 bytes before it lie in the mapping and are the publisher's.
#[inline(always)]
pub(super) unsafe fn write_header(payload: *mut u8, header: Header) {
    let Header { len_and_type, tag, seq, time } = header;
    touch_data(payload);
    // SAFETY: the caller's. Not atomic: nobody reads them before `tail` is published with Release.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_set_epi64x, _mm_store_si128};
        let to = payload.sub(32).cast::<__m128i>();
        _mm_store_si128(to, _mm_set_epi64x(tag as i64, len_and_type as i64));
        _mm_store_si128(to.add(1), _mm_set_epi64x(time as i64, seq as i64));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: as above.
    unsafe {
        let to = payload.sub(32).cast::<[u64; 2]>();
        to.write([len_and_type.to_le(), tag.to_le()]);
        to.add(1).write([seq.to_le(), time.to_le()]);
    }
}
