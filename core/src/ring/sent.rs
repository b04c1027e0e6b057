//! Whether a thread that begins to wait for a message has just sent one: then it waits for an answer.

use std::cell::Cell;

thread_local! {
    /// Bytes of the first frame that this thread has committed since it last waited for a message; 0: none. Of the thread, because
    /// the two rings of a conversation know nothing of each other, and a line that all threads write would cost each of them.
    static SENT: Cell<u32> = const { Cell::new(0) };
}

/// This thread has committed a frame of so many bytes. A stream of them stores once.
#[inline(always)]
pub(super) fn committed(size: u64) {
    SENT.with(|sent| {
        if sent.get() == 0 {
            // Cannot be cut: a frame is at most 2^31 bytes long.
            sent.set(size as u32);
        }
    });
}

/// Bytes of what this thread has sent since it last waited, 0 if nothing: from now on nothing.
#[inline(always)]
pub(super) fn take() -> u32 {
    SENT.with(|sent| {
        let size = sent.get();
        if size != 0 {
            sent.set(0);
        }
        size
    })
}
