//! Deaths by SIGKILL: what was committed is delivered, what was not is as if it never was, and the other side learns.

mod support;

use std::time::{Duration, Instant};

use ramway::{ErrorKind, Ring};
use support::{Dir, LONG, Peer, helper_role, listen, say};

/// The kernel has let go of the dead when `kill` returns; then two rounds of 100 ms. The rest is for slow machines.
const SOON: Duration = Duration::from_secs(5);

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Commits two messages, one of them batched behind a flush, and dies with a slot open and one unflushed.
        ["half-sent", name] => {
            let mut tx = Ring::open_or_create(name).capacity(4096).sender().unwrap();
            tx.send_tagged(1, 11, b"first").unwrap();
            tx.send_tagged(1, 12, b"second").unwrap();
            let mut slot = tx.reserve(6).unwrap();
            slot.copy_from_slice(b"unseen");
            slot.commit_unflushed(6).unwrap();
            let mut slot = tx.reserve(100).unwrap();
            slot.fill(b'x');
            say("ready");
            listen();
            drop(slot);
        }
        // Takes a message and dies before it gives it back.
        ["half-received", name] => {
            let mut rx = Ring::open(name).receiver().unwrap();
            assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"0");
            let message = rx.recv_timeout(LONG).unwrap();
            assert_eq!(&*message, b"1");
            say("ready");
            listen();
            drop(message);
        }
        ["idle-sender", name] => {
            let _tx = Ring::open(name).sender().unwrap();
            say("ready");
            listen();
        }
        ["idle-receiver", name] => {
            let _rx = Ring::open(name).receiver().unwrap();
            say("ready");
            listen();
        }
        ["slow-receiver", name] => {
            let mut rx = Ring::open(name).receiver().unwrap();
            say("ready");
            listen();
            assert_eq!(&*rx.recv_timeout(LONG).unwrap(), [7; 4000]);
            listen();
        }
        ["stream", name, from] => {
            let mut tx = Ring::open_or_create(name).capacity(4096).sender().unwrap();
            let from = tx.last_tag().map_or(from.parse().unwrap(), |tag| tag + 1);
            say("ready");
            for n in from..u64::MAX {
                tx.send_tagged(1, n, &vec![n as u8; (n % 97) as usize]).unwrap();
            }
        }
        _ => panic!("{role:?}"),
    }
}

#[test]
fn a_sender_killed_in_the_middle_of_a_message() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut peer = Peer::start(&["half-sent", &name]);
    peer.expect("ready");
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert!(rx.is_peer_alive());
    let epoch = rx.peer_epoch();
    peer.kill();
    assert!(!rx.is_peer_alive());
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"first");
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"second");
    let start = Instant::now();
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());

    // A state that ends when a successor attaches: it goes on at the tail and knows what was last.
    let mut tx = Ring::open(&name).sender().unwrap();
    assert_eq!(tx.last_tag(), Some(12));
    tx.send(2, b"third").unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"third");
    assert_ne!(rx.peer_epoch(), epoch);
    tx.close().unwrap();
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_receiver_killed_with_a_message_in_hand() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    for n in 0..3 {
        tx.send(0, n.to_string().as_bytes()).unwrap();
    }
    let mut peer = Peer::start(&["half-received", &name]);
    peer.expect("ready");
    peer.kill();
    // On a named ring sends that fit succeed meanwhile.
    tx.send(0, b"3").unwrap();
    let mut rx = Ring::open(&name).receiver().unwrap();
    for n in 1..4 {
        assert_eq!(&*rx.recv_timeout(LONG).unwrap(), n.to_string().as_bytes(), "unreleased is read again");
    }
}

#[test]
fn a_blocked_receiver_learns_of_the_death_and_a_blocked_sender_too() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).capacity(4096).receiver().unwrap();
    let mut peer = Peer::start(&["idle-sender", &name]);
    peer.expect("ready");
    let blocked = std::thread::spawn(move || {
        let end = rx.recv_timeout(LONG).unwrap_err().kind();
        (end, Instant::now(), rx)
    });
    std::thread::sleep(Duration::from_millis(150));
    peer.kill();
    let dead = Instant::now();
    let (end, learned, rx) = blocked.join().unwrap();
    assert_eq!(end, ErrorKind::PeerDead);
    assert!(learned.saturating_duration_since(dead) < SOON);
    drop(rx);

    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut peer = Peer::start(&["idle-receiver", &name]);
    peer.expect("ready");
    tx.send(0, &[0; 4000]).unwrap();
    let blocked = std::thread::spawn(move || {
        let end = tx.send_timeout(0, &[1; 4000], LONG).unwrap_err().kind();
        (end, Instant::now(), tx)
    });
    std::thread::sleep(Duration::from_millis(150));
    peer.kill();
    let dead = Instant::now();
    let (end, learned, mut tx) = blocked.join().unwrap();
    assert_eq!(end, ErrorKind::PeerDead);
    assert!(learned.saturating_duration_since(dead) < SOON);
    // The state ends with a successor.
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert_eq!(*rx.recv_timeout(LONG).unwrap(), [0; 4000]);
    tx.send_timeout(0, b"again", LONG).unwrap();
}

#[test]
fn stopped_or_slow_is_not_dead() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut peer = Peer::start(&["slow-receiver", &name]);
    peer.expect("ready");
    peer.signal(libc::SIGSTOP);
    tx.send(0, &[7; 4000]).unwrap();
    assert_eq!(tx.send_timeout(0, &[8; 4000], Duration::from_millis(900)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(tx.is_peer_alive());
    peer.signal(libc::SIGCONT);
    peer.tell("receive");
    tx.send_timeout(0, &[8; 4000], LONG).unwrap();
}

#[test]
fn nobody_attached_yet_is_not_dead_either() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    tx.send(0, &[0; 4000]).unwrap();
    let late = Duration::from_millis(350);
    assert_eq!(tx.send_timeout(0, &[0; 4000], late).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(tx);
    let mut rx = Ring::create(dir.at("other")).capacity(4096).receiver().unwrap();
    assert_eq!(rx.recv_timeout(late).unwrap_err().kind(), ErrorKind::TimedOut);
}

/// A sender that is killed again and again wherever it happens to be, and goes on where it was: nothing is lost,
/// nothing comes twice, nothing comes half.
#[test]
fn a_sender_killed_at_any_instruction() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).capacity(4096).receiver().unwrap();
    let mut next = 1u64;
    for round in 0..40 {
        let mut peer = Peer::start(&["stream", &name, "1"]);
        peer.expect("ready");
        let mut take = |rx: &mut ramway::Receiver, most: u64| {
            for _ in 0..most {
                match rx.recv_timeout(LONG) {
                    Ok(message) => {
                        assert_eq!(message.tag(), next);
                        assert_eq!(*message, vec![next as u8; (next % 97) as usize][..]);
                        next += 1;
                    }
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::PeerDead);
                        return;
                    }
                }
            }
        };
        take(&mut rx, 200 + 37 * round);
        peer.kill();
        take(&mut rx, u64::MAX);
    }
    assert!(next > 40 * 200);
}
