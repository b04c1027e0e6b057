//! Loading a checkpoint: a safetensors file of GPT-2's tensors, again and again, into memory from a pool and into memory
//! that is allocated for each tensor.

mod file;
mod measure;
mod memory;
mod model;
mod read;
mod report;
mod uring;

pub use file::Checkpoint;
pub use model::Model;
pub use report::{Bar, Figures, Group, Report, Row};

use crate::{Allocator, Result, usage};
use clap::Parser;
use file::Mapping;
use measure::{Contest, How, Way};
use memory::{Memory, SECTOR};
use ramway_pool::BufferPool;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use uring::{Register, Ring};

/// Loads a GPT-2-sized safetensors file again and again, with a buffer pool and without.
///
/// Every byte is verified before and after the measured rounds. Within a round every way is measured once, in another
/// order; a figure is the median over the rounds, a ratio the median of the ratios within the rounds.
#[derive(Clone, Debug, Parser)]
#[command(version = None)]
pub struct Options {
    /// Where the file is made; it is gone when the program ends. On a disk, for loads with a cold page cache.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub dir: PathBuf,
    /// Leave the file there, and use it if it is there.
    #[arg(long)]
    pub keep: bool,
    /// Load this safetensors file instead.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Divide every measure of the model by this: for trying out.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub smaller: usize,
    /// Only these groups: read, pread, uring, parts, used, once, cold, direct.
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Rounds that count.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Rounds before them.
    #[arg(long, default_value_t = 2)]
    pub warmup: u32,
    /// Rounds that count with a cold page cache.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub cold_rounds: u32,
    /// Threads of `pread`; as many as processors, and at least 2, if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Requests of the io_uring that are in flight.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: u32,
    /// KiB of one such request.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    pub chunk: u32,
    /// Write the report here as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measure in this process, for another one.
    #[arg(long, hide = true)]
    pub apart: bool,
}

const POOL: &str = "a pool's buffers";
const HUGE: &str = "a pool with huge_pages";
const ALIGNED: &str = "a pool with alignment(4096)";
const VEC: &str = "Vec::with_capacity for each tensor";
const ZEROED: &str = "vec![0; n] for each tensor";
const KEPT: &str = "buffers that are allocated once, by hand: the floor";

fn huge() -> Result<Memory> {
    Ok(Memory::Pool(BufferPool::builder().huge_pages(true).build()?))
}

fn aligned() -> Result<Memory> {
    Ok(Memory::Pool(BufferPool::builder().alignment(SECTOR).build()?))
}

fn pool() -> Memory {
    Memory::Pool(BufferPool::new())
}

struct Plan<'a> {
    options: &'a Options,
    file: &'a Checkpoint,
    threads: usize,
}

impl Plan<'_> {
    fn contest(&self, id: &'static str, title: &str, ways: Vec<Way>) -> Contest {
        let (rounds, warmup) = (self.options.rounds as usize, self.options.warmup as usize);
        Contest { id, title: title.into(), used: false, cold: false, rounds, warmup, ways }
    }

    fn kept(&self) -> Memory {
        Memory::kept(self.file.tensors.len())
    }

    /// The memories that are compared for `read` and `pread`.
    fn usual(&self, how: impl Fn() -> How) -> Result<Vec<Way>> {
        let way = |name, what, memory| Way { name, what, memory, how: how() };
        Ok(vec![
            way("pool", POOL, pool()),
            way("pool-aligned", ALIGNED, aligned()?),
            way("pool-huge", HUGE, huge()?),
            way("vec", VEC, Memory::WithCapacity),
            way("vec-zeroed", ZEROED, Memory::Zeroed),
            way("kept", KEPT, self.kept()),
        ])
    }

    fn ring(&self, register: Register, direct: bool) -> How {
        let Options { depth, chunk, .. } = *self.options;
        How::Ring(Ring::new(self.file, depth, chunk as usize * 1024, register, direct).map(Box::new))
    }

    fn uring(&self) -> Result<Vec<Way>> {
        let way = |name, what, memory, register| Way { name, what, memory, how: self.ring(register, false) };
        Ok(vec![
            way("pool-registered", "a pool's buffers, registered once", pool(), Register::Once),
            way("pool-huge-registered", "the same of a pool with huge_pages", huge()?, Register::Once),
            way("pool", "a pool's buffers, not registered", pool(), Register::No),
            way("vec", "Vec::with_capacity for each tensor, not registered", Memory::WithCapacity, Register::No),
            way("vec-registered", "the same, registered in each load", Memory::WithCapacity, Register::EachLoad),
            way("vec-zeroed", "vec![0; n] for each tensor, not registered", Memory::Zeroed, Register::No),
            way(
                "kept-registered",
                "buffers that are allocated and registered once: the floor",
                self.kept(),
                Register::Once,
            ),
        ])
    }

    fn parts(&self) -> Result<Vec<Way>> {
        let way = |name, what, memory, how| Way { name, what, memory, how };
        let copy = || Ok::<_, crate::Failure>(How::Copy(Mapping::of(self.file, true)?));
        Ok(vec![
            way("vec", "read into Vec::with_capacity for each tensor", Memory::WithCapacity, How::Read),
            way("kept", "read into memory that is there", self.kept(), How::Read),
            way(
                "one-buffer",
                "read all of it into one buffer of 256 KiB",
                self.kept(),
                How::OneBuffer(vec![MaybeUninit::new(0); 256 << 10]),
            ),
            way("copy-kept", "copied by the program from a mapping into memory that is there", self.kept(), copy()?),
            way(
                "copy-vec",
                "copied by the program from a mapping into Vec::with_capacity",
                Memory::WithCapacity,
                copy()?,
            ),
            way(
                "touch-vec",
                "no byte read: one written to each page of Vec::with_capacity",
                Memory::WithCapacity,
                How::Touch,
            ),
            way("touch-kept", "the same in memory that is there", self.kept(), How::Touch),
        ])
    }

    fn used(&self) -> Vec<Way> {
        let way = |name, what, memory, how| Way { name, what, memory, how };
        vec![
            way("pool", "read into a pool's buffers", pool(), How::Read),
            way("vec", "read into Vec::with_capacity for each tensor", Memory::WithCapacity, How::Read),
            way(
                "map",
                "mmap: nothing is copied, each page faults when it is used",
                Memory::WithCapacity,
                How::Map(false),
            ),
            way("map-populate", "mmap with MAP_POPULATE", Memory::WithCapacity, How::Map(true)),
        ]
    }

    fn once(&self) -> Vec<Way> {
        let way = |name, what, memory| Way { name, what, memory, how: How::Read };
        vec![
            way("pool", POOL, pool()),
            way(
                "pool-once",
                "a pool that is made for the load and dropped after it",
                Memory::PoolForOnce(Default::default()),
            ),
            way("vec", VEC, Memory::WithCapacity),
        ]
    }

    fn cold(&self) -> Result<Vec<Way>> {
        let way = |name, what, memory, how| Way { name, what, memory, how };
        Ok(vec![
            way("pool", "read into a pool's buffers", pool(), How::Read),
            way("vec", "read into Vec::with_capacity for each tensor", Memory::WithCapacity, How::Read),
            way("vec-zeroed", "read into vec![0; n] for each tensor", Memory::Zeroed, How::Read),
            way("pool-pread", "pread into a pool's buffers", pool(), How::Pread(self.threads)),
            way("vec-pread", "pread into Vec::with_capacity", Memory::WithCapacity, How::Pread(self.threads)),
            way("pool-uring", "io_uring into a pool's registered buffers", pool(), self.ring(Register::Once, false)),
            way("vec-uring", "io_uring into Vec::with_capacity", Memory::WithCapacity, self.ring(Register::No, false)),
        ])
    }

    fn direct(&self) -> Result<Vec<Way>> {
        let way = |name, what, memory, register| Way { name, what, memory, how: self.ring(register, true) };
        Ok(vec![
            way("pool-registered", "buffers of a pool with alignment, registered once", aligned()?, Register::Once),
            way("pool", "the same, not registered", aligned()?, Register::No),
            way("vec", "allocated on a page's boundary for each tensor, not registered", Memory::Aligned, Register::No),
            way("vec-registered", "the same, registered in each load", Memory::Aligned, Register::EachLoad),
        ])
    }

    /// Made when its turn comes, so that only one group's memory is there at a time.
    fn group(&self, id: &'static str) -> Result<Contest> {
        let cold_rounds = self.options.cold_rounds as usize;
        Ok(match id {
            "read" => self.contest(id, "one thread, read", self.usual(|| How::Read)?),
            "pread" => {
                let title = format!("{} threads, pread", self.threads);
                self.contest(id, &title, self.usual(|| How::Pread(self.threads))?)
            }
            "uring" => self.contest(id, "one thread, io_uring", self.uring()?),
            "parts" => self.contest(id, "where the time of read goes", self.parts()?),
            "used" => Contest { used: true, ..self.contest(id, "read, and every byte used once", self.used()) },
            "once" => self.contest(id, "a program that loads once: read", self.once()),
            "cold" => {
                let contest = self.contest(id, "page cache cold", self.cold()?);
                Contest { cold: true, rounds: cold_rounds, warmup: 1, ..contest }
            }
            _ => {
                let contest = self.contest(id, "past the page cache: io_uring with O_DIRECT", self.direct()?);
                Contest { rounds: cold_rounds, warmup: 1, ..contest }
            }
        })
    }
}

const GROUPS: [&str; 8] = ["read", "pread", "uring", "parts", "used", "once", "cold", "direct"];

impl Options {
    fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == group)
    }

    fn check(&self) -> Result<()> {
        match self.only.iter().find(|name| !GROUPS.contains(&name.as_str())) {
            Some(other) => Err(format!("no group is called {other}: there are {}", GROUPS.join(", ")).into()),
            None => Ok(()),
        }
    }

    /// The file, if there is room for it and for its copies in memory.
    fn open(&self) -> Result<Checkpoint> {
        let model = Model::GPT2.smaller(self.smaller.max(1));
        let size = match &self.file {
            Some(path) => std::fs::metadata(path).map_err(|cause| format!("{}: {cause}", path.display()))?.len(),
            None => model.bytes(),
        };
        // A group keeps up to five copies, makes another, and the page cache has one.
        if usage::available().is_some_and(|available| available < 7 * size) {
            let needed = 7 * size / 1_000_000;
            return Err(format!("this takes {needed} MB of memory, which are not free: --smaller 2").into());
        }
        match &self.file {
            Some(path) => Checkpoint::open(path),
            None => Checkpoint::make(model, &self.dir, self.keep),
        }
    }
}

fn report(file: &Checkpoint, allocator: Allocator) -> Report {
    Report {
        program: "checkpoint".into(),
        allocator: allocator.name().into(),
        machine: usage::machine(),
        tensors: file.tensors.len(),
        bytes: file.bytes,
        groups: Vec::new(),
        skipped: Vec::new(),
        findings: Vec::new(),
        bars: Vec::new(),
    }
}

/// Measures, in this process.
///
/// # Errors
/// No room for the file or for its copies in memory; a file that is none; a load whose bytes are wrong.
pub fn run(options: &Options, allocator: Allocator, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    options.check()?;
    progress("making the file");
    let file = options.open()?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cpus.max(2), |threads| threads as usize);
    let plan = Plan { options, file: &file, threads };
    let mut report = report(&file, allocator);
    for id in GROUPS.into_iter().filter(|id| options.wants(id)) {
        if id == "cold"
            && let Err(why) = file.forget()
        {
            report.skipped.push(format!("{id}: not measured: {why}"));
            continue;
        }
        report.groups.push(plan.group(id)?.run(&file, progress)?);
    }
    report.find();
    Ok(report)
}

/// Measures each group in a process of its own: what an allocator keeps depends on all that it gave out before.
fn run_apart(options: &Options, allocator: Allocator, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    options.check()?;
    progress("making the file");
    let file = options.open()?;
    // As long as this process has it open, it has this name.
    let name = format!("/proc/{}/fd/{}", std::process::id(), file.fd());
    let mut report = report(&file, allocator);
    for id in GROUPS.into_iter().filter(|id| options.wants(id)) {
        progress(id);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--file", &name, "--only", id, "--apart"]);
        for (option, value) in [
            ("--rounds", options.rounds),
            ("--warmup", options.warmup),
            ("--cold-rounds", options.cold_rounds),
            ("--depth", options.depth),
            ("--chunk", options.chunk),
        ] {
            command.args([option, &value.to_string()]);
        }
        if let Some(threads) = options.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{id}: ended with {}", output.status).into());
        }
        report.add(serde_json::from_slice(&output.stdout)?);
    }
    report.find();
    Ok(report)
}

/// The program.
///
/// # Errors
/// As [`run`]; the JSON file cannot be written.
pub fn main(allocator: Allocator) -> Result<()> {
    use std::io::{IsTerminal, Write};
    let options = Options::parse();
    let terminal = std::io::stderr().is_terminal();
    let mut progress = |label: &str| {
        if terminal {
            eprint!("\r\x1b[K{label}");
        }
    };
    if options.apart {
        let report = run(&options, allocator, &mut progress)?;
        println!("{}", serde_json::to_string(&report)?);
        return Ok(());
    }
    let report = run_apart(&options, allocator, &mut progress)?;
    progress("");
    print!("{}", report.text());
    std::io::stdout().flush()?;
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}
