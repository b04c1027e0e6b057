//! Between a client's calls and its bus: writes what is due, reads what has come. Never waits.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use super::ledger::{Due, Ledger, Number, Queued};
use super::reply::{CallOptions, Reply, SHORT};
use crate::facts::{RPC_HEADER, TYPE_ID_CALL, TYPE_ID_CANCEL, TYPE_ID_CREDIT, TYPE_ID_REPLY};
use crate::ring::consumer::Frame;
use crate::ring::raw::WaitLimit;
use crate::rpc::frame::{CallHeader, Parts, ReplyHeader, payload_len, timeout_us};
use crate::rpc::{CallError, CallResult, Status};
use crate::{Error, ErrorKind, Receiver, Result, Sender};

/// A request as the caller has it.
#[derive(Clone, Copy)]
pub(in crate::rpc) struct Request<'a> {
    pub(in crate::rpc) method: u32,
    pub(in crate::rpc) body: &'a [u8],
    pub(in crate::rpc) options: CallOptions<'a>,
    /// 0: one reply.
    pub(in crate::rpc) window: u32,
}

/// What became of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing more is to be written now.
    All,
    /// A frame of this many bytes is, and there is no room for it.
    Blocked(usize),
    /// The server no longer reads. How the connection ended is for the receiver to say, after the last reply.
    Gone,
}

/// Makes a call: writes it, or queues it if others go first or there is no room now.
/// `tx` is `None` while somebody waits for room with it: others go first then.
#[inline]
pub(super) fn start(
    ledger: &mut Ledger,
    tx: Option<&mut Sender>,
    max_len: usize,
    request: &Request<'_>,
) -> CallResult<Number> {
    let (len, body_at) = check(ledger, max_len, request)?;
    // The clock before it is published: the server's time for the call begins later, so this side's is over when the server's is.
    // Read after it, it could be late by as long as this thread had lost its processor, to the server's that was just woken for one.
    let deadline = request.options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let number = if let Some(tx) = tx
        && ledger.sends_at_once()
        && write(ledger, tx, request, len, body_at)?
    {
        ledger.sent(request.window)
    } else {
        queue(ledger, request, len, body_at)
    };
    if let Some(at) = deadline {
        ledger.set_deadline(number, at);
    }
    Ok(number)
}

/// Makes a call of which the ledger knows nothing, by [`Ledger::sent_alone`], while nothing else is under way. Gives its id; `None`:
/// there is no room, and nothing was done.
#[inline]
pub(super) fn start_alone(
    ledger: &mut Ledger,
    tx: &mut Sender,
    max_len: usize,
    request: &Request<'_>,
) -> CallResult<Option<u64>> {
    let (len, body_at) = check(ledger, max_len, request)?;
    Ok(write(ledger, tx, request, len, body_at)?.then(|| ledger.sent_alone()))
}

/// Whether a request may be sent: the length of its payload, and where the body begins in it.
#[inline]
fn check(ledger: &Ledger, max_len: usize, request: &Request<'_>) -> CallResult<(usize, usize)> {
    let refused = |error: Error| CallError::of_error(error, false);
    ledger.check().map_err(refused)?;
    if request.options.timeout == Some(Duration::ZERO) {
        return Err(refused(ErrorKind::TimedOut.into()));
    }
    match payload_len(request.options.meta.len(), request.body.len()) {
        Some((len, body_at)) if len <= max_len => Ok((len, body_at)),
        len => Err(refused(too_large(len.map_or(usize::MAX, |(len, _)| len), max_len))),
    }
}

/// Publishes a request as the CALL with the next id; `false`: there is no room for it, or the server reads no more.
#[inline]
fn write(ledger: &mut Ledger, tx: &mut Sender, request: &Request<'_>, len: usize, body_at: usize) -> CallResult<bool> {
    let Request { method, body, options: CallOptions { timeout, meta, .. }, window } = *request;
    let to = match tx.reserve_raw(len, WaitLimit::None) {
        Ok(to) => to,
        Err(e) if matches!(e.kind(), ErrorKind::Full | ErrorKind::Closed | ErrorKind::PeerDead) => return Ok(false),
        Err(e) => return Err(dead(ledger, e)),
    };
    let header = CallHeader { timeout_us: timeout_us(timeout), method, window };
    // SAFETY: `to` was reserved last, for `len` bytes, which no one else reads or writes before the commit.
    unsafe {
        to.copy_from_nonoverlapping(header.encode(meta.len()).as_ptr(), RPC_HEADER);
        if !meta.is_empty() {
            to.add(RPC_HEADER).copy_from_nonoverlapping(meta.as_ptr(), meta.len());
            let end = RPC_HEADER + meta.len();
            to.add(end).write_bytes(0, body_at - end);
        }
        copy_body(to.add(body_at), body);
        tx.commit_raw(to, len, TYPE_ID_CALL, ledger.next_id(), true)
    }
    .map_err(|error| CallError::of_error(error, false))?;
    Ok(true)
}

/// Copies a body that the caller has mostly just written. A short one by words: a wide load, as `memcpy`'s are, waits for the stores of
/// several words to leave the processor (docs/adr/0033).
///
/// # Safety
/// There is room for it, which it does not overlap.
#[inline]
unsafe fn copy_body(to: *mut u8, body: &[u8]) {
    const WORD: usize = size_of::<u64>();
    let words = if body.len() <= SHORT { body.len() / WORD } else { 0 };
    let mut at = 0;
    while at < words * WORD {
        // SAFETY: within the body, and the caller vouches for the room. Black box: or the compiler makes a `memcpy` of the loop.
        unsafe { to.add(at).cast::<u64>().write_unaligned(body.as_ptr().add(at).cast::<u64>().read_unaligned()) };
        at = std::hint::black_box(at + WORD);
    }
    let rest = &body[at..];
    // SAFETY: the caller's.
    unsafe { to.add(at).copy_from_nonoverlapping(rest.as_ptr(), rest.len()) };
}

/// Keeps a request until it can be sent.
#[cold]
fn queue(ledger: &mut Ledger, request: &Request<'_>, len: usize, body_at: usize) -> Number {
    let Request { method, body, options: CallOptions { meta, .. }, window } = *request;
    let mut rest = vec![0; len - RPC_HEADER];
    rest[..meta.len()].copy_from_slice(meta);
    rest[body_at - RPC_HEADER..].copy_from_slice(body);
    ledger.queue(window, Queued { method, meta_len: meta.len(), rest })
}

/// The sender is dead: so are all calls.
#[cold]
fn dead(ledger: &mut Ledger, error: Error) -> CallError {
    ledger.end(error.kind(), error.to_string());
    CallError::of_error(error, false)
}

#[cold]
pub(super) fn too_large(len: usize, max: usize) -> Error {
    let text = format!(
        "a request of {len} bytes, header and metadata included, can never fit: this server's rings take at most {max}; give \
         the server a larger capacity or cut the request"
    );
    Error::new(ErrorKind::TooLarge, text)
}

/// Writes what is due, as far as there is room.
///
/// # Errors
/// The handle is dead: of what the server wrote, or in a fork's child.
pub(super) fn flush(ledger: &mut Ledger, tx: &mut Sender) -> Result<Flushed> {
    let mut flushed = Ok(Flushed::All);
    let mut wrote = false;
    loop {
        let due = ledger.due();
        let len = match due {
            Due::Nothing => break,
            Due::Cancel { .. } => 0,
            Due::Credit { .. } => size_of::<u32>(),
            Due::Call { len, .. } => RPC_HEADER + len,
        };
        let to = match tx.reserve_raw(len, WaitLimit::None) {
            Ok(to) => to,
            Err(e) => {
                flushed = match e.kind() {
                    ErrorKind::Full => Ok(Flushed::Blocked(len)),
                    ErrorKind::Closed | ErrorKind::PeerDead => Ok(Flushed::Gone),
                    _ => Err(e),
                };
                break;
            }
        };
        match due {
            Due::Nothing => unreachable!("handled above"),
            Due::Cancel { id } => {
                // SAFETY: `to` was reserved last.
                unsafe { tx.commit_raw(to, 0, TYPE_ID_CANCEL, id, false)? };
                ledger.owed_was_sent();
            }
            Due::Credit { id, elements } => {
                // SAFETY: as in `start`.
                unsafe {
                    to.copy_from_nonoverlapping(elements.to_le_bytes().as_ptr(), len);
                    tx.commit_raw(to, len, TYPE_ID_CREDIT, id, false)?;
                }
                ledger.owed_was_sent();
            }
            Due::Call { number, .. } => {
                let left = ledger.deadline(number).map(|at| at.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) {
                    // What was reserved is given up by the next reservation.
                    ledger.time_out(number);
                    continue;
                }
                let window = ledger.window(number);
                let queued = ledger.queued_call(number).expect("it is due");
                let header = CallHeader { timeout_us: timeout_us(left), method: queued.method, window };
                // SAFETY: as in `start`; the length is that of the header and the rest.
                unsafe {
                    to.copy_from_nonoverlapping(header.encode(queued.meta_len).as_ptr(), RPC_HEADER);
                    to.add(RPC_HEADER).copy_from_nonoverlapping(queued.rest.as_ptr(), queued.rest.len());
                    tx.commit_raw(to, len, TYPE_ID_CALL, ledger.next_id(), false)?;
                }
                ledger.queued_was_sent();
            }
        }
        wrote = true;
    }
    if wrote {
        tx.flush()?;
    }
    flushed
}

/// Reads one frame, if one is there; false if none is.
///
/// # Errors
/// How the server ended, after its last frame; `Corrupt`, `Detached`.
#[inline]
pub(super) fn receive(ledger: &mut Ledger, rx: &mut Receiver) -> Result<bool> {
    let half = &mut *rx.half;
    let frame = match half.recv(WaitLimit::None) {
        Ok(frame) => frame,
        Err(e) if e.kind() == ErrorKind::Empty => return Ok(false),
        Err(e) => return Err(e),
    };
    let taken = take(ledger, &frame);
    half.hot.release();
    match taken {
        Ok(()) => Ok(true),
        Err(what) => Err(corrupt(rx, what)),
    }
}

/// The next frame, if it is the final REPLY of this call, with a body alone, and may be kept: where its body begins, and its length.
/// It lies there until the next release. `None`: it is something else, and is still there.
/// There has to be a [cached](crate::ring::consumer::Consumer::has_cached_frame) one.
#[inline]
pub(super) fn frame_alone(ledger: &Ledger, rx: &mut Receiver, id: u64) -> Option<(NonNull<u8>, usize)> {
    let hot = &mut rx.half.hot;
    debug_assert!(hot.has_cached_frame());
    // What has ended is met again.
    let frame = hot.cached_frame().ok()??;
    if frame.type_id == TYPE_ID_REPLY && frame.tag == id && frame.len >= RPC_HEADER && ledger.may_keep(frame.len) {
        // SAFETY: the frame's bytes lie in the mapping until they are released, aligned to 16. Volatile: read once, as in `take`.
        let header = unsafe { frame.data.cast::<[u64; 2]>().read_volatile() };
        // `Ok`, no element, no metadata.
        if header == [0; 2] {
            let body = NonNull::new(frame.data.wrapping_add(RPC_HEADER).cast_mut())?;
            return Some((body, frame.len - RPC_HEADER));
        }
    }
    hot.go_back(hot.released);
    None
}

/// A reply that is read where it lies, in the ring.
#[doc(hidden)] // for the bindings; not part of the stable API
#[derive(Clone, Copy, Debug)]
pub struct InPlace {
    /// Whose it is.
    pub call: u64,
    /// An element of a stream, which goes on; else the call has ended with this.
    pub more: bool,
    /// Where the body begins. Another process may write there.
    pub body: *const u8,
    /// Bytes of body.
    pub len: usize,
    /// Where the metadata begins.
    pub meta: *const u8,
    /// Bytes of metadata.
    pub meta_len: usize,
}

/// What became of the next frame.
pub(super) enum Received {
    /// There is none.
    Nothing,
    /// The ledger has it.
    Kept,
    /// It is still in the ring.
    InPlace(InPlace),
}

/// [`receive`] that leaves the reply to a `wanted` call in the ring, until the next release.
///
/// # Errors
/// As for [`receive`].
pub(super) fn receive_in_place(
    ledger: &mut Ledger,
    rx: &mut Receiver,
    wanted: impl FnOnce(Number) -> bool,
) -> Result<Received> {
    let half = &mut *rx.half;
    let frame = match half.recv(WaitLimit::None) {
        Ok(frame) => frame,
        Err(e) if e.kind() == ErrorKind::Empty => return Ok(Received::Nothing),
        Err(e) => return Err(e),
    };
    if let Ok((header, parts)) = header(&frame)
        && let Some(call) = ledger.reply_in_place(frame.tag, &header, !parts.body.is_empty(), wanted)
    {
        let at = |offset| frame.data.wrapping_add(offset);
        let Parts { meta, body } = parts;
        let (meta_len, len) = (meta.len(), body.len());
        return Ok(Received::InPlace(InPlace {
            call,
            more: header.element,
            body: at(body.start),
            len,
            meta: at(meta.start),
            meta_len,
        }));
    }
    let taken = take(ledger, &frame);
    half.hot.release();
    match taken {
        Ok(()) => Ok(Received::Kept),
        Err(what) => Err(corrupt(rx, what)),
    }
}

#[cold]
fn corrupt(rx: &mut Receiver, what: &str) -> Error {
    use crate::ring::raw::RawEndpoint;
    rx.corrupt().context(format_args!("the server sent {what}"))
}

/// What a frame says, if it is a reply that a correct server writes.
#[inline]
fn header(frame: &Frame) -> std::result::Result<(ReplyHeader, Parts), &'static str> {
    if frame.type_id != TYPE_ID_REPLY {
        return Err("a frame that is no reply");
    }
    if frame.len < RPC_HEADER {
        return Err("a reply that is shorter than its header");
    }
    let mut header = [0; RPC_HEADER];
    // SAFETY: the frame's bytes lie in the mapping until they are released. A server that writes meanwhile makes the copy a mix,
    // not an invalid one; lengths are taken from the copy.
    unsafe { header.as_mut_ptr().copy_from_nonoverlapping(frame.data, RPC_HEADER) };
    ReplyHeader::decode(&header, frame.len).ok_or("a reply with a header that no correct server writes")
}

#[inline]
fn take(ledger: &mut Ledger, frame: &Frame) -> std::result::Result<(), &'static str> {
    let (header, parts) = header(frame)?;
    if header.status == Status::Cancelled {
        ledger.was_cancelled(frame.tag, Instant::now());
    }
    let copy = || copy(frame, &parts);
    ledger.reply(frame.tag, header, !parts.body.is_empty(), frame.len, copy).map_err(|wrong| wrong.0)
}

/// Each byte once.
#[inline]
fn copy(frame: &Frame, Parts { meta, body }: &Parts) -> Reply {
    // SAFETY: as above; the parts were checked to lie in the payload, which is shorter than 2^31.
    unsafe { Reply::copy(frame.data.add(meta.start), meta.len(), frame.data.add(body.start), body.len()) }
}
