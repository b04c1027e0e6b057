//! Which machine, and which two of its processors.

use crate::{Result, clock};
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::io::Error;

/// What the figures were taken on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// The processor's name, family and model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// The processors that measuring processes are pinned to.
    pub pinned: [usize; 2],
    /// Whether those two are threads of one core; `None` if the kernel does not say.
    pub same_core: Option<bool>,
    /// The kernel's release.
    pub kernel: String,
    /// Whether the processor says that it is a virtual machine's.
    pub virtualized: bool,
    /// How many processes wanted to run on average over the minute before: above 1, the tails are theirs.
    pub load: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// The frequency governor, if there is one to be seen.
    pub governor: Option<String>,
    /// Whether the processor may run above its nominal frequency; `None` if the kernel does not say.
    pub turbo: Option<bool>,
    /// The setting of transparent huge pages: for memory, and for shared memory.
    pub huge_pages: [String; 2],
    /// The C library.
    pub libc: String,
    /// What time is read from.
    pub time_source: String,
    /// Ramway's version.
    pub ramway: String,
    /// The compiler, if it is known.
    pub rustc: Option<String>,
}

impl Machine {
    pub(crate) fn read(pinned: [usize; 2]) -> Self {
        let read = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
        let info = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let cpu = match (field("cpu family"), field("model")) {
            (Some(family), Some(model)) => format!("{name} (family {family} model {model})"),
            _ => name,
        };
        let system = "/sys/devices/system/cpu";
        let huge = |file: &str| chosen(&read(&format!("/sys/kernel/mm/transparent_hugepage/{file}")));
        Self {
            cpu,
            cpus: allowed().len(),
            pinned,
            same_core: share_a_core(pinned),
            kernel: read("/proc/sys/kernel/osrelease"),
            virtualized: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            memory: total_memory(&read("/proc/meminfo")),
            governor: some(read(&format!("{system}/cpu{}/cpufreq/scaling_governor", pinned[0]))),
            turbo: match (read(&format!("{system}/intel_pstate/no_turbo")), read(&format!("{system}/cpufreq/boost"))) {
                (no_turbo, _) if !no_turbo.is_empty() => Some(no_turbo == "0"),
                (_, boost) if !boost.is_empty() => Some(boost == "1"),
                _ => None,
            },
            huge_pages: [huge("enabled"), huge("shmem_enabled")],
            libc: libc_version(),
            time_source: clock::source().to_owned(),
            ramway: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: option_env!("RAMWAY_BENCH_RUSTC").map(str::to_owned),
        }
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The word in brackets of "always [madvise] never".
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(word, _)| word).to_owned()
}

fn total_memory(meminfo: &str) -> u64 {
    let kibibytes = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    kibibytes.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn share_a_core([a, b]: [usize; 2]) -> Option<bool> {
    let text = read_to_string(format!("/sys/devices/system/cpu/cpu{a}/topology/thread_siblings_list")).ok()?;
    // "0,64" or "0-1".
    let within = |part: &str| match part.split_once('-') {
        Some((from, to)) => Some((from.parse::<usize>().ok()?..=to.parse().ok()?).contains(&b)),
        None => Some(part.parse::<usize>().ok()? == b),
    };
    Some(text.trim().split(',').any(|part| within(part) == Some(true)))
}

fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: a constant string of the C library.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        if cfg!(target_env = "musl") { "musl".to_owned() } else { "unknown".to_owned() }
    }
}

/// Two processors that this process may use; the same one twice if there is only one.
pub(crate) fn two_cpus() -> [usize; 2] {
    let allowed = allowed();
    let first = allowed.first().copied().unwrap_or(0);
    [first, allowed.get(1).copied().unwrap_or(first)]
}

pub(crate) fn allowed() -> Vec<usize> {
    let set = affinity();
    // SAFETY: CPU_ISSET only reads the set, and the index is below its size.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn affinity() -> libc::cpu_set_t {
    // SAFETY: a zeroed set is an empty one, and the kernel fills in no more than its size.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    }
}

/// Puts a measuring process where it belongs: what it starts from now on stays there with it.
pub(crate) fn settle(cpu: Option<usize>, realtime: bool) -> Result<()> {
    if let Some(cpu) = cpu {
        // For the life of the process.
        std::mem::forget(Pinned::to(Some(cpu)));
    }
    if realtime { become_realtime() } else { Ok(()) }
}

/// The same for another program's process, in the child before its exec, which it outlives. What memory it locks is its own business.
///
/// # Errors
/// The system's, as for [`settle`].
#[cfg(feature = "command")]
pub(crate) fn settle_child(cpu: Option<usize>, realtime: bool) -> std::io::Result<()> {
    std::mem::forget(Pinned::to(cpu));
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: reads the struct that it is given; concerns this process and what it starts.
    if realtime && unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

/// Whether these processors can be pinned to.
pub(crate) fn may_use(cpus: [Option<usize>; 2]) -> Result<()> {
    let allowed = allowed();
    match cpus.into_iter().flatten().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(format!("processor {cpu} is not among those that are allowed: {allowed:?}").into()),
        None => Ok(()),
    }
}

/// Fails early where [`settle`] would fail in every process.
pub(crate) fn may_be_realtime(cpus: [Option<usize>; 2]) -> Result<()> {
    let one = matches!(cpus, [Some(a), Some(b)] if a == b) || allowed().len() < 2;
    if one {
        return Err("real time needs two processors: two that poll on one would stop the machine".into());
    }
    // In a thread of its own, which takes the scheduling policy with it.
    let outcome = std::thread::spawn(become_realtime).join();
    // SAFETY: undoes the locking, which is the whole process's.
    unsafe { libc::munlockall() };
    outcome.map_err(|_| "asking for real time failed")?
}

fn become_realtime() -> Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: reads the struct that it is given; concerns this thread and what it starts.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
        let cause = Error::last_os_error();
        let what =
            "SCHED_FIFO is refused: it needs CAP_SYS_NICE or a limit of real-time priority (ulimit -r) of 1 or more";
        return Err(format!("{what}: {cause}").into());
    }
    // SAFETY: takes plain values.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        let cause = Error::last_os_error();
        let what = "locking memory is refused: it needs CAP_IPC_LOCK or a larger limit of locked memory (ulimit -l)";
        return Err(format!("{what}: {cause}").into());
    }
    Ok(())
}

/// Keeps this thread on one processor, and lets it go where it was when dropped. For an end of a mechanism that has a
/// thread of its own for the following process's half.
pub struct Pinned {
    before: libc::cpu_set_t,
}

impl Pinned {
    /// To this processor; `None` changes nothing.
    pub fn to(cpu: Option<usize>) -> Self {
        let before = affinity();
        if let Some(cpu) = cpu.filter(|&cpu| cpu < libc::CPU_SETSIZE as usize) {
            // SAFETY: the set holds one processor that was allowed a moment ago; if it is not any more, nothing happens.
            unsafe {
                let mut set = std::mem::zeroed::<libc::cpu_set_t>();
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &set);
            }
        }
        Self { before }
    }

    /// To whatever processors this process may use.
    pub(crate) fn nowhere() -> Self {
        let before = affinity();
        // SAFETY: a full set on the stack, of which the system takes what is allowed.
        unsafe {
            let mut set = std::mem::zeroed::<libc::cpu_set_t>();
            (0..libc::CPU_SETSIZE as usize).for_each(|cpu| libc::CPU_SET(cpu, &mut set));
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
        Self { before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: puts back the set that this thread had.
        unsafe { libc::sched_setaffinity(0, size_of_val(&self.before), &self.before) };
    }
}
