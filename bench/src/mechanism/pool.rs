//! Buffers: Ramway's pool, and what one has without a library.

use crate::Failure;
use crate::channel::{About, Kind};
use crate::pools::{Buffers, Crosses, Pools, Source};
use bytes::BytesMut;
use ramway_pool::{Buffer, BufferPool};
use std::cell::UnsafeCell;

pub(crate) static POOL: Pools<Ramway> = Pools::crossing(|| {
    About::new(
        "pool",
        Kind::Ramway,
        false,
        "BufferPool::get with the default options: empty buffers with room, returned when dropped",
    )
});
pub(crate) static HAND_STACK: Pools<HandStack> = Pools::new(|| {
    let what = "a stack of vectors in a thread-local variable, as one writes it by hand: pop or with_capacity, push";
    About::new("hand-stack", Kind::ByHand, false, what)
});
pub(crate) static MALLOC: Pools<Malloc> =
    Pools::crossing(|| About::new("malloc", Kind::Kernel, false, "Vec::with_capacity by the C library's allocator"))
        .heap();
pub(crate) static BYTES: Pools<Bytes> =
    Pools::crossing(|| About::new("bytes", Kind::Peer, false, "BytesMut::with_capacity")).heap();
pub(crate) static VEC_ZEROED: Pools<Zeroed> =
    Pools::crossing(|| About::new("vec-zeroed", Kind::Kernel, false, "vec![0; len] by the C library's allocator"))
        .heap();

/// Less than this is no growth.
const LITTLE: usize = 1 << 20;

/// Ours.
pub(crate) struct Ramway(BufferPool);

impl Buffers for &BufferPool {
    type Buffer<'a>
        = Buffer
    where
        Self: 'a;

    #[inline(always)]
    fn get(&self, len: usize) -> Buffer {
        BufferPool::get(self, len)
    }

    #[inline(always)]
    fn start(buffer: &mut Buffer) -> *mut u8 {
        buffer.spare_capacity_mut().as_mut_ptr().cast()
    }
}

impl Source for Ramway {
    type Thread<'a> = &'a BufferPool;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(BufferPool::new())
    }

    fn thread(&self) -> &BufferPool {
        &self.0
    }

    fn settled(&self, most: usize) -> Result<(), Failure> {
        let stats = self.0.stats();
        if stats.in_use_bytes > 0 {
            return Err(format!("{} bytes were not given back", stats.in_use_bytes).into());
        }
        // An eighth for the classes, 15 % until it frees before it grows, and as much again; what it holds of the shortest.
        if stats.peak_held_bytes > most.saturating_mul(2).saturating_add(LITTLE) {
            return Err(format!("held {} bytes for {most} that were in use", stats.peak_held_bytes).into());
        }
        Ok(())
    }
}

// SAFETY: a `Buffer` is `Send`.
unsafe impl Crosses for Ramway {}

/// As fast as one can write it: no bound, and no `RefCell`, which costs a nanosecond. Two pools for one thread are
/// two variables, hence two types.
macro_rules! hand_stack {
    ($name:ident, $other:ident, $buffer:ident, $stack:ident) => {
        pub(crate) struct $name;

        /// Returned by its drop.
        pub(crate) struct $buffer(Vec<u8>);

        thread_local! {
            static $stack: UnsafeCell<Vec<Vec<u8>>> = const { UnsafeCell::new(Vec::new()) };
        }

        impl Buffers for $name {
            type Buffer<'a> = $buffer;

            #[inline(always)]
            fn get(&self, len: usize) -> $buffer {
                // SAFETY: this thread's, and nothing in here comes back to it.
                let popped = $stack.with(|stack| unsafe { (*stack.get()).pop() });
                $buffer(match popped {
                    Some(vector) if vector.capacity() >= len => vector,
                    _ => Vec::with_capacity(len),
                })
            }

            #[inline(always)]
            fn start(buffer: &mut $buffer) -> *mut u8 {
                buffer.0.as_mut_ptr()
            }
        }

        impl Drop for $buffer {
            #[inline(always)]
            fn drop(&mut self) {
                let mut vector = std::mem::take(&mut self.0);
                vector.clear();
                // SAFETY: as above.
                $stack.with(|stack| unsafe { (*stack.get()).push(vector) });
            }
        }

        impl Source for $name {
            type Thread<'a> = Self;
            type Other = $other;

            fn open(_len: usize, _threads: usize) -> Self {
                Self
            }

            fn thread(&self) -> Self {
                Self
            }
        }
    };
}

hand_stack!(HandStack, OtherStack, Stacked, STACK);
hand_stack!(OtherStack, HandStack, OtherStacked, OTHER_STACK);

/// Nothing is kept.
macro_rules! allocated {
    ($name:ident, $buffer:ty, $make:expr) => {
        pub(crate) struct $name;

        impl Buffers for $name {
            type Buffer<'a> = $buffer;

            #[inline(always)]
            fn get(&self, len: usize) -> $buffer {
                $make(len)
            }

            #[inline(always)]
            fn start(buffer: &mut $buffer) -> *mut u8 {
                buffer.as_mut_ptr()
            }
        }

        impl Source for $name {
            type Thread<'a> = Self;
            type Other = Self;

            fn open(_len: usize, _threads: usize) -> Self {
                Self
            }

            fn thread(&self) -> Self {
                Self
            }
        }

        // SAFETY: the buffers are `Send`.
        unsafe impl Crosses for $name {}
    };
}

allocated!(Malloc, Vec<u8>, Vec::with_capacity);
allocated!(Bytes, BytesMut, BytesMut::with_capacity);
allocated!(Zeroed, Vec<u8>, |len| vec![0; len]);
