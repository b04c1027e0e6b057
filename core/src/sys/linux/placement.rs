//! Where a segment's pages are and how they stay: allocated up front, in huge pages, on a NUMA node, faulted in.

use std::os::fd::BorrowedFd;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::Advice;

pub(crate) use super::limit::limit_of;
use super::numa;
pub(crate) use super::numa::verify_node;
use super::space::{Limits, field};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::mem::touch;
use crate::sys::placement::PlacementOptions;
use crate::sys::{last_errno, os};

/// Linux's number (6.1+): the `libc` crate has it for glibc only.
const MADV_COLLAPSE: i32 = 25;

/// So long that a step's check of the limits costs little, so short that a signal or a full machine is noticed.
const STEP: u64 = 16 << 20;

/// Takes the space of `[offset, offset + len)` in the file, which any file can hold.
pub(crate) fn take(fd: BorrowedFd<'_>, offset: u64, len: u64, options: &PlacementOptions) -> Result<()> {
    let end = offset + len;
    if let Some(node) = options.numa_node {
        numa::prefer_node(fd, offset, len, node)?;
    }
    let limits = Limits::of(fd)?;
    let mut at = offset;
    while at < end {
        // All that is still missing, so that what can never fit is refused before it has starved others.
        limits.check(end - at)?;
        let step = (end - at).min(STEP);
        match rustix::fs::fallocate(fd, FallocateFlags::empty(), at, step) {
            Ok(()) => at += step,
            // The kernel gave the step's pages back: again, as often as signals come (they are rarer than steps).
            Err(Errno::INTR) => {}
            Err(e) => return Err(os(format_args!("allocating {len} bytes ({} done)", at - offset))(e)),
        }
    }
    Ok(())
}

/// What to say of a failed `mlock`.
pub(crate) fn lock_advice(limit: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = field(&status, "VmLck:").unwrap_or(0) << 10;
    format!(
        "this process has {locked} bytes locked, RLIMIT_MEMLOCK is {limit} (raise it with ulimit -l, LimitMEMLOCK= or \
         CAP_IPC_LOCK)"
    )
}

/// Faults the range in, for writing if it is writable.
///
/// # Safety
/// As [`apply`](crate::sys::placement::apply).
pub(crate) unsafe fn populate(ptr: *mut u8, len: usize, writable: bool) -> Result<()> {
    let advice = if writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
    // SAFETY: the range is mapped; populating changes no byte.
    match unsafe { rustix::mm::madvise(ptr.cast(), len, advice) } {
        Ok(()) => Ok(()),
        // Before Linux 5.14.
        Err(Errno::INVAL) => {
            // SAFETY: passed on from the caller; the pages are allocated, so that no fault is fatal.
            unsafe { touch(ptr, len, writable) };
            Ok(())
        }
        Err(e) => Err(os(format_args!("prefault of {len} bytes"))(e)),
    }
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// The size of the pages that `huge_pages` means.
pub(crate) fn huge_page_size() -> Result<usize> {
    let file = format!("{THP}/hpage_pmd_size");
    std::fs::read_to_string(&file)
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok())
        .filter(|size| size.is_power_of_two())
        .ok_or_else(|| {
            let text = format!("huge_pages: this kernel has no transparent huge pages ({file} cannot be read)");
            Error::new(ErrorKind::Unsupported, text)
        })
}

/// Puts the range into huge pages, or says what stands in the way.
///
/// # Safety
/// As [`apply`](crate::sys::placement::apply).
pub(crate) unsafe fn use_huge_pages(ptr: *mut u8, len: usize, copies: usize) -> Result<()> {
    let huge = huge_page_size()?;
    if !ptr.addr().is_multiple_of(huge) || !len.is_multiple_of(huge) {
        let text = format!(
            "huge_pages: the data ({len} bytes) is not made of whole huge pages of {huge} bytes; the process that \
             creates the segment has to ask for them too"
        );
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    let whole = len * copies;
    // SAFETY: the range is mapped; neither advice changes a byte. Whether they were followed is checked below, so
    // that kernels which refuse the one but not the other are served.
    let advised = unsafe { rustix::mm::madvise(ptr.cast(), whole, Advice::LinuxHugepage) };
    // Puts the file's small pages together (Linux 6.1+) and maps the result, whatever `shmem_enabled` says except
    // `deny`. EAGAIN: a page was in use just then.
    let mut collapsed = Ok(());
    for _ in 0..4 {
        // SAFETY: as above.
        let rc = unsafe { libc::madvise(ptr.cast(), whole, MADV_COLLAPSE) };
        collapsed = if rc == 0 { Ok(()) } else { Err(last_errno()) };
        if collapsed != Err(libc::EAGAIN) {
            break;
        }
    }
    let have = pmd_mapped(ptr.addr(), whole);
    if have >= whole {
        return Ok(());
    }
    let said = |result: std::result::Result<(), i32>| match result {
        Ok(()) => "ok".into(),
        Err(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    let advised = advised.map_err(|errno| errno.raw_os_error());
    let setting = std::fs::read_to_string(format!("{THP}/shmem_enabled")).unwrap_or_else(|_| "unreadable".into());
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "huge_pages: {have} of {whole} mapped bytes are in huge pages (MADV_HUGEPAGE: {}; MADV_COLLAPSE, Linux \
             6.1+: {}); {THP}/shmem_enabled is \"{}\": set it to \"advise\" as root",
            said(advised),
            said(collapsed),
            setting.trim()
        ),
    ))
}

/// How many bytes of the mappings in this address range the kernel maps by huge pages.
fn pmd_mapped(start: usize, len: usize) -> usize {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut inside = false;
    let mut total = 0;
    for line in smaps.lines() {
        let first = line.split_ascii_whitespace().next().unwrap_or("");
        if let Some(name) = first.strip_suffix(':') {
            if inside && matches!(name, "ShmemPmdMapped" | "FilePmdMapped") {
                total += field(line, first).unwrap_or(0) as usize * 1024;
            }
        } else if let Some((from, to)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            inside = address(from) < start + len && address(to) > start;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::placement::{allocate, apply};
    use rustix::mm::{MapFlags, ProtFlags};
    use std::os::fd::{AsFd, OwnedFd};

    struct Map(*mut u8, usize);

    impl Map {
        /// `copies` mappings of the file, the first at a multiple of `align`.
        fn new(fd: &OwnedFd, offset: u64, len: usize, copies: usize, align: usize) -> Self {
            let whole = len * copies + align;
            // SAFETY: reserves fresh address space, then maps the file over a part of it.
            unsafe {
                let reserved =
                    rustix::mm::mmap_anonymous(std::ptr::null_mut(), whole, ProtFlags::empty(), MapFlags::PRIVATE);
                let reserved = reserved.unwrap().cast::<u8>();
                let first = reserved.add(reserved.align_offset(align));
                let prot = ProtFlags::READ | ProtFlags::WRITE;
                for copy in 0..copies {
                    let at = first.add(copy * len).cast();
                    rustix::mm::mmap(at, len, prot, MapFlags::SHARED | MapFlags::FIXED, fd, offset).unwrap();
                }
                Self(first, len * copies)
            }
        }
    }

    impl Drop for Map {
        fn drop(&mut self) {
            // SAFETY: mapped in `new`; the rest of the reservation stays, unused.
            unsafe { rustix::mm::munmap(self.0.cast(), self.1).unwrap() };
        }
    }

    fn memfd(offset: u64, len: u64, options: &PlacementOptions) -> Result<OwnedFd> {
        let fd = rustix::fs::memfd_create("placement", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        allocate(fd.as_fd(), offset, len, options)?;
        Ok(fd)
    }

    fn default() -> PlacementOptions {
        PlacementOptions::default()
    }

    #[test]
    fn allocation_takes_the_space_and_grows_the_file() {
        let fd = memfd(4096, 40 << 20, &default()).unwrap();
        let stat = rustix::fs::fstat(&fd).unwrap();
        assert_eq!(stat.st_size as u64, 4096 + (40 << 20));
        assert!(stat.st_blocks as u64 * 512 >= 40 << 20);
    }

    #[test]
    fn what_no_machine_has_is_no_space_at_once() {
        let error = memfd(0, 1 << 46, &default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(error.to_string().contains(&(1u64 << 46).to_string()), "{error}");
        assert!(error.to_string().contains("MemAvailable"), "{error}");
        assert_eq!(memfd(4096, u64::MAX - 10, &default()).unwrap_err().kind(), ErrorKind::NoSpace);
    }

    #[test]
    fn huge_pages_are_verified_or_refused_with_the_setting() {
        let options = PlacementOptions { huge_pages: true, ..default() };
        let Ok(huge) = options.granule() else { return };
        let len = 2 * huge;
        let fd = memfd(huge as u64, len as u64, &options).unwrap();
        let map = Map::new(&fd, huge as u64, len, 2, huge);
        // SAFETY: `map` lives on.
        match unsafe { apply(map.0, len, 2, true, &options) } {
            Ok(()) => assert_eq!(pmd_mapped(map.0.addr(), map.1), 2 * len),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains("shmem_enabled"), "{error}");
            }
        }
        // A file whose data does not begin on a huge page can never have them.
        let fd = memfd(4096, len as u64, &default()).unwrap();
        let map = Map::new(&fd, 4096, len, 1, huge);
        // SAFETY: `map` lives on.
        let error = unsafe { apply(map.0, len, 1, true, &options) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_node_is_verified_and_a_missing_one_is_named() {
        let options = PlacementOptions { numa_node: Some(4000), ..default() };
        let error = memfd(0, 4096, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("4000"), "{error}");
        if !std::path::Path::new("/sys/devices/system/node/node0").exists() {
            return;
        }
        let options = PlacementOptions { numa_node: Some(0), ..default() };
        let fd = memfd(0, 1 << 20, &options).unwrap();
        let map = Map::new(&fd, 0, 1 << 20, 1, 4096);
        // SAFETY: `map` lives on.
        unsafe { apply(map.0, 1 << 20, 1, true, &options) }.unwrap();
    }

    #[test]
    fn prefault_maps_every_page() {
        let resident = |map: &Map| {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let start = format!("{:x}-", map.0.addr());
            let at = smaps.find(&format!("\n{start}")).unwrap();
            field(&smaps[at..], "Rss:").unwrap() << 10
        };
        let len = 1 << 20;
        let fd = memfd(0, len, &default()).unwrap();
        let map = Map::new(&fd, 0, len as usize, 1, 4096);
        assert_eq!(resident(&map), 0);
        // SAFETY: `map` lives on.
        unsafe { apply(map.0, map.1, 1, true, &PlacementOptions { prefault: true, ..default() }) }.unwrap();
        assert_eq!(resident(&map), len);
    }
}
