//! `__ulock` in a futex's place: always the shared kind, which is keyed by the memory object and not by the address, so
//! that it reaches other processes.
//!
//! These are the calls under `os_unfair_lock`, libc++ and `os_sync_wait_on_address` (macOS 14.4), which would do as
//! well but is too new.

use std::ffi::c_void;
use std::time::Duration;

use crate::sync::{AtomicU32, Ordering};
pub(crate) use crate::sys::wake::Wake;

const UL_COMPARE_AND_WAIT_SHARED: u32 = 3;
const ULF_WAKE_ALL: u32 = 0x0000_0100;
/// The error is the negative result, not `errno`.
const ULF_NO_ERRNO: u32 = 0x0100_0000;

unsafe extern "C" {
    /// `timeout` is in microseconds, 0 = forever.
    fn __ulock_wait(operation: u32, address: *mut c_void, value: u64, timeout: u32) -> libc::c_int;
    fn __ulock_wake(operation: u32, address: *mut c_void, value: u64) -> libc::c_int;
}

/// Sleeps while `word` holds `expected`, for at most `timeout` of monotonic time (and never more than 71 minutes).
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) -> Wake {
    // Rounded up, because 0 would be forever.
    let micros = timeout.as_nanos().div_ceil(1000).clamp(1, u32::MAX.into()) as u32;
    // SAFETY: the word outlives the call, and the kernel only reads it.
    let result = unsafe {
        __ulock_wait(UL_COMPARE_AND_WAIT_SHARED | ULF_NO_ERRNO, word.as_ptr().cast(), expected.into(), micros)
    };
    match result.checked_neg().unwrap_or(0) {
        // Woken, or the word held something else: the kernel does not tell the one from the other.
        ..=0 => Wake::Woken,
        libc::ETIMEDOUT => Wake::TimedOut,
        libc::EINTR => Wake::Interrupted,
        libc::EFAULT => {
            // The page was not in memory, and the kernel compares under a lock where it cannot fetch it. This does.
            // Relaxed: the value is not used.
            word.load(Ordering::Relaxed);
            Wake::Changed
        }
        // Anything else (no memory for the wait, say) must not become a busy loop: treat it as time passed.
        _ => {
            std::thread::sleep(Duration::from_millis(1));
            Wake::TimedOut
        }
    }
}

/// Wakes everyone who sleeps on `word`. A system call even if nobody does: ask the word first.
#[cold]
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the address is only a key. That nobody sleeps there (ENOENT) is no failure; EINTR is none of this call's.
    unsafe { __ulock_wake(UL_COMPARE_AND_WAIT_SHARED | ULF_WAKE_ALL | ULF_NO_ERRNO, word.as_ptr().cast(), 0) };
}

/// Words that [`wait_any`] takes at a time, at most.
pub(crate) const WAIT_ANY_MAX: usize = 128;

/// Sleeps while each word holds what is expected of it: a millisecond at most, because there is no call for several.
pub(crate) fn wait_any(words: &[(&AtomicU32, u32)], timeout: Duration) {
    match words {
        [(word, expected)] => _ = wait(word, *expected, timeout),
        _ => std::thread::sleep(timeout.min(Duration::from_millis(1))),
    }
}
