//! One descriptor in one asyncio loop, and the task that waits for it.
//!
//! A [`Watch`] is what the waiting task awaits: to asyncio a future that becomes done again and again. Its descriptor is
//! a duplicate, so that it can leave the loop after its handle was closed, by any thread, before another descriptor gets
//! its number. It stays registered from wait to wait; an event that finds nobody waiting takes it
//! out of the loop.

use crate::endpoint::Gil;
use crate::errors::{beside_any, error};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use ramway::ErrorKind;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Results that a handle's tasks may take in a row before they yield to the loop, which costs 3 µs: 0.03 µs a message.
const IN_A_ROW: u32 = 128;

/// What a handle has to do with asyncio. Dropped or closed, it tells the task that waits and leaves the loop.
#[derive(Default)]
pub(crate) struct Waits {
    watch: Gil<Option<Py<Watch>>>,
    /// Results since a task last yielded to the loop.
    in_a_row: Gil<u32>,
    /// Those of others that wait for this handle too, among many: they are told of its close.
    others: Gil<Vec<Py<Watch>>>,
}

impl Waits {
    /// Whether a task waits for the handle: then no other one may try.
    #[inline]
    pub(crate) fn is_awaited(&self, py: Python<'_>) -> bool {
        self.watch.with(|watch| watch.as_ref().is_some_and(|watch| watch.get().is_awaited())) && !self.is_abandoned(py)
    }

    /// Whether it waits in a loop that was closed: it never goes on. Forgets it then.
    #[cold]
    fn is_abandoned(&self, py: Python<'_>) -> bool {
        let known = self.watch.with(|watch| watch.as_ref().map(|watch| watch.clone_ref(py)));
        let abandoned = known.is_some_and(|watch| {
            let closed = watch.get().event_loop.call_method0(py, intern!(py, "is_closed"));
            closed.and_then(|closed| closed.is_truthy(py)).unwrap_or(false)
        });
        if abandoned {
            drop(self.watch.replace(None));
        }
        abandoned
    }

    /// Whether the next task is to yield to the loop.
    #[inline]
    pub(crate) fn must_yield(&self) -> bool {
        self.in_a_row.get() >= IN_A_ROW
    }

    /// Whether the task is to yield to the loop now: then the count begins anew.
    #[inline]
    pub(crate) fn takes_yield(&self) -> bool {
        let due = self.must_yield();
        if due {
            self.in_a_row.set(0);
        }
        due
    }

    #[inline]
    pub(crate) fn took(&self, results: u32) {
        self.in_a_row.with(|count| *count = count.saturating_add(results));
    }

    /// The watch in the running loop, and whether it was made just now. `fd` gives the handle's descriptor, `None` of one that
    /// has none: then only timers end a wait.
    pub(crate) fn watch(
        &self,
        py: Python<'_>,
        fd: impl FnOnce() -> PyResult<Option<RawFd>>,
    ) -> PyResult<(Py<Watch>, bool)> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        self.in_a_row.set(0);
        let event_loop = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let known = self.watch.with(|watch| watch.as_ref().map(|watch| watch.clone_ref(py)));
        if let Some(watch) = known {
            if watch.get().event_loop.is(&event_loop) {
                return Ok((watch, false));
            }
            Watch::retire(watch.bind(py));
        }
        // SAFETY: the handle's own, and the handle is not closed before this returns: it is in the caller's hands.
        let fd = fd()?.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()).transpose();
        let fd = fd.map_err(|e| {
            let call = "a duplicate of the handle's descriptor for the event loop";
            crate::errors::os_error(py, call, e)
        })?;
        let watch = Py::new(py, Watch::new(event_loop.unbind(), fd))?;
        drop(self.watch.replace(Some(watch.clone_ref(py))));
        Ok((watch, true))
    }

    /// The watch, if there is one.
    pub(crate) fn known(&self, py: Python<'_>) -> Option<Py<Watch>> {
        self.watch.with(|watch| watch.as_ref().map(|watch| watch.clone_ref(py)))
    }

    /// Has this handle's close wake another one's watch.
    pub(crate) fn tell(&self, other: Py<Watch>) {
        let gone = self.others.with(|others| {
            let (kept, gone) = std::mem::take(others).into_iter().partition(|watch| !watch.get().is_retired());
            *others = kept;
            others.push(other);
            gone
        });
        // Not in the closure: dropping them can run anything.
        drop::<Vec<_>>(gone);
    }

    /// The handle is closed: a task that waits makes its attempt again, and finds that out.
    pub(crate) fn close(&self, py: Python<'_>) {
        for other in self.others.replace(Vec::new()) {
            Watch::wake(other.bind(py));
        }
        if let Some(watch) = self.watch.replace(None) {
            Watch::wake(watch.bind(py));
            Watch::retire(watch.bind(py));
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.watch.with(|watch| visit.call(&*watch))?;
        self.others.with(|others| others.iter().try_for_each(|watch| visit.call(watch)))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if self.watch.with(|watch| watch.is_some()) || self.others.with(|others| !others.is_empty()) {
            // Not when the interpreter is on its way out: there is no loop to leave then.
            let _ = Python::try_attach(|py| beside_any(py, || self.close(py)));
        }
    }
}

/// The future that is awaited while a handle has nothing.
#[pyclass(frozen, module = "ramway._ramway")]
pub(crate) struct Watch {
    event_loop: Py<PyAny>,
    /// `None` once it has left the loop for good, and where there is none.
    fd: Gil<Option<OwnedFd>>,
    /// Without a descriptor: timers fire it.
    is_timed: bool,
    /// It has left the loop for good.
    retired: Gil<bool>,
    registered: Gil<bool>,
    state: Gil<State>,
    /// The task's step, and the context it runs in.
    step: Gil<Option<Step>>,
    /// What asyncio has a future say to the task that awaits it.
    blocking: Gil<bool>,
    /// The process that the loop is of: a fork's child leaves it alone.
    process: u32,
}

type Step = (Py<PyAny>, Option<Py<PyAny>>);

#[derive(Default)]
enum State {
    /// Nobody waits.
    #[default]
    Idle,
    Waiting,
    /// Done: the waiting task is about to make its attempt again.
    Fired,
    Cancelled(Option<Py<PyAny>>),
}

impl Watch {
    fn new(event_loop: Py<PyAny>, fd: Option<OwnedFd>) -> Self {
        Self {
            event_loop,
            is_timed: fd.is_none(),
            fd: Gil::new(fd),
            retired: Gil::default(),
            registered: Gil::default(),
            state: Gil::default(),
            step: Gil::default(),
            blocking: Gil::default(),
            process: std::process::id(),
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.state.with(|state| !matches!(state, State::Idle))
    }

    /// Whether only timers end its waits.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn is_retired(&self) -> bool {
        self.retired.get()
    }

    fn is_waiting(&self) -> bool {
        self.state.with(|state| matches!(state, State::Waiting))
    }

    /// Begins a wait.
    pub(crate) fn begin(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_awaited() {
            return Err(two_tasks(py));
        }
        if this.is_timed && this.is_retired() {
            return Err(error(py, ErrorKind::Detached, "the handle was closed meanwhile"));
        }
        if !this.is_timed && !this.registered.get() {
            let Some(fd) = this.raw_fd() else {
                return Err(error(py, ErrorKind::Detached, "the handle was closed meanwhile"));
            };
            this.event_loop.bind(py).call_method1("add_reader", (fd, slf))?;
            this.registered.set(true);
        }
        this.state.set(State::Waiting);
        this.blocking.set(true);
        Ok(())
    }

    /// Ends a wait, however it came to that.
    pub(crate) fn end(&self) {
        self.blocking.set(false);
        // Dropped last: that can run anything.
        drop((self.state.replace(State::Idle), self.step.replace(None)));
    }

    /// Has the task make its attempt again in `seconds`, whatever happens; gives the timer.
    pub(crate) fn fire_in(slf: &Bound<'_, Self>, seconds: f64) -> PyResult<Py<PyAny>> {
        let event_loop = slf.get().event_loop.bind(slf.py());
        Ok(event_loop.call_method1("call_later", (seconds, slf.getattr("_fire")?))?.unbind())
    }

    fn raw_fd(&self) -> Option<RawFd> {
        self.fd.with(|fd| fd.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// Has the waiting task make its attempt again, in the loop's next iteration. From any thread.
    pub(crate) fn wake(slf: &Bound<'_, Self>) {
        let this = slf.get();
        if this.is_waiting() {
            this.state.set(State::Fired);
            if let Some(step) = this.step.replace(None) {
                // A loop that was closed meanwhile runs nothing any more.
                let _ = Self::schedule(slf, "call_soon_threadsafe", step);
            }
        }
    }

    fn schedule(slf: &Bound<'_, Self>, method: &str, (step, context): Step) -> PyResult<()> {
        let keywords = PyDict::new(slf.py());
        keywords.set_item("context", context)?;
        slf.get().event_loop.bind(slf.py()).call_method(method, (step, slf), Some(&keywords))?;
        Ok(())
    }

    /// Runs the waiting task's next step. Only for the loop to call: no task runs then, so the step may run at once
    /// rather than in the next iteration, in which the loop would find the descriptor readable once more.
    fn fire(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.state.set(State::Fired);
        match this.step.replace(None) {
            Some((step, Some(context))) => context.bind(py).call_method1(intern!(py, "run"), (step, slf)).map(drop),
            Some((step, None)) => step.bind(py).call1((slf,)).map(drop),
            None => Ok(()),
        }
    }

    /// Leaves the loop for good. From any thread.
    fn retire(slf: &Bound<'_, Self>) {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, this) = (slf.py(), slf.get());
        this.retired.set(true);
        if !this.registered.get() || this.process != std::process::id() {
            drop(this.fd.replace(None));
            return;
        }
        let running = RUNNING.import(py, "asyncio", "_get_running_loop").and_then(|running| running.call0());
        if running.is_ok_and(|running| running.is(&this.event_loop)) {
            this.unregister(py);
            drop(this.fd.replace(None));
        } else {
            // Where it fails the loop is closed, and has forgotten the descriptor.
            let later = slf.getattr(intern!(py, "_retire"));
            let asked = later.and_then(|later| this.event_loop.bind(py).call_method1("call_soon_threadsafe", (later,)));
            if asked.is_err() {
                drop(this.fd.replace(None));
            }
        }
    }

    fn unregister(&self, py: Python<'_>) {
        if let Some(fd) = self.raw_fd().filter(|_| self.registered.replace(false)) {
            // It fails for a loop that is closed.
            let _ = self.event_loop.bind(py).call_method1(intern!(py, "remove_reader"), (fd,));
        }
    }
}

/// What the loop calls, and what a task asks of a future.
#[pymethods]
impl Watch {
    /// The descriptor is readable.
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().is_waiting() {
            return Self::fire(slf);
        }
        slf.get().unregister(slf.py());
        Ok(())
    }

    /// It is time for an attempt, readable or not.
    fn _fire(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().is_waiting() { Self::fire(slf) } else { Ok(()) }
    }

    fn _retire(&self, py: Python<'_>) {
        self.unregister(py);
        drop(self.fd.replace(None));
    }

    #[getter(_asyncio_future_blocking)]
    fn is_blocking(&self) -> bool {
        self.blocking.get()
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, blocking: bool) {
        self.blocking.set(blocking);
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (step, /, *, context = None))]
    fn add_done_callback(slf: &Bound<'_, Self>, step: Py<PyAny>, context: Option<Py<PyAny>>) -> PyResult<()> {
        if slf.get().is_waiting() {
            drop(slf.get().step.replace(Some((step, context))));
            Ok(())
        } else {
            Self::schedule(slf, "call_soon", (step, context))
        }
    }

    fn remove_done_callback(&self, py: Python<'_>, step: &Bound<'_, PyAny>) -> PyResult<usize> {
        let Some((known, context)) = self.step.replace(None) else { return Ok(0) };
        let same = known.bind(py).eq(step);
        if !matches!(same, Ok(true)) {
            drop(self.step.replace(Some((known, context))));
        }
        Ok(same?.into())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let this = slf.get();
        if !this.is_waiting() {
            return Ok(false);
        }
        drop(this.state.replace(State::Cancelled(msg)));
        if let Some(step) = this.step.replace(None) {
            Self::schedule(slf, "call_soon", step)?;
        }
        Ok(true)
    }

    fn cancelled(&self) -> bool {
        self.state.with(|state| matches!(state, State::Cancelled(_)))
    }

    fn done(&self) -> bool {
        !self.is_waiting()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let reason = self.state.with(|state| match state {
            State::Cancelled(reason) => Some(reason.as_ref().map(|reason| reason.clone_ref(py))),
            _ => None,
        });
        let Some(reason) = reason else { return Ok(()) };
        let class = CANCELLED.import(py, "asyncio", "CancelledError")?;
        Err(PyErr::from_value(match reason {
            Some(reason) => class.call1((reason,))?,
            None => class.call0()?,
        }))
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        self.state.with(|state| match state {
            State::Cancelled(reason) => visit.call(&*reason),
            _ => Ok(()),
        })?;
        self.step.with(|step| match step {
            Some((step, context)) => visit.call(&*step).and_then(|()| visit.call(&*context)),
            None => Ok(()),
        })
    }

    fn __clear__(&self) {
        self.end();
    }
}

#[cold]
pub(crate) fn two_tasks(py: Python<'_>) -> PyErr {
    error(py, ErrorKind::Busy, "another task waits for this handle already: one at a time may")
}
