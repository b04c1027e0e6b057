//! What comes back from a call.

use crate::options::Versioned;
use crate::status::{Failure, Outcome, guard, invalid, null, ramway_status, ramway_strerror};
use ramway_core::Error;
use ramway_core::rpc::{CallError, InPlace, Reply, Status};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null as nothing, null_mut};

/// In `ramway_rpc_reply.status`: the server did not say how the call ended; `error` says why.
pub const RAMWAY_RPC_NO_STATUS: u32 = 0xFFFFFFFF;

/// How a call ended, or an element of its stream. A call of this library that takes one fills it however it ends: free it by
/// `ramway_rpc_reply_free` also after a failure, whose text it may hold.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_rpc_reply {
    /// The reply's bytes: a copy, valid until `ramway_rpc_reply_free`; in a callback valid until it returns. Null where there is
    /// no reply.
    pub body: *const c_void,
    /// Bytes of body.
    pub len: usize,
    /// The reply's metadata: bytes that the application defines.
    pub meta: *const c_void,
    /// Bytes of metadata.
    pub meta_len: usize,
    /// What went wrong, with a final 0: with `RAMWAY_RPC_APPLICATION` and `RAMWAY_RPC_HANDLER_FAILED` what the server wrote.
    /// Never null; empty where nothing went wrong.
    pub text: *const c_char,
    /// `RAMWAY_RPC_OK` and so on: what the server said. `RAMWAY_RPC_NO_STATUS` if this side ended the call, or the connection
    /// is over.
    pub status: u32,
    /// With `RAMWAY_RPC_APPLICATION` the application's number; else 0.
    pub code: u32,
    /// With `RAMWAY_RPC_NO_STATUS`: why there is none; else `RAMWAY_OK`.
    pub error: ramway_status,
    /// Of a call that failed: whether the server may have begun it. If not, it can be made again without being made twice.
    pub may_have_run: bool,
    /// This is an element of a stream, and it goes on. Without it a stream with `RAMWAY_RPC_OK` is complete.
    pub more: bool,
    /// What `ramway_rpc_reply_free` frees.
    pub owner: *mut c_void,
}

/// What a reply's pointers lead into.
#[derive(Debug)]
enum Owner {
    Reply(Reply),
    Text(#[allow(dead_code, reason = "it is kept for its memory")] CString),
}

impl ramway_rpc_reply {
    /// Of a call that could not be asked for.
    pub(crate) fn of_failure(status: ramway_status) -> Self {
        Self { error: status, text: ramway_strerror(status as c_int), ..Self::empty() }
    }

    pub(crate) fn empty() -> Self {
        Self {
            body: nothing(),
            len: 0,
            meta: nothing(),
            meta_len: 0,
            text: c"".as_ptr(),
            status: RAMWAY_RPC_NO_STATUS,
            code: 0,
            error: ramway_status::RAMWAY_OK,
            may_have_run: false,
            more: false,
            owner: null_mut(),
        }
    }

    pub(crate) fn of_reply(reply: Reply, more: bool) -> Self {
        let owner = Box::into_raw(Box::new(Owner::Reply(reply)));
        // SAFETY: made above. A short reply's bytes are in it: so the pointers are taken where it stays.
        let Owner::Reply(reply) = (unsafe { &*owner }) else { unreachable!("made above") };
        let (body, meta) = (reply.body(), reply.meta());
        Self {
            body: body.as_ptr().cast(),
            len: body.len(),
            meta: meta.as_ptr().cast(),
            meta_len: meta.len(),
            status: Status::Ok as u32,
            more,
            owner: owner.cast(),
            ..Self::empty()
        }
    }

    /// In the ring, whose place is another one's later: nothing is owned.
    pub(crate) fn of_place(reply: &InPlace) -> Self {
        Self {
            body: reply.body.cast(),
            len: reply.len,
            meta: reply.meta.cast(),
            meta_len: reply.meta_len,
            status: Status::Ok as u32,
            more: reply.more,
            ..Self::empty()
        }
    }

    /// The same, made to last: `self` stays readable as long as before, and owns nothing any more.
    fn keep(&mut self) -> Self {
        if self.owner.is_null() && !self.body.is_null() {
            // SAFETY: filled by `of_place`: so many bytes are readable at both until the callback returns, fewer than 2^31.
            let copy = unsafe { Reply::from_parts(self.meta.cast(), self.meta_len, self.body.cast(), self.len) };
            return Self::of_reply(copy, self.more);
        }
        let kept = *self;
        self.owner = null_mut();
        kept
    }

    fn of_error(error: &CallError) -> Self {
        let mut text = error.text();
        if text.is_empty() && error.status().is_none_or(|s| s != Status::Application && s != Status::HandlerFailed) {
            text = error.to_string();
        }
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        Self {
            text: text.as_ptr(),
            status: error.status().map_or(RAMWAY_RPC_NO_STATUS, |status| status as u32),
            code: error.code(),
            error: error.kind().map_or(ramway_status::RAMWAY_OK, Into::into),
            may_have_run: error.may_have_run(),
            owner: Box::into_raw(Box::new(Owner::Text(text))).cast(),
            ..Self::empty()
        }
    }

    /// The outcome of a call, and what the calls of this library say of it.
    pub(crate) fn of_outcome(outcome: Result<Reply, CallError>) -> (Self, Outcome) {
        match outcome {
            Ok(reply) => (Self::of_reply(reply, false), Ok(())),
            Err(error) => (Self::of_error(&error), Err(Failure::Core(Error::from(error)))),
        }
    }

    pub(crate) fn free(&mut self) {
        let owner = self.owner.cast::<Owner>();
        *self = Self::empty();
        if !owner.is_null() {
            // SAFETY: made by one of the above, and freed once: it is forgotten here.
            drop(unsafe { Box::from_raw(owner) });
        }
    }
}

/// Runs a call that fills `*out`, which has something to say of every failure.
///
/// # Safety
/// `out` is null or writable.
pub(crate) unsafe fn fill(
    out: *mut ramway_rpc_reply,
    call: impl FnOnce(&mut ramway_rpc_reply) -> Outcome,
) -> ramway_status {
    let filled = guard(|| {
        // SAFETY: the caller's.
        let out = unsafe { out.as_mut() }.ok_or_else(|| null("reply"))?;
        *out = ramway_rpc_reply::empty();
        call(out)
    });
    if filled != ramway_status::RAMWAY_OK
        // SAFETY: the caller's.
        && let Some(out) = unsafe { out.as_mut() }
        && out.owner.is_null()
    {
        *out = ramway_rpc_reply::of_failure(filled);
    }
    filled
}

/// Frees what a reply holds, and makes it an empty one. Nothing happens to an empty one, or to null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_reply_free(reply: *mut ramway_rpc_reply) {
    guard(|| {
        // SAFETY: the caller's: null, or filled by a call of this library.
        if let Some(reply) = unsafe { reply.as_mut() } {
            reply.free();
        }
        Ok(())
    });
}

/// Makes a reply last that a callback was given: `*kept` is it, with bytes of its own, which `ramway_rpc_reply_free` frees. `*reply`
/// stays readable until the callback returns.
///
/// `RAMWAY_INVALID_ARGUMENT` for null, and where both are the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_reply_keep(
    reply: *mut ramway_rpc_reply,
    kept: *mut ramway_rpc_reply,
) -> ramway_status {
    guard(|| {
        if reply == kept && !reply.is_null() {
            return Err(invalid("ramway_rpc_reply_keep: reply and kept are the same struct, expected two"));
        }
        // SAFETY: the caller's: null, or filled by a call of this library.
        let reply = unsafe { reply.as_mut() }.ok_or_else(|| null("reply"))?;
        // SAFETY: the caller's: null, or writable.
        let kept = unsafe { kept.as_mut() }.ok_or_else(|| null("kept"))?;
        *kept = reply.keep();
        Ok(())
    })
}

/// The name of a status of RPC as the documentation spells it, `"Overloaded"` for example, forever valid. Never null: an unknown
/// number is `"Unknown"`, and `RAMWAY_RPC_NO_STATUS` is `"None"`.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_rpc_status_name(status: u32) -> *const c_char {
    name_of(status).as_ptr()
}

fn name_of(status: u32) -> &'static CStr {
    let Some(status) = Status::from_code(status) else {
        return if status == RAMWAY_RPC_NO_STATUS { c"None" } else { c"Unknown" };
    };
    match status {
        Status::Ok => c"Ok",
        Status::Application => c"Application",
        Status::NoSuchMethod => c"NoSuchMethod",
        Status::TimedOut => c"TimedOut",
        Status::Cancelled => c"Cancelled",
        Status::Overloaded => c"Overloaded",
        Status::ReplyTooLarge => c"ReplyTooLarge",
        Status::Draining => c"Draining",
        Status::HandlerFailed => c"HandlerFailed",
        _ => c"Unknown",
    }
}

/// What can be asked for with a call. Zero in any field is its default, and so is a null pointer in place of the whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_rpc_call_options {
    /// `sizeof(ramway_rpc_call_options)`: `RAMWAY_RPC_CALL_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// The call's time limit in nanoseconds, from the moment of the call: here, and of what is left when the call is sent, at the
    /// server. Default, and `RAMWAY_FOREVER`: none.
    pub timeout_ns: i64,
    /// Metadata of the request: bytes that the application defines (a trace, a token). Default none.
    pub meta: *const c_void,
    /// Bytes of metadata.
    pub meta_len: usize,
    /// Of a stream: how many elements may be under way. Default 16.
    pub window: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: integers and a pointer, without padding (asserted by the total size).
unsafe impl Versioned for ramway_rpc_call_options {
    const NAME: &'static str = "ramway_rpc_call_options";
}
const _: () = assert!(size_of::<ramway_rpc_call_options>() == 4 * 8 + 2 * 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_the_cores_name() {
        for code in 0.. {
            let Some(status) = Status::from_code(code) else {
                assert!(code > 8);
                break;
            };
            assert_eq!(name_of(code).to_str(), Ok(status.name()));
        }
        assert_eq!(name_of(99), c"Unknown");
        assert_eq!(name_of(RAMWAY_RPC_NO_STATUS), c"None");
    }
}
