//! The small table of `make demo`.

use crate::Result;
use crate::pair::Pair;
use crate::plan::{self, Mode, Test};
use crate::report::{duration, rate};
use crate::run::{Progress, measure};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Ramway's bus beside a Unix socket and a pipe, measured in one run of rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Demo {
    /// Ramway's bus first.
    pub rows: Vec<DemoRow>,
}

/// One mechanism's medians, and how many times as good Ramway's bus is.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DemoRow {
    /// `bus`, `uds` or `pipe`.
    pub mechanism: &'static str,
    /// Round trip of a 32-byte message; the bus polls, the others cannot.
    pub rtt_ns: f64,
    /// How many times the bus's that is.
    pub rtt_ratio: f64,
    /// Messages of 32 bytes a second, each sent by itself.
    pub each_per_s: f64,
    /// How many times that the bus sends.
    pub each_ratio: f64,
    /// The same, 32 sent together.
    pub batch_per_s: f64,
    /// How many times that the bus sends.
    pub batch_ratio: f64,
    /// Bytes a second in messages of 64 KiB, filled and summed.
    pub bytes_per_s: f64,
    /// How many times that the bus carries.
    pub bytes_ratio: f64,
}

/// Measures the table for `make demo` for `time` (12 s is plenty).
///
/// # Errors
/// As for [`run`](crate::run).
pub fn demo_table(time: Duration, progress: &mut dyn FnMut(&Progress)) -> Result<Demo> {
    let cases = plan::demo();
    let total = time.as_millis() as u64;
    let mut report = |done: Duration, label| progress(&Progress { done: done.as_millis() as u64, total, label });
    let mut pair = Pair::start(&cases)?;
    let (series, _) = measure(&mut pair, cases.len(), time, &mut report)?;
    pair.stop()?;
    report(time, "done".to_owned());

    let at = |mechanism: &str, test, mode, size| {
        let is = |case: &plan::Case| {
            case.mechanism == mechanism && (case.burst.test, case.burst.mode, case.burst.size) == (test, mode, size)
        };
        cases.iter().position(is).map(|at| &series[at]).expect("plan::demo has it")
    };
    let row = |mechanism: &'static str, waiting| {
        let [rtt, bus_rtt] = [at(mechanism, Test::Rtt, waiting, 32), at("bus", Test::Rtt, Mode::Spin, 32)];
        let each = |m| at(m, Test::OneWay, Mode::Each, 32);
        let batch = |m| at(m, Test::OneWay, Mode::Batch, 32);
        let large = |m| at(m, Test::OneWay, Mode::Each, 64 << 10);
        DemoRow {
            mechanism,
            rtt_ns: rtt.quantile_ns(0.5),
            rtt_ratio: rtt.ratio_to(bus_rtt),
            each_per_s: 1e9 / each(mechanism).quantile_ns(0.5),
            each_ratio: each(mechanism).ratio_to(each("bus")),
            batch_per_s: 1e9 / batch(mechanism).quantile_ns(0.5),
            batch_ratio: batch(mechanism).ratio_to(batch("bus")),
            bytes_per_s: f64::from(64 << 10) * 1e9 / large(mechanism).quantile_ns(0.5),
            bytes_ratio: large(mechanism).ratio_to(large("bus")),
        }
    };
    Ok(Demo { rows: vec![row("bus", Mode::Spin), row("uds", Mode::Block), row("pipe", Mode::Block)] })
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |ratio: f64| if ratio < 10.0 { format!("{ratio:.1}×") } else { format!("{ratio:.0}×") };
        let head = ["round trip, 32 B", "32 B, one by one", "32 B, 32 together", "64 KiB, one by one"];
        writeln!(f, "{:<12}{:>20}{:>22}{:>22}{:>22}", "", head[0], head[1], head[2], head[3])?;
        for row in &self.rows {
            let name = match row.mechanism {
                "bus" => "Ramway bus",
                "uds" => "Unix socket",
                other => other,
            };
            let cells = [
                (duration(row.rtt_ns), row.rtt_ratio),
                (rate(row.each_per_s, "msg/s"), row.each_ratio),
                (rate(row.batch_per_s, "msg/s"), row.batch_ratio),
                (rate(row.bytes_per_s, "B/s"), row.bytes_ratio),
            ];
            write!(f, "{name:<12}")?;
            for (column, (value, ratio)) in cells.into_iter().enumerate() {
                let ratio = if row.mechanism == "bus" { String::new() } else { times(ratio) };
                write!(f, "{value:>width$} {ratio:>6}", width = if column == 0 { 13 } else { 15 })?;
            }
            writeln!(f)?;
        }
        writeln!(f, "× = how many times as long as Ramway's bus takes, median of the ratios within each round")
    }
}
