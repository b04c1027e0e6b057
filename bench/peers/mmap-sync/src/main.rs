//! mmap-sync: the newest value of one writer, in two data files and a state file in memory. Written by `write` of an array of
//! numbers, read in place while the guard of `read` is held, without checking the bytes (its fast way). A writer that finds
//! a reader in the file that it is to overwrite sleeps, by default for a second: here for 1 µs, as it could write no value
//! at the rate of the group otherwise.

use mmap_sync::locks::LockDisabled;
use mmap_sync::synchronizer::Synchronizer;
use ramway_bench::fan::{Fan, OneToMany, Reads, Ticket, Writes};
use ramway_bench::{About, Burst, Failure, Kind, Setup, Test};
use std::path::Path;
use std::time::Duration;
use wyhash::WyHash;

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

/// Nanoseconds that a writer sleeps while a reader is in its way.
const PAUSE: u64 = 1_000;
/// After so long a reader counts as dead.
const GRACE: Duration = Duration::from_secs(1);
const SCRATCH: usize = 1024;

type Values = Synchronizer<WyHash, LockDisabled, SCRATCH, PAUSE>;

#[derive(Clone, Copy)]
struct MmapSync;

struct Side {
    values: Values,
    size: usize,
}

fn open(setup: &Setup) -> Side {
    let path: &Path = &setup.directory.join("value");
    Side { values: Values::with_params(path.as_os_str()), size: setup.largest }
}

fn filled<const N: usize>(fill: impl FnOnce(&mut [u8])) -> [u64; N] {
    let mut words = [0u64; N];
    // SAFETY: the same memory; any bytes are numbers.
    fill(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of::<[u64; N]>()) });
    words
}

fn bytes_of<const N: usize>(words: &[u64; N]) -> &[u8] {
    // SAFETY: the same memory, of which every byte is one of a number.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of::<[u64; N]>()) }
}

impl Writes for Side {
    #[inline(always)]
    fn write(&mut self, _size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        match self.size {
            64 => self.values.write(&filled::<8>(fill), GRACE)?,
            _ => self.values.write(&filled::<512>(fill), GRACE)?,
        };
        Ok(())
    }
}

impl Reads for Side {
    fn next(&mut self, _size: usize, _read: impl FnMut(&[u8])) -> Result<u64> {
        Err("has nothing but the newest value".into())
    }

    #[inline(always)]
    fn newest(&mut self, _size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        // SAFETY: only this program's writer writes the files, arrays of this length.
        unsafe {
            match self.size {
                64 => read(bytes_of(&*self.values.read::<[u64; 8]>(false)?)),
                _ => read(bytes_of(&*self.values.read::<[u64; 512]>(false)?)),
            }
        }
        Ok(())
    }
}

impl Fan for MmapSync {
    type Writer = Side;
    type Reader = Side;

    fn about(&self) -> About {
        About::new("mmap-sync", Kind::Peer, false, "mmap-sync: `write` of an array, `read` in place without checks")
            .version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Latest && matches!(burst.size, 64 | 4096)
    }

    fn writer(&self, setup: &Setup) -> Result<(Side, Ticket)> {
        Ok((open(setup), Ticket::default()))
    }

    fn readers(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Vec<Side>> {
        Ok(vec![open(setup)])
    }
}

fn main() {
    match ramway_bench::child_main(&[&OneToMany(MmapSync)]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
