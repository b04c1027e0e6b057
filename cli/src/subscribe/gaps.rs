//! What is said of lost messages: the first loss at once, then at most a line a second.

use std::time::{Duration, Instant};

use crate::output;

/// No more often than this. A subscriber that is far too slow loses messages thousands of times a second.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts losses and says them on standard error.
pub struct Gaps {
    name: String,
    quiet: bool,
    /// Lost and not said yet.
    unsaid: u64,
    total: u64,
    said: Option<Instant>,
}

impl Gaps {
    /// Of the topic with this name. `quiet`: nothing is said.
    pub fn new(name: &str, quiet: bool) -> Self {
        Self { name: name.to_owned(), quiet, unsaid: 0, total: 0, said: None }
    }

    /// So many were lost right before a message.
    #[inline]
    pub fn add(&mut self, lost: u64) {
        if lost > 0 {
            self.unsaid += lost;
            self.total += lost;
            self.say_in_time();
        }
    }

    /// Says what is due.
    pub fn say_in_time(&mut self) {
        if self.said.is_none_or(|said| said.elapsed() >= PAUSE) {
            self.say();
        }
    }

    /// Says all that is not said yet.
    pub fn say(&mut self) {
        if self.unsaid == 0 || self.quiet {
            return;
        }
        let Self { name, unsaid, total, .. } = self;
        output::note(&format!("lost {unsaid} message(s) of `{name}`, {total} in all"));
        self.unsaid = 0;
        self.said = Some(Instant::now());
    }
}
