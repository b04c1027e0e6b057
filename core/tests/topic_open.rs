//! How topics are made and opened: options, geometry, access, names, space, and processes that fork.

mod support;

use ramway::{ErrorKind, Policy, Result, Ring, Topic, TopicBuilder};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};
use support::topic::{create, message, receive, receive_to, send, send_all};
use support::{Dir, LONG, Peer, helper_role, mount_tmpfs, say};

const SHORT: Duration = Duration::from_millis(20);

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["forks", dir] => forks(dir),
        ["in-a-small-tmpfs", dir] => in_a_small_tmpfs(dir),
        _ => panic!("{role:?}"),
    }
}

/// Each wrong use says what is wrong and, in other words of its own, what to do.
#[test]
fn a_wrong_combination_says_so() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let new = || Topic::create(&name);
    let second = Duration::from_secs(1);
    let for_publisher: [(TopicBuilder, &str); 9] = [
        (new().reliable(), "a policy is not for a publisher"),
        (new().lossy(), "a policy is not for a publisher"),
        (new().latest(), "a policy is not for a publisher"),
        (new().from_now(), "a place to begin is not for a publisher"),
        (new().history(3), "a place to begin is not for a publisher"),
        (new().label("x"), "a label is not for a publisher"),
        (new().durable(true), "durable is not for a publisher"),
        (new().read_only(true), "read_only is not for a publisher"),
        (new().eject_after(Duration::ZERO), "expected more"),
    ];
    for (builder, text) in for_publisher {
        let refused = builder.publisher().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains(text) && refused.to_string().contains(&name), "{refused}");
    }
    let long = "x".repeat(65);
    let for_subscriber = [
        (new().eject_after(second), "eject_after is not for a subscriber"),
        (new().timestamps(true), "timestamps is not for a subscriber"),
        (new().durable(true), "needs a label"),
        (new().lossy().label("x").durable(true), "for a reliable subscriber"),
        (new().latest().label("x").durable(true), "for a reliable subscriber"),
        (new().latest().from_oldest(), "begins nowhere else"),
        (new().latest().from_now(), "begins nowhere else"),
        (new().latest().history(1), "begins nowhere else"),
        (new().latest().after_seq(1), "begins nowhere else"),
        (new().read_only(true), "cannot be read-only"),
        (new().lossy().read_only(true), "begin with open"),
        (Topic::open_or_create(&name).latest().read_only(true), "begin with open"),
        (Topic::open(&name).lossy().label("x").read_only(true), "cannot show a label"),
        (new().label(""), "1 to 64 bytes"),
        (new().label(&long), "of 65 bytes"),
        (new().label("a\0b"), "without a zero byte"),
    ];
    for (builder, text) in for_subscriber {
        let refused = builder.subscriber().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains(text) && refused.to_string().contains(&name), "{text}: {refused}");
    }
    // The capacity follows the alignment, so that the longest message is not nothing.
    assert_eq!(new().align(4096).capacity(4096).publisher().unwrap().capacity(), 8192);
    let geometry = [
        (new().align(16), "align"),
        (new().align(48), "align"),
        (new().align(8192), "align"),
        (new().slots(0), "slots"),
        (new().slots(1025), "slots"),
        (new().lossy_only(true).may_eject(true), "lossy_only or may_eject"),
        (new().lossy_only(true).eject_after(second), "lossy_only or may_eject"),
    ];
    for (builder, text) in geometry {
        let refused = builder.publisher().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains(text), "{text}: {refused}");
    }
    let existing = [
        (Topic::open(&name).mode(0o644), "mode applies to"),
        (Topic::open(&name).persistent(true), "persistent applies to"),
        (Topic::open(&name).discard(true), "discard applies to create only"),
        (Topic::open_or_create(&name).discard(true), "discard applies to create only"),
    ];
    for (builder, text) in existing {
        let outcomes = [builder.clone().lossy().subscriber().map(drop), builder.publisher().map(drop)];
        for refused in outcomes.map(Result::unwrap_err) {
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
            assert!(refused.to_string().contains(text) && refused.to_string().contains(&name), "{text}: {refused}");
        }
    }
    // Nobody could read it: the one that would make it, least of all.
    let refused = new().lossy_only(true).subscriber().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    assert_eq!(dir.names(), [""; 0], "a refused call leaves nothing");
    // What is allowed: the longest label, in letters of several bytes.
    let label = "ä".repeat(32);
    let subscriber = new().label(&label).subscriber().unwrap();
    assert_eq!(subscriber.label(), Some(label));
}

#[test]
fn an_existing_topic_of_another_kind_or_geometry() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _kept = create(&name, 8192).align(64).slots(5).subscriber().unwrap();
    let same = || Topic::open_or_create(&name);
    let refused = [
        (same().capacity(4096), "capacity is 8192 bytes, not the 4096"),
        (same().align(32), "alignment is 64 bytes, not the 32"),
        (same().slots(6), "number of slots is 5, not the 6"),
        (same().lossy_only(true), "lossy_only is decided when a topic is made"),
        (same().may_eject(true), "may_eject is decided when a topic is made"),
        (same().persistent(true), "is not persistent: that is decided when a topic is made"),
    ];
    for (builder, text) in refused {
        let refused = builder.publisher().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains(text), "{text}: {refused}");
    }
    // The same options twice: also where the capacity follows the alignment.
    let followed = || Topic::open_or_create(dir.at("followed")).capacity(4096).align(4096);
    let first = followed().subscriber().unwrap();
    assert_eq!(followed().publisher().unwrap().capacity(), first.capacity());
    drop(first);
    // What is said and just so; also rounded up to it.
    let publisher = same().capacity(5000).align(64).slots(5).publisher().unwrap();
    assert_eq!((publisher.capacity(), publisher.align()), (8192, 64));
    drop(publisher);
    assert_eq!(kind(Topic::create(&name).publisher()), ErrorKind::AlreadyExists);
    let other = Ring::open(&name).receiver().unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidArgument);
    assert!(other.to_string().contains("this is a topic, expected a ring"), "{other}");
    let ring = dir.at("ring");
    let _ring = Ring::create(&ring).receiver().unwrap();
    let other = Topic::open(&ring).subscriber().unwrap_err();
    assert!(other.to_string().contains("this is a ring, expected a topic"), "{other}");
    assert_eq!(kind(Topic::open(dir.at("nothing")).subscriber()), ErrorKind::NotFound);
    let started = Instant::now();
    assert_eq!(kind(Topic::open(dir.at("nothing")).timeout(SHORT).publisher()), ErrorKind::NotFound);
    assert!(started.elapsed() >= SHORT);
}

#[test]
fn a_topic_for_those_whom_nobody_waits_for() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).lossy_only(true).publisher().unwrap();
    let refused = Topic::open(&name).subscriber().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("subscribe with the policy lossy or latest"), "{refused}");
    let refused = Topic::open(&name).eject_after(SHORT).publisher().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    for n in 1..1000 {
        assert_eq!(send(&mut publisher, 200), n);
    }
    assert_eq!(latest.latest().unwrap().seq(), 999);
    let (seq, lost) = receive(&mut lossy);
    assert_eq!(seq, lost + 1);
    receive_to(&mut lossy, seq + 1, 999);
    let refused = publisher.wait_for_subscribers_timeout(1, SHORT).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "nobody that it could wait for can come");
}

#[test]
fn read_only_subscribers_of_a_topic_of_mode_0644() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).mode(0o644).publisher().unwrap();
    assert_eq!(std::fs::metadata(&name).unwrap().mode() & 0o777, 0o644);
    let mut lossy = Topic::open(&name).lossy().read_only(true).subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().read_only(true).subscriber().unwrap();
    assert_eq!(publisher.subscribers().len(), 0, "nobody sees them");
    for n in 1..300u64 {
        publisher.try_send_tagged(1, n, &message(n, 100)).unwrap();
        assert_eq!(receive(&mut lossy), (n, 0));
        assert_eq!(receive(&mut latest), (n, 0));
    }
    // They cannot be woken, and check each millisecond.
    std::thread::scope(|scope| {
        let both = [&mut lossy, &mut latest].map(|subscriber| scope.spawn(|| receive(subscriber)));
        std::thread::sleep(SHORT);
        send(&mut publisher, 10);
        for thread in both {
            assert_eq!(thread.join().unwrap(), (300, 0));
        }
    });
    for subscriber in [&mut lossy, &mut latest] {
        assert_eq!(kind(subscriber.recv_timeout(SHORT)), ErrorKind::TimedOut);
        assert_eq!(kind(subscriber.readiness()), ErrorKind::Unsupported);
        subscriber.waker().wake();
        assert_eq!(kind(subscriber.recv()), ErrorKind::Interrupted);
    }
    publisher.close().unwrap();
    assert_eq!(kind(lossy.recv()), ErrorKind::Closed);
    assert_eq!(kind(latest.recv()), ErrorKind::Closed);
    drop((lossy, latest));
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_file_that_may_only_be_read() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    send(&mut publisher, 100);
    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o444)).unwrap();
    let mut reader = Topic::open(&name).lossy().read_only(true).from_oldest().subscriber().unwrap();
    assert_eq!(receive(&mut reader), (1, 0));
    if support::is_root() {
        eprintln!("root may write it all the same");
    } else {
        assert_eq!(kind(Topic::open(&name).subscriber()), ErrorKind::PermissionDenied);
        assert_eq!(kind(Topic::open(&name).lossy().subscriber()), ErrorKind::PermissionDenied);
    }
}

#[test]
fn a_name_that_is_removed_under_its_users() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut others =
        [Policy::Lossy, Policy::Latest].map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap());
    send(&mut publisher, 100);
    std::fs::remove_file(&name).unwrap();
    // What is there is delivered, and what fits is sent; a wait says that nobody can come.
    assert_eq!(receive(&mut reliable), (1, 0));
    let ended = reliable.recv_timeout(LONG).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Closed);
    assert!(ended.to_string().contains("name was removed"), "{ended}");
    for other in &mut others {
        assert_eq!(receive(other), (1, 0));
        assert_eq!(kind(other.recv_timeout(LONG)), ErrorKind::Closed);
        assert_eq!(other.wait_for_peer_timeout(LONG).unwrap(), 1, "it is there");
    }
    while publisher.try_send(0, &[0; 500]).is_ok() {}
    assert_eq!(kind(publisher.send_timeout(0, &[0; 500], LONG)), ErrorKind::Closed);
    assert_eq!(kind(publisher.wait_for_subscribers_timeout(9, LONG)), ErrorKind::Closed);
    assert_eq!(reliable.recv_timeout(LONG).unwrap().seq(), 2);
    // Another topic takes the name; the old one is nobody's any more.
    let mut second = create(&name, 4096).publisher().unwrap();
    assert_eq!(second.seq(), 0);
    send(&mut second, 10);
    drop((publisher, reliable, others));
    assert_eq!(dir.names(), ["topic"]);
}

fn in_a_small_tmpfs(dir: &str) {
    if !mount_tmpfs(dir, "size=1m,mode=0777") {
        say("cannot mount");
        return;
    }
    let at = |name: &str| format!("{dir}/{name}");
    let count = || std::fs::read_dir(dir).unwrap().count();
    for (capacity, slots) in [(1 << 20, 1), (1 << 30, 1024), (1 << 40, 32)] {
        let full = create(&at("topic"), capacity).slots(slots).publisher().unwrap_err();
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{capacity}: {full}");
        assert_eq!(count(), 0);
    }
    let mut publisher = create(&at("fits"), 1 << 19).slots(1024).publisher().unwrap();
    let mut subscriber = Topic::open(at("fits")).subscriber().unwrap();
    assert_eq!(kind(create(&at("second"), 1 << 19).publisher()), ErrorKind::NoSpace);
    // The space is taken at creation: all of it can be written, and each slot taken, however full the rest is.
    let _ = std::fs::write(at("filler"), vec![0; 1 << 20]);
    let longest = publisher.max_message_len();
    for _ in 0..6 {
        let seq = send(&mut publisher, longest);
        assert_eq!(receive(&mut subscriber), (seq, 0));
    }
    let many: Vec<_> = (0..900).map_while(|_| Topic::open(at("fits")).lossy().subscriber().ok()).collect();
    assert!(many.len() > 500);
    drop((many, publisher, subscriber));
    std::fs::remove_file(at("filler")).unwrap();
    assert_eq!(count(), 0);
    say("fine");
}

#[test]
fn a_full_file_system_is_an_error_and_not_a_signal() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["in-a-small-tmpfs", dir.path().to_str().unwrap()]);
    match peer.hear().as_str() {
        "fine" => {}
        "cannot mount" => eprintln!("skipped: this process may not mount a file system"),
        other => panic!("{other}"),
    }
    peer.finish();
}

/// Forks, and gives whether `f` was true in the child.
fn in_child(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: this process has one thread besides the test harness's, which holds no lock that `f` needs; the child ends with
    // `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(false);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(if fine { 0 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status == 0
}

fn forks(dir: &str) {
    let name = format!("{dir}/topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut subscribers =
        [Policy::Reliable, Policy::Lossy, Policy::Latest].map(|p| Topic::open(&name).policy(p).subscriber().unwrap());
    send_all(&mut publisher, 3, &[100]);
    let mut handles = Some((publisher, subscribers));
    assert!(in_child(|| {
        let (mut publisher, mut subscribers) = handles.take().unwrap();
        let detached = |kind: ErrorKind| kind == ErrorKind::Detached;
        let mut fine = detached(kind(publisher.try_send(0, b"stolen")))
            && detached(kind(publisher.send(0, b"stolen")))
            && detached(kind(publisher.flush()))
            && detached(kind(publisher.skip_seq(1)))
            && detached(kind(publisher.wait_for_subscribers(1)));
        for subscriber in &mut subscribers {
            fine &= detached(kind(subscriber.try_recv()))
                && detached(kind(subscriber.recv()))
                && detached(kind(subscriber.try_recv_batch(5)))
                && detached(kind(subscriber.try_recv_into(&mut Vec::new())))
                && detached(kind(subscriber.latest()))
                && (subscriber.policy() == Policy::Latest || detached(kind(subscriber.skip_to_newest())));
        }
        // Neither a close nor anybody's slot is the child's to take away.
        drop((publisher, subscribers));
        let busy = kind(Topic::open(&name).publisher()) == ErrorKind::Busy;
        // What it opens itself is its own.
        let mut own = Topic::open(&name).subscriber().unwrap();
        fine && busy && receive(&mut own) == (1, 0)
    }));
    (publisher, subscribers) = handles.take().unwrap();
    assert_eq!(publisher.subscribers().iter().filter(|info| info.alive).count(), 3);
    send(&mut publisher, 100);
    receive_to(&mut subscribers[0], 1, 4);
    receive_to(&mut subscribers[1], 1, 4);
    assert_eq!(subscribers[2].recv().unwrap().seq(), 4);
    publisher.close().unwrap();
    assert_eq!(kind(subscribers[0].recv()), ErrorKind::Closed);
    drop(subscribers);
    assert!(std::fs::metadata(&name).is_err(), "the last one out is the parent");
    say("fine");
}

#[test]
fn a_forked_child_is_detached_and_takes_nothing_away() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["forks", dir.path().to_str().unwrap()]);
    peer.expect("fine");
    peer.finish();
    assert_eq!(dir.names(), [""; 0]);
}
