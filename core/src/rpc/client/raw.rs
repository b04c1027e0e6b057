//! A client whose calls are numbers: what [`Client`](super::Client) and the bindings of other languages stand on. Not part of the
//! stable API.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::ledger::{Ledger, Taken};
use super::pump::{self, Flushed, InPlace, Received, Request};
use super::reply::{CallOptions, Reply, ReplyView, SHORT, ShortBytes};
use crate::facts::{METHOD_DESCRIBE, METHOD_PING, RPC_BYTES_FACTOR, RPC_FRAMES_PER_ROUND, UNORDERED_INTERVAL};
use crate::ring::raw::{RawEndpoint, WaitLimit};
use crate::rpc::{CallError, CallResult};
use crate::select::Source;
use crate::wait::Deadline;
use crate::{Bus, Error, ErrorKind, Readiness, Receiver, Result, Select, SelectWaker, Sender, WaitPolicy, Waker};

/// A client whose calls are numbers. No number is given twice in 2^31 uses of a place, and none is 0.
#[derive(Debug)]
pub struct RawClient {
    // Dropped in this order: what was sent is closed first.
    pub(crate) tx: Sender,
    pub(crate) rx: Receiver,
    pub(super) ledger: Ledger,
    /// For waiting for room and for replies at once.
    pub(super) select: Select,
    pub(super) peer: Peer,
    /// A frame of this many bytes had no room when it was last tried.
    blocked: Option<usize>,
    /// The last frame received is in the ring: nothing more is received before it is released, because that would release it.
    shows: bool,
}

/// The server, as the kernel said when the connection was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) uid: u32,
    pub(crate) pid: Option<u32>,
}

/// A reply is in the ring as long as this lives.
struct Shown<'a>(&'a mut RawClient);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.release_reply();
    }
}

impl RawClient {
    pub(super) fn new(bus: Bus, max_buffered: Option<usize>, policy: WaitPolicy) -> Result<Self> {
        let peer = Peer { uid: bus.peer_uid(), pid: bus.peer_pid() };
        let max_in_flight = bus.max_in_flight();
        let (Some(tx), Some(rx)) = bus.split() else {
            return Err(Error::new(ErrorKind::Corrupt, "an RPC's bus has a ring in one direction only, expected both"));
        };
        let max_buffered = max_buffered.unwrap_or(rx.capacity().saturating_mul(RPC_BYTES_FACTOR as usize));
        let mut select = Select::new();
        select.set_wait_policy(policy);
        Ok(Self { tx, rx, ledger: Ledger::new(max_in_flight, max_buffered), select, peer, blocked: None, shows: false })
    }

    /// Makes a call: sends it, or queues it if the server's limit is reached or there is no room now. Never waits. `stream`: its
    /// reply is a stream.
    ///
    /// # Errors
    /// `TooLarge`, `InvalidArgument` for a stream with a window of 0, `TimedOut` for a time limit of 0, or how the connection
    /// ended. The call was not sent.
    #[inline]
    pub fn start(&mut self, method: u32, body: &[u8], options: &CallOptions<'_>, stream: bool) -> CallResult<u64> {
        let window = window(options, stream)?;
        self.start_request(&Request { method, body, options: *options, window })
    }

    #[inline]
    pub(super) fn start_request(&mut self, request: &Request<'_>) -> CallResult<u64> {
        let max_len = self.tx.max_message_len();
        let started = pump::start(&mut self.ledger, Some(&mut self.tx), max_len, request);
        if started.is_ok() && !self.ledger.sends_at_once() {
            // It may be queued because it has found no room: `due_in` is to know that.
            self.send_due();
        }
        started
    }

    /// A call with one reply, which it waits for.
    ///
    /// # Errors
    /// As for [`start`](Self::start) and [`wait`](Self::wait), after which the call is cancelled, and how it ended.
    #[inline]
    pub fn call(&mut self, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Reply> {
        let request = Request { method, body, options: *options, window: 0 };
        if options.timeout.is_none()
            && self.ledger.is_idle()
            && let Some(id) = self.start_alone(&request)?
        {
            return self.finish_alone(id);
        }
        let number = self.start_request(&request)?;
        self.outcome(number)
    }

    /// [`call`](Self::call) that reads the reply where it lies: `read` is called for a reply, and once.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    #[inline]
    pub(in crate::rpc) fn call_in_place<T>(
        &mut self,
        request: &Request<'_>,
        read: impl FnOnce(ReplyView<'_>) -> T,
    ) -> CallResult<T> {
        if request.options.timeout.is_none()
            && self.ledger.is_idle()
            && let Some(id) = self.start_alone(request)?
        {
            let waited = self.rx.half.wait_for_answer(WaitLimit::Forever);
            if waited.is_ok()
                && let Some((body, len)) = pump::frame_alone(&self.ledger, &mut self.rx, id)
            {
                let _shown = self.show();
                let body = body.as_ptr();
                // SAFETY: so many bytes lie in the mapping until they are released, after this.
                return Ok(read(unsafe { ReplyView::at(body, len, body, 0) }));
            }
            return self.call_was_not_alone(waited).map(|reply| read(reply.view()));
        }
        let number = self.start_request(request)?;
        loop {
            if self.ledger.is_ready(number) {
                return self.outcome(number).map(|reply| read(reply.view()));
            }
            match self.next_in_place(|call| call == number) {
                (_, Some(InPlace { body, len, meta, meta_len, .. })) => {
                    let _shown = self.show();
                    // SAFETY: as above.
                    let view = unsafe { ReplyView::at(body, len, meta, meta_len) };
                    return Ok(read(view));
                }
                (true, None) => continue,
                (false, None) => self.act(),
            }
            if !self.ledger.is_ready(number)
                && let Err(error) = self.wait_for_news(Duration::MAX)
            {
                return Err(self.give_up(number, error));
            }
        }
    }

    /// The last frame stays in the ring until what this gives is dropped, also by a panic.
    #[inline]
    fn show(&mut self) -> Shown<'_> {
        self.shows = true;
        Shown(self)
    }

    /// A call without a time limit, made while nothing else is under way. Mostly its reply is the next frame: then the ledger need not
    /// know of it, which costs more than all the rest of a call. `None`: there is no room.
    #[inline]
    pub(in crate::rpc) fn start_alone(&mut self, request: &Request<'_>) -> CallResult<Option<u64>> {
        let max_len = self.tx.max_message_len();
        pump::start_alone(&mut self.ledger, &mut self.tx, max_len, request)
    }

    /// Waits for the reply to the call with this id, which [`start_alone`](Self::start_alone) has given.
    #[inline]
    pub(in crate::rpc) fn finish_alone(&mut self, id: u64) -> CallResult<Reply> {
        let waited = self.rx.half.wait_for_answer(WaitLimit::Forever);
        if waited.is_ok()
            && let Some((body, len)) = pump::frame_alone(&self.ledger, &mut self.rx, id)
        {
            if len > SHORT {
                // SAFETY: so many bytes lie in the mapping until they are released; a payload is shorter than 2^31.
                let reply = unsafe { Reply::copy(body.as_ptr(), 0, body.as_ptr(), len) };
                self.rx.half.hot.release();
                return Ok(reply);
            }
            // SAFETY: the body of a frame, until it is released.
            let bytes = unsafe { ShortBytes::in_frame(body.as_ptr(), len) };
            self.rx.half.hot.release();
            return Ok(Reply::short(bytes, len));
        }
        self.call_was_not_alone(waited)
    }

    /// Something else came than the reply to the last call, whose window is 0, or nothing.
    #[cold]
    #[inline(never)]
    fn call_was_not_alone(&mut self, waited: Result<()>) -> CallResult<Reply> {
        let number = self.ledger.sent_last(0);
        match waited {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(self.give_up(number, error)),
            // How the connection ended: it is met again.
            Ok(()) | Err(_) => {
                self.progress_for(Some(number));
                self.outcome(number)
            }
        }
    }

    /// Waits for the outcome of a call with one reply, and takes it. A wait that was interrupted cancels the call.
    #[inline]
    pub(super) fn outcome(&mut self, number: u64) -> CallResult<Reply> {
        // Each arm writes the reply where it is to be: moved from one result to another, it would be loaded in other widths than it was
        // stored in (see `reply::Chunk`).
        match self.next_is_reply(number) {
            Ok(Some((body, len))) if len <= SHORT => {
                // SAFETY: the body of a frame, until it is released.
                let bytes = unsafe { ShortBytes::in_frame(body.as_ptr(), len) };
                self.reply_was_taken(number);
                Ok(Reply::short(bytes, len))
            }
            Ok(Some((body, len))) => {
                // SAFETY: so many bytes lie in the mapping until they are released; a payload is shorter than 2^31.
                let reply = unsafe { Reply::copy(body.as_ptr(), 0, body.as_ptr(), len) };
                self.reply_was_taken(number);
                Ok(reply)
            }
            Ok(None) => self.outcome_kept(number),
            Err(error) => Err(self.give_up(number, error)),
        }
    }

    /// Waits until the next frame is the one reply to a call, which need not be kept then: where its body begins, and its length.
    /// [`reply_was_taken`](Self::reply_was_taken) has to follow. `None`: its outcome is kept in the ledger, or will be.
    fn next_is_reply(&mut self, number: u64) -> Result<Option<(NonNull<u8>, usize)>> {
        // What was queued: for want of room, it may be, and then that is waited for.
        self.send_due();
        while !self.shows
            && let Some(id) = self.ledger.awaits_one(number)
        {
            if !self.rx.half.hot.has_cached_frame() {
                self.wait_for_news(Duration::MAX)?;
            }
            // There may be none: its time may be over, or there may be room for what was queued.
            if self.rx.half.hot.has_cached_frame()
                && let Some(found) = pump::frame_alone(&self.ledger, &mut self.rx, id)
            {
                return Ok(Some(found));
            }
            self.progress_for(Some(number));
        }
        Ok(None)
    }

    #[inline]
    fn reply_was_taken(&mut self, number: u64) {
        self.rx.half.hot.release();
        self.ledger.answered_and_taken(number);
        self.act();
    }

    #[inline(never)]
    fn outcome_kept(&mut self, number: u64) -> CallResult<Reply> {
        loop {
            if let Err(error) = self.wait(number, None) {
                return Err(self.give_up(number, error));
            }
            match self.take(number) {
                Taken::End(outcome) => return outcome,
                Taken::NotYet | Taken::Element(_) => {}
            }
        }
    }

    #[cold]
    fn give_up(&mut self, number: u64, error: Error) -> CallError {
        self.cancel(number);
        CallError::of_error(error, true)
    }

    /// The call that waits until the server has answered.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_ping(&mut self, options: &CallOptions<'_>) -> CallResult<u64> {
        self.start(METHOD_PING, &[], options, false)
    }

    /// The call that describes the server's methods: its reply is for `MethodInfo`.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_describe(&mut self, options: &CallOptions<'_>) -> CallResult<u64> {
        self.start(METHOD_DESCRIBE, &[], options, false)
    }

    /// Receives what is there, times calls out, and sends what is due. Never waits. True: there may be more to receive, so call it
    /// again before waiting.
    pub fn progress(&mut self) -> bool {
        self.progress_for(None)
    }

    /// The next reply of those that [`progress`](Self::progress) would receive: read where it lies if it belongs to a call that
    /// `wanted` names, and nothing for that call came before it. Such a reply is taken, and after one with `more` false the call's
    /// number means nothing. It lies there until [`release_reply`](Self::release_reply), and nothing is received before that. Every
    /// other reply is kept for [`take`](Self::take), one for each call of this. False: there is nothing to receive now.
    pub fn next_in_place(&mut self, wanted: impl FnOnce(u64) -> bool) -> (bool, Option<InPlace>) {
        self.release_reply();
        match pump::receive_in_place(&mut self.ledger, &mut self.rx, wanted) {
            Ok(Received::Nothing) => (false, None),
            Ok(Received::Kept) => (true, None),
            Ok(Received::InPlace(reply)) => {
                self.shows = true;
                (true, Some(reply))
            }
            Err(error) => {
                self.end(&error);
                (false, None)
            }
        }
    }

    /// Gives the ring the place of the reply back that [`next_in_place`](Self::next_in_place) has given, if there is one, and sends
    /// what is due.
    pub fn release_reply(&mut self) {
        if std::mem::take(&mut self.shows) {
            self.rx.half.hot.release();
            self.send_due();
        }
    }

    /// [`progress`](Self::progress) for who is about to look again by itself: it does not ask the server to tell of more, so the
    /// readiness descriptor says nothing of what comes after. How the connection ended, `progress` finds out.
    pub fn progress_untold(&mut self) -> bool {
        self.progress_by(None, |ledger, rx| match rx.half.hot.has_frame() {
            Ok(false) => Ok(false),
            Ok(true) | Err(_) => pump::receive(ledger, rx),
        })
    }

    /// [`progress`](Self::progress) that stops once there is something to be taken for a call.
    #[inline]
    fn progress_for(&mut self, call: Option<u64>) -> bool {
        self.progress_by(call, pump::receive)
    }

    /// What receives one frame, if one is there, is given.
    #[inline]
    fn progress_by(&mut self, call: Option<u64>, receive: impl Fn(&mut Ledger, &mut Receiver) -> Result<bool>) -> bool {
        let mut more = !self.shows;
        for _ in 0..RPC_FRAMES_PER_ROUND {
            if !more {
                break;
            }
            match receive(&mut self.ledger, &mut self.rx) {
                Ok(received) => more = received,
                Err(error) => {
                    self.end(&error);
                    return false;
                }
            }
            if call.is_some_and(|call| self.ledger.is_ready(call)) {
                break;
            }
        }
        self.act();
        more
    }

    /// Times calls out, and sends what is due. Receives nothing.
    #[inline]
    pub fn act(&mut self) {
        if self.ledger.has_deadlines() {
            self.ledger.expire(Instant::now());
        }
        self.send_due();
    }

    /// Sends what is due, as far as there is room.
    #[inline]
    pub(super) fn send_due(&mut self) {
        if self.ledger.may_be_due() {
            self.flush();
        } else if self.blocked.is_some() {
            self.blocked = None;
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.blocked = match pump::flush(&mut self.ledger, &mut self.tx) {
            Ok(Flushed::All | Flushed::Gone) => None,
            Ok(Flushed::Blocked(len)) => Some(len),
            Err(error) => {
                self.end(&error);
                None
            }
        };
    }

    #[cold]
    fn end(&mut self, error: &Error) {
        self.ledger.end(error.kind(), error.to_string());
    }

    /// Waits until there is something to be taken for a call, for at most `timeout` (`None`: as long as it takes; 0: not at
    /// all): true then. False if the time has passed; the call goes on. The call's own time limit is an outcome.
    ///
    /// # Errors
    /// `Interrupted` by a [`waker`](Self::waker), or by a signal if [so asked](Self::set_interruptible). The call goes on.
    #[inline]
    pub fn wait(&mut self, call: u64, timeout: Option<Duration>) -> Result<bool> {
        if timeout == Some(Duration::ZERO) {
            if !self.ledger.is_ready(call) {
                self.progress_for(Some(call));
            }
            return Ok(self.ledger.is_ready(call));
        }
        let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
        // What was queued: for want of room, it may be, and then that is waited for.
        self.send_due();
        let mut left = timeout.unwrap_or(Duration::MAX);
        loop {
            if self.ledger.is_ready(call) {
                return Ok(true);
            }
            // Before anything is received: mostly nothing has come yet, and to find that out costs more than the first polls.
            self.wait_for_news(left)?;
            self.progress_for(Some(call));
            if timeout.is_some() {
                match deadline.left() {
                    Some(now) => left = now,
                    None => return Ok(self.ledger.is_ready(call)),
                }
            }
        }
    }

    /// Waits for any news for at most `timeout`: a reply, the end, room for what could not be sent, or that a call has timed out.
    /// [`progress`](Self::progress) then acts on it. It may return without a reason.
    ///
    /// # Errors
    /// `Interrupted`, as for [`wait`](Self::wait).
    #[inline]
    pub fn wait_for_news(&mut self, timeout: Duration) -> Result<()> {
        let left = match self.ledger.next_deadline() {
            Some(at) => timeout.min(at.saturating_duration_since(Instant::now())),
            None => timeout,
        };
        if left.is_zero() {
            return Ok(());
        }
        let limit = if left == Duration::MAX { WaitLimit::Forever } else { WaitLimit::For(left) };
        let outcome = match self.blocked {
            None => self.rx.half.wait_for_answer(limit),
            Some(len) if !self.rx.has_descriptor() && !self.tx.room(len).has_descriptor() => {
                let (tx, rx) = (&mut self.tx, &mut self.rx);
                let timeout = (left != Duration::MAX).then_some(left);
                self.select.wait(&mut [&mut tx.room(len), rx], timeout).map(drop)
            }
            // A select cannot wait where there is a descriptor: short waits for replies, with a look for room after each.
            Some(_) => self.rx.half.wait_for_frame(WaitLimit::For(left.min(UNORDERED_INTERVAL)), None),
        };
        match outcome {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            // The time has passed; or how the connection ended, which `progress` meets again.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What has come for a call. After [`Taken::End`] its number means nothing.
    #[inline]
    pub fn take(&mut self, call: u64) -> Taken {
        let taken = self.ledger.take(call);
        if let Taken::Element(_) = taken {
            // It may owe credit.
            self.send_due();
        }
        taken
    }

    /// Lets go of a call: it is cancelled if it has no outcome, and its number means nothing from now on.
    pub fn cancel(&mut self, call: u64) {
        self.ledger.let_go(call);
        self.send_due();
    }

    /// Lets go of all calls.
    pub(super) fn cancel_all(&mut self) {
        self.ledger.let_go_of_all();
        self.send_due();
    }

    /// From now on [`next_changed`](Self::next_changed) names the calls that have something to be taken.
    pub fn list_changed(&mut self) {
        self.ledger.list_changed();
    }

    /// A call that has something to be taken since it was named last: take until [`Taken::NotYet`] or [`Taken::End`].
    pub fn next_changed(&mut self) -> Option<u64> {
        self.ledger.next_changed()
    }

    /// When [`progress`](Self::progress) is to be called although the descriptor is not readable: a call times out then, or there
    /// may be room for what could not be sent. `None`: never.
    pub fn due_in(&mut self) -> Option<Duration> {
        let timeout = self.ledger.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
        match self.blocked {
            None => timeout,
            Some(_) => Some(timeout.map_or(UNORDERED_INTERVAL, |timeout| timeout.min(UNORDERED_INTERVAL))),
        }
    }

    /// A descriptor for event loops: readable when [`progress`](Self::progress) has something to receive, or the server is gone.
    /// Call `progress` until it says false.
    ///
    /// # Errors
    /// As for [`Receiver::readiness`].
    pub fn readiness(&mut self) -> Result<&Readiness> {
        self.rx.readiness()
    }

    /// The ring of replies, for a binding that looks by itself whether something has come.
    pub fn incoming(&mut self) -> &mut dyn RawEndpoint {
        &mut self.rx
    }

    /// Ends a [`wait`](Self::wait) from another thread, unless it waits for room as well.
    pub fn waker(&self) -> Waker {
        self.rx.waker()
    }

    /// Ends a wait for room.
    pub fn room_waker(&self) -> SelectWaker {
        self.select.waker()
    }

    /// Whether a wait returns `Interrupted` after a signal handler ran. Default no.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.rx.set_interruptible(yes);
    }

    /// How calls wait from now on.
    pub fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.rx.set_wait_policy(policy);
        self.select.set_wait_policy(policy);
    }

    /// Calls that are sent and have no final reply.
    pub fn in_flight(&self) -> usize {
        self.ledger.in_flight()
    }

    /// How many calls the server lets this client have in flight.
    pub fn max_in_flight(&self) -> u32 {
        self.ledger.max_in_flight()
    }

    /// Whether a call that is made now is sent at once, as far as the server's limit and the calls before it go.
    pub fn is_ready(&self) -> bool {
        self.ledger.sends_at_once()
    }

    /// How the connection has ended, if it has.
    ///
    /// # Errors
    /// That.
    pub fn check(&self) -> Result<()> {
        self.ledger.check()
    }

    /// The server's user.
    pub fn peer_uid(&self) -> u32 {
        self.peer.uid
    }

    /// The server's process; `None` if it has no number here.
    pub fn peer_pid(&self) -> Option<u32> {
        self.peer.pid
    }

    /// Whether the server's process lives (one system call).
    pub fn is_peer_alive(&self) -> bool {
        self.rx.is_peer_alive()
    }

    /// The longest request, metadata and header included.
    pub fn max_request_len(&self) -> usize {
        self.tx.max_message_len()
    }

    /// The same client for many threads; calls that are under way are cancelled.
    pub fn shared(mut self) -> super::SharedClient {
        self.cancel_all();
        super::SharedClient::new(self)
    }

    /// Ends the connection.
    ///
    /// # Errors
    /// As for [`Bus::close`].
    pub fn close(self) -> Result<()> {
        let sent = self.tx.close();
        let received = self.rx.close();
        sent.and(received)
    }
}

/// The window of a call.
#[inline]
pub(super) fn window(options: &CallOptions<'_>, stream: bool) -> CallResult<u32> {
    match (stream, options.window) {
        (false, _) => Ok(0),
        (true, 0) => {
            let text = "a stream with a window of 0 elements: expected at least 1";
            Err(CallError::of_error(Error::new(ErrorKind::InvalidArgument, text), false))
        }
        (true, window) => Ok(window),
    }
}
