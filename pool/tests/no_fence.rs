//! The kernel takes `membarrier` away from a process that has caches already, as a filter of system calls does that is
//! installed late: then nobody takes another thread's cache, and still nothing is lost.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]

mod support;

use ramway_pool::{BufferPool, ErrorKind};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use support::ledger::{self, Ledger};
use support::{block_size, is_marked, marked, within};

#[global_allocator]
static LEDGER: Ledger = Ledger;

const LEN: usize = 4096;

/// Has the kernel refuse `membarrier` to all threads of this process from now on; `false` if it has no such filters.
fn forbid_membarrier() -> bool {
    let code = |class: u32, size: u32, mode: u32| (class | size | mode) as u16;
    let step = |code: u16, jt: u8, jf: u8, k: u32| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The system call's number is the first word.
        step(code(libc::BPF_LD, libc::BPF_W, libc::BPF_ABS), 0, 0, 0),
        step(code(libc::BPF_JMP, libc::BPF_JEQ, libc::BPF_K), 0, 1, libc::SYS_membarrier as u32),
        step(code(libc::BPF_RET, libc::BPF_K, 0), 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(code(libc::BPF_RET, libc::BPF_K, 0), 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is whole and outlives the calls, which keep a copy.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            ) == 0
            && libc::syscall(libc::SYS_membarrier, 0, 0, 0) == -1
    }
}

/// A thread with caches of two pools, of which one ends and one is asked for more than it may give; with `refuse` the
/// fence is refused in between. It is the same for a pool without caches. `false` if it could not be refused.
fn caches_that_others_want(refuse: bool) -> bool {
    let size = block_size(LEN);
    let pool = BufferPool::builder().max_bytes(8 * size).build().unwrap();
    // Ends while its buffers stand in another thread's cache.
    let short = BufferPool::new();
    let [filled, refused, cleared, dropped] = [(); 4].map(|()| Barrier::new(2));
    let as_asked = thread::scope(|scope| {
        let theirs = (pool.clone(), short.clone());
        let owner = scope.spawn(|| {
            let (pool, short) = theirs;
            drop((0..5).map(|owner| marked(&pool, LEN, owner)).collect::<Vec<_>>());
            drop((0..3).map(|owner| marked(&short, LEN, owner)).collect::<Vec<_>>());
            drop(short);
            filled.wait();
            refused.wait();
            // Uses its cache while others would like to take it away.
            for owner in 0..10_000 {
                assert!(is_marked(&marked(&pool, LEN, owner), owner));
            }
            cleared.wait();
            dropped.wait();
            assert!(is_marked(&marked(&pool, LEN, 9), 9));
        });
        filled.wait();
        let caches = pool.stats().threads;
        drop((0..2).map(|owner| marked(&pool, LEN, owner)).collect::<Vec<_>>());
        let as_asked = !refuse || forbid_membarrier();
        refused.wait();
        for _ in 0..1000 {
            pool.clear();
            // Its own cache it empties still; what the other thread has stays there and counts.
            match pool.try_get(4 * size) {
                Ok(buffer) => drop(buffer),
                Err(error) => assert_eq!(error.kind(), ErrorKind::LimitReached),
            }
        }
        cleared.wait();
        let stats = pool.stats();
        assert!(stats.held_bytes <= 8 * size && stats.threads >= caches, "{stats:?}");
        drop(short);
        dropped.wait();
        owner.join().unwrap();
        as_asked
    });
    // The thread that ended gave back what nobody could take.
    pool.clear();
    let stats = pool.stats();
    assert_eq!((stats.held_bytes, stats.in_use_bytes), (0, 0), "{stats:?}");
    as_asked
}

/// One test, because the filter is for the whole process and forever.
#[test]
fn a_fence_that_is_refused_later_loses_nothing() {
    within(Duration::from_secs(60), || {
        // What is set up once and kept.
        caches_that_others_want(false);
        let before = (ledger::live(), ledger::blocks());
        let refused = caches_that_others_want(true);
        let after = (ledger::live(), ledger::blocks());
        // What is printed is kept in memory by the test harness.
        if !refused {
            println!("no seccomp filter is allowed here: nothing was refused");
        }
        assert_eq!(after, before, "(bytes, blocks): a pool that ended before its caches could be taken is lost");
    });
}
