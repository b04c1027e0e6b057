//! What a server knows of one client's calls. It does no input or output, so that its rules can be tested alone.
//!
//! A call is *in flight* from its CALL until its final REPLY is published: that is what the client counts too. It is *open* as long
//! as its handler has not ended. Between the two, its final REPLY is parked: it waits for room in the ring.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Instant;

use crate::rpc::Status;

/// The client wrote what no correct client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

/// What a client may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_in_flight: u32,
    /// Bytes of copies: requests and parked replies together.
    pub(super) max_bytes: usize,
}

/// What a REPLY says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: Status,
    /// The application's number.
    pub(super) code: u32,
    pub(super) meta: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn of(status: Status) -> Self {
        Self { status, code: 0, meta: Vec::new(), body: Vec::new() }
    }

    pub(super) fn ok(meta: Vec<u8>, body: Vec<u8>) -> Self {
        Self { status: Status::Ok, code: 0, meta, body }
    }

    pub(super) fn failed(text: String) -> Self {
        Self { body: text.into_bytes(), ..Self::of(Status::HandlerFailed) }
    }

    fn len(&self) -> usize {
        self.meta.len() + self.body.len()
    }
}

/// A reply that waits for room in the ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parked {
    pub(super) id: u64,
    /// An element of a stream; else the final REPLY.
    pub(super) element: bool,
    pub(super) reply: Reply,
}

/// A call whose handler has not ended.
#[derive(Debug)]
pub(super) struct Open<T> {
    /// 0: one reply; else a stream.
    pub(super) window: u32,
    /// Elements that may be sent.
    pub(super) credit: u64,
    /// One of its elements is parked: the next one is not asked for before it is published.
    pub(super) is_parked: bool,
    /// Bytes of the copy of its request.
    copied: usize,
    deadline: Option<Instant>,
    /// What its final REPLY says, whatever the handler gives: it was told to stop.
    pub(super) stopped: Option<Status>,
    /// What runs it.
    pub(super) task: T,
}

impl<T> Open<T> {
    pub(super) fn new(window: u32, copied: usize, deadline: Option<Instant>, task: T) -> Self {
        Self { window, credit: window.into(), is_parked: false, copied, deadline, stopped: None, task }
    }

    /// Whether another element may be asked for.
    pub(super) fn may_go_on(&self) -> bool {
        self.credit > 0 && !self.is_parked && self.stopped.is_none()
    }
}

/// What follows a CALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is in flight.
    Yes,
    /// It is answered with this status, which is not parked.
    No(Status),
}

#[derive(Debug)]
pub(super) struct Ledger<T> {
    limits: Limits,
    /// The id of the last CALL.
    last_id: u64,
    in_flight: u32,
    open: HashMap<u64, Open<T>>,
    /// Bytes of copies.
    bytes: usize,
    parked: VecDeque<Parked>,
    /// An answer to a call that is not in flight, which waits for room. No other CALL is taken before it is published.
    refusal: Option<(u64, Status)>,
    /// Of open calls, and of some that have ended since: those are skipped.
    deadlines: BinaryHeap<Reverse<(Instant, u64)>>,
}

impl<T> Ledger<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            last_id: 0,
            in_flight: 0,
            open: HashMap::new(),
            bytes: 0,
            parked: VecDeque::new(),
            refusal: None,
            deadlines: BinaryHeap::new(),
        }
    }

    /// A CALL has come. `draining`: it is not one that a server answers while it drains.
    #[inline]
    pub(super) fn admit(&mut self, id: u64, draining: bool) -> Result<Admission, Corrupt> {
        // A client would need centuries to wrap its ids.
        if id != self.last_id.wrapping_add(1) {
            return Err(Corrupt);
        }
        self.last_id = id;
        Ok(if draining {
            Admission::No(Status::Draining)
        } else if self.in_flight >= self.limits.max_in_flight {
            Admission::No(Status::Overloaded)
        } else {
            self.in_flight += 1;
            Admission::Yes
        })
    }

    /// Counts a copy of this many bytes of the request of the call that was admitted last. `false`: it is too much, and the call
    /// is not in flight: to be answered with [`Status::Overloaded`].
    pub(super) fn copy(&mut self, len: usize) -> bool {
        if len > self.limits.max_bytes - self.bytes {
            self.in_flight -= 1;
            return false;
        }
        self.bytes += len;
        true
    }

    /// The call that was admitted last has begun, or is to begin elsewhere. Its copy was counted.
    pub(super) fn open(&mut self, id: u64, open: Open<T>) {
        if let Some(at) = open.deadline {
            // Ended calls stay in the heap until their time comes: at most as many as are open, and some.
            if self.deadlines.len() > 2 * self.open.len() + 64 {
                let open = &self.open;
                self.deadlines.retain(|Reverse((_, id))| open.contains_key(id));
            }
            self.deadlines.push(Reverse((at, id)));
        }
        self.open.insert(id, open);
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Open<T>> {
        self.open.get_mut(&id)
    }

    /// A CREDIT has come. Gives the call if it is open.
    pub(super) fn credit(&mut self, id: u64, n: u32) -> Result<Option<&mut Open<T>>, Corrupt> {
        if !self.was_issued(id) || n == 0 {
            return Err(Corrupt);
        }
        let Some(open) = self.open.get_mut(&id) else { return Ok(None) };
        if open.window == 0 {
            return Err(Corrupt);
        }
        open.credit = open.credit.saturating_add(n.into());
        Ok(Some(open))
    }

    /// A CANCEL has come. Gives the call if it is open and was not told to stop before: it is now.
    pub(super) fn cancel(&mut self, id: u64) -> Result<Option<&mut Open<T>>, Corrupt> {
        if self.was_issued(id) { Ok(self.stop(id, Status::Cancelled)) } else { Err(Corrupt) }
    }

    /// The call is to stop. Gives it if it is open and was not told to stop before.
    pub(super) fn stop(&mut self, id: u64, status: Status) -> Option<&mut Open<T>> {
        let open = self.open.get_mut(&id).filter(|open| open.stopped.is_none())?;
        open.stopped = Some(status);
        Some(open)
    }

    /// An open call whose time is over and that was not told to stop before; it is now.
    pub(super) fn time_out(&mut self, now: Instant) -> Option<(u64, &mut Open<T>)> {
        loop {
            let Reverse((at, id)) = *self.deadlines.peek()?;
            let stays = at > now;
            if stays {
                return None;
            }
            self.deadlines.pop();
            if self.open.get(&id).is_some_and(|open| open.stopped.is_none()) {
                return Some((id, self.stop(id, Status::Cancelled)?));
            }
        }
    }

    /// When [`time_out`](Self::time_out) may give something.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// The call's handler has ended, or is not going to begin. Its final REPLY is due.
    pub(super) fn end(&mut self, id: u64) -> Option<Open<T>> {
        let open = self.open.remove(&id)?;
        self.bytes -= open.copied;
        Some(open)
    }

    /// Counts bytes that are kept for an open call until it ends. `false`: it is too much.
    pub(super) fn hold(&mut self, id: u64, len: usize) -> bool {
        let fits = len <= self.longest_parked();
        match self.open.get_mut(&id) {
            Some(open) if fits => {
                open.copied += len;
                self.bytes += len;
                true
            }
            _ => false,
        }
    }

    /// All that are open, told to stop.
    pub(super) fn stop_all(&mut self, mut stop: impl FnMut(u64, &mut Open<T>)) {
        for (id, open) in &mut self.open {
            if open.stopped.is_none() {
                open.stopped = Some(Status::Cancelled);
                stop(*id, open);
            }
        }
    }

    /// A final REPLY was published.
    #[inline]
    pub(super) fn published(&mut self) {
        self.in_flight -= 1;
    }

    /// Whether a reply has to be parked although there may be room: others were parked before it.
    #[inline]
    pub(super) fn must_park(&self) -> bool {
        !self.parked.is_empty()
    }

    /// How long a reply can be that is to be parked.
    pub(super) fn longest_parked(&self) -> usize {
        self.limits.max_bytes - self.bytes
    }

    /// Keeps a final REPLY until there is room. One that is too long becomes [`Status::ReplyTooLarge`].
    pub(super) fn park(&mut self, id: u64, reply: Reply) {
        let reply = if reply.len() > self.longest_parked() { Reply::of(Status::ReplyTooLarge) } else { reply };
        self.bytes += reply.len();
        self.parked.push_back(Parked { id, element: false, reply });
    }

    /// Keeps an element until there is room. `false`: it is too long.
    pub(super) fn park_element(&mut self, id: u64, reply: Reply) -> bool {
        if reply.len() > self.longest_parked() {
            return false;
        }
        self.bytes += reply.len();
        if let Some(open) = self.open.get_mut(&id) {
            open.is_parked = true;
        }
        self.parked.push_back(Parked { id, element: true, reply });
        true
    }

    /// What is to be published first.
    pub(super) fn first_parked(&self) -> Option<&Parked> {
        self.parked.front()
    }

    /// The first parked one was published. Gives the call whose element it was, if it is open.
    pub(super) fn unpark(&mut self) -> Option<(u64, &mut Open<T>)> {
        let Parked { id, element, reply } = self.parked.pop_front()?;
        self.bytes -= reply.len();
        if !element {
            self.published();
            return None;
        }
        let open = self.open.get_mut(&id)?;
        open.is_parked = false;
        Some((id, open))
    }

    /// The last CALL is answered with this once there is room; until then no other one is taken.
    pub(super) fn refuse(&mut self, id: u64, status: Status) {
        self.refusal = Some((id, status));
    }

    pub(super) fn refusal(&self) -> Option<(u64, Status)> {
        self.refusal
    }

    pub(super) fn refused(&mut self) {
        self.refusal = None;
    }

    /// Whether every CALL that was taken has its final REPLY published.
    pub(super) fn is_done(&self) -> bool {
        self.in_flight == 0 && self.refusal.is_none() && self.parked.is_empty()
    }

    pub(super) fn open_calls(&self) -> usize {
        self.open.len()
    }

    fn was_issued(&self, id: u64) -> bool {
        id != 0 && id <= self.last_id
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
