//! `ramway.select`, `ramway.Select` and `ramway.Room`: waiting for many sources at once.

use crate::args::{Policy, Seconds, Timeout};
use crate::errors::{error, is};
use crate::many::member::{self, Member};
use crate::ring::sender::Sender;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use ramway::{ErrorKind, SelectWaker};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

thread_local! {
    /// What `select` waits by: made anew it would cost as much as a sleep.
    static ONE: Cell<Option<ramway::Select>> = const { Cell::new(None) };
}

/// Room for a message of a certain size in a sender or publisher, for select: made by Sender.room.
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Room {
    pub(crate) sender: Py<Sender>,
    pub(crate) len: usize,
}

#[pymethods]
impl Room {
    /// The sender.
    #[getter]
    fn sender(&self, py: Python<'_>) -> Py<Sender> {
        self.sender.clone_ref(py)
    }

    /// For how many bytes.
    fn __len__(&self) -> usize {
        self.len
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sender)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let sender = slf.get().sender.bind(slf.py()).repr()?;
        Ok(format!("<ramway.Room for {} bytes in {sender}>", slf.get().len))
    }
}

#[pymethods]
impl Sender {
    /// Room for a message of `n` bytes, for select: ready when try_reserve(n) has something else to say than FullError.
    #[pyo3(name = "room")]
    fn room_for(slf: &Bound<'_, Self>, #[pyo3(from_py_with = crate::args::n)] n: usize) -> Room {
        Room { sender: slf.clone().unbind(), len: n }
    }
}

/// A core wait that one thread at a time uses.
pub(crate) struct Waiter {
    select: Mutex<ramway::Select>,
    waker: SelectWaker,
}

impl Waiter {
    pub(crate) fn new(policy: Policy) -> Self {
        let mut select = ramway::Select::new();
        select.set_wait_policy(policy.0);
        Self { waker: select.waker(), select: Mutex::new(select) }
    }

    /// Ends the wait that is running, or the next one.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// # Errors
    /// `Busy` if another thread waits by it.
    pub(crate) fn enter(&self, py: Python<'_>, what: &str) -> PyResult<MutexGuard<'_, ramway::Select>> {
        match self.select.try_lock() {
            Ok(select) => Ok(select),
            Err(TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => {
                let text = format!("another thread is in a call of this {what}, which only one at a time may use");
                Err(error(py, ErrorKind::Busy, text))
            }
        }
    }
}

/// Waits until one of `sources` is ready, for at most `timeout` seconds (None, the default: as long as it takes; 0: not at
/// all), and gives a list of those that are ready then: the objects that were given, empty if the time passed.
///
/// A source is a Receiver, a Subscriber or a Bus (ready when its try_recv gives something else than None: a message, or how the
/// stream ended, within 200 ms), `sender.room(n)` of a Sender or Publisher (ready when a message of n bytes fits), a Region
/// (when its try_wait says True), a Listener or an Inbox, a descriptor or any object with a fileno() (when it is readable, or has
/// an error or a hang-up). Of several that are ready, the one that came first in this thread's last answer comes last, where the
/// list is the same. While sources of the last answer are ready again, an answer may leave others out: one with a message, room or a
/// notification for up to 15 answers in a row, if there are more than 8 sources; one that has ended, or a descriptor, for up to 15,
/// or as many as there are sources if these are more.
///
/// It checks all for a bounded time, then sleeps once for all of them, while other threads run; Ctrl-C and other signals' handlers
/// run within 100 ms. Up to 8 sources without a descriptor are slept on by futex_waitv, others by an io_uring; where the system
/// refuses both, it checks every millisecond. The sources are in use meanwhile: another thread's call of one is BusyError. Any
/// number of threads may be in select, each with sources of its own.
///
/// Raises DetachedError if a source is closed, or is closed meanwhile (within 100 ms), InvalidArgumentError if a source is named
/// twice, or none is and there is no timeout, TypeError for what cannot be waited for.
#[pyfunction]
#[pyo3(signature = (sources, timeout = None))]
pub(crate) fn select<'py>(sources: &Bound<'py, PyAny>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyList>> {
    let py = sources.py();
    let mut objects = Vec::with_capacity(sources.len().unwrap_or(0));
    let mut members = Vec::with_capacity(objects.capacity());
    for object in sources.try_iter()? {
        let object = object?;
        members.push(Member::of(&object)?);
        objects.push(object);
    }
    // A handler of a signal may select too: it finds none, and makes one.
    let mut one = ONE.take().unwrap_or_default();
    let timeout = Timeout::from(timeout);
    let mut ready = member::wait(py, &mut one, members.iter(), timeout);
    if let Err(e) = &ready
        && is(py, e, ErrorKind::Detached)
    {
        // One of before a fork. If it is a source that is closed, that is found once more.
        one = ramway::Select::new();
        ready = member::wait(py, &mut one, members.iter(), timeout);
    }
    ONE.set(Some(one));
    PyList::new(py, ready?.into_iter().map(|index| &objects[index]))
}

/// Waits for the same sources again and again: `Select(sources, wait='hybrid')`. What select does with a list, without taking the
/// list apart at each call, with a fair order of its own, and with a way for another thread to end a wait.
///
/// `wait` is how it waits ('spin', 'hybrid', 'block'). One thread at a time may be in `wait` (BusyError); `wake` is for any
/// thread. It keeps its sources alive, and closes none of them.
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Select {
    sources: Vec<(Py<PyAny>, Member)>,
    waiter: Waiter,
}

#[pymethods]
impl Select {
    #[new]
    #[pyo3(signature = (sources, *, wait = Policy::HYBRID), text_signature = "(sources, *, wait='hybrid')")]
    fn new(sources: &Bound<'_, PyAny>, wait: Policy) -> PyResult<Self> {
        let mut list = Vec::new();
        for object in sources.try_iter()? {
            let object = object?;
            let member = Member::of(&object)?;
            list.push((object.unbind(), member));
        }
        Ok(Self { sources: list, waiter: Waiter::new(wait) })
    }

    /// Waits until one of the sources is ready, for at most `timeout` seconds (None: as long as it takes; 0: not at all), and
    /// gives a list of those that are: see select. Of several, the one that came first in the last answer comes last.
    ///
    /// Raises what select does, and WaitInterruptedError after `wake`.
    #[pyo3(signature = (timeout = None))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyList>> {
        let mut select = self.waiter.enter(py, "Select")?;
        let members = self.sources.iter().map(|(_, member)| member);
        let ready = member::wait(py, &mut select, members, timeout.into())?;
        PyList::new(py, ready.into_iter().map(|index| &self.sources[index].0))
    }

    /// Ends the wait that is running, or, if none is, the next one, with WaitInterruptedError, unless something is ready. Several
    /// calls before that end one wait. From any thread; never blocks.
    fn wake(&self) {
        self.waiter.wake();
    }

    /// The sources, as they were given.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.sources.iter().map(|(object, _)| object))
    }

    /// For annotations: what its sources are.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.getattr("GenericAlias")?.call1((class, of))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (object, member) in &self.sources {
            visit.call(object)?;
            member.traverse(&visit)?;
        }
        Ok(())
    }
}
