//! Where a subscriber begins, also while the publisher runs and others come and go.

mod support;

use ramway::{ErrorKind, Policy, Publisher, Subscriber, Topic, TopicBuilder};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::topic::{create, is_whole, receive, send, send_all};
use support::{Dir, LONG};

/// The publisher of a topic that has been lapped several times, with these lengths in turn.
fn lapped(name: &str, capacity: u64, lengths: &[usize]) -> Publisher {
    let mut publisher = create(name, capacity).publisher().unwrap();
    let average = lengths.iter().sum::<usize>() / lengths.len() + 32;
    send_all(&mut publisher, 5 * capacity / average as u64 + 3, lengths);
    publisher
}

/// What a subscriber receives until nothing is left: numbers without a gap, but perhaps before the first.
fn all(subscriber: &mut Subscriber) -> (Vec<u64>, u64) {
    let (mut numbers, mut lost) = (Vec::new(), 0);
    loop {
        match subscriber.try_recv() {
            Ok(message) => {
                assert!(is_whole(&message, message.seq()));
                if let Some(before) = numbers.last() {
                    assert_eq!((message.seq(), message.lost()), (before + 1, 0));
                } else {
                    lost = message.lost();
                }
                numbers.push(message.seq());
            }
            Err(e) if e.kind() == ErrorKind::Empty => return (numbers, lost),
            Err(e) => panic!("{e}"),
        }
    }
}

fn open(name: &str, policy: Policy) -> TopicBuilder {
    Topic::open(name).policy(policy)
}

const LENGTHS: [&[usize]; 4] = [&[0], &[100], &[0, 1000, 40, 7], &[2016]];

/// The policies that receive in order. The lossy one first: it keeps nothing from being overwritten.
const IN_ORDER: [Policy; 2] = [Policy::Lossy, Policy::Reliable];

#[test]
fn from_the_oldest_intact_message_after_several_laps() {
    let dir = Dir::new();
    for (i, lengths) in LENGTHS.into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let mut publisher = lapped(&name, 1 << 14, lengths);
        for extra in 0..40 {
            for policy in IN_ORDER {
                let newest = publisher.seq();
                let (numbers, lost) = all(&mut open(&name, policy).from_oldest().subscriber().unwrap());
                assert_eq!((numbers.last(), lost), (Some(&newest), 0));
                // What lies in the log, less the part that the publisher has claimed, and less the part whose frames are
                // not noted: two sixteenths at most each, and a frame.
                let frame = |seq: u64| (32 + lengths[(seq - 1) as usize % lengths.len()]).next_multiple_of(32) as u64;
                let bytes: u64 = numbers.iter().map(|&seq| frame(seq)).sum();
                assert!(bytes >= (1 << 14) * 12 / 16 - 2 * 2048, "{lengths:?}, {extra}: {bytes} bytes of history");
            }
            let len = lengths[publisher.seq() as usize % lengths.len()];
            send(&mut publisher, len);
        }
        // A topic that was never lapped has it all.
        let name = dir.at(&format!("young{i}"));
        let mut publisher = create(&name, 1 << 14).publisher().unwrap();
        send_all(&mut publisher, 5, lengths);
        for policy in IN_ORDER {
            assert_eq!(all(&mut open(&name, policy).from_oldest().subscriber().unwrap()).0, [1, 2, 3, 4, 5]);
        }
    }
}

#[test]
fn from_now_and_from_history() {
    let dir = Dir::new();
    for (i, lengths) in LENGTHS.into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let publisher = lapped(&name, 1 << 14, lengths);
        let newest = publisher.seq();
        for policy in IN_ORDER {
            assert_eq!(all(&mut open(&name, policy).from_now().subscriber().unwrap()), (vec![], 0));
            let oldest = all(&mut open(&name, policy).from_oldest().subscriber().unwrap()).0[0];
            for n in (0..150).chain([511, 512, 513, newest - oldest, newest - 1, newest, newest + 1, u64::MAX]) {
                let (numbers, lost) = all(&mut open(&name, policy).history(n).subscriber().unwrap());
                let first = newest.saturating_sub(n) + 1;
                assert_eq!(lost, 0, "what lies before the history was not lost");
                if first > newest {
                    assert_eq!(numbers, []);
                } else {
                    assert_eq!((numbers[0], *numbers.last().unwrap()), (first.max(oldest), newest), "history({n})");
                }
            }
        }
    }
}

#[test]
fn after_a_number_that_is_there_or_gone_or_never_was() {
    let dir = Dir::new();
    for (i, lengths) in LENGTHS.into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let mut publisher = lapped(&name, 1 << 14, lengths);
        // A gap in the numbers, of the publisher's own.
        publisher.skip_seq(10).unwrap();
        let gap = publisher.seq() + 1..=publisher.seq() + 10;
        let seq = publisher.seq() + 11;
        publisher.send_tagged(1, seq, &support::topic::message(seq, 4)).unwrap();
        let newest = publisher.seq();
        for policy in IN_ORDER {
            let first = |n: u64| {
                let mut subscriber = open(&name, policy).after_seq(n).subscriber().unwrap();
                subscriber.try_recv().ok().map(|message| (message.seq(), message.lost()))
            };
            let oldest = {
                let mut subscriber = open(&name, policy).from_oldest().subscriber().unwrap();
                receive(&mut subscriber).0
            };
            for n in (oldest..*gap.start()).map(|seq| seq - 1) {
                assert_eq!(first(n), Some((n + 1, 0)));
            }
            // Gone: the gap counts from the number after it.
            for n in [0, 1, oldest / 2, oldest - 2] {
                assert_eq!(first(n), Some((oldest, oldest - n - 1)), "after {n}");
            }
            for n in [*gap.start() - 1, *gap.start(), *gap.end() - 1, *gap.end()] {
                assert_eq!(first(n), Some((newest, newest - n - 1)), "after {n}, in the gap");
            }
            for n in [newest, newest + 1, newest + 1000, u64::MAX] {
                assert_eq!(first(n), None);
            }
        }
        // From the future: what comes next is what it receives, and nothing was lost.
        let mut subscriber = Topic::open(&name).after_seq(u64::MAX).subscriber().unwrap();
        send(&mut publisher, 10);
        assert_eq!(receive(&mut subscriber), (newest + 1, 0));
    }
}

#[test]
fn before_the_first_message_every_start_is_the_same() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let starts = |policy| {
        let new = || open(&name, policy);
        [new(), new().from_oldest(), new().from_now(), new().history(0), new().history(7), new().after_seq(0)]
    };
    let mut subscribers: Vec<_> =
        IN_ORDER.into_iter().flat_map(starts).map(|builder| builder.subscriber().unwrap()).collect();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    subscribers.push(Topic::open(&name).after_seq(99).subscriber().unwrap());
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    }
    send(&mut publisher, 10);
    for subscriber in &mut subscribers {
        assert_eq!(receive(subscriber), (1, 0));
    }
    assert_eq!(latest.recv().unwrap().seq(), 1);
    // A latest one that comes later reads what is there.
    assert_eq!(Topic::open(&name).latest().subscriber().unwrap().recv().unwrap().seq(), 1);
}

/// A publisher flat out, a reliable subscriber that must miss nothing, one that is there for its own sake, and others that
/// come and go as fast as they can.
#[test]
fn joins_and_leaves_under_full_load_disturb_nobody() {
    let dir = Dir::new();
    for (round, capacity) in [4096, 1 << 16].into_iter().enumerate() {
        let name = dir.at(&format!("topic{round}"));
        let mut publisher = create(&name, capacity).slots(8).publisher().unwrap();
        let mut steady = Topic::open(&name).subscriber().unwrap();
        let (stop, joins) = (AtomicBool::new(false), AtomicU64::new(0));
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    publisher.send_tagged(1, n, &support::topic::message(n, (n as usize * 31) % 200)).unwrap();
                }
                publisher.skip_seq(1).unwrap();
                publisher.send_tagged(1, n + 2, &support::topic::message(n + 2, 8)).unwrap();
            });
            for thread in 0..2 {
                let (name, stop, joins) = (&name, &stop, &joins);
                scope.spawn(move || {
                    for n in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let builder = match (n + thread) % 7 {
                            0 => Topic::open(name),
                            1 => Topic::open(name).from_now(),
                            2 => Topic::open(name).history(3),
                            3 => Topic::open(name).after_seq(n),
                            4 => Topic::open(name).lossy().history(5),
                            5 => Topic::open(name).label(format!("one of {thread}")),
                            _ => Topic::open(name).latest(),
                        };
                        let mut subscriber = builder.subscriber().unwrap();
                        joins.fetch_add(1, Ordering::Relaxed);
                        // Whatever it is given is whole and in order. Some leave at once, some with a message in hand.
                        let mut before = 0;
                        for _ in 0..n % 4 {
                            let Ok(message) = subscriber.recv_timeout(Duration::from_millis(20)) else { break };
                            assert!(is_whole(&message, message.seq()));
                            assert!(before == 0 || message.seq() == before + 1 + message.lost());
                            before = message.seq();
                        }
                    }
                });
            }
            let mut expected = 1;
            loop {
                let (seq, lost) = receive(&mut steady);
                if lost != 0 {
                    assert_eq!((seq, lost), (expected + 1, 1), "the publisher's own gap is the end");
                    break;
                }
                assert_eq!(seq, expected);
                expected += 1;
                if started.elapsed() > Duration::from_millis(1500) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            assert!(expected > 1000, "{expected} messages");
        });
        let joins = joins.load(Ordering::Relaxed);
        println!("{joins} joins in {:?}", started.elapsed());
        assert!(joins > 100, "{joins} joins");
        // All of them have left: only the steady one is still there.
        assert_eq!(publisher.subscribers().len(), 1);
        send(&mut publisher, 100);
        assert!(steady.recv_timeout(LONG).is_ok());
    }
}

/// A subscriber that joins while the publisher overwrites what it would begin with.
#[test]
fn a_late_join_has_no_hole_after_its_first_message() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Nobody gates most of the time, so it never waits for long.
            while !stop.load(Ordering::Relaxed) {
                send(&mut publisher, 64);
            }
        });
        for n in 0..400u64 {
            let builder = Topic::open(&name);
            let builder = if n % 2 == 0 { builder.from_oldest() } else { builder.history(n % 50) };
            let mut subscriber = builder.subscriber().unwrap();
            let first = receive(&mut subscriber).0;
            for next in first + 1..first + 60 {
                assert_eq!(receive(&mut subscriber), (next, 0), "join {n}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
