//! `membarrier(2)`: the sleeper pays for the ordering between "I sleep" and "there is a message", so that the waker
//! need not fence on every message (a full fence a message costs 2.5 × in throughput, `docs/adr/`).

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

const UNKNOWN: u32 = 0;
const NO: u32 = 1;
const YES: u32 = 2;

/// Whether this process is registered and has run a real barrier. Relaxed everywhere: it is a cache of a fact that
/// two threads may find out at the same time, and it orders nothing.
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether this process is registered *and* a real barrier succeeded, not merely that the kernel lists the command
/// (a seccomp filter may forbid it). The first call of a process with threads may take up to 12 ms.
/// `RAMWAY_MEMBARRIER=0` in the environment switches it off.
pub(crate) fn is_available() -> bool {
    // Relaxed, here and below: two threads that ask at once both register, which is harmless.
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let off = std::env::var_os("RAMWAY_MEMBARRIER").is_some_and(|v| v == "0");
            let works = !off && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) && membarrier(CMD_GLOBAL_EXPEDITED);
            // A child of `fork` has an address space of its own, which is registered anew when it first asks.
            static HOOK: Once = Once::new();
            HOOK.call_once(|| crate::sys::fork::on_child(reset_after_fork));
            STATE.store(if works { YES } else { NO }, Ordering::Relaxed);
            works
        }
        state => state == YES,
    }
}

/// A full memory barrier on every CPU that runs a registered process, this one included. `false` if the kernel
/// refused: then there was no barrier, not even here.
pub(crate) fn sync() -> bool {
    membarrier(CMD_GLOBAL_EXPEDITED)
}

fn reset_after_fork() {
    // Relaxed: this is the child's only thread.
    STATE.store(UNKNOWN, Ordering::Relaxed);
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
