//! A client of RPC for tasks, against a server by hand.

mod support;

use futures_util::StreamExt;
use ramway::ErrorKind;
use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL};
use ramway::rpc::{self, CallOptions, tokio::Client};
use std::time::Duration;
use support::rpc::Server;
use support::{Dir, LONG};
use tokio::time::timeout;

/// A server on a thread of its own, and its client, in the current runtime.
fn start(
    capacity: u64,
    max_in_flight: u32,
    serve: impl FnOnce(Server) + Send + 'static,
) -> (Client, std::thread::JoinHandle<()>) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, capacity, max_in_flight);
    let server = std::thread::spawn(move || serve(Server::accept(&listener)));
    // Tasks may take their replies late: more of them wait than rings of this size can hold.
    let client = rpc::Client::connector(&path).max_buffered(1 << 20).connect().unwrap();
    (Client::new(client).unwrap(), server)
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("a wake-up was lost")
}

async fn many_tasks(capacity: u64, max_in_flight: u32) {
    let (client, server) = start(capacity, max_in_flight, Server::echo);
    let tasks: Vec<_> = (0..50u32)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for i in 0..100u32 {
                    let mut body = vec![0; 8 + (i * 37 % 900) as usize];
                    body[..4].copy_from_slice(&task.to_le_bytes());
                    body[4..8].copy_from_slice(&i.to_le_bytes());
                    assert_eq!(in_time(client.call(1, &body)).await.unwrap().body(), body);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(client.in_flight(), 0);
    drop(client);
    server.join().unwrap();
}

#[tokio::test]
async fn many_tasks_of_one_thread_get_their_own_replies() {
    many_tasks(1 << 16, 64).await;
    many_tasks(4096, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_of_many_threads_get_their_own_replies() {
    many_tasks(1 << 16, 64).await;
    many_tasks(4096, 64).await;
}

#[tokio::test]
async fn a_leader_that_is_dropped_leaves_another_one_in_charge() {
    let (client, server) = start(1 << 16, 8, |mut server| {
        let (first, second) = (server.call(), server.call());
        let cancel = server.frame().unwrap();
        assert_eq!((cancel.type_id, cancel.id), (TYPE_ID_CANCEL, first.id));
        server.status(first.id, 4);
        server.ok(second.id, b"second");
        assert!(server.frame().is_err());
    });
    let (mut leader, follower) = (client.start(1, b"").unwrap(), client.start(2, b"").unwrap());
    // It leads from its first poll on.
    assert!(timeout(Duration::from_millis(5), &mut leader).await.is_err());
    let follower = tokio::spawn(follower);
    tokio::task::yield_now().await;
    drop(leader);
    assert_eq!(in_time(follower).await.unwrap().unwrap().body(), b"second");
    drop(client);
    server.join().unwrap();
}

#[tokio::test]
async fn a_call_times_out_and_its_server_is_told() {
    let (client, server) = start(1 << 16, 8, |mut server| {
        let call = server.call();
        let cancel = server.frame().unwrap();
        assert_eq!((cancel.type_id, cancel.id), (TYPE_ID_CANCEL, call.id));
        server.status(call.id, 4);
        let call = server.call();
        server.ok(call.id, b"x");
        assert!(server.frame().is_err());
    });
    let error =
        in_time(client.call_with(1, b"", &CallOptions::new().timeout(Duration::from_millis(20)))).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::TimedOut), true));
    assert_eq!(in_time(client.call(1, b"")).await.unwrap().body(), b"x");
    drop(client);
    server.join().unwrap();
}

#[tokio::test]
async fn a_stream_is_a_stream() {
    let (client, server) = start(1 << 16, 8, |mut server| {
        let stream = server.call();
        for i in 0..4u8 {
            server.element(stream.id, &[i]);
        }
        // Half of the window was taken.
        assert_eq!(server.frame().unwrap().payload, 2u32.to_le_bytes());
        server.element(stream.id, &[4]);
        server.ok(stream.id, b"");
        while server.frame().is_ok() {}
    });
    let stream = client.stream_with(1, b"", &CallOptions::new().window(4)).unwrap();
    let read: Vec<u8> = in_time(stream.map(|element| element.unwrap().body()[0]).collect()).await;
    assert_eq!(read, [0, 1, 2, 3, 4]);
    drop(client);
    server.join().unwrap();
}

#[tokio::test]
async fn the_end_of_the_connection_and_a_close_end_all_calls() {
    let (client, server) = start(1 << 16, 8, |mut server| {
        for _ in 0..5 {
            assert_eq!(server.frame().unwrap().type_id, TYPE_ID_CALL);
        }
    });
    let calls: Vec<_> = (0..5).map(|_| tokio::spawn(client.start(1, b"").unwrap())).collect();
    for call in calls {
        let error = in_time(call).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.may_have_run()), (Some(ErrorKind::Closed), false));
    }
    server.join().unwrap();

    let (client, server) = start(1 << 16, 8, |mut server| while server.frame().is_ok() {});
    let calls: Vec<_> = (0..5).map(|_| tokio::spawn(client.start(1, b"").unwrap())).collect();
    tokio::task::yield_now().await;
    client.close().unwrap();
    for call in calls {
        assert_eq!(in_time(call).await.unwrap().unwrap_err().kind(), Some(ErrorKind::Closed));
    }
    drop(client);
    server.join().unwrap();
}

#[tokio::test]
async fn a_client_is_ready_when_a_place_is_free() {
    let (mut client, server) = start(1 << 16, 1, |mut server| {
        let one = server.call();
        assert!(server.try_frame().is_none());
        server.ok(one.id, b"");
        let two = server.call();
        server.ok(two.id, b"");
        while server.frame().is_ok() {}
    });
    in_time(client.ready()).await.unwrap();
    let one = client.start(1, b"").unwrap();
    // The reply is received by whoever waits for the place.
    in_time(client.ready()).await.unwrap();
    let mut other = client.clone();
    let waits = tokio::spawn(async move { other.ready().await });
    in_time(waits).await.unwrap().unwrap();
    in_time(client.start(1, b"").unwrap()).await.unwrap();
    in_time(one).await.unwrap();
    drop(client);
    server.join().unwrap();
}

#[cfg(feature = "tower")]
#[tokio::test]
async fn a_client_is_a_service() {
    use ramway::rpc::tokio::Request;
    use tower_service::Service;

    let (mut client, server) = start(1 << 16, 1, Server::echo);
    for i in 0..100u8 {
        in_time(std::future::poll_fn(|cx| Service::poll_ready(&mut client, cx))).await.unwrap();
        let answer = Service::call(&mut client, Request::new(1, [i]));
        assert_eq!(in_time(answer).await.unwrap().body(), [i]);
    }
    let mut request = Request::new(1, *b"x");
    request.timeout = Some(Duration::ZERO);
    assert!(in_time(Service::call(&mut client, request)).await.unwrap_err().is_timed_out());
    drop(client);
    server.join().unwrap();
}
