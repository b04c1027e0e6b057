//! The side that is called.

use crate::exclusive::{Exclusive, Wakes};
use crate::options::{RAMWAY_FOREVER, Versioned, duration, limit, name, read, wait_policy};
use crate::peers::checked;
use crate::rpc::method::text;
use crate::rpc::request::{Handler, deferred, inline, ramway_rpc_request};
use crate::sender::array;
use crate::status::{Outcome, give, guard, guard_hot, guard_value, null, ramway_status};
use ramway_core::rpc::{Server, Stopper};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null as nothing;
use std::time::Duration;

/// Serves calls of any number of clients at a name, in `ramway_rpc_server_run` or `ramway_rpc_server_poll`. A client that
/// writes what no correct client writes is dropped, and no other is disturbed. The calls of a client that is gone are
/// cancelled.
///
/// `ramway_rpc_server_shutdown` and `ramway_rpc_server_wake` are for any thread. While one thread is in another call, a
/// second one gets `RAMWAY_BUSY`, and so does a handler.
#[derive(Debug)]
pub struct ramway_rpc_server {
    _private: (),
}

/// What can be asked for when a server is made. Zero in any field is its default, and so is a null pointer in place of the whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_rpc_server_options {
    /// `sizeof(ramway_rpc_server_options)`: `RAMWAY_RPC_SERVER_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Bytes of both rings of every client, rounded up to a power of two of at least a page. Default 1 MiB. The longest
    /// request and the longest reply are 32 bytes shorter.
    pub capacity: u64,
    /// Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
    pub align: u32,
    /// How many clients there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128. A client that is gone
    /// counts until its handlers have ended.
    pub max_clients: u32,
    /// The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// Users beside the own one that may connect.
    pub allow_uids: *const u32,
    /// How many `allow_uids` there are.
    pub allow_uid_count: u32,
    /// How many calls a client may have in flight, up to 1048576; those beyond wait in the client. Default 1024.
    pub max_in_flight: u32,
    /// How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
    /// Bytes of requests and replies that are copied for one client at a time. A request beyond is answered with
    /// `RAMWAY_RPC_OVERLOADED`, a reply beyond with `RAMWAY_RPC_REPLY_TOO_LARGE`. Default 4 times the capacity.
    pub max_bytes: u64,
}

// SAFETY: integers and a pointer, without padding (asserted by the total size).
unsafe impl Versioned for ramway_rpc_server_options {
    const NAME: &'static str = "ramway_rpc_server_options";
}
const _: () = assert!(size_of::<ramway_rpc_server_options>() == 2 * 8 + 4 * 4 + 8 + 2 * 4 + 2 * 8);

struct Inside {
    server: Server,
    path: CString,
}

impl Wakes for Stopper {
    fn wake(&self) {
        self.interrupt();
    }
}

type ServerHandle = Exclusive<Inside, Stopper>;

const WHAT: &str = "the server";

/// # Safety
/// `handle` is null or open.
unsafe fn from<'a>(handle: *const ramway_rpc_server) -> Outcome<&'a ServerHandle> {
    // SAFETY: handles are made by `ramway_rpc_server_bind` only.
    unsafe { handle.cast::<ServerHandle>().as_ref() }.ok_or_else(|| null(WHAT))
}

/// Begins to listen for clients at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
/// Nothing is served before `ramway_rpc_server_run`.
///
/// `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_bind(
    name: *const c_char,
    options: *const ramway_rpc_server_options,
    out: *mut *mut ramway_rpc_server,
) -> ramway_status {
    let bind = || {
        // SAFETY: the caller's.
        let (name, options) = unsafe { (self::name(name)?, read(options)?) };
        checked(options.wait_policy, options.allow_uids, options.allow_uid_count, ramway_rpc_server_options::NAME)?;
        // SAFETY: the caller's: so many numbers.
        let uids = unsafe { array(options.allow_uids, options.allow_uid_count as usize, "allow_uids") }?;
        let mut builder = Server::builder(name).allow_uids(uids).wait_policy(wait_policy(options.wait_policy)?);
        if options.capacity != 0 {
            builder = builder.capacity(options.capacity);
        }
        if options.align != 0 {
            builder = builder.align(options.align);
        }
        if options.max_clients != 0 {
            builder = builder.max_clients(options.max_clients as usize);
        }
        if options.mode != 0 {
            builder = builder.mode(options.mode);
        }
        if options.max_in_flight != 0 {
            builder = builder.max_in_flight(options.max_in_flight);
        }
        if options.timeout_ns != 0 {
            builder = builder.handshake_timeout(duration(options.timeout_ns)?);
        }
        if options.max_bytes != 0 {
            builder = builder.max_bytes(usize::try_from(options.max_bytes).unwrap_or(usize::MAX));
        }
        let server = builder.bind()?;
        let path = CString::new(server.path().as_os_str().as_bytes()).unwrap_or_default();
        let stopper = server.stopper();
        Ok(Box::into_raw(Box::new(Exclusive::new(Inside { server, path }, stopper))).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, bind) })
}

/// A method's number, and its name if it has one.
///
/// # Safety
/// `name` is null or a string that lives as long as the result.
unsafe fn named<'a>(name: *const c_char) -> Outcome<Option<&'a str>> {
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    text(unsafe { CStr::from_ptr(name) }).map(Some)
}

/// Has `handler` called for every call of the method with this number, below `RAMWAY_METHOD_RESERVED`, with `user` as it is,
/// on the thread that serves. `name` is shown to clients that ask (`ramway_rpc_describe`), and may be null; for those who
/// call methods by name `number` is `ramway_rpc_method_id(name)`.
///
/// The handler reads the request where the client wrote it, and answers it before it returns, in place where there is room:
/// by `ramway_rpc_request_reply` or one of its siblings. A request that is not answered ends with
/// `RAMWAY_RPC_HANDLER_FAILED`. All other clients wait as long as it takes; time limits and cancelling are seen behind it.
/// For what takes long: `ramway_rpc_server_deferred`. A client need not be trusted, but could rewrite its request while it is
/// read: copy what is decided on.
///
/// `RAMWAY_ALREADY_EXISTS` if the server has a method with this number; `RAMWAY_INVALID_ARGUMENT` for a number that is
/// Ramway's, or a name with control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_method(
    server: *mut ramway_rpc_server,
    number: u32,
    name: *const c_char,
    handler: Option<unsafe extern "C" fn(request: *mut ramway_rpc_request, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, name) = unsafe { (from(server)?, named(name)?) };
        let handler = Handler::new(handler.ok_or_else(|| null("handler"))?, user);
        let server = &mut handle.enter(WHAT)?.server;
        let run = move |request: &mut ramway_core::rpc::Request<'_>| inline(&handler, request);
        Ok(match name {
            Some(name) => server.method((number, name), run),
            None => server.method(number, run),
        }?)
    })
}

/// `ramway_rpc_server_method` for calls that are answered later: the handler gets a copy of the request, which is its own
/// until it is answered, by any thread, also before the handler returns. Every request is to be answered, also one that was
/// cancelled: only then its client has its place back.
///
/// For streams too: `ramway_rpc_request_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_deferred(
    server: *mut ramway_rpc_server,
    number: u32,
    name: *const c_char,
    handler: Option<unsafe extern "C" fn(request: *mut ramway_rpc_request, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, name) = unsafe { (from(server)?, named(name)?) };
        let handler = Handler::new(handler.ok_or_else(|| null("handler"))?, user);
        let server = &mut handle.enter(WHAT)?.server;
        let run = move |call| deferred(&handler, call);
        Ok(match name {
            Some(name) => server.deferred((number, name), run),
            None => server.deferred(number, run),
        }?)
    })
}

/// Serves for `timeout_ns` (`RAMWAY_FOREVER` or nanoseconds), or until it is shut down.
///
/// `RAMWAY_OK` once it was shut down; `RAMWAY_TIMED_OUT`, and `RAMWAY_INTERRUPTED` by `ramway_rpc_server_wake`: the next call
/// goes on. `RAMWAY_OS` if there are no more descriptors to wait with; `RAMWAY_DETACHED`. That a client could not be taken
/// for want of memory or descriptors is no error here: it was told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_run(server: *mut ramway_rpc_server, timeout_ns: i64) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, timeout) = (unsafe { from(server) }?, limit(timeout_ns)?);
        let server = &mut handle.enter(WHAT)?.server;
        Ok(match timeout {
            None => server.run(),
            Some(timeout) => server.run_timeout(timeout),
        }?)
    })
}

/// Does what there is to do without waiting, for event loops: see `ramway_rpc_server_fd`.
///
/// `RAMWAY_CLOSED` once it was shut down; as `ramway_rpc_server_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_poll(server: *mut ramway_rpc_server) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| Ok(unsafe { from(server) }?.enter(WHAT)?.server.poll()?))
}

/// A descriptor for event loops: readable when `ramway_rpc_server_poll` has something to do; not to be read or closed, and
/// valid as long as the handle. Poll it for at most `ramway_rpc_server_due_ns`. -1 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_fd(server: *mut ramway_rpc_server) -> c_int {
    // SAFETY: the caller's.
    guard_value(-1, || Ok(unsafe { from(server) }?.enter(WHAT)?.server.descriptor()?.as_raw_fd()))
}

/// In how many nanoseconds `ramway_rpc_server_poll` is to be called although the descriptor is not readable;
/// `RAMWAY_FOREVER`: never. `RAMWAY_FOREVER` on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_due_ns(server: *mut ramway_rpc_server) -> i64 {
    guard_value(RAMWAY_FOREVER, || {
        // SAFETY: the caller's.
        let due = unsafe { from(server) }?.enter(WHAT)?.server.due_in();
        Ok(due.map_or(RAMWAY_FOREVER, |due| i64::try_from(due.as_nanos()).unwrap_or(i64::MAX)))
    })
}

/// Any thread, a handler and a signal handler, while the handle is open: the server takes no new client and no new call, goes
/// on with those that run for at most `limit_ns` (nanoseconds, or `RAMWAY_FOREVER`), cancels the rest, which has 100 ms to
/// end, and closes. It does that in `ramway_rpc_server_run`, which then returns `RAMWAY_OK`. A client all of whose calls are
/// answered learns `RAMWAY_CLOSED`, of the others those calls may have run (`RAMWAY_PEER_DEAD`). Of two limits the shorter
/// one counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_shutdown(server: *const ramway_rpc_server, limit_ns: i64) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, limit) = (unsafe { from(server) }?, limit(limit_ns)?);
        handle.waker().shutdown(limit.unwrap_or(Duration::MAX));
        Ok(())
    })
}

/// Any thread, a handler and a signal handler, while the handle is open: the `ramway_rpc_server_run` that runs now, or, if
/// none does, the next one, returns `RAMWAY_INTERRUPTED`. The server stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_wake(server: *const ramway_rpc_server) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe { from(server) }?.wake();
        Ok(())
    })
}

/// How many clients are connected. A client is among them once the server has run since it came. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_clients(server: *mut ramway_rpc_server) -> usize {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { from(server) }?.enter(WHAT)?.server.clients()))
}

/// The path of the listening socket, which clients can be given in place of the name; valid as long as the handle. Null for a
/// null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_path(server: *mut ramway_rpc_server) -> *const c_char {
    // SAFETY: the caller's.
    guard_value(nothing(), || Ok(unsafe { from(server) }?.enter(WHAT)?.path.as_ptr()))
}

/// Cancels what runs, closes and frees the handle. A client with calls that have no reply learns that they may have run: shut
/// down first (`ramway_rpc_server_shutdown`). Requests of `ramway_rpc_server_deferred` that are not answered stay valid, and
/// are still to be answered.
///
/// `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it, and in a handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_rpc_server_close(server: *mut ramway_rpc_server) -> ramway_status {
    guard(|| {
        if server.is_null() {
            return Err(null(WHAT));
        }
        // SAFETY: made by `ramway_rpc_server_bind`, and given up by the caller.
        unsafe { Exclusive::free(server.cast::<ServerHandle>(), WHAT) }
    })
}
