//! What a buffer shows, and what it never shows.

use bytes::BufMut;
use ramway_pool::{Buffer, BufferPool, UninitBuffer};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};

const fn shared<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}

const _: () = shared::<Buffer>();
const _: () = shared::<UninitBuffer>();
const _: () = shared::<BufferPool>();

/// Six words of a lease's owner and what it wrote: more would show in what a get costs.
const _: () = assert!(size_of::<Buffer>() <= 64);

/// What an owner before leaves behind.
const OLD: u8 = 0xa5;

/// A buffer whose memory somebody had before and filled with [`OLD`].
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut first = pool.get_uninit(len);
    first.fill(MaybeUninit::new(OLD));
    let at = first.as_mut_ptr();
    drop(first);
    let second = pool.get(len);
    assert_eq!(second.as_ptr(), at.cast_const(), "the same memory");
    second
}

#[test]
fn nothing_old_is_in_a_buffer() {
    let pool = BufferPool::new();
    let longest = if cfg!(miri) { 4096 } else { 1 << 20 };
    for len in [0, 1, 63, 64, 65, 4096, 100_000, 1 << 20].into_iter().filter(|&len| len <= longest) {
        let mut buffer = used(&pool, len);
        assert!(buffer.is_empty());
        assert_eq!(buffer.capacity(), len);
        assert_eq!(buffer.iter().count(), 0);
        assert_eq!(buffer.spare_capacity_mut().len(), len);
        assert_eq!(buffer.remaining_capacity(), len);
        assert!(buffer.first_mut().is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| buffer[0])).is_err());
        drop(buffer);
        let mut buffer = used(&pool, len);
        buffer.resize(len, 0).unwrap();
        assert!(buffer.iter().all(|&byte| byte == 0), "resized");
        drop(buffer);
        drop(used(&pool, len));
        assert_eq!(pool.get_zeroed(len), vec![0; len]);
        drop(used(&pool, len));
        assert_eq!(pool.get_uninit(len).zeroed(), vec![0; len]);
    }
}

#[test]
fn a_buffer_never_grows() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(100); // its allocation is longer
    buffer.extend_from_slice(&[1; 99]).unwrap();
    let error = buffer.extend_from_slice(&[2; 2]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
    assert_eq!(error.to_string(), "2 bytes do not fit: 1 of the buffer's 100 are left");
    assert_eq!(buffer.resize(101, 2).unwrap_err().kind(), std::io::ErrorKind::WriteZero);
    assert_eq!(buffer.resize(usize::MAX, 2).unwrap_err().kind(), std::io::ErrorKind::WriteZero);
    assert_eq!(buffer, [1; 99]);
    buffer.extend_from_slice(&[3]).unwrap();
    buffer.extend_from_slice(&[]).unwrap();
    assert_eq!((buffer.len(), buffer.capacity(), buffer.spare_capacity_mut().len()), (100, 100, 0));
    let panicked = catch_unwind(AssertUnwindSafe(|| buffer.put_u8(4)));
    assert!(panicked.is_err());
    assert_eq!(buffer.len(), 100);
}

#[test]
fn the_length_is_what_was_written() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(8);
    buffer.spare_capacity_mut()[..3].copy_from_slice(&[1, 2, 3].map(MaybeUninit::new));
    // SAFETY: three bytes are written.
    unsafe { buffer.set_len(3) };
    assert_eq!(buffer, [1, 2, 3]);
    buffer[1] = 9;
    buffer.as_mut().reverse();
    assert_eq!(buffer, [3, 9, 1]);
    buffer.truncate(5);
    assert_eq!(buffer.len(), 3);
    buffer.truncate(1);
    assert_eq!(buffer, [3]);
    buffer.resize(3, 7).unwrap();
    assert_eq!(buffer, [3, 7, 7]);
    buffer.resize(2, 0).unwrap();
    assert_eq!(buffer, [3, 7]);
    buffer.clear();
    assert_eq!((buffer.len(), buffer.capacity()), (0, 8));
}

#[test]
fn bytes_are_appended_behind_what_is_written() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 16);
    buffer.set_position(5);
    buffer.put_slice(b"ab");
    buffer.put_u16(0x6364);
    buffer.put_bytes(b'e', 2);
    buffer.put(&b"fg"[..]);
    assert_eq!(buffer, b"abcdeefg");
    assert_eq!((buffer.remaining_mut(), buffer.position()), (8, 5));
    assert_eq!(buffer.chunk_mut().len(), 8);
    // SAFETY: none.
    unsafe { buffer.advance_mut(0) };
    // SAFETY: not kept, which is refused.
    let panicked = catch_unwind(AssertUnwindSafe(|| unsafe { buffer.advance_mut(9) }));
    let text = *panicked.unwrap_err().downcast::<String>().unwrap();
    assert_eq!((text.as_str(), buffer.len()), ("cannot advance by 9 bytes: 8 are left", 8));
    buffer.put_bytes(b'x', 8);
    assert!(!buffer.has_remaining_mut());
    assert_eq!(buffer.chunk_mut().len(), 0);
    assert_eq!(buffer, b"abcdeefgxxxxxxxx");
}

#[test]
fn pointers_reach_as_far_as_the_capacity() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(1000);
    let at = buffer.as_mut_ptr();
    // SAFETY: there are as many bytes.
    unsafe {
        at.write_bytes(3, 1000);
        buffer.set_len(1000);
    }
    let moved = Box::new(buffer);
    assert_eq!(moved.as_ptr(), at.cast_const());
    assert_eq!(*moved, [3; 1000]);
}

#[test]
fn an_uninitialised_buffer_becomes_one_by_what_is_said_of_its_bytes() {
    let pool = BufferPool::new();
    let mut buffer = pool.get_uninit(4);
    assert_eq!((buffer.len(), buffer.iter().count()), (4, 4));
    assert_eq!(format!("{buffer:?}"), "UninitBuffer { len: 4 }");
    for (i, byte) in buffer.iter_mut().enumerate() {
        byte.write(i as u8);
    }
    // SAFETY: all four are written.
    let mut buffer = unsafe { buffer.assume_init() };
    assert_eq!(buffer, [0, 1, 2, 3]);
    assert_eq!((buffer.capacity(), buffer.position()), (4, 0));
    buffer.clear();
    drop(buffer);

    let mut buffer = pool.get_uninit(4).write_from_slice(b"ab");
    assert_eq!((buffer.len(), buffer.capacity(), buffer.position()), (2, 4, 0));
    buffer.extend_from_slice(b"cd").unwrap();
    assert_eq!(buffer, b"abcd");
    assert_eq!(pool.get_uninit(0).write_from_slice(b""), b"");

    let panicked = catch_unwind(|| pool.get_uninit(4).write_from_slice(b"abcde"));
    let text = *panicked.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(text, "5 bytes do not fit into a buffer of 4");

    let mut buffer = pool.get_uninit(4);
    buffer[0].write(7);
    // SAFETY: the first is written.
    assert_eq!(unsafe { buffer.assume_init_to(1) }, [7]);
    let buffer = pool.get_uninit(4).into_empty();
    assert_eq!((buffer.len(), buffer.capacity()), (0, 4));
}

#[test]
fn buffers_compare_and_hash_as_their_bytes() {
    let pool = BufferPool::new();
    let abc = || pool.get_uninit(9).write_from_slice(b"abc");
    assert_eq!(abc(), abc());
    assert_eq!(abc(), "abc");
    assert_eq!(abc(), b"abc".to_vec());
    assert_eq!(abc(), b"abc"[..]);
    assert_ne!(abc(), b"abcd");
    assert_ne!(abc(), pool.get(9));
    let set = HashSet::from([abc()]);
    assert!(set.contains(&b"abc"[..]) && !set.contains(&b"ab"[..]));
    let borrowed: &[u8] = Borrow::borrow(set.iter().next().unwrap());
    assert_eq!(borrowed, b"abc");
    assert_eq!(format!("{:?}", abc()), "Buffer { len: 3, capacity: 9, position: 0 }");
}

#[test]
fn a_vector_is_not_the_pools_any_more() {
    let pool = BufferPool::new();
    let buffer = pool.get_uninit(1 << 20).write_from_slice(b"kept");
    let at = buffer.as_ptr();
    let mut vector = buffer.into_vec();
    assert_eq!(vector, b"kept");
    assert_eq!(vector.as_ptr(), at, "not copied");
    assert!(vector.capacity() >= 1 << 20);
    assert_eq!(pool.stats().held_bytes, 0);
    vector.shrink_to_fit(); // the allocator finds the layout that it gave
    vector.extend_from_slice(&[1; 1 << 21]);
    drop(vector);
    assert_eq!(Vec::from(pool.get(10)), b"");
}

#[test]
fn the_vector_of_an_aligned_buffer_is_a_copy() {
    let pool = BufferPool::builder().alignment(4096).build().unwrap();
    let buffer = pool.get_uninit(8192).write_from_slice(b"kept");
    let at = buffer.as_ptr();
    assert_eq!(at.align_offset(4096), 0);
    let vector = buffer.into_vec();
    assert_eq!(vector, b"kept");
    assert_ne!(vector.as_ptr(), at);
    assert_eq!(pool.len(), 1, "the block went back");
}

#[test]
fn a_panic_gives_the_buffer_back() {
    let pool = BufferPool::new();
    let mut buffer = pool.get(10);
    let result = catch_unwind(move || {
        buffer.extend_from_slice(b"abc").unwrap();
        panic!("with a buffer in hand");
    });
    assert!(result.is_err());
    assert_eq!((pool.stats().in_use_bytes, pool.len()), (0, 1));
    assert!(pool.get(10).is_empty());
}
