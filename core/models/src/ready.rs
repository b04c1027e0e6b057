//! The readiness descriptor's kernel half: an io_uring with a wait on a word.

use crate::Result;
use crate::layout::RoleLine;
use crate::segment::{Header, Link, Role};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::sys::futex::{Futex, Wake, bucket};
use std::sync::Arc;
use std::time::Duration;

/// What the io_uring knows. Lives under the lock of the word's bucket, as in the kernel.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The handle's view: a wait was submitted and its completion not yet consumed.
    waiting: bool,
    /// The kernel's view: the wait is queued on the word.
    queued: bool,
    /// It is over, and nobody has consumed that.
    completed: bool,
    signalled: bool,
    /// What the word held when the last wait was submitted.
    expected: u32,
}

impl State {
    pub(crate) fn wake(&mut self) {
        self.completed |= std::mem::take(&mut self.queued);
    }

    fn readable(&self) -> bool {
        self.completed || self.signalled
    }
}

/// A descriptor, as an event loop has it.
#[derive(Clone, Copy, Debug)]
pub struct Poll(Futex);

// SAFETY: the word belongs to a log that outlives its handles, and is atomic.
unsafe impl Send for Poll {}
// SAFETY: as above.
unsafe impl Sync for Poll {}

/// As the real one.
#[derive(Debug)]
pub struct Readiness(Poll);

impl Readiness {
    /// What is polled.
    pub fn poll(&self) -> Poll {
        self.0
    }

    pub(crate) fn for_role(_: &Link, _: Role, mine: &RoleLine, _: &RoleLine, _: Arc<Header>) -> Result<Self> {
        Ok(Self(Poll(Futex::Whole((&mine.wait).into()))))
    }

    pub(crate) fn for_publisher(_: &Link, wait: &AtomicU32, _: Arc<Header>) -> Result<Self> {
        Ok(Self(Poll(Futex::Whole(wait.into()))))
    }

    pub(crate) fn for_subscriber(_: &Link, word: &AtomicU64, _: &RoleLine, _: Arc<Header>) -> Result<Self> {
        Ok(Self(Poll(Futex::Low(word.into()))))
    }
}

impl Poll {
    /// What an event loop does: sleeps until the descriptor is readable.
    pub fn readable(&self) {
        let bucket = bucket(self.0);
        let mut queue = bucket.queue.lock().unwrap();
        let cpu = crate::sys::kernel::cpu();
        crate::sys::kernel::schedule_out(cpu);
        while !queue.descriptor.readable() {
            queue = bucket.changed.wait(queue).unwrap();
        }
        drop(queue);
        crate::sys::kernel::schedule_in(cpu);
    }
}

impl Readiness {
    pub(crate) fn consume(&self) {
        let bucket = bucket(self.0.0);
        let state = &mut bucket.queue.lock().unwrap().descriptor;
        state.waiting &= !state.completed;
        state.completed = false;
        state.signalled = false;
    }

    pub(crate) fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        crate::sys::membarrier::interrupt_point();
        let bucket = bucket(self.0.0);
        fence(Ordering::SeqCst);
        let mut queue = bucket.queue.lock().unwrap();
        if !queue.descriptor.waiting {
            queue.descriptor.waiting = true;
            queue.descriptor.expected = expected;
            let queued = self.0.0.load() == expected;
            queue.descriptor.queued = queued;
            queue.descriptor.completed = !queued;
            if !queued {
                queue.refuse();
            }
        }
        // A limit is a short one, which passes by itself.
        queue.descriptor.signalled |= limit.is_some();
        Ok(())
    }

    pub(crate) fn signal(&self) {
        let bucket = bucket(self.0.0);
        bucket.queue.lock().unwrap().descriptor.signalled = true;
    }

    /// No model has a checker, nor a socket.
    pub(crate) fn take_report(&self) -> bool {
        false
    }

    /// In a model the descriptor's readability is the word itself: armed, it is what it was armed with.
    pub(crate) fn wait(&self, timeout: Duration) -> Wake {
        let expected = bucket(self.0.0).queue.lock().unwrap().descriptor.expected;
        crate::sys::futex::sleep(self.0.0, expected, timeout)
    }
}
