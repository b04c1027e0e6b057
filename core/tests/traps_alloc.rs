//! The hot path allocates nothing: a million messages are counted under an allocator that counts.

use ramway::{ErrorKind, Policy, Ring, Topic, WaitPolicy};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::SeqCst)
}

const MESSAGES: u64 = 1_000_000;

/// Every way to send and receive, and the errors that a hot loop meets, in one thread.
fn in_one_thread() {
    let (mut tx, mut rx) = Ring::pair(1 << 16).unwrap();
    let mut buffer = Vec::with_capacity(1 << 10);
    let payload = [7; 100];
    let before = allocations();
    for i in 0..MESSAGES / 4 {
        tx.try_send_tagged(1, i, &payload).unwrap();
        tx.send_pod(2, &i).unwrap();
        let mut slot = tx.reserve(64).unwrap();
        slot[0] = i as u8;
        slot.commit_unflushed(32).unwrap();
        drop(tx.try_reserve(8).unwrap());
        tx.flush().unwrap();
        tx.send_batch(3, [b"x"]).unwrap();

        assert_eq!(rx.recv().unwrap().tag(), i);
        assert_eq!(*rx.try_recv().unwrap().as_pod::<u64>().unwrap(), i);
        assert_eq!(rx.recv_into(&mut buffer).unwrap().len, 32);
        assert_eq!(rx.try_recv_batch(8).unwrap().iter().count(), 1);
        assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    }
    assert_eq!(rx.recv_timeout(Duration::from_millis(2)).unwrap_err().kind(), ErrorKind::TimedOut);
    while tx.try_send(0, &payload).is_ok() {}
    assert_eq!(tx.try_send(0, &payload).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(tx.send_timeout(0, &payload, Duration::from_millis(2)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(allocations() - before, 0, "allocations in {MESSAGES} messages");
}

/// With both sides spinning, sleeping and waking each other.
fn between_two_threads(policy: WaitPolicy) {
    let (mut tx, mut rx) = Ring::pair(4096).unwrap();
    tx.set_wait_policy(policy);
    rx.set_wait_policy(policy);
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            for i in 0..MESSAGES / 10 {
                tx.send_tagged(0, i, &[1; 48]).unwrap();
            }
            end.wait();
        });
        // The first wait of a thread may set up what the standard library keeps for it.
        start.wait();
        assert_eq!(rx.recv().unwrap().tag(), 0);
        let before = allocations();
        for i in 1..MESSAGES / 10 {
            assert_eq!(rx.recv().unwrap().tag(), i);
        }
        let after = allocations();
        end.wait();
        assert_eq!(after - before, 0, "allocations under {policy:?}");
    });
}

/// Every way to receive from a topic, in one thread: views, copies of a lossy one that is lapped now and then, the newest.
fn of_a_topic(may_eject: bool) {
    let name = format!("/dev/shm/ramway-traps-alloc-{}-{may_eject}", std::process::id());
    let mut publisher = Topic::create(&name).capacity(1 << 16).may_eject(may_eject).publisher().unwrap();
    let mut subscribers = [Policy::Reliable, Policy::Lossy, Policy::Latest]
        .map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap());
    let (mut buffer, payload) = (Vec::with_capacity(1 << 10), [7; 1000]);
    let mut slice = [0; 1000];
    let mut round = |i: u64| {
        for n in 0..4 {
            publisher.try_send_tagged(1, i, &payload[..(i as usize * 13 + n) % 1000]).unwrap();
        }
        let [reliable, lossy, latest] = &mut subscribers;
        for subscriber in [&mut *reliable, &mut *lossy] {
            // A lossy one that has not read for a while has lost some.
            if subscriber.policy() == Policy::Lossy && i % 100 < 60 {
                continue;
            }
            assert!(subscriber.recv().is_ok());
            subscriber.recv_into(&mut buffer).unwrap();
            subscriber.recv_into_slice(&mut slice).unwrap();
            while let Ok(mut batch) = subscriber.try_recv_batch(64) {
                batch.iter().for_each(|message| assert_eq!(message.type_id(), 1));
            }
            assert_eq!(subscriber.try_recv().unwrap_err().kind(), ErrorKind::Empty);
            assert!(subscriber.latest().is_ok());
        }
        assert_eq!(latest.recv().unwrap().tag(), i);
        assert_eq!(latest.latest().unwrap().tag(), i);
        latest.latest_into(&mut buffer).unwrap();
        latest.latest_into_slice(&mut slice).unwrap();
        assert_eq!(latest.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    };
    // Room for copies is made at first.
    (0..1000).for_each(&mut round);
    let before = allocations();
    (1000..MESSAGES / 20).for_each(&mut round);
    assert_eq!(allocations() - before, 0, "allocations with may_eject {may_eject}");
    while publisher.try_send(0, &payload).is_ok() {}
    assert_eq!(publisher.try_send(0, &payload).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(publisher.send_timeout(0, &payload, Duration::from_millis(2)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(allocations() - before, 0, "allocations of a publisher that waits");
}

/// One test, because another one's allocations would be counted here.
#[test]
fn a_million_messages_allocate_nothing() {
    in_one_thread();
    between_two_threads(WaitPolicy::Hybrid);
    between_two_threads(WaitPolicy::Block);
    of_a_topic(false);
    of_a_topic(true);
}
