//! Being told that somebody has closed a file, or taken its last name away: an inotify.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::sys::fork::Entry;

/// What tells of closed files. In a fork's child it does nothing.
pub(crate) struct Closes(Entry);

/// A file that is watched. The same file always gives the same one, until it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch(i32);

impl Closes {
    /// `None` where the system has no more of them, or forbids it.
    pub(crate) fn new() -> Option<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self(Entry::new(vec![fd])))
    }

    /// `None` if the file cannot be watched: no `/proc`, no right to read the file, or too many watches of this user.
    pub(crate) fn watch(&self, file: BorrowedFd<'_>) -> Option<Watch> {
        if self.0.is_detached() {
            return None;
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // The last name that goes changes an attribute: the count of links.
        let what = WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE | WatchFlags::ATTRIB;
        inotify::add_watch(self.0.fd(0), path, what).ok().map(Watch)
    }

    pub(crate) fn forget(&self, watch: Watch) {
        if !self.0.is_detached() {
            let _ = inotify::remove_watch(self.0.fd(0), watch.0);
        }
    }

    /// Calls `changed` for each file that something has happened to since the last call; for one, perhaps, that was
    /// forgotten meanwhile. `None`: more has happened than the system keeps, to any of them. Never blocks.
    pub(crate) fn take(&self, mut changed: impl FnMut(Option<Watch>)) {
        if self.0.is_detached() {
            return;
        }
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(self.0.fd(0), &mut space);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                changed(None);
            } else {
                changed(Some(Watch(event.wd())));
            }
        }
    }
}
