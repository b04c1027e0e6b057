//! One client: its bus, and what the ledger says about its calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::{Call, CallState};
use super::hub::{Happened, Hub};
use super::ledger::{Admission, Corrupt, Ledger, Limits, Open, Reply};
use super::methods::{Handler, Methods};
use super::pool::{Pool, Work};
use super::request::{Output, Request, send};
use super::streams::{Elements, Step, guarded, step};
use crate::bus::Place;
use crate::facts::{
    METHOD_DESCRIBE, METHOD_PING, METHOD_RESERVED, RPC_FRAMES_PER_ROUND, RPC_HEADER, TYPE_ID_CALL, TYPE_ID_CANCEL,
    TYPE_ID_CREDIT,
};
use crate::many::Peer;
use crate::ring::consumer::Frame;
use crate::rpc::Status;
use crate::rpc::frame::{CallHeader, Parts, ReplyHeader, payload_len};
use crate::{Bus, ErrorKind, Receiver, Sender};

/// The connection is over: the client has gone, or wrote what no correct client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over;

impl From<Corrupt> for Over {
    fn from(_: Corrupt) -> Self {
        Self
    }
}

impl From<crate::Error> for Over {
    fn from(_: crate::Error) -> Self {
        Self
    }
}

impl From<ErrorKind> for Over {
    fn from(_: ErrorKind) -> Self {
        Self
    }
}

type Outcome<T = ()> = Result<T, Over>;

/// What all connections of a server share.
pub(super) struct Shared<'a> {
    pub(super) methods: &'a mut Methods,
    pub(super) pool: &'a Pool,
    pub(super) hub: &'a Arc<Hub>,
    pub(super) draining: bool,
}

/// What runs an open call.
enum Task {
    /// A handler elsewhere. `ticket`: its number in the pool. `offered`: it may hand an element over, and has not yet.
    Away { state: Arc<CallState>, ticket: Option<u64>, offered: bool },
    /// An iterator that is asked here. `queued`: it is among `runnable`.
    Stream { state: Arc<CallState>, elements: Box<dyn Elements>, queued: bool },
    /// An iterator that is asked in the pool, where it is if `elements` is `None`.
    Pooled { state: Arc<CallState>, elements: Option<Box<dyn Elements>>, ticket: Option<u64>, begun: bool },
    /// The handler has ended, and its reply is the last element, for which the client has given no credit yet.
    Last(Reply),
}

pub(super) struct Connection {
    pub(super) peer: Peer,
    sender: Sender,
    receiver: Receiver,
    place: Arc<Place>,
    ledger: Ledger<Task>,
    /// Streams that are asked here and may go on.
    runnable: VecDeque<u64>,
    /// A wait has found that there may be an end: the kernel is to be asked.
    pub(super) may_have_ended: bool,
    /// Which of its descriptors an event loop's set reports: see `descriptor.rs`.
    pub(super) watched: super::descriptor::Watched,
}

impl Connection {
    /// `None`: the bus lacks a direction, which none of this server's does.
    pub(super) fn new(peer: Peer, bus: Bus, limits: Limits) -> Option<Self> {
        let (sender, receiver, place) = bus.split_counted();
        Some(Self {
            peer,
            sender: sender?,
            receiver: receiver?,
            place: Arc::new(place),
            ledger: Ledger::new(limits),
            runnable: VecDeque::new(),
            may_have_ended: false,
            watched: super::descriptor::Watched::default(),
        })
    }

    /// Publishes what was parked, takes some frames, and goes on with streams. True if anything was done.
    pub(super) fn serve(&mut self, shared: &mut Shared<'_>, ask_kernel: bool) -> Outcome<bool> {
        let mut busy = (self.ledger.must_park() || !self.reads()) && self.flush(shared)?;
        let mut frames = 0;
        while frames < RPC_FRAMES_PER_ROUND && self.reads() && self.receiver.half.hot.has_frame()? {
            let Some(frame) = self.receiver.half.hot.cached_frame()? else { break };
            let outcome = self.take(frame, shared);
            self.receiver.half.hot.release();
            outcome?;
            frames += 1;
        }
        if !self.runnable.is_empty() {
            busy |= self.pull(shared)?;
        }
        if frames > 0 {
            return Ok(true);
        }
        let ask_kernel = ask_kernel || std::mem::take(&mut self.may_have_ended);
        // What it sent before its end is taken first.
        let has_ended = self.receiver.half.has_ended(ask_kernel);
        if has_ended && !(self.reads() && self.receiver.half.hot.has_frame()?) {
            return Err(Over);
        }
        Ok(busy)
    }

    /// Whether frames are taken: not while the answer to one waits for room that is not parked.
    #[inline]
    pub(super) fn reads(&self) -> bool {
        self.ledger.refusal().is_none()
    }

    /// A cheap guess whether there is something to be done.
    #[inline]
    pub(super) fn peek(&mut self) -> bool {
        if self.reads() {
            let hot = &mut self.receiver.half.hot;
            if hot.has_frame().unwrap_or(true) {
                return true;
            }
            hot.want_next_frame(1);
        }
        match self.waits_for() {
            Some(len) => !matches!(self.sender.half.hot.try_reserve(len as u64), Err(ErrorKind::Full)),
            None => !self.runnable.is_empty(),
        }
    }

    /// Whether streams can go on at once.
    pub(super) fn has_work(&self) -> bool {
        !self.runnable.is_empty() && !self.ledger.must_park()
    }

    /// The length of the payload for which there is no room.
    pub(super) fn waits_for(&self) -> Option<usize> {
        match self.ledger.first_parked() {
            Some(parked) => payload_len(parked.reply.meta.len(), parked.reply.body.len()).map(|(total, _)| total),
            None => self.ledger.refusal().map(|_| RPC_HEADER),
        }
    }

    /// Both ends of the bus, to be waited for.
    pub(super) fn ends(&mut self) -> (&mut Sender, &mut Receiver) {
        (&mut self.sender, &mut self.receiver)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.ledger.next_deadline()
    }

    pub(super) fn open_calls(&self) -> usize {
        self.ledger.open_calls()
    }

    /// Whether every CALL that was taken has its final REPLY, and no other one is there.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.ledger.is_done() && !self.receiver.half.hot.has_frame().unwrap_or(false)
    }

    #[inline]
    fn take(&mut self, frame: Frame, shared: &mut Shared<'_>) -> Outcome {
        if frame.type_id == TYPE_ID_CALL { self.call(frame, shared) } else { self.take_other(frame, shared) }
    }

    #[inline(never)]
    fn take_other(&mut self, frame: Frame, shared: &mut Shared<'_>) -> Outcome {
        match frame.type_id {
            TYPE_ID_CANCEL if frame.len == 0 => {
                if self.ledger.cancel(frame.tag)?.is_some() {
                    self.stop(frame.tag, false, shared)?;
                }
                Ok(())
            }
            TYPE_ID_CREDIT if frame.len == 4 => {
                // SAFETY: the frame has four readable bytes, aligned to 16. Volatile: read once, whatever the client writes.
                let n = u32::from_le(unsafe { frame.data.cast::<u32>().read_volatile() });
                if self.ledger.credit(frame.tag, n)?.is_some() {
                    self.go_on(frame.tag, shared)?;
                }
                Ok(())
            }
            _ => Err(Over),
        }
    }

    #[inline]
    fn call(&mut self, frame: Frame, shared: &mut Shared<'_>) -> Outcome {
        let id = frame.tag;
        if frame.len < RPC_HEADER {
            return Err(Over);
        }
        // SAFETY: the frame has that many readable bytes. Volatile: read once, whatever the client writes meanwhile.
        let head = unsafe { frame.data.cast::<[u8; RPC_HEADER]>().read_volatile() };
        let (header, parts) = CallHeader::decode(&head, frame.len).ok_or(Over)?;
        let reserved = header.method >= METHOD_RESERVED;
        if let Admission::No(status) = self.ledger.admit(id, shared.draining && !reserved)? {
            return self.refuse(id, status);
        }
        if reserved {
            return self.reserved(id, &header, shared);
        }
        let deadline =
            (header.timeout_us != 0).then(|| Instant::now() + Duration::from_micros(header.timeout_us.into()));
        // SAFETY: the frame's bytes are readable until it is released, after this.
        let payload = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
        let CallHeader { method, window, .. } = header;
        // Most calls: nothing else is touched than what these need.
        if window == 0
            && let Some(Handler::Inline(run)) = shared.methods.find(method)
        {
            let mut request = Request {
                method,
                peer: self.peer,
                window,
                meta: &payload[parts.meta],
                body: &payload[parts.body],
                deadline,
                state: None,
                output: Output::in_place(&mut self.sender, self.ledger.must_park(), self.ledger.longest_parked()),
            };
            let ran = guarded(|| run(&mut request));
            let reply = match ran {
                _ if is_over(deadline) => Reply::of(Status::Cancelled),
                Err(instead) => instead,
                Ok(Ok(())) if request.output.publish(id)? => {
                    self.ledger.published();
                    return Ok(());
                }
                Ok(outcome) => request.output.into_reply(outcome),
            };
            return self.conclude(id, reply);
        }
        self.begin(frame, header, parts, payload, deadline, shared)
    }

    /// A call that was admitted, of any kind but the one that [`call`](Self::call) answers itself.
    #[inline(never)]
    fn begin(
        &mut self,
        frame: Frame,
        header: CallHeader,
        parts: Parts,
        payload: &[u8],
        deadline: Option<Instant>,
        shared: &mut Shared<'_>,
    ) -> Outcome {
        let (id, CallHeader { method, window, .. }, Parts { meta, body }) = (frame.tag, header, parts);
        let Some(handler) = shared.methods.find(method) else {
            return self.conclude(id, Reply::of(Status::NoSuchMethod));
        };
        let request = |output| Request {
            method,
            peer: self.peer,
            window,
            meta: &payload[meta.clone()],
            body: &payload[body.clone()],
            deadline,
            state: None,
            output,
        };
        match handler {
            Handler::Inline(run) => {
                let mut request = request(Output::copied(self.sender.max_message_len()));
                let reply = match guarded(|| run(&mut request)) {
                    _ if is_over(deadline) => Reply::of(Status::Cancelled),
                    Err(instead) => instead,
                    Ok(outcome) => request.output.into_reply(outcome),
                };
                self.only_element(id, reply)
            }
            Handler::Stream(_) | Handler::PoolStream(_) if window == 0 => {
                let text = format!("method {method} replies with a stream: call it as one");
                self.conclude(id, Reply::failed(text))
            }
            Handler::Stream(begin) => {
                let state = Arc::new(CallState::new(window, self.place.clone()));
                let begun = guarded(|| {
                    let request = Request { state: Some(&state), ..request(Output::copied(0)) };
                    begin(&request)
                });
                match begun {
                    Err(failed) => self.conclude(id, failed),
                    Ok(Err(fault)) => self.conclude(id, Reply::fault(fault, Vec::new())),
                    Ok(Ok(elements)) => {
                        let task = Task::Stream { state, elements, queued: false };
                        self.ledger.open(id, Open::new(window, 0, deadline, task));
                        self.go_on(id, shared)
                    }
                }
            }
            Handler::Pool(_) | Handler::PoolStream(_) | Handler::Deferred(_) => {
                if !self.ledger.copy(frame.len - RPC_HEADER) {
                    return self.refuse(id, Status::Overloaded);
                }
                let state = Arc::new(CallState::new(window, self.place.clone()));
                let call = Call {
                    client: self.peer.id,
                    id,
                    method,
                    window,
                    peer: self.peer,
                    bytes: payload[RPC_HEADER..].to_vec(),
                    meta: meta.start - RPC_HEADER..meta.end - RPC_HEADER,
                    body: body.start - RPC_HEADER..body.end - RPC_HEADER,
                    deadline,
                    state: state.clone(),
                    hub: shared.hub.clone(),
                    longest: self.sender.max_message_len(),
                    reply_meta: Vec::new(),
                    answered: false,
                };
                let open = |ledger: &mut Ledger<Task>, task| {
                    ledger.open(id, Open::new(window, frame.len - RPC_HEADER, deadline, task));
                };
                match handler {
                    Handler::Deferred(run) => {
                        open(&mut self.ledger, Task::Away { state, ticket: None, offered: window > 0 });
                        // A handler that panics has let go of the call, which is its answer.
                        match guarded(|| run(call)) {
                            Ok(()) | Err(_) => Ok(()),
                        }
                    }
                    Handler::PoolStream(begin) => {
                        let ticket = shared.pool.push(self.peer.id, Work::Begin(call, begin.clone()));
                        open(&mut self.ledger, Task::Pooled { state, elements: None, ticket, begun: false });
                        self.queued(id, ticket)
                    }
                    Handler::Pool(run) => {
                        let ticket = shared.pool.push(self.peer.id, Work::Call(call, run.clone()));
                        open(&mut self.ledger, Task::Away { state, ticket, offered: false });
                        self.queued(id, ticket)
                    }
                    Handler::Inline(_) | Handler::Stream(_) => unreachable!("they are served above"),
                }
            }
        }
    }

    /// A call was given to the pool, if it has a ticket.
    fn queued(&mut self, id: u64, ticket: Option<u64>) -> Outcome {
        match ticket {
            Some(_) => Ok(()),
            None => self.end(id, Reply::of(Status::Overloaded)),
        }
    }

    /// Ramway's own methods.
    fn reserved(&mut self, id: u64, header: &CallHeader, shared: &mut Shared<'_>) -> Outcome {
        let reply = match header.method {
            METHOD_PING => Reply::of(Status::Ok),
            METHOD_DESCRIBE => Reply::ok(Vec::new(), shared.methods.describe().into_bytes()),
            _ => Reply::of(Status::NoSuchMethod),
        };
        if header.window > 0 { self.only_element(id, reply) } else { self.conclude(id, reply) }
    }

    /// What became of a call whose handler runs elsewhere.
    pub(super) fn happened(&mut self, id: u64, happened: Happened, shared: &mut Shared<'_>) -> Outcome {
        let longest = self.sender.max_message_len();
        let Some(open) = self.ledger.get(id) else { return Ok(()) };
        match happened {
            Happened::Complete => self.end(id, Reply::of(Status::Ok)),
            Happened::Reply(reply) if open.window == 0 || reply.status != Status::Ok || open.stopped.is_some() => {
                self.end(id, reply)
            }
            Happened::Reply(reply) => {
                // Its reply is the last element.
                if !fits(&reply, longest) || !self.ledger.hold(id, reply.meta.len() + reply.body.len()) {
                    return self.end(id, Reply::of(Status::ReplyTooLarge));
                }
                if let Some(open) = self.ledger.get(id) {
                    open.task = Task::Last(reply);
                }
                self.go_on(id, shared)
            }
            Happened::Element(reply) => {
                if let Task::Away { offered, .. } = &mut open.task {
                    *offered = false;
                }
                self.element(id, reply, shared)
            }
            Happened::Pulled(iterator, reply) => {
                if let Task::Pooled { elements, ticket, begun, .. } = &mut open.task {
                    (*elements, *ticket, *begun) = (Some(iterator), None, true);
                }
                match open.stopped {
                    Some(status) => self.end(id, Reply::of(status)),
                    None => self.element(id, reply, shared),
                }
            }
        }
    }

    /// Sends an element of an open call.
    fn element(&mut self, id: u64, reply: Reply, shared: &mut Shared<'_>) -> Outcome {
        let longest = self.sender.max_message_len();
        let Some(open) = self.ledger.get(id) else { return Ok(()) };
        if open.stopped.is_some() {
            return Ok(());
        }
        open.credit = open.credit.saturating_sub(1);
        let is_sent = if fits(&reply, longest) { self.send_element(id, reply)? } else { false };
        if is_sent {
            self.go_on(id, shared)
        } else if self.ledger.stop(id, Status::ReplyTooLarge).is_some() {
            self.stop(id, false, shared)
        } else {
            Ok(())
        }
    }

    /// Publishes or parks an element; `false`: it is too long to be parked.
    fn send_element(&mut self, id: u64, reply: Reply) -> Outcome<bool> {
        let header = ReplyHeader { status: Status::Ok, element: true, code: 0 };
        let is_sent = !self.ledger.must_park() && send(&mut self.sender, id, header, &reply.meta, &reply.body)?;
        Ok(is_sent || self.ledger.park_element(id, reply))
    }

    /// The one reply of a handler to a call that wants a stream, of which it is the only element. The call is not open.
    fn only_element(&mut self, id: u64, reply: Reply) -> Outcome {
        if reply.status != Status::Ok {
            return self.conclude(id, reply);
        }
        // A window is at least 1.
        let is_sent = fits(&reply, self.sender.max_message_len()) && self.send_element(id, reply)?;
        self.conclude(id, Reply::of(if is_sent { Status::Ok } else { Status::ReplyTooLarge }))
    }

    /// The handler of an open call has ended, or is not going to begin.
    fn end(&mut self, id: u64, reply: Reply) -> Outcome {
        let Some(open) = self.ledger.end(id) else { return Ok(()) };
        let not_run = matches!(reply.status, Status::TimedOut | Status::Overloaded);
        self.conclude(
            id,
            match open.stopped {
                Some(status) if !not_run => Reply::of(status),
                _ => reply,
            },
        )
    }

    /// Publishes or parks the final REPLY of a call that is not open any more.
    #[inline(never)]
    fn conclude(&mut self, id: u64, reply: Reply) -> Outcome {
        let reply = if fits(&reply, self.sender.max_message_len()) { reply } else { Reply::of(Status::ReplyTooLarge) };
        let header = ReplyHeader { status: reply.status, element: false, code: reply.code };
        if !self.ledger.must_park() && send(&mut self.sender, id, header, &reply.meta, &reply.body)? {
            self.ledger.published();
        } else {
            self.ledger.park(id, reply);
        }
        Ok(())
    }

    /// Answers a CALL that is not in flight.
    fn refuse(&mut self, id: u64, status: Status) -> Outcome {
        self.ledger.refuse(id, status);
        self.send_refusal()
    }

    fn send_refusal(&mut self) -> Outcome {
        if let Some((id, status)) = self.ledger.refusal()
            && !self.ledger.must_park()
        {
            let header = ReplyHeader { status, element: false, code: 0 };
            if send(&mut self.sender, id, header, &[], &[])? {
                self.ledger.refused();
            }
        }
        Ok(())
    }

    /// Publishes what was parked, as far as there is room. True if there was.
    #[cold]
    fn flush(&mut self, shared: &mut Shared<'_>) -> Outcome<bool> {
        let mut busy = false;
        while let Some(parked) = self.ledger.first_parked() {
            let header = ReplyHeader { status: parked.reply.status, element: parked.element, code: parked.reply.code };
            if !send(&mut self.sender, parked.id, header, &parked.reply.meta, &parked.reply.body)? {
                return Ok(busy);
            }
            busy = true;
            if let Some((id, _)) = self.ledger.unpark() {
                self.go_on(id, shared)?;
            }
        }
        if !self.reads() {
            self.send_refusal()?;
            busy |= self.reads();
        }
        Ok(busy)
    }

    /// A stream may have room for another element.
    fn go_on(&mut self, id: u64, shared: &mut Shared<'_>) -> Outcome {
        let Some(open) = self.ledger.get(id) else { return Ok(()) };
        if !open.may_go_on() {
            return Ok(());
        }
        match &mut open.task {
            Task::Away { state, offered, .. } => {
                if !std::mem::replace(offered, true) {
                    state.set_ready();
                }
                Ok(())
            }
            Task::Stream { queued, .. } => {
                if !std::mem::replace(queued, true) {
                    self.runnable.push_back(id);
                }
                Ok(())
            }
            Task::Pooled { elements, ticket, .. } => {
                if let Some(iterator) = elements.take() {
                    *ticket = shared.pool.push(self.peer.id, Work::Pull(id, iterator));
                }
                Ok(())
            }
            Task::Last(reply) => {
                let last = std::mem::replace(reply, Reply::of(Status::Ok));
                self.ledger.end(id);
                self.only_element(id, last)
            }
        }
    }

    /// Asks streams for elements, as long as there is room, and only so many that others are served too.
    #[inline(never)]
    fn pull(&mut self, shared: &mut Shared<'_>) -> Outcome<bool> {
        let mut busy = false;
        for _ in 0..RPC_FRAMES_PER_ROUND {
            if self.ledger.must_park() {
                break;
            }
            let Some(id) = self.runnable.pop_front() else { break };
            busy = true;
            let Some(open) = self.ledger.get(id) else { continue };
            let may_go_on = open.may_go_on();
            let Task::Stream { elements, queued, .. } = &mut open.task else { continue };
            *queued = false;
            if !may_go_on {
                continue;
            }
            let mut given = None;
            match step(&mut **elements, &mut |bytes| given = Some(bytes.to_vec())) {
                Step::Element => {
                    self.element(id, Reply::ok(Vec::new(), given.unwrap_or_default()), shared)?;
                }
                Step::Complete => self.end(id, Reply::of(Status::Ok))?,
                Step::Failed(reply) => self.end(id, reply)?,
            }
        }
        Ok(busy)
    }

    /// Tells calls to stop whose time is over.
    pub(super) fn time_out(&mut self, now: Instant, shared: &mut Shared<'_>) -> Outcome {
        while let Some((id, _)) = self.ledger.time_out(now) {
            self.stop(id, true, shared)?;
        }
        Ok(())
    }

    /// Tells all calls to stop.
    pub(super) fn cancel_all(&mut self, shared: &mut Shared<'_>) -> Outcome {
        let mut ids = Vec::new();
        self.ledger.stop_all(|id, _| ids.push(id));
        ids.into_iter().try_for_each(|id| self.stop(id, false, shared))
    }

    /// The ledger says that a call is to stop. `is_late`: because its time is over.
    fn stop(&mut self, id: u64, is_late: bool, shared: &mut Shared<'_>) -> Outcome {
        let client = self.peer.id;
        let withdraw = |ticket: &Option<u64>| ticket.is_some_and(|ticket| shared.pool.withdraw(client, ticket));
        let Some(open) = self.ledger.get(id) else { return Ok(()) };
        let stopped = open.stopped.unwrap_or(Status::Cancelled);
        let not_begun = if is_late { Status::TimedOut } else { stopped };
        // What its final REPLY says, if nothing runs.
        let (state, ends_with) = match &mut open.task {
            Task::Away { state, ticket, .. } => (Some(state.clone()), withdraw(ticket).then_some(not_begun)),
            Task::Pooled { state, elements: None, ticket, begun } => {
                let status = if *begun { stopped } else { not_begun };
                (Some(state.clone()), withdraw(ticket).then_some(status))
            }
            Task::Stream { state, .. } | Task::Pooled { state, .. } => (Some(state.clone()), Some(stopped)),
            Task::Last(_) => (None, Some(stopped)),
        };
        if let Some(state) = state {
            state.stop();
        }
        match ends_with {
            Some(status) => self.end(id, Reply::of(status)),
            None => Ok(()),
        }
    }

    /// The client has gone, or is to go. The bus is closed if every CALL that was taken has its final REPLY, so that `Closed` tells
    /// the client that what has none was not run; else it is abandoned.
    pub(super) fn let_go(mut self, pool: &Pool) {
        self.ledger.stop_all(|_, open| match &open.task {
            Task::Away { state, .. } | Task::Stream { state, .. } | Task::Pooled { state, .. } => state.stop(),
            Task::Last(_) => {}
        });
        pool.forget(self.peer.id);
        if !self.ledger.is_done() {
            self.sender.abandon();
        }
    }
}

/// Whether a call's time was over when its inline handler returned: then its final REPLY says so, whatever the handler gave.
#[inline]
fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| at <= Instant::now())
}

/// Whether a reply can be sent at all.
fn fits(reply: &Reply, longest: usize) -> bool {
    payload_len(reply.meta.len(), reply.body.len()).is_some_and(|(total, _)| total <= longest)
}
