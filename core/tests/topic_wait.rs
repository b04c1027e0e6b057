//! How topics wait: for each other, for a waker, by readiness descriptors; and that no wake-up is lost among many.

mod support;

use ramway::layout::{BLOCK_OFFSETS, ROLE_FENCE_FREE, RoleLine, TopicBlock};
use ramway::{ErrorKind, Policy, Publisher, Subscriber, Topic, WaitPolicy};
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::readiness::{
    fd, forbid, has_uring, jitter, kind, must_become_readable, part, poll, said, with_both_methods,
};
use support::topic::{POLICIES, create, is_whole, message, receive, send};
use support::{Dir, LONG, readiness};

const SHORT: Duration = Duration::from_millis(20);

/// What a process can make descriptors with; not a test of its own.
#[test]
fn uring_is_there() {
    if std::env::var(readiness::TEST_NAME).is_ok_and(|it| it == "uring_is_there") {
        let (_tx, mut rx) = ramway::Ring::pair(4096).unwrap();
        rx.readiness().unwrap();
    } else {
        println!("io_uring: {}", has_uring());
    }
}

fn open(name: &str, policy: Policy) -> Subscriber {
    Topic::open(name).policy(policy).subscriber().unwrap()
}

/// Each message wakes every sleeper, of each policy, by each way of waiting; none sleeps through one.
#[test]
fn one_message_wakes_all_and_none_is_slept_through() {
    let dir = Dir::new();
    for (round, membarrier) in [true, false].into_iter().enumerate() {
        let name = dir.at(&format!("topic{round}"));
        let mut publisher = create(&name, 1 << 14).membarrier(membarrier || round == 0).publisher().unwrap();
        const COUNT: u64 = 1500;
        let progress: Vec<_> = (0..6).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for (i, progress) in progress.iter().enumerate() {
                let builder = Topic::open(&name).policy(POLICIES[i % 3]).membarrier(membarrier || i % 2 == 0);
                let mut subscriber = builder.subscriber().unwrap();
                if i >= 3 {
                    subscriber.set_wait_policy(WaitPolicy::Block);
                }
                scope.spawn(move || {
                    let mut before = 0;
                    while before < COUNT {
                        let received = subscriber.recv_timeout(LONG).unwrap();
                        assert!(received.seq() > before && is_whole(&received, received.seq()));
                        before = received.seq();
                        progress.store(before, Ordering::Release);
                    }
                });
            }
            let mut seed = 11;
            let started = Instant::now();
            for seq in 1..=COUNT {
                send(&mut publisher, 64);
                // All of them, before the next one: a wake-up that is lost shows here as a wait of 100 ms.
                while progress.iter().any(|progress| progress.load(Ordering::Acquire) < seq) {
                    std::thread::yield_now();
                    assert!(started.elapsed() < LONG, "message {seq}: {progress:?}");
                }
                if seq % 3 == 0 {
                    jitter(&mut seed);
                }
            }
            let each = started.elapsed() / COUNT as u32;
            println!("{each:?} a message to six");
            assert!(each < Duration::from_millis(30), "{each:?}: wake-ups are lost");
        });
    }
}

/// Who sleeps before nearly every message needs no membarrier: the publisher fences, and no longer than that lasts.
#[test]
fn a_publisher_fences_while_subscribers_sleep_often() {
    /// The type id of the last message.
    const LAST: u32 = 77;
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 1 << 16).publisher().unwrap();
    let header = std::fs::File::open(&name).unwrap();
    let is_fence_free = || {
        let mut flags = [0; 4];
        let at = (BLOCK_OFFSETS[0] + offset_of!(TopicBlock, publisher) + offset_of!(RoleLine, flags)) as u64;
        header.read_exact_at(&mut flags, at).unwrap();
        u32::from_ne_bytes(flags) & ROLE_FENCE_FREE != 0
    };
    if !is_fence_free() {
        println!("no membarrier here");
        return;
    }
    let progress = AtomicU64::new(0);
    let mut subscriber = open(&name, Policy::Reliable);
    subscriber.set_wait_policy(WaitPolicy::Block);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(message) = subscriber.recv() {
                let (seq, last) = (message.seq(), message.type_id() == LAST);
                drop(message);
                progress.store(seq, Ordering::Release);
                if last {
                    break;
                }
            }
            drop(subscriber);
        });
        let started = Instant::now();
        while is_fence_free() {
            send(&mut publisher, 64);
            while progress.load(Ordering::Acquire) < publisher.seq() {
                std::thread::yield_now();
            }
            // It falls asleep.
            std::thread::sleep(Duration::from_millis(1));
            assert!(started.elapsed() < LONG, "the publisher does not fence after {} messages", publisher.seq());
        }
        publisher.send(LAST, &[]).unwrap();
    });
    // Nobody sleeps any more.
    (0..1000).for_each(|_| publisher.send(0, &[0; 64]).unwrap());
    assert!(is_fence_free(), "the publisher still fences after 1000 messages for nobody");
}

#[test]
fn a_waker_ends_one_wait_and_disturbs_nobody_else() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    for policy in POLICIES {
        let (mut woken, mut others) = (open(&name, policy), POLICIES.map(|policy| open(&name, policy)));
        while woken.try_recv().is_ok() {}
        for other in &mut others {
            while other.try_recv().is_ok() {}
        }
        let waker = woken.waker();
        std::thread::scope(|scope| {
            let others = others.each_mut().map(|other| scope.spawn(|| receive(other).0));
            let ended = scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(kind(woken.recv()), ErrorKind::Interrupted);
                }
                woken
            });
            while !ended.is_finished() {
                waker.wake();
                std::thread::sleep(Duration::from_micros(300));
            }
            let mut woken = ended.join().unwrap();
            // One that comes while nobody waits ends the next wait, and only that.
            waker.wake();
            assert_eq!(kind(woken.recv_timeout(LONG)), ErrorKind::Interrupted);
            waker.wake();
            let seq = send(&mut publisher, 8);
            // What is there goes before it.
            assert_eq!(receive(&mut woken).0, seq);
            for other in others {
                assert_eq!(other.join().unwrap(), seq);
            }
        });
    }
    // A publisher that waits for room.
    let mut slow = Topic::open(&name).from_now().subscriber().unwrap();
    while publisher.try_send(0, &[0; 500]).is_ok() {}
    let waker = publisher.waker();
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| kind(publisher.send(0, &[0; 500])));
        std::thread::sleep(SHORT);
        waker.wake();
        assert_eq!(blocked.join().unwrap(), ErrorKind::Interrupted);
    });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| kind(publisher.wait_for_subscribers(2)));
        std::thread::sleep(SHORT);
        waker.wake();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Interrupted);
    });
    assert!(slow.recv().is_ok());
    drop(slow);
    waker.wake();
    publisher.try_send(0, &[0; 500]).unwrap();
}

#[test]
fn waiting_for_subscribers_counts_the_reliable_ones_that_live() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).slots(4).publisher().unwrap();
    publisher.wait_for_subscribers(0).unwrap();
    assert_eq!(kind(publisher.wait_for_subscribers_timeout(1, SHORT)), ErrorKind::TimedOut);
    assert_eq!(kind(publisher.wait_for_peer_timeout(SHORT)), ErrorKind::TimedOut);
    assert!(!publisher.is_peer_alive());
    let refused = publisher.wait_for_subscribers(5).unwrap_err();
    assert!(refused.kind() == ErrorKind::InvalidArgument && refused.to_string().contains("4 slots"), "{refused}");
    let _others = [open(&name, Policy::Lossy), open(&name, Policy::Latest)];
    assert_eq!(kind(publisher.wait_for_subscribers_timeout(1, SHORT)), ErrorKind::TimedOut);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            publisher.wait_for_subscribers(2).unwrap();
            publisher.wait_for_peer().unwrap();
            Instant::now()
        });
        let first = open(&name, Policy::Reliable);
        std::thread::sleep(SHORT);
        assert!(!waiting.is_finished());
        let joined = Instant::now();
        let second = open(&name, Policy::Reliable);
        // A join wakes it; it is not found by and by.
        let took = waiting.join().unwrap().saturating_duration_since(joined);
        println!("seen after {took:?}");
        drop((first, second));
    });
    assert_eq!(kind(publisher.wait_for_subscribers_timeout(1, SHORT)), ErrorKind::TimedOut);
    // One that is away holds the publisher up, and is not there.
    drop(Topic::open(&name).label("away").durable(true).subscriber().unwrap());
    assert_eq!(kind(publisher.wait_for_subscribers_timeout(1, SHORT)), ErrorKind::TimedOut);
    Topic::open(&name).label("away").subscriber().unwrap().unsubscribe().unwrap();
}

#[test]
fn a_subscriber_waits_for_the_publisher() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
    for policy in POLICIES {
        let mut subscriber = open(&name, policy);
        assert!(!subscriber.is_peer_alive());
        assert_eq!(kind(subscriber.wait_for_peer_timeout(SHORT)), ErrorKind::TimedOut);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| subscriber.wait_for_peer().unwrap());
            std::thread::sleep(SHORT / 4);
            let publisher = Topic::open(&name).publisher().unwrap();
            assert_eq!(waiting.join().unwrap(), publisher.epoch());
        });
        assert_eq!(kind(subscriber.recv()), ErrorKind::Closed);
    }
}

fn until_readable<T>(fd: impl AsFd, what: &str, mut call: impl FnMut() -> ramway::Result<T>) -> ramway::Result<T> {
    loop {
        match call() {
            Err(e) if matches!(e.kind(), ErrorKind::Empty | ErrorKind::Full) => must_become_readable(fd.as_fd(), what),
            outcome => return outcome,
        }
    }
}

#[test]
fn event_loops_of_each_policy_and_of_the_publisher() {
    with_both_methods("event_loops_of_each_policy_and_of_the_publisher", |_| {
        let dir = Dir::new();
        let name = dir.at("topic");
        let mut publisher = create(&name, 4096).publisher().unwrap();
        const COUNT: u64 = 4000;
        std::thread::scope(|scope| {
            for policy in POLICIES {
                let mut subscriber = open(&name, policy);
                scope.spawn(move || {
                    let fd = fd(subscriber.readiness());
                    let (mut before, mut total, mut seed) = (0, 0, 5);
                    while before < COUNT {
                        let (seq, lost) = until_readable(&fd, "a message", || {
                            subscriber.try_recv().map(|received| {
                                assert!(is_whole(&received, received.seq()));
                                (received.seq(), received.lost())
                            })
                        })
                        .unwrap();
                        assert!(seq > before && (policy != Policy::Reliable || (seq, lost) == (before + 1, 0)));
                        total += 1 + lost;
                        before = seq;
                        if policy == Policy::Reliable {
                            jitter(&mut seed);
                        }
                    }
                    assert!(total == COUNT || policy == Policy::Latest);
                });
            }
            publisher.wait_for_subscribers(1).unwrap();
            let fd = fd(publisher.readiness());
            for seq in 1..=COUNT {
                let bytes = message(seq, (seq * 7 % 490) as usize);
                until_readable(&fd, "room", || publisher.try_send_tagged(1, seq, &bytes)).unwrap();
            }
        });
        // What ends a stream is news as well.
        let mut subscribers = POLICIES.map(|policy| open(&name, policy));
        let fds = subscribers.each_mut().map(|subscriber| fd(subscriber.readiness()));
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            while subscriber.try_recv().is_ok() {}
            assert!(!poll(fd, SHORT));
        }
        publisher.close().unwrap();
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            must_become_readable(fd.as_fd(), "the close");
            assert_eq!(kind(subscriber.try_recv()), ErrorKind::Closed);
        }
        // A successor, and a message of it.
        let mut publisher = Topic::open(&name).publisher().unwrap();
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            assert_eq!(kind(until(subscriber)), ErrorKind::Empty);
            assert!(!poll(fd, SHORT));
        }
        let seq = send(&mut publisher, 10);
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            must_become_readable(fd.as_fd(), "a message of the successor");
            assert_eq!(subscriber.try_recv().unwrap().seq(), seq);
        }
    });
}

/// A `try_` call that is not about the end before.
fn until(subscriber: &mut Subscriber) -> ramway::Result<()> {
    subscriber.try_recv().map(drop)
}

#[test]
fn the_death_of_the_publisher_makes_descriptors_readable() {
    const TEST: &str = "the_death_of_the_publisher_makes_descriptors_readable";
    with_both_methods(TEST, |name| {
        if !name.is_empty() {
            let mut publisher = Topic::open(name).publisher().unwrap();
            send(&mut publisher, 10);
            readiness::say("ready");
            std::thread::sleep(LONG);
            return;
        }
        let dir = Dir::new();
        let name = dir.at("topic");
        let _keeps = create(&name, 4096).lossy().subscriber().unwrap();
        let mut subscribers = POLICIES.map(|policy| open(&name, policy));
        let fds = subscribers.each_mut().map(|subscriber| fd(subscriber.readiness()));
        let mut other = part(TEST, &name);
        assert!(said(&mut other, "ready"));
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            assert_eq!(until_readable(fd, "the message", || receive_now(subscriber)).unwrap(), 1);
            assert_eq!(kind(receive_now(subscriber)), ErrorKind::Empty);
        }
        other.kill().unwrap();
        other.wait().unwrap();
        let killed = Instant::now();
        for (subscriber, fd) in subscribers.iter_mut().zip(&fds) {
            let end = until_readable(fd, "the death", || receive_now(subscriber)).unwrap_err();
            assert_eq!(end.kind(), ErrorKind::PeerDead);
        }
        println!("figure: seen after {:?}", killed.elapsed());
    });
}

fn receive_now(subscriber: &mut Subscriber) -> ramway::Result<u64> {
    subscriber.try_recv().map(|received| received.seq())
}

/// A publisher that waits in an event loop ejects, removes the dead, and goes on.
#[test]
fn a_publisher_in_an_event_loop_ejects() {
    with_both_methods("a_publisher_in_an_event_loop_ejects", |_| {
        let dir = Dir::new();
        let name = dir.at("topic");
        let eject_after = Duration::from_millis(150);
        let mut publisher = create(&name, 4096).eject_after(eject_after).publisher().unwrap();
        let mut slow = open(&name, Policy::Reliable);
        let fd = fd(publisher.readiness());
        while publisher.try_send(0, &[0; 500]).is_ok() {}
        let started = Instant::now();
        until_readable(&fd, "the ejection", || publisher.try_send(0, &[0; 500])).unwrap();
        assert!(started.elapsed() >= eject_after - Duration::from_millis(20), "{:?}", started.elapsed());
        assert_eq!(kind(slow.recv()), ErrorKind::Lagged);
    });
}

/// Where one process cannot make the order that the other leaves out, both sleep for a millisecond at most.
#[test]
fn processes_that_may_not_membarrier() {
    const TEST: &str = "processes_that_may_not_membarrier";
    with_both_methods(TEST, |name| {
        if !name.is_empty() {
            forbid(libc::SYS_membarrier);
            let mut subscribers = POLICIES.map(|policy| open(name, policy));
            readiness::say("ready");
            // A subscriber that reads the newest message may be ahead: then there is nothing to wait for.
            let mut seen = [0; 3];
            for seq in 1..=500u64 {
                assert_eq!(receive(&mut subscribers[0]), (seq, 0));
                for (subscriber, seen) in subscribers.iter_mut().zip(&mut seen).skip(1) {
                    while *seen < seq {
                        *seen = subscriber.recv_timeout(LONG).unwrap().seq();
                    }
                }
            }
            return;
        }
        let dir = Dir::new();
        let name = dir.at("topic");
        let mut publisher: Publisher = create(&name, 4096).publisher().unwrap();
        let mut here = open(&name, Policy::Reliable);
        let mut other = part(TEST, &name);
        assert!(said(&mut other, "ready"));
        let started = Instant::now();
        for _ in 0..500 {
            let seq = send(&mut publisher, 100);
            assert_eq!(receive(&mut here), (seq, 0));
            while !publisher.is_empty() {
                std::thread::sleep(Duration::from_micros(100));
                assert!(started.elapsed() < LONG);
            }
        }
        assert!(other.wait().unwrap().success());
    });
}
