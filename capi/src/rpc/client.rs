//! The side that calls.

use crate::exclusive::{Exclusive, Wakes};
use crate::options::{
    RAMWAY_FOREVER, RAMWAY_NO_MEMBARRIER, RAMWAY_TRY, Versioned, duration, limit, name, read, wait_policy,
};
use crate::peers::checked;
use crate::rpc::callbacks::{Callback, Done, Ran, run_callbacks};
use crate::rpc::reply::{fill, ramway_rpc_call_options, ramway_rpc_reply};
use crate::sender::array;
use crate::status::{Failure, Outcome, give, guard, guard_hot, guard_value, invalid, null, ramway_status};
use ramway_core::facts::{METHOD_DESCRIBE, METHOD_PING, RPC_HEADER};
use ramway_core::rpc::{CallError, CallOptions, CallResult, Client, MethodInfo, RawClient, Reply, Taken};
use ramway_core::{ErrorKind, SelectWaker, Waker};
use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr::null as nothing;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Calls the methods of an RPC server. Replies are received, time limits looked at and cancelled calls told to the server inside
/// its calls: who has calls under way and waits elsewhere calls `ramway_rpc_poll` now and then, or when `ramway_rpc_fd` and
/// `ramway_rpc_due_ns` say so. It does not connect again by itself, and repeats no call by itself.
///
/// `ramway_rpc_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
#[derive(Debug)]
pub struct ramway_rpc_client {
    _private: (),
}

/// What can be asked for when a client connects. Zero in any field is its default, and so is a null pointer in place of the
/// whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_rpc_client_options {
    /// `sizeof(ramway_rpc_client_options)`: `RAMWAY_RPC_CLIENT_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Bytes of replies, headers and metadata included, that nobody has taken yet, all calls together. A reply beyond fails its
    /// call (`RAMWAY_TOO_LARGE`). Default 4 times the ring's capacity.
    pub max_buffered: u64,
    /// Users beside the own one whose servers will do.
    pub allow_uids: *const u32,
    /// How many `allow_uids` there are.
    pub allow_uid_count: u32,
    /// `RAMWAY_WAIT_SPIN` and so on: how calls wait.
    pub wait_policy: u32,
    /// How long to try, which includes waiting for a server that is not there yet, in nanoseconds. Default 10 s.
    /// `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
    /// `RAMWAY_NO_MEMBARRIER`, or 0.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: integers and a pointer, without padding (asserted by the total size).
unsafe impl Versioned for ramway_rpc_client_options {
    const NAME: &'static str = "ramway_rpc_client_options";
}
const _: () = assert!(size_of::<ramway_rpc_client_options>() == 3 * 8 + 2 * 4 + 8 + 2 * 4);

pub(super) struct Inside {
    pub(super) raw: RawClient,
    /// Of the calls that have one.
    pub(super) callbacks: HashMap<u64, Callback>,
    /// Of these, those that have something to be taken; each at most once, or was cancelled since.
    pub(super) ready: VecDeque<u64>,
    interruptible: bool,
}

/// Ends a wait from another thread.
pub(super) struct ClientWaker {
    replies: Waker,
    room: SelectWaker,
    /// Somebody asked for it: one of the two may end a later wait, for which nobody has.
    asked: AtomicBool,
}

impl Wakes for ClientWaker {
    fn wake(&self) {
        // Before the wake-ups, whose order makes it seen by the wait that they end.
        self.asked.store(true, Ordering::SeqCst);
        self.replies.wake();
        self.room.wake();
    }
}

type ClientHandle = Exclusive<Inside, ClientWaker>;

const WHAT: &str = "the client";

/// # Safety
/// `handle` is null or open.
unsafe fn from<'a>(handle: *const ramway_rpc_client) -> Outcome<&'a ClientHandle> {
    // SAFETY: handles are made by `ramway_rpc_connect` only.
    unsafe { handle.cast::<ClientHandle>().as_ref() }.ok_or_else(|| null(WHAT))
}

/// # Safety
/// As for [`read`], and `meta` points to `meta_len` bytes that live as long as the result.
unsafe fn call_options<'a>(from: *const ramway_rpc_call_options) -> Outcome<CallOptions<'a>> {
    // SAFETY: the caller's.
    let given = unsafe { read(from) }?;
    given.refuse_reserved(given.reserved)?;
    // SAFETY: the caller's.
    let meta = unsafe { array(given.meta.cast::<u8>(), given.meta_len, "ramway_rpc_call_options.meta") }?;
    let mut options = CallOptions::new().meta(meta);
    if given.timeout_ns != 0
        && let Some(timeout) = limit(given.timeout_ns)?
    {
        options = options.timeout(timeout);
    }
    if given.window != 0 {
        options = options.window(given.window);
    }
    Ok(options)
}

impl Inside {
    /// Notes which calls with a callback have something to be taken. After everything that receives: else the list of them grows.
    pub(super) fn note_changed(&mut self) {
        while let Some(number) = self.raw.next_changed() {
            if let Some(callback) = self.callbacks.get_mut(&number)
                && !callback.is_ready
            {
                callback.is_ready = true;
                self.ready.push_back(number);
            }
        }
    }

    /// Whether this was seen to be a fork's child.
    pub(super) fn is_detached(&self) -> bool {
        self.raw.check().is_err_and(|error| error.kind() == ErrorKind::Detached)
    }

    /// Whether a wait that was interrupted is to end: somebody asked for that.
    fn is_asked(&self, waker: &ClientWaker) -> bool {
        waker.asked.swap(false, Ordering::SeqCst) || self.interruptible
    }

    /// [`RawClient::wait`] for `timeout`.
    fn wait(&mut self, waker: &ClientWaker, call: u64, timeout: Option<Duration>) -> ramway_core::Result<bool> {
        let started = (timeout.is_some() && timeout != Some(Duration::ZERO)).then(Instant::now);
        let mut left = timeout;
        let waited = loop {
            match self.raw.wait(call, left) {
                Err(error) if error.kind() == ErrorKind::Interrupted && !self.is_asked(waker) => {
                    left = match (timeout, started) {
                        (Some(timeout), Some(started)) => Some(timeout.saturating_sub(started.elapsed())),
                        _ => timeout,
                    };
                }
                waited => break waited,
            }
        };
        self.note_changed();
        waited
    }

    /// Makes a call and waits for its end.
    fn call(&mut self, waker: &ClientWaker, method: u32, body: &[u8], options: &CallOptions<'_>) -> CallResult<Reply> {
        let number = self.raw.start(method, body, options, false)?;
        loop {
            if let Err(error) = self.wait(waker, number, None) {
                self.raw.cancel(number);
                return Err(CallError::of_error(error, true));
            }
            if let Taken::End(outcome) = self.raw.take(number) {
                return outcome;
            }
        }
    }
}

/// Connects to the RPC server at `name` (as in `ramway_bus_connect`), waiting for one that is not there yet or is busy, for
/// `options->timeout_ns` (default 10 s). `options` may be null. On failure `*out` is null.
///
/// `RAMWAY_NOT_FOUND` if no server came, `RAMWAY_ABI_MISMATCH` where a plain listener is, `RAMWAY_BUSY` or `RAMWAY_TIMED_OUT`
/// if the server has as many clients as it takes, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_CORRUPT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_connect(
    name: *const c_char,
    options: *const ramway_rpc_client_options,
    out: *mut *mut ramway_rpc_client,
) -> ramway_status {
    let connect = || {
        // SAFETY: the caller's.
        let (name, options) = unsafe { (self::name(name)?, read(options)?) };
        options.refuse_reserved(options.reserved)?;
        checked(options.wait_policy, options.allow_uids, options.allow_uid_count, ramway_rpc_client_options::NAME)?;
        if options.flags & !RAMWAY_NO_MEMBARRIER != 0 {
            let text =
                format!("ramway_rpc_client_options.flags is {:#x}: expected RAMWAY_NO_MEMBARRIER, or 0", options.flags);
            return Err(invalid(text));
        }
        // SAFETY: the caller's: so many numbers.
        let uids = unsafe { array(options.allow_uids, options.allow_uid_count as usize, "allow_uids") }?;
        let mut connector = Client::connector(name)
            .allow_uids(uids)
            .membarrier(options.flags & RAMWAY_NO_MEMBARRIER == 0)
            .wait_policy(wait_policy(options.wait_policy)?);
        if options.timeout_ns != 0 {
            connector = connector.timeout(duration(options.timeout_ns)?);
        }
        if options.max_buffered != 0 {
            connector = connector.max_buffered(usize::try_from(options.max_buffered).unwrap_or(usize::MAX));
        }
        let mut raw = connector.connect_raw(|| true)?;
        raw.list_changed();
        let waker = ClientWaker { replies: raw.waker(), room: raw.room_waker(), asked: AtomicBool::new(false) };
        let inside = Inside { raw, callbacks: HashMap::new(), ready: VecDeque::new(), interruptible: false };
        Ok(Box::into_raw(Box::new(Exclusive::new(inside, waker))).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, connect) })
}

/// Sends a request to the method with this number and waits for its reply, as long as it takes or `options->timeout_ns` allows.
/// `options` may be null. `*reply` is filled however the call ends, and freed by `ramway_rpc_reply_free`.
///
/// `RAMWAY_OK` if the server replied. Else `reply->status` says how the server ended the call, and the result is the error
/// that is nearest to that: `RAMWAY_OS` for an error of the application or a failed handler, `RAMWAY_NOT_FOUND` if there is
/// no such method, `RAMWAY_TIMED_OUT`, `RAMWAY_INTERRUPTED` if it was cancelled, `RAMWAY_FULL` if a limit of the server is
/// reached, `RAMWAY_TOO_LARGE` for a reply beyond its limits, `RAMWAY_CLOSED` if it is shutting down. Or it is
/// `RAMWAY_RPC_NO_STATUS`, and the result, as `reply->error`, is how this side ended the call: `RAMWAY_TIMED_OUT`;
/// `RAMWAY_TOO_LARGE` for a request that the server's rings cannot hold, or a reply beyond `max_buffered`; `RAMWAY_CLOSED` if
/// the server closed (the call was not run) and `RAMWAY_PEER_DEAD` if it died; `RAMWAY_CORRUPT` if it broke the rules, which
/// ends all calls; `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`, which cancels the call; `RAMWAY_DETACHED`;
/// `RAMWAY_INVALID_ARGUMENT`; `RAMWAY_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_call(
    client: *mut ramway_rpc_client,
    method: u32,
    body: *const c_void,
    len: usize,
    options: *const ramway_rpc_call_options,
    reply: *mut ramway_rpc_reply,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe {
        fill(reply, |out| {
            let (handle, body) = (from(client)?, array(body.cast::<u8>(), len, "body")?);
            let options = call_options(options)?;
            let outcome = handle.enter(WHAT)?.call(handle.waker(), method, body, &options);
            let said;
            (*out, said) = ramway_rpc_reply::of_outcome(outcome);
            said
        })
    }
}

/// A request as C gives it.
struct Asked {
    method: u32,
    body: *const c_void,
    len: usize,
    options: *const ramway_rpc_call_options,
    is_stream: bool,
}

/// # Safety
/// As for the calls that are made of it.
unsafe fn start(
    client: *mut ramway_rpc_client,
    asked: &Asked,
    done: Option<Done>,
    user: *mut c_void,
    call: *mut u64,
) -> ramway_status {
    guard(|| {
        let Asked { method, body, len, options, is_stream } = *asked;
        // SAFETY: the caller's.
        let (handle, body) = unsafe { (from(client)?, array(body.cast::<u8>(), len, "body")?) };
        // SAFETY: the caller's.
        let (options, call) = unsafe { (call_options(options)?, call.as_mut()) };
        if call.is_none() && done.is_none() {
            return Err(invalid("neither a callback nor a place for the call's number: nobody could learn of its end"));
        }
        let mut inside = handle.enter_nested(WHAT)?;
        let number = inside.raw.start(method, body, &options, is_stream).map_err(|e| Failure::Core(e.into()))?;
        if let Some(done) = done {
            inside.callbacks.insert(number, Callback { done, user, is_ready: false });
        }
        if let Some(call) = call {
            *call = number;
        }
        Ok(())
    })
}

/// Sends a request and gives the call that is under way: `*call` is its number. It does not wait: what cannot be sent yet,
/// because the server's limit of calls in flight is reached or the ring is full, is kept, and sent in order.
///
/// Its end is told to `done`, once, with `user` as it is, by `ramway_rpc_poll`. `reply` is valid during the callback, and its
/// bytes may lie in the ring, where the server wrote them: what is decided on is to be copied first where the server is not
/// trusted. `ramway_rpc_reply_keep` makes it last. Or `done` is null, and `ramway_rpc_wait` gives it. With a callback `call`
/// may be null. Every call that was started is to be waited for, polled for, or cancelled.
///
/// `RAMWAY_TOO_LARGE`, or how the connection ended. The call was not made then, and `done` is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_start(
    client: *mut ramway_rpc_client,
    method: u32,
    body: *const c_void,
    len: usize,
    options: *const ramway_rpc_call_options,
    done: Option<unsafe extern "C" fn(call: u64, reply: *mut ramway_rpc_reply, user: *mut c_void)>,
    user: *mut c_void,
    call: *mut u64,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { start(client, &Asked { method, body, len, options, is_stream: false }, done, user, call) }
}

/// `ramway_rpc_start` for a call whose reply is a stream. `done` is called for each element, and last for the end
/// (`ramway_rpc_reply.more`). The server sends at most `options->window` elements before they are taken: who reads slowly
/// stops the server's handler, and nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_start_stream(
    client: *mut ramway_rpc_client,
    method: u32,
    body: *const c_void,
    len: usize,
    options: *const ramway_rpc_call_options,
    done: Option<unsafe extern "C" fn(call: u64, reply: *mut ramway_rpc_reply, user: *mut c_void)>,
    user: *mut c_void,
    call: *mut u64,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { start(client, &Asked { method, body, len, options, is_stream: true }, done, user, call) }
}

/// Waits for a call that was started without a callback, for at most `timeout_ns` (`RAMWAY_FOREVER`, `RAMWAY_TRY` or
/// nanoseconds): for its reply; of a stream for its next element, and then for its end (`reply->more`). After its end the
/// call's number means nothing.
///
/// `RAMWAY_EMPTY` if nothing has come within the time: the call goes on. `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`: with
/// `reply->status` of `RAMWAY_RPC_NO_STATUS`, and the call goes on. Else as `ramway_rpc_call`, and the call has ended: its
/// own time limit is `RAMWAY_TIMED_OUT`. `RAMWAY_INVALID_ARGUMENT` for a number that means nothing, or a call with a
/// callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_wait(
    client: *mut ramway_rpc_client,
    call: u64,
    timeout_ns: i64,
    reply: *mut ramway_rpc_reply,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe {
        fill(reply, |out| {
            let (handle, timeout) = (from(client)?, limit(timeout_ns)?);
            let mut inside = handle.enter(WHAT)?;
            if inside.callbacks.contains_key(&call) {
                return Err(invalid("this call has a callback, which ramway_rpc_poll runs"));
            }
            loop {
                if !inside.wait(handle.waker(), call, timeout)? {
                    return Err(ErrorKind::Empty.into());
                }
                match inside.raw.take(call) {
                    Taken::Element(element) => {
                        *out = ramway_rpc_reply::of_reply(element, true);
                        return Ok(());
                    }
                    Taken::End(outcome) => {
                        let said;
                        (*out, said) = ramway_rpc_reply::of_outcome(outcome);
                        return said;
                    }
                    Taken::NotYet => {}
                }
            }
        })
    }
}

/// Cancels a call, and tells the server at once. Its number means nothing from now on, and its callback is not called. A call
/// that the server has begun goes on until its handler ends or sees that it was cancelled. Succeeds if the call has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_cancel(client: *mut ramway_rpc_client, call: u64) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(client) }?.enter_nested(WHAT)?;
        if let Some(Callback { is_ready: true, .. }) = inside.callbacks.remove(&call) {
            inside.ready.retain(|number| *number != call);
        }
        inside.raw.cancel(call);
        Ok(())
    })
}

/// Runs the callbacks of the calls that have ended, and of elements of streams, of which there is something now; if there is
/// nothing, waits for it for at most `timeout_ns`. In a callback calls may be started and cancelled; what waits, and closing,
/// is `RAMWAY_BUSY` there.
///
/// `RAMWAY_OK` if a callback was run. `RAMWAY_EMPTY` if none was, with `RAMWAY_TRY`, and at once if no call with a callback
/// is under way; `RAMWAY_TIMED_OUT`; `RAMWAY_INTERRUPTED` by `ramway_rpc_wake`; `RAMWAY_DETACHED`. The end of the connection
/// ends every call, so that their callbacks are told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_poll(client: *mut ramway_rpc_client, timeout_ns: i64) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, timeout) = (unsafe { from(client) }?, limit(timeout_ns)?);
        let mut entered = handle.enter(WHAT)?;
        let deadline = timeout.filter(|t| !t.is_zero()).and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let more = run_callbacks(&mut entered);
            let inside = &mut *entered;
            if inside.is_detached() {
                // The calls are the parent's.
                return Err(ErrorKind::Detached.into());
            }
            match more {
                Ran::Some => return Ok(()),
                Ran::NoneYet => continue,
                Ran::Nothing => {}
            }
            if timeout_ns == RAMWAY_TRY || inside.callbacks.is_empty() {
                return Err(ErrorKind::Empty.into());
            }
            let left = match deadline {
                None => Duration::MAX,
                Some(at) => at.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            if let Err(error) = inside.raw.wait_for_news(left)
                && inside.is_asked(handle.waker())
            {
                return Err(error.into());
            }
        }
    })
}

/// Waits until the server has answered: it is there and reads. `options` may be null; of them only the time limit is looked at.
///
/// As `ramway_rpc_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_ping(
    client: *mut ramway_rpc_client,
    options: *const ramway_rpc_call_options,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, options) = unsafe { (from(client)?, call_options(options)?) };
        let outcome = handle.enter(WHAT)?.call(handle.waker(), METHOD_PING, &[], &options);
        outcome.map(drop).map_err(|error| Failure::Core(error.into()))
    })
}

/// Calls `each` for every method of the server, in the order of their numbers, with `user` as it is. `name` is null for a
/// method without one, and valid during the callback only. The callback cannot use the client (`RAMWAY_BUSY`). `options` may
/// be null.
///
/// As `ramway_rpc_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_describe(
    client: *mut ramway_rpc_client,
    options: *const ramway_rpc_call_options,
    each: Option<unsafe extern "C" fn(number: u32, name: *const c_char, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, options) = unsafe { (from(client)?, call_options(options)?) };
        let each = each.ok_or_else(|| null("each"))?;
        let mut inside = handle.enter(WHAT)?;
        let methods = inside
            .call(handle.waker(), METHOD_DESCRIBE, &[], &options)
            .and_then(|reply| MethodInfo::parse(reply.body()))
            .map_err(|error| Failure::Core(error.into()))?;
        for MethodInfo { number, name } in methods {
            let name = name.map(|name| CString::new(name.replace('\0', "?")).unwrap_or_default());
            // SAFETY: the caller's function; the name lives until it returns.
            unsafe { each(number, name.as_ref().map_or(nothing(), |name| name.as_ptr()), user) };
        }
        Ok(())
    })
}

/// How many calls the server lets this client have in flight. Those beyond wait in the client, in their order. 0 for a null
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_max_in_flight(client: *mut ramway_rpc_client) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.max_in_flight()))
}

/// How many calls are sent and have no final reply: also those that were cancelled, until the server has ended them. 0 for a
/// null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_in_flight(client: *mut ramway_rpc_client) -> usize {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.in_flight()))
}

/// Receives what is there; then, whether a call that is made now is sent at once, as far as the server's limit and the calls
/// before it go. Never waits. Of a connection that is over it is true: a call says how it ended. False for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_is_ready(client: *mut ramway_rpc_client) -> bool {
    guard_value(false, || {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(client) }?.enter_nested(WHAT)?;
        inside.raw.progress();
        inside.note_changed();
        Ok(inside.raw.is_ready() || inside.raw.check().is_err())
    })
}

/// The longest request: its metadata, rounded up to 16 bytes, and its body together. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_max_request_len(client: *mut ramway_rpc_client) -> usize {
    guard_value(0, || {
        // SAFETY: the caller's.
        let longest = unsafe { from(client) }?.enter_nested(WHAT)?.raw.max_request_len();
        Ok(longest - RPC_HEADER)
    })
}

/// A descriptor for event loops: readable when there is something to receive, or the server is gone; not to be read or
/// closed, and valid as long as the handle. Poll it for at most `ramway_rpc_due_ns`; then call `ramway_rpc_poll` with
/// `RAMWAY_TRY` until it gives `RAMWAY_EMPTY`. -1 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_fd(client: *mut ramway_rpc_client) -> c_int {
    // SAFETY: the caller's.
    guard_value(-1, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.readiness()?.as_raw_fd()))
}

/// In how many nanoseconds `ramway_rpc_poll` is to be called although the descriptor is not readable, because a call times
/// out then, or there may be room for one that could not be sent; `RAMWAY_FOREVER`: never. `RAMWAY_FOREVER` on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_due_ns(client: *mut ramway_rpc_client) -> i64 {
    guard_value(RAMWAY_FOREVER, || {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(client) }?.enter_nested(WHAT)?;
        if !inside.ready.is_empty() {
            return Ok(0);
        }
        let due = inside.raw.due_in();
        Ok(due.map_or(RAMWAY_FOREVER, |due| i64::try_from(due.as_nanos()).unwrap_or(i64::MAX)))
    })
}

/// How calls wait from now on: `RAMWAY_WAIT_SPIN` and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_set_wait_policy(client: *mut ramway_rpc_client, policy: u32) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let handle = unsafe { from(client) }?;
        let policy = wait_policy(policy)?;
        handle.enter_nested(WHAT)?.raw.set_wait_policy(policy);
        Ok(())
    })
}

/// Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_set_interruptible(client: *mut ramway_rpc_client, yes: bool) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(client) }?.enter_nested(WHAT)?;
        inside.raw.set_interruptible(yes);
        inside.interruptible = yes;
        Ok(())
    })
}

/// Any thread, and a signal handler, while the handle is open: the call that waits now, or, if none does, the next one that
/// would, returns `RAMWAY_INTERRUPTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_wake(client: *const ramway_rpc_client) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe { from(client) }?.wake();
        Ok(())
    })
}

/// The user that the server acted as when the connection was made, as the kernel recorded it. `UINT32_MAX` for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_peer_uid(client: *mut ramway_rpc_client) -> u32 {
    // SAFETY: the caller's.
    guard_value(u32::MAX, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.peer_uid()))
}

/// The server's process when the connection was made, 0 if it has no number here. It says who it was; numbers are used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_peer_pid(client: *mut ramway_rpc_client) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.peer_pid().unwrap_or(0)))
}

/// Whether the server's process holds its end of the connection (one system call). A stopped process does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_is_peer_alive(client: *mut ramway_rpc_client) -> bool {
    // SAFETY: the caller's.
    guard_value(false, || Ok(unsafe { from(client) }?.enter_nested(WHAT)?.raw.is_peer_alive()))
}

/// Ends the connection and frees the handle: the server cancels what is under way, and no callback is called any more.
/// Replies that were given stay valid until they are freed.
///
/// `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it, and in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_close(client: *mut ramway_rpc_client) -> ramway_status {
    guard(|| {
        if client.is_null() {
            return Err(null(WHAT));
        }
        // SAFETY: made by `ramway_rpc_connect`, and given up by the caller.
        unsafe { Exclusive::free(client.cast::<ClientHandle>(), WHAT) }
    })
}
