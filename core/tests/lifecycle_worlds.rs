//! Containers: what two processes must share to talk is a directory, and nothing else.

mod support;

use ramway::{ErrorKind, Ring, survey};
use support::{Dir, LONG, Peer, helper_role, listen, mount_tmpfs, say};

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["other-pids", name] => other_pids(name),
        ["no-proc", dir] => no_proc(dir),
        _ => panic!("{role:?}"),
    }
}

/// A sender that is process 1 of a PID namespace of its own.
fn other_pids(name: &str) {
    // SAFETY: system calls on numbers.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
        say("cannot");
        return;
    }
    // SAFETY: the test harness's other thread waits and holds no lock that the child needs.
    match unsafe { libc::fork() } {
        0 => {
            let mut tx = Ring::open(name).sender().unwrap();
            tx.send(std::process::id(), b"from another world").unwrap();
            loop {
                // SAFETY: sleeps until it is killed.
                unsafe { libc::pause() };
            }
        }
        pid => {
            say(pid);
            let mut status = 0;
            // SAFETY: waits for our own child.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            say("killed");
        }
    }
}

#[test]
fn nothing_depends_on_process_ids() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut rx = Ring::create(&name).receiver().unwrap();
    let mut peer = Peer::start(&["other-pids", &name]);
    let said = peer.hear();
    if said == "cannot" {
        eprintln!("skipped: this process may not make a PID namespace");
        return;
    }
    let message = rx.recv_timeout(LONG).unwrap();
    assert_eq!((message.type_id(), &*message), (1, &b"from another world"[..]));
    drop(message);
    assert!(rx.is_peer_alive());
    assert_eq!(Ring::open(&name).sender().unwrap_err().kind(), ErrorKind::Busy);
    // SAFETY: the helper's own child, which it waits for.
    assert_eq!(unsafe { libc::kill(said.parse().unwrap(), libc::SIGKILL) }, 0);
    peer.expect("killed");
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    let _tx = Ring::open(&name).sender().unwrap();
}

/// Without /proc a file has to have a name from the start; nobody outside notices.
fn no_proc(dir: &str) {
    if !mount_tmpfs("/proc", "size=64k") {
        say("cannot");
        return;
    }
    assert!(!std::path::Path::new("/proc/self").exists());
    let name = format!("{dir}/ring");
    let mut tx = Ring::create(&name).sender().unwrap();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
    assert_eq!(Ring::create(&name).sender().unwrap_err().kind(), ErrorKind::AlreadyExists);
    tx.send(0, b"no proc").unwrap();
    say("ready");
    listen();
}

#[test]
fn a_world_without_proc() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["no-proc", dir.path().to_str().unwrap()]);
    if peer.hear() == "cannot" {
        eprintln!("skipped: this process may not mount a file system");
        return;
    }
    let name = dir.at("ring");
    let mut rx = Ring::open(&name).receiver().unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"no proc");
    assert!(survey::inspect(&name).unwrap().producer_held);
    peer.kill();
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    drop(rx);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}
