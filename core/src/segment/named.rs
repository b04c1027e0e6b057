//! Named segments: one kernel lock does four jobs.
//!
//! Each handle keeps one more open file description, used for nothing but locks (a mapping or a sent descriptor would
//! keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer (of a listener: I
//! listen; of a topic: I publish). Byte 2 exclusive: I am the consumer. A topic's subscribers lock other bytes, when they
//! join ([`slots`]). The kernel takes all of them away however a process ends.
//!
//! Byte 0 is held exclusively, for a moment, by a process that decides whether the name may go ([`stale`](super::stale)).
//! Another process that meets that lock starts over.

mod slots;

pub use slots::SlotLocks;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::HeaderMap;
use super::attempts::Attempts;
use super::file::{Found, check_file_system};
use super::format::{Spec, Valid, validate};
use super::name::Name;
use super::options::{Intent, SegmentOptions};
use super::staged::Staged;
use super::stale::{Claim, Unused};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::{BYTE_IN_USE, BYTE_PRODUCER, RACE_PAUSE_MIN, RACE_TIMEOUT};
use crate::layout::Kind;
use crate::sys::fork::Entry;
use crate::sys::fs::{self, FileId};
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;

/// Everything that [`named`] needs to know.
pub(crate) struct Request<'a> {
    pub(crate) intent: Intent,
    /// What an existing segment must be.
    pub(crate) kind: Kind,
    /// What to make; `Open` does not use it.
    pub(crate) spec: Option<Spec>,
    /// Asked about an existing segment before it is locked: an error keeps it untouched.
    pub(crate) check: &'a dyn Fn(&Valid) -> Result<()>,
    /// The byte of the role to take, if any: a topic's subscriber takes none.
    pub(crate) role_byte: Option<u64>,
    /// Read-only handles cannot take a role and cannot create.
    pub(crate) access: Access,
    pub(crate) options: &'a SegmentOptions,
    /// Asked every 10 ms while it waits; `Interrupted` once it says no.
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

impl Request<'_> {
    /// What is tried, for errors.
    fn doing(&self, name: impl Display) -> String {
        let verb = match self.intent {
            Intent::Create => "creating",
            Intent::Open => "opening",
            Intent::OpenOrCreate => "opening or creating",
        };
        format!("{verb} the {} '{name}'", self.kind.name())
    }

    /// A topic's header page is its publisher's alone: nobody else maps it for writing.
    pub(super) fn header_access(&self) -> Access {
        if self.kind == Kind::Topic && self.role_byte.is_none() { Access::ReadOnly } else { self.access }
    }
}

/// A named segment that this process uses.
pub(crate) struct Named {
    /// For mapping the data; may be dropped after.
    pub(crate) file: OwnedFd,
    pub(crate) header: Arc<HeaderMap>,
    pub(crate) valid: Valid,
    pub(crate) link: NamedLink,
}

/// A segment that this process uses, before it has taken a role. Byte 0 stays locked while a role is waited for: were it
/// released between two attempts, and the role's holder killed right then, the waiting process would be the last user and
/// remove the name.
pub(super) struct Opened {
    pub(super) file: OwnedFd,
    pub(super) valid: Valid,
    pub(super) link: NamedLink,
}

impl Opened {
    /// Maps the header.
    pub(super) fn map(self, access: Access) -> Result<Named> {
        let header = Arc::new(HeaderMap::map(self.file.as_fd(), access)?);
        Ok(Named { file: self.file, header, valid: self.valid, link: self.link })
    }
}

/// What one attempt came to.
pub(super) enum Step {
    Done(Box<Named>),
    /// Nothing to open; what to say when nobody makes it in time.
    Absent(Error),
    /// Somebody has the role; what to say when they keep it, and what stays locked until then.
    Taken(Error, Box<Opened>),
    /// Somebody else was in the middle of something; what to say when that never ends.
    Retry(Error),
}

/// Creates or opens a named segment and locks it. Blocks only as [`SegmentOptions::timeout`] says, and up to a second
/// against others who are just creating or removing the same name.
pub(crate) fn named(text: &OsStr, request: &Request<'_>) -> Result<Named> {
    let timeout = request.options.timeout;
    let mut attempts = Attempts::new(RACE_PAUSE_MIN);
    let mut staged = None;
    let mut opened = None;
    loop {
        let step = match Name::resolve(text, request.intent != Intent::Open) {
            Ok(name) => attempt(&name, request, &mut staged, opened.take())
                .map_err(|e| e.context(request.doing(name.path().display())))?,
            Err(e) if e.kind() == ErrorKind::NotFound && request.intent == Intent::Open => Step::Absent(e),
            Err(e) => return Err(e),
        };
        let doing = || request.doing(text.display());
        let (error, limit) = match step {
            Step::Done(named) => return Ok(*named),
            Step::Absent(error) => (error, timeout),
            Step::Taken(error, locked) => {
                opened = Some(locked);
                (error.context(doing()), timeout)
            }
            Step::Retry(error) if attempts.are_few() => (error.context(doing()), std::time::Duration::MAX),
            Step::Retry(error) => (error.context(doing()), timeout.max(RACE_TIMEOUT)),
        };
        attempts.again(limit, error, &mut || (request.go_on)()).map_err(|e| match e.kind() {
            ErrorKind::Interrupted => e.context(doing()),
            _ => e,
        })?;
    }
}

fn attempt(
    name: &Name,
    request: &Request<'_>,
    staged: &mut Option<Box<Staged>>,
    opened: Option<Box<Opened>>,
) -> Result<Step> {
    if let Some(opened) = opened {
        if opened.link.name.as_ref().is_some_and(|(_, id)| name.leads_to(*id)) {
            return finish(opened, request);
        }
        return Ok(moved());
    }
    match request.intent {
        Intent::Open => open_once(name, request),
        Intent::Create => Staged::create_once(name, request, staged),
        Intent::OpenOrCreate => match open_once(name, request)? {
            Step::Absent(_) => match Staged::create_once(name, request, staged) {
                // Another process was faster: what it made is to be opened.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(Step::Retry(e)),
                result => result,
            },
            step => Ok(step),
        },
    }
}

pub(super) fn retry(why: &str) -> Step {
    let text = format!("{why}, at each attempt until the deadline; try again, or pick another name");
    Step::Retry(Error::new(ErrorKind::TimedOut, text))
}

/// The name does not lead to the file any more that it led to before.
pub(super) fn moved() -> Step {
    retry("the name was removed, or given to another file, while it was opened")
}

/// Another process is alone with the segment and decides whether its name may go.
pub(super) fn contended() -> Step {
    retry("another process was removing the segment")
}

fn open_once(name: &Name, request: &Request<'_>) -> Result<Step> {
    let absent = |text| Ok(Step::Absent(Error::new(ErrorKind::NotFound, text)));
    let shown = name.path().display();
    let Some(found) = Found::at(name, request.access)? else {
        return absent(format!("no segment has the name '{shown}': create it first, or check RAMWAY_DIR"));
    };
    check_file_system(found.file.as_fd(), request.options.allow_disk)?;
    // The header is written before the name exists and never after, so it can be judged without a lock.
    let (page, size) = found.read_page()?;
    let valid = validate(&page, size)?;
    valid.expect_kind(request.kind)?;
    if valid.header.is_of_another_boot() {
        return absent(format!("the segment '{shown}' is stale: it was left by another boot; create starts anew"));
    }
    (request.check)(&valid)?;
    let Some(entry) = found.lock_description(name, request.access)? else { return Ok(moved()) };
    if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
        return Ok(contended());
    }
    let link = NamedLink::new(entry, name, found.id());
    if !name.leads_to(found.id()) {
        return Ok(moved());
    }
    finish(Box::new(Opened { file: found.file, valid, link }), request)
}

/// Takes the role, if one is asked for, and maps the header.
fn finish(mut opened: Box<Opened>, request: &Request<'_>) -> Result<Step> {
    if let Some(byte) = request.role_byte {
        match opened.link.take_role(byte, request.kind) {
            // Perhaps the kernel has not released yet what a predecessor held that was killed.
            Err(e) if e.kind() == ErrorKind::Busy => return Ok(Step::Taken(e, opened)),
            done => done?,
        }
    }
    Ok(Step::Done(Box::new(opened.map(request.header_access())?)))
}

/// The locks of one handle. Dropped last of all the handle has: releases the role, and if nobody else is there, the
/// name.
#[derive(Debug)]
pub struct NamedLink {
    /// Descriptor 0 holds the locks, 1 is the directory, if there is a name.
    entry: Entry,
    /// `None` of a segment that never had a name: nobody removes it, the kernel takes it with its last descriptor.
    name: Option<(OsString, FileId)>,
    role_byte: Option<u64>,
    /// The slot of a topic whose byte this handle holds.
    slot: Option<u32>,
}

impl NamedLink {
    pub(super) fn new(entry: Entry, name: &Name, id: FileId) -> Self {
        Self { entry, name: Some((name.file().into(), id)), role_byte: None, slot: None }
    }

    /// Of a segment without a name.
    pub(super) fn unnamed(entry: Entry) -> Self {
        Self { entry, name: None, role_byte: None, slot: None }
    }

    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    pub(super) fn take_role(&mut self, byte: u64, kind: Kind) -> Result<()> {
        if lock::try_lock(self.entry.fd(0), byte, Mode::Exclusive)? {
            self.role_byte = Some(byte);
            return Ok(());
        }
        let text = match (kind, byte) {
            (Kind::Listener, _) => "another process is listening here already: stop it, or pick another name",
            (Kind::Topic, _) => "the topic has a publisher already: close it, or wait for the role (timeout)",
            (_, BYTE_PRODUCER) => "the ring has a sender already: close it, or wait for the role (timeout)",
            _ => "the ring has a receiver already: close it, or wait for the role (timeout)",
        };
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// Descriptor 0 holds the locks.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Whether another description, of this process or another, holds the byte exclusively. Says yes when it cannot know.
    pub(crate) fn role_held_by_another(&self, byte: u64) -> bool {
        held_by_another(&self.entry, byte)
    }

    /// Whether the file has no name any more.
    pub(crate) fn name_vanished(&self) -> bool {
        self.name.is_some() && has_no_name(&self.entry)
    }
}

/// [`NamedLink::role_held_by_another`], for those who have only the descriptors. A shared lock is no sign of life: whoever
/// may read the file can take one.
pub(crate) fn held_by_another(entry: &Entry, byte: u64) -> bool {
    entry.is_detached() || lock::exclusively_held_by_another(entry.fd(0), byte).unwrap_or(true)
}

/// [`NamedLink::name_vanished`], for those who have only the descriptors.
pub(crate) fn has_no_name(entry: &Entry) -> bool {
    !entry.is_detached() && fs::stat(entry.fd(0)).is_ok_and(|stat| stat.st_nlink == 0)
}

impl Drop for NamedLink {
    fn drop(&mut self) {
        // A fork's child holds nothing: its descriptors were closed when it began.
        if self.entry.is_detached() {
            return;
        }
        let lock = self.entry.fd(0);
        for byte in [self.role_byte, self.slot.map(slots::byte)].into_iter().flatten() {
            lock::unlock(lock, byte);
        }
        // Released first and then tried: if two that leave at once both tried to turn their shared lock into an
        // exclusive one, both would fail and the name would stay.
        lock::unlock(lock, BYTE_IN_USE);
        let Some((file, id)) = &self.name else { return };
        // A segment that cannot be judged or removed stays for `clean`.
        if let Ok(Claim::Unused(unused)) = Unused::claim_with(&self.entry, file, *id)
            && let Ok(None) = unused.reason_to_keep()
        {
            let _ = unused.remove();
        }
    }
}
