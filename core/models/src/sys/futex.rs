//! A futex: the kernel compares and queues under one lock, wakes under the same one, and fences on the way in.

use super::kernel::{CPUS, KERNEL, cpu, schedule_in, schedule_out};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use crate::sys::wake::Wake;
use loom::sync::{Condvar, Mutex};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep that the model lets end by itself at once: the intervals of a sleeper whose waker does not fence.
const SHORT: Duration = Duration::from_millis(1);

/// What is slept on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Futex {
    Whole(NonNull<AtomicU32>),
    /// The lower half of a word of 64 bits.
    Low(NonNull<AtomicU64>),
}

impl Futex {
    fn address(self) -> usize {
        match self {
            Self::Whole(word) => word.addr().get(),
            Self::Low(word) => word.addr().get(),
        }
    }

    /// What the kernel compares.
    pub(crate) fn load(self) -> u32 {
        // SAFETY: whoever names a word keeps it while it is slept on or woken. Relaxed, both: compared under the lock that
        // wakers take.
        unsafe {
            match self {
                Self::Whole(word) => word.as_ref().load(Ordering::Relaxed),
                Self::Low(word) => word.as_ref().load(Ordering::Relaxed) as u32,
            }
        }
    }
}

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

pub(crate) fn bucket(futex: Futex) -> Arc<Bucket> {
    let address = futex.address();
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
    sleep(Futex::Whole(word.into()), expected, timeout)
}

/// [`wait`] on the lower half of a word of 64 bits.
pub(crate) fn wait_low(word: &AtomicU64, expected: u32, timeout: Duration) -> Wake {
    sleep(Futex::Low(word.into()), expected, timeout)
}

pub(crate) fn sleep(futex: Futex, expected: u32, timeout: Duration) -> Wake {
    super::membarrier::interrupt_point();
    let bucket = bucket(futex);
    // As the kernel does between counting the waiter and comparing the word.
    fence(Ordering::SeqCst);
    let mut queue = bucket.queue.lock().unwrap();
    if futex.load() != expected {
        queue.refuse();
        return Wake::Changed;
    }
    // After a death the clock runs for everyone: what a check after 100 ms finds is what the model is about then.
    let runs = KERNEL.clock_runs.load(Ordering::Relaxed);
    if timeout <= SHORT || runs {
        drop(queue);
        let cpu = cpu();
        schedule_out(cpu);
        loom::thread::yield_now();
        schedule_in(cpu);
        if runs {
            KERNEL.now.fetch_add(timeout.as_nanos() as u64, Ordering::Relaxed);
        }
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
    wake(Futex::Whole(word.into()));
}

/// [`wake_all`] on the lower half of a word of 64 bits.
pub(crate) fn wake_all_low(word: &AtomicU64) {
    wake(Futex::Low(word.into()));
}

fn wake(futex: Futex) {
    super::membarrier::interrupt_point();
    let bucket = bucket(futex);
    fence(Ordering::SeqCst);
    let mut queue = bucket.queue.lock().unwrap();
    queue.wakes += 1;
    queue.descriptor.wake();
    drop(queue);
    bucket.changed.notify_all();
    super::membarrier::interrupt_point();
}
