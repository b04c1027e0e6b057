//! Waiting for many sources at once.

use crate::bus::{listener, ramway_listener};
use crate::either::{Either, each};
use crate::exclusive::Exclusive;
use crate::options::{RAMWAY_TRY, limit, wait_policy};
use crate::receiver::{ReceiverHandle, ramway_receiver};
use crate::region::{ramway_region, region};
use crate::sender::{SenderHandle, array, ramway_sender};
use crate::status::{Failure, Outcome, give, guard, guard_hot, invalid, null, ramway_status};
use ramway_core::ring::producer::NO_SLOT;
use ramway_core::{ErrorKind, Readable, Receiver, Region, Ring, Room, Select, Source, Subscriber, Topic};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Waits for any of many sources at once: messages, room, notifications, connections, descriptors. It keeps nothing of them
/// between two calls but who was served last, by index.
///
/// `ramway_select_wake` is for any thread. While one thread is in another call, a second one gets `RAMWAY_BUSY`.
#[derive(Debug)]
pub struct ramway_select {
    _private: (),
}

/// Kind of a source: a receiver or a subscriber, ready when `ramway_recv` with `RAMWAY_TRY` has something else to say than
/// `RAMWAY_EMPTY`.
pub const RAMWAY_SOURCE_RECEIVER: u32 = 1;
/// Kind of a source: a sender or a publisher, ready when `ramway_reserve` of `len` bytes with `RAMWAY_TRY` has something else to
/// say than `RAMWAY_FULL`.
pub const RAMWAY_SOURCE_ROOM: u32 = 2;
/// Kind of a source: a region, ready when `ramway_region_wait` with `RAMWAY_TRY` has something else to say than `RAMWAY_EMPTY`.
pub const RAMWAY_SOURCE_REGION: u32 = 3;
/// Kind of a source: a listener, ready when `ramway_listener_accept` with `RAMWAY_TRY` is worth a call.
pub const RAMWAY_SOURCE_LISTENER: u32 = 4;
/// Kind of a source: a descriptor of any kind, ready when it is readable, or has an error or a hang-up.
pub const RAMWAY_SOURCE_FD: u32 = 5;

/// What `ramway_select_wait` waits for: made by `ramway_source_receiver` and its siblings, so that the compiler checks that the
/// handle is of the kind. It may be used again and again, as long as the handle is open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_source {
    /// `RAMWAY_SOURCE_RECEIVER` and so on.
    pub kind: u32,
    /// With `RAMWAY_SOURCE_FD`: the descriptor.
    pub fd: c_int,
    /// With the other kinds: the handle.
    pub handle: *mut c_void,
    /// With `RAMWAY_SOURCE_ROOM`: the bytes of payload that there shall be room for.
    pub len: usize,
}

/// Whether a handle is among the sources of a wait. Loads and stores only: it finds a handle that is named twice, and another
/// thread's wait that has begun, which is the mistake that is made.
#[derive(Debug, Default)]
pub(crate) struct Waited(AtomicBool);

impl Waited {
    fn begin(&self) -> bool {
        // Relaxed: nothing is ordered by it.
        !self.0.load(Ordering::Relaxed) && {
            self.0.store(true, Ordering::Relaxed);
            true
        }
    }

    fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A source as the core takes it.
enum Given<'a> {
    Receiver(&'a mut Receiver),
    Subscriber(&'a mut Subscriber),
    Room(Room<'a, Ring>),
    PublishersRoom(Room<'a, Topic>),
    Region(&'a Region),
    Descriptor(Readable<'a>),
}

impl Given<'_> {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Receiver(receiver) => *receiver,
            Self::Subscriber(subscriber) => *subscriber,
            Self::Room(room) => room,
            Self::PublishersRoom(room) => room,
            Self::Region(region) => region,
            Self::Descriptor(readable) => readable,
        }
    }
}

/// What is inside of a `ramway_select`.
struct Inside {
    select: Select,
    /// Empty between calls: kept for their memory.
    given: Vec<Given<'static>>,
    sources: Vec<&'static mut dyn Source>,
}

type SelectHandle = Exclusive<Inside>;

/// # Safety
/// `handle` is null or open.
unsafe fn from<'a>(handle: *const ramway_select) -> Outcome<&'a SelectHandle> {
    // SAFETY: handles are made by `ramway_select_new` only.
    unsafe { handle.cast::<SelectHandle>().as_ref() }.ok_or_else(|| null("the select"))
}

/// The memory of an empty vector, for elements of another lifetime. (Collecting in place allocates nothing.)
fn reuse<A, B>(mut empty: Vec<A>) -> Vec<B> {
    empty.clear();
    empty.into_iter().map(|_| unreachable!("it is empty")).collect()
}

/// The sources of a call that are said to be in a wait; they are not any more when this goes.
struct InWait<'a> {
    sources: &'a [ramway_source],
}

impl ramway_source {
    /// The sign of a handle that is one thread's.
    ///
    /// # Safety
    /// `handle` is of the kind, and open or null.
    unsafe fn waited<'a>(&self) -> Option<&'a Waited> {
        // SAFETY: the caller's. By the field's place, without a reference to the whole: another thread's may exist.
        unsafe {
            match self.kind {
                _ if self.handle.is_null() => None,
                RAMWAY_SOURCE_RECEIVER => Some(&(*self.handle.cast::<ReceiverHandle>()).waited),
                RAMWAY_SOURCE_ROOM => Some(&(*self.handle.cast::<SenderHandle>()).waited),
                _ => None,
            }
        }
    }

    /// Adds the core's source. (A result that carried one would take its way through memory: 10 ns more for each.)
    ///
    /// # Safety
    /// `handle` is null, or of the kind, open, and not used by anybody else while `'a` lasts; `fd` stays open.
    #[inline]
    unsafe fn give<'a>(&self, to: &mut Vec<Given<'a>>) -> Outcome {
        // SAFETY: the caller's.
        unsafe {
            match self.kind {
                RAMWAY_SOURCE_RECEIVER => {
                    let receiver = &mut ReceiverHandle::from(self.handle.cast::<ramway_receiver>())?.receiver;
                    if each!(receiver, receiver => (*receiver.raw().hot()).has_unreleased()) {
                        return Err(busy("a message of this receiver is not released: call ramway_release first"));
                    }
                    match receiver {
                        Either::Ring(receiver) => to.push(Given::Receiver(receiver)),
                        Either::Topic(subscriber) => to.push(Given::Subscriber(subscriber)),
                    }
                }
                RAMWAY_SOURCE_ROOM => {
                    let sender = &mut SenderHandle::from(self.handle.cast::<ramway_sender>())?.sender;
                    if each!(sender, sender => (*sender.raw().hot()).slot != NO_SLOT) {
                        return Err(busy("a slot of this sender is open: commit it or abort it first"));
                    }
                    match sender {
                        Either::Ring(sender) => to.push(Given::Room(sender.room(self.len))),
                        Either::Topic(publisher) => to.push(Given::PublishersRoom(publisher.room(self.len))),
                    }
                }
                RAMWAY_SOURCE_REGION => to.push(Given::Region(region(self.handle.cast::<ramway_region>())?)),
                RAMWAY_SOURCE_LISTENER => {
                    let listener = &listener(self.handle.cast::<ramway_listener>())?.listener;
                    to.push(Given::Descriptor(Readable(listener.as_fd())));
                }
                RAMWAY_SOURCE_FD if self.fd >= 0 => {
                    to.push(Given::Descriptor(Readable(BorrowedFd::borrow_raw(self.fd))));
                }
                _ => return Err(self.unknown()),
            }
        }
        Ok(())
    }

    #[cold]
    fn unknown(&self) -> Failure {
        invalid(match self.kind {
            RAMWAY_SOURCE_FD => format!("a descriptor of {}: expected an open one", self.fd),
            other => format!(
                "a kind of {other}: expected RAMWAY_SOURCE_RECEIVER, _ROOM, _REGION, _LISTENER or _FD, as \
                 ramway_source_receiver and its siblings set it"
            ),
        })
    }
}

#[cold]
fn busy(text: impl Into<String>) -> Failure {
    Failure::Own(ramway_status::RAMWAY_BUSY, text.into())
}

/// Says which source it is about.
#[cold]
fn of_source(index: usize, failure: Failure) -> Failure {
    match failure {
        Failure::Own(status, text) => Failure::Own(status, format!("source {index}: {text}")),
        other => other,
    }
}

impl<'a> InWait<'a> {
    /// Turns each of the sources into the core's.
    ///
    /// # Safety
    /// As for [`ramway_source::give`].
    unsafe fn begin(sources: &'a [ramway_source], given: &mut Vec<Given<'a>>) -> Outcome<Self> {
        let mut begun = Self { sources: &[] };
        given.reserve(sources.len());
        for (index, source) in sources.iter().enumerate() {
            // SAFETY: the caller's.
            if unsafe { source.waited() }.is_some_and(|waited| !waited.begin()) {
                let text = "this handle is waited for already: it is named twice, or another thread waits for it";
                return Err(of_source(index, busy(text)));
            }
            begun.sources = &sources[..=index];
            // SAFETY: the caller's; and no handle that is used alone is named twice.
            unsafe { source.give(given) }.map_err(|failure| of_source(index, failure))?;
        }
        Ok(begun)
    }
}

impl Drop for InWait<'_> {
    fn drop(&mut self) {
        for source in self.sources {
            // SAFETY: they are open until the call returns.
            if let Some(waited) = unsafe { source.waited() } {
                waited.end();
            }
        }
    }
}

/// A receiver or a subscriber, for `ramway_select_wait`: ready when `ramway_recv` has something to say.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_source_receiver(receiver: *mut ramway_receiver) -> ramway_source {
    ramway_source { kind: RAMWAY_SOURCE_RECEIVER, fd: -1, handle: receiver.cast(), len: 0 }
}

/// Room for a message of `len` bytes in a sender or a publisher, for `ramway_select_wait`.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_source_room(sender: *mut ramway_sender, len: usize) -> ramway_source {
    ramway_source { kind: RAMWAY_SOURCE_ROOM, fd: -1, handle: sender.cast(), len }
}

/// A region, for `ramway_select_wait`: ready when somebody has notified. Any number of threads may wait for one.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_source_region(region: *const ramway_region) -> ramway_source {
    ramway_source { kind: RAMWAY_SOURCE_REGION, fd: -1, handle: region.cast_mut().cast(), len: 0 }
}

/// A listener, for `ramway_select_wait`: ready when `ramway_listener_accept` is worth a call. Any number of threads may wait for
/// one.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_source_listener(listener: *const ramway_listener) -> ramway_source {
    ramway_source { kind: RAMWAY_SOURCE_LISTENER, fd: -1, handle: listener.cast_mut().cast(), len: 0 }
}

/// An open descriptor of any kind, for `ramway_select_wait`: ready when it is readable, or has an error or a hang-up.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn ramway_source_fd(fd: c_int) -> ramway_source {
    ramway_source { kind: RAMWAY_SOURCE_FD, fd, handle: std::ptr::null_mut(), len: 0 }
}

/// Makes a select. On failure `*out` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_select_new(out: *mut *mut ramway_select) -> ramway_status {
    let new = || {
        let select = Select::new();
        let waker = select.waker();
        let inside = Inside { select, given: Vec::new(), sources: Vec::new() };
        Ok(Box::into_raw(Box::new(Exclusive::new(inside, waker))).cast())
    };
    // SAFETY: the caller's.
    guard(|| unsafe { give(out, new) })
}

/// Frees the handle. The sources that it waited for are not touched.
///
/// `RAMWAY_BUSY` (and nothing happens) while another thread is in a call on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_select_free(select: *mut ramway_select) -> ramway_status {
    guard(|| {
        if select.is_null() {
            return Err(null("the select"));
        }
        // SAFETY: made by `ramway_select_new`, and given up by the caller.
        unsafe { Exclusive::free(select.cast::<SelectHandle>(), "the select") }
    })
}

/// How this handle waits from now on: `RAMWAY_WAIT_SPIN` and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_select_set_wait_policy(select: *mut ramway_select, policy: u32) -> ramway_status {
    guard(|| {
        // SAFETY: the caller's.
        unsafe { from(select) }?.enter("the select")?.select.set_wait_policy(wait_policy(policy)?);
        Ok(())
    })
}

/// Waits until one of the `count` sources is ready, and puts the indices of all that are ready then into `ready`, which has
/// room for `count`; `*ready_count` is how many. A message, room, a close and a death (within 200 ms) make a source ready: then
/// make the call that does not wait. The one that came first in the last answer comes last. While some have messages, room or
/// news, the end of another, or a descriptor, may be left out of up to 15 answers in a row.
///
/// It checks all of them for a bounded time, then sleeps once for all. `timeout_ns` as in `ramway_recv`. The handles are used
/// as if this thread called each of them, until it returns, and as always after that: closing one between two calls is fine.
/// The same index should mean the same source from call to call, for the order.
///
/// `RAMWAY_EMPTY` (`RAMWAY_TRY` only) and `RAMWAY_TIMED_OUT` if none is ready; `RAMWAY_INTERRUPTED` by `ramway_select_wake`;
/// `RAMWAY_BUSY` for a receiver with messages that are not released, a sender with an open slot, a handle that is named twice,
/// that another thread waits for, or that has a readiness descriptor (wait by that), and for a select that another thread
/// uses; `RAMWAY_INVALID_ARGUMENT` for no source and `RAMWAY_FOREVER`; `RAMWAY_DETACHED`. `*ready_count` is then 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_select_wait(
    select: *mut ramway_select,
    sources: *const ramway_source,
    count: usize,
    timeout_ns: i64,
    ready: *mut usize,
    ready_count: *mut usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let ready_count = unsafe { ready_count.as_mut() }.ok_or_else(|| null("ready_count"))?;
        *ready_count = 0;
        // SAFETY: the caller's.
        let (handle, sources) = unsafe { (from(select)?, array(sources, count, "sources")?) };
        if ready.is_null() && count != 0 {
            return Err(null("ready"));
        }
        let timeout = limit(timeout_ns)?;
        let mut entered = handle.enter("the select")?;
        let inside = &mut *entered;
        let mut given: Vec<Given<'_>> = reuse(std::mem::take(&mut inside.given));
        let mut taken: Vec<&mut dyn Source> = reuse(std::mem::take(&mut inside.sources));
        // SAFETY: the caller's.
        let answer = unsafe { InWait::begin(sources, &mut given) }.and_then(|in_wait| {
            taken.extend(given.iter_mut().map(|given| given.source()));
            let found = inside.select.wait(&mut taken, timeout)?;
            // SAFETY: the caller's: room for `count`, and each index comes once.
            unsafe { ready.copy_from_nonoverlapping(found.as_ptr(), found.len()) };
            *ready_count = found.len();
            drop(in_wait);
            Ok(())
        });
        inside.sources = reuse(taken);
        inside.given = reuse(given);
        answer?;
        match *ready_count {
            0 if timeout_ns == RAMWAY_TRY => Err(ErrorKind::Empty.into()),
            0 => Err(ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    })
}

/// Any thread, and a signal handler, while the handle is open: the `ramway_select_wait` that waits now, or, if none does, the
/// next one that would, returns `RAMWAY_INTERRUPTED`, unless a source is ready. Several calls before that end one wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_select_wake(select: *const ramway_select) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        unsafe { from(select) }?.wake();
        Ok(())
    })
}
