//! A call as its handler sees it.

use crate::options::{RAMWAY_FOREVER, RAMWAY_TRY, limit};
use crate::peers::ramway_peer;
use crate::sender::array;
use crate::status::{Failure, Outcome, guard, guard_hot, guard_value, invalid, null, ramway_status};
use ramway_core::ErrorKind;
use ramway_core::rpc::{Call, Fault, IntoReply, Request, Written};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{from_mut, null as nothing};
use std::time::Duration;

/// A call as its handler sees it: the request, and how it is answered.
///
/// Of `ramway_rpc_server_method` it is valid until the handler returns. Of `ramway_rpc_server_deferred` it is valid until it
/// is answered, and may move between threads; one of them at a time uses it.
#[derive(Debug)]
pub struct ramway_rpc_request {
    _private: (),
}

/// What a `ramway_rpc_request` really is.
enum RequestHandle {
    /// On the stack of [`inline`].
    Inline { request: *mut Request<'static>, answer: Option<Answer> },
    /// In a box.
    Deferred(Call),
}

/// What an inline handler has answered.
enum Answer {
    Written(Written),
    Fault(Fault),
    Failed(String),
}

/// What C has given for a method.
pub(crate) struct Handler {
    run: unsafe extern "C" fn(request: *mut ramway_rpc_request, user: *mut c_void),
    user: *mut c_void,
}

// SAFETY: what `user` is, is the caller's business: the header says on which thread it is used.
unsafe impl Send for Handler {}

impl Handler {
    pub(crate) fn new(
        run: unsafe extern "C" fn(request: *mut ramway_rpc_request, user: *mut c_void),
        user: *mut c_void,
    ) -> Self {
        Self { run, user }
    }

    fn run(&self, handle: *mut RequestHandle) {
        // SAFETY: the caller's function, which does not unwind.
        unsafe { (self.run)(handle.cast(), self.user) };
    }
}

/// Runs a handler on the server's thread.
pub(crate) fn inline(handler: &Handler, request: &mut Request<'_>) -> Result<Written, Fault> {
    let request = from_mut(request).cast::<Request<'static>>();
    let mut handle = RequestHandle::Inline { request, answer: None };
    handler.run(&raw mut handle);
    match handle {
        RequestHandle::Inline { answer: Some(Answer::Written(written)), .. } => Ok(written),
        RequestHandle::Inline { answer: Some(Answer::Fault(fault)), .. } => Err(fault),
        RequestHandle::Inline { answer: Some(Answer::Failed(text)), .. } => fail_unexpectedly(text),
        _ => fail_unexpectedly("the handler returned without an answer".into()),
    }
}

/// Ends an inline handler as a mistake in it would. The server catches it; no hook is told, because it is no mistake of Rust.
fn fail_unexpectedly(text: String) -> ! {
    std::panic::resume_unwind(Box::new(text))
}

/// Runs a handler that gets the call itself.
pub(crate) fn deferred(handler: &Handler, call: Call) {
    handler.run(Box::into_raw(Box::new(RequestHandle::Deferred(call))));
}

/// What C writes a reply with.
#[derive(Clone, Copy)]
struct Fill {
    write: unsafe extern "C" fn(to: *mut c_void, len: usize, user: *mut c_void) -> usize,
    user: *mut c_void,
}

impl Fill {
    /// `None`: it failed, and has written nothing that counts.
    fn write(self, to: &mut [u8]) -> Option<usize> {
        // SAFETY: the caller's function; so many bytes are there.
        let used = unsafe { (self.write)(to.as_mut_ptr().cast(), to.len(), self.user) };
        (used != usize::MAX).then_some(used)
    }
}

const WHAT: &str = "the request";

/// # Safety
/// `handle` is null or valid.
unsafe fn from<'a>(handle: *mut ramway_rpc_request) -> Outcome<&'a mut RequestHandle> {
    // SAFETY: requests are made by `inline` and `deferred` only.
    unsafe { handle.cast::<RequestHandle>().as_mut() }.ok_or_else(|| null(WHAT))
}

/// Asks a request of either kind the same.
macro_rules! ask {
    ($handle:expr, $request:ident => $ask:expr) => {
        match $handle {
            RequestHandle::Inline { request, .. } => {
                // SAFETY: it lives as long as the handler runs.
                let $request = unsafe { &mut **request };
                $ask
            }
            RequestHandle::Deferred($request) => $ask,
        }
    };
}

#[cold]
fn answered() -> Failure {
    invalid("the request was answered before: a request has one answer")
}

/// Answers a request, which is over then.
///
/// # Safety
/// `handle` is null or valid.
unsafe fn answer(
    handle: *mut ramway_rpc_request,
    at_once: impl FnOnce(&mut Request<'static>) -> Answer,
    later: impl FnOnce(Call),
) -> Outcome {
    // SAFETY: the caller's.
    match unsafe { from(handle) }? {
        RequestHandle::Inline { answer: Some(_), .. } => Err(answered()),
        RequestHandle::Inline { request, answer } => {
            // SAFETY: it lives as long as the handler runs.
            *answer = Some(at_once(unsafe { &mut **request }));
            Ok(())
        }
        RequestHandle::Deferred(_) => {
            // SAFETY: made by `deferred`, and given up by the caller.
            let handle = unsafe { Box::from_raw(handle.cast::<RequestHandle>()) };
            if let RequestHandle::Deferred(call) = *handle {
                later(call);
            }
            Ok(())
        }
    }
}

/// The method's number. `UINT32_MAX` for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_method(request: *mut ramway_rpc_request) -> u32 {
    // SAFETY: the caller's.
    guard_value(u32::MAX, || Ok(ask!(unsafe { from(request) }?, request => request.method())))
}

/// # Safety
/// `len` is null or writable.
unsafe fn give_bytes(bytes: &[u8], len: *mut usize) -> Outcome<*const c_void> {
    // SAFETY: the caller's.
    let len = unsafe { len.as_mut() }.ok_or_else(|| null("len"))?;
    *len = bytes.len();
    Ok(bytes.as_ptr().cast())
}

/// The request's bytes, `*len` of them, valid as long as the request: until the handler returns, or the request is answered.
/// Null on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_body(request: *mut ramway_rpc_request, len: *mut usize) -> *const c_void {
    guard_value(nothing(), || {
        // SAFETY: the caller's.
        let bytes = ask!(unsafe { from(request) }?, request => request.body());
        // SAFETY: the caller's.
        unsafe { give_bytes(bytes, len) }
    })
}

/// The request's metadata; as `ramway_rpc_request_body`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_meta(request: *mut ramway_rpc_request, len: *mut usize) -> *const c_void {
    guard_value(nothing(), || {
        // SAFETY: the caller's.
        let bytes = ask!(unsafe { from(request) }?, request => request.meta());
        // SAFETY: the caller's.
        unsafe { give_bytes(bytes, len) }
    })
}

/// The client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_peer(
    request: *mut ramway_rpc_request,
    out: *mut ramway_peer,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, out) = unsafe { (from(request)?, out.as_mut().ok_or_else(|| null("out"))?) };
        *out = ask!(handle, request => request.peer()).into();
        Ok(())
    })
}

/// How much time the call has left, in nanoseconds; `RAMWAY_FOREVER` without a limit, and for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_remaining_ns(request: *mut ramway_rpc_request) -> i64 {
    guard_value(RAMWAY_FOREVER, || {
        // SAFETY: the caller's.
        let left = ask!(unsafe { from(request) }?, request => request.remaining());
        Ok(left.map_or(RAMWAY_FOREVER, |left| i64::try_from(left.as_nanos()).unwrap_or(i64::MAX)))
    })
}

/// Whether the call was cancelled, its time is over or its client is gone: nobody wants the reply any more, but the request
/// is still to be answered. A handler of `ramway_rpc_server_method` sees only that the time is over. False for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_is_cancelled(request: *mut ramway_rpc_request) -> bool {
    // SAFETY: the caller's.
    guard_value(false, || Ok(ask!(unsafe { from(request) }?, request => request.is_cancelled())))
}

/// Whether the caller wants a stream. False for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_is_stream(request: *mut ramway_rpc_request) -> bool {
    // SAFETY: the caller's.
    guard_value(false, || Ok(ask!(unsafe { from(request) }?, request => request.is_stream())))
}

/// Metadata of the reply, or of the next element of a stream: bytes that the application defines. Before the reply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_set_reply_meta(
    request: *mut ramway_rpc_request,
    meta: *const c_void,
    len: usize,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, meta) = unsafe { (from(request)?, array(meta.cast::<u8>(), len, "meta")?) };
        ask!(handle, request => request.set_reply_meta(meta));
        Ok(())
    })
}

/// Answers the request with these bytes. Of a stream they are the last element. The request is over.
///
/// `RAMWAY_INVALID_ARGUMENT` if it was answered before, in a handler of `ramway_rpc_server_method`. A reply that is too long
/// is no error here: the caller gets `RAMWAY_RPC_REPLY_TOO_LARGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_reply(
    request: *mut ramway_rpc_request,
    body: *const c_void,
    len: usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe {
            let body = array(body.cast::<u8>(), len, "body")?;
            answer(request, |request| Answer::Written(request.write(body)), |call| call.reply(body))
        }
    })
}

/// `ramway_rpc_request_reply` that has the reply written in place, where there is room: `write` gets `len` bytes that hold
/// anything, and says how many of them, from the first one on, are the reply. It is called before this returns, or not at all
/// if a reply of `len` bytes can never be sent: the caller gets `RAMWAY_RPC_REPLY_TOO_LARGE` then. Where it gives `SIZE_MAX`
/// the request is not answered, and this is `RAMWAY_INTERRUPTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_reply_with(
    request: *mut ramway_rpc_request,
    len: usize,
    write: Option<unsafe extern "C" fn(to: *mut c_void, len: usize, user: *mut c_void) -> usize>,
    user: *mut c_void,
) -> ramway_status {
    guard_hot(|| {
        let fill = Fill { write: write.ok_or_else(|| null("write"))?, user };
        // SAFETY: the caller's.
        match unsafe { from(request) }? {
            RequestHandle::Inline { answer: Some(_), .. } => Err(answered()),
            RequestHandle::Inline { request, answer } => {
                let mut failed = false;
                // SAFETY: it lives as long as the handler runs.
                let written = unsafe { &mut **request }.write_with(len, |to| {
                    fill.write(to).unwrap_or_else(|| {
                        failed = true;
                        0
                    })
                });
                if failed {
                    return Err(ErrorKind::Interrupted.into());
                }
                *answer = Some(Answer::Written(written));
                Ok(())
            }
            RequestHandle::Deferred(call) => {
                let reply = if len <= call.longest_reply() {
                    let mut body = vec![0; len];
                    let used = fill.write(&mut body).ok_or(ErrorKind::Interrupted)?;
                    body.truncate(used);
                    Some(body)
                } else {
                    None
                };
                let over = |call: Call| match reply {
                    Some(body) => call.reply(body),
                    None => call.answer_with(Ok(TooLong(len))),
                };
                // SAFETY: the caller's.
                unsafe { self::answer(request, |_| unreachable!("it is deferred"), over) }
            }
        }
    })
}

/// A reply that is longer than any.
struct TooLong(usize);

impl IntoReply for TooLong {
    fn write_to(self, request: &mut Request<'_>) -> Written {
        request.write_with(self.0, |_| 0)
    }
}

/// # Safety
/// `text` is null or a string.
unsafe fn words(text: *const c_char) -> Outcome<String> {
    if text.is_null() {
        return Err(null("text"));
    }
    // SAFETY: the caller's.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Ends the call with an error of the application, `RAMWAY_RPC_APPLICATION`: a number and a text in UTF-8, which the caller
/// gets. The request is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_fail(
    request: *mut ramway_rpc_request,
    code: u32,
    text: *const c_char,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe {
            let fault = Fault::new(code, words(text)?);
            let other = fault.clone();
            answer(request, |_| Answer::Fault(fault), |call| call.fail(other))
        }
    })
}

/// Ends the call with `RAMWAY_RPC_HANDLER_FAILED` and a text in UTF-8: the handler failed in a way that it did not mean to.
/// The request is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_fail_unexpectedly(
    request: *mut ramway_rpc_request,
    text: *const c_char,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe {
            let text = words(text)?;
            let other = text.clone();
            answer(request, |_| Answer::Failed(text), |call| call.fail_unexpectedly(other))
        }
    })
}

/// The call of a deferred request, which streams need.
fn call(handle: &mut RequestHandle) -> Outcome<&mut Call> {
    match handle {
        RequestHandle::Deferred(call) => Ok(call),
        RequestHandle::Inline { .. } => Err(invalid(
            "this request is of ramway_rpc_server_method, which gives one reply: streams are for ramway_rpc_server_deferred",
        )),
    }
}

/// Sends an element of a stream, waiting for at most `timeout_ns` (`RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds) until the
/// caller has room for it. The request goes on: `ramway_rpc_request_finish` completes the stream. A thread that serves must
/// not wait here: it is what receives the news of room.
///
/// `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_INTERRUPTED` if nobody wants the stream any more;
/// `RAMWAY_INVALID_ARGUMENT` if the caller wants one reply, or the request is not of `ramway_rpc_server_deferred`;
/// `RAMWAY_DETACHED`. An element that is too long ends the stream with `RAMWAY_RPC_REPLY_TOO_LARGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_send(
    request: *mut ramway_rpc_request,
    body: *const c_void,
    len: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, body) = unsafe { (from(request)?, array(body.cast::<u8>(), len, "body")?) };
        let call = call(handle)?;
        Ok(match timeout_ns {
            RAMWAY_TRY => call.try_send(body),
            RAMWAY_FOREVER => call.send(body),
            _ => call.send_timeout(body, limit(timeout_ns)?.unwrap_or(Duration::MAX)),
        }?)
    })
}

/// Completes a stream, without another element; a caller that wants one reply gets an empty one. The request is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_finish(request: *mut ramway_rpc_request) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| unsafe { answer(request, |request| Answer::Written(request.write(&[])), Call::finish) })
}

/// What is called at each change of a call.
struct Changed {
    changed: unsafe extern "C" fn(user: *mut c_void),
    dropped: Option<unsafe extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
}

// SAFETY: the header says that it is called on another thread.
unsafe impl Send for Changed {}
// SAFETY: as above.
unsafe impl Sync for Changed {}

impl Changed {
    fn tell(&self) {
        // SAFETY: the caller's function, which does not unwind.
        unsafe { (self.changed)(self.user) };
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped {
            // SAFETY: as above.
            unsafe { dropped(self.user) };
        }
    }
}

/// Has `changed` called whenever the call is cancelled or another element can be sent, with `user` as it is, on the thread
/// that serves, which it must not block. It replaces an earlier one. For event loops: call this first, and check
/// `ramway_rpc_request_is_cancelled` and send with `RAMWAY_TRY` then, and at each change. `changed` may run while another
/// thread answers the request, and once more behind that: what it uses is not the request, or is kept from that by the
/// caller. `dropped`, which may be null, is called once `changed` will not be any more, on either thread.
///
/// `RAMWAY_INVALID_ARGUMENT` if the request is not of `ramway_rpc_server_deferred`; neither is called then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_request_on_change(
    request: *mut ramway_rpc_request,
    changed: Option<unsafe extern "C" fn(user: *mut c_void)>,
    dropped: Option<unsafe extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let call = call(unsafe { from(request) }?)?;
        let changed = changed.ok_or_else(|| null("changed"))?;
        let changed = Changed { changed, dropped, user };
        call.on_change(move || changed.tell());
        Ok(())
    })
}
