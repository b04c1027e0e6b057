//! How `ramway send` and `ramway recv` end when the other side does, or when they are told to.

mod common;

use std::io::{BufRead, Read, Write};
use std::process::{Child, Stdio};

use common::{Place, assert_done, assert_failed, ended, finish, noise, signal};
use rustix::process::Signal;

/// A sender that has sent `first` and waits for more input.
fn sender(place: &Place, first: &[u8]) -> Child {
    let mut child = place.ramway(["send", "box"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(first).unwrap();
    child
}

/// A receiver that has made its ring, with this capacity: a sender that came first would make it with another one.
fn receiver_of(place: &Place, capacity: &str) -> Child {
    let child = place.ramway(["recv", "box", "--capacity", capacity]).spawn().unwrap();
    place.await_name("box");
    child
}

/// Reads exactly `expected` from a receiver's output.
fn expect(child: &mut Child, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
    assert_eq!(got, expected);
}

#[test]
fn a_killed_sender_is_told_from_one_that_closed() {
    let place = Place::new();
    let mut receiver = place.ramway(["recv", "box"]).spawn().unwrap();
    let mut sender = sender(&place, b"half a sentence");
    expect(&mut receiver, b"half a sentence");
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_failed(&finish(receiver), 4, "the sender of `box` died");
}

#[test]
fn a_killed_sender_leaves_the_old_file_alone() {
    let place = Place::new();
    let output = place.file("out", b"the old one");
    let receiver = place.ramway(["recv", "box", &output]).spawn().unwrap();
    let mut sender = sender(&place, b"the new");
    common::until("it is written", || std::fs::read(place.files.join("out.part")).is_ok_and(|got| got == b"the new"));
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_failed(&finish(receiver), 4, "out.part");
    assert_eq!(std::fs::read(&output).unwrap(), b"the old one");
    assert_eq!(std::fs::read(place.files.join("out.part")).unwrap(), b"the new");
}

#[test]
fn what_a_killed_sender_had_sent_is_there_for_a_later_receiver() {
    let place = Place::new();
    let mut sender = sender(&place, b"last words");
    let ring = place.dir.join("box");
    common::until("they are sent", || {
        let json = place.run(&["ls", "--json"]).stdout;
        let listed: serde_json::Value = serde_json::from_slice(&json).unwrap();
        listed["segments"][0]["fill"].as_u64().is_some_and(|fill| fill > 0)
    });
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert!(ring.exists());
    let received = place.run(&["recv", "box"]);
    assert_failed(&received, 4, "died");
    assert_eq!(received.stdout, b"last words");
}

#[test]
fn a_killed_receiver_is_reported_by_its_sender() {
    let place = Place::new();
    // Its output is not read, so it stops with most of the stream still to come.
    let mut receiver = receiver_of(&place, "64K");
    let input = place.file("in", &noise(5_000_000, 9));
    let sender = place.ramway(["send", "box", &input]).spawn().unwrap();
    expect(&mut receiver, &noise(5_000_000, 9)[..100]);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert_failed(&finish(sender), 4, "the receiver of `box` died");
}

#[test]
fn a_receiver_that_died_while_the_sender_was_idle_is_reported_too() {
    let place = Place::new();
    let mut receiver = place.ramway(["recv", "box"]).spawn().unwrap();
    let mut sender = sender(&place, b"hello");
    expect(&mut receiver, b"hello");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let stdin = sender.stdin.take();
    let told = finish(sender);
    drop(stdin);
    assert_failed(&told, 4, "the receiver of `box` died");
}

#[test]
fn a_receiver_that_closed_while_the_sender_was_idle_is_told_from_one_that_died() {
    let place = Place::new();
    let mut receiver = place.ramway(["recv", "box"]).spawn().unwrap();
    let mut sender = sender(&place, b"hello");
    expect(&mut receiver, b"hello");
    signal(&receiver, Signal::INT);
    assert_eq!(ended(&mut receiver).code(), Some(130));
    let stdin = sender.stdin.take();
    let told = finish(sender);
    drop(stdin);
    assert_failed(&told, 5, "the receiver of `box` closed before everything was sent");
}

#[test]
fn a_receiver_killed_long_ago_does_not_trouble_a_new_sender() {
    let place = Place::new();
    let mut receiver = receiver_of(&place, "64K");
    let bytes = noise(1_000_000, 5);
    let input = place.file("in", &bytes);
    let first = place.ramway(["send", "box", &input]).spawn().unwrap();
    expect(&mut receiver, &bytes[..10]);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert_failed(&finish(first), 4, "died");
    // The ring is full of what the first one sent: the second waits for a successor instead of giving up.
    let mut second = place.ramway(["send", "box", &input]).spawn().unwrap();
    let mut note = String::new();
    let mut stderr = std::io::BufReader::new(second.stderr.take().unwrap());
    stderr.read_line(&mut note).unwrap();
    assert!(note.contains("an earlier sender left"), "{note}");
    let received = place.run(&["recv", "box"]);
    assert_eq!(received.status.code(), Some(0));
    assert!(received.stdout.ends_with(&bytes));
    assert_done(&finish(second));
}

#[test]
fn an_interrupted_sender_is_not_a_finished_one() {
    let place = Place::new();
    for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut receiver = place.ramway(["recv", "box"]).spawn().unwrap();
        let mut sender = sender(&place, b"and then");
        expect(&mut receiver, b"and then");
        signal(&sender, number);
        let stdin = sender.stdin.take();
        assert_failed(&finish(sender), code, "interrupted");
        drop(stdin);
        assert_failed(&finish(receiver), 4, "died");
        assert_eq!(place.names(), [""; 0], "nothing is left behind");
    }
}

#[test]
fn an_interrupted_receiver_is_reported_as_closed() {
    let place = Place::new();
    let mut receiver = receiver_of(&place, "64K");
    let input = place.file("in", &noise(5_000_000, 2));
    let sender = place.ramway(["send", "box", &input]).spawn().unwrap();
    expect(&mut receiver, &noise(5_000_000, 2)[..1]);
    signal(&receiver, Signal::INT);
    // A write that is under way is finished first.
    let mut out = receiver.stdout.take().unwrap();
    let drain = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()).unwrap());
    assert_eq!(ended(&mut receiver).code(), Some(130));
    drain.join().unwrap();
    let told = finish(sender);
    assert_failed(&told, 5, "closed before everything was sent");
}

#[test]
fn waiting_for_the_other_side_ends_at_ctrl_c_and_leaves_nothing() {
    let place = Place::new();
    for role in ["send", "recv"] {
        let mut child = place.ramway([role, "box"]).stdin(Stdio::piped()).spawn().unwrap();
        place.await_name("box");
        // The handler was there before the name.
        signal(&child, Signal::INT);
        let stdin = child.stdin.take();
        assert_failed(&finish(child), 130, "interrupted");
        drop(stdin);
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn the_first_signal_ends_the_wait_for_the_other_end_of_a_fifo() {
    for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for role in ["send", "recv"] {
            let place = Place::new();
            let fifo = place.fifo("fifo");
            let child = place.ramway([role, "box", &fifo]).spawn().unwrap();
            common::catches_ctrl_c(&child);
            if role == "send" {
                place.await_name("box");
            }
            signal(&child, number);
            assert_failed(&finish(child), code, "interrupted");
            assert_eq!(place.names(), [""; 0]);
        }
    }
}

#[test]
fn the_first_signal_ends_a_demo_whose_output_nobody_reads() {
    let place = Place::new();
    let (input, fifo) = (place.file("in", &noise(3_000_000, 2)), place.fifo("fifo"));
    let demo = place.ramway(["demo", "--no-bench", &input, "--output", &fifo]).spawn().unwrap();
    common::catches_ctrl_c(&demo);
    signal(&demo, Signal::TERM);
    assert_failed(&finish(demo), 143, "interrupted");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_fifo_is_a_file_like_any_other() {
    let place = Place::new();
    let (from, to) = (place.fifo("from"), place.fifo("to"));
    let receiver = place.ramway(["recv", "box", &to]).spawn().unwrap();
    let sender = place.ramway(["send", "box", &from]).spawn().unwrap();
    let bytes = noise(3_000_000, 21);
    let got = std::thread::scope(|threads| {
        threads.spawn(|| std::fs::write(&from, &bytes).unwrap());
        std::fs::read(&to).unwrap()
    });
    assert!(got == bytes);
    assert_done(&finish(sender));
    assert_done(&finish(receiver));
    // Without a byte it is an empty stream.
    let sender = place.ramway(["send", "box", &from]).spawn().unwrap();
    std::fs::write(&from, b"").unwrap();
    assert_done(&finish(sender));
    assert_eq!(place.run(&["recv", "box"]).stdout, b"");
}

#[test]
fn the_first_signal_ends_a_receiver_whose_output_nobody_reads() {
    let place = Place::new();
    let mut receiver = receiver_of(&place, "4M");
    let bytes = noise(3_000_000, 8);
    let input = place.file("in", &bytes);
    let sender = place.ramway(["send", "box", &input]).spawn().unwrap();
    expect(&mut receiver, &bytes[..1]);
    assert_eq!(finish(sender).status.code(), Some(0));
    signal(&receiver, Signal::INT);
    assert_eq!(ended(&mut receiver).code(), Some(130));
    // What it had not got rid of is there for the next one.
    let rest = place.run(&["recv", "box"]).stdout;
    assert!(!rest.is_empty() && bytes.ends_with(&rest));
}

#[test]
fn closed_standard_descriptors_are_found_before_anything_is_done() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"still here"));
    for redirections in [">&-", "1</dev/null"] {
        for args in [
            &["recv", "box"][..],
            &["recv", "box", "/dev/stdout"],
            &["recv", "box", "/dev/fd/1"],
            &["ls"],
            &["inspect", "box"],
            &["clean", "--undelivered"],
            &["unlink", "box"],
            &["completions", "bash"],
            &["doctor"],
            &["demo", "--no-bench"],
            &["bench", "--list"],
            &["call", "box", "1"],
            &["--help"],
            &["ls", "--help"],
            &["--version"],
        ] {
            assert_failed(&place.redirected(args, redirections), 1, "standard output is closed");
        }
    }
    for redirections in ["<&-", "0>/dev/null"] {
        assert_failed(
            &place.redirected(&["call", "box", "1", "--data", "@-"], redirections),
            1,
            "standard input is closed",
        );
        assert_failed(&place.redirected(&["send", "box"], redirections), 1, "standard input is closed");
        assert_failed(&place.redirected(&["send", "other"], redirections), 1, "standard input is closed");
        assert_failed(&place.redirected(&["send", "box", "/dev/stdin"], redirections), 1, "standard input is closed");
    }
    assert_eq!(place.names(), ["box"], "no ring was made, none was removed");
    // What does not use them does not need them; and nobody is told where there is nobody.
    let input = place.file("in", b", and here");
    assert_done(&place.redirected(&["send", "--quiet", "box", &input], "<&- >&-"));
    let output = place.files.join("out");
    assert_done(&place.redirected(&["recv", "box", output.to_str().unwrap()], "<&- >&-"));
    assert_eq!(std::fs::read(&output).unwrap(), b"still here, and here");
    assert_eq!(place.redirected(&["inspect", "nothing"], "2>&-").status.code(), Some(6));
    // The null device is an output and an input.
    assert_done(&place.redirected(&["send", "box"], "</dev/null"));
    assert_done(&place.redirected(&["recv", "box"], ">/dev/null"));
    assert_done(&place.redirected(&["send", "box"], "<>/dev/null"));
    assert_done(&place.redirected(&["recv", "box"], "1<>/dev/null"));
}

#[test]
fn a_closed_output_loses_nothing() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"still here"));
    let mut receiver = place.ramway(["recv", "box"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let receiver = receiver.stdout(writer).spawn().unwrap();
    assert_failed(&finish(receiver), 1, "closed by its reader");
    let received = place.run(&["recv", "box"]);
    assert_eq!(received.stdout, b"still here");
    assert_done(&received);
}

#[test]
fn a_full_output_is_said() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"still here"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let receiver = place.ramway(["recv", "box"]).stdout(full).spawn().unwrap();
    assert_failed(&finish(receiver), 8, "cannot write standard output");
    assert_eq!(place.run(&["recv", "box"]).stdout, b"still here");
}

#[test]
fn rounds_of_streams_keep_apart() {
    let place = Place::new();
    let mut before: Option<Child> = None;
    for round in 0..40 {
        // The receiver may meet the ring while the sender of the last round is still releasing it: the end that
        // it left is not this receiver's.
        let receiver = place.ramway(["recv", "box"]).spawn().unwrap();
        if let Some(sender) = before.take() {
            assert_done(&finish(sender));
        }
        let text = format!("round {round}");
        let mut sender = place.ramway(["send", "box"]).stdin(Stdio::piped()).spawn().unwrap();
        sender.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        before = Some(sender);
        let received = finish(receiver);
        assert_done(&received);
        assert_eq!(String::from_utf8_lossy(&received.stdout), text);
    }
    assert_done(&finish(before.unwrap()));
}
