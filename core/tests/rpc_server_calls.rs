//! How a server of RPC ends calls: cancelled, late, too many, too large, while it drains; and in which order it serves.

mod support;

use ramway::ErrorKind;
use ramway::facts::METHOD_PING;
use ramway::rpc::{Call, Client, Fault, Server, ServerBuilder, Status, Stopper};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::caller::Caller;
use support::{Dir, LONG, eventually};

struct Running {
    dir: Dir,
    stopper: Stopper,
    thread: Option<std::thread::JoinHandle<ramway::Result<()>>>,
}

impl Running {
    fn start(options: impl FnOnce(ServerBuilder) -> ServerBuilder, methods: impl FnOnce(&mut Server)) -> Self {
        let dir = Dir::new();
        let mut server = options(Server::builder(dir.at("rpc.sock"))).bind().unwrap();
        methods(&mut server);
        let stopper = server.stopper();
        Self { dir, stopper, thread: Some(std::thread::spawn(move || server.run())) }
    }

    fn caller(&self) -> Caller {
        Caller::connect(self.dir.at("rpc.sock"))
    }

    /// Waits until it has shut down.
    fn ends(mut self) {
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.shutdown(Duration::ZERO);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Method 1 hands its calls over, 7 replies with the request.
fn held(server: &mut Server) -> Receiver<Call> {
    let (calls, held) = mpsc::channel();
    server.deferred(1, move |call| drop(calls.send(call))).unwrap();
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    held
}

/// Method 2 of the pool says that it has begun, and goes on when it is told to.
struct Gate {
    begun: Receiver<(u64, Vec<u8>)>,
    go_on: Sender<()>,
}

fn gate(server: &mut Server) -> Gate {
    let (say, begun) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    server
        .pool(2, move |request| {
            say.send((request.peer().id, request.body().to_vec())).unwrap();
            // One after another: any of those that wait.
            let _ = wait.lock().unwrap().recv();
            Ok(())
        })
        .unwrap();
    Gate { begun, go_on }
}

impl Gate {
    fn begun(&self) -> (u64, Vec<u8>) {
        self.begun.recv_timeout(LONG).unwrap()
    }
}

#[test]
fn a_cancelled_call_ends_when_its_handler_does() {
    let mut calls = None;
    let server = Running::start(|server| server.max_in_flight(1), |server| calls = Some(held(server)));
    let calls = calls.unwrap();
    let mut caller = server.caller();
    let id = caller.call(1, b"");
    let call = calls.recv_timeout(LONG).unwrap();
    caller.cancel(id);
    eventually("it is told to stop", || call.is_cancelled());
    // It runs, so it has its place.
    let next = caller.call(7, b"");
    assert_eq!(caller.reply().head(), (next, false, Status::Overloaded as u32));
    call.reply(b"too late".to_vec());
    let last = caller.reply();
    assert_eq!((last.head(), last.body()), ((id, false, Status::Cancelled as u32), &b""[..]));
    let next = caller.call(7, b"");
    assert_eq!(caller.reply().head(), (next, false, 0));
}

#[test]
fn what_waits_for_the_pool_ends_without_running() {
    let mut gates = None;
    let server = Running::start(|server| server.threads(1), |server| gates = Some(gate(server)));
    let gate = gates.unwrap();
    let mut caller = server.caller();
    let runs = caller.call(2, b"runs");
    assert_eq!(gate.begun().1, b"runs");
    let cancelled = caller.call(2, b"cancelled");
    let late = caller.call_with(2, 1, 0, b"late");
    caller.cancel(cancelled);
    let mut replies = [caller.reply().head(), caller.reply().head()];
    replies.sort();
    assert_eq!(replies, [(cancelled, false, Status::Cancelled as u32), (late, false, Status::TimedOut as u32)]);
    let long = caller.call_with(2, u32::MAX, 0, b"at the end of time");
    gate.go_on.send(()).unwrap();
    assert_eq!(caller.reply().head(), (runs, false, 0));
    assert_eq!(gate.begun().1, b"at the end of time", "the others are not run");
    gate.go_on.send(()).unwrap();
    assert_eq!(caller.reply().head(), (long, false, 0));
}

#[test]
fn a_call_whose_time_is_over_while_it_runs_is_cancelled() {
    let mut calls = None;
    let server = Running::start(
        |server| server,
        |server| {
            calls = Some(held(server));
            server
                .method(3, |request| {
                    assert!(request.remaining().unwrap() <= Duration::from_millis(1));
                    while !request.is_cancelled() {
                        std::hint::spin_loop();
                    }
                    Ok("whatever")
                })
                .unwrap();
        },
    );
    let calls = calls.unwrap();
    let mut caller = server.caller();
    let id = caller.call_with(3, 1000, 0, b"inline");
    assert_eq!(caller.reply().head(), (id, false, Status::Cancelled as u32));
    let id = caller.call_with(1, 1000, 0, b"deferred");
    let call = calls.recv_timeout(LONG).unwrap();
    let (tell, told) = mpsc::channel();
    call.cancellation().on_cancel(move || tell.send(()).unwrap());
    told.recv_timeout(LONG).unwrap();
    assert_eq!(call.remaining(), Some(Duration::ZERO));
    call.reply(b"whatever".to_vec());
    assert_eq!(caller.reply().head(), (id, false, Status::Cancelled as u32));
}

#[test]
fn bytes_beyond_the_limit_are_refused() {
    let mut calls = None;
    let server = Running::start(
        |server| server.capacity(1 << 14).max_bytes(1000),
        |server| {
            calls = Some(held(server));
            server.method(4, |_| Ok(vec![1; 1 << 14])).unwrap();
            server.pool(5, |_| Ok(vec![1; 1 << 14])).unwrap();
            server.stream(6, |_| Ok([Ok(vec![1; 10]), Ok(vec![1; 1 << 14]), Ok(vec![1; 10])])).unwrap();
            server
                .method(8, |request| Ok(request.write_with(usize::MAX, |_| unreachable!("it can never be sent"))))
                .unwrap();
        },
    );
    let calls = calls.unwrap();
    let mut caller = server.caller();
    let first = caller.call(1, &[0; 600]);
    let second = caller.call(1, &[0; 401]);
    assert_eq!(caller.reply().head(), (second, false, Status::Overloaded as u32));
    // An inline handler needs no copy.
    let inline = caller.call(7, &[0; 5000]);
    assert_eq!(caller.reply().head(), (inline, false, 0));
    drop(calls.recv_timeout(LONG).unwrap());
    assert_eq!(caller.reply().head(), (first, false, Status::HandlerFailed as u32));
    let third = caller.call(1, &[0; 1000]);
    drop(calls.recv_timeout(LONG).unwrap());
    assert_eq!(caller.reply().head(), (third, false, Status::HandlerFailed as u32));
    for method in [4, 5, 8] {
        let id = caller.call(method, b"");
        assert_eq!(caller.reply().head(), (id, false, Status::ReplyTooLarge as u32));
    }
    let id = caller.call_with(6, 0, 9, b"");
    assert_eq!(caller.reply().head(), (id, true, 0));
    assert_eq!(caller.reply().head(), (id, false, Status::ReplyTooLarge as u32));
}

#[test]
fn a_stream_that_waits_for_credit_holds_no_thread_and_ends_when_it_is_cancelled() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let server = Running::start(
        |server| server.threads(1),
        move |server| {
            server
                .pool_stream(1, move |_| {
                    let counted = counted.clone();
                    Ok((0u32..).map(move |n| {
                        counted.fetch_add(1, Ordering::SeqCst);
                        Ok(n.to_le_bytes())
                    }))
                })
                .unwrap();
            server.pool(2, |_| Ok("free")).unwrap();
        },
    );
    let mut caller = server.caller();
    let stream = caller.call_with(1, 0, 2, b"");
    for n in 0..2u32 {
        let element = caller.reply();
        assert_eq!((element.head(), element.body()), ((stream, true, 0), &n.to_le_bytes()[..]));
    }
    caller.call(2, b"");
    assert_eq!(caller.reply().body(), b"free", "the pool's one thread");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "not asked for more than there is credit");
    caller.credit(stream, 1);
    assert_eq!(caller.reply().body(), 2u32.to_le_bytes());
    caller.cancel(stream);
    assert_eq!(caller.reply().head(), (stream, false, Status::Cancelled as u32));
    caller.credit(stream, 1);
    caller.call(2, b"");
    assert_eq!(caller.reply().body(), b"free");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[test]
fn a_deferred_stream_waits_for_credit() {
    let mut calls = None;
    let server = Running::start(|server| server, |server| calls = Some(held(server)));
    let calls = calls.unwrap();
    let mut caller = server.caller();
    let id = caller.call_with(1, 0, 1, b"");
    let mut call = calls.recv_timeout(LONG).unwrap();
    assert!(call.is_stream());
    call.try_send(b"one".to_vec()).unwrap();
    assert_eq!(caller.reply().body(), b"one");
    caller.call(METHOD_PING, b"");
    caller.reply();
    assert_eq!(call.try_send(b"two".to_vec()).unwrap_err().kind(), ErrorKind::Full);
    let (tell, told) = mpsc::channel();
    call.on_change(move || tell.send(()).unwrap());
    caller.credit(id, 1);
    told.recv_timeout(LONG).unwrap();
    call.set_reply_meta(b"meta");
    call.try_send(b"two".to_vec()).unwrap();
    let two = caller.reply();
    assert_eq!((two.body(), two.meta()), (&b"two"[..], &b"meta"[..]));
    // Its reply is the last element, and waits for credit too.
    call.reply(b"three".to_vec());
    caller.call(METHOD_PING, b"");
    assert_eq!(caller.reply().id(), caller.last);
    caller.credit(id, 5);
    assert_eq!((caller.reply().head(), caller.reply().head()), ((id, true, 0), (id, false, 0)));

    caller.call_with(1, 0, 1, b"");
    let mut call = calls.recv_timeout(LONG).unwrap();
    caller.cancel(caller.last);
    eventually("it is cancelled", || call.is_cancelled());
    assert_eq!(call.try_send(b"x".to_vec()).unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(call.send(b"x".to_vec()).unwrap_err().kind(), ErrorKind::Interrupted);
    drop(call);
    assert_eq!(caller.reply().status(), Status::Cancelled as u32);
    caller.call(1, b"");
    let mut call = calls.recv_timeout(LONG).unwrap();
    assert_eq!(call.try_send(b"x".to_vec()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_pool_serves_one_client_after_another() {
    let mut gates = None;
    let server = Running::start(|server| server.threads(2), |server| gates = Some(gate(server)));
    let gate = gates.unwrap();
    let (mut one, mut two) = (server.caller(), server.caller());
    for _ in 0..10 {
        one.call(2, b"one");
    }
    let first = gate.begun();
    assert_eq!(gate.begun(), first, "alone it has all threads");
    two.call(2, b"two");
    two.call(METHOD_PING, b"");
    assert_eq!(two.reply().id(), 2, "its call waits");
    gate.go_on.send(()).unwrap();
    assert_eq!(gate.begun().1, b"two", "before the eight that wait longer");
    drop(gate.go_on);
}

#[test]
fn a_round_takes_a_bounded_number_of_frames_from_one_client() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = Server::bind(&path).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    server
        .method(1, move |request| {
            seen.lock().unwrap().push(request.peer().id);
            Ok(())
        })
        .unwrap();
    let ((make, wait), (made, ready)) = (mpsc::channel::<()>(), mpsc::channel());
    let client = std::thread::spawn(move || {
        let (mut one, mut two) = (Caller::connect(&path), Caller::connect(&path));
        wait.recv().unwrap();
        for _ in 0..500 {
            one.call(1, b"");
        }
        two.call(1, b"");
        made.send(()).unwrap();
        assert_eq!(two.reply().head(), (1, false, 0));
        // Not gone before all of its calls are served.
        one
    });
    while server.clients() < 2 {
        let _ = server.run_timeout(Duration::ZERO);
    }
    // No call is taken before all have been made.
    make.send(()).unwrap();
    ready.recv_timeout(LONG).unwrap();
    while order.lock().unwrap().len() < 501 {
        let _ = server.run_timeout(Duration::from_millis(1));
    }
    let order = order.lock().unwrap();
    assert_eq!((order[0], order.iter().position(|id| *id != order[0])), (1, Some(64)));
    client.join().unwrap();
}

#[test]
fn draining_answers_what_was_taken_and_refuses_the_rest() {
    let mut calls = None;
    let server = Running::start(|server| server, |server| calls = Some(held(server)));
    let calls = calls.unwrap();
    let (mut caller, mut idle) = (server.caller(), server.caller());
    let id = caller.call(1, b"");
    let call = calls.recv_timeout(LONG).unwrap();
    idle.call(7, b"");
    idle.reply();
    server.stopper.shutdown(LONG);
    assert_eq!(idle.end(), ErrorKind::Closed, "none of its calls is without a reply");
    let refused = caller.call(7, b"");
    assert_eq!(caller.reply().head(), (refused, false, Status::Draining as u32));
    let ping = caller.call(METHOD_PING, b"");
    assert_eq!(caller.reply().head(), (ping, false, 0));
    call.reply(b"in time".to_vec());
    let last = caller.reply();
    assert_eq!((last.head(), last.body()), ((id, false, 0), &b"in time"[..]));
    assert_eq!(caller.end(), ErrorKind::Closed);
    server.ends();
}

#[test]
fn what_does_not_end_in_time_is_cancelled_and_who_does_not_read_is_abandoned() {
    let mut calls = None;
    let server = Running::start(|server| server.capacity(1 << 14), |server| calls = Some(held(server)));
    let calls = calls.unwrap();
    let (mut waits, mut hangs, mut deaf) = (server.caller(), server.caller(), server.caller());
    let id = waits.call(1, b"");
    let call = calls.recv_timeout(LONG).unwrap();
    hangs.call(1, b"");
    let hung = calls.recv_timeout(LONG).unwrap();
    // Its replies are longer than its ring.
    for _ in 0..10 {
        deaf.call(7, &[0; 3000]);
    }
    eventually("they are made", || deaf.bus.sender().unwrap().is_empty());
    let (tell, told) = mpsc::channel();
    call.cancellation().on_cancel(move || tell.send(()).unwrap());
    let answers = std::thread::spawn(move || {
        told.recv_timeout(LONG).unwrap();
        drop(call);
    });
    server.stopper.shutdown(Duration::from_millis(10));
    assert_eq!(waits.reply().head(), (id, false, Status::Cancelled as u32));
    assert_eq!(waits.end(), ErrorKind::Closed);
    assert_eq!(hangs.end(), ErrorKind::PeerDead, "its call may have run");
    assert_eq!(deaf.end(), ErrorKind::PeerDead, "some replies were never sent");
    server.ends();
    answers.join().unwrap();
    assert!(hung.is_cancelled());
    hung.reply(b"to nobody".to_vec());
}

#[test]
fn a_server_that_is_dropped_abandons_those_who_wait_for_a_reply() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = Server::bind(&path).unwrap();
    let calls = held(&mut server);
    let connecting = std::thread::spawn(move || {
        let (mut one, two) = (Caller::connect(&path), Caller::connect(&path));
        one.call(1, b"");
        (one, two)
    });
    let mut call = None;
    while call.is_none() || server.clients() < 2 {
        let _ = server.run_timeout(Duration::from_millis(1));
        call = call.or_else(|| calls.try_recv().ok());
    }
    let (mut one, mut two) = connecting.join().unwrap();
    drop(server);
    assert_eq!((one.end(), two.end()), (ErrorKind::PeerDead, ErrorKind::Closed));
    assert!(call.unwrap().is_cancelled());
}

#[test]
fn an_event_loop_serves_by_one_descriptor() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = Server::builder(&path).capacity(1 << 14).bind().unwrap();
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    server.pool(8, |request| Ok(request.write(request.body()))).unwrap();
    server.stream(9, |_| Ok((0..300u32).map(|n| Ok::<_, Fault>(n.to_le_bytes())))).unwrap();
    let stopper = server.stopper();
    let client = std::thread::spawn(move || {
        let mut client = Client::connect(&path).unwrap();
        for i in 0..200u32 {
            for method in [7, 8] {
                assert_eq!(client.call(method, &i.to_le_bytes()).unwrap().body(), i.to_le_bytes());
            }
        }
        let mut stream = client.stream(9, b"").unwrap();
        assert_eq!(stream.iter(&mut client).map(Result::unwrap).count(), 300);
        drop(client);
        // Replies that wait for room, and a call whose time is over.
        let mut caller = Caller::connect(&path);
        for _ in 0..20 {
            caller.call(7, &[1; 3000]);
        }
        (1..=20).for_each(|id| assert_eq!(caller.reply().head(), (id, false, 0)));
        drop(caller);
        stopper.shutdown(LONG);
    });
    server.descriptor().unwrap();
    loop {
        match server.poll() {
            Err(e) if e.kind() == ErrorKind::Closed => break,
            outcome => outcome.unwrap(),
        }
        let limit = server.due_in().unwrap_or(LONG);
        let limit = rustix::event::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        let fd = server.descriptor().unwrap().as_fd().try_clone_to_owned().unwrap();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let _ = rustix::event::poll(&mut fds, Some(&limit));
    }
    client.join().unwrap();
}
