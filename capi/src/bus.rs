//! Two rings between a listener and a connecting process.

use crate::either::each;
use crate::options::{
    RAMWAY_BUS_RECV_ONLY, RAMWAY_BUS_SEND_ONLY, RAMWAY_NO_MEMBARRIER, RAMWAY_TRY, bus_options, duration, limit, name,
    ramway_bus_options, wait_policy,
};
use crate::receiver::{ReceiverHandle, ramway_receiver};
use crate::sender::{SenderHandle, ramway_sender};
use crate::status::{Failure, Outcome, give, guard, guard_hot, guard_value, invalid, null, ramway_status};
use ramway_core::{Bus, ErrorKind, Listener, ListenerBuilder};
use std::ffi::{CString, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;

/// A full-duplex connection to one process: a ring each way, and a socket whose hang-up says that the peer is gone.
#[derive(Debug)]
pub struct ramway_bus {
    _private: (),
}

/// Accepts connections, each a bus of its own. All calls but closing may be made from any number of threads at once.
#[derive(Debug)]
pub struct ramway_listener {
    _private: (),
}

/// What a `ramway_bus` really is. Both ends are handles of their own, null for a direction that does not exist.
struct BusHandle {
    sender: *mut ramway_sender,
    receiver: *mut ramway_receiver,
    peer_uid: u32,
    peer_pid: u32,
}

pub(crate) struct ListenerHandle {
    pub(crate) listener: Listener,
    path: CString,
}

impl BusHandle {
    fn give(bus: Bus) -> *mut ramway_bus {
        let (peer_uid, peer_pid) = (bus.peer_uid(), bus.peer_pid().unwrap_or(0));
        let (sender, receiver) = bus.split();
        let handle = Self {
            sender: sender.map_or(null_mut(), SenderHandle::give),
            receiver: receiver.map_or(null_mut(), ReceiverHandle::give),
            peer_uid,
            peer_pid,
        };
        handle.mark(true);
        Box::into_raw(Box::new(handle)).cast()
    }

    /// Says to both ends whether they are the bus's to close.
    fn mark(&self, of_bus: bool) {
        // SAFETY: null, or made by `give` and not freed before the bus is.
        unsafe {
            if let Ok(sender) = SenderHandle::from(self.sender) {
                sender.of_bus = of_bus;
            }
            if let Ok(receiver) = ReceiverHandle::from(self.receiver) {
                receiver.of_bus = of_bus;
            }
        }
    }

    /// # Safety
    /// `handle` is null or an open bus.
    unsafe fn from<'a>(handle: *const ramway_bus) -> Outcome<&'a Self> {
        // SAFETY: handles are made by `give` only.
        unsafe { handle.cast::<Self>().as_ref() }.ok_or_else(|| null("the bus"))
    }
}

/// # Safety
/// `path` and `from` as `name` and `bus_options` have it.
unsafe fn listening(path: *const c_char, from: *const ramway_bus_options) -> Outcome<ListenerBuilder> {
    // SAFETY: the caller's.
    let (name, options) = unsafe { (name(path)?, bus_options(from)?) };
    let capacity = if options.capacity == 0 { 1 << 20 } else { options.capacity };
    let back = if options.capacity_back == 0 { capacity } else { options.capacity_back };
    let has = |flag| options.flags & flag != 0;
    let mut builder = Listener::builder(name)
        .capacities(
            if has(RAMWAY_BUS_RECV_ONLY) { 0 } else { capacity },
            if has(RAMWAY_BUS_SEND_ONLY) { 0 } else { back },
        )
        // SAFETY: the caller's.
        .allow_uids(unsafe { uids(&options) })
        .membarrier(!has(RAMWAY_NO_MEMBARRIER))
        .wait_policy(wait_policy(options.wait_policy)?);
    if options.align != 0 {
        builder = builder.align(options.align);
    }
    if options.mode != 0 {
        builder = builder.mode(options.mode);
    }
    if options.backlog != 0 {
        builder = builder.backlog(options.backlog);
    }
    if options.timeout_ns != 0 {
        builder = builder.handshake_timeout(duration(options.timeout_ns)?);
    }
    Ok(builder)
}

/// # Safety
/// `uids` points to `uid_count` numbers, if any (`bus_options` has looked for null).
unsafe fn uids(options: &ramway_bus_options) -> &[u32] {
    if options.allow_uid_count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(options.allow_uids, options.allow_uid_count as usize) }
}

/// Begins to listen at `name` (as in `ramway_sender_create`; a path is the socket's). `options` may be null. On failure
/// `*out` is null.
///
/// `RAMWAY_ALREADY_EXISTS` if a live listener has the name, or something that is not Ramway's to remove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_bind(
    name: *const c_char,
    options: *const ramway_bus_options,
    out: *mut *mut ramway_listener,
) -> ramway_status {
    let bind = || {
        // SAFETY: the caller's.
        let listener = unsafe { listening(name, options) }?.bind()?;
        let path = CString::new(listener.path().as_os_str().as_bytes()).unwrap_or_default();
        Ok(Box::into_raw(Box::new(ListenerHandle { listener, path })).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, bind) })
}

/// # Safety
/// `handle` is null or an open listener.
pub(crate) unsafe fn listener<'a>(handle: *const ramway_listener) -> Outcome<&'a ListenerHandle> {
    // SAFETY: handles are made by `ramway_listener_bind` only.
    unsafe { handle.cast::<ListenerHandle>().as_ref() }.ok_or_else(|| null("the listener"))
}

/// Waits for a process to connect, and gives the bus to it. One that is silent, breaks the handshake or is another
/// user's is refused and does not disturb the others. `timeout_ns` as in `ramway_recv`. On failure `*out` is null.
///
/// `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`, `RAMWAY_NO_SPACE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_accept(
    listener: *const ramway_listener,
    timeout_ns: i64,
    out: *mut *mut ramway_bus,
) -> ramway_status {
    guard_hot(|| {
        let accept = || {
            // SAFETY: the caller's.
            let listener = &unsafe { self::listener(listener) }?.listener;
            let bus = match limit(timeout_ns)? {
                Some(timeout) => listener.accept_timeout(timeout),
                None => listener.accept(),
            };
            bus.map(BusHandle::give).map_err(|error| match error.kind() {
                ErrorKind::TimedOut if timeout_ns == RAMWAY_TRY => ErrorKind::Empty.into(),
                _ => Failure::from(error),
            })
        };
        // SAFETY: the caller's.
        unsafe { give(out, accept) }
    })
}

/// A descriptor that is readable when `ramway_listener_accept` with `RAMWAY_TRY` may get somewhere, for event loops:
/// not to be read or closed, and valid as long as the listener. -1 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_fd(listener: *const ramway_listener) -> c_int {
    // SAFETY: the caller's.
    guard_value(-1, || Ok(unsafe { self::listener(listener) }?.listener.as_fd().as_raw_fd()))
}

/// The path of the listening socket, valid as long as the listener. Null for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_path(listener: *const ramway_listener) -> *const c_char {
    // SAFETY: the caller's.
    guard_value(std::ptr::null(), || Ok(unsafe { self::listener(listener) }?.path.as_ptr()))
}

/// How many connectors have been refused or have given up so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_refused(listener: *const ramway_listener) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { self::listener(listener) }?.listener.refused()))
}

/// Why the last connector was refused, for logs: writes the text to `buffer`, which has room for `size` bytes, cut off
/// where it is longer and always with a final 0 (unless `size` is 0). Gives the whole text's length without that 0: 0 if
/// none was refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_last_refusal(
    listener: *const ramway_listener,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    guard_value(0, || {
        // SAFETY: the caller's.
        let text = unsafe { self::listener(listener) }?.listener.last_refusal().unwrap_or_default();
        if size != 0 {
            if buffer.is_null() {
                return Err(null("buffer"));
            }
            let len = text.len().min(size - 1);
            // SAFETY: the caller's: room for `size`, and `len < size`.
            unsafe {
                buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
                buffer.add(len).write(0);
            }
        }
        Ok(text.len())
    })
}

/// Stops listening, removes the name and frees the handle. Buses that it accepted live on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_listener_close(listener: *mut ramway_listener) -> ramway_status {
    guard(|| {
        if listener.is_null() {
            return Err(null("the listener"));
        }
        // SAFETY: made by `ramway_listener_bind`, and given up by the caller.
        drop(unsafe { Box::from_raw(listener.cast::<ListenerHandle>()) });
        Ok(())
    })
}

/// Listens at `name`, takes one peer within the time-out, and removes the name again. `options` may be null. On
/// failure `*out` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_listen(
    name: *const c_char,
    options: *const ramway_bus_options,
    timeout_ns: i64,
    out: *mut *mut ramway_bus,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(BusHandle::give(listening(name, options)?.accept_one(limit(timeout_ns)?)?))) })
}

/// Connects to the listener at `name`, waiting for one that is not there yet or is busy, for `options->timeout_ns`
/// (default 10 s). `options` may be null; the listener chooses capacities and alignment. On failure `*out` is null.
///
/// `RAMWAY_NOT_FOUND` if no listener came, `RAMWAY_TIMED_OUT` if it was busy all the time, `RAMWAY_PERMISSION_DENIED`,
/// `RAMWAY_ABI_MISMATCH`, `RAMWAY_CORRUPT`, or why the listener refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_connect(
    name: *const c_char,
    options: *const ramway_bus_options,
    out: *mut *mut ramway_bus,
) -> ramway_status {
    let connect = || {
        // SAFETY: the caller's.
        let (name, options) = unsafe { (self::name(name)?, bus_options(options)?) };
        if options.capacity != 0
            || options.capacity_back != 0
            || options.align != 0
            || options.mode != 0
            || options.backlog != 0
            || options.flags & !RAMWAY_NO_MEMBARRIER != 0
        {
            return Err(invalid(
                "the listener chooses capacities, directions, align, mode and backlog: leave them 0 to connect",
            ));
        }
        let mut connector = Bus::connector(name)
            // SAFETY: the caller's.
            .allow_uids(unsafe { uids(&options) })
            .membarrier(options.flags & RAMWAY_NO_MEMBARRIER == 0)
            .wait_policy(wait_policy(options.wait_policy)?);
        if options.timeout_ns != 0 {
            connector = connector.timeout(duration(options.timeout_ns)?);
        }
        Ok(BusHandle::give(connector.connect()?))
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, connect) })
}

/// The bus's sending end, valid as long as the bus. Sender and receiver may be used by two threads at once. Null if
/// the listener gave that direction no capacity (`RAMWAY_UNSUPPORTED` is then the last error), and for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_sender(bus: *const ramway_bus) -> *mut ramway_sender {
    guard_value(null_mut(), || {
        // SAFETY: the caller's.
        let sender = unsafe { BusHandle::from(bus) }?.sender;
        if sender.is_null() { Err(missing("receive-only")) } else { Ok(sender) }
    })
}

/// The bus's receiving end; as `ramway_bus_sender`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_receiver(bus: *const ramway_bus) -> *mut ramway_receiver {
    guard_value(null_mut(), || {
        // SAFETY: the caller's.
        let receiver = unsafe { BusHandle::from(bus) }?.receiver;
        if receiver.is_null() { Err(missing("send-only")) } else { Ok(receiver) }
    })
}

fn missing(ways: &str) -> Failure {
    Failure::Own(
        ramway_status::RAMWAY_UNSUPPORTED,
        format!("this bus is {ways}: the listener gave the other direction a capacity of 0"),
    )
}

/// Frees the bus and gives its two ends, each to be closed by itself: null for a direction that does not exist. The
/// peer sees a hang-up when both are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_split(
    bus: *mut ramway_bus,
    sender: *mut *mut ramway_sender,
    receiver: *mut *mut ramway_receiver,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (Some(sender), Some(receiver)) = (unsafe { (sender.as_mut(), receiver.as_mut()) }) else {
            return Err(null("sender or receiver"));
        };
        if bus.is_null() {
            (*sender, *receiver) = (null_mut(), null_mut());
            return Err(null("the bus"));
        }
        // SAFETY: made by `give`, and given up by the caller.
        let handle = unsafe { Box::from_raw(bus.cast::<BusHandle>()) };
        handle.mark(false);
        (*sender, *receiver) = (handle.sender, handle.receiver);
        Ok(())
    })
}

/// Flushes, tells the peer that this was all, and frees the bus and both of its ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_close(bus: *mut ramway_bus) -> ramway_status {
    guard(|| {
        if bus.is_null() {
            return Err(null("the bus"));
        }
        // SAFETY: made by `give`, and given up by the caller; so are both ends, which the bus owns.
        unsafe {
            let handle = Box::from_raw(bus.cast::<BusHandle>());
            if !handle.sender.is_null() {
                drop(Box::from_raw(handle.sender.cast::<SenderHandle>()));
            }
            if !handle.receiver.is_null() {
                drop(Box::from_raw(handle.receiver.cast::<ReceiverHandle>()));
            }
        }
        Ok(())
    })
}

/// The user that the peer acted as when the connection was made, as the kernel recorded it. `UINT32_MAX` for a null
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_peer_uid(bus: *const ramway_bus) -> u32 {
    // SAFETY: the caller's.
    guard_value(u32::MAX, || Ok(unsafe { BusHandle::from(bus) }?.peer_uid))
}

/// The peer's process when the connection was made, 0 if it has no number here. It says who asked; numbers are used
/// again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_peer_pid(bus: *const ramway_bus) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { BusHandle::from(bus) }?.peer_pid))
}

/// Whether the peer still holds an end of the bus: up to two system calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_bus_is_peer_alive(bus: *const ramway_bus) -> bool {
    guard_value(false, || {
        // SAFETY: the caller's; both ends live as long as the bus, and are only read.
        unsafe {
            let handle = BusHandle::from(bus)?;
            let sending = !handle.sender.is_null()
                && each!(&SenderHandle::shared(handle.sender)?.sender, sender => sender.is_peer_alive());
            Ok(sending
                || !handle.receiver.is_null()
                    && each!(&ReceiverHandle::shared(handle.receiver)?.receiver, receiver => receiver.is_peer_alive()))
        }
    })
}
