//! What the publisher writes after a subscriber has attached, good and hostile.

use super::super::image::{CLOSED, PAGE, frame_header, payload, run, run_u32, run_u64};
use super::super::model::{Class, Run};
use super::{
    ACTIVE, CLAIM, EJECT_SEQ, EJECTED, LAST, List, MAY_EJECT, PUBLISHER_EPOCH, PUBLISHER_FLAGS, SLOT, STARTS, STATE,
    Side, TAIL, TOPIC_FLAGS, Topic, TopicMessage, TopicReader, refused,
};

/// What a publisher writes to come from an empty topic to this one, in its order.
fn published(topic: &Topic) -> Vec<Run> {
    let word = |at| run(at, &topic.image.read(at, 8));
    let data = topic.image.runs().into_iter().filter(|run| run.at >= topic.data);
    let starts = (0..16).map(|i| word(STARTS + 8 * i));
    starts.chain([word(CLAIM)]).chain(data).chain([word(TAIL), word(LAST)]).collect()
}

pub fn all(list: &mut List) {
    good(list);
    hostile(list);
}

fn good(list: &mut List) {
    let empty = Topic::new(4096, 32, PAGE);
    let mut topic = empty.clone();
    topic.send(7, 1, b"one");
    topic.send(7, 2, b"");
    let readers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| {
        let mut reader = TopicReader { then: published(&topic), ..topic.subscriber(side, "Empty") };
        if side == Side::Latest {
            // It was there before the first.
            reader.messages[0].lost = "1".into();
        }
        reader
    });
    list.good("topic-then-messages", "two messages after the attach", &empty, readers.to_vec());

    let mut closing = Topic::new(4096, 32, PAGE);
    closing.image.u32(PUBLISHER_EPOCH, 3);
    topic.image.u32(PUBLISHER_EPOCH, 3);
    let readers = [Side::Reliable, Side::Lossy].map(|side| {
        let mut reader = TopicReader { then: published(&topic), ..topic.subscriber(side, "Closed") };
        reader.then.push(run_u32(PUBLISHER_FLAGS, CLOSED));
        reader
    });
    list.good("topic-then-closed", "two messages, and the publisher closes", &closing, readers.to_vec());

    let then = [
        run_u32(PUBLISHER_EPOCH, 4),
        run_u32(PUBLISHER_FLAGS, !CLOSED),
        run_u64(empty.subs + 0x80, u64::MAX),
        run_u32(empty.subs, u32::MAX),
    ];
    let readers = [Side::Reliable, Side::Lossy, Side::Latest].map(|side| TopicReader {
        then: then.to_vec(),
        end: Some("PeerDead".into()),
        ..refused(side, "ok")
    });
    let about = "another epoch, unknown flags and words of garbage are no error; the publisher is dead";
    list.good("topic-then-words-of-garbage", about, &closing, readers.to_vec());

    // A position that is a multiple of the capacity, so that the frame is the first of the data.
    let far: u64 = 1 << 33;
    let frame = [&frame_header(3, 1, 9)[..], &1000u64.to_le_bytes(), &[0; 8], b"far"].concat();
    let then = vec![run_u64(CLAIM, far + 256), run(empty.data, &frame), run_u64(TAIL, far + 64), run_u64(LAST, far)];
    let (len, crc32) = (3, crc32fast::hash(b"far"));
    let message = TopicMessage { type_id: 1, tag: "9".into(), seq: "1000".into(), lost: "999".into(), len, crc32 };
    let readers = [Side::Lossy, Side::Latest].map(|side| TopicReader {
        then: then.clone(),
        messages: vec![message.clone()],
        end: Some("Empty".into()),
        ..refused(side, "ok")
    });
    list.good("topic-then-lapped", "the publisher is many laps further on", &empty, readers.to_vec());

    let mut empty = Topic::new(4096, 32, PAGE);
    empty.image.u32(TOPIC_FLAGS, MAY_EJECT);
    let mut topic = empty.clone();
    (0..6).for_each(|i| topic.send(1, i, &payload(i, 992)));
    topic.messages.drain(..2);
    let slot = topic.subs + SLOT;
    let mut then = vec![run_u64(slot + EJECT_SEQ, 1), run_u64(slot + STATE, 1 << 32 | ACTIVE | EJECTED)];
    then.extend(published(&topic));
    let reader = TopicReader { then, lagged: Some("2".into()), ..topic.subscriber(Side::Reliable, "Empty") };
    let about = "the publisher ejects the subscriber of slot 0 and goes on: of six messages two are gone";
    list.good("topic-then-ejected", about, &empty, vec![reader]);
}

fn hostile(list: &mut List) {
    let nothing = |side, end: &str, then: &[Run]| TopicReader {
        end: Some(end.into()),
        then: then.to_vec(),
        ..refused(side, "ok")
    };
    let mut hostile = |name: &str, about: &str, topic: &Topic, readers: Vec<TopicReader>| {
        list.push(Class::Hostile, &format!("topic-then-{name}"), about, topic, readers);
    };
    let each = [Side::Reliable, Side::Lossy, Side::Latest];
    let empty = Topic::new(4096, 32, PAGE);

    let then = [run_u64(TAIL, 72)];
    let about = "tail is no position of a frame";
    hostile("tail-unaligned", about, &empty, each.map(|side| nothing(side, "Corrupt", &then)).to_vec());

    let mut topic = empty.clone();
    topic.start(4064);
    let then = [run_u64(TAIL, 4032)];
    hostile("tail-goes-back", "tail goes back", &topic, each.map(|side| nothing(side, "Corrupt", &then)).to_vec());

    let then = [run_u64(CLAIM, 4096 + 256), run_u64(TAIL, 4096 + 32), run_u64(LAST, 4096)];
    let about = "tail is further ahead than a reliable subscriber lets it be";
    hostile("tail-a-lap-ahead", about, &empty, vec![nothing(Side::Reliable, "Corrupt", &then)]);

    let then = [run_u64(TAIL, 1 << 40), run_u64(LAST, 0)];
    let about = "tail is far ahead and the claim is not";
    hostile("tail-far-ahead", about, &empty, each.map(|side| nothing(side, "Corrupt", &then)).to_vec());

    let mut topic = empty.clone();
    topic.send(1, 1, b"one");
    let mut then = published(&topic);
    then.push(run_u64(CLAIM, 8192));
    let readers = [Side::Lossy, Side::Latest].map(|side| nothing(side, "Empty", &then));
    hostile("nothing-intact", "the claim says that even the newest frame is overwritten", &empty, readers.to_vec());

    topic.send(1, 2, b"two");
    let readers = vec![nothing(Side::Latest, "Corrupt", &[run_u64(LAST, 0)])];
    hostile("last-goes-back", "the newest message has a lower number than the one before", &topic, readers);
}
