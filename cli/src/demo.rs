//! `ramway demo`: the main job on real input. Two processes, a bus between them; one streams a file, the other writes
//! it out, both hash what they saw.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ramway::{Bus, ErrorKind, Listener};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::bench;
use crate::failure::{Failure, Outcome, PEER_DIED};
use crate::interrupt::{Interrupt, SLICE};
use crate::output;
use crate::progress::Progress;
use crate::units::{parse_duration, parse_some_size, size};

/// The type ids of the demo's messages.
const DATA: u32 = 1;
const END: u32 = 2;
const DIGEST: u32 = 3;

/// Capacity of the way back, which carries one digest.
const BACK: u64 = 4096;

/// How long one process waits for the other to come up.
const START: Duration = Duration::from_secs(30);

const NOTES: &str = "\
Starts this command a second time and connects the two processes by a bus. One
reads FILE straight into the shared memory (no copy of its own), the other
writes it out; both print the SHA-256 of what they saw, and they must match.
Then `ramway-bench`, where it is installed, measures round trip and one-way
rate of Ramway, a Unix socket and a pipe in one interleaved run.

Exit codes: 0 the digests match; 1 they do not; `ramway --help` has the rest.

Examples:
  ramway demo
  ramway demo film.mkv --output copy.mkv";

/// What to stream.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The file to stream [default: the largest file of the Rust toolchain]
    file: Option<PathBuf>,
    /// Keep what the other process writes here [default: a temporary file that is removed]
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Capacity of the bus in this direction
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_some_size)]
    capacity: u64,
    /// Print JSON: {"stream": {...}, "measured": {"rows": [...]}}
    #[arg(long)]
    json: bool,
    /// How long to measure; 5s, 1m
    #[arg(long, value_name = "TIME", default_value = "12s", value_parser = parse_duration)]
    time: Duration,
    /// Only stream, measure nothing
    #[arg(long)]
    no_bench: bool,
    /// The other process: receive from this bus into `--output`
    #[arg(long, hide = true, value_name = "NAME", requires = "output")]
    receive: Option<PathBuf>,
}

/// What was streamed.
#[derive(Serialize)]
struct Report {
    file: PathBuf,
    bytes: u64,
    messages: u64,
    capacity: u64,
    seconds: f64,
    bytes_per_s: f64,
    sender_pid: u32,
    receiver_pid: u32,
    sha256_sent: String,
    sha256_received: String,
    matches: bool,
}

/// Streams, compares, measures.
pub fn run(args: &Args) -> Outcome {
    if let (Some(bus), Some(output)) = (&args.receive, &args.output) {
        return receive(bus, output);
    }
    let file = match &args.file {
        Some(file) => file.clone(),
        None => largest_of_toolchain()?,
    };
    let interrupt = Interrupt::install()?;
    let report = stream(args, &file, &interrupt)?;
    if !args.json {
        output::print(&text(&report))?;
    }
    if !report.matches {
        return Err(Failure::error("the digests differ: what came out is not what went in"));
    }
    let measured = if args.no_bench { None } else { measure(args, &interrupt)? };
    if args.json { output::json(&Whole { stream: report, measured }) } else { Ok(()) }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Whole {
    stream: Report,
    measured: Option<serde_json::Value>,
}

/// Has `ramway-bench` measure: its table goes to standard output, with `--json` it is given back. `None`, and a word on
/// standard error, where that program is not installed.
fn measure(args: &Args, interrupt: &Interrupt) -> Outcome<Option<serde_json::Value>> {
    let program = match bench::find() {
        Ok(program) => program,
        Err(why) => {
            output::note(&format!("nothing is measured: {why}"));
            return Ok(None);
        }
    };
    if !args.json {
        output::print("\n")?;
    }
    let cannot = |why: String| Failure::error(format!("cannot measure: {}: {why}", program.display()));
    let mut command = Command::new(&program);
    command.arg("demo").arg("--time").arg(format!("{}ms", args.time.as_millis())).stdin(Stdio::null());
    if args.json {
        command.arg("--json").stdout(Stdio::piped());
    }
    let mut child = Other(command.spawn().map_err(|error| cannot(error.to_string()))?);
    // Read by a thread of its own: the table may be longer than what a pipe holds.
    let reader = child.0.stdout.take().map(|mut out| {
        std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).map(|_| text)
        })
    });
    let status = child.ended(interrupt)?;
    interrupt.check()?;
    if !status.success() {
        return Err(cannot(status.to_string()));
    }
    let Some(reader) = reader else { return Ok(None) };
    let text = reader.join().expect("reading does not panic").map_err(|error| cannot(error.to_string()))?;
    serde_json::from_str(&text).map(Some).map_err(|error| cannot(format!("what it printed is not JSON: {error}")))
}

fn text(report: &Report) -> String {
    format!(
        "{}\n  sender    pid {:<8} sha256 {}\n  receiver  pid {:<8} sha256 {}\n  {}: {} in {} messages through a bus of {}, {:.2} s, {}/s with hashing and writing\n",
        report.file.display(),
        report.sender_pid,
        report.sha256_sent,
        report.receiver_pid,
        report.sha256_received,
        if report.matches { "they match" } else { "THEY DIFFER" },
        size(report.bytes),
        report.messages,
        size(report.capacity),
        report.seconds,
        size(report.bytes_per_s as u64),
    )
}

/// A directory that is removed when this goes, however the demo ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("ramway-demo-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| Failure::io(&error, format!("cannot make {}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The other process; killed if the demo ends without it.
struct Other(Child);

impl Other {
    /// Waits for its end.
    fn ended(&mut self, interrupt: &Interrupt) -> Outcome<ExitStatus> {
        loop {
            interrupt.check()?;
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(Failure::io(&error, "cannot wait for the second process")),
            }
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn stream(args: &Args, path: &Path, interrupt: &Interrupt) -> Outcome<Report> {
    let cannot = |error: io::Error| Failure::io(&error, format!("cannot read {}", path.display()));
    // Looked at before it is opened, which would wait for the other end of a FIFO.
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "no regular file" };
        return Err(Failure::error(format!("cannot read {}: it is {what}, the demo takes a file", path.display())));
    }
    let length = metadata.len();
    let mut file = File::open(path).map_err(cannot)?;
    let scratch = Scratch::new()?;
    let output = args.output.clone().unwrap_or_else(|| scratch.0.join("received"));
    let name = format!("demo-{}", std::process::id());
    let listener = Listener::builder(&name).capacities(args.capacity, BACK).bind()?;
    let exe = std::env::current_exe().map_err(|error| Failure::io(&error, "cannot find this command"))?;
    let other =
        Command::new(exe).args(["demo", "--receive", &name, "--output"]).arg(&output).stdin(Stdio::null()).spawn();
    let mut other = Other(other.map_err(|error| Failure::io(&error, "cannot start the second process"))?);
    let mut bus = accept(&listener, interrupt)?;
    // Nobody else is expected: the name goes.
    drop(listener);

    let begun = Instant::now();
    let mut progress = Progress::new(Some(length), false);
    let sent = send(&mut bus, &mut file, &mut progress, interrupt);
    let answered = sent.and_then(|digest| Ok((digest, answer(&mut bus, interrupt)?)));
    let seconds = begun.elapsed().as_secs_f64();
    progress.clear();
    let capacity = bus.sender()?.capacity() as u64;
    // The other process ends when it sees this.
    drop(bus);
    let receiver_pid = other.0.id();
    let ended = other.ended(interrupt)?;
    if !ended.success() {
        return Err(Failure::new(PEER_DIED, format!("the second process failed: {ended}")));
    }
    let (ours, theirs) = answered?;
    Ok(Report {
        file: path.to_path_buf(),
        bytes: progress.bytes(),
        messages: progress.messages(),
        capacity,
        seconds,
        bytes_per_s: progress.bytes() as f64 / seconds,
        sender_pid: std::process::id(),
        receiver_pid,
        matches: ours == theirs,
        sha256_sent: hex(&ours),
        sha256_received: hex(&theirs),
    })
}

/// Reads the file into the ring, and gives the digest of what was read.
fn send(bus: &mut Bus, file: &mut File, progress: &mut Progress, interrupt: &Interrupt) -> Outcome<Vec<u8>> {
    let sender = bus.sender()?;
    let chunk = (sender.capacity() / 4 - ramway::layout::FRAME_HEADER as usize).min(sender.max_message_len());
    let mut digest = Sha256::new();
    loop {
        interrupt.check()?;
        let slot = match sender.reserve_timeout(chunk, SLICE) {
            Err(error) if error.kind() == ErrorKind::TimedOut => continue,
            slot => slot?,
        };
        let mut slot = slot.with_type_id(DATA);
        let count = file.read(&mut slot).map_err(|error| Failure::io(&error, "cannot read the file"))?;
        if count == 0 {
            break;
        }
        digest.update(&slot[..count]);
        slot.commit(count)?;
        progress.add(count as u64, 1);
    }
    while let Err(error) = sender.send_timeout(END, b"", SLICE) {
        if error.kind() != ErrorKind::TimedOut {
            return Err(error.into());
        }
        interrupt.check()?;
    }
    Ok(digest.finalize().to_vec())
}

/// The other process.
fn accept(listener: &Listener, interrupt: &Interrupt) -> Outcome<Bus> {
    let begun = Instant::now();
    loop {
        interrupt.check()?;
        match listener.accept_timeout(SLICE) {
            Err(error) if error.kind() == ErrorKind::TimedOut && begun.elapsed() < START => {}
            bus => return Ok(bus?),
        }
    }
}

/// Its digest.
fn answer(bus: &mut Bus, interrupt: &Interrupt) -> Outcome<Vec<u8>> {
    loop {
        interrupt.check()?;
        match bus.recv_timeout(SLICE) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            message => return Ok(message?.to_vec()),
        }
    }
}

/// The second process: writes what comes, and answers with its digest.
fn receive(bus: &Path, output: &Path) -> Outcome {
    let cannot = |error: io::Error| Failure::io(&error, format!("cannot write {}", output.display()));
    let mut bus = Bus::connector(bus).timeout(START).connect()?;
    let mut file = File::create(output).map_err(cannot)?;
    let mut digest = Sha256::new();
    loop {
        let message = bus.recv()?;
        if message.type_id() == END {
            break;
        }
        digest.update(&message[..]);
        file.write_all(&message).map_err(cannot)?;
    }
    bus.send(DIGEST, &digest.finalize())?;
    // The answer is delivered even if this process has ended by then; but an orderly end is waited for.
    let _ = bus.recv();
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The largest file below `rustc --print sysroot`: a real file that is there wherever this was built.
fn largest_of_toolchain() -> Outcome<PathBuf> {
    let advice = "name a file to stream: ramway demo FILE";
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "sysroot"]).stderr(Stdio::null()).output();
    let sysroot =
        asked.ok().filter(|answer| answer.status.success()).and_then(|answer| String::from_utf8(answer.stdout).ok());
    let Some(sysroot) = sysroot else {
        return Err(Failure::error(format!("no rustc to ask for a large file; {advice}")));
    };
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut open = vec![PathBuf::from(sysroot.trim())];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Of the entry itself: a link is not followed, so there is no way round in a circle.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if metadata.is_file() && largest.as_ref().is_none_or(|(most, _)| metadata.len() > *most) {
                largest = Some((metadata.len(), entry.path()));
            }
        }
    }
    largest.map(|(_, path)| path).ok_or_else(|| Failure::error(format!("the toolchain has no files; {advice}")))
}
