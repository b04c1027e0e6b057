//! A server's memory: threads that receive requests of mixed sizes, hold several of them and hand some replies to each
//! other; their buffers from a pool, or allocated by the system's allocator, jemalloc and mimalloc. There is no network:
//! what would come from it is copied from memory.

mod report;
mod serve;
mod worker;

pub use report::{Figures, Report, Row};
pub use worker::{Job, Round};

use crate::random::Random;
use crate::{Allocator, Result, stats, usage};
use clap::Parser;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Serves requests of mixed sizes, with a buffer pool and without, under each allocator.
///
/// Each row is a process of its own, asleep unless it is its turn; in each round every process serves for a while, in
/// another order. What buffers hold is checked while it serves, and every byte at the end.
#[derive(Clone, Debug, Parser)]
#[command(version = None)]
pub struct Options {
    /// Threads of each process.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Bytes of the smallest buffer (at least 16); headers have up to 16 times as many.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..))]
    pub smallest: u32,
    /// Bytes of the largest body and reply.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(16..))]
    pub largest: u32,
    /// Bodies that each thread holds at a time.
    #[arg(long, default_value_t = 8)]
    pub alive: u32,
    /// One reply of so many is sent, and its memory given back, by another thread; 0: none.
    #[arg(long, default_value_t = 4)]
    pub handed: u32,
    /// Buffers of each length that `pool-prepared` begins with.
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub prepared: u32,
    /// Microseconds that each request waits for its sender.
    #[arg(long, default_value_t = 0)]
    pub wait_us: u32,
    /// Milliseconds of a round.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub time_ms: u32,
    /// Rounds that count.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Rounds before them.
    #[arg(long, default_value_t = 2)]
    pub warmup: u32,
    /// Only rows in whose name (`pool-system`, `vec-jemalloc`, ...) one of these is.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Write the report here as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// What this process is to do for another one.
    #[arg(long, hide = true)]
    pub job: Option<String>,
}

/// `pool-prepared` is measured under the system's allocator only, which it does not call any more.
const MEMORIES: [&str; 4] = ["pool", "pool-prepared", "vec", "vec-zeroed"];

/// A process that serves.
struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(options: &Options, memory: &str, allocator: Allocator) -> Result<Self> {
        let own = std::env::current_exe()?;
        let program = match allocator {
            Allocator::System => own,
            other => own.with_file_name(format!("http-{}", other.name())),
        };
        let job = Job {
            memory: memory.into(),
            threads: options.threads as usize,
            smallest: options.smallest as usize,
            largest: options.largest.max(options.smallest) as usize,
            alive: options.alive as usize,
            handed: options.handed.into(),
            prepared: options.prepared as usize,
            wait_us: options.wait_us.into(),
        };
        let mut command = Command::new(&program);
        command.arg("--job").arg(serde_json::to_string(&job)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|cause| format!("{}: {cause}", program.display()))?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("a child without output")?);
        Ok(Self { child, orders, answers })
    }

    fn round(&mut self, time_ms: u32) -> Result<Round> {
        let orders = self.orders.as_mut().ok_or("has ended")?;
        writeln!(orders, "{time_ms}")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(format!("ended with {}", self.child.wait()?).into());
        }
        let round: Round = serde_json::from_str(&line)?;
        match round.failure {
            Some(cause) => Err(cause.into()),
            None => Ok(round),
        }
    }

    /// Lets it verify what it holds.
    fn finish(mut self) -> Result<()> {
        drop(self.orders.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("at its end: {status}").into()) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures. The programs of the other allocators are expected beside this one; one that is missing is a row that says so.
///
/// # Errors
/// Nothing matches; a buffer that does not hold what was written.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut names = Vec::new();
    for allocator in Allocator::ALL {
        names.extend(MEMORIES.map(|memory| (format!("{memory}-{}", allocator.name()), memory, allocator)));
    }
    names.retain(|(_, memory, allocator)| *memory != "pool-prepared" || *allocator == Allocator::System);
    names.retain(|(name, ..)| options.only.is_empty() || options.only.iter().any(|only| name.contains(only)));
    if names.is_empty() {
        return Err(format!("no row has {} in its name", options.only.join(" or ")).into());
    }
    let mut workers: Vec<Result<Worker>> =
        names.iter().map(|(_, memory, allocator)| Worker::start(options, memory, *allocator)).collect();
    let mut rounds: Vec<Vec<Round>> = names.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    let mut random = Random::new(options.rounds.into());
    for round in 0..options.warmup + options.rounds {
        progress(&format!("round {} of {}", round + 1, options.warmup + options.rounds));
        random.shuffle(&mut order);
        for &index in &order {
            let Ok(worker) = &mut workers[index] else { continue };
            match worker.round(options.time_ms) {
                Ok(measured) if round >= options.warmup => rounds[index].push(measured),
                Ok(_) => {}
                Err(cause) => workers[index] = Err(cause),
            }
        }
    }
    let rate = |round: &Round| round.requests.iter().sum::<u64>() as f64 / round.seconds;
    let rates: Vec<Vec<f64>> = rounds.iter().map(|rounds| rounds.iter().map(rate).collect()).collect();
    let pool = names.iter().position(|(name, ..)| name == "pool-system");
    let mut rows = Vec::new();
    for (index, ((name, ..), worker)) in names.iter().zip(workers).enumerate() {
        let failure = worker.and_then(Worker::finish).err().map(|cause| cause.to_string());
        if let Some(wrong) = failure.as_ref().filter(|cause| cause.contains("not what was written")) {
            return Err(format!("{name}: {wrong}").into());
        }
        let to_pool = pool.and_then(|pool| stats::ratio(&rates[index], &rates[pool]));
        let figures = failure.is_none().then(|| report::figures(&rounds[index], &rates[index], to_pool));
        rows.push(Row { name: name.clone(), failure, figures });
    }
    Ok(Report {
        program: "http",
        machine: usage::machine(),
        threads: options.threads,
        smallest: options.smallest,
        largest: options.largest,
        alive: options.alive,
        handed: options.handed,
        prepared: options.prepared,
        wait_us: options.wait_us,
        time_ms: options.time_ms,
        rounds: options.rounds,
        rows,
    })
}

/// The program.
///
/// # Errors
/// As [`run`]; the JSON file cannot be written.
pub fn main(_: Allocator) -> Result<()> {
    use std::io::IsTerminal;
    let options = Options::parse();
    if let Some(job) = &options.job {
        return worker::work(&serde_json::from_str(job)?);
    }
    let terminal = std::io::stderr().is_terminal();
    let report = run(&options, &mut |label| {
        if terminal {
            eprint!("\r\x1b[K{label}");
        }
    })?;
    if terminal {
        eprint!("\r\x1b[K");
    }
    print!("{}", report.text());
    std::io::stdout().flush()?;
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}
