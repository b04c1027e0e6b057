//! Images that a correct publisher and correct subscribers leave, or that nobody has a business to refuse.

use super::super::image::{CLOSED, FLAGS, PAGE, PERSISTENT, hex, payload, run_u32, run_u64};
use super::super::model::{NameAfter, Run};
use super::{
    ACTIVE, CLAIM, CLOSE_SEEN, DURABLE, EJECT_AFTER, EJECT_SEQ, EJECTED, GATING, GATING_DURABLE, LAST, LOSSY_ONLY,
    List, MAY_EJECT, PUBLISHER_EPOCH, PUBLISHER_FLAGS, SLOT, STARTS, STATE, Side, TOPIC_FLAGS, Topic, TopicReader,
    refused,
};

pub fn all(list: &mut List) {
    frames(list);
    lives(list);
    publishers(list);
    subscribers(list);
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
    let mut older = topic.subscriber(Side::Latest, "Empty");
    older.messages = topic.messages[..1].to_vec();
    list.good(
        "topic-killed-before-last",
        "the publisher died between its stores of tail and last",
        &topic,
        vec![
            topic.publisher(),
            topic.subscriber(Side::Reliable, "Empty"),
            topic.subscriber(Side::Lossy, "Empty"),
            older,
        ],
    );

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    let (tail, seq) = (topic.tail, topic.seq);
    topic.image.u64(STARTS + 8, tail + 256).u64(CLAIM, 1024);
    (topic.tail, topic.seq) = (tail, seq);
    let mut publisher = topic.publisher();
    publisher.leaves.push(run_u64(STARTS + 8, tail));
    let about = "the publisher died with a frame that it had noted and not published; the claim lies ahead";
    let subscribers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| topic.subscriber(side, "Empty"));
    list.good("topic-killed-with-a-batch", about, &topic, [vec![publisher], subscribers.to_vec()].concat());

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"last words");
    topic.image.u32(PUBLISHER_FLAGS, CLOSED).u32(PUBLISHER_EPOCH, 3);
    let readers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| topic.subscriber(side, "Closed"));
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

/// `one` and `two`, of 64 bytes each.
fn sent() -> Topic {
    let mut topic = Topic::new(4096, 32, PAGE);
    topic.send(1, 1, b"one");
    topic.send(1, 2, b"two");
    topic
}

/// Bits of a word that must be set.
fn bits(at: u64, mask: u32) -> Run {
    Run { mask: Some(hex(&mask.to_le_bytes())), ..run_u32(at, mask) }
}

/// What a publisher finds and leaves besides its message.
fn publishers(list: &mut List) {
    let mut topic = sent();
    topic.image.u32(PUBLISHER_FLAGS, CLOSED).u32(PUBLISHER_EPOCH, u32::MAX).u64(EJECT_AFTER, 5).u32(topic.subs, 1);
    let mut reader = topic.publisher();
    let (epoch, eject_after, wait) = (run_u32(PUBLISHER_EPOCH, 1), run_u64(EJECT_AFTER, 0), run_u32(topic.subs, 0));
    reader.leaves.extend([epoch, eject_after, wait, bits(PUBLISHER_FLAGS, CLOSED)]);
    let about = "an epoch of 2^32 − 1 is followed by 1; what an earlier publisher left in its line is written anew";
    list.good("topic-publisher-line", about, &topic, vec![reader]);

    let topic = sent();
    let busy = TopicReader { held: vec![1], name_after: Some(NameAfter::Stays), ..refused(Side::Publisher, "Busy") };
    let mut reader = topic.subscriber(Side::Reliable, "Empty");
    (reader.held, reader.name_after) = (vec![1], Some(NameAfter::Stays));
    list.good("topic-publisher-lives", "the publisher's byte is locked", &topic, vec![busy, reader]);

    let mut topic = sent();
    topic.image.u64(CLAIM, 200);
    list.good("topic-claim-between-frames", "a claim is no position of a frame", &topic, topic.all("Empty"));

    let mut topic = sent();
    topic.image.u32(PUBLISHER_EPOCH, 3);
    let readers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| topic.subscriber(side, "PeerDead"));
    list.good("topic-publisher-died", "history, and nobody who locks the publisher's byte", &topic, readers.to_vec());

    let mut topic = sent();
    topic.image.u32(TOPIC_FLAGS, MAY_EJECT);
    list.good("topic-may-eject", "reliable subscribers copy", &topic, topic.all("Empty"));

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.image.u32(TOPIC_FLAGS, LOSSY_ONLY);
    (0..4).for_each(|i| topic.send(1, i, &payload(i, 992)));
    topic.slot(1, 0, ACTIVE | GATING, 0, "");
    let publisher = TopicReader { name_after: None, ..topic.publisher() };
    list.good("topic-lossy-only-slot", "no slot holds a publisher back there", &topic, vec![publisher]);

    let mut topic = Topic::new(4096, 32, PAGE);
    (0..4).for_each(|i| topic.send(1, i, &payload(i, 992)));
    topic.image.u64(CLAIM, 4096 + 256);
    topic.slot(1, 0, GATING_DURABLE, 0, "log");
    let publisher = TopicReader { end: Some("Full".into()), ..refused(Side::Publisher, "ok") };
    let mut lossy = topic.subscriber(Side::Lossy, "Empty");
    lossy.messages.remove(0);
    let mut log = topic.subscriber(Side::Reliable, "Empty");
    log.label = Some("log".into());
    let about = "a durable subscriber has received nothing, and its cursor is behind what the claim lets others read";
    let stays = |reader| TopicReader { name_after: Some(NameAfter::Stays), ..reader };
    list.good("topic-durable-full", about, &topic, vec![stays(publisher), stays(lossy), log]);
}

/// Labels, slots, and what a slot keeps.
fn subscribers(list: &mut List) {
    let stays = |reader| TopicReader { name_after: Some(NameAfter::Stays), ..reader };
    let labelled = |reader, label: &str| TopicReader { label: Some(label.into()), ..reader };
    let slot = |topic: &Topic, i: u64| topic.subs + SLOT + 0x80 * i;

    let mut topic = sent();
    topic.slot(0, 0, GATING_DURABLE, 0, "log2");
    let mut log = stays(labelled(topic.subscriber(Side::Reliable, "Empty"), "log"));
    log.leaves = vec![run_u64(slot(&topic, 0), 0), run_u64(slot(&topic, 0) + STATE, 5 << 32 | GATING_DURABLE)];
    list.good("topic-label-longer", "a label is compared whole", &topic, vec![log]);

    let mut topic = sent();
    let label = "0123456789abcdef".repeat(4);
    topic.slot(3, 64, GATING_DURABLE, 0, &label);
    let mut log = labelled(topic.subscriber(Side::Reliable, "Empty"), &label);
    log.messages.remove(0);
    log.leaves = vec![run_u64(slot(&topic, 3) + STATE, 6 << 32 | GATING_DURABLE)];
    list.good("topic-label-64", "a label of 64 bytes has no zero behind it", &topic, vec![log]);

    for (name, about, state) in [
        ("topic-label-lives", "a durable subscriber with this label lives", ACTIVE | GATING | DURABLE),
        ("topic-label-lives-not-durable", "a subscriber with this label lives, and is not durable", ACTIVE | GATING),
    ] {
        let mut topic = sent();
        topic.slot(2, 0, state, 0, "log");
        let log = TopicReader { held: vec![18], ..stays(labelled(refused(Side::Reliable, "Busy"), "log")) };
        let other = TopicReader { held: vec![18], ..stays(topic.subscriber(Side::Reliable, "Empty")) };
        list.good(name, about, &topic, vec![log, other]);
    }
    let mut topic = sent();
    topic.slot(2, 64, ACTIVE | GATING, 0, "log");
    let log = labelled(topic.subscriber(Side::Reliable, "Empty"), "log");
    list.good(
        "topic-label-of-a-dead",
        "its subscriber died, and was not durable: it counts no more",
        &topic,
        vec![log],
    );

    let mut topic = sent();
    (0..4).for_each(|i| topic.slot(i, 0, GATING_DURABLE, 0, &format!("log {i}")));
    let busy = [refused(Side::Reliable, "Busy"), labelled(refused(Side::Reliable, "Busy"), "log")].map(stays);
    let lossy = stays(topic.subscriber(Side::Lossy, "Empty"));
    let about = "all slots are kept for durable subscribers; a lossy one does without";
    list.good("topic-slots-durable", about, &topic, [busy.to_vec(), vec![lossy]].concat());

    let topic = sent();
    let mut reliable = TopicReader { held: vec![16, 17, 18], ..stays(topic.subscriber(Side::Reliable, "Empty")) };
    reliable.leaves = (0..4).map(|i| run_u64(slot(&topic, i) + STATE, if i == 3 { 1 << 32 } else { 0 })).collect();
    let others = [Side::Lossy, Side::Latest].map(|side| {
        let mut reader = topic.subscriber(side, "Empty");
        reader.leaves = (0..2).map(|i| run_u64(slot(&topic, i) + STATE, 0)).collect();
        reader
    });
    let about = "a reliable subscriber takes the slot that nobody has locked, the others none of the lower half";
    list.good("topic-slots-taken", about, &topic, [vec![reliable], others.to_vec()].concat());

    for (name, about, seen, end, after) in [
        ("topic-close-unseen", "a durable subscriber has not been told of the close", 2, "Closed", NameAfter::Stays),
        ("topic-close-seen", "a close is delivered once", 3, "Empty", NameAfter::Gone),
    ] {
        let mut topic = sent();
        topic.image.u32(PUBLISHER_FLAGS, CLOSED).u32(PUBLISHER_EPOCH, 3);
        topic.slot(0, topic.tail, GATING_DURABLE, seen, "log");
        let other = TopicReader { name_after: Some(after), ..topic.subscriber(Side::Lossy, "Closed") };
        let mut log = labelled(topic.subscriber(Side::Reliable, end), "log");
        log.messages.clear();
        log.leaves = vec![run_u32(slot(&topic, 0) + CLOSE_SEEN, 3)];
        list.good(name, about, &topic, vec![other, log]);
    }

    let mut topic = Topic::new(4096, 32, PAGE);
    topic.image.u32(TOPIC_FLAGS, MAY_EJECT);
    (0..6).for_each(|i| topic.send(1, i, &payload(i, 992)));
    topic.messages.drain(..2);
    topic.slot(1, 0, DURABLE | EJECTED, 0, "log");
    topic.image.u64(slot(&topic, 1) + EJECT_SEQ, 1);
    let mut log = labelled(topic.subscriber(Side::Reliable, "Empty"), "log");
    (log.lagged, log.leaves) = (Some("2".into()), vec![run_u64(slot(&topic, 1), topic.tail)]);
    let about = "a durable subscriber was ejected before message 1: two are gone";
    list.good("topic-durable-ejected", about, &topic, vec![log, stays(topic.subscriber(Side::Reliable, "Empty"))]);
}
