//! Waiting: poll for a bounded time, then sleep on a futex, without ever missing a wake-up.
//!
//! The sleeper (1) says in its wait word that it sleeps, (2) orders that before (3) a second check of what it waits for,
//! and (4) sleeps only while the word still holds what step 1 left there; after *any* return it starts again at (1). The
//! waker makes its change, then loads the word. How a word is armed and ordered is the word's own rule ([`Word`]): a
//! role's word is in `endpoint/word.rs`, a region's in `region/word.rs`. The one loop that arms, checks again and sleeps
//! is here, for every word. `core/models` shows that leaving out any one of the steps loses a wake-up.

pub(crate) use crate::facts::{FIRST_POLLS, POLL_INTERVAL, SPIN_MAX};
use crate::facts::{POLL_TIME, POLLS_PER_CHECK, SHORT_WAIT, SPIN_MIN};
use crate::ready::Readiness;
use crate::sync::{AtomicU32, Ordering, Step, keep, spin_hint};
use crate::sys::clock;
use crate::sys::futex::Wake;
use crate::{ErrorKind, Result};
use std::time::{Duration, Instant};

/// How a blocking call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum WaitPolicy {
    /// Never sleep: the shortest latency, for one whole CPU. Lets others run on it every 50 µs, and between any two
    /// polls if there is only one.
    Spin = 0,
    /// Spin for up to 75 µs, less where waits have been long, then sleep. Sleeps at once on a machine with one CPU.
    #[default]
    Hybrid = 1,
    /// Sleep at once: the least CPU time.
    Block = 2,
}

/// A point in monotonic time, or never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    /// `timeout` from now; a time too far away to be represented is never.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// What is left, `None` once it has passed.
    pub(crate) fn left(&self) -> Option<Duration> {
        match self.0 {
            None => Some(Duration::MAX),
            Some(at) => at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()),
        }
    }
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Not at all: `Full` or `Empty`.
    None,
    /// Up to this long, then `TimedOut`.
    For(Duration),
    /// Forever.
    Forever,
}

impl WaitLimit {
    /// The end of the wait, `None` for no wait. Asked for only once a wait is due: the hot path reads no clock.
    pub(crate) fn deadline(self) -> Option<Deadline> {
        match self {
            Self::None => None,
            Self::For(timeout) => Some(Deadline::after(timeout)),
            Self::Forever => Some(Deadline::NEVER),
        }
    }
}

/// A word that is slept on, and how a sleeper says so in it.
pub trait Word {
    /// Says that somebody sleeps, ordered before every check that follows.
    fn arm(&self) -> Armed;

    /// Says that somebody sleeps, and leaves the order to the caller, who makes one for several words. Gives the value that
    /// the word has until somebody wakes it.
    fn set(&self) -> u32;

    /// The longest sleep after [`set`](Self::set), where the caller has made the order: by a membarrier, or by a fence of this
    /// process alone.
    fn longest(&self, membarrier: bool) -> Duration;

    /// This side no longer sleeps. Nothing to do where others sleep on the same word.
    fn disarm(&self);

    /// Sleeps while the word holds `expected`, for at most `timeout`.
    fn sleep(&self, expected: u32, timeout: Duration) -> Wake;

    /// What the word holds now.
    fn value(&self) -> u32;

    /// What another thread sets to end the wait, before it wakes the word.
    fn interrupt(&self) -> Option<&AtomicU32>;
}

/// How an armed word is slept on.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    /// The value that the word has until somebody wakes it.
    pub(crate) expected: u32,
    /// The longest sleep.
    pub(crate) longest: Duration,
}

impl Armed {
    /// For a model that leaves the arming out: no word holds this.
    fn left_out(word: &impl Word) -> Self {
        Self { expected: !word.value(), longest: POLL_INTERVAL }
    }
}

/// In [`Waiting`]: its clock has not begun. No clock counts that far.
const NOT_STARTED: u64 = u64::MAX;

/// How one handle waits: private to its thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) policy: WaitPolicy,
    /// Polls to spend before sleeping, SPIN_MIN ..= SPIN_MAX; follows how long waits have lasted.
    pub(crate) budget: u32,
    /// Return `Interrupted` when a signal handler ran, instead of going on.
    pub(crate) interruptible: bool,
    /// The peer was dead at the last check: check again at once rather than after an interval.
    peer_was_dead: bool,
    /// When a system call was last spent on whether the peer lives, in coarse nanoseconds. Of the handle, not of the
    /// call: a loop of short waits learns of a death as one long wait does.
    peer_checked: u64,
}

impl Waiting {
    pub(crate) fn new(policy: WaitPolicy) -> Self {
        Self { policy, budget: SPIN_MAX, interruptible: false, peer_was_dead: false, peer_checked: clock::coarse_ns() }
    }

    /// For one wait alone. Its interval begins at its first check, so a wait that ends before that has read no clock.
    pub(crate) fn for_one_wait(policy: WaitPolicy, budget: u32) -> Self {
        Self { policy, budget, interruptible: false, peer_was_dead: false, peer_checked: NOT_STARTED }
    }

    /// Whether this handle polls before it enters the general wait.
    #[inline(always)]
    pub(crate) fn polls(&self) -> bool {
        self.policy != WaitPolicy::Block && clock::cpus_online() > 1
    }

    /// Whether it is time to spend a system call on whether the peer lives; a caller that gets true spends it.
    fn is_time_to_check_peer(&mut self) -> bool {
        let now = clock::coarse_ns();
        if self.peer_checked == NOT_STARTED {
            self.peer_checked = now;
        }
        let due = self.peer_was_dead || now.wrapping_sub(self.peer_checked) >= POLL_INTERVAL.as_nanos() as u64;
        if due {
            self.peer_checked = now;
        }
        due
    }

    /// Somebody else has found the peer dead: the next call checks at once.
    pub(crate) fn peer_has_ended(&mut self) {
        self.peer_was_dead = true;
    }

    /// Runs a wait for something that a system call checks: it sleeps at once.
    pub(crate) fn without_polling<R>(&mut self, wait: impl FnOnce(&mut Self) -> R) -> R {
        let (policy, budget) = (self.policy, self.budget);
        self.policy = WaitPolicy::Block;
        let result = wait(self);
        (self.policy, self.budget) = (policy, budget);
        result
    }

    /// Blocks until `ready` says true.
    ///
    /// `ended` is asked while `ready` says false; its argument says whether to spend a system call on whether the peer
    /// lives. What it returns as an error is returned, but only if `ready` still says false when asked *after* it: what
    /// was committed before the end is delivered before the end is.
    ///
    /// With a readiness descriptor it sleeps on that: the descriptor is then the word's one waiter. When this returns,
    /// the descriptor is armed after a time-out and readable after anything else, as after a `try_` call.
    pub(crate) fn until(
        &mut self,
        word: &impl Word,
        readiness: Option<&Readiness>,
        deadline: Deadline,
        mut ready: impl FnMut() -> Result<bool>,
        mut ended: impl FnMut(bool) -> Result<()>,
    ) -> Result<()> {
        // Relaxed: a waker that comes later is met by the checks below.
        let interrupted = word.interrupt().is_some_and(|flag| flag.load(Ordering::Relaxed) != 0);
        if interrupted || deadline.left().is_none() {
            // What is there and what has ended go before both.
            let check_peer = self.is_time_to_check_peer();
            if self.check(&mut ready, &mut ended, check_peer)? {
                return Ok(());
            }
            if take_interrupt(word) {
                return Err(ErrorKind::Interrupted.into());
            }
            if readiness.is_none() && deadline.left().is_none() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        if self.spin(word, deadline, &mut ready, &mut ended)? {
            return Ok(());
        }
        let started = Instant::now();
        let outcome = self.sleep(word, readiness, deadline, &mut ready, &mut ended);
        if readiness.is_none() {
            word.disarm();
        }
        self.adapt(started);
        outcome
    }

    /// What a call that does not wait does after `ready` has said false: checks whether the peer has ended. Where there is
    /// a readiness descriptor, it arms that and checks both. `Ok(false)`: nothing, and the descriptor becomes readable as
    /// soon as there is something. Else it is readable now.
    pub(crate) fn once(
        &mut self,
        word: &impl Word,
        readiness: Option<&Readiness>,
        mut ready: impl FnMut() -> Result<bool>,
        mut ended: impl FnMut(bool) -> Result<()>,
    ) -> Result<bool> {
        if readiness.is_none() {
            let check_peer = self.is_time_to_check_peer();
            return self.check_end(&mut ready, &mut ended, check_peer);
        }
        Ok(self.arm(word, readiness, &mut ready, &mut ended, false, true)?.is_none())
    }

    /// Arms, checks again and sleeps, until `ready` says true.
    fn sleep(
        &mut self,
        word: &impl Word,
        readiness: Option<&Readiness>,
        deadline: Deadline,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
    ) -> Result<()> {
        let (mut check_peer, mut again) = (false, readiness.is_some());
        loop {
            let Some(armed) = self.arm(word, readiness, ready, ended, check_peer, again)? else { return Ok(()) };
            if take_interrupt(word) {
                return Err(ErrorKind::Interrupted.into());
            }
            let Some(left) = deadline.left() else { return Err(ErrorKind::TimedOut.into()) };
            let wake = match readiness {
                None => word.sleep(armed.expected, left.min(armed.longest)),
                // A shorter limit than this is the descriptor's.
                Some(readiness) => readiness.wait(left.min(POLL_INTERVAL)),
            };
            if wake == Wake::Interrupted && self.interruptible {
                return Err(ErrorKind::Interrupted.into());
            }
            let timed = wake.is_time_to_check();
            // After a short interval the clock decides: a system call for each would cost more than the sleep.
            check_peer = timed && armed.longest >= POLL_INTERVAL;
            // What it was woken for is nearly always there. Only to sleep again must it arm first, which costs a
            // membarrier: the wake-up took 1.6 × a bare futex's without this check.
            if !timed && ready()? {
                return Ok(());
            }
            again = true;
        }
    }

    /// Steps 1 to 3: arms and checks again, once `again` or for the first time. `None`: there is something; else a sleep
    /// may follow, and a readiness descriptor waits on the word already.
    fn arm(
        &mut self,
        word: &impl Word,
        readiness: Option<&Readiness>,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
        check_peer: bool,
        again: bool,
    ) -> Result<Option<Armed>> {
        if let Some(readiness) = readiness {
            readiness.consume();
        }
        let armed = if !again || keep(Step::Rearm) { word.arm() } else { Armed::left_out(word) };
        // After arming, like the check of what is waited for: the checker records a death and then wakes the word.
        let reported = readiness.is_some_and(Readiness::take_report);
        let check_peer = check_peer | reported | self.is_time_to_check_peer();
        let found = if keep(Step::Recheck) { self.check(ready, ended, check_peer) } else { Ok(false) };
        let Some(readiness) = readiness else { return Ok((!found?).then_some(armed)) };
        if let Ok(false) = found {
            // A waker that came since has changed the word, and then this is over at once.
            readiness.submit(armed.expected, (armed.longest < POLL_INTERVAL).then_some(armed.longest))?;
            return Ok(Some(armed));
        }
        readiness.signal();
        found.map(|_| None)
    }

    /// One check: `Ok(true)` ready, `Ok(false)` not yet, or how it ended.
    fn check(
        &mut self,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
        check_peer: bool,
    ) -> Result<bool> {
        if ready()? { Ok(true) } else { self.check_end(ready, ended, check_peer) }
    }

    /// The rest of a check, where `ready` has said false.
    #[inline(always)]
    fn check_end(
        &mut self,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
        check_peer: bool,
    ) -> Result<bool> {
        if check_peer {
            self.peer_checked = clock::coarse_ns();
        }
        match ended(check_peer) {
            Ok(()) => {
                self.peer_was_dead &= !check_peer;
                Ok(false)
            }
            Err(end) => {
                // A dead peer is still dead at the next call, and a vanished name still gone; the checker reports it once.
                self.peer_was_dead = check_peer;
                // The second check: the flag or the free lock was seen after `ready` had checked.
                if keep(Step::CheckAfterEnd) && ready()? { Ok(true) } else { Err(end) }
            }
        }
    }

    fn spin(
        &mut self,
        word: &impl Word,
        deadline: Deadline,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
    ) -> Result<bool> {
        if self.policy == WaitPolicy::Block {
            return Ok(false);
        }
        let alone = clock::cpus_online() == 1;
        if !alone {
            let polls = if self.policy == WaitPolicy::Hybrid { self.budget } else { POLLS_PER_CHECK };
            if poll(polls, ready)? {
                self.budget = (self.budget * 2).min(SPIN_MAX);
                return Ok(true);
            }
        }
        if self.policy == WaitPolicy::Hybrid {
            return Ok(false);
        }
        loop {
            let check_peer = self.is_time_to_check_peer();
            if self.check(ready, ended, check_peer)? {
                return Ok(true);
            }
            if take_interrupt(word) {
                return Err(ErrorKind::Interrupted.into());
            }
            if deadline.left().is_none() {
                return Err(ErrorKind::TimedOut.into());
            }
            if !alone && poll(POLLS_PER_CHECK, ready)? {
                return Ok(true);
            }
            // Also where there are more CPUs: the peer may be bound to this one (a container of one CPU), and would not
            // run before the end of our time slice, 4 ms later.
            std::thread::yield_now();
        }
    }

    /// A wait that was short would have been better spent polling to the end. The polls before `started` count by their
    /// number, so that a wait which ends among them has read no clock.
    fn adapt(&mut self, started: Instant) {
        self.budget = if started.elapsed() + POLL_TIME * self.budget < SHORT_WAIT {
            (self.budget * 2).min(SPIN_MAX)
        } else {
            (self.budget / 2).max(SPIN_MIN)
        };
    }
}

/// Whether another thread wants this wait to end; asked after the word was armed. Takes the request.
pub(crate) fn take_interrupt(word: &impl Word) -> bool {
    word.interrupt().is_some_and(|flag| {
        // Acquire: pairs with the waker's store. Relaxed store, not a swap: a second waker that comes between the two
        // ends the same wait.
        let asked = flag.load(Ordering::Acquire) != 0;
        if asked {
            flag.store(0, Ordering::Relaxed);
        }
        asked
    })
}

/// Polls up to `polls` times; true as soon as `ready` is.
#[inline(always)]
fn poll(polls: u32, ready: &mut impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..polls {
        if ready()? {
            return Ok(true);
        }
        spin_hint();
    }
    Ok(false)
}
