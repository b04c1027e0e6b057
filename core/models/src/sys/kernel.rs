//! What the model's kernel knows of one execution: its CPUs and its futexes.

use loom::sync::atomic::{AtomicU32, fence};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32 as StdAtomicU32, AtomicU64, Ordering};

/// Processes of a model, each of one thread on a CPU of its own. More only make more schedules.
pub(crate) const CPUS: usize = 3;

/// One process on its CPU.
pub(crate) struct Cpu {
    /// 1 while it runs. Off the CPU (asleep, or over) it needs no interrupt: a context switch is a full barrier.
    pub(crate) running: AtomicU32,
    /// The number of the last membarrier that asks this CPU for a fence.
    pub(crate) request: AtomicU32,
    /// The number of the last one that it has answered.
    pub(crate) answer: AtomicU32,
    /// How many membarriers have asked so far, and the last that was answered: not part of the model's memory.
    pub(crate) asked: StdAtomicU32,
    pub(crate) answered: StdAtomicU32,
    /// membarrier fails here from now on, as after a seccomp filter.
    pub(crate) forbidden: AtomicBool,
}

pub(crate) struct Kernel {
    pub(crate) cpus: [Cpu; CPUS],
    /// The futexes by the address of their word. The lock is not the model's: it orders nothing.
    pub(crate) futexes: std::sync::Mutex<Vec<(usize, Arc<super::futex::Bucket>)>>,
    /// The data that is overwritten while it is read, with a word for its accesses each.
    pub(crate) overwritten: std::sync::Mutex<Vec<(Range<usize>, Arc<loom::sync::atomic::AtomicU64>)>>,
    /// Nanoseconds that `time_passes` has let pass.
    pub(crate) now: AtomicU64,
    /// Every sleep ends after its time.
    pub(crate) clock_runs: AtomicBool,
}

loom::lazy_static! {
    pub(crate) static ref KERNEL: Kernel = Kernel {
        cpus: std::array::from_fn(|_| Cpu {
            running: AtomicU32::new(0),
            request: AtomicU32::new(0),
            answer: AtomicU32::new(0),
            asked: StdAtomicU32::new(0),
            answered: StdAtomicU32::new(0),
            forbidden: AtomicBool::new(false),
        }),
        futexes: std::sync::Mutex::new(Vec::new()),
        overwritten: std::sync::Mutex::new(Vec::new()),
        now: AtomicU64::new(0),
        clock_runs: AtomicBool::new(false),
    };
}

loom::thread_local! {
    static CPU: Cell<Option<usize>> = Cell::new(None);
}

/// The CPU of the calling thread, if it is one of the model's processes.
pub(crate) fn cpu() -> Option<usize> {
    CPU.with(|cpu| cpu.get())
}

/// Runs `body` as the process on CPU number `cpu`: what it does can be interrupted by another's membarrier.
pub fn process<T>(cpu: usize, body: impl FnOnce() -> T) -> T {
    CPU.with(|mine| mine.set(Some(cpu)));
    schedule_in(Some(cpu));
    let result = body();
    schedule_out(Some(cpu));
    CPU.with(|mine| mine.set(None));
    result
}

/// The CPU, if the thread is on one, begins to run its process: as in Linux, a full barrier between saying so and the process's next access.
pub(crate) fn schedule_in(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    KERNEL.cpus[cpu].running.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// The CPU leaves its process: a full barrier between the process's last access and saying so.
pub(crate) fn schedule_out(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    fence(Ordering::SeqCst);
    KERNEL.cpus[cpu].running.store(0, Ordering::Relaxed);
}

/// Lets the 100 ms of every sleep that is under way pass. Without it they last forever, so that a wake-up that is
/// lost is a deadlock, which loom reports, and not a delay that a watchdog hides.
pub fn time_passes() {
    KERNEL.now.fetch_add(100_000_000, Ordering::Relaxed);
    let all: Vec<_> = KERNEL.futexes.lock().unwrap().iter().map(|(_, bucket)| bucket.clone()).collect();
    for bucket in all {
        bucket.expire();
    }
}

/// From now on every sleep ends after its time.
pub fn clock_runs() {
    KERNEL.clock_runs.store(true, Ordering::Relaxed);
    time_passes();
}
