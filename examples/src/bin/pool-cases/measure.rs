//! Ways of doing the same, timed in turns.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Deref;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

type Way<'a> = Box<dyn FnMut() -> Duration + 'a>;

pub struct Case<'a> {
    name: String,
    /// How many operations a call of each way is.
    count: usize,
    ways: Vec<(&'static str, Way<'a>)>,
}

impl<'a> Case<'a> {
    pub fn new(name: impl Into<String>, count: usize) -> Self {
        Self { name: name.into(), count, ways: Vec::new() }
    }

    pub fn way(mut self, name: &'static str, way: impl FnMut() -> Duration + 'a) -> Self {
        self.ways.push((name, Box::new(way)));
        self
    }

    /// Runs the ways in turns, once more than `rounds` (the first does not count), and prints what an operation took.
    pub fn print(mut self, out: &mut impl Write, rounds: usize) -> io::Result<()> {
        let mut times = vec![Vec::new(); self.ways.len()];
        let mut faults = vec![Vec::new(); self.ways.len()];
        for round in 0..=rounds {
            for (number, (_, way)) in self.ways.iter_mut().enumerate() {
                let before = page_faults();
                let took = way();
                if round > 0 {
                    times[number].push(took.as_secs_f64() * 1e6 / self.count as f64);
                    faults[number].push((page_faults() - before) as f64 / self.count as f64);
                }
            }
        }
        writeln!(out, "{}", self.name)?;
        for (((name, _), mut times), mut faults) in self.ways.into_iter().zip(times).zip(faults) {
            times.sort_by(f64::total_cmp);
            faults.sort_by(f64::total_cmp);
            let middle = times.len() / 2;
            writeln!(out, "  {name:<36} {:>12.1} {:>12.1} {:>12.1}", times[0], times[middle], faults[middle])?;
        }
        Ok(())
    }
}

pub fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Bytes that differ from number to number.
pub fn fill(bytes: &mut [u8], number: usize) {
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = (place * 31 + place / 4093 + number * 7) as u8;
    }
}

/// Page faults of this process so far for which nothing was read from a disk.
pub fn page_faults() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    // After the program's name, in brackets: its state, and six numbers before the minor faults.
    let rest = stat.rsplit_once(") ").expect("a name in brackets").1;
    rest.split(' ').nth(7).and_then(|number| number.parse().ok()).expect("a number")
}

/// Bytes of this process that are in memory.
pub fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split(' ').nth(1).and_then(|number| number.parse().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

/// A file mapped to be read, which nobody writes to meanwhile.
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    pub fn new(file: &File, length: usize) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        // SAFETY: at an address of the system's choice, so that nothing else is there.
        let start = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        Self { start: NonNull::new(start.expect("a file of this length").cast()).expect("not at 0"), length }
    }
}

impl Deref for Mapping {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped until this is dropped; the file is this program's own, and it is written no more.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
