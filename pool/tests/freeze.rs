//! Buffers that became `Bytes`: shared, and back in their pool when the last clone is dropped.

use bytes::Bytes;
use ramway_pool::BufferPool;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread;

/// The system's allocator, and how often this thread called it, and for how many bytes.
struct Counted;

thread_local! {
    static CALLS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.with(|calls| calls.set((calls.get().0 + 1, calls.get().1 + layout.size())));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// Calls of the allocator, and their bytes, while `f` runs.
fn allocated<T>(f: impl FnOnce() -> T) -> (T, (usize, usize)) {
    let before = CALLS.get();
    let result = f();
    let after = CALLS.get();
    (result, (after.0 - before.0, after.1 - before.1))
}

#[test]
fn bytes_are_the_buffers_memory() {
    let pool = BufferPool::new();
    let buffer = pool.get_uninit(1 << 20).write_from_slice(b"hello, world");
    let at = buffer.as_ptr();
    let bytes = buffer.freeze();
    assert_eq!((&bytes[..], bytes.as_ptr()), (&b"hello, world"[..], at));
    let part = bytes.slice(7..);
    assert_eq!(part.as_ptr(), at.wrapping_add(7));
    assert_eq!((pool.len(), pool.stats().in_use_bytes), (0, 1 << 20));
    drop(bytes);
    assert_eq!((pool.len(), &part[..]), (0, &b"world"[..]));
    drop(part);
    assert_eq!((pool.len(), pool.stats().in_use_bytes), (1, 0));
    let again = pool.get(1 << 20);
    assert_eq!((again.as_ptr(), again.len()), (at, 0));
}

#[test]
fn freezing_is_one_small_allocation() {
    let pool = BufferPool::new();
    drop(pool.get_zeroed(65536).freeze());
    for _ in 0..3 {
        let buffer = pool.get_uninit(65536).write_from_slice(&[1; 4096]);
        let (bytes, (calls, size)) = allocated(|| buffer.freeze());
        assert_eq!(calls, 1);
        assert!(size <= 80, "{size} bytes");
        let (clones, (calls, _)) = allocated(|| (bytes.clone(), bytes.slice(1..), bytes.slice(..9)));
        assert_eq!(calls, 0);
        let (_, (calls, _)) = allocated(|| drop((bytes, clones)));
        assert_eq!(calls, 0);
    }
    assert_eq!(pool.stats().allocations, 1);
}

#[test]
fn an_empty_buffer_goes_back_at_once() {
    let pool = BufferPool::new();
    drop(pool.get(65536)); // there is a place for it from now on
    let buffer = pool.get(65536);
    let (bytes, (calls, _)) = allocated(|| buffer.freeze());
    assert!(bytes.is_empty());
    assert_eq!((calls, pool.len(), pool.stats().in_use_bytes), (0, 1, 0));
    assert_eq!(Bytes::from(pool.get(0)), Bytes::new());
}

#[test]
fn only_what_was_written_is_in_them() {
    let pool = BufferPool::new();
    drop(pool.get_uninit(4096).write_from_slice(&[0xa5; 4096]));
    let mut buffer = pool.get(4096);
    buffer.set_position(4); // beyond the end, and nothing is written there
    buffer.extend_from_slice(b"abc").unwrap();
    assert_eq!(buffer.freeze(), &b"abc"[..]);
}

#[test]
fn the_last_of_many_threads_gives_it_back() {
    const THREADS: usize = 8;
    let (rounds, len) = if cfg!(miri) { (2, 100) } else { (300, 10_000) };
    let pool = BufferPool::new();
    for round in 0..rounds {
        let bytes = pool.get_uninit(len).write_from_slice(&vec![round as u8; len]).freeze();
        thread::scope(|scope| {
            for i in 0..THREADS {
                let own = bytes.slice(i..);
                scope.spawn(move || {
                    let other = own.clone();
                    drop(own);
                    assert!(other.iter().all(|&byte| byte == round as u8));
                });
            }
            drop(bytes);
        });
        let stats = pool.stats();
        assert_eq!(stats.in_use_bytes, 0, "{stats:?}");
        assert_eq!(stats.held_bytes, stats.idle_bytes, "{stats:?}");
    }
    let stats = pool.stats();
    assert!(stats.idle_buffers >= 1 && stats.idle_buffers <= THREADS + 1, "{stats:?}");
}

#[test]
fn they_outlive_the_pool() {
    let pool = BufferPool::new();
    let bytes = pool.get_uninit(5).write_from_slice(b"alive").freeze();
    let clone = pool.clone();
    drop(pool);
    drop(clone);
    let vector = thread::spawn(move || Vec::from(bytes)).join().unwrap();
    assert_eq!(vector, b"alive");
}

#[test]
fn mutable_bytes_of_them_are_a_copy() {
    let pool = BufferPool::new();
    let bytes = pool.get_uninit(5).write_from_slice(b"first").freeze();
    let mut copy = bytes::BytesMut::from(bytes.clone());
    copy[0] = b'F';
    assert_eq!((&bytes[..], &copy[..]), (&b"first"[..], &b"First"[..]));
    drop(bytes);
    assert_eq!(pool.len(), 1);
}
