//! A client of RPC against a server by hand.

mod support;

use ramway::ErrorKind;
use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_CREDIT, TYPE_ID_REPLY};
use ramway::rpc::{CallOptions, Client, Reply, Status, Taken};
use std::task::Poll;
use std::time::{Duration, Instant};
use support::rpc::{Frame, Server, reply};
use support::{Dir, LONG};

/// A client, and a thread that is its server.
fn with_server(
    capacity: u64,
    max_in_flight: u32,
    serve: impl FnOnce(Server) + Send + 'static,
    work: impl FnOnce(Client),
) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, capacity, max_in_flight);
    let server = std::thread::spawn(move || serve(Server::accept(&listener)));
    work(Client::connect(&path).unwrap());
    server.join().unwrap();
}

fn body(reply: Poll<Option<Result<Reply, ramway::rpc::CallError>>>) -> Option<Vec<u8>> {
    match reply {
        Poll::Ready(Some(reply)) => Some(reply.unwrap().into_body()),
        Poll::Ready(None) => panic!("the stream is complete"),
        Poll::Pending => None,
    }
}

#[test]
fn a_call_is_answered() {
    with_server(1 << 16, 8, Server::echo, |mut client| {
        assert_eq!(client.max_in_flight(), 8);
        assert_eq!(client.peer_pid(), Some(std::process::id()));
        for i in 0..1000u32 {
            assert_eq!(client.call(7, &i.to_le_bytes()).unwrap().body(), i.to_le_bytes());
        }
        let long = CallOptions::new().timeout(LONG).meta(b"trace");
        assert_eq!(client.call_with(7, b"x", &long).unwrap().into_body(), b"x");
        assert_eq!(client.in_flight(), 0);
        let room = client.max_request_len();
        assert_eq!(client.call(7, &vec![1; room]).unwrap().body().len(), room);
        let error = client.call(7, &vec![1; room + 1]).unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TooLarge), false));
        client.close().unwrap();
    });
}

#[test]
fn a_reply_is_read_in_the_ring() {
    let serve = |mut server: Server| {
        // Alone; with metadata; while another call is under way, whose reply comes first; an error; after a panic; then more.
        for _ in 0..2 {
            let call = server.call();
            server.ok(call.id, &[7; 3000]);
        }
        let call = server.call();
        server.send(TYPE_ID_REPLY, call.id, &reply(0, 0, 0, b"trace", &[8; 40])).unwrap();
        let (other, call) = (server.call(), server.call());
        server.ok(other.id, b"other");
        server.ok(call.id, b"this");
        let call = server.call();
        server.send(TYPE_ID_REPLY, call.id, &reply(8, 0, 0, b"", b"no")).unwrap();
        for _ in 0..3 {
            let call = server.call();
            server.ok(call.id, b"on");
        }
        while server.frame().is_ok() {}
    };
    with_server(1 << 12, 8, serve, |mut client| {
        let (none, limit) = (CallOptions::new(), CallOptions::new().timeout(LONG));
        for options in [none, limit] {
            let found = client.call_in_place(7, b"", &options, |reply| {
                assert_eq!((reply.meta(), reply.body().as_ptr() as usize % 16), (&b""[..], 0));
                reply.body().to_vec()
            });
            assert_eq!(found.unwrap(), [7; 3000]);
        }
        let found = client.call_in_place(7, b"", &none, |reply| (reply.meta().to_vec(), reply.body().to_vec()));
        assert_eq!(found.unwrap(), (b"trace".to_vec(), vec![8; 40]));
        let other = client.start(7, b"").unwrap();
        assert_eq!(client.call_in_place(7, b"", &none, |reply| reply.body().to_vec()).unwrap(), b"this");
        assert_eq!(other.wait(&mut client).unwrap().body(), b"other");
        let error = client.call_in_place(7, b"", &none, |_| panic!("no reply")).unwrap_err();
        assert_eq!((error.status(), error.text().as_str()), (Some(Status::HandlerFailed), "no"));
        // A reader that panics gives the place back.
        let read = std::panic::AssertUnwindSafe(|| {
            drop(client.call_in_place(7, b"", &none, |reply| panic!("{} bytes", reply.body().len())));
        });
        assert!(std::panic::catch_unwind(read).is_err());
        assert_eq!(client.call_in_place(7, b"", &limit, |reply| reply.body().to_vec()).unwrap(), b"on");
        assert_eq!(client.call(7, b"").unwrap().body(), b"on");
        assert_eq!(client.in_flight(), 0);
    });
}

/// Its time is over when the server's for it is, also if this side loses its processor to the server that it wakes: or the same call
/// would end as one that the server has cancelled.
#[test]
fn a_calls_time_begins_before_the_server_sees_it() {
    const ROUNDS: usize = 5000;
    const LIMIT: Duration = Duration::from_secs(1000);
    let (seen, sees) = std::sync::mpsc::channel();
    let serve = move |mut server: Server| {
        for _ in 0..ROUNDS {
            let call = server.call();
            seen.send(Instant::now()).unwrap();
            server.ok(call.id, b"");
        }
        while server.frame().is_ok() {}
    };
    with_server(1 << 16, 8, serve, |mut client| {
        let options = CallOptions::new().timeout(LIMIT);
        for _ in 0..ROUNDS {
            let call = client.start_with(7, b"", &options).unwrap();
            // Its time ends so long after this moment, or later.
            let now = Instant::now();
            let left = client.due_in().unwrap();
            let seen = sees.recv().unwrap();
            assert!(
                now + left <= seen + LIMIT,
                "the server's time ends {:?} before the client's",
                now + left - (seen + LIMIT)
            );
            call.wait(&mut client).unwrap();
        }
        client.close().unwrap();
    });
}

/// Who polls the descriptor for `due_in` is to come back for a call that has found no room: no reply may be on its way.
#[test]
fn a_call_without_room_is_due_soon() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 1 << 12, 8);
    let (read, reads) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let mut server = Server::accept(&listener);
        reads.recv().unwrap();
        for id in [1, 2] {
            assert_eq!(server.call().id, id);
            server.ok(id, b"");
        }
        while server.frame().is_ok() {}
    });
    let mut client = Client::connect(&path).unwrap();
    assert_eq!(client.due_in(), None);
    let one = client.start(7, &[1; 3000]).unwrap();
    assert_eq!(client.due_in(), None, "it was sent");
    let two = client.start(7, &[2; 3000]).unwrap();
    assert!(client.due_in().is_some(), "there is no room for it");
    read.send(()).unwrap();
    two.wait(&mut client).unwrap();
    one.wait(&mut client).unwrap();
    assert_eq!(client.due_in(), None);
    client.close().unwrap();
    server.join().unwrap();
}

#[test]
fn a_binding_that_looks_by_itself_receives_what_is_there() {
    with_server(1 << 16, 8, Server::echo, |client| {
        let mut raw = client.into_raw();
        raw.list_changed();
        for i in 0..100u32 {
            let seen = raw.incoming().start().peer;
            let call = raw.start(7, &i.to_le_bytes(), &CallOptions::new(), false).unwrap();
            let changed = loop {
                let more = raw.progress_untold();
                match raw.next_changed() {
                    Some(changed) => break changed,
                    None => assert!(!more),
                }
                std::thread::yield_now();
            };
            assert_eq!(changed, call);
            assert!(raw.incoming().start().peer > seen);
            let Taken::End(Ok(reply)) = raw.take(call) else { panic!("no reply") };
            assert_eq!(reply.body(), i.to_le_bytes());
        }
        raw.close().unwrap();
    });
}

#[test]
fn calls_beyond_the_limit_wait_in_their_order() {
    let serve = |mut server: Server| {
        // Both are there before any is answered, and no third one.
        let (one, two) = (server.call(), server.call());
        assert_eq!((one.id, two.id, one.body(), two.body()), (1, 2, &b"1"[..], &b"2"[..]));
        assert!(server.try_frame().is_none());
        server.ok(2, b"second");
        let three = server.call();
        assert_eq!((three.id, three.body()), (3, &b"3"[..]));
        server.ok(3, b"third");
        server.ok(1, b"first");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 2, serve, |mut client| {
        let pending: Vec<_> = [b"1", b"2", b"3"].map(|body| client.start(1, body).unwrap()).into();
        assert_eq!((client.in_flight(), client.poll_ready()), (2, false));
        let bodies: Vec<_> =
            pending.into_iter().rev().map(|call| call.wait(&mut client).unwrap().into_body()).collect();
        assert_eq!(bodies, [&b"third"[..], b"second", b"first"]);
        assert!(client.poll_ready());
    });
}

#[test]
fn a_stream_grants_credit_as_it_is_read() {
    let serve = |mut server: Server| {
        let call = server.call();
        assert_eq!(call.window(), 4);
        for i in 0..4u8 {
            server.element(1, &[i]);
        }
        let credit = Frame { type_id: TYPE_ID_CREDIT, id: 1, payload: 2u32.to_le_bytes().into() };
        assert_eq!(server.frame().unwrap(), credit);
        server.element(1, &[4]);
        server.element(1, &[5]);
        assert_eq!(server.frame().unwrap(), credit);
        server.ok(1, b"");
        // The drop below cancels nothing; what is granted after the end is no longer sent.
        let mut last = server.frame().unwrap();
        if last == credit {
            last = server.frame().unwrap();
        }
        assert_eq!((last.type_id, last.id), (TYPE_ID_CALL, 2));
        server.ok(last.id, b"");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 2, serve, |mut client| {
        let mut stream = client.stream_with(1, b"", &CallOptions::new().window(4)).unwrap();
        let read: Vec<_> = stream.iter(&mut client).map(|element| element.unwrap().body()[0]).collect();
        assert_eq!(read, [0, 1, 2, 3, 4, 5]);
        assert!(stream.next(&mut client).is_none());
        drop(stream);
        client.call(2, b"").unwrap();
    });
}

#[test]
fn a_stream_that_ends_with_an_error_gives_its_elements_first() {
    let serve = |mut server: Server| {
        server.call();
        server.element(1, b"one");
        server.send(TYPE_ID_REPLY, 1, &reply(1, 0, 42, b"", "gr\u{fc}n".as_bytes())).unwrap();
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 2, serve, |mut client| {
        let mut stream = client.stream(1, b"").unwrap();
        assert_eq!(body(stream.next_timeout(&mut client, LONG)).unwrap(), b"one");
        let error = stream.next(&mut client).unwrap().unwrap_err();
        assert_eq!((error.status(), error.code(), error.text()), (Some(Status::Application), 42, "gr\u{fc}n".into()));
        assert!(error.may_have_run());
        assert!(stream.next(&mut client).is_none());
    });
}

#[test]
fn letting_go_of_a_call_cancels_it_and_its_place_is_free_when_the_server_says() {
    let serve = |mut server: Server| {
        assert_eq!(server.call().id, 1);
        let cancel = Frame { type_id: TYPE_ID_CANCEL, id: 1, payload: Vec::new() };
        assert_eq!(server.frame().unwrap(), cancel);
        // Its place is taken until this.
        assert!(server.try_frame().is_none());
        server.status(1, 4);
        let call = server.call();
        assert_eq!((call.id, call.method()), (2, 3));
        server.ok(2, b"");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 1, serve, |mut client| {
        drop(client.start(1, b"").unwrap());
        // Cancelled before it was sent: nobody hears of it.
        drop(client.start(2, b"").unwrap());
        let next = client.start(3, b"").unwrap();
        assert_eq!(client.in_flight(), 1);
        next.wait(&mut client).unwrap();
    });
}

#[test]
fn a_call_that_times_out_is_cancelled() {
    let serve = |mut server: Server| {
        let call = server.call();
        assert!((1..=20_000).contains(&call.timeout_us()), "{}", call.timeout_us());
        assert_eq!(server.frame().unwrap().type_id, TYPE_ID_CANCEL);
        // Too late.
        server.ok(1, b"");
        let call = server.call();
        assert_eq!((call.id, call.timeout_us()), (2, 0));
        server.ok(2, b"");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 1, serve, |mut client| {
        let error = client.call_with(1, b"", &CallOptions::new().timeout(Duration::from_millis(20))).unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TimedOut), true));
        assert!(error.is_timed_out());
        client.call_with(1, b"", &CallOptions::new().timeout(Duration::MAX)).unwrap();
        let error = client.call_with(1, b"", &CallOptions::new().timeout(Duration::ZERO)).unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TimedOut), false));
    });
}

#[test]
fn waiting_for_a_while_leaves_the_call_alone() {
    let serve = |mut server: Server| {
        server.call();
        assert_eq!(server.call().method(), 2);
        server.ok(2, b"");
        server.ok(1, b"late");
        assert!(server.frame().is_err());
    };
    with_server(1 << 16, 2, serve, |mut client| {
        let mut pending = client.start(1, b"").unwrap();
        assert!(pending.poll(&mut client).is_pending());
        assert!(pending.wait_timeout(&mut client, Duration::from_millis(2)).is_pending());
        client.call(2, b"").unwrap();
        match pending.wait_timeout(&mut client, LONG) {
            Poll::Ready(reply) => assert_eq!(reply.unwrap().body(), b"late"),
            Poll::Pending => panic!("no reply"),
        }
        let error = pending.wait(&mut client).unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::InvalidArgument));
    });
}

#[test]
fn both_rings_full_is_no_deadlock() {
    const CALLS: usize = 400;
    // Each reply is as long as its request, and several times what both rings hold is under way.
    let serve = |mut server: Server| {
        let mut parked = std::collections::VecDeque::new();
        let mut answered = 0;
        while answered < CALLS {
            if let Some(frame) = server.try_frame() {
                assert_eq!(frame.type_id, TYPE_ID_CALL);
                parked.push_back((frame.id, reply(0, 0, 0, b"", frame.body())));
            }
            if let Some((id, payload)) = parked.front()
                && server.try_send(TYPE_ID_REPLY, *id, payload).is_ok()
            {
                parked.pop_front();
                answered += 1;
            }
        }
        assert!(server.frame().is_err());
    };
    with_server(4096, 1000, serve, |mut client| {
        let pending: Vec<_> = (0..CALLS).map(|i| client.start(1, &[i as u8; 1000]).unwrap()).collect();
        // The replies are taken at the end: all of them are kept meanwhile, by a limit that allows it.
        for (i, pending) in pending.into_iter().enumerate() {
            match pending.wait(&mut client) {
                Ok(reply) => assert_eq!(reply.body(), [i as u8; 1000]),
                Err(error) => assert_eq!(error.kind(), Some(ErrorKind::TooLarge), "{error}"),
            }
        }
    });
}
