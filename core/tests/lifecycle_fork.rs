//! Fork: the child has views and nothing else; what the parent holds stays the parent's.

mod support;

use ramway::{ErrorKind, Ring, survey};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

/// Forks and runs `f` in the child; its panic or `false` is a failure here.
fn in_child(f: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the helper processes have one thread besides the test harness's, which holds no lock that `f` needs; the
    // child ends with `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(false);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(if fine { 0 } else { 1 }) }
        }
        pid => pid,
    }
}

fn wait(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the forked child found something else than it should");
}

/// The processes that fork: not the test runner itself, which has threads.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["forks", dir] => forks(dir),
        ["dies-with-a-child", name] => {
            let _rx = Ring::open(name).receiver().unwrap();
            let child = in_child(|| {
                // SAFETY: sleeps, with the parent's memory and without its locks.
                unsafe { libc::sleep(60) };
                true
            });
            say(child);
            listen();
        }
        _ => panic!("{role:?}"),
    }
}

fn forks(dir: &str) {
    let name = format!("{dir}/ring");
    let mut tx = Ring::create(&name).sender().unwrap();
    let mut rx = Ring::open(&name).receiver().unwrap();
    let (mut tx2, mut rx2) = Ring::pair(4096).unwrap();
    tx.send(0, b"inherited").unwrap();
    let view = rx.recv_timeout(LONG).unwrap();

    // The child first sees what it has, then drops it all.
    let child = in_child(|| &*view == b"inherited");
    wait(child);
    drop(view);
    let mut handles = Some((tx, rx));
    let child = in_child(|| {
        let (mut tx, mut rx) = handles.take().unwrap();
        let detached = |kind: ErrorKind| kind == ErrorKind::Detached;
        let fine = detached(tx.try_send(0, b"stolen").unwrap_err().kind())
            && detached(tx.send(0, b"stolen").unwrap_err().kind())
            && detached(tx.flush().unwrap_err().kind())
            && detached(rx.try_recv().unwrap_err().kind())
            && detached(rx.recv().unwrap_err().kind())
            && detached(rx.recv_timeout(LONG).unwrap_err().kind())
            && detached(tx2.try_send(0, b"stolen").unwrap_err().kind())
            && detached(rx2.try_recv().unwrap_err().kind());
        drop((tx, rx));
        // What it opens itself is its own, also in its own children.
        let own = format!("{dir}/own");
        let mut own_tx = Ring::create(&own).sender().unwrap();
        let mut own_rx = Ring::open(&own).receiver().unwrap();
        own_tx.send(0, b"mine").unwrap();
        let grandchild = in_child(|| own_tx.try_send(0, b"").unwrap_err().kind() == ErrorKind::Detached);
        wait(grandchild);
        let works = &*own_rx.recv_timeout(LONG).unwrap() == b"mine";
        let busy = Ring::open(&name).sender().unwrap_err().kind() == ErrorKind::Busy;
        own_tx.abandon();
        drop(own_rx);
        fine && works && busy
    });
    wait(child);
    let (mut tx, mut rx) = handles.take().unwrap();

    let found = survey::inspect(&name).unwrap();
    assert!(found.in_use && found.producer_held && found.consumer_held);
    assert_eq!(Ring::open(&name).sender().unwrap_err().kind(), ErrorKind::Busy);
    tx.send(0, b"still mine").unwrap();
    assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"still mine");
    tx2.send(0, b"too").unwrap();
    assert_eq!(&*rx2.recv_timeout(LONG).unwrap(), b"too");
    tx.close().unwrap();
    assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
    drop(rx);
    assert!(std::fs::metadata(&name).is_err(), "the last one out is the parent");
    say("fine");
}

#[test]
fn a_child_is_detached_and_takes_nothing_away() {
    let dir = Dir::new();
    let mut peer = Peer::start(&["forks", dir.path().to_str().unwrap()]);
    peer.expect("fine");
    peer.finish();
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

#[test]
fn a_surviving_child_does_not_keep_its_dead_parent_alive() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let mut tx = Ring::create(&name).capacity(4096).sender().unwrap();
    let mut peer = Peer::start(&["dies-with-a-child", &name]);
    let grandchild: libc::pid_t = peer.hear().parse().unwrap();
    assert!(tx.is_peer_alive());
    peer.kill();
    // SAFETY: asks whether the process exists.
    assert_eq!(unsafe { libc::kill(grandchild, 0) }, 0, "the child lives on");
    // The child lets go before `fork` returns in it, which may be after the parent was killed.
    eventually("the death is seen", || !tx.is_peer_alive());
    tx.send(0, &[0; 4000]).unwrap();
    assert_eq!(tx.send_timeout(0, &[0; 4000], LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    let _rx = Ring::open(&name).receiver().unwrap();
    // SAFETY: our own helper's child, which nobody waits for.
    unsafe { libc::kill(grandchild, libc::SIGKILL) };
}

#[test]
fn a_program_that_is_started_inherits_nothing() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let rx = Ring::create(&name).receiver().unwrap();
    let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    drop(rx);
    assert!(dir.names().is_empty());
    program.kill().unwrap();
    program.wait().unwrap();
}
