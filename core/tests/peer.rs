//! Waiting for the other side, ending a wait from another thread, and a panic that is no orderly end.

mod support;

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::{Bus, ErrorKind, Receiver, Result, Ring, WaitPolicy};
use support::{Dir, LONG, Peer, helper_role, listen, say};

const POLICIES: [WaitPolicy; 3] = [WaitPolicy::Spin, WaitPolicy::Hybrid, WaitPolicy::Block];

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["sender", name] => {
            let mut tx = Ring::open(name).sender().unwrap();
            tx.send(0, b"last words").unwrap();
            say("ready");
            listen();
        }
        ["silent-sender", name] => {
            let _tx = Ring::open(name).sender().unwrap();
            say("ready");
            listen();
        }
        ["receiver", name] => {
            let _rx = Ring::open(name).receiver().unwrap();
            say("ready");
            listen();
        }
        // Has a sender, an open batch and a committed message while its thread panics.
        ["panics", name] => {
            std::panic::set_hook(Box::new(|_| {}));
            let thread = std::panic::catch_unwind(|| {
                let mut tx = Ring::open(name).sender().unwrap();
                tx.send(0, b"half").unwrap();
                let slot = tx.reserve(4).unwrap();
                slot.commit_unflushed(4).unwrap();
                panic!("half of a stream");
            });
            assert!(thread.is_err());
            say("unwound");
            listen();
        }
        ["bus-panics", name] => {
            std::panic::set_hook(Box::new(|_| {}));
            let thread = std::panic::catch_unwind(|| {
                let mut bus = Bus::connect(name).unwrap();
                bus.send(0, b"half").unwrap();
                panic!("half of a stream");
            });
            assert!(thread.is_err());
            say("unwound");
            listen();
        }
        // A handle that is made and dropped while the thread unwinds for another reason closes.
        ["sends-while-unwinding", name] => {
            struct Report<'a>(&'a str);
            impl Drop for Report<'_> {
                fn drop(&mut self) {
                    Ring::open(self.0).sender().unwrap().send(0, b"whole").unwrap();
                }
            }
            std::panic::set_hook(Box::new(|_| {}));
            let thread = std::panic::catch_unwind(|| {
                let _report = Report(name);
                panic!("what the report is about");
            });
            assert!(thread.is_err());
            say("unwound");
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

#[test]
fn a_receiver_waits_for_the_first_sender_and_for_its_successor() {
    for policy in POLICIES {
        let dir = Dir::new();
        let name = dir.at("ring");
        let mut rx = Ring::create(&name).wait_policy(policy).receiver().unwrap();
        assert_eq!(rx.wait_for_peer_timeout(Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(rx.wait_for_peer_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
        let mut peer = Peer::start(&["sender", &name]);
        assert_eq!(rx.wait_for_peer().unwrap(), 1);
        peer.expect("ready");
        assert_eq!(rx.wait_for_peer_timeout(Duration::ZERO).unwrap(), 1, "it is there");
        peer.kill();
        let mut next = Peer::start(&["sender", &name]);
        let epoch = rx.wait_for_peer_timeout(LONG).unwrap();
        assert!(epoch == 1 || epoch == 2, "{epoch}");
        next.expect("ready");
        assert_eq!(rx.wait_for_peer().unwrap(), 2);
        // Nothing was received meanwhile.
        assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"last words");
        assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"last words");
        next.finish();
        assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(rx.wait_for_peer_timeout(Duration::from_millis(5)).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn a_dead_peer_is_not_there_and_an_attach_wakes() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).sender().unwrap();
    let mut peer = Peer::start(&["receiver", &name]);
    peer.expect("ready");
    assert_eq!(tx.wait_for_peer().unwrap(), 1);
    peer.kill();
    assert_eq!(tx.wait_for_peer_timeout(Duration::from_millis(150)).unwrap_err().kind(), ErrorKind::TimedOut);
    let waiting = std::thread::spawn(move || (tx.wait_for_peer().unwrap(), tx));
    std::thread::sleep(Duration::from_millis(30));
    let rx = Ring::open(&name).receiver().unwrap();
    let (epoch, tx) = waiting.join().unwrap();
    assert_eq!((epoch, tx.peer_epoch(), rx.epoch()), (2, 2, 2));
}

/// A successor has the role's lock before it raises the epoch. A handle that has seen the end of the one before it does
/// not take the lock for that one's life.
#[test]
fn a_successors_lock_is_not_the_life_of_its_predecessor() {
    /// The producer's flags: block 0 and its role line (docs/ABI.md, sections 3 and 6).
    const FLAGS: u64 = 0x400 + 0x180 + 4;
    let short = Duration::from_millis(20);
    for end in ["killed", "closed"] {
        for seen_by in ["receiving", "one long receive", "waiting for a peer"] {
            let dir = Dir::new();
            let name = dir.at("ring");
            let mut rx = Ring::create(&name).receiver().unwrap();
            let attach_and_end = || {
                let mut peer = Peer::start(&["silent-sender", &name]);
                peer.expect("ready");
                if end == "killed" { peer.kill() } else { peer.finish() }
            };
            match seen_by {
                // It begins before anybody is there.
                "one long receive" => {
                    let receiving = std::thread::spawn(move || {
                        rx.recv_timeout(LONG).unwrap_err();
                        rx
                    });
                    std::thread::sleep(short);
                    attach_and_end();
                    rx = receiving.join().unwrap();
                }
                "receiving" => {
                    attach_and_end();
                    rx.recv_timeout(LONG).unwrap_err();
                }
                _ => {
                    attach_and_end();
                    assert_eq!(rx.wait_for_peer_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
                }
            }
            // A successor that is stopped after its first two steps: it has the lock, and the flags say "closed" no longer.
            let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
            support::lock_byte(&file, 1, libc::F_WRLCK);
            file.write_all_at(&0u32.to_le_bytes(), FLAGS).unwrap();
            let early = rx.wait_for_peer_timeout(short);
            assert!(early.as_ref().is_err_and(|e| e.kind() == ErrorKind::TimedOut), "{end}, {seen_by}: {early:?}");
            support::lock_byte(&file, 1, libc::F_UNLCK);
            let next = Peer::start(&["sender", &name]);
            assert_eq!(rx.wait_for_peer_timeout(LONG).unwrap(), 2, "{end}, {seen_by}");
            next.finish();
        }
    }
}

#[test]
fn a_name_that_is_gone_ends_the_wait() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    std::fs::remove_file(&name).unwrap();
    let gone = rx.wait_for_peer().unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Closed);
    assert!(gone.to_string().contains(&name) && gone.to_string().contains("removed"), "{gone}");
}

#[test]
fn an_end_that_is_final_is_told_at_once() {
    let (mut tx, rx) = Ring::pair(4096).unwrap();
    assert_eq!(tx.wait_for_peer().unwrap(), 1);
    drop(rx);
    assert_eq!(tx.wait_for_peer().unwrap_err().kind(), ErrorKind::Closed);

    let (tx, mut rx) = Ring::pair(4096).unwrap();
    drop(tx);
    assert_eq!(rx.wait_for_peer().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn with_a_descriptor_it_waits_by_that_and_leaves_it_readable() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    rx.readiness().unwrap();
    let mut peer = Peer::start(&["sender", &name]);
    assert_eq!(rx.wait_for_peer_timeout(LONG).unwrap(), 1);
    peer.expect("ready");
    peer.kill();
    assert_eq!(rx.wait_for_peer_timeout(Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
    // A message that nobody looked at is there.
    assert!(support::readiness::poll(rx.readiness().unwrap(), LONG));
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"last words");
    // Armed for the coming of a peer alone.
    assert_eq!(rx.await_peer(WaitLimit::None).unwrap_err().kind(), ErrorKind::Empty);
    let mut next = Peer::start(&["sender", &name]);
    next.expect("ready");
    assert!(support::readiness::poll(rx.readiness().unwrap(), LONG));
    assert_eq!(rx.await_peer(WaitLimit::None).unwrap(), 2);
}

fn interrupted<T>(outcome: Result<T>) -> bool {
    match outcome {
        Ok(_) => panic!("nothing was there"),
        Err(e) => e.kind() == ErrorKind::Interrupted,
    }
}

#[test]
fn a_waker_ends_the_wait_that_is_running_and_else_the_next_one() {
    for policy in POLICIES {
        for descriptor in [false, true] {
            let (mut tx, mut rx) = Ring::pair(4096).unwrap();
            rx.set_wait_policy(policy);
            tx.set_wait_policy(policy);
            if descriptor {
                rx.readiness().unwrap();
                tx.readiness().unwrap();
            }
            // None is running.
            let waker = rx.waker();
            waker.wake();
            waker.clone().wake();
            assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty, "a try waits for nothing");
            assert!(interrupted(rx.recv()));
            assert_eq!(rx.recv_timeout(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::TimedOut, "once");
            // What is there goes first.
            waker.wake();
            tx.send(0, b"x").unwrap();
            assert_eq!(&*rx.recv().unwrap(), b"x");
            assert!(interrupted(rx.recv()));
            // One that runs, wherever it is in its wait.
            for pause in [0, 20, 200, 2_000, 20_000] {
                let thread = std::thread::spawn(move || (interrupted(rx.recv()), rx));
                std::thread::sleep(Duration::from_micros(pause));
                waker.wake();
                let (was, back) = thread.join().unwrap();
                assert!(was, "{policy:?} {pause}");
                rx = back;
            }
            // A full ring.
            while tx.try_send(0, &[0; 100]).is_ok() {}
            let waker = tx.waker();
            let thread = std::thread::spawn(move || (interrupted(tx.send(0, &[0; 100])), tx));
            std::thread::sleep(Duration::from_millis(5));
            waker.wake();
            let (was, tx) = thread.join().unwrap();
            assert!(was);
            // A waker outlives its handle.
            drop(tx);
            waker.wake();
            while rx.try_recv().is_ok() {}
            assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed, "an end goes first");
        }
    }
}

#[test]
fn a_waker_ends_the_wait_for_a_peer() {
    let dir = Dir::new();
    let mut rx = Ring::create(dir.join("ring")).receiver().unwrap();
    let waker = rx.waker();
    let thread = std::thread::spawn(move || interrupted(rx.wait_for_peer()));
    std::thread::sleep(Duration::from_millis(5));
    waker.wake();
    assert!(thread.join().unwrap());
}

#[test]
fn a_close_with_messages_lent_out_is_told_at_once_and_keeps_role_and_frame() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).capacity(4096).receiver().unwrap();
    let mut tx = Ring::open(&name).sender().unwrap();
    tx.send(0, b"kept").unwrap();
    let frame = rx.raw().recv(WaitLimit::None).unwrap();
    while tx.try_send(0, &[0; 100]).is_ok() {}
    let blocked = std::thread::spawn(move || (tx.send(0, &[0; 100]).unwrap_err(), tx));
    std::thread::sleep(Duration::from_millis(5));
    rx.say_closed();
    let (told, tx) = blocked.join().unwrap();
    assert_eq!(told.kind(), ErrorKind::Closed);
    assert!(told.to_string().contains(&name), "{told}");
    assert!(!tx.is_peer_alive());
    assert_eq!(Ring::open(&name).receiver().unwrap_err().kind(), ErrorKind::Busy, "the role is kept");
    // SAFETY: not given back.
    assert_eq!(unsafe { std::slice::from_raw_parts(frame.data, frame.len) }, b"kept");
    drop(rx);
    let mut next = Ring::open(&name).receiver().unwrap();
    assert_eq!(&*next.try_recv().unwrap(), b"kept", "what was not given back is read again");
    assert!(tx.is_peer_alive());
}

#[test]
fn a_sender_says_closed_before_it_goes() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let mut tx = Ring::open(&name).sender().unwrap();
    tx.raw().reserve(10, WaitLimit::None).unwrap();
    tx.raw().commit(10, 0, 0, false).unwrap();
    tx.raw().reserve(10, WaitLimit::None).unwrap();
    tx.say_closed();
    assert_eq!(rx.recv().unwrap().len(), 10);
    assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(Ring::open(&name).sender().unwrap_err().kind(), ErrorKind::Busy);
}

/// What is there, then how it ended.
fn drain(rx: &mut Receiver) -> (Vec<Vec<u8>>, ErrorKind) {
    let mut all = Vec::new();
    loop {
        match rx.recv_timeout(LONG) {
            Ok(message) => all.push(message.to_vec()),
            Err(e) => return (all, e.kind()),
        }
    }
}

#[test]
fn a_panic_is_a_death_and_not_a_close() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let mut peer = Peer::start(&["panics", &name]);
    peer.expect("unwound");
    let (all, end) = drain(&mut rx);
    assert_eq!(end, ErrorKind::PeerDead);
    assert_eq!((all.len(), &all[0][..]), (2, &b"half"[..]), "what was committed is delivered");

    let mut peer = Peer::start(&["sends-while-unwinding", &name]);
    peer.expect("unwound");
    assert_eq!(drain(&mut rx), (vec![b"whole".to_vec()], ErrorKind::Closed));
}

#[test]
fn a_panic_with_a_bus_is_a_death() {
    let dir = Dir::new();
    let name = dir.at("bus.sock");
    let listener = ramway::Listener::bind(&name).unwrap();
    let mut peer = Peer::start(&["bus-panics", &name]);
    let mut bus = listener.accept_timeout(LONG).unwrap();
    peer.expect("unwound");
    assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"half");
    let end = bus.recv_timeout(LONG).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::PeerDead);
    assert!(end.to_string().contains(&name), "{end}");
}

/// Every wait is short: the clock of the look for a death must be the handle's.
#[test]
fn short_waits_learn_of_a_death_and_of_a_close() {
    let times = [0, 20, 1_000, 5_000, 50_000, 99_000, 150_000].map(Duration::from_micros);
    for (i, time) in times.into_iter().enumerate() {
        for policy in POLICIES {
            let dir = Dir::new();
            let name = dir.at("ring");
            let mut rx = Ring::create(&name).capacity(4096).wait_policy(policy).receiver().unwrap();
            let mut peer = Peer::start(&["sender", &name]);
            peer.expect("ready");
            assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"last words");
            assert_eq!(rx.recv_timeout(time).unwrap_err().kind(), ErrorKind::TimedOut);
            peer.kill();
            let end = until_it_ends(|| rx.recv_timeout(time).map(|_| ()));
            assert_eq!(end, ErrorKind::PeerDead, "{time:?} {policy:?}");
            assert_eq!(rx.recv_timeout(time).unwrap_err().kind(), ErrorKind::PeerDead, "again at once");
            Ring::open(&name).sender().unwrap().close().unwrap();
            assert_eq!(rx.recv_timeout(time).unwrap_err().kind(), ErrorKind::Closed, "a close needs no clock");
            drop(rx);

            let name = dir.at("other");
            let mut tx = Ring::create(&name).capacity(4096).wait_policy(policy).sender().unwrap();
            let mut peer = Peer::start(&["receiver", &name]);
            peer.expect("ready");
            while tx.try_send(0, &[0; 100]).is_ok() {}
            assert_eq!(tx.send_timeout(0, &[0; 100], time).unwrap_err().kind(), ErrorKind::TimedOut);
            peer.kill();
            let end = until_it_ends(|| tx.send_timeout(0, &[0; 100], time));
            assert_eq!(end, ErrorKind::PeerDead, "{time:?} {policy:?}");
            Ring::open(&name).receiver().unwrap().close().unwrap();
            assert_eq!(tx.send_timeout(0, &[0; 100], time).unwrap_err().kind(), ErrorKind::Closed);
            if i == 0 {
                assert_eq!(tx.try_send(0, &[0; 100]).unwrap_err().kind(), ErrorKind::Closed);
            }
        }
    }
}

#[test]
fn tries_learn_of_a_death() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let mut peer = Peer::start(&["sender", &name]);
    peer.expect("ready");
    peer.kill();
    assert_eq!(&*rx.try_recv().unwrap(), b"last words");
    assert_eq!(until_it_ends(|| rx.try_recv().map(|_| ())), ErrorKind::PeerDead);
    drop(rx);

    let name = dir.at("other");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut peer = Peer::start(&["receiver", &name]);
    peer.expect("ready");
    while tx.try_send(0, &[0; 100]).is_ok() {}
    peer.kill();
    assert_eq!(until_it_ends(|| tx.try_send(0, &[0; 100])), ErrorKind::PeerDead);
    assert_eq!(until_it_ends(|| tx.try_reserve(100).map(|_| ())), ErrorKind::PeerDead);
}

fn until_it_ends(mut call: impl FnMut() -> Result<()>) -> ErrorKind {
    let start = Instant::now();
    loop {
        match call().unwrap_err().kind() {
            ErrorKind::TimedOut | ErrorKind::Empty | ErrorKind::Full => {
                assert!(start.elapsed() < LONG, "it never ends");
            }
            end => return end,
        }
    }
}

#[test]
fn a_batch_has_a_tag_and_a_time() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    assert_eq!(tx.send_batch_tagged(3, 9, [b"a", b"b"]).unwrap(), 2);
    for _ in 0..2 {
        let message = rx.recv().unwrap();
        assert_eq!((message.type_id(), message.tag()), (3, 9));
    }
    let many = || (0..1000).map(|_| [1u8; 100]);
    let sent = tx.send_batch_timeout(0, 5, many(), Duration::from_millis(20)).unwrap();
    assert!(sent > 20 && sent < 1000, "{sent}");
    let none = tx.send_batch_timeout(0, 5, many(), Duration::from_millis(1)).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::TimedOut);
    assert_eq!(rx.recv_batch(1000).unwrap().iter().count(), sent);
    assert_eq!(tx.last_tag(), Some(5));
    // What ends it after the first one is met by the next call.
    let sent = tx.send_batch_timeout(0, 0, [vec![0; 10], vec![0; 10_000]], LONG).unwrap();
    assert_eq!(sent, 1);
    assert_eq!(tx.send_batch(0, [vec![0; 10_000]]).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_sender_that_comes_and_goes_ends_the_wait() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let waiting = std::thread::spawn(move || {
        let epoch = rx.wait_for_peer_timeout(LONG).unwrap();
        let first = rx.recv().map(|m| m.to_vec()).unwrap();
        (epoch, first)
    });
    // Each is gone before the next one comes, and one of them comes while the other thread waits.
    let mut sent = 0;
    while !waiting.is_finished() {
        let mut tx = Ring::open(&name).timeout(LONG).sender().unwrap();
        tx.try_send(0, b"gone again").ok();
        sent = tx.epoch();
        tx.close().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let (epoch, first) = waiting.join().unwrap();
    assert!((1..=sent).contains(&epoch), "epoch {epoch} of {sent}");
    assert_eq!(first, b"gone again");
}

/// Without waiting, with a descriptor and without one: a peer that is gone for good is an end, not "not yet".
#[test]
fn a_poll_for_a_peer_that_is_gone_for_good_is_an_end() {
    for with_descriptor in [false, true] {
        let (tx, mut rx) = Ring::pair(4096).unwrap();
        if with_descriptor {
            rx.readiness().unwrap();
        }
        assert_eq!(rx.await_peer(WaitLimit::None).unwrap(), 1);
        drop(tx);
        assert_eq!(rx.await_peer(WaitLimit::None).unwrap_err().kind(), ErrorKind::Closed, "{with_descriptor}");
    }
}
