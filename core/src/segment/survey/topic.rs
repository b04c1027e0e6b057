//! What can be seen of a topic from outside. Everything is read from the file: no mapping, no lock, no store.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::Role;
use crate::error::Result;
use crate::facts::{BYTE_SLOT, TOPIC_FRAME_SEQ, TOPIC_FRAME_TIME};
use crate::layout::{
    SLOT_ACTIVE, SLOT_DURABLE, SLOT_EJECTED, SLOT_FLAG_LATEST, SLOT_GATING, TOPIC_FRAME_HEADER, WORD_ASLEEP,
    is_topic_position, max_topic_message_len, slot_epoch, topic_frame_size,
};
use crate::segment::file::read_page;
use crate::segment::format::TopicGeometry;
use crate::segment::words::{SlotWords, SubscribersWords, TopicWords};
use crate::sys::{fs, lock};

/// A topic in a [`Segment`](super::Segment). All numbers are as the file holds them, unchecked except for the geometry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topic {
    /// Where the data begins, in bytes from the start of the file.
    pub data_offset: u64,
    /// Bytes of data.
    pub capacity: u64,
    /// Alignment of payloads in bytes.
    pub align: u32,
    /// Where the subscribers' area begins, in bytes from the start of the file.
    pub subs_offset: u64,
    /// How many slots for subscribers there are, used or not.
    pub slots: u32,
    /// No subscriber may hold the publisher back.
    pub lossy_only: bool,
    /// The publisher may eject a subscriber that holds it back.
    pub may_eject: bool,
    /// End of the last published frame.
    pub tail: u64,
    /// Start of the last published frame; equal to `tail` before the first.
    pub last: u64,
    /// Everything below this less `capacity` is overwritten, or may be at any moment.
    pub claim: u64,
    /// The publisher's words; its `close_seen` has no meaning.
    pub publisher: Role,
    /// How long a subscriber may hold the publisher back before it is ejected; `None`: for ever.
    pub eject_after: Option<Duration>,
    /// A subscriber sleeps.
    pub has_sleeper: bool,
    /// How often a subscriber has joined or left (modulo 2^32).
    pub changes: u32,
    /// The newest message; `None` before the first, or if the topic moved too fast to read it.
    pub newest: Option<Newest>,
    /// The slots in use, in their order. Lossy and latest subscribers need none, so they may be missing here.
    pub subscribers: Vec<Subscriber>,
    /// Whether the positions or the newest frame contradict each other, in words. Only of a topic that nobody uses: of a
    /// moving one it could be a snapshot's fault.
    pub damage: Option<String>,
}

/// The header of a topic's newest message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Newest {
    /// Its number; the first message of a topic has 1.
    pub seq: u64,
    /// When it was published, nanoseconds since 1970; 0 if its publisher does not stamp.
    pub time_ns: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Its type id.
    pub type_id: u32,
    /// Its tag.
    pub tag: u64,
}

/// A slot of a [`Topic`] that is in use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Subscriber {
    /// The slot's number.
    pub slot: u32,
    /// A subscriber is attached. If it is not `held` it died.
    pub active: bool,
    /// The publisher waits for it.
    pub gating: bool,
    /// Its cursor stays when it goes.
    pub durable: bool,
    /// The publisher has ejected it.
    pub ejected: bool,
    /// It reads the newest message only.
    pub latest: bool,
    /// How often the slot was taken (modulo 2^32).
    pub epoch: u32,
    /// What it calls itself; bytes that are not UTF-8 are shown as replacement characters.
    pub label: Option<String>,
    /// Start of the first frame that it has not released.
    pub cursor: u64,
    /// How far it is behind in bytes, at most the capacity: what lies farther back is overwritten.
    pub lag_bytes: u64,
    /// How many message numbers it is behind; `None` if its next message cannot be read any more, or just now.
    pub lag_messages: Option<u64>,
    /// How many messages it has lost.
    pub lost: u64,
    /// `seq` of its next message when it was ejected; 0 if it never was.
    pub eject_seq: u64,
    /// The publisher's epoch whose close it has seen; 0 is none.
    pub close_seen: u32,
    /// A living process has the slot.
    pub held: bool,
}

/// `moves`: somebody may be writing.
pub(super) fn look_at(file: BorrowedFd<'_>, topic: &TopicGeometry, moves: bool) -> Result<Topic> {
    // Before the positions: so no cursor is ahead of `tail` that was not when it was read.
    let subscribers = SubscribersWords::read(file, topic)?;
    let view = View { file, topic };
    let mut words = TopicWords::read(&read_page(file)?.0);
    let mut newest = None;
    // A frame that was overwritten while it was read is no message: the publisher is at least a message ahead then.
    for _ in 0..3 {
        newest = view.header(words.last, &words);
        match view.now() {
            Some(now) if newest.is_none() || now.has_overtaken(words.last, topic) => {
                (words, newest) = (now, None);
            }
            _ => break,
        }
    }
    let damage = if moves {
        None
    } else if !words.agree(topic) {
        let TopicWords { tail, last, claim, .. } = words;
        Some(format!("the positions {last}, {tail} and {claim} contradict each other"))
    } else if words.last != words.tail && newest.is_none() {
        Some(format!("the newest frame, at {}, claims more than is published", words.last))
    } else {
        None
    };
    let mut used = Vec::new();
    for (i, slot) in (0..).zip(&subscribers.slots) {
        // An epoch without a flag is what its last subscriber left.
        if slot.has(SLOT_ACTIVE | SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED) {
            used.push(view.subscriber(i, slot, &words, newest.as_ref())?);
        }
    }
    Ok(Topic {
        data_offset: topic.data_offset,
        capacity: topic.capacity,
        align: topic.align,
        subs_offset: topic.subs_offset,
        slots: topic.slots,
        lossy_only: topic.is_lossy_only(),
        may_eject: topic.may_eject(),
        tail: words.tail,
        last: words.last,
        claim: words.claim,
        publisher: Role { wait: subscribers.publisher_wait, ..words.publisher },
        eject_after: (words.eject_after != 0).then(|| Duration::from_nanos(words.eject_after)),
        has_sleeper: subscribers.word & WORD_ASLEEP != 0,
        changes: (subscribers.word >> 32) as u32,
        newest,
        subscribers: used,
        damage,
    })
}

/// A topic's file.
struct View<'a> {
    file: BorrowedFd<'a>,
    topic: &'a TopicGeometry,
}

impl View<'_> {
    fn now(&self) -> Option<TopicWords> {
        read_page(self.file).ok().map(|(page, _)| TopicWords::read(&page))
    }

    /// The header of the frame at a position, if there can be one. What it says is true only if it is not overtaken
    /// afterwards.
    fn header(&self, position: u64, words: &TopicWords) -> Option<Newest> {
        let TopicGeometry { data_offset, capacity, align, .. } = *self.topic;
        let published = words.tail.wrapping_sub(position);
        if !is_topic_position(position, align)
            || published == 0
            || published > capacity
            || words.has_overtaken(position, self.topic)
        {
            return None;
        }
        // It never straddles the end of the data: 32 bytes at a multiple of 32.
        let mut bytes = [0; TOPIC_FRAME_HEADER as usize];
        let read = fs::read_at(self.file, data_offset + (position & (capacity - 1)), &mut bytes);
        if read != Ok(bytes.len()) {
            return None;
        }
        let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let (len, type_id) = (number(0) as u32, (number(0) >> 32) as u32);
        if u64::from(len) > max_topic_message_len(capacity) || topic_frame_size(u64::from(len), align) > published {
            return None;
        }
        let (seq, time_ns) = (number(TOPIC_FRAME_SEQ), number(TOPIC_FRAME_TIME));
        Some(Newest { seq, time_ns, len, type_id, tag: number(8) })
    }

    fn subscriber(&self, i: u32, slot: &SlotWords, words: &TopicWords, newest: Option<&Newest>) -> Result<Subscriber> {
        // Its next message's number, if that is still there after it was read.
        let next = self.header(slot.cursor, words).map(|header| header.seq);
        let next = next.filter(|_| self.now().is_some_and(|now| !now.has_overtaken(slot.cursor, self.topic)));
        let lag_messages = if slot.cursor == words.tail {
            Some(0)
        } else {
            next.zip(newest).and_then(|(next, newest)| newest.seq.checked_sub(next)?.checked_add(1))
        };
        Ok(Subscriber {
            slot: i,
            active: slot.has(SLOT_ACTIVE),
            gating: slot.has(SLOT_GATING),
            durable: slot.has(SLOT_DURABLE),
            ejected: slot.has(SLOT_EJECTED),
            latest: slot.flags & SLOT_FLAG_LATEST != 0,
            epoch: slot_epoch(slot.state),
            label: slot.label(),
            cursor: slot.cursor,
            lag_bytes: words.tail.wrapping_sub(slot.cursor).min(self.topic.capacity),
            lag_messages,
            lost: slot.lost,
            eject_seq: slot.eject_seq,
            close_seen: slot.close_seen,
            held: lock::exclusively_held_by_another(self.file, BYTE_SLOT + u64::from(i))?,
        })
    }
}

#[cfg(test)]
mod tests;
