//! Bad days of a topic, each with real processes: readers that are stopped, and others that come and go by the thousand.

mod support;

use ramway::{ErrorKind, Policy, Topic};
use std::time::{Duration, Instant};
use support::topic::{create, is_whole, message};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

const SHORT: Duration = Duration::from_millis(20);

fn policy(text: &str) -> Policy {
    match text {
        "reliable" => Policy::Reliable,
        "lossy" => Policy::Lossy,
        "latest" => Policy::Latest,
        _ => panic!("{text}"),
    }
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Says the number of each message, and how many were lost before it.
        ["says", name, how] => {
            let mut subscriber = Topic::open(name).policy(policy(how)).label(how).subscriber().unwrap();
            say("ready");
            let end = loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(received) => {
                        assert!(is_whole(&received, received.seq()));
                        say(format!("{} {}", received.seq(), received.lost()));
                    }
                    Err(e) => break e.kind(),
                }
            };
            say(format!("{end:?} {}", subscriber.lost()));
        }
        // Publishes as fast as it can until it is told to stop.
        ["publishes", name] => {
            let mut publisher = Topic::open(name).publisher().unwrap();
            publisher.wait_for_subscribers(1).unwrap();
            say("ready");
            let (stop, wait) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                listen();
                stop.send(()).unwrap();
            });
            while wait.try_recv().is_err() {
                for _ in 0..64 {
                    let seq = publisher.seq() + 1;
                    publisher.send(1, &message(seq, (seq as usize * 31) % 200)).unwrap();
                }
            }
            say(publisher.seq());
            publisher.close().unwrap();
        }
        // Sees every message, to the end.
        ["steady", name] => {
            let mut subscriber = Topic::open(name).subscriber().unwrap();
            say("ready");
            let mut next = 1;
            loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(received) => {
                        assert_eq!((received.seq(), received.lost()), (next, 0));
                        assert!(is_whole(&received, next));
                        next += 1;
                    }
                    Err(e) if e.kind() == ErrorKind::Closed => break,
                    Err(e) => panic!("{e}"),
                }
            }
            say(next - 1);
        }
        // Joins and leaves so many times. What it is given is whole and in order.
        ["joins", name, count] => {
            let began = Instant::now();
            for n in 0..count.parse::<u64>().unwrap() {
                let builder = Topic::open(name).timeout(LONG);
                let builder = match n % 6 {
                    0 => builder,
                    1 => builder.from_now(),
                    2 => builder.history(3).label(format!("one of {}", std::process::id())),
                    3 => builder.after_seq(n),
                    4 => builder.lossy().history(5),
                    _ => builder.latest(),
                };
                let mut subscriber = builder.subscriber().unwrap();
                let mut before = None;
                for _ in 0..n % 3 {
                    let Ok(received) = subscriber.recv_timeout(SHORT) else { break };
                    assert!(is_whole(&received, received.seq()));
                    assert!(before.is_none_or(|before| received.seq() == before + 1 + received.lost()));
                    before = Some(received.seq());
                }
            }
            say(format!("{count} joins in {:?}", began.elapsed()));
        }
        _ => panic!("{role:?}"),
    }
}

/// Whether the kernel has stopped it.
fn stop(peer: &Peer) {
    peer.signal(libc::SIGSTOP);
    let stat = format!("/proc/{}/stat", peer.pid());
    eventually("it has stopped", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
}

/// For as long as several rounds of asking who lives. `RAMWAY_TEST_STOP_SECONDS=60`: for a minute.
fn stop_time() -> Duration {
    let seconds = std::env::var("RAMWAY_TEST_STOP_SECONDS").ok().map(|text| text.parse().unwrap());
    seconds.map_or(Duration::from_millis(600), Duration::from_secs)
}

/// Stopped is not dead: the publisher waits, and nothing is lost.
#[test]
fn a_reliable_reader_that_is_stopped_holds_up_the_publisher_and_misses_nothing() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reader = Peer::start(&["says", &name, "reliable"]);
    reader.expect("ready");
    publisher.send(1, &message(1, 100)).unwrap();
    reader.expect("1 0");
    stop(&reader);
    let until = Instant::now() + stop_time();
    while Instant::now() < until {
        let seq = publisher.seq() + 1;
        let _ = publisher.send_timeout(1, &message(seq, 100), Duration::from_millis(150));
    }
    let info = &publisher.subscribers()[0];
    assert!(info.alive && info.label == "reliable" && info.lag.unwrap().bytes > 3000, "{info:?}");
    let blocked_at = publisher.seq();
    assert_eq!(publisher.try_send(1, &[0; 100]).unwrap_err().kind(), ErrorKind::Full);
    reader.signal(libc::SIGCONT);
    for seq in blocked_at + 1..=blocked_at + 50 {
        publisher.send_timeout(1, &message(seq, 100), LONG).unwrap();
    }
    publisher.close().unwrap();
    (2..=blocked_at + 50).for_each(|seq| reader.expect(&format!("{seq} 0")));
    reader.expect("Closed 0");
    reader.finish();
}

/// The publisher goes on, and each of them knows afterwards exactly what it missed.
#[test]
fn other_readers_that_are_stopped_hold_up_nobody() {
    let dir = Dir::new();
    for how in ["lossy", "latest"] {
        let name = dir.at(how);
        let mut publisher = create(&name, 4096).publisher().unwrap();
        let mut reader = Peer::start(&["says", &name, how]);
        reader.expect("ready");
        publisher.send(1, &message(1, 100)).unwrap();
        reader.expect("1 0");
        stop(&reader);
        let until = Instant::now() + stop_time();
        while Instant::now() < until {
            let seq = publisher.seq() + 1;
            publisher.try_send(1, &message(seq, 100)).unwrap();
        }
        let last = publisher.seq();
        publisher.close().unwrap();
        reader.signal(libc::SIGCONT);
        let (mut next, mut total) = (2, 0);
        let end = loop {
            let said = reader.hear();
            if said.starts_with("Closed") {
                break said;
            }
            let (seq, lost) = said.split_once(' ').unwrap();
            let (seq, lost): (u64, u64) = (seq.parse().unwrap(), lost.parse().unwrap());
            assert_eq!(seq, next + lost);
            (next, total) = (seq + 1, total + lost);
        };
        assert_eq!((next, end), (last + 1, format!("Closed {total}")));
        assert!(total > 100, "{total} lost");
        reader.finish();
    }
}

/// Two processes that join and leave as fast as they can, while one publishes as fast as it can. Who is there all the while
/// misses nothing.
#[test]
fn joins_and_leaves_by_the_thousand_under_full_load() {
    const JOINS: u64 = 1_000;
    let dir = Dir::new();
    let name = dir.at("topic");
    let keeps = create(&name, 1 << 16).slots(8).lossy().subscriber().unwrap();
    let mut publishes = Peer::start(&["publishes", &name]);
    let mut steady = Peer::start(&["steady", &name]);
    steady.expect("ready");
    publishes.expect("ready");
    let mut joiners = [(); 2].map(|()| Peer::start(&["joins", &name, &JOINS.to_string()]));
    for joiner in &mut joiners {
        println!("{}", joiner.hear());
    }
    joiners.into_iter().for_each(Peer::finish);
    publishes.tell("stop");
    let last = publishes.hear();
    steady.expect(&last);
    assert!(last.parse::<u64>().unwrap() > JOINS, "{last} messages");
    println!("{last} messages");
    publishes.finish();
    steady.finish();
    // All have left: no slot is in use but that of the one that is here.
    let publisher = Topic::open(&name).publisher().unwrap();
    assert_eq!(publisher.subscribers().len(), 1, "{:?}", publisher.subscribers());
    drop((publisher, keeps));
    assert_eq!(dir.names(), [""; 0]);
}
