//! The locks of a named segment (ABI section 11), as another process sees them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::files::Result;
use super::model::Role;

/// What is locked on a byte by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Nothing.
    Free,
    /// At least one shared lock.
    Shared,
    /// An exclusive lock.
    Exclusive,
}

/// The byte of a role; a listener has the producer's.
pub fn byte(role: Role) -> i64 {
    if role == Role::Consumer { 2 } else { 1 }
}

fn lock(fd: BorrowedFd<'_>, command: i32, kind: i32, byte: i64) -> Result<libc::flock> {
    // SAFETY: plain numbers, for which 0 is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte;
    lock.l_len = 1;
    // SAFETY: the kernel reads and writes the one struct that it is given.
    match unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) } {
        0 => Ok(lock),
        _ => Err(format!("locking byte {byte}: {}", std::io::Error::last_os_error())),
    }
}

/// Takes a role as a live handle has it: byte 0 shared, the role's byte exclusively. Lasts as long as the description.
pub fn hold(file: impl AsFd, role: Role) -> Result<()> {
    hold_bytes(file, &[byte(role)])
}

/// Takes byte 0 shared, and each of these exclusively.
pub fn hold_bytes(file: impl AsFd, bytes: &[i64]) -> Result<()> {
    lock(file.as_fd(), libc::F_OFD_SETLK, libc::F_RDLCK, 0)?;
    bytes.iter().try_for_each(|&byte| lock(file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, byte).map(drop))
}

/// What others have locked on a byte.
pub fn look(file: impl AsFd, byte: i64) -> Result<Lock> {
    let found = lock(file.as_fd(), libc::F_OFD_GETLK, libc::F_WRLCK, byte)?;
    Ok(match i32::from(found.l_type) {
        libc::F_UNLCK => Lock::Free,
        libc::F_RDLCK => Lock::Shared,
        _ => Lock::Exclusive,
    })
}

/// Whether a handle with this role has the locks that it must have, and no others. `file` holds no lock itself.
pub fn check(file: impl AsFd, role: Role) -> Result<()> {
    let file = file.as_fd();
    for (at, expected) in [(0, Lock::Shared), (1, Lock::Exclusive), (2, Lock::Exclusive)] {
        let expected = if at == 0 || at == byte(role) { expected } else { Lock::Free };
        let found = look(file, at)?;
        if found != expected {
            return Err(format!("byte {at} of the file is {found:?} while it is attached, expected {expected:?}"));
        }
    }
    Ok(())
}
