//! The local ends of a ring. A frame's number is its position in the ring's memory, in bytes since the ring was made; it takes as
//! many bytes at the other end, where the alignment is the same.

use crate::local::{Found, Sink, Source, open_or_make};
use crate::stream::{Ending, Record};
use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::{Receiver, Ring, Sender, WaitPolicy};
use std::time::Duration;

/// A ring that an export reads.
pub struct RingSource {
    receiver: Receiver,
}

impl RingSource {
    /// Takes the receiver's role.
    ///
    /// # Errors
    /// As for [`RingBuilder::receiver`](ramway::RingBuilder::receiver): `Busy` if somebody receives here.
    pub fn open(name: &str) -> ramway::Result<Box<dyn Source>> {
        let receiver = Ring::open(name).wait_policy(WaitPolicy::Block).receiver()?;
        Ok(Box::new(Self { receiver }))
    }
}

impl Source for RingSource {
    fn next(&mut self, limit: WaitLimit) -> ramway::Result<Found> {
        let mut raw = self.receiver.raw();
        let start = raw.position();
        let frame = raw.recv_more(limit)?;
        let next = raw.position();
        let (type_id, tag) = (frame.type_id, frame.tag);
        // A message is shorter than 2^31.
        Ok(Found { start, next, type_id, tag, seq: 0, time: 0, data: frame.data, len: frame.len as u32 })
    }

    fn first(&mut self) -> u64 {
        self.receiver.start().own
    }

    fn rewind(&mut self) {
        self.receiver.raw().unread(None);
    }

    fn release(&mut self, before: u64) {
        self.receiver.raw().release_until(before);
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
        self.receiver.peer_epoch()
    }

    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32> {
        self.receiver.wait_for_peer_timeout(timeout)
    }

    fn leave(self: Box<Self>, how: Ending, _: bool) {
        match how {
            Ending::Closed => drop(self.receiver),
            Ending::Dead => self.receiver.abandon(),
        }
    }
}

/// A ring that an import writes.
pub struct RingSink {
    sender: Sender,
}

impl RingSink {
    /// Takes the sender's role, of a ring that is there or that is made.
    ///
    /// # Errors
    /// As for [`RingBuilder::sender`](ramway::RingBuilder::sender): `Busy` if somebody sends here.
    pub fn open(name: &str, capacity: u64, align: u32) -> ramway::Result<Box<dyn Sink>> {
        let open = || Ring::open(name).wait_policy(WaitPolicy::Block).sender();
        let make = || Ring::create(name).capacity(capacity).align(align).wait_policy(WaitPolicy::Block).sender();
        Ok(Box::new(Self { sender: open_or_make(open, make)? }))
    }
}

impl Sink for RingSink {
    fn reserve(&mut self, len: u32, limit: WaitLimit) -> ramway::Result<*mut u8> {
        self.sender.raw().reserve(len as usize, limit)
    }

    fn commit(&mut self, record: &Record) -> ramway::Result<()> {
        self.sender.raw().commit(record.total as usize, record.type_id, record.tag, false)
    }

    fn abort(&mut self) {
        self.sender.raw().abort();
    }

    fn flush(&mut self) {
        // It fails where the handle is dead, which the next reservation says.
        let _ = self.sender.flush();
    }

    fn at(&mut self) -> u64 {
        self.sender.start().own
    }

    fn align(&self) -> Option<u32> {
        Some(self.sender.align() as u32)
    }

    fn epoch(&self) -> u32 {
        self.sender.epoch()
    }

    fn skip(&mut self, _: u64) {}

    fn peer_epoch(&self) -> u32 {
        self.sender.peer_epoch()
    }

    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32> {
        self.sender.wait_for_peer_timeout(timeout)
    }

    fn leave(self: Box<Self>, how: Ending) {
        match how {
            Ending::Closed => drop(self.sender),
            Ending::Dead => self.sender.abandon(),
        }
    }
}
