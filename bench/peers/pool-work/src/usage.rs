//! What this process has used so far, and what the machine has.

use crate::Result;
use std::path::Path;

/// Counters of all threads of this process; take the difference of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Page faults for which nothing was read from a disk.
    pub faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Nanoseconds of processor time in the program, in ticks of the kernel.
    pub user_ns: u64,
    /// Nanoseconds of processor time in the kernel.
    pub system_ns: u64,
}

impl Usage {
    /// Until now.
    pub fn now() -> Self {
        // SAFETY: a zeroed struct that the call fills in.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self {
            faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }

    /// Since an earlier one.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            faults: self.faults - earlier.faults,
            major_faults: self.major_faults - earlier.major_faults,
            // The two are scaled to their exact sum at each look, so that one may go back a little.
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// Bytes of resident memory: now, and the most there ever was; 0 where the kernel does not say.
pub fn resident() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|name| kibibytes(&status, name))
}

/// Bytes of memory that programs can still have, if the kernel says.
pub fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(kibibytes(&info, "MemAvailable:")).filter(|&bytes| bytes > 0)
}

fn kibibytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// What the file system of a directory is: bytes that are free for us, and whether it is memory and no disk.
pub fn file_system(directory: &Path) -> Result<(u64, bool)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: a zeroed struct that the call fills in, and a string that ends with 0.
    let (status, info) = unsafe {
        let mut info: libc::statfs = std::mem::zeroed();
        (libc::statfs(path.as_ptr(), &mut info), info)
    };
    if status != 0 {
        return Err(format!("{}: {}", directory.display(), std::io::Error::last_os_error()).into());
    }
    const RAMFS: libc::__fsword_t = 0x8584_58f6;
    let memory = [libc::TMPFS_MAGIC, RAMFS].contains(&info.f_type);
    Ok((info.f_bavail * info.f_bsize as u64, memory))
}

/// The processor, how many of them this process may use, and the kernel.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cpus} processors ({}), Linux {}", model.unwrap_or("unknown"), kernel.trim())
}
