//! A client process that is stopped (SIGSTOP) with calls and streams under way. It is alive, and nobody knows for how long it will
//! stand still: the server keeps what it can for it and serves the others. When it goes on it gets all that it asked for.

mod support;

use ramway::ErrorKind;
use ramway::rpc::{Call, CallOptions, Client, Server};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

/// Elements of each stream, and their bytes: far more than the ring holds.
const ELEMENTS: u64 = 2000;
const ELEMENT: usize = 1000;
/// Calls that are answered while their client is stopped.
const HELD: u64 = 20;
/// Calls that are sent while it is not, and whose replies it reads afterwards.
const CALLS: u64 = 200;

fn element(number: u64) -> [u8; ELEMENT] {
    [number as u8; ELEMENT]
}

/// Of methods: 7 replies with the request, 2 is a stream, 1 is answered when the test lets go of it.
fn methods(server: &mut Server, held: &Arc<Mutex<Vec<Call>>>) {
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    server.stream(2, |_| Ok((0..ELEMENTS).map(|number| Ok(element(number))))).unwrap();
    let held = held.clone();
    server.deferred(1, move |call| held.lock().unwrap().push(call)).unwrap();
}

/// The process that is stopped: it is in the middle of its streams when it says so, and is told when it has been stopped.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let mut client = Client::connector(&role[1]).timeout(LONG).connect().unwrap();
    let short = CallOptions::new().timeout(Duration::from_millis(100));
    let calls: Vec<_> = (0..HELD).map(|n| client.start(1, &n.to_le_bytes()).unwrap()).collect();
    let late = client.start_with(1, b"late", &short).unwrap();
    let mut streams: Vec<_> =
        [1, 4, 16, 64].map(|window| client.stream_with(2, b"", &CallOptions::new().window(window)).unwrap()).into();
    let echoes: Vec<_> = (0..CALLS).map(|n| client.start(7, &n.to_le_bytes()).unwrap()).collect();
    for number in 0..10 {
        for stream in &mut streams {
            assert_eq!(stream.next(&mut client).unwrap().unwrap().body(), element(number));
        }
    }
    say("under way");
    assert_eq!(listen(), "go on");
    for (n, call) in (0..CALLS).zip(echoes) {
        assert_eq!(call.wait(&mut client).unwrap().body(), n.to_le_bytes());
    }
    for number in 10..ELEMENTS {
        for stream in &mut streams {
            assert_eq!(stream.next(&mut client).unwrap().unwrap().body(), element(number));
        }
    }
    assert!(streams.iter_mut().all(|stream| stream.next(&mut client).is_none()));
    for (n, call) in (0..HELD).zip(calls) {
        assert_eq!(call.wait(&mut client).unwrap().body(), n.to_le_bytes());
    }
    // The time went on. The server ended the call by its own clock long ago.
    let error = late.wait(&mut client).unwrap_err();
    assert!(error.may_have_run() && error.kind() == Some(ErrorKind::TimedOut), "{error}");
    client.ping().unwrap();
    assert_eq!(client.in_flight(), 0);
    client.close().unwrap();
    say("has everything");
}

/// Waits until all threads of a process stand still.
fn is_stopped(pid: u32) {
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    eventually("it is stopped", || {
        std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(|task| state(task.unwrap()))
    });
}

fn a_client_is_stopped_for(time: Duration) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let held = Arc::<Mutex<Vec<Call>>>::default();
    let mut server = Server::builder(&path).capacity(1 << 16).bind().unwrap();
    methods(&mut server, &held);
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.run());
    let mut client = Client::connector(&path).timeout(LONG).connect().unwrap();
    let mut peer = Peer::start(&["client", &path]);
    peer.expect("under way");
    let has_all = || held.lock().unwrap().iter().filter(|call| !call.is_cancelled()).count() == HELD as usize;
    eventually("the server has its calls, and the late one is over", has_all);
    peer.signal(libc::SIGSTOP);
    is_stopped(peer.pid());
    let began = Instant::now();
    let mut calls = 0u64;
    while began.elapsed() < time || calls < 1000 {
        let mut stream = client.stream(2, b"").unwrap();
        for _ in 0..20 {
            assert_eq!(client.call(7, &calls.to_le_bytes()).unwrap().body(), calls.to_le_bytes());
            calls += 1;
        }
        for number in 0..20 {
            assert_eq!(stream.next(&mut client).unwrap().unwrap().body(), element(number));
        }
        stream.cancel(&mut client);
        // In the middle of it what was held is answered: the stopped client's replies are kept for it.
        if calls == 500 {
            for call in held.lock().unwrap().drain(..) {
                let body = call.body().to_vec();
                call.reply(body);
            }
        }
    }
    peer.signal(libc::SIGCONT);
    peer.tell("go on");
    peer.expect("has everything");
    peer.finish();
    assert_eq!(client.call(7, b"x").unwrap().body(), b"x");
    client.close().unwrap();
    stopper.shutdown(Duration::ZERO);
    serving.join().unwrap().unwrap();
}

#[test]
fn a_client_that_is_stopped_for_a_moment_loses_nothing_and_stops_nobody() {
    a_client_is_stopped_for(Duration::from_millis(300));
}

#[test]
#[ignore = "a minute"]
fn a_client_that_is_stopped_for_a_minute_loses_nothing_and_stops_nobody() {
    a_client_is_stopped_for(Duration::from_secs(60));
}
