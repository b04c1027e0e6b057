//! Buses and RPC through two bridges, with servers and clients as processes.

mod common;

use common::bridge::{Bridge, command, free_port, metric};
use common::net::Net;
use common::proxy::Proxy;
use common::service::{
    self, COUNT, ECHO, HOLD, LEFT, MARK, Part, RUNS, SHUT_DOWN, bus, client, end_of, socket, with_long_limit,
};
use common::{LONG, Machine, Random, checked, message, number, until};
use ramway::rpc::{CallOptions, Client};
use ramway::{Bus, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Plays the part that this process was started for: see [`service::Part`].
#[test]
fn a_part() {
    service::play();
}

/// A far machine that serves, a near one that calls, and a link between them that can be harmed.
struct Pair {
    /// It serves, and its bridge exports.
    there: Machine,
    /// It calls, and its bridge imports.
    here: Machine,
    export: PathBuf,
    import: PathBuf,
    link: Proxy,
}

const RPC: &str = "names = [\"store\"]\nkind = \"rpc\"\n";
const BUS: &str = "names = [\"echo\"]\nkind = \"bus\"\n";
const BLOCK: &str = "on_disconnect = \"block\"\n";

impl Pair {
    fn new(rule: &str) -> Self {
        let (there, here, port) = (Machine::new("there"), Machine::new("here"), free_port());
        let link = Proxy::start(([127, 0, 0, 1], port).into());
        let text =
            |link: String, direction: &str| format!("[link]\n{link}\n[[rule]]\n{rule}direction = \"{direction}\"\n");
        let export = there.write("bridge.toml", &text(format!("listen = [\"tcp/127.0.0.1:{port}\"]"), "export"));
        let import = here.write("bridge.toml", &text(format!("connect = [\"tcp/{}\"]", link.address), "import"));
        Self { there, here, export, import, link }
    }

    fn start_there(&self) -> Bridge {
        Bridge::start(&self.there, &Net::here(), &self.export)
    }

    fn start_here(&self) -> Bridge {
        Bridge::start(&self.here, &Net::here(), &self.import)
    }

    /// And where its metrics are.
    fn start_here_with_metrics(&self) -> (Bridge, SocketAddr) {
        let mut command = command(&self.here, &Net::here());
        command.arg("--config").arg(&self.import).args(["--verbose", "--metrics", "127.0.0.1:0"]);
        let mut bridge = Bridge::of(command);
        bridge.wait_for("/metrics");
        let said = bridge.said();
        let (_, address) = said.split_once("http://").expect("an address");
        let address = address.split_once("/metrics").expect("an address").0.parse().expect("an address");
        (bridge, address)
    }

    fn start(&self) -> (Bridge, Bridge) {
        (self.start_there(), self.start_here())
    }

    fn socket(&self, name: &str) -> PathBuf {
        socket(&self.here, name)
    }
}

#[test]
fn a_bus_crosses_both_ways_with_its_ends() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}"));
    let _server = Part::start(&pair.there, "echo", "echo");
    let _bridges = pair.start();
    let mut bus = bus(&pair.socket("echo"));
    // As the listener there is.
    assert_eq!(bus.sender().expect("both ways").capacity(), 1 << 15);
    assert_eq!(bus.receiver().expect("both ways").capacity(), 1 << 16);
    assert_eq!(bus.sender().expect("both ways").align(), 64);
    for number in 0..2000u64 {
        let bytes = message(number, 9000);
        bus.send_tagged(7, number, &bytes).expect("sent");
        let answer = bus.recv_timeout(LONG).expect("an answer");
        assert_eq!((answer.type_id(), answer.tag()), (7, number));
        assert!(*answer == bytes, "{number}");
    }
    // Half of it is closed: what was sent before is answered, and then the other half closes.
    let (sender, receiver) = bus.split();
    let (mut sender, mut receiver) = (sender.expect("both ways"), receiver.expect("both ways"));
    for number in 0..100u64 {
        sender.send(1, &number.to_le_bytes()).expect("sent");
    }
    sender.close().expect("closed");
    for number in 0..100u64 {
        assert_eq!(*receiver.recv_timeout(LONG).expect("an answer"), number.to_le_bytes());
    }
    assert_eq!(receiver.recv_timeout(LONG).expect_err("over").kind(), ErrorKind::Closed);
}

#[test]
fn calls_streams_time_limits_and_cancelling_cross() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let mut client = client(&pair.socket("store"));
    assert_eq!(client.max_in_flight(), 77, "as the server there says");
    let body = message(1, 5000);
    assert_eq!(client.call(ECHO, &body).expect("a reply").body(), body);
    client.ping().expect("it answers");
    // As many at a time as the server takes, and more.
    let pending: Vec<_> = (0..200u64).map(|n| (n, client.start(ECHO, &n.to_le_bytes()).expect("started"))).collect();
    for (number, pending) in pending {
        assert_eq!(pending.wait(&mut client).expect("a reply").body(), number.to_le_bytes());
    }
    // Without a limit there stays none; with one, less is left there.
    assert_eq!(service::number(&client.call(LEFT, b"").expect("a reply")), u64::MAX);
    let left = service::number(&client.call_with(LEFT, b"", &with_long_limit()).expect("a reply"));
    assert!(left <= LONG.as_micros() as u64, "{left}");
    // More elements than may be under way.
    let mut stream = client.stream_with(COUNT, &1000u64.to_le_bytes(), &with_long_limit().window(4)).expect("started");
    let mut next = 0;
    while let std::task::Poll::Ready(Some(element)) = stream.next_timeout(&mut client, LONG) {
        assert_eq!(service::number(&element.expect("an element")), next);
        next += 1;
    }
    assert_eq!(next, 1000);
    // A call that is cancelled is cancelled there.
    let held = client.start(HOLD, b"").expect("started");
    until("the handler runs", || pair.there.at(".held").exists());
    held.cancel(&mut client);
    until("the handler is told", || {
        client.progress();
        pair.there.at(".cancelled").exists()
    });
    // One whose time is over is too.
    std::fs::remove_file(pair.there.at(".cancelled")).expect("it is there");
    let error = client.call_with(HOLD, b"", &CallOptions::new().timeout(Duration::from_millis(50))).expect_err("late");
    assert!(error.is_timed_out(), "{error}");
    // Or it was not begun in time.
    assert_eq!(client.call(ECHO, b"on").expect("it goes on").body(), b"on");
    client.close().expect("closed");
}

#[test]
fn the_death_of_a_server_and_its_shutting_down_cross_as_what_they_are() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let mut first = client(&pair.socket("store"));
    let held = first.start(HOLD, b"").expect("started");
    until("the handler runs", || pair.there.at(".held").exists());
    server.kill();
    let error = held.wait(&mut first).expect_err("the server died");
    assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::PeerDead), true));
    // The listener goes with it.
    until("nobody listens here any more", || !pair.socket("store").exists());
    let server = Part::start(&pair.there, "serve", "store");
    let mut second = client(&pair.socket("store"));
    assert_eq!(second.call(ECHO, b"again").expect("the next server").body(), b"again");
    let mut third = client(&pair.socket("store"));
    assert!(third.call(SHUT_DOWN, b"").expect("the last reply").body().is_empty());
    // A call that it did not take was not run.
    let error = loop {
        match second.call(ECHO, b"late") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(!error.may_have_run(), "{error}");
    server.wait();
    until("nobody listens here any more", || !pair.socket("store").exists());
}

#[test]
fn a_client_that_is_killed_is_dead_there() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let client = Part::start(&pair.here, "hold", "store");
    until("the handler runs", || pair.there.at(".held").exists());
    client.kill();
    until("its call is cancelled", || pair.there.at(".cancelled").exists());
}

/// The kinds of ends that a bus has, each with all that was sent before.
#[test]
fn a_bus_ends_after_its_last_message() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}"));
    let server = Part::start(&pair.there, "echo", "echo");
    let _bridges = pair.start();
    let mut kept = bus(&pair.socket("echo"));
    kept.send(1, b"hello").expect("sent");
    assert_eq!(*kept.recv_timeout(LONG).expect("an answer"), *b"hello");
    server.kill();
    assert_eq!(end_of(&mut kept), ErrorKind::PeerDead);
}

#[test]
fn a_link_that_breaks_and_comes_back_loses_and_doubles_nothing() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let mut client = client(&pair.socket("store"));
    for round in 1..=6u64 {
        let pending: Vec<_> = (0..50u64).map(|_| client.start(RUNS, b"").expect("started")).collect();
        match round % 3 {
            0 => pair.link.half_close(),
            1 => pair.link.reset(),
            _ => {
                pair.link.refuse(true);
                pair.link.reset();
                std::thread::sleep(Duration::from_millis(300));
                pair.link.refuse(false);
            }
        }
        for (n, pending) in (1..).zip(pending) {
            // Each ran once, in order.
            let runs = service::number(&pending.wait(&mut client).expect("a reply"));
            assert_eq!(runs, (round - 1) * 50 + n);
        }
    }
}

/// Whether it waits at the bridge here, because there is no link, or on the link, which is held up.
#[test]
fn what_a_call_waits_for_the_link_is_taken_off_its_time() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _there = pair.start_there();
    let (_here, metrics) = pair.start_here_with_metrics();
    let mut client = client(&pair.socket("store"));
    for cut in [true, false, true, false] {
        // How fast the link can be, at the least.
        let fastest = (0..5).map(|_| {
            let begun = Instant::now();
            assert_eq!(client.call(ECHO, b"1").expect("a reply").body(), b"1");
            begun.elapsed()
        });
        let fastest = fastest.min().expect("five");
        if cut {
            pair.link.refuse(true);
            pair.link.reset();
        } else {
            pair.link.hold(true);
        }
        let sent = || metric(metrics, "ramway_bridge_sent_bytes_total");
        let before = sent();
        let limit = Duration::from_secs(1000);
        let pending = client.start_with(LEFT, b"", &CallOptions::new().timeout(limit)).expect("started");
        // From here on it has been seen by the bridge.
        until("the call is put on the link", || sent() > before);
        let begun = Instant::now();
        until("it waits for a while", || begun.elapsed() > Duration::from_millis(1500));
        let waited = begun.elapsed();
        pair.link.refuse(false);
        pair.link.hold(false);
        let left = Duration::from_micros(service::number(&pending.wait(&mut client).expect("a reply")));
        // What two clocks may go apart is not taken off, nor what the fastest call has taken.
        let kept = fastest + Duration::from_millis(11);
        assert!(left + waited <= limit + kept, "{left:?} left after {waited:?} of {limit:?}; {cut}");
    }
}

/// Who is not served is told so, and does not wait.
#[test]
fn who_cannot_be_served_is_told() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}max_connections = 4\n"));
    let _server = Part::start(&pair.there, "serve-two", "store");
    let _bridges = pair.start();
    let path = pair.socket("store");
    let mut first = client(&path);
    assert_eq!(first.call(ECHO, b"1").expect("a reply").body(), b"1");
    let mut second = client(&path);
    assert_eq!(second.call(ECHO, b"2").expect("a reply").body(), b"2");
    // The server there takes two.
    let mut third = client(&path);
    let error = third.call(ECHO, b"3").expect_err("one too many there");
    assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Closed), false));
    // A plain bus on an RPC's listener.
    let error = Bus::connector(&path).timeout(LONG).connect().expect_err("another kind");
    assert_eq!(error.kind(), ErrorKind::AbiMismatch);
    // Both who were there are served still.
    assert_eq!(first.call(ECHO, b"4").expect("a reply").body(), b"4");
    assert_eq!(second.call(ECHO, b"5").expect("a reply").body(), b"5");
}

#[test]
fn twenty_clients_at_once() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let threads: Vec<_> = (0..20u64)
        .map(|number| {
            let path = pair.socket("store");
            std::thread::spawn(move || {
                let mut client = client(&path);
                for round in 0..20 {
                    let body = message(number * 1000 + round, 4000);
                    assert_eq!(client.call(ECHO, &body).expect("a reply").body(), body);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a client");
    }
}

/// A bridge that dies is the end of its connections, on either side, and the next one makes new ones.
#[test]
fn a_bridge_that_is_killed_ends_its_connections() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let _server = Part::start(&pair.there, "serve", "store");
    let (mut there, mut here) = pair.start();
    for round in 0..4 {
        let mut client = client(&pair.socket("store"));
        let held = client.start(HOLD, b"").expect("started");
        until("the handler runs", || pair.there.at(".held").exists());
        if round % 2 == 0 {
            there.kill();
            there = pair.start_there();
        } else {
            here.kill();
            here = pair.start_here();
        }
        let error = held.wait(&mut client).expect_err("a bridge died");
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::PeerDead), true));
        until("its call is cancelled there", || pair.there.at(".cancelled").exists());
        for mark in [".held", ".cancelled"] {
            std::fs::remove_file(pair.there.at(mark)).expect("it is there");
        }
    }
    drop((there, here));
}

#[test]
fn a_link_that_is_down_for_too_long_ends_connections_where_the_rule_says_so() {
    let pair = Pair::new(&format!("{RPC}eject_after = \"3s\"\n"));
    let _server = Part::start(&pair.there, "serve", "store");
    let _bridges = pair.start();
    let mut client = client(&pair.socket("store"));
    let held = client.start(HOLD, b"").expect("started");
    until("the handler runs", || pair.there.at(".held").exists());
    pair.link.refuse(true);
    pair.link.reset();
    let error = held.wait(&mut client).expect_err("the link is down");
    assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::PeerDead), true));
    until("its call is cancelled there", || pair.there.at(".cancelled").exists());
    until("nobody listens here any more", || !pair.socket("store").exists());
    pair.link.refuse(false);
    let mut client = service::client(&pair.socket("store"));
    assert_eq!(client.call(ECHO, b"back").expect("a reply").body(), b"back");
}

/// A listener that takes one connection gets one: the bridge's own is the first one that is asked for.
#[test]
fn a_listener_of_one_connection_is_bridged() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}"));
    let server = Part::start(&pair.there, "echo-one", "echo");
    let _bridges = pair.start();
    let mut bus = bus(&pair.socket("echo"));
    bus.send(1, b"only").expect("sent");
    assert_eq!(*bus.recv_timeout(LONG).expect("an answer"), *b"only");
    drop(bus);
    server.wait();
    until("nobody listens here any more", || !pair.socket("echo").exists());
}

/// Many producers on one machine, their consumer on the other: buses of one direction.
#[test]
fn an_inbox_takes_what_producers_elsewhere_send() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}"));
    let _consumer = Part::start(&pair.there, "inbox", "echo");
    let _bridges = pair.start();
    let mut producer = bus(&pair.socket("echo"));
    assert!(producer.receiver().is_err(), "it has no way back");
    for number in 0..20u64 {
        producer.send(1, &number.to_le_bytes()).expect("sent");
    }
    producer.close().expect("closed");
    until("the last message arrives", || pair.there.at(".got-19").exists());
    until("and then that it has closed", || pair.there.at(".closed").exists());
    assert!((0..20).all(|number| pair.there.at(&format!(".got-{number}")).exists()));
    assert!(!pair.there.at(".died").exists());
    let mut producer = bus(&pair.socket("echo"));
    producer.send(1, &20u64.to_le_bytes()).expect("sent");
    producer.abandon();
    until("what it has sent arrives", || pair.there.at(".got-20").exists());
    until("and that it died", || pair.there.at(".died").exists());
}

#[test]
fn the_limit_of_a_rule_is_said_and_counted_and_a_bridge_that_ends_says_so() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}max_connections = 1\n"));
    let _server = Part::start(&pair.there, "echo", "echo");
    let _there = pair.start_there();
    let (here, metrics) = pair.start_here_with_metrics();
    let mut first = bus(&pair.socket("echo"));
    first.send(1, b"first").expect("sent");
    assert_eq!(*first.recv_timeout(LONG).expect("an answer"), *b"first");
    let error = Bus::connector(pair.socket("echo")).timeout(LONG).connect().expect_err("one too many");
    assert_eq!(error.kind(), ErrorKind::Busy);
    until("it is counted", || metric(metrics, "ramway_bridge_refused_connections_total") == 1.0);
    assert_eq!(metric(metrics, "ramway_bridge_connections"), 1.0);
    assert_eq!(metric(metrics, "ramway_bridge_opened_connections_total"), 1.0);
    // One message each way.
    until("they are counted", || metric(metrics, "ramway_bridge_messages_total") == 2.0);
    assert_eq!(metric(metrics, "ramway_bridge_payload_bytes_total"), 10.0);
    drop(first);
    until("its place is free", || metric(metrics, "ramway_bridge_connections") == 0.0);
    let mut second = bus(&pair.socket("echo"));
    second.send(1, b"second").expect("sent");
    assert_eq!(*second.recv_timeout(LONG).expect("an answer"), *b"second");
    here.signal(libc::SIGTERM);
    assert_eq!(end_of(&mut second), ErrorKind::PeerDead);
    let (status, text) = here.wait();
    assert!(status.success(), "{text}");
}

/// As a person tries it: `ramway serve` on one machine, `ramway call` on the other (`RAMWAY_TEST_COMMAND`, which `make test` builds).
#[test]
fn the_command_serves_and_calls() {
    let Some(ramway) = std::env::var_os("RAMWAY_TEST_COMMAND") else {
        return println!("skipped: RAMWAY_TEST_COMMAND does not say where the command `ramway` is");
    };
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let on = |machine: &Machine| {
        let mut command = std::process::Command::new(&ramway);
        command.env("RAMWAY_DIR", &machine.directory).stdin(std::process::Stdio::null());
        command
    };
    let mut serve = on(&pair.there).args(["serve", "store", "--exec", "tr a-z A-Z"]).spawn().expect("it serves");
    let _bridges = pair.start();
    let call = on(&pair.here).args(["call", "store", "1", "--data", "hello", "--timeout", "2m"]).output();
    // SAFETY: a plain system call; the child is not waited for yet, so that its number is nobody else's.
    assert_eq!(unsafe { libc::kill(serve.id() as libc::pid_t, libc::SIGINT) }, 0, "it serves");
    serve.wait().expect("it ends");
    let call = call.expect("it calls");
    assert!(call.status.success(), "{}", String::from_utf8_lossy(&call.stderr));
    assert_eq!(String::from_utf8_lossy(&call.stdout).trim_end(), "HELLO");
}

/// Both directions full of messages in pieces, and the end right behind them.
#[test]
fn a_bus_in_full_flow_outlives_a_link_that_is_reset_again_and_again() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}chunk = 1024\nwindow = \"64K\"\n"));
    let _server = Part::start(&pair.there, "echo", "echo");
    let _bridges = pair.start();
    let (sender, receiver) = bus(&pair.socket("echo")).split();
    let (mut sender, mut receiver) = (sender.expect("both ways"), receiver.expect("both ways"));
    const MESSAGES: u64 = 1200;
    const LONGEST: usize = 9000;
    let sends = std::thread::spawn(move || {
        for number in 0..MESSAGES {
            sender.send_timeout(1, &message(number, LONGEST), LONG).expect("room");
        }
        sender.close().expect("closed");
    });
    for number in 0..MESSAGES {
        let answer = receiver.recv_timeout(LONG).expect("an answer");
        assert_eq!(checked(&answer, LONGEST), number);
        if number % 150 == 100 {
            pair.link.reset();
        }
    }
    pair.link.reset();
    assert_eq!(receiver.recv_timeout(LONG).expect_err("over").kind(), ErrorKind::Closed);
    sends.join().expect("the sender");
}

/// Programs and bridges are killed at random (`RAMWAY_TEST_KILLS` times). A call that has a reply ran once. A call whose error says
/// that it did not run did not.
#[test]
fn what_is_said_of_a_call_is_so_whoever_is_killed() {
    let pair = Pair::new(&format!("{RPC}{BLOCK}"));
    let mut server = Part::start(&pair.there, "serve", "store");
    let (mut there, mut here) = pair.start();
    let calls = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let caller = {
        let (path, marks, calls, over) =
            (pair.socket("store"), pair.there.directory.clone(), Arc::clone(&calls), Arc::clone(&over));
        std::thread::spawn(move || {
            let mut next = 0u64;
            let ran = |number: u64| marks.join(format!(".ran-{number}")).exists();
            let (mut replies, mut not_run, mut unknown) = (0, Vec::new(), 0);
            // Relaxed here and below: flags and counts, which order nothing.
            while !over.load(Ordering::Relaxed) {
                let Ok(mut client) = Client::connector(&path).timeout(LONG).connect() else { continue };
                let lost = loop {
                    // Some of them are under way when somebody dies.
                    let pending: Vec<_> = (next..next + 8)
                        .filter_map(|number| Some((number, client.start(MARK, &number.to_le_bytes()).ok()?)))
                        .collect();
                    next += 8;
                    let mut lost = pending.len() < 8;
                    for (number, pending) in pending {
                        match pending.wait(&mut client) {
                            Ok(reply) => {
                                assert_eq!((service::number(&reply), ran(number)), (number, true));
                                replies += 1;
                            }
                            Err(error) => {
                                assert!(error.kind().is_some(), "call {number}: {error}");
                                if error.may_have_run() {
                                    unknown += 1
                                } else {
                                    not_run.push(number)
                                }
                                lost = true;
                            }
                        }
                    }
                    calls.store(next, Ordering::Relaxed);
                    if lost || over.load(Ordering::Relaxed) {
                        break lost;
                    }
                };
                if !lost {
                    client.close().expect("closed");
                }
            }
            println!("{replies} replies, {} not run, {unknown} may have run", not_run.len());
            not_run
        })
    };
    let more = |number: u64| {
        let now = calls.load(Ordering::Relaxed);
        until("more calls are made", || {
            assert!(!caller.is_finished(), "the caller has failed");
            calls.load(Ordering::Relaxed) >= now + number
        });
    };
    let mut random = Random::new();
    for _ in 0..number("RAMWAY_TEST_KILLS", 6) {
        more(8 + 8 * random.below(6));
        match random.below(4) {
            0 => {
                there.kill();
                there = pair.start_there();
            }
            1 => {
                here.kill();
                here = pair.start_here();
            }
            2 => {
                server.kill();
                server = Part::start(&pair.there, "serve", "store");
            }
            _ => pair.link.reset(),
        }
    }
    more(16);
    over.store(true, Ordering::Relaxed);
    let not_run = caller.join().expect("the caller");
    drop((there, here, server));
    // Nor later.
    let ran = not_run.iter().find(|number| pair.there.at(&format!(".ran-{number}")).exists());
    assert_eq!(ran, None, "it is said not to have run");
}

/// Rules for both kinds with the same names: each listener is bridged as what it is.
#[test]
fn a_listener_is_bridged_as_what_it_is() {
    let rule = |kind: &str| format!("names = [\"*\"]\nkind = \"{kind}\"\n{BLOCK}");
    let both = |direction: &str| format!("{}direction = \"{direction}\"\n[[rule]]\n{}", rule("bus"), rule("rpc"));
    let pair = Pair::new("");
    for (machine, file, direction) in [(&pair.there, &pair.export, "export"), (&pair.here, &pair.import, "import")] {
        let text = std::fs::read_to_string(file)
            .expect("the rules")
            .replace("[[rule]]\n", &format!("[[rule]]\n{}", both(direction)));
        machine.write("bridge.toml", &text);
    }
    let _server = Part::start(&pair.there, "serve", "store");
    let _echo = Part::start(&pair.there, "echo", "echo");
    let (there, _here) = pair.start();
    let mut client = client(&pair.socket("store"));
    assert_eq!(client.call(ECHO, b"1").expect("a reply").body(), b"1");
    let mut bus = bus(&pair.socket("echo"));
    bus.send(1, b"2").expect("sent");
    assert_eq!(*bus.recv_timeout(LONG).expect("an answer"), *b"2");
    assert!(!there.said().contains("needs a rule"), "{}", there.said());
}
