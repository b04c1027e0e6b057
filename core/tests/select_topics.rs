//! `Select` over topics: subscribers of each policy and access, room in publishers, processes that are killed.

mod support;

use ramway::{ErrorKind, Policy, Publisher, Select, Source, Subscriber, Topic};
use std::time::{Duration, Instant};
use support::topic::{POLICIES, create, receive, send};
use support::{Dir, LONG, Peer, helper_role, listen, only, say};

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["publishes-one", name] => {
            let mut publisher = Topic::open(name).publisher().unwrap();
            send(&mut publisher, 100);
            say("sent");
            listen();
        }
        ["holds-up", name] => {
            let _subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

fn sources(subscribers: &mut [Subscriber]) -> Vec<&mut dyn Source> {
    subscribers.iter_mut().map(|subscriber| subscriber as &mut dyn Source).collect()
}

/// More than `futex_waitv` is given, and more than it takes; each of them wakes the wait.
fn of_many(count: usize) {
    let dir = Dir::new();
    let name = |i: usize| dir.at(&format!("topic{i}"));
    let mut publishers: Vec<Publisher> =
        (0..count).map(|i| create(&name(i), 4096).slots(2).mode(0o644).publisher().unwrap()).collect();
    let open = |i: usize| {
        let builder = Topic::open(name(i)).policy(POLICIES[i % 3]);
        // Some that cannot say that they wait.
        if !i.is_multiple_of(3) && i.is_multiple_of(2) { builder.read_only(true) } else { builder }
            .subscriber()
            .unwrap()
    };
    let mut subscribers: Vec<Subscriber> = (0..count).map(open).collect();
    let mut select = Select::new();
    assert!(select.wait(&mut sources(&mut subscribers), Some(SHORT)).unwrap().is_empty());
    for index in (0..count).step_by(count.div_ceil(10)).chain([count - 1]) {
        std::thread::scope(|scope| {
            let publisher = &mut publishers[index];
            scope.spawn(move || {
                std::thread::sleep(SHORT);
                send(publisher, 100);
            });
            let started = Instant::now();
            let ready = select.wait(&mut sources(&mut subscribers), Some(LONG)).unwrap().to_vec();
            assert_eq!(ready, [index], "of {count}");
            assert!(started.elapsed() < LONG / 2);
        });
        assert_eq!(receive(&mut subscribers[index]).1, 0);
    }
    assert!(select.wait(&mut sources(&mut subscribers), Some(Duration::ZERO)).unwrap().is_empty());
}

#[test]
fn a_message_for_one_of_many() {
    [1, 7, 40, 150].into_iter().for_each(of_many);
}

/// The same where the kernel gives no io_uring.
#[test]
fn a_message_for_one_of_many_without_an_io_uring() {
    const TEST: &str = "a_message_for_one_of_many";
    let mut command = only(TEST);
    let output = command.env("RAMWAY_READINESS", "thread").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn a_publisher_that_is_killed_makes_each_of_its_subscribers_ready() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
    let mut subscribers = POLICIES.map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap());
    // Another one that never has anything to say.
    let quiet = dir.at("quiet");
    let _quiet = create(&quiet, 4096).publisher().unwrap();
    let mut all: Vec<Subscriber> = vec![Topic::open(&quiet).subscriber().unwrap()];
    let mut peer = Peer::start(&["publishes-one", &name]);
    peer.expect("sent");
    subscribers.iter_mut().for_each(|subscriber| assert_eq!(receive(subscriber), (1, 0)));
    all.extend(subscribers);
    let mut select = Select::new();
    assert!(select.wait(&mut sources(&mut all), Some(SHORT)).unwrap().is_empty());
    peer.kill();
    let mut ended = [false; 4];
    while ended != [false, true, true, true] {
        for index in select.wait(&mut sources(&mut all), Some(LONG)).unwrap().to_vec() {
            assert_eq!(all[index].try_recv().map(drop).unwrap_err().kind(), ErrorKind::PeerDead);
            ended[index] = true;
        }
    }
    // Its successor's messages are for all of them.
    let mut peer = Peer::start(&["publishes-one", &name]);
    peer.expect("sent");
    for subscriber in &mut all[1..] {
        assert_eq!(receive(subscriber), (2, 0));
    }
    peer.kill();
}

#[test]
fn room_in_a_publisher_that_a_subscriber_holds_up() {
    let dir = Dir::new();
    for (case, eject) in [("leaves", false), ("is killed", false), ("is ejected", true)] {
        let name = dir.at(case);
        let builder = create(&name, 4096);
        let builder = if eject { builder.eject_after(Duration::from_millis(50)) } else { builder };
        let mut publisher = builder.publisher().unwrap();
        let mut peer = Peer::start(&["holds-up", &name]);
        peer.expect("ready");
        while publisher.try_send(1, &[0; 500]).is_ok() {}
        let mut select = Select::new();
        if !eject {
            assert!(select.wait(&mut [&mut publisher.room(500)], Some(SHORT)).unwrap().is_empty(), "{case}");
        }
        let peer = match case {
            "leaves" => {
                peer.finish();
                None
            }
            "is killed" => {
                peer.kill();
                None
            }
            _ => Some(peer),
        };
        let ready = select.wait(&mut [&mut publisher.room(500)], Some(LONG)).unwrap().to_vec();
        assert_eq!(ready, [0], "{case}");
        publisher.try_send(1, &[0; 500]).unwrap();
        drop(peer);
    }
}

/// One that reads the newest value only is ready once for each newer one, and not for the one that it has seen.
#[test]
fn the_newest_value_is_ready_once() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut latest = Topic::open(&name).policy(Policy::Latest).subscriber().unwrap();
    let mut select = Select::new();
    let mut ready = |latest: &mut Subscriber| {
        (0..40).map(|_| select.wait(&mut [&mut *latest], Some(Duration::ZERO)).unwrap().len()).collect::<Vec<_>>()
    };
    for round in 0..3 {
        send(&mut publisher, 100);
        send(&mut publisher, 100);
        assert_eq!(ready(&mut latest), [1; 40]);
        let newest = if round == 1 { latest.latest() } else { latest.try_recv() };
        assert_eq!(newest.unwrap().seq(), publisher.seq());
        assert_eq!(ready(&mut latest), [0; 40]);
    }
}
