//! Where rings come from: a name, a pair of threads, or memory that the caller brings.

use crate::options::{self, RAMWAY_NO_MEMBARRIER, RAMWAY_READ_ONLY, name, options, ramway_options};
use crate::receiver::{ReceiverHandle, ramway_receiver};
use crate::sender::{SenderHandle, ramway_sender};
use crate::status::{Outcome, give, guard, invalid, null, ramway_status};
use ramway_core::{Ring, RingBuilder};
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd};

#[derive(Clone, Copy)]
enum How {
    Create,
    Open,
    OpenOrCreate,
}

/// # Safety
/// `path` and `from` as `name` and `options` have it.
unsafe fn builder(how: How, path: *const c_char, from: *const ramway_options) -> Outcome<RingBuilder> {
    // SAFETY: the caller's.
    let name = unsafe { name(path) }?;
    let builder = match how {
        How::Create => Ring::create(name),
        How::Open => Ring::open(name),
        How::OpenOrCreate => Ring::open_or_create(name),
    };
    // SAFETY: the caller's.
    unsafe { with_options(builder, from) }
}

/// # Safety
/// `from` as `options` has it.
unsafe fn with_options(builder: RingBuilder, from: *const ramway_options) -> Outcome<RingBuilder> {
    // SAFETY: the caller's.
    let given = unsafe { options(from) }?;
    if given.flags & RAMWAY_READ_ONLY != 0 {
        return Err(invalid("RAMWAY_READ_ONLY is for regions: both ends of a ring write"));
    }
    let mut builder = options::with_options!(builder, &given).membarrier(given.flags & RAMWAY_NO_MEMBARRIER == 0);
    if given.capacity != 0 {
        builder = builder.capacity(given.capacity);
    }
    if given.align != 0 {
        builder = builder.align(given.align);
    }
    Ok(builder)
}

/// # Safety
/// As for [`builder`]; `out` is null or writable.
unsafe fn sender(
    how: How,
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(SenderHandle::give(builder(how, name, options)?.sender()?))) })
}

/// # Safety
/// As for [`sender`].
unsafe fn receiver(
    how: How,
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(ReceiverHandle::give(builder(how, name, options)?.receiver()?))) })
}

/// Makes the ring `name` and takes its sending end.
///
/// `name` is `[A-Za-z0-9._-]`, 1 to 80 of them, not starting with a dot, not ending in `.sock`, below the directory
/// `RAMWAY_DIR` (`/dev/shm/ramway-UID`); with a `/` in it, it is a path. `options` may be null. On failure `*out` is
/// null.
///
/// `RAMWAY_ALREADY_EXISTS` if somebody holds the name or undelivered messages are there (`RAMWAY_DISCARD` drops
/// them); `RAMWAY_NO_SPACE`, `RAMWAY_UNSUPPORTED`, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_create(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { sender(How::Create, name, options, out) }
}

/// Takes the sending end of the ring `name`, also of one that dead processes left, and goes on after its last
/// message. `options.timeout_ns` is how long to wait for a ring that is not there yet.
///
/// `RAMWAY_NOT_FOUND`; `RAMWAY_BUSY` if it has a sender; `RAMWAY_INVALID_ARGUMENT` if a capacity or alignment was
/// asked for that it does not have; `RAMWAY_ABI_MISMATCH` if it is something else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_open(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { sender(How::Open, name, options, out) }
}

/// `ramway_sender_open`, or `ramway_sender_create` if there is no such ring: for two sides of which either may start
/// first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_open_or_create(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { sender(How::OpenOrCreate, name, options, out) }
}

/// Makes the ring `name` and takes its receiving end. As `ramway_sender_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_create(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { receiver(How::Create, name, options, out) }
}

/// Takes the receiving end of the ring `name`, and goes on with the first message that no receiver has released. As
/// `ramway_sender_open`; `RAMWAY_BUSY` if it has a receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_open(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { receiver(How::Open, name, options, out) }
}

/// `ramway_receiver_open`, or `ramway_receiver_create` if there is no such ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_open_or_create(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { receiver(How::OpenOrCreate, name, options, out) }
}

/// Makes a ring without a name, for two threads of this process. `capacity` is rounded up to a power of two of at
/// least a page. On failure both are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_ring_pair(
    capacity: u64,
    sender: *mut *mut ramway_sender,
    receiver: *mut *mut ramway_receiver,
) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let (Some(sender), Some(receiver)) = (unsafe { (sender.as_mut(), receiver.as_mut()) }) else {
            return Err(null("sender or receiver"));
        };
        *sender = std::ptr::null_mut();
        *receiver = std::ptr::null_mut();
        let (tx, rx) = Ring::pair(capacity)?;
        *sender = SenderHandle::give(tx);
        *receiver = ReceiverHandle::give(rx);
        Ok(())
    })
}

fn not_null(memory: *mut c_void) -> Outcome<*mut u8> {
    if memory.is_null() { Err(null("memory")) } else { Ok(memory.cast()) }
}

/// Writes a ring's header into memory that the caller has mapped `MAP_SHARED`, from a file that both sides can map:
/// a header page, then as much data as the largest power of two that fits, which is `*capacity` (may be null).
///
/// The memory begins on a page, is all the caller's own during this call, and is not used by any ring. `align` is a
/// power of two from 16 to 4096, or 0 for 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_ring_format(
    memory: *mut c_void,
    len: usize,
    align: u32,
    capacity: *mut u64,
) -> ramway_status {
    guard(|| {
        let memory = not_null(memory)?;
        // SAFETY: the caller's.
        let made = unsafe { Ring::format(memory, len, if align == 0 { 16 } else { align }) }?;
        if !capacity.is_null() {
            // SAFETY: the caller's.
            unsafe { *capacity = made };
        }
        Ok(())
    })
}

/// Takes the sending end of the ring in memory that the caller has mapped `MAP_SHARED` (`ramway_ring_format`). The
/// caller sees to it that there is one sender, and that the memory stays mapped at least until this returns: the
/// handle has mappings of its own. Nobody can tell whether the peer's process lives, only whether it closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_attach(
    memory: *mut c_void,
    len: usize,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(SenderHandle::give(Ring::attach_sender(not_null(memory)?, len)?))) })
}

/// Takes the receiving end of the ring in memory that the caller has mapped; as `ramway_sender_attach`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_attach(
    memory: *mut c_void,
    len: usize,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(ReceiverHandle::give(Ring::attach_receiver(not_null(memory)?, len)?))) })
}

/// Makes a ring without a name for a child process, takes no role of it, and gives its descriptor, which the caller
/// closes. It is close-on-exec: clear that in the child. Each process takes its role with `ramway_sender_from_fd` or
/// `ramway_receiver_from_fd`. Of `options` (may be null) capacity, align, huge pages and NUMA node have a meaning here.
/// Nothing is left behind when the last process goes. On failure `*fd` is -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_ring_unnamed(options: *const ramway_options, fd: *mut c_int) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        let fd = unsafe { fd.as_mut() }.ok_or_else(|| null("fd"))?;
        *fd = -1;
        // SAFETY: the caller's.
        *fd = unsafe { with_options(Ring::unnamed(), options) }?.into_fd()?.into_raw_fd();
        Ok(())
    })
}

/// # Safety
/// `fd` is a descriptor that stays open during the call, `options` as `with_options` has it.
unsafe fn from_fd(fd: c_int, options: *const ramway_options) -> Outcome<RingBuilder> {
    if fd < 0 {
        return Err(invalid(format!("descriptor {fd}: expected one of a ring without a name")));
    }
    // SAFETY: the caller's.
    unsafe { with_options(Ring::from_fd(BorrowedFd::borrow_raw(fd)), options) }
}

/// Takes the sending end of the ring behind a descriptor (`ramway_ring_unnamed`), which stays the caller's and may be
/// closed after that. `options` may be null. `RAMWAY_BUSY` if it has a sender; `RAMWAY_INVALID_ARGUMENT`,
/// `RAMWAY_ABI_MISMATCH` or `RAMWAY_CORRUPT` for what is no such ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_sender_from_fd(
    fd: c_int,
    options: *const ramway_options,
    out: *mut *mut ramway_sender,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(SenderHandle::give(from_fd(fd, options)?.sender()?))) })
}

/// Takes the receiving end of the ring behind a descriptor; as `ramway_sender_from_fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_receiver_from_fd(
    fd: c_int,
    options: *const ramway_options,
    out: *mut *mut ramway_receiver,
) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(ReceiverHandle::give(from_fd(fd, options)?.receiver()?))) })
}
