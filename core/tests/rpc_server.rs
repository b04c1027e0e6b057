//! A server of RPC: its kinds of handlers, against the library's client and against one by hand.

mod support;

use ramway::facts::{METHOD_DESCRIBE, METHOD_PING};
use ramway::rpc::{CallOptions, Client, Fault, Server, ServerBuilder, Status};
use ramway::{ErrorKind, WaitPolicy};
use std::sync::mpsc;
use std::time::Duration;
use support::caller::Caller;
use support::{Dir, LONG, eventually};

/// Runs a server on a thread while `work` runs, then shuts it down.
fn with_server(
    options: impl FnOnce(ServerBuilder) -> ServerBuilder,
    methods: impl FnOnce(&mut Server),
    work: impl FnOnce(&str),
) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = options(Server::builder(&path)).bind().unwrap();
    methods(&mut server);
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.run());
    work(&path);
    stopper.shutdown(Duration::ZERO);
    serving.join().unwrap().unwrap();
}

fn echo(server: &mut Server) {
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
}

#[test]
fn an_inline_handler_reads_and_writes_in_place() {
    for policy in [WaitPolicy::Hybrid, WaitPolicy::Block, WaitPolicy::Spin] {
        with_server(
            |server| server.wait_policy(policy),
            echo,
            |path| {
                let mut client = Client::connect(path).unwrap();
                for i in 0..1000u32 {
                    assert_eq!(client.call(7, &i.to_le_bytes()).unwrap().body(), i.to_le_bytes());
                }
                let long = vec![1; client.max_request_len()];
                assert_eq!(client.call(7, &long).unwrap().body(), long);
                client.ping().unwrap();
            },
        );
    }
}

#[test]
fn a_handler_replies_with_bytes_metadata_and_faults() {
    let methods = |server: &mut Server| {
        server.method(1, |_| Ok(())).unwrap();
        server.method(2, |request| Ok(request.body().to_vec())).unwrap();
        server
            .method(3, |request| {
                request.set_reply_meta(request.meta());
                Ok(request.write_with(100, |to| {
                    to[..3].copy_from_slice(b"abc");
                    3
                }))
            })
            .unwrap();
        server
            .method(4, |request| {
                let written = request.write(b"with metadata that comes after it");
                request.set_reply_meta(b"later");
                Ok(written)
            })
            .unwrap();
        server
            .method("Fails", |request| {
                let _ = request.write(b"never sent");
                Err::<(), _>(Fault::new(42, "no such key"))
            })
            .unwrap();
        server.method("Panics", |_| -> Result<(), Fault> { panic!("on purpose") }).unwrap();
        server.pool(5, |request| Ok(request.write(request.body()))).unwrap();
        server.pool(6, |_| -> Result<&str, Fault> { panic!("in the pool") }).unwrap();
    };
    with_server(
        |server| server,
        methods,
        |path| {
            let mut client = Client::connect(path).unwrap();
            assert_eq!(client.call(1, b"x").unwrap().body(), b"");
            assert_eq!(client.call(2, b"x").unwrap().body(), b"x");
            let traced = CallOptions::new().meta(b"a trace of more than sixteen bytes");
            let reply = client.call_with(3, b"x", &traced).unwrap();
            assert_eq!((reply.body(), reply.meta()), (&b"abc"[..], &b"a trace of more than sixteen bytes"[..]));
            let reply = client.call(4, b"x").unwrap();
            assert_eq!((reply.body(), reply.meta()), (&b"with metadata that comes after it"[..], &b"later"[..]));
            let error = client.call(ramway::rpc::method_id("Fails"), b"x").unwrap_err();
            assert_eq!(
                (error.status(), error.code(), error.text()),
                (Some(Status::Application), 42, "no such key".into())
            );
            let error = client.call(ramway::rpc::method_id("Panics"), b"x").unwrap_err();
            assert_eq!((error.status(), error.text()), (Some(Status::HandlerFailed), "on purpose".into()));
            assert_eq!(client.call(5, b"pooled").unwrap().body(), b"pooled");
            let error = client.call(6, b"x").unwrap_err();
            assert_eq!((error.status(), error.text()), (Some(Status::HandlerFailed), "in the pool".into()));
            let error = client.call(99, b"x").unwrap_err();
            assert_eq!((error.status(), error.may_have_run()), (Some(Status::NoSuchMethod), false));
            let names: Vec<_> =
                client.describe().unwrap().into_iter().map(|method| (method.number, method.name)).collect();
            assert_eq!(names.len(), 8);
            assert!(
                names.contains(&(7 - 1, None))
                    && names.contains(&(ramway::rpc::method_id("Fails"), Some("Fails".into())))
            );
        },
    );
}

#[test]
fn a_deferred_call_is_answered_from_another_thread() {
    let (calls, work) = mpsc::channel::<ramway::rpc::Call>();
    let worker = std::thread::spawn(move || {
        // Held until the third is there: then in the other order.
        let mut held: Vec<_> = work.iter().take(3).collect();
        while let Some(call) = held.pop() {
            let reply = call.body().to_vec();
            call.reply(reply);
        }
        drop(work.recv().unwrap());
        work.recv().unwrap().fail(Fault::new(3, "later"));
        work.recv().unwrap().fail_unexpectedly("oh");
    });
    let methods = |server: &mut Server| server.deferred(1, move |call| calls.send(call).unwrap()).unwrap();
    with_server(
        |server| server,
        methods,
        |path| {
            let mut client = Caller::connect(path);
            for body in [b"1", b"2", b"3"] {
                client.call(1, body);
            }
            let replies = [client.reply(), client.reply(), client.reply()];
            assert_eq!(
                replies.each_ref().map(|reply| (reply.id(), reply.body())),
                [(3, &b"3"[..]), (2, &b"2"[..]), (1, &b"1"[..])]
            );
            for (status, code) in [(Status::HandlerFailed, 0), (Status::Application, 3), (Status::HandlerFailed, 0)] {
                client.call(1, b"");
                let reply = client.reply();
                assert_eq!((reply.status(), reply.code()), (status as u32, code));
            }
        },
    );
    worker.join().unwrap();
}

fn numbers(server: &mut Server) {
    let count = |request: &ramway::rpc::Request<'_>| -> Result<_, Fault> {
        let n = u32::from_le_bytes(request.body().try_into().map_err(|_| Fault::new(1, "expected 4 bytes"))?);
        Ok((0..n).map(|i| if i == 1000 { Err(Fault::new(9, "too many")) } else { Ok(i.to_le_bytes()) }))
    };
    server.stream(1, count).unwrap();
    server.pool_stream(2, count).unwrap();
    server
        .deferred(3, move |mut call| {
            std::thread::spawn(move || {
                let n = u32::from_le_bytes(call.body().try_into().unwrap());
                for i in 0..n {
                    if call.send(i.to_le_bytes()).is_err() {
                        return;
                    }
                }
                call.finish();
            });
        })
        .unwrap();
}

#[test]
fn streams_have_all_elements_in_order() {
    with_server(
        |server| server,
        numbers,
        |path| {
            let mut client = Client::connect(path).unwrap();
            for method in 1..=3 {
                for (count, window) in [(0u32, 1), (1, 1), (500, 1), (500, 16), (500, 1000)] {
                    let options = CallOptions::new().window(window);
                    let mut stream = client.stream_with(method, &count.to_le_bytes(), &options).unwrap();
                    let got: Vec<u32> = stream
                        .iter(&mut client)
                        .map(|element| u32::from_le_bytes(element.unwrap().body().try_into().unwrap()))
                        .collect();
                    assert_eq!(got, (0..count).collect::<Vec<_>>(), "method {method}, window {window}");
                }
            }
            for method in 1..=2 {
                let mut stream = client.stream(method, &2000u32.to_le_bytes()).unwrap();
                let all: Vec<_> = stream.iter(&mut client).collect();
                assert_eq!(all.len(), 1001);
                assert_eq!(all[1000].as_ref().unwrap_err().code(), 9);
                let error = client.call(method, &1u32.to_le_bytes()).unwrap_err();
                assert_eq!(error.status(), Some(Status::HandlerFailed), "{error}");
            }
            // Everybody is still served.
            client.ping().unwrap();
        },
    );
}

#[test]
fn one_reply_is_the_only_element_of_a_stream() {
    let methods = |server: &mut Server| {
        echo(server);
        server.pool(8, |request| Ok(request.write(request.body()))).unwrap();
        server.deferred(9, |call| call.reply(b"x".to_vec())).unwrap();
    };
    with_server(
        |server| server,
        methods,
        |path| {
            let mut client = Caller::connect(path);
            for method in [7, 8, 9] {
                let id = client.call_with(method, 0, 1, b"x");
                let element = client.reply();
                assert_eq!((element.head(), element.body()), ((id, true, 0), &b"x"[..]));
                let last = client.reply();
                assert_eq!((last.head(), last.body()), ((id, false, 0), &b""[..]));
            }
        },
    );
}

#[test]
fn ping_and_describe_are_the_servers_own() {
    with_server(
        |server| server,
        echo,
        |path| {
            let mut client = Caller::connect(path);
            client.call(METHOD_PING, b"ignored");
            assert_eq!((client.reply().status(), client.bus.try_recv().is_err()), (0, true));
            client.call(METHOD_DESCRIBE, b"");
            assert_eq!(client.reply().body(), b"7\n");
            client.call(METHOD_DESCRIBE + 1, b"");
            assert_eq!(client.reply().status(), Status::NoSuchMethod as u32);
        },
    );
}

#[test]
fn options_out_of_range_are_refused() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let wrong = [
        Server::builder(&path).max_clients(0),
        Server::builder(&path).max_in_flight(0),
        Server::builder(&path).max_in_flight(1_048_577),
        Server::builder(&path).threads(0),
    ];
    for builder in wrong {
        assert_eq!(builder.bind().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let mut server = Server::bind(&path).unwrap();
    assert_eq!(server.path(), std::path::Path::new(&path));
    echo(&mut server);
    let again = server.method(7, |_| Ok(())).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert_eq!(server.run_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    server.stopper().interrupt();
    assert_eq!(server.run().unwrap_err().kind(), ErrorKind::Interrupted);
    server.shutdown(LONG).unwrap();
    assert_eq!(server.poll().unwrap_err().kind(), ErrorKind::Closed);
    eventually("the name is free", || Server::bind(&path).is_ok());
}
