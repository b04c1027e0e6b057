//! A full file system: an error that says so, before anybody is hurt, and nothing left behind.

mod support;

use ramway::{ErrorKind, Ring, survey};
use support::{Dir, LONG, Peer, helper_role, mount_tmpfs, say};

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["in-a-small-tmpfs", dir] => in_a_small_tmpfs(dir),
        ["out-of-files", dir] => out_of_files(dir),
        _ => panic!("{role:?}"),
    }
}

fn in_a_small_tmpfs(dir: &str) {
    if !mount_tmpfs(dir, "size=1m,mode=0777") {
        say("cannot mount");
        return;
    }
    let at = |name: &str| format!("{dir}/{name}");
    let count = || std::fs::read_dir(dir).unwrap().count();
    for capacity in [1 << 20, 1 << 21, 1 << 30, 1 << 40] {
        let full = Ring::create(at("ring")).capacity(capacity).receiver().unwrap_err();
        assert_eq!(full.kind(), ErrorKind::NoSpace, "{capacity}: {full}");
        assert!(full.to_string().contains("ring"), "{full}");
        assert_eq!(count(), 0);
    }
    let mut rx = Ring::create(at("fits")).capacity(1 << 19).receiver().unwrap();
    let mut tx = Ring::open(at("fits")).sender().unwrap();
    assert_eq!(Ring::create(at("second")).capacity(1 << 19).receiver().unwrap_err().kind(), ErrorKind::NoSpace);
    // The space is taken at creation: filling the ring to the brim is no SIGBUS, however full the rest is.
    let _ = std::fs::write(at("filler"), vec![0; 1 << 20]);
    let longest = vec![5; tx.max_message_len()];
    for _ in 0..3 {
        tx.try_send(0, &longest).unwrap();
        assert_eq!(*rx.recv_timeout(LONG).unwrap(), longest[..]);
    }
    tx.abandon();
    drop(rx);
    std::fs::remove_file(at("filler")).unwrap();
    assert_eq!(count(), 0);
    drop(Ring::create(at("second")).capacity(1 << 19).receiver().unwrap());
    say("fine");
}

fn out_of_files(dir: &str) {
    if !mount_tmpfs(dir, "size=1m,nr_inodes=2,mode=0777") {
        say("cannot mount");
        return;
    }
    let at = |name: &str| format!("{dir}/{name}");
    let one = Ring::create(at("one")).capacity(4096).receiver().unwrap();
    assert_eq!(Ring::create(at("two")).capacity(4096).receiver().unwrap_err().kind(), ErrorKind::NoSpace);
    drop(one);
    drop(Ring::create(at("two")).capacity(4096).receiver().unwrap());
    say("fine");
}

fn run(role: &str) {
    let dir = Dir::new();
    let mut peer = Peer::start(&[role, dir.path().to_str().unwrap()]);
    match peer.hear().as_str() {
        "fine" => {}
        "cannot mount" => eprintln!("skipped: this process may not mount a file system"),
        other => panic!("{other}"),
    }
    peer.finish();
}

#[test]
fn a_full_file_system_is_an_error_and_not_a_signal() {
    run("in-a-small-tmpfs");
}

#[test]
fn no_inode_left_is_an_error_too() {
    run("out-of-files");
}

#[test]
fn more_than_the_machine_has_is_refused_at_once() {
    let dir = Dir::new();
    for capacity in [1 << 50, 1 << 62, (1 << 62) + 1, u64::MAX] {
        let refused = Ring::create(dir.at("ring")).capacity(capacity).receiver().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoSpace, "{capacity}: {refused}");
        assert!(dir.names().is_empty());
        assert_eq!(Ring::pair(capacity).unwrap_err().kind(), ErrorKind::NoSpace);
    }
    assert!(survey::ls(dir.path()).unwrap().is_empty());
}
