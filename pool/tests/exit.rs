//! What becomes of a thread's cache when the thread ends, however it ends.

mod support;

use ramway_pool::{Buffer, BufferPool};
use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use support::{is_marked, marked, rounds, within};

const LONG: Duration = Duration::from_secs(60);
const LEN: usize = 8192;

/// Nothing is in use, and what is idle can be had from here without an allocation.
fn is_all_here(pool: &BufferPool, buffers: usize) {
    let before = pool.stats();
    assert_eq!((before.in_use_bytes, before.idle_buffers), (0, buffers), "{before:?}");
    assert_eq!(pool.len(), buffers);
    assert_eq!(before.held_bytes, before.idle_bytes);
    let all: Vec<Buffer> = (0..buffers).map(|_| pool.get(LEN)).collect();
    let after = pool.stats();
    assert_eq!(after.allocations, before.allocations, "{buffers} buffers stood idle, and some were allocated");
    assert_eq!((after.idle_bytes, after.in_use_bytes), (0, before.held_bytes), "{after:?}");
    drop(all);
    pool.clear();
    assert_eq!(pool.stats().held_bytes, 0);
}

/// `count` buffers at once, each with its mark.
fn use_some(pool: &BufferPool, count: usize) {
    let all: Vec<Buffer> = (0..count).map(|i| marked(pool, LEN, i as u64)).collect();
    assert!(all.iter().enumerate().all(|(i, buffer)| is_marked(buffer, i as u64)));
}

#[test]
fn the_cache_of_a_thread_that_ended_goes_to_others() {
    for count in [1, 7, rounds(100)] {
        let pool = BufferPool::new();
        let theirs = pool.clone();
        thread::spawn(move || use_some(&theirs, count)).join().unwrap();
        assert_eq!(pool.stats().threads, 0, "an ended thread still has a cache");
        is_all_here(&pool, count);
    }
}

#[test]
fn scoped_threads_give_back_as_others_do() {
    let pool = BufferPool::new();
    let together = Barrier::new(8);
    let one = || {
        let buffer = marked(&pool, LEN, 3);
        together.wait();
        drop(buffer);
    };
    // Joined by hand: a scope alone waits for the closures, not for what the threads do when they end.
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(pool.stats().threads, 0);
    is_all_here(&pool, 8);
}

#[test]
fn a_thread_that_panics_gives_back() {
    let pool = BufferPool::new();
    let theirs = pool.clone();
    let died = thread::spawn(move || {
        let _held = marked(&theirs, LEN, 1);
        use_some(&theirs, 3);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert_eq!(*died.join().unwrap_err().downcast::<&str>().unwrap(), "on purpose");
    assert_eq!(pool.stats().threads, 0);
    is_all_here(&pool, 4);
}

/// Drops what it holds when its thread ends, and then gets and drops some more.
struct Last(RefCell<Vec<(BufferPool, Buffer)>>);

impl Last {
    fn hold(&self, pool: &BufferPool, owner: u64) {
        self.0.borrow_mut().push((pool.clone(), marked(pool, LEN, owner)));
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        for (pool, buffer) in self.0.borrow_mut().drain(..) {
            assert!(is_marked(&buffer, 5) || is_marked(&buffer, 6));
            let another = marked(&pool, LEN, 7);
            drop(buffer);
            assert!(is_marked(&another, 7));
            drop(another);
            drop(marked(&pool, LEN, 8));
        }
    }
}

thread_local! {
    static BEFORE: Last = const { Last(RefCell::new(Vec::new())) };
    static AFTER: Last = const { Last(RefCell::new(Vec::new())) };
}

#[test]
fn buffers_that_outlive_their_threads_cache_go_back() {
    let pool = BufferPool::new();
    for _ in 0..10 {
        let theirs = pool.clone();
        thread::spawn(move || {
            // One that is registered before the pool hears of this thread's end, and one after: whichever way round the
            // destructors run, one of the two runs when the cache is gone.
            BEFORE.with(|last| assert!(last.0.borrow().is_empty()));
            use_some(&theirs, 2);
            AFTER.with(|last| last.hold(&theirs, 6));
            BEFORE.with(|last| last.hold(&theirs, 5));
        })
        .join()
        .unwrap();
        assert_eq!(pool.stats().threads, 0, "a cache was made that nobody gives back");
    }
    let buffers = pool.len();
    assert!((2..=8).contains(&buffers), "{buffers} buffers for a thread that had 4 at a time");
    is_all_here(&pool, buffers);
}

#[test]
fn the_last_handle_may_go_with_its_thread() {
    let kept = within(LONG, || {
        thread::spawn(|| {
            BEFORE.with(|_| ());
            let pool = BufferPool::new();
            use_some(&pool, 3);
            AFTER.with(|last| last.hold(&pool, 6));
            BEFORE.with(|last| last.hold(&pool, 5));
            marked(&pool, LEN, 9)
        })
        .join()
        .unwrap()
    });
    assert!(is_marked(&kept, 9), "a buffer whose pool and thread are gone");
}

/// Threads end while others take their caches away, and pools end while threads do.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn ends_meet_clears_and_ends_of_pools() {
    within(LONG, || {
        for round in 0..rounds(40) {
            let (one, other) = (BufferPool::new(), BufferPool::new());
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let takers: Vec<_> = [&one, &other]
                    .map(|pool| {
                        let done = &done;
                        scope.spawn(move || {
                            while !done.load(Ordering::Relaxed) {
                                pool.clear();
                                thread::yield_now();
                            }
                        })
                    })
                    .into_iter()
                    .collect();
                let users: Vec<_> = (0..16_u64)
                    .map(|owner| {
                        let (one, other) = (one.clone(), other.clone());
                        scope.spawn(move || {
                            let short = BufferPool::new();
                            for _ in 0..=round % 5 {
                                let mine = [&one, &other, &short].map(|pool| marked(pool, LEN, owner));
                                assert!(mine.iter().all(|buffer| is_marked(buffer, owner)));
                            }
                            // Outlives its pool, and maybe the cache of its thread.
                            let late = marked(&short, LEN, owner);
                            drop(short);
                            late
                        })
                    })
                    .collect();
                for (owner, user) in users.into_iter().enumerate() {
                    assert!(is_marked(&user.join().unwrap(), owner as u64));
                }
                done.store(true, Ordering::Relaxed);
                takers.into_iter().for_each(|taker| taker.join().unwrap());
            });
            for pool in [one, other] {
                pool.clear();
                let stats = pool.stats();
                assert_eq!((stats.held_bytes, stats.threads), (0, 0), "{stats:?}");
            }
        }
    });
}

/// The first pool that a thread meets may be in a destructor of a key of the C library's.
#[test]
#[cfg(unix)]
fn a_buffer_dropped_in_a_keys_destructor_leaves_no_cache_behind() {
    unsafe extern "C" fn end(buffer: *mut libc::c_void) {
        // SAFETY: boxed below, and the key's value of one thread.
        drop(unsafe { Box::from_raw(buffer.cast::<ramway_pool::Buffer>()) });
    }
    let pool = BufferPool::new();
    let buffer = Box::new(pool.get(4096));
    let threads = pool.stats().threads;
    let mut key = 0;
    // SAFETY: `end` takes what is set below.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(end)) }, 0);
    std::thread::spawn(move || {
        // SAFETY: the key was made above.
        assert_eq!(unsafe { libc::pthread_setspecific(key, Box::into_raw(buffer).cast()) }, 0);
    })
    .join()
    .unwrap();
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.in_use_bytes, stats.idle_buffers), (threads, 0, 1), "{stats:?}");
    assert_eq!(pool.clear(), 4096);
}
