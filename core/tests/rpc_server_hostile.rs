//! Clients of an RPC server that write what no correct client writes, do not read, or are gone: each hurts itself alone.

mod support;

use ramway::facts::{TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_CREDIT, TYPE_ID_REPLY};
use ramway::ring::raw::WaitLimit;
use ramway::rpc::{Call, Client, Server, Status};
use ramway::{Bus, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use support::caller::{Caller, call};
use support::{Dir, LONG, Peer, eventually};

/// Of methods: 7 replies with the request, 1 is answered never, 2 is a stream that does not end.
fn methods(server: &mut Server, begun: &Arc<AtomicUsize>) -> Arc<std::sync::Mutex<Vec<Call>>> {
    let held = Arc::new(std::sync::Mutex::new(Vec::new()));
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    let (keep, begun) = (held.clone(), begun.clone());
    server
        .deferred(1, move |call| {
            begun.fetch_add(1, Ordering::SeqCst);
            keep.lock().unwrap().push(call);
        })
        .unwrap();
    server.stream(2, |_| Ok((0u64..).map(|n| Ok(n.to_le_bytes())))).unwrap();
    held
}

/// Runs a server, and an honest client that calls all the time beside what `work` does.
fn beside_an_honest_client(max_in_flight: u32, max_bytes: usize, work: impl FnOnce(&str, &AtomicUsize)) {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let builder = Server::builder(&path).capacity(1 << 14).max_in_flight(max_in_flight).max_bytes(max_bytes);
    let mut server = builder.bind().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    let held = methods(&mut server, &begun);
    let (stop, stopper) = (AtomicBool::new(false), server.stopper());
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || server.run());
        let honest = scope.spawn(|| {
            let mut client = Client::connect(&path).unwrap();
            let mut calls = 0u64;
            while !stop.load(Ordering::Relaxed) || calls < 100 {
                assert_eq!(client.call(7, &calls.to_le_bytes()).unwrap().body(), calls.to_le_bytes());
                calls += 1;
            }
        });
        work(&path, &begun);
        stop.store(true, Ordering::Relaxed);
        honest.join().unwrap();
        held.lock().unwrap().clear();
        stopper.shutdown(Duration::ZERO);
        serving.join().unwrap().unwrap();
    });
}

#[test]
fn what_no_correct_client_writes_ends_its_connection_alone() {
    let good = call(7, 0, 0, b"", b"x");
    let with_meta_len = |meta_len: u32| {
        let mut payload = call(7, 0, 0, b"", b"x");
        payload[4..8].copy_from_slice(&meta_len.to_le_bytes());
        payload
    };
    // What is sent after a call 1 of method 1, which is one reply that never comes, and a call 2, a stream.
    let wrong: Vec<(&str, u32, u64, Vec<u8>)> = vec![
        ("an id is left out", TYPE_ID_CALL, 4, good.clone()),
        ("an id comes again", TYPE_ID_CALL, 2, good.clone()),
        ("an id of 0", TYPE_ID_CALL, 0, good.clone()),
        ("the last of all ids", TYPE_ID_CALL, u64::MAX, good.clone()),
        ("no payload", TYPE_ID_CALL, 3, Vec::new()),
        ("a part of a header", TYPE_ID_CALL, 3, good[..15].to_vec()),
        ("metadata that are not there", TYPE_ID_CALL, 3, with_meta_len(2)),
        ("more metadata than memory", TYPE_ID_CALL, 3, with_meta_len(u32::MAX)),
        ("a CANCEL with a payload", TYPE_ID_CANCEL, 1, vec![0; 4]),
        ("a CANCEL of what was never called", TYPE_ID_CANCEL, 3, Vec::new()),
        ("a CANCEL of call 0", TYPE_ID_CANCEL, 0, Vec::new()),
        ("a CREDIT of 0", TYPE_ID_CREDIT, 2, vec![0; 4]),
        ("a CREDIT of 3 bytes", TYPE_ID_CREDIT, 2, vec![1; 3]),
        ("a CREDIT of 8 bytes", TYPE_ID_CREDIT, 2, vec![1; 8]),
        ("a CREDIT for one reply", TYPE_ID_CREDIT, 1, vec![1, 0, 0, 0]),
        ("a CREDIT for what was never called", TYPE_ID_CREDIT, 9, vec![1, 0, 0, 0]),
        ("a REPLY", TYPE_ID_REPLY, 1, vec![0; 16]),
        ("a frame of Ramway's that is not RPC's", TYPE_ID_CALL + 8, 3, good.clone()),
        ("a plain message", 7, 3, good.clone()),
    ];
    beside_an_honest_client(64, 1 << 16, |path, _| {
        for (what, type_id, id, payload) in wrong {
            let mut caller = Caller::connect(path);
            caller.call(1, b"");
            caller.call_with(2, 0, 1, b"");
            assert_eq!(caller.reply().head(), (2, true, 0), "{what}");
            caller.send(type_id, id, &payload, WaitLimit::For(LONG)).unwrap();
            assert_eq!(caller.end(), ErrorKind::PeerDead, "{what}: it has calls that may have run");
        }
        let mut caller = Caller::connect(path);
        caller.send(TYPE_ID_CALL, 2, &good, WaitLimit::For(LONG)).unwrap();
        assert_eq!(caller.end(), ErrorKind::Closed, "none of its calls was run");
    });
}

#[test]
fn a_plain_client_is_refused() {
    beside_an_honest_client(64, 1 << 16, |path, _| {
        let refused = Bus::connector(path).timeout(LONG).connect().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AbiMismatch, "{refused}");
    });
}

#[test]
fn any_number_of_open_calls_begins_only_as_many_as_are_allowed() {
    const CALLS: u64 = 50_000;
    beside_an_honest_client(4, 1 << 16, |path, begun| {
        let mut caller = Caller::connect(path);
        let mut overloaded = 0;
        // It reads only when nothing more fits.
        while caller.last < CALLS {
            if !caller.try_call(1, 0, b"never answered") {
                let reply = caller.reply();
                assert_eq!(reply.status(), Status::Overloaded as u32);
                overloaded += 1;
            }
        }
        while overloaded < CALLS - 4 {
            assert_eq!(caller.reply().status(), Status::Overloaded as u32);
            overloaded += 1;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 4);
        // Cancelling frees no place: the handlers have not ended.
        (1..=4).for_each(|id| caller.cancel(id));
        let id = caller.call(1, b"");
        assert_eq!(caller.reply().head(), (id, false, Status::Overloaded as u32));
        assert_eq!(begun.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn one_that_never_reads_its_replies_stops_itself_and_loses_nothing() {
    beside_an_honest_client(1000, 1 << 14, |path, _| {
        let mut caller = Caller::connect(path);
        // The ring fills up, then replies are parked until `max_bytes`, then they are too large, and the server reads on, as far as
        // calls may be in flight.
        let body = [7; 500];
        for _ in 0..1000 {
            caller.call(7, &body);
        }
        // Now requests stay where they are, until that ring is full too.
        eventually("both rings are full", || !caller.try_call(7, 0, &body));
        let mut open: std::collections::BTreeSet<u64> = (1..=caller.last).collect();
        let mut replies = [0; 9];
        while !open.is_empty() {
            let reply = caller.reply();
            assert!(open.remove(&reply.id()), "a second final REPLY");
            replies[reply.status() as usize] += 1;
            if reply.status() == 0 {
                assert_eq!(reply.body(), body);
            }
        }
        assert!(replies[Status::Ok as usize] > 30 && replies[Status::ReplyTooLarge as usize] > 0, "{replies:?}");
        let id = caller.call(7, b"still there");
        assert_eq!((caller.reply().body(), id), (&b"still there"[..], caller.last));
    });
}

#[test]
fn a_stream_that_is_not_read_stops_itself_alone() {
    beside_an_honest_client(16, 1 << 16, |path, _| {
        let mut caller = Caller::connect(path);
        let stream = caller.call_with(2, 0, u32::MAX, b"");
        // The ring is full of its elements, and one is parked: the server reads on.
        eventually("the ring is full", || {
            let receiver = caller.bus.receiver().unwrap();
            receiver.len() + 64 > receiver.capacity()
        });
        caller.credit(stream, u32::MAX);
        caller.cancel(stream);
        let id = caller.call(7, b"after it");
        let mut expected = 0u64;
        let mut finals = Vec::new();
        while finals.len() < 2 {
            let reply = caller.reply();
            if reply.is_element() {
                assert_eq!((reply.id(), reply.body()), (stream, &expected.to_le_bytes()[..]));
                expected += 1;
            } else {
                finals.push((reply.id(), reply.status()));
            }
        }
        finals.sort();
        assert_eq!(finals, [(stream, Status::Cancelled as u32), (id, 0)]);
    });
}

#[test]
fn cancels_and_credits_of_calls_that_have_ended_are_dropped() {
    beside_an_honest_client(16, 1 << 16, |path, _| {
        let mut caller = Caller::connect(path);
        for _ in 0..100 {
            let id = caller.call(7, b"x");
            assert_eq!(caller.reply().id(), id);
            (0..10).for_each(|_| caller.cancel(id));
            caller.credit(id, 1);
        }
        let id = caller.call(7, b"x");
        assert_eq!(caller.reply().head(), (id, false, 0));
    });
}

#[test]
fn helper() {
    let Some(role) = support::helper_role() else { return };
    let mut client = Client::connect(&role[1]).unwrap();
    let calls: Vec<_> = (0..3).map(|_| client.start(1, b"").unwrap()).collect();
    client.ping().unwrap();
    support::say("called");
    support::listen();
    drop(calls);
}

#[test]
fn the_calls_of_a_client_that_is_killed_are_cancelled_and_its_place_is_free_when_they_have_ended() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = Server::builder(&path).max_clients(1).bind().unwrap();
    let (calls, held) = mpsc::channel::<Call>();
    server.deferred(1, move |call| calls.send(call).unwrap()).unwrap();
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.run());
    let mut peer = Peer::start(&["client", &path]);
    peer.expect("called");
    let held: Vec<_> = held.iter().take(3).collect();
    assert!(held.iter().all(|call| !call.is_cancelled() && call.peer().pid == Some(peer.pid())));
    let (tell, told) = mpsc::channel();
    held[0].cancellation().on_cancel(move || tell.send(()).unwrap());
    peer.kill();
    told.recv_timeout(LONG).unwrap();
    eventually("all are cancelled", || held.iter().all(Call::is_cancelled));
    let busy = Client::connector(&path).timeout(Duration::from_millis(1)).connect().unwrap_err();
    assert!(matches!(busy.kind(), ErrorKind::Busy | ErrorKind::TimedOut), "{busy}");
    drop(held);
    let mut next = Client::connector(&path).timeout(LONG).connect().unwrap();
    next.ping().unwrap();
    drop(next);
    stopper.shutdown(Duration::ZERO);
    serving.join().unwrap().unwrap();
}

#[test]
fn in_a_forks_child_there_is_no_server() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = Server::bind(&path).unwrap();
    let (calls, held) = mpsc::channel::<Call>();
    server.deferred(1, move |call| calls.send(call).unwrap()).unwrap();
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    let mut caller = None;
    let mut call = None;
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let mut caller = Caller::connect(&path);
            caller.call(1, b"");
            caller
        });
        while call.is_none() {
            let _ = server.run_timeout(Duration::from_millis(1));
            call = held.try_recv().ok();
        }
        caller = Some(connecting.join().unwrap());
    });
    let (mut caller, call) = (caller.unwrap(), call.unwrap());
    // SAFETY: the child makes calls of the library that take no lock of another thread, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let detached = |outcome: ramway::Result<()>| outcome.is_err_and(|e| e.kind() == ErrorKind::Detached);
            let right = detached(server.run()) && detached(server.poll()) && detached(server.shutdown(Duration::ZERO));
            call.reply(b"from the child".to_vec());
            drop(server);
            // SAFETY: nothing of the test harness runs in the child.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        pid => {
            let mut status = 0;
            // SAFETY: our own child.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0);
        }
    }
    call.reply(b"from the parent".to_vec());
    let id = caller.call(7, b"x");
    while server.run_timeout(Duration::from_millis(1)).is_err() && caller.bus.receiver().unwrap().len() < 64 {}
    assert_eq!(caller.reply().body(), b"from the parent");
    assert_eq!(caller.reply().id(), id);
}
