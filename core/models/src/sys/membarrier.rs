//! membarrier as what it is: an interrupt that makes every running process execute a full fence, wherever it is.
//!
//! The caller raises a request; the interrupted process fences at one of its interrupt points and answers; the caller
//! goes on when everyone has answered or was seen off its CPU. Requests and answers are relaxed: the only order is
//! that of the fences, as with the real one.

use super::kernel::{KERNEL, cpu};
use loom::sync::atomic::fence;
use std::sync::atomic::Ordering;

pub(crate) fn is_available() -> bool {
    true
}

/// `false`: forbidden, and no barrier was executed.
pub(crate) fn sync() -> bool {
    let me = cpu().expect("only a model's processes call membarrier");
    if KERNEL.cpus[me].forbidden.load(Ordering::Relaxed) {
        return false;
    }
    fence(Ordering::SeqCst);
    for (at, other) in KERNEL.cpus.iter().enumerate() {
        if at == me || other.running.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let number = other.asked.fetch_add(1, Ordering::Relaxed) + 1;
        other.request.store(number, Ordering::Relaxed);
        while other.answer.load(Ordering::Relaxed) < number && other.running.load(Ordering::Relaxed) != 0 {
            // Two that ask each other must not wait for each other.
            interrupt_point();
            loom::thread::yield_now();
        }
    }
    fence(Ordering::SeqCst);
    true
}

/// Where the interrupt of another's membarrier may strike: between any two accesses that it could order. Strikes late
/// or not at all if the request is not seen yet.
pub fn interrupt_point() {
    let Some(me) = cpu() else { return };
    let cpu = &KERNEL.cpus[me];
    // Relaxed: an interrupt is no message, it brings no order before its fence.
    let number = cpu.request.load(Ordering::Relaxed);
    if cpu.answered.swap(number, Ordering::Relaxed) != number {
        fence(Ordering::SeqCst);
        cpu.answer.store(number, Ordering::Relaxed);
    }
}

/// From now on membarrier fails for the calling process.
pub fn forbid() {
    if let Some(me) = cpu() {
        KERNEL.cpus[me].forbidden.store(true, Ordering::Relaxed);
    }
}
