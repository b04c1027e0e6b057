//! What an event loop has one of for all handles of rings and topics: a set of the core, whose one descriptor it polls, and which
//! tells the tasks that wait for what was woken.

use crate::endpoint::Gil;
use crate::errors::{OrRaise, beside_any};
use crate::waiting::watch::Watch;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use ramway::{ErrorKind, ReadySet};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};

/// The hubs of all loops, which are what keeps them, and the process whose they are.
static HUBS: Gil<(u32, Vec<Py<PyWeakrefReference>>)> = Gil::new((0, Vec::new()));

#[pyclass(frozen, weakref, module = "ramway._ramway")]
pub(crate) struct Hub {
    event_loop: Gil<Option<Py<PyAny>>>,
    set: ReadySet,
    watches: Gil<HashMap<u64, Py<Watch>>>,
    next: Gil<u64>,
    /// Tokens that were taken, and whose tasks have not been told yet.
    woken: Gil<Vec<u64>>,
}

impl Hub {
    /// The running loop's; `None` where io_uring is not to be had.
    pub(crate) fn of(py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Option<Py<Self>>> {
        let process = std::process::id();
        let known = HUBS.with(|(of, hubs)| {
            let is_its = |hub: &Bound<'_, Self>| {
                hub.get().event_loop.with(|known| known.as_ref().is_some_and(|known| known.is(event_loop)))
            };
            // A fork's child has no loop of its parent's, and not its io_uring either.
            let hubs = if *of == process { hubs.as_slice() } else { &[] };
            hubs.iter().filter_map(|hub| upgrade(py, hub)).find(is_its)
        });
        match known {
            Some(hub) => Ok(Some(hub.unbind())),
            None => Self::make(py, event_loop),
        }
    }

    #[cold]
    fn make(py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Option<Py<Self>>> {
        let set = match ReadySet::new() {
            Ok(set) => set,
            Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(e) => return Err(e).or_raise(py),
        };
        let fd = set.as_fd().as_raw_fd();
        let hub = Self {
            event_loop: Gil::new(Some(event_loop.clone().unbind())),
            set,
            watches: Gil::default(),
            next: Gil::new(1),
            woken: Gil::default(),
        };
        let hub = Py::new(py, hub)?;
        event_loop.call_method1(intern!(py, "add_reader"), (fd, &hub))?;
        let new = PyWeakrefReference::new(hub.bind(py))?.unbind();
        let process = std::process::id();
        let gone = HUBS.with(|(of, hubs)| {
            let known = if *of == process { std::mem::take(hubs) } else { Vec::new() };
            let inherited = std::mem::take(hubs);
            let (mut kept, gone): (Vec<_>, Vec<_>) = known.into_iter().partition(|hub| upgrade(py, hub).is_some());
            kept.push(new);
            (*of, *hubs) = (process, kept);
            (gone, inherited)
        });
        drop(gone);
        Ok(Some(hub))
    }

    pub(crate) fn set(&self) -> &ReadySet {
        &self.set
    }

    /// What a watch's handle joins the set by.
    pub(crate) fn new_token(&self) -> u64 {
        self.next.with(|next| {
            *next += 1;
            *next
        })
    }

    pub(crate) fn enter(&self, token: u64, watch: Py<Watch>) {
        drop(self.watches.with(|watches| watches.insert(token, watch)));
    }

    pub(crate) fn leave(&self, token: u64) {
        drop(self.watches.with(|watches| watches.remove(&token)));
    }

    /// Tells the tasks that wait for what was woken. What the loop is to stop for ends it; the rest is then told in the next
    /// iteration.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let mut woken = self.woken.replace(Vec::new());
        let mut at = 0;
        let mut told = Ok(());
        while told.is_ok() && at < woken.len() {
            let watch = self.watches.with(|watches| watches.get(&woken[at]).map(|watch| watch.clone_ref(py)));
            at += 1;
            if let Some(watch) = watch {
                told = Watch::is_ready(watch.bind(py));
            }
        }
        woken.drain(..at);
        self.woken.with(|later| {
            // The memory of this one serves again.
            woken.append(later);
            std::mem::swap(later, &mut woken);
        });
        told
    }
}

fn upgrade<'py>(py: Python<'py>, hub: &Py<PyWeakrefReference>) -> Option<Bound<'py, Hub>> {
    hub.bind(py).upgrade().and_then(|hub| hub.cast_into::<Hub>().ok())
}

#[pymethods]
impl Hub {
    /// The descriptor is readable, or there are some left to tell.
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.woken.with(|woken| this.set.take(woken));
        // What the tasks wait for next is submitted at once for all of them.
        this.set.hold();
        let told = this.tell(py);
        let submitted = this.set.release().or_raise(py);
        if this.woken.with(|woken| !woken.is_empty()) {
            beside_any(py, || {
                let event_loop = this.event_loop.with(|known| known.as_ref().map(|known| known.clone_ref(py)));
                event_loop.map(|known| known.call_method1(py, intern!(py, "call_soon"), (slf,))).transpose()
            })?;
        }
        told.and(submitted)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.event_loop.with(|event_loop| visit.call(&*event_loop))?;
        self.watches.with(|watches| watches.values().try_for_each(|watch| visit.call(watch)))
    }

    fn __clear__(&self) {
        drop((self.event_loop.replace(None), self.watches.replace(HashMap::new())));
    }
}
