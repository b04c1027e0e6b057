//! The local ends of a ring. A frame's number is its position in the ring's memory, in bytes since the ring was made; it takes as
//! many bytes at the other end, where the alignment is the same.

use crate::local::{Found, Sink, Source, open_or_make};
use crate::rpc;
use crate::stream::{Ending, Record};
use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::{ErrorKind, Receiver, Ring, Sender, WaitPolicy};
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
        let len = frame.len as u32;
        Ok(Found { start, next, type_id, tag, seq: 0, time: 0, data: frame.data, len, since: None })
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
        leave_receiver(self.receiver, how);
    }
}

/// Gives the receiver's role up.
pub(crate) fn leave_receiver(receiver: Receiver, how: Ending) {
    match how {
        Ending::Closed => drop(receiver),
        Ending::Dead => receiver.abandon(),
    }
}

/// A ring that an import writes, named or one of a bus.
pub struct RingSink {
    sender: Sender,
    /// Of a bus, whose peer no other one follows.
    is_of_bus: bool,
    /// Its frames are RPC's.
    rpc: bool,
    /// What was reserved last.
    room: *mut u8,
}

// SAFETY: the address leads into the sender's mapping, which has no thread affinity.
unsafe impl Send for RingSink {}

impl RingSink {
    /// Takes the sender's role, of a ring that is there or that is made.
    ///
    /// # Errors
    /// As for [`RingBuilder::sender`](ramway::RingBuilder::sender): `Busy` if somebody sends here.
    pub fn open(name: &str, capacity: u64, align: u32) -> ramway::Result<Box<dyn Sink>> {
        let open = || Ring::open(name).wait_policy(WaitPolicy::Block).sender();
        let make = || Ring::create(name).capacity(capacity).align(align).wait_policy(WaitPolicy::Block).sender();
        let sender = open_or_make(open, make)?;
        Ok(Box::new(Self { sender, is_of_bus: false, rpc: false, room: std::ptr::null_mut() }))
    }

    /// The sending end of a bus.
    #[must_use]
    pub fn of_bus(sender: Sender, rpc: bool) -> Box<dyn Sink> {
        Box::new(Self { sender, is_of_bus: true, rpc, room: std::ptr::null_mut() })
    }
}

impl Sink for RingSink {
    fn reserve(&mut self, len: u32, limit: WaitLimit) -> ramway::Result<*mut u8> {
        self.room = self.sender.raw().reserve(len as usize, limit)?;
        Ok(self.room)
    }

    fn commit(&mut self, record: &Record, spent: Duration) -> ramway::Result<()> {
        if self.rpc && rpc::is_call(record.type_id, record.total) {
            // SAFETY: the last reservation there has at least this number of bytes, which are this sender's until the commit.
            let payload = unsafe { std::slice::from_raw_parts_mut(self.room, rpc::TIME_END as usize) };
            rpc::shorten(payload, spent);
        }
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
        // Nothing needs the far position of a bus's ring: both bridges live as long as the bus.
        (!self.is_of_bus).then(|| self.sender.align() as u32)
    }

    fn epoch(&self) -> u32 {
        self.sender.epoch()
    }

    fn skip(&mut self, _: u64) {}

    fn has_ended(&mut self) -> Option<Ending> {
        if !self.is_of_bus {
            return None;
        }
        match self.sender.await_peer(WaitLimit::None).err()?.kind() {
            ErrorKind::Closed => Some(Ending::Closed),
            ErrorKind::PeerDead => Some(Ending::Dead),
            _ => None,
        }
    }

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
