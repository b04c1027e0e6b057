//! What is there: listed, removed by name, cleaned.

use crate::facts::{RAMWAY_KIND_LISTENER, RAMWAY_KIND_REGION, RAMWAY_KIND_RING, RAMWAY_KIND_TOPIC};
use crate::options::name;
use crate::status::{Outcome, guard, null, ramway_status};
use ramway_core::Error;
use ramway_core::layout::Kind;
use ramway_core::survey::{self, CleanOptions};
use std::ffi::{CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null as nothing;

/// A file of the Ramway directory, as `ramway_ls` shows it. All pointers are valid during the callback only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_segment {
    /// `sizeof(ramway_segment)` of the library: a newer one may know more fields, at the end.
    pub size_of_struct: usize,
    /// Its name in the directory.
    pub name: *const c_char,
    /// Its path.
    pub path: *const c_char,
    /// `RAMWAY_OK`, or why it cannot be read as a segment; then the rest is 0.
    pub status: ramway_status,
    /// The words for `status`; null if that is `RAMWAY_OK`.
    pub error: *const c_char,
    /// `RAMWAY_KIND_RING` and so on.
    pub kind: u32,
    /// Rings and topics: what payloads are aligned to.
    pub align: u32,
    /// The whole file in bytes.
    pub size: u64,
    /// Rings, regions and topics: bytes of data.
    pub capacity: u64,
    /// Rings: bytes that are not released, headers and padding included. Regions: bytes that were asked for.
    pub used: u64,
    /// Rings: messages that are not released, as far as they could be counted while the ring moved; else 0.
    pub undelivered: u64,
    /// Somebody uses it.
    pub in_use: bool,
    /// The name stays when the last user goes.
    pub persistent: bool,
    /// Nobody uses it: left by processes that died, or waiting for its next user.
    pub stale: bool,
    /// It has a sender; of a listener: somebody listens; of a topic: somebody publishes.
    pub producer_held: bool,
    /// It has a receiver. Of a topic always false.
    pub consumer_held: bool,
}

/// # Safety
/// `directory` is null, for the default, or a string.
unsafe fn directory_of(directory: *const c_char) -> Outcome<PathBuf> {
    if directory.is_null() {
        return Ok(survey::directory());
    }
    // SAFETY: the caller's.
    Ok(PathBuf::from(unsafe { name(directory) }?))
}

fn string(text: &OsStr) -> CString {
    CString::new(text.as_bytes()).unwrap_or_default()
}

fn words(error: &Error) -> CString {
    CString::new(error.to_string().replace('\0', "?")).unwrap_or_default()
}

/// Calls `each` for everything in `directory` (null: where names stand, `RAMWAY_DIR`) that could be a segment, sorted
/// by name, with `user` as it is. Takes no lock and disturbs nobody. A directory that does not exist is empty; what is
/// wrong with one file is said in its record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_ls(
    directory: *const c_char,
    each: Option<unsafe extern "C" fn(segment: *const ramway_segment, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let directory = unsafe { directory_of(directory) }?;
        let each = each.ok_or_else(|| null("each"))?;
        for found in survey::ls(&directory)? {
            let (name, path) = (string(&found.name), string(directory.join(&found.name).as_os_str()));
            let error = found.segment.as_ref().err().map(words);
            let mut record = ramway_segment {
                size_of_struct: size_of::<ramway_segment>(),
                name: name.as_ptr(),
                path: path.as_ptr(),
                status: ramway_status::RAMWAY_OK,
                error: error.as_ref().map_or(nothing(), |words| words.as_ptr()),
                kind: 0,
                align: 0,
                size: 0,
                capacity: 0,
                used: 0,
                undelivered: 0,
                in_use: false,
                persistent: false,
                stale: false,
                producer_held: false,
                consumer_held: false,
            };
            match &found.segment {
                Ok(segment) => describe(&mut record, segment),
                Err(error) => record.status = error.kind().into(),
            }
            // SAFETY: the caller's function; the record and its strings live until it returns.
            unsafe { each(&record, user) };
        }
        Ok(())
    })
}

fn describe(record: &mut ramway_segment, segment: &survey::Segment) {
    record.kind = match segment.kind {
        Kind::Region => RAMWAY_KIND_REGION,
        Kind::Ring => RAMWAY_KIND_RING,
        Kind::Listener => RAMWAY_KIND_LISTENER,
        Kind::Topic => RAMWAY_KIND_TOPIC,
        _ => 0,
    };
    record.size = segment.size;
    record.in_use = segment.in_use;
    record.persistent = segment.persistent;
    record.stale = segment.is_stale();
    record.producer_held = segment.producer_held;
    record.consumer_held = segment.consumer_held;
    if let Some(ring) = &segment.rings[0] {
        record.align = ring.align;
        record.capacity = ring.capacity;
        record.used = ring.tail.wrapping_sub(ring.head).min(ring.capacity);
        record.undelivered = ring.undelivered.map_or(0, |undelivered| undelivered.messages);
    }
    if let Some(region) = &segment.region {
        record.capacity = region.capacity;
        record.used = region.len;
    }
    if let Some(topic) = &segment.topic {
        record.align = topic.align;
        record.capacity = topic.capacity;
    }
}

/// Removes the segment `name` that nobody uses, whatever it holds: persistent or with undelivered messages too. A
/// listener's socket goes with it.
///
/// `RAMWAY_BUSY` if somebody uses it, `RAMWAY_NOT_FOUND`; `RAMWAY_ABI_MISMATCH`, `RAMWAY_CORRUPT` or
/// `RAMWAY_INVALID_ARGUMENT` for what is no segment of this version, which stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_unlink(name: *const c_char) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| Ok(survey::unlink(unsafe { self::name(name) }?)?))
}

/// `ramway_clean` also removes what nobody uses but somebody could want: undelivered messages, the unseen end of a
/// stream, persistent segments.
pub const RAMWAY_CLEAN_UNDELIVERED: u32 = 1;
/// `ramway_clean` only says what it would do.
pub const RAMWAY_CLEAN_DRY_RUN: u32 = 2;

/// What `ramway_clean` did with a file: removed it; with `RAMWAY_CLEAN_DRY_RUN` it would have.
pub const RAMWAY_CLEAN_REMOVED: u32 = 1;
/// What `ramway_clean` did with a file: left it, and says why.
pub const RAMWAY_CLEAN_KEPT: u32 = 2;
/// What `ramway_clean` did with a file: left it alone, as it is not Ramway's.
pub const RAMWAY_CLEAN_NOT_RAMWAY: u32 = 3;
/// What `ramway_clean` did with a file: failed, and says why.
pub const RAMWAY_CLEAN_FAILED: u32 = 4;

/// Removes the segments of `directory` (null: where names stand) that nobody uses and nobody could want, and calls
/// `each` (may be null) for each regular file with what became of it: `RAMWAY_CLEAN_REMOVED` and so on, and why (null if
/// there is nothing to say). `flags` is `RAMWAY_CLEAN_UNDELIVERED` and `RAMWAY_CLEAN_DRY_RUN`, or-ed together. Never
/// removes what somebody uses, nor what is not Ramway's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_clean(
    directory: *const c_char,
    flags: u32,
    each: Option<unsafe extern "C" fn(name: *const c_char, outcome: u32, why: *const c_char, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let directory = unsafe { directory_of(directory) }?;
        let known = RAMWAY_CLEAN_UNDELIVERED | RAMWAY_CLEAN_DRY_RUN;
        if flags & !known != 0 {
            let text = format!("flags of ramway_clean are {flags:#x}: only the bits {known:#x} have a meaning");
            return Err(crate::status::invalid(text));
        }
        let options = CleanOptions {
            dry_run: flags & RAMWAY_CLEAN_DRY_RUN != 0,
            undelivered: flags & RAMWAY_CLEAN_UNDELIVERED != 0,
        };
        for (name, outcome) in survey::clean(&directory, &options)? {
            let (outcome, why) = match outcome {
                Ok(survey::Outcome::Removed) => (RAMWAY_CLEAN_REMOVED, None),
                Ok(survey::Outcome::Kept(why)) => (RAMWAY_CLEAN_KEPT, Some(string(why.as_ref()))),
                Ok(survey::Outcome::NotRamway) => (RAMWAY_CLEAN_NOT_RAMWAY, None),
                Err(error) => (RAMWAY_CLEAN_FAILED, Some(words(&error))),
            };
            let name = string(&name);
            if let Some(each) = each {
                // SAFETY: the caller's function; the strings live until it returns.
                unsafe { each(name.as_ptr(), outcome, why.as_ref().map_or(nothing(), |why| why.as_ptr()), user) };
            }
        }
        Ok(())
    })
}
