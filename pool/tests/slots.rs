//! The places that threads have for their caches: 63 pools at a time have one.

mod support;

use ramway_pool::BufferPool;
use std::mem::forget;
use support::{block_size, is_marked, marked};

const LEN: usize = 3000;

/// 1 where threads have caches, else 0: without membarrier there are none, but on Linux there should be.
fn caches() -> usize {
    let pool = BufferPool::new();
    drop(pool.get(LEN));
    let caches = pool.stats().threads;
    let off = std::env::var("RAMWAY_MEMBARRIER").is_ok_and(|value| value == "0");
    assert!(caches == 1 || off || cfg!(not(target_os = "linux")) || cfg!(miri), "no caches on this kernel");
    caches
}

fn two_pools_that_alternate(caches: usize) {
    let pools = [BufferPool::new(), BufferPool::new()];
    for step in 0..10_000 {
        drop(pools[step % 2].get(LEN));
    }
    for pool in &pools {
        let stats = pool.stats();
        assert_eq!((stats.gets, stats.hits, stats.allocations), (5000, 4999 * caches as u64, 1), "{stats:?}");
    }
}

/// The 64th pool and those after it have no caches and work from their shards.
fn more_pools_than_places(caches: usize) {
    let pools: Vec<_> = (0..80).map(|_| BufferPool::new()).collect();
    for (owner, pool) in pools.iter().enumerate() {
        let (one, other) = (marked(pool, LEN, owner as u64), marked(pool, LEN, 1000));
        drop(other);
        drop(marked(pool, LEN, 1001));
        assert!(is_marked(&one, owner as u64));
    }
    assert!(pools.iter().all(|pool| pool.stats().allocations == 2));
    let with_caches = pools.iter().filter(|pool| pool.stats().threads == 1).count();
    assert_eq!(with_caches, 63 * caches);
}

/// A place for a cache is used again once its pool is gone for good, however many pools there were before.
fn a_pool_after_a_thousand_others(caches: usize) {
    for _ in 0..1000 {
        let pool = BufferPool::new();
        let late = pool.get(LEN);
        drop(pool.get(LEN));
        drop(pool);
        drop(late);
    }
    let pool = BufferPool::new();
    drop(pool.get(LEN));
    drop(pool.get(LEN));
    assert_eq!((pool.stats().threads, pool.stats().hits), (caches, caches as u64));
}

/// A place for caches is a pool's as long as one of its buffers may come back: forever, for these. The pools after them
/// have none and work all the same.
fn pools_after_seventy_that_were_forgotten() {
    for owner in 0..70 {
        let pool = BufferPool::new();
        forget(marked(&pool, LEN, owner));
        drop(marked(&pool, LEN, owner));
    }
    let pool = BufferPool::new();
    for owner in 0..10 {
        let (one, other) = (marked(&pool, LEN, owner), marked(&pool, LEN, owner + 1));
        assert!(is_marked(&one, owner) && is_marked(&other, owner + 1));
    }
    let stats = pool.stats();
    assert_eq!((stats.allocations, stats.idle_buffers, stats.gets, stats.hits), (2, 2, 20, 0), "{stats:?}");
    assert_eq!(pool.clear(), 2 * block_size(LEN));
}

/// One test, because the places are the process's: the last part uses all of them up.
#[test]
fn places_for_caches_are_shared_given_back_and_used_up() {
    let caches = caches();
    two_pools_that_alternate(caches);
    more_pools_than_places(caches);
    a_pool_after_a_thousand_others(caches);
    pools_after_seventy_that_were_forgotten();
}
