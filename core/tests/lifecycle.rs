//! Named rings: who gets the name, who keeps it, and when it goes.

mod support;

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use ramway::survey::{self, CleanOptions, Outcome};
use ramway::{ErrorKind, Ring};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, lock_byte, say};

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["sender", name] => {
            let mut tx = Ring::open_or_create(name).capacity(1 << 16).sender().unwrap();
            say("ready");
            while let Some((verb, text)) = listen().split_once(' ') {
                assert_eq!(verb, "send");
                tx.send(1, text.as_bytes()).unwrap();
                say("sent");
            }
        }
        ["receiver", name] => {
            let _rx = Ring::open_or_create(name).capacity(1 << 16).receiver().unwrap();
            say("ready");
            listen();
        }
        ["create-later", name] => {
            std::thread::sleep(Duration::from_millis(300));
            let _rx = Ring::create(name).receiver().unwrap();
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

#[test]
fn the_last_one_out_removes_the_name() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let rx = Ring::create(&name).capacity(1 << 16).receiver().unwrap();
    let mut peer = Peer::start(&["sender", &name]);
    peer.expect("ready");
    drop(rx);
    assert_eq!(dir.names(), ["ring"], "somebody still uses it");
    peer.finish();
    // The sender's orderly close is delivered like a message, so it keeps the name for the next receiver.
    assert_eq!(dir.names(), ["ring"]);
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert_eq!(kind(rx.recv_timeout(LONG)), ErrorKind::Closed);
    drop(rx);
    assert!(dir.names().is_empty());
}

#[test]
fn a_read_only_handle_can_be_the_last_one_out() {
    let dir = Dir::new();
    let name = dir.at("region");
    let writer = ramway::Region::create(&name, 100).unwrap();
    let reader = ramway::Region::builder().read_only(true).open(&name).unwrap();
    drop(writer);
    assert_eq!(dir.names(), ["region"]);
    drop(reader);
    assert!(dir.names().is_empty());
}

#[test]
fn two_leave_at_once_and_the_name_goes() {
    let dir = Dir::new();
    let name = dir.at("ring");
    for _ in 0..200 {
        let (tx, mut rx) = (Ring::create(&name).sender().unwrap(), Ring::open(&name).receiver().unwrap());
        tx.close().unwrap();
        assert_eq!(kind(rx.recv_timeout(LONG)), ErrorKind::Closed);
        let tx = Ring::open(&name).sender().unwrap();
        let thread = std::thread::spawn(move || tx.abandon());
        drop(rx);
        thread.join().unwrap();
        assert!(dir.names().is_empty());
    }
}

#[test]
fn undelivered_messages_keep_the_name_and_are_counted() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    for text in ["one", "two", ""] {
        tx.send(7, text.as_bytes()).unwrap();
    }
    tx.close().unwrap();
    assert_eq!(dir.names(), ["ring"]);

    let taken = Ring::create(&name).receiver().unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    assert!(taken.to_string().contains("3 undelivered messages (6 bytes)"), "{taken}");
    assert!(taken.to_string().contains(&name), "{taken}");
    assert_eq!(
        survey::clean_one(&name, &CleanOptions::default()).unwrap(),
        Outcome::Kept("it holds 3 undelivered messages (6 bytes)".into())
    );

    let mut rx = Ring::open(&name).receiver().unwrap();
    for text in ["one", "two", ""] {
        assert_eq!(&*rx.recv_timeout(LONG).unwrap(), text.as_bytes());
    }
    drop(rx);
    assert_eq!(dir.names(), ["ring"], "the close is still undelivered");
    assert_eq!(kind(Ring::create(&name).receiver()), ErrorKind::AlreadyExists);
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert_eq!(kind(rx.recv_timeout(LONG)), ErrorKind::Closed);
    drop(rx);
    assert!(dir.names().is_empty());
}

#[test]
fn discard_starts_anew_but_never_over_the_living() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).sender().unwrap();
    tx.send(0, b"lost").unwrap();
    assert_eq!(kind(Ring::create(&name).discard(true).sender()), ErrorKind::AlreadyExists);
    drop(tx);
    let old = std::fs::metadata(&name).unwrap().ino();
    let mut rx = Ring::create(&name).discard(true).capacity(8192).receiver().unwrap();
    assert_ne!(std::fs::metadata(&name).unwrap().ino(), old);
    assert_eq!(rx.capacity(), 8192);
    assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
}

#[test]
fn one_sender_and_one_receiver_wherever_they_are() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut sender = Peer::start(&["sender", &name]);
    sender.expect("ready");
    let busy = Ring::open(&name).sender().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains("sender") && busy.to_string().contains(&name), "{busy}");
    let rx = Ring::open(&name).receiver().unwrap();
    // Two handles of one process are strangers to each other, too.
    assert_eq!(kind(Ring::open(&name).receiver()), ErrorKind::Busy);
    assert_eq!(kind(Ring::open_or_create(&name).receiver()), ErrorKind::Busy);
    drop(rx);
    let _rx = Ring::open(&name).receiver().unwrap();
    sender.kill();
    let _tx = Ring::open(&name).sender().unwrap();
}

#[test]
fn open_or_create_resumes_and_says_what_differs() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::open_or_create(&name).capacity(10_000).align(64).sender().unwrap();
    assert_eq!((tx.capacity(), tx.align()), (16_384, 64));
    tx.send_tagged(1, 42, b"kept").unwrap();
    drop(tx);
    let differs = Ring::open_or_create(&name).capacity(4096).receiver().unwrap_err();
    assert_eq!(differs.kind(), ErrorKind::InvalidArgument);
    assert!(differs.to_string().contains("16384") && differs.to_string().contains("4096"), "{differs}");
    let differs = Ring::open(&name).align(16).receiver().unwrap_err();
    assert_eq!(differs.kind(), ErrorKind::InvalidArgument);
    assert!(differs.to_string().contains("64") && differs.to_string().contains("16"), "{differs}");
    // The same wish in other words is no difference, and no wish is none either.
    drop(Ring::open_or_create(&name).capacity(9_000).align(64).receiver().unwrap());
    let tx = Ring::open_or_create(&name).sender().unwrap();
    assert_eq!(tx.last_tag(), Some(42));
    let mut rx = Ring::open_or_create(&name).receiver().unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"kept");
}

#[test]
fn a_persistent_name_stays() {
    let dir = Dir::new();
    let name = dir.at("ring");
    drop(Ring::create(&name).persistent(true).receiver().unwrap());
    assert_eq!(dir.names(), ["ring"]);
    drop(Ring::open(&name).receiver().unwrap());
    assert_eq!(dir.names(), ["ring"]);
    assert_eq!(kind(Ring::create(&name).receiver()), ErrorKind::AlreadyExists);
    assert!(matches!(survey::clean_one(&name, &CleanOptions::default()).unwrap(), Outcome::Kept(_)));
    let all = CleanOptions { undelivered: true, ..CleanOptions::default() };
    assert_eq!(survey::clean_one(&name, &all).unwrap(), Outcome::Removed);
    assert!(dir.names().is_empty());
}

#[test]
fn open_says_not_found_and_can_wait() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let absent = Ring::open(&name).receiver().unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    assert!(absent.to_string().contains(&name), "{absent}");
    assert_eq!(kind(Ring::open(dir.at("no/such/dir")).receiver()), ErrorKind::NotFound);

    let start = Instant::now();
    assert_eq!(kind(Ring::open(&name).timeout(Duration::from_millis(200)).receiver()), ErrorKind::NotFound);
    assert!(start.elapsed() >= Duration::from_millis(200));

    let _peer = Peer::start(&["create-later", &name]);
    Ring::open(&name).timeout(LONG).sender().unwrap();
}

#[test]
fn what_a_killed_creator_left_is_opened_recycled_or_cleaned() {
    let dir = Dir::new();
    for (name, role) in [("a", "sender"), ("b", "receiver"), ("c", "sender")] {
        let mut peer = Peer::start(&[role, &dir.at(name)]);
        peer.expect("ready");
        let live = survey::inspect(dir.at(name)).unwrap();
        assert!(live.in_use && (live.producer_held, live.consumer_held) == (role == "sender", role == "receiver"));
        assert_eq!(survey::clean_one(dir.at(name), &CleanOptions::default()).unwrap(), Outcome::Kept("in use".into()));
        peer.kill();
        assert!(survey::inspect(dir.at(name)).unwrap().is_stale());
    }
    let inode = |name| std::fs::metadata(dir.at(name)).unwrap().ino();
    let b = inode("b");
    drop(Ring::open(dir.at("a")).receiver().unwrap());
    assert_eq!(dir.names(), ["b", "c"], "opened what a dead sender left, and was the last one out");
    let _rx = Ring::create(dir.at("b")).receiver().unwrap();
    assert_ne!(inode("b"), b);

    let dry = survey::clean(dir.path(), &CleanOptions { dry_run: true, ..CleanOptions::default() }).unwrap();
    assert_eq!(dry.len(), 2);
    assert_eq!(dir.names(), ["b", "c"]);
    let done: Vec<_> = survey::clean(dir.path(), &CleanOptions::default())
        .unwrap()
        .into_iter()
        .map(|(name, outcome)| (name.into_string().unwrap(), outcome.unwrap()))
        .collect();
    assert_eq!(done, [("b".into(), Outcome::Kept("in use".into())), ("c".into(), Outcome::Removed)]);
    assert_eq!(dir.names(), ["b"]);
}

#[test]
fn messages_of_a_killed_sender_wait_for_a_receiver() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut peer = Peer::start(&["sender", &name]);
    peer.expect("ready");
    peer.tell("send hello");
    peer.expect("sent");
    peer.kill();
    let found = survey::inspect(&name).unwrap();
    assert_eq!(found.rings[0].as_ref().unwrap().undelivered.unwrap(), survey::Undelivered { messages: 1, bytes: 5 });
    assert!(found.is_stale());
    assert!(matches!(survey::clean_one(&name, &CleanOptions::default()).unwrap(), Outcome::Kept(_)));
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"hello");
    assert_eq!(kind(rx.recv_timeout(LONG)), ErrorKind::PeerDead);
    drop(rx);
    assert!(dir.names().is_empty());
}

#[test]
fn a_name_that_vanishes_under_live_users_is_closed_with_that_reason() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut rx = Ring::open(&name).receiver().unwrap();
    tx.send(0, b"before").unwrap();
    std::fs::remove_file(&name).unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"before");
    let closed = rx.recv_timeout(LONG).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
    assert!(closed.to_string().contains("name"), "{closed}");
    while tx.try_send(0, &[0; 1000]).is_ok() {}
    let closed = tx.send_timeout(0, &[0; 1000], LONG).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
    assert!(closed.to_string().contains("name"), "{closed}");
    // The name is somebody else's now; the old users leave it alone.
    let _new = Ring::create(&name).receiver().unwrap();
    drop((tx, rx));
    assert_eq!(dir.names(), ["ring"]);
}

#[test]
fn a_segment_of_another_boot_is_never_resumed() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let old_boot = || {
        let mut tx = Ring::create(&name).sender().unwrap();
        tx.send(0, b"too late").unwrap();
        drop(tx);
        let file = std::fs::OpenOptions::new().write(true).open(&name).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0x5A; 16], 0x30).unwrap();
        std::fs::metadata(&name).unwrap().ino()
    };
    let ino = old_boot();
    let stale = Ring::open(&name).receiver().unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::NotFound);
    assert!(stale.to_string().contains("boot"), "{stale}");
    assert_eq!(std::fs::metadata(&name).unwrap().ino(), ino);
    assert!(survey::inspect(&name).unwrap().of_another_boot);
    let mut rx = Ring::create(&name).receiver().unwrap();
    assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
    drop(rx);
    old_boot();
    let mut rx = Ring::open_or_create(&name).receiver().unwrap();
    assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
    drop(rx);
    old_boot();
    assert_eq!(survey::clean_one(&name, &CleanOptions::default()).unwrap(), Outcome::Removed);
}

/// It would be the last one out itself, in the moment in which the role's holder dies.
#[test]
fn a_waiter_for_a_role_keeps_the_segment_in_use() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let rx = Ring::create(&name).receiver().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    lock_byte(&file, 1, libc::F_WRLCK);
    let opener = std::thread::spawn({
        let name = name.clone();
        move || Ring::open(&name).timeout(LONG).sender().map(drop)
    });
    std::thread::sleep(Duration::from_millis(200));
    drop(rx);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(dir.names(), ["ring"]);
    lock_byte(&file, 1, libc::F_UNLCK);
    opener.join().unwrap().unwrap();
}

#[test]
fn an_opener_waits_for_the_short_exclusive_lock() {
    let dir = Dir::new();
    let name = dir.at("ring");
    drop(Ring::create(&name).persistent(true).receiver().unwrap());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let exclusive = |kind: i32| lock_byte(&file, 0, kind);
    exclusive(libc::F_WRLCK);
    let start = Instant::now();
    assert_eq!(kind(Ring::open(&name).receiver()), ErrorKind::TimedOut);
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(kind(Ring::create(&name).discard(true).receiver()), ErrorKind::TimedOut);
    let opener = std::thread::spawn({
        let name = name.clone();
        move || Ring::open(&name).timeout(LONG).receiver().map(drop)
    });
    std::thread::sleep(Duration::from_millis(100));
    exclusive(libc::F_UNLCK);
    opener.join().unwrap().unwrap();
}

#[test]
fn the_survey_disturbs_nobody() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut peer = Peer::start(&["receiver", &name]);
    peer.expect("ready");
    let before = std::fs::read(&name).unwrap();
    let modified = std::fs::metadata(&name).unwrap().modified().unwrap();
    for _ in 0..50 {
        assert_eq!(survey::ls(dir.path()).unwrap().len(), 1);
        survey::inspect(&name).unwrap();
    }
    assert_eq!(std::fs::read(&name).unwrap(), before);
    assert_eq!(std::fs::metadata(&name).unwrap().modified().unwrap(), modified);
    peer.tell("done");
    peer.finish();
    eventually("the name is gone", || dir.names().is_empty());
}

#[test]
fn a_role_that_is_taken_is_waited_for_until_its_holder_is_gone() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut peer = Peer::start(&["sender", &name]);
    peer.expect("ready");
    assert_eq!(kind(Ring::open(&name).sender()), ErrorKind::Busy, "by default it is not");
    let start = Instant::now();
    let busy = Ring::open(&name).timeout(Duration::from_millis(200)).sender().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains(&name), "{busy}");
    assert!(start.elapsed() >= Duration::from_millis(200));
    let waiting = std::thread::spawn({
        let name = name.clone();
        move || Ring::open(&name).timeout(LONG).sender().unwrap().epoch()
    });
    std::thread::sleep(Duration::from_millis(50));
    peer.kill();
    assert_eq!(waiting.join().unwrap(), 2);
}

/// Also by a `try_recv` right after, which asks for the sender's life only every 100 ms.
#[test]
fn an_end_that_was_told_is_told_again() {
    let dir = Dir::new();
    let tx = Ring::create(dir.at("ring")).sender().unwrap();
    let mut rx = Ring::open(dir.at("ring")).receiver().unwrap();
    tx.abandon();
    assert_eq!(kind(rx.recv_timeout(LONG)), ErrorKind::PeerDead);
    for _ in 0..3 {
        assert_eq!(kind(rx.try_recv()), ErrorKind::PeerDead);
    }
}
