//! The file behind a segment: what may be opened, on which file systems, and whether a name still leads to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::format::HeaderPage;
use super::name::Name;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::fork::Entry;
use crate::sys::fs::{self, FileId, FileSystem};
use crate::sys::mem::Access;
use crate::sys::os;

/// Refuses file systems that cannot do what the segments rest on.
pub(crate) fn check_file_system(fd: BorrowedFd<'_>, allow_disk: bool) -> Result<()> {
    match fs::file_system(fd).map_err(os("asking for the file system's type"))? {
        FileSystem::Memory => Ok(()),
        FileSystem::Disk if allow_disk => Ok(()),
        FileSystem::Disk => {
            let text = format!(
                "this is a file system on a disk, whose pages are written back; use {}, or allow_disk",
                fs::GOOD_PLACE
            );
            Err(Error::new(ErrorKind::Unsupported, text))
        }
        FileSystem::Unsuitable(kind) => {
            let text = format!(
                "this is a file system of type {kind}, where shared mappings or locks cannot be relied on; use {}",
                fs::GOOD_PLACE
            );
            Err(Error::new(ErrorKind::Unsupported, text))
        }
    }
}

/// A file's first page (zero beyond its end) and its length.
pub(crate) fn read_page(file: BorrowedFd<'_>) -> Result<(HeaderPage, u64)> {
    let mut page = HeaderPage::zeroed();
    let size = fs::stat(file).map_err(os("checking the file (fstat)"))?.st_size as u64;
    fs::read_at(file, 0, &mut page.0[..]).map_err(os("reading the header page"))?;
    Ok((page, size))
}

/// The regular file that a name led to when it was opened.
pub(super) struct Found {
    pub(super) file: OwnedFd,
    pub(super) stat: Stat,
}

impl Found {
    /// Opens it without side effects on anything else. `None`: nothing has this name.
    pub(super) fn at(name: &Name, access: Access) -> Result<Option<Self>> {
        let not_regular = |stat: &Stat| {
            let text = format!("this is {}, not a segment; it is left as it is", fs::describe(stat));
            Error::new(ErrorKind::InvalidArgument, text)
        };
        match fs::stat_at(name.dir(), name.file()).map_err(os("checking the name (lstat)"))? {
            None => return Ok(None),
            Some(stat) if !fs::is_regular(&stat) => return Err(not_regular(&stat)),
            Some(_) => {}
        }
        let file = match fs::open_at(name.dir(), name.file(), access) {
            Err(Errno::NOENT) => return Ok(None),
            result => result.map_err(os("opening the file"))?,
        };
        let stat = fs::stat(&file).map_err(os("checking the file (fstat)"))?;
        if fs::is_regular(&stat) { Ok(Some(Self { file, stat })) } else { Err(not_regular(&stat)) }
    }

    pub(super) fn id(&self) -> FileId {
        FileId::of(&self.stat)
    }

    /// [`read_page`].
    pub(super) fn read_page(&self) -> Result<(HeaderPage, u64)> {
        read_page(self.file.as_fd())
    }

    /// Opens the description that holds the locks (descriptor 0), and the directory for the removal of the name
    /// (descriptor 1). `None`: the name no longer leads to the file. It is opened for writing where that is permitted,
    /// because only then can a read-only handle be the last user.
    pub(super) fn lock_description(&self, name: &Name, access: Access) -> Result<Option<Entry>> {
        let mut same = true;
        let entry = Entry::open(|| {
            let lock = match fs::open_at(name.dir(), name.file(), Access::ReadWrite) {
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if access == Access::ReadOnly => {
                    fs::open_at(name.dir(), name.file(), access)
                }
                result => result,
            };
            let lock = match lock {
                Ok(lock) => lock,
                Err(Errno::NOENT) => {
                    same = false;
                    return Ok(Vec::new());
                }
                Err(e) => return Err(os("opening the file a second time, for its locks")(e)),
            };
            same = fs::stat(&lock).is_ok_and(|now| FileId::of(&now) == self.id());
            Ok(vec![lock, dup(name.dir())?])
        })?;
        Ok(same.then_some(entry))
    }
}

pub(super) fn dup(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(os("duplicating a descriptor"))
}
