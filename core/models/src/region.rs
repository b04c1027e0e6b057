//! A region's notification word, without the region.

#[path = "../../src/region/word.rs"]
mod word;

use crate::WaitPolicy;
use crate::sync::AtomicU32;
use crate::wait::{Deadline, Waiting};

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
        let mut now = known;
        let sleeper = word::RegionWord { word: &self.0, known, writable: true };
        let changed = || {
            now = word::count(&self.0);
            Ok(now != known)
        };
        Waiting::new(WaitPolicy::Block).until(&sleeper, None, Deadline::NEVER, changed, |_| Ok(())).unwrap();
        now
    }
}
