//! A client of RPC that many threads use, against a server by hand.

mod support;

use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_REPLY};
use ramway::rpc::{CallOptions, Client, SharedClient};
use ramway::{ErrorKind, WaitPolicy};
use std::task::Poll;
use std::time::Duration;
use support::rpc::{Server, reply};
use support::{Dir, LONG};

fn with_server(
    capacity: u64,
    max_in_flight: u32,
    policy: WaitPolicy,
    serve: impl FnOnce(Server) + Send + 'static,
    work: impl FnOnce(SharedClient),
) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, capacity, max_in_flight);
    let server = std::thread::spawn(move || serve(Server::accept(&listener)));
    work(Client::connector(&path).wait_policy(policy).connect().unwrap().shared());
    server.join().unwrap();
}

#[test]
fn many_threads_get_their_own_replies() {
    for (policy, max_in_flight, capacity) in
        [(WaitPolicy::Hybrid, 64, 1 << 16), (WaitPolicy::Block, 3, 4096), (WaitPolicy::Block, 64, 4096)]
    {
        with_server(capacity, max_in_flight, policy, Server::echo, |client| {
            std::thread::scope(|scope| {
                for thread in 0..8u32 {
                    let client = client.clone();
                    scope.spawn(move || {
                        for i in 0..2000u32 {
                            let mut body = vec![0; 8 + (i * 37 % 900) as usize];
                            body[..4].copy_from_slice(&thread.to_le_bytes());
                            body[4..8].copy_from_slice(&i.to_le_bytes());
                            assert_eq!(client.call(1, &body).unwrap().body(), body);
                        }
                    });
                }
            });
            assert_eq!(client.in_flight(), 0);
        });
    }
}

#[test]
fn a_leader_whose_time_is_over_leaves_another_one_in_charge() {
    let serve = |mut server: Server| {
        // The first one never gets a reply in time; the second one is answered after the first has given up.
        let (first, second) = (server.call(), server.call());
        let cancel = server.frame().unwrap();
        assert_eq!(
            (cancel.type_id, cancel.id),
            (TYPE_ID_CANCEL, if first.method() == 1 { first.id } else { second.id })
        );
        for call in [first, second] {
            server.ok(call.id, b"late");
        }
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 8, WaitPolicy::Block, serve, |client| {
        std::thread::scope(|scope| {
            let leader = client.clone();
            scope.spawn(move || {
                let error =
                    leader.call_with(1, b"", &CallOptions::new().timeout(Duration::from_millis(50))).unwrap_err();
                assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TimedOut), true));
            });
            let follower = client.clone();
            scope.spawn(move || assert_eq!(follower.call(2, b"").unwrap().body(), b"late"));
        });
    });
}

#[test]
fn closing_ends_the_calls_of_all_threads() {
    let (calls, wait) = std::sync::mpsc::channel();
    let serve = move |mut server: Server| {
        for _ in 0..4 {
            server.call();
        }
        calls.send(()).unwrap();
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 8, WaitPolicy::Hybrid, serve, |client| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let client = client.clone();
                scope.spawn(move || {
                    let error = client.call(1, b"").unwrap_err();
                    assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Closed), true));
                });
            }
            wait.recv().unwrap();
            client.close().unwrap();
        });
        let error = client.call(1, b"").unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Closed), false));
        assert_eq!(client.close().unwrap_err().kind(), ErrorKind::Detached);
    });
}

#[test]
fn a_stream_is_an_iterator_and_a_dropped_call_is_cancelled_at_once() {
    let serve = |mut server: Server| {
        let stream = server.call();
        for i in 0..stream.window() as u8 {
            server.element(stream.id, &[i]);
        }
        server.ok(stream.id, b"");
        let mut frame = server.frame().unwrap();
        while frame.type_id != TYPE_ID_CALL {
            frame = server.frame().unwrap();
        }
        let mut cancel = server.frame().unwrap();
        while cancel.type_id != TYPE_ID_CANCEL {
            cancel = server.frame().unwrap();
        }
        assert_eq!(cancel.id, frame.id);
        server.status(frame.id, 4);
        let last = server.call();
        server.ok(last.id, b"");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 8, WaitPolicy::Hybrid, serve, |client| {
        let stream = client.stream(1, b"").unwrap();
        let read: Vec<u8> = stream.map(|element| element.unwrap().body()[0]).collect();
        assert_eq!(read, (0..16).collect::<Vec<u8>>());
        let mut call = client.start(2, b"").unwrap();
        assert!(call.poll().is_pending());
        assert!(call.wait_timeout(Duration::from_millis(1)).is_pending());
        call.cancel();
        client.call(3, b"").unwrap();
        assert_eq!(client.in_flight(), 0);
    });
}

/// The leader waits for replies alone when another thread's call finds no room: it has to wait for room from then on.
#[test]
fn a_leader_waits_for_the_room_that_another_call_needs() {
    let serve = |mut server: Server| {
        // The server takes nothing before both are there: one published, one that does not fit.
        let mut calls = Vec::new();
        while calls.len() < 3 {
            calls.push(server.call());
            std::thread::yield_now();
        }
        for call in calls.iter().rev() {
            server.send(TYPE_ID_REPLY, call.id, &reply(0, 0, 0, b"", call.body())).unwrap();
        }
        assert!(server.frame().is_err());
    };
    with_server(4096, 8, WaitPolicy::Block, serve, |client| {
        std::thread::scope(|scope| {
            for size in [3000, 3500, 3900] {
                let client = client.clone();
                scope.spawn(move || {
                    let body = vec![7; size];
                    let mut call = client.start(1, &body).unwrap();
                    match call.wait_timeout(LONG) {
                        Poll::Ready(reply) => assert_eq!(reply.unwrap().body(), body),
                        Poll::Pending => panic!("no reply"),
                    }
                });
            }
        });
    });
}
