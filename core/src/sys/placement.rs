//! What can be asked of the memory behind a segment's data, and that it is there or an error: nothing is a hint that may
//! have been ignored.

use std::os::fd::BorrowedFd;

use rustix::process::Resource;

use super::backend::placement::{self as backend, take};
use super::mem::page_size;
use crate::error::{Error, ErrorKind, Result};

/// What the caller asked of the memory behind the data. The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlacementOptions {
    pub(crate) huge_pages: bool,
    pub(crate) lock_memory: bool,
    pub(crate) numa_node: Option<u32>,
    pub(crate) prefault: bool,
}

impl PlacementOptions {
    /// The data's offset and capacity must be multiples of this.
    pub(crate) fn granule(&self) -> Result<usize> {
        if self.huge_pages { backend::huge_page_size() } else { Ok(page_size()) }
    }
}

/// The soft limit of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Bytes(u64),
    None,
    /// The kernel does not tell: the call is refused (a seccomp filter) and there is no /proc.
    Unknown,
}

/// Takes the space of `[offset, offset + len)` in the file, growing it where it is shorter, after a check of every limit
/// that a later page fault would meet as SIGBUS or the OOM killer: `NoSpace` says which. On failure a part may be taken:
/// throw the file away.
pub(crate) fn allocate(fd: BorrowedFd<'_>, offset: u64, len: u64, options: &PlacementOptions) -> Result<()> {
    let no_space = |text| Err(Error::new(ErrorKind::NoSpace, text));
    let Some(end) = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64) else {
        return no_space(format!("{len} bytes asked at offset {offset}: more than any file can hold"));
    };
    if len == 0 {
        return Ok(());
    }
    // Growing beyond this limit is not only an error but a deadly SIGXFSZ.
    if let Limit::Bytes(limit) = backend::limit_of(Resource::Fsize)
        && end > limit
    {
        return no_space(format!("{end} bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = {limit} bytes"));
    }
    take(fd, offset, len, options)
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
    if len == 0 {
        return Ok(());
    }
    // Huge pages before everything that faults pages in: what is small then has to be collapsed.
    if options.huge_pages {
        // SAFETY: passed on from the caller.
        unsafe { backend::use_huge_pages(ptr, len, copies)? };
    }
    if options.prefault {
        // SAFETY: passed on from the caller.
        unsafe { backend::populate(ptr, len * copies, writable)? };
    }
    if options.lock_memory {
        // One copy: the other one's pages are the same, and would count against the limit twice.
        // SAFETY: the range is mapped; locking it changes no byte.
        unsafe { rustix::mm::mlock(ptr.cast(), len) }.map_err(|errno| lock_error(errno.raw_os_error(), len))?;
    }
    if let Some(node) = options.numa_node {
        // SAFETY: passed on from the caller.
        unsafe { backend::verify_node(ptr, len, node)? };
    }
    Ok(())
}

fn lock_error(errno: i32, len: usize) -> Error {
    let limit = match backend::limit_of(Resource::Memlock) {
        Limit::Bytes(limit) => format!("{limit} bytes"),
        Limit::None => "unlimited".into(),
        Limit::Unknown => "not known (prlimit64 is refused)".into(),
    };
    // EAGAIN is mlock's other way to say that there is not enough memory.
    let errno = if errno == libc::EAGAIN { libc::ENOMEM } else { errno };
    Error::os(errno, format_args!("lock_memory: mlock of {len} bytes; {}", backend::lock_advice(&limit)))
}
