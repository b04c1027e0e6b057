//! What only a subscriber of a topic can do.

use crate::options::wait_limit;
use crate::receiver::{ReceiverHandle, batch, checked_batch, own, ramway_message};
use crate::status::{Failure, Outcome, guard, guard_hot, guard_value, null, ramway_status};
use crate::topic::ramway_subscriber;
use ramway_core::ring::consumer::Frame;
use ramway_core::topic::subscriber::Stamp;
use ramway_core::{Error, ErrorKind, Policy, Topic};
use std::ffi::{c_char, c_void};

/// A received message of a topic: what a ring's says, and what only a topic's does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_topic_message {
    /// The payload, its type id and tag.
    pub message: ramway_message,
    /// Its number: the topic's first message has 1, and each later one at least 1 more than the one before.
    pub seq: u64,
    /// When it was sent, in nanoseconds since 1970 by the publisher's wall clock; 0 without `RAMWAY_TIMESTAMPS`.
    pub time: u64,
    /// How many messages this subscriber has lost right before it.
    pub lost: u64,
}

impl From<Frame<Topic>> for ramway_topic_message {
    #[inline(always)]
    fn from(frame: Frame<Topic>) -> Self {
        let Stamp { seq, time, lost } = frame.stamp;
        Self { message: frame.into(), seq, time, lost }
    }
}

impl AsMut<ramway_message> for ramway_topic_message {
    fn as_mut(&mut self) -> &mut ramway_message {
        &mut self.message
    }
}

impl AsMut<ramway_message> for ramway_message {
    fn as_mut(&mut self) -> &mut ramway_message {
        self
    }
}

/// Where a message of a topic is copied to, and what is said of it.
pub(crate) struct Target<M> {
    buffer: *mut c_void,
    size: usize,
    out: *mut M,
    /// The length of a message that there was no room for.
    too_long: Option<usize>,
}

impl<M: AsMut<ramway_message> + From<Frame<Topic>>> Target<M> {
    /// # Safety
    /// `buffer` has room for `size` bytes; `out` is null or writable, as long as this is used.
    #[inline]
    pub(crate) unsafe fn new(buffer: *mut c_void, size: usize, out: *mut M) -> Outcome<Self> {
        if buffer.is_null() && size != 0 {
            return Err(null("buffer"));
        }
        Ok(Self { buffer, size, out, too_long: None })
    }

    /// Where a message of `len` bytes goes; without room how much there is.
    #[inline]
    pub(crate) fn room(&mut self, len: usize) -> Result<*mut u8, usize> {
        if len > self.size {
            self.too_long = Some(len);
            return Err(self.size);
        }
        // A message without bytes needs no buffer.
        let none = std::ptr::NonNull::<u8>::dangling().as_ptr();
        Ok(if self.buffer.is_null() { none } else { self.buffer.cast() })
    }

    /// Says of the message that was copied what is to be said; of one without room how long it is.
    #[inline]
    pub(crate) fn say(self, copied: ramway_core::Result<Frame<Topic>>) -> Outcome {
        let frame = match copied {
            Ok(frame) => frame,
            Err(error) => return Err(self.not_copied(error)),
        };
        self.write(frame);
        Ok(())
    }

    #[inline]
    fn write(&self, frame: Frame<Topic>) {
        if !self.out.is_null() {
            let mut said = M::from(frame);
            said.as_mut().data = self.buffer;
            // SAFETY: `new`'s caller's.
            unsafe { self.out.write(said) };
        }
    }

    #[cold]
    fn not_copied(&self, error: Error) -> Failure {
        let Some(len) = self.too_long.filter(|_| error.kind() == ErrorKind::TooLarge) else { return error.into() };
        self.write(Frame {
            data: self.buffer.cast(),
            len,
            type_id: 0,
            tag: 0,
            stamp: Stamp { seq: 0, time: 0, lost: 0 },
        });
        ErrorKind::TooLarge.into()
    }
}

/// `ramway_recv` of a subscriber, with the message's number and time, and how many were lost before it. The same time-outs and
/// errors; also `RAMWAY_LAGGED`, once, if the publisher has ejected this subscriber: `ramway_last_lost` is then how many were
/// lost, and the next call goes on with the oldest message. `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_recv(
    subscriber: *mut ramway_subscriber,
    timeout_ns: i64,
    out: *mut ramway_topic_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, out) = unsafe { (ReceiverHandle::from(subscriber)?, out.as_mut().ok_or_else(|| null("out"))?) };
        *out = handle.subscriber()?.raw().recv(wait_limit(timeout_ns)?)?.into();
        Ok(())
    })
}

/// `ramway_recv_batch` of a subscriber; what is more about it, as for `ramway_subscriber_recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_recv_batch(
    subscriber: *mut ramway_subscriber,
    timeout_ns: i64,
    out: *mut ramway_topic_message,
    max: usize,
    count: *mut usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let count = unsafe { count.as_mut() }.ok_or_else(|| null("count"))?;
        *count = 0;
        // SAFETY: the caller's.
        let subscriber = unsafe { ReceiverHandle::from(subscriber) }?.subscriber()?;
        let wait_limit = checked_batch(out, max, timeout_ns)?;
        // SAFETY: the caller's: `out` has room for `max`.
        unsafe { batch(subscriber, wait_limit, out, max, count) }
    })
}

/// `ramway_recv_into` of a subscriber; what is more about it, as for `ramway_subscriber_recv`. For one that the publisher does
/// not wait for this is the shortest way: one copy, from the shared memory to `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_recv_into(
    subscriber: *mut ramway_subscriber,
    timeout_ns: i64,
    buffer: *mut c_void,
    size: usize,
    out: *mut ramway_topic_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let subscriber = unsafe { ReceiverHandle::from(subscriber) }?.subscriber()?;
        let wait_limit = wait_limit(timeout_ns)?;
        // SAFETY: the caller's.
        let mut target = unsafe { Target::new(buffer, size, out) }?;
        let copied = subscriber.raw().copy_next(wait_limit, |_, len| target.room(len));
        target.say(copied)
    })
}

/// Copies the newest message to `buffer`, which has room for `size` bytes, whatever was received before: the same one again
/// if there is no newer one. Never waits, allocates nothing, and writes nothing that others share. `out` (may be null) gets
/// what is said of it, and `out->message.data` is `buffer`; `out->lost` is 0.
///
/// Under every policy. What `ramway_recv` gives next stays as it was, but for `RAMWAY_LATEST`: there it waits for a message
/// that is newer than this one.
///
/// `RAMWAY_EMPTY` before the first message, and where the publisher overwrites the newest one each of 16 times that this copies
/// it (what none does that sends less often than a message is copied); `RAMWAY_TOO_LARGE` if it is longer than `size`, and `out->message.len` says how
/// long it is; `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_latest(
    subscriber: *mut ramway_subscriber,
    buffer: *mut c_void,
    size: usize,
    out: *mut ramway_topic_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let subscriber = unsafe { ReceiverHandle::from(subscriber) }?.subscriber()?;
        // SAFETY: the caller's.
        let mut target = unsafe { Target::new(buffer, size, out) }?;
        let copied = subscriber.latest_with(|_, len| target.room(len));
        target.say(copied)
    })
}

/// Waits for a message that is newer than the one that `ramway_subscriber_latest` or this gave last, and copies the newest
/// one: `ramway_subscriber_recv_into` for a subscriber with `RAMWAY_LATEST`, in the words of a value that changes.
///
/// `RAMWAY_UNSUPPORTED` under another policy, which receives in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_wait_newer(
    subscriber: *mut ramway_subscriber,
    timeout_ns: i64,
    buffer: *mut c_void,
    size: usize,
    out: *mut ramway_topic_message,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let subscriber = unsafe { ReceiverHandle::from(subscriber) }?.subscriber()?;
        if subscriber.policy() != Policy::Latest {
            let text = "ramway_subscriber_wait_newer on a subscriber that receives in order: use ramway_subscriber_recv, or \
                        open it with RAMWAY_LATEST";
            return Err(Failure::Own(ramway_status::RAMWAY_UNSUPPORTED, text.into()));
        }
        let wait_limit = wait_limit(timeout_ns)?;
        // SAFETY: the caller's.
        let mut target = unsafe { Target::new(buffer, size, out) }?;
        let copied = subscriber.raw().copy_next(wait_limit, |_, len| target.room(len));
        target.say(copied)
    })
}

/// How it reads: `RAMWAY_RELIABLE`, `RAMWAY_LOSSY` or `RAMWAY_LATEST`. `UINT32_MAX` for what is no subscriber.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_policy(subscriber: *const ramway_subscriber) -> u32 {
    // SAFETY: the caller's.
    guard_value(u32::MAX, || Ok(unsafe { ReceiverHandle::shared(subscriber) }?.as_subscriber()?.policy() as u32))
}

/// The label that it was opened with, valid as long as the handle; null without one, and for what is no subscriber.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_label(subscriber: *const ramway_subscriber) -> *const c_char {
    guard_value(std::ptr::null(), || {
        // SAFETY: the caller's.
        let handle = unsafe { ReceiverHandle::shared(subscriber) }?;
        handle.as_subscriber()?;
        Ok(handle.label.as_ref().map_or(std::ptr::null(), |label| label.as_ptr()))
    })
}

/// Messages that this handle has lost so far: the sum of what its messages say. 0 for what is no subscriber.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_lost(subscriber: *const ramway_subscriber) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { ReceiverHandle::shared(subscriber) }?.as_subscriber()?.lost()))
}

/// How far it is behind: bytes that are published and not released, frame headers and padding included, and messages that
/// are published and not received. Either pointer may be null. Can be stale when it returns.
///
/// `RAMWAY_INVALID_ARGUMENT` for the receiver of a ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_lag(
    subscriber: *const ramway_subscriber,
    bytes: *mut u64,
    messages: *mut u64,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let lag = unsafe { ReceiverHandle::shared(subscriber) }?.as_subscriber()?.lag();
        for (to, number) in [(bytes, lag.bytes), (messages, lag.messages)] {
            if !to.is_null() {
                // SAFETY: the caller's.
                unsafe { *to = number };
            }
        }
        Ok(())
    })
}

/// Moves on so that the next message is the newest one; `*skipped` (may be null) is how many that leaves out. They do not
/// count as lost. Messages that are not released are released.
///
/// `RAMWAY_UNSUPPORTED` for `RAMWAY_LATEST`, which reads the newest one anyway; `RAMWAY_INVALID_ARGUMENT` for the receiver of
/// a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_skip_to_newest(
    subscriber: *mut ramway_subscriber,
    skipped: *mut u64,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let left_out = unsafe { ReceiverHandle::from(subscriber) }?.subscriber()?.skip_to_newest()?;
        if !skipped.is_null() {
            // SAFETY: the caller's.
            unsafe { *skipped = left_out };
        }
        Ok(())
    })
}

/// Closes a subscriber for good and frees the handle: the label and the cursor of a durable one are forgotten, and the
/// publisher no longer waits for it. For any other it is `ramway_receiver_close`.
///
/// `RAMWAY_INVALID_ARGUMENT` (and nothing happens) for the receiver of a ring; else as `ramway_receiver_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_unsubscribe(subscriber: *mut ramway_subscriber) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        unsafe { ReceiverHandle::from(subscriber)?.subscriber()? };
        // SAFETY: the caller's.
        match unsafe { own(subscriber) }?.receiver {
            crate::either::Either::Topic(subscriber) => Ok(subscriber.unsubscribe()?),
            crate::either::Either::Ring(_) => unreachable!("checked above"),
        }
    })
}
