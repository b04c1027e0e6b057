//! The program `ramway-bench`, which `ramway bench` runs: a front for the benchmark library.

mod demo;
mod files;
mod list;
mod meter;
mod names;
mod one;
mod suite;

use std::path::PathBuf;
use std::time::Duration;

use std::process::ExitCode;

use clap::Parser;
use meter::Meter;
use ramway_cli::color::Color;
use ramway_cli::failure::Outcome;
use ramway_cli::units::parse_duration;
use ramway_cli::{program, standard};

/// Counts, so that a report can say that a message allocates nothing.
#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

const NOTES: &str = "\
Measures every mechanism between two processes, each pinned to a processor of
its own. Mechanisms that are compared are a group: in each round every one of
them is measured, in another order, so that changes of the machine's speed meet
all of them alike. The receiver reads every byte. A quick run takes under a minute,
the usual one a few minutes, --full half an hour or more. Compare ratios within
one run, and of different runs only figures of the same placement.

Where a hypervisor moves the two processors, every burst is sorted into near or
far by the time of a word there and back before and after it; tables, bars and
--compare take the two apart. A burst that is mixed is repeated, then dropped.

Rows are named GROUP/MECHANISM (rtt-spin/ring); --list has all of them. Times
are of one operation; rates are operations a second; MiB/s is payload one way;
CPU % is of one processor. SIZE is in bytes or with K, M, G (powers of 1024),
TIME is 500ms, 2s, 1m (a bare number is seconds).

Exit codes: 0 measured; 1 it could not be measured, with --compare something
got slower or fails now, with --check a bar was missed; 2 the command line is
wrong; 130 interrupted (what was measured by then is in --resume's FILE).

Environment:
  RAMWAY_BENCH_PEERS  where `make bench-peers` put the other libraries
  RAMWAY_BENCH_DISK   a directory on a disk, for ring-disk
  RAMWAY_LIB          libramway.so, for bus-c

Examples:
  ramway bench --quick
  ramway bench --list
  ramway bench --only rtt-spin --only one-way-32-each/ring
  ramway bench --full --resume run.part --json run.json --html run.html
  ramway bench --compare run.json
  ramway bench --from run.json --html run.html
  ramway bench --from run.json --only topic- --html topics.html
  ramway bench run --mechanism ring --size 256 --capacity 1MiB --messages 500000000";

/// Measures latency and throughput on this machine.
#[derive(Parser)]
#[command(name = "ramway-bench", bin_name = "ramway bench", version, max_term_width = 110, propagate_version = true)]
#[command(after_help = NOTES, args_conflicts_with_subcommands = true)]
struct Args {
    /// When to colour the output (auto: on a terminal, unless NO_COLOR or TERM say otherwise)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,

    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    suite: Suite,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Measure one row by hand
    Run(one::Args),
    /// The table of `ramway demo`
    #[command(hide = true)]
    Demo(demo::Args),
}

/// The suite's options.
#[derive(clap::Args)]
struct Suite {
    /// Say which groups and mechanisms there are, and measure nothing
    #[arg(long)]
    list: bool,
    /// Only these rows: a GROUP, a MECHANISM, a GROUP/MECHANISM, or all whose name contains TEXT
    #[arg(long, value_name = "TEXT", num_args = 1.., value_delimiter = ',')]
    only: Vec<String>,
    /// The groups that nearly all bars need, under a minute
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every group, the largest messages and 100,000 random pauses too
    #[arg(long)]
    full: bool,
    /// Write the report as JSON to FILE; `-`, or nothing: to standard output, instead of the tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the report as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Say what got slower and faster since this JSON was written, the noise of both runs taken into account
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// Measure nothing: show, compare or check this JSON, or the rows of it that --only names
    #[arg(long, value_name = "FILE", conflicts_with_all = MEASURING)]
    from: Option<PathBuf>,
    /// The processors to use, the sender's first [default: the first two that are allowed]
    #[arg(long, value_name = "A,B", value_parser = names::parse_cpus, conflicts_with = "unpinned")]
    cpus: Option<[usize; 2]>,
    /// Exchange the two processors
    #[arg(long, conflicts_with_all = ["unpinned", "both_orders"])]
    swap: bool,
    /// Pin nothing: the scheduler decides
    #[arg(long, conflicts_with = "both_orders")]
    unpinned: bool,
    /// Every group a second time with the processors exchanged
    #[arg(long)]
    both_orders: bool,
    /// Ask for SCHED_FIFO and locked memory
    #[arg(long)]
    realtime: bool,
    /// Rounds that count, in each group (at least 5) [default: as many as fit in the time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=100_000))]
    rounds: Option<u32>,
    /// How long the rounds of each group go on
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "rounds")]
    time: Option<Duration>,
    /// Keep each group in FILE as soon as it is measured, and take from it what an earlier run has kept
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Where the other libraries are [default: bench-peers beside the command's directory]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Exit with 1 if a bar is missed
    #[arg(long)]
    check: bool,
}

/// What means nothing where nothing is measured.
const MEASURING: [&str; 12] = [
    "list",
    "quick",
    "full",
    "cpus",
    "swap",
    "unpinned",
    "both_orders",
    "realtime",
    "rounds",
    "time",
    "resume",
    "peers",
];

fn main() -> ExitCode {
    // The second process of a measurement is this program again.
    if let Some(code) = ramway_bench::child_main_builtin() {
        return ExitCode::from(code as u8);
    }
    program::main(|args: &Args| args.color, run)
}

fn run(args: Args) -> Outcome {
    standard::output()?;
    match &args.command {
        Some(Command::Run(args)) => one::run(args),
        Some(Command::Demo(args)) => demo::run(args),
        None if args.suite.list => list::run(&args.suite),
        None => suite::run(&args.suite),
    }
}
