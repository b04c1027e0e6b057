//! Readiness descriptors, each test with both ways of making them: never unreadable although there is something.

mod support;

use support::readiness::*;

use ramway::{Bus, ErrorKind, Receiver, Region, Ring, Sender};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Not a test of its own: the child that [`has_uring`] asks.
#[test]
fn uring_is_there() {
    if std::env::var(TEST_NAME).is_ok_and(|it| it == "uring_is_there") {
        Ring::pair(4096).unwrap().1.readiness().unwrap();
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
    const MESSAGES: u64 = 10_000;
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
    const ROUNDS: u64 = 5_000;
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
                assert_eq!(*rx.recv_timeout(LONG).unwrap(), i.to_le_bytes());
                assert!(started.elapsed() < LONG / 2);
            }
            assert_eq!(kind(rx.recv()), ErrorKind::Closed);
            assert!(poll(&fd, Duration::ZERO), "the end stays readable");
        });
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
fn edge_triggered_epoll_sees_every_edge() {
    with_both_methods("edge_triggered_epoll_sees_every_edge", |_| {
        const MESSAGES: u64 = 10_000;
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
                let events = unsafe { libc::epoll_wait(epoll, &mut event, 1, LONG.as_millis() as i32) };
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
fn without_membarrier_nothing_is_missed_either() {
    with_both_methods("without_membarrier_nothing_is_missed_either", |_| {
        // SAFETY: no other thread of this process reads the environment meanwhile.
        unsafe { std::env::set_var("RAMWAY_MEMBARRIER", "0") };
        many_messages(3);
    });
}
