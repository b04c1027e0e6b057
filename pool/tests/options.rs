//! What the builder takes, what it refuses and how it says so, and that each option does what it says.

#[path = "../../core/src/runner.rs"]
mod runner;

use ramway_pool::{BufferPool, Builder, ErrorKind};

/// The message of the error that these options are.
fn refused(builder: Builder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert_eq!(std::io::Error::from(error.clone()).kind(), std::io::ErrorKind::InvalidInput);
    error.to_string()
}

#[test]
fn a_wrong_option_is_an_error_that_names_it_its_value_and_what_is_allowed() {
    let new = BufferPool::builder;
    assert_eq!(refused(new().tls_cache_size(65)), "tls_cache_size is 65: it must be from 0 to 64");
    for (value, near) in [(0, 64), (63, 64), (65, 128), (1000, 1024), ((1 << 30) + 1, 1 << 30), (usize::MAX, 1 << 30)] {
        let rule = format!("it must be a power of two from 64 to 1073741824, {near} for example");
        assert_eq!(refused(new().min_buffer_size(value)), format!("min_buffer_size is {value}: {rule}"));
    }
    for (value, near) in [(0, 1), (3, 4), (257, 256), (512, 256), (usize::MAX, 256)] {
        let rule = format!("it must be a power of two from 1 to 256, {near} for example");
        assert_eq!(refused(new().num_shards(value)), format!("num_shards is {value}: {rule}"));
    }
    for (value, near) in [(0, 1), (1000, 1024), (4095, 4096), (1 << 31, 1 << 30)] {
        let rule = format!("it must be a power of two from 1 to 1073741824, {near} for example");
        assert_eq!(refused(new().alignment(value)), format!("alignment is {value}: {rule}"));
    }
    for (builder, value, shortest) in [
        (new(), 0, 1024),
        (new(), 1023, 1024),
        (new().min_buffer_size(1 << 20), 1_000_000, 1 << 20),
        (new().min_buffer_size(64).alignment(4096), 4095, 4096),
    ] {
        let rule = format!("the shortest buffer takes {shortest}; allow at least that, or lower min_buffer_size");
        assert_eq!(refused(builder.max_bytes(value)), format!("max_bytes is {value}: {rule}"));
    }
}

#[test]
fn every_value_at_the_edge_of_its_range_makes_a_pool_that_works() {
    let new = BufferPool::builder;
    for builder in [
        new(),
        new().tls_cache_size(0),
        new().tls_cache_size(64),
        new().min_buffer_size(64),
        new().min_buffer_size(1 << 20),
        new().max_buffers_per_shard(0),
        new().max_buffers_per_shard(usize::MAX),
        new().num_shards(1),
        new().num_shards(256),
        new().alignment(2),
        new().alignment(1 << 20),
        new().max_bytes(1024),
        new().max_bytes(usize::MAX),
        new().pinned_memory(true).huge_pages(true).alignment(512).zero_on_return(true).track_stats(false),
        new().tls_cache_size(0).max_buffers_per_shard(0),
    ] {
        let pool = builder.build().unwrap();
        for _ in 0..3 {
            let buffer = pool.get_zeroed(1000);
            assert_eq!(*buffer, [0; 1000], "{builder:?}");
        }
        std::thread::scope(|scope| {
            let buffer = pool.get_zeroed(1000);
            scope.spawn(move || drop(buffer));
        });
        pool.clear();
        let stats = pool.stats();
        assert_eq!((stats.held_bytes, stats.allocations), (0, stats.freed), "{builder:?}");
    }
    // What nobody has the memory for.
    let longest = new().min_buffer_size(1 << 30).build().unwrap();
    assert!(longest.is_empty());
}

#[test]
fn a_builder_makes_as_many_pools_as_are_asked_of_it_each_on_its_own() {
    let builder = BufferPool::builder().max_bytes(1 << 20);
    let (one, other) = (builder.build().unwrap(), builder.build().unwrap());
    drop(one.get(4096));
    assert_eq!((one.len(), other.len()), (1, 0));
    let more = builder.clone().max_bytes(2 << 20).build().unwrap();
    assert_eq!((one.stats().max_bytes, more.stats().max_bytes), (Some(1 << 20), Some(2 << 20)));
    assert_eq!(BufferPool::new().stats().max_bytes, None);
}

#[test]
fn a_thread_keeps_as_many_buffers_of_a_class_as_it_may() {
    for most in [0, 1, 5, 64] {
        // Nothing but the caches can keep a buffer here.
        let pool = BufferPool::builder().tls_cache_size(most).max_buffers_per_shard(0).build().unwrap();
        let buffers: Vec<_> = (0..100).map(|_| pool.get(4096)).collect();
        drop(buffers);
        // Without a fence there are no caches, see the crate's documentation.
        assert_eq!(pool.len(), if has_caches() { most } else { 0 });
    }
}

/// Whether threads have caches here: a pool that has nothing else keeps a buffer.
fn has_caches() -> bool {
    let pool = BufferPool::builder().max_buffers_per_shard(0).build().unwrap();
    drop(pool.get(1));
    pool.len() == 1
}

#[test]
fn shards_keep_as_many_buffers_as_they_may() {
    for (shards, each) in [(1, 1), (1, 7), (4, 3), (256, 1)] {
        let builder = BufferPool::builder().tls_cache_size(0).num_shards(shards).max_buffers_per_shard(each);
        let pool = builder.build().unwrap();
        let most = shards * each;
        pool.preallocate(most, 1024).unwrap();
        assert_eq!(pool.len(), most);
        let error = pool.preallocate(1, 1024).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert!(error.to_string().contains(&most.to_string()), "{error}");
        assert_eq!((pool.len(), pool.stats().held_bytes), (most, most * 1024));
    }
}

#[test]
fn the_default_keeps_65536_idle_buffers_or_more() {
    let pool = BufferPool::new();
    pool.preallocate(65_536, 1).unwrap();
    assert_eq!(pool.len(), 65_536);
}

#[test]
fn shorter_buffers_than_the_shortest_share_its_memory() {
    let pool = BufferPool::builder().min_buffer_size(4096).build().unwrap();
    drop(pool.get(4096));
    for len in [0, 1, 64, 1000, 4095] {
        assert_eq!(pool.get(len).capacity(), len);
    }
    assert_eq!((pool.stats().allocations, pool.stats().held_bytes), (1, 4096));
    pool.put(Vec::with_capacity(4000));
    assert_eq!(pool.stats().adopted, 0);
}

#[test]
fn what_the_pool_owns_counts_against_the_limit_and_idle_memory_makes_room() {
    let pool = BufferPool::builder().max_bytes(8192).build().unwrap();
    let (first, second) = (pool.get(4096), pool.get(4096));
    assert_eq!(pool.try_get(1).err().map(|error| error.kind()), Some(ErrorKind::LimitReached));
    drop(first);
    // Of another class: the idle buffer is freed for it.
    let third = pool.try_get(2048).unwrap();
    assert_eq!(pool.stats().held_bytes, 4096 + 2048);
    drop((second, third));
    let all = pool.try_get(8192).unwrap();
    assert_eq!((pool.stats().held_bytes, pool.stats().peak_held_bytes, pool.stats().refused), (8192, 8192, 1));
    drop(all);
}

/// What is in the memory of a buffer that is got next, `len` bytes that were filled with sevens by its owner before.
fn left_over(builder: Builder, len: usize) -> Vec<u8> {
    let pool = builder.build().unwrap();
    let mut buffer = pool.get_zeroed(len);
    let at = buffer.as_ptr();
    buffer.fill(7);
    drop(buffer);
    let mut again = pool.get(len);
    let room = again.spare_capacity_mut();
    assert_eq!(room.as_ptr().cast(), at, "the same memory");
    // SAFETY: the owner before wrote all of it.
    room.iter().map(|byte| unsafe { byte.assume_init() }).collect()
}

#[test]
fn memory_is_zeroed_when_it_comes_back_if_asked_and_only_then() {
    for base in [BufferPool::builder(), BufferPool::builder().alignment(4096), BufferPool::builder().tls_cache_size(0)]
    {
        for len in [1024, 100_000, 1 << 20] {
            assert_eq!(left_over(base.clone(), len), vec![7; len]);
            assert_eq!(left_over(base.clone().zero_on_return(true), len), vec![0; len]);
        }
    }
}

#[test]
fn a_vector_that_is_put_is_zeroed_too() {
    let pool = BufferPool::builder().zero_on_return(true).build().unwrap();
    let vector = vec![7_u8; 4096];
    let at = vector.as_ptr();
    pool.put(vector);
    let mut buffer = pool.get(4096);
    let room = buffer.spare_capacity_mut();
    assert_eq!(room.as_ptr().cast(), at);
    // SAFETY: the vector was all written.
    assert!(room.iter().all(|byte| unsafe { byte.assume_init() } == 0));
}

#[test]
fn gets_and_hits_are_counted_unless_switched_off() {
    for track in [true, false] {
        let pool = BufferPool::builder().track_stats(track).build().unwrap();
        for _ in 0..10 {
            drop(pool.get(1024));
        }
        let stats = pool.stats();
        assert_eq!(stats.gets, if track { 10 } else { 0 });
        assert_eq!(stats.hits, if track && has_caches() { 9 } else { 0 });
        assert_eq!((stats.allocations, stats.held_bytes), (1, 1024));
    }
}

#[test]
fn without_a_fence_threads_keep_nothing_and_all_else_works() {
    const SWITCH: &str = "RAMWAY_MEMBARRIER";
    if std::env::var_os(SWITCH).is_none_or(|value| value != "0") {
        // It is looked at once in a process, so in another one: this test, and those that count what is kept.
        let mut command = runner::again();
        let output = command.arg("--test-threads=1").env(SWITCH, "0").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    assert!(!has_caches());
    let pool = BufferPool::new();
    for _ in 0..10 {
        drop((pool.get(1024), pool.get(1 << 20)));
    }
    let stats = pool.stats();
    assert_eq!((stats.gets, stats.hits, stats.allocations, stats.threads), (20, 0, 2, 0));
}
