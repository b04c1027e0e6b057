//! Room that a sender writes a message into, in place.

use super::Sender;
use super::log::{Log, Ring};
use super::sender::user_type_id;
use crate::{Error, ErrorKind, Result};
use std::ops::{Deref, DerefMut};

/// Room for one message, written in place. Holds whatever an earlier message left there.
///
/// At most one per sender, which the borrow says. Dropping it without a commit leaves nothing behind.
#[derive(Debug)]
pub struct Slot<'a, L: Log = Ring> {
    pub(super) sender: &'a mut Sender<L>,
    pub(super) data: *mut u8,
    pub(super) len: usize,
    pub(super) type_id: u32,
    pub(super) tag: u64,
}

// SAFETY: a slot is a unique borrow of a sender, which may move between threads.
unsafe impl<L: Log> Send for Slot<'_, L> {}

impl<L: Log> Slot<'_, L> {
    /// Sets the message's type id, 0 if never called.
    #[must_use]
    pub fn with_type_id(mut self, type_id: u32) -> Self {
        self.type_id = type_id;
        self
    }

    /// Sets the message's tag, 0 if never called.
    #[must_use]
    pub fn with_tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Sends the first `len` bytes. An error (`InvalidArgument` for a `len` beyond what was reserved or a reserved
    /// type id) aborts the slot.
    #[inline(always)]
    pub fn commit(self, len: usize) -> Result<()> {
        self.commit_with(len, true)
    }

    /// Like [`commit`](Self::commit), but visible only after [`Sender::flush`], the next flushed message, or when
    /// the sender has to wait, finds the ring full, or closes.
    #[inline(always)]
    pub fn commit_unflushed(self, len: usize) -> Result<()> {
        self.commit_with(len, false)
    }

    #[inline(always)]
    fn commit_with(self, len: usize, flush: bool) -> Result<()> {
        user_type_id(self.type_id)?;
        if len > self.len {
            return Err(too_long(len));
        }
        // SAFETY: `data` is what the sender reserved last, `self.len` bytes: it has been borrowed since.
        unsafe { self.sender.commit_raw(self.data, len, self.type_id, self.tag, flush) }
    }
}

impl<L: Log> Deref for Slot<'_, L> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: reserved, mapped bytes; mapped memory is never uninitialised. They are ours alone until commit.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<L: Log> DerefMut for Slot<'_, L> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

/// Nothing to do: a reservation is no more than a borrow. Here so that `drop(slot)` reads, and lints, as giving it up.
impl<L: Log> Drop for Slot<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {}
}

#[cold]
pub(super) fn too_long(len: usize) -> Error {
    let text = format!("committing {len} bytes: the slot has room for fewer, or no slot is open");
    Error::new(ErrorKind::InvalidArgument, text)
}
