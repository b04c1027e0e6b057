//! Why a sleep on a word ended.

/// Whatever it says, the caller checks the shared state again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody woke this word, or the kernel did so spuriously.
    Woken,
    /// The word did not hold the expected value any more, so there was no sleep.
    Changed,
    /// The time passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

impl Wake {
    /// Whether to ask if the peer lives. After a signal too: a timer that fires more often than a poll interval lasts must not
    /// put the question off forever.
    pub(crate) fn is_time_to_check(self) -> bool {
        matches!(self, Self::TimedOut | Self::Interrupted)
    }
}
