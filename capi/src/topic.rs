//! Where publishers and subscribers come from.

use crate::either::Either;
use crate::options::*;
use crate::receiver::{ReceiverHandle, ramway_receiver};
use crate::sender::{SenderHandle, ramway_sender};
use crate::status::{Outcome, give, guard, invalid, ramway_status};
use ramway_core::{Topic, TopicBuilder};
use std::ffi::{CStr, c_char};
use std::time::Duration;

/// The publisher of a topic: one per topic, in the whole system. Everything that a sender can do (`ramway_send`,
/// `ramway_reserve`, `ramway_send_tensor`, `ramway_flush`, `ramway_sender_close` and so on) it can do too.
pub type ramway_publisher = ramway_sender;

/// A subscriber of a topic: one of many, each with its own policy. Everything that a receiver can do (`ramway_recv`,
/// `ramway_recv_batch`, `ramway_release`, `ramway_receiver_close` and so on) it can do too.
///
/// A reliable subscriber's messages are views of the shared memory, where the topic was not made with `RAMWAY_MAY_EJECT`.
/// All others are copies that the handle keeps until `ramway_release`.
pub type ramway_subscriber = ramway_receiver;

#[derive(Clone, Copy)]
enum How {
    Create,
    Open,
    OpenOrCreate,
}

/// # Safety
/// `path` and `from` as `name` and `topic_options` have it.
unsafe fn builder(how: How, path: *const c_char, from: *const ramway_topic_options) -> Outcome<TopicBuilder> {
    // SAFETY: the caller's.
    let (name, given) = unsafe { (name(path)?, topic_options(from)?) };
    let builder = match how {
        How::Create => Topic::create(name),
        How::Open => Topic::open(name),
        How::OpenOrCreate => Topic::open_or_create(name),
    };
    let has = |flag| given.flags & flag != 0;
    let mut builder = with_options!(builder, &given.common())
        .membarrier(!has(RAMWAY_NO_MEMBARRIER))
        .lossy_only(has(RAMWAY_LOSSY_ONLY))
        .may_eject(has(RAMWAY_MAY_EJECT))
        .timestamps(has(RAMWAY_TIMESTAMPS))
        .durable(has(RAMWAY_DURABLE))
        .read_only(has(RAMWAY_READ_ONLY));
    if given.capacity != 0 {
        builder = builder.capacity(given.capacity);
    }
    if given.align != 0 {
        builder = builder.align(given.align);
    }
    if given.slots != 0 {
        builder = builder.slots(given.slots);
    }
    if given.eject_after_ns != 0 {
        builder = builder.eject_after(Duration::from_nanos(given.eject_after_ns as u64));
    }
    builder = match given.policy {
        RAMWAY_RELIABLE => builder,
        RAMWAY_LOSSY => builder.lossy(),
        RAMWAY_LATEST => builder.latest(),
        other => {
            return Err(invalid(format!(
                "ramway_topic_options.policy is {other}: expected RAMWAY_RELIABLE, RAMWAY_LOSSY or RAMWAY_LATEST"
            )));
        }
    };
    builder = match given.start {
        RAMWAY_FROM_DEFAULT => builder,
        RAMWAY_FROM_OLDEST => builder.from_oldest(),
        RAMWAY_FROM_NOW => builder.from_now(),
        RAMWAY_HISTORY => builder.history(given.start_number),
        RAMWAY_AFTER_SEQ => builder.after_seq(given.start_number),
        other => {
            return Err(invalid(format!(
                "ramway_topic_options.start is {other}: expected RAMWAY_FROM_DEFAULT, _FROM_OLDEST, _FROM_NOW, _HISTORY or \
                 _AFTER_SEQ"
            )));
        }
    };
    if !given.label.is_null() {
        // SAFETY: the caller's: a string.
        let label = unsafe { CStr::from_ptr(given.label) };
        builder = builder.label(label.to_str().map_err(|_| invalid("ramway_topic_options.label is not UTF-8"))?);
    }
    Ok(builder)
}

/// # Safety
/// As for [`builder`]; `out` is null or writable.
unsafe fn publisher(
    how: How,
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_publisher,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(SenderHandle::of(Either::Topic(builder(how, name, options)?.publisher()?)))) })
}

/// # Safety
/// As for [`publisher`].
unsafe fn subscriber(
    how: How,
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_subscriber,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(ReceiverHandle::of(Either::Topic(builder(how, name, options)?.subscriber()?)))) })
}

/// Makes the topic `name` and becomes its publisher. Names are as for `ramway_sender_create`; `options` may be null. The
/// name goes when the last handle does, unless a durable subscriber has not read everything, or the topic is persistent.
/// On failure `*out` is null.
///
/// `RAMWAY_ALREADY_EXISTS` if somebody uses the name, or if it holds what a durable subscriber has not read
/// (`RAMWAY_DISCARD` drops it); `RAMWAY_NO_SPACE`, `RAMWAY_UNSUPPORTED`, `RAMWAY_PERMISSION_DENIED`,
/// `RAMWAY_INVALID_ARGUMENT`, also for a subscriber's option.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_create(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_publisher,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { publisher(How::Create, name, options, out) }
}

/// Becomes the publisher of the topic `name`, also of one that dead processes left, and goes on after its last message.
/// `options.timeout_ns` is how long to wait for a topic that is not there yet.
///
/// `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if it has a publisher; `RAMWAY_INVALID_ARGUMENT` if the topic is not as was asked or the
/// name is no topic's, or for a subscriber's option; `RAMWAY_UNSUPPORTED` for `eject_after_ns` where the topic was made without `RAMWAY_MAY_EJECT`;
/// `RAMWAY_ABI_MISMATCH` if it is not Ramway's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_open(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_publisher,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { publisher(How::Open, name, options, out) }
}

/// `ramway_publisher_open`, or `ramway_publisher_create` if there is no such topic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_open_or_create(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_publisher,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { publisher(How::OpenOrCreate, name, options, out) }
}

/// Makes the topic `name` and subscribes to it. As `ramway_publisher_create` and `ramway_subscriber_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_create(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_subscriber,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { subscriber(How::Create, name, options, out) }
}

/// Subscribes to the topic `name`, also to one that dead processes left. `options.timeout_ns` is how long to wait for a topic
/// that is not there yet.
///
/// `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if every slot is taken or a live subscriber has the label; `RAMWAY_UNSUPPORTED` for a
/// reliable one where the topic was made with `RAMWAY_LOSSY_ONLY`; `RAMWAY_PERMISSION_DENIED` for one that may not write the
/// file (`RAMWAY_READ_ONLY`); `RAMWAY_INVALID_ARGUMENT` if the topic is not as was asked or the name is no topic's, for a
/// publisher's option, or for one that the policy does not have; `RAMWAY_ABI_MISMATCH` if it is not Ramway's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_open(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_subscriber,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { subscriber(How::Open, name, options, out) }
}

/// `ramway_subscriber_open`, or `ramway_subscriber_create` if there is no such topic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_subscriber_open_or_create(
    name: *const c_char,
    options: *const ramway_topic_options,
    out: *mut *mut ramway_subscriber,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { subscriber(How::OpenOrCreate, name, options, out) }
}
