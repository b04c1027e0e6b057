//! How a frame gets into the ring's memory.

use crate::layout::FRAME_HEADER;
use crate::sync::want_to_write;

/// How far before it is written to a line is asked for, in bytes.
const AHEAD: usize = 256;

/// Asks for a line of what will be written a few messages after this payload, or for four where frames are longer than
/// a line: the consumer's processor has them, and a sender that only stores waits for as many of them at a time as its
/// store buffer holds (docs/adr/0018). What of that is still unread is in this processor's cache anyway.
#[inline(always)]
pub(super) fn ask_ahead(payload: *mut u8, len: u64) {
    want_to_write(payload.wrapping_add(AHEAD));
    if len > 64 {
        want_to_write(payload.wrapping_add(AHEAD + 64));
        want_to_write(payload.wrapping_add(AHEAD + 128));
        want_to_write(payload.wrapping_add(AHEAD + 192));
    }
}

/// Writes a frame's header, which stands before its payload.
///
/// # Safety
/// `payload` is aligned to 16, and the 16 bytes before it lie in the mapping and are the producer's.
#[inline(always)]
pub(super) unsafe fn write_header(payload: *mut u8, len: u64, type_id: u32, tag: u64) {
    // SAFETY: the caller's. Not atomic: nobody reads them before `tail` is published with Release.
    unsafe {
        let header = payload.sub(FRAME_HEADER as usize);
        header.cast::<u64>().write((len | (type_id as u64) << 32).to_le());
        header.add(8).cast::<u64>().write(tag.to_le());
    }
}
