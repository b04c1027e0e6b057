//! Buffers, got and given back in one process.

use super::{GroupPlan, MIB, group, of};
use crate::case::{Burst, Mode, Test};

/// What is here, and without a library.
const BUILT_IN: &str = "pool hand-stack malloc bytes vec-zeroed";
/// Other libraries, of `bench/peers/pools`.
pub(crate) const POOLS: &str = "\
    zeropool zeropool-safe zeropool-0.2 lifeguard opool object-pool sharded-slab";
/// Those that the bars name.
const NEAREST: &str = "zeropool";
/// Who keeps buffers, by size or at all.
const KEEPERS: &str = "\
    pool hand-stack zeropool zeropool-safe zeropool-0.2 lifeguard opool object-pool sharded-slab";

/// Buffers that a thread has at a time where lengths differ.
const WINDOW: u32 = 8;

pub(super) fn groups(standard: bool) -> Vec<GroupPlan> {
    let get = |size: usize, threads: u32| Burst { threads, ..of(Test::PoolGet, Mode::Each, size) };
    let mut groups = Vec::new();
    for (id, shown, size) in
        [("1K", "1 KiB", 1 << 10), ("64K", "64 KiB", 64 << 10), ("1M", "1 MiB", 1 << 20), ("64M", "64 MiB", 64 << 20)]
    {
        for threads in [1, 2] {
            let (suffix, who) = if threads == 1 { ("", "one thread") } else { ("-2t", "two threads at once") };
            let title = format!("Pool: a buffer of {shown} got and dropped, untouched, {who}");
            let get = group(&format!("pool-get-{id}{suffix}"), &title, get(size, threads)).floor("hand-stack");
            if standard {
                groups.push(get.among(BUILT_IN).among(POOLS));
            } else if size == 64 << 10 {
                groups.push(get.among(BUILT_IN).among(NEAREST));
            }
        }
    }
    if !standard {
        return groups;
    }
    let title = "Pool: 1 MiB got by one thread and dropped by another";
    groups.push(
        group("pool-pipeline-1M", title, of(Test::PoolPipeline, Mode::Each, MIB as usize))
            .among("pool malloc bytes vec-zeroed zeropool zeropool-safe zeropool-0.2 opool object-pool"),
    );
    let alternate = of(Test::PoolAlternate, Mode::Each, 64 << 10);
    groups.push(
        group("pool-alternate", "Pool: 64 KiB from two pools in turn on one thread", alternate)
            .among(KEEPERS)
            .floor("hand-stack"),
    );
    let mixed = |threads: u32| {
        let burst = Burst { threads, batch: WINDOW, ..of(Test::PoolMixed, Mode::Each, MIB as usize) };
        let burst = Burst { count: 40 * u64::from(WINDOW), ..burst };
        let title = format!("Pool: 1 KiB to 1 MiB by Zipf's law, {threads} threads of which each has {WINDOW} buffers");
        // Long enough for every thread to run.
        GroupPlan {
            at_least: 1,
            ..group(&format!("pool-mixed-{threads}t"), &title, burst).among(BUILT_IN).among(POOLS)
        }
    };
    groups.push(mixed(8));
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get()) as u32;
    if processors > 8 {
        groups.push(mixed(processors));
    }
    for alive in [256, 2048] {
        let burst = Burst {
            batch: alive,
            count: 16 * u64::from(alive),
            group: alive,
            ..of(Test::PoolHeld, Mode::Each, MIB as usize)
        };
        let title = format!("Pool: memory held over what is in use, {alive} buffers of 1 KiB to 1 MiB by Zipf's law");
        let held = group(&format!("pool-held-{alive}"), &title, burst);
        groups.push(GroupPlan { at_least: 1, ..held.among("pool malloc zeropool zeropool-0.2 opool object-pool") });
    }
    groups
}
