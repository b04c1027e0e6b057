//! Stale names: when one may be removed, and how. A segment's last user, a creator in its way, `clean` and `unlink` all
//! come here.
//!
//! Who holds byte 0 exclusively is alone with the file: nobody uses the segment, and nobody can begin to. If the name still
//! leads to that file then, and nothing in it is wanted any more, the name may go.

use std::ffi::OsStr;

use rustix::io::Errno;

use super::file::{Found, read_page};
use super::format::validate;
use super::name::{Name, socket_of_listener};
use super::undelivered::{Reason, reason_to_keep};
use crate::error::Result;
use crate::facts::BYTE_IN_USE;
use crate::layout::Kind;
use crate::sys::fork::Entry;
use crate::sys::fs::{self, FileId, leads_to};
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::{os, socket};

/// A segment that nobody uses. Nobody can begin to while this lives.
pub(super) struct Unused<'a> {
    /// Descriptor 0 holds byte 0 exclusively, 1 is the directory.
    entry: Entry,
    file: &'a OsStr,
}

/// What an attempt to be alone with a segment came to.
pub(super) enum Claim<'a> {
    Unused(Unused<'a>),
    InUse,
    /// Another process is alone with it at this moment.
    Contended,
    /// The name does not lead to this file any more.
    Moved,
}

impl<'a> Unused<'a> {
    /// By a description of its own, so that a fork's child cannot keep the lock.
    pub(super) fn claim(name: &'a Name, found: &Found) -> Result<Claim<'a>> {
        match found.lock_description(name, Access::ReadWrite)? {
            Some(entry) => Self::claim_with(&entry, name.file(), found.id()),
            None => Ok(Claim::Moved),
        }
    }

    /// By a description that holds no lock; see [`Found::lock_description`].
    pub(super) fn claim_with(entry: &Entry, file: &'a OsStr, id: FileId) -> Result<Claim<'a>> {
        if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Exclusive)? {
            let in_use = lock::held_by_another(entry.fd(0), BYTE_IN_USE)? == Some(Mode::Shared);
            return Ok(if in_use { Claim::InUse } else { Claim::Contended });
        }
        let unused = Self { entry: entry.clone(), file };
        Ok(if leads_to(entry.fd(1), file, id) { Claim::Unused(unused) } else { Claim::Moved })
    }

    /// Why it is to be kept; `None` if it may be removed.
    pub(super) fn reason_to_keep(&self) -> Result<Option<Reason>> {
        let (page, size) = read_page(self.entry.fd(0))?;
        reason_to_keep(self.entry.fd(0), &page, &validate(&page, size)?)
    }

    /// Removes the name; that it is gone already is fine.
    pub(super) fn remove(self) -> Result<()> {
        match fs::unlink(self.entry.fd(1), self.file) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(os("removing the stale name")(e)),
        }
    }

    /// [`remove`](Self::remove), and with a dead listener's name its socket: one where nobody listens.
    pub(super) fn remove_with_socket(self, name: &Name, kind: Kind) -> Result<()> {
        if kind == Kind::Listener {
            // What stays is not ours, and no reason to keep the segment.
            let _ = socket::remove_dead(name.dir(), name.dir_path(), &socket_of_listener(name.file()));
        }
        self.remove()
    }
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        lock::unlock(self.entry.fd(0), BYTE_IN_USE);
    }
}
