//! Removing what the dead left, under the same lock as the last one out takes.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;

use super::names;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Kind, MAGIC};
use crate::segment::birth::{is_dot_name, remove};
use crate::segment::file::{FileId, leads_to, open_regular, read_page};
use crate::segment::format::validate;
use crate::segment::name::Name;
use crate::segment::named::{BYTE_IN_USE, lock_description};
use crate::segment::undelivered;
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;

/// What [`clean`] may do.
#[derive(Clone, Copy, Debug, Default)]
pub struct CleanOptions {
    /// Only say what would be done. Takes no lock.
    pub dry_run: bool,
    /// Also remove what nobody uses but somebody could want: undelivered messages, the unseen end of a stream,
    /// persistent segments.
    pub undelivered: bool,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Removed; with [`CleanOptions::dry_run`] it would have been.
    Removed,
    /// Left alone, and why.
    Kept(String),
    /// Not Ramway's, so not looked at any further.
    NotRamway,
}

/// Removes the segments of a directory that nobody uses. Never one that somebody uses, however quiet it is, and never
/// what is not Ramway's. Gives each regular file's name and what became of it; an error is that file's alone.
///
/// # Errors
/// If the directory cannot be read.
pub fn clean(dir: &Path, options: &CleanOptions) -> Result<Vec<(OsString, Result<Outcome>)>> {
    let mut outcomes = Vec::new();
    for name in names(dir)? {
        if name.as_encoded_bytes().first() == Some(&b'.') && !is_dot_name(&name) {
            continue;
        }
        let outcome = Name::in_directory(dir, &name).and_then(|name| clean_name(&name, options));
        match outcome {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // Sockets, directories and whatever else cannot be a segment.
            Err(e) if e.kind() == ErrorKind::InvalidArgument => {}
            outcome => outcomes.push((name, outcome)),
        }
    }
    Ok(outcomes)
}

/// [`clean`] for one segment by name or path.
///
/// # Errors
/// `NotFound`, `InvalidArgument` if it is not a regular file, `PermissionDenied`.
pub fn clean_one(name: impl AsRef<OsStr>, options: &CleanOptions) -> Result<Outcome> {
    clean_name(&Name::resolve(name.as_ref(), false)?, options)
}

/// Removes one segment that nobody uses, whatever it holds: persistent or with undelivered messages too, since the caller
/// named it. A listener's socket goes with it.
///
/// # Errors
/// `Busy` if somebody uses it, `NotFound`; for what is no segment of this version, which stays as it is, the errors of
/// [`inspect`](super::inspect); `PermissionDenied`.
pub fn unlink(name: impl AsRef<OsStr>) -> Result<()> {
    let name = Name::resolve(name.as_ref(), false)?;
    unlink_once(&name).map_err(|e| e.context(format_args!("unlinking '{}'", name.path().display())))
}

fn unlink_once(name: &Name) -> Result<()> {
    let nothing = || Error::new(ErrorKind::NotFound, "no segment has this name");
    let Some((file, stat)) = open_regular(name.dir(), name.file(), Access::ReadWrite)? else { return Err(nothing()) };
    let (page, size) = read_page(file.as_fd())?;
    let kind = validate(&page, size)?.header.kind;
    let Some(entry) = lock_description(name, &stat, Access::ReadWrite)? else { return Err(nothing()) };
    if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Exclusive)? {
        let text = format!("the {} is in use: close it first in every process (ramway ls shows which)", kind.name());
        return Err(Error::new(ErrorKind::Busy, text));
    }
    if !leads_to(name.dir(), name.file(), FileId::of(&stat)) {
        return Err(nothing());
    }
    remove(name, kind).map_err(|e| Error::os(e.raw_os_error(), "removing the name"))
}

fn clean_name(name: &Name, options: &CleanOptions) -> Result<Outcome> {
    clean_once(name, options).map_err(|e| e.context(format_args!("cleaning '{}'", name.path().display())))
}

fn clean_once(name: &Name, options: &CleanOptions) -> Result<Outcome> {
    let in_use = || Ok(Outcome::Kept("in use".into()));
    let gone = || Error::new(ErrorKind::NotFound, "it is gone already");
    let access = if options.dry_run { Access::ReadOnly } else { Access::ReadWrite };
    let Some((file, stat)) = open_regular(name.dir(), name.file(), access)? else {
        return Err(Error::new(ErrorKind::NotFound, "nothing has this name"));
    };
    let (page, size) = read_page(file.as_fd())?;
    let kind = match validate(&page, size) {
        Ok(valid) => Ok(valid),
        // A creator that was killed before it had written the header.
        Err(_) if is_dot_name(name.file()) && (page.starts_with(&[0; 8]) || page.starts_with(&MAGIC)) => Err(()),
        Err(_) if !page.starts_with(&MAGIC) => return Ok(Outcome::NotRamway),
        Err(e) => return Ok(Outcome::Kept(e.to_string())),
    };
    let judge = || -> Result<Option<Outcome>> {
        match &kind {
            Ok(valid) if !valid.header.is_of_another_boot() && !options.undelivered && !is_dot_name(name.file()) => {
                Ok(undelivered::reason_to_keep(file.as_fd(), valid)?.map(|reason| Outcome::Kept(reason.text)))
            }
            _ => Ok(None),
        }
    };
    if options.dry_run {
        if lock::held_by_another(file.as_fd(), BYTE_IN_USE)?.is_some() {
            return in_use();
        }
        return Ok(judge()?.unwrap_or(Outcome::Removed));
    }
    let Some(entry) = lock_description(name, &stat, Access::ReadWrite)? else { return Err(gone()) };
    if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Exclusive)? {
        return in_use();
    }
    if !leads_to(name.dir(), name.file(), FileId::of(&stat)) {
        return Err(gone());
    }
    if let Some(kept) = judge()? {
        return Ok(kept);
    }
    let kind = kind.map_or(Kind::Ring, |valid| valid.header.kind);
    remove(name, kind).map_err(|e| Error::os(e.raw_os_error(), "removing the name"))?;
    Ok(Outcome::Removed)
}
