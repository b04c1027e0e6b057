//! Trying again until a deadline, for what has no descriptor to wait on: names, roles, listeners.

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::facts::{CONNECT_PAUSE_MAX, RACE_PAUSE_MAX};

// One loop has one longest pause, which is also how often the caller is asked whether to go on.
const _: () = assert!(RACE_PAUSE_MAX.as_nanos() == CONNECT_PAUSE_MAX.as_nanos());

/// Attempts since [`new`](Self::new), with pauses that double up to 10 ms.
pub(crate) struct Attempts {
    start: Instant,
    pause: Duration,
    made: u32,
}

/// The least number of attempts before a race is given up, whatever time they take. On a slow machine, or on one that was stopped
/// for a while, the first attempt alone may take longer than the time limit.
const RACE_ATTEMPTS: u32 = 10;

impl Attempts {
    /// `first_pause` is the one after the first attempt.
    pub(crate) fn new(first_pause: Duration) -> Self {
        Self { start: Instant::now(), pause: first_pause, made: 0 }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether there were too few of them to give up a race.
    pub(crate) fn are_few(&self) -> bool {
        self.made < RACE_ATTEMPTS
    }

    /// Pauses before the next attempt. `error`, what the last one came to, is the result once `limit` has passed since the
    /// first; `Interrupted` is once `go_on` says no.
    pub(crate) fn again(&mut self, limit: Duration, error: Error, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        self.made += 1;
        let left = limit.saturating_sub(self.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        std::thread::sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(RACE_PAUSE_MAX);
        if go_on() { Ok(()) } else { Err(ErrorKind::Interrupted.into()) }
    }
}
