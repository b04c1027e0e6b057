//! Plain vectors that come and go.

use ramway_pool::BufferPool;

#[test]
fn a_vector_of_any_capacity_and_length_becomes_the_pools() {
    for zero in [false, true] {
        let pool = BufferPool::builder().zero_on_return(zero).build().unwrap();
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let lengths = (1024..5000).step_by(7).chain([100_000, 1 << 20, (1 << 20) + 1]);
        let vectors = lengths.map(|len| vec![1; len]).chain([file, Vec::with_capacity(3000)]);
        for (before, vector) in vectors.enumerate() {
            let (cap, idle) = (vector.capacity(), pool.stats().idle_bytes);
            pool.put(vector);
            let stats = pool.stats();
            let kept = stats.idle_bytes - idle;
            assert_eq!((stats.adopted, stats.idle_buffers), (before as u64 + 1, before + 1), "{cap}: {stats:?}");
            assert!(kept <= cap && cap - kept <= cap / 9, "{kept} of {cap}");
        }
        let held = pool.stats().held_bytes;
        assert_eq!(pool.clear(), held);
        assert_eq!(pool.stats().held_bytes, 0);
    }
}

#[test]
fn what_is_too_short_for_the_pool_or_the_limit_is_dropped() {
    let pool = BufferPool::builder().max_bytes(1 << 20).build().unwrap();
    for vector in [Vec::new(), vec![1; 1], vec![1; 1023], vec![1; (2 << 20) - 1]] {
        pool.put(vector);
    }
    assert_eq!((pool.len(), pool.stats().adopted, pool.stats().held_bytes), (0, 0, 0));
    pool.put(vec![1; 1 << 20]);
    pool.put(vec![1; 1024]);
    assert_eq!((pool.len(), pool.stats().held_bytes), (1, 1 << 20));
}

#[test]
fn a_vector_that_grows_between_take_and_put_is_taken_again() {
    let pool = BufferPool::new();
    for _ in 0..100 {
        let mut vector = pool.take();
        assert!(vector.is_empty());
        vector.extend_from_slice(&[1; 100_000]);
        pool.put(vector);
    }
    let stats = pool.stats();
    // The first one grew out of nothing, the second out of what the first was shrunk to.
    assert!(stats.allocations <= 2, "{stats:?}");
    assert_eq!((stats.adopted, pool.len()), (100, 1), "{stats:?}");
    assert!(pool.take().capacity() >= 100_000);
}

#[test]
fn a_buffers_vector_comes_back_with_its_memory() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(70_000);
    buffer.extend_from_slice(&[7; 70_000]).unwrap();
    let address = buffer.as_ptr();
    let vector = buffer.into_vec();
    assert_eq!((vector.as_ptr(), vector.len(), pool.stats().held_bytes), (address, 70_000, 0));
    pool.put(vector);
    let again = pool.get(70_000);
    assert_eq!((again.as_ptr(), again.len()), (address, 0));
}

#[test]
fn take_finds_what_another_thread_put_also_without_caches() {
    for caches in [0, 8] {
        let pool = BufferPool::builder().tls_cache_size(caches).build().unwrap();
        let (to, from) = std::sync::mpsc::sync_channel::<Vec<u8>>(1);
        std::thread::scope(|scope| {
            scope.spawn(|| from.into_iter().for_each(|vector| pool.put(vector)));
            for _ in 0..1000 {
                let mut vector = pool.take();
                vector.resize(1 << 17, 1);
                to.send(vector).unwrap();
            }
            drop(to);
        });
        let stats = pool.stats();
        assert_eq!(stats.adopted, 1000, "{stats:?}");
        // The first ones grew out of nothing. Later ones are idle, or on their way back.
        assert!(stats.allocations < 100 && stats.freed < 100, "{stats:?}");
    }
}

#[test]
fn take_gives_what_was_preallocated_and_nothing_huge_that_is_not_there() {
    let pool = BufferPool::builder().max_bytes(64 << 20).build().unwrap();
    pool.preallocate(4, 1 << 17).unwrap();
    assert!(pool.take().capacity() >= 1 << 17);
    assert_eq!((pool.len(), pool.stats().allocations), (3, 4));

    pool.put(Vec::with_capacity(48 << 20));
    assert!(pool.take().capacity() >= 48 << 20);
    assert_eq!(pool.take().capacity(), 1024);
    pool.clear();
    assert_eq!(pool.take().capacity(), 1024);
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_vector_beside_a_pool_of_aligned_memory_fails_as_a_buffer_does() {
    let pool = BufferPool::builder().alignment(64).build().unwrap();
    assert!(pool.take().capacity() >= 1024 && pool.take_with_capacity(100).capacity() >= 100);
    let error = |capacity| {
        let panic = std::panic::catch_unwind(|| pool.take_with_capacity(capacity)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(error(usize::MAX), pool.try_get(usize::MAX).unwrap_err().to_string());
}

#[test]
fn what_is_refused_was_not_got() {
    let pool = BufferPool::builder().max_bytes(1 << 20).build().unwrap();
    let buffer = pool.get(1 << 20);
    assert!((0..3).all(|_| pool.try_get(1).is_err()));
    drop(buffer);
    assert!(pool.try_get(usize::MAX).is_err());
    let stats = pool.stats();
    assert_eq!((stats.gets, stats.refused, stats.peak_held_bytes), (1, 3, 1 << 20), "{stats:?}");
}
