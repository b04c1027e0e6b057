//! Work for many workers.

use crate::exclusive::Exclusive;
use crate::options::{RAMWAY_FOREVER, RAMWAY_TRY, Versioned, limit, name, read};
use crate::peers::{checked, ramway_peer, with_peer_options};
use crate::sender::array;
use crate::status::{Outcome, give, guard, guard_hot, guard_value, invalid, null, ramway_status};
use ramway_core::{ErrorKind, Outbox, Undelivered};
use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null as nothing;
use std::time::Duration;

/// Gives each message to one of many workers: to one that sleeps until there is work, else to the one with the fewest messages.
/// A worker is an ordinary `ramway_bus_connect` and its receiver, in any language, and has done its task when it releases the
/// message. What a worker that died or closed had not given back goes to another one: at least once.
///
/// `ramway_outbox_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
#[derive(Debug)]
pub struct ramway_outbox {
    _private: (),
}

/// Outbox option: keep a copy of each message until it is given back, so that a worker that writes into what it was given
/// cannot change what another one gets. That takes `prefetch` messages of memory for each worker.
pub const RAMWAY_COPIES: u32 = 1;

/// What can be asked for when an outbox is made. Zero in any field is its default, and so is a null pointer in place of the
/// whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_outbox_options {
    /// `sizeof(ramway_outbox_options)`: `RAMWAY_OUTBOX_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Bytes of the ring of every worker, rounded up to a power of two of at least a page. Default 1 MiB.
    pub capacity: u64,
    /// Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
    pub align: u32,
    /// How many workers there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128.
    pub max_peers: u32,
    /// The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// Users beside the own one that may connect.
    pub allow_uids: *const u32,
    /// How many `allow_uids` there are.
    pub allow_uid_count: u32,
    /// `RAMWAY_COPIES`, or 0.
    pub flags: u32,
    /// How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
    /// How many messages a worker may have at a time. Default 1. With more it need not wait for the next one, and another
    /// that is free may wait meanwhile.
    pub prefetch: u32,
    /// To how many workers a message is given before `ramway_outbox_take_undelivered` gives it. Default 3.
    pub max_deliveries: u32,
}

// SAFETY: integers and a pointer; 8-byte fields lie on multiples of 8 (asserted by the total size).
unsafe impl Versioned for ramway_outbox_options {
    const NAME: &'static str = "ramway_outbox_options";
}
const _: () = assert!(size_of::<ramway_outbox_options>() == 2 * 8 + 4 * 4 + 8 + 2 * 4 + 8 + 2 * 4);

/// A message that no worker has given back.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_undelivered {
    /// The payload: valid until the next `ramway_outbox_take_undelivered`, and as long as the handle. Not null, also if `len` is
    /// 0.
    pub data: *const c_void,
    /// Bytes of payload.
    pub len: usize,
    /// As it was sent with.
    pub tag: u64,
    /// As it was sent with.
    pub type_id: u32,
    /// To how many workers it was given.
    pub deliveries: u32,
}

struct Inside {
    outbox: Outbox,
    /// What [`ramway_outbox_take_undelivered`] gave last.
    taken: Option<Undelivered>,
    path: CString,
}

type OutboxHandle = Exclusive<Inside>;

/// # Safety
/// `handle` is null or open.
unsafe fn from<'a>(handle: *const ramway_outbox) -> Outcome<&'a OutboxHandle> {
    // SAFETY: handles are made by `ramway_outbox_bind` only.
    unsafe { handle.cast::<OutboxHandle>().as_ref() }.ok_or_else(|| null("the outbox"))
}

const WHAT: &str = "the outbox";

/// Begins to listen for workers at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
///
/// `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_bind(
    name: *const c_char,
    options: *const ramway_outbox_options,
    out: *mut *mut ramway_outbox,
) -> ramway_status {
    let bind = || {
        // SAFETY: the caller's.
        let (name, options) = unsafe { (self::name(name)?, read(options)?) };
        checked(options.wait_policy, options.allow_uids, options.allow_uid_count, ramway_outbox_options::NAME)?;
        if options.flags & !RAMWAY_COPIES != 0 {
            let text = format!("ramway_outbox_options.flags is {:#x}: expected RAMWAY_COPIES, or 0", options.flags);
            return Err(invalid(text));
        }
        let mut builder = with_peer_options!(Outbox::builder(name), &options);
        if options.prefetch != 0 {
            builder = builder.prefetch(options.prefetch as usize);
        }
        if options.max_deliveries != 0 {
            builder = builder.max_deliveries(options.max_deliveries);
        }
        let outbox = builder.copies(options.flags & RAMWAY_COPIES != 0).bind()?;
        let waker = outbox.waker();
        let path = CString::new(outbox.path().as_os_str().as_bytes()).unwrap_or_default();
        Ok(Box::into_raw(Box::new(Exclusive::new(Inside { outbox, taken: None, path }, waker))).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, bind) })
}

/// Gives a message to a worker: copies it into the ring of one that may have another message. What has to be given again goes
/// first. `type_id` and `tag` as in `ramway_send`; `timeout_ns` is how long to wait for such a worker: `RAMWAY_FOREVER`,
/// `RAMWAY_TRY` or nanoseconds.
///
/// `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_TOO_LARGE` if it can never fit; `RAMWAY_INTERRUPTED` by
/// `ramway_outbox_wake`; `RAMWAY_NO_SPACE` or `RAMWAY_OS` if a worker could not be taken for want of memory or descriptors;
/// `RAMWAY_DETACHED`. Nothing of this message was given then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_send(
    outbox: *mut ramway_outbox,
    type_id: u32,
    tag: u64,
    data: *const c_void,
    len: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, data) = unsafe { (from(outbox)?, array(data.cast::<u8>(), len, "data")?) };
        let outbox = &mut handle.enter(WHAT)?.outbox;
        Ok(match timeout_ns {
            RAMWAY_TRY => outbox.try_send_tagged(type_id, tag, data),
            RAMWAY_FOREVER => outbox.send_tagged(type_id, tag, data),
            _ => outbox.send_timeout(type_id, tag, data, limit(timeout_ns)?.unwrap_or(Duration::MAX)),
        }?)
    })
}

/// Waits until every message was given back or taken out. Deaths are seen, and messages given again, inside the calls of an
/// outbox only. `timeout_ns` of 0 checks once.
///
/// `RAMWAY_TIMED_OUT`; else as `ramway_outbox_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_drain(outbox: *mut ramway_outbox, timeout_ns: i64) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| Ok(unsafe { from(outbox) }?.enter(WHAT)?.outbox.drain(limit(timeout_ns)?)?))
}

/// Takes a message that no worker has given back, and that is given to nobody any more: the oldest one.
///
/// `RAMWAY_EMPTY` if there is none; `*out` is then untouched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_take_undelivered(
    outbox: *mut ramway_outbox,
    out: *mut ramway_undelivered,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, out) = unsafe { (from(outbox)?, out.as_mut().ok_or_else(|| null("out"))?) };
        let mut entered = handle.enter(WHAT)?;
        let inside = &mut *entered;
        let taken = inside.outbox.take_undelivered().ok_or(ErrorKind::Empty)?;
        let Undelivered { type_id, tag, deliveries, .. } = taken;
        let data = &inside.taken.insert(taken).data;
        *out = ramway_undelivered { data: data.as_ptr().cast(), len: data.len(), tag, type_id, deliveries };
        Ok(())
    })
}

/// How many messages are given to somebody and not given back, or wait to be given again. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_outstanding(outbox: *mut ramway_outbox) -> usize {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { from(outbox) }?.enter(WHAT)?.outbox.outstanding()))
}

/// Calls `each` for every worker that is connected, with how many messages it has and `user` as it is. The pointer is valid
/// during the callback only, and the callback cannot use the outbox (`RAMWAY_BUSY`). A worker is among them once another call
/// has taken it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_workers(
    outbox: *mut ramway_outbox,
    each: Option<unsafe extern "C" fn(worker: *const ramway_peer, messages: usize, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let inside = unsafe { from(outbox) }?.enter(WHAT)?;
        let each = each.ok_or_else(|| null("each"))?;
        for (worker, messages) in inside.outbox.workers() {
            // SAFETY: the caller's function; the peer lives until it returns.
            unsafe { each(&worker.into(), messages, user) };
        }
        Ok(())
    })
}

/// The path of the listening socket, which workers can be given in place of the name; valid as long as the handle. Null for a
/// null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_path(outbox: *mut ramway_outbox) -> *const c_char {
    // SAFETY: the caller's.
    guard_value(nothing(), || Ok(unsafe { from(outbox) }?.enter(WHAT)?.path.as_ptr()))
}

/// Any thread, and a signal handler, while the handle is open: the call that waits now, or, if none does, the next one that
/// would, returns `RAMWAY_INTERRUPTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_wake(outbox: *const ramway_outbox) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe { from(outbox) }?.wake();
        Ok(())
    })
}

/// Tells the workers that this was all, and frees the handle. They still get what they were given; nothing is given again:
/// `ramway_outbox_drain` first.
///
/// `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_outbox_free(outbox: *mut ramway_outbox) -> ramway_status {
    guard(|| {
        if outbox.is_null() {
            return Err(null("the outbox"));
        }
        // SAFETY: made by `ramway_outbox_bind`, and given up by the caller.
        unsafe { Exclusive::free(outbox.cast::<OutboxHandle>(), WHAT) }
    })
}
