//! What a handler gets, and how it replies.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::CallState;
use super::ledger::Reply;
use crate::many::Peer;
use crate::ring::raw::WaitLimit;
use crate::rpc::Status;
use crate::rpc::frame::{ReplyHeader, payload_len};
use crate::{Result, Sender};

/// An error of the application, as a handler returns it: a number and a text. The caller gets both, with
/// [`Status::Application`](crate::rpc::Status::Application).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The application's number.
    pub code: u32,
    /// What went wrong.
    pub text: String,
}

impl Fault {
    /// A fault with a number and a text.
    pub fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.text)
    }
}

impl std::error::Error for Fault {}

/// What a handler replies with: bytes, nothing, or what it has [written in place](Request::write_with).
///
/// Implement it for the messages of an encoding of your own:
///
/// ```
/// use ramway::rpc::{IntoReply, Request, Written};
///
/// struct Temperature(f64);
///
/// impl IntoReply for Temperature {
///     fn write_to(self, request: &mut Request<'_>) -> Written {
///         request.write(&self.0.to_le_bytes())
///     }
/// }
/// ```
pub trait IntoReply {
    /// Writes the reply's body.
    fn write_to(self, request: &mut Request<'_>) -> Written;
}

/// That the reply is written: what [`Request::write`] and [`Request::write_with`] give, for a handler to return.
#[derive(Debug)]
pub struct Written(());

impl IntoReply for Written {
    fn write_to(self, _: &mut Request<'_>) -> Written {
        self
    }
}

impl IntoReply for () {
    fn write_to(self, request: &mut Request<'_>) -> Written {
        request.write(&[])
    }
}

macro_rules! into_reply {
    ($($(#[$n:ident])? $type:ty;)*) => {
        $(impl$(<const $n: usize>)? IntoReply for $type {
            fn write_to(self, request: &mut Request<'_>) -> Written {
                request.write(self.as_ref())
            }
        })*
    };
}

into_reply! {
    Vec<u8>;
    Box<[u8]>;
    &[u8];
    String;
    &str;
    #[N] [u8; N];
    #[N] &[u8; N];
}

/// A call as its handler sees it: the request, who makes it, and where its reply is written.
///
/// An inline handler reads the request where the client wrote it, and its reply is written where the client reads it. A client
/// that is not trusted may rewrite the request while it is read: copy what is decided on. Handlers on the pool get a copy.
pub struct Request<'a> {
    pub(super) method: u32,
    pub(super) peer: Peer,
    pub(super) window: u32,
    pub(super) meta: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) deadline: Option<Instant>,
    pub(super) state: Option<&'a Arc<CallState>>,
    pub(super) output: Output<'a>,
}

impl<'a> Request<'a> {
    /// The method's number.
    pub fn method(&self) -> u32 {
        self.method
    }

    /// The request's bytes.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The request's metadata: bytes that the application defines.
    pub fn meta(&self) -> &'a [u8] {
        self.meta
    }

    /// The client.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether the caller wants a stream. A handler that gives one reply serves it too: the stream has one element.
    pub fn is_stream(&self) -> bool {
        self.window > 0
    }

    /// How much time the call has left; `None` without a limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether the call was cancelled, its time is over or its client is gone: nobody wants the reply any more. An inline handler
    /// sees only that its time is over.
    pub fn is_cancelled(&self) -> bool {
        self.state.is_some_and(|state| state.is_stopped()) || self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// The same for others: an iterator of a stream, or another thread.
    pub fn cancellation(&self) -> super::Cancellation {
        super::Cancellation::new(self.state.cloned(), self.deadline)
    }

    /// The reply's metadata: bytes that the application defines.
    pub fn set_reply_meta(&mut self, meta: &[u8]) {
        self.output.set_meta(meta);
    }

    /// Writes the reply's body, in place where there is room. The last one written counts.
    pub fn write(&mut self, body: &[u8]) -> Written {
        self.write_with(body.len(), |to| {
            to.copy_from_slice(body);
            body.len()
        })
    }

    /// Has the reply's body written, in place where there is room: `write` gets `len` bytes that hold anything, and says how many of
    /// them, from the first one on, are the body. It is not called if a reply of `len` bytes can never be sent, or there is no room
    /// and the client's `max_bytes` are used up: then the call ends with [`Status::ReplyTooLarge`](crate::rpc::Status::ReplyTooLarge).
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-rpc-write-{}.sock", std::process::id());
    /// use std::io::Write;
    ///
    /// let mut server = ramway::rpc::Server::bind(&name)?;
    /// server.method(1, |request| {
    ///     Ok(request.write_with(100, |mut to| {
    ///         let all = to.len();
    ///         write!(to, "user {}", 7).unwrap();
    ///         all - to.len()
    ///     }))
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn write_with(&mut self, len: usize, write: impl FnOnce(&mut [u8]) -> usize) -> Written {
        self.output.write_with(len, write);
        Written(())
    }

    /// Room for a body of `len` bytes, to be written before the handler returns; `None` as in [`write_with`](Self::write_with).
    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn reserve(&mut self, len: usize) -> Option<*mut u8> {
        self.output.reserve(len)
    }

    /// The body is the first `used` bytes of what was reserved.
    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn shorten(&mut self, used: usize) -> Written {
        self.output.shorten(used);
        Written(())
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("peer", &self.peer)
            .field("len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Where a reply is written to.
pub(super) struct Output<'a> {
    /// `None`: it is copied, and sent later.
    ring: Option<&'a mut Sender>,
    /// Bytes of the longest payload that can be sent.
    longest: usize,
    /// Bytes of the longest copy that may be kept.
    longest_copy: usize,
    meta: Vec<u8>,
    body: Body,
}

enum Body {
    None,
    /// In the ring's next frame: where its payload begins, where the body begins in it, and how long the body is.
    Ring {
        to: *mut u8,
        start: usize,
        len: usize,
    },
    Copy(Vec<u8>),
    TooLarge,
}

impl<'a> Output<'a> {
    /// Into the ring; into a copy where there is no room, or `must_park`.
    #[inline]
    pub(super) fn in_place(ring: &'a mut Sender, must_park: bool, longest_copy: usize) -> Self {
        let longest = ring.max_message_len();
        Self { ring: (!must_park).then_some(ring), longest, longest_copy, meta: Vec::new(), body: Body::None }
    }

    /// Into a copy.
    pub(super) fn copied(longest: usize) -> Self {
        Self { ring: None, longest, longest_copy: longest, meta: Vec::new(), body: Body::None }
    }

    fn set_meta(&mut self, meta: &[u8]) {
        if let Body::Ring { to, start, len } = self.body {
            // Written before its metadata: it moves.
            // SAFETY: `write_with` reserved `start + len` bytes there and has written the last `len` of them; nothing was
            // committed or reserved since.
            let body = unsafe { std::slice::from_raw_parts(to.add(start), len) };
            self.body = Body::Copy(body.to_vec());
        }
        self.meta.clear();
        self.meta.extend_from_slice(meta);
    }

    fn write_with(&mut self, len: usize, write: impl FnOnce(&mut [u8]) -> usize) {
        if let Some(to) = self.reserve(len) {
            // SAFETY: the room for `len` bytes that was reserved: initialised, and nobody else's before it is sent.
            let used = write(unsafe { std::slice::from_raw_parts_mut(to, len) });
            self.shorten(used);
        }
    }

    /// Room for a body of `len` bytes, which hold anything; `None`: no such reply can be kept.
    #[inline]
    fn reserve(&mut self, len: usize) -> Option<*mut u8> {
        self.body = Body::TooLarge;
        let (total, start) = payload_len(self.meta.len(), len).filter(|(total, _)| *total <= self.longest)?;
        if let Some(ring) = &mut self.ring
            && let Ok(to) = ring.reserve_raw(total, WaitLimit::None)
        {
            self.body = Body::Ring { to, start, len };
            // SAFETY: `total` mapped bytes, of which these are the last `len`.
            return Some(unsafe { to.add(start) });
        }
        self.reserve_copy(total, len)
    }

    #[cold]
    fn reserve_copy(&mut self, total: usize, len: usize) -> Option<*mut u8> {
        if total > self.longest_copy {
            return None;
        }
        let mut body = vec![0; len];
        let to = body.as_mut_ptr();
        self.body = Body::Copy(body);
        Some(to)
    }

    /// The body is the first `used` bytes of what was reserved.
    #[inline]
    fn shorten(&mut self, used: usize) {
        match &mut self.body {
            Body::Ring { len, .. } => *len = used.min(*len),
            Body::Copy(body) => body.truncate(used),
            Body::None | Body::TooLarge => {}
        }
    }

    /// The handler has succeeded. A reply that is in the ring is published as the final REPLY of `id`; `false`: there is none, and
    /// [`into_reply`](Self::into_reply) gives what is to be sent or parked.
    #[inline]
    pub(super) fn publish(&mut self, id: u64) -> Result<bool> {
        let Body::Ring { to, start, len } = self.body else { return Ok(false) };
        let Some(ring) = &mut self.ring else { return Ok(false) };
        let header = ReplyHeader { status: Status::Ok, element: false, code: 0 };
        // SAFETY: `to` is what was reserved last, for at least `start + len` bytes; nothing was committed since.
        unsafe { commit(ring, id, header, &self.meta, to, start, len)? };
        Ok(true)
    }

    /// What the handler has returned, with what it has written, where nothing is in the ring.
    pub(super) fn into_reply(self, outcome: std::result::Result<(), Fault>) -> Reply {
        match outcome {
            Ok(()) => Self::reply(self.meta, self.body),
            Err(fault) => Reply::fault(fault, self.meta),
        }
    }

    fn reply(meta: Vec<u8>, body: Body) -> Reply {
        match body {
            Body::None => Reply::ok(meta, Vec::new()),
            Body::Copy(body) => Reply::ok(meta, body),
            Body::TooLarge | Body::Ring { .. } => Reply::of(Status::ReplyTooLarge),
        }
    }
}

/// Writes the header and the metadata of a REPLY whose body is written, and publishes it.
///
/// # Safety
/// `to` is what `ring` reserved last, for at least `start + len` bytes, of which the last `len` are written; nothing was committed
/// since. `start` is what `payload_len` says for the metadata.
#[inline]
unsafe fn commit(
    ring: &mut Sender,
    id: u64,
    header: ReplyHeader,
    meta: &[u8],
    to: *mut u8,
    start: usize,
    len: usize,
) -> Result<()> {
    let head = header.encode(meta.len());
    // SAFETY: `start` is at least the lengths of both together, and that many bytes were reserved.
    unsafe {
        to.copy_from_nonoverlapping(head.as_ptr(), head.len());
        if start > head.len() {
            to.add(head.len()).copy_from_nonoverlapping(meta.as_ptr(), meta.len());
            let end = head.len() + meta.len();
            to.add(end).write_bytes(0, start - end);
        }
        ring.commit_raw(to, start + len, crate::facts::TYPE_ID_REPLY, id, true)
    }
}

/// Sends a REPLY if there is room for it now; `false`: there is not. It is not longer than the ring can hold.
pub(super) fn send(ring: &mut Sender, id: u64, header: ReplyHeader, meta: &[u8], body: &[u8]) -> Result<bool> {
    let (total, start) = payload_len(meta.len(), body.len()).ok_or(crate::ErrorKind::TooLarge)?;
    let to = match ring.reserve_raw(total, WaitLimit::None) {
        Ok(to) => to,
        Err(e) if e.kind() == crate::ErrorKind::Full => return Ok(false),
        Err(e) => return Err(e),
    };
    // SAFETY: `total` bytes were reserved at `to`, the last ones for the body; nothing was committed since.
    unsafe {
        to.add(start).copy_from_nonoverlapping(body.as_ptr(), body.len());
        commit(ring, id, header, meta, to, start, body.len())?;
    }
    Ok(true)
}
