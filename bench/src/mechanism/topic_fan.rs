//! One topic from the leading process to subscribers of the following one.

use super::ring::policy;
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Kind, Setup};
use crate::fan::{Fan, Lines, OneToMany, Reads, Ticket, Writes};
use ramway::{Policy, Publisher, Subscriber, Topic};

/// Topics by what their subscribers are for.
#[derive(Clone, Copy)]
pub(crate) enum TopicFan {
    /// Reliable ones that read everything.
    Readers,
    /// Some that read nothing, and skip what is there now and then.
    Attached(&'static str, Policy, usize),
    /// A lossy one.
    Lossy,
    /// One that reads the newest message, by the copy that the subscriber keeps.
    Latest,
    /// The same into a buffer of its own.
    LatestInto,
}

pub(crate) static READERS: OneToMany<TopicFan> = OneToMany(TopicFan::Readers);
pub(crate) static LOSSY: OneToMany<TopicFan> = OneToMany(TopicFan::Lossy);
pub(crate) static LATEST: OneToMany<TopicFan> = OneToMany(TopicFan::Latest);
pub(crate) static LATEST_INTO: OneToMany<TopicFan> = OneToMany(TopicFan::LatestInto);
pub(crate) static UNREAD: [OneToMany<TopicFan>; 7] = [
    OneToMany(TopicFan::Attached("topic-reliable-1", Policy::Reliable, 1)),
    OneToMany(TopicFan::Attached("topic-reliable-8", Policy::Reliable, 8)),
    OneToMany(TopicFan::Attached("topic-reliable-64", Policy::Reliable, 64)),
    OneToMany(TopicFan::Attached("topic-lossy-1", Policy::Lossy, 1)),
    OneToMany(TopicFan::Attached("topic-lossy-8", Policy::Lossy, 8)),
    OneToMany(TopicFan::Attached("topic-lossy-64", Policy::Lossy, 64)),
    OneToMany(TopicFan::Attached("topic-alone", Policy::Lossy, 0)),
];

/// Bytes of a frame's header; a frame begins on a multiple of it.
const HEADER: usize = 32;
const NAME: &str = "topic";
/// Twice as many as there are ever subscribers: those that the publisher does not wait for take a slot of the upper half.
const SLOTS: u32 = 128;

pub(crate) struct Writer {
    publisher: Publisher,
    /// Bytes that subscribers which read nothing leave to the publisher; `None`: it does not wait for them.
    room: Option<u64>,
}

impl Writes for Writer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = self.publisher.reserve(size)?;
        fill(&mut slot);
        Ok(slot.commit(size)?)
    }

    fn room(&self, size: usize) -> Option<u64> {
        Some(self.room? / (HEADER + size.next_multiple_of(HEADER)) as u64)
    }
}

pub(crate) struct Reader {
    subscriber: Subscriber,
    /// Where the newest message is copied to; `None`: the subscriber keeps it.
    buffer: Option<Lines>,
}

impl Reads for Reader {
    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        let message = self.subscriber.recv()?;
        assert!(message.len() == size);
        read(&message);
        Ok(message.lost())
    }

    #[inline(always)]
    fn newest(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        loop {
            let found = match &mut self.buffer {
                None => self.subscriber.latest().map(|message| {
                    assert!(message.len() == size);
                    read(&message);
                }),
                Some(buffer) => self.subscriber.latest_into_slice(buffer.bytes(size)).map(|meta| {
                    assert!(meta.len == size);
                    read(buffer.bytes(size));
                }),
            };
            match found {
                // Overwritten while it was copied, 16 times: a reader tries again.
                Err(e) if e.kind() == ramway::ErrorKind::Empty => {}
                done => return Ok(done?),
            }
        }
    }

    fn skip(&mut self) -> Result<()> {
        self.subscriber.skip_to_newest()?;
        // The newest one is left, and would be the publisher's bound.
        match self.subscriber.try_recv().map(drop) {
            Err(e) if e.kind() != ramway::ErrorKind::Empty => Err(e.into()),
            _ => Ok(()),
        }
    }
}

impl TopicFan {
    fn policy(self) -> Policy {
        match self {
            Self::Readers => Policy::Reliable,
            Self::Attached(_, policy, _) => policy,
            Self::Lossy => Policy::Lossy,
            Self::Latest | Self::LatestInto => Policy::Latest,
        }
    }
}

impl Fan for TopicFan {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        let (name, copied, what) = match self {
            Self::Readers => ("topic-readers", false, "one topic, reliable subscribers that read in place".to_owned()),
            Self::Attached(name, _, 0) => (*name, false, "one topic without a subscriber".to_owned()),
            Self::Attached(name, policy, count) => {
                let policy = if *policy == Policy::Reliable { "reliable" } else { "lossy" };
                (*name, false, format!("one topic, {count} {policy} subscribers attached, which read nothing"))
            }
            Self::Lossy => ("topic-lossy", true, "one topic, a lossy subscriber".to_owned()),
            Self::Latest => ("topic-latest", true, "one topic, `latest` of a latest subscriber".to_owned()),
            Self::LatestInto => ("topic-latest-into", true, "the same, by `latest_into_slice`".to_owned()),
        };
        About::new(name, Kind::Ramway, copied, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        match self {
            Self::Readers => matches!(burst.test, Test::Readers | Test::WakeAll),
            Self::Attached(..) => burst.test == Test::Publish,
            Self::Lossy => burst.test == Test::Lapped,
            Self::Latest | Self::LatestInto => burst.test == Test::Latest,
        }
    }

    fn writer(&self, setup: &Setup) -> Result<(Writer, Ticket)> {
        let topic = Topic::create(setup.directory.join(NAME)).capacity(setup.capacity).slots(SLOTS).prefault(true);
        let gates = matches!(self, Self::Attached(_, Policy::Reliable, _));
        // One frame may lie across the end of what was skipped.
        let room = gates.then_some(setup.capacity / 4 * 3);
        Ok((Writer { publisher: topic.publisher()?, room }, Ticket::default()))
    }

    fn readers(&self, setup: &Setup, _ticket: &str, burst: &Burst) -> Result<Vec<Reader>> {
        let count = match self {
            Self::Attached(_, _, count) => *count,
            Self::Readers => burst.threads as usize,
            Self::Lossy | Self::Latest | Self::LatestInto => 1,
        };
        // More readers than processors: those that wait let the others run.
        let mode = if burst.test == Test::Readers { Mode::Hybrid } else { burst.mode };
        let open = |_| {
            let topic = Topic::open(setup.directory.join(NAME)).policy(self.policy()).prefault(true);
            let subscriber = topic.wait_policy(policy(mode)).subscriber()?;
            Ok(Reader { subscriber, buffer: matches!(self, Self::LatestInto).then(|| Lines::new(setup.largest)) })
        };
        (0..count).map(open).collect()
    }
}
