//! What needs the word itself, or no end of a sleep but by a wake-up.

use super::word::{NOTIFY_ONE, NOTIFY_WAITING};
use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "RAMWAY_REGION_TEST_CHILD";
const DEADLINE: Duration = Duration::from_secs(60);

/// A name of its own for each test and process.
fn name(test: &str) -> String {
    format!("/dev/shm/ramway-unit-{}-{test}", std::process::id())
}

fn blocking() -> RegionBuilder {
    Region::builder().wait_policy(WaitPolicy::Block)
}

/// The region's name, in a child that [`child`] made for `test`.
fn child_of(test: &str) -> Option<String> {
    std::env::var(ROLE).ok()?.strip_prefix(test)?.strip_prefix(' ').map(str::to_owned)
}

/// This test again, in a process of its own.
fn child(test: &str, name: &str) -> Child {
    crate::runner::again()
        .args([&format!("region::tests::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{test} {name}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child has printed a line with this text, or has ended.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the test that asks is Linux's"))]
fn said(child: &mut Child, text: &str) -> bool {
    BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok).any(|line| line.contains(text))
}

/// Passes a counter to and fro: mine are the values of one parity.
fn rally(region: &Region, rounds: u64, first: bool) {
    let ball = region.atomic_u64(64).unwrap();
    for i in 0..rounds {
        let (receive, send) = if first { (2 * i, 2 * i + 1) } else { (2 * i + 1, 2 * i + 2) };
        while ball.load(Ordering::Acquire) != receive {
            let started = Instant::now();
            assert!(region.wait(Some(DEADLINE)).unwrap(), "round {i}: timed out");
            assert!(
                started.elapsed() < DEADLINE / 2,
                "round {i}: a wake-up was lost, only the time-out ended the wait"
            );
        }
        ball.store(send, Ordering::Release);
        region.notify().unwrap();
    }
}

#[test]
fn no_wake_up_is_lost_in_100_000_round_trips() {
    const ROUNDS: u64 = 100_000;
    const TEST: &str = "no_wake_up_is_lost_in_100_000_round_trips";
    if let Some(name) = child_of(TEST) {
        return rally(&blocking().open(name).unwrap(), ROUNDS, false);
    }
    let name = name("rally");
    let region = blocking().create(&name, 128).unwrap();
    let mut other = child(TEST, &name);
    rally(&region, ROUNDS, true);
    assert!(other.wait().unwrap().success());
}

#[test]
fn a_killed_waiter_costs_one_wake_up_and_nothing_else() {
    const TEST: &str = "a_killed_waiter_costs_one_wake_up_and_nothing_else";
    if let Some(name) = child_of(TEST) {
        let region = blocking().open(name).unwrap();
        let _ = region.wait(None);
        unreachable!("killed before anyone notifies");
    }
    let name = name("killed");
    let region = blocking().create(&name, 1).unwrap();
    let mut waiter = child(TEST, &name);
    let started = Instant::now();
    while region.word().load(Ordering::Relaxed) & NOTIFY_WAITING == 0 {
        assert!(started.elapsed() < DEADLINE, "the child never waited");
        std::thread::sleep(Duration::from_millis(1));
    }
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    assert_eq!(region.word().load(Ordering::Relaxed), NOTIFY_WAITING, "the dead cannot take their bit back");

    // Another waiter sleeps on the word as it is, and is woken.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| blocking().open(&name).unwrap().wait(Some(DEADLINE)).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        // Until it is seen: the first may come before the other handle is open.
        while !other.is_finished() {
            region.notify().unwrap();
            assert_eq!(region.word().load(Ordering::Relaxed) & NOTIFY_WAITING, 0);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(other.join().unwrap());
    });
}

/// Other systems have no such mode.
#[cfg(target_os = "linux")]
#[test]
fn notify_makes_no_system_call_when_nobody_waits() {
    const TEST: &str = "notify_makes_no_system_call_when_nobody_waits";
    if let Some(name) = child_of(TEST) {
        let region = Region::open(name).unwrap();
        // From here on the kernel kills this thread at any system call but read, write and exit.
        // SAFETY: prctl with these arguments reads no memory.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) }, 0);
        for _ in 0..1_000_000 {
            let _ = region.notify();
        }
        // SAFETY: writes 9 bytes of a literal, then ends the thread without running anything else.
        unsafe {
            libc::write(1, b"survived\n".as_ptr().cast(), 9);
            libc::syscall(libc::SYS_exit, 0);
        }
        unreachable!();
    }
    let name = name("strict");
    let region = Region::create(&name, 1).unwrap();
    let mut notifier = child(TEST, &name);
    let survived = said(&mut notifier, "survived");
    let _ = notifier.kill();
    notifier.wait().unwrap();
    assert!(survived, "the kernel killed the notifying thread: it made a system call");
    assert_eq!(region.notifications().unwrap(), 2_000_000);
}

#[test]
fn the_count_wraps() {
    let region = blocking().create(name("wrap"), 1).unwrap();
    region.word().store(u32::MAX - 1, Ordering::Relaxed);
    assert!(region.try_wait().unwrap());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| region.wait(Some(DEADLINE)).unwrap());
        while region.word().load(Ordering::Relaxed) & NOTIFY_WAITING == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        region.notify().unwrap();
        assert!(waiter.join().unwrap());
    });
    assert_eq!(region.word().load(Ordering::Relaxed), 0);
    assert!(!region.try_wait().unwrap());
}

#[test]
fn many_threads_on_one_handle_each_count_for_themselves() {
    let region = blocking().create(name("threads"), 1).unwrap();
    let start = region.notifications().unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..8).map(|_| scope.spawn(|| region.wait_since(start, Some(DEADLINE)))).collect();
        std::thread::sleep(Duration::from_millis(20));
        region.notify().unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap(), Some(start.wrapping_add(NOTIFY_ONE)));
        }
    });
}
