//! The two processes. The second one is the same executable, started again with a variable in its environment, so that
//! it shares nothing with the first but what a mechanism shares.

use crate::channel::{End, Prepared};
use crate::control::Control;
use crate::machine::{Pinned, two_cpus};
use crate::plan::{Case, Test};
use crate::{Result, clock, mechanism};
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const VARIABLE: &str = "RAMWAY_BENCH_CHILD";

/// What the second process is told.
#[derive(Serialize, Deserialize)]
struct Assignment {
    control: RawFd,
    cpu: usize,
    cases: Vec<Case>,
    /// One for each channel: mechanism, whether it copies, ticket.
    channels: Vec<(String, bool, String)>,
    /// Which channel a case uses.
    channel_of: Vec<usize>,
}

/// The leading process's side of the pair.
pub(crate) struct Pair {
    pub(crate) control: Control,
    ends: Vec<Box<dyn End>>,
    cases: Vec<Case>,
    channel_of: Vec<usize>,
    child: Reaped,
    _directory: Directory,
    _pinned: Pinned,
}

impl Pair {
    /// Opens every mechanism that the cases need in both processes.
    pub(crate) fn start(cases: &[Case]) -> Result<Self> {
        let directory = Directory::new()?;
        let [cpu, other_cpu] = two_cpus();
        let control = Control::new()?;

        // Cases of the same mechanism and capacity share a channel.
        let mut keys = Vec::new();
        let mut channel_of = Vec::new();
        for case in cases {
            let key = (case.mechanism.clone(), case.copied, case.capacity);
            let at = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            });
            channel_of.push(at);
        }
        let mut inherit = vec![control.fd()];
        let mut channels = Vec::new();
        let mut finishes = Vec::new();
        for (at, (name, copied, capacity)) in keys.into_iter().enumerate() {
            let place = directory.0.join(at.to_string());
            std::fs::create_dir(&place)?;
            let Prepared { ticket, inherit: more, finish } = mechanism::find(&name, copied)?
                .prepare(place.to_str().ok_or("the temporary directory is not UTF-8")?, capacity)
                .map_err(|cause| format!("{name}: {cause}"))?;
            inherit.extend(more);
            channels.push((name, copied, ticket));
            finishes.push(finish);
        }

        let assignment = Assignment {
            control: control.fd(),
            cpu: other_cpu,
            cases: cases.to_vec(),
            channels,
            channel_of: channel_of.clone(),
        };
        let child = Reaped(spawn(&serde_json::to_string(&assignment)?, inherit)?);
        let ends = finishes.into_iter().map(|finish| finish()).collect::<Result<_>>()?;
        let _pinned = Pinned::to(cpu);
        Ok(Self { control, ends, cases: cases.to_vec(), channel_of, child, _directory: directory, _pinned })
    }

    /// Runs one burst of a case. Gives ticks, and how many operations each of them stands for.
    pub(crate) fn burst(&mut self, case: usize) -> Result<(Vec<u64>, u32)> {
        self.burst_after(case, || {})
    }

    /// The same, with something to do while the follower is at it already.
    pub(crate) fn burst_after(&mut self, case: usize, meanwhile: impl FnOnce()) -> Result<(Vec<u64>, u32)> {
        let burst = self.cases[case].burst;
        let mut ticks = Vec::with_capacity(burst.count as usize);
        self.control.start(case)?;
        meanwhile();
        let begin = clock::now();
        let end = &mut self.ends[self.channel_of[case]];
        let outcome = end.lead(&burst, &self.control, &mut ticks).and_then(|()| self.control.finish());
        let elapsed = clock::now() - begin;
        outcome.map_err(|cause| format!("{}: {cause}", self.cases[case].label()))?;
        ticks.extend(self.control.samples());
        if burst.test != Test::OneWay {
            return Ok((ticks, burst.group));
        }
        // A mechanism inside one process says itself how long it took.
        Ok((vec![ticks.first().copied().unwrap_or(elapsed)], burst.count))
    }

    /// Ends the second process in an orderly way.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.control.quit();
        let status = self.child.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the second process ended with {status}").into()) }
    }
}

/// Ends the second process if the first gives up.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory in memory that goes when this does.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let base = PathBuf::from("/dev/shm");
        let base = if base.is_dir() { base } else { std::env::temp_dir() };
        // Relaxed: only the difference of the numbers matters.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("ramway-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|cause| format!("create {}: {cause}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left behind then is a few empty rings in memory, which `ramway clean` would not find either.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn spawn(assignment: &str, inherit: Vec<RawFd>) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    // A test's executable takes this as "run the test of this name"; any other has called `child_main` before it looks.
    command.args(["--exact", CHILD_TEST]).env(VARIABLE, assignment).stdin(Stdio::null()).stdout(Stdio::null());
    let keep = move || {
        for &fd in &inherit {
            // SAFETY: changes a flag of a descriptor; async-signal-safe.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        // SAFETY: asks for a signal when the parent dies, so that no spinning process is left behind.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        Ok(())
    };
    // SAFETY: the closure allocates nothing and calls only async-signal-safe functions.
    unsafe { command.pre_exec(keep) };
    command.spawn().map_err(|cause| format!("start the second process: {cause}").into())
}

/// The test that a test executable runs as the second process.
pub(crate) const CHILD_TEST: &str = "tests::second_process";

/// The whole of the second process, if this is it: gives its exit code, and `None` in any other process. Call it first
/// in `main`.
pub fn child_main() -> Option<i32> {
    let assignment = std::env::var(VARIABLE).ok()?;
    match follow(&assignment) {
        Ok(()) => Some(0),
        Err(cause) => {
            eprintln!("ramway bench, second process: {cause}");
            Some(1)
        }
    }
}

fn follow(assignment: &str) -> Result<()> {
    let assignment: Assignment = serde_json::from_str(assignment)?;
    let _pinned = Pinned::to(assignment.cpu);
    let mut control = Control::inherited(assignment.control)?;
    let outcome = follow_all(&assignment, &mut control);
    if outcome.is_err() {
        control.failed();
    }
    outcome
}

fn follow_all(assignment: &Assignment, control: &mut Control) -> Result<()> {
    let mut ends = Vec::new();
    for (name, copied, ticket) in &assignment.channels {
        ends.push(mechanism::find(name, *copied)?.join(ticket).map_err(|cause| format!("{name}: {cause}"))?);
    }
    while let Some(case) = control.next() {
        let burst = &assignment.cases[case].burst;
        control.ready();
        ends[assignment.channel_of[case]]
            .follow(burst, control)
            .map_err(|cause| format!("{}: {cause}", assignment.cases[case].label()))?;
        control.done();
    }
    Ok(())
}
