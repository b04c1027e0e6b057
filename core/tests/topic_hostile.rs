//! Whatever a hostile process writes into a topic's memory: no crash, no call that outlasts its deadline, no allocation
//! beyond the capacity.

mod support;

use ramway::{ErrorKind, Policy, Publisher, Result, Subscriber, Topic, TopicBuilder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::topic::{
    AREA, CLAIM, FLAGS, LAST, Memory, PUBLISHER, SLOT_EJECT_SEQ, STARTS, TAIL, WORD, create, is_whole, message,
    send_all, slot,
};
use support::{Dir, LONG, within};

/// The largest allocation so far.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watching;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LARGEST.fetch_max(new_size, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

const CAPACITY: u64 = 4096;
/// Data begins behind the header page and the area of four slots, which takes two.
const DATA: usize = 0x3000;

/// What any call may take that does not wait, or waits for no time: far more than it does, far less than for ever.
const DEADLINE: Duration = Duration::from_secs(10);

/// Whatever was written, only these are told.
fn check<T>(result: Result<T>) -> Option<T> {
    use ErrorKind::*;
    match result {
        Ok(value) => Some(value),
        Err(e) => {
            let expected = [Corrupt, Empty, Full, TimedOut, Lagged, Closed, PeerDead, TooLarge, Busy, AbiMismatch];
            assert!(expected.contains(&e.kind()) || e.kind() == InvalidArgument, "{e}");
            None
        }
    }
}

fn read(bytes: &[u8]) {
    assert!(bytes.len() as u64 <= CAPACITY, "{} bytes", bytes.len());
    // Every byte can be read.
    std::hint::black_box(bytes.iter().fold(0u8, |sum, byte| sum ^ byte));
}

/// Every call of a subscriber once; true while it lives.
fn use_subscriber(subscriber: &mut Subscriber) {
    let _ = (subscriber.len(), subscriber.lost(), subscriber.label(), subscriber.is_peer_alive());
    let none = Duration::ZERO;
    for _ in 0..2 {
        check(subscriber.try_recv().map(|message| read(&message)));
        check(subscriber.recv_timeout(none).map(|message| read(&message)));
        if let Some(mut batch) = check(subscriber.try_recv_batch(3)) {
            batch.iter().for_each(|message| read(&message));
        }
        let mut buffer = Vec::new();
        check(subscriber.try_recv_into(&mut buffer).map(|_| read(&buffer)));
        check(subscriber.recv_into_slice_timeout(&mut [0; 64], none));
        check(subscriber.latest().map(|message| read(&message)));
        check(subscriber.latest_into_slice(&mut [0; 64]));
        if let Some(message) = check(subscriber.try_recv()) {
            let _ = message.tensor().map(drop);
        }
    }
    let _ = subscriber.lag();
    if subscriber.policy() != Policy::Latest {
        check(subscriber.skip_to_newest());
        check(subscriber.try_recv().map(|message| read(&message)));
    }
}

fn use_publisher(publisher: &mut Publisher) {
    let _ = (publisher.len(), publisher.seq(), publisher.last_tag(), publisher.subscribers());
    for len in [0, 100, 2000] {
        check(publisher.try_send(0, &vec![1; len]));
        check(publisher.send_timeout(0, &vec![1; len], Duration::ZERO));
        check(publisher.try_reserve(len).map(|mut slot| slot.fill(2)));
    }
    check(publisher.wait_for_subscribers_timeout(2, Duration::ZERO));
}

/// A topic in the middle of its life, with subscribers of each policy.
struct Stage {
    publisher: Publisher,
    subscribers: Vec<Subscriber>,
}

fn stage(name: &str, may_eject: bool) -> Stage {
    let mut builder = create(name, CAPACITY).slots(4);
    if may_eject {
        builder = builder.eject_after(Duration::from_nanos(1));
    }
    let mut publisher = builder.publisher().unwrap();
    send_all(&mut publisher, 70, &[100, 0, 300]);
    let mut subscribers: Vec<_> = [Policy::Reliable, Policy::Lossy, Policy::Latest]
        .map(|policy| Topic::open(name).policy(policy).subscriber().unwrap())
        .into();
    subscribers.push(Topic::open(name).lossy().from_oldest().subscriber().unwrap());
    for _ in 0..5 {
        subscribers.iter_mut().for_each(|subscriber| drop(subscriber.try_recv().map(drop)));
    }
    send_all(&mut publisher, 3, &[100, 0]);
    Stage { publisher, subscribers }
}

fn joins(name: &str) -> [TopicBuilder; 6] {
    let open = || Topic::open(name);
    [open(), open().from_now(), open().history(5), open().lossy().after_seq(3), open().latest(), open().label("x")]
}

/// Values that a word can be hurt with, near what it holds and far from it.
fn values(now: u64) -> [u64; 14] {
    let near = |d: i64| now.wrapping_add_signed(d);
    let (ahead, behind) = (near(CAPACITY as i64), near(-(CAPACITY as i64)));
    [0, 1, 31, u64::MAX, u64::MAX - 31, 1 << 63, i64::MAX as u64, 0xFFFF_FFFF]
        .into_iter()
        .chain([near(32), near(-32), near(1), ahead, behind, now << 32])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

/// Whether value `case` of a word that holds `now` is another one than it holds, and than those before it.
fn is_new(now: u64, case: usize) -> bool {
    let values = values(now);
    values[case] != now && !values[..case].contains(&values[case])
}

/// All words that are shared, but for the geometry, which is read once and checked by the tests of bad files.
fn words() -> Vec<usize> {
    let positions = [TAIL, LAST, CLAIM].into_iter();
    let starts = (0..16).map(|i| STARTS + 8 * i);
    let roles = (0..3).map(|i| PUBLISHER + 8 * i);
    let area = [AREA, WORD].into_iter();
    let slots = (0..4).flat_map(|i| (0..6).map(move |word| slot(i) + 8 * word)).chain([slot(0) + 0x40]);
    positions.chain(starts).chain(roles).chain(area).chain(slots).collect()
}

fn each_word_with_each_value(may_eject: bool) {
    let dir = Dir::new();
    let mut cases = 0;
    for (index, word) in words().into_iter().enumerate() {
        let name = dir.at(&format!("topic-{index}"));
        let mut staged = None;
        for case in 0..14 {
            let Stage { mut publisher, mut subscribers } = staged.take().unwrap_or_else(|| stage(&name, may_eject));
            let memory = Memory::map(&name);
            let now = memory.u64(word).load(Ordering::Relaxed);
            if !is_new(now, case) {
                staged = Some(Stage { publisher, subscribers });
                continue;
            }
            let value = values(now)[case];
            let started = Instant::now();
            let scribble = || memory.u64(word).store(value, Ordering::SeqCst);
            scribble();
            for subscriber in &mut subscribers {
                use_subscriber(subscriber);
            }
            scribble();
            use_publisher(&mut publisher);
            for subscriber in &mut subscribers {
                use_subscriber(subscriber);
            }
            if case % 3 == index % 3 {
                for join in joins(&name) {
                    scribble();
                    if let Some(mut joined) = check(join.subscriber()) {
                        use_subscriber(&mut joined);
                    }
                }
            }
            publisher.abandon();
            scribble();
            if let Some(mut next) = check(Topic::open(&name).publisher()) {
                use_publisher(&mut next);
            }
            let took = started.elapsed();
            assert!(took < DEADLINE, "{value:#x} at {word:#x}: {took:?}");
            drop(subscribers);
            let _ = std::fs::remove_file(&name);
            cases += 1;
        }
    }
    println!("{cases} cases");
}

#[test]
fn each_word_with_each_value_where_views_are_given() {
    each_word_with_each_value(false);
}

#[test]
fn each_word_with_each_value_where_copies_are_given() {
    each_word_with_each_value(true);
}

/// The headers of frames, seen by subscribers that have not read them.
#[test]
fn each_word_of_a_frame_with_each_value() {
    let dir = Dir::new();
    for may_eject in [false, true] {
        for case in 0..14 {
            for field in 0..4 {
                let name = dir.at("topic");
                let Stage { mut publisher, mut subscribers } = stage(&name, may_eject);
                let memory = Memory::map(&name);
                for at in (DATA..DATA + CAPACITY as usize).step_by(32) {
                    let word = at + 8 * field;
                    let now = memory.u64(word).load(Ordering::Relaxed);
                    memory.u64(word).store(values(now)[case], Ordering::SeqCst);
                }
                subscribers.iter_mut().for_each(use_subscriber);
                use_publisher(&mut publisher);
                for join in joins(&name) {
                    if let Some(mut joined) = check(join.subscriber()) {
                        use_subscriber(&mut joined);
                    }
                }
                publisher.abandon();
                check(Topic::open(&name).publisher().map(drop));
                drop(subscribers);
                let _ = std::fs::remove_file(&name);
            }
        }
    }
}

/// A `tail` far ahead makes room for a length far beyond the mapping: neither is believed.
#[test]
fn a_tail_far_ahead_and_frames_of_any_length() {
    let dir = Dir::new();
    for ahead in [32, CAPACITY, CAPACITY * 2, 1 << 40, 1 << 62] {
        for len in [CAPACITY, 2 * CAPACITY, 1 << 20, (1 << 31) - 33, u64::from(u32::MAX)] {
            for (i, may_eject) in [false, true].into_iter().enumerate() {
                let name = dir.at(&format!("topic{i}"));
                let Stage { publisher, mut subscribers } = stage(&name, may_eject);
                let memory = Memory::map(&name);
                for at in (DATA..DATA + CAPACITY as usize).step_by(32) {
                    memory.u64(at).store(len, Ordering::SeqCst);
                }
                memory.u64(TAIL).fetch_add(ahead, Ordering::SeqCst);
                subscribers.iter_mut().for_each(use_subscriber);
                for join in joins(&name) {
                    if let Some(mut joined) = check(join.subscriber()) {
                        use_subscriber(&mut joined);
                    }
                }
                drop((publisher, subscribers));
                let _ = std::fs::remove_file(&name);
            }
        }
    }
}

/// A claim that always says "overtaken", and a `tail` that always says that there is more: no call lasts longer than it may.
#[test]
fn a_hostile_claim_and_deadlines() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, CAPACITY).publisher().unwrap();
    let mut subscribers: Vec<_> =
        [Policy::Lossy, Policy::Latest].map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap()).into();
    send_all(&mut publisher, 3, &[100]);
    let memory = Memory::map(&name);
    let stop = AtomicBool::new(false);
    within(DEADLINE * 3, move || {
        memory.u64(CLAIM).fetch_add(1 << 62, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    memory.u64(LAST).fetch_add(CAPACITY, Ordering::SeqCst);
                    memory.u64(TAIL).fetch_add(CAPACITY, Ordering::SeqCst);
                }
            });
            for subscriber in &mut subscribers {
                let mut buffer = Vec::new();
                for _ in 0..10 {
                    let limit = Duration::from_millis(5);
                    let started = Instant::now();
                    let outcomes = [
                        subscriber.recv_timeout(limit).map(drop),
                        subscriber.recv_into_timeout(&mut buffer, limit).map(drop),
                        subscriber.recv_batch_timeout(9, limit).map(drop),
                        subscriber.try_recv().map(drop),
                        subscriber.try_recv_into(&mut buffer).map(drop),
                        subscriber.latest().map(drop),
                    ];
                    let kinds = outcomes.map(|outcome| outcome.unwrap_err().kind());
                    use ErrorKind::{Empty, TimedOut};
                    assert_eq!(kinds, [TimedOut, TimedOut, TimedOut, Empty, Empty, Empty]);
                    assert!(started.elapsed() < DEADLINE / 2);
                }
                // And another thread can end one that has no deadline.
                let waker = subscriber.waker();
                let ended = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !ended.load(Ordering::Relaxed) {
                            waker.wake();
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    });
                    while subscriber.recv().map(drop).is_ok() {}
                    while subscriber.recv_into(&mut buffer).is_ok() {}
                    ended.store(true, Ordering::Relaxed);
                });
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

/// All at once: both sides run while somebody writes anything anywhere.
#[test]
fn scribbling_while_both_sides_run() {
    let dir = Dir::new();
    let until = Instant::now() + Duration::from_millis(1200);
    let mut seed = 0x1234_5678_9ABC_DEF1u64;
    let mut rounds = 0;
    while Instant::now() < until {
        let name = dir.at(&format!("topic{rounds}"));
        let Stage { mut publisher, mut subscribers } = stage(&name, rounds % 2 == 0);
        let memory = Memory::map(&name);
        let end = Instant::now() + Duration::from_millis(40);
        let words = words();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while Instant::now() < end {
                    use_publisher(&mut publisher);
                }
            });
            scope.spawn(|| {
                while Instant::now() < end {
                    subscribers.iter_mut().for_each(use_subscriber);
                }
            });
            while Instant::now() < end {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let at = match seed % 3 {
                    0 => words[(seed >> 8) as usize % words.len()],
                    1 => DATA + ((seed >> 8) as usize % (CAPACITY as usize / 8)) * 8,
                    _ => [TAIL, LAST, CLAIM, slot(0), slot(0) + 8, slot(0) + SLOT_EJECT_SEQ][(seed >> 8) as usize % 6],
                };
                let now = memory.u64(at).load(Ordering::Relaxed);
                memory.u64(at).store(values(now)[(seed >> 40) as usize % 14], Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        drop((publisher, subscribers));
        let _ = std::fs::remove_file(&name);
        rounds += 1;
    }
    println!("{rounds} rounds");
    // A copy, or all copies of a batch, and the smallest piece that copies are kept in.
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < (1 << 20), "an allocation of {largest} bytes for a topic of {CAPACITY}");
}

/// A subscriber may write whatever it likes to the whole subscribers' area, but for one slot: the publisher, that slot's
/// subscriber and those whom nobody waits for see nothing of it but delays.
#[test]
fn a_hostile_subscriber_harms_nobody_but_those_whose_slots_it_writes() {
    let dir = Dir::new();
    for may_eject in [false, true] {
        let name = dir.at(if may_eject { "eject" } else { "wait" });
        let mut builder = create(&name, CAPACITY).slots(4);
        if may_eject {
            builder = builder.eject_after(Duration::from_secs(60));
        }
        let mut publisher = builder.publisher().unwrap();
        let open = |policy| Topic::open(&name).policy(policy).subscriber().unwrap();
        // The first one has slot 0.
        let mut subscribers = [Policy::Reliable, Policy::Lossy, Policy::Latest].map(open);
        let memory = Memory::map(&name);
        let words: Vec<usize> = [AREA, WORD].into_iter().chain((slot(1)..slot(4)).step_by(8)).collect();
        let stop = AtomicBool::new(false);
        let started = Instant::now();
        let mut sent = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut seed = 0x9876_5432_1ABC_DEF1u64;
                while !stop.load(Ordering::Relaxed) {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    let at = words[(seed >> 8) as usize % words.len()];
                    // Positions of the moment are the worst.
                    let now = memory.u64([TAIL, CLAIM, at][(seed >> 30) as usize % 3]).load(Ordering::Relaxed);
                    let flags = (seed >> 50) & 15;
                    let value =
                        if at % 128 == 8 { seed << 32 | flags } else { values(now)[(seed >> 40) as usize % 14] };
                    memory.u64(at).store(value, Ordering::Relaxed);
                }
            });
            for subscriber in &mut subscribers {
                let (stop, mut next) = (&stop, 1);
                scope.spawn(move || {
                    loop {
                        let policy = subscriber.policy();
                        match subscriber.recv_timeout(Duration::from_millis(5)) {
                            Ok(message) => {
                                let (seq, lost) = (message.seq(), message.lost());
                                assert!(is_whole(&message, seq), "{policy:?}");
                                assert!(seq == next + lost && (policy != Policy::Reliable || lost == 0), "{policy:?}");
                                next = seq + 1;
                            }
                            Err(e) => assert_eq!(e.kind(), ErrorKind::TimedOut, "{policy:?}: {e}"),
                        }
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            // On a slow machine for longer.
            while started.elapsed() < Duration::from_millis(400) || (sent <= 20 && started.elapsed() < LONG) {
                let seq = publisher.seq() + 1;
                match publisher.send_timeout(1, &message(seq, seq as usize % 300), Duration::from_millis(5)) {
                    Ok(()) => sent += 1,
                    Err(e) => assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}"),
                }
                let _ = publisher.subscribers();
            }
            stop.store(true, Ordering::Relaxed);
        });
        println!("{sent} messages");
        assert!(sent > 20, "{sent} messages");
    }
}

/// The creator's flags are read once: to change them later changes nothing.
#[test]
fn flags_that_change_after_the_attach() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let Stage { mut publisher, mut subscribers } = stage(&name, false);
    let memory = Memory::map(&name);
    for flags in [1, 2, 3, u32::MAX] {
        memory.u32(FLAGS).store(flags, Ordering::SeqCst);
        use_publisher(&mut publisher);
        subscribers.iter_mut().for_each(use_subscriber);
        let refused = Topic::open(&name).subscriber();
        assert!(flags == 2 || refused.is_err(), "flags {flags}");
    }
    memory.u32(FLAGS).store(0, Ordering::SeqCst);
    // An ejected slot where nobody may eject.
    memory.u64(slot(0) + 8).store(1 << 32 | 8 | 4, Ordering::SeqCst);
    let label = u64::from_le_bytes(*b"x\0\0\0\0\0\0\0");
    drop(subscribers);
    memory.u64(slot(0) + 8).store(1 << 32 | 8 | 4, Ordering::SeqCst);
    memory.u64(slot(0) + 0x40).store(label, Ordering::SeqCst);
    let refused = Topic::open(&name).label("x").durable(true).subscriber().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    memory.u64(slot(0) + 8).store(0, Ordering::SeqCst);
}
