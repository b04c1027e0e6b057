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
use crate::wait::{Deadline, FIRST_POLLS, POLL_INTERVAL, WaitPolicy};
use sleep::{Sleeper, Target};
use source::Check;

/// Answers in a row that may leave a source out that has something, because others have something too.
const LEFT_OUT: usize = 15;

/// With no more sources than this, an answer has all that are ready.
const ALWAYS_ALL: usize = 8;

/// Sources that are peeked at before those of the last answer are again: so few that a message from one of these is found at
/// once. With 8 a round trip over 16 sources takes 4 to 8 % longer, over 128 20 %.
const PART: usize = 2;

/// Sources of the last answer that are peeked at first in the next call, at most: of more, there is none that is to be preferred.
const BUSY_MAX: usize = 4;

/// Sources that are checked after each [`LEFT_OUT`] answers that peeks gave.
const CHECKED_TOGETHER: usize = LEFT_OUT + 1;

/// Peeks before a call that finds nothing checks all sources: about a microsecond, more than a round trip takes.
const FIRST_PEEKS: usize = 512;

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
    /// Those of the last answer, by their index, if they were few: what had something is likely to have something again.
    busy: Vec<usize>,
    /// By index: when the source was last the first one that was given. The one that was goes last.
    served: Vec<u64>,
    calls: u64,
    /// Of the sources, which is peeked at next though others have something, and which is checked next.
    next_peek: usize,
    next_check: usize,
    /// Answers that peeks may give until some sources are checked.
    unchecked: usize,
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
            busy: Vec::with_capacity(BUSY_MAX),
            served: Vec::new(),
            calls: 0,
            next_peek: 0,
            next_check: 0,
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
    /// that came first in the last answer comes last.
    ///
    /// While sources of the last answer are ready again, an answer may leave others out: one with a message, room or news for up
    /// to 15 answers in a row, if there are more than 8 sources; one that has ended, or a descriptor, for up to 15, or as many
    /// as there are sources if these are more.
    ///
    /// # Errors
    /// `Interrupted` by a [`SelectWaker`]; `Busy` if a source has a readiness descriptor, which waits by the same words;
    /// `InvalidArgument` without any source and without a time; `Detached` in a fork's child; `Os` if there are no more
    /// descriptors.
    pub fn wait(&mut self, sources: &mut [&mut dyn Source], timeout: Option<Duration>) -> Result<&[usize]> {
        self.wait_slice(sources, timeout)
    }

    /// [`wait`](Self::wait) for sources of one type, which need not be put into a list for it and are found ready in a third of
    /// the time.
    ///
    /// ```
    /// use ramway::{Ring, Select};
    ///
    /// # fn main() -> ramway::Result<()> {
    /// let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
    ///     (0..100).map(|_| Ring::pair(4096)).collect::<ramway::Result<Vec<_>>>()?.into_iter().unzip();
    /// senders[7].send(0, b"hello")?;
    /// let mut select = Select::new();
    /// assert_eq!(select.wait_slice(&mut receivers, None)?, [7]);
    /// assert_eq!(&*receivers[7].try_recv()?, b"hello");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn wait_slice<S: Source>(&mut self, sources: &mut [S], timeout: Option<Duration>) -> Result<&[usize]> {
        if self.generation != fork::generation() {
            return Err(ErrorKind::Detached.into());
        }
        if sources.is_empty() && timeout.is_none() {
            let text = "waiting for none of 0 sources, as long as it takes: name a source or a timeout";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        // Others than before are checked first: one of them may be `Busy`.
        let others = self.served.len() != sources.len();
        if !others && (self.peek(sources) || timeout != Some(Duration::ZERO) && self.peek_for_a_while(sources)) {
            match self.unchecked.checked_sub(1) {
                Some(left) => self.unchecked = left,
                None => self.check_some(sources)?,
            }
        } else {
            self.served.resize(sources.len(), 0);
            self.check_or_wait(sources, timeout)?;
        }
        self.in_order();
        Ok(&self.ready)
    }

    #[cold]
    #[inline(never)]
    fn check_or_wait<S: Source>(&mut self, sources: &mut [S], timeout: Option<Duration>) -> Result<()> {
        self.unchecked = LEFT_OUT;
        sources.iter().enumerate().try_for_each(|(index, source)| has_no_descriptor(index, source))?;
        let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
        if !self.check(sources) && timeout != Some(Duration::ZERO) {
            self.wait_slow(sources, deadline)?;
        }
        Ok(())
    }

    fn wait_slow<S: Source>(&mut self, sources: &mut [S], deadline: Deadline) -> Result<()> {
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
    /// costs, which sees ends and descriptors too. Those of the last answer are first, and again after each few of the others: a
    /// message from one of them is found as soon as if there were no others.
    #[inline(always)]
    fn peek<S: Source>(&mut self, sources: &mut [S]) -> bool {
        self.ready.clear();
        if sources.len() <= ALWAYS_ALL {
            self.peek_at(sources, 0);
            !self.ready.is_empty()
        } else {
            self.peek_in_parts(sources)
        }
    }

    /// Finds those of some sources that have something, of which the first one has the index `first`.
    #[inline(always)]
    fn peek_at<S: Source>(&mut self, sources: &mut [S], first: usize) {
        for (at, source) in sources.iter_mut().enumerate() {
            if source.peek() {
                self.ready.push(first + at);
            }
        }
    }

    #[inline(never)]
    fn peek_in_parts<S: Source>(&mut self, sources: &mut [S]) -> bool {
        let mut first = 0;
        while first < sources.len() {
            if self.ready.is_empty() && self.peek_at_busy(sources) {
                return true;
            }
            let end = sources.len().min(first + PART);
            self.peek_at(&mut sources[first..end], first);
            first = end;
        }
        !self.ready.is_empty()
    }

    /// Finds those of the last answer that have something again, and then, of the others, so many that each comes up within
    /// [`LEFT_OUT`] answers: a busy source delays the others by that, and not for ever.
    #[inline]
    fn peek_at_busy<S: Source>(&mut self, sources: &mut [S]) -> bool {
        for index in &self.busy {
            // The sources may be others than those of the last answer.
            if sources.get_mut(*index).is_some_and(|source| source.peek()) {
                self.ready.push(*index);
            }
        }
        if self.ready.is_empty() {
            return false;
        }
        for _ in 0..sources.len().div_ceil(LEFT_OUT) {
            let index = next_of(&mut self.next_peek, sources.len());
            if sources[index].peek() && !self.ready.contains(&index) {
                self.ready.push(index);
            }
        }
        true
    }

    /// The first polls of a wait, before all sources are checked: that takes longer than many a message.
    fn peek_for_a_while<S: Source>(&mut self, sources: &mut [S]) -> bool {
        if !self.polls() {
            return false;
        }
        let passes = (FIRST_PEEKS / sources.len().max(1)).clamp(1, FIRST_POLLS as usize);
        for _ in 0..passes {
            spin_hint();
            if self.peek(sources) {
                return true;
            }
        }
        false
    }

    /// Checks some sources, each in turn, beside those that a peek found: their ends must not wait for ever for another to be
    /// idle.
    #[cold]
    #[inline(never)]
    fn check_some<S: Source>(&mut self, sources: &mut [S]) -> Result<()> {
        self.unchecked = LEFT_OUT;
        let ask_kernel = self.is_time_to_ask();
        let mut has_descriptors = false;
        for _ in 0..sources.len().min(CHECKED_TOGETHER) {
            let index = next_of(&mut self.next_check, sources.len());
            has_no_descriptor(index, &sources[index])?;
            match sources[index].check(ask_kernel) {
                Check::Ready if !self.ready.contains(&index) => self.ready.push(index),
                Check::Ready | Check::NotYet => {}
                Check::Descriptor => has_descriptors = true,
            }
        }
        if has_descriptors {
            sleep::poll_descriptors(sources, &mut self.ready);
        }
        Ok(())
    }

    /// Checks all; true if some are ready. Asks the kernel whether peers live if that is due.
    fn check<S: Source>(&mut self, sources: &mut [S]) -> bool {
        let ask_kernel = self.is_time_to_ask();
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

    /// Whether the kernel is to be asked whether peers live; a caller that gets true asks it.
    fn is_time_to_ask(&mut self) -> bool {
        let now = clock::coarse_ns();
        let due = now.wrapping_sub(self.peers_checked) >= POLL_INTERVAL.as_nanos() as u64;
        if due {
            self.peers_checked = now;
        }
        due
    }

    fn polls(&self) -> bool {
        match self.policy {
            WaitPolicy::Spin => true,
            WaitPolicy::Hybrid => clock::cpus_online() > 1,
            WaitPolicy::Block => false,
        }
    }

    /// Checks for a bounded time: as long as a sleep and the wake-up from it cost.
    fn spin<S: Source>(&mut self, sources: &mut [S], deadline: Deadline) -> Result<bool> {
        if !self.polls() {
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
    fn sleep<S: Source>(&mut self, sources: &mut [S], deadline: Deadline) -> Result<()> {
        loop {
            self.sleeper.begin();
            for source in sources.iter_mut() {
                if let Some(armed) = source.arm() {
                    self.sleeper.add(Target::Word(armed));
                } else if let Some(fd) = source.descriptor() {
                    self.sleeper.add(Target::Descriptor(fd));
                }
            }
            // One order for all: the words are said before every check that follows. SeqCst: pairs with the fence of a waker that
            // makes one. A membarrier is for those that say, after that, that they make none: see `OwnWord::order`.
            fence(Ordering::SeqCst);
            let needed = sources.iter().any(Source::needs_membarrier);
            let ordered = needed && membarrier::is_available() && membarrier::sync();
            let longest = sources.iter().map(|source| source.longest(ordered)).fold(POLL_INTERVAL, Duration::min);
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

    /// Puts the one that was given first longest ago at the front, and keeps what the next call looks at first.
    #[inline(always)]
    fn in_order(&mut self) {
        if self.ready.len() > 1 {
            let served = &self.served;
            self.ready.sort_by_key(|index| served[*index]);
        }
        let Some(first) = self.ready.first() else { return };
        self.calls += 1;
        self.served[*first] = self.calls;
        if *self.ready != *self.busy {
            self.busy.clear();
            if self.ready.len() <= BUSY_MAX {
                self.busy.extend_from_slice(&self.ready);
            }
        }
    }
}

/// The one whose turn it is of `count`, at least one; counts on.
fn next_of(next: &mut usize, count: usize) -> usize {
    let index = if *next < count { *next } else { 0 };
    *next = index + 1;
    index
}

fn has_no_descriptor<S: Source>(index: usize, source: &S) -> Result<()> {
    if !source.has_descriptor() {
        return Ok(());
    }
    let text = format!("source {index} has a readiness descriptor, which waits by the same words: wait by that");
    Err(Error::new(ErrorKind::Busy, text))
}

/// No sleep is shorter than what a side sleeps that cannot order its word.
const _: () = assert!(UNORDERED_INTERVAL.as_nanos() <= POLL_INTERVAL.as_nanos());
