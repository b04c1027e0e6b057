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
