//! `ramway ls`, `inspect` and `clean`: they tell the truth, and touch nothing that is not theirs to touch.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use common::{Place, assert_done, assert_failed, ended, finish, json, signal, text, until};
use rustix::process::Signal;
use serde_json::Value;

/// A sender and a receiver that are both attached to `box` and have nothing to do.
fn idle_pair(place: &Place) -> (Child, Child) {
    let mut receiver = place.ramway(["recv", "box"]).spawn().unwrap();
    let mut sender = place.ramway(["send", "box", "--lines"]).stdin(Stdio::piped()).spawn().unwrap();
    sender.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    let mut got = [0; 6];
    receiver.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
    // A message is given back only after it was written.
    until("it is given back", || json(place, &["ls", "--json"])["segments"][0]["fill"] == 0);
    (sender, receiver)
}

fn role_of(view: &Value, role: &str) -> Option<u64> {
    let users = view["users"].as_array()?;
    users.iter().find(|user| user["role"] == role)?["pid"].as_u64()
}

#[test]
fn nothing_is_listed_where_nothing_is() {
    let place = Place::new();
    let listed = json(&place, &["ls", "--json"]);
    assert_eq!(listed["segments"].as_array().unwrap().len(), 0);
    let absent = place.files.join("absent");
    assert_failed(&place.run(&["ls", absent.to_str().unwrap()]), 6, "absent");
    assert_failed(&place.run(&["ls", "--json", absent.to_str().unwrap()]), 6, "absent");
    assert_failed(&place.run(&["ls", &place.file("file", b"")]), 1, "file");
    // The Ramway directory is made by the first program that needs it.
    let listed = finish(place.ramway(["ls"]).env("RAMWAY_DIR", &absent).spawn().unwrap());
    assert_eq!(listed.status.code(), Some(0));
    assert!(text(&place, &["clean"]).contains("nothing"));
}

#[test]
fn a_live_ring_is_shown_with_its_processes_and_not_cleaned() {
    let place = Place::new();
    let (mut sender, receiver) = idle_pair(&place);
    let listed = json(&place, &["ls", "--json"]);
    let ring = &listed["segments"][0];
    assert_eq!((ring["name"].as_str(), ring["kind"].as_str()), (Some("box"), Some("ring")));
    assert_eq!(ring["state"], "live");
    assert_eq!(ring["capacity"], 1 << 20);
    assert_eq!(ring["fill"], 0);
    assert_eq!(role_of(ring, "sender"), Some(u64::from(sender.id())));
    assert_eq!(role_of(ring, "receiver"), Some(u64::from(receiver.id())));
    let shown = text(&place, &["ls"]);
    assert!(shown.contains(&format!("sender {}", sender.id())), "{shown}");
    assert!(!shown.contains('\x1b'), "no colours where nobody sees them: {shown}");
    assert!(text(&place, &["ls", "--color", "always"]).contains('\x1b'));

    let inspected = json(&place, &["inspect", "--json", "box"]);
    let ring = &inspected["segment"];
    assert_eq!(ring["locks"]["producer"], true);
    assert_eq!(ring["rings"][0]["producer"]["epoch"], 1);
    assert_eq!(ring["rings"][0]["tail"], ring["rings"][0]["head"]);
    let shown = text(&place, &["inspect", place.dir.join("box").to_str().unwrap()]);
    assert!(shown.contains("producer held, consumer held"), "{shown}");

    for args in [&["clean", "--json"][..], &["clean", "--json", "--undelivered"], &["clean", "--json", "box"]] {
        let cleaned = json(&place, args);
        assert_eq!(cleaned["files"][0]["outcome"], "kept", "{args:?}");
    }
    assert_eq!(place.names(), ["box"]);
    // It still works after all these looks.
    sender.stdin.take().unwrap().write_all(b"bye\n").unwrap();
    assert_done(&finish(sender));
    let received = finish(receiver);
    assert_eq!(received.stdout, b"bye\n");
    assert_done(&received);
}

#[test]
fn what_killed_processes_left_is_stale_and_goes() {
    let place = Place::new();
    let (mut sender, mut receiver) = idle_pair(&place);
    // One that runs notices that the other is dead, and ends in order.
    for child in [&sender, &receiver] {
        signal(child, Signal::STOP);
    }
    for child in [&mut sender, &mut receiver] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let listed = json(&place, &["ls", "--json"]);
    assert_eq!(listed["segments"][0]["state"], "stale");
    assert_eq!(listed["segments"][0]["users"].as_array().unwrap().len(), 0);
    assert_eq!(text(&place, &["clean", "--dry-run"]), "would remove box\n");
    assert_eq!(place.names(), ["box"]);
    assert_eq!(text(&place, &["clean"]), "removed box\n");
    assert_eq!(place.names(), [""; 0]);
    assert_failed(&place.run(&["inspect", "box"]), 6, "box");
    assert_eq!(place.run(&["clean", "box"]).status.code(), Some(6));
}

#[test]
fn undelivered_messages_go_only_when_asked() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "--lines", "box"], b"a\nb\n"));
    let listed = json(&place, &["ls", "--json"]);
    let ring = &listed["segments"][0]["rings"][0];
    assert_eq!(ring["undelivered_messages"], 2);
    assert_eq!(ring["undelivered_bytes"], 4);
    assert_eq!(ring["unseen_close"], true);
    let kept = text(&place, &["clean"]);
    assert!(kept.starts_with("kept box: it holds 2 undelivered messages"), "{kept}");
    assert_eq!(text(&place, &["clean", "--undelivered"]), "removed box\n");
}

#[test]
fn what_cannot_be_cleaned_is_said_on_stderr() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"x"));
    let output = place.run(&["clean", "--undelivered", "absent", "box"]);
    assert_failed(&output, 6, "absent");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "removed box\n");
    let output = place.run(&["clean", "--json", "absent"]);
    assert_failed(&output, 6, "absent");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["outcome"], "error");
}

#[test]
fn a_name_is_unlinked_whatever_it_holds_unless_it_is_in_use() {
    let place = Place::new();
    drop(ramway::Ring::create(place.dir.join("kept")).persistent(true).sender().unwrap());
    assert_done(&place.run_with(&["send", "full"], b"x"));
    std::fs::write(place.dir.join("notes"), b"somebody's notes").unwrap();
    let (mut sender, mut receiver) = idle_pair(&place);
    let output = place.run(&["unlink", "kept", "absent", "box", "notes", "full"]);
    assert_failed(&output, 6, "absent");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("in use") && said.contains("not a Ramway segment"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "removed kept\nremoved full\n");
    assert_eq!(place.run(&["unlink", "box"]).status.code(), Some(7));
    assert_eq!(place.run(&["unlink", "notes"]).status.code(), Some(9));
    assert_eq!(place.run(&["unlink"]).status.code(), Some(2));
    assert_eq!(place.names(), ["box", "notes"]);
    for child in [&mut sender, &mut receiver] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(text(&place, &["unlink", "box"]), "removed box\n");
}

#[test]
fn nothing_foreign_is_touched() {
    let place = Place::new();
    let outside = place.file("outside", b"not in the directory");
    std::fs::write(place.dir.join("notes"), b"somebody's notes").unwrap();
    std::fs::write(place.dir.join("empty"), b"").unwrap();
    std::fs::write(place.dir.join("almost"), [&b"RAMWAY\r\n"[..], &[0xff; 100]].concat()).unwrap();
    std::fs::create_dir(place.dir.join("directory")).unwrap();
    symlink(&outside, place.dir.join("link")).unwrap();
    symlink("nowhere", place.dir.join("dangling")).unwrap();
    let _socket = UnixListener::bind(place.dir.join("socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.dir.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let before: Vec<_> = state(&place);
    for args in [&["ls"][..], &["ls", "--json"], &["clean", "-n"], &["clean"], &["clean", "--undelivered"]] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for name in ["notes", "empty", "almost", "directory", "socket", "fifo", "link", "dangling"] {
        assert_ne!(place.run(&["inspect", name]).status.code(), Some(0), "{name}");
        place.run(&["clean", "--undelivered", name]);
    }
    assert_failed(&place.run(&["inspect", "notes"]), 9, "not a Ramway segment");
    assert_eq!(state(&place), before);
    assert_eq!(std::fs::read(outside).unwrap(), b"not in the directory");
}

/// Names, inodes, lengths and times of everything in the directory.
fn state(place: &Place) -> Vec<(String, u64, u64, i64)> {
    let look = |name: String| {
        let found = std::fs::symlink_metadata(place.dir.join(&name)).unwrap();
        (name, found.ino(), found.len(), found.mtime_nsec())
    };
    place.names().into_iter().map(look).collect()
}

#[test]
fn a_live_bus_is_found_and_inspected() {
    let place = Place::new();
    // The other process of a demo waits for the listener, which is this one.
    let name = place.dir.join("line");
    let output = place.files.join("out");
    let listener = ramway::Listener::builder(&name).capacities(1 << 16, 4096).bind().unwrap();
    let listed = json(&place, &["ls", "--json"]);
    assert_eq!(listed["segments"][0]["kind"], "listener");
    assert_eq!(role_of(&listed["segments"][0], "listener"), Some(u64::from(std::process::id())));
    let args = ["demo", "--receive", name.to_str().unwrap(), "--output", output.to_str().unwrap()];
    let mut other = place.ramway(args).spawn().unwrap();
    let mut bus = listener.accept_timeout(common::DEADLINE).unwrap();
    until("both processes are seen", || {
        let listed = json(&place, &["ls", "--json"]);
        let buses = listed["buses"].as_array().unwrap();
        buses.iter().any(|bus| {
            bus["name"].as_str() == name.to_str()
                && bus["users"].as_array().unwrap().len() == 2
                && bus["rings"][0]["capacity"] == 1 << 16
                && bus["rings"][1]["consumer"]["epoch"] == 1
        })
    });
    let shown = text(&place, &["inspect", name.to_str().unwrap()]);
    assert!(shown.contains("bus") && shown.contains("ring (block 1)"), "{shown}");
    bus.send(2, b"").unwrap();
    assert_eq!(bus.recv().unwrap().len(), 32);
    drop(bus);
    assert_eq!(ended(&mut other).code(), Some(0));
}

#[test]
fn a_bus_that_is_only_mapped_is_found_too() {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let place = Place::new();
    let name = format!("mapped-{}", std::process::id());
    let memory = rustix::fs::memfd_create(format!("ramway-bus:{name}"), rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&memory, 4096).unwrap();
    // SAFETY: a fresh mapping that nothing reads or writes.
    let at = unsafe { mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &memory, 0) }.unwrap();
    let users = || {
        let listed = json(&place, &["ls", "--json"]);
        let buses = listed["buses"].as_array().unwrap().iter().filter(|bus| bus["name"] == *name);
        buses.map(|bus| bus["users"].as_array().unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!(users(), [1], "open and mapped is one user");
    drop(memory);
    assert_eq!(users(), [1]);
    // SAFETY: mapped above, and nothing refers to it.
    unsafe { munmap(at, 4096) }.unwrap();
    assert!(users().is_empty());
}

#[test]
fn a_region_and_a_persistent_ring_are_shown() {
    let place = Place::new();
    let region = ramway::Region::create(place.dir.join("table"), 5000).unwrap();
    region.notify().unwrap();
    let ring = ramway::Ring::create(place.dir.join("kept")).persistent(true).receiver().unwrap();
    drop(ring);
    let listed = json(&place, &["ls", "--json"]);
    let [kept, table] = [&listed["segments"][0], &listed["segments"][1]];
    assert_eq!((kept["persistent"].as_bool(), kept["state"].as_str()), (Some(true), Some("stale")));
    assert_eq!((table["region"]["len"].as_u64(), table["region"]["notifications"].as_u64()), (Some(5000), Some(1)));
    assert_eq!(role_of(table, "user"), Some(u64::from(std::process::id())));
    assert!(text(&place, &["inspect", "table"]).contains("notified"));
    assert!(text(&place, &["clean"]).contains("kept kept: it is persistent"));
    drop(region);
}
