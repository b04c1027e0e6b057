//! The worker of `ramway bench` for other libraries' pools of buffers: see `lib.rs`.

use pools::{Lifeguard, ObjectPool, Opool, SlabPool, Zero, Zero02, ZeroSafe};
use ramway_bench::pools::Pools;
use ramway_bench::{About, Kind};

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

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

fn main() {
    match ramway_bench::child_main(&[&ZERO, &ZERO_SAFE, &ZERO_0_2, &LIFEGUARD, &OPOOL, &OBJECT_POOL, &SLAB]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
