//! The state of a client's calls: which are queued, in flight, over; what they owe the server; what was received for them. No
//! input and output, no clock.
//!
//! A call has two ends. On the wire it ends with its final REPLY (or was never sent); for its owner it ends when the owner
//! has taken the outcome, or let go of the call. Its place here is free when both have come.

use std::collections::VecDeque;
use std::time::Instant;

pub(crate) use super::call::Queued;
use super::call::{Call, Wire};
use super::deadlines::Deadlines;
use super::ids::Ids;
use super::reply::Reply;
use crate::rpc::frame::ReplyHeader;
use crate::rpc::{CallError, CallResult, Status};
use crate::{Error, ErrorKind};

/// A call of this client, for its owner: the place in `calls`, and how often that was used before.
pub(crate) type Number = u64;

/// From here up they are of those who wait for a place for a call.
pub(crate) const TICKETS: Number = 1 << 63;

/// What an owner can take from a call.
#[doc(hidden)] // for the bindings; not part of the stable API
#[derive(Debug)]
pub enum Taken {
    /// Nothing yet.
    NotYet,
    /// An element of a stream.
    Element(Reply),
    /// The outcome, which is the last. Of a stream that is complete: `Ok`, with an empty body.
    End(CallResult<Reply>),
}

/// What is to be written next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Cancel {
        id: u64,
    },
    Credit {
        id: u64,
        elements: u32,
    },
    /// The first call in the queue; `len` bytes follow its header.
    Call {
        number: Number,
        len: usize,
    },
}

/// Something that no correct server sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub(crate) &'static str);

/// How the connection ended.
#[derive(Debug)]
struct Over {
    kind: ErrorKind,
    text: String,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    max_in_flight: u32,
    max_buffered: usize,
    /// Bytes of replies that nobody has taken.
    buffered: usize,
    calls: Vec<Call>,
    free: Vec<u32>,
    /// Those in flight.
    by_id: Ids,
    /// Of the last CALL.
    last_id: u64,
    queue: VecDeque<Number>,
    /// Of the queue, those that were withdrawn.
    withdrawn: usize,
    /// Calls that owe a CANCEL or CREDIT, by their places, and those that did. No CALL is sent while one owes something, so there
    /// are never more than calls can be in flight.
    owed: VecDeque<Number>,
    deadlines: Deadlines,
    over: Option<Over>,
    /// Calls that have something to be taken, if somebody asks for that: each at most once.
    changed: Option<VecDeque<Number>>,
}

fn place(number: Number) -> usize {
    number as u32 as usize
}

impl Ledger {
    pub(crate) fn new(max_in_flight: u32, max_buffered: usize) -> Self {
        Self {
            max_in_flight,
            max_buffered,
            buffered: 0,
            calls: Vec::new(),
            free: Vec::new(),
            by_id: Ids::default(),
            last_id: 0,
            queue: VecDeque::new(),
            withdrawn: 0,
            owed: VecDeque::new(),
            deadlines: Deadlines::default(),
            over: None,
            changed: None,
        }
    }

    /// Keeps a list of the calls that have something to be taken.
    pub(crate) fn list_changed(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// A call that has something to be taken since it was listed last.
    pub(crate) fn next_changed(&mut self) -> Option<Number> {
        loop {
            let number = self.changed.as_mut()?.pop_front()?;
            if let Some(call) = self.get_mut(number) {
                call.is_in_changed = false;
                return Some(number);
            }
        }
    }

    /// Calls that are published and have no final REPLY.
    pub(crate) fn in_flight(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.by_id.len() < self.max_in_flight as usize
    }

    /// Whether a new call goes before nothing else, and has a place.
    #[inline]
    pub(crate) fn sends_at_once(&self) -> bool {
        self.has_room() && self.owed.is_empty() && self.queue.len() == self.withdrawn
    }

    /// Whether there may be something to be written.
    #[inline]
    pub(crate) fn may_be_due(&self) -> bool {
        !self.owed.is_empty() || !self.queue.is_empty()
    }

    /// Whether no call is queued or in flight, and nothing is owed: the next frame from the server is then for the next call.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.by_id.len() == 0 && !self.may_be_due()
    }

    /// Whether a reply of `len` bytes may be kept.
    #[inline]
    pub(super) fn may_keep(&self, len: usize) -> bool {
        self.buffered.checked_add(len).is_some_and(|sum| sum <= self.max_buffered)
    }

    /// The id of the next CALL.
    #[inline]
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id + 1
    }

    #[inline]
    fn get(&self, number: Number) -> Option<&Call> {
        self.calls.get(place(number)).filter(|call| call.uses == (number >> 32) as u32 && call.wire != Wire::Free)
    }

    #[inline]
    fn get_mut(&mut self, number: Number) -> Option<&mut Call> {
        self.calls.get_mut(place(number)).filter(|call| call.uses == (number >> 32) as u32 && call.wire != Wire::Free)
    }

    #[inline]
    fn number_at(&self, at: u32) -> Number {
        u64::from(self.calls[at as usize].uses) << 32 | u64::from(at)
    }

    #[cold]
    fn another_place(&mut self) -> u32 {
        let at = u32::try_from(self.calls.len()).expect("fewer than 2^32 calls fit into memory");
        self.calls.push(Call::free(1));
        at
    }

    #[inline]
    fn add(&mut self, window: u32, wire: Wire) -> Number {
        let at = match self.free.pop() {
            Some(at) => at,
            None => self.another_place(),
        };
        let call = &mut self.calls[at as usize];
        call.wire = wire;
        call.owned = true;
        call.window = window;
        call.credit = window;
        self.number_at(at)
    }

    /// A CALL with [`next_id`](Self::next_id) was published.
    #[inline]
    pub(crate) fn sent(&mut self, window: u32) -> Number {
        self.last_id += 1;
        self.sent_last(window)
    }

    /// The same of a call that nothing is known of here but its id, which was the last one: see [`sent_alone`](Self::sent_alone).
    #[inline]
    pub(super) fn sent_last(&mut self, window: u32) -> Number {
        let number = self.add(window, Wire::Sent);
        self.publish(number);
        number
    }

    /// A CALL with [`next_id`](Self::next_id) was published while nothing else was under way. Gives its id. Nothing is known of it here
    /// before [`sent_last`](Self::sent_last); until then only its final REPLY may be received, by who calls this.
    #[inline]
    pub(super) fn sent_alone(&mut self) -> u64 {
        debug_assert!(self.is_idle());
        self.last_id += 1;
        self.last_id
    }

    #[inline]
    fn publish(&mut self, number: Number) {
        let id = self.last_id;
        let call = &mut self.calls[place(number)];
        call.wire = Wire::Sent;
        call.id = id;
        self.by_id.insert(id, place(number) as u32);
    }

    /// A call that cannot be sent yet.
    pub(crate) fn queue(&mut self, window: u32, queued: Queued) -> Number {
        let number = self.add(window, Wire::Queued);
        self.calls[place(number)].queued = Some(Box::new(queued));
        self.queue.push_back(number);
        number
    }

    /// Sets when a call times out; once, right after it was made.
    pub(crate) fn set_deadline(&mut self, number: Number, at: Instant) {
        if let Some(call) = self.get_mut(number)
            && !call.decided
        {
            call.deadline = Some(at);
            let calls = &self.calls;
            self.deadlines.add(at, number, |number| is_undecided(calls, number));
        }
    }

    /// What is to be written next: what is owed, then calls.
    pub(crate) fn due(&mut self) -> Due {
        while let Some(&number) = self.owed.front() {
            match self.get(number) {
                Some(call) if call.cancel_owed => return Due::Cancel { id: call.id },
                Some(call) if call.credit_owed != 0 => {
                    return Due::Credit { id: call.id, elements: call.credit_owed };
                }
                // Its final REPLY has come since.
                _ => self.pop_owed(),
            }
        }
        while self.withdrawn != 0
            && let Some(&number) = self.queue.front()
            && self.queued_call(number).is_none()
        {
            self.queue.pop_front();
            self.withdrawn -= 1;
        }
        if let Some(&number) = self.queue.front()
            && self.has_room()
        {
            let len = self.queued_call(number).map_or(0, |queued| queued.rest.len());
            return Due::Call { number, len };
        }
        Due::Nothing
    }

    /// A call of the queue, as long as it waits there.
    pub(crate) fn queued_call(&self, number: Number) -> Option<&Queued> {
        self.get(number).filter(|call| call.wire == Wire::Queued)?.queued.as_deref()
    }

    pub(crate) fn window(&self, number: Number) -> u32 {
        self.get(number).map_or(0, |call| call.window)
    }

    pub(crate) fn deadline(&self, number: Number) -> Option<Instant> {
        self.get(number)?.deadline
    }

    fn pop_owed(&mut self) {
        if let Some(number) = self.owed.pop_front()
            && let Some(call) = self.get_mut(number)
        {
            call.is_in_owed = false;
        }
    }

    /// The CANCEL or CREDIT that [`due`](Self::due) gave was published.
    pub(crate) fn owed_was_sent(&mut self) {
        if let Some(&number) = self.owed.front()
            && let Some(call) = self.get_mut(number)
        {
            call.credit = call.credit.saturating_add(call.credit_owed);
            call.credit_owed = 0;
            call.cancel_owed = false;
        }
        self.pop_owed();
    }

    /// The CALL that [`due`](Self::due) gave was published, with [`next_id`](Self::next_id).
    pub(crate) fn queued_was_sent(&mut self) {
        if let Some(number) = self.queue.pop_front() {
            self.calls[place(number)].queued = None;
            self.last_id += 1;
            self.publish(number);
        }
    }

    /// A REPLY was received. `len` is its payload's length; `copy` copies metadata and body.
    #[inline]
    pub(crate) fn reply(
        &mut self,
        id: u64,
        header: ReplyHeader,
        has_body: bool,
        len: usize,
        copy: impl FnOnce() -> Reply,
    ) -> Result<(), Wrong> {
        let Some(at) = self.by_id.get(id) else { return Err(self.no_such_reply(id)) };
        let (number, call) = (self.number_at(at), &mut self.calls[at as usize]);
        if header.element {
            if call.window == 0 {
                return Err(Wrong("an element of a stream for a call with one reply"));
            }
            call.credit = call.credit.checked_sub(1).ok_or(Wrong("an element of a stream beyond its credit"))?;
        } else {
            if call.window != 0 && header.status == Status::Ok && has_body {
                return Err(Wrong("the end of a stream with a body"));
            }
            self.answered(id, at);
        }
        let call = &self.calls[at as usize];
        if call.decided || !call.owned {
            if !header.element {
                self.free_if_over(number);
            }
            return Ok(());
        }
        if !self.may_keep(len) {
            self.too_much(number, len);
            return Ok(());
        }
        self.buffered += len;
        let call = &mut self.calls[at as usize];
        if header.element {
            call.elements.push_back((copy(), len));
            self.has_changed(number);
            return Ok(());
        }
        call.outcome_len = len;
        if header.status == Status::Ok {
            // As `decide`, but that its CALL is answered, and the reply is written where it is kept.
            call.be_decided(&mut self.deadlines);
            call.outcome = Some(Ok(copy()));
            self.has_changed(number);
        } else {
            self.failed(number, header, &copy());
        }
        Ok(())
    }

    /// The final REPLY of a call has come.
    #[inline]
    fn answered(&mut self, id: u64, at: u32) {
        self.by_id.remove(id);
        let call = &mut self.calls[at as usize];
        call.wire = Wire::Done;
        call.cancel_owed = false;
        call.credit_owed = 0;
    }

    /// The owner of a stream has taken an element.
    #[inline]
    fn element_was_taken(&mut self, number: Number) {
        let call = &mut self.calls[place(number)];
        call.taken = call.taken.saturating_add(1);
        // In halves of the window: one CREDIT for several elements, and the server need not stop.
        if call.taken >= call.window.div_ceil(2) && !call.decided && call.wire == Wire::Sent {
            call.credit_owed = call.credit_owed.saturating_add(call.taken);
            call.taken = 0;
            self.note_owed(number);
        }
    }

    #[cold]
    fn no_such_reply(&self, id: u64) -> Wrong {
        let never = id == 0 || id > self.last_id;
        Wrong(if never { "a reply to a call that was not made" } else { "a reply to a call that has ended" })
    }

    #[cold]
    fn too_much(&mut self, number: Number, len: usize) {
        let text = format!(
            "a reply of {len} bytes, with {} bytes of replies that were not taken: more than {} in all (`max_buffered`)",
            self.buffered, self.max_buffered
        );
        self.decide(number, Err(CallError::of_error(Error::new(ErrorKind::TooLarge, text), true)));
    }

    /// The final REPLY says that the call has failed.
    #[cold]
    fn failed(&mut self, number: Number, header: ReplyHeader, reply: &Reply) {
        let text = String::from_utf8_lossy(reply.body());
        self.decide(number, Err(CallError::of_status(header.status, header.code, &text)));
    }

    /// Decides how a call ends for its owner. One that is in flight owes CANCEL then.
    fn decide(&mut self, number: Number, outcome: CallResult<Reply>) {
        let call = &mut self.calls[place(number)];
        debug_assert!(!call.decided);
        call.be_decided(&mut self.deadlines);
        if call.owned {
            call.outcome = Some(outcome);
        }
        match call.wire {
            Wire::Queued => {
                call.wire = Wire::Done;
                call.queued = None;
                self.withdraw();
            }
            Wire::Sent => self.owe_cancel(number),
            Wire::Done | Wire::Free => {}
        }
        self.has_changed(number);
    }

    /// One more of the queue is no longer to be sent. They leave it when they come to its front, or when they are more than half.
    fn withdraw(&mut self) {
        self.withdrawn += 1;
        if self.withdrawn > 64 && 2 * self.withdrawn > self.queue.len() {
            let calls = &self.calls;
            self.queue.retain(|number| {
                let call = &calls[place(*number)];
                call.uses == (*number >> 32) as u32 && call.wire == Wire::Queued
            });
            self.withdrawn = 0;
        }
    }

    fn owe_cancel(&mut self, number: Number) {
        let call = &mut self.calls[place(number)];
        call.cancel_owed = true;
        call.credit_owed = 0;
        self.note_owed(number);
    }

    fn note_owed(&mut self, number: Number) {
        let call = &mut self.calls[place(number)];
        if !call.is_in_owed {
            call.is_in_owed = true;
            self.owed.push_back(number);
        }
    }

    #[inline]
    fn has_changed(&mut self, number: Number) {
        let Some(changed) = &mut self.changed else { return };
        let call = &mut self.calls[place(number)];
        if call.owned && !call.is_in_changed {
            call.is_in_changed = true;
            changed.push_back(number);
        }
    }

    #[inline]
    fn free_if_over(&mut self, number: Number) {
        let Some(call) = self.get_mut(number) else { return };
        if call.owned || call.wire != Wire::Done {
            return;
        }
        if !call.elements.is_empty() || call.elements.capacity() > crate::facts::RPC_WINDOW_DEFAULT as usize {
            self.clear_elements(number);
        }
        let call = &mut self.calls[place(number)];
        self.buffered -= call.outcome_len;
        call.become_free();
        self.free.push(place(number) as u32);
    }

    /// Of a call that ends. Keeps what a stream's list has allocated, up to a default window.
    #[cold]
    fn clear_elements(&mut self, number: Number) {
        let elements = &mut self.calls[place(number)].elements;
        self.buffered -= elements.drain(..).map(|(_, len)| len).sum::<usize>();
        elements.shrink_to(crate::facts::RPC_WINDOW_DEFAULT as usize);
    }

    /// Whether there is something to be taken.
    #[inline]
    pub(crate) fn is_ready(&self, number: Number) -> bool {
        self.get(number).is_none_or(|call| call.decided || !call.elements.is_empty() || !call.owned)
    }

    /// What has come for a call. After its end the number means nothing.
    #[inline]
    pub(crate) fn take(&mut self, number: Number) -> Taken {
        let Some(call) = self.get_mut(number).filter(|call| call.owned) else { return Taken::End(Err(no_such_call())) };
        if let Some((element, len)) = call.elements.pop_front() {
            self.element_was_taken(number);
            self.buffered -= len;
            return Taken::Element(element);
        }
        if !call.decided {
            return Taken::NotYet;
        }
        let outcome = call.outcome.take();
        call.owned = false;
        self.free_if_over(number);
        Taken::End(outcome.unwrap_or_else(|| Err(no_such_call())))
    }

    /// The owner lets go of a call, and cancels it if it has no outcome.
    pub(crate) fn let_go(&mut self, number: Number) {
        let Some(call) = self.get_mut(number).filter(|call| call.owned) else { return };
        call.owned = false;
        if !call.decided {
            self.decide(number, Err(no_such_call()));
        }
        self.give_bytes_back(number);
        self.free_if_over(number);
    }

    /// [`let_go`](Self::let_go) of all calls.
    pub(crate) fn let_go_of_all(&mut self) {
        for at in 0..self.calls.len() {
            self.let_go(self.number_at(at as u32));
        }
    }

    /// Whether a call owes a CANCEL or CREDIT, or did.
    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Of a call that nobody owns: what was received for it.
    fn give_bytes_back(&mut self, number: Number) {
        let call = &mut self.calls[place(number)];
        let mut bytes = std::mem::take(&mut call.outcome_len);
        bytes += call.elements.drain(..).map(|(_, len)| len).sum::<usize>();
        call.outcome = None;
        self.buffered -= bytes;
    }

    /// Whether a call has a time limit and no outcome.
    #[inline]
    pub(crate) fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// When the next call times out.
    #[inline]
    pub(crate) fn next_deadline(&mut self) -> Option<Instant> {
        let calls = &self.calls;
        self.deadlines.first(|number| is_undecided(calls, number))
    }

    /// Ends the calls whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        loop {
            let calls = &self.calls;
            let Some(number) = self.deadlines.next_over(now, |number| is_undecided(calls, number)) else { return };
            self.time_out(number);
        }
    }

    /// A final REPLY says that a call was cancelled. If its time is over, that is why: the server's clock has said so a moment before
    /// this side asked its own.
    pub(crate) fn was_cancelled(&mut self, id: u64, now: Instant) {
        if let Some(at) = self.by_id.get(id)
            && self.calls[at as usize].deadline.is_some_and(|deadline| deadline <= now)
        {
            self.time_out(self.number_at(at));
        }
    }

    /// A call's time is over.
    pub(crate) fn time_out(&mut self, number: Number) {
        if let Some(call) = self.get(number)
            && !call.decided
        {
            let sent = call.wire == Wire::Sent;
            self.decide(number, Err(CallError::of_error(ErrorKind::TimedOut.into(), sent)));
        }
    }

    /// Ends all calls: the connection is over, as the receiver or the sender says. What has an outcome keeps it.
    pub(crate) fn end(&mut self, kind: ErrorKind, text: String) {
        // A server closes only when every call that it took has its reply: what has none was not taken.
        self.end_with(kind, text, kind != ErrorKind::Closed);
    }

    /// Ends all calls: this side closes. Nobody knows what the server has taken.
    pub(crate) fn close(&mut self) {
        self.end_with(ErrorKind::Closed, "this client was closed".into(), true);
    }

    fn end_with(&mut self, kind: ErrorKind, text: String, sent_may_have_run: bool) {
        if self.over.is_some() {
            return;
        }
        let over = self.over.insert(Over { kind, text });
        let error = || Error::new(over.kind, over.text.clone());
        let mut ended = Vec::new();
        for (at, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| call.wire != Wire::Free) {
            let sent = call.wire == Wire::Sent;
            call.wire = Wire::Done;
            call.queued = None;
            (call.cancel_owed, call.credit_owed, call.is_in_owed) = (false, 0, false);
            if !call.decided {
                call.be_decided(&mut self.deadlines);
                call.outcome = Some(Err(CallError::of_error(error(), sent && sent_may_have_run)));
            }
            ended.push(u64::from(call.uses) << 32 | at as u64);
        }
        self.by_id.clear();
        self.queue.clear();
        self.withdrawn = 0;
        self.owed.clear();
        for number in ended {
            self.has_changed(number);
            self.free_if_over(number);
        }
    }

    /// How the connection ended, for a new call.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.over {
            Some(over) => Err(Error::new(over.kind, over.text.clone())),
            None => Ok(()),
        }
    }
}

fn is_undecided(calls: &[Call], number: Number) -> bool {
    let call = &calls[place(number)];
    call.uses == (number >> 32) as u32 && call.wire != Wire::Free && !call.decided
}

/// The error of asking for what was given already.
pub(in crate::rpc) fn no_such_call() -> CallError {
    let text = "this call has ended, and its outcome was taken: a call gives one outcome";
    CallError::of_error(Error::new(ErrorKind::InvalidArgument, text), false)
}

mod direct;

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
