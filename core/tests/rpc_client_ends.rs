//! How the connections of an RPC client end: by a server that breaks the rules, dies, closes or stops; and what the client makes of
//! its calls then.

mod support;

use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_REPLY};
use ramway::rpc::{CallOptions, Client, Status};
use ramway::{Bus, ErrorKind, Listener};
use std::task::Poll;
use std::time::Duration;
use support::rpc::{Server, reply};
use support::{Dir, LONG, Peer, helper_role, listen, say};

/// The other processes in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        // Takes this many calls and says so; then what it is told.
        ["server", path, count] => {
            let listener = Server::listener(path, 1 << 20, 1 << 16);
            say("listening");
            let mut server = Server::accept(&listener);
            let ids: Vec<u64> = (0..count.parse().unwrap()).map(|_| server.call().id).collect();
            say("taken");
            match listen().as_str() {
                "close" => drop(server),
                "answer" => {
                    for id in ids {
                        server.ok(id, b"late");
                    }
                    while server.frame().is_ok() {}
                }
                word => panic!("{word}"),
            }
        }
        _ => panic!("{role:?}"),
    }
}

/// What a server may do wrong after it has taken call 1 (one reply) and call 2 (a stream with a window of 2).
const WRONG: &[(&str, fn(&mut Server))] = &[
    ("an id that was never issued", |server| server.ok(3, b"")),
    ("the id 0", |server| server.ok(0, b"")),
    ("an id of far away", |server| server.ok(u64::MAX, b"")),
    ("a second final reply", |server| {
        server.ok(1, b"");
        server.ok(1, b"");
    }),
    ("an element after the end", |server| {
        server.ok(2, b"");
        server.element(2, b"");
    }),
    ("an element of a call with one reply", |server| server.element(1, b"")),
    ("an element beyond the credit", |server| (0..3).for_each(|_| server.element(2, b""))),
    ("a body at the end of a stream", |server| server.ok(2, b"x")),
    ("a payload without a header", |server| server.send(TYPE_ID_REPLY, 1, &[0; 15]).unwrap()),
    ("no payload", |server| server.send(TYPE_ID_REPLY, 1, &[]).unwrap()),
    ("metadata that do not fit", |server| {
        let mut payload = reply(0, 0, 0, b"", b"");
        payload[12] = 1;
        server.send(TYPE_ID_REPLY, 1, &payload).unwrap();
    }),
    ("metadata of 4 GiB", |server| {
        let mut payload = reply(0, 0, 0, b"", &[0; 100]);
        payload[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        server.send(TYPE_ID_REPLY, 1, &payload).unwrap();
    }),
    ("an unknown status", |server| server.status(1, 9)),
    ("a status of an element", |server| server.send(TYPE_ID_REPLY, 2, &reply(1, 1, 0, b"", b"")).unwrap()),
    ("an unknown flag", |server| server.send(TYPE_ID_REPLY, 1, &reply(0, 2, 0, b"", b"")).unwrap()),
    ("a code without status 1", |server| server.send(TYPE_ID_REPLY, 1, &reply(4, 0, 1, b"", b"")).unwrap()),
    ("a CALL", |server| server.send(TYPE_ID_CALL, 1, &reply(0, 0, 0, b"", b"")).unwrap()),
    ("a CANCEL", |server| server.send(TYPE_ID_CANCEL, 1, &[]).unwrap()),
    ("a message", |server| server.send(7, 1, &reply(0, 0, 0, b"", b"")).unwrap()),
];

#[test]
fn a_server_that_breaks_the_rules_ends_all_calls_and_nothing_else() {
    for (what, wrong) in WRONG {
        let dir = Dir::new();
        let path = dir.at("rpc.sock");
        let listener = Server::listener(&path, 1 << 16, 2);
        let server = std::thread::spawn(move || {
            let mut server = Server::accept(&listener);
            assert_eq!((server.call().id, server.call().id), (1, 2));
            wrong(&mut server);
            while server.frame().is_ok() {}
        });
        let mut client = Client::connect(&path).unwrap();
        let one = client.start(1, b"").unwrap();
        let mut stream = client.stream_with(2, b"", &CallOptions::new().window(2)).unwrap();
        let queued = client.start(3, b"").unwrap();
        let error = queued.wait(&mut client).unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::Corrupt), "{what}: {error}");
        // It was not sent, unless the place of another one was free before the end.
        let freed = ["a second final reply", "an element after the end"].contains(what);
        assert!(freed || !error.may_have_run(), "{what}");
        // What was received before is kept.
        match one.wait(&mut client) {
            Ok(_) => assert_eq!(*what, "a second final reply"),
            Err(error) => {
                assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Corrupt), true), "{what}: {error}");
                assert!(error.text().contains("the server sent"), "{error}");
            }
        }
        let end = loop {
            match stream.next(&mut client) {
                Some(Ok(_)) => {}
                end => break end,
            }
        };
        if *what == "an element after the end" {
            assert!(end.is_none());
        } else {
            assert_eq!(end.unwrap().unwrap_err().kind(), Some(ErrorKind::Corrupt), "{what}");
        }
        let error = client.call(1, b"").unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Corrupt), false), "{what}");
        assert_eq!(client.close().unwrap_err().kind(), ErrorKind::Corrupt);
        server.join().unwrap();
    }
}

#[test]
fn statuses_and_texts_are_given_as_they_are() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 1 << 16, 2);
    let server = std::thread::spawn(move || {
        let mut server = Server::accept(&listener);
        for status in 1..=8 {
            let id = server.call().id;
            server.send(TYPE_ID_REPLY, id, &reply(status, 0, (status == 1).into(), b"m", b"bad \xff")).unwrap();
        }
        assert!(server.frame().is_err());
    });
    let mut client = Client::connect(&path).unwrap();
    for status in 1..=8 {
        let error = client.call(1, b"").unwrap_err();
        assert_eq!(error.status(), Status::from_code(status));
        assert_eq!(error.may_have_run(), [1, 4, 6, 8].contains(&status));
        assert_eq!((error.text(), error.code()), ("bad \u{fffd}".to_string(), u32::from(status == 1)));
    }
    drop(client);
    server.join().unwrap();
}

fn with_calls(count: usize, work: impl FnOnce(Peer, Client, Vec<ramway::rpc::Pending>)) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut peer = Peer::start(&["server", &path, &count.to_string()]);
    peer.expect("listening");
    let mut client = Client::connect(&path).unwrap();
    let calls = (0..count).map(|i| client.start(i as u32, b"body").unwrap()).collect();
    while client.in_flight() < count {
        client.wait_for_news(Duration::from_millis(50)).unwrap();
    }
    peer.expect("taken");
    work(peer, client, calls);
}

#[test]
fn calls_of_a_server_that_is_killed_may_have_run() {
    with_calls(100, |peer, mut client, calls| {
        peer.kill();
        for call in calls {
            let error = call.wait(&mut client).unwrap_err();
            assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::PeerDead), true));
        }
        let error = client.call(1, b"").unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::PeerDead), false));
    });
}

#[test]
fn calls_of_a_server_that_closed_were_not_run() {
    with_calls(100, |mut peer, mut client, calls| {
        peer.tell("close");
        for call in calls {
            let error = call.wait(&mut client).unwrap_err();
            assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Closed), false));
        }
        peer.finish();
    });
}

#[test]
fn ten_thousand_calls_are_in_flight() {
    with_calls(10_000, |mut peer, mut client, calls| {
        assert_eq!(client.in_flight(), 10_000);
        peer.tell("answer");
        for call in calls.into_iter().rev() {
            assert_eq!(call.wait(&mut client).unwrap().body(), b"late");
        }
        assert_eq!(client.in_flight(), 0);
        drop(client);
        peer.finish();
    });
}

/// Its calls time out; the server, which knows nothing of it, goes on.
#[test]
fn a_client_that_was_stopped_finds_its_calls_timed_out_or_answered() {
    with_calls(10, |mut peer, mut client, calls| {
        peer.signal(libc::SIGSTOP);
        let short = CallOptions::new().timeout(Duration::from_millis(30));
        let error = client.call_with(1, b"", &short).unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TimedOut), true));
        peer.signal(libc::SIGCONT);
        peer.tell("answer");
        for call in calls {
            assert_eq!(call.wait(&mut client).unwrap().body(), b"late");
        }
        drop(client);
        peer.finish();
    });
}

#[test]
fn in_a_fork_s_child_every_call_is_detached() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 1 << 16, 8);
    let server = std::thread::spawn(move || Server::accept(&listener).echo());
    let mut client = Client::connect(&path).unwrap();
    let under_way = client.start(1, b"before").unwrap();
    // SAFETY: the child makes calls of this library only, which are prepared for it, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let one = client.call(1, b"").unwrap_err();
        let two = under_way.wait(&mut client).unwrap_err();
        let right =
            one.kind() == Some(ErrorKind::Detached) && two.kind() == Some(ErrorKind::Detached) && !one.may_have_run();
        drop(client);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(under_way.wait(&mut client).unwrap().body(), b"before");
    assert_eq!(client.call(1, b"after").unwrap().body(), b"after");
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_plain_listener_is_no_server_and_a_server_no_plain_listener() {
    let dir = Dir::new();
    let path = dir.at("plain.sock");
    let listener = Listener::builder(&path).capacity(4096).bind().unwrap();
    let plain = std::thread::spawn(move || listener.accept_timeout(Duration::from_millis(500)).map(drop));
    let error = Client::connector(&path).timeout(LONG).connect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AbiMismatch, "{error}");
    assert!(plain.join().unwrap().is_err());
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 4096, 1);
    let server = std::thread::spawn(move || listener.accept_timeout(Duration::from_millis(500)).map(drop));
    let error = Bus::connector(&path).timeout(LONG).connect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AbiMismatch, "{error}");
    assert!(server.join().unwrap().is_err());
}

/// Half of the calls are cancelled while their replies are under way: each has one end, and none takes another's place.
fn cancels_race_with_replies(calls: u32) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 1 << 16, 64);
    let server = std::thread::spawn(move || {
        let mut server = Server::accept(&listener);
        let mut open = std::collections::HashSet::new();
        let mut last = 0;
        while let Ok(frame) = server.frame() {
            if frame.type_id == TYPE_ID_CALL {
                last += 1;
                assert_eq!(frame.id, last);
                assert!(open.insert(frame.id) && open.len() <= 64);
                // Some at once, some when the next ones have come.
                if frame.id % 3 != 0 {
                    open.remove(&frame.id);
                    server.send(TYPE_ID_REPLY, frame.id, &reply(0, 0, 0, b"", frame.body())).unwrap();
                }
                let late: Vec<u64> = open.iter().copied().filter(|id| id + 7 < last).collect();
                for id in late {
                    open.remove(&id);
                    server.status(id, 4);
                }
            } else if open.remove(&frame.id) {
                assert_eq!(frame.type_id, TYPE_ID_CANCEL);
                server.status(frame.id, 4);
            }
        }
    });
    let mut client = Client::connect(&path).unwrap();
    let mut pending = std::collections::VecDeque::new();
    for i in 0..calls {
        let mut call = client.start(1, &i.to_le_bytes()).unwrap();
        if i % 2 == 0 {
            if let Poll::Ready(reply) = call.poll(&mut client) {
                check(reply, i);
            } else if i % 4 == 0 {
                call.cancel(&mut client);
            }
            continue;
        }
        pending.push_back((i, call));
        if pending.len() > 40 {
            let (i, call) = pending.pop_front().unwrap();
            check(call.wait(&mut client), i);
        }
    }
    drop(pending);
    while client.in_flight() > 0 {
        client.wait_for_news(Duration::from_millis(20)).unwrap();
    }
    client.close().unwrap();
    server.join().unwrap();
}

fn check(reply: ramway::rpc::CallResult<ramway::rpc::Reply>, i: u32) {
    match reply {
        Ok(reply) => assert_eq!(reply.body(), i.to_le_bytes()),
        Err(error) => assert_eq!(error.status(), Some(Status::Cancelled), "{error}"),
    }
}

#[test]
fn a_cancel_that_races_with_the_reply_has_one_end() {
    cancels_race_with_replies(20_000);
}

#[test]
#[ignore = "half a minute in a release build"]
fn a_million_cancels_race_with_replies() {
    cancels_race_with_replies(2_000_000);
}
