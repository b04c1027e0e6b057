//! How much memory is held for what is in use. Of a pool that is the bytes of its allocations; where nothing is pooled it
//! is the allocator that holds, and what it has from the system counts.

use super::sizes::Random;
use super::{Buffers, Sizes, Source};
use crate::Result;
use crate::case::Burst;
use crate::control::Control;
use crate::usage::{Counts, count, live_bytes};
use std::hint::black_box;

/// How often is looked.
const EACH: u64 = 32;

/// Peak and sum of what was seen.
#[derive(Default)]
struct Seen {
    peak: f64,
    sum: f64,
}

impl Seen {
    fn add(&mut self, value: f64) {
        self.peak = self.peak.max(value);
        self.sum += value;
    }
}

/// `batch` buffers; a random one is given back, and another one got. With a pool of its own, in a thread of its own: what
/// pools left in this one is nothing of it.
pub(super) fn held<S: Source>(burst: &Burst, control: &Control, heap: bool) -> Result<()> {
    let sizes = Sizes::new(burst.size);
    let outcome = std::thread::scope(|scope| scope.spawn(|| run::<S>(&sizes, burst, heap)).join());
    count(Counts::Calls);
    control.end();
    let (held, used) = outcome.map_err(|_| "the thread panicked")??;
    control.ratio("held / in use, peak", held.peak / used.peak);
    control.ratio("held / in use, mean", held.sum / used.sum);
    Ok(())
}

fn run<S: Source>(sizes: &Sizes, burst: &Burst, heap: bool) -> Result<(Seen, Seen)> {
    let alive = burst.batch as usize;
    let mut lengths = vec![0; alive];
    let others = heap_in_use()?;
    count(Counts::Bytes);
    let pool = S::open(burst.size, 1);
    let (mut held, mut used) = (Seen::default(), Seen::default());
    {
        let from = pool.thread();
        let mut has: Vec<Option<_>> = (0..alive).map(|_| None).collect();
        // What this function itself has, and what an empty pool has.
        let before = live_bytes();
        let mut random = Random(7);
        let mut in_use = 0;
        for n in 0..burst.count {
            let slot = random.below(alive);
            has[slot] = None;
            let len = sizes.at(random.next() as usize);
            let mut buffer = from.get(len);
            black_box(<S::Thread<'_> as Buffers>::start(&mut buffer));
            has[slot] = Some(buffer);
            in_use = in_use + len - std::mem::replace(&mut lengths[slot], len);
            if n % EACH == 0 {
                let bytes = if heap { heap_bytes()? - others } else { (live_bytes() - before) as f64 };
                held.add(bytes);
                used.add(in_use as f64);
            }
        }
    }
    pool.settled(usize::MAX)?;
    Ok((held, used))
}

/// What the C library has from the system for allocations.
#[cfg(target_env = "gnu")]
fn heap_bytes() -> Result<f64> {
    // SAFETY: gives a struct.
    let heap = unsafe { libc::mallinfo2() };
    Ok((heap.arena + heap.hblkhd) as f64)
}

/// Which of it is allocated.
#[cfg(target_env = "gnu")]
fn heap_in_use() -> Result<f64> {
    // SAFETY: gives a struct.
    let heap = unsafe { libc::mallinfo2() };
    Ok((heap.uordblks + heap.hblkhd) as f64)
}

#[cfg(not(target_env = "gnu"))]
fn heap_bytes() -> Result<f64> {
    Err("this C library does not say what it holds".into())
}

#[cfg(not(target_env = "gnu"))]
fn heap_in_use() -> Result<f64> {
    Ok(0.0)
}
