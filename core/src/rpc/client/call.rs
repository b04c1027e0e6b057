//! What a client keeps of a call.

use std::collections::VecDeque;
use std::time::Instant;

use super::deadlines::Deadlines;
use super::reply::Reply;
use crate::rpc::CallResult;

/// A call that waits to be sent.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) method: u32,
    pub(crate) meta_len: usize,
    /// Of its payload what follows the header.
    pub(crate) rest: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Free,
    Queued,
    /// Published, without a final REPLY.
    Sent,
    /// Has its final REPLY, was never sent, or the connection is over.
    Done,
}

#[derive(Debug)]
pub(super) struct Call {
    /// How often this place was used before.
    pub(super) uses: u32,
    pub(super) wire: Wire,
    /// Somebody may still ask for what came of it.
    pub(super) owned: bool,
    /// An outcome is kept, or was.
    pub(super) decided: bool,
    pub(super) cancel_owed: bool,
    /// In `owed`.
    pub(super) is_in_owed: bool,
    /// In `changed`.
    pub(super) is_in_changed: bool,
    /// The `tag` of its frames, once sent.
    pub(super) id: u64,
    /// 0: one reply.
    pub(super) window: u32,
    /// Elements that the server may still send: never more than `window`.
    pub(super) credit: u32,
    /// Elements that were taken and not granted again.
    pub(super) taken: u32,
    pub(super) credit_owed: u32,
    pub(super) deadline: Option<Instant>,
    pub(super) queued: Option<Box<Queued>>,
    pub(super) elements: VecDeque<(Reply, usize)>,
    pub(super) outcome: Option<CallResult<Reply>>,
    /// Bytes of the outcome among `buffered`.
    pub(super) outcome_len: usize,
}

impl Call {
    pub(super) fn free(uses: u32) -> Self {
        Self {
            uses,
            wire: Wire::Free,
            owned: false,
            decided: false,
            cancel_owed: false,
            is_in_owed: false,
            is_in_changed: false,
            id: 0,
            window: 0,
            credit: 0,
            taken: 0,
            credit_owed: 0,
            deadline: None,
            queued: None,
            elements: VecDeque::new(),
            outcome: None,
            outcome_len: 0,
        }
    }

    /// How it ends for its owner is decided.
    #[inline]
    pub(super) fn be_decided(&mut self, deadlines: &mut Deadlines) {
        self.decided = true;
        if self.deadline.is_some() {
            deadlines.decided();
        }
    }

    /// A free place again, its outcome taken and its elements with it. Only what can be something else is written: most of a call
    /// is written once and never touched again.
    #[inline]
    pub(super) fn become_free(&mut self) {
        self.wire = Wire::Free;
        self.decided = false;
        self.cancel_owed = false;
        self.is_in_owed = false;
        self.is_in_changed = false;
        self.taken = 0;
        self.credit_owed = 0;
        self.deadline = None;
        self.queued = None;
        self.outcome = None;
        self.outcome_len = 0;
        // Never 0: no number is 0. 31 bits: numbers from `TICKETS` up are no calls.
        self.uses = ((self.uses + 1) & (u32::MAX >> 1)).max(1);
    }
}
