//! `ramway call` and `ramway serve`: calls of a command, and what either side says when something is wrong.

mod common;

use std::process::Child;
use std::time::Duration;

use common::{Place, assert_done, assert_failed, catches_ctrl_c, ended, finish, signal, until};
use ramway::rpc::{Client, Server};
use rustix::process::Signal;

/// A `ramway serve` with these arguments, which listens.
fn serving(place: &Place, name: &str, args: &[&str]) -> Child {
    let child = place.ramway(["serve", name]).args(args).spawn().unwrap();
    place.await_name(&format!("{name}.sock"));
    child
}

/// Ends it by Ctrl-C.
fn stop(child: Child) -> std::process::Output {
    catches_ctrl_c(&child);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130));
    output
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A server of this process, whose name is `store`.
fn server(place: &Place, add: impl FnOnce(&mut Server)) -> (ramway::rpc::Stopper, std::thread::JoinHandle<()>) {
    let mut server = Server::bind(place.dir.join("store.sock")).unwrap();
    add(&mut server);
    let stopper = server.stopper();
    (stopper, std::thread::spawn(move || server.run().unwrap()))
}

#[test]
fn a_reply_is_what_the_command_writes() {
    let place = Place::new();
    let server = serving(&place, "upper", &["--exec", "tr a-z A-Z"]);
    let reply = place.run(&["call", "upper", "7", "--data", "some words"]);
    assert_done(&reply);
    assert_eq!(reply.stdout, b"SOME WORDS");
    // Longer than a pipe holds, both ways, and from standard input.
    let lines = "abc\n".repeat(100_000);
    let file = place.file("request", lines.as_bytes());
    for reply in [
        place.run(&["call", "upper", "Text.Upper", "--data", &format!("@{file}")]),
        place.run_with(&["call", "upper", "0x7", "--data", "@-"], lines.as_bytes()),
    ] {
        assert_done(&reply);
        assert_eq!(said(&reply), lines.to_uppercase());
    }
    let stopped = stop(server);
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("serving at"));
    assert_eq!(place.names(), [""; 0], "the socket is removed");
}

#[test]
fn the_command_knows_the_call_and_its_failure_is_the_callers() {
    let place = Place::new();
    let shows = r#"echo "$RAMWAY_METHOD $RAMWAY_PEER_UID $RAMWAY_META_HEX ${RAMWAY_TIMEOUT_MS:+limited}""#;
    let server = serving(&place, "env", &["--exec", shows]);
    let reply = place.run(&["call", "env", "9", "--meta", "AZ", "--deadline", "1m"]);
    assert_done(&reply);
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(said(&reply), format!("9 {uid} 415a limited\n"));
    assert_eq!(said(&place.run(&["call", "env", "9"])), format!("9 {uid}  \n"));
    stop(server);

    let server =
        serving(&place, "fails", &["--exec", "echo no such key >&2; exit 3", "--method", "Get", "--method", "7"]);
    let reply = place.run(&["call", "fails", "Get"]);
    assert_failed(&reply, 10, "error 3: no such key");
    assert_failed(&place.run(&["call", "fails", "8"]), 10, "no such method; the call was not run");
    let methods = place.run(&["call", "fails", "--describe"]);
    assert_eq!(said(&methods), format!("7\n{} Get\n", ramway::rpc::method_id("Get")));
    let answered = place.run(&["call", "fails", "--ping"]);
    assert!(said(&answered).contains(&format!("process {}", server.id())), "{}", said(&answered));
    stop(server);
}

#[test]
fn lines_are_elements_of_a_stream() {
    let place = Place::new();
    let server = serving(&place, "count", &["--stream", "--exec", "seq 1 1000; exit 4"]);
    let elements = place.run(&["call", "count", "1", "--stream", "--window", "2", "--lines"]);
    assert_failed(&elements, 10, "error 4");
    let expected: String = (1..=1000).map(|n| format!("{n}\n")).collect();
    assert_eq!(said(&elements), expected, "what came before the end is written");
    assert_failed(&place.run(&["call", "count", "1"]), 10, "call it as one");
    stop(server);
}

#[test]
fn a_call_that_nobody_waits_for_kills_its_command() {
    let place = Place::new();
    let began = place.files.join("began");
    let command = format!("echo $$ >> {}; sleep 1000; echo late", began.display());
    let server = serving(&place, "slow", &["--exec", &command, "--jobs", "2"]);
    let shells = || -> Vec<i32> {
        let text = std::fs::read_to_string(&began).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    let is_gone = |pid: i32| rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_err();

    // Long enough for the command to begin, on a machine that does something else too; and again, should it not have been.
    let late = loop {
        let late = place.run(&["call", "slow", "1", "--deadline", "3s"]);
        if began.exists() {
            break late;
        }
        assert_failed(&late, 3, "the call");
    };
    assert_failed(&late, 3, "may have been run");
    until("the command of a call that timed out is gone", || shells().iter().all(|&pid| is_gone(pid)));

    let begun = shells().len();
    let call = place.ramway(["call", "slow", "1"]).spawn().unwrap();
    until("it runs", || shells().len() > begun);
    signal(&call, Signal::INT);
    assert_eq!(finish(call).status.code(), Some(130));
    until("the command of a cancelled call is gone", || shells().iter().all(|&pid| is_gone(pid)));

    let begun = shells().len();
    let mut call = place.ramway(["call", "slow", "1"]).spawn().unwrap();
    until("it runs", || shells().len() > begun);
    signal(&call, Signal::KILL);
    ended(&mut call);
    until("the command of a caller that died is gone", || shells().iter().all(|&pid| is_gone(pid)));
    stop(server);
}

#[test]
fn a_server_that_ends_lets_calls_end_first() {
    let place = Place::new();
    let began = place.files.join("began");
    let command = format!("echo >> {0}; while test ! -e {0}.go; do sleep 0.01; done; echo done", began.display());
    let server = serving(&place, "drains", &["--exec", &command, "--drain", "60s", "--quiet"]);
    let call = place.ramway(["call", "drains", "1"]).spawn().unwrap();
    until("it runs", || began.exists());
    signal(&server, Signal::INT);
    until("no new client is taken", || !place.dir.join("drains.sock").exists());
    std::fs::write(format!("{}.go", began.display()), "").unwrap();
    let reply = finish(call);
    assert_done(&reply);
    assert_eq!(said(&reply), "done\n");
    assert_eq!(finish(server).status.code(), Some(130));
}

#[test]
fn a_call_that_an_ending_server_cancels_says_so() {
    let place = Place::new();
    let began = place.files.join("began");
    let command = format!("echo >> {}; sleep 100", began.display());
    for _ in 0..100 {
        let server = serving(&place, "ends", &["--exec", &command, "--drain", "0s", "--quiet"]);
        let call = place.ramway(["call", "ends", "1"]).spawn().unwrap();
        until("it runs", || began.exists());
        stop(server);
        std::fs::remove_file(&began).unwrap();
        let called = finish(call);
        // A server does not wait long for what it has cancelled: then its client is left as by one that died.
        if called.status.code() == Some(4) {
            continue;
        }
        return assert_failed(&called, 10, "cancelled by the server, which ends; the call may have been run");
    }
    panic!("no cancelled command ended in time");
}

#[test]
fn a_terminal_is_told_nothing_that_it_acts_on() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    let place = Place::new();
    let server = serving(&place, "red", &["--exec", r"printf '\033[31m\377'"]);
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    // Held open until the end, so that what was said stays readable.
    let held = terminal();
    let called = finish(place.ramway(["call", "red", "1"]).stdout(terminal()).spawn().unwrap());
    assert!(String::from_utf8_lossy(&called.stderr).contains("is shown as escapes"));
    let shown = "\\u{1b}[31m\u{fffd}\r\n";
    let mut said = vec![0; shown.len()];
    std::fs::File::from(master).read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), shown);
    drop(held);
    // Elsewhere the bytes are what they are.
    assert_eq!(place.run(&["call", "red", "1"]).stdout, b"\x1b[31m\xff");
    stop(server);
}

#[test]
fn the_library_and_the_command_call_each_other() {
    let place = Place::new();
    let (stopper, served) = server(&place, |server| {
        server.method("Store.Get", |request| Ok(request.body().repeat(2))).unwrap();
        server.stream(8, |request| Ok(vec![Ok(request.body().to_vec()); 3])).unwrap();
    });
    let reply = place.run(&["call", "store", "Store.Get", "--data", "ab"]);
    assert_done(&reply);
    assert_eq!(reply.stdout, b"abab");
    let stream = place.run(&["call", "store", "8", "--stream", "--data", "-"]);
    assert_done(&stream);
    assert_eq!(stream.stdout, b"---");
    stopper.shutdown(Duration::ZERO);
    served.join().unwrap();

    let server = serving(&place, "echo", &["--exec", "cat"]);
    let mut client = Client::connect(place.dir.join("echo.sock")).unwrap();
    assert_eq!(client.call(1, b"from the library").unwrap().body(), b"from the library");
    signal(&server, Signal::KILL);
    finish(server);
    let error = client.call(1, b"too late").unwrap_err();
    assert_eq!(error.kind(), Some(ramway::ErrorKind::PeerDead));
}

#[test]
fn what_cannot_be_right_is_said() {
    let place = Place::new();
    assert_failed(
        &place.run(&["call", "nobody", "1", "--timeout", "10ms"]),
        6,
        "connecting to the RPC server 'nobody'",
    );
    assert_failed(&place.run(&["call", "nobody", "7x"]), 2, "`7x` is no method");
    assert_failed(&place.run(&["call", "nobody", "4294967296"]), 2, "is no method");
    // 6 would say that there is no server.
    assert_failed(&place.run(&["call", "nobody", "1", "--data", "@/no/such/file"]), 1, "/no/such/file");
    assert_failed(&place.run(&["call", "nobody", "1", "--data", "@"]), 2, "names no file");
    assert_failed(&place.run(&["call", "nobody"]), 2, "which method?");
    let twice = ["call", "nobody", "1", "--data", "@-", "--meta", "@-"];
    assert_failed(&place.run(&twice), 2, "cannot both be standard input");
    assert_eq!(place.run(&["serve", "x", "--exec", ""]).status.code(), Some(2), "no command");
    let plain = ramway::Listener::bind(place.dir.join("plain.sock")).unwrap();
    let accepting = std::thread::spawn(move || plain.accept_timeout(Duration::from_secs(5)).map(drop));
    assert_failed(&place.run(&["call", "plain", "1"]), 9, "a plain bus's");
    drop(accepting);
    assert_failed(&place.run(&["serve", "x", "--exec", "cat", "--method", "0xffff0000"]), 2, "Ramway's own");
    assert_failed(&place.run(&["serve", "x", "--exec", "cat", "--method", "1", "--method", "1"]), 7, "has a method 1");
    assert_eq!(place.run(&["serve", "x"]).status.code(), Some(2));
    assert_eq!(place.run(&["call", "x", "1", "--window", "2"]).status.code(), Some(2), "only of a stream");
    let server = serving(&place, "taken", &["--exec", "cat"]);
    assert_failed(&place.run(&["serve", "taken", "--exec", "cat"]), 7, "taken");
    let reserved = place.run(&["call", "taken", "0xffff0009"]);
    assert!(!reserved.status.success());
    stop(server);
}
