//! The sending end of a ring, and the publisher of a topic.

use crate::either::{Either, Sending, each};
use crate::options::{limit, wait_limit, wait_policy};
use crate::select::Waited;
use crate::status::{Failure, Outcome, guard, guard_hot, guard_value, invalid, null, ramway_status};
use crate::tensor::OpenTensor;
use ramway_core::layout::TYPE_ID_RESERVED;
use ramway_core::ring::log::Log;
use ramway_core::ring::raw::WaitLimit;
use ramway_core::{ErrorKind, Publisher, Sender, Waker};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

/// The sending end of a ring: one per ring, in the whole system. Or the publisher of a topic, for which these calls are the
/// same: where they speak of the receiver, read "the slowest reliable subscriber", and a publisher never gets
/// `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` because of one.
#[derive(Debug)]
pub struct ramway_sender {
    _private: (),
}

/// What a `ramway_sender` really is. `ramway_inline.h` reads the first two fields.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SenderHandle {
    /// `Producer<Ring>` or, as `layout` says, `Producer<Topic>`.
    pub(crate) hot: *mut c_void,
    pub(crate) layout: u32,
    /// A bus closes it.
    pub(crate) of_bus: bool,
    /// Of the slot that was opened for a tensor last.
    pub(crate) tensor: Option<OpenTensor>,
    /// For other threads.
    waker: Waker,
    name: Option<CString>,
    /// A `ramway_select` waits for it.
    pub(crate) waited: Waited,
    pub(crate) sender: Sending,
}

impl SenderHandle {
    /// A ring's.
    pub(crate) fn give(sender: Sender) -> *mut ramway_sender {
        Self::of(Either::Ring(sender))
    }

    pub(crate) fn of(mut sender: Sending) -> *mut ramway_sender {
        let (hot, layout) = (sender.hot(), sender.layout());
        let (waker, name) =
            each!(&sender, s => (s.waker(), s.name().and_then(|name| CString::new(name.as_bytes()).ok())));
        Box::into_raw(Box::new(Self {
            hot,
            layout,
            of_bus: false,
            tensor: None,
            waker,
            name,
            waited: Waited::default(),
            sender,
        }))
        .cast()
    }

    /// For what only a publisher can do.
    pub(crate) fn publisher(&mut self) -> Outcome<&mut Publisher> {
        match &mut self.sender {
            Either::Topic(publisher) => Ok(publisher),
            Either::Ring(_) => Err(not_a_publisher()),
        }
    }

    /// [`publisher`](Self::publisher) for calls that change nothing.
    pub(crate) fn as_publisher(&self) -> Outcome<&Publisher> {
        match &self.sender {
            Either::Topic(publisher) => Ok(publisher),
            Either::Ring(_) => Err(not_a_publisher()),
        }
    }

    /// # Safety
    /// `handle` is null or an open sender, used by this thread only.
    #[inline]
    pub(crate) unsafe fn from<'a>(handle: *mut ramway_sender) -> Outcome<&'a mut Self> {
        // SAFETY: handles are made by `give` only.
        unsafe { handle.cast::<Self>().as_mut() }.ok_or_else(|| null("the sender"))
    }

    /// # Safety
    /// As for [`from`](Self::from), for calls that may be made while another thread makes them too.
    pub(crate) unsafe fn shared<'a>(handle: *const ramway_sender) -> Outcome<&'a Self> {
        // SAFETY: handles are made by `give` only.
        unsafe { handle.cast::<Self>().as_ref() }.ok_or_else(|| null("the sender"))
    }
}

#[cold]
fn not_a_publisher() -> Failure {
    invalid("this call is for the publisher of a topic (ramway_publisher_open), and the handle is the sender of a ring")
}

/// Bytes to send: a piece of a message, or one message of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_bytes {
    /// May be null if `len` is 0.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
}

#[inline]
fn user_type_id(type_id: u32) -> Outcome {
    if type_id < TYPE_ID_RESERVED {
        return Ok(());
    }
    Err(invalid(format!("type id {type_id:#x} is Ramway's own: applications use ids below {TYPE_ID_RESERVED:#x}")))
}

/// # Safety
/// `from` is null or `count` values.
#[inline]
pub(crate) unsafe fn array<'a, T>(from: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(null(what));
    }
    // No object is longer, so this is a negative number that was converted.
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!("{what} of {count} is longer than any memory")));
    }
    // SAFETY: the caller's.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// # Safety
/// Every piece is null or readable for its length.
#[inline]
unsafe fn put<L: Log>(
    sender: &mut Sender<L>,
    type_id: u32,
    tag: u64,
    pieces: &[ramway_bytes],
    wait_limit: WaitLimit,
    flush: bool,
) -> Outcome {
    user_type_id(type_id)?;
    let mut total = 0usize;
    for piece in pieces {
        // SAFETY: the caller's.
        unsafe { array(piece.data.cast::<u8>(), piece.len, "data") }?;
        total = total.saturating_add(piece.len);
    }
    let mut raw = sender.raw();
    let mut to = raw.reserve(total, wait_limit)?;
    for piece in pieces {
        if piece.len != 0 {
            // SAFETY: the pieces together are the `total` bytes that were reserved, each was checked above, and the
            // caller's bytes lie outside of the unreserved part of the ring, which nothing hands out.
            unsafe {
                to.copy_from_nonoverlapping(piece.data.cast(), piece.len);
                to = to.add(piece.len);
            }
        }
    }
    Ok(raw.commit(total, type_id, tag, flush)?)
}

/// Sends a message: copies it into the ring and makes it visible at once. It is delivered even if this process is
/// killed right after.
///
/// `type_id` is the application's, below 0xFFFF0000; `tag` too (a correlation id, a time stamp, a key; 0 if unused).
/// `timeout_ns` is how long to wait for room: `RAMWAY_FOREVER`, `RAMWAY_TRY` or nanoseconds. Allocates nothing, and
/// enters the kernel only if it waits or wakes somebody who does.
///
/// `RAMWAY_FULL` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`, `RAMWAY_TOO_LARGE`, `RAMWAY_CLOSED`, `RAMWAY_PEER_DEAD`,
/// `RAMWAY_BUSY` while a slot is open, `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`: nothing of this message was sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_send(
    sender: *mut ramway_sender,
    type_id: u32,
    tag: u64,
    data: *const c_void,
    len: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe {
            let handle = SenderHandle::from(sender)?;
            let (pieces, wait_limit) = ([ramway_bytes { data, len }], wait_limit(timeout_ns)?);
            each!(&mut handle.sender, sender => put(sender, type_id, tag, &pieces, wait_limit, true))
        }
    })
}

/// `ramway_send` of one message that is gathered from `count` pieces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_send_vectored(
    sender: *mut ramway_sender,
    type_id: u32,
    tag: u64,
    pieces: *const ramway_bytes,
    count: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe {
            let handle = SenderHandle::from(sender)?;
            let (pieces, wait_limit) = (array(pieces, count, "pieces")?, wait_limit(timeout_ns)?);
            each!(&mut handle.sender, sender => put(sender, type_id, tag, pieces, wait_limit, true))
        }
    })
}

/// Sends `count` messages, all with the same type and tag, and makes them visible together, or earlier where the ring fills up and it has to wait for
/// room. `*sent` (may be null) is how many were sent.
///
/// Fails only if the first message fails. A later failure ends the batch, and the next call meets the error. The
/// time-out is for the whole batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_send_batch(
    sender: *mut ramway_sender,
    type_id: u32,
    tag: u64,
    messages: *const ramway_bytes,
    count: usize,
    timeout_ns: i64,
    sent: *mut usize,
) -> ramway_status {
    let mut done = 0;
    let status = guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, messages) = unsafe { (SenderHandle::from(sender)?, array(messages, count, "messages")?) };
        let wait_limit = wait_limit(timeout_ns)?;
        // SAFETY: the caller's.
        each!(&mut handle.sender, sender => unsafe { put_all(sender, type_id, tag, messages, wait_limit, &mut done) })
    });
    if !sent.is_null() {
        // SAFETY: the caller's.
        unsafe { *sent = done };
    }
    status
}

/// # Safety
/// As for [`put`].
unsafe fn put_all<L: Log>(
    sender: &mut Sender<L>,
    type_id: u32,
    tag: u64,
    messages: &[ramway_bytes],
    wait_limit: WaitLimit,
    done: &mut usize,
) -> Outcome {
    let mut deadline = None;
    for message in messages {
        let one = std::slice::from_ref(message);
        // SAFETY: the caller's.
        let mut outcome = unsafe { put(sender, type_id, tag, one, WaitLimit::None, false) };
        if wait_limit != WaitLimit::None && is_full(&outcome) {
            let wait_limit = left(wait_limit, &mut deadline);
            // SAFETY: the caller's.
            outcome = unsafe { put(sender, type_id, tag, one, wait_limit, false) };
        }
        match outcome {
            Ok(()) => *done += 1,
            Err(failure) if *done == 0 => return Err(failure),
            Err(_) => break,
        }
    }
    Ok(sender.flush()?)
}

fn is_full(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Failure::Core(error)) if error.kind() == ErrorKind::Full)
}

/// What is left of a time-out that began when this was called first.
fn left(wait_limit: WaitLimit, deadline: &mut Option<Instant>) -> WaitLimit {
    let WaitLimit::For(timeout) = wait_limit else { return wait_limit };
    let now = Instant::now();
    let until = *deadline.get_or_insert_with(|| now + timeout);
    WaitLimit::For(until.saturating_duration_since(now))
}

/// Opens a slot: room for one message of up to `len` bytes, at `*out`, to be written in place and then committed or
/// aborted. The room holds whatever an earlier message left there. One slot at a time: `RAMWAY_BUSY` otherwise.
///
/// Nothing of it is visible before the commit. `timeout_ns` and errors as for `ramway_send`; on failure `*out` is
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_reserve(
    sender: *mut ramway_sender,
    len: usize,
    timeout_ns: i64,
    out: *mut *mut c_void,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let out = unsafe { out.as_mut() }.ok_or_else(|| null("out"))?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller's.
        let handle = unsafe { SenderHandle::from(sender) }?;
        let wait_limit = wait_limit(timeout_ns)?;
        *out = each!(&mut handle.sender, sender => sender.raw().reserve(len, wait_limit))?.cast();
        Ok(())
    })
}

/// Sends the first `len` bytes of the open slot as a message, visible at once.
///
/// `RAMWAY_INVALID_ARGUMENT` if no slot is open, `len` is more than was reserved, or `type_id` is reserved: the slot,
/// if any, stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_commit(
    sender: *mut ramway_sender,
    type_id: u32,
    tag: u64,
    len: usize,
) -> ramway_status {
    guard_hot(|| {
        user_type_id(type_id)?;
        // SAFETY: the caller's.
        let handle = unsafe { SenderHandle::from(sender) }?;
        Ok(each!(&mut handle.sender, sender => sender.raw().commit(len, type_id, tag, true))?)
    })
}

/// `ramway_commit`, but the message becomes visible only with the next `ramway_flush` or flushed message, or when
/// the sender has to wait, finds the ring full, or closes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_commit_unflushed(
    sender: *mut ramway_sender,
    type_id: u32,
    tag: u64,
    len: usize,
) -> ramway_status {
    guard_hot(|| {
        user_type_id(type_id)?;
        // SAFETY: the caller's.
        let handle = unsafe { SenderHandle::from(sender) }?;
        Ok(each!(&mut handle.sender, sender => sender.raw().commit(len, type_id, tag, false))?)
    })
}

/// Gives the open slot up; nothing of it remains. Succeeds if none is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_abort(sender: *mut ramway_sender) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { SenderHandle::from(sender) }?.sender, sender => sender.raw().abort());
        Ok(())
    })
}

/// Makes everything that was committed unflushed visible. Never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_flush(sender: *mut ramway_sender) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| Ok(each!(&mut unsafe { SenderHandle::from(sender) }?.sender, sender => sender.flush())?))
}

/// Flushes, tells the receiver that this was all, and frees the handle, whatever it returns. An open slot is given up.
///
/// `RAMWAY_CORRUPT` or `RAMWAY_DETACHED` if the handle was dead of that; `RAMWAY_INVALID_ARGUMENT` (and nothing
/// happens) for the sender of a bus: close the bus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_close(sender: *mut ramway_sender) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let handle = unsafe { own(sender) }?;
        Ok(each!(handle.sender, sender => sender.close())?)
    })
}

/// Frees the handle *without* telling the receiver that this was all: it gets `RAMWAY_PEER_DEAD` after what was
/// flushed, as if this process had died. For a sender that cannot go on, so that half a stream does not pass for a whole one.
/// `RAMWAY_INVALID_ARGUMENT` (and nothing happens) for the sender of a bus: split it first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_abandon(sender: *mut ramway_sender) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let handle = unsafe { own(sender) }?;
        each!(handle.sender, sender => sender.abandon());
        Ok(())
    })
}

/// # Safety
/// As for [`SenderHandle::from`]; after success nobody uses the handle again.
unsafe fn own(sender: *mut ramway_sender) -> Outcome<Box<SenderHandle>> {
    // SAFETY: the caller's.
    if unsafe { SenderHandle::from(sender) }?.of_bus {
        return Err(invalid("this sender belongs to a bus: close the bus, or split it first"));
    }
    // SAFETY: made by `give`, and given up by the caller.
    Ok(unsafe { Box::from_raw(sender.cast()) })
}

/// Bytes of the data area; a message takes 16 bytes more than its payload (of a topic 32), rounded up to the alignment. 0
/// for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_capacity(sender: *const ramway_sender) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.capacity()) as u64))
}

/// Every payload begins on a multiple of this many bytes. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_align(sender: *const ramway_sender) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.align()) as u32))
}

/// The longest payload that ever fits, min(capacity - 16, 2^31 - 17): it fits whenever the ring is empty. Of a topic
/// min(capacity / 2 - 32, 2^31 - 33). 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_max_message_len(sender: *const ramway_sender) -> u64 {
    guard_value(0, || {
        // SAFETY: the caller's.
        Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.max_message_len()) as u64)
    })
}

/// Bytes, headers and padding included, that the receiver has not released, or the slowest reliable subscriber; can be stale
/// when it returns. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_len(sender: *const ramway_sender) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.len()) as u64))
}

/// Whether a receiver is attached and its process lives: one system call, of a publisher one for each reliable subscriber
/// (one of them is enough). A stopped process is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_is_peer_alive(sender: *const ramway_sender) -> bool {
    // SAFETY: the caller's.
    guard_value(false, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.is_peer_alive())))
}

/// How often a receiver has attached, 0 = never yet. A change means that a successor took over. Of a publisher: how often a
/// subscriber came, went, or began anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_peer_epoch(sender: *const ramway_sender) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.peer_epoch())))
}

/// How often a sender has attached, this one included: 1 = the first. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_epoch(sender: *const ramway_sender) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(each!(&unsafe { SenderHandle::shared(sender) }?.sender, sender => sender.epoch())))
}

/// The tag of the last message that is visible to receivers, by whichever sender of this ring: a restarted sender
/// asks this where to go on. False, and `*tag` untouched, before the first message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_last_tag(sender: *const ramway_sender, tag: *mut u64) -> bool {
    guard_value(false, || {
        // SAFETY: the caller's.
        let (handle, tag) = unsafe { (SenderHandle::shared(sender)?, tag.as_mut().ok_or_else(|| null("tag"))?) };
        Ok(each!(&handle.sender, sender => sender.last_tag()).map(|last| *tag = last).is_some())
    })
}

/// How this handle waits for room from now on: `RAMWAY_WAIT_SPIN` and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_set_wait_policy(sender: *mut ramway_sender, policy: u32) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (handle, policy) = (unsafe { SenderHandle::from(sender) }?, wait_policy(policy)?);
        each!(&mut handle.sender, sender => sender.set_wait_policy(policy));
        Ok(())
    })
}

/// A descriptor that becomes readable when `ramway_send` or `ramway_reserve` with `RAMWAY_TRY` has something else to say
/// than the last `RAMWAY_FULL`: there is room, or the receiver is gone. For poll, epoll and event loops: not to be read
/// or closed, and valid as long as the handle. Made at the first call; from then on calls that wait use it too. Try
/// first, and poll only after `RAMWAY_FULL`: only that makes it unreadable.
///
/// -1 on failure, of which `ramway_last_status` says why: `RAMWAY_UNSUPPORTED`, `RAMWAY_OS`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_readiness_fd(sender: *mut ramway_sender) -> c_int {
    guard_value(-1, || {
        // SAFETY: the caller's.
        let handle = unsafe { SenderHandle::from(sender) }?;
        Ok(each!(&mut handle.sender, sender => sender.readiness())?.as_raw_fd())
    })
}

/// Whether a call that waits returns `RAMWAY_INTERRUPTED` when a signal handler ran. Default: it goes on waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_set_interruptible(sender: *mut ramway_sender, yes: bool) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        each!(&mut unsafe { SenderHandle::from(sender) }?.sender, sender => sender.set_interruptible(yes));
        Ok(())
    })
}

/// Waits until a receiver is attached that has not closed and whose process lives; `*epoch` (may be null) is then how
/// often one has attached. At once if there is one already; `timeout_ns` of 0 checks once. After `RAMWAY_PEER_DEAD` or
/// `RAMWAY_CLOSED` on a named ring this waits for the successor. A publisher waits for a reliable subscriber.
///
/// `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` or `RAMWAY_PEER_DEAD` at once where an end is final (a bus, a pair);
/// `RAMWAY_CLOSED` if the ring's name was removed; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_wait_for_peer(
    sender: *mut ramway_sender,
    timeout_ns: i64,
    epoch: *mut u32,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let sender = &mut unsafe { SenderHandle::from(sender) }?.sender;
        let found = match limit(timeout_ns)? {
            Some(timeout) => each!(sender, sender => sender.wait_for_peer_timeout(timeout)),
            None => each!(sender, sender => sender.wait_for_peer()),
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
pub unsafe extern "C" fn ramway_sender_wake(sender: *const ramway_sender) -> ramway_status {
    guard_hot(|| {
        if sender.is_null() {
            return Err(null("the sender"));
        }
        // SAFETY: the caller's: open. Only this field is read, which nobody changes.
        let waker = unsafe { &(*sender.cast::<SenderHandle>()).waker };
        waker.wake();
        Ok(())
    })
}

/// The name that the ring or bus was opened by, valid as long as the handle; null for one without a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_name(sender: *const ramway_sender) -> *const c_char {
    guard_value(std::ptr::null(), || {
        // SAFETY: the caller's.
        Ok(unsafe { SenderHandle::shared(sender) }?.name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()))
    })
}
