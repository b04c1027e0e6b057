//! A child of `fork` has one thread and all of its parent's memory, in whatever state: it can use the pools at once.
#![cfg(unix)]

mod support;

use ramway_pool::{Buffer, BufferPool, ErrorKind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{Random, block_size, is_marked, marked, within};

const FORKS: usize = 200;
/// Far longer than a child takes, so that one that is stopped by then hangs.
const LONG: Duration = Duration::from_secs(20);

/// Runs `child` in a fork; gives its exit status, or `None` if it hung.
fn in_child(child: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child calls pools and the allocator, both of which have seen to forks, and ends with `_exit`.
    let pid = match unsafe { libc::fork() } {
        0 => {
            let status = child();
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(status) }
        }
        pid => pid,
    };
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    let (began, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: waits for the child that was made above.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
            0 if began.elapsed() < LONG => thread::sleep(Duration::from_micros(200)),
            0 => {
                // SAFETY: the child that was made above and not waited for: nobody else can have its number.
                unsafe { (libc::kill(pid, libc::SIGKILL), libc::waitpid(pid, &mut status, 0)) };
                return None;
            }
            ended => {
                assert_eq!(ended, pid);
                return Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) });
            }
        }
    }
}

/// Runs `work` in a thread that the standard library knows nothing of: its own threads take a lock when they start and end, which a
/// thread of the parent may have held at the fork.
fn in_bare_thread<F: FnOnce() -> bool + Send>(work: F) -> bool {
    extern "C" fn start<F: FnOnce() -> bool + Send>(task: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: `task` is the one below, which outlives the thread and which nobody else touches until it is joined.
        let (work, fine) = unsafe { &mut *task.cast::<(Option<F>, bool)>() };
        *fine = work.take().is_some_and(|work| work());
        std::ptr::null_mut()
    }
    let mut task = (Some(work), false);
    let mut thread = std::mem::MaybeUninit::uninit();
    // SAFETY: `start` fits the task, and the thread has ended before the task goes.
    unsafe {
        let none = std::ptr::null();
        if libc::pthread_create(thread.as_mut_ptr(), none, start::<F>, (&raw mut task).cast()) != 0 {
            return false;
        }
        libc::pthread_join(thread.assume_init(), std::ptr::null_mut()) == 0 && task.1
    }
}

struct Pools {
    /// For everything.
    pool: BufferPool,
    limited: BufferPool,
    /// Every thread has six buffers of it in its cache, and at most one in hand.
    idle: BufferPool,
}

/// What a child does; the number of what went wrong. It prints nothing, since it might wait for stdout's lock.
fn use_everything(pools: &Pools, inherited: Buffer, forks: usize) -> i32 {
    let Pools { pool, limited, idle } = pools;
    let checks = [
        is_marked(&inherited, 42),
        is_marked(&marked(pool, 5000, 1), 1),
        {
            let (one, other) = (marked(pool, 5000, 2), marked(pool, 5000, 3));
            drop(inherited);
            is_marked(&one, 2) && is_marked(&other, 3)
        },
        pool.get_zeroed(100_000).iter().all(|&byte| byte == 0),
        {
            let stats = pool.stats();
            stats.held_bytes == stats.idle_bytes + stats.in_use_bytes && stats.threads <= 1
        },
        {
            pool.trim(1 << 16);
            pool.stats().idle_bytes <= 1 << 16
        },
        {
            pool.clear();
            pool.stats().idle_bytes == 0 && pool.is_empty()
        },
        // All that the parent's threads had may count as in use here; the limit is the same one.
        match limited.try_get(10_000) {
            Ok(buffer) => buffer.is_empty(),
            Err(error) => error.kind() == ErrorKind::LimitReached,
        },
        limited.stats().peak_held_bytes <= LIMIT,
        {
            let own = BufferPool::new();
            drop(marked(&own, 5000, 5));
            own.len() == 1 && own.clear() > 0
        },
        // A thread of the child's own has its own cache, and the child can take it away.
        {
            let theirs = pool.clone();
            in_bare_thread(move || is_marked(&marked(&theirs, 5000, 6), 6))
        },
        pool.len() == 1,
        // What stood in the caches of threads that are not here is idle here: no more is lost than they had in hand.
        idle.stats().in_use_bytes <= THREADS * block_size(IDLE_LEN),
        {
            drop(idle.get(IDLE_LEN));
            idle.clear() > 0 && idle.stats().idle_bytes == 0
        },
        forks == 0 || in_child(|| use_everything(pools, marked(pool, 7000, 42), forks - 1)) == Some(0),
    ];
    checks.iter().position(|fine| !fine).map_or(0, |at| at as i32 + 1)
}

const LIMIT: usize = 1 << 20;
const THREADS: usize = 8;
const IDLE_LEN: usize = 4000;

#[test]
fn children_of_a_process_whose_threads_hammer_the_pool_use_it_at_once() {
    within(6 * LONG, forks_while_threads_hammer);
}

fn forks_while_threads_hammer() {
    let limited = BufferPool::builder().max_bytes(LIMIT).build().unwrap();
    let pools = Pools { pool: BufferPool::new(), limited, idle: BufferPool::new() };
    let Pools { pool, limited, idle } = &pools;
    let ready = Barrier::new(THREADS + 1);
    let done = AtomicBool::new(false);
    let steps = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..THREADS as u64 {
            let (ready, done, steps) = (&ready, &done, &steps);
            scope.spawn(move || {
                drop((0..6).map(|_| marked(idle, IDLE_LEN, seed)).collect::<Vec<_>>());
                ready.wait();
                let mut random = Random::new(seed);
                let mut held = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    steps.fetch_add(1, Ordering::Relaxed);
                    match random.below(60) {
                        0 => _ = pool.clear(),
                        1 => _ = pool.stats(),
                        2 => _ = pool.trim(10_000),
                        3 => drop(BufferPool::new().get(2000)),
                        4 => _ = pool.preallocate(2, 5000),
                        5 => {
                            // A thread that ends with a cache.
                            let theirs = pool.clone();
                            thread::spawn(move || drop(marked(&theirs, 5000, seed))).join().unwrap();
                        }
                        40..60 => drop(idle.get(IDLE_LEN)),
                        6..20 => held.extend(limited.try_get(random.size(15)).ok()),
                        _ => held.push(marked(pool, random.size(15), seed)),
                    }
                    while held.len() > 10 {
                        held.swap_remove(random.below(held.len()));
                    }
                }
            });
        }
        ready.wait();
        let (mut wrong, mut last) = (None, 0);
        for fork in 0..FORKS {
            let inherited = marked(pool, 9000, 42);
            let found = in_child(|| use_everything(&pools, inherited, usize::from(fork % 20 == 0)));
            if found != Some(0) {
                wrong = Some((fork, found));
                break;
            }
            // The parent goes on as if nothing had been.
            drop(marked(pool, 5000, 7));
            if fork % 20 == 0 {
                let began = Instant::now();
                while steps.load(Ordering::Relaxed) == last && began.elapsed() < LONG {
                    thread::yield_now();
                }
                assert_ne!(steps.load(Ordering::Relaxed), last, "the parent's threads stand still");
                last = steps.load(Ordering::Relaxed);
            }
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None, "(fork, what its child found: None for a hang, else the number of the check)");
    });
    for pool in [pool, limited, idle] {
        pool.clear();
        let stats = pool.stats();
        // `inherited` was dropped by the children alone, each its own copy: here they are all still in use.
        assert_eq!(stats.idle_bytes, 0, "{stats:?}");
        assert!(stats.peak_held_bytes <= stats.max_bytes.unwrap_or(usize::MAX));
    }
}
