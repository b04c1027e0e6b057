//! Many small messages of one size as one NumPy array, either way.

use crate::args::{Timeout, calls};
use crate::endpoint::{CoreEnd, ReceiverEnd, SenderEnd, either};
use crate::errors::{OrRaise, is_ours};
use crate::ring::fetch::Kind;
use crate::ring::receiver::{Receiver, at_least_one};
use crate::ring::sender::{Sender, check_type_id};
use crate::tensor::dlpack::LARGE;
use crate::tensor::elements::{Buffer, copy_n, invalid};
use crate::tensor::numpy::{Numpy, size_of};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::several;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PySlice;
use ramway::ring::consumer::Frame;
use ramway::ring::log::Log;
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, Result, Subscriber, Topic};
use std::time::{Duration, Instant};

/// Rows are published together up to this many bytes: enough to spread what publishing costs, few enough for the receiver
/// to begin while the rest is written.
const CHUNK: usize = 8 << 10;
/// How long rows are sent before the signals are checked.
const SLICE: Duration = Duration::from_millis(10);

calls! {
    [Receiver] as slf:

    /// Up to `max` messages of `dtype`'s size as one array of one dimension, copied; at least one, for which it waits.
    ///
    /// For many small messages, of a structured dtype for example: one call instead of a loop. It ends before a message
    /// of another length; if that is the next one, InvalidArgumentError names both sizes and the message stays.
    recv_array(dtype: any, max: usize = 1024, timeout) -> Bound<'py, PyAny> {
        let (py, receiver) = (slf.py(), slf.get());
        let numpy = Numpy::get(py)?;
        let (descr, size) = numpy.resolve(dtype)?;
        at_least_one(py, max)?;
        if receiver.copies() {
            return copies(receiver, numpy, &descr, size, max, timeout);
        }
        let mut core = receiver.enter(py)?;
        let (first, number) = receiver.frame(py, &mut core, timeout)?;
        if first.len != size {
            receiver.put_back(&mut core);
            return Err(other_length(first.len, &descr, size));
        }
        let filled = (|| {
            // By the sender's position, which the core clamps to the ring's capacity: not more than can be there.
            let more = (core.used() as u64).saturating_sub(core.unreleased()) / core.frame_size(size);
            let room = max.min(usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1));
            let array = numpy.empty(py, room, &descr)?;
            // Nobody else has the array yet, so that it stays where it is after the buffer was given back.
            let to: *mut u8 = Buffer::get(&array, ffi::PyBUF_WRITABLE)?.view.buf.cast();
            // SAFETY: the first frame is held, and the array has room for `room` elements of `size` bytes.
            unsafe { to.copy_from_nonoverlapping(first.data, size) };
            let mut fill = Fill { to: to.wrapping_add(size), size, room: room - 1 };
            let end: &mut ReceiverEnd = &mut core;
            let mut fill = move || either!(end, end => fill.from(end));
            let rest = if room * size >= LARGE { py.detach(fill) } else { fill() };
            Ok((array, room, rest + 1, core.position()))
        })();
        let (array, room, count, position) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                receiver.put_back(&mut core);
                return Err(error);
            }
        };
        if count > 1 {
            // Given back first, so that the first message's end is where all end: one release.
            let rest = receiver.held.with(|held| held.push(position));
            receiver.give_back_in(&mut core, rest);
        }
        receiver.give_back_in(&mut core, number);
        // What other threads gave back while the array was filled.
        receiver.settle(&mut core);
        drop(core);
        if count == room { Ok(array) } else { array.get_item(PySlice::new(py, 0, count as isize, 1)) }
    }

    /// recv_array for asyncio: an awaitable of an array of up to `max` messages, at least one.
    recv_array_async(dtype: any, max: usize = 1024) -> Wait {
        at_least_one(slf.py(), max)?;
        // What is no dtype is refused now, not when a message is there.
        let (dtype, _) = Numpy::get(slf.py())?.resolve(dtype)?;
        several(slf, "recv_array", (dtype, max, 0.0))
    }
}

calls! {
    [Sender] as slf:

    /// Sends each row of an array (each element, if it has one dimension) as a message of its own, all with this type and
    /// tag, published in chunks, waiting for room, for all of them together up to `timeout` seconds. Gives how many.
    ///
    /// An error, TimedOutError too, is raised if it meets the first row. A later one ends the call with the number sent
    /// so far, and the next call meets it.
    send_array(array: any, type_id: u32 = 0, tag: u64 = 0, * timeout) -> usize {
        send(slf, array, 0, type_id, tag, Some(timeout))
    }

    /// send_array for asyncio: a coroutine that gives how many rows were sent. One that is cancelled has sent those
    /// before.
    send_array_async(array: any, type_id: u32 = 0, tag: u64 = 0) -> Bound<'py, PyAny> {
        slf.py().import("ramway._aio")?.getattr("send_array")?.call1((slf, array, type_id, tag))
    }
}

calls! {
    Sender as slf:

    /// Sends the rows from the given one on that there is room for; FullError if there is none. For `ramway._aio`.
    _try_send_rows(array: any, first: usize, type_id: u32, tag: u64) -> usize {
        send(slf, array, first, type_id, tag, None)
    }
}

/// The part of an array that is still to be filled.
struct Fill {
    to: *mut u8,
    size: usize,
    room: usize,
}

// SAFETY: an address in an array that only the caller has.
unsafe impl Send for Fill {}

impl Fill {
    /// Copies the messages that are there, until one of another length; gives how many. An error of the ring ends it
    /// too, and stays for the next receive.
    fn from<L: Log>(&mut self, core: &mut ramway::Receiver<L>) -> usize {
        // SAFETY: as `copy` says. A constant length is a few loads and stores.
        unsafe {
            match self.size {
                8 => self.copy(core, |from, to| copy_n::<8>(from, to)),
                16 => self.copy(core, |from, to| copy_n::<16>(from, to)),
                32 => self.copy(core, |from, to| copy_n::<32>(from, to)),
                64 => self.copy(core, |from, to| copy_n::<64>(from, to)),
                size => self.copy(core, |from, to| to.copy_from_nonoverlapping(from, size)),
            }
        }
    }

    /// The same where messages are copies; gives the length of one that ended it, too. An error, if it meets the first one.
    fn with_copies(&mut self, core: &mut Subscriber) -> Result<(usize, Option<usize>)> {
        let mut raw = core.raw();
        for count in 0..self.room {
            let (to, size) = (self.to, self.size);
            let mut other = None;
            let copied = raw.copy_if_there(|_, len| {
                if len == size {
                    return Ok(to);
                }
                other = Some(len);
                Err(size)
            });
            match copied {
                Ok(Some(_)) => self.to = self.to.wrapping_add(size),
                Ok(None) => return Ok((count, None)),
                Err(_) if count != 0 || other.is_some() => return Ok((count, other)),
                Err(e) => return Err(e),
            }
        }
        Ok((self.room, None))
    }

    /// `one` is called with a frame of `size` bytes and with room for them.
    #[inline(always)]
    fn copy<L: Log>(&mut self, core: &mut ramway::Receiver<L>, one: impl Fn(*const u8, *mut u8)) -> usize {
        let mut raw = core.raw();
        for count in 0..self.room {
            let before = raw.position();
            match raw.poll(1) {
                Ok(Some(Frame { data, len, .. })) if len == self.size => {
                    one(data, self.to);
                    self.to = self.to.wrapping_add(self.size);
                }
                Ok(Some(_)) => {
                    raw.unread(Some(before));
                    return count;
                }
                Ok(None) | Err(_) => return count,
            }
        }
        self.room
    }
}

/// `Receiver.recv_array` where messages are copies: each is copied to its place in the array.
fn copies<'py>(
    receiver: &Receiver,
    numpy: &Numpy,
    descr: &Bound<'py, PyAny>,
    size: usize,
    max: usize,
    timeout: Timeout,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let left = timeout.counting();
    loop {
        let mut core = receiver.enter(py)?;
        if !core.is_there().or_raise(py)? {
            receiver.wait_for_one(py, &mut core, left())?;
        }
        let room = max.min(usize::try_from(core.used() as u64 / core.frame_size(size)).unwrap_or(usize::MAX).max(1));
        let array = numpy.empty(py, room, descr)?;
        // Nobody else has the array yet, so that it stays where it is after the buffer was given back.
        let to: *mut u8 = Buffer::get(&array, ffi::PyBUF_WRITABLE)?.view.buf.cast();
        let mut fill = Fill { to, size, room };
        let end = Topic::end(&mut core);
        let mut fill = move || fill.with_copies(end);
        match if room * size >= LARGE { py.detach(fill) } else { fill() }.or_raise(py)? {
            // They were overwritten before they were read.
            (0, None) => {}
            (0, Some(len)) => return Err(other_length(len, descr, size)),
            (count, _) if count == room => return Ok(array),
            (count, _) => return array.get_item(PySlice::new(py, 0, count as isize, 1)),
        }
    }
}

#[cold]
fn other_length(len: usize, descr: &Bound<'_, PyAny>, size: usize) -> PyErr {
    let text = format!(
        "the next message has {len} bytes, and an element of {descr} has {size}: it stays for the next receive"
    );
    invalid(descr.py(), text)
}

/// `Sender.send_array`, from a row on; without a time-out, what there is room for.
fn send(
    slf: &Bound<'_, Sender>,
    array: &Bound<'_, PyAny>,
    first: usize,
    type_id: u32,
    tag: u64,
    timeout: Option<Timeout>,
) -> PyResult<usize> {
    let (py, sender) = (slf.py(), slf.get());
    check_type_id(py, type_id)?;
    let numpy = Numpy::get(py)?;
    let array = numpy.asarray(array)?;
    if array.getattr("ndim")?.extract::<usize>()? == 0 {
        return Err(invalid(py, "an array without dimensions has no rows: each of them is one message"));
    }
    // Only for what it refuses: the size of a row is that of its elements together.
    size_of(&array.getattr("dtype")?)?;
    let rows = array.len()?;
    if rows <= first {
        return Ok(0);
    }
    let array = numpy.ascontiguousarray(&array)?;
    let buffer = Buffer::get(&array, ffi::PyBUF_SIMPLE)?;
    let size = buffer.view.len as usize / rows;
    let from = buffer.view.buf.cast::<u8>().wrapping_add(first * size);
    let mut rest = Rows { from, size, left: rows - first, unflushed: 0, type_id, tag };
    let mut core = sender.begin(py, type_id)?;
    let end: &mut SenderEnd = &mut core;
    let large = rest.left.saturating_mul(size) >= LARGE;
    let mut send = |wait_limit| either!(&mut *end, end => rest.send(end, wait_limit));
    let outcome = if !large {
        send(WaitLimit::None)
    } else if timeout.is_none() {
        py.detach(|| send(WaitLimit::None))
    } else {
        Err(ErrorKind::Full.into())
    };
    let outcome = match (outcome, timeout) {
        (Err(e), Some(timeout)) if e.kind() == ErrorKind::Full => sender.wait_by(py, timeout, send),
        (outcome, _) => outcome.or_raise(py),
    };
    let sent = rows - first - rest.left;
    match core.flush().or_raise(py).and(outcome) {
        Err(e) if sent == 0 || !is_ours(py, &e) => Err(e),
        _ => Ok(sent),
    }
}

/// The rows that are still to be sent.
struct Rows {
    from: *const u8,
    size: usize,
    left: usize,
    unflushed: usize,
    type_id: u32,
    tag: u64,
}

// SAFETY: an address in an array whose buffer the caller keeps.
unsafe impl Send for Rows {}

impl Rows {
    /// Sends what there is room for, and waits for room within `wait_limit`; `TimedOut` also when it has been at
    /// it for a while.
    fn send<L: Log>(&mut self, core: &mut ramway::Sender<L>, wait_limit: WaitLimit) -> Result<()> {
        let began = Instant::now();
        let mut raw = core.raw();
        while self.left != 0 {
            let to = match raw.reserve(self.size, WaitLimit::None) {
                // It has published what was committed.
                Err(e) if e.kind() == ErrorKind::Full && wait_limit != WaitLimit::None => {
                    raw.reserve(self.size, wait_limit)?
                }
                room => room?,
            };
            // SAFETY: `left` rows of `size` bytes are left; as many were reserved.
            unsafe { to.copy_from_nonoverlapping(self.from, self.size) };
            self.unflushed += self.size + L::HEADER as usize;
            let flush = self.unflushed >= CHUNK;
            raw.commit(self.size, self.type_id, self.tag, flush)?;
            self.from = self.from.wrapping_add(self.size);
            self.left -= 1;
            if flush {
                self.unflushed = 0;
                if wait_limit != WaitLimit::None && self.left != 0 && began.elapsed() >= SLICE {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
        }
        Ok(())
    }
}
