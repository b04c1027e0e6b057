//! What files can do here: live without a name, be opened anew through `/proc`, and be memory.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::facts::DIRECTORY_PREFIX;
use crate::sys::fs::{FileSystem, parse_id};

/// This boot's id; all zero where the kernel does not tell.
pub(crate) fn boot_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| parse_id(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()))
}

/// Judges by the type that `statfs` names.
pub(crate) fn file_system(fd: BorrowedFd<'_>) -> Result<FileSystem, Errno> {
    let magic = rustix::fs::fstatfs(fd)?.f_type as u64 & 0xFFFF_FFFF;
    Ok(match magic {
        0x0102_1994 | 0x8584_58F6 | 0x9584_58F6 => FileSystem::Memory, // tmpfs, ramfs, hugetlbfs
        0x6969 => FileSystem::Unsuitable("NFS"),
        0x0102_1997 => FileSystem::Unsuitable("9p"),
        0x6573_5546 => FileSystem::Unsuitable("FUSE or virtiofs"),
        0x794C_7630 => FileSystem::Unsuitable("overlay"),
        0x517B | 0xFF53_4D42 | 0xFE53_4D42 => FileSystem::Unsuitable("SMB"),
        0x00C3_6400 => FileSystem::Unsuitable("Ceph"),
        0x0BD0_0BD0 => FileSystem::Unsuitable("Lustre"),
        0x5346_414F | 0x6B41_4653 => FileSystem::Unsuitable("AFS"),
        0x7375_7245 => FileSystem::Unsuitable("Coda"),
        0x786F_4256 => FileSystem::Unsuitable("VirtualBox shared folder"),
        0xF15F => FileSystem::Unsuitable("eCryptfs"),
        0x9FA0 | 0x6265_6572 | 0x0027_E0EB => FileSystem::Unsuitable("kernel pseudo file system"), // proc, sysfs, cgroup
        _ => FileSystem::Disk,
    })
}

/// What to advise where a directory will not do.
pub(crate) const GOOD_PLACE: &str = "/dev/shm or another tmpfs";

/// Where named segments live unless they are told otherwise.
pub(crate) fn default_directory(uid: u32) -> PathBuf {
    PathBuf::from(format!("{DIRECTORY_PREFIX}{uid}"))
}

/// A handle to a directory that can only be used to name things in it.
pub(crate) fn open_directory(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | flags, Mode::empty())
}

/// A new file in the directory's file system that has no name yet. `NOTSUP` and the like where that cannot be.
pub(crate) fn create_unnamed(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::RUSR | Mode::WUSR)
}

pub(super) fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Another open file description of the same file, which need not have a name. Needs /proc.
pub(crate) fn reopen(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, proc_path(fd), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Gives a file without a name its name; `EXIST` if the name is taken.
pub(crate) fn link_unnamed(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::linkat(CWD, proc_path(fd), dir, name, AtFlags::SYMLINK_FOLLOW) {
        // Without /proc; this way needs a capability on most kernels.
        Err(Errno::NOENT | Errno::ACCESS) => rustix::fs::linkat(fd, "", dir, name, AtFlags::EMPTY_PATH),
        done => done,
    }
}

/// A random number from the kernel for a name that nobody else picks.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Only a kernel that is still booting gives less; the name's EXCL catches a repetition.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}
