//! Memory without a name whose size nobody can change: a POSIX shared memory object, unlinked as soon as it exists. The
//! kernel lets its size be set once, by the first `ftruncate`, and never again.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys::mem::{Access, PageMap, page_size};
use crate::sys::{fs, last_errno, os};
use crate::{Error, ErrorKind, Result};

/// Zeroed memory of `size` bytes (rounded up to a page) that begins with `start`.
pub(crate) fn create(what: &str, size: u64, start: &[u8]) -> Result<OwnedFd> {
    let fd = open()?;
    rustix::fs::ftruncate(&fd, size).map_err(os(format_args!("taking {size} bytes of shared memory for {what}")))?;
    if !start.is_empty() {
        // It can be mapped, but neither written nor read.
        let len = start.len().next_multiple_of(page_size());
        let map = PageMap::map(fd.as_fd(), 0, len, Access::ReadWrite)?;
        // SAFETY: the mapping is at least as long as `start`, and nobody else knows the object yet.
        unsafe { map.as_ptr().copy_from_nonoverlapping(start.as_ptr(), start.len()) };
    }
    Ok(fd)
}

/// Rings without a name that are handed to a child: a shared memory object cannot be opened a second time here, so that
/// no handle could have locks of its own.
pub(crate) fn unsealed(_: &str) -> Result<OwnedFd> {
    Err(Error::new(ErrorKind::Unsupported, "a ring without a name needs Linux; use a name, or a pair"))
}

/// A new object, close-on-exec, that has lost its name.
fn open() -> Result<OwnedFd> {
    loop {
        // At most 31 bytes.
        let name = CString::new(format!("/ramway-{:016x}", fs::random())).expect("hexadecimal digits hold no NUL");
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        // SAFETY: the name ends in a NUL; the mode is passed as the int that a variadic function takes.
        let fd = unsafe { libc::shm_open(name.as_ptr(), flags, 0o600 as libc::c_int) };
        if fd >= 0 {
            // SAFETY: as above. A process that is killed in between leaves a name without memory behind it.
            unsafe { libc::shm_unlink(name.as_ptr()) };
            // SAFETY: `shm_open` has just made this descriptor for us.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        match last_errno() {
            libc::EEXIST | libc::EINTR => {}
            errno => return Err(Error::os(errno, "shm_open")),
        }
    }
}

/// The size in bytes of memory that a peer sent, once it is certain that nobody can change it.
///
/// A shared memory object is told from everything else that can be sent by having no file type at all. A file,
/// which can be truncated, is `Corrupt`.
pub(crate) fn sealed_size(fd: BorrowedFd<'_>) -> Result<u64> {
    let stat = rustix::fs::fstat(fd).map_err(os("fstat of the memory sent"))?;
    if stat.st_mode & libc::S_IFMT != 0 || stat.st_nlink != 0 {
        let text = format!("the descriptor sent (mode {:o}) is not a shared memory object", stat.st_mode);
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    // SAFETY: F_GETFL reads no memory. A description that cannot write could not be mapped as a bus needs it.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) } & libc::O_ACCMODE != libc::O_RDWR {
        return Err(Error::new(ErrorKind::Corrupt, "the shared memory sent cannot be written"));
    }
    // An object whose size is not set yet has none: what is mapped of it is checked against this.
    u64::try_from(stat.st_size).map_err(|_| Error::new(ErrorKind::Corrupt, "the memory sent has a negative size"))
}
