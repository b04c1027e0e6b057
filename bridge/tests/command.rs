//! The command line: what is refused, what `--check` says, reading the file again, metrics, and the end.

mod common;

use std::process::Command;

use common::bridge::{Bridge, command, free_port, metric};
use common::net::Net;
use common::{Machine, message};
use ramway::{Ring, Topic};

/// What it prints, and its exit code.
fn output(mut command: Command) -> (i32, String) {
    let output = command.output().expect("the bridge starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("it ends by itself"), text)
}

fn said(machine: &Machine, arguments: &[&str]) -> (i32, String) {
    let mut command = command(machine, &Net::here());
    command.args(arguments);
    output(command)
}

fn refused(arguments: &[&str], expected: &str) {
    let (code, text) = said(&Machine::new("refused"), arguments);
    assert_eq!(code, 2, "{arguments:?}: {text}");
    assert!(text.contains(expected), "{arguments:?}: expected '{expected}' in:\n{text}");
}

const CONNECT: &str = "--connect=tcp/127.0.0.1:1";

#[test]
fn no_option_is_ignored() {
    refused(&[], "Usage");
    refused(&["--verbose"], "nothing says what to bridge");
    refused(&["--config", "a.toml", "export", "a", CONNECT], "remove one of the two");
    refused(&["--config", "/nowhere.toml"], "/nowhere.toml: cannot be read");
    refused(&["--config", "a.toml", "--check", "--metrics", "127.0.0.1:1"], "cannot be used with");
    refused(&["export", "a", "--kind", "ring", CONNECT], "--on-disconnect block");
    refused(&["export", "a", "--kind", "ring", "--on-disconnect", "block"], "no other bridge can be reached");
    refused(&["export", "a", "--on-disconnect", "block", CONNECT], "--kind ring");
    refused(
        &["export", "a", "--kind", "ring", "--on-disconnect", "block", CONNECT, "--rate", "5"],
        "--rate is only for lossy",
    );
    refused(
        &["export", "a", "--kind", "ring", "--on-disconnect", "block", "--connect", "tls/a:1"],
        "--ca, --certificate and --key",
    );
    refused(&["import", "a", "--kind", "topic", "--delivery", "lossy", CONNECT, "--label", "x"], "--label is only for");
}

#[test]
fn check_says_what_would_be_bridged_and_why_not() {
    let machine = Machine::new("check");
    let _camera = machine.sender("camera", 1 << 16);
    let _private = machine.sender("private", 1 << 16);
    let _log = Topic::create(machine.at("log")).capacity(1 << 16).publisher().expect("a topic");
    let _other = machine.sender("other", 1 << 16);
    let _store = ramway::Listener::bind(machine.at("store")).expect("a listener");
    let rules = machine.write(
        "bridge.toml",
        "[link]\nlisten = [\"tcp/127.0.0.1:7447\"]\n\n\
         [[rule]]\nnames = [\"*\"]\nexcept = [\"private\", \"other\"]\nkind = \"ring\"\ndirection = \"export\"\non_disconnect = \"block\"\n\n\
         [[rule]]\nnames = [\"pose\"]\nkind = \"newest\"\ndirection = \"export\"\nprefix = \"left\"\n\n\
         [[rule]]\nnames = [\"other\"]\nkind = \"ring\"\ndirection = \"import\"\neject_after = \"5s\"\n\n\
         [[rule]]\nnames = [\"sto*\"]\nkind = \"rpc\"\ndirection = \"export\"\neject_after = \"4s\"\nmax_connections = 3\n",
    );
    let (code, text) = said(&machine, &["--config", rules.to_str().expect("a path"), "--check"]);
    assert_eq!(code, 0, "{text}");
    let line = |beginning: &str| {
        text.lines().find(|line| line.starts_with(beginning)).unwrap_or_else(|| panic!("{beginning}\n{text}"))
    };
    assert!(
        line("camera ").contains("exported") && line("camera ").contains("the rule of line 4, as ramway/ring/camera"),
        "{text}"
    );
    assert!(line("private ").contains("no") && line("private ").contains("denied by `except` (\"private\")"), "{text}");
    assert!(line("log ").contains("it is a topic, and the rule of line 4 is for kind \"ring\""), "{text}");
    assert!(line("other ").contains("denied by `except`") || line("other ").contains("imported"), "{text}");
    assert!(
        text.contains(
            "exports newest pose to ramway/left/newest/NAME; the newest only\n    nothing here falls under it yet"
        ),
        "{text}"
    );
    assert!(text.contains("its receiver is told that the sender died once the link was down for 5.00 s"), "{text}");
    let listener = "exports rpc sto* to ramway/rpc/NAME; at most 3 connections of each name at a time; once the link was down for \
                    4.00 s, each side is told that the other one died";
    assert!(text.contains(listener), "{text}");
    assert!(line("store.lock ").contains("it listens at a path"), "{text}");
    assert!(text.contains("neither encrypted nor authenticated"), "{text}");
    assert!(text.ends_with("What no rule names stays on this machine.\n"), "{text}");
}

/// A pair of bridges, of which the near one is asked to read its file again.
#[test]
fn a_file_that_is_read_again_changes_only_what_changed() {
    let (near, far, port) = (Machine::new("near"), Machine::new("far"), free_port());
    let rule = |name: &str, direction: &str| {
        format!(
            "[[rule]]\nnames = [\"{name}\"]\nkind = \"ring\"\ndirection = \"{direction}\"\non_disconnect = \"block\"\n"
        )
    };
    let link = format!("[link]\nconnect = [\"tcp/127.0.0.1:{port}\"]\n");
    let import =
        far.write("bridge.toml", &format!("[link]\nlisten = [\"tcp/127.0.0.1:{port}\"]\n{}", rule("*", "import")));
    let export = near.write("bridge.toml", &(link.clone() + &rule("first", "export")));
    let mut first = near.sender("first", 1 << 16);
    let mut second = near.sender("second", 1 << 16);
    let _far = Bridge::start(&far, &Net::here(), &import);
    let mut bridge = Bridge::start(&near, &Net::here(), &export);
    let mut at_far = far.receiver("first");
    let mut crosses = |number: u64| {
        first.send(1, &message(number, 100)).expect("room");
        assert_eq!(at_far.recv_timeout(common::LONG).expect("it crosses")[..8], number.to_le_bytes());
    };
    crosses(1);
    second.send(1, &message(2, 100)).expect("room");

    near.write("bridge.toml", "[link]\nnonsense = 1\n");
    bridge.signal(libc::SIGHUP);
    bridge.wait_for("unknown field `nonsense`");
    crosses(3);

    near.write("bridge.toml", &(link.replace(&port.to_string(), "1") + &rule("first", "export")));
    bridge.signal(libc::SIGHUP);
    bridge.wait_for("needs a new start");
    crosses(4);

    near.write("bridge.toml", &(link.clone() + &rule("second", "export") + &rule("first", "export")));
    bridge.signal(libc::SIGHUP);
    bridge.wait_for("the file was read again: 2 rules, 1 of them new; 0 are gone");
    assert_eq!(far.receiver("second").recv_timeout(common::LONG).expect("it crosses now")[..8], 2u64.to_le_bytes());
    // Its receiver was there all the time.
    crosses(5);

    near.write("bridge.toml", &(link + &rule("second", "export")));
    bridge.signal(libc::SIGHUP);
    bridge.wait_for("1 are gone");
    // The first one is nobody's again.
    common::until("the receiver's role is free", || Ring::open(near.at("first")).receiver().is_ok());

    bridge.signal(libc::SIGTERM);
    let (status, text) = bridge.wait();
    assert!(status.success(), "{status}: {text}");
    assert!(text.contains("asked to end"), "{text}");
}

#[test]
fn metrics_are_served() {
    let (near, far, port) = (Machine::new("near"), Machine::new("far"), free_port());
    let flags = ["camera", "--kind", "ring", "--on-disconnect", "block"];
    let start = |machine: &Machine, direction: &str, end: &str| {
        let mut command = command(machine, &Net::here());
        command.arg(direction).args(flags).arg(end).arg(format!("tcp/127.0.0.1:{port}"));
        command.args(["--verbose", "--metrics", "127.0.0.1:0"]);
        let mut bridge = Bridge::of(command);
        bridge.wait_for("/metrics");
        let said = bridge.said();
        let (_, address) = said.split_once("http://").expect("an address");
        let address = address.split_once("/metrics").expect("an address").0.parse().expect("an address");
        (bridge, address)
    };
    let (_near, near_metrics) = start(&near, "export", "--connect");
    let (_far, far_metrics) = start(&far, "import", "--listen");
    let mut sender = near.sender("camera", 1 << 16);
    let mut receiver = far.receiver("camera");
    for number in 0..10 {
        sender.send(1, &message(number, 100)).expect("room");
        receiver.recv_timeout(common::LONG).expect("it crosses");
    }
    let bytes = (0..10).map(|number| message(number, 100).len()).sum::<usize>() as f64;
    for address in [near_metrics, far_metrics] {
        // What has arrived is confirmed a moment later.
        common::until("all are counted", || metric(address, "ramway_bridge_messages_total") == 10.0);
        assert_eq!(metric(address, "ramway_bridge_payload_bytes_total"), bytes);
        assert_eq!(metric(address, "ramway_bridge_lost_messages_total"), 0.0);
    }
}
