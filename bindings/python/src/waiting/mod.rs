//! How a call of Python waits: without the interpreter lock, and for at most a poll interval at a time, so that signals
//! are handled.

pub(crate) mod awaitable;
pub(crate) mod operation;
pub(crate) mod watch;

use crate::args::Timeout;
use crate::errors::{error, raise};
use pyo3::prelude::*;
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, WaitPolicy};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Polls of a receive before it gives the interpreter lock up.
pub(crate) use ramway::facts::INTERPRETER_POLLS as FIRST_POLLS;
/// Also the longest wait between two checks for signals. A sleep ends at a signal at once (`Interrupted`); only a signal
/// that another thread was given is seen no earlier.
pub(crate) use ramway::facts::POLL_INTERVAL;
/// The same for a wait that never sleeps, and so is not interrupted either.
const SPIN_INTERVAL: Duration = Duration::from_millis(10);

/// The poll interval of a handle that waits by this policy.
pub(crate) fn poll_interval(policy: WaitPolicy) -> Duration {
    if policy == WaitPolicy::Spin { SPIN_INTERVAL } else { POLL_INTERVAL }
}

/// A wait limit of [`wait`], for calls of the core that take a length of time.
pub(crate) fn limit(wait_limit: WaitLimit) -> Duration {
    match wait_limit {
        WaitLimit::None => Duration::ZERO,
        WaitLimit::For(limit) => limit,
        WaitLimit::Forever => Duration::MAX,
    }
}

/// Makes `attempt` without the interpreter lock until it says something else than `TimedOut`, `Interrupted`, `Full` or
/// `Empty`, or the time is up: then `TimedOutError`. After each interval, with the lock, the signals' handlers run and
/// `between` is asked.
#[cold]
#[inline(never)]
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    timeout: Timeout,
    interval: Duration,
    mut attempt: impl FnMut(WaitLimit) -> ramway::Result<T> + Send,
    mut between: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let deadline = timeout.0.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let wait_limit = match left {
            Some(left) if left.is_zero() => WaitLimit::None,
            Some(left) => WaitLimit::For(left.min(interval)),
            None => WaitLimit::For(interval),
        };
        match py.detach(|| attempt(wait_limit)) {
            Ok(value) => return Ok(value),
            Err(e) => match e.kind() {
                ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::Full | ErrorKind::Empty => {
                    py.check_signals()?;
                    between(py)?;
                    if wait_limit == WaitLimit::None {
                        return Err(error(py, ErrorKind::TimedOut, "the time was up"));
                    }
                }
                _ => return Err(raise(py, e)),
            },
        }
    }
}

/// Makes `attempt`, which asks now and then whether it is to go on, without the interpreter lock. At each such question
/// the signals' handlers run; an exception of theirs ends it.
pub(crate) fn unless_signalled<T: Send>(
    py: Python<'_>,
    attempt: impl FnOnce(&dyn Fn() -> bool) -> ramway::Result<T> + Send,
) -> PyResult<T> {
    let raised = Mutex::new(None);
    let done = py.detach(|| {
        attempt(&|| match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(exception) => {
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(exception);
                false
            }
        })
    });
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(exception) => Err(exception),
        None => done.map_err(|e| raise(py, e)),
    }
}
