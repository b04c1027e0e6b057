//! What only the publisher of a topic can do.

use crate::options::limit;
use crate::sender::SenderHandle;
use crate::status::{guard, guard_value, null, ramway_status};
use crate::topic::ramway_publisher;
use std::ffi::{CString, c_char, c_void};

/// A subscriber, as the publisher sees it at one moment. All pointers are valid during the callback only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_subscriber_info {
    /// `sizeof(ramway_subscriber_info)` of the library: a newer one may know more fields, at the end.
    pub size_of_struct: usize,
    /// Its label; empty if it has none. Never null.
    pub label: *const c_char,
    /// How far a reliable one is behind: bytes that are published and not released, frame headers and padding included. -1
    /// for another policy, which does not say.
    pub lag_bytes: i64,
    /// How far a reliable one is behind: messages that are published and not released. -1 for another policy.
    pub lag_messages: i64,
    /// Messages that it has lost.
    pub lost: u64,
    /// For how many nanoseconds it has kept the publisher from going on without reading anything; -1 if it does not.
    pub blocks_for_ns: i64,
    /// Its slot.
    pub slot: u32,
    /// `RAMWAY_RELIABLE` and so on.
    pub policy: u32,
    /// How often the slot was taken.
    pub epoch: u32,
    /// Its cursor stays when it goes.
    pub durable: bool,
    /// Its process lives and has it open.
    pub alive: bool,
    /// The publisher has ejected it, and it has not begun anew.
    pub ejected: bool,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Calls `each` for every subscriber that has a slot, with `user` as it is: every reliable one, and of the others those that
/// could take one. A system call for each subscriber.
///
/// `RAMWAY_INVALID_ARGUMENT` for the sender of a ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_subscribers(
    publisher: *const ramway_publisher,
    each: Option<unsafe extern "C" fn(subscriber: *const ramway_subscriber_info, user: *mut c_void)>,
    user: *mut c_void,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let publisher = unsafe { SenderHandle::shared(publisher) }?.as_publisher()?;
        let each = each.ok_or_else(|| null("each"))?;
        for one in publisher.subscribers() {
            let label = CString::new(one.label.replace('\0', "?")).unwrap_or_default();
            let info = ramway_subscriber_info {
                size_of_struct: size_of::<ramway_subscriber_info>(),
                label: label.as_ptr(),
                lag_bytes: one.lag.map_or(-1, |lag| signed(lag.bytes)),
                lag_messages: one.lag.map_or(-1, |lag| signed(lag.messages)),
                lost: one.lost,
                blocks_for_ns: one.blocks_for.map_or(-1, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)),
                slot: one.slot,
                policy: one.policy as u32,
                epoch: one.epoch,
                durable: one.durable,
                alive: one.alive,
                ejected: one.ejected,
            };
            // SAFETY: the caller's function; the record and its string live until it returns.
            unsafe { each(&info, user) };
        }
        Ok(())
    })
}

/// Waits until `count` reliable subscribers are attached and their processes live. At once if they are there already;
/// `timeout_ns` of 0 checks once. Others do not count: the publisher does not wait for them.
///
/// `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` if the topic's name was removed, so that nobody can come; `RAMWAY_INVALID_ARGUMENT` if
/// the topic has fewer slots than that, or for the sender of a ring; `RAMWAY_INTERRUPTED`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_wait_for_subscribers(
    publisher: *mut ramway_publisher,
    count: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let publisher = unsafe { SenderHandle::from(publisher) }?.publisher()?;
        Ok(match limit(timeout_ns)? {
            Some(timeout) => publisher.wait_for_subscribers_timeout(count, timeout),
            None => publisher.wait_for_subscribers(count),
        }?)
    })
}

/// The number of the last message that is visible to subscribers, by whichever publisher; 0 before the first, and for what is
/// no publisher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_seq(publisher: *const ramway_publisher) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { SenderHandle::shared(publisher) }?.as_publisher()?.seq()))
}

/// Lets the next message's number be `lost` higher than it would be: every subscriber then counts that many messages as lost
/// before it. For bridges and replays, whose own source has a gap.
///
/// `RAMWAY_INVALID_ARGUMENT` if no number would be left, or for the sender of a ring; `RAMWAY_CORRUPT`, `RAMWAY_DETACHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_publisher_skip_seq(publisher: *mut ramway_publisher, lost: u64) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| Ok(unsafe { SenderHandle::from(publisher) }?.publisher()?.skip_seq(lost)?))
}
