//! Waiting: spin for a bounded time, then sleep on a futex, without ever missing a wake-up and without a fence on the
//! waker's hot path.
//!
//! The sleeper (1) stores 1 into its wait word, (2) orders that store before (3) a second check of what it waits for,
//! and (4) sleeps only while the word is still 1; after *any* return it starts again at (1). The waker publishes, then
//! loads the word. Both would miss each other only if the waker's load went before its own store: either the waker
//! fences between the two, or (it is "fence-free") the sleeper makes it do so at step 2 by `membarrier`. `tests/loom.rs` shows
//! that leaving out any one of these loses a wake-up. The idea of the asymmetric fence is that of membarrier(2).

use crate::layout::{ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RoleLine};
use crate::ready::Readiness;
use crate::sync::{AtomicU32, Ordering, Step, fence, keep, spin_hint};
use crate::sys::{clock, futex, membarrier};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
/// death within two intervals.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest sleep where the waker does not fence and we cannot make it: the wake-up may be missed, so it is short.
const UNORDERED_INTERVAL: Duration = Duration::from_millis(1);

/// Polls of the shared word before sleeping, at most: 3,000 × 25 ns of PAUSE = 75 µs, about what a sleep and the
/// wake-up from it cost. With 2,000 a stream of a message every 50 µs was slept through, each time (docs/adr/0018).
pub(crate) const SPIN_MAX: u32 = 3_000;
pub(crate) const SPIN_MIN: u32 = 32;
/// Polls of a side that never sleeps between two checks of the clock, the deadline and the peer: 50 µs.
pub(crate) const POLLS_PER_CHECK: u32 = 2_000;
/// Polls of a receiver before it enters the general wait: 32 × 25 ns, more than a round trip takes.
pub(crate) const FIRST_POLLS: u32 = 32;
/// PAUSEs before the first poll of a wait; one between the later ones.
const FIRST_PAUSE: u32 = 3;
/// A wait that was over before this, the spinning and the 25 to 40 µs of the wake-up included, would have been better
/// spent spinning to the end.
pub(crate) const SHORT_WAIT: Duration = Duration::from_micros(110);

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

/// How one handle waits: private to its thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) policy: WaitPolicy,
    /// Polls to spend before sleeping, SPIN_MIN ..= SPIN_MAX; follows how long waits have lasted.
    budget: u32,
    /// This process can membarrier. Cleared if it ever fails.
    pub(crate) membarrier_capable: bool,
    /// Return `Interrupted` when a signal handler ran, instead of going on.
    pub(crate) interruptible: bool,
    /// The peer was dead at the last check: check again at once rather than after an interval.
    peer_was_dead: bool,
    /// When a system call was last spent on whether the peer lives, in coarse nanoseconds. Of the handle, not of the
    /// call: a loop of short waits learns of a death as one long wait does.
    peer_checked: u64,
    /// Set by a [`Waker`](crate::Waker): the wait that is running, or the next one, is to end.
    woken: Arc<AtomicU32>,
    /// The descriptor for event loops, once it was asked for. It is the word's one waiter then.
    pub(crate) readiness: Option<Readiness>,
}

impl Waiting {
    pub(crate) fn new(policy: WaitPolicy, membarrier_capable: bool) -> Self {
        Self {
            policy,
            budget: SPIN_MAX,
            membarrier_capable,
            interruptible: false,
            peer_was_dead: false,
            peer_checked: clock::coarse_ns(),
            woken: Arc::new(AtomicU32::new(0)),
            readiness: None,
        }
    }

    /// Whether this handle polls before it enters the general wait.
    #[inline(always)]
    pub(crate) fn polls(&self) -> bool {
        !cfg!(loom) && self.policy != WaitPolicy::Block && clock::cpus_online() > 1
    }

    /// What a waker sets.
    pub(crate) fn woken(&self) -> Arc<AtomicU32> {
        self.woken.clone()
    }

    /// Whether a waker wants this wait to end; asked after the word was armed. Takes the request.
    fn take_woken(&self) -> bool {
        // Acquire: pairs with the waker's store. Relaxed store, not a swap: a second waker that comes between the two
        // ends the same wait.
        let woken = self.woken.load(Ordering::Acquire) != 0;
        if woken {
            self.woken.store(0, Ordering::Relaxed);
        }
        woken
    }

    /// Whether it is time to spend a system call on whether the peer lives; a caller that gets true spends it.
    pub(crate) fn is_time_to_check_peer(&mut self) -> bool {
        let now = clock::coarse_ns();
        let due = self.peer_was_dead || now.wrapping_sub(self.peer_checked) >= POLL_INTERVAL.as_nanos() as u64;
        if due {
            self.peer_checked = now;
        }
        due
    }

    /// The peer was checked outside of a wait, and lives.
    pub(crate) fn saw_peer(&mut self, alive: bool) {
        self.peer_was_dead &= !alive;
    }

    /// A death was found: it is checked again at the next call.
    pub(crate) fn check_peer_again(&mut self) {
        self.peer_checked = clock::coarse_ns().wrapping_sub(POLL_INTERVAL.as_nanos() as u64);
    }

    /// Runs a wait for something that a system call checks: it sleeps at once.
    pub(crate) fn without_polling<R>(&mut self, wait: impl FnOnce(&mut Self) -> R) -> R {
        let (policy, budget) = (self.policy, self.budget);
        self.policy = WaitPolicy::Block;
        let result = wait(self);
        (self.policy, self.budget) = (policy, budget);
        result
    }

    /// The handle closes: nobody waits by its word any more, also where the descriptor was still armed.
    pub(crate) fn leave(&self, mine: &RoleLine) {
        if self.readiness.is_some() {
            disarm(mine);
        }
    }

    /// Blocks until `ready` says true.
    ///
    /// `mine` is the wait word's line of this role, `peer` the other's. `ended` is asked while `ready` says false; its
    /// argument says whether to spend a system call on whether the peer lives. What it returns as an error is
    /// returned, but only if `ready` still says false when asked *after* it: what was committed before the end is
    /// delivered before the end is.
    pub(crate) fn until(
        &mut self,
        mine: &RoleLine,
        peer: &RoleLine,
        deadline: Deadline,
        mut ready: impl FnMut() -> Result<bool>,
        mut ended: impl FnMut(bool) -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        // Relaxed: a waker that comes later is met by the checks below.
        if self.woken.load(Ordering::Relaxed) != 0 || deadline.left().is_none() {
            // What is there and what has ended go before both.
            let check_peer = self.is_time_to_check_peer();
            if self.decide(&mut ready, &mut ended, check_peer)? {
                return Ok(());
            }
            if self.take_woken() {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.readiness.is_none() && deadline.left().is_none() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        if self.spin(deadline, &mut ready, &mut ended)? {
            return Ok(());
        }
        if let Some(readiness) = self.readiness.take() {
            let outcome = self.until_readable(&readiness, mine, peer, deadline, &mut ready, &mut ended);
            if outcome.is_ok() {
                self.adapt(started);
            }
            self.readiness = Some(readiness);
            return outcome;
        }
        let mut check_peer = self.is_time_to_check_peer();
        let mut first = true;
        loop {
            let longest = if first || keep(Step::Rearm) { self.arm(mine, peer) } else { POLL_INTERVAL };
            let rechecked =
                if !first || keep(Step::Recheck) { self.decide(&mut ready, &mut ended, check_peer) } else { Ok(false) };
            first = false;
            let outcome = match rechecked {
                Ok(false) if self.take_woken() => Err(ErrorKind::Interrupted.into()),
                Ok(false) => match deadline.left() {
                    None => Err(ErrorKind::TimedOut.into()),
                    Some(left) => {
                        let wake = futex::wait(&mine.wait, 1, left.min(longest));
                        check_peer = wake.is_time_to_check();
                        if wake == futex::Wake::Interrupted && self.interruptible {
                            Err(ErrorKind::Interrupted.into())
                        } else if check_peer {
                            continue;
                        } else {
                            // What it was woken for is nearly always there. Only to sleep again must it arm first,
                            // which costs a membarrier: the wake-up took 1.6 × a bare futex's without this check.
                            match ready() {
                                Ok(false) => continue,
                                outcome => outcome,
                            }
                        }
                    }
                },
                other => other,
            };
            disarm(mine);
            self.adapt(started);
            return outcome.map(|_| ());
        }
    }

    /// The rest of [`until`](Self::until) for a handle that has a readiness descriptor. When it returns, the
    /// descriptor is armed after a time-out and readable after anything else, as after a `try_` call.
    fn until_readable(
        &mut self,
        readiness: &Readiness,
        mine: &RoleLine,
        peer: &RoleLine,
        deadline: Deadline,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
    ) -> Result<()> {
        let mut check_peer = self.is_time_to_check_peer();
        loop {
            if self.rearm_with(readiness, mine, peer, ready, ended, check_peer)? {
                return Ok(());
            }
            if self.take_woken() {
                return Err(ErrorKind::Interrupted.into());
            }
            let Some(left) = deadline.left() else { return Err(ErrorKind::TimedOut.into()) };
            #[cfg(not(loom))]
            let wake = readiness.wait(left.min(POLL_INTERVAL));
            #[cfg(loom)]
            let wake = readiness.wait(left.min(POLL_INTERVAL), &mine.wait);
            if wake == futex::Wake::Interrupted && self.interruptible {
                return Err(ErrorKind::Interrupted.into());
            }
            // Without consuming it: readable is what it is to be now. Only sleeping needs to be armed for.
            if wake == futex::Wake::Woken && ready()? {
                return Ok(());
            }
            check_peer = wake.is_time_to_check();
        }
    }

    /// What a `try_` call that found nothing does where there is a readiness descriptor: arms it and checks again.
    /// `Ok(false)`: nothing, and it becomes readable as soon as there is something. Otherwise it is readable now.
    pub(crate) fn rearm(
        &mut self,
        mine: &RoleLine,
        peer: &RoleLine,
        mut ready: impl FnMut() -> Result<bool>,
        mut ended: impl FnMut(bool) -> Result<()>,
        check_peer: bool,
    ) -> Result<bool> {
        let Some(readiness) = self.readiness.take() else { return ready() };
        let outcome = self.rearm_with(&readiness, mine, peer, &mut ready, &mut ended, check_peer);
        self.readiness = Some(readiness);
        outcome
    }

    fn rearm_with(
        &mut self,
        readiness: &Readiness,
        mine: &RoleLine,
        peer: &RoleLine,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
        check_peer: bool,
    ) -> Result<bool> {
        readiness.consume();
        let longest = if keep(Step::Rearm) { self.arm(mine, peer) } else { POLL_INTERVAL };
        // After arming, like the check of the ring: the checker records a death and then wakes the word.
        let check_peer = check_peer | readiness.look() | self.is_time_to_check_peer();
        let rechecked = if keep(Step::Recheck) { self.decide(ready, ended, check_peer) } else { Ok(false) };
        match rechecked {
            Ok(false) => {
                // A waker that came since has stored 0, and then this is over at once.
                readiness.submit(1, (longest < POLL_INTERVAL).then_some(longest))?;
                Ok(false)
            }
            other => {
                readiness.signal();
                other
            }
        }
    }

    /// One check: `Ok(true)` ready, `Ok(false)` not yet, or how it ended.
    pub(crate) fn decide(
        &mut self,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
        check_peer: bool,
    ) -> Result<bool> {
        if ready()? {
            return Ok(true);
        }
        if check_peer {
            self.peer_checked = clock::coarse_ns();
        }
        match ended(check_peer) {
            Ok(()) => {
                self.peer_was_dead &= !check_peer;
                Ok(false)
            }
            Err(end) => {
                // The checker reports it once.
                self.peer_was_dead = check_peer;
                // The second check: the flag or the free lock was seen after `ready` had checked.
                if keep(Step::CheckAfterEnd) && ready()? { Ok(true) } else { Err(end) }
            }
        }
    }

    /// Steps 1 and 2. Returns how long step 4 may last.
    pub(crate) fn arm(&mut self, mine: &RoleLine, peer: &RoleLine) -> Duration {
        // Relaxed: step 2 orders it.
        mine.wait.store(1, Ordering::Relaxed);
        if self.membarrier_capable {
            if !keep(Step::Membarrier) || membarrier::sync() {
                return POLL_INTERVAL;
            }
            // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
            self.membarrier_capable = false;
            let flags = mine.flags.load(Ordering::Relaxed);
            mine.flags.store(flags & !ROLE_MEMBARRIER_CAPABLE, Ordering::Relaxed);
        }
        // SeqCst fence: the store above goes before the second check; pairs with the fencing waker's fence.
        if keep(Step::SleeperFence) {
            fence(Ordering::SeqCst);
        }
        // Relaxed, after the fence: a waker that becomes fence-free fences between setting the flag and its first publish without a fence.
        let unordered = peer.flags.load(Ordering::Relaxed) & ROLE_FENCE_FREE != 0;
        if unordered && keep(Step::ShortIntervals) { UNORDERED_INTERVAL } else { POLL_INTERVAL }
    }

    fn spin(
        &mut self,
        deadline: Deadline,
        ready: &mut impl FnMut() -> Result<bool>,
        ended: &mut impl FnMut(bool) -> Result<()>,
    ) -> Result<bool> {
        if cfg!(loom) || self.policy == WaitPolicy::Block {
            return Ok(false);
        }
        let alone = clock::cpus_online() == 1;
        if !alone {
            first_pause();
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
            if self.decide(ready, ended, check_peer)? {
                return Ok(true);
            }
            if self.take_woken() {
                return Err(ErrorKind::Interrupted.into());
            }
            if deadline.left().is_none() {
                return Err(Error::from(ErrorKind::TimedOut));
            }
            if !alone && poll(POLLS_PER_CHECK, ready)? {
                return Ok(true);
            }
            // Also where there are more CPUs: the peer may be bound to this one (a container of one CPU), and would not
            // run before the end of our time slice, 4 ms later.
            std::thread::yield_now();
        }
    }

    fn adapt(&mut self, started: Instant) {
        self.budget = if started.elapsed() < SHORT_WAIT {
            (self.budget * 2).min(SPIN_MAX)
        } else {
            (self.budget / 2).max(SPIN_MIN)
        };
    }
}

/// Between a poll that found nothing and the next one. To poll again at once takes the line away from a peer that is
/// about to write it: this pause makes the round trip 0.85 to 0.95 × and one way 0.76 × (docs/adr/0001).
#[inline(always)]
pub(crate) fn first_pause() {
    for _ in 0..FIRST_PAUSE {
        spin_hint();
    }
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

/// Leaves the wait: step 3's "store 0".
pub(crate) fn disarm(mine: &RoleLine) {
    // Relaxed: a waker that still sees 1 makes one wake-up call too many, nothing else.
    mine.wait.store(0, Ordering::Relaxed);
}

/// The waker's slow half: called after the order between publishing and this load is made.
#[cold]
pub(crate) fn wake_if_waiting(peer: &RoleLine) {
    // Relaxed: ordered by the caller. Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
    if peer.wait.load(Ordering::Relaxed) != 0 {
        wake(peer);
    }
}

/// Wakes the peer whether it waits or not: for attach, close and epoch changes, which it must not sleep through.
#[cold]
pub(crate) fn wake(peer: &RoleLine) {
    // Relaxed: a sleeper that re-armed meanwhile is woken without need and arms again.
    peer.wait.store(0, Ordering::Relaxed);
    futex::wake_all(&peer.wait);
}
