//! How many system calls an operation costs, counted from outside: both processes are traced for a burst.
//!
//! The tracer is a thread of its own. Whatever happens to it, its end releases what it traced: no process stays stopped.

use crate::Result;
use std::collections::HashMap;
use std::fs::read_dir;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How long a traced burst may take before it goes on untraced.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a thread may take to stop when it is asked to.
const STOP: Duration = Duration::from_secs(1);

/// Runs a burst and gives how many system calls the two processes made meanwhile; `None` where tracing is refused.
///
/// # Errors
/// The burst's.
pub(crate) fn during(pids: [u32; 2], burst: impl FnOnce() -> Result<()>) -> Result<Option<[u64; 2]>> {
    let stop = AtomicBool::new(false);
    let (armed, is_armed) = channel();
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(pids, &stop, &armed));
        let traced = is_armed.recv().unwrap_or(false);
        let outcome = if traced { burst() } else { Ok(()) };
        // Relaxed: the thread looks at it again and again.
        stop.store(true, Ordering::Relaxed);
        let counts = tracer.join().unwrap_or(None);
        outcome.map(|()| counts)
    })
}

/// One traced thread.
struct Task {
    process: usize,
    /// Between its stop and its detachment or its end.
    stopped: bool,
}

struct Tracer {
    pids: [u32; 2],
    tasks: HashMap<i32, Task>,
    counts: [u64; 2],
}

fn trace(pids: [u32; 2], stop: &AtomicBool, armed: &Sender<bool>) -> Option<[u64; 2]> {
    let mut tracer = Tracer { pids, tasks: HashMap::new(), counts: [0; 2] };
    let attached = tracer.attach();
    // The other thread waits for this as long as this one lives.
    let _ = armed.send(attached);
    if !attached {
        return None;
    }
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) && began.elapsed() < WAIT_MAX {
        if !tracer.step(true) {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
    let complete = began.elapsed() < WAIT_MAX;
    tracer.detach();
    complete.then_some(tracer.counts)
}

impl Tracer {
    /// Every thread of both processes; gives whether that was allowed.
    fn attach(&mut self) -> bool {
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
        for (process, pid) in self.pids.into_iter().enumerate() {
            for task in threads(pid) {
                // A thread that has ended meanwhile cannot be traced.
                if ptrace(libc::PTRACE_SEIZE, task, options as usize) {
                    ptrace(libc::PTRACE_INTERRUPT, task, 0);
                    self.tasks.insert(task, Task { process, stopped: false });
                }
            }
            if !self.tasks.values().any(|task| task.process == process) {
                return false;
            }
        }
        // From their first stop on, they stop at system calls.
        let began = Instant::now();
        let mut waiting: Vec<i32> = self.tasks.keys().copied().collect();
        while !waiting.is_empty() && began.elapsed() < STOP {
            waiting.retain(|&task| !self.poll(task, true));
            std::thread::sleep(Duration::from_micros(20));
        }
        waiting.is_empty()
    }

    /// Looks at every thread once; gives whether any had something to say.
    fn step(&mut self, resume: bool) -> bool {
        let tasks: Vec<i32> = self.tasks.keys().copied().collect();
        // All of them, not up to the first.
        tasks.into_iter().filter(|&task| self.poll(task, resume)).count() > 0
    }

    /// Handles a thread's stop, if it has stopped.
    fn poll(&mut self, task: i32, resume: bool) -> bool {
        let mut status = 0;
        let flags = libc::WNOHANG | libc::__WALL;
        // SAFETY: writes the int that it is given. A particular thread of ours: no other child is reaped.
        if unsafe { libc::waitpid(task, &mut status, flags) } != task {
            return false;
        }
        if !libc::WIFSTOPPED(status) {
            self.tasks.remove(&task);
            return true;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if signal == libc::SIGTRAP | 0x80 {
            if let Some(known) = self.tasks.get(&task)
                && is_entry(task)
            {
                self.counts[known.process] += 1;
            }
        } else if event == libc::PTRACE_EVENT_CLONE {
            self.adopt(task);
        }
        if let Some(known) = self.tasks.get_mut(&task) {
            known.stopped = true;
        }
        if resume {
            // A signal of its own is handed on; stops of ours are not.
            let deliver =
                if event == 0 && signal != libc::SIGTRAP | 0x80 && signal != libc::SIGTRAP { signal } else { 0 };
            ptrace(libc::PTRACE_SYSCALL, task, deliver as usize);
            if let Some(known) = self.tasks.get_mut(&task) {
                known.stopped = false;
            }
        }
        true
    }

    /// A thread that a traced one has made is traced as well, and is about to stop.
    fn adopt(&mut self, parent: i32) {
        let mut new: libc::c_ulong = 0;
        // SAFETY: writes the word that it is given; the parent is stopped.
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, parent, 0usize, &raw mut new) };
        if let Some(process) = self.tasks.get(&parent).map(|task| task.process) {
            self.tasks.entry(new as i32).or_insert(Task { process, stopped: false });
        }
    }

    /// Lets every thread go.
    fn detach(&mut self) {
        for (&task, known) in &self.tasks {
            if !known.stopped {
                ptrace(libc::PTRACE_INTERRUPT, task, 0);
            }
        }
        let began = Instant::now();
        while !self.tasks.is_empty() && began.elapsed() < STOP {
            self.step(false);
            self.tasks.retain(|&task, known| !(known.stopped && ptrace(libc::PTRACE_DETACH, task, 0)));
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

fn threads(pid: u32) -> Vec<i32> {
    let entries = read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_entry(task: i32) -> bool {
    const ENTRY: u8 = 1;
    let mut info = [0u8; 128];
    // SAFETY: the kernel writes no more than the length that it is told.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, task, info.len(), info.as_mut_ptr()) };
    got > 0 && info[0] == ENTRY
}

/// A request that takes a number.
fn ptrace(request: libc::c_uint, task: i32, data: usize) -> bool {
    // SAFETY: these requests read and write no memory of this process.
    unsafe { libc::ptrace(request, task, 0usize, data) == 0 }
}
