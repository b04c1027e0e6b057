//! `futex(2)` on words in shared memory: always the shared kind, never `FUTEX_PRIVATE_FLAG`, because a private
//! futex is keyed by address space and would never be woken from another process.

use crate::sync::AtomicU32;
pub(crate) use crate::sys::wake::Wake;
use rustix::io::Errno;
use rustix::thread::futex;
use std::time::Duration;

/// Sleeps while `word` holds `expected`, for at most `timeout` of monotonic time.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) -> Wake {
    let timeout = futex::Timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match futex::wait(word, futex::Flags::empty(), expected, Some(&timeout)) {
        Ok(()) => Wake::Woken,
        Err(Errno::AGAIN) => Wake::Changed,
        Err(Errno::INTR) => Wake::Interrupted,
        // Anything else (a seccomp filter, say) must not become a busy loop: treat it as time passed and let the
        // caller's own check of the clock decide.
        Err(Errno::TIMEDOUT) => Wake::TimedOut,
        Err(_) => {
            std::thread::sleep(Duration::from_millis(1));
            Wake::TimedOut
        }
    }
}

/// Wakes everyone who sleeps on `word`. Costs 260 ns even if nobody does: ask the word first.
#[cold]
pub(crate) fn wake_all(word: &AtomicU32) {
    // INT_MAX rather than 1: a waiter that was killed may still be queued, and would swallow a single wake-up.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Words that [`wait_any`] takes at a time, at most.
pub(crate) const WAIT_ANY_MAX: usize = 128;

/// One word of `futex_waitv(2)`.
#[repr(C)]
struct Waiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// `linux/futex.h`: 32 bits wide, keyed by the file.
const FUTEX2_SIZE_U32: u32 = 2;

/// Sleeps while each of up to [`WAIT_ANY_MAX`] words holds what is expected of it, for at most `timeout`. Where the kernel
/// does not know or allow it (before 5.16, or by a seccomp filter), a millisecond at most.
pub(crate) fn wait_any(words: &[(&AtomicU32, u32)], timeout: Duration) {
    if let [(word, expected)] = words {
        wait(word, *expected, timeout);
        return;
    }
    let waiters: Vec<_> = words
        .iter()
        .map(|(word, expected)| Waiter {
            value: (*expected).into(),
            address: word.as_ptr().addr() as u64,
            flags: FUTEX2_SIZE_U32,
            reserved: 0,
        })
        .collect();
    // Until when, by the monotonic clock: rustix has no call that takes a relative time here.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let nanos = now.tv_nsec as u64 + u64::from(timeout.subsec_nanos());
    let until = libc::timespec {
        tv_sec: now.tv_sec + timeout.as_secs().min(i64::MAX as u64 / 2) as i64 + (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    };
    // SAFETY: the array and the time outlive the call; the words are borrowed, and the kernel only reads them.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            waiters.as_ptr(),
            waiters.len() as u32,
            0u32,
            &raw const until,
            libc::CLOCK_MONOTONIC,
        )
    };
    if woken < 0 && matches!(crate::sys::last_errno(), libc::ENOSYS | libc::EPERM | libc::EACCES) {
        std::thread::sleep(timeout.min(Duration::from_millis(1)));
    }
}
