//! `ramway bench run`: one row by hand.

use std::fmt::Display;
use std::path::PathBuf;

use ramway_bench::{Burst, Mode, One, Options, Plan, Single, Test};

use super::{Meter, names};
use ramway_cli::failure::{Failure, Outcome, USAGE};
use ramway_cli::interrupt::Interrupt;
use ramway_cli::output;
use ramway_cli::units::{parse_size, parse_some_size, size};

const NOTES: &str = "\
Prints one line of JSON and one for people (with --json the first alone): how
many messages of which size in how many seconds, messages a second, MiB/s of
payload. They are sent in bursts of about 0.3 s; what warms up comes before and
is not counted. SIZE is in bytes or with K, M, G (powers of 1024).

Tests: one-way (a stream), rtt (there and back), wake (from the call that wakes
to the sleeper running). Modes: each and batch publish every message or --batch
of them together, and poll; spin, block and hybrid say how both sides wait.

Exit codes: 0 measured; 1 it could not be measured; 2 the command line is wrong;
130 interrupted.

Examples:
  ramway bench run --mechanism ring --size 256 --capacity 1MiB --messages 500000000
  ramway bench run --mechanism ring --size 32 --messages 1000000 --mode batch --batch 64
  ramway bench run --mechanism uds --test rtt --size 64 --messages 100000 --json";

/// What to measure.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Which mechanism (`ramway bench --list` has them)
    #[arg(long, value_name = "NAME")]
    mechanism: String,
    /// Bytes of a message; a multiple of 8, and 0 for mechanisms that carry a signal only
    #[arg(long, value_name = "SIZE", default_value = "32", value_parser = parse_size)]
    size: u64,
    /// Bytes of buffering between the two sides [default: 1M, or room for eight messages]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_size)]
    capacity: Option<u64>,
    /// How many messages, round trips or wake-ups
    #[arg(long, value_name = "N")]
    messages: u64,
    /// What is timed
    #[arg(long, value_name = "TEST", default_value = "one-way", value_parser = ["one-way", "rtt", "wake"])]
    test: String,
    /// How the sides publish or wait [default: each for one-way, spin for rtt, block for wake]
    #[arg(long, value_name = "MODE", value_parser = ["each", "batch", "spin", "block", "hybrid"])]
    mode: Option<String>,
    /// Messages that are published together, with `--mode batch` [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: Option<u32>,
    /// Print only the line of JSON
    #[arg(long)]
    json: bool,
    /// The processors to use, the sender's first [default: the first two that are allowed]
    #[arg(long, value_name = "A,B", value_parser = names::parse_cpus)]
    cpus: Option<[usize; 2]>,
    /// Ask for SCHED_FIFO and locked memory
    #[arg(long)]
    realtime: bool,
    /// Where the other libraries are [default: bench-peers beside the command's directory]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
}

/// Measures it.
pub fn run(args: &Args) -> Outcome {
    let one = checked(args)?;
    names::check_cpus(args.cpus)?;
    let cannot = |error: ramway_bench::Failure| Failure::error(format!("cannot measure: {error}"));
    let catalogue = ramway_bench::catalogue(args.peers.as_deref()).map_err(cannot)?;
    let known: Vec<&str> = catalogue.mechanisms.iter().map(|one| one.about.name.as_str()).collect();
    if !known.contains(&args.mechanism.as_str()) {
        let near = names::near(&args.mechanism, known.into_iter());
        return Err(wrong(format!("no mechanism is called `{}`{near} (ramway bench --list has all)", args.mechanism)));
    }
    let mut options = Options::new(Plan::Quick);
    options.cpus = args.cpus;
    options.realtime = args.realtime;
    options.peers.clone_from(&args.peers);

    let interrupt = Interrupt::install()?;
    interrupt.also(&options.interrupted)?;
    let meter = Meter::new();
    let single = ramway_bench::run_one(&one, &options, &mut |progress| meter.show(progress));
    meter.clear();
    interrupt.check()?;
    let single = single.map_err(cannot)?;
    let line = serde_json::to_string(&single).map_err(|error| Failure::error(error.to_string()))?;
    let people = if args.json { String::new() } else { text(&single) };
    output::print(&format!("{line}\n{people}"))
}

fn wrong(said: impl Display) -> Failure {
    Failure::new(USAGE, said.to_string())
}

/// What the arguments say, if it can be.
fn checked(args: &Args) -> Outcome<One> {
    let test = match args.test.as_str() {
        "rtt" => Test::Rtt,
        "wake" => Test::Wake,
        _ => Test::OneWay,
    };
    let mode = match (args.mode.as_deref(), test) {
        (Some("each"), _) => Mode::Each,
        (Some("batch"), _) => Mode::Batch,
        (Some("spin"), _) => Mode::Spin,
        (Some("block"), _) => Mode::Block,
        (Some("hybrid"), _) => Mode::Hybrid,
        (_, Test::Rtt) => Mode::Spin,
        (_, Test::Wake) => Mode::Block,
        _ => Mode::Each,
    };
    if test != Test::OneWay && matches!(mode, Mode::Each | Mode::Batch) {
        return Err(wrong(format!("--mode {} is for one-way; {} is spin, block or hybrid", mode.name(), test.name())));
    }
    if args.batch.is_some() && mode != Mode::Batch {
        return Err(wrong("--batch needs --mode batch"));
    }
    if !args.size.is_multiple_of(8) {
        let near = args.size.next_multiple_of(8);
        return Err(wrong(format!(
            "--size {} is not a multiple of 8 (messages are made of 64-bit words): {near}?",
            args.size
        )));
    }
    if args.messages == 0 {
        return Err(wrong("--messages 0 leaves nothing to measure"));
    }
    let capacity = args.capacity.unwrap_or_else(|| (args.size.saturating_mul(8)).next_power_of_two().max(1 << 20));
    if args.size > capacity {
        return Err(wrong(format!(
            "a message of {} does not fit into a capacity of {}",
            size(args.size),
            size(capacity)
        )));
    }
    let mut burst = Burst::new(test, mode, args.size as usize, args.messages);
    burst.batch = if mode == Mode::Batch { args.batch.unwrap_or(32) } else { 1 };
    if u64::from(burst.batch).saturating_mul(args.size) > capacity {
        return Err(wrong(format!(
            "{} messages of {} do not fit into a capacity of {} together",
            burst.batch,
            size(args.size),
            size(capacity)
        )));
    }
    // The counter of some machines ticks every 10 ns only.
    burst.group = if (test, mode) == (Test::Rtt, Mode::Spin) { 10 } else { 1 };
    Ok(One::new(&args.mechanism, burst, capacity))
}

fn text(single: &Single) -> String {
    let what = match single.test {
        Test::Rtt => "round trips",
        Test::Wake => "wake-ups",
        _ => "messages",
    };
    let payload = single.mib_per_s.map_or(String::new(), |rate| format!(", {rate:.0} MiB/s"));
    let time = match single.seconds {
        seconds if seconds < 0.1 => format!("{:.3} ms", seconds * 1e3),
        seconds => format!("{seconds:.3} s"),
    };
    format!(
        "{}: {} {what} of {} in {time}, {:.0} /s{payload}; p50 {:.1} ns\n",
        single.mechanism,
        single.messages,
        size(single.size as u64),
        single.msgs_per_s,
        single.ns.p50
    )
}
