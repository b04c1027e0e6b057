//! `ramway.merge`: the messages of many, as one iterator.

use crate::args::{Policy, Timeout};
use crate::errors::{error, is};
use crate::many::member::Member;
use crate::many::sources::{Entry, Next, Sources, Value};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use pyo3::exceptions::{PyStopAsyncIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use ramway::ErrorKind;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The messages of many sources, as an iterator and an asynchronous iterator of (source, message): made by merge, which says
/// all of it.
#[pyclass(frozen, weakref, module = "ramway")]
pub(crate) struct Merge {
    pub(crate) sources: Sources,
}

/// `async for who, msg in merge(a, b, ...)`, and `for who, msg in merge(a, b, ...)`: the messages of several sources, one at a
/// time, each with the source that it came from.
///
/// A source is a Receiver, a Subscriber or a Bus; a Listener, whose messages are the buses it accepts; a Region, whose message is
/// None: there was a notification. They are asked in turn, message by message, so that a busy one does not starve the others.
/// Messages live as those of a plain receive: views keep their place in their own ring alone.
///
/// A source that was closed, by its sender or by this process, leaves the merge, after its last message. The iteration ends when
/// all have left. Any other error of a source is raised, with the source as its attribute `source`, and the others go on: iterate
/// the same object again. After PeerDeadError and CorruptError the source has left; once its successor is there (wait_for_peer),
/// `add` takes it in again. LaggedError is no end: the source stays.
///
/// Cancelling the task loses nothing: a message is received only when it is given out. One task, or one thread, at a time may wait
/// (BusyError). A thread that waits lets others run and answers Ctrl-C, within 100 ms. A task waits by one descriptor, whatever
/// the number of sources; one without a descriptor, a subscriber or region that was opened read_only, is polled every
/// millisecond (some 2 % of a core).
///
/// Raises TypeError for what gives no messages, InvalidArgumentError if a source is named twice.
#[pyfunction]
#[pyo3(signature = (*sources))]
pub(crate) fn merge(sources: &Bound<'_, PyTuple>) -> PyResult<Merge> {
    let merge = Merge { sources: Sources::new(Policy::HYBRID, "merge") };
    for source in sources {
        merge.add(&source)?;
    }
    Ok(merge)
}

impl Merge {
    /// What comes next, if it is there. The end is StopAsyncIteration, or, not as a `stream`, None with nobody left.
    pub(crate) fn next(slf: &Bound<'_, Self>, stream: bool) -> PyResult<Option<Py<PyAny>>> {
        let (py, sources) = (slf.py(), &slf.get().sources);
        loop {
            let (entry, cause) = match sources.next(py) {
                Next::Value(entry, value) => return pair(py, &entry, value).map(Some),
                Next::Raised(entry, cause) => (entry, cause),
                Next::Nothing => return Ok(None),
                Next::Nobody if stream => return Err(PyStopAsyncIteration::new_err(())),
                Next::Nobody => return Ok(None),
            };
            if is(py, &cause, ErrorKind::Closed) || (is(py, &cause, ErrorKind::Detached) && entry.is_closed()) {
                sources.remove(&entry);
                continue;
            }
            if !is(py, &cause, ErrorKind::Lagged) && !is(py, &cause, ErrorKind::Busy) {
                sources.remove(&entry);
            }
            cause.value(py).setattr(intern!(py, "source"), entry.who.clone_ref(py))?;
            return Err(cause);
        }
    }

    fn is_over(&self) -> bool {
        self.sources.all().is_empty()
    }
}

fn pair(py: Python<'_>, entry: &Entry, value: Value) -> PyResult<Py<PyAny>> {
    let message = match value {
        Value::Message(message) => message.into_any(),
        Value::Object(object) => object,
        Value::Bus(_) => unreachable!("a merge has no door"),
    };
    Ok(PyTuple::new(py, [entry.who.clone_ref(py), message])?.into_any().unbind())
}

#[pymethods]
impl Merge {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Merged { merge: slf.clone().unbind() })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let (py, this) = (slf.py(), slf.get());
        loop {
            match Self::next(slf, false)? {
                Some(found) => return Ok(Some(found)),
                None if this.is_over() => return Ok(None),
                // A source that is closed meanwhile is what `next` finds.
                None => match this.sources.wait(py, Timeout::FOREVER) {
                    Err(e) if !is(py, &e, ErrorKind::Detached) && !is(py, &e, ErrorKind::Interrupted) => return Err(e),
                    _ => {}
                },
            }
        }
    }

    /// Takes one more source in, or one that had left. From any thread; a wait that is under way goes on with it.
    fn add(&self, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = source.py();
        let member = Member::of(source)?;
        if matches!(member, Member::Room(..) | Member::Descriptor(_)) {
            let text = format!(
                "a {} gives no messages to merge: expected a Receiver, Subscriber, Bus, Listener or Region",
                source.get_type().name()?
            );
            return Err(PyTypeError::new_err(text));
        }
        if self.find(source).is_some() {
            return Err(error(py, ErrorKind::InvalidArgument, "this source is in the merge already: name each once"));
        }
        self.sources.add(py, source.clone().unbind(), member, None)?;
        self.sources.wake(py);
        Ok(())
    }

    /// Takes a source out; False if it was not there. What it has is left to its own calls.
    fn remove(&self, source: &Bound<'_, PyAny>) -> bool {
        let removed = self.find(source).is_some_and(|entry| self.sources.remove(&entry));
        self.sources.wake(source.py());
        removed
    }

    /// Those that have not left.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.sources.all().iter().map(|entry| entry.who.clone_ref(py)))
    }

    /// A descriptor for event loops and select: readable while one of the sources may have something. It belongs to the merge:
    /// do not read from it, do not close it.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.sources.fd(py)
    }

    /// For annotations: what its sources are, and their messages.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.py().import("types")?.getattr("GenericAlias")?.call1((class, of))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.sources.traverse(&visit)
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Merge of {} sources>", self.sources.all().len())
    }
}

impl Merge {
    fn find(&self, source: &Bound<'_, PyAny>) -> Option<Arc<Entry>> {
        self.sources.all().into_iter().find(|entry| entry.who.is(source))
    }
}
