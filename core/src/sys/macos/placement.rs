//! Where a segment's pages are and how they stay, as far as this system can be told.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::mem::touch;
use crate::sys::placement::PlacementOptions;

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: macOS cannot be asked for it; leave the option out"))
}

/// The size of the pages that `huge_pages` means.
pub(crate) fn huge_page_size() -> Result<usize> {
    Err(unsupported("huge_pages"))
}

/// Takes the space of `[offset, offset + len)` in the file, growing it where it is shorter: `NoSpace` if the disk does
/// not have it. Whether memory will do is not asked: the file's pages are a cache of the disk.
pub(crate) fn allocate(fd: BorrowedFd<'_>, offset: u64, len: u64, options: &PlacementOptions) -> Result<()> {
    let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64).ok_or_else(|| {
        Error::new(ErrorKind::NoSpace, format!("{len} bytes asked at offset {offset}: more than any file can hold"))
    })?;
    if options.numa_node.is_some() {
        return Err(unsupported("numa_node"));
    }
    if len == 0 {
        return Ok(());
    }
    // Growing beyond this limit is not only an error but a deadly SIGXFSZ.
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|limit| end > *limit) {
        let text = format!("{end} bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = {limit} bytes");
        return Err(Error::new(ErrorKind::NoSpace, text));
    }
    let os = |errno: i32| Error::os(errno, format_args!("allocating {len} bytes"));
    let stat = rustix::fs::fstat(fd).map_err(|e| os(e.raw_os_error()))?;
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
            match std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
                // A file system that cannot; then a look at what is free has to do.
                libc::ENOTSUP | libc::EINVAL => check_free(fd, missing)?,
                errno => return Err(os(errno)),
            }
        }
    }
    if (stat.st_size as u64) < end {
        rustix::fs::ftruncate(fd, end).map_err(|e| os(e.raw_os_error()))?;
    }
    Ok(())
}

fn check_free(fd: BorrowedFd<'_>, needed: u64) -> Result<()> {
    let vfs = rustix::fs::fstatvfs(fd).map_err(|e| Error::os(e.raw_os_error(), "fstatvfs of the segment"))?;
    let available = vfs.f_bavail.saturating_mul(vfs.f_frsize);
    if needed <= available {
        return Ok(());
    }
    let text = format!("{needed} bytes asked, {available} available, limited by its file system's free space (df)");
    Err(Error::new(ErrorKind::NoSpace, text))
}

/// Does to a mapping what `options` ask for, or says why not. `copies` is 2 where the same bytes are mapped twice
/// back to back, `len` bytes each. Unmapping undoes all of it.
///
/// # Safety
/// `[ptr, ptr + copies * len)` is a live shared mapping of this process, writable if `writable`, and it stays mapped
/// for the length of the call.
pub(crate) unsafe fn apply(
    ptr: *mut u8,
    len: usize,
    copies: usize,
    writable: bool,
    options: &PlacementOptions,
) -> Result<()> {
    if options.huge_pages {
        return Err(unsupported("huge_pages"));
    }
    if options.numa_node.is_some() {
        return Err(unsupported("numa_node"));
    }
    if len == 0 {
        return Ok(());
    }
    if options.prefault {
        // SAFETY: passed on from the caller.
        unsafe { touch(ptr, len * copies, writable) };
    }
    if options.lock_memory {
        // One copy: the other one's pages are the same.
        // SAFETY: the range is mapped; locking it changes no byte.
        unsafe { rustix::mm::mlock(ptr.cast(), len) }.map_err(|errno| {
            let limit = match getrlimit(Resource::Memlock).current {
                Some(limit) => format!("{limit} bytes"),
                None => "unlimited".into(),
            };
            // EAGAIN is mlock's other way to say that memory could not be had.
            let errno = if errno.raw_os_error() == libc::EAGAIN { libc::ENOMEM } else { errno.raw_os_error() };
            let text = format!(
                "lock_memory: mlock of {len} bytes; RLIMIT_MEMLOCK is {limit} (raise it with ulimit -l), and the system \
                 has vm.user_wire_limit"
            );
            Error::os(errno, text)
        })?;
    }
    Ok(())
}
