//! How `ramway pub` and `ramway sub` end when the other side does, or when they are told to.

mod common;

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use common::{Place, assert_done, assert_failed, await_subscribers, ended, finish, noise, signal, until};
use rustix::process::Signal;

/// A publisher that has published `first` and waits for more input.
fn publisher(place: &Place, first: &[u8]) -> Child {
    let mut child = place.ramway(["pub", "news"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(first).unwrap();
    child
}

fn subscriber(place: &Place, args: &[&str]) -> Child {
    let child = place.ramway(["sub", "news"]).args(args).spawn().unwrap();
    until("it is attached", || {
        let shown = place.run(&["inspect", "--json", "news"]).stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap_or_default();
        let all = shown["segment"]["topic"]["subscribers"].as_array();
        all.is_some_and(|all| all.iter().any(|one| one["pid"] == child.id()))
    });
    child
}

/// Reads exactly `expected` from a subscriber's output.
fn expect(child: &mut Child, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
    assert_eq!(got, expected);
}

#[test]
fn a_killed_publisher_is_told_from_one_that_closed() {
    let place = Place::new();
    for policy in ["--lossy", "--reliable"] {
        let mut receiver = subscriber(&place, &[policy]);
        let mut sender = publisher(&place, b"half a sentence");
        expect(&mut receiver, b"half a sentence");
        sender.kill().unwrap();
        sender.wait().unwrap();
        assert_failed(&finish(receiver), 4, "the publisher of `news` died");
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_killed_publisher_leaves_the_old_file_alone() {
    let place = Place::new();
    let output = place.file("out", b"the old one");
    let receiver = subscriber(&place, &["--reliable", &output]);
    let mut sender = publisher(&place, b"the new");
    until("it is written", || std::fs::read(place.files.join("out.part")).is_ok_and(|got| got == b"the new"));
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_failed(&finish(receiver), 4, "out.part");
    assert_eq!(std::fs::read(&output).unwrap(), b"the old one");
}

#[test]
fn an_interrupted_publisher_is_not_a_finished_one() {
    let place = Place::new();
    for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut receiver = subscriber(&place, &[]);
        let mut sender = publisher(&place, b"and then");
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
fn subscribers_that_end_do_not_end_their_publisher() {
    let place = Place::new();
    let bytes = noise(3_000_000, 2);
    let input = place.file("in", &bytes);
    // Its output is not read, so the publisher is blocked by it.
    let mut blocks = subscriber(&place, &["--reliable", "--capacity", "64K"]);
    let mut others = [subscriber(&place, &["--lossy"]), subscriber(&place, &["--lossy", "--count", "1"])];
    let mut sender = place.ramway(["pub", "news", &input]).spawn().unwrap();
    until("it is blocked", || {
        let shown = place.run(&["inspect", "--json", "news"]).stdout;
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
        shown["segment"]["topic"]["subscribers"].as_array().unwrap().iter().any(|one| one["blocks"] == true)
    });
    assert!(sender.try_wait().unwrap().is_none());
    let [lossy, one] = &mut others;
    let mut part = Vec::new();
    one.stdout.take().unwrap().read_to_end(&mut part).unwrap();
    assert_eq!(ended(one).code(), Some(0), "after --count messages");
    lossy.kill().unwrap();
    lossy.wait().unwrap();
    blocks.kill().unwrap();
    blocks.wait().unwrap();
    // Blocked by a dead process, it finds that out and goes on.
    assert_done(&finish(sender));
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn the_first_signal_ends_a_publisher_that_is_blocked() {
    let place = Place::new();
    let input = place.file("in", &noise(1_000_000, 2));
    let mut blocks = subscriber(&place, &["--reliable", "--capacity", "64K"]);
    let sender = place.ramway(["pub", "news", &input]).spawn().unwrap();
    let mut first = [0; 1];
    blocks.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&sender, Signal::INT);
    assert_failed(&finish(sender), 130, "interrupted");
    blocks.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    assert_failed(&finish(blocks), 4, "died (or gave up)");
}

#[test]
fn the_first_signal_ends_a_subscriber_whose_output_nobody_reads() {
    let place = Place::new();
    for format in ["raw", "json"] {
        let durable = ["--reliable", "--durable", "--label", "x", "--capacity", "4M", "--format", format];
        let mut receiver = subscriber(&place, &durable);
        let input = place.file("in", &noise(1_000_000, 8));
        assert_done(&place.run(&["pub", "news", "--frame", "1000", &input]));
        let mut first = [0; 1];
        receiver.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        signal(&receiver, Signal::INT);
        assert_eq!(ended(&mut receiver).code(), Some(130));
        // What it had not got rid of is there for the next one.
        let rest = place.run(&["sub", "news", "--reliable", "--durable", "--label", "x", "--format", "hex"]);
        assert_done(&rest);
        let lines = rest.stdout.iter().filter(|byte| **byte == b'\n').count();
        assert!((1..=1000).contains(&lines), "{lines}");
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn waiting_for_the_other_side_ends_at_ctrl_c_and_leaves_nothing() {
    let place = Place::new();
    for args in [
        &["pub", "news"][..],
        &["pub", "news", "--wait-for-subscribers", "1"],
        &["sub", "news"],
        &["sub", "news", "--latest"],
        &["sub", "news", "--reliable"],
    ] {
        for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let mut child = place.ramway(args).stdin(Stdio::piped()).spawn().unwrap();
            place.await_name("news");
            // The handler was there before the name.
            signal(&child, number);
            let stdin = child.stdin.take();
            assert_failed(&finish(child), code, "interrupted");
            drop(stdin);
            assert_eq!(place.names(), [""; 0], "{args:?}");
        }
    }
}

#[test]
fn the_end_of_a_publisher_that_was_gone_before_is_no_news() {
    let place = Place::new();
    let keep = ["pub", "news", "--persistent"];
    for killed in [false, true] {
        let mut past = place.ramway(keep).stdin(Stdio::piped()).spawn().unwrap();
        place.await_name("news");
        if killed {
            past.kill().unwrap();
        }
        drop(past.stdin.take());
        past.wait().unwrap();
        for args in [&["--lossy"][..], &["--reliable"], &["--reliable", "--durable", "--label", "new"]] {
            let waits = subscriber(&place, args);
            assert_done(&place.run_with(&keep, b"at last"));
            let output = finish(waits);
            assert_done(&output);
            assert_eq!(output.stdout, b"at last", "{args:?}");
            // For the next of these there is no history.
            std::fs::remove_file(place.dir.join("news")).unwrap();
            assert_done(&place.run_with(&keep, b""));
        }
        std::fs::remove_file(place.dir.join("news")).unwrap();
    }
}

#[test]
fn a_subscriber_that_follows_goes_on_with_the_next_publisher() {
    let place = Place::new();
    let mut receiver = subscriber(&place, &["--follow", "--format", "lines"]);
    for round in 0..5 {
        let text = format!("round {round}\n");
        let mut sender = publisher(&place, text.as_bytes());
        expect(&mut receiver, text.as_bytes());
        if round % 2 == 0 {
            sender.kill().unwrap();
        }
        drop(sender.stdin.take());
        sender.wait().unwrap();
    }
    signal(&receiver, Signal::INT);
    assert_failed(&finish(receiver), 130, "interrupted");
    assert_eq!(place.names(), [""; 0]);
    // It waits no longer than it is told to. What is received is there before it starts, so that no time runs before that.
    assert_done(&place.run_with(&["pub", "news", "--persistent"], b"the only one"));
    let output = place.run(&["sub", "news", "--from-oldest", "--follow", "--timeout", "300ms"]);
    assert_failed(&output, 3, "no publisher sent anything");
    assert_eq!(output.stdout, b"the only one");
}

#[test]
fn a_durable_subscriber_is_told_a_close_once() {
    let place = Place::new();
    let durable = ["sub", "news", "--reliable", "--durable", "--label", "x"];
    let receiver = place.ramway(durable).arg("--persistent").spawn().unwrap();
    await_subscribers(&place, "news", "reliable", 1);
    signal(&receiver, Signal::TERM);
    assert_eq!(finish(receiver).status.code(), Some(143));
    // Nobody is there, but the label: everything is kept for it, also an end without a message.
    assert_done(&place.run_with(&["pub", "news", "--persistent"], b""));
    assert_done(&place.run(&durable));
    assert_failed(&place.run(&[&durable[..], &["--timeout", "200ms"]].concat()), 3, "timed out");
}

#[test]
fn a_closed_output_loses_nothing_of_a_durable_subscriber() {
    let place = Place::new();
    let durable = ["sub", "news", "--reliable", "--durable", "--label", "x"];
    let first = place.ramway(durable).spawn().unwrap();
    await_subscribers(&place, "news", "reliable", 1);
    signal(&first, Signal::INT);
    finish(first);
    assert_eq!(place.names(), [""; 0], "a durable subscriber that has everything keeps no name");
    let first = place.ramway(durable).spawn().unwrap();
    await_subscribers(&place, "news", "reliable", 1);
    signal(&first, Signal::STOP);
    assert_done(&place.run_with(&["pub", "news"], b"still here"));
    let mut first = first;
    first.kill().unwrap();
    first.wait().unwrap();
    for format in ["raw", "lines", "json", "hex"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = place.ramway(durable).args(["--format", format]).stdout(writer).spawn().unwrap();
        assert_failed(&finish(closed), 1, "closed by its reader");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let full = place.ramway(durable).args(["--format", format]).stdout(full).spawn().unwrap();
        assert_failed(&finish(full), 8, "cannot write standard output");
    }
    let received = place.run(&durable);
    assert_eq!(received.stdout, b"still here");
    assert_done(&received);
}

#[test]
fn a_lossy_subscriber_whose_output_is_closed_ends() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let receiver = place.ramway(["sub", "news"]).stdout(writer).spawn().unwrap();
    await_subscribers(&place, "news", "lossy", 1);
    drop(reader);
    let sender = publisher(&place, b"anyone?");
    assert_failed(&finish(receiver), 1, "closed by its reader");
    let mut sender = sender;
    drop(sender.stdin.take());
    assert_done(&finish(sender));
}

#[test]
fn closed_standard_descriptors_are_found_before_anything_is_done() {
    let place = Place::new();
    for redirections in [">&-", "1</dev/null"] {
        for args in [&["sub", "news"][..], &["sub", "news", "/dev/stdout"], &["pub", "--help"], &["sub", "--help"]] {
            assert_failed(&place.redirected(args, redirections), 1, "standard output is closed");
        }
    }
    for redirections in ["<&-", "0>/dev/null"] {
        for args in [&["pub", "news"][..], &["pub", "news", "/dev/stdin"]] {
            assert_failed(&place.redirected(args, redirections), 1, "standard input is closed");
        }
    }
    assert_eq!(place.names(), [""; 0], "no topic was made");
    // What does not use them does not need them; and nobody is told where there is nobody.
    let input = place.file("in", b"a message");
    assert_done(&place.redirected(&["pub", "--persistent", "--quiet", "news", &input], "<&- >&-"));
    let output = place.files.join("out");
    let output = output.to_str().unwrap();
    assert_done(&place.redirected(&["sub", "news", "--from-oldest", "--count", "1", output], "<&- >&-"));
    assert_eq!(std::fs::read(output).unwrap(), b"a message");
}

#[test]
fn a_refused_subscriber_leaves_no_file() {
    let place = Place::new();
    let output = place.files.join("out");
    assert_failed(&place.run(&["sub", "absent", "--read-only", output.to_str().unwrap()]), 6, "absent");
    assert_failed(&place.run(&["sub", "news", "/no/such/directory/out"]), 6, "/no/such/directory/out");
    assert_eq!(std::fs::read_dir(&place.files).unwrap().count(), 0);
    assert_eq!(place.names(), [""; 0], "nor a topic");
}
