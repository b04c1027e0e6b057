//! Many pools on one thread: none ever gives what is another's, also where pools end before their buffers.

mod support;

use ramway_pool::{Buffer, BufferPool};
use std::collections::{HashMap, HashSet};
use std::thread;
use support::{Random, is_marked, marked, rounds};

const POOLS: usize = if cfg!(miri) { 4 } else { 100 };
const EACH: usize = 5;
const LEN: usize = 3000;

fn address(buffer: &Buffer) -> usize {
    buffer.as_ptr() as usize
}

/// Pools that own the same number of blocks each, and which addresses those are. While no pool allocates or frees, a
/// block can come from nowhere else.
fn filled() -> (Vec<BufferPool>, Vec<HashSet<usize>>) {
    let pools: Vec<_> = (0..POOLS).map(|_| BufferPool::new()).collect();
    let all: Vec<Vec<Buffer>> = pools.iter().map(|pool| (0..EACH).map(|_| marked(pool, LEN, 0)).collect()).collect();
    let addresses: Vec<HashSet<usize>> = all.iter().map(|buffers| buffers.iter().map(address).collect()).collect();
    let together: HashSet<usize> = addresses.iter().flatten().copied().collect();
    assert_eq!(together.len(), POOLS * EACH, "two buffers at one place");
    (pools, addresses)
}

fn is_as_filled(pools: &[BufferPool]) {
    for pool in pools {
        let stats = pool.stats();
        assert_eq!((stats.allocations, stats.freed), (EACH as u64, 0), "{stats:?}");
        assert_eq!((stats.in_use_bytes, stats.idle_buffers), (0, EACH), "{stats:?}");
    }
}

#[test]
fn a_hundred_pools_on_one_thread_never_cross() {
    let (pools, addresses) = filled();
    let mut random = Random::new(1);
    let mut held: HashMap<usize, Vec<Buffer>> = HashMap::new();
    for step in 0..if cfg!(miri) { 200 } else { rounds(50_000) } {
        let at = random.below(POOLS);
        let mine = held.entry(at).or_default();
        if mine.len() < EACH && random.below(2) == 0 {
            let buffer = marked(&pools[at], LEN, at as u64);
            assert!(addresses[at].contains(&address(&buffer)), "step {step}: pool {at} gave what is not its own");
            mine.push(buffer);
        } else if let Some(buffer) = mine.pop() {
            assert!(is_marked(&buffer, at as u64));
        }
    }
    // The same on another thread, which has caches of its own.
    let held = thread::scope(|scope| {
        let (pools, addresses) = (&pools, &addresses);
        let other = scope.spawn(move || {
            let known: Vec<usize> = held.iter().filter(|(_, mine)| !mine.is_empty()).map(|(at, _)| *at).collect();
            assert!(!known.is_empty());
            drop(held);
            let all: Vec<_> = known.into_iter().map(|at| (at, marked(&pools[at], LEN, at as u64))).collect();
            assert!(all.iter().all(|(at, buffer)| addresses[*at].contains(&address(buffer))));
            all
        });
        other.join().unwrap()
    });
    assert!(held.iter().all(|(at, buffer)| is_marked(buffer, *at as u64)));
    drop(held);
    is_as_filled(&pools);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn buffers_of_all_pools_dropped_by_threads_that_know_none_of_them() {
    let (pools, addresses) = filled();
    for round in 0..rounds(5) {
        let all: Vec<Vec<_>> = pools
            .iter()
            .enumerate()
            .map(|(at, pool)| (0..EACH).map(|_| marked(pool, LEN, at as u64)).collect())
            .collect();
        thread::scope(|scope| {
            for at in 0..EACH {
                let mine: Vec<&Vec<Buffer>> = all.iter().collect();
                scope.spawn(move || {
                    assert!(mine.iter().enumerate().all(|(pool, buffers)| is_marked(&buffers[at], pool as u64)));
                });
            }
        });
        let mut hands: Vec<Vec<Buffer>> = (0..4).map(|_| Vec::new()).collect();
        for (i, buffer) in all.into_iter().flatten().enumerate() {
            hands[(i + round) % 4].push(buffer);
        }
        let dropping: Vec<_> = hands.into_iter().map(|hand| thread::spawn(move || drop(hand))).collect();
        dropping.into_iter().for_each(|one| one.join().unwrap());
        is_as_filled(&pools);
        for (pool, addresses) in pools.iter().zip(&addresses) {
            let back: Vec<Buffer> = (0..EACH).map(|_| pool.get(LEN)).collect();
            assert!(back.iter().all(|buffer| addresses.contains(&address(buffer))));
        }
    }
}

/// More dead pools than a thread has places for caches, with buffers alive, and new pools in between.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn buffers_of_dead_pools_go_to_no_new_pool() {
    let mut orphans = Vec::new();
    for round in 0..3 * POOLS as u64 {
        let pool = BufferPool::new();
        let kept = marked(&pool, LEN, round);
        drop(marked(&pool, LEN, round)); // stands in this thread's cache when the pool ends
        drop(pool);
        orphans.push((round, kept));
        let new = BufferPool::new();
        if round % 3 == 0 {
            drop(new.get(LEN)); // so that it has a cache
        }
        let before = new.stats();
        if round % 2 == 0 && orphans.len() > 1 {
            let (owner, oldest) = orphans.swap_remove(round as usize % orphans.len());
            assert!(is_marked(&oldest, owner));
            drop(oldest);
        }
        let stats = new.stats();
        assert_eq!(before, stats, "another pool's buffer came here");
        drop(new.get(LEN));
        assert_eq!(new.stats().allocations, 1);
        drop(new);
        if round % 8 == 7 {
            // Most of them at once, on another thread.
            let some: Vec<_> = orphans.drain(..orphans.len() / 2).collect();
            thread::spawn(move || assert!(some.iter().all(|(owner, buffer)| is_marked(buffer, *owner))))
                .join()
                .unwrap();
        }
    }
    assert!(orphans.iter().all(|(owner, buffer)| is_marked(buffer, *owner)));
}
