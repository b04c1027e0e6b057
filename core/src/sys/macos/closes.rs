//! Being told that somebody has closed a file: macOS tells nobody.

use std::os::fd::BorrowedFd;

/// See `sys/linux/closes.rs`. There is none.
pub(crate) enum Closes {}

/// A file that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watch {}

impl Closes {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn watch(&self, _file: BorrowedFd<'_>) -> Option<Watch> {
        match *self {}
    }

    pub(crate) fn forget(&self, _watch: Watch) {
        match *self {}
    }

    pub(crate) fn take(&self, _changed: impl FnMut(Option<Watch>)) {
        match *self {}
    }
}
