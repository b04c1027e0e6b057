//! `ramway send` and `ramway recv`: what goes in comes out, whichever side starts first.

mod common;

use common::{Place, assert_done, assert_failed, finish, noise};
use std::path::Path;
use std::process::Stdio;

#[test]
fn the_sender_may_come_first_and_leave() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"left for later\n"));
    assert_eq!(place.names(), ["box"]);
    let received = place.run(&["recv", "box"]);
    assert_done(&received);
    assert_eq!(received.stdout, b"left for later\n");
    assert_eq!(place.names(), [""; 0], "the last one out removes the name");
}

#[test]
fn the_receiver_may_come_first() {
    let place = Place::new();
    let receiver = place.ramway(["recv", "box"]).spawn().unwrap();
    place.await_name("box");
    assert_done(&place.run_with(&["send", "box"], b"now"));
    let received = finish(receiver);
    assert_done(&received);
    assert_eq!(received.stdout, b"now");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn nothing_and_one_byte_arrive() {
    let place = Place::new();
    for input in [&b""[..], b"x", b"\n", b"\0"] {
        for mode in [&["send", "box"][..], &["send", "--lines", "box"], &["send", "--frame", "7", "box"]] {
            assert_done(&place.run_with(mode, input));
            let received = place.run(&["recv", "box"]);
            assert_done(&received);
            assert_eq!(received.stdout, input, "{mode:?}");
        }
    }
    // An empty stream is delivered once: its successor is not taken for it.
    assert_failed(&place.run(&["recv", "box", "--timeout", "300ms"]), 3, "timed out");
}

#[test]
fn a_hundred_megabytes_arrive_in_a_file() {
    let place = Place::new();
    let bytes = noise(100_000_001, 7);
    let input = place.file("in", &bytes);
    for mode in [&[][..], &["--frame", "1000000", "--capacity", "4M"], &["--frame", "4097"], &["--lines"]] {
        let output = place.file("out", b"old");
        let receiver = place.ramway(["recv", "box", &output]).args(capacity(mode)).spawn().unwrap();
        let sent = finish(place.ramway(["send", "box", &input]).args(mode).spawn().unwrap());
        assert_done(&sent);
        assert_done(&finish(receiver));
        assert!(std::fs::read(&output).unwrap() == bytes, "{mode:?}: the bytes differ");
    }
    assert!(!place.files.join("out.part").exists());
    assert_eq!(place.names(), [""; 0]);
}

/// The receiver may be the one that makes the ring.
fn capacity<'a>(mode: &[&'a str]) -> Vec<&'a str> {
    mode.iter().skip_while(|arg| **arg != "--capacity").take(2).copied().collect()
}

#[test]
fn each_line_is_a_message_with_its_newline() {
    let place = Place::new();
    let input = b"one\n\nthree has no end";
    assert_done(&place.run_with(&["send", "--lines", "--type-id", "0x2a", "box"], input));
    let mut receiver = ramway::Ring::open(place.dir.join("box")).receiver().unwrap();
    for expected in [&b"one\n"[..], b"\n", b"three has no end"] {
        let message = receiver.recv().unwrap();
        assert_eq!((&message[..], message.type_id()), (expected, 42));
    }
    assert_eq!(receiver.recv().unwrap_err().kind(), ramway::ErrorKind::Closed);
}

#[test]
fn frames_have_the_length_that_was_asked_for() {
    let place = Place::new();
    for (frame, len, expected) in
        [(10, 25, &[10, 10, 5][..]), (10, 20, &[10, 10]), (300_000, 600_001, &[300_000, 300_000, 1])]
    {
        let bytes = noise(len, 3);
        assert_done(&place.run_with(&["send", "box", "--frame", &frame.to_string()], &bytes));
        let mut receiver = ramway::Ring::open(place.dir.join("box")).receiver().unwrap();
        let mut got = Vec::new();
        for expected in expected {
            let message = receiver.recv().unwrap();
            assert_eq!(message.len(), *expected);
            got.extend_from_slice(&message);
        }
        assert!(got == bytes);
        assert_eq!(receiver.recv().unwrap_err().kind(), ramway::ErrorKind::Closed);
    }
}

#[test]
fn what_can_never_fit_is_said_and_is_not_a_stream() {
    let place = Place::new();
    let sent = place.run_with(&["send", "box", "--frame", "64K", "--capacity", "64K"], b"x");
    assert_failed(&sent, 1, "messages of 65536 bytes can never fit");
    let sent = place.run_with(&["send", "box", "--lines", "--capacity", "64K"], &[b'x'; 100_000]);
    assert_failed(&sent, 1, "can never fit");
    // The longest line that fits does.
    let mut line = vec![b'y'; 65536 - 16];
    line[65519] = b'\n';
    assert_done(&place.run_with(&["send", "box", "--lines", "--capacity", "64K"], &line));
    assert_eq!(place.run(&["recv", "box"]).stdout, line);
}

#[test]
fn time_runs_out_on_either_side() {
    let place = Place::new();
    assert_failed(&place.run(&["recv", "box", "--timeout", "0.2"]), 3, "timed out");
    let sent = place.run_with(&["send", "box", "--capacity", "64K", "--timeout", "200ms"], &noise(100_000, 1));
    assert_failed(&sent, 3, "made room");
    // What had been sent is not lost, and is not taken for the whole.
    let received = place.run(&["recv", "box"]);
    assert_failed(&received, 4, "died");
    assert!(!received.stdout.is_empty() && noise(100_000, 1).starts_with(&received.stdout));
}

#[test]
fn a_capacity_that_differs_names_both() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box", "--capacity", "64K"], b"x"));
    let sent = place.run_with(&["send", "box", "--capacity", "128K"], b"x");
    assert_failed(&sent, 2, "65536");
    assert!(String::from_utf8_lossy(&sent.stderr).contains("131072"));
}

#[test]
fn a_bad_name_and_a_bad_argument_are_usage_errors() {
    let place = Place::new();
    assert_failed(&place.run(&["recv", ".hidden"]), 2, ".hidden");
    assert_failed(&place.run(&["recv", "box.sock"]), 2, "box.sock");
    assert_failed(&place.run(&["send", "box", "--type-id", "0xffff0000"]), 2, "reserved");
    assert_failed(&place.run(&["send", "box", "--frame", "0"]), 2, "at least 1");
    assert_failed(&place.run(&["send", "box", "--frame", "1", "--lines"]), 2, "cannot be used with");
    assert_failed(&place.run(&["send", "box", "/no/such/file"]), 6, "/no/such/file");
    assert_failed(&place.run(&["send", "box", "/"]), 1, "directory");
    assert_eq!(place.names(), [""; 0], "nothing of it made a ring");
}

#[test]
fn sizes_are_read_as_people_write_them() {
    let place = Place::new();
    for (text, capacity) in [("1.5M", 2 << 20), ("64Ki", 65536), ("64KiB", 65536), ("0.5 MiB", 512 << 10)] {
        assert_done(&place.run_with(&["send", "box", "--capacity", text, "--frame", "1Ki"], b"x"));
        let listed: serde_json::Value = serde_json::from_slice(&place.run(&["ls", "--json"]).stdout).unwrap();
        assert_eq!(listed["segments"][0]["rings"][0]["capacity"], capacity, "{text}");
        assert_done(&place.run(&["recv", "box", "/dev/null"]));
    }
    assert_failed(&place.run(&["send", "box", "--capacity", "1.5.5M"]), 2, "is not a size");
}

#[test]
fn a_ring_on_a_disk_is_taken_with_the_option_that_the_error_names() {
    let place = Place::new();
    // Where a disk is, if this machine has one that its tests may write.
    for directory in [Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new("/var/tmp"), &std::env::temp_dir()] {
        let ring = directory.join(format!("ramway-cli-test-disk-{}", std::process::id()));
        let ring = ring.to_str().unwrap();
        let (code, said) = common::told(&place.run_with(&["send", ring], b"x"));
        if said.contains("disk") {
            assert!(code == Some(1) && said.contains(", or --allow-disk"), "{said}");
            assert_done(&place.run_with(&["send", ring, "--allow-disk"], b"x"));
            let received = place.run(&["recv", ring, "--allow-disk"]);
            assert_eq!(received.stdout, b"x");
            assert_done(&received);
        }
        let _ = std::fs::remove_file(ring);
    }
}

#[test]
fn a_file_that_is_replaced_leaves_its_other_links_alone() {
    let place = Place::new();
    let output = place.file("out", b"old");
    let other = place.files.join("other");
    std::fs::hard_link(&output, &other).unwrap();
    assert_done(&place.run_with(&["send", "box"], b"new"));
    assert_done(&place.run(&["recv", "box", &output]));
    assert_eq!((std::fs::read(&output).unwrap(), std::fs::read(&other).unwrap()), (b"new".to_vec(), b"old".to_vec()));
    let help = String::from_utf8(place.run(&["recv", "--help"]).stdout).unwrap();
    assert!(help.contains("hard links"), "{help}");
}

#[test]
fn two_receivers_are_one_too_many() {
    let place = Place::new();
    let mut first = place.ramway(["recv", "box"]).spawn().unwrap();
    place.await_name("box");
    common::until("the second one is refused", || {
        let second = place.run(&["recv", "box", "--timeout", "50ms"]);
        second.status.code() == Some(7)
    });
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_receiver_that_cannot_write_does_not_end_the_stream() {
    let place = Place::new();
    let mut sender = place.ramway(["send", "box"]).stdin(Stdio::piped()).spawn().unwrap();
    place.await_name("box");
    let nowhere = place.files.join("no/such/file");
    assert_failed(&place.run(&["recv", "box", nowhere.to_str().unwrap()]), 6, "no/such/file");
    assert_failed(&place.run(&["recv", "box", "/"]), 1, "directory");
    let output = place.file("out", b"");
    let receiver = place.ramway(["recv", "box", &output]).spawn().unwrap();
    // More than the ring holds, so that a receiver that has gone would be noticed.
    let bytes = noise(3_000_000, 5);
    std::io::Write::write_all(&mut sender.stdin.take().unwrap(), &bytes).unwrap();
    assert_done(&finish(sender));
    assert_done(&finish(receiver));
    assert!(std::fs::read(&output).unwrap() == bytes);
}

/// A role that is taken, by one who was here first, leaves no empty file behind.
#[test]
fn a_receiver_that_is_refused_leaves_no_file() {
    let place = Place::new();
    let mut first = place.ramway(["recv", "box"]).spawn().unwrap();
    place.await_name("box");
    let output = place.files.join("out");
    common::until("the second one is refused", || {
        let second = place.run(&["recv", "box", "--timeout", "50ms", output.to_str().unwrap()]);
        assert_eq!(std::fs::read_dir(&place.files).unwrap().count(), 0);
        second.status.code() == Some(7)
    });
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn wait_ends_only_when_everything_is_taken() {
    let place = Place::new();
    let alone = place.run_with(&["send", "--wait", "--timeout", "200ms", "box"], b"anyone?");
    assert_failed(&alone, 3, "no receiver took");
    // What the first one left is still there, and comes first.
    let sender = place.ramway(["send", "--wait", "box"]).stdin(Stdio::null()).spawn().unwrap();
    let received = place.run(&["recv", "box"]);
    assert_eq!(received.stdout, b"anyone?");
    assert_eq!(finish(sender).status.code(), Some(0));
}

#[test]
fn a_device_is_written_to_and_a_part_of_another_is_kept() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"gone"));
    assert_done(&place.run(&["recv", "box", "/dev/null"]));
    place.file("out.part", b"somebody's");
    let output = place.files.join("out");
    assert_done(&place.run_with(&["send", "box"], b"new"));
    assert_done(&place.run(&["recv", "box", output.to_str().unwrap()]));
    assert_eq!(std::fs::read(&output).unwrap(), b"new");
    assert_eq!(std::fs::read(place.files.join("out.part")).unwrap(), b"somebody's");
}
