//! Mappings: one window of a file, and the same window twice back to back.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{self, MapFlags, ProtFlags};

use super::backend::pages::{alias, large_page};
use super::fork;
use super::os;
use crate::error::{Error, Result};

/// What this process may do with a mapping. Shared memory is never executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

impl Access {
    fn prot(self) -> ProtFlags {
        match self {
            Self::ReadOnly => ProtFlags::READ,
            Self::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

/// The size of a page of memory in bytes.
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// An address range that is unmapped on drop, except in a fork's child, where inherited views must stay readable.
#[derive(Debug)]
struct Range {
    ptr: NonNull<u8>,
    len: usize,
    generation: u32,
}

// SAFETY: a range of addresses has no affinity to a thread; what lies in it is shared memory, whose users bring
// their own synchronisation.
unsafe impl Send for Range {}
// SAFETY: as above; `&Range` gives out only the address.
unsafe impl Sync for Range {}

impl Range {
    fn new(ptr: *mut c_void, len: usize) -> Self {
        let ptr = NonNull::new(ptr.cast()).expect("mmap never returns null for a non-fixed mapping");
        Self { ptr, len, generation: fork::generation() }
    }

    /// Address space without memory, `len` bytes of it, beginning at a multiple of `align` (a power of two).
    fn reserve(len: usize, align: usize) -> Result<Self> {
        let page = page_size();
        let slack = if align > page { align } else { 0 };
        let total = len.checked_add(slack).ok_or_else(|| Error::os(libc::ENOMEM, "reserving address space"))?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), total, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }
        .map_err(os(format_args!("reserving {total} bytes of address space")))?;
        let whole = Self::new(base, total);
        if slack == 0 {
            return Ok(whole);
        }
        let start = (base as usize).next_multiple_of(align);
        let (before, after) = (start - base as usize, base as usize + total - (start + len));
        std::mem::forget(whole);
        let middle = Self::new(base.cast::<u8>().wrapping_add(before).cast(), len);
        if before > 0 {
            // SAFETY: the head of the range reserved above, which nobody else knows.
            let _ = unsafe { mm::munmap(base, before) };
        }
        if after > 0 {
            // SAFETY: the tail of the range reserved above, which nobody else knows.
            let _ = unsafe { mm::munmap(middle.ptr.as_ptr().wrapping_add(len).cast(), after) };
        }
        Ok(middle)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        // SAFETY: the range was mapped by this process and its owner is going away; views cannot outlive the owner.
        let _ = unsafe { mm::munmap(self.ptr.as_ptr().cast(), self.len) };
    }
}

/// Faults every page of a range in, for writing if it is writable, and leaves its bytes as they are.
///
/// # Safety
/// `[ptr, ptr + len)` is a live, page-aligned shared mapping whose pages are available, writable if `writable`.
pub(crate) unsafe fn touch(ptr: *mut u8, len: usize, writable: bool) {
    for at in (0..len).step_by(page_size()) {
        // SAFETY: within the mapping and page-aligned. Other processes write these bytes only by atomic or relaxed
        // stores of their own, which an atomic never tears.
        let word = unsafe { AtomicU32::from_ptr(ptr.add(at).cast()) };
        // Relaxed: the value is not used, only its page.
        let value = word.load(Ordering::Relaxed);
        if writable {
            // Writes back what is there; if that fails, another has just written, which faults as well.
            let _ = word.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// One mapping of a window of a file.
#[derive(Debug)]
pub(crate) struct PageMap(Range);

impl PageMap {
    /// Maps `len` bytes from `offset`, a multiple of the page size. The caller has checked that the file holds them.
    pub(crate) fn map(fd: BorrowedFd<'_>, offset: u64, len: usize, access: Access) -> Result<Self> {
        fork::install();
        let align = large_page(fd, len);
        if align > page_size() {
            let range = Range::reserve(len, align)?;
            // SAFETY: the target is the address range reserved above, which nobody else uses.
            unsafe {
                mm::mmap(range.ptr.as_ptr().cast(), len, access.prot(), MapFlags::SHARED | MapFlags::FIXED, fd, offset)
            }
            .map_err(os(format_args!("mapping {len} bytes")))?;
            return Ok(Self(range));
        }
        // SAFETY: a shared mapping at an address of the kernel's choice touches no existing memory.
        let ptr = unsafe { mm::mmap(ptr::null_mut(), len, access.prot(), MapFlags::SHARED, fd, offset) }
            .map_err(os(format_args!("mapping {len} bytes")))?;
        Ok(Self(Range::new(ptr, len)))
    }

    /// Maps the caller's own shared memory a second time; see [`MirrorMap::duplicate`].
    ///
    /// # Safety
    /// `ptr` is the page-aligned start of `len` bytes that belong to one mapping.
    pub(crate) unsafe fn duplicate(ptr: *mut u8, len: usize) -> Result<Self> {
        fork::install();
        let range = Range::reserve(len, page_size())?;
        // SAFETY: passed on from the caller; the target is the address range reserved above.
        unsafe { alias(ptr, len, range.ptr.as_ptr()) }?;
        Ok(Self(range))
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0.ptr.as_ptr()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len
    }
}

/// The same bytes twice, back to back: byte `i` and byte `i + capacity` are one byte of memory.
#[derive(Debug)]
pub(crate) struct MirrorMap(Range);

impl MirrorMap {
    /// Maps `capacity` bytes (a multiple of the page size) from `offset` twice. The caller has checked that the
    /// file holds them.
    pub(crate) fn map(fd: BorrowedFd<'_>, offset: u64, capacity: usize, access: Access) -> Result<Self> {
        let mirror = Self::reserve(capacity, large_page(fd, capacity))?;
        for half in 0..2 {
            let at = mirror.0.ptr.as_ptr().wrapping_add(half * capacity);
            // SAFETY: the target lies inside the address range reserved above, which nobody else uses.
            unsafe { mm::mmap(at.cast(), capacity, access.prot(), MapFlags::SHARED | MapFlags::FIXED, fd, offset) }
                .map_err(os(format_args!("mapping {capacity} bytes, copy {half} of 2")))?;
        }
        Ok(mirror)
    }

    /// Maps the caller's own shared memory twice. Private memory, as far as it can be told, is `Unsupported`.
    ///
    /// # Safety
    /// `ptr` is the page-aligned start of `capacity` bytes that belong to one mapping.
    pub(crate) unsafe fn duplicate(ptr: *mut u8, capacity: usize, access: Access) -> Result<Self> {
        let mirror = Self::reserve(capacity, page_size())?;
        for half in 0..2 {
            let at = mirror.0.ptr.as_ptr().wrapping_add(half * capacity);
            // SAFETY: passed on from the caller; the target lies inside the address range reserved above.
            unsafe { alias(ptr, capacity, at) }?;
        }
        if access == Access::ReadOnly {
            let flags = mm::MprotectFlags::READ;
            // SAFETY: the two mappings made above, which nobody uses yet.
            unsafe { mm::mprotect(mirror.0.ptr.as_ptr().cast(), mirror.0.len, flags) }
                .map_err(os("making a mapping read-only"))?;
        }
        Ok(mirror)
    }

    /// Puts private memory, all zero, in the place of `len` bytes from `offset`, both in whole pages.
    ///
    /// # Safety
    /// Views of these bytes may change.
    pub(crate) unsafe fn replace(&self, offset: usize, len: usize) -> Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.0.len), "pages outside of the mapping");
        let at = self.0.ptr.as_ptr().wrapping_add(offset).cast();
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the range lies in this mapping (checked above).
        unsafe { mm::mmap_anonymous(at, len, prot, flags) }
            .map_err(os(format_args!("replacing {len} bytes of a mapping")))?;
        Ok(())
    }

    fn reserve(capacity: usize, align: usize) -> Result<Self> {
        fork::install();
        let twice = capacity
            .checked_mul(2)
            .ok_or_else(|| Error::os(libc::ENOMEM, "mapping a ring of more than half the address space"))?;
        Ok(Self(Range::reserve(twice, align)?))
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0.ptr.as_ptr()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.0.len / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::sys::memfd;
    use std::os::fd::{AsFd, OwnedFd};

    fn file(len: usize) -> OwnedFd {
        memfd::create("ramway-test", len as u64, &[]).unwrap()
    }

    #[test]
    fn both_copies_are_the_same_bytes() {
        let page = page_size();
        for capacity in [page, 4 * page, 4 << 20] {
            let file = file(page + capacity);
            let map = MirrorMap::map(file.as_fd(), page as u64, capacity, Access::ReadWrite).unwrap();
            let view = MirrorMap::map(file.as_fd(), page as u64, capacity, Access::ReadOnly).unwrap();
            assert_eq!(map.capacity(), capacity);
            assert!(capacity < 2 << 20 || map.as_ptr().addr().is_multiple_of(2 << 20), "room for huge pages");
            for at in [0, 1, capacity / 2, capacity - 1] {
                // SAFETY: both indices lie inside the mapping, and only this thread uses the memory.
                unsafe {
                    map.as_ptr().add(at).write_volatile(at as u8 ^ 0x55);
                    assert_eq!(map.as_ptr().add(capacity + at).read_volatile(), at as u8 ^ 0x55);
                    map.as_ptr().add(capacity + at).write_volatile(99);
                    assert_eq!(view.as_ptr().add(at).read_volatile(), 99);
                }
            }
        }
    }

    #[test]
    fn a_page_map_is_one_window() {
        let page = page_size();
        let file = file(3 * page);
        let map = PageMap::map(file.as_fd(), page as u64, page, Access::ReadWrite).unwrap();
        assert_eq!(map.len(), page);
        // SAFETY: inside the mapping.
        unsafe { map.as_ptr().write_volatile(7) };
        let mut byte = [0];
        assert_eq!(crate::sys::fs::read_at(file.as_fd(), page as u64, &mut byte).unwrap(), 1);
        assert_eq!(byte, [7]);
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let page = page_size();
        let file = file(page);
        let kind = |result: Result<MirrorMap>| result.unwrap_err().kind();
        assert_eq!(kind(MirrorMap::map(file.as_fd(), 0, usize::MAX / 2 + 1, Access::ReadOnly)), ErrorKind::NoSpace);
        assert_eq!(kind(MirrorMap::map(file.as_fd(), 0, 1 << 60, Access::ReadOnly)), ErrorKind::NoSpace);
        assert!(PageMap::map(file.as_fd(), 1, page, Access::ReadOnly).is_err());
    }
}
