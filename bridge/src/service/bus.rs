//! The end of a bus that a connection reads.

use crate::local::{Found, Source};
use crate::ring::leave_receiver;
use crate::rpc;
use crate::stream::Ending;
use ramway::Receiver;
use ramway::ring::raw::{RawEndpoint, WaitLimit};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Frames that are noted while they cannot be sent. What is beyond is noted as soon as some of these are sent.
const NOTED: usize = 4096;

/// The receiving end of a bus.
///
/// It keeps where the frames are that are not released: the end of a bus is told once, and makes its handle dead. And it keeps since when
/// they are here, whatever becomes of the link.
pub struct BusSource {
    receiver: Receiver,
    rpc: bool,
    /// In their order, from the first that is not released on.
    known: VecDeque<Found>,
    /// Of these, the next one that is given.
    next: usize,
    first: u64,
}

impl BusSource {
    /// `rpc`: its frames are RPC's.
    #[must_use]
    pub fn of(mut receiver: Receiver, rpc: bool) -> Box<dyn Source> {
        let first = receiver.start().own;
        Box::new(Self { receiver, rpc, known: VecDeque::new(), next: 0, first })
    }

    /// One more frame of the bus.
    fn find(&mut self, limit: WaitLimit) -> ramway::Result<()> {
        let mut raw = self.receiver.raw();
        let start = raw.position();
        let frame = raw.recv_more(limit)?;
        let next = raw.position();
        let (type_id, tag) = (frame.type_id, frame.tag);
        // A message is shorter than 2^31.
        let len = frame.len as u32;
        let since = (self.rpc && rpc::is_call(type_id, len)).then(Instant::now);
        self.known.push_back(Found { start, next, type_id, tag, seq: 0, time: 0, data: frame.data, len, since });
        Ok(())
    }
}

impl Source for BusSource {
    fn next(&mut self, limit: WaitLimit) -> ramway::Result<Found> {
        if self.next == self.known.len() {
            self.find(limit)?;
        }
        self.next += 1;
        Ok(self.known[self.next - 1])
    }

    fn look(&mut self) {
        // Of an end that is met here `next` says the same, once all frames before are given.
        while self.rpc && self.known.len() < self.next + NOTED && self.find(WaitLimit::None).is_ok() {}
    }

    fn first(&mut self) -> u64 {
        self.first
    }

    fn rewind(&mut self) {
        self.next = 0;
    }

    fn release(&mut self, before: u64) {
        let mut until = None;
        while self.next > 0
            && let Some(found) = self.known.front()
            && found.next <= before
        {
            until = Some(found.next);
            self.known.pop_front();
            self.next -= 1;
        }
        if let Some(until) = until {
            self.first = until;
            self.receiver.raw().release_until(until);
        }
    }

    fn backlog(&self) -> u64 {
        self.receiver.len() as u64
    }

    fn waker(&self) -> ramway::Waker {
        self.receiver.waker()
    }

    fn geometry(&self) -> (u32, u64) {
        (self.receiver.align() as u32, self.receiver.capacity() as u64)
    }

    fn peer_epoch(&self) -> u32 {
        // Not 0 in any case, which would be nobody's end.
        self.receiver.peer_epoch().max(1)
    }

    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32> {
        self.receiver.wait_for_peer_timeout(timeout)
    }

    fn leave(self: Box<Self>, how: Ending, _: bool) {
        leave_receiver(self.receiver, how);
    }
}
