//! Mapping the same memory again, and where large pages may begin.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{MremapFlags, mremap_fixed};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::mem::page_size;

/// Maps the `len` bytes at `source` at `target` as well: `mremap` with an old size of 0 makes another mapping of the
/// same pages.
///
/// # Safety
/// `source` is the start of `len` bytes that belong to one mapping, and nobody uses the `len` bytes at `target`.
pub(crate) unsafe fn alias(source: *mut u8, len: usize, target: *mut u8) -> Result<()> {
    // SAFETY: the source stays as it is, because the old size is 0; the target is nobody's.
    match unsafe { mremap_fixed(source.cast(), 0, len, MremapFlags::MAYMOVE, target.cast()) } {
        Ok(_) => Ok(()),
        Err(Errno::INVAL) => Err(Error::new(
            ErrorKind::Unsupported,
            "this memory cannot be mapped a second time: it must be a page-aligned MAP_SHARED mapping",
        )),
        Err(e) => Err(Error::os(e.raw_os_error(), format_args!("mapping the caller's {len} bytes a second time"))),
    }
}

/// The alignment that lets the kernel use huge pages for a mapping: the file's own page size on hugetlbfs (where it
/// is a must), else 2 MiB for a mapping that can hold one.
pub(crate) fn large_page(fd: BorrowedFd<'_>, len: usize) -> usize {
    const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;
    const HUGE: usize = 2 << 20;
    if let Ok(fs) = rustix::fs::fstatfs(fd)
        && fs.f_type as u64 & 0xFFFF_FFFF == HUGETLBFS_MAGIC
    {
        return (fs.f_bsize as usize).max(page_size());
    }
    if len >= HUGE { HUGE } else { page_size() }
}
