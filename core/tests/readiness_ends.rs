//! Readiness descriptors: the ends of peers, threads and handles, forks, system calls that are not allowed, and what a
//! thousand of them cost.

mod support;

use support::readiness::*;

use ramway::{Bus, ErrorKind, Ring};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Not a test of its own: the child that [`has_uring`] asks.
#[test]
fn uring_is_there() {
    if std::env::var(TEST_NAME).is_ok_and(|it| it == "uring_is_there") {
        if std::env::var(PART).unwrap() == "forbidden" {
            forbid(libc::SYS_io_uring_setup);
            let error = Ring::pair(4096).unwrap().1.readiness().map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            return;
        }
        Ring::pair(4096).unwrap().1.readiness().unwrap();
    }
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
                std::thread::sleep(LONG);
            } else {
                let _rx = ring.receiver().unwrap();
                say("ready");
                std::thread::sleep(LONG);
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
            std::thread::sleep(LONG);
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
            let works = poll(&fd, LONG) && rx.try_recv().is_ok();
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
fn where_io_uring_is_forbidden_a_thread_does_it() {
    const TEST: &str = "where_io_uring_is_forbidden_a_thread_does_it";
    if std::env::var(TEST_NAME).is_ok_and(|it| it == TEST) {
        forbid(libc::SYS_io_uring_setup);
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let before = threads();
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(rx.readiness());
        assert_eq!(threads(), before + 1);
        while kind(rx.try_recv()) != ErrorKind::Empty || poll(&fd, Duration::ZERO) {}
        tx.send(0, b"x").unwrap();
        must_become_readable(fd.as_fd(), "message");
        assert!(rx.try_recv().is_ok());
        return;
    }
    // Not named, it is chosen.
    let output = command(TEST, "", "").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // Named, it is an error that says so.
    let output = command("uring_is_there", "forbidden", "uring").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_membarrier_that_stops_working_makes_the_rounds_short_until_the_waker_fences() {
    with_both_methods("a_membarrier_that_stops_working_makes_the_rounds_short_until_the_waker_fences", |_| {
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        let fd = fd(rx.readiness());
        tx.send(0, b"now the sender knows that it need not fence").unwrap();
        assert!(rx.try_recv().is_ok());
        assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
        forbid(libc::SYS_membarrier);
        // With nothing sent it becomes readable by itself, because a message might have been missed.
        for _ in 0..3 {
            assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
            must_become_readable(fd.as_fd(), "a short round");
        }
        tx.send(0, b"now it fences again").unwrap();
        must_become_readable(fd.as_fd(), "message");
        assert!(rx.try_recv().is_ok());
        let mut quiet = 0;
        while quiet < 3 {
            assert_eq!(kind(rx.try_recv()), ErrorKind::Empty);
            // The short round that was under way may still end.
            quiet = if poll(&fd, Duration::from_millis(50)) { 0 } else { quiet + 1 };
        }
    });
}

#[test]
fn a_wake_up_is_no_interruption() {
    with_both_methods("a_wake_up_is_no_interruption", |_| {
        let (mut tx, mut rx) = Ring::pair(4096).unwrap();
        rx.readiness().unwrap();
        rx.set_interruptible(true);
        rx.set_wait_policy(ramway::WaitPolicy::Block);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..200u64 {
                    std::thread::sleep(Duration::from_micros(300));
                    tx.send(0, &i.to_le_bytes()).unwrap();
                }
            });
            for i in 0..200u64 {
                assert_eq!(*rx.recv_timeout(LONG).unwrap(), i.to_le_bytes());
            }
        });
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
