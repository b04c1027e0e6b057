//! Names under contention: creators, openers, leavers and a cleaner at once, in processes of their own.

mod support;

use std::time::Duration;

use ramway::survey::{self, CleanOptions, Outcome};
use ramway::{ErrorKind, Ring};
use support::{Barrier, Dir, LONG, Peer, helper_role, say};

const ROUNDS: u32 = 1_000;

/// The other processes in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["creator", name, barrier] => {
            let barrier = Barrier::open(barrier);
            let mut won = String::new();
            for round in 0..ROUNDS {
                barrier.arrive(round * 6 + 2);
                let ring = Ring::create(name).capacity(4096).receiver();
                won.push(match &ring {
                    Ok(_) => '1',
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => '0',
                    Err(e) => panic!("round {round}: {e}"),
                });
                barrier.arrive(round * 6 + 4);
                drop(ring);
                barrier.arrive(round * 6 + 6);
                // Both have left, and neither comes again before both have looked.
                assert!(std::fs::metadata(name).is_err(), "round {round}: the name is still there");
            }
            say(won);
        }
        ["meet", side, name, barrier] => {
            let barrier = Barrier::open(barrier);
            for round in 0..ROUNDS {
                barrier.arrive(round * 4 + 2);
                let ring = Ring::open_or_create(name).capacity(4096);
                if side == "sender" {
                    let mut tx = ring.sender().unwrap();
                    tx.send(round, b"met").unwrap();
                } else {
                    let mut rx = ring.receiver().unwrap();
                    assert_eq!(rx.recv_timeout(LONG).unwrap().type_id(), round);
                    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
                }
                barrier.arrive(round * 4 + 4);
            }
            say("done");
        }
        ["for-ever", name] => {
            say("ready");
            loop {
                let mut tx = Ring::create(name).discard(true).capacity(1 << 16).sender().unwrap();
                tx.send(0, b"left or not").unwrap();
                let mut rx = Ring::open(name).receiver().unwrap();
                assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"left or not");
                tx.abandon();
            }
        }
        ["come-and-go", name] => {
            for _ in 0..ROUNDS {
                match Ring::create(name).capacity(4096).receiver() {
                    Ok(rx) => drop(rx),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
                }
            }
            say("done");
        }
        ["cleaner", dir] => {
            let mut removed = 0;
            for _ in 0..ROUNDS {
                for (name, outcome) in survey::clean(dir.as_ref(), &CleanOptions::default()).unwrap() {
                    match outcome.unwrap_or_else(|e| panic!("{name:?}: {e}")) {
                        Outcome::Removed => removed += 1,
                        Outcome::Kept(why) => assert_eq!(why, "in use"),
                        Outcome::NotRamway => panic!("{name:?}"),
                    }
                }
            }
            say(removed);
        }
        _ => panic!("{role:?}"),
    }
}

#[test]
fn of_two_racing_creators_one_wins() {
    let (dir, meeting) = (Dir::new(), Dir::new());
    let barrier = meeting.at("barrier");
    Barrier::make(&barrier);
    let mut peers = [0, 1].map(|_| Peer::start(&["creator", &dir.at("ring"), &barrier]));
    let [a, b] = [0, 1].map(|i| peers[i].hear());
    assert_eq!((a.len(), b.len()), (ROUNDS as usize, ROUNDS as usize));
    for (round, (a, b)) in a.bytes().zip(b.bytes()).enumerate() {
        assert_ne!(a, b, "round {round}: exactly one creates");
    }
    peers.into_iter().for_each(Peer::finish);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn a_sender_and_a_receiver_that_start_at_once_meet() {
    let (dir, meeting) = (Dir::new(), Dir::new());
    let barrier = meeting.at("barrier");
    Barrier::make(&barrier);
    let mut peers = ["sender", "receiver"].map(|side| Peer::start(&["meet", side, &dir.at("ring"), &barrier]));
    peers[0].expect("done");
    peers[1].expect("done");
    peers.into_iter().for_each(Peer::finish);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// Openers in a world where the name comes and goes see a whole segment or none, and a cleaner takes nothing from the
/// living.
#[test]
fn nobody_ever_sees_half_a_segment() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut peers = [
        Peer::start(&["come-and-go", &name]),
        Peer::start(&["come-and-go", &name]),
        Peer::start(&["cleaner", dir.path().to_str().unwrap()]),
    ];
    let mut opened = 0;
    for _ in 0..ROUNDS {
        match Ring::open(&name).sender() {
            Ok(tx) => {
                assert!(survey::inspect(&name).is_ok_and(|s| s.producer_held), "the name leads to what is open");
                opened += 1;
                tx.abandon();
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "{e}"),
        }
        match survey::inspect(&name) {
            Ok(_) => {}
            Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "{e}"),
        }
    }
    println!("opened in {opened} of {ROUNDS} rounds");
    for peer in &mut peers {
        peer.hear();
    }
    peers.into_iter().for_each(Peer::finish);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// Killed while it creates, opens, closes or removes: the next one can start, and `clean` leaves nothing.
#[test]
fn a_creator_killed_at_any_instruction() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut left = 0;
    for round in 0..100 {
        let mut peer = Peer::start(&["for-ever", &name]);
        peer.expect("ready");
        std::thread::sleep(Duration::from_micros(37 * round));
        peer.kill();
        assert!(dir.names().iter().all(|name| name == "ring"), "{:?}", dir.names());
        left += dir.names().len();
        match round % 3 {
            0 => drop(Ring::create(&name).discard(true).receiver().unwrap()),
            1 => drop(Ring::open_or_create(&name).receiver().unwrap()),
            _ => {
                let all = CleanOptions { undelivered: true, dry_run: false };
                for (_, outcome) in survey::clean(dir.path(), &all).unwrap() {
                    assert_eq!(outcome.unwrap(), Outcome::Removed);
                }
                assert!(dir.names().is_empty());
            }
        }
    }
    println!("{left} of 100 were killed with the name in place");
}
