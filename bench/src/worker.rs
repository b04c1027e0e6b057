//! A program that measures, and what it is told: version 1 of the protocol.
//!
//! The environment variable `RAMWAY_BENCH_WORKER` holds what a process is to do, as JSON:
//!
//! - `{"list": null}`: print one JSON array of [`About`](crate::About)s on a line and exit with 0.
//! - `{"lead": {"protocol": 1, "mechanism", "setup", "burst", "ps_per_tick"}}`: be the leading process of a pair, start the
//!   following one (how is the program's own business), and open the mechanism in both as [`Setup`] says.
//!   Answer on standard output with one line: `{"ready": {"pids": [leading, following, …]}}`, or `{"cannot": null}` if the
//!   mechanism cannot do this [`Burst`], or `{"failed": "why"}`. Then each line `{"burst": Burst}` on
//!   standard input is answered by one line `{"outcome": Outcome}` or `{"failed": "why"}`; `{"quit": null}` or the end of
//!   the input ends both processes. Between two bursts both sleep.
//!
//! Lines on standard output that do not begin with `{` (with `[` for `list`) are not the worker's own words, and are kept
//! for the text of a failure, as is the last line on standard error. An [`Outcome`] counts what happened during the burst
//! in the two processes and nothing else. A worker of another language need not do more than this. Ramway itself in other
//! languages is measured by agents, which this program leads: see `agents/README.md`.

use crate::case::Burst;
use crate::channel::{End, Mechanism, Prepared, Setup};
use crate::control::{Control, samples_max};
use crate::usage::{Others, Used};
use crate::{Result, clock, machine, usage};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// What a process is told by its environment.
pub(crate) const VARIABLE: &str = "RAMWAY_BENCH_WORKER";
/// The version of all of this.
pub(crate) const PROTOCOL: u32 = 1;

/// The value of the variable.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    List(()),
    Lead(Lead),
    /// From a leading process of this library to its following one, hence not part of the protocol.
    Follow(Follow),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Lead {
    pub(crate) protocol: u32,
    pub(crate) mechanism: String,
    pub(crate) setup: Setup,
    pub(crate) burst: Burst,
    /// Of the time stamp counter, so that nobody needs to measure it again.
    pub(crate) ps_per_tick: f64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Follow {
    mechanism: String,
    setup: Setup,
    ticket: String,
    control: RawFd,
    ps_per_tick: f64,
}

/// A line to the leading process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    Burst(Burst),
    Quit(()),
}

/// A line from the leading process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Ready(Ready),
    Cannot(()),
    Outcome(Outcome),
    Failed(String),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The leading process, the following one, and others that work for the mechanism.
    pub(crate) pids: Vec<u32>,
}

/// What one burst measured, in both processes: the leading one's first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Picoseconds from the first operation's begin until both sides were through.
    pub elapsed_ps: u64,
    /// How many operations that were: those of the burst, or of a stream that loses messages those that arrived.
    pub operations: u64,
    /// Picoseconds of every `group` operations, one after the other.
    pub samples_ps: Vec<u64>,
    /// Processor time, user and system.
    pub cpu_ns: [u64; 2],
    /// The most bytes that were resident.
    pub peak_rss: [u64; 2],
    /// Of which shared memory.
    pub shared: [u64; 2],
    /// Voluntary and involuntary.
    pub context_switches: [u64; 2],
    /// `None` if the program does not count.
    pub allocations: Option<[u64; 2]>,
    /// Bytes taken from a heap that a garbage collector looks after; `None` where there is no such heap.
    #[serde(default)]
    pub allocated_bytes: Option<[u64; 2]>,
    /// Picoseconds of parts of all operations together, by name.
    pub parts: Vec<(String, u64)>,
    /// Plain numbers of the burst as a whole, by name; none unless a mechanism says some.
    #[serde(default)]
    pub ratios: Vec<(String, f64)>,
}

/// The whole of a measuring process, if this is one: gives its exit code, and `None` in any other process. Call it first
/// in `main`, with everything that this program can measure.
pub fn child_main(mechanisms: &[&dyn Mechanism]) -> Option<i32> {
    let order = std::env::var(VARIABLE).ok()?;
    let outcome = match serde_json::from_str(&order) {
        Ok(Order::List(())) => list(mechanisms),
        #[cfg(feature = "command")]
        Ok(Order::Lead(order)) if crate::agents::of_this_process().is_some() => {
            crate::agents::lead(&crate::agents::of_this_process().unwrap_or_default(), &order)
        }
        Ok(Order::Lead(order)) => lead(mechanisms, order),
        Ok(Order::Follow(order)) => follow(mechanisms, order),
        Err(cause) => Err(format!("{VARIABLE}: {cause}").into()),
    };
    match outcome {
        Ok(()) => Some(0),
        Err(cause) => {
            eprintln!("{cause}");
            Some(1)
        }
    }
}

fn list(mechanisms: &[&dyn Mechanism]) -> Result<()> {
    let all: Vec<_> = mechanisms.iter().map(|mechanism| mechanism.about()).collect();
    say(&serde_json::to_string(&all)?)
}

fn find<'a>(mechanisms: &[&'a dyn Mechanism], name: &str) -> Result<&'a dyn Mechanism> {
    let found = mechanisms.iter().find(|mechanism| mechanism.about().name == name);
    found.copied().ok_or_else(|| format!("no mechanism here is called {name}").into())
}

/// A line on standard output, past whatever has captured `print!`.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}

fn answer(answer: &Answer) -> Result<()> {
    say(&serde_json::to_string(answer)?)
}

fn lead(mechanisms: &[&dyn Mechanism], order: Lead) -> Result<()> {
    let mut pair = match open(mechanisms, &order) {
        Ok(Some(pair)) => pair,
        Ok(None) => return answer(&Answer::Cannot(())),
        Err(cause) => return answer(&Answer::Failed(cause.to_string())),
    };
    let mut pids = vec![std::process::id(), pair.follower.0.id()];
    pids.extend(&pair.others);
    answer(&Answer::Ready(Ready { pids }))?;
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Ask::Burst(burst) => match pair.burst(&burst) {
                Ok(outcome) => answer(&Answer::Outcome(outcome))?,
                Err(cause) => return answer(&Answer::Failed(cause.to_string())),
            },
            Ask::Quit(()) => break,
        }
    }
    pair.stop()
}

/// The leading process's side of a pair; `None` if the mechanism cannot do what it is wanted for.
fn open(mechanisms: &[&dyn Mechanism], order: &Lead) -> Result<Option<Pair>> {
    if order.protocol != PROTOCOL {
        return Err(format!("speaks version {PROTOCOL} of the protocol, not {}", order.protocol).into());
    }
    let mechanism = find(mechanisms, &order.mechanism)?;
    if !mechanism.can(&order.burst) {
        return Ok(None);
    }
    clock::learn(order.ps_per_tick);
    // Before anything is opened: threads that the mechanism starts stay where their process is.
    machine::settle(order.setup.cpus[0], order.setup.realtime)?;
    let Prepared { ticket, mut inherit, processes, finish } = mechanism.prepare(&order.setup)?;
    let control = Control::new()?;
    inherit.push(control.fd());
    let follow = Follow {
        mechanism: order.mechanism.clone(),
        setup: order.setup.clone(),
        ticket,
        control: control.fd(),
        ps_per_tick: order.ps_per_tick,
    };
    watch_follower();
    let follower = Reaped(spawn(&serde_json::to_string(&Order::Follow(follow))?, inherit)?);
    FOLLOWER.store(follower.0.id() as i32, SeqCst);
    // It may have died before the handler knew it.
    end_if_follower_died();
    let end = finish()?;
    Ok(Some(Pair { end, control, follower, others: processes, samples: Vec::new() }))
}

struct Pair {
    end: Box<dyn End>,
    control: Control,
    follower: Reaped,
    others: Vec<u32>,
    samples: Vec<u64>,
}

impl Pair {
    fn burst(&mut self, burst: &Burst) -> Result<Outcome> {
        let samples = burst.count / u64::from(burst.group.max(1)) + 1;
        self.samples.clear();
        self.samples.reserve(samples.min(1 << 24) as usize);
        usage::forget_peak();
        self.control.start(burst)?;
        let others = Others::begin(&self.others);
        self.control.go();
        self.end.lead(burst, &self.control, &mut self.samples)?;
        self.control.end();
        self.control.finish()?;
        let ps = |ticks| clock::ps(ticks) as u64;
        let mut used = self.control.used();
        others.add_to(&mut used[1]);
        let both = |of: fn(&Used) -> u64| [of(&used[0]), of(&used[1])];
        let samples = self.samples.iter().copied().chain(self.control.samples());
        Ok(Outcome {
            elapsed_ps: ps(self.control.elapsed()),
            operations: self.control.counted().unwrap_or(burst.count),
            samples_ps: samples.map(ps).collect(),
            cpu_ns: both(|used| used.cpu_ns),
            peak_rss: both(|used| used.peak_rss),
            shared: both(|used| used.shared),
            context_switches: both(|used| used.context_switches),
            allocations: used[0].allocations.zip(used[1].allocations).map(|(a, b)| [a, b]),
            allocated_bytes: None,
            parts: self.control.parts().into_iter().map(|(name, ticks)| (name, ps(ticks))).collect(),
            ratios: self.control.ratios(),
        })
    }

    /// Ends the following process in an orderly way.
    fn stop(mut self) -> Result<()> {
        FOLLOWER.store(0, SeqCst);
        self.control.quit();
        let status = self.follower.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the second process ended with {status}").into()) }
    }
}

/// Ends the following process if the leading one gives up.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        FOLLOWER.store(0, SeqCst);
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process whose death ends this one, or 0.
static FOLLOWER: AtomicI32 = AtomicI32::new(0);

/// A leading process may be polling a word that nobody will ever write again.
fn watch_follower() {
    extern "C" fn on_child(_: libc::c_int) {
        end_if_follower_died();
    }
    // SAFETY: a zeroed sigaction is an empty mask; the handler calls only what is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}

/// Async-signal-safe: says that the follower died, and ends this process, if it did.
fn end_if_follower_died() {
    const SAID: &[u8] = b"{\"failed\":\"the second process died\"}\n";
    let follower = FOLLOWER.load(SeqCst);
    if follower == 0 {
        return;
    }
    // SAFETY: waitid fills in the zeroed struct and leaves the child to be reaped; write and _exit take plain values.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(libc::P_PID, follower as libc::id_t, &mut info, flags) == 0 && info.si_pid() == follower {
            libc::write(1, SAID.as_ptr().cast(), SAID.len());
            libc::_exit(1);
        }
    }
}

fn spawn(order: &str, inherit: Vec<RawFd>) -> Result<Child> {
    // The same program in the same way: a test's executable is told by its arguments which test to be.
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(VARIABLE, order).stdin(Stdio::null()).stdout(Stdio::null());
    let leader = std::process::id();
    let keep = move || {
        for &fd in &inherit {
            // SAFETY: changes a flag of a descriptor; async-signal-safe.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        die_with(leader)
    };
    // SAFETY: the closure allocates nothing and calls only async-signal-safe functions.
    unsafe { command.pre_exec(keep) };
    command.spawn().map_err(|cause| format!("start the second process: {cause}").into())
}

/// In a child before its exec: asks for a signal when the parent dies, so that no spinning process is left behind.
pub(crate) fn die_with(parent: u32) -> std::io::Result<()> {
    // SAFETY: both take and give plain values.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent as i32 {
            return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

fn follow(mechanisms: &[&dyn Mechanism], order: Follow) -> Result<()> {
    clock::learn(order.ps_per_tick);
    let mut control = Control::inherited(order.control)?;
    let outcome = follow_all(mechanisms, &order, &mut control);
    if outcome.is_err() {
        control.failed();
    }
    outcome
}

fn follow_all(mechanisms: &[&dyn Mechanism], order: &Follow, control: &mut Control) -> Result<()> {
    machine::settle(order.setup.cpus[1], order.setup.realtime)?;
    let mut end = find(mechanisms, &order.mechanism)?.join(&order.setup, &order.ticket)?;
    while let Some(burst) = control.next()? {
        let most = samples_max(burst.test);
        if burst.count / u64::from(burst.group.max(1)) > most {
            return Err(format!("more than {most} samples in one burst").into());
        }
        usage::forget_peak();
        control.ready()?;
        end.follow(&burst, control)?;
        control.end();
        control.done();
    }
    Ok(())
}
