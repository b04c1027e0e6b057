//! When a buffer pool helps, and when it does not: each case with a pool and with what one would do without.
//!
//! The ways of a case take turns within each round, so that a slow moment of the machine meets all of them. The figures in
//! `docs/guides/buffer-pool.md` are what this prints.

mod measure;

use measure::{Case, fill, resident, timed};
use ramway_pool::{Buffer, BufferPool};
use rustix::buffer::spare_capacity;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

/// When a buffer pool helps, and when it does not: measured on this machine
#[derive(clap::Parser)]
#[command(name = "pool-cases", max_term_width = 100)]
struct Options {
    /// How often each case is measured
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Mebibytes of the file that is read, which is made for it and removed
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(2..=1024))]
    mebibytes: u16,

    /// Where to make it: on a disk, or nothing can be measured that is not in the page cache [default: the temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

const MIB: usize = 1 << 20;

fn main() -> ExitCode {
    let result = run(&clap::Parser::parse());
    // The reader of the output has closed it: not an error.
    let enough = |error: &(dyn Error + 'static)| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    ramway_examples::exit_code("pool-cases", result.or_else(|error| if enough(&*error) { Ok(()) } else { Err(error) }))
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let directory = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    let (file, _removed) = scratch(&directory, options.mebibytes.into())
        .map_err(|error| format!("a file in {}: {error}", directory.display()))?;
    let rounds = options.rounds.into();
    let mut out = io::stdout().lock();
    let length = usize::from(options.mebibytes) * MIB;

    // First: what the cases leave in the allocator would be counted.
    held(&mut out)?;
    writeln!(out, "\n{:<38} {:>12} {:>12} {:>12}", "", "best µs", "median µs", "page faults")?;
    warm(&file, length, length).print(&mut out, rounds)?;
    warm(&file, length, MIB).print(&mut out, rounds)?;
    together().print(&mut out, rounds)?;
    handed_on().print(&mut out, rounds)?;
    tiny().print(&mut out, rounds)?;
    one_pass().print(&mut out, rounds)?;
    lengths().print(&mut out, rounds)?;
    hashed(&file, length).print(&mut out, rounds)?;
    cold(&file, length).print(&mut out, rounds)?;
    some_pages(&file, length).print(&mut out, rounds)?;
    all_pages(&file, length).print(&mut out, rounds)?;
    Ok(())
}

/// Removes the file in the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn scratch(directory: &Path, mebibytes: usize) -> io::Result<(File, Removed)> {
    let path = directory.join(format!("ramway-pool-cases-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    let removed = Removed(path);
    let mut mebibyte = vec![0; MIB];
    for number in 0..mebibytes {
        fill(&mut mebibyte, number);
        file.write_all(&mebibyte)?;
    }
    file.sync_all()?; // or its pages could not be dropped
    Ok((file, removed))
}

/// A vector, read into without being zeroed: what is compared with is as good as it can be.
fn read_vector(file: &File, offset: usize, vector: &mut Vec<u8>, length: usize) {
    while vector.len() < length {
        let at = (offset + vector.len()) as u64;
        let got = rustix::io::pread(file, spare_capacity(vector), at).expect("the file that was just written");
        assert!(got > 0, "somebody else made the file shorter");
    }
}

/// The file read in parts from the page cache.
fn warm(file: &File, length: usize, part: usize) -> Case<'_> {
    let parts = length / part;
    let pool = BufferPool::new();
    let aligned = BufferPool::builder().alignment(4096).build().expect("a power of two below 1 GiB");
    let mut kept = Vec::with_capacity(part);
    let offsets = move || (0..parts).map(move |number| number * part);
    Case::new(format!("{} MiB at a time, from the page cache", part / MIB), parts)
        .way("pool", move || {
            timed(|| {
                for offset in offsets() {
                    let mut buffer = pool.get(part);
                    buffer.read_exact_fd_at(file, offset as u64, part).expect("the file that was just written");
                    black_box(&buffer);
                }
            })
        })
        .way("pool, alignment(4096)", move || {
            timed(|| {
                for offset in offsets() {
                    let mut buffer = aligned.get(part);
                    buffer.read_exact_fd_at(file, offset as u64, part).expect("the file that was just written");
                    black_box(&buffer);
                }
            })
        })
        .way("Vec::with_capacity", move || {
            timed(|| {
                for offset in offsets() {
                    let mut vector = Vec::with_capacity(part);
                    read_vector(file, offset, &mut vector, part);
                    black_box(&vector);
                }
            })
        })
        .way("vec![0; n]", move || {
            timed(|| {
                for offset in offsets() {
                    let mut vector = vec![0; part];
                    file.read_exact_at(&mut vector, offset as u64).expect("the file that was just written");
                    black_box(&vector);
                }
            })
        })
        .way("one vector for all", move || {
            timed(|| {
                for offset in offsets() {
                    kept.clear();
                    read_vector(file, offset, &mut kept, part);
                    black_box(&kept);
                }
            })
        })
}

/// A buffer with every byte written.
fn filled(pool: &BufferPool, length: usize) -> Buffer {
    pool.get_uninit(length).zeroed()
}

/// A load of many buffers that all live until its end.
fn together() -> Case<'static> {
    const COUNT: usize = 64;
    let pool = BufferPool::new();
    Case::new("64 of 1 MiB filled, then all dropped", COUNT)
        .way("pool", move || {
            timed(|| {
                black_box((0..COUNT).map(|_| filled(&pool, MIB)).collect::<Vec<_>>());
            })
        })
        .way("vec![1; n]", || {
            timed(|| {
                black_box((0..COUNT).map(|_| vec![1u8; MIB]).collect::<Vec<_>>());
            })
        })
}

/// 1 MiB filled on one thread and dropped on another.
fn handed_on() -> Case<'static> {
    const COUNT: usize = 200;
    let pool = BufferPool::new();
    Case::new("1 MiB filled here, dropped on another thread", COUNT)
        .way("pool", move || pipeline(COUNT, || filled(&pool, MIB)))
        .way("vec![1; n]", || pipeline(COUNT, || vec![1u8; MIB]))
}

fn pipeline<T: Send>(count: usize, mut make: impl FnMut() -> T) -> std::time::Duration {
    timed(|| {
        std::thread::scope(|threads| {
            let (sender, receiver) = mpsc::sync_channel(4);
            threads.spawn(move || receiver.into_iter().for_each(|buffer| drop(black_box(buffer))));
            for _ in 0..count {
                sender.send(make()).expect("the other thread receives until the end");
            }
        });
    })
}

/// Where one can keep a buffer, no pool is as fast.
fn tiny() -> Case<'static> {
    const COUNT: usize = 100_000;
    let pool = BufferPool::new();
    let mut kept = Vec::with_capacity(64);
    Case::new("100,000 messages of 64 bytes", 1)
        .way("pool", move || {
            timed(|| {
                for n in 0..COUNT {
                    let mut buffer = pool.get(64);
                    buffer.extend_from_slice(black_box(&[n as u8; 64])).expect("room for 64");
                    black_box(&buffer);
                }
            })
        })
        .way("Vec::with_capacity", || {
            timed(|| {
                for n in 0..COUNT {
                    let mut vector = Vec::with_capacity(64);
                    vector.extend_from_slice(black_box(&[n as u8; 64]));
                    black_box(&vector);
                }
            })
        })
        .way("one vector for all", move || {
            timed(|| {
                for n in 0..COUNT {
                    kept.clear();
                    kept.extend_from_slice(black_box(&[n as u8; 64]));
                    black_box(&kept);
                }
            })
        })
}

/// A program that needs each buffer once: the pool's are as new as any.
fn one_pass() -> Case<'static> {
    const COUNT: usize = 16;
    Case::new("16 of 1 MiB filled once, by a pool of their own", COUNT)
        .way("pool", || {
            timed(|| {
                let pool = BufferPool::new();
                black_box((0..COUNT).map(|_| filled(&pool, MIB)).collect::<Vec<_>>());
            })
        })
        .way("vec![1; n]", || {
            timed(|| {
                black_box((0..COUNT).map(|_| vec![1u8; MIB]).collect::<Vec<_>>());
            })
        })
}

/// Lengths all over five orders of magnitude: few of them were there of late.
fn lengths() -> Case<'static> {
    const COUNT: usize = 300;
    /// From 1 KiB to 16 MiB, each doubling as often as any other; the same ones for both ways.
    fn length(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (1024.0 * ((*state >> 33) as f64 / (1u64 << 31) as f64 * 14.0).exp2()) as usize
    }
    let pool = BufferPool::new();
    let one = BufferPool::builder().min_buffer_size(16 * MIB).build().expect("a power of two below 1 GiB");
    let (mut first, mut second, mut third) = (1, 1, 1);
    Case::new("random lengths, 1 KiB to 16 MiB, one at a time", COUNT)
        .way("pool", move || {
            timed(|| {
                for _ in 0..COUNT {
                    black_box(filled(&pool, length(&mut first)));
                }
            })
        })
        .way("pool, min_buffer_size(16 MiB)", move || {
            timed(|| {
                for _ in 0..COUNT {
                    black_box(filled(&one, length(&mut third)));
                }
            })
        })
        .way("vec![1; n]", move || {
            timed(|| {
                for _ in 0..COUNT {
                    black_box(vec![1u8; length(&mut second)]);
                }
            })
        })
}

/// Work that takes much longer than a page fault.
fn hashed(file: &File, length: usize) -> Case<'_> {
    let parts = (length / MIB).min(16);
    let pool = BufferPool::new();
    let (mut chained, mut again) = (Sha256::new(), Sha256::new());
    Case::new("1 MiB from the page cache, and its SHA-256", parts)
        .way("pool", move || {
            timed(|| {
                for number in 0..parts {
                    let mut buffer = pool.get(MIB);
                    let offset = (number * MIB) as u64;
                    buffer.read_exact_fd_at(file, offset, MIB).expect("the file that was just written");
                    chained.update(&buffer);
                }
            })
        })
        .way("Vec::with_capacity", move || {
            timed(|| {
                for number in 0..parts {
                    let mut vector = Vec::with_capacity(MIB);
                    read_vector(file, number * MIB, &mut vector, MIB);
                    again.update(&vector);
                }
            })
        })
}

/// The disk first. Nothing is measured where the pages cannot be dropped (on tmpfs).
fn cold(file: &File, length: usize) -> Case<'_> {
    let parts = (length / MIB).min(16);
    let dropped = move || rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).expect("a file");
    let pool = BufferPool::new();
    Case::new("1 MiB at a time, not in the page cache", parts)
        .way("pool", move || {
            dropped();
            timed(|| {
                for number in 0..parts {
                    let mut buffer = pool.get(MIB);
                    let offset = (number * MIB) as u64;
                    buffer.read_exact_fd_at(file, offset, MIB).expect("the file that was just written");
                    black_box(&buffer);
                }
            })
        })
        .way("Vec::with_capacity", move || {
            dropped();
            timed(|| {
                for number in 0..parts {
                    let mut vector = Vec::with_capacity(MIB);
                    read_vector(file, number * MIB, &mut vector, MIB);
                    black_box(&vector);
                }
            })
        })
}

/// A page of each 256 KiB: a mapping brings in what is looked at.
fn some_pages(file: &File, length: usize) -> Case<'_> {
    const STEP: usize = 256 << 10;
    let (pool, parts) = (BufferPool::new(), BufferPool::new());
    Case::new("a page of each 256 KiB, from the page cache", 1)
        .way("pool, all of the file", move || {
            timed(|| {
                let mut buffer = pool.get(length);
                buffer.read_exact_fd_at(file, 0, length).expect("the file that was just written");
                black_box(buffer.iter().step_by(STEP).map(|&byte| u64::from(byte)).sum::<u64>());
            })
        })
        .way("pool, a page at a time", move || {
            timed(|| {
                let mut sum = 0;
                for offset in (0..length).step_by(STEP) {
                    let mut buffer = parts.get(4096);
                    buffer.read_exact_fd_at(file, offset as u64, 4096).expect("the file that was just written");
                    sum += u64::from(buffer[0]);
                }
                black_box(sum);
            })
        })
        .way("mmap", move || {
            timed(|| {
                let mapping = measure::Mapping::new(file, length);
                black_box(mapping.iter().step_by(STEP).map(|&byte| u64::from(byte)).sum::<u64>());
            })
        })
}

/// Every byte, once.
fn all_pages(file: &File, length: usize) -> Case<'_> {
    let pool = BufferPool::new();
    let sum = |bytes: &[u8]| black_box(bytes.iter().fold(0u64, |sum, &byte| sum + u64::from(byte)));
    Case::new("every byte looked at, from the page cache", 1)
        .way("pool, 1 MiB at a time", move || {
            timed(|| {
                for offset in (0..length).step_by(MIB) {
                    let mut buffer = pool.get(MIB);
                    buffer.read_exact_fd_at(file, offset as u64, MIB).expect("the file that was just written");
                    sum(&buffer);
                }
            })
        })
        .way("mmap", move || {
            timed(|| {
                sum(&measure::Mapping::new(file, length));
            })
        })
}

/// What is not given back to the system.
fn held(out: &mut impl Write) -> io::Result<()> {
    const COUNT: usize = 16;
    writeln!(out, "resident memory beyond that before, after {COUNT} buffers of 4 MiB were filled and dropped")?;
    let mut say = |what: &str, before: u64| {
        writeln!(out, "  {what:<36} {:>12.1} MiB", resident().saturating_sub(before) as f64 / MIB as f64)
    };

    let before = resident();
    let pool = BufferPool::new();
    drop((0..COUNT).map(|_| filled(&pool, 4 * MIB)).collect::<Vec<_>>());
    say("pool", before)?;
    pool.trim(8 * MIB);
    say("pool, after trim(8 MiB)", before)?;
    pool.clear();
    say("pool, after clear()", before)?;

    let before = resident();
    drop((0..COUNT).map(|_| black_box(vec![1u8; 4 * MIB])).collect::<Vec<_>>());
    say("vectors", before)
}
