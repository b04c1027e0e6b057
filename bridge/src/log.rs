//! What the bridge says of itself, on standard error, a line each.

use std::time::{Duration, Instant};

/// Says something.
pub fn say(text: &str) {
    crate::report::line(text);
}

/// Says the same thing seldom, although it is met again and again.
#[derive(Debug, Default)]
pub struct Once {
    last: Option<(String, Instant)>,
}

impl Once {
    /// Says something, if it was not just said.
    pub fn say(&mut self, text: &str) {
        let fresh = self.last.as_ref().is_some_and(|(said, at)| said == text && at.elapsed() < Duration::from_secs(60));
        if !fresh {
            say(text);
            self.last = Some((text.to_owned(), Instant::now()));
        }
    }

    /// It is well again.
    pub fn forget(&mut self) {
        self.last = None;
    }
}
