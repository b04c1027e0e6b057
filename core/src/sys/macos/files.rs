//! What files can do here: no file without a name, no `/proc`, no memory file system.

use std::ffi::{CStr, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::fs::FileSystem;

/// This boot's id; all zero where the kernel does not tell.
pub(crate) fn boot_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| {
        // 36 characters of a UUID and a NUL.
        let mut text = [0u8; 64];
        let mut len = text.len();
        // SAFETY: the name ends in a NUL, and the kernel writes at most `len` bytes into `text`.
        let rc = unsafe {
            libc::sysctlbyname(
                c"kern.bootsessionuuid".as_ptr(),
                text.as_mut_ptr().cast(),
                &raw mut len,
                std::ptr::null_mut(),
                0,
            )
        };
        if rc != 0 {
            return [0; 16];
        }
        crate::sys::fs::parse_id(&String::from_utf8_lossy(&text[..len.min(64)]))
    })
}

/// Judges by the name that `statfs` gives, and whether the file system is local. The disk's are what there is: a
/// segment of an earlier boot is never resumed, so the order in which pages are written back does not matter.
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> Result<FileSystem, Errno> {
    let stat = rustix::fs::fstatfs(fd)?;
    // SAFETY: the kernel ends the name with a NUL within the array.
    let name = unsafe { CStr::from_ptr(stat.f_fstypename.as_ptr()) };
    Ok(match name.to_bytes() {
        b"apfs" | b"hfs" | b"tmpfs" => FileSystem::Memory,
        b"nfs" => FileSystem::Unsuitable("NFS"),
        b"smbfs" => FileSystem::Unsuitable("SMB"),
        b"afpfs" => FileSystem::Unsuitable("AFP"),
        b"webdav" => FileSystem::Unsuitable("WebDAV"),
        b"virtiofs" => FileSystem::Unsuitable("virtiofs"),
        b"macfuse" | b"osxfuse" | b"fusefs" => FileSystem::Unsuitable("FUSE"),
        b"devfs" | b"fdesc" | b"autofs" => FileSystem::Unsuitable("kernel pseudo file system"),
        _ if stat.f_flags & libc::MNT_LOCAL as u32 == 0 => FileSystem::Unsuitable("network"),
        _ => FileSystem::Disk,
    })
}

/// What to advise where a directory will not do.
pub(crate) const GOOD_PLACE: &str = "a directory on an APFS volume";

/// Where named segments live unless they are told otherwise. Not `TMPDIR`, which differs between a terminal, a service
/// and an application of one user.
pub(crate) fn default_directory(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/ramway-{uid}"))
}

/// A handle to a directory that is used to name things in it.
pub(crate) fn open_directory(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, path, flags | OFlags::RDONLY, Mode::empty()) {
        // One that may be searched but not listed, as another user's may be.
        Err(Errno::ACCESS) => {
            rustix::fs::openat(CWD, path, flags | OFlags::from_bits_retain(libc::O_EXEC as u32), Mode::empty())
        }
        result => result,
    }
}

/// There is no file without a name: the caller takes an interim name.
pub(crate) fn create_unnamed(_dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    Err(Errno::NOTSUP)
}

/// Opening `/dev/fd/N` gives the same description once more, not another one.
pub(crate) fn reopen(_fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    Err(Errno::NOTSUP)
}

/// See [`create_unnamed`].
pub(crate) fn link_unnamed(_fd: BorrowedFd<'_>, _dir: BorrowedFd<'_>, _name: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

/// A random number from the kernel for a name that nobody else picks.
pub(crate) fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes 8 bytes into `bytes`. It cannot fail for so few; the name's EXCL catches a repetition.
    unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) };
    u64::from_ne_bytes(bytes)
}
