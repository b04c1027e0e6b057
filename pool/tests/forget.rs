//! Forgetting is safe in Rust, so what is forgotten may be leaked and nothing else.

mod support;

use ramway_pool::{BufferPool, ErrorKind};
use std::mem::forget;
use std::thread;
use support::{block_size, is_marked, marked};

const LEN: usize = 4096;

#[test]
fn a_forgotten_buffer_stays_in_use_and_the_pool_goes_on() {
    let size = block_size(LEN);
    let pool = BufferPool::builder().max_bytes(3 * size).build().unwrap();
    let place = {
        let mut forgotten = marked(&pool, LEN, 1);
        let place = forgotten.as_mut_ptr();
        forget(forgotten);
        // SAFETY: nobody gave the memory back, so it is there forever, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(place, LEN) }
    };
    forget(marked(&pool, LEN, 9).freeze());
    for owner in 2..100 {
        drop(marked(&pool, LEN, owner));
    }
    let one = marked(&pool, LEN, 100);
    assert_eq!(pool.try_get(LEN).unwrap_err().kind(), ErrorKind::LimitReached, "what is forgotten is still in use");
    assert!(is_marked(place, 1), "forgotten memory was given to somebody");
    assert_eq!(pool.stats().in_use_bytes, 3 * size);
    drop(one);
    assert_eq!(pool.clear(), size);
    drop(pool);
    support::mark(place, 200);
    drop(marked(&BufferPool::new(), LEN, 201));
    assert!(is_marked(place, 200));
}

#[test]
fn a_forgotten_uninit_buffer_is_no_different() {
    let pool = BufferPool::new();
    forget(pool.get_uninit(LEN));
    let stats = pool.stats();
    assert_eq!((stats.in_use_bytes, stats.idle_bytes, pool.clear()), (block_size(LEN), 0, 0));
}

/// A pool that nobody can reach any more but whose handle was never dropped.
#[test]
fn a_forgotten_handle_leaves_buffers_and_threads_alone() {
    let pool = BufferPool::new();
    forget(pool.clone());
    let late = marked(&pool, LEN, 1);
    let theirs = pool.clone();
    thread::spawn(move || drop(marked(&theirs, LEN, 2))).join().unwrap();
    drop(pool);
    assert!(is_marked(&late, 1));
    drop(late);
    drop(marked(&BufferPool::new(), LEN, 3));
}

#[test]
fn threads_end_with_forgotten_buffers() {
    let pool = BufferPool::new();
    for owner in 0..20 {
        let theirs = pool.clone();
        thread::spawn(move || {
            forget(marked(&theirs, LEN, owner));
            drop(marked(&theirs, LEN, owner));
        })
        .join()
        .unwrap();
    }
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.idle_buffers), (0, 1), "{stats:?}");
    assert_eq!(stats.in_use_bytes, 20 * block_size(LEN));
}
