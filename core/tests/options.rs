//! Options that would do nothing are refused, errors name what they are about, and segments are removed by name.

mod support;

use std::time::Duration;

use ramway::survey::{self, CleanOptions, Outcome};
use ramway::{ErrorKind, Listener, Region, Ring};
use support::{Dir, Peer, helper_role, say};

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    assert_eq!(role[0], "prlimit-refused");
    support::readiness::forbid(libc::SYS_prlimit64);
    Ring::create(&role[1]).capacity(4096).sender().unwrap();
    say("made");
}

#[test]
fn a_limit_that_the_kernel_does_not_tell_is_not_a_limit_of_0() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["prlimit-refused", &dir.at("ring")]);
    peer.expect("made");
    peer.finish();
}

#[test]
fn a_node_that_does_not_exist_is_said_with_those_that_do() {
    let dir = Dir::new();
    let error = Ring::create(dir.join("ring")).numa_node(777).sender().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    // A container may have no /sys.
    let shown = std::path::Path::new("/sys/devices/system/node/online").exists();
    let has = if shown { "this machine has node" } else { "this machine has no NUMA nodes that it shows" };
    assert!(text.contains(&format!("NUMA node 777 does not exist; {has}")), "{text}");
}

#[test]
fn what_an_opener_would_pass_over_is_refused() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let _keeps = Ring::create(&name).discard(true).persistent(true).mode(0o640).sender().unwrap();
    let refused = |builder: ramway::RingBuilder, what: &str| {
        let error = builder.receiver().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(what) && error.to_string().contains(&name), "{error}");
    };
    refused(Ring::open(&name).discard(true), "discard applies to create only");
    refused(Ring::open_or_create(&name).discard(true), "discard applies to create only");
    refused(Ring::open(&name).persistent(true), "persistent");
    refused(Ring::open(&name).mode(0o644), "mode");
    Ring::open(&name).discard(false).persistent(false).mode(0o600).receiver().unwrap();
    Ring::open_or_create(&name).persistent(true).mode(0o640).receiver().unwrap();

    let name = dir.at("region");
    let _keeps = Region::builder().discard(true).persistent(true).mode(0o640).create(&name, 100).unwrap();
    let refused = |opened: ramway::Result<Region>, what: &str| {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(what) && error.to_string().contains(&name), "{error}");
    };
    refused(Region::builder().discard(true).open(&name), "discard applies to create only");
    refused(Region::builder().discard(true).open_or_create(&name, 100), "discard applies to create only");
    refused(Region::builder().persistent(true).open(&name), "persistent");
    refused(Region::builder().mode(0o644).open(&name), "mode");
    Region::builder().persistent(true).mode(0o640).open_or_create(&name, 100).unwrap();
}

#[test]
fn the_longest_time_is_as_long_as_it_takes() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let opening = {
        let name = name.clone();
        std::thread::spawn(move || Ring::open(name).timeout(Duration::MAX).receiver().unwrap())
    };
    std::thread::sleep(Duration::from_millis(20));
    let mut tx = Ring::create(&name).sender().unwrap();
    let mut rx = opening.join().unwrap();
    let receiving = std::thread::spawn(move || rx.recv_timeout(Duration::MAX).unwrap().to_vec());
    std::thread::sleep(Duration::from_millis(20));
    tx.send_timeout(0, b"late", Duration::MAX).unwrap();
    assert_eq!(receiving.join().unwrap(), b"late");
}

#[test]
fn an_end_names_the_ring() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let mut tx = Ring::open(&name).sender().unwrap();
    assert_eq!(rx.name().unwrap(), name.as_str());
    assert_eq!(tx.name().unwrap(), name.as_str());
    let long = tx.send(0, &vec![0; 2 << 20]).unwrap_err();
    assert!(long.to_string().contains(&name), "{long}");
    tx.close().unwrap();
    for error in [rx.try_recv().unwrap_err(), rx.recv().unwrap_err()] {
        assert_eq!(error.to_string(), format!("the ring '{name}': the peer closed"));
    }
    let (tx, mut rx) = Ring::pair(4096).unwrap();
    drop(tx);
    // The first says it, and the handle is dead of it.
    for _ in 0..2 {
        assert_eq!(rx.recv().unwrap_err().to_string(), "the pair: the peer closed");
    }
}

#[test]
fn unlink_removes_what_nobody_uses_whatever_it_holds() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).persistent(true).sender().unwrap();
    tx.send(0, b"undelivered").unwrap();
    let busy = survey::unlink(&name).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains(&name), "{busy}");
    drop(tx);
    assert!(matches!(survey::clean_one(&name, &CleanOptions::default()).unwrap(), Outcome::Kept(_)));
    survey::unlink(&name).unwrap();
    assert_eq!(survey::unlink(&name).unwrap_err().kind(), ErrorKind::NotFound);

    let name = dir.at("region");
    drop(Region::builder().persistent(true).create(&name, 100).unwrap());
    survey::unlink(&name).unwrap();

    // A live listener stays, with its socket.
    let name = dir.at("bus");
    let listener = Listener::bind(&name).unwrap();
    let segment = dir.names().into_iter().find(|name| name.ends_with(".lock")).unwrap();
    assert_eq!(survey::unlink(dir.at(&segment)).unwrap_err().kind(), ErrorKind::Busy);
    drop(listener);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn unlink_touches_nothing_else() {
    let dir = Dir::new();
    std::fs::write(dir.join("text"), "somebody's notes").unwrap();
    std::fs::write(dir.join("page"), [7; 4096]).unwrap();
    std::fs::create_dir(dir.join("folder")).unwrap();
    std::os::unix::fs::symlink("text", dir.join("link")).unwrap();
    // A ring whose header lies about its length.
    drop(Ring::create(dir.join("cut")).persistent(true).sender().unwrap());
    std::fs::File::options().write(true).open(dir.join("cut")).unwrap().set_len(8192).unwrap();
    let before = dir.names();
    let kind = |name: &str| survey::unlink(dir.at(name)).unwrap_err().kind();
    assert_eq!(kind("text"), ErrorKind::AbiMismatch);
    assert_eq!(kind("page"), ErrorKind::AbiMismatch);
    assert_eq!(kind("folder"), ErrorKind::InvalidArgument);
    assert_eq!(kind("link"), ErrorKind::InvalidArgument);
    assert_eq!(kind("cut"), ErrorKind::Corrupt);
    for name in &before {
        assert_eq!(kind(name), survey::inspect(dir.join(name)).unwrap_err().kind(), "{name}");
    }
    assert_eq!(dir.names(), before);
}

#[test]
fn a_ring_that_cannot_be_resumed_is_not_said_to_be() {
    use std::os::unix::fs::FileExt;
    let dir = Dir::new();
    let name = dir.at("ring");
    drop(Ring::create(&name).persistent(true).capacity(4096).sender().unwrap());
    // The producer's position, off the grid.
    let file = std::fs::File::options().write(true).open(&name).unwrap();
    file.write_all_at(&7u64.to_le_bytes(), 0x480).unwrap();
    let damaged = Ring::create(&name).sender().unwrap_err();
    assert_eq!(damaged.kind(), ErrorKind::AlreadyExists);
    let text = damaged.to_string();
    assert!(text.contains("damaged") && text.contains("discard") && !text.contains("resumes"), "{text}");
    assert_eq!(Ring::open_or_create(&name).sender().unwrap_err().kind(), ErrorKind::Corrupt);
    Ring::create(&name).discard(true).capacity(4096).sender().unwrap();
}
