//! A topic whose publisher and subscribers are killed at random, thousands of times. `make kills` runs it for longer.
//!
//! One process forks the others, kills one after a random time, and forks it anew. Each of them checks what it is given as
//! long as it lives. This process has a subscriber that is never killed, and must miss nothing.

mod support;

use ramway::{ErrorKind, Message, Policy, Publisher, Result, Subscriber, SubscriberInfo, Topic, TopicBuilder};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::topic::{fill, is_whole, message};
use support::{Dir, LONG, Peer, eventually, helper_role, say};

const CAPACITY: u64 = 16 << 10;
const LABEL: &str = "recorder";
/// The last message's tag.
const END: u64 = u64::MAX;

/// A number from the environment. `RAMWAY_TEST_KILLS`: how many are killed in each test; `RAMWAY_TEST_SEED`: of all that is
/// random, printed by each run (times are not in it).
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["campaign", name, eject, kills, seed, record] => {
            let number = |text: &str| text.parse().unwrap();
            campaign(name, eject == "eject", number(kills), Random(number(seed)), record);
        }
        _ => panic!("{role:?}"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Publishes,
    Reads(Policy),
    Records,
    ComesAndGoes,
}

const ROLES: [Role; 7] = [
    Role::Publishes,
    Role::Publishes, // waits for the role, or is told that it is taken
    Role::Reads(Policy::Reliable),
    Role::Reads(Policy::Lossy),
    Role::Reads(Policy::Latest),
    Role::Records,
    Role::ComesAndGoes,
];

fn campaign(name: &str, eject: bool, kills: u64, mut random: Random, record: &str) {
    let start = |role, random: &mut Random| {
        let seed = Random(random.next() | 1);
        // SAFETY: this process has one thread that does anything, and no handle of Ramway's; the child ends with `_exit`.
        let pid = unsafe { libc::fork() };
        if pid != 0 {
            assert!(pid > 0);
            return pid;
        }
        // SAFETY: plain calls. It must not outlive the test.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let outcome = std::panic::catch_unwind(|| live(name, role, eject, seed, record));
        eprintln!("{role:?} ended: {outcome:?}");
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(1) }
    };
    let mut children = ROLES.map(|role| Some(start(role, &mut random)));
    let began = Instant::now();
    let mut n = 0;
    while n < kills {
        match random.below(8) {
            0 => {}
            1..=4 => support::readiness::jitter(&mut random.0),
            5 | 6 => std::thread::sleep(Duration::from_micros(random.below(2_000))),
            _ => std::thread::sleep(Duration::from_millis(random.below(12))),
        }
        let index = random.below(ROLES.len() as u64) as usize;
        let role = ROLES[index];
        // Some stay away for a while: longer than it takes a publisher to find out.
        let stays = match children[index].take() {
            Some(pid) => {
                n += 1;
                end(pid, role, n);
                random.below(8) == 0
            }
            None => random.below(6) != 0,
        };
        children[index] = (!stays).then(|| start(role, &mut random));
    }
    children.iter().zip(ROLES).for_each(|(pid, role)| pid.iter().for_each(|pid| end(*pid, role, kills)));
    say(format!("killed {kills} in {:?}", began.elapsed()));
}

/// Kills it. It must not have ended before, which only a failure does.
fn end(pid: i32, role: Role, n: u64) {
    let mut status = 0;
    // SAFETY: our own child, which was not waited for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
    }
    assert!(libc::WIFSIGNALED(status), "{role:?} has ended before kill {n}: its words are above");
}

fn live(name: &str, role: Role, eject: bool, mut random: Random, record: &str) {
    let open = || {
        let builder = Topic::open(name).timeout(LONG);
        if eject && role == Role::Publishes { builder.eject_after(Duration::from_millis(20)) } else { builder }
    };
    match role {
        Role::Publishes => loop {
            let publisher = open().publisher().unwrap();
            publishes(publisher, &mut random);
        },
        Role::Reads(policy) => {
            let mut subscriber = open().policy(policy).subscriber().unwrap();
            loop {
                read_some(&mut subscriber, u64::MAX, &mut None, &mut |_| {});
            }
        }
        Role::Records => {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(record).unwrap();
            let mut subscriber = open().label(LABEL).durable(true).subscriber().unwrap();
            loop {
                // One write: whole, or nothing. The message is given back after it.
                read_some(&mut subscriber, u64::MAX, &mut None, &mut |seq| file.write_all(&seq.to_le_bytes()).unwrap());
            }
        }
        Role::ComesAndGoes => loop {
            let builder = match random.below(6) {
                0 => open().from_now(),
                1 => open().history(random.below(40)),
                2 => open().after_seq(random.below(10_000)),
                3 => open().lossy().from_oldest(),
                4 => open().latest(),
                _ => open().label("somebody"),
            };
            let mut subscriber = builder.subscriber().unwrap();
            read_some(&mut subscriber, random.below(6), &mut None, &mut |_| {});
        },
    }
}

/// Sends in each way there is, then closes, or goes without a word.
fn publishes(mut publisher: Publisher, random: &mut Random) {
    for _ in 0..random.below(400) {
        let seq = publisher.seq() + 1;
        let len = [0, 5, 700, 64, 3000, 31, 1000][random.below(7) as usize];
        let limit = Duration::from_millis(300);
        let sent = match random.below(5) {
            0 => publisher.send_timeout(1, &message(seq, len), limit).map(drop),
            1 => publisher.reserve_timeout(len, limit).and_then(|mut slot| {
                fill(&mut slot, seq);
                slot.commit_unflushed(len)
            }),
            2 => publisher.try_reserve(len).and_then(|mut slot| {
                fill(&mut slot, seq);
                slot.commit(len)
            }),
            3 => publisher.flush(),
            _ => publisher.try_send(1, &message(seq, len)),
        };
        match sent {
            // What was committed before is a message of its own, with the number that it was made for.
            Ok(()) => publisher.flush().unwrap(),
            Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Full) => {}
            Err(e) => panic!("{e}"),
        }
    }
    let _ = publisher.subscribers();
    if random.below(2) == 0 { publisher.close().unwrap() } else { publisher.abandon() }
}

/// Reads up to `count` messages, and checks that each is whole and that the numbers agree with what it says was lost.
fn read_some(subscriber: &mut Subscriber, count: u64, next: &mut Option<u64>, seen: &mut dyn FnMut(u64)) {
    let reliable = subscriber.policy() == Policy::Reliable;
    for _ in 0..count {
        let received = subscriber.recv_timeout(Duration::from_millis(200)).map(|message| {
            check(&message, *next, reliable);
            seen(message.seq());
            *next = Some(message.seq() + 1);
        });
        let Err(e) = received else { continue };
        match e.kind() {
            ErrorKind::Lagged if reliable => *next = next.map(|seq| seq + e.lost().unwrap()),
            ErrorKind::TimedOut => {}
            ErrorKind::PeerDead | ErrorKind::Closed => std::thread::sleep(Duration::from_micros(200)),
            _ => panic!("{e}"),
        }
    }
}

fn check(message: &Message<'_, Topic>, next: Option<u64>, reliable: bool) {
    let (seq, lost) = (message.seq(), message.lost());
    if message.tag() == END {
        return;
    }
    assert!(is_whole(message, seq), "message {seq} of {} bytes is torn", message.len());
    if let Some(next) = next {
        assert_eq!(seq, next + lost, "{lost} lost");
        assert!(!reliable || lost == 0, "{lost} lost before {seq}");
    }
}

fn survives(eject: bool) {
    let dir = Dir::new();
    let (name, record) = (dir.at("topic"), dir.at("record"));
    let make = || -> TopicBuilder { Topic::create(&name).capacity(CAPACITY).slots(6).may_eject(eject) };
    let mut steady = make().label("steady").subscriber().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (kills, seed) = (from_environment("RAMWAY_TEST_KILLS", 250), from_environment("RAMWAY_TEST_SEED", now | 1));
    let kind = if eject { "eject" } else { "wait" };
    println!("{kind}: seed {seed}");
    let mut peer = Peer::start(&["campaign", &name, kind, &kills.to_string(), &seed.to_string(), &record]);
    let reader = std::thread::spawn(move || -> Result<(u64, u64)> {
        let (mut next, mut lagged) = (None, 0);
        let mut last = Instant::now();
        loop {
            let received = steady.recv_timeout(Duration::from_secs(1)).map(|message| {
                check(&message, next, true);
                next = Some(message.seq() + 1);
                message.tag() == END
            });
            match received {
                Ok(true) => return Ok((next.unwrap(), lagged)),
                Ok(false) => last = Instant::now(),
                Err(e) if e.kind() == ErrorKind::Lagged => {
                    next = next.map(|seq| seq + e.lost().unwrap());
                    lagged += 1;
                }
                Err(e) if matches!(e.kind(), ErrorKind::PeerDead | ErrorKind::Closed | ErrorKind::TimedOut) => {
                    assert!(last.elapsed() < LONG, "nothing was published for {LONG:?}");
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(e) => return Err(e),
            }
        }
    });
    let said = peer.hear();
    peer.finish();
    // Who is left: the log is full of what the recorder has not read, and a dead one holds nothing up.
    let mut recorder = Topic::open(&name).label(LABEL).durable(true).timeout(LONG).subscriber().unwrap();
    let mut publisher = Topic::open(&name).timeout(LONG).publisher().unwrap();
    let mut records: Vec<u64> = std::fs::read(&record).unwrap_or_default().chunks_exact(8).map(number).collect();
    let mut read_all = |publisher: &Publisher| loop {
        match recorder.recv_timeout(Duration::ZERO).map(|message| records.push(message.seq())) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Lagged => {}
            Err(_) if records.last() == Some(&publisher.seq()) => break,
            Err(e) => assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}"),
        }
    };
    if publisher.seq() > 0 {
        read_all(&publisher);
    }
    for _ in 0..200 {
        let seq = publisher.seq() + 1;
        publisher.send_timeout(1, &message(seq, 1000), LONG).unwrap();
        read_all(&publisher);
    }
    eventually("only two are left", || {
        let left = publisher.subscribers();
        // One that was ejected and then killed holds nobody up: its slot waits for whoever joins next.
        let stays = |one: &&SubscriberInfo| one.policy == Policy::Reliable && (one.alive || !one.ejected);
        left.iter().filter(stays).count() == 2 || {
            let seq = publisher.seq() + 1;
            let _ = publisher.try_send(1, &message(seq, 1000)).is_ok_and(|()| {
                read_all(&publisher);
                true
            });
            false
        }
    });
    publisher.reserve_timeout(0, LONG).and_then(|slot| slot.with_tag(END).commit(0)).unwrap();
    let (next, lagged) = reader.join().unwrap().unwrap();
    println!("{said}; {} messages, ejected {lagged} times, {} recorded", next - 1, records.len());
    assert!(eject || lagged == 0);
    recorder.unsubscribe().unwrap();
    publisher.close().unwrap();
    // Each number in order, without a gap where nobody ejects; those that were not given back when it was killed come again.
    let mut expected = *records.first().unwrap();
    for seq in records {
        assert!(seq <= expected || eject, "{} is missing before {seq}", expected);
        expected = expected.max(seq + 1);
    }
    assert_eq!(dir.names(), ["record"], "the topic goes with its last user");
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn where_the_publisher_waits() {
    survives(false);
}

#[test]
fn where_the_publisher_ejects() {
    survives(true);
}
