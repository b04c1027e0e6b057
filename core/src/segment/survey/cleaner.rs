//! Removing what dead processes left.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;

use super::names;
use crate::error::{Error, ErrorKind, Result};
use crate::facts::BYTE_IN_USE;
use crate::layout::{Kind, MAGIC};
use crate::segment::file::Found;
use crate::segment::format::validate;
use crate::segment::name::{Name, is_staged};
use crate::segment::stale::{Claim, Unused};
use crate::segment::undelivered::{Reason, reason_to_keep};
use crate::sys::lock;
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
    /// Not Ramway's, so not checked any further.
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
        if name.as_encoded_bytes().first() == Some(&b'.') && !is_staged(&name) {
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
    let nothing = || Error::new(ErrorKind::NotFound, "no segment has this name (ramway ls lists them)");
    let Some(found) = Found::at(name, Access::ReadWrite)? else { return Err(nothing()) };
    let (page, size) = found.read_page()?;
    let kind = validate(&page, size)?.header.kind;
    match Unused::claim(name, &found)? {
        Claim::Unused(unused) => unused.remove_with_socket(name, kind),
        Claim::Moved => Err(nothing()),
        Claim::InUse | Claim::Contended => {
            let text =
                format!("the {} is in use: close it first in every process (ramway ls shows which)", kind.name());
            Err(Error::new(ErrorKind::Busy, text))
        }
    }
}

fn clean_name(name: &Name, options: &CleanOptions) -> Result<Outcome> {
    clean_once(name, options).map_err(|e| e.context(format_args!("cleaning '{}'", name.path().display())))
}

fn clean_once(name: &Name, options: &CleanOptions) -> Result<Outcome> {
    let in_use = || Ok(Outcome::Kept("in use".into()));
    let access = if options.dry_run { Access::ReadOnly } else { Access::ReadWrite };
    let Some(found) = Found::at(name, access)? else {
        return Err(Error::new(ErrorKind::NotFound, "nothing has this name"));
    };
    let (page, size) = found.read_page()?;
    let valid = match validate(&page, size) {
        Ok(valid) => Some(valid),
        // A creator that was killed before it had written the header.
        Err(_) if is_staged(name.file()) && (page.starts_with(&[0; 8]) || page.starts_with(&MAGIC)) => None,
        Err(_) if !page.starts_with(&MAGIC) => return Ok(Outcome::NotRamway),
        Err(e) => return Ok(Outcome::Kept(e.to_string())),
    };
    // Nobody has ever used what has not got its name yet.
    let may_be_wanted = valid.filter(|_| !options.undelivered && !is_staged(name.file()));
    let kept = |reason: Reason| Ok(Outcome::Kept(reason.describe(found.file.as_fd())?.0));
    if options.dry_run {
        if lock::held_by_another(found.file.as_fd(), BYTE_IN_USE)?.is_some() {
            return in_use();
        }
        let Some(valid) = may_be_wanted else { return Ok(Outcome::Removed) };
        return reason_to_keep(found.file.as_fd(), &page, &valid)?.map_or(Ok(Outcome::Removed), kept);
    }
    let unused = match Unused::claim(name, &found)? {
        Claim::Unused(unused) => unused,
        Claim::InUse | Claim::Contended => return in_use(),
        Claim::Moved => return Err(Error::new(ErrorKind::NotFound, "another process has removed it")),
    };
    if may_be_wanted.is_some()
        && let Some(reason) = unused.reason_to_keep()?
    {
        return kept(reason);
    }
    unused.remove_with_socket(name, valid.map_or(Kind::Ring, |valid| valid.header.kind))?;
    Ok(Outcome::Removed)
}
