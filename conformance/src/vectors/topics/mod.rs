//! The images of topics, each with what its readers must find: section 19 of `docs/ABI.md`, in a file of their own, because
//! not every language has topics.

mod good;
mod hostile;
mod later;

use serde::{Deserialize, Serialize};

use super::image::{ALIGN, BLOCKS, CAPACITY, DATA_OFFSET, Image, VERSION_MINOR, frame_header, run_u64};
use super::model::{Class, NameAfter, Run};

/// All of `topics.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topics {
    /// The version of the format that these are written after.
    pub format: String,
    /// Every image.
    pub topics: Vec<TopicImage>,
}

/// One image and what each reader must find in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicImage {
    /// Unique among the images.
    pub name: String,
    /// What is special about it.
    pub about: String,
    /// Good or hostile.
    pub class: Class,
    /// The file's length in bytes.
    pub size: u64,
    /// Everything in the file that is not 0.
    pub bytes: Vec<Run>,
    /// What each reader must find. Each begins with the image as it is here.
    pub readers: Vec<TopicReader>,
}

/// A side of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Publishes one empty message with type id 1.
    Publisher,
    /// Receives all from the oldest message on; with a label, as a durable subscriber.
    Reliable,
    /// Receives all from the oldest message on.
    Lossy,
    /// Receives the newest message.
    Latest,
}

/// What one reader must find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicReader {
    /// What it is.
    #[serde(rename = "as")]
    pub side: Side,
    /// Of a reliable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The bytes of the file that somebody alive has locked exclusively.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<i64>,
    /// `ok`, or the name of the error that opening gives.
    pub open: String,
    /// Written one after the other once it is attached and before it looks again; a run of 4 or 8 bytes by one atomic store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Run>,
    /// A subscriber: its first receive is `Lagged`, with this number, decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lagged: Option<String>,
    /// What a subscriber receives, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<TopicMessage>,
    /// A subscriber: the error that a receive gives after that, without waiting; `Corrupt` may come from opening already. A
    /// publisher: `sent`, or the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// What the file holds once the reader has closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<Run>,
    /// Whether the name is still there after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_after: Option<NameAfter>,
}

/// A message as it must be received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicMessage {
    /// The frame's.
    pub type_id: u32,
    /// Decimal, because JSON's numbers are not 64 bits wide everywhere.
    pub tag: String,
    /// Decimal.
    pub seq: String,
    /// How many were lost right before it, decimal.
    pub lost: String,
    /// Bytes of payload.
    pub len: u64,
    /// Of the payload, as zlib and gzip count it.
    pub crc32: u32,
}

impl TopicReader {
    /// As in reports.
    pub fn name(&self) -> String {
        let side = format!("{:?}", self.side).to_lowercase();
        self.label.as_ref().map_or(side.clone(), |label| format!("{side} '{label}'"))
    }
}

// Section 19, the topic block.
const BLOCK: u64 = BLOCKS[0];
const SLOTS: u64 = BLOCK + 0x020;
const TOPIC_FLAGS: u64 = BLOCK + 0x024;
const SUBS_OFFSET: u64 = BLOCK + 0x028;
const TAIL: u64 = BLOCK + 0x080;
const LAST: u64 = BLOCK + 0x088;
const CLAIM: u64 = BLOCK + 0x100;
const STARTS: u64 = BLOCK + 0x180;
const PUBLISHER_FLAGS: u64 = BLOCK + 0x204;
const PUBLISHER_EPOCH: u64 = BLOCK + 0x208;
const EJECT_AFTER: u64 = BLOCK + 0x210;
const LOSSY_ONLY: u32 = 1;
const MAY_EJECT: u32 = 2;
/// The kind of section 2.
const TOPIC: u32 = 5;
/// Inside the subscribers' area, and inside a slot.
const SLOT: u64 = 0x1000;
const STATE: u64 = 0x08;
const CLOSE_SEEN: u64 = 0x14;
const EJECT_SEQ: u64 = 0x20;
const LABEL: u64 = 0x40;
const ACTIVE: u64 = 1;
const GATING: u64 = 2;
const DURABLE: u64 = 4;
const EJECTED: u64 = 8;
const GATING_DURABLE: u64 = GATING | DURABLE;

/// What has been written into an image, as a publisher would have.
#[derive(Clone, Debug)]
struct Topic {
    image: Image,
    subs: u64,
    data: u64,
    capacity: u64,
    align: u64,
    tail: u64,
    seq: u64,
    messages: Vec<TopicMessage>,
}

impl Topic {
    /// A new topic of 4 slots. `granule` is the creator's page.
    fn new(capacity: u64, align: u64, granule: u64) -> Self {
        let (subs, slots) = (granule, 4);
        let data = (subs + SLOT + 0x80 * slots).next_multiple_of(granule);
        let mut image = Image::header(TOPIC, data + capacity);
        image.u16(VERSION_MINOR, 1).u64(BLOCK + DATA_OFFSET, data).u64(BLOCK + CAPACITY, capacity);
        image.u32(BLOCK + ALIGN, align as u32).u32(SLOTS, slots as u32).u64(SUBS_OFFSET, subs);
        let mut topic = Self { image, subs, data, capacity, align, tail: 0, seq: 1, messages: Vec::new() };
        topic.start(align - 32);
        topic
    }

    /// Nothing is there, and the first frame begins at this position.
    fn start(&mut self, position: u64) {
        self.tail = position;
        self.image.u64(TAIL, position).u64(LAST, position).u64(CLAIM, position);
        for i in 0..16 {
            self.image.u64(STARTS + 8 * i, position);
        }
    }

    fn frame(&self, len: u64) -> u64 {
        (32 + len).next_multiple_of(self.align)
    }

    fn write(&mut self, position: u64, bytes: &[u8]) {
        for (i, &byte) in bytes.iter().enumerate() {
            let at = self.data + (position.wrapping_add(i as u64) & (self.capacity - 1));
            self.image.put(at, &[byte]);
        }
    }

    /// A frame at the end, whatever its length says.
    fn header(&mut self, position: u64, len: u32, type_id: u32, tag: u64) {
        self.write(position, &frame_header(len, type_id, tag));
        self.write(position.wrapping_add(16), &self.seq.to_le_bytes());
    }

    /// One message, published by itself.
    fn send(&mut self, type_id: u32, tag: u64, payload: &[u8]) {
        let (pos, size, chunk) = (self.tail, self.frame(payload.len() as u64), self.capacity / 16);
        self.header(pos, payload.len() as u32, type_id, tag);
        self.write(pos.wrapping_add(32), payload);
        let entry = STARTS + 8 * ((pos & (self.capacity - 1)) / chunk);
        let noted = u64::from_le_bytes(self.image.read(entry, 8).try_into().expect("8 bytes"));
        if noted / chunk != pos / chunk {
            self.image.u64(entry, pos);
        }
        self.tail = pos.wrapping_add(size);
        // Whole parts, but never over the message that was the newest until now. These are distances from it.
        let newest = u64::from_le_bytes(self.image.read(LAST, 8).try_into().expect("8 bytes"));
        let want = (self.tail.wrapping_add(chunk - 1) & !(chunk - 1)).wrapping_sub(newest);
        let claim = newest.wrapping_add(want.min(self.capacity));
        self.image.u64(TAIL, self.tail).u64(LAST, pos).u64(CLAIM, claim);
        let seq = self.seq;
        let expected = self.messages.last().map_or(seq, |last| last.seq.parse::<u64>().expect("a number") + 1);
        self.messages.push(TopicMessage {
            type_id,
            tag: tag.to_string(),
            seq: seq.to_string(),
            lost: (seq - expected).to_string(),
            len: payload.len() as u64,
            crc32: crc32fast::hash(payload),
        });
        self.seq = self.seq.wrapping_add(1);
    }

    fn slot(&mut self, i: u64, cursor: u64, flags: u64, close_seen: u32, label: &str) {
        let at = self.subs + SLOT + 0x80 * i;
        self.image.u64(at, cursor).u64(at + STATE, 5 << 32 | flags).u32(at + CLOSE_SEEN, close_seen);
        self.image.put(at + LABEL, label.as_bytes());
    }

    fn subscriber(&self, side: Side, end: &str) -> TopicReader {
        let newest = self.messages.len() - usize::from(!self.messages.is_empty());
        let mut messages = if side == Side::Latest { self.messages[newest..].to_vec() } else { self.messages.clone() };
        if let Some(first) = messages.first_mut() {
            first.lost = "0".into();
        }
        TopicReader { messages, end: Some(end.into()), name_after: Some(NameAfter::Gone), ..refused(side, "ok") }
    }

    fn publisher(&self) -> TopicReader {
        let tail = self.tail.wrapping_add(self.frame(0));
        let seq_at = self.data + (self.tail.wrapping_add(16) & (self.capacity - 1));
        let leaves = vec![run_u64(TAIL, tail), run_u64(LAST, self.tail), run_u64(seq_at, self.seq)];
        let (end, name_after) = (Some("sent".into()), Some(NameAfter::Gone));
        TopicReader { end, leaves, name_after, ..refused(Side::Publisher, "ok") }
    }

    /// Every kind of reader.
    fn all(&self, end: &str) -> Vec<TopicReader> {
        let subscribers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| self.subscriber(side, end));
        [vec![self.publisher()], subscribers.to_vec()].concat()
    }
}

/// Opening gives this error.
fn refused(side: Side, error: &str) -> TopicReader {
    TopicReader {
        side,
        label: None,
        held: Vec::new(),
        open: error.into(),
        then: Vec::new(),
        lagged: None,
        messages: Vec::new(),
        end: None,
        leaves: Vec::new(),
        name_after: None,
    }
}

/// Every image.
pub fn all() -> Topics {
    let mut list = List(Vec::new());
    good::all(&mut list);
    hostile::all(&mut list);
    later::all(&mut list);
    Topics { format: "1.1".into(), topics: list.0 }
}

struct List(Vec<TopicImage>);

impl List {
    fn push(&mut self, class: Class, name: &str, about: &str, topic: &Topic, readers: Vec<TopicReader>) {
        assert!(self.0.iter().all(|other| other.name != name), "two images are called {name}");
        let (name, about, bytes) = (name.into(), about.into(), topic.image.runs());
        self.0.push(TopicImage { name, about, class, size: topic.image.size, bytes, readers });
    }

    fn good(&mut self, name: &str, about: &str, topic: &Topic, readers: Vec<TopicReader>) {
        self.push(Class::Good, name, about, topic, readers);
    }
}
