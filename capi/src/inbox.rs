//! Many producers into one consumer.

use crate::exclusive::Exclusive;
use crate::options::{RAMWAY_FOREVER, RAMWAY_TRY, Versioned, limit, name, read};
use crate::peers::{checked, ramway_peer, with_peer_options};
use crate::receiver::ramway_message;
use crate::status::{Failure, Outcome, give, guard, guard_hot, guard_value, null, ramway_status};
use ramway_core::{Inbox, Incoming, Left, Message};
use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null as nothing;
use std::time::Duration;

/// Receives from any number of producers, each with a ring of its own: a slow consumer pushes back on each producer by itself,
/// and one that dies takes nothing of the others with it. A producer is an ordinary `ramway_bus_connect` and its sender, in
/// any language.
///
/// `ramway_inbox_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
#[derive(Debug)]
pub struct ramway_inbox {
    _private: (),
}

/// What can be asked for when an inbox is made. Zero in any field is its default, and so is a null pointer in place of the
/// whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_inbox_options {
    /// `sizeof(ramway_inbox_options)`: `RAMWAY_INBOX_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Bytes of the ring of every producer, rounded up to a power of two of at least a page. Default 1 MiB.
    pub capacity: u64,
    /// Every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
    pub align: u32,
    /// How many producers there may be at a time; one beyond is refused (`RAMWAY_BUSY`). Default 128.
    pub max_peers: u32,
    /// The socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// Users beside the own one that may connect.
    pub allow_uids: *const u32,
    /// How many `allow_uids` there are.
    pub allow_uid_count: u32,
    /// 0.
    pub reserved: u32,
    /// How long a handshake may take, in nanoseconds. Default 1 s. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
}

// SAFETY: integers and a pointer; 8-byte fields lie on multiples of 8 (asserted by the total size).
unsafe impl Versioned for ramway_inbox_options {
    const NAME: &'static str = "ramway_inbox_options";
}
const _: () = assert!(size_of::<ramway_inbox_options>() == 2 * 8 + 4 * 4 + 8 + 2 * 4 + 8);

/// What an inbox gives: a message, as `ramway_incoming.left` says. Its `data` is valid until `ramway_inbox_release`.
pub const RAMWAY_LEFT_NOT: u32 = 0;
/// What an inbox gives: the producer has gone. It closed.
pub const RAMWAY_LEFT_CLOSED: u32 = 1;
/// What an inbox gives: the producer has gone. Its process died.
pub const RAMWAY_LEFT_DIED: u32 = 2;
/// What an inbox gives: the producer has gone. It wrote what no correct producer writes; its other messages are not read.
pub const RAMWAY_LEFT_CORRUPT: u32 = 3;

/// What an inbox gives: a message, or that a producer has gone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_incoming {
    /// Who sent it, or has gone.
    pub peer: ramway_peer,
    /// The message; of a producer that has gone null and zeros.
    pub message: ramway_message,
    /// `RAMWAY_LEFT_NOT` for a message; else how the producer has gone, after its last message. Its place is free.
    pub left: u32,
}

struct Inside {
    inbox: Inbox,
    /// A message is out: its [`Message`] was forgotten, so it stays until [`Inbox::release`].
    holds: bool,
    path: CString,
}

type InboxHandle = Exclusive<Inside>;

/// # Safety
/// `handle` is null or open.
unsafe fn from<'a>(handle: *const ramway_inbox) -> Outcome<&'a InboxHandle> {
    // SAFETY: handles are made by `ramway_inbox_bind` only.
    unsafe { handle.cast::<InboxHandle>().as_ref() }.ok_or_else(|| null("the inbox"))
}

const WHAT: &str = "the inbox";

/// Begins to listen for producers at `name` (as in `ramway_listener_bind`). `options` may be null. On failure `*out` is null.
///
/// `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_bind(
    name: *const c_char,
    options: *const ramway_inbox_options,
    out: *mut *mut ramway_inbox,
) -> ramway_status {
    let bind = || {
        // SAFETY: the caller's.
        let (name, options) = unsafe { (self::name(name)?, read(options)?) };
        options.refuse_reserved(options.reserved)?;
        checked(options.wait_policy, options.allow_uids, options.allow_uid_count, ramway_inbox_options::NAME)?;
        let inbox = with_peer_options!(Inbox::builder(name), &options).bind()?;
        let waker = inbox.waker();
        let path = inbox.path().map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
        let path = CString::new(path).unwrap_or_default();
        Ok(Box::into_raw(Box::new(Exclusive::new(Inside { inbox, holds: false, path }, waker))).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, bind) })
}

/// Takes the next message of any producer, in place, or the news that one has gone: `out->left` says which, `out->peer` whose.
/// A message's `data` is valid until `ramway_inbox_release`; one at a time: `RAMWAY_BUSY` before that. Messages of one producer
/// come in order; producers are served in rotation, message by message. `timeout_ns` as in `ramway_recv`.
///
/// A producer need not be trusted, but could rewrite a message while it is read: copy what must not change.
///
/// `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` once the inbox was closed and every producer has
/// gone; `RAMWAY_INTERRUPTED` by `ramway_inbox_wake`; `RAMWAY_NO_SPACE` or `RAMWAY_OS` if a producer could not be taken for want
/// of memory or descriptors: it was told, and the next call goes on; `RAMWAY_DETACHED`. `*out` is then untouched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_recv(
    inbox: *mut ramway_inbox,
    timeout_ns: i64,
    out: *mut ramway_incoming,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, out) = unsafe { (from(inbox)?, out.as_mut().ok_or_else(|| null("out"))?) };
        let mut entered = handle.enter(WHAT)?;
        let inside = &mut *entered;
        if inside.holds {
            return Err(busy());
        }
        let incoming = match timeout_ns {
            RAMWAY_TRY => inside.inbox.try_recv(),
            RAMWAY_FOREVER => inside.inbox.recv(),
            _ => inside.inbox.recv_timeout(limit(timeout_ns)?.unwrap_or(Duration::MAX)),
        }?;
        match incoming {
            Incoming::Message(peer, message) => {
                *out = ramway_incoming { peer: peer.into(), message: keep(message), left: RAMWAY_LEFT_NOT };
                inside.holds = true;
            }
            Incoming::Left(peer, how) => {
                let left = match how {
                    Left::Closed => RAMWAY_LEFT_CLOSED,
                    Left::Died => RAMWAY_LEFT_DIED,
                    Left::Corrupt => RAMWAY_LEFT_CORRUPT,
                };
                let message = ramway_message { data: nothing(), len: 0, tag: 0, type_id: 0 };
                *out = ramway_incoming { peer: peer.into(), message, left };
            }
        }
        Ok(())
    })
}

/// The message for C; it is not given back.
#[inline]
fn keep(message: Message<'_>) -> ramway_message {
    let (data, len) = (message.as_ptr().cast(), message.len());
    let kept = ramway_message { data, len, tag: message.tag(), type_id: message.type_id() };
    std::mem::forget(message);
    kept
}

#[cold]
fn busy() -> Failure {
    let text = "a message of this inbox is not released: call ramway_inbox_release first";
    Failure::Own(ramway_status::RAMWAY_BUSY, text.into())
}

/// Gives the message that was received last back to its producer. Succeeds if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_release(inbox: *mut ramway_inbox) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(inbox) }?.enter(WHAT)?;
        if std::mem::take(&mut inside.holds) {
            inside.inbox.release();
        }
        Ok(())
    })
}

/// Calls `each` for every producer that is connected, with `user` as it is. The pointer is valid during the callback only, and
/// the callback cannot use the inbox (`RAMWAY_BUSY`). A producer is among them once a call to receive has taken it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_peers(
    inbox: *mut ramway_inbox,
    each: Option<unsafe extern "C" fn(peer: *const ramway_peer, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let inside = unsafe { from(inbox) }?.enter(WHAT)?;
        let each = each.ok_or_else(|| null("each"))?;
        for peer in inside.inbox.peers() {
            // SAFETY: the caller's function; the peer lives until it returns.
            unsafe { each(&peer.into(), user) };
        }
        Ok(())
    })
}

/// The path of the listening socket, which producers can be given in place of the name; valid as long as the handle. Null for
/// a null handle, and once closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_path(inbox: *mut ramway_inbox) -> *const c_char {
    guard_value(nothing(), || {
        // SAFETY: the caller's.
        let inside = unsafe { from(inbox) }?.enter(WHAT)?;
        Ok(if inside.inbox.path().is_some() { inside.path.as_ptr() } else { nothing() })
    })
}

/// Any thread, and a signal handler, while the handle is open: the `ramway_inbox_recv` that waits now, or, if none does, the
/// next one that would, returns `RAMWAY_INTERRUPTED`, unless there is something to give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_wake(inbox: *const ramway_inbox) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe { from(inbox) }?.wake();
        Ok(())
    })
}

/// Takes no new producer, and tells those that are there that nothing more is wanted: their next send gives `RAMWAY_CLOSED`.
/// What they have sent before is still received, and each one's departure, until `ramway_inbox_recv` gives `RAMWAY_CLOSED`. A
/// message that is sent while this runs may be lost. The handle stays open: `ramway_inbox_free` frees it.
///
/// `RAMWAY_BUSY` while a message is not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_close(inbox: *mut ramway_inbox) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let mut inside = unsafe { from(inbox) }?.enter(WHAT)?;
        if inside.holds {
            return Err(busy());
        }
        inside.inbox.close();
        Ok(())
    })
}

/// Closes and frees the handle, whatever was received. What was not received is lost, and a message that is not released is
/// gone.
///
/// `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_inbox_free(inbox: *mut ramway_inbox) -> ramway_status {
    guard(|| {
        if inbox.is_null() {
            return Err(null("the inbox"));
        }
        // SAFETY: made by `ramway_inbox_bind`, and given up by the caller.
        unsafe { Exclusive::free(inbox.cast::<InboxHandle>(), WHAT) }
    })
}
