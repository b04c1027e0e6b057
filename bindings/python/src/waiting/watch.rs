//! One descriptor in one asyncio loop, and the task that waits for it.
//!
//! A [`Watch`] is what the waiting task awaits: to asyncio a future that becomes done again and again. Its descriptor is
//! a duplicate, so that it can leave the loop after its handle was closed, by any thread, before another descriptor gets
//! its number. It stays registered from wait to wait; an event that finds nobody waiting takes it
//! out of the loop.

use crate::endpoint::{Flag, Gil};
use crate::errors::{beside_any, error};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use ramway::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};

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

    /// The watch in the running loop, and whether it was made just now. `fd` gives a duplicate of the handle's descriptor, `None`
    /// of one that has none: then only timers end a wait.
    pub(crate) fn watch(
        &self,
        py: Python<'_>,
        fd: impl FnOnce() -> PyResult<Option<OwnedFd>>,
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
        let watch = Py::new(py, Watch::new(event_loop.unbind(), fd()?))?;
        let mut new = Some(watch.clone_ref(py));
        // Unless a task in another thread was faster.
        let second = self.watch.with(|known| {
            let second = known.as_ref().is_some_and(|watch| !watch.get().is_retired());
            if !second {
                std::mem::swap(known, &mut new);
            }
            second
        });
        drop(new);
        if second { Err(two_tasks(py)) } else { Ok((watch, true)) }
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
            // Told before it is woken: a task that begins to wait looks at that afterwards.
            watch.get().retired.set(true);
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
    readable: Gil<Readable>,
    /// Without a descriptor: timers fire it.
    is_timed: bool,
    /// It has left the loop for good.
    retired: Flag,
    awaiting: Gil<Awaiting>,
    /// What asyncio has a future say to the task that awaits it.
    blocking: Flag,
    /// The process that the loop is of: a fork's child leaves it alone.
    process: u32,
}

#[derive(Default)]
struct Readable {
    /// The descriptor that the event loop watches. `None`: the handle has none, or the loop has given it back for good.
    fd: Option<OwnedFd>,
    /// The loop has it, or is just given it.
    registered: bool,
}

#[derive(Default)]
struct Awaiting {
    state: State,
    /// The task's step, and the context it runs in.
    step: Option<Step>,
}

impl Awaiting {
    /// Ends the wait, if there is one; gives the task's step.
    fn fire(&mut self, state: State) -> Option<Option<Step>> {
        if !matches!(self.state, State::Waiting) {
            return None;
        }
        self.state = state;
        Some(self.step.take())
    }
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
            readable: Gil::new(Readable { fd, registered: false }),
            retired: Flag::default(),
            awaiting: Gil::default(),
            blocking: Flag::default(),
            process: std::process::id(),
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.awaiting.with(|awaiting| !matches!(awaiting.state, State::Idle))
    }

    /// Whether only timers end its waits.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn is_retired(&self) -> bool {
        self.retired.get()
    }

    fn is_waiting(&self) -> bool {
        self.awaiting.with(|awaiting| matches!(awaiting.state, State::Waiting))
    }

    /// Begins a wait.
    pub(crate) fn begin(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_awaited() {
            return Err(two_tasks(py));
        }
        let closed = || error(py, ErrorKind::Detached, "the handle was closed meanwhile");
        if this.is_timed && this.is_retired() {
            return Err(closed());
        }
        if !this.is_timed {
            // Said to be registered before it is: from then on the descriptor is closed in the loop's own thread, and its number
            // is nobody else's meanwhile.
            let found = this.readable.with(|readable| {
                let was = std::mem::replace(&mut readable.registered, readable.fd.is_some());
                readable.fd.as_ref().map(|fd| (fd.as_raw_fd(), was))
            });
            let Some((fd, registered)) = found else { return Err(closed()) };
            if !registered && let Err(e) = this.event_loop.bind(py).call_method1("add_reader", (fd, slf)) {
                this.readable.with(|readable| readable.registered = false);
                return Err(e);
            }
        }
        drop(this.awaiting.replace(Awaiting { state: State::Waiting, step: None }));
        if this.is_retired() {
            this.end();
            return Err(closed());
        }
        this.blocking.set(true);
        Ok(())
    }

    /// Ends a wait, however it came to that.
    pub(crate) fn end(&self) {
        self.blocking.set(false);
        // Dropped last: that can run anything.
        drop(self.awaiting.replace(Awaiting::default()));
    }

    /// Has the task make its attempt again in `seconds`, whatever happens; gives the timer.
    pub(crate) fn fire_in(slf: &Bound<'_, Self>, seconds: f64) -> PyResult<Py<PyAny>> {
        let event_loop = slf.get().event_loop.bind(slf.py());
        Ok(event_loop.call_method1("call_later", (seconds, slf.getattr("_fire")?))?.unbind())
    }

    /// Has the waiting task make its attempt again, in the loop's next iteration. From any thread.
    pub(crate) fn wake(slf: &Bound<'_, Self>) {
        if let Some(Some(step)) = slf.get().awaiting.with(|awaiting| awaiting.fire(State::Fired)) {
            // A loop that was closed meanwhile runs nothing any more.
            let _ = Self::schedule(slf, "call_soon_threadsafe", step);
        }
    }

    fn schedule(slf: &Bound<'_, Self>, method: &str, (step, context): Step) -> PyResult<()> {
        let keywords = PyDict::new(slf.py());
        keywords.set_item("context", context)?;
        slf.get().event_loop.bind(slf.py()).call_method(method, (step, slf), Some(&keywords))?;
        Ok(())
    }

    /// Runs the waiting task's next step; false if none waits. Only for the loop to call: no task runs then, so the step may run
    /// at once rather than in the next iteration, in which the loop would find the descriptor readable once more.
    fn fire(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let (py, this) = (slf.py(), slf.get());
        let Some(step) = this.awaiting.with(|awaiting| awaiting.fire(State::Fired)) else { return Ok(false) };
        match step {
            Some((step, Some(context))) => drop(context.bind(py).call_method1(intern!(py, "run"), (step, slf))?),
            Some((step, None)) => drop(step.bind(py).call1((slf,))?),
            None => {}
        }
        Ok(true)
    }

    /// Leaves the loop for good. From any thread.
    fn retire(slf: &Bound<'_, Self>) {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, this) = (slf.py(), slf.get());
        this.retired.set(true);
        let foreign = this.process != std::process::id();
        let gone = this.readable.with(|readable| {
            let goes = foreign || !readable.registered;
            goes.then(|| readable.fd.take())
        });
        if let Some(fd) = gone {
            drop(fd);
            return;
        }
        let running = RUNNING.import(py, "asyncio", "_get_running_loop").and_then(|running| running.call0());
        if running.is_ok_and(|running| running.is(&this.event_loop)) {
            this.unregister(py);
            this.close_fd();
        } else {
            // Where it fails the loop is closed, and has forgotten the descriptor.
            let later = slf.getattr(intern!(py, "_retire"));
            let asked = later.and_then(|later| this.event_loop.bind(py).call_method1("call_soon_threadsafe", (later,)));
            if asked.is_err() {
                this.close_fd();
            }
        }
    }

    fn close_fd(&self) {
        drop(self.readable.with(|readable| readable.fd.take()));
    }

    fn unregister(&self, py: Python<'_>) {
        let found = self.readable.with(|readable| {
            let was = std::mem::replace(&mut readable.registered, false);
            readable.fd.as_ref().filter(|_| was).map(AsRawFd::as_raw_fd)
        });
        if let Some(fd) = found {
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
        if !Self::fire(slf)? {
            slf.get().unregister(slf.py());
        }
        Ok(())
    }

    /// It is time for an attempt, readable or not.
    fn _fire(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::fire(slf).map(drop)
    }

    fn _retire(&self, py: Python<'_>) {
        self.unregister(py);
        self.close_fd();
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
        let mut new = Some((step, context));
        let waits = slf.get().awaiting.with(|awaiting| {
            let waits = matches!(awaiting.state, State::Waiting);
            if waits {
                std::mem::swap(&mut awaiting.step, &mut new);
            }
            waits
        });
        match new {
            Some(step) if !waits => Self::schedule(slf, "call_soon", step),
            // The one before it.
            _ => Ok(()),
        }
    }

    fn remove_done_callback(&self, py: Python<'_>, step: &Bound<'_, PyAny>) -> PyResult<usize> {
        let known = self.awaiting.with(|awaiting| awaiting.step.as_ref().map(|(step, _)| step.clone_ref(py)));
        let Some(known) = known else { return Ok(0) };
        if !known.bind(py).eq(step)? {
            return Ok(0);
        }
        let removed = self.awaiting.with(|awaiting| awaiting.step.take_if(|(step, _)| step.is(&known)));
        Ok(removed.is_some().into())
    }

    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        match slf.get().awaiting.with(|awaiting| awaiting.fire(State::Cancelled(msg))) {
            None => return Ok(false),
            Some(None) => {}
            Some(Some(step)) => Self::schedule(slf, "call_soon", step)?,
        }
        Ok(true)
    }

    fn cancelled(&self) -> bool {
        self.awaiting.with(|awaiting| matches!(awaiting.state, State::Cancelled(_)))
    }

    fn done(&self) -> bool {
        !self.is_waiting()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let reason = self.awaiting.with(|awaiting| match &awaiting.state {
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
        self.awaiting.with(|Awaiting { state, step }| {
            if let State::Cancelled(reason) = state {
                visit.call(&*reason)?;
            }
            match step {
                Some((step, context)) => visit.call(&*step).and_then(|()| visit.call(&*context)),
                None => Ok(()),
            }
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
