//! A region's notification word, without the region.

#[path = "../../region/word.rs"]
#[allow(dead_code, reason = "the readiness descriptor's half has a model of its own")]
mod word;

use crate::sync::AtomicU32;
use crate::wait::POLL_INTERVAL;

/// The word, and the calls that a region makes of it.
#[derive(Debug)]
pub struct Notifications(AtomicU32);

impl Default for Notifications {
    fn default() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Notifications {
    /// As `Region::notify`.
    pub fn notify(&self) {
        word::notify(&self.0);
    }

    /// As `Region::wait_since` without a deadline.
    pub fn wait_since(&self, known: u32) -> u32 {
        loop {
            if let Some(count) = word::round(&self.0, known, POLL_INTERVAL) {
                return count;
            }
        }
    }
}
