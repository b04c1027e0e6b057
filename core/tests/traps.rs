//! The traps that others fell into (design, section 11), one test each. Those that are tested elsewhere:
//!
//! | trap | where |
//! | --- | --- |
//! | three errors, not one null | `ring.rs`: `full_too_large_and_timed_out_are_three_errors` |
//! | a length checked against the capacity only; hostile positions, lengths, flags | `traps_hostile.rs`, `bus_memory.rs` |
//! | unlink before bind | `bus_names.rs`: `what_is_not_a_socket_is_left_alone` |
//! | the size of a received descriptor | `bus_handshake.rs` |
//! | a race between the last look and the sleep | below, and every schedule of it in `loom/sleep.rs` |
//! | a sender that starts before its receiver | `lifecycle_race.rs`: `a_sender_and_a_receiver_that_start_at_once_meet`, `bus.rs`: `sixty_simultaneous_starts_lose_no_first_message` |
//! | slow or stopped is not dead | `lifecycle_death.rs`: `stopped_or_slow_is_not_dead`, `bus.rs`: `a_stopped_peer_is_alive` |
//! | a message of length 0 | `proptest_ring.rs`, and below |
//! | stale files | `lifecycle.rs`: `what_a_killed_creator_left_is_opened_recycled_or_cleaned` |
//! | no allocation on the hot path | `traps_alloc.rs` |
//! | a mutex held by a dead process | there is none: locks are the kernel's, `lifecycle_death.rs` |
//! | time-outs by the wall clock | `Deadline` is an `Instant`; that they do not start anew: below |
//! | views that outlive their slot | Rust's borrows; `raw` and the bindings have tests of their own |

#[path = "support/asleep.rs"]
mod asleep;
mod support;

use asleep::Asleep;
use ramway::{ErrorKind, Receiver, Ring, Sender, WaitPolicy};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Dir, LONG, Peer, listen, say};

/// What the other processes do.
#[test]
fn helper() {
    let Some(role) = support::helper_role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["count", name, total] => count(name, total.parse().unwrap()),
        ["echo", there, back, membarrier] => echo(there, back, membarrier == "yes"),
        ["sleep under a timer", name] => sleep_under_a_timer(name),
        ["wait for room under a timer", name] => wait_for_room_under_a_timer(name),
        ["send and stay", name] => send_and_stay(name),
        ["sleep", name] => sleep(name),
        ["no system call"] => no_system_call(),
        ref other => panic!("no such role: {other:?}"),
    }
}

fn open_receiver(name: &str) -> Receiver {
    Ring::open(name).timeout(LONG).wait_policy(WaitPolicy::Block).receiver().unwrap()
}

fn open_sender(name: &str) -> Sender {
    Ring::open(name).timeout(LONG).wait_policy(WaitPolicy::Block).sender().unwrap()
}

/// Receives messages whose tags count up.
fn count(name: &str, total: u64) {
    let mut rx = open_receiver(name);
    for expected in 0..total {
        let message = rx.recv_timeout(LONG).unwrap();
        assert_eq!(message.tag(), expected);
        assert!(message.iter().all(|byte| *byte == expected as u8));
    }
    say("counted");
}

/// Space that is published back only every few messages deadlocks a ring that holds fewer.
#[test]
fn a_ring_that_holds_one_two_or_three_messages_does_not_deadlock() {
    for len in [4080, 2032, 1300, 1000] {
        let dir = Dir::new();
        let name = dir.at("tight");
        let mut tx = Ring::create(&name).capacity(4096).wait_policy(WaitPolicy::Block).sender().unwrap();
        let mut peer = Peer::start(&["count", &name, "2000"]);
        for i in 0..2000u64 {
            let mut slot = tx.reserve_timeout(len, LONG).unwrap().with_tag(i);
            slot.fill(i as u8);
            slot.commit(len).unwrap();
        }
        peer.expect("counted");
        peer.finish();
    }
}

/// Moves an empty ring forward by one step of its alignment, with a message of length 0.
fn step(tx: &mut Sender, rx: &mut Receiver) {
    tx.try_send(0, b"").unwrap();
    assert!(rx.try_recv().unwrap().is_empty());
}

/// With a marker at the wrap, what is longer than half the ring fits at some positions only.
#[test]
fn the_longest_message_fits_at_every_position_of_an_empty_ring() {
    for align in [16u32, 64, 1024] {
        let dir = Dir::new();
        let name = dir.at("every");
        let mut tx = Ring::create(&name).capacity(4096).align(align).sender().unwrap();
        let mut rx = Ring::open(&name).receiver().unwrap();
        let most = tx.max_message_len();
        assert_eq!(most, 4096 - 16);
        for position in 0..4096 / align {
            let data: Vec<u8> = (0..most).map(|i| (i as u32 * 31 + position) as u8).collect();
            tx.try_send(1, &data).unwrap();
            assert_eq!(&*rx.try_recv().unwrap(), &data[..]);
            step(&mut tx, &mut rx);
        }
    }
}

/// With a marker at the wrap, giving a slot up after the marker is written delivers an old message again.
#[test]
fn a_slot_that_is_given_up_after_the_wrap_delivers_nothing() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    for position in 0..256u64 {
        let mut slot = tx.try_reserve(4000).unwrap();
        slot.fill(0xAA);
        drop(slot);
        assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
        tx.try_send_tagged(1, position, b"new").unwrap();
        let message = rx.try_recv().unwrap();
        assert_eq!((message.tag(), &*message), (position, &b"new"[..]));
        drop(message);
        assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    }
}

/// A message of length 0 is a message, also where it is the last thing before the ring is full.
#[test]
fn messages_of_length_0_shift_nothing() {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    for round in 0..20u64 {
        let mut sent = 0;
        while tx.try_send_tagged(0, sent, &[round as u8; 3][..(sent % 3) as usize]).is_ok() {
            sent += 1;
        }
        // Two thirds of them take 32 bytes, one third takes 16.
        assert_eq!(tx.len(), 4096);
        for i in 0..sent {
            let message = rx.try_recv().unwrap();
            assert_eq!((message.tag(), message.len()), (i, (i % 3) as usize));
        }
        step(&mut tx, &mut rx);
    }
}

/// Sends back what it receives, asleep in between.
fn echo(there: &str, back: &str, membarrier: bool) {
    let options = |ring: ramway::RingBuilder| ring.timeout(LONG).wait_policy(WaitPolicy::Block).membarrier(membarrier);
    let mut rx = options(Ring::open(there)).receiver().unwrap();
    let mut tx = options(Ring::open(back)).sender().unwrap();
    say(asleep::thread());
    while let Ok(message) = rx.recv() {
        tx.send_tagged(0, message.tag(), &message).unwrap();
    }
}

/// A wake-up that is missed costs the round of 100 ms after which a sleeper looks by itself, and both sides sleep through it; a
/// round that a busy processor delays is not counted. Of 100,000 waits in each direction not one may end so. (A few that the
/// machine itself delays are told apart by their number: a race between the last look and the sleep shows once in about 1,000.)
fn round_trips(rounds: u64, here: bool, there: bool) {
    let dir = Dir::new();
    let (one, other) = (dir.at("there"), dir.at("back"));
    let options = |ring: ramway::RingBuilder| ring.capacity(4096).wait_policy(WaitPolicy::Block).membarrier(here);
    let mut tx = options(Ring::create(&one)).sender().unwrap();
    let mut rx = options(Ring::create(&other)).receiver().unwrap();
    let mut peer = Peer::start(&["echo", &one, &other, if there { "yes" } else { "no" }]);
    let mut both = Asleep::of(&[asleep::thread(), peer.hear()]);
    let (mut longest, mut slept, mut late) = (Duration::ZERO, Duration::ZERO, 0);
    for i in 0..rounds {
        let start = Instant::now();
        tx.send_tagged(0, i, b"ping").unwrap();
        assert_eq!(rx.recv_timeout(LONG).unwrap().tag(), i);
        longest = longest.max(start.elapsed());
        let asleep = both.take();
        slept = slept.max(asleep);
        late += (asleep >= Duration::from_millis(95)) as u64;
    }
    println!(
        "{rounds} blocking round trips, the longest {longest:?}, both asleep for {slept:?}, {late} for 95 ms or more"
    );
    assert!(
        late <= rounds / 10_000,
        "both slept for 95 ms or more in {late} of {rounds} round trips: a wake-up is missed"
    );
    drop(tx);
    peer.finish();
}

/// What the next tests go by.
#[test]
fn a_sleep_is_told_from_a_busy_processor() {
    let mut asleep = Asleep::of(&[asleep::thread()]);
    std::thread::sleep(Duration::from_millis(100));
    assert!(asleep.take() >= Duration::from_millis(95));
    if !asleep.counts() {
        return;
    }
    // Again where a hypervisor has taken the processor, which no kernel counts.
    let works = |_| {
        asleep.take();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        asleep.take()
    };
    let slept: Vec<_> = (0..10).map(works).take_while(|slept| *slept >= Duration::from_millis(95)).collect();
    assert!(slept.len() < 10, "of 200 ms at work each time: {slept:?}");
}

#[test]
fn a_wake_up_that_is_missed_is_seen() {
    let dir = Dir::new();
    let (one, other) = (dir.at("there"), dir.at("back"));
    let mut tx = Ring::create(&one).capacity(4096).wait_policy(WaitPolicy::Block).sender().unwrap();
    let mut rx = Ring::create(&other).capacity(4096).wait_policy(WaitPolicy::Block).receiver().unwrap();
    let mut peer = Peer::start(&["echo", &one, &other, "yes"]);
    let mut both = Asleep::of(&[asleep::thread(), peer.hear()]);
    let word = map_wait_word(&one);
    // Again where a busy processor takes a part of the round.
    let seen = (0..50).any(|i| {
        both.take();
        until_asleep(word);
        // So that the sender does not wake it.
        word.store(0, Ordering::SeqCst);
        tx.send_tagged(0, i, b"ping").unwrap();
        assert_eq!(rx.recv_timeout(LONG).unwrap().tag(), i);
        both.take() >= Duration::from_millis(95)
    });
    assert!(seen, "both slept for less than 95 ms each time");
    drop(tx);
    peer.finish();
}

#[test]
fn no_wake_up_is_missed_in_100_000_blocking_round_trips() {
    round_trips(100_000, true, true);
}

#[test]
fn no_wake_up_is_missed_where_nobody_has_membarrier() {
    round_trips(20_000, false, false);
}

#[test]
fn no_wake_up_is_missed_where_one_side_has_membarrier() {
    round_trips(20_000, true, false);
    round_trips(20_000, false, true);
}

extern "C" fn tick(_: libc::c_int) {}

/// From now on a signal interrupts the calling thread every few milliseconds.
fn start_timer() {
    // SAFETY: a handler that does nothing; gettid and getpid have no effects.
    let (process, thread) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = tick as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
        (libc::getpid(), libc::gettid())
    };
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(7));
            // SAFETY: a signal, which is handled, to a thread of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGALRM) };
        }
    });
}

fn sleep_under_a_timer(name: &str) {
    let mut rx = open_receiver(name);
    start_timer();
    let start = Instant::now();
    assert_eq!(rx.recv_timeout(Duration::from_millis(700)).unwrap_err().kind(), ErrorKind::TimedOut);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(700), "{took:?}");
    assert!(took < Duration::from_secs(10), "the time-out started anew at every wake-up: {took:?}");
    say("timed out");
    say(rx.recv_timeout(LONG).unwrap_err().kind().name());
}

fn wait_for_room_under_a_timer(name: &str) {
    let mut tx = open_sender(name);
    start_timer();
    while tx.try_send(0, &[0; 1000]).is_ok() {}
    let start = Instant::now();
    let late = tx.send_timeout(0, &[0; 1000], Duration::from_millis(700)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    assert!((700..10_000).contains(&start.elapsed().as_millis()));
    say("timed out");
    say(tx.send_timeout(0, &[0; 1000], LONG).unwrap_err().kind().name());
}

fn send_and_stay(name: &str) {
    let _tx = open_sender(name);
    say("attached");
    listen();
}

/// A time-out that starts anew at every wake-up never comes; a look at the peer that waits for a quiet 100 ms neither.
/// Wake-ups here: a signal every 7 ms.
#[test]
fn a_timer_neither_puts_off_the_time_out_nor_hides_a_death() {
    let dir = Dir::new();
    let name = dir.at("timer");
    let first = Ring::create(&name).persistent(true).receiver().unwrap();
    let mut sender = Peer::start(&["send and stay", &name]);
    sender.expect("attached");
    drop(first);
    let mut receiver = Peer::start(&["sleep under a timer", &name]);
    receiver.expect("timed out");
    sender.kill();
    let killed = Instant::now();
    receiver.expect("PeerDead");
    // At once, that is, and not when its own 30 s are over.
    assert!(killed.elapsed() < LONG / 3);
    receiver.finish();

    let mut receiver = Peer::start(&["sleep", &name]);
    receiver.expect("attached");
    receiver.signal(libc::SIGSTOP);
    let mut sender = Peer::start(&["wait for room under a timer", &name]);
    sender.expect("timed out");
    receiver.kill();
    let killed = Instant::now();
    sender.expect("PeerDead");
    assert!(killed.elapsed() < LONG / 3);
    sender.finish();
}

/// The wait word of the consumer in a mapping of a ring's file.
fn map_wait_word(name: &str) -> &'static AtomicU32 {
    use std::os::fd::AsRawFd;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    // SAFETY: a fresh mapping of the header page, which stays until the process ends.
    unsafe {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), 4096, prot, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        let consumer = std::mem::offset_of!(ramway::layout::RingBlock, consumer);
        &*at.cast::<u8>().add(ramway::layout::BLOCK_OFFSETS[0] + consumer).cast::<AtomicU32>()
    }
}

/// Real wake-ups, thousands of them, that bring nothing.
#[test]
fn wake_ups_for_nothing_do_not_put_off_the_time_out() {
    let dir = Dir::new();
    let name = dir.at("nothing");
    let _tx = Ring::create(&name).sender().unwrap();
    let mut rx = open_receiver(&name);
    let word = map_wait_word(&name);
    let over = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while over.load(Ordering::Relaxed) == 0 {
                word.store(0, Ordering::SeqCst);
                // SAFETY: wakes those who wait for a word that is mapped.
                unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        let start = Instant::now();
        let end = rx.recv_timeout(Duration::from_millis(500)).unwrap_err();
        let took = start.elapsed();
        over.store(1, Ordering::Relaxed);
        assert_eq!(end.kind(), ErrorKind::TimedOut);
        assert!((500..10_000).contains(&took.as_millis()), "{took:?}");
    });
}

/// Says when it is about to sleep, and what it got.
fn sleep(name: &str) {
    let mut rx = open_receiver(name);
    say("attached");
    let tag = rx.recv_timeout(LONG).unwrap().tag();
    say(tag);
}

/// Waits until somebody sleeps on the ring's consumer word.
fn until_asleep(word: &AtomicU32) {
    support::eventually("the receiver sleeps", || word.load(Ordering::SeqCst) == 1);
    std::thread::sleep(Duration::from_millis(30));
}

/// A receiver that was killed asleep must not take the wake-up of its successor, nor leave its word behind.
#[test]
fn a_killed_sleeper_does_not_swallow_its_successor_s_wake_up() {
    let dir = Dir::new();
    let name = dir.at("sleeper");
    let mut tx = Ring::create(&name).sender().unwrap();
    let word = map_wait_word(&name);
    for round in 0..10u64 {
        let mut doomed = Peer::start(&["sleep", &name]);
        doomed.expect("attached");
        until_asleep(word);
        doomed.kill();
        let mut successor = Peer::start(&["sleep", &name]);
        successor.expect("attached");
        until_asleep(word);
        tx.try_send_tagged(0, round, b"").unwrap();
        successor.expect(&round.to_string());
        successor.finish();
        assert_eq!(word.load(Ordering::SeqCst), 0);
    }
}

/// A million messages under a filter that kills the process at any system call but its exit.
fn no_system_call() {
    let (mut tx, mut rx) = Ring::pair(1 << 16).unwrap();
    let sum = AtomicU64::new(0);
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        // The number of the system call; allowed if it is exit_group, else the end.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_exit_group as u32, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: limits what this thread may do; the filter is copied.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
    for i in 0..1_000_000u64 {
        if tx.try_send_tagged(0, i, &i.to_le_bytes()).is_err() {
            unreachable!("it was emptied");
        }
        sum.fetch_add(rx.recv().map_or(0, |message| message.tag()), Ordering::Relaxed);
    }
    let right = sum.load(Ordering::Relaxed) == 999_999 * 1_000_000 / 2;
    // SAFETY: ends the process without anything that the filter forbids.
    unsafe { libc::_exit(!right as i32) };
}

/// A system call for each message, a wake-up for nobody.
#[test]
fn a_message_that_nobody_waits_for_costs_no_system_call() {
    Peer::start(&["no system call"]).finish();
}
