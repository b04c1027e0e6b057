//! Ends of a publisher: killed at any instant, closed, gone without a word; and its successors.

mod support;

use ramway::{ErrorKind, Topic};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::topic::{
    CLAIM, LAST, Memory, STARTS, TAIL, create, is_whole, message, receive, receive_to, send, send_all,
};
use support::{Dir, LONG, Peer, helper_role, listen, say};

const SOON: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(20);

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

/// Length of the message with this number, from nothing to nearly the longest.
fn length(seq: u64) -> usize {
    [0, 5, 700, 64, 1999, 31, 1000][seq as usize % 7]
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Sends until it is killed: one by one, in batches, with unflushed ones.
        ["stream", name] => {
            let mut publisher = Topic::open(name).publisher().unwrap();
            say("ready");
            let mut seq = publisher.seq();
            loop {
                seq += 1;
                let len = length(seq);
                match seq % 5 {
                    0 => publisher.send_tagged(1, seq, &message(seq, len)).unwrap(),
                    1 | 2 => {
                        let mut slot = publisher.reserve(len).unwrap().with_tag(seq);
                        slot.copy_from_slice(&message(seq, len));
                        slot.commit_unflushed(len).unwrap();
                    }
                    3 => publisher.batch().write(1, seq, len, |to| support::topic::fill(to, seq)).unwrap(),
                    _ => {
                        let mut slot = publisher.reserve(len).unwrap().with_tag(seq);
                        slot.copy_from_slice(&message(seq, len));
                        slot.commit(len).unwrap();
                    }
                }
            }
        }
        ["idle", name] => {
            let mut publisher = Topic::open(name).publisher().unwrap();
            send(&mut publisher, 10);
            let mut slot = publisher.reserve(6).unwrap();
            slot.copy_from_slice(b"unseen");
            slot.commit_unflushed(6).unwrap();
            say("ready");
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

/// The publisher is killed at random instants, many times. A reliable subscriber receives every number exactly once; a lossy
/// one knows exactly what it missed; the newest message is there all the while.
#[test]
fn killed_at_any_instant_and_succeeded_nothing_is_lost_or_doubled() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    let (progress, deaths) = (AtomicU64::new(0), AtomicU64::new(0));
    const ROUNDS: u64 = 40;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reliable = Topic::open(&name).subscriber().unwrap();
            let mut next = 1;
            loop {
                match reliable.recv_timeout(LONG) {
                    Ok(received) => {
                        let seq = received.seq();
                        assert_eq!((seq, received.lost(), received.tag()), (next, 0, seq));
                        if seq > 1_000_000_000 {
                            break;
                        }
                        assert!(received.len() == length(seq) && is_whole(&received, seq), "message {seq}");
                        next += 1;
                        progress.store(seq, Ordering::Relaxed);
                    }
                    Err(e) if e.kind() == ErrorKind::PeerDead => {
                        deaths.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err(e) if e.kind() == ErrorKind::Closed => break,
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(next > ROUNDS * 10);
        });
        let mut seed = 7u64;
        for round in 0..ROUNDS {
            let mut peer = Peer::start(&["stream", &name]);
            peer.expect("ready");
            let before = progress.load(Ordering::Relaxed);
            while progress.load(Ordering::Relaxed) < before + 10 {
                std::thread::yield_now();
            }
            support::readiness::jitter(&mut seed);
            peer.kill();
            let before = deaths.load(Ordering::Relaxed);
            while round % 10 == 0 && deaths.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
            // The newest message is whole, whatever the publisher was at.
            let newest = latest.latest().unwrap();
            assert!(is_whole(&newest, newest.seq()));
            drop(newest);
            loop {
                match lossy.try_recv() {
                    Ok(received) => assert!(is_whole(&received, received.seq())),
                    Err(e) if e.kind() == ErrorKind::Empty || e.kind() == ErrorKind::PeerDead => break,
                    Err(e) => panic!("{e}"),
                }
            }
        }
        let publisher = Topic::open(&name).publisher().unwrap();
        publisher.close().unwrap();
    });
}

#[test]
fn what_was_not_flushed_is_as_if_it_never_was() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut reliable = create(&name, 4096).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    for round in 1..=3u64 {
        let mut peer = Peer::start(&["idle", &name]);
        peer.expect("ready");
        assert!(reliable.is_peer_alive());
        assert_eq!(reliable.peer_epoch(), round as u32);
        peer.kill();
        for subscriber in [&mut reliable, &mut lossy, &mut latest] {
            assert!(!subscriber.is_peer_alive());
            assert_eq!(receive(subscriber), (round, 0));
            let started = Instant::now();
            assert_eq!(kind(subscriber.recv_timeout(LONG)), ErrorKind::PeerDead);
            assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
            assert_eq!(kind(subscriber.try_recv()), ErrorKind::PeerDead, "until a successor comes");
            // The newest value is there all the same.
            assert_eq!(subscriber.latest().unwrap().seq(), round);
        }
    }
    let mut publisher = Topic::open(&name).publisher().unwrap();
    assert_eq!((publisher.seq(), publisher.last_tag()), (3, Some(3)));
    for subscriber in [&mut reliable, &mut lossy, &mut latest] {
        assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
    }
    send(&mut publisher, 8);
    for subscriber in [&mut reliable, &mut lossy, &mut latest] {
        assert_eq!(receive(subscriber), (4, 0));
    }
}

#[test]
fn a_close_comes_after_the_last_message_and_ends_with_a_successor() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let open = || Topic::open(&name);
    let mut subscribers = [open(), open().lossy(), open().latest()].map(|builder| builder.subscriber().unwrap());
    send(&mut publisher, 8);
    let mut slot = publisher.reserve(4).unwrap().with_tag(2);
    slot.copy_from_slice(&message(2, 4));
    slot.commit_unflushed(4).unwrap();
    publisher.close().unwrap();
    for (i, subscriber) in subscribers.iter_mut().enumerate() {
        if i < 2 {
            assert_eq!(receive(subscriber), (1, 0));
        }
        assert_eq!(receive(subscriber).0, 2);
        assert_eq!(kind(subscriber.recv()), ErrorKind::Closed);
        assert_eq!(kind(subscriber.try_recv()), ErrorKind::Closed);
        assert_eq!(kind(subscriber.recv_timeout(SHORT)), ErrorKind::Closed);
        assert_eq!(subscriber.latest().unwrap().seq(), 2);
        assert_eq!(kind(subscriber.wait_for_peer_timeout(SHORT)), ErrorKind::TimedOut);
    }
    // One that comes after the close has the history, and then the close.
    let mut late = Topic::open(&name).subscriber().unwrap();
    receive_to(&mut late, 1, 2);
    assert_eq!(kind(late.recv()), ErrorKind::Closed);
    let mut publisher = Topic::open(&name).publisher().unwrap();
    for subscriber in subscribers.iter_mut().chain([&mut late]) {
        assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
        assert_eq!(subscriber.wait_for_peer_timeout(LONG).unwrap(), 2);
    }
    send(&mut publisher, 8);
    // Without a word is as a death.
    publisher.abandon();
    for subscriber in subscribers.iter_mut().chain([&mut late]) {
        assert_eq!(receive(subscriber), (3, 0));
        assert_eq!(kind(subscriber.recv_timeout(LONG)), ErrorKind::PeerDead);
    }
}

#[test]
fn a_persistent_topic_gives_its_newest_value_without_a_publisher() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).persistent(true).publisher().unwrap();
    send_all(&mut publisher, 100, &[100]);
    publisher.close().unwrap();
    assert_eq!(dir.names(), ["topic"]);
    for _ in 0..3 {
        let mut latest = Topic::open(&name).latest().subscriber().unwrap();
        assert_eq!(receive(&mut latest), (100, 0));
        assert_eq!(latest.latest().unwrap().seq(), 100);
        assert_eq!(kind(latest.recv()), ErrorKind::Closed);
        let mut history = Topic::open(&name).history(3).subscriber().unwrap();
        receive_to(&mut history, 98, 100);
        assert_eq!(kind(history.recv()), ErrorKind::Closed);
    }
    let mut publisher = Topic::open(&name).publisher().unwrap();
    assert_eq!(publisher.seq(), 100);
    assert_eq!(send(&mut publisher, 1), 101);
}

#[test]
fn without_persistence_history_alone_keeps_nothing() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    send_all(&mut publisher, 10, &[100]);
    let unread = Topic::open(&name).subscriber().unwrap();
    drop((publisher, unread));
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn there_is_one_publisher() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let publisher = create(&name, 4096).publisher().unwrap();
    let busy = Topic::open(&name).publisher().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    drop(publisher);
    let kept = create(&name, 4096).subscriber().unwrap();
    let _publisher = Topic::open(&name).timeout(LONG).publisher().unwrap();
    assert_eq!(kind(create(&name, 4096).publisher()), ErrorKind::AlreadyExists);
    drop(kept);
}

/// A publisher that was killed between the stores of an advance, or of a publish, as its words say then.
#[test]
fn a_successor_goes_on_from_every_state_between_two_stores() {
    let dir = Dir::new();
    for part in 0..4u64 {
        for count in [1u64, 5, 40, 41, 42, 43, 77, 200] {
            let name = dir.at(&format!("topic-{part}-{count}"));
            let mut publisher = create(&name, 4096).publisher().unwrap();
            let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
            send_all(&mut publisher, count, &[100, 300, 0]);
            let memory = Memory::map(&name);
            let word = |at: usize| memory.u64(at);
            let (tail, last) = (word(TAIL).load(Ordering::Relaxed), word(LAST).load(Ordering::Relaxed));
            let mut newest = count;
            match part {
                // It has noted where the next frame begins, and not claimed.
                0 => word(STARTS + 8 * ((tail & 4095) / 256) as usize).store(tail, Ordering::Relaxed),
                // It has claimed as much as it may.
                1 => word(CLAIM).store(last + 4096, Ordering::Relaxed),
                // It has claimed and noted a frame that is never published.
                2 => {
                    word(CLAIM).store(last + 4096, Ordering::Relaxed);
                    let never = tail + 1024;
                    word(STARTS + 8 * ((never & 4095) / 256) as usize).store(never, Ordering::Relaxed);
                }
                // It has stored `tail` of the last message, and `last` is still the one before.
                _ if count > 1 => {
                    let before = tail - last;
                    send(&mut publisher, 60);
                    newest += 1;
                    assert!(before != 0);
                    word(LAST).store(last, Ordering::Relaxed);
                }
                _ => continue,
            }
            publisher.abandon();
            // All who join now have what is there.
            let mut late = Topic::open(&name).subscriber().unwrap();
            let mut now = Topic::open(&name).from_now().subscriber().unwrap();
            // At the oldest that is noted and not claimed; at least the newest one.
            let first = receive(&mut late).0;
            receive_to(&mut late, first + 1, newest);
            let mut publisher = Topic::open(&name).publisher().unwrap();
            assert_eq!(publisher.seq(), newest, "part {part}, {count} messages");
            let mut latest = Topic::open(&name).latest().subscriber().unwrap();
            assert_eq!(latest.latest().unwrap().seq(), newest);
            for n in 1..200 {
                assert_eq!(send(&mut publisher, 120), newest + n);
                receive_to(&mut late, newest + n, newest + n);
                let (seq, lost) = receive(&mut now);
                assert_eq!(lost, 0);
                if seq == newest {
                    receive_to(&mut now, newest + n, newest + n);
                }
            }
            let (mut at, mut total) = (0, 0);
            while at < newest + 199 {
                let (seq, lost) = receive(&mut lossy);
                total += 1 + lost;
                at = seq;
                assert_eq!(total, seq);
            }
        }
    }
}

#[test]
fn positions_that_contradict_each_other_are_corrupt() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).persistent(true).publisher().unwrap();
    send_all(&mut publisher, 30, &[100]);
    publisher.abandon();
    let memory = Memory::map(&name);
    let [tail, last, claim] = [TAIL, LAST, CLAIM].map(|at| memory.u64(at).load(Ordering::Relaxed));
    let wrong = [
        (tail + 1, last, claim),
        (tail + 32, last, claim + 4096),
        (tail, last + 8, claim),
        (tail, tail, claim),
        (tail, last, tail - 32),
        (tail, last, tail + 8192),
        (last, tail, claim),
        (tail, last - 4096, claim),
        (u64::MAX - 31, last, claim),
        (0, 0, claim),
    ];
    for (t, l, c) in wrong {
        for (at, value) in [(TAIL, t), (LAST, l), (CLAIM, c)] {
            memory.u64(at).store(value, Ordering::Relaxed);
        }
        let refused = Topic::open(&name).publisher().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "tail {t}, last {l}, claim {c}");
        assert!(refused.to_string().contains("the topic's positions"), "{refused}");
    }
    for (at, value) in [(TAIL, tail), (LAST, last), (CLAIM, claim)] {
        memory.u64(at).store(value, Ordering::Relaxed);
    }
    let mut publisher = Topic::open(&name).publisher().unwrap();
    assert_eq!(send(&mut publisher, 0), 31);
}
