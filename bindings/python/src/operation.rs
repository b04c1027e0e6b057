//! What a task can wait for, and the methods of the handles that begin it.

use crate::awaitable::Wait;
use crate::errors::{self, error};
use crate::listener::Listener;
use crate::message::Message;
use crate::numpy::Numpy;
use crate::receiver::Receiver;
use crate::region::Region;
use crate::sender::Sender;
use crate::watch::Waits;
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use ramway::ErrorKind;
use std::os::fd::RawFd;

/// Seconds between two looks of a task that waits for a message and holds others: the sender may have come to wait for
/// their room.
const HOLDER_ROUND: f64 = 0.1;
/// Seconds between two looks of a task that waits for a listener: handshakes that have gone silent end in them.
const LISTENER_ROUND: f64 = 1.0;
/// Seconds between two looks of a task that waits for a peer: a name that is removed wakes nobody.
const PEER_ROUND: f64 = 0.1;

pub(crate) enum Operation {
    /// The next message; `stream`: as an `async for` wants it, which the end of the stream ends.
    Message {
        receiver: Py<Receiver>,
        stream: bool,
    },
    /// What another method of the receiver gives, the last of whose arguments is a time-out of 0.
    Several {
        receiver: Py<Receiver>,
        method: &'static str,
        arguments: Py<PyTuple>,
    },
    /// What a `try_` method of the sender gives once it does not raise FullError.
    Room {
        sender: Py<Sender>,
        method: &'static str,
        arguments: Py<PyTuple>,
    },
    /// The epoch of a peer that is attached and lives.
    Receivers {
        sender: Py<Sender>,
    },
    Senders {
        receiver: Py<Receiver>,
    },
    /// The next notification.
    Notification {
        region: Py<Region>,
    },
    /// The next bus; `stream`: as an `async for` wants it, which a closed listener ends.
    Connection {
        listener: Py<Listener>,
        stream: bool,
    },
}

impl Operation {
    /// The event loops' side of the handle.
    pub(crate) fn waits(&self) -> &Waits {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } | Self::Senders { receiver } => {
                &receiver.get().waits
            }
            Self::Room { sender, .. } | Self::Receivers { sender } => &sender.get().waits,
            Self::Notification { region } => &region.get().waits,
            Self::Connection { listener, .. } => &listener.get().waits,
        }
    }

    /// Whose operation it is.
    pub(crate) fn handle(&self) -> &Py<PyAny> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } | Self::Senders { receiver } => {
                receiver.as_any()
            }
            Self::Room { sender, .. } | Self::Receivers { sender } => sender.as_any(),
            Self::Notification { region } => region.as_any(),
            Self::Connection { listener, .. } => listener.as_any(),
        }
    }

    /// What there is now, or `None`: then the descriptor becomes readable when that changes.
    #[inline]
    pub(crate) fn attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { receiver, stream } => {
                Ok(next_message(receiver.bind(py), *stream)?.map(|message| message.into_any()))
            }
            _ => self.attempt_by_name(py),
        }
    }

    #[inline(never)]
    fn attempt_by_name(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { .. } => unreachable!("attempted by its caller"),
            Self::Several { receiver, method, arguments } => {
                if receiver.get().try_fetch(py)?.is_none() {
                    return Ok(None);
                }
                receiver.get().put_back(py)?;
                let received = receiver.bind(py).call_method1(*method, arguments)?;
                let many = matches!(*method, "recv_batch" | "recv_array");
                self.waits().took(if many { received.len()?.try_into().unwrap_or(u32::MAX) } else { 1 });
                Ok(Some(received.unbind()))
            }
            Self::Room { sender, method, arguments } => match sender.bind(py).call_method1(*method, arguments) {
                Ok(sent) => {
                    self.waits().took(1);
                    Ok(Some(sent.unbind()))
                }
                Err(e) if errors::is(py, &e, ErrorKind::Full) => Ok(None),
                Err(e) => Err(e),
            },
            Self::Receivers { sender } => epoch(py, sender.get().peer(py)?),
            Self::Senders { receiver } => epoch(py, receiver.get().peer(py)?),
            Self::Notification { region } => {
                let notified: bool = region.bind(py).call_method0(intern!(py, "try_wait"))?.extract()?;
                self.waits().took(notified.into());
                Ok(notified.then(|| py.None()))
            }
            Self::Connection { listener, stream } => {
                match listener.bind(py).call_method1(intern!(py, "accept"), (0.0,)) {
                    Ok(bus) => {
                        self.waits().took(1);
                        Ok(Some(bus.unbind()))
                    }
                    Err(e) if errors::is(py, &e, ErrorKind::TimedOut) => Ok(None),
                    Err(e) if *stream && errors::is(py, &e, ErrorKind::Detached) => {
                        Err(PyStopAsyncIteration::new_err(()))
                    }
                    Err(e) => Err(e),
                }
            }
        }
    }

    /// After so many seconds of waiting it is attempted again, whatever the descriptor says.
    pub(crate) fn round(&self) -> Option<f64> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => {
                let holds = !receiver.get().lent.with(|lent| lent.is_empty());
                holds.then_some(HOLDER_ROUND)
            }
            Self::Connection { .. } => Some(LISTENER_ROUND),
            Self::Receivers { .. } | Self::Senders { .. } => Some(PEER_ROUND),
            Self::Room { .. } | Self::Notification { .. } => None,
        }
    }

    /// An error if it would wait forever.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => receiver.get().is_stuck(py),
            _ => Ok(()),
        }
    }

    /// The descriptor that becomes readable when `attempt` has something else to say than the last `None`.
    pub(crate) fn fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle().bind(py).call_method0(intern!(py, "fileno"))?.extract()
    }

    /// The arguments of the method that it calls.
    pub(crate) fn arguments(&self) -> Option<&Py<PyTuple>> {
        match self {
            Self::Several { arguments, .. } | Self::Room { arguments, .. } => Some(arguments),
            _ => None,
        }
    }

    /// What is waited for.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Several { .. } => "messages",
            Self::Room { .. } => "room",
            Self::Receivers { .. } | Self::Senders { .. } => "peer",
            Self::Notification { .. } => "notification",
            Self::Connection { .. } => "connection",
        }
    }
}

fn epoch(py: Python<'_>, found: Option<u32>) -> PyResult<Option<Py<PyAny>>> {
    Ok(match found {
        Some(epoch) => Some(epoch.into_pyobject(py)?.into_any().unbind()),
        None => None,
    })
}

/// The next message if there is one. The end of a `stream` is StopAsyncIteration.
#[inline]
fn next_message(receiver: &Bound<'_, Receiver>, stream: bool) -> PyResult<Option<Py<Message>>> {
    let (py, this) = (receiver.py(), receiver.get());
    match this.try_fetch(py) {
        Ok(Some((frame, number))) => {
            this.waits.took(1);
            Message::make(receiver, frame, number).map(Some)
        }
        Ok(None) => Ok(None),
        Err(e) if stream && errors::is(py, &e, ErrorKind::Closed) => Err(PyStopAsyncIteration::new_err(())),
        Err(e) => Err(e),
    }
}

#[pymethods]
impl Receiver {
    /// recv for asyncio: an awaitable of the next message, which is received when that is awaited. One task at a time
    /// may wait (BusyError).
    #[inline]
    pub(crate) fn recv_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Message { receiver: slf.clone().unbind(), stream: false })
    }

    /// recv_batch for asyncio: an awaitable of a list of up to `max` messages, at least one.
    #[pyo3(signature = (max = 1024))]
    pub(crate) fn recv_batch_async(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Wait> {
        at_least_one(slf.py(), max)?;
        several(slf, "recv_batch", (max, 0.0))
    }

    /// recv_array for asyncio: an awaitable of an array of up to `max` messages, at least one.
    #[pyo3(signature = (dtype, max = 1024))]
    pub(crate) fn recv_array_async<'py>(
        slf: &Bound<'py, Self>,
        dtype: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::max)] max: usize,
    ) -> PyResult<Wait> {
        at_least_one(slf.py(), max)?;
        // What is no dtype is to be told now, not when a message is there.
        let (dtype, _) = Numpy::get(slf.py())?.resolve(&dtype)?;
        several(slf, "recv_array", (dtype, max, 0.0))
    }

    /// wait_for_peer for asyncio: an awaitable of the sender's epoch.
    fn wait_for_peer_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Senders { receiver: slf.clone().unbind() })
    }

    /// recv_bytes for asyncio: an awaitable of a copy of the next message's bytes.
    pub(crate) fn recv_bytes_async(slf: &Bound<'_, Self>) -> PyResult<Wait> {
        several(slf, "recv_bytes", (0.0,))
    }

    /// recv_into for asyncio: an awaitable of the length of the next message, which was copied to the start of `buffer`.
    pub(crate) fn recv_into_async<'py>(slf: &Bound<'py, Self>, buffer: Bound<'py, PyAny>) -> PyResult<Wait> {
        several(slf, "recv_into", (buffer, 0.0))
    }

    /// The messages until the sender closes. Its steps are coroutines, which the interpreter runs faster than any object
    /// of ours, because one that is done need not raise StopIteration.
    pub(crate) fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static MESSAGES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        MESSAGES.import(slf.py(), "ramway._aio", "Messages")?.call1((slf,))
    }

    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Message { receiver: slf.clone().unbind(), stream: true })
    }

    /// The next message of an `async for`, or what to await for it.
    fn _next_or_wait<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, waits) = (slf.py(), &slf.get().waits);
        let operation = || Operation::Message { receiver: slf.clone().unbind(), stream: true };
        let wait = if waits.is_awaited(py) || waits.is_due() {
            Wait::new(operation())
        } else {
            match next_message(slf, true)? {
                Some(message) => return Ok(message.into_bound(py).into_any()),
                None => Wait::tried(operation()),
            }
        };
        Ok(Bound::new(py, wait)?.into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(&visit)
    }
}

pub(crate) fn at_least_one(py: Python<'_>, max: usize) -> PyResult<()> {
    if max == 0 { Err(error(py, ErrorKind::InvalidArgument, "max=0: expected at least 1 message")) } else { Ok(()) }
}

fn several<'py, A>(receiver: &Bound<'py, Receiver>, method: &'static str, arguments: A) -> PyResult<Wait>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let arguments = arguments.into_pyobject(receiver.py())?.unbind();
    Ok(Wait::new(Operation::Several { receiver: receiver.clone().unbind(), method, arguments }))
}

#[pymethods]
impl Sender {
    /// send for asyncio: an awaitable that is done once `data` is sent, which happens when that is awaited. One task at
    /// a time may wait for room (BusyError).
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    pub(crate) fn send_async<'py>(
        slf: &Bound<'py, Self>,
        data: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        room(slf, "try_send", (data, type_id, tag))
    }

    /// reserve for asyncio: an awaitable of the slot.
    #[pyo3(signature = (n, type_id = 0, tag = 0))]
    pub(crate) fn reserve_async(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = crate::args::n)] n: usize,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        room(slf, "try_reserve", (n, type_id, tag))
    }

    /// wait_for_peer for asyncio: an awaitable of the receiver's epoch.
    fn wait_for_peer_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Receivers { sender: slf.clone().unbind() })
    }

    /// send_vectored for asyncio: an awaitable that is done once the message is sent.
    #[pyo3(signature = (pieces, type_id = 0, tag = 0))]
    pub(crate) fn send_vectored_async<'py>(
        slf: &Bound<'py, Self>,
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        // It may be tried several times.
        let pieces = pieces.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        room(slf, "try_send_vectored", (pieces, type_id, tag))
    }

    /// send_tensor for asyncio: an awaitable that is done once the array is sent.
    #[pyo3(signature = (array, tag = 0))]
    pub(crate) fn send_tensor_async<'py>(
        slf: &Bound<'py, Self>,
        array: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        room(slf, "try_send_tensor", (array, tag))
    }

    /// reserve_tensor for asyncio: an awaitable of the TensorSlot.
    #[pyo3(signature = (shape, dtype, tag = 0))]
    pub(crate) fn reserve_tensor_async<'py>(
        slf: &Bound<'py, Self>,
        shape: Bound<'py, PyAny>,
        dtype: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Wait> {
        room(slf, "try_reserve_tensor", (shape, dtype, tag))
    }

    /// send_batch for asyncio: a coroutine that gives how many were sent. One that is cancelled has sent those before.
    #[pyo3(signature = (messages, type_id = 0, tag = 0))]
    pub(crate) fn send_batch_async<'py>(
        slf: &Bound<'py, Self>,
        messages: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("ramway._aio")?.getattr("send_batch")?.call1((slf, messages, type_id, tag))
    }

    /// send_array for asyncio: a coroutine that gives how many rows were sent. One that is cancelled has sent those
    /// before.
    #[pyo3(signature = (array, type_id = 0, tag = 0))]
    pub(crate) fn send_array_async<'py>(
        slf: &Bound<'py, Self>,
        array: Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("ramway._aio")?.getattr("send_array")?.call1((slf, array, type_id, tag))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(&visit)
    }
}

fn room<'py, A>(sender: &Bound<'py, Sender>, method: &'static str, arguments: A) -> PyResult<Wait>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let arguments = arguments.into_pyobject(sender.py())?.unbind();
    Ok(Wait::new(Operation::Room { sender: sender.clone().unbind(), method, arguments }))
}

#[pymethods]
impl Region {
    /// wait for asyncio: an awaitable that is done after the next notification. One task at a time may wait on a handle
    /// (BusyError). Raises UnsupportedError on a read-only handle.
    pub(crate) fn wait_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Notification { region: slf.clone().unbind() })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(&visit)
    }
}

#[pymethods]
impl Listener {
    /// accept for asyncio: an awaitable of the next bus. One task at a time may wait (BusyError).
    pub(crate) fn accept_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Connection { listener: slf.clone().unbind(), stream: false })
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The buses that are accepted, until the listener is closed.
    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Connection { listener: slf.clone().unbind(), stream: true })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(&visit)
    }
}
