//! What language bindings need of a topic that are its publisher or subscriber themselves, besides
//! [`RawEndpoint`](crate::ring::raw::RawEndpoint). Not part of the stable API.

use super::place::Words;
use super::{Publisher, Subscriber, Topic};
use crate::Result;
use crate::facts::{SLOT_SIZE, TOPIC_FRAME_TIME};
use crate::layout::{SLOTS_OFFSET, TOPIC_FRAME_HEADER};
use crate::ring::raw::RawSender;

/// Where a publisher stands, besides a sender's positions.
#[derive(Clone, Copy, Debug)]
pub struct PublisherAt {
    /// The number of the next message.
    pub seq: u64,
    /// Where the last published frame begins.
    pub last: u64,
    /// The subscribers' word as last acted upon.
    pub word: u64,
}

/// Where a subscriber stands, besides a receiver's positions.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberAt {
    /// The number that the next message should have.
    pub expected: u64,
    /// Messages that were lost so far.
    pub lost: u64,
}

/// The subscribers' area of a topic in this process.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Where it begins. Mapped as long as the handle is open, for writing where the handle may write.
    pub start: *const u8,
    /// Bytes, its slots included.
    pub len: usize,
    /// Of a subscriber that has a slot: where in the area it begins.
    pub slot: Option<usize>,
}

fn area(words: &Words, slot: Option<usize>) -> Area {
    let len = SLOTS_OFFSET + words.slot_count() as usize * SLOT_SIZE;
    Area { start: words.area.as_ptr().cast_const().cast(), len, slot }
}

impl Publisher {
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn publisher_at(&self) -> PublisherAt {
        let hot = &self.half.hot;
        PublisherAt { seq: hot.commit.seq, last: hot.more.published, word: hot.more.word_seen }
    }

    /// Goes on where a binding is that is the publisher itself: the next message has the number `seq`, and the last published
    /// frame begins at `last`. With [`follow`](crate::ring::raw::RawEndpoint::follow), whose `own` is the end of the last
    /// committed frame.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn follow_publisher(&mut self, seq: u64, last: u64) {
        let hot = &mut self.half.hot;
        (hot.commit.seq, hot.commit.last, hot.more.published) = (seq, last, last);
    }

    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn area(&self) -> Area {
        area(self.half.hot.topic_words(), None)
    }
}

impl Subscriber {
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn subscriber_at(&self) -> SubscriberAt {
        let more = &self.half.hot.more;
        SubscriberAt { expected: more.expected, lost: more.lost }
    }

    /// Goes on where a binding is that is the subscriber itself; with [`follow`](crate::ring::raw::RawEndpoint::follow), whose
    /// positions under [`Policy::Latest`](crate::Policy::Latest) are both where the message begins that it read last.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn follow_subscriber(&mut self, at: SubscriberAt) {
        let more = &mut self.half.hot.more;
        (more.expected, more.lost) = (at.expected, at.lost);
    }

    /// Whether it was ejected, which the next call that finds a message tells.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn has_lagged(&self) -> bool {
        use crate::ring::half::Positions;
        self.half.hot.has_pending()
    }

    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn area(&self) -> Area {
        let hot = &self.half.hot;
        let words = &hot.more.words;
        let begin = words.area.as_ptr().addr();
        area(words, hot.slot().map(|slot| std::ptr::from_ref(slot).addr() - begin))
    }
}

impl RawSender<'_, Topic> {
    /// Makes the open slot a message that says it was published at `time`: for a bridge, which publishes what somebody else did
    /// elsewhere. It is not flushed.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    #[doc(hidden)]
    pub fn commit_at(&mut self, len: usize, type_id: u32, tag: u64, time: u64) -> Result<()> {
        let payload = self.sender.half.hot.payload();
        self.commit(len, type_id, tag, false)?;
        // SAFETY: the payload's header stands before it, in the mapping; it is this side's own until it is published, which the
        // commit did not do.
        unsafe {
            let header = payload.sub(TOPIC_FRAME_HEADER as usize);
            header.add(TOPIC_FRAME_TIME).cast::<u64>().write(time.to_le());
        }
        Ok(())
    }
}
