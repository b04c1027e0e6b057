//! Named segments: one kernel lock does four jobs.
//!
//! Each handle keeps one more open file description, used for nothing but locks (a mapping or a sent descriptor would
//! keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer (of a listener: I
//! listen). Byte 2 exclusive: I am the consumer. The kernel takes them away however a process ends.
//!
//! Whoever holds byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: the last
//! one out, a creator over a dead segment, and `clean`. Whoever meets that lock starts over.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::birth::{Unborn, create_once, unlink};
use super::file::{FileId, check_file_system, dup, leads_to, open_regular, os, read_page};
use super::format::{Spec, Valid, validate};
use super::name::Name;
use super::{HeaderMap, undelivered};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Kind;
use crate::sys::fork::Entry;
use crate::sys::fs;
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::placement::PlacementOptions;

/// Locked shared by everybody who uses the segment.
pub(crate) const BYTE_IN_USE: u64 = 0;
/// Locked exclusively by the producer.
pub(crate) const BYTE_PRODUCER: u64 = 1;
/// Locked exclusively by the consumer.
pub(crate) const BYTE_CONSUMER: u64 = 2;
/// Locked exclusively by the listening process.
pub(crate) const BYTE_LISTENER: u64 = 1;

/// Races with others (a segment that is just going away) are retried for at least this long.
const RACE_TIMEOUT: Duration = Duration::from_secs(1);

/// What may happen to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Create,
    Open,
    OpenOrCreate,
}

/// The permissions of a new file if nobody says otherwise.
pub(crate) const DEFAULT_MODE: u32 = 0o600;

/// Refuses what an intent would pass over in silence.
pub(crate) fn refuse_idle(intent: Option<Intent>, discard: bool, persistent: bool, mode: u32) -> Result<()> {
    let creates = matches!(intent, Some(Intent::Create | Intent::OpenOrCreate));
    let text = if discard && intent != Some(Intent::Create) {
        "discard applies to create only; open and open_or_create take what is there"
    } else if persistent && !creates {
        "persistent applies to what is made with a name; say it with create or open_or_create"
    } else if mode != DEFAULT_MODE && !creates {
        "mode applies to what is made with a name; say it with create or open_or_create"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

/// Everything that [`named`] needs to know.
pub(crate) struct NamedOptions<'a> {
    pub(crate) intent: Intent,
    /// What an existing segment must be.
    pub(crate) kind: Kind,
    /// What to make; not looked at by `Open`.
    pub(crate) spec: Option<Spec>,
    /// Asked about an existing segment before it is locked: an error keeps it untouched.
    pub(crate) check: &'a dyn Fn(&Valid) -> Result<()>,
    /// The byte of the role to take, if any.
    pub(crate) role_byte: Option<u64>,
    /// Read-only handles cannot take a role and cannot create.
    pub(crate) access: Access,
    /// `Create` only: undelivered messages and persistence of a dead segment are no obstacle.
    pub(crate) discard: bool,
    /// Permissions of a new file.
    pub(crate) mode: u32,
    /// How long `Open` waits for a name that is not there.
    pub(crate) timeout: Duration,
    /// Asked every 10 ms while it waits; `Interrupted` once it says no.
    pub(crate) go_on: &'a dyn Fn() -> bool,
    /// Whether a disk file will do.
    pub(crate) allow_disk: bool,
    pub(crate) placement: PlacementOptions,
}

/// A named segment that this process uses.
pub(crate) struct Named {
    /// For mapping the data; may be dropped after.
    pub(crate) file: OwnedFd,
    pub(crate) header: Arc<HeaderMap>,
    pub(crate) valid: Valid,
    pub(crate) link: NamedLink,
    pub(crate) entry: Entry,
}

/// A segment that this process uses, before it has taken a role. Whoever waits for a role keeps byte 0 locked: letting
/// go of it between two attempts would make the one who waits the last one out, were the holder killed right then.
pub(super) struct Opened {
    file: OwnedFd,
    valid: Valid,
    link: NamedLink,
    entry: Entry,
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

/// Creates or opens a named segment and locks it. Blocks only as [`NamedOptions::timeout`] says, and up to a second
/// against others who are just creating or removing the same name.
pub(crate) fn named(text: &OsStr, options: &NamedOptions<'_>) -> Result<Named> {
    let start = Instant::now();
    let race_timeout = options.timeout.max(RACE_TIMEOUT);
    let mut pause = Duration::from_micros(100);
    let mut unborn = None;
    let mut opened = None;
    loop {
        let step = match Name::resolve(text, options.intent != Intent::Open) {
            Ok(name) => attempt(&name, options, &mut unborn, opened.take()).map_err(|e| {
                e.context(format_args!("{} {} '{}'", verb(options.intent), options.kind.name(), shown(&name)))
            })?,
            Err(e) if e.kind() == ErrorKind::NotFound && options.intent == Intent::Open => Step::Absent(e),
            Err(e) => return Err(e),
        };
        let (error, limit) = match step {
            Step::Done(named) => return Ok(*named),
            Step::Absent(error) => (error, options.timeout),
            Step::Taken(error, locked) => {
                opened = Some(locked);
                (error, options.timeout)
            }
            Step::Retry(error) => (error, race_timeout),
        };
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        std::thread::sleep(pause.min(left));
        if !(options.go_on)() {
            let given_up = Error::from(ErrorKind::Interrupted);
            return Err(given_up.context(format_args!(
                "{} {} '{}'",
                verb(options.intent),
                options.kind.name(),
                text.display()
            )));
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn verb(intent: Intent) -> &'static str {
    match intent {
        Intent::Create => "creating the",
        Intent::Open => "opening the",
        Intent::OpenOrCreate => "opening or creating the",
    }
}

fn shown(name: &Name) -> String {
    name.path().display().to_string()
}

fn attempt(
    name: &Name,
    options: &NamedOptions<'_>,
    unborn: &mut Option<Box<Unborn>>,
    opened: Option<Box<Opened>>,
) -> Result<Step> {
    if let Some(opened) = opened {
        if opened.link.name.as_ref().is_some_and(|(_, id)| leads_to(name.dir(), name.file(), *id)) {
            return finish(opened, name, options);
        }
        return Ok(retry("the name changed hands while its role was waited for"));
    }
    match options.intent {
        Intent::Open => open_once(name, options),
        Intent::Create => create_once(name, options, unborn),
        Intent::OpenOrCreate => match open_once(name, options)? {
            Step::Absent(_) => match create_once(name, options, unborn) {
                // Somebody was faster: what they made is to be opened.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(Step::Retry(e)),
                result => result,
            },
            step => Ok(step),
        },
    }
}

pub(super) fn retry(why: &str) -> Step {
    Step::Retry(Error::new(ErrorKind::TimedOut, format!("{why}, over and over until the deadline")))
}

fn open_once(name: &Name, options: &NamedOptions<'_>) -> Result<Step> {
    let Some((file, stat)) = open_regular(name.dir(), name.file(), options.access)? else {
        return Ok(Step::Absent(Error::new(
            ErrorKind::NotFound,
            format!("no segment has the name '{}': create it first, or check RAMWAY_DIR", shown(name)),
        )));
    };
    check_file_system(file.as_fd(), options.allow_disk)?;
    // The header is written before the name exists and never after, so it can be judged without a lock.
    let (page, size) = read_page(file.as_fd())?;
    let valid = validate(&page, size)?;
    if valid.header.kind != options.kind {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("this is a {}, not a {}", valid.header.kind.name(), options.kind.name()),
        ));
    }
    if valid.header.is_of_another_boot() {
        return Ok(Step::Absent(Error::new(
            ErrorKind::NotFound,
            format!("the segment '{}' is stale: it was left by another boot; create starts anew", shown(name)),
        )));
    }
    (options.check)(&valid)?;
    let Some(entry) = lock_description(name, &stat, options.access)? else {
        return Ok(retry("the name changed hands while it was opened"));
    };
    if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
        return Ok(retry("somebody was removing the segment"));
    }
    let link = NamedLink::new(entry.clone(), name, &stat);
    if !leads_to(name.dir(), name.file(), FileId::of(&stat)) {
        return Ok(retry("the name changed hands while it was opened"));
    }
    finish(Box::new(Opened { file, valid, link, entry }), name, options)
}

/// Takes the role, if one is asked for, and maps the header.
fn finish(mut opened: Box<Opened>, name: &Name, options: &NamedOptions<'_>) -> Result<Step> {
    if let Some(byte) = options.role_byte {
        match opened.link.take_role(byte, options.kind) {
            // Perhaps the kernel has not let go yet of a predecessor that was killed.
            Err(e) if e.kind() == ErrorKind::Busy => {
                let tried =
                    format_args!("{} {} '{}'", verb(options.intent), options.kind.name(), shown(name)).to_string();
                return Ok(Step::Taken(e.context(tried), opened));
            }
            done => done?,
        }
    }
    let Opened { file, valid, link, entry } = *opened;
    let header = Arc::new(HeaderMap::map(file.as_fd(), options.access)?);
    Ok(Step::Done(Box::new(Named { file, header, valid, link, entry })))
}

/// Opens the description that holds the locks, and the directory for the last one out. `None`: the name no longer
/// leads to the file. It is opened for writing where that is permitted, because only then can a read-only handle be
/// the last one out.
pub(crate) fn lock_description(name: &Name, stat: &Stat, access: Access) -> Result<Option<Entry>> {
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
            Err(e) => return Err(os(e, "opening the file a second time")),
        };
        same = fs::stat(&lock).is_ok_and(|now| FileId::of(&now) == FileId::of(stat));
        Ok(vec![lock, dup(name.dir())?])
    })?;
    Ok(same.then_some(entry))
}

/// The locks of one handle. Dropped last of all the handle has: releases the role, and if nobody else is there, the
/// name.
#[derive(Debug)]
pub(crate) struct NamedLink {
    /// Descriptor 0 holds the locks, 1 is the directory, if there is a name.
    entry: Entry,
    /// `None` of a segment that never had a name: nobody removes it, the kernel takes it with its last descriptor.
    name: Option<(OsString, FileId)>,
    role_byte: Option<u64>,
}

impl NamedLink {
    pub(super) fn new(entry: Entry, name: &Name, stat: &Stat) -> Self {
        Self { entry, name: Some((name.file().into(), FileId::of(stat))), role_byte: None }
    }

    /// Of a segment without a name.
    pub(super) fn unnamed(entry: Entry) -> Self {
        Self { entry, name: None, role_byte: None }
    }

    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    pub(super) fn take_role(&mut self, byte: u64, kind: Kind) -> Result<()> {
        if lock::try_lock(self.entry.fd(0), byte, Mode::Exclusive)? {
            self.role_byte = Some(byte);
            return Ok(());
        }
        let role = match (kind, byte) {
            (Kind::Listener, _) => "somebody is listening here already".into(),
            (_, BYTE_PRODUCER) => "the ring has a sender already".into(),
            (_, BYTE_CONSUMER) => "the ring has a receiver already".into(),
            _ => format!("lock byte {byte} is taken"),
        };
        Err(Error::new(ErrorKind::Busy, role))
    }

    /// Descriptor 0 holds the locks.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Whether another description, of this process or another, holds the byte. Says yes when it cannot know.
    pub(crate) fn role_held_by_another(&self, byte: u64) -> bool {
        held_by_another(&self.entry, byte)
    }

    /// Whether the file has no name any more.
    pub(crate) fn name_vanished(&self) -> bool {
        self.name.is_some() && has_no_name(&self.entry)
    }

    /// Only while alone (byte 0 held exclusively): removes the name if nothing needs it any more.
    fn remove_if_done(&self, file: &OsStr, id: FileId) -> Result<()> {
        let lock = self.entry.fd(0);
        let dir = self.entry.fd(1);
        if !leads_to(dir, file, id) {
            return Ok(());
        }
        let (page, size) = read_page(lock)?;
        let valid = validate(&page, size)?;
        if undelivered::must_stay(&page, &valid) {
            return Ok(());
        }
        unlink(dir, file).map_err(|e| os(e, "removing the segment"))
    }
}

/// [`NamedLink::role_held_by_another`], for those who have only the descriptors.
pub(crate) fn held_by_another(entry: &Entry, byte: u64) -> bool {
    entry.is_detached() || lock::held_by_another(entry.fd(0), byte).map_or(true, |held| held.is_some())
}

/// [`NamedLink::name_vanished`], for those who have only the descriptors.
pub(crate) fn has_no_name(entry: &Entry) -> bool {
    !entry.is_detached() && fs::stat(entry.fd(0)).is_ok_and(|stat| stat.st_nlink == 0)
}

impl Drop for NamedLink {
    fn drop(&mut self) {
        // A fork's child holds nothing: its descriptors were closed when it came into being.
        if self.entry.is_detached() {
            return;
        }
        let lock = self.entry.fd(0);
        if let Some(byte) = self.role_byte {
            lock::unlock(lock, byte);
        }
        // Released first and then tried: if two that leave at once both tried to turn their shared lock into an
        // exclusive one, both would fail and the name would stay.
        lock::unlock(lock, BYTE_IN_USE);
        let Some((file, id)) = &self.name else { return };
        if matches!(lock::try_lock(lock, BYTE_IN_USE, Mode::Exclusive), Ok(true)) {
            // A segment that cannot be judged or removed stays for `clean`.
            let _ = self.remove_if_done(file, *id);
            lock::unlock(lock, BYTE_IN_USE);
        }
    }
}
