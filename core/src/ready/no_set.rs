//! Where there is no io_uring, every handle has a descriptor of its own.

use std::os::fd::{AsFd, BorrowedFd};

use crate::error::{Error, ErrorKind, Result};

/// See `set.rs`. There is none.
#[derive(Debug)]
pub enum ReadySet {}

impl ReadySet {
    /// See `set.rs`.
    ///
    /// # Errors
    /// `Unsupported`, always.
    pub fn new() -> Result<Self> {
        Err(Error::new(ErrorKind::Unsupported, "this system has no io_uring"))
    }

    /// See `set.rs`.
    pub fn take(&self, _woken: &mut Vec<u64>) {
        match *self {}
    }

    /// See `set.rs`.
    pub fn hold(&self) {
        match *self {}
    }

    /// See `set.rs`.
    ///
    /// # Errors
    /// None.
    pub fn release(&self) -> Result<()> {
        match *self {}
    }
}

impl AsFd for ReadySet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
