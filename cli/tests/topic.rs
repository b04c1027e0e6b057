//! `ramway pub` and `ramway sub`: what is published comes to every subscriber by its own policy.

mod common;

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{
    Place, assert_done, assert_failed, await_subscribers, finish, json, json_lines, noise, signal, text, until,
};
use ramway::{Publisher, Topic};
use rustix::process::Signal;

/// A publisher of this process.
fn publisher(place: &Place, name: &str) -> Publisher {
    Topic::open_or_create(place.dir.join(name)).publisher().unwrap()
}

/// A topic with the messages `1` to `count`, and its publisher.
fn numbers(place: &Place, name: &str, count: u64) -> Publisher {
    let mut publisher = publisher(place, name);
    for number in 1..=count {
        publisher.send(0, number.to_string().as_bytes()).unwrap();
    }
    publisher
}

/// Subscribers may be the ones that make the topic.
fn subscriber(place: &Place, args: &[&str]) -> Child {
    place.ramway(["sub", "news"]).args(args).spawn().unwrap()
}

#[test]
fn each_policy_gets_what_it_is_for() {
    let place = Place::new();
    let reliable = [subscriber(&place, &["--reliable"]), subscriber(&place, &["--reliable", "--format", "json"])];
    let lossy = subscriber(&place, &[]);
    let latest = subscriber(&place, &["--latest", "--format", "json"]);
    for (policy, count) in [("reliable", 2), ("lossy", 1), ("latest", 1)] {
        await_subscribers(&place, "news", policy, count);
    }
    let input = b"one\ntwo\n\nfour has no end";
    assert_done(&place.run_with(&["pub", "--lines", "--wait-for-subscribers", "2", "news"], input));
    let [raw, lines] = reliable.map(finish);
    assert_done(&raw);
    assert_eq!(raw.stdout, input);
    assert_done(&lines);
    let payloads: Vec<_> = json_lines(&lines).iter().map(|line| line["payload"].as_str().unwrap().to_owned()).collect();
    assert_eq!(payloads, ["one\n", "two\n", "\n", "four has no end"]);
    let lossy = finish(lossy);
    assert_done(&lossy);
    assert_eq!(lossy.stdout, input);
    let latest = finish(latest);
    assert_done(&latest);
    let seen = json_lines(&latest);
    assert_eq!(seen.last().unwrap()["payload"], "four has no end", "the newest one is always seen");
    let seqs: Vec<u64> = seen.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted() && seqs.last() == Some(&4), "{seqs:?}");
    assert_eq!(place.names(), [""; 0], "the last one out removes the name");
}

#[test]
fn megabytes_arrive_whatever_they_are_cut_into() {
    let place = Place::new();
    let bytes = noise(20_000_001, 7);
    let input = place.file("in", &bytes);
    for mode in [&[][..], &["--frame", "1000000", "--capacity", "4M"], &["--frame", "4097"], &["--lines"]] {
        let output = place.file("out", b"old");
        let capacity = mode.iter().skip_while(|arg| **arg != "--capacity").take(2);
        let receiver = place.ramway(["sub", "news", "--reliable", &output]).args(capacity).spawn().unwrap();
        let sent = place.ramway(["pub", "--wait-for-subscribers", "1", "news", &input]).args(mode).spawn().unwrap();
        assert_done(&finish(sent));
        assert_done(&finish(receiver));
        assert!(std::fs::read(&output).unwrap() == bytes, "{mode:?}: the bytes differ");
    }
    assert!(!place.files.join("out.part").exists());
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn each_format_says_what_it_promises() {
    let place = Place::new();
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut publisher = Topic::create(place.dir.join("news")).timestamps(true).publisher().unwrap();
    publisher.send(42, b"text \"quoted\"\n").unwrap();
    publisher.send_tagged(0, u64::MAX, b"").unwrap();
    publisher.skip_seq(5).unwrap();
    publisher.send(0, &[0xff, 0x00, 0x0a]).unwrap();
    let sub = |format: &str| {
        let output = place.run(&["sub", "news", "--from-oldest", "--count", "3", "--format", format]);
        assert_eq!(output.status.code(), Some(0));
        output
    };
    let raw = sub("raw");
    assert_eq!(raw.stdout, b"text \"quoted\"\n\xff\x00\n");
    let said = String::from_utf8(raw.stderr).unwrap();
    assert!(said.contains("lost 5 message(s) of `news`"), "{said}");
    assert_eq!(sub("lines").stdout, b"text \"quoted\"\n\n\xff\x00\n");
    assert_eq!(sub("hex").stdout, b"74657874202271756f746564220a\n\nff000a\n");
    let shown = sub("json");
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "", "the format says what is lost");
    let lines = json_lines(&shown);
    let [first, second, third] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(
        (first["seq"].as_u64(), first["lost"].as_u64(), first["type_id"].as_u64()),
        (Some(1), Some(0), Some(42))
    );
    assert_eq!((first["encoding"].as_str(), first["payload"].as_str()), (Some("utf-8"), Some("text \"quoted\"\n")));
    assert_eq!((first["len"].as_u64(), first["tag"].as_u64()), (Some(14), Some(0)));
    assert!(first["time_ns"].as_u64().unwrap() >= before, "{first}");
    assert_eq!((second["tag"].as_u64(), second["payload"].as_str()), (Some(u64::MAX), Some("")));
    assert_eq!((third["seq"].as_u64(), third["lost"].as_u64()), (Some(8), Some(5)));
    assert_eq!((third["encoding"].as_str(), third["payload"].as_str()), (Some("base64"), Some("/wAK")));
    // Quiet is quiet; and who does not stamp has no time.
    let quiet = place.run(&["sub", "news", "--from-oldest", "--count", "3", "--quiet"]);
    assert_done(&quiet);
    drop(publisher);
    let _publisher = numbers(&place, "plain", 1);
    assert!(
        json_lines(&place.run(&["sub", "plain", "--history", "1", "--count", "1", "--format", "json"]))[0]["time_ns"]
            .is_null()
    );
}

#[test]
fn a_subscriber_begins_where_it_is_told() {
    let place = Place::new();
    let mut publisher = numbers(&place, "news", 9);
    let shown = |args: &[&str], count: &str| {
        let output = place.run(&[&["sub", "news", "--format", "lines", "--count", count], args].concat());
        assert_done(&output);
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&["--from-oldest"], "9"), "1 2 3 4 5 6 7 8 9");
    assert_eq!(shown(&["--reliable"], "2"), "1 2");
    assert_eq!(shown(&["--history", "3"], "3"), "7 8 9");
    assert_eq!(shown(&["--reliable", "--history", "100"], "9"), "1 2 3 4 5 6 7 8 9");
    assert_eq!(shown(&["--after-seq", "4"], "5"), "5 6 7 8 9");
    assert_eq!(shown(&["--latest"], "1"), "9");
    for args in [&[][..], &["--lossy"], &["--from-now"], &["--reliable", "--from-now"], &["--history", "0"]] {
        assert_failed(
            &place.run(&[&["sub", "news", "--timeout", "200ms"], args].concat()),
            3,
            "no publisher sent anything",
        );
        let waits = subscriber(&place, &[args, &["--count", "1"]].concat());
        let policy = if args.contains(&"--reliable") { "reliable" } else { "lossy" };
        await_subscribers(&place, "news", policy, 1);
        publisher.send(0, b"next").unwrap();
        let output = finish(waits);
        assert_done(&output);
        assert_eq!(output.stdout, b"next", "{args:?}");
    }
}

#[test]
fn the_newest_value_and_then_each_newer_one() {
    let place = Place::new();
    let mut publisher = numbers(&place, "news", 3);
    let mut display = place.ramway(["sub", "news", "--latest", "--format", "lines"]).spawn().unwrap();
    let mut out = display.stdout.take().unwrap();
    let mut expect = |expected: &[u8]| {
        let mut got = vec![0; expected.len()];
        out.read_exact(&mut got).unwrap();
        assert_eq!(got, expected);
    };
    expect(b"3\n");
    publisher.send(0, b"four").unwrap();
    expect(b"four\n");
    // Stopped, it reads none of these but the last.
    signal(&display, Signal::STOP);
    for number in 0..1000 {
        publisher.send(0, format!("skipped {number}").as_bytes()).unwrap();
    }
    publisher.send(0, b"last").unwrap();
    signal(&display, Signal::CONT);
    publisher.close().unwrap();
    expect(b"last\n");
    assert_done(&finish(display));
}

#[test]
fn a_lossy_subscriber_that_was_stopped_says_exactly_what_it_lost() {
    let place = Place::new();
    for (format, in_lines) in [("json", true), ("lines", false)] {
        let mut publisher = Topic::create(place.dir.join("news")).capacity(64 << 10).publisher().unwrap();
        let viewer = subscriber(&place, &["--format", format]);
        await_subscribers(&place, "news", "lossy", 1);
        signal(&viewer, Signal::STOP);
        const SENT: u64 = 20_000;
        for number in 1..=SENT {
            publisher.send(0, number.to_string().as_bytes()).unwrap();
        }
        publisher.close().unwrap();
        signal(&viewer, Signal::CONT);
        let output = finish(viewer);
        let (code, said) = common::told(&output);
        assert_eq!(code, Some(0), "{said}");
        if in_lines {
            let lines = json_lines(&output);
            let lost: u64 = lines.iter().map(|line| line["lost"].as_u64().unwrap()).sum();
            assert_eq!(lines.len() as u64 + lost, SENT);
            assert!(lost > 0 && said.is_empty(), "{said}");
            assert_eq!(lines.last().unwrap()["payload"], SENT.to_string());
        } else {
            let received = output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert!(said.contains(&format!("{} in all", SENT - received)), "{received} received, but {said}");
        }
    }
}

#[test]
fn a_full_pipe_holds_up_the_publisher_of_a_reliable_subscriber_only() {
    let place = Place::new();
    let bytes = noise(3_000_000, 5);
    let input = place.file("in", &bytes);
    // Nobody reads its output: it is full long before the end of the stream.
    let lossy = subscriber(&place, &["--capacity", "64K", "--format", "json"]);
    await_subscribers(&place, "news", "lossy", 1);
    assert_done(&place.run(&["pub", "news", "--frame", "4000", &input]));
    let output = finish(lossy);
    assert_done(&output);
    let lines = json_lines(&output);
    let lost: u64 = lines.iter().map(|line| line["lost"].as_u64().unwrap()).sum();
    assert_eq!(lines.len() as u64 + lost, 750);

    let mut reliable = subscriber(&place, &["--capacity", "64K", "--reliable"]);
    await_subscribers(&place, "news", "reliable", 1);
    let sent = place.run(&["pub", "news", "--timeout", "300ms", &input]);
    assert_failed(&sent, 3, "no reliable subscriber made room in `news`");
    let mut got = Vec::new();
    reliable.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    assert_failed(&finish(reliable), 4, "the publisher of `news` died (or gave up)");
    assert!(!got.is_empty() && bytes.starts_with(&got));
}

#[test]
fn a_subscriber_that_blocks_for_too_long_is_ejected_and_told() {
    let place = Place::new();
    let bytes = noise(2_000_000, 6);
    let input = place.file("in", &bytes);
    let stuck = subscriber(&place, &["--reliable", "--capacity", "64K", "--may-eject", "--format", "json"]);
    await_subscribers(&place, "news", "reliable", 1);
    signal(&stuck, Signal::STOP);
    assert_done(&place.run(&["pub", "news", "--eject-after", "50ms", "--frame", "1000", &input]));
    let shown = json(&place, &["inspect", "--json", "news"]);
    assert_eq!(shown["segment"]["topic"]["subscribers"][0]["ejected"], true, "{shown}");
    assert!(text(&place, &["ls"]).contains("was ejected"));
    signal(&stuck, Signal::CONT);
    let output = finish(stuck);
    assert_failed(&output, 0, "ejected, because this command blocked the publisher for too long");
    let lines = json_lines(&output);
    let lost: u64 = lines.iter().map(|line| line["lost"].as_u64().unwrap()).sum();
    assert_eq!((lines.len() as u64 + lost, lines.last().unwrap()["seq"].as_u64()), (2000, Some(2000)));
}

#[test]
fn a_durable_subscriber_goes_on_where_the_last_one_ended() {
    let place = Place::new();
    let mut publisher = numbers(&place, "news", 3);
    let durable = ["--reliable", "--durable", "--label", "audit", "--format", "lines"];
    let take = |count: &str| {
        let output = place.run(&[&["sub", "news", "--count", count], &durable[..]].concat());
        assert_done(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(take("2"), "1\n2\n");
    publisher.send(0, b"4").unwrap();
    assert_eq!(take("1"), "3\n");
    publisher.close().unwrap();
    // Nobody uses it any more, and it stays for the rest.
    assert_eq!(place.names(), ["news"]);
    let kept = text(&place, &["clean"]);
    assert!(kept.starts_with("kept news: the durable subscriber 'audit' has 1 undelivered messages"), "{kept}");
    let rest = place.run(&[&["sub", "news"], &durable[..]].concat());
    assert_done(&rest);
    assert_eq!(rest.stdout, b"4\n", "and then the end");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_durable_subscriber_that_is_killed_with_a_full_output_loses_nothing() {
    let place = Place::new();
    let bytes = noise(1_000_000, 3);
    let input = place.file("in", &bytes);
    let args = ["--reliable", "--durable", "--label", "audit", "--capacity", "4M"];
    let mut first = subscriber(&place, &args);
    await_subscribers(&place, "news", "reliable", 1);
    assert_done(&place.run(&["pub", "news", "--frame", "1000", &input]));
    let mut got = vec![0; 5000];
    first.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
    first.kill().unwrap();
    first.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    first.wait().unwrap();
    assert!(bytes.starts_with(&got));
    let second = finish(subscriber(&place, &args));
    assert_done(&second);
    assert!(bytes.ends_with(&second.stdout), "what it had not written comes again");
    assert!(got.len() + second.stdout.len() >= bytes.len());
}

#[test]
fn a_durable_subscriber_is_forgotten_when_asked() {
    let place = Place::new();
    let mut publisher = numbers(&place, "news", 1);
    let durable = ["sub", "news", "--reliable", "--durable", "--label", "audit"];
    assert_done(&place.run(&[&durable[..], &["--count", "1"]].concat()));
    let forget = |label: &str| place.run(&["sub", "news", "--unsubscribe", "--label", label]);
    assert_failed(&forget("audits"), 6, "it has audit");
    assert_failed(&place.run(&["sub", "absent", "--unsubscribe", "--label", "audit"]), 6, "absent");
    assert_eq!(place.names(), ["news"], "nothing was made to be forgotten");
    // Attached, it is left alone.
    let attached = place.ramway(durable).spawn().unwrap();
    await_subscribers(&place, "news", "reliable", 1);
    assert_failed(&forget("audit"), 7, "is attached");
    signal(&attached, Signal::INT);
    assert_eq!(finish(attached).status.code(), Some(130));
    assert_failed(&forget("audit"), 0, "no longer keeps messages");
    assert_failed(&forget("audit"), 6, "it has none");
    publisher.send(0, b"for nobody").unwrap();
    publisher.close().unwrap();
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_persistent_topic_gives_its_history_to_who_comes_later() {
    let place = Place::new();
    let settings = place.file("settings", b"volume 7");
    let args = ["pub", "--whole", "--persistent", "--mode", "640", "set", &settings];
    assert_done(&place.run(&args));
    assert_eq!(json(&place, &["inspect", "--json", "set"])["segment"]["mode"], "0640");
    std::fs::write(&settings, b"volume 11").unwrap();
    assert_done(&place.run(&args));
    let latest = place.run(&["sub", "set", "--latest", "--count", "1"]);
    assert_done(&latest);
    assert_eq!(latest.stdout, b"volume 11");
    // Both publishers have closed: the history is given, then the end of the last one.
    let all = place.run(&["sub", "set", "--from-oldest", "--format", "lines"]);
    assert_done(&all);
    assert_eq!(all.stdout, b"volume 7\nvolume 11\n");
    let later = place.run(&["sub", "set", "--read-only", "--history", "1"]);
    assert_done(&later);
    assert_eq!(later.stdout, b"volume 11");
    // Who begins now waits for the next publisher: the end of the last one is not its.
    let waits = place.ramway(["sub", "set"]).spawn().unwrap();
    await_subscribers(&place, "set", "lossy", 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_done(&place.run(&args));
    let output = finish(waits);
    assert_done(&output);
    assert_eq!(output.stdout, b"volume 11");
    assert!(text(&place, &["clean"]).contains("kept set: it is persistent"));
    assert_eq!(text(&place, &["unlink", "set"]), "removed set\n");
}

#[test]
fn files_are_published_one_after_another_or_not_at_all() {
    let place = Place::new();
    let files = [place.file("a", b"first"), place.file("b", b""), place.file("c", b"third\n")];
    let mut args = vec!["pub", "--persistent", "news", "--whole"];
    args.extend(files.iter().map(String::as_str));
    assert_done(&place.run(&args));
    let history = || json_lines(&place.run(&["sub", "news", "--from-oldest", "--format", "json"]));
    let lens: Vec<_> = history().iter().map(|line| line["len"].as_u64().unwrap()).collect();
    assert_eq!(lens, [5, 0, 6], "an empty file is an empty message");
    args[3] = "--lines";
    assert_done(&place.run(&args));
    assert_eq!(history().len(), 5, "a line does not go on in the next file");
    args.push("/no/such/file");
    assert_failed(&place.run(&args), 6, "/no/such/file");
    assert_eq!(history().len(), 5, "nothing of it was published");
    assert_failed(&place.run(&["pub", "other", "/no/such/file"]), 6, "/no/such/file");
    assert_eq!(place.names(), ["news"], "nothing of it made a topic");
}

#[test]
fn what_can_never_fit_is_said() {
    let place = Place::new();
    // Without a line's end.
    let big: Vec<u8> = noise(40_000, 1).iter().map(|byte| byte | 128).collect();
    for mode in [&["--whole"][..], &["--lines"], &["--frame", "40000"]] {
        let sent = place.run_with(&[&["pub", "news", "--capacity", "64K"], mode].concat(), &big);
        assert_failed(&sent, 1, "can never fit");
        let said = String::from_utf8_lossy(&sent.stderr);
        assert!(said.contains("make the topic with a larger --capacity"), "{said}");
    }
    // The longest message does.
    let longest = &big[..32 * 1024 - 32];
    for mode in ["--whole", "--lines"] {
        let receiver = subscriber(&place, &["--reliable", "--capacity", "64K"]);
        assert_done(
            &place.run_with(&["pub", "news", mode, "--wait-for-subscribers", "1", "--capacity", "64K"], longest),
        );
        assert_eq!(&finish(receiver).stdout, longest);
    }
}

#[test]
fn subscribers_are_waited_for() {
    let place = Place::new();
    let publish = ["pub", "news", "--wait-for-subscribers", "1"];
    let none = place.run_with(&[&publish[..], &["--timeout", "100ms"]].concat(), b"x");
    assert_failed(&none, 3, "0 of 1 reliable subscribers of `news` were there");
    assert_failed(&place.run_with(&["pub", "news", "--wait-for-subscribers", "33"], b"x"), 2, "the topic has 32 slots");
    // A lossy one does not count, which is said.
    let lossy = subscriber(&place, &["--count", "1"]);
    await_subscribers(&place, "news", "lossy", 1);
    let mut waits = place.ramway(publish).stdin(Stdio::piped()).spawn().unwrap();
    waits.stdin.take().unwrap().write_all(b"now").unwrap();
    let mut note = [0; 60];
    waits.stderr.as_mut().unwrap().read_exact(&mut note).unwrap();
    assert!(String::from_utf8_lossy(&note).contains("waiting for 1 reliable subscribers"), "{note:?}");
    let reliable = subscriber(&place, &["--reliable"]);
    for receiver in [lossy, reliable] {
        assert_eq!(finish(receiver).stdout, b"now");
    }
    assert_eq!(finish(waits).status.code(), Some(0));
    // Of a topic that takes none, none is waited for.
    let _publisher = Topic::create(place.dir.join("feed")).lossy_only(true).persistent(true).publisher().unwrap();
    drop(_publisher);
    assert_failed(&place.run(&["pub", "feed", "--wait-for-subscribers", "1"]), 2, "takes no reliable subscribers");
}

#[test]
fn wait_ends_when_reliable_subscribers_have_taken_everything() {
    let place = Place::new();
    // Nobody there is nobody to wait for.
    assert_done(&place.run_with(&["pub", "news", "--wait"], b"x"));
    let mut stuck = subscriber(&place, &["--reliable", "--capacity", "1M"]);
    await_subscribers(&place, "news", "reliable", 1);
    let bytes = noise(600_000, 4);
    let waited = place.run_with(&["pub", "news", "--wait", "--timeout", "300ms"], &bytes);
    assert_failed(&waited, 3, "no reliable subscriber took the last");
    let mut got = Vec::new();
    stuck.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    assert!(got == bytes, "it was all published all the same");
    assert_done(&finish(stuck));
    // One that reads ends the wait, and one that is killed too.
    for kill in [false, true] {
        let mut receiver = subscriber(&place, &["--reliable", "--capacity", "1M"]);
        await_subscribers(&place, "news", "reliable", 1);
        let mut sender = place.ramway(["pub", "news", "--wait"]).stdin(Stdio::piped()).spawn().unwrap();
        sender.stdin.take().unwrap().write_all(&bytes).unwrap();
        if kill {
            receiver.kill().unwrap();
        }
        receiver.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        receiver.wait().unwrap();
        assert_done(&finish(sender));
    }
}

#[test]
fn roles_slots_and_labels_that_are_taken_are_said() {
    let place = Place::new();
    let _publisher = Topic::create(place.dir.join("news")).slots(1).publisher().unwrap();
    assert_failed(&place.run_with(&["pub", "news"], b"x"), 7, "news");
    let first = subscriber(&place, &["--reliable", "--label", "only"]);
    await_subscribers(&place, "news", "reliable", 1);
    assert_failed(&place.run(&["sub", "news", "--reliable"]), 7, "slot");
    assert_failed(&place.run(&["sub", "news", "--reliable", "--label", "only"]), 7, "only");
    // The others need no slot.
    assert_failed(&place.run(&["sub", "news", "--timeout", "100ms"]), 3, "timed out");
    signal(&first, Signal::INT);
    assert_failed(&finish(first), 130, "interrupted");
    assert_failed(&place.run(&["sub", "news", "--reliable", "--timeout", "100ms"]), 3, "timed out");
}

#[test]
fn wrong_options_are_usage_errors_and_make_nothing() {
    let place = Place::new();
    for (args, said) in [
        (&["sub", "news", "--lossy", "--reliable"][..], "cannot be used with"),
        (&["sub", "news", "--latest", "--lossy"], "cannot be used with"),
        (&["sub", "news", "--latest", "--from-oldest"], "cannot be used with"),
        (&["sub", "news", "--from-now", "--history", "3"], "cannot be used with"),
        (&["sub", "news", "--from-oldest", "--after-seq", "3"], "cannot be used with"),
        (&["sub", "news", "--durable", "--label", "x"], "--reliable"),
        (&["sub", "news", "--durable", "--reliable"], "--label"),
        (&["sub", "news", "--durable", "--label", "x", "--latest"], "cannot be used with"),
        (&["sub", "news", "--read-only", "--reliable"], "cannot be used with"),
        (&["sub", "news", "--read-only", "--label", "x"], "cannot be used with"),
        (&["sub", "news", "--unsubscribe"], "--label"),
        (&["sub", "news", "--unsubscribe", "--label", "x", "--count", "1"], "cannot be used with"),
        (&["sub", "news", "--unsubscribe", "--label", "x", "--latest"], "cannot be used with"),
        (&["sub", "news", "--unsubscribe", "--label", "x", "file"], "cannot be used with"),
        (&["sub", "news", "--count", "0"], "at least 1"),
        (&["sub", "news", "--count", "many"], "not a number of messages"),
        (&["sub", "news", "--format", "xml"], "raw, lines, json, hex"),
        (&["sub", "news", "--history", "all"], "--history"),
        (&["sub", "news", "--label", ""], "1 to 64 bytes"),
        (&["sub", "news", "--label", "x", "--reliable", "--lossy-only"], "--lossy-only"),
        (&["sub", "news", "--timeout", "soon"], "not a duration"),
        (&["sub", ".hidden"], ".hidden"),
        (&["pub", "news", "--lines", "--frame", "1"], "cannot be used with"),
        (&["pub", "news", "--whole", "--frame", "1"], "cannot be used with"),
        (&["pub", "news", "--lossy-only", "--eject-after", "1s"], "cannot be used with"),
        (&["pub", "news", "--lossy-only", "--may-eject"], "cannot be used with"),
        (&["pub", "news", "--lossy-only", "--wait-for-subscribers", "1"], "cannot be used with"),
        (&["pub", "news", "--eject-after", "0"], "--eject-after is 0"),
        (&["pub", "news", "--slots", "0"], "1 to 1024"),
        (&["pub", "news", "--slots", "1025"], "1 to 1024"),
        (&["pub", "news", "--align", "48"], "power of two"),
        (&["pub", "news", "--align", "8K"], "32 to 4096"),
        (&["pub", "news", "--mode", "rw-"], "octal"),
        (&["pub", "news", "--mode", "1777"], "octal"),
        (&["pub", "news", "--type-id", "0xffff0000"], "reserved"),
        (&["pub", "news", "--capacity", "0"], "at least 1"),
        (&["pub", "news.sock"], "news.sock"),
    ] {
        let output = place.run(args);
        let (code, text) = common::told(&output);
        // What is only known once the topic is there is another error than a wrong command line.
        let expected = if args.contains(&"--reliable") && args.contains(&"--lossy-only") { 1 } else { 2 };
        assert_eq!(code, Some(expected), "{args:?}: {text}");
        assert!(text.contains(said) && !text.contains("panicked"), "{args:?}: expected `{said}` in: {text}");
        assert_eq!(place.names(), [""; 0], "{args:?} made a topic");
    }
}

#[test]
fn a_topic_that_is_there_has_to_be_as_asked() {
    let place = Place::new();
    let _publisher = publisher(&place, "news");
    for (args, code, said) in [
        (&["--capacity", "64K"][..], 2, "its capacity is 1048576 bytes, not the 65536"),
        (&["--slots", "5"], 2, "its number of slots is 32, not the 5"),
        (&["--align", "64"], 2, "its alignment is 32 bytes, not the 64"),
        (&["--lossy-only"], 2, "--lossy-only is decided when a topic is made"),
        (&["--may-eject"], 2, "--may-eject is decided when a topic is made"),
        (&["--persistent"], 2, "--persistent is decided when a topic is made"),
    ] {
        assert_failed(&place.run(&[&["sub", "news"], args].concat()), code, said);
    }
    drop(_publisher);
    let _subscriber = Topic::open_or_create(place.dir.join("news")).subscriber().unwrap();
    let refused = place.run_with(&["pub", "news", "--eject-after", "1s"], b"x");
    assert_failed(&refused, 1, "did not allow ejecting subscribers (--may-eject): leave --eject-after out");
    // A ring is no topic, and the other way round.
    for (command, kind) in [("send", "this is a topic, expected a ring"), ("recv", "this is a topic, expected a ring")]
    {
        assert_failed(&place.run(&[command, "news"]), 2, kind);
    }
    let _ring = ramway::Ring::create(place.dir.join("ring")).sender().unwrap();
    for command in ["pub", "sub"] {
        assert_failed(&place.run(&[command, "ring"]), 2, "this is a ring, expected a topic");
    }
    assert_failed(&place.run(&["sub", "absent", "--read-only"]), 6, "absent");
}

#[test]
fn a_topic_that_takes_only_lossy_subscribers_never_waits() {
    let place = Place::new();
    let input = place.file("in", &noise(3_000_000, 9));
    let viewer = subscriber(&place, &["--lossy-only", "--capacity", "64K", "--format", "json"]);
    await_subscribers(&place, "news", "lossy", 1);
    assert_failed(&place.run(&["sub", "news", "--reliable"]), 1, "takes no reliable subscribers");
    signal(&viewer, Signal::STOP);
    assert_done(&place.run(&["pub", "news", "--lossy-only", "--frame", "3000", "--timeout", "10ms", &input]));
    signal(&viewer, Signal::CONT);
    let lines = json_lines(&finish(viewer));
    let lost: u64 = lines.iter().map(|line| line["lost"].as_u64().unwrap()).sum();
    assert_eq!(lines.len() as u64 + lost, 1000);
}

/// Of a user who may only read the file, as another user may with mode 644. Root may write to everything, so it becomes
/// another user here.
#[test]
fn who_may_only_read_a_topic_subscribes_to_it() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let place = Place::new();
    for dir in [&place.dir, &place.files] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let _publisher = numbers(&place, "news", 3);
    let is_root = rustix::process::geteuid().is_root();
    let topic = place.dir.join("news");
    std::fs::set_permissions(&topic, std::fs::Permissions::from_mode(if is_root { 0o644 } else { 0o444 })).unwrap();
    // Where the program was built nobody else may come to.
    let program = place.files.join("ramway");
    std::fs::copy(common::PROGRAM, &program).unwrap();
    let run = |args: &[&str]| {
        let mut command = common::runner::program(&program);
        command.arg("sub").arg(&topic).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        finish(command.spawn().unwrap())
    };
    let read = run(&["--read-only", "--from-oldest", "--count", "3"]);
    assert_done(&read);
    assert_eq!(read.stdout, b"123");
    let read = run(&["--read-only", "--latest", "--count", "1"]);
    assert_eq!(read.stdout, b"3");
    for args in [&[][..], &["--latest"]] {
        assert_failed(&run(args), 1, "try --read-only");
    }
    let refused = run(&["--reliable"]);
    assert_failed(&refused, 1, "Permission denied");
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("--read-only"));
}

/// What a lossy subscriber takes is copied: no batch takes a whole log.
#[test]
fn a_lossy_subscriber_does_not_copy_the_log_at_once() {
    let place = Place::new();
    let mut publisher = Topic::create(place.dir.join("news")).capacity(32 << 20).publisher().unwrap();
    let message = noise(1 << 20, 1);
    for _ in 0..30 {
        publisher.send(0, &message).unwrap();
    }
    for format in ["raw", "lines"] {
        // The limit, in KiB, is that of private memory: the log does not count.
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", r#"ulimit -d 20480 && exec "$@""#, "sh"]);
        let command = place.ramway(["sub", "news", "--from-oldest", "--count", "30", "--quiet", "--format", format]);
        limited.arg(command.get_program()).args(command.get_args()).env("RAMWAY_DIR", &place.dir);
        let output = limited.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert_done(&finish(output));
    }
}

#[test]
fn a_topic_that_is_removed_under_its_users_ends_them() {
    let place = Place::new();
    let publisher = place.ramway(["pub", "news"]).stdin(Stdio::piped()).spawn().unwrap();
    place.await_name("news");
    let subscribers = [subscriber(&place, &[]), subscriber(&place, &["--reliable"])];
    await_subscribers(&place, "news", "reliable", 1);
    await_subscribers(&place, "news", "lossy", 1);
    std::fs::remove_file(place.dir.join("news")).unwrap();
    let mut publisher = publisher;
    let stdin = publisher.stdin.take();
    assert_failed(&finish(publisher), 5, "the topic `news` was removed");
    drop(stdin);
    for one in subscribers {
        let (code, said) = common::told(&finish(one));
        assert!(matches!(code, Some(4 | 5)), "{code:?} {said}");
    }
    until("nothing is left", || place.names().is_empty());
}
