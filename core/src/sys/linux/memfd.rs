//! Memory without a name: a memfd whose size is sealed, so that no peer can take it away from under a mapping.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::sys::placement::{PlacementOptions, allocate};
use crate::sys::{fs, os};
use crate::{Error, ErrorKind, Result};

/// What a peer's memory must at least be sealed with before it is mapped: it can neither shrink (reading beyond the
/// end would kill us) nor grow, and nobody can take that back or add a seal that stops the other side's writes.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// `f_type` of the file system behind an ordinary memfd. One of huge pages is on hugetlbfs.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The kernel's limit on a memfd's name: `NAME_MAX` less its own prefix `memfd:`.
const NAME_LIMIT: usize = 249;

/// Zeroed memory of exactly `size` bytes that begins with `start`; close-on-exec. `name` only shows in `/proc`; what does
/// not fit is cut off.
pub(crate) fn create(name: &str, size: u64, start: &[u8]) -> Result<OwnedFd> {
    let memory = made(name, MemfdFlags::ALLOW_SEALING)?;
    allocate(memory.as_fd(), 0, size, &PlacementOptions::default())?;
    fs::write_at(memory.as_fd(), 0, start).map_err(os("writing the first page of a memfd"))?;
    seal(memory.as_fd())?;
    Ok(memory)
}

/// Empty memory that nobody seals; close-on-exec.
pub(crate) fn unsealed(name: &str) -> Result<OwnedFd> {
    made(name, MemfdFlags::empty())
}

fn made(name: &str, flags: MemfdFlags) -> Result<OwnedFd> {
    let mut name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    while name.len() > NAME_LIMIT {
        name.pop();
    }
    let flags = MemfdFlags::CLOEXEC | flags;
    // Kernels from 6.3 on can be told to accept only memory that cannot be executed; older ones do not know the flag.
    let made = match rustix::fs::memfd_create(name.as_str(), flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name.as_str(), flags),
        other => other,
    };
    made.map_err(os(format_args!("memfd_create of {name}")))
}

/// Fixes the size for good. Later calls that would change it, or the set of seals, fail for everybody.
fn seal(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::fcntl_add_seals(fd, SEALS).map_err(os("sealing the size of a memfd"))
}

/// The size in bytes of memory that a peer sent, once it is certain that nobody can change it.
///
/// Anything but a regular memfd with at least [`SEALS`] is `Corrupt`. Memory of huge pages is refused as well: holes
/// can be punched into it, and filling them again may fail with SIGBUS.
pub(crate) fn sealed_size(fd: BorrowedFd<'_>) -> Result<u64> {
    let seals = match rustix::fs::fcntl_get_seals(fd) {
        Ok(seals) => seals,
        Err(Errno::INVAL) => return Err(Error::new(ErrorKind::Corrupt, "the descriptor sent is not a memfd")),
        Err(e) => return Err(os("F_GET_SEALS on the descriptor sent")(e)),
    };
    if !seals.contains(SEALS) {
        let text = format!("the memfd sent is not sealed: its seals are {:#x}, expected {:#x}", seals.bits(), SEALS);
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    if seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
        return Err(Error::new(ErrorKind::Corrupt, "the memfd sent is sealed against writing"));
    }
    let fs = rustix::fs::fstatfs(fd).map_err(os("fstatfs of the memfd sent"))?;
    if fs.f_type as u64 != TMPFS_MAGIC {
        return Err(Error::new(ErrorKind::Corrupt, "the memfd sent is of huge pages, which a peer can take away"));
    }
    let stat = rustix::fs::fstat(fd).map_err(os("fstat of the memfd sent"))?;
    u64::try_from(stat.st_size).map_err(|_| Error::new(ErrorKind::Corrupt, "the memfd sent has a negative size"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn sized(seals: Option<SealFlags>) -> OwnedFd {
        let fd = made("ramway-test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, 8192).unwrap();
        if let Some(seals) = seals {
            rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        }
        fd
    }

    #[test]
    fn sealed_memory_has_a_size_that_stays() {
        let fd = create("ramway-test", 8192, b"start").unwrap();
        assert_eq!(sealed_size(fd.as_fd()).unwrap(), 8192);
        assert!(rustix::fs::ftruncate(&fd, 4096).is_err());
        assert!(rustix::fs::ftruncate(&fd, 16384).is_err());
        assert!(rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE).is_err());
    }

    #[test]
    fn anything_less_than_sealed_is_refused() {
        for seals in [None, Some(SealFlags::SHRINK), Some(SealFlags::SHRINK | SealFlags::GROW)] {
            assert_eq!(sealed_size(sized(seals).as_fd()).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        let no_memfd = rustix::fs::open("/", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        assert_eq!(sealed_size(no_memfd.as_fd()).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn huge_pages_are_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let Ok(fd) = rustix::fs::memfd_create("ramway-test", flags) else {
            println!("this kernel has no memfd of huge pages");
            return;
        };
        seal(fd.as_fd()).unwrap();
        let error = sealed_size(fd.as_fd()).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("huge"), "{error}");
    }

    #[test]
    fn close_on_exec_and_a_long_name() {
        let fd = made(&"é/\n".repeat(200), MemfdFlags::ALLOW_SEALING).unwrap();
        let flags = rustix::io::fcntl_getfd(&fd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        assert!(link.to_string_lossy().starts_with("/memfd:é/?é/?"));
    }
}
