//! An inbox and an outbox that are busy: who dies meanwhile is found all the same, and no call waits that must not.

mod support;

use ramway::{Bus, ErrorKind, Inbox, Incoming, Left, Outbox, Select};
use std::time::{Duration, Instant};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say, within};

/// The other processes in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["floods", path] => {
            let mut bus = Bus::connect(path).unwrap();
            while bus.send(7, b"again").is_ok() {}
        }
        ["sends-one", path] => {
            let mut bus = Bus::connect(path).unwrap();
            bus.send(8, b"one").unwrap();
            say("sent");
            listen();
        }
        // Gives each task back at once.
        ["worker", path] => {
            let mut bus = Bus::connect(path).unwrap();
            while bus.recv().is_ok() {}
        }
        // Takes one task and never gives it back.
        ["lazy", path] => {
            let mut bus = Bus::connect(path).unwrap();
            let task = bus.recv().unwrap();
            say(task.tag());
            listen();
        }
        ["forks", inbox, outbox] => forks(inbox, outbox),
        _ => panic!("{role:?}"),
    }
}

/// The inbox never has to wait, because there is always a message of the other one.
#[test]
fn a_killed_producer_is_reported_while_another_floods() {
    let dir = Dir::new();
    let path = dir.at("inbox.sock");
    let mut inbox = Inbox::builder(&path).max_peers(2).bind().unwrap();
    let flood = Peer::start(&["floods", &path]);
    while !matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(..)) {}
    for round in 1..=3 {
        let mut one = Peer::start(&["sends-one", &path]);
        let id = loop {
            if let Incoming::Message(peer, message) = inbox.recv_timeout(LONG).unwrap()
                && message.type_id() == 8
            {
                break peer.id;
            }
        };
        assert_eq!(id, round + 1, "its predecessor's place was free");
        one.expect("sent");
        one.kill();
        let killed = Instant::now();
        loop {
            match inbox.recv_timeout(LONG).unwrap() {
                Incoming::Left(peer, how) => {
                    assert_eq!((peer.id, how), (id, Left::Died));
                    break;
                }
                Incoming::Message(..) => {
                    // Slower than the flood: its ring is never empty.
                    std::thread::sleep(Duration::from_micros(20));
                    assert!(killed.elapsed() < Duration::from_secs(10), "it was never reported");
                }
            }
        }
    }
    flood.kill();
}

/// The outbox never has to wait, because there is always a worker that is free.
#[test]
fn a_killed_worker_s_task_is_given_again_while_others_are_free() {
    let dir = Dir::new();
    let path = dir.at("outbox.sock");
    let mut outbox = Outbox::bind(&path).unwrap();
    let mut lazy = Peer::start(&["lazy", &path]);
    outbox.send_tagged(1, 42, b"the first task").unwrap();
    lazy.expect("42");
    let workers: Vec<_> = (0..2).map(|_| Peer::start(&["worker", &path])).collect();
    eventually("all workers are there", || {
        let _ = outbox.drain(Some(Duration::ZERO));
        outbox.workers().count() == 3
    });
    lazy.kill();
    let killed = Instant::now();
    // No call but these: none of them waits, or only for a moment.
    while outbox.workers().count() == 3 || outbox.outstanding() > 1 {
        outbox.send_timeout(1, 0, b"a task", LONG).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert!(killed.elapsed() < Duration::from_secs(10), "the first task is with a dead worker");
    }
    outbox.drain(Some(LONG)).unwrap();
    assert_eq!(outbox.take_undelivered(), None);
    drop(outbox);
    workers.into_iter().for_each(Peer::finish);
}

/// A worker may have more messages, but they have no room in its ring: that is no free worker.
#[test]
fn a_worker_whose_ring_is_full_is_not_free() {
    let dir = Dir::new();
    let path = dir.at("outbox.sock");
    let mut outbox = Outbox::builder(&path).capacity(4096).prefetch(10).bind().unwrap();
    let mut lazy = Peer::start(&["lazy", &path]);
    let task = |number: u64| vec![number as u8; 1500];
    // Two of them fill the ring.
    outbox.send_tagged(1, 1, &task(1)).unwrap();
    lazy.expect("1");
    outbox.send_tagged(1, 2, &task(2)).unwrap();
    let mut outbox = within(LONG, move || {
        for _ in 0..3 {
            assert_eq!(outbox.try_send_tagged(1, 3, &task(3)).unwrap_err().kind(), ErrorKind::Full);
            let waited = outbox.send_timeout(1, 3, &task(3), Duration::from_millis(20)).unwrap_err();
            assert_eq!(waited.kind(), ErrorKind::TimedOut);
            assert_eq!(outbox.outstanding(), 2, "what was refused is not kept");
        }
        outbox
    });
    // A shorter one fits.
    outbox.try_send_tagged(1, 3, b"short").unwrap();
    assert_eq!(outbox.outstanding(), 3);
    // All of them come again for the next one, which has no room for all of them at a time either.
    lazy.kill();
    let worker = Peer::start(&["worker", &path]);
    let mut outbox = within(LONG, move || {
        outbox.drain(Some(LONG)).unwrap();
        outbox
    });
    assert_eq!((outbox.outstanding(), outbox.take_undelivered()), (0, None));
    drop(outbox);
    worker.finish();
}

fn forks(inbox_path: &str, outbox_path: &str) {
    let mut inbox = Inbox::bind(inbox_path).unwrap();
    let mut outbox = Outbox::bind(outbox_path).unwrap();
    let mut one = Peer::start(&["sends-one", inbox_path]);
    assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(..)));
    one.expect("sent");
    let mut lazy = Peer::start(&["lazy", outbox_path]);
    outbox.send_tagged(1, 5, b"a task").unwrap();
    lazy.expect("5");
    let mut select = Select::new();
    // SAFETY: this process has one thread besides the test harness's, which holds no lock that the child needs; the child ends
    // with `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let kinds = [
                inbox.try_recv().map(drop),
                inbox.recv().map(drop),
                outbox.try_send_tagged(1, 6, b"stolen"),
                outbox.send(1, b"stolen"),
                outbox.drain(None),
                select.wait(&mut [], Some(Duration::ZERO)).map(drop),
            ]
            .map(|result| result.unwrap_err().kind());
            drop((inbox, outbox, select));
            assert_eq!(kinds, [ErrorKind::Detached; 6]);
        }));
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(fine.is_err())) }
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child's words are above");
    // Nothing was taken away: both names are there, and both peers.
    assert_eq!(inbox.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    assert_eq!((inbox.peers().count(), outbox.outstanding()), (1, 1));
    let two = Peer::start(&["sends-one", inbox_path]);
    assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(peer, _) if peer.id == 2));
    lazy.kill();
    let worker = Peer::start(&["worker", outbox_path]);
    outbox.drain(Some(LONG)).unwrap();
    drop((inbox, outbox));
    [one, two, worker].into_iter().for_each(Peer::finish);
    say("fine");
}

#[test]
fn a_forked_child_has_nothing_of_them_and_takes_nothing_away() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["forks", &dir.at("inbox.sock"), &dir.at("outbox.sock")]);
    peer.expect("fine");
    peer.finish();
    assert_eq!(dir.names(), [""; 0]);
}
