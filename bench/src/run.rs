//! A run: rounds, in each of which every row is measured once, in another order.

use crate::Result;
use crate::machine::{Machine, two_cpus};
use crate::pair::Pair;
use crate::plan::{self, Case, Mode, Test};
use crate::report::{Bar, Report, Row, rate};
use crate::stats::Series;
use std::time::{Duration, Instant};

/// How long and what to measure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long the rounds go on; at least two rounds are made.
    pub rounds_for: Duration,
    /// How long a receiver waits for its use of the processor to be measured; zero leaves that out.
    pub idle_for: Duration,
    /// Only rows whose `mechanism/test/size/mode` contains this.
    pub filter: Option<String>,
}

impl Options {
    /// Under 30 seconds.
    pub fn quick() -> Self {
        Self { rounds_for: Duration::from_secs(15), idle_for: Duration::from_secs(10), filter: None }
    }

    /// Under 5 minutes.
    pub fn full() -> Self {
        Self { rounds_for: Duration::from_secs(180), ..Self::quick() }
    }
}

/// How far a run has come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Milliseconds of work done.
    pub done: u64,
    /// Milliseconds of work planned.
    pub total: u64,
    /// What is being done.
    pub label: String,
}

/// Measures. Blocks for as long as the options say, and pins the calling thread to one processor meanwhile.
///
/// # Errors
/// The second process could not be started (the program must call [`child_main`](crate::child_main) first in its
/// `main`), failed or died; or a mechanism is not to be had on this machine.
pub fn run(options: &Options, progress: &mut dyn FnMut(&Progress)) -> Result<Report> {
    let mut cases = plan::all();
    if let Some(filter) = &options.filter {
        cases.retain(|case| case.label().contains(filter.as_str()));
        if cases.is_empty() {
            return Err(format!("no row matches {filter:?}: rows are named mechanism/test/size/mode").into());
        }
    }
    let measured = cases.len();
    let idle = !options.idle_for.is_zero() && options.filter.is_none();
    if idle {
        cases.push(plan::idle());
    }
    let idle_for = if idle { options.idle_for } else { Duration::ZERO };

    let machine = Machine::look(two_cpus());
    let mut pair = Pair::start(&cases)?;
    let total = (options.rounds_for + idle_for).as_millis() as u64;
    let mut report =
        |done: Duration, label: String| progress(&Progress { done: done.as_millis() as u64, total, label });

    let (series, rounds) = measure(&mut pair, measured, options.rounds_for, &mut report)?;
    let idle_share = if idle {
        let began = Instant::now();
        let wait = || {
            while began.elapsed() < idle_for {
                report(options.rounds_for + began.elapsed(), "a receiver that waits".to_owned());
                std::thread::sleep(Duration::from_millis(100).min(idle_for));
            }
        };
        let (used_ns, _) = pair.burst_after(measured, wait)?;
        Some(used_ns.first().copied().unwrap_or(0) as f64 / began.elapsed().as_nanos() as f64)
    } else {
        None
    };
    report(Duration::from_millis(total), "done".to_owned());
    pair.stop()?;

    let rows = cases.iter().zip(&series).map(|(case, one)| row(case, one, &cases, &series)).collect();
    Ok(Report { machine, rows, bars: bars(&cases, &series, idle_share, idle_for), rounds })
}

/// Rounds over the first `measured` cases until the time is up.
pub(crate) fn measure(
    pair: &mut Pair,
    measured: usize,
    duration: Duration,
    report: &mut dyn FnMut(Duration, String),
) -> Result<(Vec<Series>, u32)> {
    let mut series: Vec<_> = (0..measured).map(|_| Series::new()).collect();
    let mut order: Vec<usize> = (0..measured).collect();
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let began = Instant::now();
    let mut rounds = 0;
    loop {
        // Another order in each round, so that no row is always after the same other.
        for i in (1..measured).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(i, (random >> 33) as usize % (i + 1));
        }
        // The first round, and the first 5 % of the time, warm up.
        let counts = rounds > 0 || began.elapsed() > duration / 20;
        for &case in &order {
            let (ticks, operations) = pair.burst(case)?;
            if counts {
                series[case].add(ticks, operations);
            }
        }
        rounds += u32::from(counts);
        if rounds >= 1 && began.elapsed() >= duration {
            return Ok((series, rounds));
        }
        let label = if counts { format!("round {rounds}") } else { "warm-up".to_owned() };
        report(began.elapsed().min(duration), label);
    }
}

fn find(cases: &[Case], mechanism: &str, test: Test, size: usize, mode: Mode) -> Option<usize> {
    // Of two rows that differ in copying, the one that does not copy comes first.
    let is = |case: &Case| {
        case.mechanism == mechanism && (case.burst.test, case.burst.size, case.burst.mode) == (test, size, mode)
    };
    cases.iter().position(is)
}

/// The row that a row is best compared with: the least that its kind of work can cost.
fn floor_of(case: &Case, cases: &[Case]) -> Option<usize> {
    let size = case.burst.size;
    match (case.burst.test, case.burst.mode) {
        (Test::Rtt, Mode::Spin) => find(cases, "raw-flag", Test::Rtt, 8, Mode::Spin),
        (Test::Rtt, _) => find(cases, "futex", Test::Rtt, 0, Mode::Block),
        (Test::Wake, _) => find(cases, "futex", Test::Wake, 0, Mode::Block),
        (Test::OneWay, _) if size == 32 => find(cases, "seq-cst", Test::OneWay, 32, Mode::Each),
        (Test::OneWay, _) => find(cases, "pointer", Test::OneWay, size, Mode::Each),
        (Test::Idle, _) => None,
    }
}

fn row(case: &Case, series: &Series, cases: &[Case], all: &[Series]) -> Row {
    let crate::channel::Burst { test, mode, size, batch, .. } = case.burst;
    let p50_ns = series.quantile_ns(0.5);
    let msgs_per_s = (test != Test::Wake).then_some(1e9 / p50_ns);
    let floor = floor_of(case, cases).filter(|&floor| cases[floor].label() != case.label());
    Row {
        mechanism: crate::mechanism::name(&case.mechanism),
        test,
        size,
        mode,
        p50_ns,
        p99_ns: series.quantile_ns(0.99),
        p999_ns: series.quantile_ns(0.999),
        min_ns: series.min_ns(),
        msgs_per_s,
        bytes_per_s: msgs_per_s.filter(|_| size > 0).map(|rate| rate * size as f64),
        copied: case.copied,
        batch,
        samples: series.samples(),
        versus: floor.map(|floor| cases[floor].label()),
        ratio: floor.map(|floor| series.ratio_to(&all[floor])).filter(|ratio| ratio.is_finite()),
    }
}

fn bars(cases: &[Case], series: &[Series], idle_share: Option<f64>, idle_for: Duration) -> Vec<Bar> {
    let get = |mechanism, test, size, mode| find(cases, mechanism, test, size, mode).map(|at| &series[at]);
    let mut bars = Vec::new();
    let mut add = |what, bar, measured, met| bars.push(Bar { what, bar, measured, met });

    if let (Some(ring), Some(flag)) =
        (get("ring", Test::Rtt, 32, Mode::Spin), get("raw-flag", Test::Rtt, 8, Mode::Spin))
    {
        let ratio = ring.ratio_to(flag);
        add("ring round trip, 32 B, spinning", "≤ 1.00 × the raw flag's", format!("{ratio:.2} ×"), ratio <= 1.0);
    }
    if let (Some(ring), Some(seq_cst)) =
        (get("ring", Test::OneWay, 32, Mode::Batch), get("seq-cst", Test::OneWay, 32, Mode::Each))
    {
        let (times, per_s) = (seq_cst.ratio_to(ring), 1e9 / ring.quantile_ns(0.5));
        let measured = format!("{times:.1} ×, {}", rate(per_s, "msg/s"));
        let bar = "≥ 8 × per-message seq_cst publishing, or ≥ 80 M msg/s";
        add("ring one way, 32 B, batched", bar, measured, times >= 8.0 || per_s >= 80e6);
    }
    if let (Some(ring), Some(pointer)) =
        (get("ring", Test::OneWay, 1 << 20, Mode::Each), get("pointer", Test::OneWay, 1 << 20, Mode::Each))
    {
        let times = pointer.ratio_to(ring);
        let bar = "≥ 0.90 × the rate of handing a pointer to another thread";
        add("ring one way, 1 MiB, filled in place and summed", bar, format!("{times:.2} ×"), times >= 0.9);
    }
    if let (Some(ring), Some(futex)) =
        (get("ring", Test::Wake, 32, Mode::Block), get("futex", Test::Wake, 0, Mode::Block))
    {
        let ratio = ring.ratio_to(futex);
        add("wake-up of a sleeping receiver", "≤ 1.10 × bare FUTEX_WAKE", format!("{ratio:.2} ×"), ratio <= 1.1);
    }
    if let Some(share) = idle_share {
        let measured = format!("{:.3} % of a processor over {} s", share * 100.0, idle_for.as_secs());
        add("a receiver that waits", "< 0.5 % of a processor", measured, share < 0.005);
    }
    bars
}
