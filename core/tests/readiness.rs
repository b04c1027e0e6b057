//! Readiness descriptors, each test with both ways of making them: never unreadable although there is something.

use ramway::{Bus, ErrorKind, Readiness, Receiver, Region, Ring, Sender};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which test a child runs, and which part of it.
const TEST: &str = "RAMWAY_READINESS_TEST";
const PART: &str = "RAMWAY_READINESS_PART";
/// Long enough for any machine; whoever waits this long has missed something.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child of this test binary that runs `test` with the method `uring` or `thread`.
fn command(test: &str, part: &str, method: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(TEST, test)
        .env(PART, part)
        .env("RAMWAY_READINESS", method);
    command
}

/// Runs `body` in a process for each method. `body` gets the part that it is to play: "" for the main one.
fn with_both_methods(test: &str, body: impl Fn(&str)) {
    if std::env::var(TEST).is_ok_and(|it| it == test) {
        return body(&std::env::var(PART).unwrap());
    }
    for method in ["uring", "thread"] {
        if method == "uring" && !has_uring() {
            println!("skipped: io_uring cannot wait on a futex here");
            continue;
        }
        let output = command(test, "", method).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        for line in text.lines().filter_map(|line| Some(line.split_once("figure: ")?.1)) {
            println!("{method}: {line}");
        }
        assert!(output.status.success(), "{method}: {}: {text}", output.status);
    }
}

fn has_uring() -> bool {
    use std::sync::OnceLock;
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| command("uring_is_there", "", "uring").output().unwrap().status.success())
}

/// Not a test of its own: the child that [`has_uring`] asks.
#[test]
fn uring_is_there() {
    if std::env::var(TEST).is_ok_and(|it| it == "uring_is_there") {
        Ring::pair(4096).unwrap().1.readiness().unwrap();
    }
}

/// The other process of a test.
fn part(test: &str, part: &str) -> Child {
    let method = std::env::var("RAMWAY_READINESS").unwrap();
    command(test, part, &method).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn said(child: &mut Child, text: &str) -> bool {
    BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok).any(|line| line.contains(text))
}

fn say(text: &str) {
    println!("{text}");
    std::io::stdout().flush().unwrap();
}

/// A name that the processes of a test share, removed with its file.
struct Name(PathBuf);

impl Name {
    fn new(test: &str) -> Self {
        Self(format!("/dev/shm/ramway-ready-{}-{test}", std::process::id()).into())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn halves(bus: Bus) -> (Sender, Receiver) {
    let (tx, rx) = bus.split();
    (tx.unwrap(), rx.unwrap())
}

fn fd(readiness: ramway::Result<&Readiness>) -> OwnedFd {
    readiness.unwrap().as_fd().try_clone_to_owned().unwrap()
}

/// Whether it is readable, or becomes so in time.
fn poll(fd: impl AsFd, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut fds = libc::pollfd { fd: fd.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct that outlives the call.
        match unsafe { libc::poll(&mut fds, 1, left) } {
            0 => return false,
            1 => return true,
            // A completion's work may interrupt, as a signal does.
            _ => assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR)),
        }
    }
}

/// Polls as an event loop does; a wait that lasts this long has missed its event.
fn must_become_readable(fd: BorrowedFd<'_>, what: &str) {
    let started = Instant::now();
    assert!(poll(fd, PATIENCE), "{what}: never became readable");
    assert!(started.elapsed() < PATIENCE / 2, "{what}: became readable far too late");
}

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

/// A pause of up to 100 µs that differs from round to round.
fn jitter(seed: &mut u64) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    for _ in 0..(*seed >> 33) % 2_000 {
        std::hint::spin_loop();
    }
    if *seed >> 60 == 0 {
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn no_message_is_missed_by_a_loop_that_drains() {
    with_both_methods("no_message_is_missed_by_a_loop_that_drains", |_| many_messages(usize::MAX));
}

#[test]
fn no_message_is_missed_by_a_loop_that_takes_one_at_a_time() {
    with_both_methods("no_message_is_missed_by_a_loop_that_takes_one_at_a_time", |_| many_messages(1));
}

fn many_messages(at_a_time: usize) {
    const MESSAGES: u64 = 30_000;
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    let fd = fd(rx.readiness());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut seed = 1;
            for i in 0..MESSAGES {
                tx.send(0, &i.to_le_bytes()).unwrap();
                jitter(&mut seed);
            }
        });
        let mut next = 0u64;
        loop {
            must_become_readable(fd.as_fd(), &format!("message {next}"));
            for _ in 0..at_a_time {
                match rx.try_recv() {
                    Ok(message) => {
                        assert_eq!(*message, next.to_le_bytes());
                        next += 1;
                    }
                    Err(error) if error.kind() == ErrorKind::Empty => break,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                        assert_eq!(next, MESSAGES);
                        assert!(poll(&fd, Duration::ZERO), "the end stays readable");
                        return;
                    }
                }
            }
        }
    });
}

#[test]
fn ping_pong_between_two_event_loops() {
    const TEST: &str = "ping_pong_between_two_event_loops";
    const ROUNDS: u64 = 20_000;
    fn rally(tx: &mut Sender, rx: &mut Receiver, serve: bool) {
        let fd = fd(rx.readiness());
        for i in 0..ROUNDS {
            if serve {
                tx.send(0, &i.to_le_bytes()).unwrap();
            }
            loop {
                match rx.try_recv() {
                    Ok(message) => break assert_eq!(*message, i.to_le_bytes()),
                    Err(error) if error.kind() == ErrorKind::Empty => must_become_readable(fd.as_fd(), "ball"),
                    Err(error) => panic!("{error}"),
                }
            }
            if !serve {
                tx.send(0, &i.to_le_bytes()).unwrap();
            }
        }
    }
    with_both_methods(TEST, |role| {
        if !role.is_empty() {
            let (mut tx, mut rx) = halves(Bus::connect(role).unwrap());
            return rally(&mut tx, &mut rx, false);
        }
        let name = Name::new("rally");
        let mut other = part(TEST, name.0.to_str().unwrap());
        let (mut tx, mut rx) = halves(Bus::listen(&name.0, 4096).unwrap());
        let started = Instant::now();
        rally(&mut tx, &mut rx, true);
        println!("figure: {:?} a round trip", started.elapsed() / ROUNDS as u32);
        assert!(other.wait().unwrap().success());
    });
}

#[test]
fn a_sender_learns_of_room() {
    with_both_methods("a_sender_learns_of_room", |_| {
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(tx.readiness());
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut seed = 7;
                let mut count = 0u64;
                while let Ok(message) = rx.recv() {
                    assert_eq!(message[..8], count.to_le_bytes());
                    drop(message);
                    count += 1;
                    jitter(&mut seed);
                }
                count
            });
            let mut payload = [0; 500];
            for i in 0..10_000u64 {
                payload[..8].copy_from_slice(&i.to_le_bytes());
                while let Err(error) = tx.try_send(0, &payload[..8 + (i * 7 % 490) as usize]) {
                    assert_eq!(error.kind(), ErrorKind::Full);
                    must_become_readable(fd.as_fd(), "room");
                }
            }
            drop(tx);
            assert_eq!(reader.join().unwrap(), 10_000);
        });
        // A reader that goes is news, too.
        let (mut tx, rx) = Ring::pair(4096).unwrap();
        let fd = self::fd(tx.readiness());
        while tx.try_send(0, &[0; 100]).is_ok() {}
        assert!(!poll(&fd, Duration::from_millis(20)));
        drop(rx);
        must_become_readable(fd.as_fd(), "the reader's end");
        assert_eq!(kind(tx.try_send(0, b"")), ErrorKind::Closed);
    });
}

#[test]
fn the_death_of_a_named_rings_peer_is_seen() {
    const TEST: &str = "the_death_of_a_named_rings_peer_is_seen";
    with_both_methods(TEST, |role| {
        if let Some((side, name)) = role.split_once(' ') {
            let ring = Ring::open_or_create(name);
            if side == "tx" {
                let mut tx = ring.sender().unwrap();
                tx.send(0, b"last words").unwrap();
                say("ready");
                std::thread::sleep(PATIENCE);
            } else {
                let _rx = ring.receiver().unwrap();
                say("ready");
                std::thread::sleep(PATIENCE);
            }
            return;
        }
        let name = Name::new("death");
        let path = name.0.to_str().unwrap();
        let mut rx = Ring::open_or_create(&name.0).capacity(4096).receiver().unwrap();
        let fd = fd(rx.readiness());
        for _ in 0..3 {
            let mut sender = part(TEST, &format!("tx {path}"));
            assert!(said(&mut sender, "ready"));
            loop {
                must_become_readable(fd.as_fd(), "the message");
                match rx.try_recv() {
                    Ok(message) => break assert_eq!(&*message, b"last words"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Empty),
                }
            }
            while kind(rx.try_recv()) == ErrorKind::Empty && poll(&fd, Duration::ZERO) {}
            sender.kill().unwrap();
            let killed = Instant::now();
            loop {
                must_become_readable(fd.as_fd(), "the death");
                match kind(rx.try_recv()) {
                    ErrorKind::Empty => {}
                    end => break assert_eq!(end, ErrorKind::PeerDead),
                }
            }
            let after = killed.elapsed();
            println!("figure: a killed sender of a named ring is seen after {after:?}");
            assert!(after < Duration::from_secs(10));
            sender.wait().unwrap();
        }
        drop((rx, fd));

        let mut tx = Ring::open_or_create(&name.0).sender().unwrap();
        let fd = self::fd(tx.readiness());
        let mut receiver = part(TEST, &format!("rx {path}"));
        assert!(said(&mut receiver, "ready"));
        while tx.try_send(0, &[0; 100]).is_ok() {}
        receiver.kill().unwrap();
        loop {
            must_become_readable(fd.as_fd(), "the receiver's death");
            match kind(tx.try_send(0, &[0; 100])) {
                ErrorKind::Full => {}
                end => break assert_eq!(end, ErrorKind::PeerDead),
            }
        }
        receiver.wait().unwrap();
    });
}

#[test]
fn the_death_of_a_buss_peer_is_seen() {
    const TEST: &str = "the_death_of_a_buss_peer_is_seen";
    with_both_methods(TEST, |role| {
        if !role.is_empty() {
            let mut bus = Bus::connect(role).unwrap();
            bus.send(0, b"last words").unwrap();
            std::thread::sleep(PATIENCE);
            return;
        }
        let name = Name::new("hangup");
        let mut other = part(TEST, name.0.to_str().unwrap());
        let (mut tx, mut rx) = halves(Bus::listen(&name.0, 4096).unwrap());
        let (fd, room) = (fd(rx.readiness()), fd(tx.readiness()));
        while tx.try_send(0, &[0; 100]).is_ok() {}
        loop {
            must_become_readable(fd.as_fd(), "the message");
            match rx.try_recv() {
                Ok(message) => break assert_eq!(&*message, b"last words"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Empty),
            }
        }
        assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
        other.kill().unwrap();
        let killed = Instant::now();
        loop {
            must_become_readable(fd.as_fd(), "the hang-up");
            match kind(rx.try_recv()) {
                ErrorKind::Empty => {}
                end => break assert_eq!(end, ErrorKind::PeerDead),
            }
        }
        let after = killed.elapsed();
        println!("figure: a killed peer of a bus is seen after {after:?}");
        assert!(after < Duration::from_secs(10));
        loop {
            must_become_readable(room.as_fd(), "the hang-up, to the sender");
            match kind(tx.try_send(0, &[0; 100])) {
                ErrorKind::Full => {}
                end => break assert_eq!(end, ErrorKind::PeerDead),
            }
        }
        other.wait().unwrap();
    });
}

#[test]
fn blocking_calls_wait_by_the_descriptor() {
    with_both_methods("blocking_calls_wait_by_the_descriptor", |_| {
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(rx.readiness());
        rx.set_wait_policy(ramway::WaitPolicy::Block);
        assert_eq!(kind(rx.recv_timeout(Duration::from_millis(20))), ErrorKind::TimedOut);
        assert!(!poll(&fd, Duration::ZERO), "a time-out leaves it armed");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut seed = 3;
                for i in 0..5_000u64 {
                    tx.send(0, &i.to_le_bytes()).unwrap();
                    jitter(&mut seed);
                }
            });
            for i in 0..5_000u64 {
                // Blocking and polling by turns.
                if i % 3 == 0 {
                    must_become_readable(fd.as_fd(), "message");
                }
                let started = Instant::now();
                assert_eq!(*rx.recv_timeout(PATIENCE).unwrap(), i.to_le_bytes());
                assert!(started.elapsed() < PATIENCE / 2);
            }
            assert_eq!(kind(rx.recv()), ErrorKind::Closed);
            assert!(poll(&fd, Duration::ZERO), "the end stays readable");
        });
    });
}

#[test]
fn the_end_of_the_thread_that_armed_it_loses_nothing() {
    with_both_methods("the_end_of_the_thread_that_armed_it_loses_nothing", |_| {
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(rx.readiness());
        for i in 0..50u64 {
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(kind(rx.try_recv()), ErrorKind::Empty));
            });
            if i % 2 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            tx.send(0, &i.to_le_bytes()).unwrap();
            loop {
                must_become_readable(fd.as_fd(), "message");
                match rx.try_recv() {
                    Ok(message) => break assert_eq!(*message, i.to_le_bytes()),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Empty),
                }
            }
        }
    });
}

#[test]
fn an_armed_descriptor_can_be_dropped() {
    with_both_methods("an_armed_descriptor_can_be_dropped", |_| {
        let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let threads_before = threads();
        for i in 0..300 {
            let (mut tx, mut rx) = Ring::pair(4096).unwrap();
            rx.readiness().unwrap();
            tx.readiness().unwrap();
            assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
            while tx.try_send(0, &[0; 200]).is_ok() {}
            match i % 3 {
                0 => drop(rx),
                1 => drop(tx),
                _ => {}
            }
        }
        assert_eq!(std::fs::read_dir("/proc/self/fd").unwrap().count(), before);
        assert_eq!(threads(), threads_before);
    });
}

#[test]
fn a_region_tells_of_notifications_and_of_its_names_end() {
    const TEST: &str = "a_region_tells_of_notifications_and_of_its_names_end";
    with_both_methods(TEST, |role| {
        const ROUNDS: u64 = 5_000;
        if !role.is_empty() {
            let region = Region::open(role).unwrap();
            let counter = region.atomic_u64(0).unwrap();
            let mut seed = 5;
            for _ in 0..ROUNDS {
                counter.fetch_add(1, std::sync::atomic::Ordering::Release);
                region.notify().unwrap();
                jitter(&mut seed);
            }
            return;
        }
        let name = Name::new("region");
        let region = Region::create(&name.0, 8).unwrap();
        let reader = Region::builder().read_only(true).open(&name.0).unwrap();
        assert_eq!(kind(reader.readiness()), ErrorKind::Unsupported);
        let fd = fd(region.readiness());
        let mut other = part(TEST, name.0.to_str().unwrap());
        while region.load_u64(0).unwrap() < ROUNDS {
            must_become_readable(fd.as_fd(), "notification");
            while region.try_wait().unwrap() {}
        }
        assert!(other.wait().unwrap().success());
        while region.try_wait().unwrap() || poll(&fd, Duration::ZERO) {}
        std::fs::remove_file(&name.0).unwrap();
        loop {
            must_become_readable(fd.as_fd(), "the name's end");
            match region.try_wait() {
                Ok(news) => assert!(!news),
                Err(error) => break assert_eq!(error.kind(), ErrorKind::Closed),
            }
        }
    });
}

#[test]
fn a_forks_child_leaves_it_alone() {
    with_both_methods("a_forks_child_leaves_it_alone", |_| {
        let name = Name::new("fork");
        let mut rx = Ring::create(&name.0).capacity(4096).receiver().unwrap();
        let mut tx = Ring::open(&name.0).sender().unwrap();
        let fd = fd(rx.readiness());
        while kind(rx.try_recv()) != ErrorKind::Empty || poll(&fd, Duration::ZERO) {}
        // SAFETY: the child drops the handles and makes new ones; no other thread of this process holds a lock.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let detached = kind(rx.try_recv()) == ErrorKind::Detached && kind(rx.readiness()) == ErrorKind::Detached;
            drop(rx);
            drop(tx);
            let (mut tx, mut rx) = Ring::pair(4096).unwrap();
            let fd = self::fd(rx.readiness());
            while kind(rx.try_recv()) != ErrorKind::Empty {}
            tx.send(0, b"x").unwrap();
            let works = poll(&fd, PATIENCE) && rx.try_recv().is_ok();
            // SAFETY: ends the process.
            unsafe { libc::_exit(if detached && works { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert_eq!(status, 0);
        while kind(rx.try_recv()) != ErrorKind::Empty || poll(&fd, Duration::ZERO) {}
        tx.send(0, b"still there").unwrap();
        must_become_readable(fd.as_fd(), "message");
        assert_eq!(&*rx.try_recv().unwrap(), b"still there");
    });
}

#[test]
fn edge_triggered_epoll_sees_every_edge() {
    with_both_methods("edge_triggered_epoll_sees_every_edge", |_| {
        const MESSAGES: u64 = 20_000;
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(rx.readiness());
        // SAFETY: epoll calls with structs that outlive them.
        let epoll = unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
            assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event), 0);
            epoll
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut seed = 9;
                for i in 0..MESSAGES {
                    tx.send(0, &i.to_le_bytes()).unwrap();
                    jitter(&mut seed);
                }
            });
            let mut next = 0u64;
            while next < MESSAGES {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                // SAFETY: as above.
                let events = unsafe { libc::epoll_wait(epoll, &mut event, 1, PATIENCE.as_millis() as i32) };
                assert_ne!(events, 0, "an edge was lost at message {next}");
                if events < 0 {
                    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
                    continue;
                }
                while let Ok(message) = rx.try_recv() {
                    assert_eq!(*message, next.to_le_bytes());
                    next += 1;
                }
            }
        });
        // SAFETY: made above.
        unsafe { libc::close(epoll) };
    });
}

#[test]
fn a_thousand_idle_descriptors_cost_next_to_nothing() {
    with_both_methods("a_thousand_idle_descriptors_cost_next_to_nothing", |_| {
        const RINGS: usize = 1_000;
        let dir = PathBuf::from(format!("/dev/shm/ramway-thousand-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        // SAFETY: reads and writes one struct.
        unsafe {
            let mut limit = std::mem::zeroed::<libc::rlimit>();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            if (limit.rlim_cur as usize) < RINGS * 6 + 100 {
                println!("figure: not measured, RLIMIT_NOFILE is {}", limit.rlim_cur);
                return;
            }
        }
        let cpu = || {
            // SAFETY: writes one struct.
            let usage = unsafe {
                let mut usage = std::mem::zeroed::<libc::rusage>();
                libc::getrusage(libc::RUSAGE_SELF, &mut usage);
                usage
            };
            let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
            time(usage.ru_utime) + time(usage.ru_stime)
        };
        let rings: Vec<_> = (0..RINGS)
            .map(|i| {
                let name = dir.join(i.to_string());
                let mut rx = Ring::create(&name).capacity(4096).receiver().unwrap();
                let tx = Ring::open(&name).sender().unwrap();
                rx.readiness().unwrap();
                assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
                (tx, rx)
            })
            .collect();
        let (before, started) = (cpu(), Instant::now());
        std::thread::sleep(Duration::from_secs(3));
        let (used, wall) = (cpu() - before, started.elapsed());
        let percent = used.as_secs_f64() / wall.as_secs_f64() * 100.0;
        println!("figure: {RINGS} idle descriptors use {percent:.2} % of a core");
        assert!(percent < 10.0);
        drop(rings);
        std::fs::remove_dir_all(&dir).unwrap();
    });
}
