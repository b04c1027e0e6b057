//! Rings without a name that a process hands to its children by descriptor: a named ring's bytes in a memfd, and the
//! same locks. Every handle makes a lock description of its own by opening `/proc/self/fd/N`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::Role;
use super::attempts::Attempts;
use super::file::{check_file_system, dup, read_page};
use super::format::{Spec, Valid, validate};
use super::named::{Named, NamedLink, Opened};
use super::staged::fill;
use crate::error::{Error, ErrorKind, Result};
use crate::facts::{BYTE_IN_USE, RACE_PAUSE_MIN, RACE_TIMEOUT};
use crate::layout::Kind;
use crate::sys::fork::Entry;
use crate::sys::lock::{self, Mode};
use crate::sys::mem::Access;
use crate::sys::placement::PlacementOptions;
use crate::sys::{fs, memfd, os};

/// New memory with an empty ring. No role is taken.
pub(crate) fn create(spec: &Spec, placement: &PlacementOptions) -> Result<OwnedFd> {
    let memory = memfd::unsealed("ramway-ring")?;
    fill(memory.as_fd(), spec, placement)?;
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
    let invalid = |text: String| Err(Error::new(ErrorKind::InvalidArgument, text));
    let stat = fs::stat(fd).map_err(os("checking the descriptor (fstat)"))?;
    if !fs::is_regular(&stat) {
        return invalid(format!("this is {}, not the memory of a ring", fs::describe(&stat)));
    }
    if stat.st_nlink != 0 {
        return invalid("this descriptor leads to a file that has a name: open the ring by its name".into());
    }
    check_file_system(fd, false)?;
    let (page, size) = read_page(fd)?;
    let valid = validate(&page, size)?;
    valid.expect_kind(Kind::Ring)?;
    (taking.check)(&valid)?;
    let entry = Entry::open(|| {
        let reopened = fs::reopen(fd)
            .map_err(os(format_args!("opening /proc/self/fd/{} for the locks (is /proc mounted?)", fd.as_raw_fd())))?;
        Ok(vec![reopened])
    })?;
    let mut link = NamedLink::unnamed(entry.clone());
    let mut attempts = Attempts::new(RACE_PAUSE_MIN);
    loop {
        let (error, limit) = if !lock::try_lock(entry.fd(0), BYTE_IN_USE, Mode::Shared)? {
            let text = "another process holds byte 0 of the ring exclusively, at each attempt until the deadline";
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
        attempts.again(limit, error, &mut || (taking.go_on)())?;
    }
    Opened { file: dup(fd)?, valid, link }.map(Access::ReadWrite)
}
