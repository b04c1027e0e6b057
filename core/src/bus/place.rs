//! Where a listener is: its socket, and the segment whose lock says that it lives.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::facts::BYTE_LISTENER;
use crate::segment::Name;
use crate::segment::name::{check_listener, socket_of_listener};
use crate::sys::fs::{self, FileId, leads_to};
use crate::sys::lock;
use crate::sys::mem::Access;
use crate::sys::socket::{self, Remains};
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
    /// A plain name is the segment's, and the socket is beside it; a path is the socket's. `make` makes the Ramway
    /// directory if it is not there.
    pub(crate) fn resolve(text: &OsStr, make: bool) -> Result<Self> {
        check_listener(text)?;
        let name = Name::resolve(text, make)?;
        let file = name.file().to_os_string();
        if name.is_path() {
            let segment_file = name.listener_of_socket();
            let segment = name.path().with_file_name(&segment_file).into();
            return Ok(Self { segment, segment_file, socket_file: file, name });
        }
        Ok(Self { segment: text.into(), socket_file: socket_of_listener(&file), segment_file: file, name })
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.name.dir()
    }

    pub(crate) fn dir_path(&self) -> &OsStr {
        self.name.dir_path()
    }

    /// The socket's path, for messages and for those who connect by path.
    pub(crate) fn socket_path(&self) -> PathBuf {
        Path::new(self.dir_path()).join(&self.socket_file)
    }

    /// Removes a dead listener's socket. The caller holds the listener's lock. Anything that is not a socket, and a
    /// socket where somebody listens, stays and is an error.
    pub(crate) fn clear(&self) -> Result<()> {
        let path = self.socket_path();
        let path = path.display();
        let left = match socket::remove_dead(self.dir(), self.dir_path(), &self.socket_file)
            .map_err(|e| e.context(format_args!("the socket {path}")))?
        {
            Remains::Nothing => return Ok(()),
            Remains::Other(what) => format!("{path} is {what}, not a socket"),
            Remains::Live => format!("a program that does not hold Ramway's lock is listening at {path}"),
        };
        Err(Error::new(ErrorKind::AlreadyExists, format!("{left}; it is left as it is: move it or pick another name")))
    }

    /// A listening socket here. The caller holds the listener's lock and has cleared the place.
    pub(crate) fn listen(&self, mode: u32, backlog: i32) -> Result<(OwnedFd, FileId)> {
        let (fd, stat) = socket::listen(self.dir(), self.dir_path(), &self.socket_file, mode, backlog)
            .map_err(|e| e.context(self.socket_path().display()))?;
        Ok((fd, FileId::of(&stat)))
    }

    /// Removes the socket if it is still the one that [`listen`](Self::listen) made. As long as that is open, nothing
    /// else can get its number.
    pub(crate) fn remove_own(&self, socket: FileId) {
        if leads_to(self.dir(), &self.socket_file, socket) {
            let _ = fs::unlink(self.dir(), &self.socket_file);
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
