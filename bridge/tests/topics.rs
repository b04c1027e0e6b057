//! Topics through two bridges, as processes, and how the ends of a ring cross.

mod common;

use common::bridge::free_port;
use common::pair::Pair;
use common::{LONG, Machine, until};
use ramway::{ErrorKind, Publisher, Ring, Subscriber, Topic};
use std::time::{Duration, Instant};
use zenoh::Wait;

/// A subscriber of a topic that is there or will be.
fn subscriber(machine: &Machine, name: &str) -> Subscriber {
    Topic::open_or_create(machine.at(name)).label("test").subscriber().expect("a subscriber")
}

fn publisher(machine: &Machine, name: &str) -> Publisher {
    Topic::open_or_create(machine.at(name)).timestamps(true).publisher().expect("a publisher")
}

const RELIABLE: &str = "names = [\"pose\"]\nkind = \"topic\"\ndelivery = \"reliable\"\non_disconnect = \"block\"\n";

#[test]
fn a_reliable_topic_keeps_numbers_times_and_gaps_and_outlives_both_bridges() {
    let pair = Pair::of(RELIABLE);
    let mut there = subscriber(&pair.far, "pose");
    let mut here = publisher(&pair.near, "pose");
    let (mut near, mut far) = (pair.start_near(), pair.start_far());
    let mut next = 1;
    for round in 0..6u64 {
        for _ in 0..200 {
            here.send_tagged(7, next, &next.to_le_bytes()).expect("published");
            next += 1;
        }
        // Numbers that are left out here are missing there.
        here.skip_seq(3).expect("numbers are left");
        match round % 3 {
            0 => {
                near.kill();
                near = pair.start_near();
            }
            1 => {
                far.kill();
                far = pair.start_far();
            }
            _ => {}
        }
    }
    let (mut expected, mut number) = (1, 1);
    while expected < next {
        match there.recv_timeout(LONG) {
            Ok(message) => {
                let value = u64::from_le_bytes((&*message).try_into().expect("8 bytes"));
                assert_eq!((value, message.tag(), message.type_id()), (expected, expected, 7));
                assert_eq!(message.seq(), number, "message {value} has the number that it was published with");
                assert!(message.time() > 0, "and the time");
                expected += 1;
                number += if value % 200 == 0 { 4 } else { 1 };
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::PeerDead, "{e}"),
        }
    }
    drop((near, far));
}

#[test]
fn of_a_lossy_topic_every_message_arrives_or_is_a_gap() {
    let rule = "names = [\"log\"]\nkind = \"topic\"\ndelivery = \"lossy\"\n";
    let pair = Pair::of(rule);
    let mut there = subscriber(&pair.far, "log");
    let mut here = publisher(&pair.near, "log");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    // Until the first arrives, which none must before the two are linked.
    let mut sent = 0u64;
    until("the first message arrives", || {
        sent += 1;
        here.send(1, &sent.to_le_bytes()).expect("published");
        !there.is_empty()
    });
    for _ in 0..5000 {
        sent += 1;
        here.send(1, &sent.to_le_bytes()).expect("published");
    }
    let (mut received, mut last, mut first) = (0, 0, None);
    while last < sent {
        match there.recv_timeout(Duration::from_secs(1)) {
            Ok(message) => {
                let value = u64::from_le_bytes((&*message).try_into().expect("8 bytes"));
                assert_eq!(message.seq(), value, "the number crosses");
                assert!(value > last, "in order, each once");
                first = first.or(Some(value));
                (received, last) = (received + 1, value);
            }
            // The last ones were lost: one more says so.
            Err(e) if e.kind() == ErrorKind::TimedOut => {
                sent += 1;
                here.send(1, &sent.to_le_bytes()).expect("published");
            }
            Err(e) => panic!("{e}"),
        }
    }
    let first = first.expect("some arrived");
    // What the subscriber counts as lost is all that did not come, from number 1 on.
    assert_eq!(received + there.lost(), last, "from {first} on");
}

#[test]
fn of_a_newest_value_the_last_one_arrives_and_few_before_it() {
    let rule = "names = [\"state\"]\nkind = \"newest\"\nevery = \"50ms\"\n";
    let pair = Pair::of(rule);
    let mut here = publisher(&pair.near, "state");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut there = Topic::open_or_create(pair.far.at("state")).latest().subscriber().expect("a subscriber");
    let mut value = 0u64;
    for _ in 0..20_000 {
        value += 1;
        here.send(1, &value.to_le_bytes()).expect("published");
    }
    let mut seen = 0;
    until("the last value arrives", || {
        if let Ok(message) = there.recv_timeout(Duration::from_millis(200)) {
            seen = u64::from_le_bytes((&*message).try_into().expect("8 bytes"));
        } else if seen == 0 {
            // Published before the two were linked: nobody has it, and a newer one is on its way.
            value += 1;
            here.send(1, &value.to_le_bytes()).expect("published");
        }
        seen == value
    });
}

/// It knows keys and attachments only.
#[test]
fn a_client_of_zenoh_reads_and_publishes() {
    let rule = "names = [\"chat\"]\nkind = \"topic\"\ndelivery = \"lossy\"\n";
    let pair = Pair::of(rule);
    let mut config = zenoh::Config::default();
    config.insert_json5("connect/endpoints", &format!("[\"tcp/127.0.0.1:{}\"]", pair.port)).unwrap();
    config.insert_json5("listen/endpoints", "[]").unwrap();
    config.insert_json5("mode", "\"client\"").unwrap();
    config.insert_json5("connect/timeout_ms", "-1").unwrap();
    config.insert_json5("scouting/multicast/enabled", "false").unwrap();
    let _far = pair.start_far();
    let mut there = subscriber(&pair.far, "chat");
    let client = zenoh::open(config).wait().unwrap();
    until("a client's message is in the topic", || {
        client.put("ramway/topic/chat/live", "hello").wait().unwrap();
        match there.recv_timeout(Duration::from_millis(100)) {
            Ok(message) => {
                assert_eq!((&*message, message.type_id(), message.time()), (&b"hello"[..], 0, 0));
                true
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}");
                false
            }
        }
    });
    client.close().wait().unwrap();
    // The other way: the near bridge puts, and the client reads.
    let listens = free_port();
    let mut config = zenoh::Config::default();
    config.insert_json5("listen/endpoints", &format!("[\"tcp/127.0.0.1:{listens}\"]")).unwrap();
    config.insert_json5("scouting/multicast/enabled", "false").unwrap();
    let client = zenoh::open(config).wait().unwrap();
    let samples = client.declare_subscriber("ramway/topic/*/live").wait().unwrap();
    let text = std::fs::read_to_string(&pair.export).unwrap().replace(&pair.port.to_string(), &listens.to_string());
    std::fs::write(&pair.export, text).unwrap();
    let mut here = publisher(&pair.near, "chat");
    let _near = pair.start_near();
    let mut sent = 0u64;
    until("the client reads a message", || {
        sent += 1;
        here.send_tagged(5, 77, &sent.to_le_bytes()).expect("published");
        let Ok(Some(sample)) = samples.recv_timeout(Duration::from_millis(100)) else { return false };
        assert_eq!(sample.key_expr().as_str(), "ramway/topic/chat/live");
        let value = u64::from_le_bytes((*sample.payload().to_bytes()).try_into().expect("8 bytes"));
        let attachment = sample.attachment().expect("it has one").to_bytes();
        let number = |at: usize| u64::from_le_bytes(attachment[at..at + 8].try_into().expect("8 bytes"));
        assert_eq!(&attachment[..4], b"RWB\x01");
        assert_eq!(attachment[4..8], 5u32.to_le_bytes());
        assert_eq!((number(24), number(40)), (value, 77));
        assert!(number(32) > 0, "a time");
        true
    });
    client.close().wait().unwrap();
}

const RING: &str = "names = [\"way\"]\nkind = \"ring\"\non_disconnect = \"block\"\n";

#[test]
fn a_close_crosses_after_the_last_message_and_so_does_the_next_sender() {
    let pair = Pair::of(RING);
    let mut there = Ring::create(pair.far.at("way")).capacity(1 << 16).receiver().expect("a receiver");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    for round in 0..3u8 {
        let mut here = Ring::open_or_create(pair.near.at("way")).capacity(1 << 16).sender().expect("a sender");
        for _ in 0..100 {
            here.send(1, &[round; 100]).expect("sent");
        }
        here.close().expect("closed");
        let (mut received, end) = (0, Instant::now() + LONG);
        loop {
            assert!(Instant::now() < end, "in vain: round {round} arrives");
            match there.recv_timeout(LONG) {
                Ok(message) => {
                    assert_eq!(&*message, [round; 100]);
                    received += 1;
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Closed, "after {received} of round {round}: {e}");
                    if received > 0 {
                        break;
                    }
                    // The close of the round before is told until the next sender is there.
                    std::thread::yield_now();
                }
            }
        }
        assert_eq!(received, 100, "round {round}");
        // A closed one ends no more once it was told; the bridge comes again with the next sender.
    }
}

#[test]
fn a_death_crosses_after_the_last_message() {
    let pair = Pair::of(RING);
    let mut there = Ring::create(pair.far.at("way")).receiver().expect("a receiver");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut here = Ring::create(pair.near.at("way")).sender().expect("a sender");
    here.send(1, b"last").expect("sent");
    // As a process does that is killed.
    here.abandon();
    assert_eq!(&*there.recv_timeout(LONG).expect("the last message"), b"last");
    assert_eq!(there.recv_timeout(LONG).map(|_| ()).expect_err("it is dead").kind(), ErrorKind::PeerDead);
    // Its successor is heard.
    let mut here = Ring::open(pair.near.at("way")).sender().expect("a successor");
    here.send(1, b"next").expect("sent");
    until("the successor's message arrives", || match there.recv_timeout(LONG) {
        Ok(message) => {
            assert_eq!(&*message, b"next");
            true
        }
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::PeerDead, "{e}");
            false
        }
    });
}

#[test]
fn a_far_receiver_that_is_gone_is_told_to_the_near_sender() {
    let pair =
        Pair::of("names = [\"way\"]\nkind = \"ring\"\non_disconnect = \"block\"\nwindow = \"8K\"\nchunk = \"4K\"\n");
    let there = Ring::create(pair.far.at("way")).capacity(4096).receiver().expect("a receiver");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut here = Ring::create(pair.near.at("way")).capacity(4096).sender().expect("a sender");
    here.send(1, &[1; 1000]).expect("sent");
    until("the first message arrives", || !there.is_empty());
    there.close().expect("closed");
    // Until both rings are full.
    let end = loop {
        match here.send_timeout(1, &[2; 1000], LONG) {
            Ok(()) => {}
            Err(e) => break e.kind(),
        }
    };
    assert_eq!(end, ErrorKind::Closed);
    // Another one goes on with what the first has left, and the near sender with it.
    let mut there = Ring::open(pair.far.at("way")).receiver().expect("a successor");
    assert_eq!(&*there.recv_timeout(LONG).expect("the first message"), [1; 1000]);
    until("there is room again", || {
        let _ = there.try_recv();
        here.send_timeout(1, &[3; 1000], Duration::from_millis(50)).is_ok()
    });
    let mut last = 0;
    while last != 3 {
        last = there.recv_timeout(LONG).expect("all of them")[0];
    }
}
