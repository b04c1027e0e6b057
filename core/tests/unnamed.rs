//! Rings without a name that a child inherits as a descriptor.
#![cfg(target_os = "linux")]

mod support;

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::time::Duration;

use ramway::{ErrorKind, Ring};
use support::{Dir, LONG, Peer, helper_role, listen, say};

/// The number that the other process finds the ring under.
const INHERITED: i32 = 200;

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    // SAFETY: the parent left it open for this process alone.
    let ring = unsafe { BorrowedFd::borrow_raw(INHERITED) };
    match role[0].as_str() {
        "sends" => {
            let mut tx = Ring::from_fd(ring).sender().unwrap();
            let from = tx.last_tag().map_or(0, |tag| tag + 1);
            for n in from..from + 3 {
                tx.send_tagged(0, n, format!("message {n}").as_bytes()).unwrap();
            }
            say("sent");
            listen();
        }
        "receives" => {
            let mut rx = Ring::from_fd(ring).receiver().unwrap();
            say("ready");
            assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"to the child");
            say("received");
            listen();
        }
        role => panic!("{role}"),
    }
}

fn child(role: &str, ring: &OwnedFd) -> Peer {
    let fd = ring.as_raw_fd();
    Peer::start_with(&[role], |command| {
        // SAFETY: `dup2` is a system call and allocates nothing; the copy is not close-on-exec.
        unsafe {
            command.pre_exec(
                move || {
                    if libc::dup2(fd, INHERITED) < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
                },
            )
        };
    })
}

#[test]
fn a_child_sends_dies_and_has_a_successor() {
    let ring = Ring::unnamed().capacity(1 << 16).into_fd().unwrap();
    let mut rx = Ring::from_fd(&ring).capacity(1 << 16).receiver().unwrap();
    assert_eq!(rx.name(), None);
    assert_eq!(rx.wait_for_peer_timeout(Duration::from_millis(150)).unwrap_err().kind(), ErrorKind::TimedOut);
    let mut peer = child("sends", &ring);
    assert_eq!(rx.wait_for_peer_timeout(LONG).unwrap(), 1);
    peer.expect("sent");
    assert_eq!(Ring::from_fd(&ring).sender().unwrap_err().kind(), ErrorKind::Busy, "its locks are its own");
    assert_eq!(Ring::from_fd(&ring).receiver().unwrap_err().kind(), ErrorKind::Busy);
    peer.kill();
    for n in 0..3 {
        assert_eq!(&*rx.recv_timeout(LONG).unwrap(), format!("message {n}").as_bytes());
    }
    let end = rx.recv_timeout(LONG).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::PeerDead);
    assert!(end.to_string().contains("unnamed ring"), "{end}");
    let mut next = child("sends", &ring);
    next.expect("sent");
    drop(ring);
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"message 3");
    next.finish();
    assert_eq!(rx.recv_batch(9).unwrap().iter().count(), 2);
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_child_receives_and_its_role_comes_free_with_its_death() {
    let ring = Ring::unnamed().capacity(4096).into_fd().unwrap();
    let mut tx = Ring::from_fd(&ring).sender().unwrap();
    let mut peer = child("receives", &ring);
    peer.expect("ready");
    tx.send(0, b"to the child").unwrap();
    peer.expect("received");
    while tx.try_send(0, &[0; 1000]).is_ok() {}
    peer.kill();
    assert_eq!(tx.send_timeout(0, &[0; 1000], LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    let rx = Ring::from_fd(&ring).timeout(LONG).receiver().unwrap();
    assert_eq!(rx.epoch(), 2);
}

#[test]
fn what_is_no_ring_without_a_name_is_refused() {
    let dir = Dir::new();
    let kind = |fd: &OwnedFd| Ring::from_fd(fd).receiver().unwrap_err();
    let _named = Ring::create(dir.join("named")).sender().unwrap();
    let named = OwnedFd::from(std::fs::File::options().read(true).write(true).open(dir.join("named")).unwrap());
    let said = kind(&named);
    assert_eq!(said.kind(), ErrorKind::InvalidArgument);
    assert!(said.to_string().contains("by its name"), "{said}");
    assert_eq!(kind(&OwnedFd::from(std::fs::File::open("/dev/null").unwrap())).kind(), ErrorKind::InvalidArgument);
    for size in [0, 100, 4096, 8192] {
        assert_eq!(kind(&memory(size)).kind(), ErrorKind::AbiMismatch);
    }
    // Cut short after it was made.
    let ring = Ring::unnamed().capacity(1 << 16).into_fd().unwrap();
    rustix::fs::ftruncate(&ring, 8192).unwrap();
    assert_eq!(kind(&ring).kind(), ErrorKind::Corrupt);

    let ring = Ring::unnamed().capacity(4096).into_fd().unwrap();
    assert_eq!(Ring::from_fd(&ring).capacity(8192).sender().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Ring::from_fd(&ring).discard(true).sender().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Ring::from_fd(&ring).into_fd().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Ring::unnamed().sender().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(Ring::unnamed().persistent(true).into_fd().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let flags = rustix::io::fcntl_getfd(&ring).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

fn memory(size: u64) -> OwnedFd {
    // SAFETY: the name ends in a NUL, and the descriptor is new.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
    rustix::fs::ftruncate(&fd, size).unwrap();
    fd
}
