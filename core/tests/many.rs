//! Many processes at one end: an inbox and an outbox, with producers and workers that are processes and are killed.

mod support;

use ramway::{Bus, ErrorKind, Inbox, Incoming, Left, Outbox};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::time::Duration;
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

/// The other processes in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Sends numbers until it is told to stop, or is killed.
        ["producer", path, count] => {
            let mut bus = Bus::connect(path).unwrap();
            say("connected");
            for number in 0..count.parse().unwrap() {
                if let Err(e) = bus.send_tagged(7, number, &number.to_le_bytes()) {
                    say(format!("{:?}", e.kind()));
                    return;
                }
            }
            say("sent");
            listen();
        }
        // Works until its outbox closes: writes each task's tag down after it has done it, then gives it back.
        ["worker", path, file] => {
            let mut bus = Bus::connect(path).unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            while let Ok(task) = bus.recv() {
                assert_eq!(&*task, format!("task {}", task.tag()).as_bytes());
                // One write: whole, or nothing.
                file.write_all(format!("{}\n", task.tag()).as_bytes()).unwrap();
            }
        }
        // Takes one task and never gives it back.
        ["lazy", path] => {
            let mut bus = Bus::connect(path).unwrap();
            let task = bus.recv().unwrap();
            say(task.tag());
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

#[test]
fn each_producer_s_messages_come_in_order_and_its_departure_after_them() {
    const PRODUCERS: u64 = 5;
    const COUNT: u64 = 5_000;
    let dir = Dir::new();
    let mut inbox = Inbox::builder(dir.at("inbox.sock")).capacity(4096).bind().unwrap();
    let start = |_| Peer::start(&["producer", &dir.at("inbox.sock"), &COUNT.to_string()]);
    let mut producers: Vec<_> = (0..PRODUCERS).map(start).collect();
    let mut next = BTreeMap::new();
    while next.values().sum::<u64>() < PRODUCERS * COUNT {
        match inbox.recv_timeout(LONG).unwrap() {
            Incoming::Message(peer, message) => {
                let expected = next.entry(peer.id).or_insert(0);
                assert_eq!((message.tag(), &*message), (*expected, &expected.to_le_bytes()[..]));
                assert!(peer.pid.is_some());
                *expected += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(inbox.peers().count() as u64, PRODUCERS);
    let killed = producers.remove(0);
    killed.kill();
    producers.remove(0).finish();
    let mut ends = Vec::new();
    while ends.len() < 2 {
        match inbox.recv_timeout(LONG).unwrap() {
            Incoming::Left(_, how) => ends.push(how),
            other => panic!("{other:?}"),
        }
    }
    assert!(ends.contains(&Left::Died) && ends.contains(&Left::Closed), "{ends:?}");
    assert_eq!(inbox.peers().count() as u64, PRODUCERS - 2);
    drop(inbox);
    producers.into_iter().for_each(Peer::finish);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn one_producer_that_floods_does_not_starve_another() {
    let dir = Dir::new();
    let mut inbox = Inbox::bind(dir.at("inbox.sock")).unwrap();
    let flood = Peer::start(&["producer", &dir.at("inbox.sock"), "1000000000"]);
    // Until the flood is under way.
    while !matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(_, m) if m.tag() == 1_000) {}
    let other = Peer::start(&["producer", &dir.at("inbox.sock"), "10"]);
    let mut between = 0;
    let mut got = 0;
    while got < 10 {
        match inbox.recv_timeout(LONG).unwrap() {
            Incoming::Message(peer, _) if peer.id == 2 => {
                // In turn: at most one of the flood between two of the other, once those are there.
                assert!(got == 0 || between <= 1, "{between} messages of the flood came first");
                (got, between) = (got + 1, 0);
            }
            Incoming::Message(..) => between += 1,
            other => panic!("{other:?}"),
        }
        if got == 0 {
            between = 0;
        }
    }
    flood.kill();
    other.finish();
}

#[test]
fn a_forgotten_message_is_given_back_by_the_call_for_it() {
    let dir = Dir::new();
    let mut inbox = Inbox::builder(dir.at("inbox.sock")).capacity(4096).bind().unwrap();
    let mut producer = std::thread::scope(|scope| {
        let producer = scope.spawn(|| Bus::connect(dir.at("inbox.sock")).unwrap());
        inbox.recv_timeout(Duration::from_millis(1)).map(drop).unwrap_err();
        while !producer.is_finished() {
            let _ = inbox.try_recv();
        }
        producer.join().unwrap()
    });
    inbox.release(); // of nothing
    for round in 0..100 {
        producer.send_tagged(0, round, &[0; 3000]).unwrap();
        assert_eq!(producer.try_send(0, &[0; 3000]).unwrap_err().kind(), ErrorKind::Full);
        match inbox.recv_timeout(LONG).unwrap() {
            Incoming::Message(_, message) => {
                assert_eq!(message.tag(), round);
                std::mem::forget(message);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(producer.try_send(0, &[0; 3000]).unwrap_err().kind(), ErrorKind::Full);
        inbox.release();
    }
    producer.close().unwrap();
    assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Left(_, Left::Closed)));
    inbox.release(); // of nothing
}

#[test]
fn one_producer_too_many_is_told_busy_until_a_place_is_free() {
    let dir = Dir::new();
    let mut inbox = Inbox::builder(dir.at("inbox.sock")).max_peers(2).bind().unwrap();
    let mut first = Peer::start(&["producer", &dir.at("inbox.sock"), "1"]);
    let mut second = Peer::start(&["producer", &dir.at("inbox.sock"), "1"]);
    for _ in 0..2 {
        assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(..)));
    }
    first.expect("connected");
    second.expect("connected");
    let path = dir.at("inbox.sock");
    let third = std::thread::spawn(move || Bus::connector(&path).timeout(LONG).connect().map(drop));
    while !third.is_finished() {
        assert_eq!(inbox.recv_timeout(Duration::from_millis(5)).unwrap_err().kind(), ErrorKind::TimedOut);
    }
    assert_eq!(third.join().unwrap().unwrap_err().kind(), ErrorKind::Busy);
    first.kill();
    assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Left(_, Left::Died)));
    let fourth = Peer::start(&["producer", &dir.at("inbox.sock"), "1"]);
    assert!(matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(peer, _) if peer.id == 3));
    second.finish();
    fourth.finish();
}

#[test]
fn a_closed_inbox_goes_on_until_the_last_producer_has_gone() {
    let dir = Dir::new();
    let mut inbox = Inbox::builder(dir.at("inbox.sock")).capacity(4096).bind().unwrap();
    let mut producer = Peer::start(&["producer", &dir.at("inbox.sock"), "1000000000"]);
    while !matches!(inbox.recv_timeout(LONG).unwrap(), Incoming::Message(_, m) if m.tag() == 100) {}
    inbox.close();
    assert_eq!(inbox.path(), None);
    producer.expect("connected");
    producer.expect("Closed");
    loop {
        match inbox.recv_timeout(LONG) {
            Ok(Incoming::Message(..)) => {}
            Ok(Incoming::Left(_, how)) => assert_eq!(how, Left::Closed),
            Err(e) => {
                assert!(e.kind() == ErrorKind::Closed && e.to_string().contains(&dir.at("inbox.sock")), "{e}");
                break;
            }
        }
    }
    producer.finish();
}

#[test]
fn a_waker_ends_an_inbox_s_wait() {
    let dir = Dir::new();
    let mut inbox = Inbox::bind(dir.at("inbox.sock")).unwrap();
    assert_eq!(inbox.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    let waker = inbox.waker();
    std::thread::scope(|scope| {
        scope.spawn(|| waker.wake());
        assert_eq!(inbox.recv().unwrap_err().kind(), ErrorKind::Interrupted);
    });
}

#[test]
fn every_task_is_done_once_where_nobody_dies() {
    const TASKS: u64 = 500;
    for prefetch in [1, 4] {
        let dir = Dir::new();
        let mut outbox = Outbox::builder(dir.at("outbox.sock")).prefetch(prefetch).bind().unwrap();
        let (path, file) = (dir.at("outbox.sock"), dir.at("done"));
        let workers: Vec<_> = (0..3).map(|_| Peer::start(&["worker", &path, &file])).collect();
        eventually("all workers are there", || {
            outbox.drain(None).unwrap();
            outbox.workers().count() == 3
        });
        for task in 0..TASKS {
            outbox.send_tagged(1, task, format!("task {task}").as_bytes()).unwrap();
        }
        outbox.drain(Some(LONG)).unwrap();
        assert_eq!(outbox.outstanding(), 0);
        drop(outbox);
        workers.into_iter().for_each(Peer::finish);
        let mut all = tags(&file);
        all.sort();
        assert_eq!(all, (0..TASKS).collect::<Vec<_>>());
    }
}

/// It gives its last task back and closes at once: the task is done.
#[test]
fn what_a_worker_gave_back_before_it_closed_is_not_given_again() {
    let dir = Dir::new();
    let path = dir.at("outbox.sock");
    let mut outbox = Outbox::bind(&path).unwrap();
    for round in 0..20 {
        let worker = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut bus = Bus::connect(&path).unwrap();
                let task = bus.recv().unwrap();
                task.tag()
            }
        });
        outbox.send_tagged(1, round, b"a task").unwrap();
        outbox.drain(Some(LONG)).unwrap();
        assert_eq!(worker.join().unwrap(), round);
        assert_eq!((outbox.outstanding(), outbox.take_undelivered()), (0, None));
    }
}

#[test]
fn what_a_killed_worker_had_is_given_to_another_and_taken_out_after_three() {
    for copies in [false, true] {
        let dir = Dir::new();
        let path = dir.at("outbox.sock");
        let mut outbox = Outbox::builder(&path).copies(copies).bind().unwrap();
        assert_eq!(outbox.try_send_tagged(1, 0, b"task 0").unwrap_err().kind(), ErrorKind::Full, "no worker yet");
        for round in 0..3 {
            let mut lazy = Peer::start(&["lazy", &path]);
            if round == 0 {
                outbox.send_tagged(1, 42, b"task 42").unwrap();
            } else {
                // The death is seen, and the next worker taken, inside a call.
                eventually("it is given again", || {
                    assert_eq!(outbox.drain(Some(Duration::from_millis(5))).unwrap_err().kind(), ErrorKind::TimedOut);
                    outbox.workers().any(|(peer, has)| peer.id == round + 1 && has == 1)
                });
            }
            lazy.expect("42");
            assert_eq!(outbox.outstanding(), 1);
            assert_eq!(outbox.take_undelivered(), None);
            lazy.kill();
        }
        outbox.drain(Some(LONG)).unwrap();
        let taken = outbox.take_undelivered().unwrap();
        assert_eq!((taken.tag, taken.deliveries, &*taken.data), (42, 3, &b"task 42"[..]));
        assert_eq!(outbox.take_undelivered(), None);
    }
}

#[test]
fn nothing_is_lost_while_workers_are_killed_again_and_again() {
    const TASKS: u64 = 300;
    let dir = Dir::new();
    let path = dir.at("outbox.sock");
    let mut outbox = Outbox::builder(&path).prefetch(2).max_deliveries(1_000).bind().unwrap();
    let file = dir.at("done");
    let start = || Peer::start(&["worker", &path, &file]);
    let mut workers: Vec<_> = (0..3).map(|_| start()).collect();
    for task in 0..TASKS {
        outbox.send_tagged(1, task, format!("task {task}").as_bytes()).unwrap();
        if task % 20 == 19 {
            workers.remove(0).kill();
            workers.push(start());
        }
    }
    outbox.drain(Some(LONG)).unwrap();
    assert_eq!(outbox.take_undelivered(), None);
    // Just these: one that was killed while it had nothing to do is found too.
    let pids: HashSet<_> = workers.iter().map(|worker| Some(worker.pid())).collect();
    eventually("the last workers are there, and nobody else", || {
        outbox.drain(None).unwrap();
        outbox.workers().map(|(peer, _)| peer.pid).collect::<HashSet<_>>() == pids
    });
    drop(outbox);
    workers.into_iter().for_each(Peer::finish);
    // At least once: a worker may be killed between writing its task down and giving it back.
    let done: HashSet<u64> = tags(&file).into_iter().collect();
    assert_eq!(done, (0..TASKS).collect());
}

fn tags(file: &str) -> Vec<u64> {
    std::fs::read_to_string(file).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn options_that_nobody_could_use_are_refused() {
    let dir = Dir::new();
    let path = dir.at("x.sock");
    let kind = |e: ramway::Error| e.kind();
    assert_eq!(kind(Inbox::builder(&path).max_peers(0).bind().unwrap_err()), ErrorKind::InvalidArgument);
    let refused = Outbox::builder(&path).prefetch(0).bind().unwrap_err();
    assert!(refused.kind() == ErrorKind::InvalidArgument && refused.to_string().contains(&path), "{refused}");
    assert_eq!(kind(Outbox::builder(&path).max_deliveries(0).bind().unwrap_err()), ErrorKind::InvalidArgument);
    let mut outbox = Outbox::bind(&path).unwrap();
    let refused = outbox.send(0xFFFF_0001, b"x").unwrap_err();
    assert!(refused.kind() == ErrorKind::InvalidArgument && refused.to_string().contains(&path), "{refused}");
    // Also without a worker, and to the byte.
    let text = outbox.send(1, &vec![0; (1 << 20) - 15]).unwrap_err();
    assert_eq!(text.kind(), ErrorKind::TooLarge);
    assert!(text.to_string().contains(&path) && text.to_string().contains("takes at most 1048560"), "{text}");
    assert_eq!(kind(outbox.try_send_tagged(1, 0, &vec![0; (1 << 20) - 16]).unwrap_err()), ErrorKind::Full);
    assert_eq!(
        kind(outbox.drain(Some(Duration::ZERO)).map_or_else(|e| e, |()| ErrorKind::Empty.into())),
        ErrorKind::Empty
    );
}
