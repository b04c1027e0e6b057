//! Pinned means pinned: the kernel's own figure of what is locked follows what the pool owns, and where the system does
//! not allow it the pool works and says so.
#![cfg(all(target_os = "linux", not(miri)))]

#[path = "../../core/src/runner.rs"]
mod runner;

use ramway_pool::{Buffer, BufferPool};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The figure is the process's: the tests in it take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that are locked in memory in this process, as the kernel counts them.
fn locked() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() * 1024
}

fn page() -> usize {
    // SAFETY: it reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn pinned() -> BufferPool {
    BufferPool::builder().pinned_memory(true).build().unwrap()
}

/// Whether this process may lock `len` bytes, asked without the pool.
fn may_lock(len: usize) -> bool {
    let memory = vec![0_u8; len];
    // SAFETY: the pages of a vector of our own, which are unlocked again before it is gone.
    unsafe {
        let may = libc::mlock(memory.as_ptr().cast(), len) == 0;
        libc::munlock(memory.as_ptr().cast(), len);
        may
    }
}

/// The kernel's figure grew by what the pool says it has locked.
#[track_caller]
fn agree(pool: &BufferPool, before: usize) {
    assert_eq!(locked(), before + pool.stats().pinned_bytes);
    let stats = pool.stats();
    assert_eq!(stats.pinned_bytes + stats.unpinned_bytes, stats.held_bytes);
}

#[test]
fn what_is_locked_grows_with_what_the_pool_owns_and_shrinks_with_it() {
    if is_child() {
        return;
    }
    let _turn = turn();
    let before = locked();
    let pool = pinned();
    assert_eq!(locked(), before);

    let first = pool.get(16 << 10);
    assert_eq!(pool.stats().held_bytes, 16 << 10);
    agree(&pool, before);
    let second = pool.get(100);
    assert_eq!(pool.stats().held_bytes, (16 << 10) + page(), "the shortest buffer takes a page");
    agree(&pool, before);
    if may_lock(64 << 10) {
        assert_eq!(pool.stats().unpinned_bytes, 0);
        assert_eq!(locked(), before + (16 << 10) + page());
    }

    drop((first, second));
    assert_eq!(pool.stats().held_bytes, (16 << 10) + page(), "idle memory stays locked");
    agree(&pool, before);
    assert_eq!(pool.trim(page()), 16 << 10);
    agree(&pool, before);
    assert_eq!(pool.clear(), page());
    assert_eq!((pool.stats().pinned_bytes, pool.stats().unpinned_bytes, locked()), (0, 0, before));

    pool.preallocate(3, 8192).unwrap();
    agree(&pool, before);
    assert_eq!(pool.warm(), 3 * 8192);
    let out = pool.get(8192);
    let other = pool.clone();
    drop(pool);
    agree(&other, before);
    drop(other);
    // The last handle is gone: idle memory with it, and the rest when it comes back.
    assert!(locked() <= before + 8192);
    drop(out);
    assert_eq!(locked(), before);
}

#[test]
fn memory_stays_locked_on_whatever_thread_it_is_dropped() {
    if is_child() {
        return;
    }
    let _turn = turn();
    let before = locked();
    let pool = pinned();
    let buffers: Vec<_> = (0..4).map(|_| pool.get(4096)).collect();
    std::thread::scope(|scope| {
        for buffer in buffers {
            scope.spawn(|| {
                drop(buffer);
                drop(pool.get(8192));
            });
        }
    });
    agree(&pool, before);
    assert!(pool.stats().held_bytes >= 4 * 4096);
    pool.clear();
    assert_eq!(locked(), before);
}

#[test]
fn a_vector_is_a_copy_and_the_locked_memory_goes_back() {
    if is_child() {
        return;
    }
    let _turn = turn();
    let before = locked();
    let pool = pinned();
    let mut buffer = pool.get_zeroed(5000);
    buffer.fill(3);
    let held = pool.stats().held_bytes;
    assert_eq!(buffer.into_vec(), [3; 5000]);
    assert_eq!((pool.stats().held_bytes, pool.len()), (held, 1));
    agree(&pool, before);
    // Vectors of others are not locked, so they are not this pool's.
    pool.put(vec![1; 1 << 16]);
    assert_eq!((pool.stats().held_bytes, pool.stats().adopted), (held, 0));
    assert!(pool.take().is_empty());
    agree(&pool, before);
}

#[test]
fn the_child_of_a_fork_says_that_its_memory_is_not_locked() {
    if is_child() {
        return;
    }
    let _turn = turn();
    let pool = pinned();
    let buffer = pool.get_zeroed(10_000);
    let (held, pinned) = (pool.stats().held_bytes, pool.stats().pinned_bytes);
    // SAFETY: the child uses what it inherited and ends without running anything of the parent's.
    let status = unsafe {
        match libc::fork() {
            0 => {
                let stats = pool.stats();
                let right = stats.pinned_bytes == 0 && stats.unpinned_bytes == held && locked() == 0;
                let zeros = buffer.iter().all(|&byte| byte == 0);
                drop(buffer);
                let freed = pool.clear() == held && pool.stats().unpinned_bytes == 0;
                libc::_exit(if right && zeros && freed { 0 } else { 1 })
            }
            child => {
                let mut status = -1;
                assert!(child > 0 && libc::waitpid(child, &mut status, 0) == child);
                status
            }
        }
    };
    assert_eq!(status, 0);
    assert_eq!(pool.stats().pinned_bytes, pinned, "the parent's stays locked");
}

const LIMIT: &str = "RAMWAY_POOL_TEST_MEMLOCK";

/// Whether this process is one that [`with_limit`] started.
fn is_child() -> bool {
    std::env::var_os(LIMIT).is_some()
}

/// Runs the test of this name in a process of its own that may lock `limit` bytes, where that can be had; `None` in
/// that process itself.
fn with_limit(name: &str, limit: u64) -> Option<()> {
    if is_child() {
        return None;
    }
    // SAFETY: a plain figure of the process, and who it belongs to.
    let (hard, root) = unsafe {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        assert_eq!(libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut now), 0);
        (now.rlim_max, libc::geteuid() == 0)
    };
    if hard < limit && !root {
        println!("not checked: this process may lock {hard} bytes at most, and cannot let another one lock {limit}");
        return Some(());
    }
    let mut command = runner::again();
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(LIMIT, limit.to_string());
    // SAFETY: two system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
            if libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // With this capability there is no limit. Only root has it, and only root needs to give it up: for others
            // the call fails, which the test finds out by locking something.
            const CAP_IPC_LOCK: libc::c_ulong = 14;
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
            Ok(())
        });
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// A buffer that can be written to and read.
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut buffer = pool.get(len);
    buffer.write_all(&vec![5; len]).unwrap();
    assert!(buffer.len() == len && buffer.iter().all(|&byte| byte == 5));
    buffer
}

#[test]
fn where_nothing_may_be_locked_the_pool_works_and_says_so() {
    if with_limit("where_nothing_may_be_locked_the_pool_works_and_says_so", 0).is_some() {
        return;
    }
    assert!(!may_lock(page()), "the limit was not lowered");
    let pool = pinned();
    let buffers = [100, 16 << 10, 1 << 20].map(|len| used(&pool, len));
    let held = page() + (16 << 10) + (1 << 20);
    let stats = pool.stats();
    assert_eq!((stats.held_bytes, stats.pinned_bytes, stats.unpinned_bytes), (held, 0, held));
    assert_eq!(locked(), 0);
    assert!(stats.to_string().ends_with("; not pinned, though asked for: 1.0 MiB"), "{stats}");
    drop(buffers);
    assert_eq!(pool.clear(), held);
    assert_eq!(pool.stats().unpinned_bytes, 0);
}

#[test]
fn what_is_beyond_the_limit_is_not_locked_and_counted_apart() {
    if with_limit("what_is_beyond_the_limit_is_not_locked_and_counted_apart", 1 << 20).is_some() {
        return;
    }
    assert!(may_lock(512 << 10) && !may_lock(2 << 20), "the limit was not lowered");
    let pool = pinned();
    let buffers: Vec<_> = (0..3).map(|_| pool.get(512 << 10)).collect();
    let stats = pool.stats();
    assert_eq!((stats.pinned_bytes, stats.unpinned_bytes, locked()), (1 << 20, 512 << 10, 1 << 20));
    // One that is longer than all of the limit leaves nothing locked behind.
    drop(pool.get(4 << 20));
    assert_eq!((pool.stats().pinned_bytes, locked()), (1 << 20, 1 << 20));
    drop(buffers);
    pool.clear();
    assert_eq!((pool.stats().pinned_bytes, pool.stats().unpinned_bytes, locked()), (0, 0, 0));
    // What was freed may be locked again.
    let again = pool.get(1 << 20);
    assert_eq!((pool.stats().pinned_bytes, locked()), (1 << 20, 1 << 20));
    drop(again);
}
