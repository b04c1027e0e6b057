//! The bus between real processes: connecting, streaming, closing and dying.

mod support;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ramway::{Bus, ErrorKind, Listener};
use support::{Dir, LONG, Peer, argument, descriptors, eventually, helper_role, listen, say, within};

/// Plays a part in another process's test; passes at once when it is not told to.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "echo" => echo(),
        "stream" => stream(),
        "send and stay" => send_and_stay(),
        "fill and stay" => receive_nothing_and_stay(),
        "send one" => send_one(),
        "receive one" => receive_one(),
        "listen and stay" => listen_and_stay(),
        "serve many" => serve_many(),
        "leaks" => leaks(),
        "panic" => panic!("{}", argument()),
        "fork" => fork_in_the_middle(),
        other => panic!("no such role: {other}"),
    }
}

fn echo() {
    let (Some(mut tx), Some(mut rx)) = Bus::listen(argument(), 1 << 16).unwrap().split() else { unreachable!() };
    while let Ok(message) = rx.recv() {
        tx.send(2, &message).unwrap();
    }
    assert_eq!(rx.recv().unwrap_err().kind(), ErrorKind::Closed);
}

fn echo_at(name: &str, dir: &Dir) -> Peer {
    Peer::start_with(&["echo", name], |command| _ = command.env("RAMWAY_DIR", dir.path()))
}

#[test]
fn a_name_connects_two_processes_whichever_starts_first() {
    let dir = Dir::new();
    for connector_first in [false, true] {
        // By path here, by name in the other process: the socket of a name is NAME.sock, and that is a path too.
        let mut other = None;
        if !connector_first {
            other = Some(echo_at("echo.1", &dir));
            eventually("the socket", || dir.names() == ["echo.1", "echo.1.sock"]);
        }
        let path = dir.join("echo.1.sock");
        let connecting = std::thread::spawn(move || Bus::connector(path).timeout(LONG).connect());
        let other = other.unwrap_or_else(|| echo_at("echo.1", &dir));
        let mut bus = connecting.join().unwrap().unwrap();
        assert_eq!(bus.peer_pid(), Some(other.pid()));
        // SAFETY: has no preconditions.
        assert_eq!(bus.peer_uid(), unsafe { libc::geteuid() });
        for size in [0, 1, 1000, 60_000] {
            let question: Vec<u8> = (0..size).map(|i| i as u8).collect();
            bus.send(1, &question).unwrap();
            let answer = bus.recv_timeout(LONG).unwrap();
            assert_eq!((answer.type_id(), &*answer), (2, &question[..]));
        }
        assert!(bus.is_peer_alive());
        drop(bus);
        other.finish();
        assert_eq!(dir.names(), [""; 0], "one peer only: the name is gone");
    }
}

const GIB: usize = 1 << 30;
/// Not a divisor of anything, so that pieces begin all over the ring.
const PIECE: usize = (48 << 10) - 8 * 13;

/// Pieces of noise that no two neighbours share; each also carries its number, so that no order but the right one and
/// no byte but the right one passes. Both sides make the same ones, and compare memory rather than sum it up: that is
/// fast without an optimiser.
fn noise() -> Vec<Vec<u8>> {
    let mut word = 1u64;
    let mut next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    };
    (0..31).map(|_| (0..PIECE / 8).flat_map(|_| next().to_le_bytes()).collect()).collect()
}

fn stream() {
    let pieces = noise();
    let mut bus = Bus::listen(argument(), 256 << 10).unwrap();
    let mut left = GIB;
    for number in 0u64.. {
        let piece = &pieces[number as usize % pieces.len()][..PIECE.min(left)];
        let mut slot = bus.sender().unwrap().reserve(piece.len()).unwrap().with_tag(number);
        slot.copy_from_slice(piece);
        slot[..8].copy_from_slice(&number.to_le_bytes());
        slot.commit(piece.len()).unwrap();
        left -= piece.len();
        if left == 0 {
            break;
        }
    }
}

#[test]
fn a_gibibyte_through_a_small_bus_is_the_same_gibibyte() {
    let dir = Dir::new();
    let other = Peer::start(&["stream", &dir.at("stream")]);
    let mut pieces = noise();
    let mut bus = Bus::connector(dir.join("stream")).timeout(LONG).connect().unwrap();
    let start = Instant::now();
    let mut got = 0;
    let count = pieces.len();
    for number in 0u64.. {
        let message = match bus.recv_timeout(LONG) {
            Ok(message) => message,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                break;
            }
        };
        let piece = &mut pieces[number as usize % count][..message.len()];
        piece[..8].copy_from_slice(&number.to_le_bytes());
        assert!(message.tag() == number && &*message == piece, "piece {number} is not what was sent");
        got += message.len();
    }
    assert_eq!(got, GIB);
    println!("1 GiB through 256 KiB, every byte compared: {:?}", start.elapsed());
    other.finish();
}

/// Sends 100 messages and then neither closes nor ends.
fn send_and_stay() {
    let mut bus = Bus::listen(argument(), 1 << 16).unwrap();
    for i in 0..100u32 {
        bus.send(i, &i.to_le_bytes()).unwrap();
    }
    // One that was never committed.
    let slot = bus.sender().unwrap().reserve(100).unwrap();
    say("sent");
    listen();
    drop(slot);
}

#[test]
fn a_killed_sender_is_noticed_after_all_that_it_sent() {
    let dir = Dir::new();
    let mut other = Peer::start(&["send and stay", &dir.at("s")]);
    let mut bus = Bus::connector(dir.join("s")).timeout(LONG).connect().unwrap();
    assert_eq!(other.hear(), "sent");
    let received = std::thread::spawn(move || {
        for i in 0..100u32 {
            assert_eq!(bus.recv().unwrap().type_id(), i);
        }
        // Blocked from here on.
        let error = bus.recv().unwrap_err();
        let noticed = Instant::now();
        assert_eq!(error.kind(), ErrorKind::PeerDead, "{error}");
        assert_eq!(bus.recv().unwrap_err().kind(), ErrorKind::PeerDead, "an end of a bus is final");
        assert!(!bus.is_peer_alive());
        noticed
    });
    // In the middle of one of the rounds in which a blocked side looks after its peer.
    std::thread::sleep(Duration::from_millis(333));
    let killed = Instant::now();
    other.kill();
    let took = received.join().unwrap() - killed;
    println!("death of the sender noticed by a blocked receiver after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

fn receive_nothing_and_stay() {
    let bus = Bus::listen(argument(), 1 << 16).unwrap();
    say("connected");
    listen();
    drop(bus);
}

#[test]
fn a_killed_receiver_is_noticed_by_a_blocked_sender() {
    let dir = Dir::new();
    let mut other = Peer::start(&["fill and stay", &dir.at("s")]);
    let mut bus = Bus::connector(dir.join("s")).timeout(LONG).connect().unwrap();
    other.hear();
    let sent = std::thread::spawn(move || {
        loop {
            if let Err(error) = bus.send(1, &[7; 1000]) {
                let noticed = Instant::now();
                assert_eq!(error.kind(), ErrorKind::PeerDead, "{error}");
                assert_eq!(bus.try_send(1, b"x").unwrap_err().kind(), ErrorKind::PeerDead);
                return noticed;
            }
        }
    });
    // In the middle of one of the rounds in which a blocked side looks after its peer.
    std::thread::sleep(Duration::from_millis(333));
    let killed = Instant::now();
    other.kill();
    let took = sent.join().unwrap() - killed;
    println!("death of the receiver noticed by a blocked sender after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_stopped_peer_is_alive() {
    let dir = Dir::new();
    let mut other = Peer::start(&["fill and stay", &dir.at("s")]);
    let mut bus = Bus::connector(dir.join("s")).timeout(LONG).connect().unwrap();
    other.hear();
    other.signal(libc::SIGSTOP);
    assert_eq!(bus.recv_timeout(Duration::from_millis(700)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(bus.is_peer_alive());
    other.signal(libc::SIGCONT);
    other.tell("end");
    assert_eq!(bus.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
    other.finish();
}

fn pair(dir: &Dir) -> (Bus, Bus) {
    let listener = Listener::builder(dir.join("pair")).capacity(1 << 16).bind().unwrap();
    let path = listener.path().to_owned();
    let connecting = std::thread::spawn(move || Bus::connect(path).unwrap());
    let accepted = listener.accept_timeout(LONG).unwrap();
    (accepted, connecting.join().unwrap())
}

#[test]
fn an_orderly_close_comes_after_the_last_message_in_both_directions() {
    let dir = Dir::new();
    for listener_closes in [false, true] {
        let (a, b) = pair(&dir);
        let (mut closing, mut staying) = if listener_closes { (a, b) } else { (b, a) };
        closing.send(1, b"last words").unwrap();
        drop(closing);
        assert_eq!(&*staying.recv().unwrap(), b"last words");
        assert_eq!(staying.recv().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(staying.send(1, b"x").unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test]
fn a_listener_that_greets_and_hangs_up_at_once_is_heard() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("l")).capacity(4096).bind().unwrap();
    for _ in 0..20 {
        let path = listener.path().to_owned();
        let connecting = std::thread::spawn(move || Bus::connect(path).unwrap());
        let mut accepted = listener.accept_timeout(LONG).unwrap();
        accepted.send(1, b"good bye").unwrap();
        drop(accepted);
        let mut bus = connecting.join().unwrap();
        assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"good bye");
        assert_eq!(bus.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test]
fn a_bus_has_the_calls_of_its_ends() {
    let dir = Dir::new();
    let (mut one, mut other) = pair(&dir);
    let mut bytes = vec![7; 3];
    assert_eq!(other.try_recv_into(&mut bytes).unwrap_err().kind(), ErrorKind::Empty);
    assert_eq!(other.recv_into_timeout(&mut bytes, Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    one.send_tagged(1, 11, b"first").unwrap();
    one.try_send_tagged(2, 12, b"second").unwrap();
    for (type_id, tag, text) in [(1, 11, "first"), (2, 12, "second")] {
        let meta = other.recv_into(&mut bytes).unwrap();
        assert_eq!((meta.type_id, meta.tag, &*bytes), (type_id, tag, text.as_bytes()));
    }
    let room = one.sender().unwrap().max_message_len();
    for len in [5, room / 2] {
        let mut slot = one.reserve(len).unwrap();
        slot.fill(len as u8);
        slot.commit(len).unwrap();
    }
    assert_eq!(one.try_reserve(room).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(one.reserve_timeout(room, Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(&*other.recv().unwrap(), [5; 5]);
    assert_eq!(other.recv().unwrap().len(), room / 2);
    one.close().unwrap();
    assert_eq!(other.recv_into(&mut bytes).unwrap_err().kind(), ErrorKind::Closed);
    let (one, mut other) = pair(&dir);
    one.abandon();
    assert_eq!(other.recv_into(&mut bytes).unwrap_err().kind(), ErrorKind::PeerDead);
}

#[test]
fn the_halves_close_one_by_one() {
    let dir = Dir::new();
    let (a, mut b) = pair(&dir);
    let (tx, rx) = a.split();
    let (mut tx, mut rx) = (tx.unwrap(), rx.unwrap());
    tx.send(1, b"out").unwrap();
    tx.close().unwrap();
    assert_eq!(&*b.recv().unwrap(), b"out");
    assert_eq!(b.recv().unwrap_err().kind(), ErrorKind::Closed);
    // The other direction lives, and so does the socket.
    assert!(b.is_peer_alive());
    b.send(2, b"back").unwrap();
    assert_eq!(&*rx.recv().unwrap(), b"back");
    rx.close().unwrap();
    // The socket hangs up once no process has it: a child that another test starts has it until it runs its program.
    support::eventually("the peer to be gone", || !b.is_peer_alive());
    assert_eq!(b.send(2, b"x").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn one_direction_may_be_missing() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("one")).capacities(1 << 16, 0).bind().unwrap();
    let path = listener.path().to_owned();
    let connecting = std::thread::spawn(move || Bus::connect(path).unwrap());
    let mut a = listener.accept_timeout(LONG).unwrap();
    let mut b = connecting.join().unwrap();
    a.send(1, b"only this way").unwrap();
    assert_eq!(&*b.recv().unwrap(), b"only this way");
    assert_eq!(a.recv().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(b.send(1, b"").unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(matches!(b.split(), (None, Some(_))));
    assert!(matches!(a.split(), (Some(_), None)));
    let none = Listener::builder(dir.join("none")).capacities(0, 0).bind();
    assert_eq!(none.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn send_one() {
    let mut bus = Bus::connector(argument()).timeout(LONG).connect().unwrap();
    bus.send(77, b"the first and last message").unwrap();
}

fn receive_one() {
    let mut bus = Bus::listen(argument(), 4096).unwrap();
    assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"the first and last message");
    assert_eq!(bus.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn sixty_simultaneous_starts_lose_no_first_message() {
    let dir = Dir::new();
    for round in 0..60 {
        let path = dir.join("start");
        let (first, second) = if round % 2 == 0 { ("send one", "receive one") } else { ("receive one", "send one") };
        let first = Peer::start(&[first, path.to_str().unwrap()]);
        let second = Peer::start(&[second, path.to_str().unwrap()]);
        first.finish();
        second.finish();
    }
    assert_eq!(dir.names(), [""; 0]);
}

fn listen_and_stay() {
    let _listener = Listener::bind(argument()).unwrap();
    say("listening");
    listen();
}

#[test]
fn a_second_listener_is_told_and_a_dead_ones_name_is_taken_over() {
    let dir = Dir::new();
    let mut other = Peer::start(&["listen and stay", &dir.at("l")]);
    other.hear();
    let second = Listener::bind(dir.join("l")).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::AlreadyExists, "{second}");
    assert!(UnixStream::connect(dir.join("l")).is_ok(), "the first one's socket is untouched");
    other.kill();
    assert_eq!(dir.names(), ["l", "l.lock"], "a killed listener leaves both files");
    let refused = Bus::connector(dir.join("l")).timeout(Duration::from_millis(100)).connect().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
    let third = Listener::bind(dir.join("l")).unwrap();
    assert!(UnixStream::connect(dir.join("l")).is_ok());
    drop(third);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn connectors_wait_across_a_listeners_death() {
    let dir = Dir::new();
    let mut other = Peer::start(&["listen and stay", &dir.at("l")]);
    other.hear();
    let path = dir.join("l");
    let connecting = std::thread::spawn(move || Bus::connector(path).timeout(LONG).connect());
    // It is in the backlog of a listener that never accepts, and that now dies.
    std::thread::sleep(Duration::from_millis(200));
    other.kill();
    let listener = Listener::bind(dir.join("l")).unwrap();
    let mut accepted = listener.accept_timeout(LONG).unwrap();
    let mut bus = connecting.join().unwrap().unwrap();
    bus.send(1, b"at last").unwrap();
    assert_eq!(&*accepted.recv_timeout(LONG).unwrap(), b"at last");
}

#[test]
fn the_connect_deadline_holds_and_says_what_was_missing() {
    let dir = Dir::new();
    let timeout = Duration::from_millis(300);
    let connect = |name: &str| Bus::connector(dir.join(name)).timeout(timeout).connect().unwrap_err();
    let start = Instant::now();
    let error = connect("nobody");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(start.elapsed() >= timeout && start.elapsed() < timeout + LONG);
    assert_eq!(connect("no such directory/x").kind(), ErrorKind::NotFound);
    let _listener = Listener::bind(dir.join("idle")).unwrap();
    let error = connect("idle");
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("accept"), "{error}");
    std::fs::write(dir.join("file"), "precious").unwrap();
    let error = connect("file");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let error = Bus::connect("no.good.lock").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn too_big_a_bus_is_no_space_on_both_sides_and_not_the_end() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("big")).capacities(1 << 50, 4096).bind().unwrap();
    for _ in 0..2 {
        let path = listener.path().to_owned();
        let connecting = std::thread::spawn(move || Bus::connect(path).map(drop));
        let error = listener.accept_timeout(LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        let error = connecting.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
}

#[test]
fn buses_and_listeners_move_between_threads() {
    fn moves<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    moves::<Bus>();
    is_shared::<Listener>();
}

fn serve_many() {
    let listener = Listener::builder(argument()).capacity(4096).backlog(4).bind().unwrap();
    say("listening");
    let mut buses = Vec::new();
    for _ in 0..200 {
        let mut bus = listener.accept_timeout(LONG).unwrap();
        let number = bus.recv_timeout(LONG).unwrap().type_id();
        bus.send(number + 1000, b"").unwrap();
        buses.push(bus);
    }
    assert_eq!(listener.accept_timeout(Duration::from_millis(50)).unwrap_err().kind(), ErrorKind::TimedOut);
    say("served");
    listen();
}

#[test]
fn two_hundred_connectors_at_once_are_all_served() {
    let dir = Dir::new();
    let mut other = Peer::start(&["serve many", &dir.at("many")]);
    other.hear();
    let connectors: Vec<_> = (0..200u32)
        .map(|number| {
            let path = dir.join("many");
            std::thread::spawn(move || {
                let mut bus = Bus::connector(path).timeout(LONG).connect().unwrap();
                bus.send(number, b"").unwrap();
                assert_eq!(bus.recv_timeout(LONG).unwrap().type_id(), number + 1000);
                bus
            })
        })
        .collect();
    let buses: Vec<Bus> = connectors.into_iter().map(|c| c.join().unwrap()).collect();
    assert_eq!(other.hear(), "served");
    assert!(buses.iter().all(Bus::is_peer_alive));
    other.tell("end");
    other.finish();
    assert!(!buses.iter().any(Bus::is_peer_alive));
}

#[test]
fn several_threads_may_accept_from_one_listener() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("threads")).capacity(4096).bind().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut bus = listener.accept_timeout(LONG).unwrap();
                    assert_eq!(bus.recv_timeout(LONG).unwrap().type_id(), 5);
                }
            });
        }
        for _ in 0..40 {
            scope.spawn(|| Bus::connect(listener.path()).unwrap().send(5, b"").unwrap());
        }
    });
}

#[test]
fn a_listener_that_takes_one_peer_never_misleads_a_second() {
    let dir = Dir::new();
    let path = dir.join("one");
    let connectors: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Bus::connector(path).timeout(Duration::from_secs(3)).connect())
        })
        .collect();
    std::thread::sleep(Duration::from_millis(20));
    let mut bus = within(LONG, move || Bus::listen(path, 4096).unwrap());
    bus.send(1, b"you").unwrap();
    let outcomes: Vec<_> = connectors.into_iter().map(|c| c.join().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 1);
    for outcome in outcomes {
        match outcome {
            Ok(mut bus) => assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"you"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        }
    }
}

#[test]
fn the_descriptor_of_a_listener_tells_when_accept_makes_progress() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("poll")).capacity(4096).bind().unwrap();
    let readable = |timeout: Duration| {
        let mut polled = [rustix::event::PollFd::new(&listener, rustix::event::PollFlags::IN)];
        let timeout = rustix::event::Timespec::try_from(timeout).unwrap();
        rustix::event::poll(&mut polled, Some(&timeout)).unwrap() > 0
    };
    assert!(!readable(Duration::from_millis(20)));
    let path = listener.path().to_owned();
    let connecting = std::thread::spawn(move || Bus::connect(path).unwrap());
    let bus = loop {
        assert!(readable(LONG), "nothing to do, and nobody is connected");
        match listener.accept_timeout(Duration::ZERO) {
            Ok(bus) => break bus,
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        }
    };
    assert!(bus.is_peer_alive());
    drop(connecting.join().unwrap());
    assert!(!readable(Duration::from_millis(20)));
    let flags = rustix::io::fcntl_getfd(listener.as_fd()).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

/// Runs alone, because it counts its process's descriptors and mappings.
fn leaks() {
    let dir = Dir::new();
    // By what a line's last word begins with: the path of this program and of a library can contain any word.
    let places = ["/memfd:".to_owned(), dir.at("")];
    let is_ours = |line: &&str| line.split_whitespace().nth(5).is_some_and(|p| places.iter().any(|o| p.starts_with(o)));
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(is_ours).count();
    let open_across_exec = || {
        let without_cloexec = std::fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
            let fd: i32 = entry.as_ref().unwrap().file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: only asks for the flags of a number, whatever it is.
            let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
            fd > 2 && flags >= 0 && flags & libc::FD_CLOEXEC == 0
        });
        without_cloexec.count()
    };
    // The descriptors that the tests' parent process left open.
    let inherited = open_across_exec();
    let round = || {
        let (mut a, mut b) = pair(&dir);
        a.send(1, b"x").unwrap();
        b.recv().unwrap().release();
        assert!(mappings() > 0, "the bus in use is not found among the mappings");
        assert_eq!(open_across_exec(), inherited);
    };
    round();
    let before = (descriptors(), mappings());
    for _ in 0..50 {
        round();
    }
    assert_eq!((descriptors(), mappings()), before);
    assert_eq!(before.1, 0);
}

#[test]
fn a_hundred_buses_leave_no_descriptor_and_no_mapping() {
    Peer::start(&["leaks"]).finish();
}

/// Else a failure in another process says nothing but its exit status.
#[test]
fn the_panic_of_another_process_is_shown() {
    let listening = |peer: Peer| _ = { peer }.hear();
    for end in [Peer::finish as fn(Peer), listening] {
        let peer = Peer::start(&["panic", "what went wrong"]);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| end(peer))).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains("what went wrong"), "{said}");
    }
}

/// Forks with a bus and a listener in hand. The child's calls are `Detached`; and when the parent ends, its peer is told
/// although the child lives on.
fn fork_in_the_middle() {
    let listener = Listener::builder(argument()).capacity(1 << 16).bind().unwrap();
    let mut bus = listener.accept_timeout(LONG).unwrap();
    bus.send(1, b"before").unwrap();
    let parent = std::process::id();
    // SAFETY: the child uses only what is documented to work in a fork's child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let kinds = [
            bus.send(1, b"x").unwrap_err().kind(),
            bus.recv().map(drop).unwrap_err().kind(),
            listener.accept().unwrap_err().kind(),
        ];
        let right = kinds == [ErrorKind::Detached; 3] && !bus.is_peer_alive() && listener.last_refusal().is_none();
        drop(bus);
        drop(listener);
        say(format_args!("child {} {right}", std::process::id()));
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Outlives the parent for long enough to be in the way, if it were.
        std::thread::sleep(Duration::from_secs(3));
        std::process::exit(0);
    }
    listen();
    bus.send(2, b"after").unwrap();
    say("parent ends");
    // Without destructors: like a death.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) };
}

#[test]
fn a_forks_child_has_no_part_in_the_bus() {
    let dir = Dir::new();
    let mut other = Peer::start(&["fork", &dir.at("f")]);
    let mut bus = Bus::connector(dir.join("f")).timeout(LONG).connect().unwrap();
    assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"before");
    let said = other.hear();
    assert!(said.starts_with("child ") && said.ends_with(" true"), "{said}");
    assert!(dir.join("f").exists(), "the child removed the parent's name");
    assert!(bus.is_peer_alive());
    other.tell("go on");
    assert_eq!(other.hear(), "parent ends");
    assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"after");
    let error = bus.recv_timeout(LONG).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PeerDead, "{error}");
    let child = said.split(' ').nth(1).unwrap();
    assert!(Path::new("/proc").join(child).exists(), "too late to say that the child was not in the way");
    other.finish();
}

/// What a language does that has signals or cancellation to look after.
#[test]
fn connecting_can_be_given_up() {
    let dir = Dir::new();
    let silent = dir.join("silent");
    let _never_accepts = std::os::unix::net::UnixListener::bind(&silent).unwrap();
    for path in [silent, dir.join("absent")] {
        let (started, mut asked) = (Instant::now(), 0);
        let error = Bus::connector(&path)
            .timeout(LONG)
            .connect_while(|| {
                asked += 1;
                asked < 3
            })
            .unwrap_err();
        assert_eq!((error.kind(), asked), (ErrorKind::Interrupted, 3));
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert!(started.elapsed() < LONG / 2);
    }
}

#[test]
fn a_listener_for_one_can_be_waited_for_in_rounds() {
    let dir = Dir::new();
    let listener = Listener::builder(dir.join("one")).capacity(4096).bind_one().unwrap();
    let path = listener.path().to_owned();
    let connector = std::thread::spawn(move || Bus::connect(path).unwrap());
    let mut bus = loop {
        match listener.accept_timeout(Duration::from_millis(1)) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            Ok(bus) => break bus,
        }
    };
    drop(listener);
    connector.join().unwrap().send(1, b"x").unwrap();
    assert_eq!(&*bus.recv().unwrap(), b"x");
}
