//! A futex: the kernel compares and queues under one lock, wakes under the same one, and fences on the way in.

use super::kernel::{CPUS, KERNEL, cpu, schedule_in, schedule_out};
use crate::sync::{AtomicU32, Ordering, fence};
pub(crate) use crate::sys::wake::Wake;
use loom::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep that the model lets end by itself at once: the intervals of a sleeper whose waker does not fence.
const SHORT: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Queue {
    /// Wake calls so far.
    wakes: u64,
    /// Times that the clock ended sleeps.
    expiries: u64,
    /// By process: waits that did not sleep, because the word held something else.
    refusals: [u64; CPUS],
    /// The readiness descriptor that waits for this word, if there is one.
    pub(crate) descriptor: crate::ready::State,
}

impl Queue {
    /// A wait that did not sleep.
    pub(crate) fn refuse(&mut self) {
        let refusals = &mut self.refusals[cpu().unwrap_or(0)];
        *refusals += 1;
        // Each refusal needs somebody who changed the word after it was armed, which a wake-up does once (a ring's word)
        // or twice (a region's).
        assert!(
            *refusals <= 2 * (self.wakes + 1),
            "a sleeper that does not arm its word again spins on a futex that never sleeps"
        );
    }
}

pub(crate) struct Bucket {
    pub(crate) queue: Mutex<Queue>,
    pub(crate) changed: Condvar,
}

impl Bucket {
    pub(crate) fn expire(&self) {
        self.queue.lock().unwrap().expiries += 1;
        self.changed.notify_all();
    }
}

pub(crate) fn bucket(word: &AtomicU32) -> Arc<Bucket> {
    let address = std::ptr::from_ref(word) as usize;
    let mut all = KERNEL.futexes.lock().unwrap();
    if let Some((_, found)) = all.iter().find(|(at, _)| *at == address) {
        return found.clone();
    }
    let made = Arc::new(Bucket { queue: Mutex::new(Queue::default()), changed: Condvar::new() });
    all.push((address, made.clone()));
    made
}

/// Sleeps while `word` holds `expected`. A `timeout` of more than a millisecond never passes by itself.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) -> Wake {
    super::membarrier::interrupt_point();
    let bucket = bucket(word);
    // As the kernel does between counting the waiter and comparing the word.
    fence(Ordering::SeqCst);
    let mut queue = bucket.queue.lock().unwrap();
    if word.load(Ordering::Relaxed) != expected {
        queue.refuse();
        return Wake::Changed;
    }
    // After a death the clock runs for everyone: what a check after 100 ms finds is what the model is about then.
    if timeout <= SHORT || KERNEL.clock_runs.load(Ordering::Relaxed) {
        drop(queue);
        let cpu = cpu();
        schedule_out(cpu);
        loom::thread::yield_now();
        schedule_in(cpu);
        return Wake::TimedOut;
    }
    let (wakes, expiries) = (queue.wakes, queue.expiries);
    let cpu = cpu();
    schedule_out(cpu);
    while queue.wakes == wakes && queue.expiries == expiries {
        queue = bucket.changed.wait(queue).unwrap();
    }
    let woken = queue.wakes != wakes;
    drop(queue);
    schedule_in(cpu);
    if woken { Wake::Woken } else { Wake::TimedOut }
}

/// Wakes everyone who sleeps on `word`; also the model's spurious wake-up.
pub(crate) fn wake_all(word: &AtomicU32) {
    super::membarrier::interrupt_point();
    let bucket = bucket(word);
    fence(Ordering::SeqCst);
    let mut queue = bucket.queue.lock().unwrap();
    queue.wakes += 1;
    queue.descriptor.wake();
    drop(queue);
    bucket.changed.notify_all();
    super::membarrier::interrupt_point();
}
