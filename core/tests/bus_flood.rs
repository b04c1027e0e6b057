//! A listener that too many connectors, or too few descriptors, make work hard.

mod support;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ramway::{Bus, ErrorKind, Listener};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Dir, LONG, Peer, argument, helper_role, listen, raw, say};

/// So long that no handshake ends because of it.
const FOR_EVER: Duration = Duration::from_secs(3600);

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "serve" => serve(),
        "connect" => connect(),
        "flood" => flood(),
        "serve without descriptors" => serve_without_descriptors(),
        "try without descriptors" => try_without_descriptors(),
        other => panic!("no such role: {other}"),
    }
}

/// Accepts until it is killed; each peer hears what it says itself.
fn serve() {
    let listener = Listener::builder(argument()).capacity(4096).handshake_timeout(FOR_EVER).bind().unwrap();
    say("listening");
    loop {
        let mut bus = listener.accept().unwrap();
        let said = bus.recv_timeout(LONG).unwrap().to_vec();
        bus.send(1, &said).unwrap();
    }
}

/// A good client.
fn connect() {
    let path = argument();
    say("here");
    while !listen().is_empty() {
        let mut bus = Bus::connector(&path).timeout(LONG).connect().unwrap();
        bus.send(1, b"anyone?").unwrap();
        assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"anyone?");
        say("served");
    }
}

/// Connects without a word, again and again, and keeps the last thousand connections.
fn flood() {
    let path = argument();
    let mut kept = std::collections::VecDeque::new();
    let mut told = false;
    loop {
        if let Ok(socket) = UnixStream::connect(&path) {
            kept.push_back(socket);
        }
        if kept.len() == 200 && !told {
            told = true;
            say("flooding");
        }
        if kept.len() > 1000 {
            kept.pop_front();
        }
    }
}

fn serving(dir: &Dir) -> (Peer, PathBuf) {
    let mut server = Peer::start(&["serve", &dir.at("l")]);
    server.expect("listening");
    (server, dir.join("l"))
}

fn client(path: &Path) -> Peer {
    let mut client = Peer::start(&["connect", path.to_str().unwrap()]);
    client.expect("here");
    client
}

/// With handshakes that time does not end: they are there as long as the sockets are.
fn a_good_client_is_served_in_spite_of(silent: impl Fn(&Path) -> UnixStream) {
    for many in [64, 200] {
        let dir = Dir::new();
        let (server, path) = serving(&dir);
        let kept: Vec<_> = (0..many).map(|_| silent(&path)).collect();
        let mut client = client(&path);
        client.tell("go");
        client.expect("served");
        drop(kept);
        server.kill();
    }
}

#[test]
fn connectors_that_say_nothing_do_not_keep_a_good_client_out() {
    a_good_client_is_served_in_spite_of(raw::connect);
}

#[test]
fn connectors_that_say_half_a_hello_do_not_keep_a_good_client_out() {
    a_good_client_is_served_in_spite_of(|path| {
        let socket = raw::connect(path);
        raw::send(&socket, &raw::message(raw::HELLO, 0, 0)[..32]);
        socket
    });
}

#[test]
fn connectors_that_never_acknowledge_do_not_keep_a_good_client_out() {
    a_good_client_is_served_in_spite_of(|path| {
        let socket = raw::connect(path);
        raw::send(&socket, &raw::message(raw::HELLO, 0, 0));
        socket
    });
}

#[test]
fn a_flood_does_not_keep_a_good_client_out() {
    let dir = Dir::new();
    let (server, path) = serving(&dir);
    let mut flood = Peer::start(&["flood", &dir.at("l")]);
    flood.expect("flooding");
    let mut client = client(&path);
    for _ in 0..10 {
        client.tell("go");
        client.expect("served");
    }
    flood.kill();
    server.kill();
}

#[test]
fn the_oldest_silent_one_is_told_and_counted() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("l")).capacity(4096).handshake_timeout(FOR_EVER).bind().unwrap();
    let silent: Vec<_> = (0..64).map(|_| raw::connect(listener.path())).collect();
    assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::Empty);
    assert_eq!((listener.refused(), listener.last_refusal()), (0, None));
    // The first one has spoken, so the second one is the oldest that is silent.
    raw::send(&silent[0], &raw::message(raw::HELLO, 0, 0));
    let _more = raw::connect(listener.path());
    assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::Empty);
    assert_eq!(raw::refusal(&silent[1]), ErrorKind::TimedOut.code() as u32);
    raw::wait_for_the_end(&silent[1]);
    let (welcome, _memory) = raw::receive(&silent[0]).expect("WELCOME");
    assert_eq!(welcome[0x10], raw::WELCOME as u8);
    assert_eq!(listener.refused(), 1);
    assert!(listener.last_refusal().unwrap().contains("silent the longest"), "{:?}", listener.last_refusal());
}

#[test]
fn those_who_wait_for_their_turn_are_not_sent_away() {
    let dir = Dir::new();
    let path = dir.join("l");
    std::thread::scope(|threads| {
        let one = threads.spawn(|| {
            let builder = Listener::builder(&path).capacity(4096).handshake_timeout(FOR_EVER);
            builder.accept_one(Some(LONG)).unwrap()
        });
        support::eventually("it listens", || UnixStream::connect(&path).is_ok());
        // It is welcome and says no more; the others wait for its end, as many as there may be.
        let first = raw::connect(&path);
        raw::greet(&first);
        let greeted = || {
            let socket = raw::connect(&path);
            raw::send(&socket, &raw::message(raw::HELLO, 0, 0));
            socket
        };
        let others: Vec<_> = std::iter::repeat_with(greeted).take(63).collect();
        drop(first);
        // The one that came next is welcome next.
        let (welcome, _memory) = raw::receive(&others[0]).expect("WELCOME");
        assert_eq!(welcome[0x10], raw::WELCOME as u8);
        raw::send(&others[0], &raw::message(raw::ACK, 0, 0));
        one.join().unwrap();
    });
}

/// Takes every descriptor that this process may still have.
fn exhaust() -> Vec<std::fs::File> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    taken
}

/// How often accept fails below.
const FAILURES: u32 = 6;

/// Accepts without a free descriptor, in the obvious loop, then with some.
fn serve_without_descriptors() {
    let listener = Listener::bind(argument()).unwrap();
    let taken = exhaust();
    say("listening");
    let begun = Instant::now();
    for _ in 0..FAILURES {
        let error = listener.accept().unwrap_err();
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Os, Some(libc::EMFILE)), "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }
    // However many come, there is a pause between two failures: the loop has so many turns a second and no more.
    assert!(begun.elapsed() >= Duration::from_millis(100) * (FAILURES - 1), "{:?}", begun.elapsed());
    drop(taken);
    say("with descriptors");
    listener.accept_timeout(LONG).unwrap();
    say("accepted");
    listen();
}

#[test]
fn without_descriptors_a_connector_is_told_why_and_the_loop_around_accept_waits() {
    let dir = Dir::new();
    let mut server = Peer::start(&["serve without descriptors", &dir.at("l")]);
    server.expect("listening");
    std::thread::scope(|threads| {
        // One who comes again as soon as it is told, until it is served.
        let path = dir.join("l");
        let knocking = threads.spawn(move || {
            let mut refused = 0;
            loop {
                match Bus::connector(&path).timeout(LONG).connect() {
                    Ok(_) => return refused,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                        assert!(error.to_string().contains("no descriptors left"), "{error}");
                        refused += 1;
                    }
                }
            }
        });
        server.expect("with descriptors");
        // It goes on as if nothing had been.
        server.expect("accepted");
        assert!(knocking.join().unwrap() >= FAILURES);
    });
    server.finish();
}

fn readable(listener: &Listener, timeout: Duration) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
    rustix::event::poll(&mut polled, Some(&timeout)).unwrap() > 0
}

/// As an event loop does it: waits for the descriptor, then never waits in accept. Until there is a file beside it.
fn try_without_descriptors() {
    let listener = Listener::bind(argument()).unwrap();
    let done = listener.path().with_extension("done");
    let taken = exhaust();
    say("listening");
    let (mut turns, mut failures) = (0, 0);
    while !done.exists() || readable(&listener, Duration::ZERO) {
        if readable(&listener, Duration::from_millis(20)) {
            turns += 1;
            failures += u32::from(listener.try_accept().unwrap_err().kind() == ErrorKind::Os);
        }
    }
    drop(taken);
    // Each turn was for at least one connector.
    assert!((1..=FAILURES).contains(&turns) && failures == turns, "{failures} failures in {turns} turns");
}

#[test]
fn without_descriptors_the_listeners_own_does_not_stay_readable() {
    let dir = Dir::new();
    let mut server = Peer::start(&["try without descriptors", &dir.at("l")]);
    server.expect("listening");
    for _ in 0..FAILURES {
        let error = Bus::connector(dir.join("l")).timeout(LONG).connect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    std::fs::write(dir.join("l.done"), "").unwrap();
    server.finish();
}
