//! A futex: the kernel compares and queues under one lock, wakes under the same one, and fences on the way in.

use super::kernel::{KERNEL, cpu, schedule_in, schedule_out};
use crate::sync::{AtomicU32, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Woken,
    Changed,
    TimedOut,
    Interrupted,
}

/// The longest sleep that the model lets end by itself at once: the rounds of a sleeper whose waker does not fence.
const SHORT: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Queue {
    /// Wake calls so far.
    wakes: u64,
    /// Times that the clock ended sleeps.
    expiries: u64,
    /// Waits that did not sleep, because the word held something else.
    refusals: u64,
}

pub(super) struct Bucket {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Bucket {
    pub(super) fn expire(&self) {
        self.queue.lock().unwrap().expiries += 1;
        self.changed.notify_all();
    }
}

fn bucket(word: &AtomicU32) -> Arc<Bucket> {
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
        queue.refusals += 1;
        // Each refusal needs somebody who took the word away after it was armed, and whoever does so wakes.
        assert!(
            queue.refusals <= queue.wakes + 1,
            "a sleeper that does not arm its wait word again spins on a futex that never sleeps"
        );
        return Wake::Changed;
    }
    if timeout <= SHORT {
        drop(queue);
        let cpu = cpu();
        cpu.map(schedule_out);
        loom::thread::yield_now();
        cpu.map(schedule_in);
        return Wake::TimedOut;
    }
    let (wakes, expiries) = (queue.wakes, queue.expiries);
    let cpu = cpu();
    cpu.map(schedule_out);
    while queue.wakes == wakes && queue.expiries == expiries {
        queue = bucket.changed.wait(queue).unwrap();
    }
    let woken = queue.wakes != wakes;
    drop(queue);
    cpu.map(schedule_in);
    if woken { Wake::Woken } else { Wake::TimedOut }
}

/// Wakes everyone who sleeps on `word`; also the model's spurious wake-up.
pub(crate) fn wake_all(word: &AtomicU32) {
    super::membarrier::interrupt_point();
    let bucket = bucket(word);
    fence(Ordering::SeqCst);
    bucket.queue.lock().unwrap().wakes += 1;
    bucket.changed.notify_all();
    super::membarrier::interrupt_point();
}
