//! Replies that their owners have from the ring at once: nothing of them is kept here.

use super::{Ledger, Number, Wire, place};
use crate::rpc::Status;
use crate::rpc::frame::ReplyHeader;

impl Ledger {
    /// A REPLY was received whose owner reads it where it lies: it counts as taken, and nothing of it is kept. `None`: it is to be
    /// kept as any other, because it says that the call has failed, is wrong, has no owner any more, is not `wanted`, or others
    /// that came before it were not taken.
    pub(in crate::rpc::client) fn reply_in_place(
        &mut self,
        id: u64,
        header: &ReplyHeader,
        has_body: bool,
        wanted: impl FnOnce(Number) -> bool,
    ) -> Option<Number> {
        let at = self.by_id.get(id)?;
        let number = self.number_at(at);
        let call = &mut self.calls[at as usize];
        let is_right =
            if header.element { call.window != 0 && call.credit != 0 } else { call.window == 0 || !has_body };
        let is_next = call.owned && !call.decided && call.elements.is_empty();
        if header.status != Status::Ok || !is_right || !is_next || !wanted(number) {
            return None;
        }
        if header.element {
            call.credit -= 1;
            self.element_was_taken(number);
            return Some(number);
        }
        self.answered_and_taken(number);
        Some(number)
    }

    /// The id of a call that is in flight, if its owner waits for its one reply and nothing has come for it.
    #[inline]
    pub(in crate::rpc::client) fn awaits_one(&self, number: Number) -> Option<u64> {
        let call = self.get(number)?;
        (call.wire == Wire::Sent && call.owned && !call.decided && call.window == 0).then_some(call.id)
    }

    /// The final REPLY of a call that is in flight and has no outcome has come: its owner has it, and nothing of it is kept.
    #[inline]
    pub(in crate::rpc::client) fn answered_and_taken(&mut self, number: Number) {
        let at = place(number);
        self.answered(self.calls[at].id, at as u32);
        let call = &mut self.calls[at];
        call.owned = false;
        call.be_decided(&mut self.deadlines);
        self.free_if_over(number);
    }
}
