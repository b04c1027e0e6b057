//! `ramway.Receiver`: the forms in which messages are received. How they come out of the ring is in `fetch.rs`.

use crate::args::{Bytes, Seconds, Timeout, calls};
use crate::endpoint::{End, Endpoint, Flag, Gil, Owner, ReceiverEnd};
use crate::errors::{self, error};
use crate::ring::fetch::Form;
use crate::ring::held::Held;
use crate::ring::hot;
use crate::ring::message::{Message, copy_of};
use crate::tensor::dlpack::copy_bytes;
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::several;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};
use ramway::{ErrorKind, WaitPolicy};

/// The receiving end of a ring. One per ring, in the whole system.
///
/// `for msg in rx` gives the messages until the sender closes; a sender that died raises PeerDeadError. A message is a
/// read-only view of the shared memory and keeps its place in the ring while it, or a view of it (memoryview, NumPy
/// array), is alive: several may be kept, and the sender waits when the ring is full of them. Only what was received
/// last, which the variable of a loop still names while the next receive waits, is moved to private memory (a copy) when
/// it takes much of the ring and nobody has a view of it.
///
/// One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C.
#[pyclass(frozen, subclass, weakref, module = "ramway")]
pub(crate) struct Receiver {
    pub(crate) endpoint: Endpoint<ReceiverEnd>,
    pub(crate) held: Gil<Held>,
    /// Up to where the ring may take its memory back, where that could not be said at once because another thread was
    /// in a call.
    pub(super) owed: Gil<Option<u64>>,
    /// Whether there is such a place.
    pub(super) owes: Flag,
    /// Whether the close was announced to the sender.
    pub(super) said_closed: Flag,
    pub(crate) writable_views: bool,
    pub(super) form: Form,
}

impl Owner for Receiver {
    type End = ReceiverEnd;

    fn endpoint(&self) -> &Endpoint<ReceiverEnd> {
        &self.endpoint
    }

    #[cold]
    fn left(&self) {
        self.finish();
    }

    #[cfg(Py_GIL_DISABLED)]
    #[inline(always)]
    fn catch_up(&self) {
        if self.owes.get()
            && let Some(mut core) = self.endpoint.try_enter_briefly()
        {
            self.settle(&mut core);
        }
    }
}

impl Receiver {
    pub(crate) fn wrap(core: ReceiverEnd, name: Option<String>, policy: WaitPolicy, writable: bool) -> Self {
        let form = match &core {
            End::Ring(_) => Form::InRing,
            End::Topic(subscriber) if subscriber.copies_out() => Form::Copies,
            End::Topic(_) => Form::InTopic,
        };
        Self {
            endpoint: Endpoint::new(core, name, policy),
            held: Gil::default(),
            owed: Gil::default(),
            owes: Flag::default(),
            said_closed: Flag::default(),
            writable_views: writable,
            form,
        }
    }

    /// Whether its messages are copies.
    pub(super) fn copies(&self) -> bool {
        self.form == Form::Copies
    }
}

calls! {
    [Receiver] as slf:

    /// The next message, also while others are held, which keep their places in the ring; waits up to `timeout` seconds for
    /// it, without one as long as it takes.
    ///
    /// Raises TimedOutError, ClosedError after the last message of a sender that closed, PeerDeadError of one that
    /// died, BusyError if messages that are still held fill the ring.
    recv(timeout) -> Py<Message> {
        Self::message_within(slf, timeout)
    }

    /// The next message, or None if there is none now. Raises ClosedError, PeerDeadError.
    try_recv() -> Option<Py<Message>> {
        Self::message_now(slf)
    }

    /// recv for asyncio: an awaitable of the next message, which is received when that is awaited. One task at a time
    /// may wait (BusyError).
    recv_async() -> Wait {
        Ok(Wait::message(slf, false))
    }

    /// A list of up to `max` messages: waits for the first one, takes what is there then.
    recv_batch(max: usize = 1024, timeout) -> Bound<'py, PyList> {
        let (py, this) = (slf.py(), slf.get());
        at_least_one(py, max)?;
        let list = PyList::empty(py);
        let first = this.held.with(|held| held.next());
        let mut message = Self::message_within(slf, timeout)?;
        loop {
            list.append(message)?;
            this.held.with(|held| held.batch_since(first));
            if list.len() == max {
                return Ok(list);
            }
            // An error of the ring ends the batch too, and stays for the next receive.
            let Some(next) = Self::message_more(slf)? else { return Ok(list) };
            message = next;
        }
    }

    /// recv_batch that does not wait: an empty list if there is no message now.
    try_recv_batch(max: usize = 1024) -> Bound<'py, PyList> {
        at_least_one(slf.py(), max)?;
        let py = slf.py();
        if slf.get().is_empty(py)? {
            return Ok(PyList::empty(py));
        }
        Ok(errors::unless(py, ErrorKind::TimedOut, Self::recv_batch(slf, max, NOW))?.unwrap_or_else(|| PyList::empty(py)))
    }

    /// recv_batch for asyncio: an awaitable of a list of up to `max` messages, at least one.
    recv_batch_async(max: usize = 1024) -> Wait {
        at_least_one(slf.py(), max)?;
        several(slf, "recv_batch", (max, 0.0))
    }

    /// The next message's bytes, copied. The message is given back at once.
    recv_bytes(timeout) -> Bound<'py, PyBytes> {
        let (py, this) = (slf.py(), slf.get());
        if this.copies() {
            return this.copy_as_bytes(py, timeout);
        }
        let mut core = this.enter(py)?;
        let (frame, number) = this.frame(py, &mut core, timeout)?;
        // SAFETY: the frame is readable until it is given back, below.
        match unsafe { copy_of(py, &frame) } {
            Ok(bytes) => {
                this.give_back_in(&mut core, number);
                Ok(bytes)
            }
            Err(e) => {
                this.put_back(&mut core);
                Err(e)
            }
        }
    }

    /// recv_bytes for asyncio: an awaitable of a copy of the next message's bytes.
    recv_bytes_async() -> Wait {
        several(slf, "recv_bytes", (0.0,))
    }

    /// Copies the next message to the start of a writable buffer; gives its length in bytes.
    ///
    /// Every byte is read once: the way to receive from a peer that may go on writing. A message that is longer than the
    /// buffer raises TooLargeError, and stays for the next receive.
    recv_into(buffer: any, timeout) -> usize {
        let (py, this) = (slf.py(), slf.get());
        let target = Bytes::writable(buffer)?;
        if this.copies() {
            return this.copy_into(py, &target, timeout);
        }
        let mut core = this.enter(py)?;
        let (frame, number) = this.frame(py, &mut core, timeout)?;
        if frame.len > target.len() {
            this.put_back(&mut core);
            let text = format!("a message of {} bytes does not fit into a buffer of {}", frame.len, target.len());
            return Err(error(py, ErrorKind::TooLarge, text));
        }
        // The frame is readable until it is given back, below; the buffer is writable and long enough.
        copy_bytes(py, frame.data, target.as_mut_ptr(), frame.len);
        this.give_back_in(&mut core, number);
        Ok(frame.len)
    }

    /// recv_into that does not wait: None if there is no message now.
    try_recv_into(buffer: any) -> Option<usize> {
        let py = slf.py();
        if slf.get().is_empty(py)? {
            return Ok(None);
        }
        errors::unless(py, ErrorKind::TimedOut, Self::recv_into(slf, buffer, NOW))
    }

    /// recv_into for asyncio: an awaitable of the length of the next message, which was copied to the start of `buffer`.
    recv_into_async(buffer: any) -> Wait {
        several(slf, "recv_into", (buffer, 0.0))
    }
}

#[pymethods]
impl Receiver {
    /// Tells the sender that nothing more will be read (it gets ClosedError where it would wait), and gives the role up
    /// when the last message and view of this receiver has gone. What was not given back stays in a named ring for the
    /// next receiver. Calls after this raise DetachedError, and so does one of another thread that waits meanwhile;
    /// closing again does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.endpoint.shut(py) {
            self.finish();
        }
        Ok(())
    }

    /// Bytes of the ring that messages still held here keep.
    #[getter]
    fn lent(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.enter(py)?.unreleased())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::messages(slf)
    }

    #[pyo3(name = "__next__")]
    pub(crate) fn next(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Message>>> {
        match Self::message_within(slf, Timeout::FOREVER) {
            Ok(message) => Ok(Some(message)),
            Err(e) if errors::is(slf.py(), &e, ErrorKind::Closed) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The messages until the sender closes. Its steps are coroutines, which the interpreter runs faster than any object
    /// of ours, because one that is done need not raise StopIteration.
    pub(crate) fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static MESSAGES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        MESSAGES.import(slf.py(), "ramway._aio", "Messages")?.call1((slf,))
    }

    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::message(slf, true)
    }

    /// The next message of an `async for`, or what to await for it.
    fn _next_or_wait<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Wait::message_or_wait(slf)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

/// As a caller's time-out of 0.
const NOW: Option<Seconds> = Some(Seconds::ZERO);

pub(crate) fn at_least_one(py: Python<'_>, max: usize) -> PyResult<()> {
    if max == 0 { Err(error(py, ErrorKind::InvalidArgument, "max=0: expected at least 1 message")) } else { Ok(()) }
}
