//! Durable subscribers: their cursor outlives them, and the publisher waits for it.

mod support;

use ramway::{ErrorKind, Policy, Subscriber, Topic, survey};
use std::time::Duration;
use support::topic::{create, message, receive, receive_to, send, send_all};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

const SHORT: Duration = Duration::from_millis(20);

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

fn durable(name: &str, label: &str) -> Subscriber {
    Topic::open(name).label(label).durable(true).subscriber().unwrap()
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Releases this many messages, takes one more in hand, and waits to be killed.
        ["holds", name, count] => {
            let mut subscriber = durable(name, "recorder");
            for _ in 0..count.parse().unwrap() {
                receive(&mut subscriber);
            }
            let held = subscriber.recv_timeout(LONG).unwrap();
            say(held.seq());
            listen();
        }
        ["joins-in-a-loop", name] => {
            say("ready");
            loop {
                let mut subscriber = durable(name, "recorder");
                let _ = subscriber.try_recv();
            }
        }
        _ => panic!("{role:?}"),
    }
}

#[test]
fn it_goes_on_where_the_one_before_was_killed() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 1 << 14).publisher().unwrap();
    send_all(&mut publisher, 40, &[100]);
    let mut first = 1;
    for round in 0..4u64 {
        let mut peer = Peer::start(&["holds", &name, "5"]);
        // Five were released, the sixth is delivered again.
        peer.expect(&(first + 5).to_string());
        first += 5;
        let busy = Topic::open(&name).label("recorder").subscriber().unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        assert!(busy.to_string().contains("'recorder'"), "{busy}");
        let info = &publisher.subscribers()[0];
        assert!(info.alive && info.durable && info.label == "recorder");
        assert_eq!((info.epoch, info.policy), (round as u32 + 1, Policy::Reliable));
        peer.kill();
        let info = &publisher.subscribers()[0];
        assert!(!info.alive && info.durable);
        assert_eq!(info.lag.unwrap().messages, 40 - (first - 1));
    }
    let mut last = durable(&name, "recorder");
    receive_to(&mut last, first, 40);
    assert_eq!((last.label().as_deref(), last.lost()), (Some("recorder"), 0));
}

#[test]
fn it_goes_on_after_a_close_with_any_start() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut first = durable(&name, "a");
    send_all(&mut publisher, 6, &[100]);
    receive_to(&mut first, 1, 2);
    {
        let held = first.recv().unwrap();
        assert_eq!(held.seq(), 3);
    }
    first.close().unwrap();
    assert_eq!(publisher.subscribers().len(), 1);
    // Where it is to begin is for the first one alone: this one goes on.
    let mut second = Topic::open(&name).label("a").durable(true).from_now().subscriber().unwrap();
    receive_to(&mut second, 4, 6);
    // Another label is another subscriber.
    let mut other = durable(&name, "ab");
    receive_to(&mut other, 1, 6);
    assert_eq!(publisher.subscribers().len(), 2);
    assert_eq!(kind(Topic::open(&name).label("ab").durable(true).subscriber()), ErrorKind::Busy);
    assert_eq!(kind(Topic::open(&name).label("ab").subscriber()), ErrorKind::Busy);
    // One with the label that is not durable itself takes the cursor up, and lets it go.
    send(&mut publisher, 10);
    drop(other);
    let mut plain = Topic::open(&name).label("ab").subscriber().unwrap();
    assert_eq!(receive(&mut plain), (7, 0));
    drop(plain);
    assert_eq!(publisher.subscribers().len(), 1);
    other = durable(&name, "ab");
    assert_eq!(receive(&mut other).0, 1, "it begins anew");
    other.unsubscribe().unwrap();
    second.unsubscribe().unwrap();
    assert_eq!(publisher.subscribers().len(), 0);
}

#[test]
fn the_publisher_waits_for_it_also_while_nobody_is_there() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut peer = Peer::start(&["holds", &name, "0"]);
    send(&mut publisher, 100);
    peer.expect("1");
    peer.kill();
    while publisher.try_send_tagged(1, publisher.seq() + 1, &message(publisher.seq() + 1, 100)).is_ok() {}
    let blocked_at = publisher.seq();
    // Longer than it takes to find a dead one.
    assert_eq!(kind(publisher.send_timeout(0, &[0; 100], Duration::from_millis(350))), ErrorKind::TimedOut);
    assert_eq!(publisher.subscribers().len(), 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                send(&mut publisher, 100);
            }
        });
        let mut next = durable(&name, "recorder");
        receive_to(&mut next, 1, blocked_at + 100);
        // Its leaving lets the publisher go on at once, if it is for good.
        next.unsubscribe().unwrap();
    });
    send_all(&mut publisher, 100, &[100]);
    // Giving up by somebody who does not read.
    let dead = durable(&name, "recorder");
    drop(dead);
    while publisher.try_send(0, &[0; 100]).is_ok() {}
    std::thread::scope(|scope| {
        scope.spawn(|| publisher.send_timeout(0, &[0; 100], LONG).unwrap());
        std::thread::sleep(SHORT);
        durable(&name, "recorder").unsubscribe().unwrap();
    });
}

#[test]
fn ejected_while_it_was_away_it_is_told_at_its_return() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).eject_after(Duration::from_millis(40)).publisher().unwrap();
    for round in 0..3 {
        let mut subscriber = durable(&name, "recorder");
        if round > 0 {
            // From the round before: told once, then the messages.
            let lagged = subscriber.recv().unwrap_err();
            assert_eq!(lagged.kind(), ErrorKind::Lagged);
            let lost = lagged.lost().unwrap();
            assert!(lost > 0);
            assert_eq!(subscriber.lost(), lost);
            let first = publisher.seq() - 99 + lost;
            receive_to(&mut subscriber, first, publisher.seq());
        }
        let seq = send(&mut publisher, 100);
        assert_eq!(receive(&mut subscriber), (seq, 0));
        drop(subscriber);
        send_all(&mut publisher, 100, &[100]);
        let info = &publisher.subscribers()[0];
        assert!(info.ejected && info.durable && !info.alive && info.lag.is_none());
    }
    // One that is resumed has its time anew: the time before does not count.
    let mut subscriber = durable(&name, "recorder");
    assert_eq!(kind(subscriber.recv()), ErrorKind::Lagged);
    while subscriber.try_recv().is_ok() {}
    assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
    subscriber.unsubscribe().unwrap();
}

#[test]
fn a_resumed_one_has_its_time_anew() {
    let eject_after = Duration::from_millis(300);
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).eject_after(eject_after).publisher().unwrap();
    drop(durable(&name, "recorder"));
    // The last of these finds the publisher blocked, and notes since when. Until the next one nobody is ejected.
    while publisher.try_send(0, &[0; 100]).is_ok() {}
    std::thread::sleep(eject_after * 2 / 3);
    let resumed = std::time::Instant::now();
    let mut subscriber = durable(&name, "recorder");
    publisher.send_timeout(0, &[0; 100], LONG).unwrap();
    // The publisher goes by a clock of coarse ticks, of 10 ms at most.
    let had = resumed.elapsed() + Duration::from_millis(20);
    assert!(had >= eject_after, "it was ejected {had:?} after it was resumed: the time before counts");
    assert_eq!(kind(subscriber.recv()), ErrorKind::Lagged);
    subscriber.unsubscribe().unwrap();
}

#[test]
fn what_it_has_not_read_keeps_the_topic() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let subscriber = durable(&name, "recorder");
    send_all(&mut publisher, 3, &[100]);
    drop((subscriber, publisher));
    assert_eq!(dir.names(), ["topic"]);
    let refused = create(&name, 4096).publisher().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let text = refused.to_string();
    assert!(text.contains("'recorder'") && text.contains("3 undelivered messages (300 bytes)"), "{text}");

    // Also the end of the stream, until it was told.
    let mut subscriber = durable(&name, "recorder");
    receive_to(&mut subscriber, 1, 3);
    drop(subscriber);
    assert_eq!(dir.names(), ["topic"]);
    let text = create(&name, 4096).publisher().unwrap_err().to_string();
    assert!(text.contains("end of a stream") && text.contains("'recorder'"), "{text}");
    let mut subscriber = durable(&name, "recorder");
    assert_eq!(kind(subscriber.recv()), ErrorKind::Closed);
    // Told once: the next one with the label is told nothing.
    let other = Topic::open(&name).subscriber().unwrap();
    drop(subscriber);
    let mut again = durable(&name, "recorder");
    assert_eq!(kind(again.recv_timeout(SHORT)), ErrorKind::TimedOut);
    drop(other);
    drop(again);
    assert_eq!(dir.names(), [""; 0], "nothing is left for anybody");

    // Discarded, or given up.
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let subscriber = durable(&name, "recorder");
    send(&mut publisher, 1);
    drop((publisher, subscriber));
    let mut publisher = create(&name, 4096).discard(true).publisher().unwrap();
    assert_eq!(publisher.seq(), 0);
    let subscriber = durable(&name, "recorder");
    send(&mut publisher, 1);
    drop(publisher);
    subscriber.unsubscribe().unwrap();
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn cleaning_leaves_what_somebody_is_to_receive() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let peer = {
        let mut publisher = create(&name, 4096).publisher().unwrap();
        let mut peer = Peer::start(&["holds", &name, "0"]);
        send(&mut publisher, 1);
        peer.expect("1");
        publisher.abandon();
        peer
    };
    peer.kill();
    // Killed, so that nobody has removed anything.
    survey::clean(dir.path(), &survey::CleanOptions::default()).unwrap();
    assert_eq!(dir.names(), ["topic"]);
    let mut subscriber = durable(&name, "recorder");
    assert_eq!(receive(&mut subscriber), (1, 0));
    subscriber.unsubscribe().unwrap();
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn killed_at_any_instant_of_its_join_it_holds_nothing_that_is_not_its_own() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).slots(2).publisher().unwrap();
    let mut steady = Topic::open(&name).subscriber().unwrap();
    let mut seed = 3;
    for round in 0..25 {
        let mut peer = Peer::start(&["joins-in-a-loop", &name]);
        peer.expect("ready");
        for _ in 0..5 {
            let seq = publisher.seq() + 1;
            // With the capacity to spare: one that is stopped by the kill blocks soon, and not for good.
            if publisher.send_timeout(1, &message(seq, 60), Duration::from_millis(1)).is_ok() {
                assert_eq!(steady.recv().unwrap().seq(), seq);
            }
            support::readiness::jitter(&mut seed);
        }
        peer.kill();
        assert!(publisher.subscribers().len() <= 2, "round {round}");
        // The label is free, or its cursor stands where it was.
        let mut next = durable(&name, "recorder");
        while next.try_recv().is_ok() {}
        if round % 2 == 0 {
            next.unsubscribe().unwrap();
        }
    }
    durable(&name, "recorder").unsubscribe().unwrap();
    eventually("only the steady one is left", || publisher.subscribers().len() == 1);
}

#[test]
fn labels_and_slots_that_are_taken() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _publisher = create(&name, 4096).slots(3).publisher().unwrap();
    let first = Topic::open(&name).label("first").subscriber().unwrap();
    let away = durable(&name, "away for now");
    let unnamed = Topic::open(&name).subscriber().unwrap();
    drop(away);
    let busy = Topic::open(&name).subscriber().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    let text = busy.to_string();
    assert!(text.contains("all 3 slots") && text.contains("first") && text.contains("away for now"), "{text}");
    assert_eq!(kind(Topic::open(&name).label("other").subscriber()), ErrorKind::Busy);
    // Those that nobody waits for need none.
    let lossy = Topic::open(&name).lossy().label("seen by nobody").subscriber().unwrap();
    drop(unnamed);
    let other = Topic::open(&name).label("other").subscriber().unwrap();
    drop((first, lossy, other));
    durable(&name, "away for now").unsubscribe().unwrap();
}

#[test]
fn a_label_and_a_slot_that_are_taken_are_waited_for() {
    let dir = Dir::new();
    for labelled in [true, false] {
        let name = dir.at(if labelled { "label" } else { "slot" });
        let _publisher = create(&name, 4096).slots(1).publisher().unwrap();
        let open = || if labelled { Topic::open(&name).label("recorder").durable(true) } else { Topic::open(&name) };
        let first = open().subscriber().unwrap();
        assert_eq!(kind(open().timeout(SHORT).subscriber()), ErrorKind::Busy);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| open().timeout(LONG).subscriber().unwrap());
            std::thread::sleep(SHORT);
            drop(first);
            let second = second.join().unwrap();
            assert_eq!(kind(open().subscriber()), ErrorKind::Busy);
            second.unsubscribe().unwrap();
        });
    }
}

#[test]
fn one_slot_and_a_thousand() {
    let dir = Dir::new();
    let name = dir.at("one");
    let mut publisher = create(&name, 4096).slots(1).publisher().unwrap();
    // Subscribers that nobody waits for leave the one slot to one that needs it.
    let _lossy: Vec<_> = (0..3).map(|_| Topic::open(&name).lossy().subscriber().unwrap()).collect();
    let mut only = Topic::open(&name).subscriber().unwrap();
    assert_eq!(kind(Topic::open(&name).subscriber()), ErrorKind::Busy);
    let seq = send(&mut publisher, 10);
    assert_eq!(receive(&mut only), (seq, 0));
    assert_eq!(publisher.subscribers().len(), 1);

    let name = dir.at("many");
    let mut publisher = create(&name, 1 << 16).slots(1024).publisher().unwrap();
    let mut subscribers: Vec<_> = (0..300).map(|_| Topic::open(&name).subscriber().unwrap()).collect();
    subscribers.push(durable(&name, "the last"));
    publisher.wait_for_subscribers(301).unwrap();
    for round in 0..3 {
        let first = publisher.seq() + 1;
        send_all(&mut publisher, 10, &[100]);
        for subscriber in &mut subscribers {
            receive_to(subscriber, first, first + 9);
        }
        assert!(publisher.is_empty(), "round {round}");
    }
    assert_eq!(kind(publisher.wait_for_subscribers(1025)), ErrorKind::InvalidArgument);
    subscribers.pop().unwrap().unsubscribe().unwrap();
}
