//! Rust's program of the conformance kit.

mod args;
mod echo;
mod look;
mod message;
mod place;
mod speed;
mod stream;
mod tensor;
mod unix;

use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::process::{Signal, getpid, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};

use args::{Args, Command};
use ramway::{Error, ErrorKind};

/// Why a program ends before it has done what it was told.
pub(crate) enum Stop {
    /// A call failed where no flag leads to that.
    Error(Error),
    /// A message did not arrive as it was sent.
    Bad(u64, String),
    /// The flags do not say enough.
    Usage(&'static str),
    /// Something outside of Ramway.
    Other(String),
}

impl From<Error> for Stop {
    fn from(cause: Error) -> Self {
        Self::Error(cause)
    }
}

impl From<std::io::Error> for Stop {
    fn from(cause: std::io::Error) -> Self {
        Self::Other(cause.to_string())
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = run(&args);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Error(cause)) => {
            println!("error name={} number={} text={cause}", cause.kind().name(), cause.code());
            // A vector may well be what cannot be opened.
            if args.command == Command::Read { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(Stop::Bad(seq, what)) => {
            println!("bad seq={seq} text={what}");
            ExitCode::FAILURE
        }
        Err(Stop::Usage(what)) => {
            eprintln!("{what}");
            ExitCode::from(2)
        }
        Err(Stop::Other(cause)) => {
            println!("error name=Os number=18 text={cause}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Stop> {
    if let Some(cpu) = args.cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|cause| Stop::Other(format!("--cpu {cpu}: {cause}")))?;
    }
    match (args.command, args.over.is_some()) {
        (Command::Produce, _) => stream::produce(args),
        (Command::Consume, _) => stream::consume(args),
        (Command::Die, _) => stream::die(args),
        (Command::Read, _) => look::read(args),
        (Command::Show, _) => look::show(args),
        (Command::Tensors, _) => tensor::tensors(args),
        (Command::Echo, false) => echo::echo(args),
        (Command::Ping, false) if args.check => echo::ping(args),
        (Command::Ping, false) => speed::ping(args),
        (Command::Flood, false) => speed::flood(args),
        (Command::Drain, false) => speed::drain(args),
        (_, true) => unix::run(args),
    }
}

/// One call's outcome, and when it began and what the other side's epoch was by then.
pub(crate) struct Call {
    pub(crate) epoch: u32,
    began: Instant,
}

impl Call {
    pub(crate) fn begin(epoch: u32) -> Self {
        Self { epoch, began: Instant::now() }
    }

    pub(crate) fn elapsed_ms(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

/// Whether the stream may go on after this.
pub(crate) fn is_ending(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Closed | ErrorKind::PeerDead)
}

/// Waits for a successor of the other side: `TimedOut` if none comes.
pub(crate) fn wait_for_successor(args: &Args, noted: u32, mut epoch: impl FnMut() -> u32) -> Result<(), ErrorKind> {
    let began = Instant::now();
    while epoch() == noted {
        if args.limit().is_some_and(|limit| began.elapsed() >= limit) {
            return Err(ErrorKind::TimedOut);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// `--linger`: that long, or until a line arrives on standard input or that ends.
pub(crate) fn linger(args: &Args) {
    let Some(ms) = args.linger else { return };
    let (done, line) = mpsc::channel();
    thread::spawn(move || {
        read_line();
        // Nobody listens any more when the time has passed.
        let _ = done.send(());
    });
    // Either outcome ends it.
    let _ = line.recv_timeout(Duration::from_millis(ms));
}

/// A line of standard input without its end; empty when that ended or cannot be read.
pub(crate) fn read_line() -> String {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) => line.trim().to_owned(),
        Err(_) => String::new(),
    }
}

/// Ends this process as a crash would.
pub(crate) fn die() -> ! {
    // It cannot fail for the process itself.
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!("SIGKILL is not survived")
}
