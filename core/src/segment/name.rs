//! Names: the Ramway directory, what may stand in it, paths, and what belongs to a name: a listener's socket and segment,
//! and how a segment is called before it has its name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::facts::{
    DIRECTORY_VARIABLE, LOCK_SUFFIX, NAME_CHARACTERS, NAME_MAX, SOCKET_SUFFIX, STAGED_PREFIX, STAGED_SUFFIX,
};
use crate::sys::fs::{self, FileId, leads_to};
use crate::sys::os;

/// A name in a directory that is held open, so that the whole of an operation happens in one directory.
pub(crate) struct Name {
    dir: OwnedFd,
    file: OsString,
    path: PathBuf,
    is_path: bool,
}

/// Where named segments live: `RAMWAY_DIR`, else `/dev/shm/ramway-<euid>` (on macOS `/tmp/ramway-<euid>`). It need not exist.
pub(crate) fn directory() -> PathBuf {
    match std::env::var_os(DIRECTORY_VARIABLE) {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => fs::default_directory(),
    }
}

/// Whether a name may stand in the Ramway directory.
fn is_valid(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    (1..=NAME_MAX).contains(&bytes.len())
        && bytes[0] != b'.'
        && !bytes.ends_with(SOCKET_SUFFIX.as_bytes())
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
            let dir = fs::open_dir(parent)
                .map_err(os(format_args!("opening the directory {} of '{shown}'", parent.display())))?;
            return Ok(Self { dir, file: file.into(), path: path.into(), is_path: true });
        }
        if !is_valid(name) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the name '{shown}' cannot be used: expected 1 to {NAME_MAX} of {NAME_CHARACTERS}, not starting with a \
                     dot, not ending in {SOCKET_SUFFIX} (with a / it would be a path)"
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
        let opened = fs::open_dir(dir).map_err(os(format_args!("opening the directory {}", dir.display())))?;
        Ok(Self { dir: opened, file: file.into(), path: dir.join(file), is_path: true })
    }

    fn open_root(root: &Path, make: bool) -> Result<OwnedFd> {
        let what = |doing: &str| os(format!("{doing} the Ramway directory {}", root.display()));
        // Every user may make a directory or link of the default name in /dev/shm, so check what it is and whose.
        let is_default = root == fs::default_directory();
        let open = if is_default { fs::open_real_dir } else { fs::open_dir };
        let dir = match open(root) {
            Err(Errno::NOENT) if make => {
                fs::make_dir(root).map_err(what("making"))?;
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
            result => result.map_err(what("opening"))?,
        };
        if is_default {
            let stat = fs::stat(&dir).map_err(what("checking"))?;
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

    /// The directory's path.
    pub(crate) fn dir_path(&self) -> &OsStr {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.as_os_str(),
            _ => OsStr::new("."),
        }
    }

    /// The name in the directory.
    pub(crate) fn file(&self) -> &OsStr {
        &self.file
    }

    /// For messages, and for those who come by path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was given as a path.
    pub(crate) fn is_path(&self) -> bool {
        self.is_path
    }

    /// Whether the name leads to this file.
    pub(super) fn leads_to(&self, id: FileId) -> bool {
        leads_to(self.dir(), &self.file, id)
    }

    /// Whether the directory is the Ramway directory, by whatever path it was reached.
    fn is_in_the_directory(&self) -> bool {
        let root = fs::open_dir(&directory()).and_then(fs::stat);
        let here = fs::stat(&self.dir);
        matches!((root, here), (Ok(root), Ok(here)) if FileId::of(&root) == FileId::of(&here))
    }

    /// The name of the listener's segment, if this path is its socket: `NAME` for the socket `NAME.sock` of a name in the
    /// Ramway directory, however the path is written, so that both meet at the same lock; else `PATH.lock`.
    pub(crate) fn listener_of_socket(&self) -> OsString {
        let stem = self.file.as_bytes().strip_suffix(SOCKET_SUFFIX.as_bytes()).map(OsStr::from_bytes);
        match stem.filter(|stem| is_valid(stem) && !is_listener_of_path(stem) && self.is_in_the_directory()) {
            Some(stem) => stem.into(),
            None => with_suffix(&self.file, LOCK_SUFFIX),
        }
    }
}

/// Refuses a listener's name, not a path, that looks like the segment of a path.
pub(crate) fn check_listener(name: &OsStr) -> Result<()> {
    if name.as_bytes().contains(&b'/') || !is_listener_of_path(name) {
        return Ok(());
    }
    let text = format!("the listener's name '{}' must not end in {LOCK_SUFFIX}: pick another name", name.display());
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

fn is_listener_of_path(name: &OsStr) -> bool {
    name.as_bytes().ends_with(LOCK_SUFFIX.as_bytes())
}

/// The socket that belongs to a listener's segment: `NAME.sock` beside it; where a path is the socket, the segment is
/// `PATH.lock`.
pub(crate) fn socket_of_listener(segment: &OsStr) -> OsString {
    match segment.as_bytes().strip_suffix(LOCK_SUFFIX.as_bytes()) {
        Some(path) if !path.is_empty() => OsStr::from_bytes(path).into(),
        _ => with_suffix(segment, SOCKET_SUFFIX),
    }
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut longer = name.to_os_string();
    longer.push(suffix);
    longer
}

/// A name for a segment that is being made, where every file needs one.
pub(super) fn new_staged() -> OsString {
    format!("{STAGED_PREFIX}{:016x}{STAGED_SUFFIX}", fs::random()).into()
}

/// Whether a segment that is being made is called like this.
pub(super) fn is_staged(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(STAGED_PREFIX.as_bytes());
    let middle = rest.and_then(|rest| rest.strip_suffix(STAGED_SUFFIX.as_bytes()));
    middle.is_some_and(|hex| hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit))
}
