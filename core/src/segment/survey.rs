//! Looking at segments from outside: what `ramway ls`, `inspect` and `clean` are made of.
//!
//! [`ls`] and [`inspect`] read files and query locks. They map nothing, take no lock and write nothing, so they
//! disturb nobody; in return, what they say of a segment in use is a snapshot that may be old by the time it is read.
//! [`clean`] and [`unlink`] remove names, under the same lock as the last user of a segment would.

mod cleaner;
mod topic;

pub use super::undelivered::Undelivered;
pub use super::words::Role;
pub use cleaner::{CleanOptions, Outcome, clean, clean_one, unlink};
pub use topic::{Newest, Subscriber, Topic};

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::file::{Found, read_page};
use super::format::{HeaderPage, RingGeometry, Valid, validate_knowing};
use super::name::{self, Name};
use super::undelivered::{self, Frames};
use super::words::{RingWords, region_notify_word};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::{BYTE_CONSUMER, BYTE_IN_USE, BYTE_PRODUCER, BYTE_PUBLISHER, RPC_FEATURES};
use crate::layout::Kind;
use crate::sys::fs::{self, FileId};
use crate::sys::mem::Access;
use crate::sys::{lock, os};

/// A named segment at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// Where it is.
    pub path: PathBuf,
    /// The file's device and inode, as `/proc/locks` and `/proc/PID/fdinfo` name it.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// The file's owner.
    pub uid: u32,
    /// The file's permission bits.
    pub mode: u32,
    /// What it holds.
    pub kind: Kind,
    /// The format's version that its creator wrote.
    pub version: (u16, u16),
    /// The last user leaves the name in place.
    pub persistent: bool,
    /// Feature bits that a reader may ignore.
    pub features_optional: u32,
    /// The whole file in bytes.
    pub size: u64,
    /// When it was made, nanoseconds since 1970.
    pub created_ns: u64,
    /// The boot that it was made in.
    pub boot_id: [u8; 16],
    /// Another boot made it: nobody can resume it.
    pub of_another_boot: bool,
    /// Somebody uses it.
    pub in_use: bool,
    /// Somebody is its producer; of a listener: somebody listens; of a topic: somebody publishes.
    pub producer_held: bool,
    /// Somebody is its consumer. A topic has [`Topic::subscribers`].
    pub consumer_held: bool,
    /// By block; a ring has the first one.
    pub rings: [Option<Ring>; 2],
    /// If it is a region.
    pub region: Option<Region>,
    /// If it is a topic.
    pub topic: Option<Topic>,
}

impl Segment {
    /// Left behind by processes that died, or by another boot.
    pub fn is_stale(&self) -> bool {
        !self.in_use
    }
}

/// A ring in a [`Segment`]. All numbers are as the file holds them, unchecked except for the geometry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ring {
    /// Where the data begins, in bytes from the start of the file.
    pub data_offset: u64,
    /// Bytes of data.
    pub capacity: u64,
    /// Alignment of payloads in bytes.
    pub align: u32,
    /// The producer's position.
    pub tail: u64,
    /// The consumer's position.
    pub head: u64,
    /// `(end, tag)` of the last marked frames.
    pub last_tags: [(u64, u64); 2],
    /// The producer's words.
    pub producer: Role,
    /// The consumer's words.
    pub consumer: Role,
    /// An orderly close that no receiver has seen.
    pub unseen_close: bool,
    /// What is not released yet; `None` if the ring moved too fast to count, or is damaged.
    pub undelivered: Option<Undelivered>,
    /// Whether the positions or a frame's length contradict each other, in words. Only of a segment that nobody uses:
    /// of a moving one it could be a snapshot's fault.
    pub damage: Option<String>,
}

/// A region in a [`Segment`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Region {
    /// Where the data begins, in bytes from the start of the file.
    pub data_offset: u64,
    /// `len` rounded up to a page.
    pub capacity: u64,
    /// Bytes as they were asked for.
    pub len: u64,
    /// How often it was notified (modulo 2^31).
    pub notifications: u32,
    /// Somebody waits for a notification.
    pub has_waiter: bool,
}

/// A file in the Ramway directory.
#[derive(Debug)]
pub struct Listed {
    /// Its name there.
    pub name: OsString,
    /// What it is, or why that cannot be said: `AbiMismatch` for what is not Ramway's or of another version, `Corrupt`,
    /// `PermissionDenied`.
    pub segment: Result<Segment>,
}

/// The directory that names stand in: `RAMWAY_DIR`, else `/dev/shm/ramway-<euid>`. It need not exist.
pub fn directory() -> PathBuf {
    name::directory()
}

/// Everything in a directory that could be a segment: regular files whose names do not begin with a dot, sorted. A
/// directory that does not exist is empty.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// for found in ramway::survey::ls(&ramway::survey::directory())? {
///     match found.segment {
///         Ok(segment) => println!("{:?}: {} of {} bytes", found.name, segment.kind.name(), segment.size),
///         Err(error) => println!("{:?}: {error}", found.name),
///     }
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// If the directory cannot be read; what is wrong with one file is said in its entry.
pub fn ls(dir: &Path) -> Result<Vec<Listed>> {
    let mut found = Vec::new();
    for name in names(dir)? {
        if name.as_encoded_bytes().first() == Some(&b'.') {
            continue;
        }
        let segment = Name::in_directory(dir, &name).and_then(|name| inspect_name(&name));
        // Removed since it was listed, or never a file that could be one.
        if !matches!(&segment, Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument)) {
            found.push(Listed { name, segment });
        }
    }
    Ok(found)
}

/// One segment by name, or by path (with a `/` in it).
///
/// # Errors
/// `NotFound`, `InvalidArgument` if it is not a regular file, `AbiMismatch` if it is not Ramway's or of another
/// version, `Corrupt`, `PermissionDenied`.
pub fn inspect(name: impl AsRef<OsStr>) -> Result<Segment> {
    inspect_name(&Name::resolve(name.as_ref(), false)?)
}

fn names(dir: &Path) -> Result<Vec<OsString>> {
    let failed = |e: std::io::Error| {
        let errno = e.raw_os_error().unwrap_or(libc::EIO);
        Error::os(errno, format_args!("reading the directory {}", dir.display()))
    };
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name());
    }
    names.sort();
    Ok(names)
}

fn inspect_name(name: &Name) -> Result<Segment> {
    let doing = |e: Error| e.context(format_args!("inspecting '{}'", name.path().display()));
    let Some(found) = Found::at(name, Access::ReadOnly).map_err(doing)? else {
        return Err(Error::new(ErrorKind::NotFound, format!("no segment has the name '{}'", name.path().display())));
    };
    look_at(found.file.as_fd(), &found.stat, name.path()).map_err(doing)
}

/// An open segment: a bus's memory, which `/proc/PID/fd` shows of processes of the same user. Its locks say nothing
/// there, as a bus has none.
///
/// # Errors
/// `AbiMismatch` if it is not Ramway's or of another version, `Corrupt`.
pub fn inspect_fd(file: BorrowedFd<'_>) -> Result<Segment> {
    let stat = rustix::fs::fstat(file).map_err(os("checking an open segment (fstat)"))?;
    look_at(file, &stat, Path::new(""))
}

fn look_at(file: BorrowedFd<'_>, stat: &rustix::fs::Stat, path: &Path) -> Result<Segment> {
    let (page, size) = read_page(file)?;
    let Valid { header, rings, region, topic } = validate_knowing(RPC_FEATURES, &page, size)?;
    let FileId { device, inode } = FileId::of(stat);
    let held = |byte| lock::held_by_another(file, byte).map(|held| held.is_some());
    let in_use = held(BYTE_IN_USE)?;
    // A bus has no locks, so it may always be moving.
    let moves = in_use || header.kind == Kind::Bus;
    Ok(Segment {
        path: path.into(),
        device,
        inode,
        uid: stat.st_uid,
        mode: fs::mode(stat),
        kind: header.kind,
        version: header.version,
        persistent: header.is_persistent(),
        features_optional: header.features_optional,
        size,
        created_ns: header.created_ns,
        boot_id: header.boot_id,
        of_another_boot: header.is_of_another_boot(),
        in_use,
        // Only an exclusive lock is a publisher's.
        producer_held: if topic.is_some() {
            lock::exclusively_held_by_another(file, BYTE_PUBLISHER)?
        } else {
            held(BYTE_PRODUCER)?
        },
        consumer_held: topic.is_none() && held(BYTE_CONSUMER)?,
        rings: [
            rings[0].map(|ring| look_at_ring(file, page.clone(), 0, ring, moves)),
            rings[1].map(|ring| look_at_ring(file, page.clone(), 1, ring, moves)),
        ],
        region: region.map(|region| {
            let word = region_notify_word(&page);
            Region {
                data_offset: region.data_offset,
                capacity: region.capacity,
                len: region.len,
                notifications: word >> 1,
                has_waiter: word & 1 != 0,
            }
        }),
        topic: topic.map(|topic| topic::look_at(file, &topic, moves)).transpose()?,
    })
}

fn look_at_ring(file: BorrowedFd<'_>, page: HeaderPage, block: usize, ring: RingGeometry, moves: bool) -> Ring {
    let frames = Frames::from(&ring);
    let mut words = RingWords::read(&page, block);
    let mut counted = undelivered::count(file, &frames, words.tail, words.head);
    // Frames that were counted while their ring moved may have been overwritten: only a still ring counts.
    let mut still = !moves;
    for _ in 0..3 {
        if still {
            break;
        }
        let Ok((page, _)) = read_page(file) else { break };
        let now = RingWords::read(&page, block);
        still = now.head == words.head;
        if !still {
            words = now;
            counted = undelivered::count(file, &frames, words.tail, words.head);
        }
    }
    let (undelivered, damage) = match counted {
        Ok(found) if still => (Some(found), None),
        Err(e) if !moves => (None, Some(e.to_string())),
        _ => (None, None),
    };
    Ring {
        data_offset: ring.data_offset,
        capacity: ring.capacity,
        align: ring.align,
        tail: words.tail,
        head: words.head,
        last_tags: words.last_tags,
        producer: words.producer,
        consumer: words.consumer,
        unseen_close: words.has_unseen_close(),
        undelivered,
        damage,
    }
}
