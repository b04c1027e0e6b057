//! How long threads have slept, whatever the load of the machine: a lost wake-up is told from a processor that was busy.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The calling thread's, for [`Asleep::of`], also in another process. "" where the system has no such name.
pub fn thread() -> String {
    let name = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    name.to_str().unwrap_or_default().into()
}

/// What the kernel counts of threads (`/proc/PID/task/TID/schedstat`): how long each has run, and how long it was ready to
/// run while others did.
pub struct Asleep {
    threads: Vec<File>,
    since: Instant,
    busy: Duration,
}

impl Asleep {
    /// Of the threads of these names. Where the kernel does not count, all time counts as sleep.
    pub fn of<S: AsRef<str>>(threads: &[S]) -> Self {
        let open = |name: &S| File::open(format!("/proc/{}/schedstat", name.as_ref())).ok();
        let mut it =
            Self { threads: threads.iter().filter_map(open).collect(), since: Instant::now(), busy: Duration::ZERO };
        it.take();
        it
    }

    /// Whether the kernel counts.
    #[allow(dead_code, reason = "one of the tests asks")]
    pub fn counts(&self) -> bool {
        self.busy != Duration::ZERO
    }

    /// How long all of them have slept at once since the last call, too little rather than too much: the times that two of them
    /// were busy are added up.
    pub fn take(&mut self) -> Duration {
        let busy: Duration = self.threads.iter().map(busy).sum();
        let now = Instant::now();
        let slept = (now - self.since).saturating_sub(busy.saturating_sub(self.busy));
        (self.since, self.busy) = (now, busy);
        slept
    }
}

/// "RAN WAITED TURNS", times in nanoseconds.
fn busy(thread: &File) -> Duration {
    let mut text = [0; 80];
    let length = thread.read_at(&mut text, 0).unwrap_or(0);
    let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
    let times = text.split_whitespace().take(2).map_while(|number| number.parse::<u64>().ok());
    Duration::from_nanos(times.sum())
}
