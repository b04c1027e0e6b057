//! The local ends of a topic whose every message crosses. A frame's number is the message's; numbers that were left out before a
//! message belong to it.

use crate::local::{Found, Sink, Source, open_or_make};
use crate::stream::{Ending, Record};
use ramway::ring::raw::WaitLimit;
use ramway::{Publisher, Subscriber, Topic, WaitPolicy};
use std::collections::VecDeque;
use std::time::Duration;

/// A topic that an export reads, as a durable subscriber: so the next bridge goes on where this one stopped.
pub struct TopicSource {
    subscriber: Subscriber,
    first: u64,
    /// Where frames end that are read and not released: the number of the next one, and the position.
    read: VecDeque<(u64, u64)>,
}

impl TopicSource {
    /// Takes the subscriber's place with this label.
    ///
    /// # Errors
    /// As for [`TopicBuilder::subscriber`](ramway::TopicBuilder::subscriber).
    pub fn open(name: &str, label: &str) -> ramway::Result<Box<dyn Source>> {
        let topic = Topic::open(name).label(label).durable(true).wait_policy(WaitPolicy::Block);
        let subscriber = topic.subscriber()?;
        let first = subscriber.subscriber_at().expected;
        Ok(Box::new(Self { subscriber, first, read: VecDeque::new() }))
    }
}

impl Source for TopicSource {
    fn next(&mut self, limit: WaitLimit) -> ramway::Result<Found> {
        let mut raw = self.subscriber.raw();
        let frame = raw.recv_more(limit)?;
        let position = raw.position();
        let stamp = frame.stamp;
        let next = stamp.seq + 1;
        self.read.push_back((next, position));
        Ok(Found {
            start: stamp.seq - stamp.lost,
            next,
            type_id: frame.type_id,
            tag: frame.tag,
            seq: stamp.seq,
            time: stamp.time,
            data: frame.data,
            // A message is shorter than 2^31.
            len: frame.len as u32,
            since: None,
        })
    }

    fn first(&mut self) -> u64 {
        self.first
    }

    fn rewind(&mut self) {
        self.subscriber.raw().unread(None);
        self.read.clear();
        self.first = self.subscriber.subscriber_at().expected;
    }

    fn release(&mut self, before: u64) {
        let mut until = None;
        while let Some(&(next, position)) = self.read.front()
            && next <= before
        {
            until = Some((next, position));
            self.read.pop_front();
        }
        if let Some((next, position)) = until {
            self.first = next;
            self.subscriber.raw().release_until(position);
        }
    }

    fn backlog(&self) -> u64 {
        self.subscriber.lag().bytes
    }

    fn waker(&self) -> ramway::Waker {
        self.subscriber.waker()
    }

    fn geometry(&self) -> (u32, u64) {
        (self.subscriber.align() as u32, self.subscriber.capacity() as u64)
    }

    fn peer_epoch(&self) -> u32 {
        self.subscriber.peer_epoch()
    }

    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32> {
        self.subscriber.wait_for_peer_timeout(timeout)
    }

    fn leave(self: Box<Self>, _: Ending, for_good: bool) {
        if for_good {
            // It fails only where the handle is dead, and then the place goes with it.
            let _ = self.subscriber.unsubscribe();
        }
    }
}

/// A topic that an import writes.
pub struct TopicSink {
    publisher: Publisher,
}

/// Takes the publisher's role, of a topic that is there or that is made.
///
/// # Errors
/// As for [`TopicBuilder::publisher`](ramway::TopicBuilder::publisher): `Busy` if somebody publishes here.
pub fn publisher(name: &str, capacity: Option<u64>) -> ramway::Result<Publisher> {
    let open = || Topic::open(name).wait_policy(WaitPolicy::Block).publisher();
    let make = || {
        let topic = Topic::create(name).wait_policy(WaitPolicy::Block);
        match capacity {
            Some(capacity) => topic.capacity(capacity).publisher(),
            None => topic.publisher(),
        }
    };
    open_or_make(open, make)
}

impl TopicSink {
    /// As [`publisher`].
    ///
    /// # Errors
    /// As there.
    pub fn open(name: &str, capacity: Option<u64>) -> ramway::Result<Box<dyn Sink>> {
        Ok(Box::new(Self { publisher: publisher(name, capacity)? }))
    }
}

impl Sink for TopicSink {
    fn reserve(&mut self, len: u32, limit: WaitLimit) -> ramway::Result<*mut u8> {
        self.publisher.raw().reserve(len as usize, limit)
    }

    fn commit(&mut self, record: &Record, _: Duration) -> ramway::Result<()> {
        self.publisher.raw().commit_at(record.total as usize, record.type_id, record.tag, record.time)
    }

    fn abort(&mut self) {
        self.publisher.raw().abort();
    }

    fn flush(&mut self) {
        // It fails where the handle is dead, which the next reservation says.
        let _ = self.publisher.flush();
    }

    fn at(&mut self) -> u64 {
        self.publisher.publisher_at().seq
    }

    fn align(&self) -> Option<u32> {
        None
    }

    fn epoch(&self) -> u32 {
        self.publisher.epoch()
    }

    fn skip(&mut self, numbers: u64) {
        if numbers > 0 {
            // It fails where no number would be left, and then they are left as they are.
            let _ = self.publisher.skip_seq(numbers);
        }
    }

    fn peer_epoch(&self) -> u32 {
        self.publisher.peer_epoch()
    }

    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32> {
        self.publisher.wait_for_peer_timeout(timeout)
    }

    fn leave(self: Box<Self>, how: Ending) {
        match how {
            Ending::Closed => drop(self.publisher),
            Ending::Dead => self.publisher.abandon(),
        }
    }
}
