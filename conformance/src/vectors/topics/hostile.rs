//! Images that no correct peer makes.

use super::super::image::{ALIGN, CAPACITY, Image, KIND, PAGE, run_u64};
use super::super::model::{Class, NameAfter};
use super::{
    ACTIVE, BLOCK, CLAIM, DURABLE, EJECTED, GATING, GATING_DURABLE, LAST, List, SLOT, SLOTS, STARTS, STATE,
    SUBS_OFFSET, Side, TAIL, TOPIC_FLAGS, Topic, TopicReader, refused,
};

pub fn all(list: &mut List) {
    headers(list);
    hostile(list);
    newest(list);
    slots(list);
}

/// The rows of section 16 about a topic's numbers.
fn headers(list: &mut List) {
    type Change = fn(&mut Image) -> &mut Image;
    let rows: [(&str, &str, &str, Change); 21] = [
        ("kind-6", "AbiMismatch", "a later kind", |i| i.u32(KIND, 6)),
        ("data-offset-0", "Corrupt", "data over the header page", |i| i.u64(BLOCK, 0)),
        ("data-offset-unaligned", "Corrupt", "data not on a page", |i| i.u64(BLOCK, 0x3020)),
        ("data-offset-beyond", "Corrupt", "data that ends behind the file", |i| i.u64(BLOCK, 0x4000)),
        ("data-offset-overflows", "Corrupt", "data_offset + capacity = 2^64", |i| i.u64(BLOCK, 4096u64.wrapping_neg())),
        ("capacity-0", "Corrupt", "no data", |i| i.u64(BLOCK + CAPACITY, 0)),
        ("capacity-3-pages", "Corrupt", "no power of two", |i| {
            i.resize(0x6000).u64(0x20, 0x6000).u64(BLOCK + CAPACITY, 0x3000)
        }),
        ("capacity-2048", "AbiMismatch", "less than a page", |i| i.u64(BLOCK + CAPACITY, 2048)),
        ("align-0", "Corrupt", "no alignment", |i| i.u32(BLOCK + ALIGN, 0)),
        ("align-8192", "Corrupt", "more than 4096, though half of the capacity", |i| {
            i.resize(0x7000).u64(0x20, 0x7000).u64(BLOCK + CAPACITY, 0x4000).u32(BLOCK + ALIGN, 8192)
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
        let mut readers = vec![publisher()];
        // Any claim is possible at some moment, and who reads in order does not look at the newest message but to begin.
        let found = |side| TopicReader { name_after: None, ..topic.subscriber(side, "Empty") };
        match name {
            "last-ahead" => readers.extend([Side::Reliable, Side::Lossy].map(|side| nothing(side, "Corrupt"))),
            "last-is-tail" => {
                readers.extend([found(Side::Reliable), found(Side::Lossy), nothing(Side::Latest, "Empty")])
            }
            "claim-behind" => readers.extend([Side::Reliable, Side::Lossy, Side::Latest].map(found)),
            _ => {}
        }
        list.push(Class::Hostile, &format!("topic-{name}"), about, &topic, readers);
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

/// Two messages.
fn sent() -> Topic {
    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    topic.send(1, 2, b"two");
    topic
}

/// Nothing is received, and this ends it.
fn nothing(side: Side, end: &str) -> TopicReader {
    TopicReader { end: Some(end.into()), ..refused(side, "ok") }
}

/// The newest frame, and what leads to it.
fn newest(list: &mut List) {
    let corrupt = |side| nothing(side, "Corrupt");
    let publisher = refused(Side::Publisher, "Corrupt");
    let mut hostile = |name: &str, about: &str, topic: &Topic, readers: Vec<TopicReader>| {
        list.push(Class::Hostile, &format!("topic-{name}"), about, topic, readers);
    };

    let mut topic = sent();
    topic.header(0, (1 << 31) - 34, 1, 1);
    topic.image.u64(TAIL, 1 << 40).u64(LAST, 0).u64(CLAIM, 256);
    let about = "tail is far ahead, the claim is not, and the newest frame is said to have 2^31 − 34 bytes";
    hostile("length-past-the-mapping", about, &topic, vec![publisher.clone(), corrupt(Side::Latest)]);

    let mut topic = sent();
    topic.header(0, 4096, 1, 1);
    topic.image.u64(TAIL, 4096 + 32).u64(LAST, 0).u64(CLAIM, 4096);
    let about = "the newest frame is as long as tail says, and longer than the data";
    hostile("length-past-the-data", about, &topic, vec![publisher.clone(), corrupt(Side::Latest)]);

    let mut topic = sent();
    topic.image.u64(TAIL, 8192).u64(LAST, 64).u64(CLAIM, 8192);
    let readers = vec![publisher.clone(), corrupt(Side::Latest), corrupt(Side::Lossy)];
    hostile("last-a-lap-behind", "last is more than the capacity behind tail, and overwritten", &topic, readers);

    let mut topic = sent();
    topic.image.u64(CLAIM, 64 + 4096 + 32);
    let readers = vec![corrupt(Side::Latest), corrupt(Side::Lossy)];
    hostile("nothing-intact", "the claim says that even the newest frame is overwritten", &topic, readers);

    for (name, about, seq) in [
        ("seq-0", "number 0, which no message has", 0),
        ("seq-2-to-the-63", "2^63, a number that no publisher reaches", 1 << 63),
    ] {
        let mut topic = sent();
        topic.seq = seq;
        topic.header(64, 3, 1, 2);
        let mut readers = vec![publisher.clone()];
        if seq == 0 {
            let mut first = [Side::Reliable, Side::Lossy].map(corrupt).to_vec();
            first.iter_mut().for_each(|reader| reader.messages = topic.messages[..1].to_vec());
            readers.append(&mut first);
            readers.push(corrupt(Side::Latest));
        }
        hostile(name, about, &topic, readers);
    }

    let mut topic = sent();
    topic.seq = 2;
    topic.header(64, (1 << 31) - 32, 1, 2);
    topic.image.u64(LAST, 0);
    let readers = [Side::Reliable, Side::Lossy]
        .map(|side| TopicReader { messages: topic.messages[..1].to_vec(), ..corrupt(side) });
    let about = "last is a frame behind, and that frame has 2^31 − 32 bytes";
    hostile("walk-length", about, &topic, [vec![publisher], readers.to_vec()].concat());

    let mut topic = sent();
    topic.image.u64(LAST, 192);
    let reader = corrupt(Side::Latest);
    hostile("last-ahead-of-tail", "the newest frame begins after tail", &topic, vec![reader]);

    let mut topic = sent();
    for i in 0..8 {
        topic.image.u64(STARTS + 16 * i, 1 << 40).u64(STARTS + 16 * i + 8, 4096u64.wrapping_neg());
    }
    let mut readers = [Side::Reliable, Side::Lossy].map(|side| topic.subscriber(side, "Empty"));
    readers.iter_mut().for_each(|reader| {
        reader.messages.remove(0);
    });
    let about = "entries far ahead and far behind are not looked at; the newest message is the oldest that is found";
    hostile("starts-far-away", about, &topic, readers.to_vec());
}

/// Slots that no subscriber leaves so.
fn slots(list: &mut List) {
    let mut hostile = |name: &str, about: &str, topic: &Topic, readers: Vec<TopicReader>| {
        list.push(Class::Hostile, &format!("topic-{name}"), about, topic, readers);
    };
    let log = |error: &str| TopicReader { label: Some("log".into()), ..refused(Side::Reliable, error) };

    let mut topic = sent();
    topic.slot(0, 1 << 40, ACTIVE | GATING, 0, "");
    topic.slot(1, 1 << 63, ACTIVE | GATING, 0, "");
    let about = "cursors that are nowhere near do not hold the publisher back";
    hostile("slots-far-away", about, &topic, vec![TopicReader { name_after: None, ..topic.publisher() }]);

    let mut topic = sent();
    topic.image.u64(topic.subs + 0x80, u64::MAX).u32(topic.subs, u32::MAX);
    let about = "words of garbage in the subscribers' area: a false sleeper costs a wake-up";
    hostile("words-of-garbage", about, &topic, topic.all("Empty"));

    let mut topic = sent();
    topic.slot(0, 0, 0xFFFF_FFF0, 0, "log");
    let mut reader = topic.subscriber(Side::Reliable, "Empty");
    reader.leaves = vec![run_u64(topic.subs + SLOT + STATE, 6 << 32)];
    let about = "bits of a state that nobody knows: the slot is free";
    hostile("slot-later-bits", about, &topic, vec![reader]);

    for (name, about, cursor) in [
        ("durable-ahead", "the cursor to resume at is ahead of tail", 160),
        (
            "durable-a-lap-behind",
            "the cursor to resume at is more than the capacity behind tail",
            4064u64.wrapping_neg(),
        ),
    ] {
        let mut topic = sent();
        topic.slot(1, cursor, GATING_DURABLE, 0, "log");
        hostile(name, about, &topic, vec![log("Corrupt")]);
    }

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, &[0xFF; 480]);
    topic.slot(1, 64, GATING_DURABLE, 0, "log");
    let reader = TopicReader { end: Some("Corrupt".into()), ..log("ok") };
    hostile("durable-in-a-payload", "the cursor to resume at lies in a payload of all ones", &topic, vec![reader]);

    let mut topic = sent();
    topic.slot(1, 64, DURABLE | EJECTED, 0, "log");
    let about = "a slot says EJECTED in a topic whose publisher may not eject";
    hostile("ejected-without-may-eject", about, &topic, vec![log("Corrupt")]);
}
