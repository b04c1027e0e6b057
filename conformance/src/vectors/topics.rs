//! The images of topics, each with what its readers must find: section 19 of `docs/ABI.md`, in a file of their own, because
//! not every language has topics.

use serde::{Deserialize, Serialize};

use super::image::{
    ALIGN, BLOCKS, CAPACITY, CLOSED, DATA_OFFSET, FLAGS, Image, KIND, PAGE, PERSISTENT, VERSION_MINOR, frame_header,
    payload, run_u64,
};
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
    /// `ok`, or the name of the error that opening gives.
    pub open: String,
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
const LOSSY_ONLY: u32 = 1;
/// The kind of section 2.
const TOPIC: u32 = 5;
/// Inside the subscribers' area, and inside a slot.
const SLOT: u64 = 0x1000;
const STATE: u64 = 0x08;
const CLOSE_SEEN: u64 = 0x14;
const LABEL: u64 = 0x40;
const GATING_DURABLE: u64 = 6;

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
        open: error.into(),
        messages: Vec::new(),
        end: None,
        leaves: Vec::new(),
        name_after: None,
    }
}

/// Every image.
pub fn all() -> Topics {
    let mut list = List(Vec::new());
    frames(&mut list);
    lives(&mut list);
    headers(&mut list);
    hostile(&mut list);
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

fn frames(list: &mut List) {
    let topic = Topic::new(4096, 32, PAGE);
    list.good("topic-new", "a topic to which nobody has attached yet", &topic, topic.all("Empty"));
    for (name, align, start, about) in [
        ("topic-example-32", 32, 0, "the page's example: 'hello', then a message of length 0"),
        ("topic-example-across", 32, 4064, "the same at the end of the data"),
        ("topic-align-64", 64, 32, "payloads at multiples of 64"),
        ("topic-align-2048", 2048, 2016, "the largest alignment of this capacity: a frame is half of it"),
        ("topic-below-2-to-the-32", 32, (1 << 32) - 32, "positions cross 2^32"),
        ("topic-below-2-to-the-64", 32, u64::MAX - 31, "positions cross 2^64 and begin again at 0"),
    ] {
        let mut topic = Topic::new(4096, align, PAGE);
        topic.start(start);
        topic.send(7, 0x1122_3344_5566_7788, b"hello");
        topic.send(8, 0, b"");
        list.good(name, about, &topic, topic.all("Empty"));
    }
    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, &payload(0, 2016));
    topic.send(1, 2, &payload(1, 2016));
    list.good("topic-longest-messages", "two messages of half of the capacity", &topic, topic.all("Empty"));
    let mut topic = Topic::new(8192, 32, PAGE);
    topic.send(1, 1, b"one");
    topic.seq += 41;
    topic.send(1, 2, b"43");
    list.good("topic-known-losses", "the publisher knew of 41 losses", &topic, topic.all("Empty"));
    let mut topic = Topic::new(4096, 32, 0x20_0000);
    topic.image.put(0x20_0000 - 64, &[0xA5; 64]).put(0x40_0000 - 64, &[0xA5; 64]);
    topic.send(1, 2, b"far");
    list.good(
        "topic-of-huge-pages",
        "each part at a multiple of 2 MiB, garbage between them",
        &topic,
        topic.all("Empty"),
    );
}

fn lives(list: &mut List) {
    // 6 frames of 1024 bytes in 4096: of the first two nothing is left, and the third is in the claim's way.
    let mut topic = Topic::new(4096, 32, PAGE);
    for i in 0..6 {
        topic.send(1, i, &payload(i, 992));
    }
    topic.messages.drain(..2);
    list.good("topic-second-lap", "the oldest messages are overwritten", &topic, topic.all("Empty"));

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    let first_last = 0;
    topic.send(1, 2, b"two");
    topic.image.u64(LAST, first_last);
    list.good(
        "topic-killed-before-last",
        "the publisher died between its stores of tail and last",
        &topic,
        vec![topic.publisher()],
    );

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    let (tail, seq) = (topic.tail, topic.seq);
    topic.image.u64(STARTS + 8, tail + 256).u64(CLAIM, 1024);
    (topic.tail, topic.seq) = (tail, seq);
    let mut publisher = topic.publisher();
    publisher.leaves.push(run_u64(STARTS + 8, tail));
    let about = "the publisher died with a frame that it had noted and not published; the claim lies ahead";
    list.good("topic-killed-with-a-batch", about, &topic, vec![publisher]);

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"last words");
    topic.image.u32(PUBLISHER_FLAGS, CLOSED).u32(PUBLISHER_EPOCH, 3);
    let readers = [Side::Reliable, Side::Lossy].map(|side| topic.subscriber(side, "Closed"));
    list.good("topic-closed", "history, and then the end", &topic, readers.to_vec());

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    let cursor = topic.tail;
    topic.send(1, 2, b"two");
    topic.slot(2, cursor, GATING_DURABLE, 0, "log");
    let mut log = topic.subscriber(Side::Reliable, "Empty");
    log.messages.remove(0);
    log.messages[0].lost = "0".into();
    let slot = topic.subs + SLOT + 0x80 * 2;
    log.leaves = vec![run_u64(slot, topic.tail), run_u64(slot + STATE, 6 << 32 | GATING_DURABLE)];
    log.label = Some("log".into());
    let mut other = topic.subscriber(Side::Reliable, "Empty");
    other.name_after = Some(NameAfter::Stays);
    let about = "a durable subscriber resumes at its cursor; another one leaves what waits for it";
    list.good("topic-durable-behind", about, &topic, vec![log, other]);

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.image.u32(TOPIC_FLAGS, LOSSY_ONLY);
    topic.send(1, 1, b"one");
    let mut reliable = refused(Side::Reliable, "Unsupported");
    reliable.name_after = None;
    list.good(
        "topic-lossy-only",
        "no subscriber may hold the publisher back",
        &topic,
        vec![reliable, topic.subscriber(Side::Lossy, "Empty")],
    );

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.image.u32(FLAGS, PERSISTENT);
    let mut reader = topic.subscriber(Side::Lossy, "Empty");
    reader.name_after = Some(NameAfter::Stays);
    list.good("topic-persistent", "it stays", &topic, vec![reader]);
}

/// The rows of section 16 about a topic's numbers.
fn headers(list: &mut List) {
    type Change = fn(&mut Image) -> &mut Image;
    let rows: [(&str, &str, &str, Change); 18] = [
        ("kind-6", "AbiMismatch", "a later kind", |i| i.u32(KIND, 6)),
        ("data-offset-0", "Corrupt", "data over the header page", |i| i.u64(BLOCK, 0)),
        ("data-offset-unaligned", "Corrupt", "data not on a page", |i| i.u64(BLOCK, 0x3020)),
        ("data-offset-beyond", "Corrupt", "data that ends behind the file", |i| i.u64(BLOCK, 0x4000)),
        ("data-offset-overflows", "Corrupt", "data_offset + capacity = 2^64", |i| i.u64(BLOCK, 4096u64.wrapping_neg())),
        ("capacity-0", "Corrupt", "no data", |i| i.u64(BLOCK + CAPACITY, 0)),
        ("capacity-3-pages", "Corrupt", "no power of two", |i| {
            i.resize(0x6000).u64(0x20, 0x6000).u64(BLOCK + CAPACITY, 0x3000)
        }),
        ("align-16", "Corrupt", "the alignment of a ring", |i| i.u32(BLOCK + ALIGN, 16)),
        ("align-48", "Corrupt", "no power of two", |i| i.u32(BLOCK + ALIGN, 48)),
        ("align-4096", "Corrupt", "more than half of the capacity", |i| i.u32(BLOCK + ALIGN, 4096)),
        ("slots-0", "Corrupt", "no slots", |i| i.u32(SLOTS, 0)),
        ("slots-1025", "Corrupt", "one slot too many", |i| i.u32(SLOTS, 1025)),
        ("slots-over-the-data", "Corrupt", "slots that reach into the data", |i| i.u32(SLOTS, 64)),
        ("subs-offset-0", "Corrupt", "slots in the header page", |i| i.u64(SUBS_OFFSET, 0)),
        ("subs-offset-unaligned", "Corrupt", "an area not on a page", |i| i.u64(SUBS_OFFSET, 0x1080)),
        ("subs-offset-behind", "Corrupt", "an area behind the data", |i| i.u64(SUBS_OFFSET, 0x4000)),
        ("subs-offset-overflows", "Corrupt", "an area that ends at 2^64 and more", |i| {
            i.u64(SUBS_OFFSET, 4096u64.wrapping_neg())
        }),
        ("later-flag", "AbiMismatch", "a creator's flag that version 1.1 does not know", |i| i.u32(TOPIC_FLAGS, 4)),
    ];
    for (name, error, about, change) in rows {
        let mut topic = Topic::new(4096, 32, PAGE);
        assert_eq!((topic.subs, topic.data), (0x1000, 0x3000));
        change(&mut topic.image);
        let sides = [Side::Publisher, Side::Reliable, Side::Lossy, Side::Latest];
        let readers = sides.map(|side| TopicReader { name_after: Some(NameAfter::Stays), ..refused(side, error) });
        list.push(Class::Hostile, &format!("topic-{name}"), about, &topic, readers.to_vec());
    }
}

/// Positions and frames that no publisher writes.
fn hostile(list: &mut List) {
    let sent = || {
        let mut topic = Topic::new(4096, 32, PAGE);
        topic.send(1, 1, b"one");
        topic.send(1, 2, b"two");
        topic
    };
    let publisher = || TopicReader { name_after: Some(NameAfter::Stays), ..refused(Side::Publisher, "Corrupt") };
    let positions: [(&str, &str, u64, u64, u64); 6] = [
        ("tail-unaligned", "tail is no position of a frame", 136, 64, 256),
        ("last-unaligned", "last is no position of a frame", 128, 72, 256),
        ("last-ahead", "last is ahead of tail", 128, 192, 256),
        ("last-is-tail", "last is tail, and it is not the first position", 128, 128, 256),
        ("claim-behind", "claim is behind tail", 128, 64, 96),
        ("claim-far-ahead", "claim is more than the capacity ahead", 128, 64, 64 + 4096 + 32),
    ];
    for (name, about, tail, last, claim) in positions {
        let mut topic = sent();
        topic.image.u64(TAIL, tail).u64(LAST, last).u64(CLAIM, claim);
        list.push(Class::Hostile, &format!("topic-{name}"), about, &topic, vec![publisher()]);
    }
    for (name, about, len, seq) in [
        ("length-past-tail", "the newest frame ends behind tail", 33, 2),
        ("length-2-to-the-31", "2^31 − 32 bytes", (1 << 31) - 32, 2),
        ("length-max", "2^32 − 1 bytes: 31 with the header, in 32 bits", u32::MAX, 2),
    ] {
        let mut topic = sent();
        topic.seq = seq;
        topic.header(64, len, 1, 2);
        let subscribers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| {
            let keep = if side == Side::Latest { 0 } else { 1 };
            let mut reader = topic.subscriber(side, "Corrupt");
            reader.messages = topic.messages[..keep].to_vec();
            reader.name_after = None;
            reader
        });
        // History alone keeps no topic, damaged or not.
        let publisher = TopicReader { name_after: None, ..publisher() };
        let readers = [vec![publisher], subscribers.to_vec()].concat();
        list.push(Class::Hostile, &format!("topic-{name}"), about, &topic, readers);
    }
    let mut topic = sent();
    topic.seq = 1;
    topic.header(64, 3, 1, 2);
    topic.image.u64(LAST, 0);
    let subscribers = [Side::Reliable, Side::Lossy].map(|side| {
        let mut reader = topic.subscriber(side, "Corrupt");
        reader.messages.truncate(1);
        reader.name_after = None;
        reader
    });
    let publisher = TopicReader { name_after: None, ..publisher() };
    let readers = [vec![publisher.clone()], subscribers.to_vec()].concat();
    list.push(Class::Hostile, "topic-seq-twice", "two frames with the same number", &topic, readers);
    let mut topic = sent();
    topic.seq = u64::MAX;
    topic.send(1, 3, b"the last number");
    let subscribers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| refused(side, "Corrupt"));
    let readers = [vec![publisher], subscribers.to_vec()].concat();
    let about = "2^64 − 1, a number that no publisher reaches";
    list.push(Class::Hostile, "topic-seq-max", about, &topic, readers);
    let mut topic = sent();
    topic.slot(1, 72, GATING_DURABLE, 0, "log");
    let log = TopicReader {
        label: Some("log".into()),
        name_after: Some(NameAfter::Stays),
        ..refused(Side::Reliable, "Corrupt")
    };
    list.push(
        Class::Hostile,
        "topic-durable-unaligned",
        "the cursor to resume at is no position of a frame",
        &topic,
        vec![log],
    );
}
