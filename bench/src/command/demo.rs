//! The table that `ramway demo` shows after its stream.

use std::time::Duration;

use ramway_cli::failure::{Failure, Outcome};
use ramway_cli::interrupt::Interrupt;
use ramway_cli::output;
use ramway_cli::units::parse_duration;

use super::Meter;

/// How long, and how it is shown.
#[derive(clap::Args)]
pub struct Args {
    /// How long to measure; 5s, 1m
    #[arg(long, value_name = "TIME", default_value = "12s", value_parser = parse_duration)]
    time: Duration,
    /// Print JSON: {"rows": [...]}
    #[arg(long)]
    json: bool,
}

/// Measures Ramway's bus, a Unix socket and a pipe in one interleaved run.
pub fn run(args: &Args) -> Outcome {
    let interrupt = Interrupt::install()?;
    let options = ramway_bench::Options::quick();
    interrupt.also(&options.interrupted)?;
    let meter = Meter::new();
    let measured = ramway_bench::demo_table(args.time, &options, &mut |progress| meter.show(progress));
    meter.clear();
    interrupt.check()?;
    let measured = measured.map_err(|error| Failure::error(format!("cannot measure: {error}")))?;
    if args.json { output::json(&measured) } else { output::print(&measured.to_string()) }
}
