//! What can be asked for when something is made or opened, and how C says how long to wait.

use crate::status::{Failure, Outcome, invalid, null, ramway_status};
use ramway_core::WaitPolicy;
use ramway_core::ring::raw::WaitLimit;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// As a time-out: wait as long as it takes. Any other negative number is `RAMWAY_INVALID_ARGUMENT`.
pub const RAMWAY_FOREVER: i64 = -1;
/// As a time-out: do not wait.
pub const RAMWAY_TRY: i64 = 0;

/// How a handle waits: spin a bounded time, then sleep.
pub const RAMWAY_WAIT_DEFAULT: u32 = 0;
/// How a handle waits: never sleep. The shortest latency, for one whole CPU.
pub const RAMWAY_WAIT_SPIN: u32 = 1;
/// How a handle waits: spin for up to 75 us, less where waits have been long, then sleep. The default.
pub const RAMWAY_WAIT_HYBRID: u32 = 2;
/// How a handle waits: sleep at once. The least CPU time.
pub const RAMWAY_WAIT_BLOCK: u32 = 3;

/// Option: start anew even if undelivered messages (or a persistent region's bytes) are there. For the `create` calls
/// only: the others refuse it.
pub const RAMWAY_DISCARD: u32 = 1;
/// Option: the name stays when the last handle is gone.
pub const RAMWAY_PERSISTENT: u32 = 2;
/// Option: a path on a disk file system is fine. Without it, it is `RAMWAY_UNSUPPORTED`.
pub const RAMWAY_ALLOW_DISK: u32 = 4;
/// Option: keep the memory from being swapped out (`mlock`).
pub const RAMWAY_LOCK_MEMORY: u32 = 8;
/// Option: huge pages, verified after mapping.
pub const RAMWAY_HUGE_PAGES: u32 = 16;
/// Option: touch every page when it is mapped.
pub const RAMWAY_PREFAULT: u32 = 32;
/// Option: take the memory from the NUMA node `numa_node`.
pub const RAMWAY_NUMA_NODE: u32 = 64;
/// Option: do not register this process with membarrier (up to 12 ms, once, in a process with threads). Sending then
/// costs a fence a message.
pub const RAMWAY_NO_MEMBARRIER: u32 = 128;
/// Option: open a region, or a subscriber that the publisher does not wait for, without the right to write.
pub const RAMWAY_READ_ONLY: u32 = 256;

const FLAGS_KNOWN: u32 = 511;

/// What can be asked for when a ring or region is made or opened. Zero in any field is its default, and so is a null
/// pointer in place of the whole.
///
/// `ramway_options options = RAMWAY_OPTIONS_INIT; options.capacity = 1 << 20;`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_options {
    /// `sizeof(ramway_options)`: `RAMWAY_OPTIONS_INIT` sets it. A library that knows more fields takes their
    /// defaults; one that knows fewer refuses (`RAMWAY_UNSUPPORTED`) if one that it does not know is not zero.
    pub size: usize,
    /// Rings: bytes of data, rounded up to a power of two of at least a page. Default 1 MiB; when opening: any.
    pub capacity: u64,
    /// Rings: every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16; when opening: any.
    pub align: u32,
    /// `RAMWAY_DISCARD` and the other options, or-ed together.
    pub flags: u32,
    /// The file's permission bits. Default 0600.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// How long opening waits for a name that is not there yet, and for a role that is still held, in nanoseconds.
    /// Default: not at all. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
    /// Taken if `RAMWAY_NUMA_NODE` is among the flags.
    pub numa_node: u32,
    /// 0.
    pub reserved: u32,
}

/// Bus option: the listener's side only sends.
pub const RAMWAY_BUS_SEND_ONLY: u32 = 512;
/// Bus option: the listener's side only receives.
pub const RAMWAY_BUS_RECV_ONLY: u32 = 1024;

const BUS_FLAGS_KNOWN: u32 = RAMWAY_NO_MEMBARRIER | RAMWAY_BUS_SEND_ONLY | RAMWAY_BUS_RECV_ONLY;

/// What can be asked for when a listener is made or a bus connected. Zero in any field is its default, and so is a
/// null pointer in place of the whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_bus_options {
    /// `sizeof(ramway_bus_options)`: `RAMWAY_BUS_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Listeners: bytes of the ring to the connecting side, rounded up to a power of two of at least a page.
    /// Default 1 MiB.
    pub capacity: u64,
    /// Listeners: bytes of the ring from the connecting side. Default: as `capacity`.
    pub capacity_back: u64,
    /// Listeners: every payload begins on a multiple of this, a power of two from 16 to 4096. Default 16.
    pub align: u32,
    /// `RAMWAY_NO_MEMBARRIER`; for listeners also `RAMWAY_BUS_SEND_ONLY` or `RAMWAY_BUS_RECV_ONLY`: default is both
    /// directions.
    pub flags: u32,
    /// Listeners: the socket's permission bits. Default 0600, or 0666 if `allow_uids` names others.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// Users beside the own one: those that a listener serves, or that a connecting side trusts.
    pub allow_uids: *const u32,
    /// How many `allow_uids` there are.
    pub allow_uid_count: u32,
    /// Listeners: how many may wait to be accepted at a time. Default 128.
    pub backlog: u32,
    /// Listeners: how long a handshake may take, in nanoseconds. Default 1 s. Connecting: how long to try, which
    /// includes waiting for a listener that is not there yet. Default 10 s. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
}

/// Topic option: a new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.
pub const RAMWAY_LOSSY_ONLY: u32 = 2048;
/// Topic option: the publisher of a new topic may eject a reliable subscriber that holds it up (`eject_after_ns`, which asks
/// for this). Reliable subscribers then get copies, not views. An existing topic must be such.
pub const RAMWAY_MAY_EJECT: u32 = 4096;
/// Publisher option: every message says when it was sent, by the wall clock (some 25 ns a message).
pub const RAMWAY_TIMESTAMPS: u32 = 8192;
/// Option of a reliable subscriber with a label: its cursor stays when it closes or dies, and the next one with the label
/// goes on there. The publisher waits for it all the while, also when nobody is there (`ramway_subscriber_unsubscribe`).
pub const RAMWAY_DURABLE: u32 = 16384;

const TOPIC_FLAGS_KNOWN: u32 = FLAGS_KNOWN | RAMWAY_LOSSY_ONLY | RAMWAY_MAY_EJECT | RAMWAY_TIMESTAMPS | RAMWAY_DURABLE;

/// How a subscriber reads: the publisher waits for it, and it sees every message. The default.
pub const RAMWAY_RELIABLE: u32 = 0;
/// How a subscriber reads: the publisher never waits for it. It sees every message that it is fast enough for, and each says
/// how many were lost before it.
pub const RAMWAY_LOSSY: u32 = 1;
/// How a subscriber reads: the publisher never waits for it, and it reads the newest message.
pub const RAMWAY_LATEST: u32 = 2;

/// Where a subscriber begins: a reliable one at the oldest message that is intact, any other after the newest.
pub const RAMWAY_FROM_DEFAULT: u32 = 0;
/// Where a subscriber begins: at the oldest message that is intact.
pub const RAMWAY_FROM_OLDEST: u32 = 1;
/// Where a subscriber begins: after the newest message.
pub const RAMWAY_FROM_NOW: u32 = 2;
/// Where a subscriber begins: with up to `start_number` messages that were published before, as many as are intact.
pub const RAMWAY_HISTORY: u32 = 3;
/// Where a subscriber begins: after the message whose number is `start_number`, or at the oldest intact one; the first message
/// then says how many were lost. A number that the topic has not reached begins after the newest message.
pub const RAMWAY_AFTER_SEQ: u32 = 4;

/// What can be asked for when a topic is made or opened. Zero in any field is its default, and so is a null pointer in place
/// of the whole. An option of the other side is `RAMWAY_INVALID_ARGUMENT`.
///
/// `ramway_topic_options options = RAMWAY_TOPIC_OPTIONS_INIT; options.policy = RAMWAY_LOSSY;`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_topic_options {
    /// `sizeof(ramway_topic_options)`: `RAMWAY_TOPIC_OPTIONS_INIT` sets it. Works as in `ramway_options`.
    pub size: usize,
    /// Bytes of data, frame headers (32 bytes a message) included, rounded up to a power of two of at least a page. A
    /// message takes at most half of it. Default 1 MiB; when opening: any.
    pub capacity: u64,
    /// Every payload begins on a multiple of this, a power of two from 32 to 4096. Default 32; when opening: any.
    pub align: u32,
    /// How many reliable subscribers there can be at a time, 1 to 1024. Default 32; when opening: any. (Others take a free
    /// slot of the upper half, so that they are seen, and do without where there is none.)
    pub slots: u32,
    /// `RAMWAY_DISCARD` and the other options, or-ed together.
    pub flags: u32,
    /// The file's permission bits. Default 0600.
    pub mode: u32,
    /// `RAMWAY_WAIT_SPIN` and so on.
    pub wait_policy: u32,
    /// Subscribers: `RAMWAY_RELIABLE`, `RAMWAY_LOSSY` or `RAMWAY_LATEST`.
    pub policy: u32,
    /// How long opening waits for a name that is not there yet, and for a role that is still held, in nanoseconds.
    /// Default: not at all. `RAMWAY_FOREVER`: as long as it takes.
    pub timeout_ns: i64,
    /// Publishers: a reliable subscriber that has kept it waiting for this many nanoseconds without reading anything is
    /// ejected; its next call is `RAMWAY_LAGGED`, and it begins anew at the oldest message. Default: the publisher waits for
    /// it as long as its process lives.
    pub eject_after_ns: i64,
    /// Subscribers: a name for those who watch, and what `RAMWAY_DURABLE` finds the cursor by: 1 to 64 bytes of UTF-8. A
    /// reliable subscriber's is its alone while it is attached (`RAMWAY_BUSY`). Default: null, no label.
    pub label: *const c_char,
    /// For `RAMWAY_HISTORY` and `RAMWAY_AFTER_SEQ`; else 0.
    pub start_number: u64,
    /// Subscribers: `RAMWAY_FROM_OLDEST` and so on.
    pub start: u32,
    /// Taken if `RAMWAY_NUMA_NODE` is among the flags.
    pub numa_node: u32,
}

/// A struct that C gives with its size in front, and for which all zeros mean the defaults.
///
/// # Safety
/// `repr(C)`, begins with `size: usize`, any bytes are a valid value, and no padding between its fields.
pub(crate) unsafe trait Versioned: Copy {
    const NAME: &'static str;

    /// Refuses a reserved field that is not 0.
    fn refuse_reserved(&self, reserved: u32) -> Outcome {
        if reserved == 0 { Ok(()) } else { Err(unsupported(Self::NAME)) }
    }
}

// SAFETY: integers only; 8-byte fields lie on multiples of 8 (asserted below by the total size).
unsafe impl Versioned for ramway_options {
    const NAME: &'static str = "ramway_options";
}
// SAFETY: integers and a pointer; likewise.
unsafe impl Versioned for ramway_bus_options {
    const NAME: &'static str = "ramway_bus_options";
}
// SAFETY: likewise.
unsafe impl Versioned for ramway_topic_options {
    const NAME: &'static str = "ramway_topic_options";
}
const _: () = assert!(size_of::<ramway_topic_options>() == 2 * 8 + 6 * 4 + 4 * 8 + 2 * 4);
const _: () = assert!(size_of::<ramway_options>() == 8 + 8 + 4 * 4 + 8 + 2 * 4);
const _: () = assert!(size_of::<ramway_bus_options>() == 3 * 8 + 4 * 4 + 8 + 2 * 4 + 8);

/// # Safety
/// `from` is null or points to as many bytes as its first field says.
pub(crate) unsafe fn read<T: Versioned>(from: *const T) -> Outcome<T> {
    // SAFETY: all zeros are a valid value (the trait's rule).
    let mut known: T = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(known);
    }
    let bytes = from.cast::<u8>();
    // SAFETY: every version of the struct begins with its size.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > 4096 {
        return Err(invalid(format!(
            "{}.size is {size}: initialise the struct with its _INIT macro, or set size to sizeof",
            T::NAME
        )));
    }
    let common = size.min(size_of::<T>());
    // SAFETY: `size` bytes are there, the caller says; `common` is at most the size of both.
    unsafe { std::ptr::copy_nonoverlapping(bytes, (&raw mut known).cast::<u8>(), common) };
    // SAFETY: as above.
    if (common..size).any(|at| unsafe { *bytes.add(at) } != 0) {
        return Err(unsupported(T::NAME));
    }
    Ok(known)
}

fn unsupported(which: &str) -> Failure {
    let text = format!("{which} asks for something that only a newer version of the library knows");
    Failure::Own(ramway_status::RAMWAY_UNSUPPORTED, text)
}

fn flags_known(which: &str, flags: u32, known: u32) -> Outcome {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(invalid(format!("{which}.flags is {flags:#x}: expected only bits of {known:#x}")))
}

/// # Safety
/// As for [`read`].
pub(crate) unsafe fn options(from: *const ramway_options) -> Outcome<ramway_options> {
    // SAFETY: the caller's.
    let options = unsafe { read(from) }?;
    flags_known("ramway_options", options.flags, FLAGS_KNOWN)?;
    options.refuse_reserved(options.reserved)?;
    wait_policy(options.wait_policy)?;
    Ok(options)
}

/// Tells a builder of a ring or a region what both can be told. Zero is "the default", which the core has under "not asked
/// for".
macro_rules! with_options {
    ($builder:expr, $options:expr) => {{
        use $crate::options::*;
        let options: &ramway_options = $options;
        let has = |flag| options.flags & flag != 0;
        let mut builder = $builder
            .discard(has(RAMWAY_DISCARD))
            .persistent(has(RAMWAY_PERSISTENT))
            .allow_disk(has(RAMWAY_ALLOW_DISK))
            .lock_memory(has(RAMWAY_LOCK_MEMORY))
            .huge_pages(has(RAMWAY_HUGE_PAGES))
            .prefault(has(RAMWAY_PREFAULT))
            .wait_policy(wait_policy(options.wait_policy)?);
        if options.mode != 0 {
            builder = builder.mode(options.mode);
        }
        if options.timeout_ns != 0 {
            builder = builder.timeout(duration(options.timeout_ns)?);
        }
        if has(RAMWAY_NUMA_NODE) {
            builder = builder.numa_node(options.numa_node);
        }
        builder
    }};
}
pub(crate) use with_options;

/// # Safety
/// As for [`read`], and `allow_uids` points to `allow_uid_count` numbers.
pub(crate) unsafe fn bus_options(from: *const ramway_bus_options) -> Outcome<ramway_bus_options> {
    // SAFETY: the caller's.
    let options = unsafe { read(from) }?;
    const NO_DIRECTION: u32 = RAMWAY_BUS_SEND_ONLY | RAMWAY_BUS_RECV_ONLY;
    flags_known("ramway_bus_options", options.flags, BUS_FLAGS_KNOWN)?;
    if options.flags & NO_DIRECTION == NO_DIRECTION {
        return Err(invalid(
            "RAMWAY_BUS_SEND_ONLY and RAMWAY_BUS_RECV_ONLY together leave no direction: give one of them, or none",
        ));
    }
    if options.allow_uid_count != 0 && options.allow_uids.is_null() {
        return Err(null("ramway_bus_options.allow_uids"));
    }
    wait_policy(options.wait_policy)?;
    Ok(options)
}

/// # Safety
/// As for [`read`], and `label` is null or a string.
pub(crate) unsafe fn topic_options(from: *const ramway_topic_options) -> Outcome<ramway_topic_options> {
    // SAFETY: the caller's.
    let options = unsafe { read(from) }?;
    flags_known("ramway_topic_options", options.flags, TOPIC_FLAGS_KNOWN)?;
    if options.start_number != 0 && !matches!(options.start, RAMWAY_HISTORY | RAMWAY_AFTER_SEQ) {
        return Err(invalid(format!(
            "ramway_topic_options.start_number is {}: it is for RAMWAY_HISTORY and RAMWAY_AFTER_SEQ, and start is {}",
            options.start_number, options.start
        )));
    }
    if options.eject_after_ns < 0 {
        return Err(invalid(format!(
            "ramway_topic_options.eject_after_ns is {}: expected a time, or 0 to eject nobody",
            options.eject_after_ns
        )));
    }
    Ok(options)
}

impl ramway_topic_options {
    /// What a topic is asked for as a ring is.
    pub(crate) fn common(&self) -> ramway_options {
        let Self { mode, wait_policy, timeout_ns, numa_node, .. } = *self;
        let (size, flags) = (size_of::<ramway_options>(), self.flags & FLAGS_KNOWN);
        ramway_options { size, capacity: 0, align: 0, flags, mode, wait_policy, timeout_ns, numa_node, reserved: 0 }
    }
}

pub(crate) fn wait_policy(number: u32) -> Outcome<WaitPolicy> {
    match number {
        RAMWAY_WAIT_SPIN => Ok(WaitPolicy::Spin),
        RAMWAY_WAIT_DEFAULT | RAMWAY_WAIT_HYBRID => Ok(WaitPolicy::Hybrid),
        RAMWAY_WAIT_BLOCK => Ok(WaitPolicy::Block),
        other => {
            Err(invalid(format!("wait_policy is {other}: expected RAMWAY_WAIT_DEFAULT, _SPIN, _HYBRID or _BLOCK")))
        }
    }
}

#[inline]
pub(crate) fn wait_limit(timeout_ns: i64) -> Outcome<WaitLimit> {
    match timeout_ns {
        RAMWAY_TRY => Ok(WaitLimit::None),
        RAMWAY_FOREVER => Ok(WaitLimit::Forever),
        ..RAMWAY_TRY => Err(negative(timeout_ns)),
        _ => Ok(WaitLimit::For(Duration::from_nanos(timeout_ns as u64))),
    }
}

#[cold]
fn negative(timeout_ns: i64) -> Failure {
    invalid(format!("a time-out of {timeout_ns} ns: expected RAMWAY_FOREVER (-1), 0, which does not wait, or more"))
}

/// A time-out of a call that has no other way not to wait: `None` is forever.
pub(crate) fn limit(timeout_ns: i64) -> Outcome<Option<Duration>> {
    match timeout_ns {
        RAMWAY_FOREVER => Ok(None),
        ..RAMWAY_TRY => Err(negative(timeout_ns)),
        _ => Ok(Some(Duration::from_nanos(timeout_ns as u64))),
    }
}

/// A time-out where "forever" has to be a duration too.
pub(crate) fn duration(timeout_ns: i64) -> Outcome<Duration> {
    Ok(limit(timeout_ns)?.unwrap_or(Duration::MAX))
}

/// # Safety
/// `name` is null or a string that ends in a NUL and lives as long as the result is used.
pub(crate) unsafe fn name<'a>(name: *const c_char) -> Outcome<&'a OsStr> {
    if name.is_null() {
        return Err(null("the name"));
    }
    // SAFETY: the caller's.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}
