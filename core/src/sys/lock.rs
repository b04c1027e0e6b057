//! Open-file-description locks on single bytes. They belong to the description, not to the process: they vanish when
//! its last descriptor closes, however that comes about, and two descriptions of one process conflict like strangers.

use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_short;

use super::last_errno;
use crate::error::{Error, Result};

// As wide as they are in `flock`, which the systems' constants are not.
const READ: c_short = libc::F_RDLCK as c_short;
const WRITE: c_short = libc::F_WRLCK as c_short;
const FREE: c_short = libc::F_UNLCK as c_short;

/// How a byte is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Any number of holders. Needs a readable description.
    Shared,
    /// One holder. Needs a writable description.
    Exclusive,
}

fn request(kind: c_short, byte: u64) -> libc::flock {
    // SAFETY: `flock` is plain old data, for which all zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte as libc::off_t;
    lock.l_len = 1;
    lock
}

fn set(fd: BorrowedFd<'_>, kind: c_short, byte: u64) -> std::result::Result<(), i32> {
    let lock = request(kind, byte);
    // SAFETY: F_OFD_SETLK reads one `flock`, which outlives the call.
    let rc = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if rc == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Locks a byte without waiting; `false` if another description holds it in a way that excludes this one.
pub(crate) fn try_lock(fd: BorrowedFd<'_>, byte: u64, mode: Mode) -> Result<bool> {
    let kind = match mode {
        Mode::Shared => READ,
        Mode::Exclusive => WRITE,
    };
    match set(fd, kind, byte) {
        Ok(()) => Ok(true),
        Err(libc::EAGAIN | libc::EACCES) => Ok(false),
        Err(errno) => Err(Error::os(errno, format_args!("locking byte {byte} of the segment"))),
    }
}

/// Releases a byte. Does nothing if this description does not hold it.
pub(crate) fn unlock(fd: BorrowedFd<'_>, byte: u64) {
    let _ = set(fd, FREE, byte);
}

/// How another description holds this byte, if one does. Takes nothing, and works on a read-only descriptor.
pub(crate) fn held_by_another(fd: BorrowedFd<'_>, byte: u64) -> Result<Option<Mode>> {
    Ok(match conflict(fd, WRITE, byte)? {
        FREE => None,
        READ => Some(Mode::Shared),
        _ => Some(Mode::Exclusive),
    })
}

/// Whether another description holds this byte exclusively. Only who may write the file can, while a shared lock can be
/// anybody's who may read it. Takes nothing, and works on a read-only descriptor.
pub(crate) fn exclusively_held_by_another(fd: BorrowedFd<'_>, byte: u64) -> Result<bool> {
    Ok(conflict(fd, READ, byte)? != FREE)
}

/// The kind of the lock that would be in the way of one of this kind; `FREE` if none would.
fn conflict(fd: BorrowedFd<'_>, kind: c_short, byte: u64) -> Result<c_short> {
    let mut lock = request(kind, byte);
    // SAFETY: F_OFD_GETLK reads and writes one `flock`, which outlives the call.
    let rc = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
    if rc == 0 {
        return Ok(lock.l_type);
    }
    Err(Error::os(last_errno(), format_args!("asking who holds byte {byte} of the segment")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{fs, memfd};
    use std::os::fd::AsFd;

    #[test]
    fn descriptions_of_one_process_are_strangers() {
        let a = memfd::create("ramway-test", 4096, &[]).unwrap();
        let b = fs::reopen(a.as_fd()).unwrap();
        let (a, b) = (a.as_fd(), b.as_fd());
        assert!(try_lock(a, 0, Mode::Shared).unwrap() && try_lock(b, 0, Mode::Shared).unwrap());
        assert!(!try_lock(a, 0, Mode::Exclusive).unwrap());
        assert_eq!(held_by_another(a, 0).unwrap(), Some(Mode::Shared));
        unlock(b, 0);
        assert_eq!(held_by_another(a, 0).unwrap(), None, "one's own lock is not another's");
        assert!(try_lock(a, 0, Mode::Exclusive).unwrap());
        assert_eq!(held_by_another(b, 0).unwrap(), Some(Mode::Exclusive));
        assert_eq!(held_by_another(b, 1).unwrap(), None, "one byte each");
    }

    #[test]
    fn a_read_only_description_can_ask_and_share() {
        let a = memfd::create("ramway-test", 4096, &[]).unwrap();
        let path = format!("/proc/self/fd/{}", a.as_raw_fd());
        let reader = std::fs::File::open(path).unwrap();
        assert!(try_lock(a.as_fd(), 1, Mode::Exclusive).unwrap());
        assert_eq!(held_by_another(reader.as_fd(), 1).unwrap(), Some(Mode::Exclusive));
        assert!(try_lock(reader.as_fd(), 0, Mode::Shared).unwrap());
        assert!(try_lock(reader.as_fd(), 2, Mode::Exclusive).is_err());
        // What a reader can take is no sign of life.
        assert!(exclusively_held_by_another(reader.as_fd(), 1).unwrap());
        assert!(!exclusively_held_by_another(a.as_fd(), 1).unwrap(), "one's own lock is not another's");
        assert!(try_lock(reader.as_fd(), 16, Mode::Shared).unwrap());
        assert!(!exclusively_held_by_another(a.as_fd(), 16).unwrap());
        assert_eq!(held_by_another(a.as_fd(), 16).unwrap(), Some(Mode::Shared));
    }
}
