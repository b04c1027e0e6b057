//! A call that is answered later, from any thread.

use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::hub::{Event, Happened, Hub};
use super::ledger::Reply;
use super::request::{Fault, IntoReply, Output, Request};
use super::streams::guarded;
use crate::bus::Place;
use crate::many::Peer;
use crate::rpc::Status;
use crate::{Error, ErrorKind, Result};

/// What a server and a call that runs elsewhere share.
pub(super) struct CallState {
    /// Nobody wants the reply any more.
    stopped: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// A client's place is free only when its handlers have ended: else it could connect again and again, and begin any number.
    _place: Arc<Place>,
}

struct Inner {
    /// The next element may be handed over.
    ready: bool,
    /// Called once, when it is stopped.
    on_stop: Vec<Box<dyn FnOnce() + Send>>,
    /// Called at each change.
    on_change: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Of tasks that wait for a change.
    wakers: Vec<Waker>,
}

impl CallState {
    pub(super) fn new(window: u32, place: Arc<Place>) -> Self {
        let inner = Inner { ready: window > 0, on_stop: Vec::new(), on_change: None, wakers: Vec::new() };
        Self { stopped: AtomicBool::new(false), inner: Mutex::new(inner), changed: Condvar::new(), _place: place }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No callback runs under the lock: nothing is left half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: a hint to stop, which orders nothing.
        self.stopped.load(Ordering::Relaxed)
    }

    /// Nobody wants the reply any more.
    pub(super) fn stop(&self) {
        let on_stop = {
            let mut inner = self.lock();
            self.stopped.store(true, Ordering::Relaxed);
            std::mem::take(&mut inner.on_stop)
        };
        // One that panics keeps no other from being told.
        on_stop.into_iter().for_each(|call| drop(guarded(call)));
        self.tell();
    }

    /// Another element may be handed over.
    pub(super) fn set_ready(&self) {
        self.lock().ready = true;
        self.tell();
    }

    fn tell(&self) {
        let (wakers, on_change) = {
            let mut inner = self.lock();
            (std::mem::take(&mut inner.wakers), inner.on_change.clone())
        };
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        if let Some(on_change) = on_change {
            drop(guarded(|| on_change()));
        }
    }

    /// `Ready` once `is` gives something; else the task is woken at the next change.
    fn poll<T>(&self, cx: &mut Context<'_>, is: impl FnOnce(&Self, &mut Inner) -> Option<T>) -> Poll<T> {
        let mut inner = self.lock();
        if let Some(there) = is(self, &mut inner) {
            return Poll::Ready(there);
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Says whether a call was cancelled, its time is over, or its client is gone: nobody wants the reply any more. Clones say the same.
#[derive(Clone)]
pub struct Cancellation {
    state: Option<Arc<CallState>>,
    deadline: Option<Instant>,
}

impl Cancellation {
    pub(super) fn new(state: Option<Arc<CallState>>, deadline: Option<Instant>) -> Self {
        Self { state, deadline }
    }

    /// Whether nobody wants the reply any more.
    pub fn is_cancelled(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.is_stopped())
            || self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// Has `call` called once nobody wants the reply any more, on the server's thread, which it must not block; at once if that is so
    /// already. Of an inline handler's request it is never called.
    pub fn on_cancel(&self, call: impl FnOnce() + Send + 'static) {
        let Some(state) = &self.state else { return };
        {
            let mut inner = state.lock();
            if !state.is_stopped() {
                inner.on_stop.push(Box::new(call));
                return;
            }
        }
        call();
    }

    /// Waits until nobody wants the reply any more. Of an inline handler's request it waits for ever.
    pub async fn cancelled(&self) {
        poll_fn(|cx| match &self.state {
            Some(state) => state.poll(cx, |state, _| state.is_stopped().then_some(())),
            None => Poll::Pending,
        })
        .await;
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// A call that is answered later, from any thread: what a [deferred](super::Server::deferred) handler gets. It holds a copy of the
/// request. Dropped without an answer it ends with [`Status::HandlerFailed`].
///
/// No call of it blocks, but for [`send`](Self::send).
pub struct Call {
    pub(super) client: u64,
    pub(super) id: u64,
    pub(super) method: u32,
    pub(super) window: u32,
    pub(super) peer: Peer,
    pub(super) bytes: Vec<u8>,
    pub(super) meta: Range<usize>,
    pub(super) body: Range<usize>,
    pub(super) deadline: Option<Instant>,
    pub(super) state: Arc<CallState>,
    pub(super) hub: Arc<Hub>,
    /// Bytes of the longest reply.
    pub(super) longest: usize,
    pub(super) reply_meta: Vec<u8>,
    pub(super) answered: bool,
}

impl Call {
    /// The method's number.
    pub fn method(&self) -> u32 {
        self.method
    }

    /// The request's bytes.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body.clone()]
    }

    /// The request's metadata.
    pub fn meta(&self) -> &[u8] {
        &self.bytes[self.meta.clone()]
    }

    /// The client.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// How much time the call has left; `None` without a limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether the caller wants a stream: then elements can be sent.
    pub fn is_stream(&self) -> bool {
        self.window > 0
    }

    /// Whether the call was cancelled, its time is over or its client is gone. It is still to be answered, or dropped: only then
    /// the client has its place back.
    pub fn is_cancelled(&self) -> bool {
        self.state.is_stopped() || self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// Tells others whether the call was cancelled.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation::new(Some(self.state.clone()), self.deadline)
    }

    /// Has `call` called whenever the call is cancelled or another element can be sent, on the server's thread, which it must not
    /// block. It replaces an earlier one. For event loops, which then check; call this first and check then.
    pub fn on_change(&self, call: impl Fn() + Send + Sync + 'static) {
        if !self.hub.is_detached() {
            self.state.lock().on_change = Some(Arc::new(call));
        }
    }

    /// Metadata of the reply, or of the next element.
    pub fn set_reply_meta(&mut self, meta: &[u8]) {
        self.reply_meta = meta.to_vec();
    }

    /// Answers the call. Of a stream the reply is its last element.
    pub fn reply(mut self, body: impl Into<Vec<u8>>) {
        let meta = std::mem::take(&mut self.reply_meta);
        self.answer(Happened::Reply(Reply::ok(meta, body.into())));
    }

    /// Ends the call with an error of the application.
    pub fn fail(mut self, fault: Fault) {
        let meta = std::mem::take(&mut self.reply_meta);
        self.answer(Happened::Reply(Reply::fault(fault, meta)));
    }

    /// Ends the call with [`Status::HandlerFailed`]: the handler failed in a way that it did not mean to.
    pub fn fail_unexpectedly(mut self, text: impl Into<String>) {
        self.answer(Happened::Reply(Reply::failed(text.into())));
    }

    /// Completes the stream, without another element; a call that is none gets an empty reply.
    pub fn finish(mut self) {
        self.answer(Happened::Complete);
    }

    /// Sends an element of a stream if the caller has room for another one now.
    ///
    /// # Errors
    /// `Full` if it has not: [`on_change`](Self::on_change) and [`ready`](Self::ready) say when. `Interrupted` if nobody wants the
    /// stream any more. `InvalidArgument` if the caller wants one reply, no stream. `Detached` in a fork's child.
    pub fn try_send(&mut self, body: impl Into<Vec<u8>>) -> Result<()> {
        self.check_stream()?;
        if !std::mem::take(&mut self.state.lock().ready) {
            return Err(ErrorKind::Full.into());
        }
        let meta = std::mem::take(&mut self.reply_meta);
        self.push(Happened::Element(Reply::ok(meta, body.into())));
        Ok(())
    }

    /// Sends an element of a stream, waiting until the caller has room for it.
    ///
    /// # Errors
    /// As for [`try_send`](Self::try_send), without `Full`.
    pub fn send(&mut self, body: impl Into<Vec<u8>>) -> Result<()> {
        self.check_stream()?;
        {
            let mut inner = self.state.lock();
            while !inner.ready && !self.state.is_stopped() {
                inner = self.state.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.try_send(body)
    }

    /// Waits until another element can be sent.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn ready(&mut self) -> Result<()> {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// [`ready`](Self::ready) for futures made by hand.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Err(error) = self.check_stream() {
            return Poll::Ready(Err(error));
        }
        let is = |state: &CallState, inner: &mut Inner| (inner.ready || state.is_stopped()).then_some(());
        self.state.poll(cx, is).map(|()| self.check_stream())
    }

    fn check_stream(&self) -> Result<()> {
        self.check_stream_but_stopped()?;
        if self.state.is_stopped() {
            let text = "the call was cancelled, its time is over, or its client is gone: nobody wants its stream";
            return Err(Error::new(ErrorKind::Interrupted, text));
        }
        Ok(())
    }

    fn check_stream_but_stopped(&self) -> Result<()> {
        if self.hub.is_detached() {
            return Err(ErrorKind::Detached.into());
        }
        if self.window == 0 {
            let text = format!("the caller of method {} wants one reply, no stream: `reply` to it", self.method);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(())
    }

    /// The request as a handler of the pool sees it.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            method: self.method,
            peer: self.peer,
            window: self.window,
            meta: self.meta(),
            body: self.body(),
            deadline: self.deadline,
            state: Some(&self.state),
            output: Output::copied(self.longest),
        }
    }

    /// [`reply`](Self::reply) by what a handler returns, as of a [method](super::Server::method).
    pub fn answer_with<R: IntoReply>(mut self, outcome: std::result::Result<R, Fault>) {
        let mut request = self.request();
        request.set_reply_meta(&self.reply_meta);
        let outcome = outcome.map(|reply| {
            reply.write_to(&mut request);
        });
        let reply = request.output.into_reply(outcome);
        self.answer(Happened::Reply(reply));
    }

    pub(super) fn answer(&mut self, happened: Happened) {
        self.answered = true;
        self.push(happened);
    }

    fn push(&self, happened: Happened) {
        self.hub.push(Event { client: self.client, call: self.id, happened });
    }
}

impl Reply {
    pub(super) fn fault(fault: Fault, meta: Vec<u8>) -> Self {
        Self { status: Status::Application, code: fault.code, meta, body: fault.text.into_bytes() }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Happened::Reply(Reply::failed("the handler let go of the call without an answer".into())));
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("peer", &self.peer)
            .field("len", &self.body.len())
            .finish_non_exhaustive()
    }
}
