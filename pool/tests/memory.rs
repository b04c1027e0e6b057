//! How much a pool holds on to: sizes as they come (zipf), and buffers that all go one way.
//!
//! One thread and a fixed seed, so the figures of the first test are the same everywhere.

mod support;

use ramway_pool::{Buffer, BufferPool};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use support::{Random, block_size, within};

/// 1 KiB to 1000 KiB; the n-th size is asked for 1/n as often as the first.
struct Zipf {
    /// What the first n sizes weigh together.
    weights: Vec<f64>,
    random: Random,
}

impl Zipf {
    const SIZES: usize = 1000;

    fn new(seed: u64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=Self::SIZES).map(|n| {
            sum += 1.0 / n as f64;
            sum
        });
        Self { weights: weights.collect(), random: Random::new(seed) }
    }

    fn size(&mut self) -> usize {
        let at = (self.random.next() >> 11) as f64 / (1_u64 << 53) as f64 * self.weights[Self::SIZES - 1];
        (self.weights.partition_point(|&weight| weight < at).min(Self::SIZES - 1) + 1) * 1024
    }
}

/// Peaks of what was held, of what was in use by the pool's own count, and of what was asked for; and what share of the
/// gets had to allocate.
fn zipf(live: usize, seed: u64) -> (usize, usize, usize, f64) {
    const GETS: usize = 60_000;
    let pool = BufferPool::new();
    let mut zipf = Zipf::new(seed);
    let mut held: Vec<Buffer> = Vec::new();
    let (mut asked, mut peak_asked, mut peak_used) = (0, 0, 0);
    let mut first = 0;
    for step in 0..GETS {
        if held.len() == live {
            let at = zipf.random.below(live);
            asked -= held.swap_remove(at).capacity();
        }
        let len = zipf.size();
        held.push(pool.get(len));
        asked += len;
        peak_asked = peak_asked.max(asked);
        if step % 16 == 0 {
            peak_used = peak_used.max(pool.stats().in_use_bytes);
        }
        if step == 20 * live {
            first = pool.stats().allocations;
        }
    }
    let stats = pool.stats();
    let misses = (stats.allocations - first) as f64 / (GETS - 20 * live) as f64;
    (stats.peak_held_bytes, peak_used, peak_asked, misses)
}

#[test]
fn what_is_held_stays_near_what_is_in_use() {
    for seed in 1..=3 {
        let (held, used, asked, misses) = zipf(256, seed);
        let (over_used, over_asked) = (held as f64 / used as f64, held as f64 / asked as f64);
        println!(
            "zipf, 256 alive, seed {seed}: peak held {held}, in use {used} ({over_used:.3} x), asked for {asked} \
             ({over_asked:.3} x); {:.2} % of the gets allocated",
            misses * 100.0
        );
        assert!(over_used <= 1.3, "{over_used:.3}");
        assert!(over_asked <= 1.3, "{over_asked:.3}");
        // A pool that keeps nothing holds little, too.
        assert!(misses <= 0.1, "{misses:.3}");
    }
}

/// After a load is over, the memory of its peak goes with the next growth and not only by `trim`.
#[test]
fn the_peak_of_an_hour_ago_is_not_held_for_ever() {
    let pool = BufferPool::new();
    drop((0..64).map(|_| pool.get(1 << 20)).collect::<Vec<_>>());
    assert!(pool.stats().idle_bytes >= 32 << 20, "{}", pool.stats());
    // Far less, of changing sizes: each growth forgets a little of the peak.
    for step in 0..3000 {
        let _held: Vec<_> = (0..32).map(|i| pool.get(2000 + 1300 * ((i + step) % 75))).collect();
    }
    let stats = pool.stats();
    println!("after 64 MiB and then kilobytes: {stats}");
    assert!(stats.held_bytes < 32 << 20, "{stats}");
}

/// Got on one thread and dropped on another, a million times: what was allocated for the first ten thousand is enough
/// for all the others.
#[test]
fn a_pipeline_allocates_no_more_the_longer_it_runs() {
    within(Duration::from_secs(120), || {
        const MESSAGES: u64 = 1_000_000;
        const AHEAD: usize = 64;
        const LEN: usize = 16 << 10;
        let pool = BufferPool::new();
        let (to, from) = sync_channel::<Buffer>(AHEAD);
        let dropping = thread::spawn(move || from.iter().count());
        let mut early = 0;
        for i in 0..MESSAGES {
            to.send(pool.get(LEN)).unwrap();
            if i == 10_000 {
                early = pool.stats().allocations;
            }
        }
        drop(to);
        assert_eq!(dropping.join().unwrap() as u64, MESSAGES);
        let stats = pool.stats();
        println!("pipeline, {AHEAD} ahead: {stats}");
        assert_eq!(stats.gets, MESSAGES);
        // While the peak is not known yet a few are freed and allocated again; later hardly any. (With a cache alone,
        // each of them would be: nobody here drops where it gets.)
        assert!(stats.allocations - early <= MESSAGES / 1000, "{early} after 10,000: {stats}");
        assert!(early <= 1000, "{early}");
        // On the way: the channel and one on each side. No more than twice of that.
        assert!(stats.peak_held_bytes <= 2 * (AHEAD + 2) * block_size(LEN), "{stats}");
        assert_eq!(stats.in_use_bytes, 0);
    });
}
