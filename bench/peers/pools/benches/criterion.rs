//! `make -C bench/peers pools-criterion`: the pools by criterion, with the loops of `ramway bench`.
//!
//! criterion measures one candidate after another, and what disturbs the machine for a while disturbs one of them. So each
//! of its samples is made of slices, and after every slice the same number of operations is done by the stack of vectors
//! that one writes by hand: both see the same moments. criterion's time is the candidate's own; the line below it is the
//! median of the ratios within the slices. A slice takes a millisecond at least, however few iterations criterion asks for: it
//! is told the time that these would have taken.

use criterion::{Criterion, Throughput};
use ramway_bench::pools::{Timed, built_in};
use ramway_bench::{Burst, Failure, Mechanism, Mode, Test};
use std::time::Duration;

/// Pieces of a sample, each followed by one of the stack's.
const SLICES: u64 = 8;

fn main() -> Result<(), Failure> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
        .configure_from_args();
    for (id, size) in [("1K", 1 << 10), ("64K", 64 << 10), ("1M", 1 << 20), ("64M", 64 << 20)] {
        for threads in [1, 2] {
            let get = burst(Test::PoolGet, size, threads, 1);
            group(&mut criterion, &format!("pool-get-{id}-{threads}t"), get, get)?;
        }
    }
    let alternate = burst(Test::PoolAlternate, 64 << 10, 1, 1);
    group(&mut criterion, "pool-alternate", alternate, alternate)?;
    let mixed = burst(Test::PoolMixed, 1 << 20, 8, 8);
    group(&mut criterion, "pool-mixed-8t", mixed, mixed)?;
    // A stack of one thread has no pipeline: it stands beside it for the machine's mood.
    group(
        &mut criterion,
        "pool-pipeline-1M",
        burst(Test::PoolPipeline, 1 << 20, 1, 1),
        burst(Test::PoolGet, 1 << 20, 1, 1),
    )?;
    criterion.final_summary();
    Ok(())
}

fn burst(test: Test, size: usize, threads: u32, batch: u32) -> Burst {
    let mut burst = Burst::new(test, Mode::Each, size, 1);
    (burst.threads, burst.batch) = (threads, batch);
    burst
}

/// Operations that take a millisecond, the best of five times: where threads share the work, their waking up is little of it
/// then, and one that has lost its processor is not taken for work.
fn enough(timed: &mut Timed) -> Result<u64, Failure> {
    let mut count = 1;
    loop {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            best = best.min(timed.run(count)?);
        }
        if best >= Duration::from_millis(1) {
            return Ok(count);
        }
        count *= 2;
    }
}

/// Every candidate that can do it. `beside` is what the stack does after each slice.
fn group(criterion: &mut Criterion, name: &str, burst: Burst, beside: Burst) -> Result<(), Failure> {
    let stack = built_in().into_iter().find(|one| one.about().name == "hand-stack").ok_or("no stack by hand")?;
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    let candidates: Vec<&dyn Mechanism> = built_in().into_iter().chain(pools::ALL).collect();
    for candidate in candidates {
        let about = candidate.about();
        let Some(mut timed) = Timed::new(candidate, burst)? else { continue };
        let Some(mut reference) = Timed::new(stack, beside)? else { continue };
        let (least, beside_least) = (enough(&mut timed)?, enough(&mut reference)?);
        let (mut ratios, mut failure) = (Vec::new(), None);
        let label =
            if about.version.is_empty() { about.name.clone() } else { format!("{} {}", about.name, about.version) };
        group.bench_function(&label, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut slices = || -> Result<Duration, Failure> {
                    let mut each = 0.0;
                    for _ in 0..SLICES {
                        let count = (iterations / SLICES).max(least);
                        let own = timed.run(count)?.as_secs_f64() / count as f64;
                        let stack = reference.run(beside_least)?.as_secs_f64() / beside_least as f64;
                        ratios.push(own / stack);
                        each += own / SLICES as f64;
                    }
                    Ok(Duration::from_secs_f64(each * iterations as f64))
                };
                slices().unwrap_or_else(|cause| {
                    failure = Some(cause);
                    Duration::from_secs(1)
                })
            });
        });
        if let Some(cause) = failure {
            println!("{name}/{label}: {cause}");
            std::process::exit(1);
        }
        // None if criterion's filter leaves it out. What the warm-up did is the smaller part.
        ratios.sort_unstable_by(f64::total_cmp);
        if let Some(ratio) = ratios.get(ratios.len() / 2) {
            println!("{name}/{label}: {ratio:.2} × hand-stack, in turns");
        }
    }
    group.finish();
    Ok(())
}
