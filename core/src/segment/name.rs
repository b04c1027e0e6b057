//! Names: the Ramway directory, what may stand in it, and paths.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::fs;

/// The longest name in the Ramway directory, in bytes.
const NAME_MAX: usize = 80;

/// A name in a directory that is held open, so that the whole of an operation happens in one directory.
pub(crate) struct Name {
    dir: OwnedFd,
    file: OsString,
    path: PathBuf,
    is_path: bool,
}

/// Where named segments live: `RAMWAY_DIR`, else `/dev/shm/ramway-<euid>` (on macOS `/tmp/ramway-<euid>`). It need not exist.
pub(crate) fn directory() -> PathBuf {
    match std::env::var_os("RAMWAY_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => fs::default_directory(),
    }
}

/// Whether a name may stand in the Ramway directory.
pub(crate) fn is_valid(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    (1..=NAME_MAX).contains(&bytes.len())
        && bytes[0] != b'.'
        && !bytes.ends_with(b".sock")
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

impl Name {
    /// Finds the directory that a name or path (with a `/` in it) means. `make` makes the Ramway directory if it is
    /// not there; the parent of a path must exist.
    pub(crate) fn resolve(name: &OsStr, make: bool) -> Result<Self> {
        let shown = name.to_string_lossy();
        if name.as_bytes().contains(&b'/') {
            let path = Path::new(name);
            let ends_in_a_name = !name.as_bytes().ends_with(b"/") && !name.as_bytes().contains(&0);
            let (Some(parent), Some(file), true) = (path.parent(), path.file_name(), ends_in_a_name) else {
                let text = format!("the path '{shown}' does not end in a name");
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            };
            let dir = fs::open_dir(parent).map_err(|e| {
                Error::os(e.raw_os_error(), format_args!("opening the directory {} of '{shown}'", parent.display()))
            })?;
            return Ok(Self { dir, file: file.into(), path: path.into(), is_path: true });
        }
        if !is_valid(name) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the name '{shown}' cannot be used: 1 to {NAME_MAX} of A-Z a-z 0-9 . _ -, not starting with a dot, \
                     not ending in .sock (with a / it would be a path)"
                ),
            ));
        }
        let root = directory();
        let dir = Self::open_root(&root, make).map_err(|e| e.context(format_args!("'{shown}'")))?;
        let path = root.join(name);
        Ok(Self { dir, file: name.into(), path, is_path: false })
    }

    /// What a directory's listing says is in it.
    pub(crate) fn in_directory(dir: &Path, file: &OsStr) -> Result<Self> {
        let opened = fs::open_dir(dir)
            .map_err(|e| Error::os(e.raw_os_error(), format_args!("opening the directory {}", dir.display())))?;
        Ok(Self { dir: opened, file: file.into(), path: dir.join(file), is_path: true })
    }

    fn open_root(root: &Path, make: bool) -> Result<OwnedFd> {
        let what = |e: Errno, doing: &str| {
            Error::os(e.raw_os_error(), format_args!("{doing} the Ramway directory {}", root.display()))
        };
        // Everybody may make a directory or link of the default name in /dev/shm, so look what it is and whose.
        let is_default = root == fs::default_directory();
        let open = if is_default { fs::open_real_dir } else { fs::open_dir };
        let dir = match open(root) {
            Err(Errno::NOENT) if make => {
                fs::make_dir(root).map_err(|e| what(e, "making"))?;
                open(root)
            }
            result => result,
        };
        let refused = |found: String| {
            let (path, uid) = (root.display(), fs::effective_uid());
            let text = format!(
                "the Ramway directory {path} must be a real directory of user {uid} with mode 0700, but {found}; remove \
                 it, or set RAMWAY_DIR to a directory of yours"
            );
            Error::new(ErrorKind::PermissionDenied, text)
        };
        let dir = match dir {
            Err(Errno::NOTDIR | Errno::LOOP) if is_default => return Err(refused("it is none".into())),
            Err(Errno::NOENT) => {
                let text = format!(
                    "nothing has this name: the Ramway directory {} does not exist. Create it first, or check RAMWAY_DIR",
                    root.display()
                );
                return Err(Error::new(ErrorKind::NotFound, text));
            }
            result => result.map_err(|e| what(e, "opening"))?,
        };
        if is_default {
            let stat = fs::stat(&dir).map_err(|e| what(e, "looking at"))?;
            if stat.st_uid != fs::effective_uid() || fs::mode(&stat) & 0o077 != 0 {
                return Err(refused(format!(
                    "it belongs to user {} and has mode {:04o}",
                    stat.st_uid,
                    fs::mode(&stat)
                )));
            }
        }
        Ok(dir)
    }

    /// The directory.
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The name in the directory.
    pub(crate) fn file(&self) -> &OsStr {
        &self.file
    }

    /// For messages, and for those who come by path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is the Ramway directory, by whatever path it was reached.
    pub(crate) fn is_in_the_directory(&self) -> bool {
        let root = fs::open_dir(&directory()).and_then(fs::stat);
        let here = fs::stat(&self.dir);
        matches!((root, here), (Ok(root), Ok(here)) if fs::identity(&root) == fs::identity(&here))
    }

    /// Whether it was given as a path.
    pub(crate) fn is_path(&self) -> bool {
        self.is_path
    }
}

/// The socket that belongs to a listener's segment: `NAME.sock` beside it; where a path is the socket, the segment is
/// `PATH.lock`.
pub(crate) fn socket_of(segment: &OsStr) -> OsString {
    match segment.as_bytes().strip_suffix(b".lock") {
        Some(path) if !path.is_empty() => OsStr::from_bytes(path).into(),
        _ => {
            let mut socket = segment.to_os_string();
            socket.push(".sock");
            socket
        }
    }
}
