//! The readiness descriptor's kernel half: an io_uring with a wait on a word.

use super::futex::{Wake, bucket};
use crate::endpoint::Endpoint;
use crate::ready::{Descriptor, Readiness};
use crate::sync::{AtomicU32, Ordering, fence};
use crate::{Receiver, Result, Sender};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::time::Duration;

/// What the io_uring knows. Lives under the lock of the word's bucket, as in the kernel.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The handle's view: a wait was submitted and its completion not yet consumed.
    waiting: bool,
    /// The kernel's view: the wait is queued on the word.
    queued: bool,
    /// It is over, and nobody has consumed that.
    completed: bool,
    signalled: bool,
}

impl State {
    pub(super) fn wake(&mut self) {
        self.completed |= std::mem::take(&mut self.queued);
    }

    fn readable(&self) -> bool {
        self.completed || self.signalled
    }
}

/// A readiness descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Poll(NonNull<AtomicU32>);

// SAFETY: the word belongs to a ring that outlives its handles, and is atomic.
unsafe impl Send for Poll {}
// SAFETY: as above.
unsafe impl Sync for Poll {}

impl Poll {
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the handle that this was made for keeps the ring alive.
        unsafe { self.0.as_ref() }
    }

    /// The descriptor of a receiver.
    pub fn receiver(receiver: &mut Receiver) -> Self {
        Self::of(&mut receiver.half.endpoint)
    }

    /// The descriptor of a sender.
    pub fn sender(sender: &mut Sender) -> Self {
        Self::of(&mut sender.half.endpoint)
    }

    fn of(endpoint: &mut Endpoint) -> Self {
        let poll = Self(NonNull::from(endpoint.wait_word()));
        endpoint.readiness = Some(Readiness::model(Box::new(poll)));
        poll
    }

    /// What an event loop does: sleeps until the descriptor is readable.
    pub fn readable(&self) {
        let bucket = bucket(self.word());
        let mut queue = bucket.queue.lock().unwrap();
        let cpu = super::kernel::cpu();
        super::kernel::schedule_out(cpu);
        while !queue.descriptor.readable() {
            queue = bucket.changed.wait(queue).unwrap();
        }
        drop(queue);
        super::kernel::schedule_in(cpu);
    }
}

impl Descriptor for Poll {
    fn fd(&self) -> BorrowedFd<'_> {
        unreachable!("a model polls with `readable`")
    }

    fn consume(&self) {
        let bucket = bucket(self.word());
        let state = &mut bucket.queue.lock().unwrap().descriptor;
        state.waiting &= !state.completed;
        state.completed = false;
        state.signalled = false;
    }

    fn submit(&self, expected: u32, limit: Option<Duration>) -> Result<()> {
        super::membarrier::interrupt_point();
        let bucket = bucket(self.word());
        fence(Ordering::SeqCst);
        let mut queue = bucket.queue.lock().unwrap();
        if !queue.descriptor.waiting {
            queue.descriptor.waiting = true;
            // Relaxed: compared under the lock that wakers take.
            let queued = self.word().load(Ordering::Relaxed) == expected;
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

    fn signal(&self) {
        let bucket = bucket(self.word());
        bucket.queue.lock().unwrap().descriptor.signalled = true;
    }

    fn hung_up(&self) -> bool {
        false
    }

    /// In a model the descriptor's readability is the word itself: armed, it is 1.
    fn wait(&self, timeout: Duration) -> Wake {
        super::futex::wait(self.word(), 1, timeout)
    }
}
