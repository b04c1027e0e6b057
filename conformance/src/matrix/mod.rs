//! Every language with every other, in both roles, over ring and bus, and as server and client of RPC; and topics, with three
//! subscribers each.

mod crash;
mod endings;
mod limits;
mod measured;
mod pair;
mod polls;
mod report;
mod rpc;
mod show;
mod spread;
mod stream;
mod tensors;
mod topics;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use ramway_agents::{Language, Result, languages};

use crate::run::{self, Scene};
use crate::work;
use pair::{Over, Pair};
pub use report::{Outcome, Report};
use spread::Spread;

/// `ramway-conformance matrix`
#[derive(clap::Args)]
pub struct Args {
    /// Only these languages (by name or directory); may be repeated
    #[arg(long = "language", value_name = "LANGUAGE")]
    pub languages: Vec<String>,
    /// Only this pair, the producer first; may be repeated
    #[arg(long = "pair", value_name = "PRODUCER:CONSUMER")]
    pub pairs: Vec<String>,
    /// Only scenarios whose `transport/name` contains this; may be repeated
    #[arg(long = "scenario", value_name = "TEXT")]
    pub scenarios: Vec<String>,
    /// Of streams
    #[command(flatten)]
    pub length: Length,
    /// Of two languages neither of which is Rust, only a share of the scenarios, each over one of ring and bus
    #[arg(long)]
    pub spread: bool,
    /// How many scenarios run beside each other (default: three for each processor)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Writes everything that the table is made of into a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The seed of the random moments, as a failure names it
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

impl Args {
    /// Whether the scenario of this `transport/name` is to be played.
    fn wants(&self, label: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|text| label.contains(text.as_str()))
    }
}

/// How many messages make a long stream. Enough that each stream laps its ring many times, whatever is chosen: of 5,000
/// messages, which are 840 bytes long on average, a ring of 64 KiB takes 64 laps.
#[derive(clap::Args, Clone, Copy)]
pub struct Length {
    /// Streams of 5,000 messages
    #[arg(long, conflicts_with = "messages")]
    quick: bool,
    /// How many messages make a long stream
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(5000..))]
    messages: u64,
}

impl Length {
    fn messages(self) -> u64 {
        if self.quick { 5000 } else { self.messages }
    }
}

/// How a scenario uses the processors.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    /// It waits most of the time: runs beside anything.
    Idle,
    /// It keeps its two programs busy.
    Busy,
}

type Play = fn(&mut Pair<'_>, &Scene) -> Result<()>;

struct Scenario {
    name: &'static str,
    over: &'static [Over],
    load: Load,
    play: Play,
}

const RING: &[Over] = &[Over::Ring];
const BUS: &[Over] = &[Over::Bus];
const BOTH: &[Over] = &[Over::Ring, Over::Bus];

const fn scenario(name: &'static str, over: &'static [Over], load: Load, play: Play) -> Scenario {
    Scenario { name, over, load, play }
}

const SCENARIOS: &[Scenario] = &[
    scenario("stream", BOTH, Load::Busy, stream::mixed),
    scenario("every-length", BOTH, Load::Busy, stream::every_length),
    scenario("echo", BOTH, Load::Busy, stream::echo),
    scenario("measured", RING, Load::Busy, measured::loops),
    scenario("tensors", BOTH, Load::Idle, tensors::tensors),
    scenario(report::ZERO_COPY, BOTH, Load::Idle, show::nothing_is_copied),
    scenario("idle-receiver", BOTH, Load::Idle, limits::idle_receiver),
    scenario("full", BOTH, Load::Idle, limits::full),
    scenario("never-waits", BOTH, Load::Idle, limits::never_waits),
    scenario("too-large", BOTH, Load::Idle, limits::too_large),
    scenario("producer-closes", BOTH, Load::Idle, endings::producer_closes),
    scenario("consumer-closes", BOTH, Load::Idle, endings::consumer_closes),
    scenario("producer-restarts", RING, Load::Idle, endings::producer_restarts),
    scenario("consumer-restarts", RING, Load::Idle, endings::consumer_restarts),
    scenario("producer-dies", BOTH, Load::Idle, crash::producer_dies),
    scenario("consumer-dies", BOTH, Load::Idle, crash::consumer_dies),
    scenario("sleepers-learn", BOTH, Load::Idle, crash::sleepers_learn),
    scenario("killed-at-random", RING, Load::Busy, crash::killed_at_random),
    scenario("cut-off", BUS, Load::Busy, crash::cut_off),
    scenario("short-waits", BOTH, Load::Idle, polls::short_waits),
];

/// What is to be played.
struct Job<'a> {
    producer: &'a Language,
    consumer: &'a Language,
    over: Over,
    scenario: &'static Scenario,
    /// The place of the pair among all pairs: the variants are spread by it.
    number: usize,
}

/// The processors that busy scenarios share.
struct Processors {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Processors {
    fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    fn take(&self, count: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free < count {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= count;
    }

    fn give(&self, count: usize) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += count;
        self.freed.notify_all();
    }
}

/// How many scenarios run beside each other for each processor. At two, half of the processors' time was left over: most scenarios
/// wait, and a busy one that waits for a processor holds up whatever comes after it.
const AT_A_TIME: usize = 3;

/// The longest that one scenario may take, on a machine that has much else to do.
const LIMIT: Duration = Duration::from_secs(120);

/// Plays everything that the arguments choose.
///
/// # Errors
/// Nothing was chosen, or a program cannot be built.
pub fn play(args: &Args) -> Result<Report> {
    let began = Instant::now();
    let mut wanted = args.languages.clone();
    let mut pairs = Vec::new();
    for text in &args.pairs {
        let (producer, consumer) = text.split_once(':').ok_or("a pair is written PRODUCER:CONSUMER")?;
        wanted.extend([producer.to_owned(), consumer.to_owned()]);
        pairs.push((producer.to_owned(), consumer.to_owned()));
    }
    let all = languages::all(&wanted)?;
    let skipped = all.iter().filter_map(|l| Some((l.name.clone(), l.missing.clone()?))).collect();
    let here: Vec<_> = all.iter().filter(|language| language.missing.is_none()).collect();
    let chosen = |producer: &Language, consumer: &Language| {
        pairs.is_empty() || pairs.iter().any(|(p, c)| producer.is(p) && consumer.is(c))
    };
    let spread = Spread::new(&here);
    let mut jobs = Vec::new();
    for (p, &producer) in here.iter().enumerate() {
        for (c, &consumer) in here.iter().enumerate() {
            if !chosen(producer, consumer) {
                continue;
            }
            for (i, scenario) in SCENARIOS.iter().chain(rpc::SCENARIOS).enumerate() {
                let mut over = scenario.over.to_vec();
                over.retain(|over| over.has(producer, consumer));
                if args.spread && !over.is_empty() {
                    over = spread.of(&here, p, c, i, &over);
                }
                for over in over {
                    let label = format!("{}/{}", over.name(), scenario.name);
                    if args.wants(&label) {
                        let number = p * here.len() + c;
                        jobs.push(Job { producer, consumer, over, scenario, number });
                    }
                }
            }
        }
    }
    let casts = topics::jobs(&here, args, &chosen);
    if jobs.is_empty() && casts.is_empty() && here.len() == all.len() {
        return Err("nothing to do: no pair and scenario is chosen".into());
    }
    let messages = args.length.messages();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let bar = progress(jobs.len() + casts.len());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let at_a_time = args.jobs.map_or(AT_A_TIME * processors, usize::from);
    let mut outcomes = play_all(&jobs, messages, seed, args.spread, at_a_time, &bar);
    outcomes.extend(topics::play_all(&casts, messages, seed, at_a_time, |name| {
        bar.set_message(format!("topics from {name}"));
        bar.inc(1);
    }));
    bar.finish_and_clear();
    let languages = here.iter().map(|language| language.name.clone()).collect();
    Ok(Report { languages, skipped, messages, seed, seconds: began.elapsed().as_secs_f64(), outcomes })
}

fn play_all(
    jobs: &[Job<'_>],
    messages: u64,
    seed: u64,
    spread: bool,
    at_a_time: usize,
    bar: &ProgressBar,
) -> Vec<Outcome> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let shared = Processors::new(processors);
    work::each(jobs, at_a_time, |at, job| {
        bar.set_message(format!("{} → {}", job.producer.name, job.consumer.name));
        let outcome = play_one(job, messages, seed ^ at as u64, spread, processors, &shared);
        bar.inc(1);
        outcome
    })
}

fn play_one(job: &Job<'_>, messages: u64, seed: u64, spread: bool, processors: usize, shared: &Processors) -> Outcome {
    let &Job { producer, consumer, over, scenario, number } = job;
    let random = fastrand::Rng::with_seed(seed);
    let mut pair = Pair { producer, consumer, over, variant: number, messages, spread, fresh: false, random };
    // Two programs that spin need two processors; two that sleep in turns need about one.
    let cores = match scenario.load {
        Load::Idle => 0,
        Load::Busy if stream::wait(&pair) == "spin" => processors.min(2),
        Load::Busy => 1,
    };
    shared.take(cores);
    run::keep([producer, consumer]);
    let began = Instant::now();
    let limit = if producer.starts_slowly || consumer.starts_slowly { 3 * LIMIT } else { LIMIT };
    let (outcome, log) = match Scene::new(limit) {
        Ok(scene) => {
            let outcome = (scenario.play)(&mut pair, &scene);
            let log = if outcome.is_err() { scene.log() } else { Vec::new() };
            (outcome, log)
        }
        Err(cause) => (Err(cause), Vec::new()),
    };
    shared.give(cores);
    Outcome {
        producer: producer.name.clone(),
        consumer: consumer.name.clone(),
        over: over.name(),
        scenario: scenario.name,
        subscribers: Vec::new(),
        seconds: began.elapsed().as_secs_f64(),
        failure: outcome.err().map(|cause| cause.to_string()),
        log,
    }
}

/// A line that says how far it is, on a terminal only.
fn progress(jobs: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{pos}/{len} {wide_bar} {elapsed} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The subcommand: plays, prints, and says by the status whether all went well.
pub fn run(args: &Args) -> ExitCode {
    match play(args) {
        Ok(report) => {
            print!("{}", report.text());
            let missing = crate::missing_is_failure(report.skipped.len());
            let (passed, failed) = report.counts();
            if let Some(file) = &args.json
                && let Err(cause) = write(file, &report)
            {
                eprintln!("ramway-conformance: {}: {cause}", file.display());
                return ExitCode::FAILURE;
            }
            println!("{}", crate::summary(passed, failed + missing, report.skipped.len() - missing));
            if failed + missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(cause) => {
            eprintln!("ramway-conformance: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn write(file: &PathBuf, report: &Report) -> Result<()> {
    Ok(std::fs::write(file, serde_json::to_string_pretty(report)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_have_names_of_their_own() {
        let mut names: Vec<_> = SCENARIOS.iter().chain(rpc::SCENARIOS).map(|s| s.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len() + rpc::SCENARIOS.len());
    }
}
