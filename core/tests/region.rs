//! Regions between real processes: who may do what, what is seen, what is left behind.

mod support;

use ramway::{ErrorKind, Region, WaitPolicy};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use support::{Dir, LONG, Peer, argument_of, is_root, say};

fn kind<T: std::fmt::Debug>(result: ramway::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn bytes_go_both_ways_and_nowhere_else() {
    let dir = Dir::new();
    let path = dir.join("a");
    let region = Region::create(&path, 5_000).unwrap();
    assert_eq!(region.len(), 5_000);
    let page = rustix::param::page_size();
    let capacity = 5_000_u64.next_multiple_of(page as u64);
    assert_eq!(region.capacity(), capacity);
    assert_eq!(region.as_ptr().addr() % page, 0);
    let other = Region::open(&path).unwrap();
    assert_eq!((other.len(), other.capacity()), (5_000, capacity));

    region.write_at(4_995, b"12345").unwrap();
    let mut bytes = [0xFF; 7];
    other.read_at(4_993, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\x0012345");
    other.read_at(5_000, &mut []).unwrap();

    for (offset, len) in [(4_996, 5), (5_001, 0), (u64::MAX, 1), (u64::MAX - 2, 8), (0, 5_001)] {
        assert_eq!(kind(other.read_at(offset, &mut vec![0; len])), ErrorKind::InvalidArgument, "{offset} {len}");
        assert_eq!(kind(other.write_at(offset, &vec![0; len])), ErrorKind::InvalidArgument, "{offset} {len}");
    }
    region.atomic_u64(8).unwrap().fetch_add(7, Ordering::Relaxed);
    assert_eq!(other.load_u64(8).unwrap(), 7);
    assert_eq!(other.load_u32(8).unwrap().max(other.load_u32(12).unwrap()), 7);
    assert_eq!(region.atomic_u32(4_996).unwrap().load(Ordering::Relaxed).to_ne_bytes(), *b"2345");
    for offset in [1, 2, 4_997, 5_000, u64::MAX - 3] {
        assert_eq!(kind(region.atomic_u32(offset)), ErrorKind::InvalidArgument, "{offset}");
    }
    for offset in [4, 4_996, 5_000] {
        assert_eq!(kind(region.atomic_u64(offset)), ErrorKind::InvalidArgument, "{offset}");
    }
    let mut other = other;
    // SAFETY: nobody else uses the region meanwhile.
    unsafe {
        other.as_mut_slice().unwrap()[..3].copy_from_slice(b"abc");
        assert_eq!(&region.as_slice()[..4], b"abc\0");
        assert_eq!(region.as_slice().len(), 5_000);
    }
}

#[test]
fn names_lengths_and_lives() {
    const TEST: &str = "names_lengths_and_lives";
    if let Some(path) = argument_of(TEST) {
        let _region = Region::create(path.join("b"), 10).unwrap();
        say("created");
        std::thread::sleep(LONG);
        return;
    }
    let dir = Dir::new();
    let path = dir.join("a");
    assert_eq!(kind(Region::create(&path, 0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Region::open(&path)), ErrorKind::NotFound);
    assert_eq!(kind(Region::create("no such/../", 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Region::create(".hidden", 1)), ErrorKind::InvalidArgument);

    let region = Region::open_or_create(&path, 100).unwrap();
    assert_eq!(kind(Region::create(&path, 100)), ErrorKind::AlreadyExists);
    let again = Region::open_or_create(&path, 100).unwrap();
    let error = Region::open_or_create(&path, 200).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("100") && error.to_string().contains("200"), "{error}");
    drop(region);
    assert!(path.exists(), "somebody still uses it");
    drop(again);
    assert!(!path.exists(), "the last one out takes the name away");

    let keep = Region::builder().persistent(true);
    let region = keep.create(&path, 10).unwrap();
    region.write_at(0, b"kept").unwrap();
    drop(region);
    assert_eq!(kind(Region::create(&path, 10)), ErrorKind::AlreadyExists, "its bytes are what was to be kept");
    let mut bytes = [0; 4];
    Region::open(&path).unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"kept");
    let region = Region::builder().discard(true).create(&path, 20).unwrap();
    assert_eq!(region.len(), 20);
    drop(region);
    assert!(!path.exists());

    // A region that everybody was killed in is started anew.
    let mut doomed = Peer::again(TEST, dir.path());
    doomed.expect("created");
    let path = dir.join("b");
    assert_eq!(kind(Region::create(&path, 10)), ErrorKind::AlreadyExists);
    doomed.kill();
    assert!(path.exists());
    assert_eq!(Region::create(&path, 30).unwrap().len(), 30);
}

#[test]
fn a_read_only_handle_sees_everything_and_changes_nothing() {
    let dir = Dir::new();
    let path = dir.join("a");
    let region = Region::create(&path, 100).unwrap();
    let mut reader = Region::builder().read_only(true).open(&path).unwrap();
    assert!(reader.is_read_only() && !region.is_read_only());
    assert_eq!(kind(reader.write_at(0, b"x")), ErrorKind::PermissionDenied);
    assert_eq!(kind(reader.atomic_u32(0)), ErrorKind::PermissionDenied);
    assert_eq!(kind(reader.atomic_u64(0)), ErrorKind::PermissionDenied);
    assert_eq!(kind(reader.notify()), ErrorKind::PermissionDenied);
    // SAFETY: refused, so there is no slice.
    assert_eq!(kind(unsafe { reader.as_mut_slice() }), ErrorKind::PermissionDenied);
    assert_eq!(kind(Region::builder().read_only(true).create(dir.join("b"), 1)), ErrorKind::InvalidArgument);

    assert!(!reader.wait(Some(Duration::from_millis(5))).unwrap());
    region.atomic_u32(96).unwrap().store(5, Ordering::Relaxed);
    region.notify().unwrap();
    assert!(reader.try_wait().unwrap());
    assert!(!reader.try_wait().unwrap());
    assert_eq!(reader.load_u32(96).unwrap(), 5);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| reader.wait(Some(LONG)).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        region.notify().unwrap();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_notification_before_the_wait_is_not_missed_and_counts_once() {
    let dir = Dir::new();
    let path = dir.join("a");
    let region = Region::create(&path, 1).unwrap();
    region.notify().unwrap();
    let late = Region::open(&path).unwrap();
    assert!(!late.try_wait().unwrap(), "what came before the handle is not news to it");
    region.notify().unwrap();
    region.notify().unwrap();
    assert!(late.wait(Some(Duration::ZERO)).unwrap());
    let started = Instant::now();
    assert!(!late.wait(Some(Duration::from_millis(150))).unwrap());
    assert!(started.elapsed() >= Duration::from_millis(150));
    assert!(region.try_wait().unwrap(), "one's own notifications count too");
}

#[test]
fn one_notification_wakes_many_processes() {
    const TEST: &str = "one_notification_wakes_many_processes";
    const WAITERS: u32 = 8;
    if let Some(path) = argument_of(TEST) {
        let region = Region::builder().wait_policy(WaitPolicy::Block).open(path).unwrap();
        let seen = region.notifications().unwrap();
        region.atomic_u32(0).unwrap().fetch_add(1, Ordering::Release);
        // The other children's arrival is notified too; only the starting shot sets the second word.
        let mut count = seen;
        while region.load_u32(4).unwrap() == 0 {
            count = region.wait_since(count, Some(LONG)).unwrap().expect("in time");
        }
        region.atomic_u32(8).unwrap().fetch_add(1, Ordering::Release);
        return;
    }
    let dir = Dir::new();
    let path = dir.join("a");
    let region = Region::create(&path, 12).unwrap();
    let waiters: Vec<_> = (0..WAITERS).map(|_| Peer::again(TEST, &path)).collect();
    while region.load_u32(0).unwrap() < WAITERS {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    region.atomic_u32(4).unwrap().store(1, Ordering::Release);
    region.notify().unwrap();
    for waiter in waiters {
        waiter.finish();
    }
    assert_eq!(region.load_u32(8).unwrap(), WAITERS);
}

#[test]
fn every_wait_policy_waits() {
    for policy in [WaitPolicy::Spin, WaitPolicy::Hybrid, WaitPolicy::Block] {
        let dir = Dir::new();
        let region = Region::builder().wait_policy(policy).create(dir.join("a"), 1).unwrap();
        assert!(!region.wait(Some(Duration::from_millis(30))).unwrap(), "{policy:?}");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| region.wait(Some(LONG)).unwrap());
            std::thread::sleep(Duration::from_millis(10));
            region.notify().unwrap();
            assert!(waiter.join().unwrap(), "{policy:?}");
        });
    }
}

#[test]
fn a_waiter_learns_that_the_name_is_gone() {
    let dir = Dir::new();
    let path = dir.join("a");
    for (read_only, policy) in [(false, WaitPolicy::Block), (true, WaitPolicy::Block), (false, WaitPolicy::Spin)] {
        let _owner = Region::create(&path, 1).unwrap();
        let waiter = Region::builder().read_only(read_only).wait_policy(policy).open(&path).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| waiter.wait(Some(LONG)));
            std::thread::sleep(Duration::from_millis(10));
            std::fs::remove_file(&path).unwrap();
            let started = Instant::now();
            assert_eq!(kind(waiting.join().unwrap()), ErrorKind::Closed);
            assert!(started.elapsed() < Duration::from_secs(10));
        });
    }
}

#[test]
fn a_forks_child_is_detached_and_the_parent_is_not() {
    let dir = Dir::new();
    let path = dir.join("a");
    let region = Region::create(&path, 8).unwrap();
    region.write_at(0, b"bytes").unwrap();
    let address = region.as_ptr();
    // SAFETY: the child makes calls that neither allocate nor lock, then ends without running anything else.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let detached = |result: ramway::Result<()>| matches!(result, Err(e) if e.kind() == ErrorKind::Detached);
        let all = detached(region.notify())
            && detached(region.wait(None).map(|_| ()))
            && detached(region.try_wait().map(|_| ()))
            && detached(region.read_at(0, &mut [0; 4]))
            && detached(region.write_at(0, b"x"))
            && detached(region.atomic_u32(0).map(|_| ()))
            // SAFETY: inherited mappings stay.
            && unsafe { address.read_volatile() } == b'b';
        drop(region);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if all { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert!(path.exists(), "the child's end is not the last one out");
    region.notify().unwrap();
    assert!(region.try_wait().unwrap());
    assert!(Region::open(&path).is_ok());
}

#[test]
fn permissions_are_the_files() {
    const TEST: &str = "permissions_are_the_files";
    const NOBODY: u32 = 65_534;
    if let Some(dir) = argument_of(TEST) {
        // SAFETY: sets the ids of this process, which does nothing but this test.
        assert_eq!(unsafe { libc::setresgid(NOBODY, NOBODY, NOBODY) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        assert_eq!(kind(Region::open(dir.join("private"))), ErrorKind::PermissionDenied);
        assert_eq!(kind(Region::builder().read_only(true).open(dir.join("private"))), ErrorKind::PermissionDenied);
        assert_eq!(kind(Region::open(dir.join("public"))), ErrorKind::PermissionDenied);
        let reader = Region::builder().read_only(true).open(dir.join("public")).unwrap();
        say("open");
        assert!(reader.wait(Some(LONG)).unwrap());
        let mut bytes = [0; 4];
        reader.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"seen");
        drop(reader);
        assert!(dir.join("public").exists(), "who may not write cannot take the name away");
        return;
    }
    if !is_root() {
        println!("skipped: becoming another user needs root");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let _private = Region::create(dir.join("private"), 4).unwrap();
    let public = Region::builder().mode(0o644).create(dir.join("public"), 4).unwrap();
    assert_eq!(std::fs::metadata(dir.join("private")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(dir.join("public")).unwrap().permissions().mode() & 0o777, 0o644);
    let mut nobody = Peer::again(TEST, dir.path());
    nobody.expect("open");
    public.write_at(0, b"seen").unwrap();
    public.notify().unwrap();
    nobody.finish();
}
