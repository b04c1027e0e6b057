//! What a process uses during a burst: processor, memory, context switches, allocations.

use crate::clock;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64};

/// What one process used in one burst.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) cpu_ns: u64,
    pub(crate) peak_rss: u64,
    pub(crate) shared: u64,
    pub(crate) context_switches: u64,
    /// `None` if the program does not count.
    pub(crate) allocations: Option<u64>,
}

impl Used {
    pub(crate) const WORDS: usize = 5;

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let allocations = self.allocations.unwrap_or(u64::MAX);
        [self.cpu_ns, self.peak_rss, self.shared, self.context_switches, allocations]
    }

    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [cpu_ns, peak_rss, shared, context_switches, allocations] = words;
        let allocations = (allocations != u64::MAX).then_some(allocations);
        Self { cpu_ns, peak_rss, shared, context_switches, allocations }
    }
}

/// The counters at the beginning of a burst.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    cpu_ns: u64,
    context_switches: u64,
    allocations: u64,
}

impl Usage {
    pub(crate) fn begin() -> Self {
        Self {
            context_switches: context_switches(),
            // Relaxed: the burst's allocations are this process's own.
            allocations: ALLOCATIONS.load(Relaxed),
            cpu_ns: clock::read_ns(libc::CLOCK_PROCESS_CPUTIME_ID),
        }
    }

    pub(crate) fn end(self) -> Used {
        let cpu_ns = clock::read_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        let allocations = ALLOCATIONS.load(Relaxed);
        let context_switches = context_switches();
        let [peak_rss, shared] = memory();
        Used {
            cpu_ns: cpu_ns - self.cpu_ns,
            peak_rss,
            shared,
            context_switches: context_switches.saturating_sub(self.context_switches),
            // A program that counts has allocated long before its first burst.
            allocations: (allocations > 0 && counts() == Counts::Calls).then(|| allocations - self.allocations),
        }
    }
}

/// Voluntary and involuntary.
fn context_switches() -> u64 {
    // SAFETY: a zeroed struct that the call fills in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        (usage.ru_nvcsw + usage.ru_nivcsw) as u64
    }
}

/// Sets the peak of the resident memory back to what is resident now. Where the kernel refuses, the peak is that of the
/// process's life.
pub(crate) fn forget_peak() {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| OpenOptions::new().write(true).open("/proc/self/clear_refs").ok());
    if let Some(mut file) = file.as_ref() {
        let _ = file.write_all(b"5");
    }
}

/// Bytes: the peak of what is resident, and how much of what is resident now is shared memory.
fn memory() -> [u64; 2] {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let mut text = [0; 4096];
    let file = FILE.get_or_init(|| File::open("/proc/self/status").ok());
    let len = file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
    let text = std::str::from_utf8(&text[..len]).unwrap_or("");
    ["VmHWM:", "RssShmem:"].map(|name| kibibytes(text, name))
}

fn kibibytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Processes beside the two that measure: what they have used so far.
pub(crate) struct Others<'a> {
    pids: &'a [u32],
    cpu_ns: u64,
    context_switches: u64,
}

impl<'a> Others<'a> {
    pub(crate) fn begin(pids: &'a [u32]) -> Self {
        let [cpu_ns, context_switches] = so_far(pids);
        Self { pids, cpu_ns, context_switches }
    }

    /// Adds what they used since.
    pub(crate) fn add_to(self, used: &mut Used) {
        let [cpu_ns, context_switches] = so_far(self.pids);
        used.cpu_ns += cpu_ns.saturating_sub(self.cpu_ns);
        used.context_switches += context_switches.saturating_sub(self.context_switches);
        for pid in self.pids {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            used.peak_rss += kibibytes(&status, "VmHWM:");
            used.shared += kibibytes(&status, "RssShmem:");
        }
    }
}

/// Another process that measures: its counters at the beginning of a burst.
#[cfg(feature = "command")]
pub(crate) struct Watched {
    pid: u32,
    cpu_ns: u64,
    context_switches: u64,
}

#[cfg(feature = "command")]
impl Watched {
    /// The peak of its resident memory is what is resident now, where the kernel lets it be.
    pub(crate) fn begin(pid: u32) -> Self {
        let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        Self { pid, context_switches: so_far(&[pid])[1], cpu_ns: cpu_ns(pid) }
    }

    /// What it used since.
    pub(crate) fn end(self) -> Used {
        let cpu_ns = cpu_ns(self.pid).saturating_sub(self.cpu_ns);
        let context_switches = so_far(&[self.pid])[1].saturating_sub(self.context_switches);
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let [peak_rss, shared] = ["VmHWM:", "RssShmem:"].map(|name| kibibytes(&status, name));
        Used { cpu_ns, peak_rss, shared, context_switches, allocations: None }
    }
}

/// Processor time of a process, that of threads that have ended too.
#[cfg(feature = "command")]
fn cpu_ns(pid: u32) -> u64 {
    let mut clock = 0;
    // SAFETY: writes the number that it is given.
    if unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) } != 0 {
        return 0;
    }
    clock::read_ns(clock)
}

/// Processor time and context switches of all threads of these processes.
fn so_far(pids: &[u32]) -> [u64; 2] {
    let mut sums = [0; 2];
    for pid in pids {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            sums[0] += read("schedstat").split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
            let switches = |line: &str| line.split_once("ctxt_switches:")?.1.trim().parse::<u64>().ok();
            sums[1] += read("status").lines().filter_map(switches).sum::<u64>();
        }
    }
    sums
}

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes that were allocated and not freed since they are counted.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// What of [`Counts`] the allocator does.
static COUNTS: AtomicU8 = AtomicU8::new(Counts::Calls as u8);

/// What a [`CountingAllocator`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Counts {
    /// Allocations.
    Calls,
    /// Nothing: where an allocation is what is measured, an atomic operation would be a good part of it.
    Nothing,
    /// Bytes, from nothing on.
    Bytes,
}

/// From now on, in all threads.
pub(crate) fn count(what: Counts) {
    if what == Counts::Bytes {
        LIVE.store(0, Relaxed);
    }
    // Relaxed, all of them: the threads that are measured begin later.
    COUNTS.store(what as u8, Relaxed);
}

fn counts() -> Counts {
    match COUNTS.load(Relaxed) {
        0 => Counts::Calls,
        1 => Counts::Nothing,
        _ => Counts::Bytes,
    }
}

/// What [`Counts::Bytes`] has counted.
pub(crate) fn live_bytes() -> i64 {
    LIVE.load(Relaxed)
}

#[inline(always)]
fn allocated(bytes: i64, calls: u64) {
    match counts() {
        // Relaxed: a count, which orders nothing.
        Counts::Calls => _ = ALLOCATIONS.fetch_add(calls, Relaxed),
        Counts::Nothing => {}
        Counts::Bytes => _ = LIVE.fetch_add(bytes, Relaxed),
    }
}

/// The system's allocator, counting. A program that measures installs it, and the report says how many allocations an
/// operation costs:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;
/// ```
pub struct CountingAllocator;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size() as i64, 1);
        // SAFETY: the caller's promises are those that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size() as i64, 1);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        allocated(size as i64 - layout.size() as i64, 1);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if counts() == Counts::Bytes {
            allocated(-(layout.size() as i64), 0);
        }
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
