//! `max_bytes` and the end of memory, told by an allocator of which the pool knows nothing.

mod support;

use ramway_pool::{BufferPool, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use support::ledger::{self, Ledger};
use support::{Random, fill, is_marked, marked, rounds, within};

#[global_allocator]
static LEDGER: Ledger = Ledger;

const LONG: Duration = Duration::from_secs(600);
const THREADS: usize = 16;

/// One test at a time, because the allocator counts for all of them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 16 threads want twice of what there may be. The pool's own figures are sampled all the time, and the allocator's
/// peak, of which the pool knows nothing, says the same.
#[test]
fn no_race_exceeds_the_limit() {
    let _alone = alone();
    within(LONG, || {
        const LIMIT: usize = 4 << 20;
        let pool = BufferPool::builder().max_bytes(LIMIT).build().unwrap();
        let (given, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let done = AtomicBool::new(false);
        let (before, start) = (ledger::live(), Barrier::new(THREADS + 1));
        thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let stats = pool.stats();
                    assert!(stats.held_bytes <= LIMIT && stats.peak_held_bytes <= LIMIT, "{stats:?}");
                    assert!(ledger::live() <= before + LIMIT);
                    thread::yield_now();
                }
            });
            let threads: Vec<_> = (1..=THREADS as u64)
                .map(|owner| {
                    let (pool, given, refused, start) = (&pool, &given, &refused, &start);
                    scope.spawn(move || {
                        let (mut random, mut held) = (Random::new(owner), Vec::new());
                        start.wait();
                        let all = rounds(1000);
                        for round in 0..all {
                            if round == all / 2 {
                                // Threads that run one after the other never meet at the limit: so each goes there by
                                // itself. It comes to an end because all that can be had has one.
                                while let Ok(mut buffer) = pool.try_get(32_000) {
                                    fill(&mut buffer, owner);
                                    held.push(buffer);
                                    given.fetch_add(1, Ordering::Relaxed);
                                }
                                refused.fetch_add(1, Ordering::Relaxed);
                                held.truncate(16);
                            }
                            if held.len() < 32 && random.below(3) > 0 {
                                // Alike for all threads, so that caches hold what others want; at times a long one.
                                let doublings = if random.below(50) == 0 { 11 } else { 6 };
                                let len = 1000 << random.below(doublings);
                                match pool.try_get(len) {
                                    Ok(mut buffer) => {
                                        fill(&mut buffer, owner);
                                        held.push(buffer);
                                        given.fetch_add(1, Ordering::Relaxed);
                                    }
                                    Err(error) => {
                                        assert_eq!(error.kind(), ErrorKind::LimitReached, "{error}");
                                        refused.fetch_add(1, Ordering::Relaxed);
                                        held.truncate(held.len() / 2);
                                    }
                                }
                            } else if !held.is_empty() {
                                let buffer = held.swap_remove(random.below(held.len()));
                                assert!(is_marked(&buffer, owner));
                            }
                        }
                    })
                })
                .collect();
            start.wait();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            done.store(true, Ordering::Relaxed);
            sampler.join().unwrap();
        });
        let stats = pool.stats();
        assert!(stats.peak_held_bytes <= LIMIT, "{stats:?}");
        assert!(stats.peak_held_bytes > LIMIT / 2, "the limit was never near: {stats:?}");
        assert!(given.into_inner() as usize > rounds(250));
        assert_eq!(stats.refused, refused.into_inner());
        assert!(stats.refused >= THREADS as u64, "the limit was never reached: {stats:?}");
        assert_eq!((stats.in_use_bytes, stats.max_bytes), (0, Some(LIMIT)));
        pool.clear();
        assert_eq!((pool.stats().held_bytes, ledger::live()), (0, before));
    });
}

/// The allocator refuses: an error, with the books as they were; and what is idle is given back before that.
#[test]
fn no_memory_is_an_error_after_all_that_is_idle_was_given_back() {
    let _alone = alone();
    let (before, pool) = (ledger::live(), BufferPool::new());
    let held = marked(&pool, 300_000, 1);
    drop((0..4).map(|owner| marked(&pool, 20_000, owner)).collect::<Vec<_>>());
    let in_use = pool.stats().in_use_bytes;
    ledger::refuse_from(500_000);
    let error = pool.try_get(1 << 20).unwrap_err();
    ledger::refuse_from(usize::MAX);
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    let stats = pool.stats();
    assert_eq!((stats.held_bytes, stats.in_use_bytes, stats.idle_bytes), (in_use, in_use, 0), "{stats:?}");
    drop(marked(&pool, 1 << 20, 2));
    assert!(is_marked(&held, 1));
    drop((held, pool));
    assert_eq!(ledger::live(), before);
}
