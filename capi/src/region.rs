//! Named shared bytes.

use crate::options::{self, RAMWAY_READ_ONLY, RAMWAY_TRY, limit, name, options, ramway_options};
use crate::status::{Outcome, give, guard, guard_hot, guard_value, invalid, null, ramway_status};
use ramway_core::{ErrorKind, Region, RegionBuilder};
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;

/// Named bytes that any number of processes have mapped, with notify and wait. All calls but closing may be made from
/// any number of threads at once.
#[derive(Debug)]
pub struct ramway_region {
    _private: (),
}

/// # Safety
/// `handle` is null or an open region.
pub(crate) unsafe fn region<'a>(handle: *const ramway_region) -> Outcome<&'a Region> {
    // SAFETY: handles are made by `give` only.
    unsafe { handle.cast::<Region>().as_ref() }.ok_or_else(|| null("the region"))
}

/// # Safety
/// `from` as `options` has it.
unsafe fn builder(from: *const ramway_options) -> Outcome<RegionBuilder> {
    // SAFETY: the caller's.
    let given = unsafe { options(from) }?;
    if given.capacity != 0 || given.align != 0 {
        return Err(invalid("capacity and align are for rings: a region has the length that it is created with"));
    }
    let builder = Region::builder().read_only(given.flags & RAMWAY_READ_ONLY != 0);
    Ok(options::with_options!(builder, &given))
}

/// # Safety
/// `out` is null or writable.
unsafe fn opened(out: *mut *mut ramway_region, open: impl FnOnce() -> Outcome<Region>) -> ramway_status {
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, || Ok(Box::into_raw(Box::new(open()?)).cast())) })
}

/// Makes a region of `len` bytes, all zero, under a name as in `ramway_sender_create`. It lives until its last handle
/// is gone, in whichever process, or on with `RAMWAY_PERSISTENT`. `options` may be null. On failure `*out` is null.
///
/// `RAMWAY_INVALID_ARGUMENT` for a length of 0, `RAMWAY_ALREADY_EXISTS`, `RAMWAY_NO_SPACE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_create(
    name: *const c_char,
    len: u64,
    options: *const ramway_options,
    out: *mut *mut ramway_region,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { opened(out, || Ok(builder(options)?.create(self::name(name)?, len)?)) }
}

/// Opens the region `name`, for reading and writing, or with `RAMWAY_READ_ONLY` for reading.
///
/// `RAMWAY_NOT_FOUND`, `RAMWAY_PERMISSION_DENIED`, `RAMWAY_ABI_MISMATCH` if it is something else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_open(
    name: *const c_char,
    options: *const ramway_options,
    out: *mut *mut ramway_region,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { opened(out, || Ok(builder(options)?.open(self::name(name)?)?)) }
}

/// Opens the region `name`, or makes it. `RAMWAY_INVALID_ARGUMENT` if it is there with another length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_open_or_create(
    name: *const c_char,
    len: u64,
    options: *const ramway_options,
    out: *mut *mut ramway_region,
) -> ramway_status {
    // SAFETY: the caller's.
    unsafe { opened(out, || Ok(builder(options)?.open_or_create(self::name(name)?, len)?)) }
}

/// Unmaps the region and frees the handle. Nothing uses its bytes any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_close(region: *mut ramway_region) -> ramway_status {
    guard(|| {
        if region.is_null() {
            return Err(null("the region"));
        }
        // SAFETY: made by `opened`, and given up by the caller.
        drop(unsafe { Box::from_raw(region.cast::<Region>()) });
        Ok(())
    })
}

/// The first of the region's bytes, at the start of a page, until the handle is closed. Ramway brings no order into
/// what processes write there: use atomics, or notify and wait. Not to be written through a read-only handle. Null
/// for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_data(region: *const ramway_region) -> *mut c_void {
    // SAFETY: the caller's.
    guard_value(std::ptr::null_mut(), || Ok(unsafe { self::region(region) }?.as_ptr().cast()))
}

/// The length that the region was created with. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_len(region: *const ramway_region) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { self::region(region) }?.len()))
}

/// The bytes that are mapped: the length rounded up to a page, or to a huge page. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_capacity(region: *const ramway_region) -> u64 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { self::region(region) }?.capacity()))
}

/// Whether this handle may not write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_is_read_only(region: *const ramway_region) -> bool {
    // SAFETY: the caller's.
    guard_value(false, || Ok(unsafe { self::region(region) }?.is_read_only()))
}

/// Copies `len` bytes out, from `offset` on. Others may write meanwhile: each aligned 8-byte word comes out whole.
///
/// `RAMWAY_INVALID_ARGUMENT` if the range does not lie within the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_read_at(
    region: *const ramway_region,
    offset: u64,
    to: *mut c_void,
    len: usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let region = unsafe { self::region(region) }?;
        if to.is_null() && len != 0 {
            return Err(null("to"));
        }
        if len as u64 > region.len() {
            // Before a slice is made of a length that no memory has.
            return Err(invalid(format!("reading {len} bytes of a region of {} bytes", region.len())));
        }
        let to = if len == 0 {
            &mut []
        } else {
            // SAFETY: the caller's.
            unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), len) }
        };
        Ok(region.read_at(offset, to)?)
    })
}

/// Copies `len` bytes in, from `offset` on. To others each aligned 8-byte word appears whole, in no particular order.
///
/// `RAMWAY_INVALID_ARGUMENT` if the range does not lie within the region, `RAMWAY_PERMISSION_DENIED` if it is
/// read-only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_write_at(
    region: *const ramway_region,
    offset: u64,
    from: *const c_void,
    len: usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let region = unsafe { self::region(region) }?;
        if from.is_null() && len != 0 {
            return Err(null("from"));
        }
        if len as u64 > region.len() {
            return Err(invalid(format!("writing {len} bytes to a region of {} bytes", region.len())));
        }
        let from = if len == 0 {
            &[]
        } else {
            // SAFETY: the caller's.
            unsafe { std::slice::from_raw_parts(from.cast::<u8>(), len) }
        };
        Ok(region.write_at(offset, from)?)
    })
}

/// Tells everyone who waits that something has changed, after everything that this thread wrote before. Never blocks;
/// a system call only if somebody sleeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_notify(region: *const ramway_region) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| Ok(unsafe { self::region(region) }?.notify()?))
}

/// Waits until somebody notifies. A notification since the last wait of this handle that succeeded, or since it was
/// opened, counts even if it came before this call; any number of them count as one. `timeout_ns` as in
/// `ramway_recv`.
///
/// `RAMWAY_EMPTY` (`RAMWAY_TRY` only), `RAMWAY_TIMED_OUT`; `RAMWAY_CLOSED` if the name was removed meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_wait(region: *const ramway_region, timeout_ns: i64) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let region = unsafe { self::region(region) }?;
        let notified = if timeout_ns == RAMWAY_TRY { region.try_wait() } else { region.wait(limit(timeout_ns)?) }?;
        if notified { Ok(()) } else { Err(nothing(timeout_ns).into()) }
    })
}

/// A descriptor that becomes readable when `ramway_region_wait` with `RAMWAY_TRY` would succeed, or the name is gone.
/// Otherwise as `ramway_sender_readiness_fd`; `RAMWAY_UNSUPPORTED` for a read-only handle, which cannot be woken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_readiness_fd(region: *const ramway_region) -> c_int {
    // SAFETY: the caller's.
    guard_value(-1, || Ok(unsafe { self::region(region) }?.readiness()?.as_raw_fd()))
}

/// A number that changes with each notification, for `ramway_region_wait_since`. 0 for a null handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_notifications(region: *const ramway_region) -> u32 {
    // SAFETY: the caller's.
    guard_value(0, || Ok(unsafe { self::region(region) }?.notifications()?))
}

/// Waits until the number of notifications is not `*count`, and stores what it is then: for several threads that must
/// each see every notification on one handle. Otherwise as `ramway_region_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_region_wait_since(
    region: *const ramway_region,
    count: *mut u32,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (region, count) = unsafe { (self::region(region)?, count.as_mut().ok_or_else(|| null("count"))?) };
        match region.wait_since(*count, limit(timeout_ns)?)? {
            Some(now) => *count = now,
            None => return Err(nothing(timeout_ns).into()),
        }
        Ok(())
    })
}

fn nothing(timeout_ns: i64) -> ErrorKind {
    if timeout_ns == RAMWAY_TRY { ErrorKind::Empty } else { ErrorKind::TimedOut }
}
