//! What a bridge costs: two rings through two bridges against the link alone (Zenoh's `put` and its ping), in one run, in turns.
//!
//! Every program of a path is a process of its own: this one starts them, and tells them by their standard input when to begin and
//! how much. `make bench` runs it; `make bench ARGS='--rounds 20 --only stream'` says how.

mod link;
mod rings;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use ramway_cli::{output, units};

/// Of a stream's messages, or of the one that goes there and back.
pub const SMALL: usize = 1 << 10;
/// The other size of a stream.
pub const LARGE: usize = 1 << 20;
/// What goes there and back.
pub const PING: usize = 64;

/// A part of the processes' own.
pub type Done = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
struct Cli {
    /// How often each is measured
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long one measurement takes
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "1s")]
    time: Duration,
    /// Only the rows whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Bytes of a piece, of the bridges' rule
    #[arg(long, value_name = "SIZE", default_value = "63K")]
    chunk: String,
    /// Another executable of the bridge, to compare the two
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_ramway-bridge"))]
    bridge: PathBuf,
    /// Given by `cargo bench`, and of no meaning
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What a process of a path does.
#[derive(Subcommand)]
#[command(hide = true)]
enum Part {
    Send { size: usize },
    Receive,
    Ping { size: usize },
    Pong,
    Put { endpoint: String, size: usize },
    Subscribe { endpoint: String },
    LinkPing { endpoint: String, size: usize },
    LinkPong { endpoint: String },
}

fn main() -> Done {
    let cli = Cli::parse();
    match &cli.part {
        None => measure(&cli),
        Some(Part::Send { size }) => rings::send(*size),
        Some(Part::Receive) => rings::receive(),
        Some(Part::Ping { size }) => rings::ping(*size),
        Some(Part::Pong) => rings::pong(),
        Some(Part::Put { endpoint, size }) => link::put(endpoint, *size),
        Some(Part::Subscribe { endpoint }) => link::subscribe(endpoint),
        Some(Part::LinkPing { endpoint, size }) => link::ping(endpoint, *size),
        Some(Part::LinkPong { endpoint }) => link::pong(endpoint),
    }
}

/// Says that it is ready, then gives `work` the number in each line of the standard input, and prints what that returns.
pub fn obey(mut work: impl FnMut(u64) -> Result<String, Box<dyn std::error::Error + Send + Sync>>) -> Done {
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        println!("{}", work(line?.parse()?)?);
    }
    Ok(())
}

/// Every byte of a message, as a reader would have to look at it.
#[must_use]
pub fn read_all(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let sum = |sum: u64, word: &[u8]| sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("8 bytes")));
    words.fold(rest, sum)
}

/// A process of a path; it ends with this.
struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn start(machine: &Path, part: &[&str]) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(part).env("RAMWAY_DIR", machine).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    fn ask(&mut self, number: u64) -> std::io::Result<()> {
        writeln!(self.to, "{number}")
    }

    fn answer(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other(format!("a process of the benchmark has ended: {}", self.child.wait()?)));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two directories, two bridges between them, and the two programs of a path.
struct Course {
    first: Process,
    second: Process,
    _bridges: Vec<Bridge>,
}

struct Bridge(Child);

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Stream(usize),
    RoundTrip,
}

impl Course {
    fn bridged(what: What, folder: &Path, cli: &Cli) -> std::io::Result<Self> {
        let port = free_port()?;
        let machine = |side: &str| -> std::io::Result<PathBuf> {
            let machine = folder.join(format!("{side}-{port}"));
            std::fs::create_dir(&machine)?;
            Ok(machine)
        };
        let (near, far) = (machine("near")?, machine("far")?);
        let rule = |name: &str, direction: &str| {
            format!(
                "[[rule]]\nnames = [\"{name}\"]\nkind = \"ring\"\non_disconnect = \"block\"\ndirection = \"{direction}\"\n\
                 chunk = \"{}\"\n",
                cli.chunk
            )
        };
        let mut bridges = Vec::new();
        for (machine, way, there, back) in
            [(&near, "connect", "export", "import"), (&far, "listen", "import", "export")]
        {
            let file = machine.join(".bridge.toml");
            let link = format!("[link]\n{way} = [\"tcp/127.0.0.1:{port}\"]\n");
            std::fs::write(&file, link + &rule("there", there) + &rule("back", back))?;
            let mut command = Command::new(&cli.bridge);
            command.arg("--config").arg(file).env("RAMWAY_DIR", machine).stdin(Stdio::null()).stderr(Stdio::null());
            bridges.push(Bridge(command.spawn()?));
        }
        let (first, second) = match what {
            What::Stream(size) => {
                (Process::start(&near, &["send", &size.to_string()])?, Process::start(&far, &["receive"])?)
            }
            What::RoundTrip => (Process::start(&near, &["ping", &PING.to_string()])?, Process::start(&far, &["pong"])?),
        };
        Ok(Self { first, second, _bridges: bridges })
    }

    fn link(what: What, folder: &Path) -> std::io::Result<Self> {
        let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
        let start = |part: &[&str]| Process::start(folder, part);
        let (first, second) = match what {
            What::Stream(size) => (start(&["put", &endpoint, &size.to_string()])?, start(&["subscribe", &endpoint])?),
            What::RoundTrip => {
                (start(&["link-ping", &endpoint, &PING.to_string()])?, start(&["link-pong", &endpoint])?)
            }
        };
        Ok(Self { first, second, _bridges: Vec::new() })
    }

    fn ready(&mut self) -> std::io::Result<()> {
        for process in [&mut self.second, &mut self.first] {
            let line = process.answer()?;
            assert_eq!(line, "ready", "a process of the benchmark begins");
        }
        Ok(())
    }

    /// Sends this number of messages, or makes this number of round trips; gives the seconds that one takes.
    fn run(&mut self, what: What, number: u64) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
        match what {
            What::Stream(_) => {
                self.second.ask(number)?;
                let begin = Instant::now();
                self.first.ask(number)?;
                // The second has all of them when it answers.
                self.second.answer()?;
                let took = begin.elapsed();
                self.first.answer()?;
                Ok(took.as_secs_f64() / number as f64)
            }
            What::RoundTrip => {
                self.first.ask(number)?;
                // Its median, so that one pause of the machine is not all that counts.
                Ok(self.first.answer()?.parse::<u64>()? as f64 / 1e9)
            }
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A folder that goes with this.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn measure(cli: &Cli) -> Done {
    let shm = Path::new("/dev/shm");
    let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let folder = Folder(base.join(format!("ramway-bridge-bench.{}", std::process::id())));
    std::fs::create_dir(&folder.0)?;
    let rows = [
        ("stream of 1 KiB", What::Stream(SMALL), 0.8),
        ("stream of 1 MiB", What::Stream(LARGE), 0.8),
        ("round trip of 64 B", What::RoundTrip, 1.5),
    ];
    let mut table =
        output::table(&["", "link alone: best", "median", "bridges: best", "median", "ratio of medians", "bar"]);
    for (name, what, bar) in rows.into_iter().filter(|(name, ..)| name.contains(&cli.only)) {
        let mut paths = [Course::link(what, &folder.0)?, Course::bridged(what, &folder.0, cli)?];
        let mut numbers = [0; 2];
        for (path, number) in paths.iter_mut().zip(&mut numbers) {
            path.ready()?;
            // Warm-up, which says how many take as long as asked for.
            let few = match what {
                What::Stream(LARGE) => 50,
                What::Stream(_) => 20_000,
                What::RoundTrip => 500,
            };
            path.run(what, few)?;
            *number = ((cli.time.as_secs_f64() / path.run(what, few)?) as u64).max(1);
        }
        let mut took = [Vec::new(), Vec::new()];
        for round in 0..cli.rounds.max(1) {
            // The one that begins is another one each time.
            for turn in [round % 2, 1 - round % 2] {
                let one = paths[turn].run(what, numbers[turn])?;
                took[turn].push(one);
            }
        }
        let [link, bridges] = took.map(|mut all| {
            all.sort_by(f64::total_cmp);
            (all[0], all[all.len() / 2])
        });
        let shown = |seconds: f64| match what {
            What::Stream(size) => format!("{:.0} MB/s", size as f64 / seconds / 1e6),
            What::RoundTrip => format!("{:.1} µs", seconds * 1e6),
        };
        let (ratio, bar) = match what {
            What::Stream(_) => (link.1 / bridges.1, format!("≥ {bar}")),
            What::RoundTrip => (bridges.1 / link.1, format!("≤ {bar}")),
        };
        table.add_row([
            name.to_owned(),
            shown(link.0),
            shown(link.1),
            shown(bridges.0),
            shown(bridges.1),
            format!("{ratio:.2}"),
            bar,
        ]);
    }
    print!("{}", output::render(&table));
    Ok(())
}
