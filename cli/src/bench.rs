//! `ramway bench`: a front for the benchmark library.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ramway_bench::{Options, Progress};

use crate::failure::{ERROR, Failure, Outcome};
use crate::output;
use crate::units::parse_duration;

const NOTES: &str = "\
Measures with two processes, each pinned to a processor of its own; every row
is measured once in each round, so that the machine's moods meet all of them
alike. The receiver reads every byte. Takes under 5 minutes, with --quick
under 30 seconds. Compare ratios within one run, not figures of different
runs.

Exit codes: 0 measured; 1 it could not be measured, or with --check a bar was
missed.

Examples:
  ramway bench --quick
  ramway bench --filter ring/rtt
  ramway bench --json > figures.json";

/// What to measure.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// Print JSON: {"machine", "rows": [{"mechanism", "test", "size", "mode", "p50_ns", ...}], "bars"}
    #[arg(long)]
    json: bool,
    /// Only rows whose name `mechanism/test/size/mode` contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// How long the rounds go on; 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Exit with 1 if a bar is missed
    #[arg(long)]
    check: bool,
}

/// Measures it.
pub fn run(args: &Args) -> Outcome {
    let mut options = if args.quick { Options::quick() } else { Options::full() };
    options.filter.clone_from(&args.filter);
    if let Some(time) = args.time {
        options.rounds_for = time;
    }
    let meter = Meter::new();
    let report = ramway_bench::run(&options, &mut |progress| meter.show(progress));
    meter.clear();
    let report = report.map_err(|error| Failure::error(format!("cannot measure: {error}")))?;
    if args.json {
        output::json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    if args.check && report.bars.iter().any(|bar| !bar.met) {
        return Err(Failure::new(ERROR, "a bar was missed"));
    }
    Ok(())
}

/// How far the measurement has come, on stderr where that is a terminal.
pub struct Meter(ProgressBar);

impl Meter {
    /// Shows nothing yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("measuring {wide_bar} {percent} %  ETA {eta}  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows this.
    pub fn show(&self, progress: &Progress) {
        self.0.set_length(progress.total);
        self.0.set_message(progress.label.clone());
        self.0.set_position(progress.done.min(progress.total));
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
