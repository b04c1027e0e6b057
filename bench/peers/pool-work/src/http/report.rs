//! What a run says: the data, which is also the JSON, and its text.

use super::worker::Round;
use crate::stats;
use crate::table::{short, table};
use serde::Serialize;
use std::fmt::Write;

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `http`.
    pub program: &'static str,
    /// The kernel, the processor, how many of them.
    pub machine: String,
    /// Of each process.
    pub threads: u32,
    /// Bytes.
    pub smallest: u32,
    /// Bytes.
    pub largest: u32,
    /// Bodies held by each thread.
    pub alive: u32,
    /// One reply of so many is sent by another thread.
    pub handed: u32,
    /// Buffers of each length that `pool-prepared` began with.
    pub prepared: u32,
    /// Microseconds.
    pub wait_us: u32,
    /// Milliseconds.
    pub time_ms: u32,
    /// How often each row was measured.
    pub rounds: u32,
    /// One for each process.
    pub rows: Vec<Row>,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What its buffers are, and the allocator: `pool-system`, `vec-jemalloc`, ....
    pub name: String,
    /// Why there are no figures.
    pub failure: Option<String>,
    /// The figures.
    pub figures: Option<Figures>,
}

/// Medians over the rounds unless they say otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Of all threads.
    pub requests_per_s: f64,
    /// In the best round.
    pub requests_per_s_best: f64,
    /// 10^9 bytes of buffers a second.
    pub gb_per_s: f64,
    /// The rate divided by that of `pool-system`: the median of the ratios within the rounds.
    pub to_pool: Option<f64>,
    /// Requests of the slowest thread divided by the mean of all threads, over all rounds together.
    pub slowest_share: f64,
    /// Share of the replies that another thread sent.
    pub handed_share: f64,
    /// Page faults for each request.
    pub faults: f64,
    /// Allocations of the pool for each of its buffers, which are three a request.
    pub pool_misses: Option<f64>,
    /// Bytes that the pool held and had in use at the end of a round: the medians.
    pub pool_bytes: Option<[f64; 2]>,
    /// Microseconds of processor time in the program for each request.
    pub user_us: f64,
    /// Microseconds of processor time in the kernel for each request.
    pub system_us: f64,
    /// Resident bytes after the last round, without what was there before the first.
    pub resident: u64,
    /// The most there ever were, likewise.
    pub peak_resident: u64,
    /// Requests a second, round by round; a round is the same moment in all rows.
    pub rounds: Vec<f64>,
}

/// Of a process that was measured in these rounds, at these rates.
pub fn figures(rounds: &[Round], rates: &[f64], to_pool: Option<f64>) -> Figures {
    let threads = rounds.first().map_or(0, |round| round.requests.len());
    let by_thread = (0..threads).map(|thread| rounds.iter().map(|round| round.requests[thread]).sum::<u64>());
    let by_thread: Vec<f64> = by_thread.map(|requests| requests as f64).collect();
    let all: f64 = by_thread.iter().sum();
    let each = |value: fn(&Round) -> u64| rounds.iter().map(value).sum::<u64>() as f64 / all.max(1.0);
    let rate: Vec<f64> = rounds.iter().map(|round| round.bytes as f64 / round.seconds).collect();
    // Between the ends of the first round and the last: what came before the first is the warm-up's too.
    let ends = rounds.first().zip(rounds.last()).and_then(|(a, b)| a.allocations.zip(b.allocations));
    let later: u64 = rounds.iter().skip(1).flat_map(|round| &round.requests).sum();
    let pool_misses = ends.filter(|_| later > 0).map(|(a, b)| (b - a) as f64 / (3 * later) as f64);
    let part =
        |at: usize| -> Vec<f64> { rounds.iter().filter_map(|round| Some(round.pool_bytes?[at] as f64)).collect() };
    let pool_bytes = pool_misses.map(|_| [0, 1].map(|at| stats::median(&part(at))));
    Figures {
        requests_per_s: stats::median(rates),
        requests_per_s_best: rates.iter().copied().fold(0.0, f64::max),
        gb_per_s: stats::median(&rate) / 1e9,
        to_pool,
        slowest_share: stats::least(&by_thread) * threads as f64 / all.max(1.0),
        handed_share: each(|round| round.handed),
        faults: each(|round| round.faults),
        pool_misses,
        pool_bytes,
        user_us: each(|round| round.user_ns) / 1000.0,
        system_us: each(|round| round.system_ns) / 1000.0,
        resident: rounds.last().map_or(0, |round| round.resident),
        peak_resident: rounds.last().map_or(0, |round| round.peak_resident),
        rounds: rates.to_vec(),
    }
}

impl Report {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "http: {} threads, buffers of {} to {} bytes (zipf), {} bodies held by each, 1 of {} replies sent by another; {}\n",
            self.threads, self.smallest, self.largest, self.alive, self.handed, self.machine
        );
        let head =
            ["", "requests/s", "best", "GB/s", "to pool", "slowest", "faults", "user us", "kernel us", "MB", "peak MB"];
        let rows = self.rows.iter().map(|row| {
            let Some(figures) = &row.figures else { return vec![row.name.clone()] };
            let mut cells = vec![row.name.clone()];
            cells.extend([figures.requests_per_s, figures.requests_per_s_best, figures.gb_per_s].map(short));
            cells.push(figures.to_pool.map_or("-".into(), short));
            cells.push(format!("{:.0} %", figures.slowest_share * 100.0));
            cells.extend([figures.faults, figures.user_us, figures.system_us].map(short));
            cells.extend([figures.resident, figures.peak_resident].map(|bytes| short(bytes as f64 / 1e6)));
            cells
        });
        let _ = writeln!(text, "\n{}", table(&head, rows));
        for row in &self.rows {
            if let Some(cause) = &row.failure {
                let _ = writeln!(text, "  {}: {cause}", row.name);
            }
            let Some(figures) = &row.figures else { continue };
            if let (Some(misses), Some([held, used])) = (figures.pool_misses, figures.pool_bytes) {
                let (percent, held, used) = (misses * 100.0, held / 1e6, used / 1e6);
                let _ = writeln!(
                    text,
                    "  {}: {percent:.2} % of the buffers were allocated; the pool held {held:.1} MB, {used:.1} of them in use",
                    row.name
                );
            }
        }
        text
    }
}
