//! SHA-256 of the files of a directory, as `sha256sum` prints them: some threads read into buffers of a pool, others hash.
//!
//! A chunk of a file is read into a buffer, frozen to `bytes::Bytes` and sent to the thread that hashes this file, where
//! dropping it gives the buffer back. How much is read ahead is what the pool may own, `--max-memory`: at the limit readers
//! wait until a chunk is hashed.

mod files;
mod memory;
mod work;

use clap::Parser;
use memory::Memory;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Instant;
use work::Sum;

/// SHA-256 of files, as sha256sum prints them, in the order of their names
#[derive(Parser)]
#[command(name = "digest", max_term_width = 100)]
struct Options {
    /// Files, and directories of which every regular file is taken
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Threads that read
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    readers: u16,

    /// Threads that hash; a file is hashed by one of them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    hashers: u16,

    /// Bytes that are read at a time, from 4K to 1G
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = chunk)]
    chunk: usize,

    /// What the pool may own: readers wait where more would be in use
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size, conflicts_with = "no_pool")]
    max_memory: usize,

    /// Reads into buffers of a pool, which is what it does anyway
    #[arg(long, overrides_with = "no_pool")]
    pool: bool,

    /// Allocates a vector for each chunk instead
    #[arg(long)]
    no_pool: bool,

    /// Prints no statistics at the end
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    ramway_examples::exit_code("digest", digest(&Options::parse()))
}

fn digest(options: &Options) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let (files, mut failed) = files::all(&options.paths);
    let memory = if options.no_pool { Memory::vectors() } else { Memory::pool(options.max_memory, options.chunk)? };

    let (sums, results) = mpsc::channel();
    let printed =
        work::run(&memory, &files, options.chunk, options.readers.into(), options.hashers.into(), sums, || {
            print(&files, results)
        });
    let totals = match printed {
        Ok(totals) => totals,
        // The reader of the output has closed it: not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        Err(error) => return Err(format!("standard output: {error}").into()),
    };
    failed += totals.failed;
    if !options.quiet {
        let seconds = started.elapsed().as_secs_f64();
        eprintln!(
            "{} files, {} bytes, {seconds:.3} s, {} page faults; times that a reader waited for memory: {}",
            files.len(),
            totals.bytes,
            page_faults().map_or("unknown".into(), |faults| faults.to_string()),
            memory.waits(),
        );
        if let Some(stats) = memory.stats() {
            eprintln!("{stats}");
        }
    }
    if failed > 0 { Err(format!("{failed} could not be read").into()) } else { Ok(()) }
}

#[derive(Default)]
struct Totals {
    bytes: u64,
    failed: usize,
}

/// Prints what the hashers found, in the order of the names, each as soon as all before it are there.
fn print(files: &[PathBuf], results: mpsc::Receiver<(usize, io::Result<Sum>)>) -> io::Result<Totals> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut early = BTreeMap::new();
    let mut totals = Totals::default();
    let mut next = 0;
    while next < files.len() {
        let Some(result) = early.remove(&next) else {
            if let Ok((file, result)) = results.try_recv() {
                early.insert(file, result);
                continue;
            }
            // Nothing to do but wait: what is there may be seen meanwhile.
            out.flush()?;
            let (file, result) = results.recv().expect("every file has a result");
            early.insert(file, result);
            continue;
        };
        match result {
            Ok(sum) => {
                totals.bytes += sum.bytes;
                write_line(&mut out, &sum, &files[next])?;
            }
            Err(error) => {
                totals.failed += 1;
                eprintln!("digest: {}: {error}", files[next].display());
            }
        }
        next += 1;
    }
    out.flush()?;
    Ok(totals)
}

/// A line of `sha256sum`: a name with a line break or a backslash in it is escaped, and the line begins with a backslash.
fn write_line(out: &mut impl Write, sum: &Sum, path: &Path) -> io::Result<()> {
    let name = path.as_os_str().as_encoded_bytes();
    if name.iter().any(|byte| b"\\\n\r".contains(byte)) {
        out.write_all(b"\\")?;
    }
    for byte in sum.sha256 {
        write!(out, "{byte:02x}")?;
    }
    out.write_all(b"  ")?;
    for &byte in name {
        match byte {
            b'\\' => out.write_all(b"\\\\")?,
            b'\n' => out.write_all(b"\\n")?,
            b'\r' => out.write_all(b"\\r")?,
            _ => out.write_all(&[byte])?,
        }
    }
    out.write_all(b"\n")
}

/// Pages that this process touched for the first time, so far: what memory that is new costs, and reused memory does not.
fn page_faults() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the program's name, in brackets: its state, and six numbers before the minor faults.
    stat.rsplit_once(") ")?.1.split(' ').nth(7)?.parse().ok()
}

/// Bytes, or KiB, MiB and GiB with a K, M or G behind the number.
fn size(text: &str) -> Result<usize, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = number.parse().map_err(|_| "expected a number of bytes, or one with K, M or G, such as 64K")?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes <= 1 << 40).ok_or_else(|| "expected 1 TiB at most".into())
}

fn chunk(text: &str) -> Result<usize, String> {
    size(text).and_then(|bytes| match bytes {
        0x1000..=0x4000_0000 => Ok(bytes),
        _ => Err("expected a size from 4K to 1G".into()),
    })
}
