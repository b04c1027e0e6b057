//! What `recv_async` and its kin return: one native object that looks, waits by a [`Watch`], and looks again.
//!
//! Nothing is taken or sent before it is awaited, and nothing between the look that found it and the value's delivery:
//! one that is dropped, cancelled or timed out has done nothing. It has a coroutine's methods, so that tasks can be made
//! of it as they are of coroutines.

use crate::errors;
use crate::handle::Gil;
use crate::listener::Listener;
use crate::message::Message;
use crate::receiver::Receiver;
use crate::region::Region;
use crate::sender::Sender;
use crate::watch::{Waits, Watch, two_tasks};
use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use ramway::ErrorKind;
use std::os::fd::RawFd;

/// Between two looks of a task that waits for a listener: handshakes that have gone silent end in them.
const LISTENER_ROUND: f64 = 1.0;

/// An operation that waits, for one task to await once.
#[pyclass(frozen, module = "ramway._ramway", name = "Awaitable")]
pub(crate) struct Wait {
    operation: Operation,
    stage: Gil<Stage>,
}

#[derive(Default)]
enum Stage {
    New,
    /// The loop has its turn.
    Yielded,
    Waiting(Waiting),
    #[default]
    Done,
}

/// A wait that is under way. Ends when it is dropped.
struct Waiting {
    watch: Py<Watch>,
    timer: Option<Py<PyAny>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.watch.get().end();
        if let Some(timer) = self.timer.take() {
            // Not while the interpreter goes: no timer runs then.
            let _ = Python::try_attach(|py| timer.call_method0(py, intern!(py, "cancel")));
        }
    }
}

enum Operation {
    /// The next message; `stream`: the end of the stream ends an `async for`.
    Message { receiver: Py<Receiver>, stream: bool },
    /// A method of the receiver, with what follows the time-out of 0 in its arguments left out.
    Several { receiver: Py<Receiver>, method: &'static str, arguments: Py<PyTuple> },
    /// A `try_` method of the sender.
    Room { sender: Py<Sender>, method: &'static str, arguments: Py<PyTuple> },
    Notification { region: Py<Region> },
    Connection { listener: Py<Listener>, stream: bool },
}

impl Operation {
    fn waits(&self) -> &Waits {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => &receiver.get().waits,
            Self::Room { sender, .. } => &sender.get().waits,
            Self::Notification { region } => &region.get().waits,
            Self::Connection { listener, .. } => &listener.get().waits,
        }
    }

    fn handle(&self) -> &Py<PyAny> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => receiver.as_any(),
            Self::Room { sender, .. } => sender.as_any(),
            Self::Notification { region } => region.as_any(),
            Self::Connection { listener, .. } => listener.as_any(),
        }
    }

    /// What there is now, or `None`: then the descriptor becomes readable when that changes.
    #[inline]
    fn attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { receiver, stream } => {
                let receiver = receiver.bind(py);
                match receiver.get().try_fetch(py) {
                    Ok(Some((frame, number))) => {
                        self.waits().took(1);
                        Ok(Some(Message::make(receiver, frame, number)?.into_any()))
                    }
                    Ok(None) => Ok(None),
                    Err(e) if *stream && errors::is(py, &e, ErrorKind::Closed) => Err(PyStopAsyncIteration::new_err(())),
                    Err(e) => Err(e),
                }
            }
            _ => self.attempt_by_name(py),
        }
    }

    #[inline(never)]
    fn attempt_by_name(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { .. } => unreachable!("attempted by its caller"),
            Self::Several { receiver, method, arguments } => {
                let Some((frame, number)) = receiver.get().try_fetch(py)? else { return Ok(None) };
                receiver.get().put_back(frame, number);
                let several = receiver.bind(py).call_method1(*method, arguments)?;
                self.waits().took(several.len()?.try_into().unwrap_or(u32::MAX));
                Ok(Some(several.unbind()))
            }
            Self::Room { sender, method, arguments } => match sender.bind(py).call_method1(*method, arguments) {
                Ok(sent) => {
                    self.waits().took(1);
                    Ok(Some(sent.unbind()))
                }
                Err(e) if errors::is(py, &e, ErrorKind::Full) => Ok(None),
                Err(e) => Err(e),
            },
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

    fn round(&self) -> Option<f64> {
        matches!(self, Self::Connection { .. }).then_some(LISTENER_ROUND)
    }

    fn fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle().bind(py).call_method0(intern!(py, "fileno"))?.extract()
    }
}

/// What handles make of themselves.
impl Wait {
    #[inline]
    fn new(operation: Operation) -> Self {
        Self { operation, stage: Gil::new(Stage::New) }
    }

    /// The next message.
    #[inline]
    pub(crate) fn message(receiver: &Bound<'_, Receiver>) -> Self {
        Self::new(Operation::Message { receiver: receiver.clone().unbind(), stream: false })
    }

    /// The next message of an `async for`.
    #[inline]
    pub(crate) fn next(receiver: &Bound<'_, Receiver>) -> Self {
        Self::new(Operation::Message { receiver: receiver.clone().unbind(), stream: true })
    }

    /// What a method of the receiver gives that has `arguments`, the last of which is a time-out of 0.
    pub(crate) fn several(receiver: &Bound<'_, Receiver>, method: &'static str, arguments: &Bound<'_, PyTuple>) -> Self {
        let (receiver, arguments) = (receiver.clone().unbind(), arguments.clone().unbind());
        Self::new(Operation::Several { receiver, method, arguments })
    }

    /// What a `try_` method of the sender gives once it does not raise FullError.
    pub(crate) fn room(sender: &Bound<'_, Sender>, method: &'static str, arguments: &Bound<'_, PyTuple>) -> Self {
        let (sender, arguments) = (sender.clone().unbind(), arguments.clone().unbind());
        Self::new(Operation::Room { sender, method, arguments })
    }

    /// The next notification.
    pub(crate) fn notification(region: &Bound<'_, Region>) -> Self {
        Self::new(Operation::Notification { region: region.clone().unbind() })
    }

    /// The next bus; `stream`: of an `async for`, which a closed listener ends.
    pub(crate) fn connection(listener: &Bound<'_, Listener>, stream: bool) -> Self {
        Self::new(Operation::Connection { listener: listener.clone().unbind(), stream })
    }

    /// What the next look leads to: the value, or what to yield to the loop.
    #[inline]
    fn step(&self, py: Python<'_>) -> PyResult<Step> {
        match self.stage.replace(Stage::Done) {
            Stage::New => {
                let waits = self.operation.waits();
                if waits.is_awaited() {
                    return Err(two_tasks(py));
                }
                if waits.is_loops_turn() {
                    self.stage.set(Stage::Yielded);
                    return Ok(Step::Yield(py.None()));
                }
            }
            Stage::Yielded => {
                if self.operation.waits().is_awaited() {
                    return Err(two_tasks(py));
                }
            }
            Stage::Waiting(waiting) => drop(waiting),
            Stage::Done => return Err(PyRuntimeError::new_err("cannot reuse an awaitable that was awaited already")),
        }
        match self.operation.attempt(py)? {
            Some(value) => Ok(Step::Value(value)),
            None => self.wait(py),
        }
    }

    #[inline(never)]
    fn wait(&self, py: Python<'_>) -> PyResult<Step> {
        let (watch, new) = self.operation.waits().watch(py, || self.operation.fd(py))?;
        // A descriptor is readable until a look with it there has found nothing.
        if new && let Some(value) = self.operation.attempt(py)? {
            return Ok(Step::Value(value));
        }
        Watch::begin(watch.bind(py))?;
        let mut waiting = Waiting { watch: watch.clone_ref(py), timer: None };
        if let Some(round) = self.operation.round() {
            waiting.timer = Some(Watch::look_in(watch.bind(py), round)?);
        }
        self.stage.set(Stage::Waiting(waiting));
        Ok(Step::Yield(watch.into_any()))
    }
}

enum Step {
    Value(Py<PyAny>),
    Yield(Py<PyAny>),
}

#[pymethods]
impl Wait {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.step(py)? {
            Step::Yield(to_the_loop) => Ok(to_the_loop),
            // A tuple would be taken for the exception's arguments.
            Step::Value(value) if value.bind(py).is_instance_of::<PyTuple>() => Err(PyStopIteration::new_err((value,))),
            Step::Value(value) => Err(PyStopIteration::new_err(value)),
        }
    }

    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(py)
    }

    /// Ends it with an exception: nothing was taken or sent.
    #[pyo3(signature = (kind, value = None, traceback = None, /))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        drop(self.stage.replace(Stage::Done));
        let py = kind.py();
        let exception = match (kind.cast::<PyType>(), value) {
            (Err(_), _) => kind.clone(),
            (Ok(_), Some(value)) if value.is_instance(kind)? => value.clone(),
            (Ok(class), Some(value)) => class.call1((value,))?,
            (Ok(class), None) => class.call0()?,
        };
        if !exception.is_instance_of::<pyo3::exceptions::PyBaseException>() {
            return Err(PyTypeError::new_err("exceptions must be classes or instances deriving from BaseException"));
        }
        if let Some(traceback) = traceback {
            exception.setattr(intern!(py, "__traceback__"), traceback)?;
        }
        Err(PyErr::from_value(exception))
    }

    /// Gives it up: nothing was taken or sent.
    fn close(&self) {
        drop(self.stage.replace(Stage::Done));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.operation.handle())?;
        match &self.operation {
            Operation::Several { arguments, .. } | Operation::Room { arguments, .. } => visit.call(arguments)?,
            _ => {}
        }
        self.stage.with(|stage| match stage {
            Stage::Waiting(waiting) => visit.call(&waiting.watch).and_then(|()| visit.call(&waiting.timer)),
            _ => Ok(()),
        })
    }

    fn __clear__(&self) {
        self.close();
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let what = match &self.operation {
            Operation::Message { .. } => "message",
            Operation::Several { .. } => "messages",
            Operation::Room { .. } => "room",
            Operation::Notification { .. } => "notification",
            Operation::Connection { .. } => "connection",
        };
        Ok(format!("<ramway awaitable: {what} of {}>", self.operation.handle().bind(py).repr()?))
    }
}
