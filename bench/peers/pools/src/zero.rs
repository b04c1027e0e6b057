//! zeropool, the current one and the one that the aims were taken from.

use ramway_bench::pools::{Buffers, Crosses, Source};

/// `alloc_uninit` of zeropool 0.7.
pub struct Zero(zeropool::ZeroPool);

/// Of one thread.
pub struct ZeroThread<'a>(&'a zeropool::ZeroPool);

impl Buffers for ZeroThread<'_> {
    type Buffer<'b>
        = zeropool::BufUninit<'b>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> zeropool::BufUninit<'_> {
        self.0.alloc_uninit(len)
    }

    #[inline(always)]
    fn start(buffer: &mut zeropool::BufUninit<'_>) -> *mut u8 {
        buffer.as_uninit_mut().as_mut_ptr().cast()
    }
}

impl Source for Zero {
    type Thread<'a> = ZeroThread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(zeropool::ZeroPool::new().min_buffer_size(0))
    }

    fn thread(&self) -> ZeroThread<'_> {
        ZeroThread(&self.0)
    }
}

// SAFETY: a buffer is a vector and a reference to the pool, which is `Sync`.
unsafe impl Crosses for Zero {}

/// `alloc` of zeropool 0.7.
pub struct ZeroSafe(zeropool::ZeroPool);

/// Of one thread.
pub struct ZeroSafeThread<'a>(&'a zeropool::ZeroPool);

impl Buffers for ZeroSafeThread<'_> {
    type Buffer<'b>
        = zeropool::Buf<'b>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> zeropool::Buf<'_> {
        self.0.alloc(len)
    }

    #[inline(always)]
    fn start(buffer: &mut zeropool::Buf<'_>) -> *mut u8 {
        buffer.as_mut_ptr()
    }
}

impl Source for ZeroSafe {
    type Thread<'a> = ZeroSafeThread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(zeropool::ZeroPool::new().min_buffer_size(0))
    }

    fn thread(&self) -> ZeroSafeThread<'_> {
        ZeroSafeThread(&self.0)
    }
}

// SAFETY: as above.
unsafe impl Crosses for ZeroSafe {}

/// `get` and `put` of zeropool 0.2.
pub struct Zero02(zeropool_0_2::BufferPool);

/// Of one thread.
pub struct Zero02Thread<'a>(&'a zeropool_0_2::BufferPool);

/// What its user has to put back by hand, put back by a drop.
pub struct PutBack<'a> {
    vector: Vec<u8>,
    pool: &'a zeropool_0_2::BufferPool,
}

impl Drop for PutBack<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.vector));
    }
}

impl Buffers for Zero02Thread<'_> {
    type Buffer<'b>
        = PutBack<'b>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> PutBack<'_> {
        PutBack { vector: self.0.get(len), pool: self.0 }
    }

    #[inline(always)]
    fn start(buffer: &mut PutBack<'_>) -> *mut u8 {
        buffer.vector.as_mut_ptr()
    }
}

impl Source for Zero02 {
    type Thread<'a> = Zero02Thread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(zeropool_0_2::BufferPool::builder().min_buffer_size(0).build())
    }

    fn thread(&self) -> Zero02Thread<'_> {
        Zero02Thread(&self.0)
    }
}

// SAFETY: as above.
unsafe impl Crosses for Zero02 {}
