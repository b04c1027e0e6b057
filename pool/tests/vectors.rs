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
