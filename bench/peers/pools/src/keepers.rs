//! Pools of any objects, here of vectors.

use ramway_bench::pools::{Buffers, Crosses, PIPELINE, Source};
use std::mem::ManuallyDrop;

type Vector = Vec<u8>;

/// Room for `len` bytes.
#[inline(always)]
fn fit(vector: &mut Vector, len: usize) {
    if vector.capacity() < len {
        vector.reserve(len - vector.len());
    }
}

/// Objects that a pool of a fixed size keeps: as many as can be out.
fn kept(threads: usize) -> usize {
    PIPELINE.max(16 * threads)
}

/// lifeguard: a pool for each thread.
pub struct Lifeguard;

/// Of one thread.
pub struct LifeguardThread(lifeguard::Pool<Vector>);

impl Buffers for LifeguardThread {
    type Buffer<'a> = lifeguard::Recycled<'a, Vector>;

    #[inline(always)]
    fn get(&self, len: usize) -> lifeguard::Recycled<'_, Vector> {
        let mut vector = self.0.new();
        fit(&mut vector, len);
        vector
    }

    #[inline(always)]
    fn start(buffer: &mut lifeguard::Recycled<'_, Vector>) -> *mut u8 {
        buffer.as_mut_ptr()
    }
}

impl Source for Lifeguard {
    type Thread<'a> = LifeguardThread;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self
    }

    fn thread(&self) -> LifeguardThread {
        LifeguardThread(lifeguard::Pool::with_size(0))
    }
}

/// opool: a queue that all threads share.
pub struct Opool(opool::Pool<Maker, Vector>);

/// Of vectors of this capacity.
pub struct Maker(usize);

impl opool::PoolAllocator<Vector> for Maker {
    #[inline(always)]
    fn allocate(&self) -> Vector {
        Vec::with_capacity(self.0)
    }

    #[inline(always)]
    fn reset(&self, vector: &mut Vector) {
        vector.clear();
    }
}

/// Of one thread.
pub struct OpoolThread<'a>(&'a opool::Pool<Maker, Vector>);

impl Buffers for OpoolThread<'_> {
    type Buffer<'b>
        = opool::RefGuard<'b, Maker, Vector>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> opool::RefGuard<'_, Maker, Vector> {
        let mut vector = self.0.get();
        fit(&mut vector, len);
        vector
    }

    #[inline(always)]
    fn start(buffer: &mut opool::RefGuard<'_, Maker, Vector>) -> *mut u8 {
        buffer.as_mut_ptr()
    }
}

impl Source for Opool {
    type Thread<'a> = OpoolThread<'a>;
    type Other = Self;

    fn open(len: usize, threads: usize) -> Self {
        Self(opool::Pool::new(kept(threads), Maker(len)))
    }

    fn thread(&self) -> OpoolThread<'_> {
        OpoolThread(&self.0)
    }
}

// SAFETY: a buffer is a vector and a reference to the pool, which is `Sync`.
unsafe impl Crosses for Opool {}

/// object-pool: a stack under a mutex.
pub struct ObjectPool {
    pool: object_pool::Pool<Vector>,
}

/// Of one thread.
pub struct ObjectThread<'a>(&'a object_pool::Pool<Vector>);

impl Buffers for ObjectThread<'_> {
    type Buffer<'b>
        = object_pool::Reusable<'b, Vector>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> object_pool::Reusable<'_, Vector> {
        let mut vector = self.0.pull(|| Vec::with_capacity(len));
        fit(&mut vector, len);
        vector
    }

    #[inline(always)]
    fn start(buffer: &mut object_pool::Reusable<'_, Vector>) -> *mut u8 {
        buffer.as_mut_ptr()
    }
}

impl Source for ObjectPool {
    type Thread<'a> = ObjectThread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self { pool: object_pool::Pool::new(0, Vec::new) }
    }

    fn thread(&self) -> ObjectThread<'_> {
        ObjectThread(&self.pool)
    }
}

// SAFETY: as above.
unsafe impl Crosses for ObjectPool {}

/// sharded-slab, whose guards that may be written stay on their thread.
pub struct SlabPool(sharded_slab::Pool<Vector>);

/// Of one thread.
pub struct SlabThread<'a>(&'a sharded_slab::Pool<Vector>);

/// What it leaves behind when its last owner is gone has to be cleared by its key.
pub struct Slabbed<'a> {
    vector: ManuallyDrop<sharded_slab::pool::RefMut<'a, Vector>>,
    pool: &'a sharded_slab::Pool<Vector>,
}

impl Drop for Slabbed<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let key = self.vector.key();
        // SAFETY: dropped once, here, and not used after. Cleared while it is out, its slot would be a new one next time.
        unsafe { ManuallyDrop::drop(&mut self.vector) };
        self.pool.clear(key);
    }
}

impl Buffers for SlabThread<'_> {
    type Buffer<'b>
        = Slabbed<'b>
    where
        Self: 'b;

    #[inline(always)]
    fn get(&self, len: usize) -> Slabbed<'_> {
        let mut vector = self.0.create().expect("room in the slab");
        fit(&mut vector, len);
        Slabbed { vector: ManuallyDrop::new(vector), pool: self.0 }
    }

    #[inline(always)]
    fn start(buffer: &mut Slabbed<'_>) -> *mut u8 {
        buffer.vector.as_mut_ptr()
    }
}

impl Source for SlabPool {
    type Thread<'a> = SlabThread<'a>;
    type Other = Self;

    fn open(_len: usize, _threads: usize) -> Self {
        Self(sharded_slab::Pool::new())
    }

    fn thread(&self) -> SlabThread<'_> {
        SlabThread(&self.0)
    }
}
