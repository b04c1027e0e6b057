//! The small table of `make demo`.

use crate::Result;
use crate::bars::ratio_of_times;
use crate::plan;
use crate::report::Figures;
use crate::run::{Options, Progress, run_groups};
use crate::text::{duration, rate};
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

/// Measures the table for `make demo` for `time` (12 s is plenty). Of `options`, the plan and the choice of rows do not
/// matter here.
///
/// # Errors
/// As for [`run`](crate::run); and one of the three mechanisms failed.
pub fn demo_table(time: Duration, options: &Options, progress: &mut dyn FnMut(&Progress)) -> Result<Demo> {
    let report = run_groups(options, plan::demo(time), progress)?;
    let get = |group: &str, mechanism: &str| -> Result<Figures> {
        let row = report.rows.iter().find(|row| row.group == group && row.about.name == mechanism);
        let row = row.ok_or_else(|| format!("{group}/{mechanism} was not measured"))?;
        let why = || format!("{}: {}", row.id, row.failure.as_deref().unwrap_or("no figures"));
        Ok(row.figures.clone().ok_or_else(why)?)
    };
    let row = |mechanism: &'static str| -> Result<DemoRow> {
        let against_bus = |group: &str| -> Result<(Figures, f64)> {
            let (own, bus) = (get(group, mechanism)?, get(group, "bus")?);
            let ratio = ratio_of_times(&own, &bus).ok_or("no rounds")?;
            Ok((own, ratio))
        };
        let (rtt, rtt_ratio) = against_bus("rtt-spin")?;
        let (each, each_ratio) = against_bus("one-way-32-each")?;
        let (batch, batch_ratio) = against_bus("one-way-32-batch")?;
        let (large, bytes_ratio) = against_bus("one-way-64K-each")?;
        Ok(DemoRow {
            mechanism,
            rtt_ns: rtt.ns.p50,
            rtt_ratio,
            each_per_s: each.ops_per_s,
            each_ratio,
            batch_per_s: batch.ops_per_s,
            batch_ratio,
            bytes_per_s: f64::from(64 << 10) * large.ops_per_s,
            bytes_ratio,
        })
    };
    Ok(Demo { rows: vec![row("bus")?, row("uds")?, row("pipe")?] })
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
