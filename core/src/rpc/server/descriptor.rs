//! A server in an event loop: one descriptor, which is readable when [`Server::poll`] has something to do.

use std::os::fd::{AsFd, BorrowedFd};

use super::Server;
use super::connection::Connection;
use crate::Result;
use crate::ring::raw::RawEndpoint;
use crate::sys::socket::Set;

/// Which of a connection's descriptors the set has, and reports.
#[derive(Debug, Default)]
pub(super) struct Watched {
    added: bool,
    reads: bool,
    writes: bool,
}

/// A round is for all of them, whatever is reported.
const TOKEN: u64 = 0;

impl Server {
    /// A descriptor for event loops that is readable when [`poll`](Self::poll) has something to do. It is made at the first call;
    /// from then on [`run`](Self::run) waits by it too. Poll it for reading, level-triggered, and wait for no longer than
    /// [`due_in`](Self::due_in) says. Never read from it, and do not close it: it belongs to the server.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`](crate::Receiver::readiness).
    pub fn descriptor(&mut self) -> Result<BorrowedFd<'_>> {
        self.check()?;
        if self.set.is_none() {
            let set = Set::new()?;
            if let Some(door) = &self.door {
                set.add(door.listener.as_fd(), TOKEN, true)?;
            }
            let news = self.hub.descriptor()?;
            set.add(news.fd(0), TOKEN, true)?;
            self.set = Some(set);
            self.arm()?;
        }
        Ok(self.set.as_ref().expect("made above").as_fd())
    }

    /// Has the descriptor become readable when there is something to do: there was nothing in the last round.
    pub(super) fn arm(&mut self) -> Result<()> {
        let Some(set) = &self.set else { return Ok(()) };
        let mut busy = false;
        for connection in &mut self.connections {
            busy |= connection.arm(set)?;
        }
        if busy || !self.hub.news().may_sleep() {
            self.hub.signal();
        }
        Ok(())
    }
}

impl Connection {
    /// Arms what is waited for. True if there is something to do.
    fn arm(&mut self, set: &Set) -> Result<bool> {
        let (reads, room) = (self.reads(), self.waits_for());
        let Watched { added, reads: was_reading, writes: was_writing } = self.watched;
        let mut busy = self.has_work();
        let (sender, receiver) = self.ends();
        // An end makes it readable too: it is told by the next round.
        let is_there = |ready: Result<bool>| ready.unwrap_or(true);
        if !added {
            set.add(receiver.readiness()?.as_fd(), TOKEN, true)?;
            set.add(sender.readiness()?.as_fd(), TOKEN, true)?;
        }
        if !added || reads != was_reading {
            set.enable(receiver.readiness()?.as_fd(), TOKEN, reads)?;
        }
        if !added || room.is_some() != was_writing {
            set.enable(sender.readiness()?.as_fd(), TOKEN, room.is_some())?;
        }
        if reads {
            busy |= is_there(receiver.ready(0));
        }
        if let Some(len) = room {
            busy |= is_there(sender.ready(len));
        }
        self.watched = Watched { added: true, reads, writes: room.is_some() };
        Ok(busy)
    }
}
