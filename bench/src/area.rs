//! Shared memory by hand, for the mechanisms that measure what Ramway is made of.

use crate::Result;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A mapped memfd, the same bytes in both processes.
pub(crate) struct Area {
    start: *mut u8,
    len: usize,
    fd: OwnedFd,
}

// SAFETY: shared memory has no thread affinity; the words are atomic, and `bytes` hands out raw pointers only.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    pub(crate) fn new(len: usize) -> Result<Self> {
        // SAFETY: the call makes a descriptor, which is then owned here.
        let fd = unsafe {
            let fd = libc::memfd_create(c"ramway-bench".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: only sets the size of that file.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), len as i64) } != 0 {
            return Err(Error::last_os_error().into());
        }
        Self::map(fd, len)
    }

    /// The child's view of an area whose descriptor it inherited.
    pub(crate) fn inherited(fd: RawFd, len: usize) -> Result<Self> {
        // SAFETY: the parent passed this descriptor for this purpose and nothing else here owns it.
        Self::map(unsafe { OwnedFd::from_raw_fd(fd) }, len)
    }

    fn map(fd: OwnedFd, len: usize) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping wherever the kernel puts it, of a file that has `len` bytes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error().into());
        }
        Ok(Self { start: start.cast(), len, fd })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    #[inline(always)]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len);
        // SAFETY: inside the mapping and aligned (checked); these words are only ever accessed atomically.
        unsafe { &*self.start.add(offset).cast() }
    }

    #[inline(always)]
    pub(crate) fn half_word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.len);
        // SAFETY: as in `word`.
        unsafe { &*self.start.add(offset).cast() }
    }

    /// `len` bytes from `offset`, for a caller that knows that the other process leaves them alone.
    #[inline(always)]
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.len);
        // SAFETY: inside the mapping (checked).
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` has mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// FUTEX_WAIT without FUTEX_PRIVATE_FLAG; returns for any reason.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32) {
    let timeout = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: the word and the time-out outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &timeout) };
}

/// The same without a time-out: for a process that is killed with the one that would wake it, and that must not disturb
/// others by needless wake-ups.
pub(crate) fn futex_wait_untimed(word: &AtomicU32, expected: u32) {
    let never = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, never) };
}

/// FUTEX_WAKE of everybody.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the address of the word only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
