//! Memory by itself, in one process: the same loops over private memory and over a region's, with the usual pages and
//! with huge ones.

use super::memcpy::Bystander;
use crate::Result;
use crate::case::{Burst, Test};
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup, sum_of};
use crate::clock;
use crate::control::Control;
use ramway::Region;
use std::hint::black_box;
use std::io::Error;
use std::ptr::null_mut;

/// Whose memory, and in which pages.
pub(crate) enum Access {
    /// Anonymous memory of the process.
    Private,
    /// The same in huge pages.
    PrivateHuge,
    /// A Ramway region's bytes.
    Region,
    /// The same in huge pages.
    RegionHuge,
}

const HUGE: usize = 2 << 20;
const WORD: usize = size_of::<u64>();
/// Random reads take one word of each `STRIDE`.
const STRIDE: usize = 4096 / WORD;

/// Private memory.
struct Anonymous {
    start: *mut u8,
    length: usize,
    /// Where what is used begins.
    data: *mut u8,
}

impl Anonymous {
    fn map(length: usize, flags: libc::c_int) -> std::result::Result<Self, Error> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping wherever the kernel puts it.
        let start = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length, data: start.cast() })
    }

    /// In the usual pages, also where the system would make them huge by itself.
    fn small(length: usize) -> Result<Self> {
        let memory = Self::map(length, 0)?;
        memory.advise(libc::MADV_NOHUGEPAGE);
        Ok(memory)
    }

    /// In transparent huge pages, else in reserved ones.
    fn huge(length: usize) -> Result<Self> {
        let length = length.next_multiple_of(HUGE);
        let mut memory = Self::map(length + HUGE, 0)?;
        memory.data = memory.start.wrapping_add(memory.start.align_offset(HUGE));
        memory.advise(libc::MADV_HUGEPAGE);
        // SAFETY: all of the mapping, which is nobody else's yet. Its first write decides what a page is.
        unsafe { memory.start.write_bytes(1, memory.length) };
        if memory.huge_bytes() >= length {
            return Ok(memory);
        }
        drop(memory);
        Self::map(length, libc::MAP_HUGETLB).map_err(|error| {
            let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
            let setting = setting.trim();
            format!(
                "no huge pages: /sys/kernel/mm/transparent_hugepage/enabled is '{setting}' and should allow madvise; \
                 reserved ones (/proc/sys/vm/nr_hugepages): {error}"
            )
            .into()
        })
    }

    fn advise(&self, advice: libc::c_int) {
        // SAFETY: a wish about this mapping; a kernel that does not know it says no.
        unsafe { libc::madvise(self.start.cast(), self.length, advice) };
    }

    /// How many bytes of the mapping are in transparent huge pages.
    fn huge_bytes(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let begins = format!("{:x}-", self.start.addr());
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&begins));
        let field = lines.find_map(|line| line.strip_prefix("AnonHugePages:"));
        let kib = field.and_then(|field| field.trim().strip_suffix(" kB")?.parse::<usize>().ok());
        kib.unwrap_or(0) * 1024
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` has mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

enum Memory {
    Private(Anonymous),
    Region(Region),
}

struct Words {
    memory: Memory,
    count: usize,
    /// What is read at random: one word of each page, the pages in an order of their own and in each page another one.
    order: Vec<u32>,
}

impl Words {
    fn new(memory: Memory, length: usize) -> Self {
        let count = length / WORD;
        let mut words = Self { memory, count, order: Vec::new() };
        // Touched: no pass finds a page that is not there.
        words.words().iter_mut().zip(0..).for_each(|(word, n)| *word = n);
        words.order = order(count);
        words
    }

    fn words(&mut self) -> &mut [u64] {
        let start = match &self.memory {
            Memory::Private(memory) => memory.data,
            // A page's beginning.
            Memory::Region(region) => region.as_ptr(),
        };
        // SAFETY: at least `count` words, aligned; this process alone has them, and `self` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(start.cast(), self.count) }
    }
}

/// A permutation of the pages, and a word in each, that no prefetcher foresees.
fn order(words: usize) -> Vec<u32> {
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut order: Vec<u32> = (0..words / STRIDE).map(|page| (page * STRIDE + random(STRIDE)) as u32).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random(i + 1));
    }
    order
}

#[inline(never)]
fn read(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[inline(never)]
fn write(words: &mut [u64], first: u64) {
    words.iter_mut().zip(0..).for_each(|(word, n)| *word = first.wrapping_add(n));
}

#[inline(never)]
fn read_some(words: &[u64], order: &[u32]) -> u64 {
    order.iter().fold(0, |sum, at| sum.wrapping_add(words[*at as usize]))
}

impl End for Words {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        let order = std::mem::take(&mut self.order);
        let words = self.words();
        let read_all = sum_of(words.len() * WORD, 0);
        let read_random = order.iter().fold(0u64, |sum, at| sum.wrapping_add(u64::from(*at)));
        let mut right = true;
        control.begin();
        for pass in 0..burst.count {
            let begin = clock::now();
            match burst.test {
                Test::SequentialRead => right &= read(black_box(words)) == read_all,
                Test::RandomRead => right &= read_some(black_box(words), &order) == read_random,
                _ => write(black_box(words), pass),
            }
            samples.push(clock::now() - begin);
        }
        control.end();
        if burst.test == Test::SequentialWrite {
            right = read(words) == sum_of(words.len() * WORD, burst.count.saturating_sub(1));
            // As the other tests expect it.
            write(words, 0);
        }
        self.order = order;
        if right { Ok(()) } else { Err("the memory does not hold what was written".into()) }
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Ok(())
    }
}

impl Mechanism for Access {
    fn about(&self) -> About {
        let (name, kind, what) = match self {
            Self::Private => ("private", Kind::ByHand, "anonymous memory of the process, in 4 KiB pages"),
            Self::PrivateHuge => ("private-huge", Kind::ByHand, "anonymous memory of the process, in huge pages"),
            Self::Region => ("region-map", Kind::Ramway, "a region's bytes"),
            Self::RegionHuge => ("region-huge", Kind::Ramway, "a region's bytes, in huge pages"),
        };
        About::new(name, kind, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        matches!(burst.test, Test::SequentialRead | Test::SequentialWrite | Test::RandomRead)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let length = setup.largest;
        let name = setup.directory.join("access");
        let region = |huge| -> Result<Memory> {
            let region = Region::builder().huge_pages(huge).create(&name, length as u64)?;
            // Nobody else opens it, and a run that is killed leaves no gigabyte behind.
            std::fs::remove_file(&name)?;
            Ok(Memory::Region(region))
        };
        let memory = match self {
            Self::Private => Memory::Private(Anonymous::small(length)?),
            Self::PrivateHuge => Memory::Private(Anonymous::huge(length)?),
            Self::Region => region(false)?,
            Self::RegionHuge => region(true)?,
        };
        Ok(Prepared::new("", move || Ok(Box::new(Words::new(memory, length)) as Box<dyn End>)))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}
