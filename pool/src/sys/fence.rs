//! A full memory barrier on all other threads of this process, wherever they are, without their help (`membarrier(2)`):
//! the thread that takes a cache away pays for the order that the thread itself would otherwise pay for with every
//! get.

/// Whether [`heavy`] works: registered with the kernel, and one barrier has succeeded, for a filter of system calls may
/// forbid what the kernel lists. `RAMWAY_MEMBARRIER=0` in the environment says no, when the process first asks. Asks
/// once; with many threads the first call may take some milliseconds.
pub(crate) fn available() -> bool {
    os::available()
}

/// The barrier; only where it is [`available`]. `false` if the kernel refused: then there was none, not even here.
pub(crate) fn heavy() -> bool {
    os::heavy()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod os {
    use std::sync::OnceLock;

    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    pub(super) fn available() -> bool {
        static KNOWN: OnceLock<bool> = OnceLock::new();
        *KNOWN.get_or_init(|| {
            let off = std::env::var_os("RAMWAY_MEMBARRIER").is_some_and(|value| value == "0");
            !off && heavy()
        })
    }

    pub(super) fn heavy() -> bool {
        // The registration belongs to the address space. Linux copies it to a fork's child along with it, but nobody
        // promises that, so who is refused registers and asks again.
        membarrier(PRIVATE_EXPEDITED) || (membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED))
    }

    pub(super) fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: it takes three integers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

/// The thread's half is a fence there, see `sync::owner_barrier`.
#[cfg(miri)]
mod os {
    use std::sync::atomic::{Ordering, fence};

    pub(super) fn available() -> bool {
        true
    }

    pub(super) fn heavy() -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

#[cfg(not(any(target_os = "linux", miri)))]
mod os {
    pub(super) fn available() -> bool {
        false
    }

    pub(super) fn heavy() -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// What a child of `fork` gives as its exit status.
    fn in_a_child(test: fn() -> bool) -> libc::c_int {
        // SAFETY: the child makes system calls only, and ends without running anything of the parent's.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(if test() { 0 } else { 1 }),
                child => {
                    let mut status = -1;
                    assert!(child > 0 && libc::waitpid(child, &mut status, 0) == child);
                    status
                }
            }
        }
    }

    #[test]
    fn a_fence_is_to_be_had_also_in_the_child_of_a_fork() {
        if !available() {
            return; // an old kernel, a filter, or switched off: `heavy` is not called then
        }
        assert!(heavy());
        assert_eq!(in_a_child(heavy), 0);
        assert_eq!(in_a_child(|| in_a_child(heavy) == 0), 0);
    }
}
