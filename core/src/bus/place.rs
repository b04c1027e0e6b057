//! Where a listener is: its socket, and the segment whose lock says that it lives.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::segment::{BYTE_LISTENER, Name};
use crate::sys::mem::Access;
use crate::sys::{fs, lock};
use crate::{Error, ErrorKind, Result};

/// A listener's socket and segment, in a directory that is held open.
pub(crate) struct Place {
    name: Name,
    /// The segment, as a name or path to give to [`named`](crate::segment::named()).
    pub(crate) segment: OsString,
    /// The segment's file name.
    segment_file: OsString,
    /// The socket's file name.
    pub(crate) socket_file: OsString,
}

impl Place {
    /// A plain name is the segment's, and the socket is `NAME.sock` beside it. A path is the socket's, and the segment is
    /// `PATH.lock`. `make` makes the Ramway directory if it is not there.
    pub(crate) fn resolve(text: &OsStr, make: bool) -> Result<Self> {
        let with = |suffix: &str, base: &OsStr| {
            let mut longer = base.to_os_string();
            longer.push(suffix);
            longer
        };
        if !text.as_bytes().contains(&b'/') && text.as_bytes().ends_with(b".lock") {
            let text = format!("the listener's name '{}' must not end in .lock", text.to_string_lossy());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let name = Name::resolve(text, make)?;
        if name.is_path() {
            let socket_file = name.file().to_os_string();
            let segment_file = with(".lock", &socket_file);
            return Ok(Self { segment: with(".lock", text), segment_file, socket_file, name });
        }
        let segment_file = name.file().to_os_string();
        Ok(Self { segment: text.into(), socket_file: with(".sock", &segment_file), segment_file, name })
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.name.dir()
    }

    pub(crate) fn dir_path(&self) -> &OsStr {
        match self.name.path().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.as_os_str(),
            _ => OsStr::new("."),
        }
    }

    /// The socket's path, for messages and for those who connect by path.
    pub(crate) fn socket_path(&self) -> PathBuf {
        Path::new(self.dir_path()).join(&self.socket_file)
    }

    /// Removes a dead listener's socket. The caller holds the listener's lock. Anything that is not a socket stays and
    /// is an error.
    pub(crate) fn clear(&self) -> Result<()> {
        let path = self.socket_path();
        let stat = fs::stat_at(self.dir(), &self.socket_file)
            .map_err(|e| Error::os(e.raw_os_error(), format_args!("looking at {}", path.display())))?;
        match stat {
            None => Ok(()),
            Some(stat) if fs::is_socket(&stat) => match fs::unlink(self.dir(), &self.socket_file) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
                Err(e) => Err(Error::os(e.raw_os_error(), format_args!("removing the dead socket {}", path.display()))),
            },
            Some(stat) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "{} is {}, not a socket; it is left as it is: move it or pick another name",
                    path.display(),
                    fs::describe(&stat)
                ),
            )),
        }
    }

    /// What is at the socket's name although nothing can ever listen there, in words.
    pub(crate) fn no_socket(&self) -> Option<&'static str> {
        match fs::stat_at(self.dir(), &self.socket_file) {
            // A link may lead to a socket.
            Ok(Some(stat)) if !fs::is_socket(&stat) && fs::describe(&stat) != "a symbolic link" => {
                Some(fs::describe(&stat))
            }
            _ => None,
        }
    }

    /// Whether a listener holds its lock, as far as we may ask; `None` if we may not.
    pub(crate) fn listener_lives(&self) -> Option<bool> {
        match fs::stat_at(self.dir(), &self.segment_file) {
            Ok(Some(stat)) if fs::is_regular(&stat) => {}
            Ok(_) => return Some(false),
            Err(_) => return None,
        }
        let file = fs::open_at(self.dir(), &self.segment_file, Access::ReadOnly).ok()?;
        lock::held_by_another(file.as_fd(), BYTE_LISTENER).ok().map(|holder| holder.is_some())
    }
}
