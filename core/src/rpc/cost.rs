//! What a call costs in instructions: both sides in one thread, by the paths that they take while they poll. Beside other programs time
//! cannot be measured, instructions can:
//!
//! ```sh
//! cargo test --release -p ramway --lib --no-run
//! valgrind --tool=callgrind --toggle-collect='*caller*' target/release/deps/ramway-… --ignored --exact rpc::cost::one
//! ```
//!
//! Each test makes [`ROUNDS`] round trips: divide by that. `*caller*` is the client, `*server_answers*` the server.

use super::client::{CallOptions, Client, RawClient, Request, Taken};
use super::server::Server;
use crate::WaitPolicy;
use std::hint::black_box;
use std::time::Duration;

const ROUNDS: u64 = 10_000;

/// A client, and a server that has taken it.
fn pair(test: &str) -> (RawClient, Server) {
    let path = format!("/dev/shm/ramway-cost-{test}-{}.sock", std::process::id());
    let mut server = Server::bind(&path).unwrap();
    server.set_wait_policy(WaitPolicy::Spin);
    server
        .method(1, |request| {
            let first = request.body().first().copied().unwrap_or(0);
            Ok(request.write_with(32, |to| {
                to.fill(first);
                32
            }))
        })
        .unwrap();
    let connecting = std::thread::spawn(move || Client::connect(path).unwrap().into_raw());
    while server.clients() == 0 {
        let _ = server.run_timeout(Duration::from_millis(1));
    }
    let mut client = connecting.join().unwrap();
    client.set_wait_policy(WaitPolicy::Spin);
    (client, server)
}

/// The two halves of `Client::call`.
#[inline(never)]
fn caller_starts_alone(client: &mut RawClient, body: &[u8]) -> u64 {
    let request = Request { method: 1, body, options: CallOptions::new(), window: 0 };
    client.start_alone(&request).unwrap().unwrap()
}

#[inline(never)]
fn caller_takes_alone(client: &mut RawClient, id: u64) -> u64 {
    client.finish_alone(id).unwrap().body()[0].into()
}

/// The two halves of a call that is one of several.
#[inline(never)]
fn caller_starts(client: &mut RawClient, body: &[u8]) -> u64 {
    client.start(1, body, &CallOptions::new(), false).unwrap()
}

#[inline(never)]
fn caller_takes(client: &mut RawClient, call: u64) -> u64 {
    client.wait(call, None).unwrap();
    match client.take(call) {
        Taken::End(reply) => reply.unwrap().body()[0].into(),
        other => panic!("{other:?}"),
    }
}

#[inline(never)]
fn server_answers(server: &mut Server) {
    assert!(server.answers());
}

#[test]
#[ignore = "for valgrind"]
fn one() {
    let (mut client, mut server) = pair("one");
    let body = black_box([7; 32]);
    for _ in 0..ROUNDS {
        let id = caller_starts_alone(&mut client, &body);
        server_answers(&mut server);
        assert_eq!(caller_takes_alone(&mut client, id), 7);
    }
}

/// 50 at a time, fewer than a server takes in one round.
#[test]
#[ignore = "for valgrind"]
fn many() {
    const UNDER_WAY: u64 = 50;
    let (mut client, mut server) = pair("many");
    let body = black_box([7; 32]);
    let mut calls = Vec::with_capacity(UNDER_WAY as usize);
    for _ in 0..ROUNDS / UNDER_WAY {
        calls.extend((0..UNDER_WAY).map(|_| caller_starts(&mut client, &body)));
        server_answers(&mut server);
        for call in calls.drain(..) {
            assert_eq!(caller_takes(&mut client, call), 7);
        }
    }
}
