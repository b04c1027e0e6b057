//! The receiving end of a ring, and a subscriber of a topic.

use crate::either::{Either, Receiving, each};
use crate::options::{limit, wait_limit, wait_policy};
use crate::select::Waited;
use crate::status::{Failure, Outcome, guard, guard_hot, guard_value, invalid, null, ramway_status};
use crate::subscriber::Target;
use ramway_core::ring::consumer::Frame;
use ramway_core::ring::log::Log;
use ramway_core::ring::raw::WaitLimit;
use ramway_core::{ErrorKind, Receiver, Subscriber, Waker};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// The receiving end of a ring: one per ring, in the whole system. Or a subscriber of a topic, one of many, for which these
/// calls are the same: its messages have a number, a time, and how many were lost before them, which
/// `ramway_subscriber_recv` gives too.
#[derive(Debug)]
pub struct ramway_receiver {
    _private: (),
}

/// What a `ramway_receiver` really is. `ramway_inline.h` reads the first two fields.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ReceiverHandle {
    /// `Consumer<Ring>` or, as `layout` says, `Consumer<Topic>`.
    pub(crate) hot: *mut c_void,
    pub(crate) layout: u32,
    /// A bus closes it.
    pub(crate) of_bus: bool,
    /// For other threads.
    waker: Waker,
    name: Option<CString>,
    /// Of a subscriber.
    pub(crate) label: Option<CString>,
    /// A `ramway_select` waits for it.
    pub(crate) waited: Waited,
    pub(crate) receiver: Receiving,
}

impl ReceiverHandle {
    /// A ring's.
    pub(crate) fn give(receiver: Receiver) -> *mut ramway_receiver {
        Self::of(Either::Ring(receiver))
    }

    pub(crate) fn of(mut receiver: Receiving) -> *mut ramway_receiver {
        let (hot, layout) = (receiver.hot(), receiver.layout());
        let (waker, name) =
            each!(&receiver, r => (r.waker(), r.name().and_then(|name| CString::new(name.as_bytes()).ok())));
        let label = match &receiver {
            Either::Topic(subscriber) => subscriber.label().and_then(|label| CString::new(label).ok()),
            Either::Ring(_) => None,
        };
        Box::into_raw(Box::new(Self {
            hot,
            layout,
            of_bus: false,
            waker,
            name,
            label,
            waited: Waited::default(),
            receiver,
        }))
        .cast()
    }

    /// For what only a subscriber can do.
    #[inline]
    pub(crate) fn subscriber(&mut self) -> Outcome<&mut Subscriber> {
        match &mut self.receiver {
            Either::Topic(subscriber) => Ok(subscriber),
            Either::Ring(_) => Err(not_a_subscriber()),
        }
    }

    /// [`subscriber`](Self::subscriber) for calls that change nothing.
    pub(crate) fn as_subscriber(&self) -> Outcome<&Subscriber> {
        match &self.receiver {
            Either::Topic(subscriber) => Ok(subscriber),
            Either::Ring(_) => Err(not_a_subscriber()),
        }
    }

    /// # Safety
    /// `handle` is null or an open receiver, used by this thread only.
    #[inline]
    pub(crate) unsafe fn from<'a>(handle: *mut ramway_receiver) -> Outcome<&'a mut Self> {
        // SAFETY: handles are made by `give` only.
        unsafe { handle.cast::<Self>().as_mut() }.ok_or_else(|| null("the receiver"))
    }

    /// # Safety
    /// As for [`from`](Self::from), for calls that may be made while another thread makes them too.
    pub(crate) unsafe fn shared<'a>(handle: *const ramway_receiver) -> Outcome<&'a Self> {
        // SAFETY: handles are made by `give` only.
        unsafe { handle.cast::<Self>().as_ref() }.ok_or_else(|| null("the receiver"))
    }
}

#[cold]
fn not_a_subscriber() -> Failure {
    invalid(
        "this call is for a subscriber of a topic (ramway_subscriber_open), and the handle is the receiver of a ring",
    )
}

/// A received message. `data` points into the shared memory and is the caller's to read until `ramway_release`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_message {
    /// The payload, on a multiple of the ring's alignment. Not null, also if `len` is 0.
    pub data: *const c_void,
    /// Bytes of payload.
    pub len: usize,
    /// The sender's tag, 0 if it gave none.
    pub tag: u64,
    /// What the sender said the payload is.
    pub type_id: u32,
}

impl<L: Log> From<Frame<L>> for ramway_message {
    #[inline(always)]
    fn from(frame: Frame<L>) -> Self {
        Self { data: frame.data.cast(), len: frame.len, tag: frame.tag, type_id: frame.type_id }
    }
}

/// Takes the next message, in place: `out->data` is valid until `ramway_release`, which gives it back. One message or
/// batch at a time: `RAMWAY_BUSY` before that. If this process is killed before it releases, the next receiver of a
/// named ring gets the message again; of a topic the next one with the same label, where it is durable.
///
/// `timeout_ns` is how long to wait: `RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds. Allocates nothing, and enters the
/// kernel only if it waits or wakes somebody who does. A peer that is not trusted could rewrite a message while it is
/// read: `ramway_recv_into` is safe against that.
///
/// `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; after the last message `RAMWAY_CLOSED` if the sender
/// closed and `RAMWAY_PEER_DEAD` if it died, which on a named ring or a topic end when a successor attaches; `RAMWAY_LAGGED`
/// (of a topic, see `ramway_subscriber_recv`); `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`. `*out` is then untouched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_recv(
    receiver: *mut ramway_receiver,
    timeout_ns: i64,
    out: *mut ramway_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, out) = unsafe { (ReceiverHandle::from(receiver)?, out.as_mut().ok_or_else(|| null("out"))?) };
        let wait_limit = wait_limit(timeout_ns)?;
        *out = each!(&mut handle.receiver, receiver => receiver.raw().recv(wait_limit)?.into());
        Ok(())
    })
}

/// Takes up to `max` messages, in place, which `ramway_release` gives back together; `*count` is how many. Waits for
/// the first one only, so at least one comes with `RAMWAY_OK`. Otherwise as `ramway_recv`, and `*count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_recv_batch(
    receiver: *mut ramway_receiver,
    timeout_ns: i64,
    out: *mut ramway_message,
    max: usize,
    count: *mut usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let count = unsafe { count.as_mut() }.ok_or_else(|| null("count"))?;
        *count = 0;
        // SAFETY: the caller's.
        let handle = unsafe { ReceiverHandle::from(receiver) }?;
        let wait_limit = checked_batch(out, max, timeout_ns)?;
        // SAFETY: the caller's: `out` has room for `max`.
        each!(&mut handle.receiver, receiver => unsafe { batch(receiver, wait_limit, out, max, count) })
    })
}

/// Checks what a batch is to be put into.
pub(crate) fn checked_batch<M>(out: *const M, max: usize, timeout_ns: i64) -> Outcome<WaitLimit> {
    if out.is_null() {
        return Err(null("out"));
    }
    if max == 0 {
        return Err(invalid("a batch of at most 0 messages: ask for at least 1"));
    }
    wait_limit(timeout_ns)
}

/// Receives up to `max` messages into `out`.
///
/// # Safety
/// `out` has room for `max`, at least 1.
#[inline]
pub(crate) unsafe fn batch<L: Log, M: From<Frame<L>>>(
    receiver: &mut Receiver<L>,
    wait_limit: WaitLimit,
    out: *mut M,
    max: usize,
    count: &mut usize,
) -> Outcome {
    let mut raw = receiver.raw();
    let mut next = Some(raw.recv(wait_limit)?);
    while let Some(frame) = next {
        // SAFETY: `out` has room for `max`, the caller says, and `*count < max`.
        unsafe { out.add(*count).write(frame.into()) };
        *count += 1;
        // An error ends the batch and stays in the handle's state: the next call returns it.
        next = if *count < max { raw.next_of_batch().ok().flatten() } else { None };
    }
    Ok(())
}

/// Gives the message or batch that was received last back to the sender. Succeeds if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_release(receiver: *mut ramway_receiver) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { ReceiverHandle::from(receiver) }?.receiver, receiver => receiver.raw().release());
        Ok(())
    })
}

/// Copies the next message to `buffer`, which has room for `size` bytes, and releases it. Each byte is read once, so
/// a peer that rewrites what it sent can do no harm. `out` (may be null) gets its length, type and tag, and
/// `out->data` is `buffer`.
///
/// `RAMWAY_TOO_LARGE` if it is longer than `size`: it stays the next message, and `out->len` says how long it is.
/// Otherwise as `ramway_recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_recv_into(
    receiver: *mut ramway_receiver,
    timeout_ns: i64,
    buffer: *mut c_void,
    size: usize,
    out: *mut ramway_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let handle = unsafe { ReceiverHandle::from(receiver) }?;
        if buffer.is_null() && size != 0 {
            return Err(null("buffer"));
        }
        let wait_limit = wait_limit(timeout_ns)?;
        match &mut handle.receiver {
            // SAFETY: the caller's.
            Either::Ring(receiver) => unsafe { copy_of_view(receiver, wait_limit, buffer, size, out) },
            Either::Topic(subscriber) => {
                // SAFETY: the caller's.
                let mut target = unsafe { Target::new(buffer, size, out) }?;
                let copied = subscriber.raw().copy_next(wait_limit, |_, len| target.room(len));
                target.say(copied)
            }
        }
    })
}

/// `ramway_recv_into` of a ring.
///
/// # Safety
/// `buffer` has room for `size` bytes; `out` is null or writable.
#[inline]
unsafe fn copy_of_view(
    receiver: &mut Receiver,
    wait_limit: WaitLimit,
    buffer: *mut c_void,
    size: usize,
    out: *mut ramway_message,
) -> Outcome {
    let mut raw = receiver.raw();
    let frame = raw.recv(wait_limit)?;
    let fits = frame.len <= size;
    if !out.is_null() {
        let message = ramway_message { data: buffer, ..frame.into() };
        // SAFETY: the caller's.
        unsafe { out.write(message) };
    }
    if !fits {
        // Nothing else is unreleased: `recv` was not `Busy`.
        raw.unread(None);
        return Err(ErrorKind::TooLarge.into());
    }
    if frame.len != 0 {
        // SAFETY: the frame lies in the mapping, the buffer has room; they cannot overlap, as nobody is given
        // the ring's memory to write. A peer that writes meanwhile makes a mix of bytes, not an invalid one.
        unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(frame.data, frame.len) };
    }
    raw.release();
    Ok(())
}

/// Tells the sender that nothing more will be read, and frees the handle, whatever it returns. What is not released
/// stays for the next receiver of a named ring.
///
/// `RAMWAY_CORRUPT` or `RAMWAY_DETACHED` if the handle was dead of that; `RAMWAY_INVALID_ARGUMENT` (and nothing
/// happens) for the receiver of a bus: close the bus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_close(receiver: *mut ramway_receiver) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let handle = unsafe { own(receiver) }?;
        Ok(each!(handle.receiver, receiver => receiver.close())?)
    })
}

/// # Safety
/// As for [`ReceiverHandle::from`]; after success nobody uses the handle again.
pub(crate) unsafe fn own(receiver: *mut ramway_receiver) -> Outcome<Box<ReceiverHandle>> {
    // SAFETY: the caller's.
    if unsafe { ReceiverHandle::from(receiver) }?.of_bus {
        return Err(invalid("this receiver belongs to a bus: close the bus, or split it first"));
    }
    // SAFETY: made by `of`, and given up by the caller.
    Ok(unsafe { Box::from_raw(receiver.cast::<ReceiverHandle>()) })
}

/// Bytes of the data area. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_capacity(receiver: *const ramway_receiver) -> u64 {
    guard_value(0, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.capacity()) as u64)
    })
}

/// Every payload begins on a multiple of this many bytes. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_align(receiver: *const ramway_receiver) -> u32 {
    guard_value(0, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.align()) as u32)
    })
}

/// Bytes, headers and padding included, that are sent and not released; can be stale when it returns. 0 for a null
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_len(receiver: *const ramway_receiver) -> u64 {
    guard_value(0, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.len()) as u64)
    })
}

/// Whether a sender is attached and its process lives: one system call. A stopped process is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_is_peer_alive(receiver: *const ramway_receiver) -> bool {
    guard_value(false, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.is_peer_alive()))
    })
}

/// How often a sender has attached, 0 = never yet. A change means that a successor took over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_peer_epoch(receiver: *const ramway_receiver) -> u32 {
    guard_value(0, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.peer_epoch()))
    })
}

/// How often a receiver has attached, this one included: 1 = the first. Of a subscriber, how often its slot was taken. 0 for
/// a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_epoch(receiver: *const ramway_receiver) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { ReceiverHandle::shared(receiver) }?.receiver, receiver => receiver.epoch())))
}

/// How this handle waits for messages from now on: `RAMWAY_WAIT_SPIN` and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_set_wait_policy(receiver: *mut ramway_receiver, policy: u32) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, policy) = (unsafe { ReceiverHandle::from(receiver) }?, wait_policy(policy)?);
        each!(&mut handle.receiver, receiver => receiver.set_wait_policy(policy));
        Ok(())
    })
}

/// A descriptor that becomes readable when `ramway_recv` with `RAMWAY_TRY` has something to say: a message, or that the
/// sender is gone. Otherwise as `ramway_sender_readiness_fd`: only `RAMWAY_EMPTY` makes it unreadable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_readiness_fd(receiver: *mut ramway_receiver) -> c_int {
    guard_value(-1, || {
        // SAFETY: the caller's.
        let handle = unsafe { ReceiverHandle::from(receiver) }?;
        Ok(each!(&mut handle.receiver, receiver => receiver.readiness())?.as_raw_fd())
    })
}

/// Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_set_interruptible(receiver: *mut ramway_receiver, yes: bool) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { ReceiverHandle::from(receiver) }?.receiver, receiver => receiver.set_interruptible(yes));
        Ok(())
    })
}

/// Waits until a sender is attached that has not closed and whose process lives; `*epoch` (may be null) is then how
/// often one has attached. At once if there is one already; `timeout_ns` of 0 checks once. After `RAMWAY_PEER_DEAD` or
/// `RAMWAY_CLOSED` on a named ring this waits for the successor.
///
/// `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` at once where an end is final (a bus, a pair);
/// `RAMWAY_CLOSED` if the ring's name was removed; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_wait_for_peer(
    receiver: *mut ramway_receiver,
    timeout_ns: i64,
    epoch: *mut u32,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let receiver = &mut unsafe { ReceiverHandle::from(receiver) }?.receiver;
        let found = match limit(timeout_ns)? {
            Some(timeout) => each!(receiver, receiver => receiver.wait_for_peer_timeout(timeout)),
            None => each!(receiver, receiver => receiver.wait_for_peer()),
        }?;
        if !epoch.is_null() {
            // SAFETY: the caller's.
            unsafe { *epoch = found };
        }
        Ok(())
    })
}

/// Any thread, while the handle is open: the call that waits in another thread now, or, if none does, the next one that
/// would, returns `RAMWAY_INTERRUPTED`, unless what it waits for is there or has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_wake(receiver: *const ramway_receiver) -> ramway_status {
    guard_hot(|| {
        if receiver.is_null() {
            return Err(null("the receiver"));
        }
        // SAFETY: the caller's: open. Only this field is read, which nobody changes.
        let waker = unsafe { &(*receiver.cast::<ReceiverHandle>()).waker };
        waker.wake();
        Ok(())
    })
}

/// The name that the ring or bus was opened by, valid as long as the handle; null for one without a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_name(receiver: *const ramway_receiver) -> *const c_char {
    guard_value(std::ptr::null(), || {
        // SAFETY: the caller's.
        Ok(unsafe { ReceiverHandle::shared(receiver) }?.name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()))
    })
}
