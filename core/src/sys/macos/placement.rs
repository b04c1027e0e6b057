//! Where a segment's pages are and how they stay, as far as this system can be told.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::mem::touch;
use crate::sys::placement::{Limit, PlacementOptions};
use crate::sys::{last_errno, os};

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: macOS cannot be asked for it; leave the option out"))
}

/// The size of the pages that `huge_pages` means.
pub(crate) fn huge_page_size() -> Result<usize> {
    Err(unsupported("huge_pages"))
}

/// # Safety
/// None is needed; Linux's is.
pub(crate) unsafe fn use_huge_pages(_: *mut u8, _: usize, _: usize) -> Result<()> {
    Err(unsupported("huge_pages"))
}

/// # Safety
/// None is needed; Linux's is.
pub(crate) unsafe fn verify_node(_: *mut u8, _: usize, _: u32) -> Result<()> {
    Err(unsupported("numa_node"))
}

/// Faults the range in, for writing if it is writable.
///
/// # Safety
/// As [`apply`](crate::sys::placement::apply).
pub(crate) unsafe fn populate(ptr: *mut u8, len: usize, writable: bool) -> Result<()> {
    // SAFETY: passed on from the caller.
    unsafe { touch(ptr, len, writable) };
    Ok(())
}

pub(crate) fn limit_of(resource: Resource) -> Limit {
    match resource {
        Resource::Fsize | Resource::Memlock => getrlimit(resource).current.map_or(Limit::None, Limit::Bytes),
        _ => Limit::Unknown,
    }
}

/// What to say of a failed `mlock`.
pub(crate) fn lock_advice(limit: &str) -> String {
    format!("RLIMIT_MEMLOCK is {limit} (raise it with ulimit -l), and the system has vm.user_wire_limit")
}

/// Takes the space of `[offset, offset + len)` in the file, which any file can hold: `NoSpace` if the disk does not have
/// it. Whether memory will do is not asked: the file's pages are a cache of the disk.
pub(crate) fn take(fd: BorrowedFd<'_>, offset: u64, len: u64, options: &PlacementOptions) -> Result<()> {
    let end = offset + len;
    if options.numa_node.is_some() {
        return Err(unsupported("numa_node"));
    }
    let failed = |errno: i32| Error::os(errno, format_args!("allocating {len} bytes"));
    let stat = rustix::fs::fstat(fd).map_err(|e| failed(e.raw_os_error()))?;
    let missing = end.saturating_sub(stat.st_blocks as u64 * 512);
    if missing > 0 {
        let mut store = libc::fstore_t {
            fst_flags: libc::F_ALLOCATEALL,
            // Counted from where the space that the file has ends.
            fst_posmode: libc::F_PEOFPOSMODE,
            fst_offset: 0,
            fst_length: missing as i64,
            fst_bytesalloc: 0,
        };
        // SAFETY: F_PREALLOCATE reads and writes one `fstore_t`, which outlives the call.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) } == -1 {
            match last_errno() {
                // A file system that cannot; then a check of what is free has to do.
                libc::ENOTSUP | libc::EINVAL => check_free(fd, missing)?,
                errno => return Err(failed(errno)),
            }
        }
    }
    if (stat.st_size as u64) < end {
        rustix::fs::ftruncate(fd, end).map_err(|e| failed(e.raw_os_error()))?;
    }
    Ok(())
}

fn check_free(fd: BorrowedFd<'_>, needed: u64) -> Result<()> {
    let vfs = rustix::fs::fstatvfs(fd).map_err(os("fstatvfs of the segment"))?;
    let available = vfs.f_bavail.saturating_mul(vfs.f_frsize);
    if needed <= available {
        return Ok(());
    }
    let text = format!("{needed} bytes asked, {available} available, limited by its file system's free space (df)");
    Err(Error::new(ErrorKind::NoSpace, text))
}
