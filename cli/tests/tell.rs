//! `ramway doctor`, `completions`, `demo`, help, and what happens where nobody listens.

mod common;

use std::process::{Command, Stdio};

use common::{Place, assert_done, assert_failed, finish, heard, noise, told};
use serde_json::Value;

#[test]
fn the_doctor_examines_everything() {
    let place = Place::new();
    let output = place.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let items = report["items"].as_array().unwrap();
    for name in [
        "kernel",
        "futex",
        "membarrier",
        "io_uring futex",
        "memfd sealing",
        "directory",
        "OFD locks",
        "topics",
        "shared memory",
        "memlock limit",
        "huge pages",
        "RemoveIPC",
        "process table",
        "CPU governor",
        "CPU topology",
    ] {
        let item = items.iter().find(|item| item["item"] == name).unwrap_or_else(|| panic!("{name} is missing"));
        let status = item["status"].as_str().unwrap();
        assert!(["ok", "worse", "broken"].contains(&status));
        assert!(!item["found"].as_str().unwrap().is_empty());
        // What is not ok says what it means and how to mend it.
        for why in ["because", "fix"] {
            assert_eq!(item[why].is_null(), status == "ok", "{item}");
        }
    }
    let broken = items.iter().any(|item| item["status"] == "broken");
    assert_eq!(output.status.code(), Some(i32::from(broken)));
    let all_ok = items.iter().all(|item| item["status"] == "ok");
    assert_eq!(place.run(&["doctor", "--strict"]).status.code(), Some(i32::from(!all_ok)));
}

#[test]
fn the_doctor_notices_what_is_switched_off_and_what_is_in_the_way() {
    let place = Place::new();
    let output = finish(place.ramway(["doctor", "--json"]).env("RAMWAY_MEMBARRIER", "0").spawn().unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("switched off by RAMWAY_MEMBARRIER=0"));

    let file = place.file("file", b"");
    let output = finish(place.ramway(["doctor"]).env("RAMWAY_DIR", &file).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("is not a directory") && text.contains("fix: "), "{text}");
    assert_eq!(place.names(), [""; 0], "it leaves nothing behind");
}

#[test]
fn completions_are_made_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = place.run(&["completions", shell]);
        assert_done(&output);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            ["doctor", "type-id", "from-oldest", "eject-after"].iter().all(|word| script.contains(word)),
            "{shell}: {script}"
        );
    }
    assert_failed(&place.run(&["completions", "command.com"]), 2, "command.com");
}

#[test]
fn bash_accepts_its_completions() {
    let place = Place::new();
    let script = place.file("script", &place.run(&["completions", "bash"]).stdout);
    let Ok(checked) = Command::new("bash").arg("-n").arg(script).output() else { return };
    assert_eq!(told(&checked), (Some(0), String::new()));
}

#[test]
fn manual_pages_are_made_for_every_subcommand() {
    let place = Place::new();
    let folder = place.files.join("man1");
    let args = ["man", folder.to_str().unwrap()];
    assert_failed(&place.run(&args), 6, "man1");
    std::fs::create_dir(&folder).unwrap();
    assert_done(&place.run(&args));
    let whole = std::fs::read_to_string(folder.join("ramway.1")).unwrap();
    assert!(whole.starts_with(".") && whole.contains(".TH ramway 1") && whole.contains("ramway\\-send(1)"), "{whole}");
    for command in ["send", "recv", "pub", "sub", "call", "serve", "ls", "inspect", "clean", "unlink", "doctor", "man"]
    {
        let page = std::fs::read_to_string(folder.join(format!("ramway-{command}.1"))).unwrap();
        assert!(page.contains(&format!("ramway {command}")) && page.contains(".SH OPTIONS"), "{page}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = Place::new();
    let help = String::from_utf8(place.run(&["--help"]).stdout).unwrap();
    assert!(help.contains("Exit codes:") && help.contains("RAMWAY_DIR"));
    for command in ["send", "recv", "pub", "sub", "ls", "inspect", "clean", "unlink", "doctor", "demo", "bench"] {
        assert!(help.contains(command), "{command}");
        if command == "bench" {
            continue; // another program's: `bench/tests/command.rs` has the rest
        }
        let own = String::from_utf8(place.run(&[command, "--help"]).stdout).unwrap();
        assert!(own.contains("Examples:") && own.contains(&format!("ramway {command}")), "{own}");
    }
    assert_failed(&place.run(&["no-such-command"]), 2, "no-such-command");
    assert_eq!(place.run(&[]).status.code(), Some(2));
}

#[test]
fn a_closed_output_is_no_reason_to_panic() {
    let place = Place::new();
    assert_done(&place.run_with(&["send", "box"], b"x"));
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["inspect", "box"],
        &["clean", "-n"],
        &["doctor"],
        &["completions", "bash"],
        &["--help"],
        &["send", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = finish(place.ramway(args).stdout(writer).spawn().unwrap());
        let (code, said) = told(&output);
        assert!(said.is_empty() && code == Some(0), "{args:?}: {code:?} {said}");
    }
    // The same for stderr, with something to say there.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = finish(place.ramway(["inspect", "nothing"]).stderr(writer).spawn().unwrap());
    assert_eq!(output.status.code(), Some(6));
}

#[test]
fn a_full_output_is_an_error() {
    let place = Place::new();
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_failed(&finish(place.ramway(["ls"]).stdout(full()).spawn().unwrap()), 8, "standard output");
}

#[test]
fn the_demo_streams_a_file_between_two_processes() {
    let place = Place::new();
    let bytes = noise(3_000_001, 11);
    let input = place.file("in", &bytes);
    let output = place.files.join("out");
    let args = ["demo", &input, "--no-bench", "--json", "--capacity", "64K", "--output", output.to_str().unwrap()];
    let shown = place.run(&args);
    assert_done(&shown);
    let report: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let stream = &report["stream"];
    assert_eq!((stream["matches"].as_bool(), stream["bytes"].as_u64()), (Some(true), Some(3_000_001)));
    assert_ne!(stream["sender_pid"], stream["receiver_pid"]);
    assert_eq!(stream["sha256_sent"].as_str().unwrap().len(), 64);
    assert!(std::fs::read(&output).unwrap() == bytes);
    assert_eq!(place.names(), [""; 0]);

    let shown = place.run(&["demo", "--no-bench", &place.file("empty", b"")]);
    assert_done(&shown);
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(String::from_utf8(shown.stdout).unwrap().matches(empty).count(), 2);
    assert_failed(&place.run(&["demo", "/no/such/file"]), 6, "/no/such/file");
    assert_failed(&place.run(&["demo", "/"]), 1, "directory");
    assert_failed(&place.run(&["demo", &place.fifo("fifo")]), 1, "no regular file");
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let place = Place::new();
    let input = place.file("in", &noise(100_000, 4));
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    // Held open until the end, so that what was said stays readable.
    let held = terminal();
    let mut command = place.ramway(["send", "box", &input]);
    let sent = finish(command.env("TERM", "xterm").stderr(terminal()).spawn().unwrap());
    assert_eq!(sent.status.code(), Some(0));
    heard(&master, "sent 97.7 KiB in 1 message(s)");
    // `--quiet` says nothing there, and the doctor is coloured.
    assert_done(&place.run(&["recv", "--quiet", "box", "/dev/null"]));
    let mut command = place.ramway(["doctor"]);
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdout(terminal());
    finish(command.spawn().unwrap());
    heard(&master, "\x1b[3");
    drop(held);
}
