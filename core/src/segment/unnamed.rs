//! Rings without a name that a process hands to its children by descriptor: a named ring's bytes in a memfd, and the
//! same locks. Every handle makes a lock description of its own by opening `/proc/self/fd/N`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::{check_file_system, dup, os, read_page};
use super::format::{Spec, Valid, format, validate};
use super::named::{BYTE_IN_USE, Named, NamedLink};
use super::{HeaderMap, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{HEADER_SIZE, Kind};
use crate::sys::fork::Entry;
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::placement::{self, PlacementOptions};
use crate::sys::{fs, memfd};

/// How long others may hold byte 0 for a moment.
const RACE_TIMEOUT: Duration = Duration::from_secs(1);

/// New memory with an empty ring. No role is taken.
pub(crate) fn create(spec: &Spec, placement: &PlacementOptions) -> Result<OwnedFd> {
    let memory = memfd::unsealed("ramway-ring")?;
    placement::allocate(memory.as_fd(), 0, HEADER_SIZE as u64, &PlacementOptions::default())?;
    for geometry in spec.blocks.iter().flatten() {
        placement::allocate(memory.as_fd(), geometry.data_offset, geometry.capacity, placement)?;
    }
    rustix::fs::ftruncate(&memory, spec.size).map_err(|e| os(e, "sizing the memfd"))?;
    fs::write_at(memory.as_fd(), 0, &format(spec).0[..]).map_err(|e| os(e, "writing the header page"))?;
    Ok(memory)
}

/// How a role of the ring behind a descriptor is taken.
pub(crate) struct Taking<'a> {
    /// Asked about the ring before it is locked.
    pub(crate) check: &'a dyn Fn(&Valid) -> Result<()>,
    pub(crate) role: Role,
    /// How long to wait for a role that is taken.
    pub(crate) timeout: Duration,
    /// Asked every 10 ms while it waits; `Interrupted` once it says no.
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

/// Attaches to the ring behind a descriptor, which stays the caller's.
pub(crate) fn attach(fd: BorrowedFd<'_>, taking: &Taking<'_>) -> Result<Named> {
    let start = Instant::now();
    let stat = fs::stat(fd).map_err(|e| os(e, "looking at the descriptor"))?;
    if !fs::is_regular(&stat) {
        let text = format!("this is {}, not the memory of a ring", fs::describe(&stat));
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    if stat.st_nlink != 0 {
        let text = "this descriptor leads to a file that has a name: open the ring by its name";
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    check_file_system(fd, false)?;
    let (page, size) = read_page(fd)?;
    let valid = validate(&page, size)?;
    if valid.header.kind != Kind::Ring {
        let text = format!("this is a {}, not a ring", valid.header.kind.name());
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    (taking.check)(&valid)?;
    let entry = Entry::open(|| {
        let reopened = fs::reopen(fd).map_err(|e| {
            os(e, &format!("opening /proc/self/fd/{} for the locks (is /proc mounted?)", fd.as_raw_fd()))
        })?;
        Ok(vec![reopened])
    })?;
    let mut link = NamedLink::unnamed(entry.clone());
    let mut pause = Duration::from_micros(100);
    loop {
        let (error, limit) = if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
            let text = "somebody holds byte 0 of the ring exclusively, over and over until the deadline";
            (Error::new(ErrorKind::TimedOut, text), taking.timeout.max(RACE_TIMEOUT))
        } else {
            match link.take_role(taking.role.lock_byte(), Kind::Ring) {
                Err(e) if e.kind() == ErrorKind::Busy => (e, taking.timeout),
                done => {
                    done?;
                    break;
                }
            }
        };
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        std::thread::sleep(pause.min(left));
        if !(taking.go_on)() {
            return Err(ErrorKind::Interrupted.into());
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    let file = dup(fd)?;
    let header = Arc::new(HeaderMap::map(file.as_fd(), Access::ReadWrite)?);
    Ok(Named { file, header, valid, link, entry })
}
