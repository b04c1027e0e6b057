//! Files: directories, opening without side effects, files without a name, and what kind of file system it is.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::mem::Access;

/// This boot's id; all zero where the kernel does not tell.
pub(crate) fn boot_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let mut id = [0; 16];
        let mut digits = text.chars().filter_map(|c| c.to_digit(16));
        for byte in &mut id {
            let (Some(high), Some(low)) = (digits.next(), digits.next()) else { return [0; 16] };
            *byte = (high * 16 + low) as u8;
        }
        id
    })
}

/// What can be expected of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Memory: what the segments are made for.
    Memory,
    /// A local disk: correct, but pages are written back, in an order of the kernel's.
    Disk,
    /// Shared mappings or locks do not reach everybody here; the type's name.
    Unsuitable(&'static str),
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

/// A handle to a directory that can only be used to name things in it.
pub(crate) fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// [`open_dir`] that does not follow a symbolic link at the end of the path: `NOTDIR` or `LOOP`.
pub(crate) fn open_real_dir(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// What is at this name; a symbolic link is not followed. `None`: nothing.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The kind of file, in words.
pub(crate) fn describe(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "a file of unknown type",
    }
}

/// Whether a file may be opened at all: anything but a regular file can have side effects on open.
pub(crate) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether it is a socket.
pub(crate) fn is_socket(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Socket
}

/// Opens what [`stat_at`] called a regular file. If it was exchanged meanwhile, the open neither blocks nor follows a
/// link nor takes a terminal; the caller looks again at what it got.
pub(crate) fn open_at(dir: BorrowedFd<'_>, name: &OsStr, access: Access) -> Result<OwnedFd, Errno> {
    let flags = access_flags(access) | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn access_flags(access: Access) -> OFlags {
    match access {
        Access::ReadOnly => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    }
}

/// A new file in the directory's file system that has no name yet. `NOTSUP` and the like where that cannot be.
pub(crate) fn create_unnamed(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::RUSR | Mode::WUSR)
}

/// A new file with a name that nothing has yet.
pub(crate) fn create_new(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)
}

fn proc_path(fd: BorrowedFd<'_>) -> String {
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

/// Renames within a directory; `EXIST` if the new name is taken.
pub(crate) fn rename_new(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        // A file system that knows no NOREPLACE: two steps, between which the file has both names.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())?;
            unlink(dir, from)
        }
        done => done,
    }
}

/// Removes a name.
pub(crate) fn unlink(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    rustix::fs::unlinkat(dir, name, AtFlags::empty())
}

/// Sets a file's permissions exactly, whatever the umask.
pub(crate) fn chmod(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode & 0o777))
}

/// Makes a directory for its owner alone; that it exists already is fine.
pub(crate) fn make_dir(path: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Err(Errno::EXIST) => Ok(()),
        done => done,
    }
}

/// Reads at an offset until the buffer is full or the file ends; how much there was.
pub(crate) fn read_at(fd: BorrowedFd<'_>, mut offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::pread(fd, &mut buffer[done..], offset) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Writes all bytes at an offset.
pub(crate) fn write_at(fd: BorrowedFd<'_>, mut offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(fd, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A random number from the kernel for a name that nobody else picks.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Only a kernel that is still booting gives less; the name's EXCL catches a repetition.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}

/// The effective user.
pub(crate) fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// `fstat`.
pub(crate) fn stat(fd: impl AsFd) -> Result<Stat, Errno> {
    rustix::fs::fstat(fd)
}
