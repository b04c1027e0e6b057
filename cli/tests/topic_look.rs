//! What `ramway ls`, `inspect`, `doctor`, `clean` and `unlink` say of topics, beside live ones.

mod common;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Child, Stdio};

use common::{Place, assert_done, assert_failed, await_subscribers, finish, json, signal, text, until};
use ramway::Topic;
use rustix::process::Signal;
use serde_json::Value;

/// A subscriber of `cam`.
fn subscriber(place: &Place, args: &[&str]) -> Child {
    place.ramway(["sub", "cam"]).args(args).stdout(Stdio::null()).spawn().unwrap()
}

fn topic(place: &Place) -> Value {
    json(place, &["inspect", "--json", "cam"])["segment"]["topic"].take()
}

/// The one with this label.
fn labelled(topic: &Value, label: &str) -> Value {
    let all = topic["subscribers"].as_array().unwrap();
    all.iter().find(|one| one["label"] == label).unwrap_or_else(|| panic!("no `{label}` in {topic}")).clone()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_live_topic_is_shown_with_each_of_its_users() {
    let place = Place::new();
    let mut camera = place.ramway(["pub", "cam", "--lines", "--timestamps", "--type-id", "7"]);
    let mut camera = camera.stdin(Stdio::piped()).spawn().unwrap();
    let control = subscriber(&place, &["--reliable", "--label", "control"]);
    let recorder = subscriber(&place, &["--reliable", "--durable", "--label", "recorder"]);
    let viewer = subscriber(&place, &["--lossy", "--label", "viewer"]);
    let display = subscriber(&place, &["--latest", "--label", "display"]);
    for (policy, count) in [("reliable", 2), ("lossy", 1), ("latest", 1)] {
        await_subscribers(&place, "cam", policy, count);
    }
    // Read only, so that nobody sees more of it than that it is there.
    let reader = subscriber(&place, &["--read-only"]);
    camera.stdin.as_mut().unwrap().write_all(b"frame\n").unwrap();
    until("all have it", || {
        let topic = topic(&place);
        let lag = |label| labelled(&topic, label)["lag_bytes"].as_u64();
        topic["newest"]["seq"] == 1 && lag("control") == Some(0) && lag("recorder") == Some(0)
    });

    let shown = topic(&place);
    let newest = &shown["newest"];
    assert_eq!((newest["len"].as_u64(), newest["type_id"].as_u64()), (Some(6), Some(7)));
    assert!(newest["age_s"].as_f64().is_some_and(|age| age < 600.0), "{newest}");
    assert_eq!(shown["publisher"]["pid"], camera.id());
    assert_eq!((shown["slots"].as_u64(), shown["capacity"].as_u64()), (Some(32), Some(1 << 20)));
    for (label, policy, child) in [
        ("control", "reliable", &control),
        ("recorder", "reliable", &recorder),
        ("viewer", "lossy", &viewer),
        ("display", "latest", &display),
    ] {
        let one = labelled(&shown, label);
        assert_eq!((one["policy"].as_str(), one["pid"].as_u64()), (Some(policy), Some(u64::from(child.id()))), "{one}");
        assert_eq!(one["durable"], label == "recorder");
        assert_eq!(
            (&one["alive"], &one["ejected"], &one["blocks"]),
            (&Value::Bool(true), &false.into(), &false.into())
        );
        assert_eq!(one["lag_bytes"].is_null(), policy != "reliable", "the others do not say how far they have read");
    }
    until("the reader is seen", || {
        let listed = text(&place, &["ls"]);
        listed.contains(&format!("publisher {}", camera.id()))
            && listed.contains("2 reliable, 1 lossy, 1 latest, 1 without a slot")
    });
    let listed = json(&place, &["ls", "--json"]);
    let segment = &listed["segments"][0];
    assert_eq!((segment["kind"].as_str(), segment["state"].as_str()), (Some("topic"), Some("live")));
    assert_eq!((segment["capacity"].as_u64(), segment["fill"].as_u64()), (Some(1 << 20), Some(0)));
    assert_eq!(segment["users"].as_array().unwrap().len(), 6);
    assert_eq!(segment["topic"]["subscribers"].as_array().unwrap().len(), 4);
    let inspected = text(&place, &["inspect", "cam"]);
    for said in [
        "in use held, publisher held",
        "number 1, 6 bytes, type id 0x7, tag 0, published ",
        "waits for reliable subscribers",
        "2 reliable, 1 lossy, 1 latest",
        "durable",
    ] {
        assert!(inspected.contains(said), "expected `{said}` in: {inspected}");
    }
    let row = inspected.lines().find(|line| line.contains("recorder")).unwrap();
    // Under an emulator its name is the emulator's.
    let its_name = std::fs::read_to_string(format!("/proc/{}/comm", recorder.id())).unwrap();
    assert!(row.contains(&format!("{} {}", recorder.id(), its_name.trim())), "{row}");

    for args in [&["clean", "--json"][..], &["clean", "--json", "--undelivered"]] {
        assert_eq!(json(&place, args)["files"][0]["outcome"], "kept", "{args:?}");
    }
    assert_failed(&place.run(&["unlink", "cam"]), 7, "in use");
    let doctor = String::from_utf8(place.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("1 in ") && doctor.contains("none of which has to wait"), "{doctor}");
    // They still work after all of that, and end with their publisher.
    drop(camera.stdin.take());
    assert_done(&finish(camera));
    for child in [control, recorder, viewer, display, reader] {
        assert_done(&finish(child));
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn who_lags_and_who_blocks_is_said() {
    let place = Place::new();
    let args = ["pub", "cam", "--capacity", "64K", "--frame", "1000"];
    let stuck = subscriber(&place, &["--reliable", "--label", "stuck", "--capacity", "64K"]);
    // Either would make it, the other one with another capacity.
    await_subscribers(&place, "cam", "reliable", 1);
    let control = subscriber(&place, &["--reliable", "--label", "control"]);
    await_subscribers(&place, "cam", "reliable", 2);
    signal(&stuck, Signal::STOP);
    let mut camera = place.ramway(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = camera.stdin.take().unwrap();
    stdin.write_all(&[b'x'; 10_000]).unwrap();
    until("ten messages are read by one of them", || {
        let topic = topic(&place);
        topic["newest"]["seq"] == 10 && labelled(&topic, "control")["lag_bytes"] == 0
    });
    let shown = topic(&place);
    let slow = labelled(&shown, "stuck");
    // Each is 1,000 bytes and a header of 32, in multiples of 32.
    assert_eq!((slow["lag_messages"].as_u64(), slow["lag_bytes"].as_u64()), (Some(10), Some(10 * 1056)));
    assert_eq!(slow["blocks"], false, "there is room yet");
    let listed = text(&place, &["ls"]);
    assert!(
        listed.contains("17 %, 10 msg") && listed.contains("`stuck` is 10 message(s), 10.3 KiB behind"),
        "{listed}"
    );

    std::thread::scope(|scope| {
        scope.spawn(|| stdin.write_all(&[b'x'; 100_000]));
        until("the publisher is blocked", || labelled(&topic(&place), "stuck")["blocks"] == true);
        assert_eq!(labelled(&topic(&place), "control")["blocks"], false);
        until("it is said everywhere", || {
            let inspected = text(&place, &["inspect", "cam"]);
            let row = inspected.lines().find(|line| line.contains("stuck")).unwrap().to_owned();
            let doctor = String::from_utf8(place.run(&["doctor"]).stdout).unwrap();
            text(&place, &["ls"]).contains("blocks the publisher")
                && row.contains("blocks the publisher")
                && doctor.contains("`cam` waits for the subscriber `stuck`, which is ")
        });
        assert_eq!(json(&place, &["ls", "--json"])["segments"][0]["topic"]["publisher"]["alive"], true);
        end(stuck);
    });
    drop(stdin);
    assert_done(&finish(camera));
    assert_done(&finish(control));
}

#[test]
fn a_durable_subscriber_without_a_process_is_shown_and_keeps_the_topic() {
    let place = Place::new();
    let mut camera = Topic::create(place.dir.join("cam")).capacity(64 << 10).publisher().unwrap();
    let recorder = subscriber(&place, &["--reliable", "--durable", "--label", "recorder"]);
    await_subscribers(&place, "cam", "reliable", 1);
    end(recorder);
    let shown = topic(&place);
    let recorder = labelled(&shown, "recorder");
    assert_eq!((recorder["alive"].as_bool(), recorder["durable"].as_bool()), (Some(false), Some(true)));
    assert!(recorder["pid"].is_null() && shown["reliable"] == 0, "{shown}");
    assert!(text(&place, &["ls"]).contains("`recorder` has no process"));
    let doctor = |said: &str| {
        let text = String::from_utf8(place.run(&["doctor"]).stdout).unwrap();
        assert!(text.contains(said), "expected `{said}` in: {text}");
    };
    doctor("none of which has to wait");
    for _ in 0..40 {
        camera.send(0, &[7; 1000]).unwrap();
    }
    doctor(
        "`cam` waits for the durable subscriber `recorder`, which has no process and is 40 message(s), 41.2 KiB behind",
    );
    doctor("`ramway sub cam --unsubscribe --label 'recorder'`");
    camera.close().unwrap();
    let listed = json(&place, &["ls", "--json"]);
    assert_eq!(listed["segments"][0]["state"], "stale");
    assert_eq!(listed["segments"][0]["topic"]["publisher"]["closed"], true);
    for args in [&["clean"][..], &["clean", "--dry-run"], &["clean", "cam"]] {
        let kept = text(&place, args);
        let why = "kept cam: the durable subscriber 'recorder' has 40 undelivered messages (40000 bytes)";
        assert!(kept.starts_with(why), "{kept}");
    }
    assert_eq!(text(&place, &["clean", "--undelivered", "--dry-run"]), "would remove cam\n");
    assert_eq!(text(&place, &["unlink", "cam"]), "removed cam\n");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn what_the_dead_left_is_stale_and_goes() {
    let place = Place::new();
    let camera = place.ramway(["pub", "cam"]).stdin(Stdio::piped()).spawn().unwrap();
    place.await_name("cam");
    let viewers = [subscriber(&place, &["--reliable", "--label", "gone"]), subscriber(&place, &["--lossy"])];
    await_subscribers(&place, "cam", "reliable", 1);
    await_subscribers(&place, "cam", "lossy", 1);
    for child in viewers {
        end(child);
    }
    let shown = topic(&place);
    assert_eq!((shown["reliable"].as_u64(), shown["lossy"].as_u64()), (Some(0), Some(0)));
    let listed = text(&place, &["ls"]);
    assert!(listed.contains("no subscribers; `gone` died"), "{listed}");
    end(camera);
    let listed = json(&place, &["ls", "--json"]);
    assert_eq!(listed["segments"][0]["state"], "stale");
    assert_eq!(listed["segments"][0]["users"].as_array().unwrap().len(), 0);
    assert!(text(&place, &["inspect", "cam"]).contains("in use free, publisher free"));
    assert_eq!(text(&place, &["clean"]), "removed cam\n");
}

#[test]
fn losses_are_shown_while_the_subscriber_lives() {
    let place = Place::new();
    let mut camera = Topic::create(place.dir.join("cam")).capacity(64 << 10).publisher().unwrap();
    let viewer = subscriber(&place, &["--lossy", "--label", "viewer", "--quiet"]);
    await_subscribers(&place, "cam", "lossy", 1);
    signal(&viewer, Signal::STOP);
    for _ in 0..1000 {
        camera.send(0, &[7; 1000]).unwrap();
    }
    signal(&viewer, Signal::CONT);
    until("its loss is seen", || labelled(&topic(&place), "viewer")["lost"].as_u64() > Some(900));
    let lost = labelled(&topic(&place), "viewer")["lost"].as_u64().unwrap();
    let listed = text(&place, &["ls"]);
    assert!(listed.contains(&format!("`viewer` lost {lost}")), "{listed}");
    camera.close().unwrap();
    assert_done(&finish(viewer));
}

#[test]
fn a_label_cannot_write_to_the_terminal() {
    let place = Place::new();
    let mut camera = Topic::create(place.dir.join("cam")).publisher().unwrap();
    let label = "\x1b[2J\nred";
    let hostile = Topic::open(place.dir.join("cam")).label(label).durable(true).subscriber().unwrap();
    camera.send(0, b"not read").unwrap();
    for args in [&["ls"][..], &["inspect", "cam"]] {
        let shown = text(&place, args);
        assert!(shown.contains("\\u{1b}[2J\\nred") && !shown.contains('\x1b'), "{shown}");
    }
    assert_eq!(labelled(&topic(&place), label)["policy"], "reliable", "JSON has it as it is");
    let refused = place.run(&["sub", "cam", "--unsubscribe", "--label", "other"]);
    assert_failed(&refused, 6, "it has \\u{1b}[2J");
    drop((camera, hostile));
    let kept = text(&place, &["clean"]);
    assert!(kept.contains("the durable subscriber '\\u{1b}[2J") && !kept.contains('\x1b'), "{kept}");
}

/// The command that `doctor` gives is copied into a shell.
#[test]
fn a_label_is_one_word_of_the_command_that_mends_it() {
    let place = Place::new();
    let mut camera = Topic::create(place.dir.join("cam")).capacity(64 << 10).publisher().unwrap();
    let label = "it's; touch $HOME `id` \"";
    drop(Topic::open(place.dir.join("cam")).label(label).durable(true).subscriber().unwrap());
    for _ in 0..40 {
        camera.send(0, &[7; 1000]).unwrap();
    }
    let said = String::from_utf8(place.run(&["doctor"]).stdout).unwrap();
    let command =
        said.split("or `ramway ").nth(1).and_then(|rest| rest.split("\"'`").next()).unwrap().to_owned() + "\"'";
    // As a shell takes it apart.
    let words = std::process::Command::new("sh").args(["-c", &format!("printf '%s\\n' {command}")]).output().unwrap();
    let words = String::from_utf8(words.stdout).unwrap();
    assert_eq!(words.lines().collect::<Vec<_>>(), ["sub", "cam", "--unsubscribe", "--label", label], "{said}");
    assert_done(&place.run(&["sub", "cam", "--quiet", "--unsubscribe", "--label", label]));
}

#[test]
fn a_topic_with_other_properties_says_so() {
    let place = Place::new();
    let feed = Topic::create(place.dir.join("cam")).lossy_only(true).align(64).slots(5).persistent(true);
    let mut feed = feed.publisher().unwrap();
    let shown = text(&place, &["inspect", "cam"]);
    assert!(shown.contains("lossy and latest ones only") && shown.contains("nothing was published yet"), "{shown}");
    assert!(shown.contains("aligned to 64") && shown.contains("5 at ") && shown.contains("persistent"), "{shown}");
    feed.send_tagged(0, 99, b"").unwrap();
    let shown = topic(&place);
    assert_eq!((shown["newest"]["tag"].as_u64(), shown["newest"]["time_ns"].is_null()), (Some(99), true));
    drop(feed);
    std::fs::remove_file(place.dir.join("cam")).unwrap();
    let _feed =
        Topic::create(place.dir.join("cam")).eject_after(std::time::Duration::from_millis(250)).publisher().unwrap();
    let shown = text(&place, &["inspect", "cam"]);
    assert!(shown.contains("reliable ones may be ejected") && shown.contains("ejects after 0.25 s"), "{shown}");
}

/// Whoever may read a topic's file can take shared locks on it: they make nobody a publisher or a subscriber.
#[test]
fn a_shared_lock_is_no_role() {
    let place = Place::new();
    let viewer = subscriber(&place, &["--lossy"]);
    await_subscribers(&place, "cam", "lossy", 1);
    let file = std::fs::File::open(place.dir.join("cam")).unwrap();
    for byte in [1, 16 + 1] {
        // SAFETY: an all-zero `flock` is a valid value of that plain struct.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        (range.l_type, range.l_start, range.l_len) = (libc::F_RDLCK as _, byte, 1);
        // SAFETY: the descriptor is open and `range` lives through the call, which reads only it.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &mut range) }, 0);
    }
    let listed = json(&place, &["ls", "--json"]);
    let segment = &listed["segments"][0];
    let roles: Vec<_> = segment["users"].as_array().unwrap().iter().map(|user| (&user["pid"], &user["role"])).collect();
    let (me, other) = (Value::from(std::process::id()), Value::from(viewer.id()));
    assert!(roles.contains(&(&other, &"subscriber".into())) && roles.contains(&(&me, &"user".into())), "{roles:?}");
    assert_eq!(roles.len(), 2);
    assert_eq!(
        (&segment["topic"]["publisher"]["alive"], &segment["topic"]["publisher"]["pid"]),
        (&false.into(), &Value::Null)
    );
    assert!(text(&place, &["ls"]).contains("no publisher; 1 lossy, 1 without a slot"));
    end(viewer);
}
