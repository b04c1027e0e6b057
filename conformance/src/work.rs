//! Many jobs, some at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does every job, up to `at_a_time` at once, and gives what came of each in the order of the jobs. `work` is also told
/// the job's place among them.
pub fn each<J: Sync, R: Send>(jobs: &[J], at_a_time: usize, work: impl Fn(usize, &J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(jobs.len()));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.max(1) {
            scope.spawn(|| {
                loop {
                    // Relaxed: the thread that takes a number takes the job.
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { return };
                    let result = work(at, job);
                    // A list of results is whole whichever thread panicked.
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
