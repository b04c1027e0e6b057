//! Waiting for many sources at once.
//!
//! | file | what |
//! | --- | --- |
//! | `source.rs` | what can be waited for, and how it is checked and armed |
//! | `sleep.rs` | how one thread sleeps on many words and descriptors |
//! | `uring.rs` | the same by an io_uring, whose waits stay armed from one call to the next |

mod sleep;
mod source;
#[cfg(target_os = "linux")]
mod uring;

pub(crate) use source::Released;
pub use source::{Holding, Readable, Room, Source};

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::facts::{SPIN_MAX, UNORDERED_INTERVAL};
use crate::sync::{AtomicU32, Ordering, fence, spin_hint};
use crate::sys::{clock, fork, futex, membarrier};
use crate::wait::{Deadline, POLL_INTERVAL, WaitPolicy};
use sleep::{Sleeper, Target};
use source::Check;

/// Calls in a row that a peek may answer, before all sources are checked although some have something.
const PEEKS: u32 = 15;

/// Waits for any of many sources: [`Receiver`](crate::Receiver)s, [`Subscriber`](crate::Subscriber)s, [room](crate::Sender::room)
/// in senders and publishers, [`Region`](crate::Region)s, [`Listener`](crate::Listener)s and other [descriptors](Readable).
///
/// It checks all of them for a bounded time, then says in each one's words that it waits, checks again, and sleeps once. One
/// call is for one thread at a time; the sources are borrowed for the call alone, and are used as always after it.
///
/// Few sources are slept on by `futex_waitv(2)`, many or descriptors by one io_uring whose waits stay armed from one call to
/// the next. Where neither is allowed (some containers), it checks every millisecond.
///
/// ```
/// use ramway::{Ring, Select};
///
/// # fn main() -> ramway::Result<()> {
/// let (mut tx, mut one) = Ring::pair(4096)?;
/// let (_other_tx, mut other) = Ring::pair(4096)?;
/// tx.send(0, b"hello")?;
///
/// let mut select = Select::new();
/// for ready in select.wait(&mut [&mut one, &mut other], None)?.to_vec() {
///     let receiver = [&mut one, &mut other].into_iter().nth(ready).unwrap();
///     assert_eq!(&*receiver.try_recv()?, b"hello");
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Select {
    policy: WaitPolicy,
    /// 1: a [`SelectWaker`] wants the wait to end.
    interrupt: Arc<AtomicU32>,
    sleeper: Sleeper,
    /// When the kernel was last asked whether the peers live, in coarse nanoseconds.
    peers_checked: u64,
    /// The sources that are ready, by their index.
    ready: Vec<usize>,
    /// By index: when the source was last the first one that was given. The one that was goes last.
    served: Vec<u64>,
    calls: u64,
    /// Calls until all are checked, whatever a peek finds.
    unchecked: u32,
    generation: u32,
}

/// Ends the wait of a [`Select`] from another thread.
#[derive(Clone, Debug)]
pub struct SelectWaker {
    interrupt: Arc<AtomicU32>,
}

impl SelectWaker {
    /// The wait that is running, or, if none is, the next one, returns `Interrupted` unless something is ready. Several calls
    /// before that end one wait. Never blocks.
    pub fn wake(&self) {
        // Release: the sleeper that takes the request sees what was done before it.
        self.interrupt.store(1, Ordering::Release);
        futex::wake_all(&self.interrupt);
    }
}

impl Default for Select {
    fn default() -> Self {
        Self::new()
    }
}

impl Select {
    /// Waits by [`WaitPolicy::Hybrid`].
    pub fn new() -> Self {
        Self {
            policy: WaitPolicy::default(),
            interrupt: Arc::new(AtomicU32::new(0)),
            sleeper: Sleeper::new(),
            peers_checked: clock::coarse_ns(),
            ready: Vec::new(),
            served: Vec::new(),
            calls: 0,
            unchecked: 0,
            generation: fork::generation(),
        }
    }

    /// How [`wait`](Self::wait) waits from now on.
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.policy = policy;
    }

    /// What ends a wait from another thread.
    pub fn waker(&self) -> SelectWaker {
        SelectWaker { interrupt: self.interrupt.clone() }
    }

    /// Blocks until one of the sources is ready, for at most `timeout` (`None`: as long as it takes; 0: not at all), and gives
    /// the indices of all that are ready then: none if the time passed. A receiver is ready when its `try_recv` has
    /// something else to say than `Empty`: a message, or that its peer closed or died (within 200 ms). Of several, the one
    /// that came first in the last answer comes last. While some have messages, room or news, the end of another, or a
    /// descriptor, may be left out of up to 15 answers in a row.
    ///
    /// # Errors
    /// `Interrupted` by a [`SelectWaker`]; `Busy` if a source has a readiness descriptor, which waits by the same words;
    /// `InvalidArgument` without any source and without a time; `Detached` in a fork's child; `Os` if there are no more
    /// descriptors.
    pub fn wait(&mut self, sources: &mut [&mut dyn Source], timeout: Option<Duration>) -> Result<&[usize]> {
        if self.generation != fork::generation() {
            return Err(ErrorKind::Detached.into());
        }
        if sources.is_empty() && timeout.is_none() {
            let text = "waiting for none of 0 sources, as long as it takes: name a source or a timeout";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        self.served.resize(sources.len(), 0);
        if self.unchecked > 0 && self.peek(sources) {
            self.unchecked -= 1;
        } else {
            self.unchecked = PEEKS;
            self.check_or_wait(sources, timeout)?;
        }
        self.in_order();
        Ok(&self.ready)
    }

    fn check_or_wait(&mut self, sources: &mut [&mut dyn Source], timeout: Option<Duration>) -> Result<()> {
        if let Some(index) = sources.iter().position(|source| source.has_descriptor()) {
            let text =
                format!("source {index} has a readiness descriptor, which waits by the same words: wait by that");
            return Err(Error::new(ErrorKind::Busy, text));
        }
        let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
        if !self.check(sources) && timeout != Some(Duration::ZERO) {
            self.wait_slow(sources, deadline)?;
        }
        Ok(())
    }

    fn wait_slow(&mut self, sources: &mut [&mut dyn Source], deadline: Deadline) -> Result<()> {
        if self.take_interrupt() {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.spin(sources, deadline)? {
            return Ok(());
        }
        self.sleeper.new_call();
        let outcome = self.sleep(sources, deadline);
        for source in sources.iter_mut() {
            source.disarm();
        }
        outcome
    }

    /// Finds those that have something to be taken, by a load each; true if there are any. That is a quarter of what a check
    /// costs, which sees ends and descriptors too: those of one source must not wait for ever for another to be idle.
    fn peek(&mut self, sources: &mut [&mut dyn Source]) -> bool {
        self.ready.clear();
        for (index, source) in sources.iter_mut().enumerate() {
            if source.peek() {
                self.ready.push(index);
            }
        }
        !self.ready.is_empty()
    }

    /// Checks all; true if some are ready. Asks the kernel whether peers live if that is due.
    fn check(&mut self, sources: &mut [&mut dyn Source]) -> bool {
        let now = clock::coarse_ns();
        let ask_kernel = now.wrapping_sub(self.peers_checked) >= POLL_INTERVAL.as_nanos() as u64;
        if ask_kernel {
            self.peers_checked = now;
        }
        self.ready.clear();
        let mut has_descriptors = false;
        for (index, source) in sources.iter_mut().enumerate() {
            match source.check(ask_kernel) {
                Check::Ready => self.ready.push(index),
                Check::NotYet => {}
                Check::Descriptor => has_descriptors = true,
            }
        }
        if has_descriptors {
            sleep::poll_descriptors(sources, &mut self.ready);
        }
        !self.ready.is_empty()
    }

    /// Checks for a bounded time: as long as a sleep and the wake-up from it cost.
    fn spin(&mut self, sources: &mut [&mut dyn Source], deadline: Deadline) -> Result<bool> {
        if self.policy == WaitPolicy::Block || (clock::cpus_online() == 1 && self.policy == WaitPolicy::Hybrid) {
            return Ok(false);
        }
        // Descriptors cost a system call: those are not polled.
        let polls = sources.iter().any(|source| source.descriptor().is_none());
        let passes = (SPIN_MAX / (sources.len() as u32).max(1)).max(1);
        loop {
            for _ in 0..passes {
                if polls && self.peek(sources) {
                    return Ok(true);
                }
                spin_hint();
            }
            if self.policy == WaitPolicy::Hybrid {
                return Ok(false);
            }
            if self.check(sources) {
                return Ok(true);
            }
            if self.take_interrupt() {
                return Err(ErrorKind::Interrupted.into());
            }
            if deadline.left().is_none() {
                return Ok(true);
            }
            std::thread::yield_now();
        }
    }

    /// Arms all, orders once, checks all again, and sleeps, until one is ready or the time has passed.
    fn sleep(&mut self, sources: &mut [&mut dyn Source], deadline: Deadline) -> Result<()> {
        loop {
            self.sleeper.begin();
            for source in sources.iter_mut() {
                if let Some(armed) = source.arm() {
                    self.sleeper.add(Target::Word(armed));
                } else if let Some(fd) = source.descriptor() {
                    self.sleeper.add(Target::Descriptor(fd));
                }
            }
            // One order for all: the words are said before every check that follows.
            let ordered = membarrier::is_available() && membarrier::sync();
            if !ordered {
                // SeqCst: pairs with the fence of a waker that makes one; a word says below where the waker makes none.
                fence(Ordering::SeqCst);
            }
            let mut longest = POLL_INTERVAL;
            for source in sources.iter() {
                longest = longest.min(source.longest(ordered));
            }
            if self.check(sources) {
                return Ok(());
            }
            if self.take_interrupt() {
                return Err(ErrorKind::Interrupted.into());
            }
            let Some(left) = deadline.left() else { return Ok(()) };
            // The waker's word is slept on too: 0 until it is set.
            self.sleeper.sleep(&self.interrupt, left.min(longest).max(Duration::from_nanos(1)))?;
            if self.check(sources) {
                return Ok(());
            }
        }
    }

    fn take_interrupt(&self) -> bool {
        // Acquire: pairs with the waker's store. Relaxed store, not a swap: as in `wait.rs`.
        let asked = self.interrupt.load(Ordering::Acquire) != 0;
        if asked {
            self.interrupt.store(0, Ordering::Relaxed);
        }
        asked
    }

    /// Puts the one that was given first longest ago at the front.
    fn in_order(&mut self) {
        let served = &self.served;
        self.ready.sort_by_key(|index| served[*index]);
        if let Some(first) = self.ready.first() {
            self.calls += 1;
            self.served[*first] = self.calls;
        }
    }
}

/// No sleep is shorter than what a side sleeps that cannot order its word.
const _: () = assert!(UNORDERED_INTERVAL.as_nanos() <= POLL_INTERVAL.as_nanos());
