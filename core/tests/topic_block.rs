//! A reliable subscriber holds its publisher up, and nothing else does: full, dead, stopped and hostile subscribers.

mod support;

use ramway::{ErrorKind, Policy, Publisher, Subscriber, Topic, WaitPolicy};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::topic::{Memory, SLOT_CURSOR, SLOT_STATE, create, is_whole, message, receive, receive_to, send, slot};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

/// After a kill the kernel lets go of the lock, and the publisher asks for it each 100 ms. The rest is for slow machines.
const SOON: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(20);

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Reads nothing.
        ["idle", name] => {
            let _subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            listen();
        }
        // Holds the first message that it is given.
        ["holds", name] => {
            let mut subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            let held = subscriber.recv_timeout(LONG).unwrap();
            say(held.seq());
            listen();
        }
        // Says each message, and each ejection.
        ["reads", name] => {
            let mut subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(message) => {
                        assert!(is_whole(&message, message.seq()), "{}", message.seq());
                        say(format!("{} {}", message.seq(), message.lost()));
                    }
                    Err(e) if e.kind() == ErrorKind::Closed => break,
                    Err(e) => say(format!("{:?} {:?}", e.kind(), e.lost())),
                }
            }
        }
        // A publisher that is to block, and says when it goes on.
        ["publishes", name, how] => {
            let mut publisher = Topic::open(name).publisher().unwrap();
            while publisher.try_send(0, &[0; 500]).is_ok() {}
            say("full");
            go_on(&mut publisher, how);
            say("goes on");
        }
        _ => panic!("{role:?}"),
    }
}

/// Sends one more message, by this kind of wait.
fn go_on(publisher: &mut Publisher, how: &str) {
    match how {
        "send" => publisher.send(0, &[0; 500]).unwrap(),
        "spin" => {
            publisher.set_wait_policy(WaitPolicy::Spin);
            publisher.send(0, &[0; 500]).unwrap();
        }
        "timeouts" => while publisher.send_timeout(0, &[0; 500], Duration::from_millis(3)).is_err() {},
        "try" => {
            while publisher.try_send(0, &[0; 500]).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "descriptor" => {
            let fd = support::readiness::fd(publisher.readiness());
            while publisher.try_send(0, &[0; 500]).is_err() {
                assert!(support::readiness::poll(&fd, LONG));
            }
        }
        _ => panic!("{how}"),
    }
}

fn pair(dir: &Dir) -> (String, Publisher, Subscriber) {
    let name = dir.at("topic");
    let publisher = create(&name, 4096).publisher().unwrap();
    let subscriber = Topic::open(&name).subscriber().unwrap();
    (name, publisher, subscriber)
}

#[test]
fn a_slow_reliable_subscriber_blocks_the_publisher() {
    let dir = Dir::new();
    let (name, mut publisher, mut slow) = pair(&dir);
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut sent = 0;
    while publisher.try_send_tagged(1, sent + 1, &message(sent + 1, 100)).is_ok() {
        sent += 1;
    }
    assert_eq!(sent, rustix::param::page_size() as u64 / 160, "all of the log is the subscriber's");
    assert_eq!(kind(publisher.try_send(0, &[0; 100])), ErrorKind::Full);
    assert_eq!(kind(publisher.try_reserve(100)), ErrorKind::Full);
    assert_eq!(kind(publisher.send_timeout(0, &[0; 100], SHORT)), ErrorKind::TimedOut);
    assert_eq!(kind(publisher.reserve_timeout(100, SHORT)), ErrorKind::TimedOut);
    assert_eq!(kind(publisher.send_batch_timeout(0, 0, [[0; 100]; 3], SHORT)), ErrorKind::TimedOut);
    assert_eq!(publisher.seq(), sent, "what did not fit has taken no number");
    // A message that it has read and not given back blocks as well.
    let held = slow.recv().unwrap();
    assert_eq!(kind(publisher.try_send(0, &[0; 100])), ErrorKind::Full);
    drop(held);
    sent += 1;
    publisher.try_send_tagged(1, sent, &message(sent, 100)).unwrap();
    assert_eq!(kind(publisher.try_send(0, &[0; 100])), ErrorKind::Full);
    // A release wakes it, for each policy of waiting.
    for policy in [WaitPolicy::Hybrid, WaitPolicy::Block, WaitPolicy::Spin] {
        publisher.set_wait_policy(policy);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200 {
                    sent += 1;
                    publisher.send_tagged(1, sent, &message(sent, 100)).unwrap();
                }
            });
            let first = receive(&mut slow).0;
            receive_to(&mut slow, first + 1, first + 199);
        });
    }
    // The lossy one has missed most of it, and knows how much.
    let (seq, lost) = receive(&mut lossy);
    assert_eq!(seq, lost + 1);
}

#[test]
fn who_blocks_it_and_for_how_long_is_said() {
    let dir = Dir::new();
    for eject in [false, true] {
        let name = dir.at(if eject { "eject" } else { "wait" });
        let builder = create(&name, 4096).slots(5);
        let builder = if eject { builder.eject_after(Duration::from_secs(600)) } else { builder };
        let mut publisher = builder.publisher().unwrap();
        let mut fast = Topic::open(&name).label("fast").subscriber().unwrap();
        let mut slow = Topic::open(&name).label("slow").subscriber().unwrap();
        let blocks_for = |publisher: &Publisher, label: &str| {
            let all = publisher.subscribers();
            all.into_iter().find(|one| one.label == label).unwrap().blocks_for
        };
        while publisher.try_send(1, &[0; 500]).is_ok() {
            drop(fast.recv().unwrap());
        }
        let began = Instant::now();
        assert_eq!(kind(publisher.send_timeout(1, &[0; 500], Duration::from_millis(120))), ErrorKind::TimedOut);
        let told = blocks_for(&publisher, "slow").unwrap();
        // By a clock of coarse ticks.
        assert!(told >= Duration::from_millis(90) && told <= began.elapsed() + Duration::from_millis(20), "{told:?}");
        assert_eq!(blocks_for(&publisher, "fast"), None);
        // It reads something: also before the publisher looks.
        drop(slow.recv().unwrap());
        drop(slow.try_recv());
        assert_eq!(blocks_for(&publisher, "slow"), None);
        while publisher.try_send(1, &[0; 500]).is_ok() {}
        assert!(blocks_for(&publisher, "slow").unwrap() < began.elapsed());
        // Another one in the same slot.
        drop(slow);
        let _other = Topic::open(&name).label("slow").from_now().subscriber().unwrap();
        assert_eq!(blocks_for(&publisher, "slow"), None);
    }
}

#[test]
fn nobody_else_blocks_it() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let _lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let _latest = Topic::open(&name).latest().subscriber().unwrap();
    for n in 0..1000 {
        publisher.try_send(0, &[0; 1000]).unwrap_or_else(|e| panic!("{n}: {e}"));
        assert!(publisher.is_empty());
    }
    // One that leaves no longer blocks, whatever it has not read.
    let reliable = Topic::open(&name).subscriber().unwrap();
    while publisher.try_send(0, &[0; 1000]).is_ok() {}
    reliable.close().unwrap();
    publisher.try_send(0, &[0; 1000]).unwrap();
}

#[test]
fn of_several_the_slowest_governs() {
    let dir = Dir::new();
    let (name, mut publisher, mut slowest) = pair(&dir);
    let mut others: Vec<_> = (0..5).map(|_| Topic::open(&name).subscriber().unwrap()).collect();
    for _ in 0..30 {
        let mut sent = 0;
        while publisher.try_send_tagged(1, publisher.seq() + 1, &message(publisher.seq() + 1, 200)).is_ok() {
            sent += 1;
        }
        let last = publisher.seq();
        for subscriber in &mut others {
            receive_to(subscriber, last - sent + 1, last);
            assert_eq!(kind(publisher.try_send(0, &[0; 200])), ErrorKind::Full);
        }
        receive_to(&mut slowest, last - sent + 1, last);
    }
}

#[test]
fn a_killed_subscriber_frees_the_publisher_however_that_waits() {
    let dir = Dir::new();
    for how in ["send", "spin", "timeouts", "try", "descriptor"] {
        let name = dir.at(how);
        let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
        let mut dying = Peer::start(&["holds", &name]);
        dying.expect("ready");
        let mut publishing = Peer::start(&["publishes", &name, how]);
        dying.expect("1");
        publishing.expect("full");
        // It waits, and the check before has just been.
        std::thread::sleep(Duration::from_millis(30));
        let killed = Instant::now();
        dying.kill();
        publishing.expect("goes on");
        let took = killed.elapsed();
        println!("{how}: {took:?}");
        assert!(took < SOON, "{how}: {took:?}");
        publishing.finish();
    }
}

#[test]
fn a_loop_that_only_tries_learns_of_all_the_dead_at_once() {
    let dir = Dir::new();
    let (name, mut publisher, mut alive) = pair(&dir);
    let mut dying: Vec<_> = (0..4).map(|_| Peer::start(&["idle", &name])).collect();
    for peer in &mut dying {
        peer.expect("ready");
    }
    assert_eq!(publisher.subscribers().len(), 5);
    for _ in 0..6 {
        send(&mut publisher, 500);
    }
    receive_to(&mut alive, 1, 6);
    while publisher.try_send(0, &[0; 500]).is_ok() {}
    dying.into_iter().for_each(Peer::kill);
    assert_eq!(publisher.subscribers().iter().filter(|info| info.alive).count(), 1);
    eventually("the dead no longer block", || publisher.try_send(0, &[0; 500]).is_ok());
    assert_eq!(publisher.subscribers().len(), 1, "they are gone, not only their locks");
    assert_eq!(alive.recv().unwrap().seq(), 7);
}

#[test]
fn a_stopped_subscriber_is_ejected_and_told_once() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let eject_after = Duration::from_millis(200);
    let mut publisher = create(&name, 4096).eject_after(eject_after).publisher().unwrap();
    let mut steady = Topic::open(&name).subscriber().unwrap();
    let mut stopped = Peer::start(&["reads", &name]);
    stopped.expect("ready");
    let mut expected = 1;
    for round in 0..3u64 {
        // It reads some, so that it is awake and in order, and then no more.
        for _ in 0..5 {
            let seq = send(&mut publisher, 100);
            assert_eq!(receive(&mut steady), (seq, 0));
            if round == 0 || seq >= expected {
                stopped.expect(&format!("{seq} 0"));
                expected = seq + 1;
            }
        }
        stopped.signal(libc::SIGSTOP);
        let stat = format!("/proc/{}/stat", stopped.pid());
        eventually("it has stopped", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
        let first_unread = publisher.seq() + 1;
        let started = Instant::now();
        let mut blocked_for = Duration::ZERO;
        // More than the log holds.
        for _ in 0..rustix::param::page_size() / 64 {
            let seq = publisher.seq() + 1;
            let before = Instant::now();
            publisher.send_tagged(1, seq, &message(seq, 100)).unwrap();
            blocked_for = blocked_for.max(before.elapsed());
            assert_eq!(receive(&mut steady), (seq, 0), "nobody else is ejected");
        }
        assert!(blocked_for >= eject_after - Duration::from_millis(20), "{blocked_for:?}");
        assert!(started.elapsed() < SOON);
        assert!(publisher.subscribers().iter().any(|info| info.ejected));
        stopped.signal(libc::SIGCONT);
        // Lagged once, with the exact number, then everything from there on.
        let mut said = stopped.hear();
        let mut next = first_unread;
        while !said.starts_with("Lagged") {
            // What it had copied before it was stopped, if anything.
            assert_eq!(said, format!("{next} 0"));
            next += 1;
            said = stopped.hear();
        }
        let lost: u64 = said.strip_prefix("Lagged Some(").unwrap().trim_end_matches(')').parse().unwrap();
        assert!(lost > 0);
        for seq in next + lost..=publisher.seq() {
            stopped.expect(&format!("{seq} 0"));
        }
        expected = publisher.seq() + 1;
        eventually("it has begun anew", || publisher.subscribers().iter().all(|info| !info.ejected));
        let info = publisher.subscribers().into_iter().find(|info| info.epoch == round as u32 + 2).unwrap();
        assert!(info.lost >= lost && info.alive);
    }
    publisher.close().unwrap();
    stopped.finish();
}

/// In one process: an ejection in the middle of a batch leaves the messages of the batch alone.
#[test]
fn an_ejection_leaves_the_copies_of_a_batch_alone() {
    let dir = Dir::new();
    let name = dir.at("topic");
    // Long messages, so that the copies lie in memory that goes back to the system where it is freed.
    let mut publisher = create(&name, 1 << 20).eject_after(Duration::from_millis(30)).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    let payload = |seq: u64| vec![seq as u8; 100_000];
    for round in 0..4 {
        let base = publisher.seq();
        for n in 1..=8 {
            publisher.send(0, &payload(base + n)).unwrap();
        }
        let mut batch = subscriber.recv_batch(100).unwrap();
        let mut iter = batch.iter();
        // Some of what is there, or all of it: then the next look for more finds the ejection.
        let taken = if round % 2 == 0 { 5 } else { 8 };
        let views: Vec<_> = iter.by_ref().take(taken).collect();
        for n in 9..=30 {
            publisher.send(0, &payload(base + n)).unwrap();
        }
        // The next one is gone; the batch ends, and those before it stay as they were.
        assert_eq!(iter.by_ref().count(), 0);
        let others: Vec<_> = (0..5).map(|_| vec![0xEEu8; 200_000]).collect();
        assert_eq!(iter.count(), 0);
        for (view, n) in views.iter().zip(1..) {
            assert_eq!(view.seq(), base + n);
            assert!(**view == payload(base + n)[..], "round {round}, message {n}");
        }
        drop((batch, others));
        let lagged = subscriber.recv().unwrap_err();
        assert_eq!(lagged.kind(), ErrorKind::Lagged);
        for seq in base + taken as u64 + 1 + lagged.lost().unwrap()..=base + 30 {
            let received = subscriber.recv().unwrap();
            assert!((received.seq(), received.lost()) == (seq, 0) && *received == payload(seq)[..]);
        }
        assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
        assert!(subscriber.lost() > 0);
    }
}

#[test]
fn every_call_of_a_subscriber_tells_the_ejection_once() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).eject_after(Duration::from_millis(10)).publisher().unwrap();
    let mut subscriber = Topic::open(&name).subscriber().unwrap();
    let mut buffer = Vec::new();
    let mut lost = 0;
    for call in 0..8 {
        let next = publisher.seq() + 1;
        for _ in 0..rustix::param::page_size() / 64 {
            send(&mut publisher, 100);
        }
        let told = match call {
            0 => subscriber.recv().map(drop),
            1 => subscriber.try_recv().map(drop),
            2 => subscriber.recv_timeout(LONG).map(drop),
            3 => subscriber.recv_batch(9).map(drop),
            4 => subscriber.recv_into(&mut buffer).map(drop),
            5 => subscriber.try_recv_into_slice(&mut [0; 1000]).map(drop),
            6 => subscriber.iter().next().unwrap().map(drop),
            _ => {
                // The newest one is there all the while; then it is told.
                assert_eq!(subscriber.latest().unwrap().seq(), publisher.seq());
                subscriber.recv().map(drop)
            }
        };
        let told = told.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Lagged, "call {call}");
        lost += told.lost().unwrap();
        assert_eq!(subscriber.lost(), lost);
        receive_to(&mut subscriber, next + told.lost().unwrap(), publisher.seq());
    }
    // A subscriber that has nothing to read is not ejected, however long the publisher sends nothing.
    std::thread::sleep(Duration::from_millis(50));
    let seq = send(&mut publisher, 100);
    assert_eq!(receive(&mut subscriber), (seq, 0));
}

#[test]
fn one_that_reads_a_little_is_not_ejected() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let eject_after = Duration::from_millis(400);
    let mut publisher = create(&name, 4096).eject_after(eject_after).publisher().unwrap();
    let mut slow = Topic::open(&name).subscriber().unwrap();
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..40 {
                send(&mut publisher, 500);
            }
        });
        // More than the time in all, less than it between two messages.
        for n in 1..=40 {
            std::thread::sleep(Duration::from_millis(30));
            assert_eq!(receive(&mut slow), (n, 0));
        }
    });
    assert!(started.elapsed() > eject_after * 2);
}

#[test]
fn where_ejecting_was_not_allowed_it_is_refused() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
    let refused = Topic::open(&name).eject_after(Duration::from_secs(1)).publisher().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("may_eject"), "{refused}");
    Topic::open(&name).publisher().unwrap();
}

#[test]
fn a_subscriber_that_scribbles_over_its_slot_hurts_only_itself() {
    let dir = Dir::new();
    let values = [0, 1, 31, 32, 4096, u64::MAX, u64::MAX - 31, 1 << 63, 0x5555_5555_5555_5555];
    for may_eject in [false, true] {
        let name = dir.at(&format!("topic-{may_eject}"));
        let mut builder = create(&name, 4096).slots(4);
        if may_eject {
            builder = builder.eject_after(Duration::from_millis(20));
        }
        let mut publisher = builder.publisher().unwrap();
        let mut steady = Topic::open(&name).label("steady").subscriber().unwrap();
        let memory = Memory::map(&name);
        for value in values {
            for word in [SLOT_CURSOR, SLOT_STATE, 0x10, 0x18, 0x20, 0x28, 0x40, 0x78] {
                let mut scribbler = Topic::open(&name).from_now().subscriber().unwrap();
                let seq = send(&mut publisher, 100);
                assert_eq!(receive(&mut steady), (seq, 0));
                memory.u64(slot(1) + word).store(value, Ordering::SeqCst);
                // The publisher goes on, at the latest when the scribbler is gone.
                for n in 0..60 {
                    let seq = publisher.seq() + 1;
                    match publisher.send_timeout(1, &message(seq, 100), Duration::from_millis(1)) {
                        Ok(()) => {
                            let received = steady.recv().unwrap();
                            assert!(received.seq() == seq && is_whole(&received, seq));
                        }
                        Err(e) => {
                            assert_eq!(e.kind(), ErrorKind::TimedOut, "{n}: {e}");
                            break;
                        }
                    }
                }
                let _ = publisher.subscribers();
                for _ in 0..3 {
                    let _ = scribbler.try_recv().map(drop);
                }
                let _ = scribbler.lag();
                drop(scribbler);
                // Nobody holds the lock: what the slot says no longer counts, once the publisher has looked.
                if memory.u64(slot(1) + SLOT_STATE).load(Ordering::SeqCst) & 4 != 0 {
                    memory.u64(slot(1) + SLOT_STATE).store(0, Ordering::SeqCst);
                }
                let seq = publisher.seq() + 1;
                let outcome = publisher.send_timeout(1, &message(seq, 100), SOON);
                let infos = publisher.subscribers();
                assert!(outcome.is_ok(), "{value:#x} in word {word:#x}: {outcome:?}, {infos:?}");
                assert_eq!(steady.recv().unwrap().seq(), seq);
            }
        }
        let infos = publisher.subscribers();
        assert!(infos.iter().any(|info| info.label == "steady" && info.policy == Policy::Reliable));
    }
}
