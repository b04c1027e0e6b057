//! Files: directories, opening without side effects, and names.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::backend::files;
pub(crate) use super::backend::files::{
    GOOD_PLACE, boot_id, create_unnamed, file_system, link_unnamed, random, reopen,
};
use super::mem::Access;

/// Where named segments live unless they are told otherwise.
pub(crate) fn default_directory() -> PathBuf {
    files::default_directory(effective_uid())
}

/// A UUID as text; all zero if it is none.
pub(super) fn parse_id(text: &str) -> [u8; 16] {
    let mut id = [0; 16];
    let mut digits = text.chars().filter_map(|c| c.to_digit(16));
    for byte in &mut id {
        let (Some(high), Some(low)) = (digits.next(), digits.next()) else { return [0; 16] };
        *byte = (high * 16 + low) as u8;
    }
    id
}

/// What can be expected of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Memory, what the segments are made for; where the system has no such thing, the best that it has.
    Memory,
    /// A local disk: correct, but pages are written back, in an order of the kernel's.
    Disk,
    /// Shared mappings or locks do not reach everybody here; the type's name.
    Unsuitable(&'static str),
}

/// A handle to a directory that can only be used to name things in it.
pub(crate) fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    files::open_directory(path, OFlags::empty())
}

/// [`open_dir`] that does not follow a symbolic link at the end of the path: `NOTDIR` or `LOOP`.
pub(crate) fn open_real_dir(path: &Path) -> Result<OwnedFd, Errno> {
    files::open_directory(path, OFlags::NOFOLLOW)
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
/// link nor takes a terminal; the caller checks again what it got.
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

/// A new file with a name that nothing has yet.
pub(crate) fn create_new(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Renames within a directory; `EXIST` if the new name is taken.
pub(crate) fn rename_new(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        // A file system that knows no NOREPLACE: two steps, between which the file has both names.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
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
    rustix::fs::fchmod(fd, permissions(mode))
}

/// The permission bits of a mode.
pub(crate) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o777) as rustix::fs::RawMode)
}

/// The set-id and permission bits of a file. Systems differ in the width of these numbers.
#[allow(clippy::unnecessary_cast, reason = "16 bits on macOS")]
pub(crate) fn mode(stat: &Stat) -> u32 {
    stat.st_mode as u32 & 0o7777
}

/// What makes a file the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    #[allow(clippy::unnecessary_cast, reason = "32 bits, signed, on macOS")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino }
    }
}

/// Whether the name still leads to this file.
pub(crate) fn leads_to(dir: BorrowedFd<'_>, file: &OsStr, id: FileId) -> bool {
    matches!(stat_at(dir, file), Ok(Some(now)) if FileId::of(&now) == id)
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

/// The effective user.
pub(crate) fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// `fstat`.
pub(crate) fn stat(fd: impl AsFd) -> Result<Stat, Errno> {
    rustix::fs::fstat(fd)
}

/// An empty file without a name, for tests that change its size.
#[cfg(test)]
pub(crate) fn scratch() -> OwnedFd {
    let dir = open_dir(&std::env::temp_dir()).unwrap();
    let name = format!(".ramway-test-{:016x}", random());
    let file = create_new(dir.as_fd(), name.as_ref()).unwrap();
    unlink(dir.as_fd(), name.as_ref()).unwrap();
    file
}
