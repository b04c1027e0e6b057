//! How a frame gets into the ring's memory.

use crate::layout::FRAME_HEADER;
use crate::sync::want_to_write;

/// How far behind the place of the next payload the line lies that is asked for, in bytes.
const AHEAD: usize = 192;

/// Asks for a line of what will be written a few messages later, or for the first four of the next message where frames are
/// longer than a line. `next` is where its payload will begin, `len` is the length of the last one. The consumer's processor
/// has these lines, and a sender that only stores waits for as many of them at a time as its store buffer holds
/// (docs/adr/0018). What of that is still unread is in this processor's cache anyway.
///
/// It is done after a message was published, not before it is written: then nothing that the message needs waits for it, and
/// in a conversation it is over before the answer is there (docs/adr/0032).
#[inline(always)]
pub(super) fn ask_ahead(next: *mut u8, len: u64) {
    if len > 64 {
        want_to_write(next);
        want_to_write(next.wrapping_add(64));
        want_to_write(next.wrapping_add(128));
    }
    want_to_write(next.wrapping_add(AHEAD));
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
