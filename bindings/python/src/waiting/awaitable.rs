//! What `recv_async` and the other `_async` methods return: one native object that attempts its operation, waits by a [`Watch`], and
//! attempts it again.
//!
//! Nothing is taken or sent before it is awaited, and nothing between the attempt that succeeds and the delivery of the
//! value: one that is dropped, cancelled or timed out has done nothing. It has a coroutine's methods, so that tasks can be made
//! of it as they are of coroutines.

use crate::endpoint::Gil;
use crate::errors::beside_any;
use crate::ring::receiver::Receiver;
use crate::waiting::operation::{Operation, TIMED_INTERVAL, next_message};
use crate::waiting::watch::{Watch, two_tasks};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::CString;

/// An operation that waits, for one task to await once.
#[pyclass(frozen, module = "ramway._ramway", name = "Awaitable")]
pub(crate) struct Wait {
    operation: Operation,
    stage: Gil<Stage>,
}

#[derive(Default)]
enum Stage {
    New,
    /// It was attempted just now, and there was nothing.
    Tried,
    /// It has yielded to the loop.
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
            let _ = Python::try_attach(|py| beside_any(py, || timer.call_method0(py, intern!(py, "cancel"))));
        }
    }
}

impl Wait {
    #[inline]
    pub(crate) fn new(operation: Operation) -> Self {
        Self { operation, stage: Gil::new(Stage::New) }
    }

    /// The next message; `stream`: as an `async for` wants it.
    #[inline]
    pub(crate) fn message(receiver: &Bound<'_, Receiver>, stream: bool) -> Self {
        Self::new(Operation::Message { receiver: receiver.clone().unbind(), stream })
    }

    /// The next message of an `async for`, or what to await for it.
    pub(crate) fn message_or_wait<'py>(receiver: &Bound<'py, Receiver>) -> PyResult<Bound<'py, PyAny>> {
        let (py, waits) = (receiver.py(), &receiver.get().endpoint.waits);
        let wait = if waits.is_awaited(py) || waits.must_yield() {
            Self::message(receiver, true)
        } else {
            match next_message(receiver, true)? {
                Some(message) => return Ok(message.into_bound(py).into_any()),
                None => {
                    let wait = Self::message(receiver, true);
                    wait.stage.set(Stage::Tried);
                    wait
                }
            }
        };
        Ok(Bound::new(py, wait)?.into_any())
    }

    /// What the next attempt leads to: the value, or what to yield to the loop.
    fn step(&self, py: Python<'_>) -> PyResult<Step> {
        match self.stage.replace(Stage::Done) {
            Stage::New => {
                let waits = self.operation.waits();
                if waits.is_awaited(py) {
                    return Err(two_tasks(py));
                }
                if waits.takes_yield() {
                    self.stage.set(Stage::Yielded);
                    return Ok(Step::Yield(py.None()));
                }
            }
            Stage::Yielded => {
                if self.operation.waits().is_awaited(py) {
                    return Err(two_tasks(py));
                }
            }
            Stage::Tried => return self.wait(py),
            Stage::Waiting(waiting) => drop(waiting),
            Stage::Done => return Err(PyRuntimeError::new_err("cannot reuse an awaitable that was awaited already")),
        }
        match self.operation.attempt(py)? {
            Some(value) => Ok(Step::Value(value)),
            None => self.wait(py),
        }
    }

    fn shown(&self, py: Python<'_>) -> String {
        let whose = self.operation.handle().bind(py).repr().map(|text| text.to_string());
        format!("<ramway awaitable: {} of {}>", self.operation.what(), whose.unwrap_or_default())
    }

    #[inline(never)]
    fn wait(&self, py: Python<'_>) -> PyResult<Step> {
        self.operation.check(py)?;
        let (watch, new) = self.operation.waits().watch(py, || self.operation.fd(py))?;
        if new {
            self.operation.tell_of_close(py, &watch);
        }
        // A descriptor is readable until an attempt made after it existed has found nothing.
        if new && let Some(value) = self.operation.attempt(py)? {
            return Ok(Step::Value(value));
        }
        Watch::begin(watch.bind(py))?;
        let mut waiting = Waiting { watch: watch.clone_ref(py), timer: None };
        let timed = watch.get().is_timed().then_some(TIMED_INTERVAL);
        if let Some(seconds) = timed.or_else(|| self.operation.poll_interval()) {
            waiting.timer = Some(Watch::fire_in(watch.bind(py), seconds)?);
        }
        self.stage.set(Stage::Waiting(waiting));
        Ok(Step::Yield(watch.into_any()))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !matches!(self.stage.replace(Stage::Done), Stage::New) {
            return;
        }
        // As a coroutine that nobody awaited says: nothing was taken or sent.
        let _ = Python::try_attach(|py| {
            beside_any(py, || {
                let text = format!("{} was never awaited", self.shown(py));
                let warned = CString::new(text)
                    .map_err(PyErr::from)
                    .and_then(|text| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1));
                if let Err(raised) = warned {
                    raised.write_unraisable(py, None);
                }
            })
        });
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
            // Made here: a PyErr that is made when it is raised costs more.
            Step::Value(value) => Err(PyErr::from_value(py.get_type::<PyStopIteration>().call1((value,))?)),
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
        if let Some(arguments) = self.operation.arguments() {
            visit.call(arguments)?;
        }
        self.stage.with(|stage| match stage {
            Stage::Waiting(waiting) => visit.call(&waiting.watch).and_then(|()| visit.call(&waiting.timer)),
            _ => Ok(()),
        })
    }

    fn __clear__(&self) {
        self.close();
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.shown(py)
    }
}
