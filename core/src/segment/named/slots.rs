//! The locks of a topic's subscribers. Byte 16 + i exclusive: slot i has a living subscriber. Byte 2 exclusive: a
//! subscriber with a label looks for its slot, so that two with one label cannot both find none.
//!
//! Only an exclusive lock is a life: it takes write access, while whoever may read the file can take a shared one.

use std::time::Duration;

use super::{NamedLink, held_by_another};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::{BYTE_JOIN, BYTE_SLOT, RACE_PAUSE_MIN};
use crate::segment::attempts::Attempts;
use crate::sys::fork::Entry;
use crate::sys::lock::{self, Mode};

/// The byte of a slot.
pub(super) fn byte(slot: u32) -> u64 {
    BYTE_SLOT + u64::from(slot)
}

impl NamedLink {
    /// Takes a slot's lock. `false`: another handle has it. A handle holds one at most, until it is released here or the
    /// link is dropped.
    pub(crate) fn try_slot(&mut self, slot: u32) -> Result<bool> {
        debug_assert!(self.slot.is_none(), "one slot a handle");
        let taken = lock::try_lock(self.entry.fd(0), byte(slot), Mode::Exclusive)?;
        if taken {
            self.slot = Some(slot);
        }
        Ok(taken)
    }

    /// Lets the slot go; does nothing if this handle does not hold it.
    pub(crate) fn release_slot(&mut self, slot: u32) {
        if self.slot == Some(slot) && !self.entry.is_detached() {
            lock::unlock(self.entry.fd(0), byte(slot));
            self.slot = None;
        }
    }

    /// Who asks about slots apart from this handle.
    pub(crate) fn slot_locks(&self) -> SlotLocks {
        SlotLocks(self.entry.clone())
    }

    /// Whether the slot's subscriber lives, if it is not this handle. Says yes when it cannot know. One system call.
    pub(crate) fn slot_held_by_another(&self, slot: u32) -> bool {
        held_by_another(&self.entry, byte(slot))
    }

    /// Begins a join with a label: excludes every other one until [`unlock_join`](Self::unlock_join). Waits for those
    /// under way until `timeout`, then `Busy`; `Interrupted` once `go_on`, asked every 10 ms, says no.
    pub(crate) fn lock_join(&mut self, timeout: Duration, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let mut attempts = Attempts::new(RACE_PAUSE_MIN);
        while !lock::try_lock(self.entry.fd(0), BYTE_JOIN, Mode::Exclusive)? {
            let text = "another subscriber with a label was joining, at each attempt until the deadline: try again";
            attempts.again(timeout, Error::new(ErrorKind::Busy, text), go_on)?;
        }
        Ok(())
    }

    /// Ends a join with a label. Does nothing if none was begun.
    pub(crate) fn unlock_join(&mut self) {
        if !self.entry.is_detached() {
            lock::unlock(self.entry.fd(0), BYTE_JOIN);
        }
    }
}

/// The locks of a topic's slots, for those who only ask. Keeps the descriptors open, not the locks held.
#[derive(Clone, Debug)]
pub struct SlotLocks(Entry);

impl SlotLocks {
    /// [`NamedLink::slot_held_by_another`].
    pub(crate) fn is_held(&self, slot: u32) -> bool {
        held_by_another(&self.0, byte(slot))
    }
}

#[cfg(test)]
impl SlotLocks {
    /// Of no file: every slot has a living subscriber.
    pub(crate) fn all_held() -> Self {
        Self(Entry::detached())
    }
}

#[cfg(test)]
mod tests;
