//! How a server waits between two rounds.

use std::time::{Duration, Instant};

use super::Server;
use super::connection::Connection;
use crate::facts::SPIN_MAX;
use crate::select::Source;
use crate::sync::spin_hint;
use crate::sys::clock;
use crate::wait::{POLL_INTERVAL, WaitPolicy};
use crate::{ErrorKind, Result, Room};

/// How often one client is served between two rounds: each time follows a wait of up to [`SPIN_MAX`], and only a round checks
/// deadlines and new clients.
const SERVED_ALONE: u32 = 16;

/// What polling has found.
enum Found {
    Nothing,
    /// From other threads.
    News,
    /// The first client that has something.
    Client(usize),
}

impl Server {
    /// Waits until there may be something to do, at most until `deadline`.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> Result<()> {
        // One that makes a call after the other is served where it is found: a round over all the others would be most of the
        // time that its call takes.
        let mut served = 0;
        loop {
            match self.spin() {
                Found::Nothing => break,
                Found::Client(index) if served < SERVED_ALONE && self.serve_alone(index) => served += 1,
                Found::Client(_) | Found::News => return Ok(()),
            }
        }
        if self.policy == WaitPolicy::Spin {
            // The next round does the rest: clocks, new clients, and whether the others live.
            std::thread::yield_now();
            return Ok(());
        }
        if !self.hub.news().may_sleep() {
            return Ok(());
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.into_iter().chain(self.due_in()).min();
        let outcome = if self.set.is_some() { self.wait_by_set(timeout) } else { self.wait_by_words(timeout) };
        self.hub.news().is_awake();
        self.has_waited = true;
        outcome
    }

    /// One step of [`wait`](Self::wait): finds the client that has something, and serves it.
    #[cfg(test)]
    pub(crate) fn answers(&mut self) -> bool {
        matches!(self.spin(), Found::Client(index) if self.serve_alone(index))
    }

    /// Polls for a bounded time.
    fn spin(&mut self) -> Found {
        let polls = match self.policy {
            WaitPolicy::Spin => true,
            WaitPolicy::Hybrid => clock::cpus_online() > 1,
            WaitPolicy::Block => false,
        };
        if !polls {
            return Found::Nothing;
        }
        // A look at each client counts as a poll.
        let mut polls = SPIN_MAX;
        loop {
            if self.hub.news().is_there() {
                return Found::News;
            }
            if let Some(index) = self.connections.iter_mut().position(Connection::peek) {
                return Found::Client(index);
            }
            let Some(left) = polls.checked_sub(self.connections.len() as u32 + 1) else { return Found::Nothing };
            polls = left;
            spin_hint();
        }
    }

    fn wait_by_words(&mut self, timeout: Option<Duration>) -> Result<()> {
        let Self { connections, door, select, .. } = self;
        // What is waited for of each client: a frame, room, or both.
        let mut of = Vec::with_capacity(connections.len() + 1);
        let mut rooms: Vec<Room<'_>> = Vec::new();
        let mut receivers = Vec::with_capacity(connections.len());
        for (index, connection) in connections.iter_mut().enumerate() {
            let (reads, room) = (connection.reads(), connection.waits_for());
            let (sender, receiver) = connection.ends();
            if reads {
                receivers.push((index, receiver));
            }
            if let Some(len) = room {
                of.push(index);
                rooms.push(sender.room(len));
            }
        }
        let mut sources: Vec<&mut dyn Source> = Vec::with_capacity(rooms.len() + receivers.len() + 1);
        sources.extend(rooms.iter_mut().map(|room| room as &mut dyn Source));
        for (index, receiver) in receivers {
            of.push(index);
            sources.push(receiver);
        }
        if let Some(door) = door {
            sources.push(&mut door.listener);
        }
        // There may be no source at all while it drains.
        let timeout =
            if sources.is_empty() { Some(timeout.map_or(POLL_INTERVAL, |t| t.min(POLL_INTERVAL))) } else { timeout };
        let ready = match select.wait(&mut sources, timeout) {
            Ok(ready) => ready.to_vec(),
            Err(e) if e.kind() == ErrorKind::Interrupted => Vec::new(),
            Err(e) => return Err(e),
        };
        drop(sources);
        drop(rooms);
        for index in ready.into_iter().filter_map(|source| of.get(source).copied()) {
            connections[index].may_have_ended = true;
        }
        Ok(())
    }

    fn wait_by_set(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.arm()?;
        let Some(set) = &self.set else { return Ok(()) };
        set.wait(timeout.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL))?;
        self.hub.consume();
        Ok(())
    }
}
