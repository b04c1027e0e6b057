//! What a run says, as JSON and as text.

use crate::machine::Machine;
use crate::plan::{Mode, Test};
use serde::Serialize;
use std::fmt;

/// A whole run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// One for each mechanism, test, size and mode.
    pub rows: Vec<Row>,
    /// What the project promises, and whether this run kept it.
    pub bars: Vec<Bar>,
    /// How often every row was measured, the warm-up not counted.
    pub rounds: u32,
}

/// The figures of one candidate.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// `raw-flag`, `ring`, `bus`, `region`, `futex`, `pipe`, `uds`, `seq-cst`, `pointer` or `memcpy`.
    pub mechanism: &'static str,
    /// What was timed.
    pub test: Test,
    /// Bytes of payload; 0 where nothing but the wake-up is carried.
    pub size: usize,
    /// How the sides wait or publish.
    pub mode: Mode,
    /// Median. Of single wake-ups and round trips (`spin`: of ten in a row, divided by ten); in `one_way`, of a burst's time divided by its messages.
    pub p50_ns: f64,
    /// 99th percentile of the same.
    pub p99_ns: f64,
    /// 99.9th percentile of the same.
    pub p999_ns: f64,
    /// The smallest of the same.
    pub min_ns: f64,
    /// At the median: messages, or round trips. `None` for wake-ups.
    pub msgs_per_s: Option<f64>,
    /// Payload at that rate, one direction. `None` where none is carried.
    pub bytes_per_s: Option<f64>,
    /// Whether the payload is copied between where the sender writes it and where the receiver reads it.
    pub copied: bool,
    /// Messages that are published together.
    pub batch: u32,
    /// How many values the percentiles are of.
    pub samples: u64,
    /// The row of this run that `ratio` compares with, as `mechanism/test/size/mode`.
    pub versus: Option<String>,
    /// Time of this row divided by the time of that one: the median of the ratios within each round.
    pub ratio: Option<f64>,
}

/// A promise and how it was kept.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Bar {
    /// What is compared.
    pub what: &'static str,
    /// What must hold.
    pub bar: &'static str,
    /// What was measured, in the bar's unit.
    pub measured: String,
    /// Whether it holds.
    pub met: bool,
}

/// A number with three significant digits and a unit prefix.
pub(crate) fn rate(per_second: f64, unit: &str) -> String {
    let (value, prefix) = match per_second {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{} {prefix}{unit}", three(value))
}

/// A duration in nanoseconds or microseconds with three significant digits.
pub(crate) fn duration(ns: f64) -> String {
    if ns >= 10_000.0 { format!("{} µs", three(ns / 1000.0)) } else { format!("{} ns", three(ns)) }
}

fn three(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, kernel, pinned, load, .. } = &self.machine;
        writeln!(f, "{cpu} · Linux {kernel} · processors {} and {} · load {load:.1}", pinned[0], pinned[1])?;
        writeln!(f, "{} rounds, every row once in each", self.rounds)?;
        for (test, title) in [(Test::Rtt, "round trip"), (Test::Wake, "wake-up"), (Test::OneWay, "one way")] {
            let rows: Vec<_> = self.rows.iter().filter(|row| row.test == test).collect();
            if rows.is_empty() {
                continue;
            }
            let [size, mode, min, median] = ["bytes", "mode", "min", "median"];
            write!(f, "\n{title:<12}{size:>8} {mode:<7}{min:>10}{median:>10}{:>10}{:>10}", "99 %", "99.9 %")?;
            writeln!(f, "{:>15}{:>11}  ratio", "rate", "")?;
            for row in rows {
                let name = if row.copied && row.mechanism == "ring" { "ring (copy)" } else { row.mechanism };
                write!(f, "{name:<12}{:>8} {:<7}", row.size, row.mode.name())?;
                for ns in [row.min_ns, row.p50_ns, row.p99_ns, row.p999_ns] {
                    write!(f, "{:>10}", duration(ns))?;
                }
                write!(f, "{:>15}", row.msgs_per_s.map_or(String::new(), |r| rate(r, "msg/s")))?;
                write!(f, "{:>11}", row.bytes_per_s.map_or(String::new(), |r| rate(r, "B/s")))?;
                match (&row.versus, row.ratio) {
                    (Some(versus), Some(ratio)) => writeln!(f, "  {ratio:.2} × {versus}")?,
                    _ => writeln!(f)?,
                }
            }
        }
        if !self.bars.is_empty() {
            writeln!(f)?;
        }
        for bar in &self.bars {
            let verdict = if bar.met { "met   " } else { "MISSED" };
            writeln!(f, "{verdict}  {}: {} (bar: {})", bar.what, bar.measured, bar.bar)?;
        }
        Ok(())
    }
}
