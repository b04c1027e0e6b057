//! `max_bytes`: what is idle anywhere does not stand in a get's way, and at the limit everybody is told.

mod support;

use ramway_pool::{BufferPool, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use support::{Random, block_size, fill, is_marked, marked, rounds, within};

const LONG: Duration = Duration::from_secs(120);
const THREADS: usize = if cfg!(miri) { 3 } else { 16 };

fn limited(bytes: usize) -> BufferPool {
    BufferPool::builder().max_bytes(bytes).build().unwrap()
}

/// As many bytes as 16 threads can have at a time: a request must succeed, wherever other memory is idle.
#[test]
fn a_get_for_which_there_is_room_is_never_refused() {
    within(LONG, || {
        // Mostly the longest, so that little stands between what all have and what they may have.
        const LENS: [usize; 4] = [64 << 10, 34_000, 64 << 10, 64 << 10];
        let pool = limited(THREADS * block_size(LENS[0]));
        thread::scope(|scope| {
            for owner in 1..=THREADS as u64 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut random = Random::new(owner);
                    for step in 0..rounds(4000) {
                        let len = LENS[random.below(4)];
                        match pool.try_get(len) {
                            Ok(buffer) if step % 2 == 0 => drop(buffer),
                            Ok(mut buffer) => {
                                fill(&mut buffer, owner);
                                if step % 7 == 0 {
                                    thread::yield_now();
                                }
                            }
                            Err(error) => panic!("step {step}: {error}\n{}", pool.stats()),
                        }
                    }
                });
            }
        });
        assert_eq!(pool.stats().refused, 0);
    });
}

/// All that the pool may own stands idle in the cache of a thread that does nothing any more.
#[test]
fn what_another_threads_cache_holds_is_reclaimed() {
    within(LONG, || {
        let (small, large) = (block_size(10_000), block_size(60_000));
        let pool = limited(8 * small);
        let (filled, end) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                drop((0..8).map(|owner| marked(&pool, 10_000, owner)).collect::<Vec<_>>());
                filled.wait();
                end.wait();
                // What was taken away is not missed.
                drop(marked(&pool, 10_000, 1));
            });
            filled.wait();
            let before = pool.stats();
            assert_eq!((before.held_bytes, before.idle_bytes), (8 * small, 8 * small), "{before:?}");
            let other = pool.try_get(60_000).expect("all of it is idle");
            let after = pool.stats();
            assert!(after.freed > 0 && after.held_bytes <= 8 * small, "{after:?}");
            assert_eq!(after.in_use_bytes, large);
            drop(other);
            end.wait();
        });
        assert_eq!(pool.stats().refused, 0);
    });
}

#[test]
fn at_the_limit_errors_and_panics_say_so_and_nothing_breaks() {
    let size = block_size(5000);
    let pool = limited(3 * size);
    let mut all: Vec<_> = (0..3).map(|owner| marked(&pool, 5000, owner)).collect();

    let error = pool.try_get(5000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.to_string().contains(&(3 * size).to_string()), "which limit? {error}");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::QuotaExceeded);
    assert_eq!(pool.preallocate(1, 5000).unwrap_err().kind(), ErrorKind::LimitReached);
    let panics = |what: &dyn Fn()| {
        let text = *catch_unwind(AssertUnwindSafe(what)).unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("max_bytes"), "{text}");
    };
    panics(&|| drop(pool.get(5000)));
    panics(&|| drop(pool.get_zeroed(5000)));
    panics(&|| drop(pool.get_uninit(5000)));
    panics(&|| drop(pool.take_with_capacity(5000)));
    // Nothing is idle, not even a little: there is no room for the shortest block either.
    assert_eq!(pool.try_get(1).unwrap_err().kind(), ErrorKind::LimitReached);
    let stats = pool.stats();
    assert!(stats.refused >= 6, "{stats:?}");
    assert_eq!((stats.held_bytes, stats.in_use_bytes, stats.allocations), (3 * size, 3 * size, 3), "{stats:?}");

    // What would exceed it is dropped, not kept.
    pool.put(Vec::with_capacity(size));
    assert_eq!((pool.stats().held_bytes, pool.len()), (3 * size, 0));

    // A vector that left is not the pool's any more: its room is free again.
    let vector = all.pop().unwrap().into_vec();
    let again = pool.try_get(5000).unwrap();
    assert_eq!(pool.try_get(5000).unwrap_err().kind(), ErrorKind::LimitReached);
    assert!(is_marked(&vector, 2));
    drop(again);
    for (owner, buffer) in all.iter().enumerate() {
        assert!(is_marked(buffer, owner as u64));
    }
    drop(all);
    // Other sizes in place of what is idle.
    drop(marked(&pool, size + 1, 9));
    drop((0..2).map(|owner| marked(&pool, 5000, owner)).collect::<Vec<_>>());
    assert!(pool.stats().peak_held_bytes <= 3 * size);
    drop(pool);
}

#[test]
fn a_limit_below_the_shortest_block_gives_nothing() {
    let Ok(pool) = BufferPool::builder().max_bytes(1).build() else { return };
    assert_eq!(pool.try_get(1).unwrap_err().kind(), ErrorKind::LimitReached);
    assert_eq!((pool.clear(), pool.stats().peak_held_bytes), (0, 0));
}

#[test]
fn preallocating_goes_as_far_as_the_limit() {
    let size = block_size(5000);
    let pool = limited(5 * size + size / 2);
    assert_eq!(pool.preallocate(9, 5000).unwrap_err().kind(), ErrorKind::LimitReached);
    assert_eq!((pool.len(), pool.stats().held_bytes), (5, 5 * size));
}

#[test]
fn a_length_that_no_buffer_has_is_told() {
    let pool = BufferPool::new();
    for len in [usize::MAX, isize::MAX as usize, (128 << 30) + 1] {
        assert_eq!(pool.try_get(len).unwrap_err().kind(), ErrorKind::TooLarge, "{len}");
        assert_eq!(pool.preallocate(1, len).unwrap_err().kind(), ErrorKind::TooLarge, "{len}");
    }
    assert_eq!(pool.stats().peak_held_bytes, 0);
}

/// A length from a peer must not empty the pool.
#[test]
fn a_get_that_can_never_be_had_frees_nothing() {
    let pool = BufferPool::builder().max_bytes(1 << 20).build().unwrap();
    let buffer = pool.get(512 << 10);
    drop(pool.get(256 << 10));
    assert_eq!(pool.try_get(2 << 20).unwrap_err().kind(), ErrorKind::LimitReached);
    assert_eq!((pool.len(), pool.stats().freed), (1, 0));
    assert_eq!(pool.try_get(640 << 10).unwrap_err().kind(), ErrorKind::LimitReached);
    drop(buffer);
    assert!(pool.try_get(1 << 20).is_ok());
}
