//! `ramway.Outbox`: one sender, many workers that compete for messages.

use crate::args::{Bytes, Name, Options, Policy, Seconds, Timeout, pass};
use crate::errors::{OrRaise, error, is, unless};
use crate::many::inbox::{max_peers, peer};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use crate::waiting::watch::Waits;
use crate::waiting::{POLL_INTERVAL, limit, wait};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use ramway::{ErrorKind, SelectWaker};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Gives each message to one of many workers: one that sleeps first, else the one with the fewest messages. `Outbox.bind(name)`
/// makes one.
///
/// A worker is `Bus.connect(name)` and its receiver, in any language. It has done a message when it releases it, at the latest when
/// it receives the next one; at most `prefetch` it has at a time. What a worker has not released when it goes, by death or close, is
/// given to another one: a message is done at least once. After `max_deliveries` workers it is taken out instead (take_undelivered).
/// Deaths are seen, and messages given again, inside the calls of the outbox only.
///
/// One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C, within 100 ms. What
/// is not done when the outbox goes is lost, unless a worker that has it does it.
#[pyclass(frozen, weakref, module = "ramway")]
pub(crate) struct Outbox {
    /// `None` once it is closed.
    core: Mutex<Option<ramway::Outbox>>,
    waker: SelectWaker,
    /// A wait is to end.
    woken: AtomicBool,
    name: String,
    path: String,
    pub(crate) waits: Waits,
}

impl Outbox {
    /// After each interval of a wait, and when its core's wait was interrupted.
    fn check_woken(&self, py: Python<'_>) -> PyResult<()> {
        // Acquire: pairs with `wake`.
        if self.woken.swap(false, Ordering::Acquire) {
            return Err(error(py, ErrorKind::Interrupted, format!("a wait of the outbox '{}' was ended", self.name)));
        }
        Ok(())
    }

    fn enter(&self, py: Python<'_>) -> PyResult<Entered<'_>> {
        match self.core.try_lock() {
            Ok(core) => Ok(Entered(core)),
            Err(TryLockError::Poisoned(poisoned)) => Ok(Entered(PoisonError::into_inner(poisoned))),
            Err(TryLockError::WouldBlock) => {
                let text = "another thread is in a call of this outbox, which only one at a time may use";
                Err(error(py, ErrorKind::Busy, text))
            }
        }
    }
}

struct Entered<'a>(MutexGuard<'a, Option<ramway::Outbox>>);

impl Entered<'_> {
    fn core(&mut self, py: Python<'_>, name: &str) -> PyResult<&mut ramway::Outbox> {
        self.0.as_mut().ok_or_else(|| error(py, ErrorKind::Detached, format!("the outbox '{name}' is closed")))
    }
}

#[pymethods]
impl Outbox {
    /// Listens at `name`, which must not be a live listener's. `capacity` is the bytes of each worker's ring; beyond `max_peers`
    /// workers at a time one is refused (BusyError). `prefetch` is how many messages a worker may have at a time: with more than 1
    /// it need not wait for the next one, and another that is free may wait meanwhile. With `copies` a worker that writes into what
    /// it was given cannot change what another one gets: a copy of each message is kept until it is done. The other options are
    /// those of Listener.bind.
    ///
    /// Raises what Listener.bind does; InvalidArgumentError for at most 0 workers, messages or deliveries.
    #[staticmethod]
    #[pyo3(signature = (name, capacity=1 << 20, **options), text_signature = "(name, capacity=1048576, *, max_peers=128, \
        prefetch=1, max_deliveries=3, copies=False, align=16, mode=None, allow_uids=(), handshake_timeout=1.0, \
        wait='hybrid')")]
    fn bind(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::capacity)] capacity: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let shown = name.shown();
        let mut builder = ramway::Outbox::builder(&name.0).capacity(capacity);
        builder = builder.max_peers(max_peers(py, &mut options, &shown)?);
        pass!(options => builder: prefetch, max_deliveries, copies, align, mode);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            builder = builder.allow_uids(&uids);
        }
        let handshake_timeout = options.timeout("handshake_timeout", Timeout::SECOND)?;
        let wait = options.get("wait")?.unwrap_or(Policy::HYBRID);
        options.finish()?;
        let builder = builder.handshake_timeout(handshake_timeout.limit()).wait_policy(wait.0);
        let core = py.detach(|| builder.bind()).or_raise(py)?;
        Ok(Self {
            waker: core.waker(),
            woken: AtomicBool::new(false),
            path: core.path().to_string_lossy().into_owned(),
            name: shown,
            core: Mutex::new(Some(core)),
            waits: Waits::default(),
        })
    }

    /// Gives a message to a worker: copies the bytes of `data` (bytes, bytearray, memoryview, a NumPy array) into its ring. Waits
    /// up to `timeout` seconds, without one as long as it takes, for a worker that may have another message; messages that have to
    /// be given again go first. `type_id` and `tag` are as for Sender.send.
    ///
    /// Raises TimedOutError, TooLargeError if it can never fit, InvalidArgumentError for a reserved type_id, NoSpaceError or OsError
    /// if a worker could not be taken for want of memory or descriptors. Nothing of this message was given then.
    #[pyo3(signature = (data, type_id = 0, tag = 0, *, timeout = None))]
    fn send(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
        timeout: Option<Seconds>,
    ) -> PyResult<()> {
        let (py, bytes) = (data.py(), Bytes::of_message(data)?);
        let mut entered = self.enter(py)?;
        let core = entered.core(py, &self.name)?;
        let attempt = |wait_limit| core.send_timeout(type_id, tag, bytes.as_slice(), limit(wait_limit));
        wait(py, timeout.into(), POLL_INTERVAL, attempt, |py| self.check_woken(py)).map_err(|e| {
            if !is(py, &e, ErrorKind::TimedOut) {
                return e;
            }
            error(py, ErrorKind::TimedOut, format!("no worker of the outbox '{}' was free within the time", self.name))
        })
    }

    /// send that does not wait: FullError if no worker may have another message now.
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    fn try_send(
        &self,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = crate::args::type_id)] type_id: u32,
        #[pyo3(from_py_with = crate::args::tag)] tag: u64,
    ) -> PyResult<()> {
        let (py, bytes) = (data.py(), Bytes::of_message(data)?);
        self.enter(py)?.core(py, &self.name)?.try_send_tagged(type_id, tag, bytes.as_slice()).or_raise(py)
    }

    /// send for asyncio: an awaitable. While no worker is free it looks every millisecond, some 2 % of a core.
    #[pyo3(signature = (data, type_id = 0, tag = 0))]
    fn send_async(slf: &Bound<'_, Self>, data: Py<PyAny>, type_id: u32, tag: u64) -> PyResult<Wait> {
        let arguments = (data, type_id, tag).into_pyobject(slf.py())?.unbind();
        Ok(Wait::new(Operation::Outgoing { outbox: slf.clone().unbind(), arguments }))
    }

    /// Waits until every message was done or taken out, for at most `timeout` seconds (None: as long as it takes). Raises
    /// TimedOutError, and what send does for a message that is given again.
    #[pyo3(signature = (timeout = None))]
    fn drain(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<()> {
        let mut entered = self.enter(py)?;
        let core = entered.core(py, &self.name)?;
        let attempt = |wait_limit| core.drain(Some(limit(wait_limit)));
        wait(py, timeout.into(), POLL_INTERVAL, attempt, |py| self.check_woken(py)).map_err(|e| {
            if !is(py, &e, ErrorKind::TimedOut) {
                return e;
            }
            error(py, ErrorKind::TimedOut, format!("not all messages of '{}' were done within the time", self.name))
        })
    }

    /// drain for asyncio: an awaitable, which looks every millisecond.
    fn drain_async(slf: &Bound<'_, Self>) -> Wait {
        let arguments = PyTuple::empty(slf.py()).unbind();
        Wait::new(Operation::Outgoing { outbox: slf.clone().unbind(), arguments })
    }

    /// One attempt of send_async, or without arguments of drain_async: whether it is done.
    #[pyo3(signature = (*arguments))]
    fn _step(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = arguments.py();
        if arguments.is_empty() {
            return Ok(unless(py, ErrorKind::TimedOut, self.drain(py, Some(Seconds::ZERO)))?.is_some());
        }
        let sent = self.try_send(
            &arguments.get_item(0)?,
            crate::args::type_id(&arguments.get_item(1)?)?,
            crate::args::tag(&arguments.get_item(2)?)?,
        );
        Ok(unless(py, ErrorKind::Full, sent)?.is_some())
    }

    /// The oldest message that `max_deliveries` workers have not done, as an Undelivered, and takes it out; None if there is none.
    fn take_undelivered<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(found) = self.enter(py)?.core(py, &self.name)?.take_undelivered() else { return Ok(None) };
        let record = PyDict::new(py);
        record.set_item("type_id", found.type_id)?;
        record.set_item("tag", found.tag)?;
        record.set_item("deliveries", found.deliveries)?;
        record.set_item("data", PyBytes::new(py, &found.data))?;
        py.import("ramway._many")?.getattr("Undelivered")?.call((), Some(&record)).map(Some)
    }

    /// How many messages workers have, or wait to be given again.
    #[getter]
    fn outstanding(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.enter(py)?.core(py, &self.name)?.outstanding())
    }

    /// Those that are connected, as a list of pairs of a Peer and how many messages it has. As of the last call that gave, drained
    /// or tried: workers come and go inside those.
    fn workers(&self, py: Python<'_>) -> PyResult<Vec<(Py<PyAny>, usize)>> {
        let mut entered = self.enter(py)?;
        let workers = entered.core(py, &self.name)?.workers();
        workers.map(|(found, has)| Ok((peer(py, found.id, found.uid, found.pid)?, has))).collect()
    }

    /// Ends the wait that is running, or, if none is, the next one, with WaitInterruptedError. From any thread; never blocks.
    fn wake(&self) {
        // Release: the wait that takes it sees what was done before it.
        self.woken.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// The name that it was made by.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The socket's path, which workers can be given in place of the name.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// Lets all workers go: each receives what it was given, then ClosedError. What is not done then is not given again (drain
    /// first). BusyError while another thread is in a call.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.enter(py)?.0.take();
        py.detach(|| drop(core));
        self.waits.close(py);
        Ok(())
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.0.is_none())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waits.traverse(&visit)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an Outbox cannot be pickled: pass its name, and connect to it there"))
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Outbox '{}'>", self.name)
    }
}
