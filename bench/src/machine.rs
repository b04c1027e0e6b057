//! Which machine, and which two of its processors.

use serde::Serialize;

/// What the figures were taken on.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The processor's name, family and model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// The processors that the two measuring processes were pinned to.
    pub pinned: [usize; 2],
    /// The kernel's release.
    pub kernel: String,
    /// Whether the processor says that it is a virtual machine's.
    pub virtualized: bool,
    /// How many processes wanted to run on average over the minute before: above 1, the tails are theirs.
    pub load: f64,
    /// Ramway's version.
    pub ramway: &'static str,
}

impl Machine {
    pub(crate) fn look(pinned: [usize; 2]) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
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
        Self {
            cpu,
            cpus: allowed().len(),
            pinned,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            virtualized: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            ramway: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Two processors that this process may use; the same one twice if there is only one.
pub(crate) fn two_cpus() -> [usize; 2] {
    let allowed = allowed();
    let first = allowed.first().copied().unwrap_or(0);
    [first, allowed.get(1).copied().unwrap_or(first)]
}

fn allowed() -> Vec<usize> {
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

/// Keeps this thread on one processor, and lets it go where it was when dropped.
pub(crate) struct Pinned {
    before: libc::cpu_set_t,
}

impl Pinned {
    pub(crate) fn to(cpu: usize) -> Self {
        let before = affinity();
        // SAFETY: the set holds one processor that was allowed a moment ago; if it is not any more, nothing happens.
        unsafe {
            let mut set = std::mem::zeroed::<libc::cpu_set_t>();
            libc::CPU_SET(cpu, &mut set);
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
