//! Other libraries' pools of buffers, for the rows `pool-…` of `ramway bench` and for the criterion groups beside it. Each
//! by the calls that its own documentation uses, for vectors that get their capacity once and are not written:
//!
//! - zeropool 0.7: `alloc_uninit`; its safe `alloc`, which zeroes what grows. `min_buffer_size(0)`, or it would keep
//!   nothing below 4 KiB. Version 0.2: `get` gives a vector of that length whatever is in it, `put` takes it back.
//! - lifeguard: one pool for each thread (it is not `Sync`); `new`, and `reserve` where the capacity is too short.
//! - opool: `get` of a shared pool, an allocator that makes vectors of the capacity.
//! - object-pool: `pull` with the same as a fall-back.
//! - sharded-slab: `create`, and `reserve`: its pool makes empty vectors.
//!
//! The last four keep what they are given whatever its size, so where sizes differ a vector may be reserved anew.

use ramway_bench::pools::Pools;
use ramway_bench::{About, Kind, Mechanism};

mod keepers;
mod zero;

pub use keepers::{Lifeguard, ObjectPool, Opool, SlabPool};
pub use zero::{Zero, Zero02, ZeroSafe};

/// All of them.
pub static ALL: [&dyn Mechanism; 7] = [&ZERO, &ZERO_SAFE, &ZERO_0_2, &LIFEGUARD, &OPOOL, &OBJECT_POOL, &SLAB];

fn about(name: &str, version: &str, what: &str) -> About {
    About::new(name, Kind::Peer, false, what).version(version)
}

static ZERO: Pools<Zero> =
    Pools::crossing(|| about("zeropool", env!("ZEROPOOL_VERSION"), "zeropool's alloc_uninit: not zeroed"));
static ZERO_SAFE: Pools<ZeroSafe> = Pools::crossing(|| {
    about("zeropool-safe", env!("ZEROPOOL_VERSION"), "zeropool's safe alloc: zeroed where it grows")
});
static ZERO_0_2: Pools<Zero02> = Pools::crossing(|| {
    about("zeropool-0.2", env!("ZEROPOOL_0_2_VERSION"), "zeropool 0.2: get gives a vector that nobody initialised, put")
});
static LIFEGUARD: Pools<Lifeguard> =
    Pools::new(|| about("lifeguard", env!("LIFEGUARD_VERSION"), "lifeguard: a pool of vectors for each thread"));
static OPOOL: Pools<Opool> =
    Pools::crossing(|| about("opool", env!("OPOOL_VERSION"), "opool: a queue of vectors that all threads share"));
static OBJECT_POOL: Pools<ObjectPool> = Pools::crossing(|| {
    about("object-pool", env!("OBJECT_POOL_VERSION"), "object-pool: a stack of vectors under a mutex")
});
static SLAB: Pools<SlabPool> =
    Pools::new(|| about("sharded-slab", env!("SHARDED_SLAB_VERSION"), "sharded-slab: a slab of vectors by thread"));

/// What [`Crosses`](ramway_bench::pools::Crosses) is said of.
const _: () = {
    const fn goes_to_other_threads<T: Send>() {}
    goes_to_other_threads::<zeropool::BufUninit<'_>>();
    goes_to_other_threads::<zeropool::Buf<'_>>();
    goes_to_other_threads::<zero::PutBack<'_>>();
    goes_to_other_threads::<opool::RefGuard<'_, keepers::Maker, Vec<u8>>>();
    goes_to_other_threads::<object_pool::Reusable<'_, Vec<u8>>>();
};
