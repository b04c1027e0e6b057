//! What `ramway.rpc.Server` stands on: the core's server, with handlers that are Python's.

use crate::args::{Name, Options, Policy, Timeout, pass};
use crate::endpoint::Gil;
use crate::errors::{OrRaise, beside_any, error, raise};
use crate::rpc::deferred::Deferred;
use crate::rpc::request::{Failed, Request, bytes_of};
use crate::waiting::poll_interval;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use ramway::rpc::{Fault, MethodKey, Stopper, Written};
use ramway::{ErrorKind, WaitPolicy};
use std::os::fd::{AsRawFd, RawFd};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;

/// A handler. The server's object and the core's closure share it, so that the garbage collector sees one reference.
type Handler = Arc<Gil<Option<Py<PyAny>>>>;

#[pyclass(frozen, weakref, module = "ramway._ramway", name = "_RpcServer")]
pub(crate) struct Server {
    /// `None` once it is closed.
    core: Mutex<Option<ramway::rpc::Server>>,
    stopper: Stopper,
    name: String,
    path: String,
    policy: WaitPolicy,
    handlers: Gil<Vec<Handler>>,
    /// The thread that has the core: a handler of it cannot wait for it.
    runner: Gil<Option<ThreadId>>,
    /// Threads that want the core while another one runs it.
    wanted: AtomicUsize,
    /// As far as is known while the core is in use.
    clients: AtomicUsize,
    /// What a handler raised to end the program.
    ends: Arc<Mutex<Option<PyErr>>>,
    /// Whose it is: in a fork's child a lock may be held by a thread that does not exist.
    process: u32,
}

/// A number, a name, or both.
struct Key {
    number: u32,
    name: Option<String>,
}

impl MethodKey for Key {
    fn number_and_name(&self) -> (u32, Option<&str>) {
        (self.number, self.name.as_deref())
    }
}

/// What the core's threads do with a handler.
#[derive(Clone)]
struct Calling {
    handler: Handler,
    ends: Arc<Mutex<Option<PyErr>>>,
    stopper: Stopper,
}

impl Calling {
    fn handler<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handler = self.handler.with(|handler| handler.as_ref().map(|handler| handler.clone_ref(py)));
        let gone = || error(py, ErrorKind::Detached, "the RPC server's handlers are gone");
        Ok(handler.ok_or_else(gone)?.into_bound(py))
    }

    /// What the core makes of an exception.
    #[cold]
    fn failed(&self, py: Python<'_>, raised: PyErr) -> Result<Fault, String> {
        match Failed::of(py, raised) {
            Failed::Fault(fault) => Ok(fault),
            Failed::Raised(text) => Err(text),
            Failed::Ends(text, raised) => {
                *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                self.stopper.interrupt();
                Err(text)
            }
        }
    }

    fn method(&self, request: &mut ramway::rpc::Request<'_>) -> Result<Written, Fault> {
        let answered = attached(|py| {
            let answer = |request: &mut ramway::rpc::Request<'_>| -> PyResult<Written> {
                let shown = Bound::new(py, Request::of_request(py, request))?;
                let value = self.handler(py)?.call1((&shown,))?;
                let bytes = bytes_of("returned", &value)?;
                if let Some(meta) = shown.get().take_reply_meta(py)? {
                    request.set_reply_meta(meta.as_slice());
                }
                Ok(request.write(bytes.as_slice()))
            };
            answer(request).map_err(|raised| self.failed(py, raised))
        });
        answered.map_err(fault_or_unwind)
    }

    fn stream(&self, request: &ramway::rpc::Request<'_>) -> Result<Elements, Fault> {
        let begun = attached(|py| {
            let begin = || -> PyResult<Py<PyIterator>> {
                let shown = Bound::new(py, Request::of_request(py, request))?;
                Ok(self.handler(py)?.call1((shown,))?.try_iter()?.unbind())
            };
            begin().map_err(|raised| self.failed(py, raised))
        });
        let iterator = begun.map_err(fault_or_unwind)?;
        Ok(Elements { iterator: Some(iterator), calling: self.clone() })
    }

    fn deferred(&self, call: ramway::rpc::Call) {
        attached(|py| {
            // A call that is dropped is answered by the core.
            let begun = Deferred::new(py, call).and_then(|call| self.handler(py)?.call1((call,)).map(drop));
            if let Err(raised) = begun {
                let _ = self.failed(py, raised);
            }
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
    }
}

/// Runs a handler's part with the interpreter lock.
fn attached<T, E>(run: impl FnOnce(Python<'_>) -> Result<T, E>) -> Result<T, E> {
    Python::attach(|py| beside_any(py, || run(py)))
}

/// The fault; or the end of the handler that the core makes `HandlerFailed` of, without what a panic says on standard error.
fn fault_or_unwind(failed: Result<Fault, String>) -> Fault {
    failed.unwrap_or_else(|text| resume_unwind(Box::new(text)))
}

/// The elements of a stream: a Python iterator's.
struct Elements {
    iterator: Option<Py<PyIterator>>,
    calling: Calling,
}

impl Iterator for Elements {
    type Item = Result<Vec<u8>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let iterator = self.iterator.as_ref()?;
        let next = attached(|py| {
            let next = || -> PyResult<Option<Vec<u8>>> {
                let Some(value) = iterator.bind(py).clone().next() else { return Ok(None) };
                Ok(Some(bytes_of("yielded", &value?)?.as_slice().to_vec()))
            };
            next().map_err(|raised| self.calling.failed(py, raised))
        });
        next.map_err(fault_or_unwind).transpose()
    }
}

impl Drop for Elements {
    /// What a generator does at its end, it does now.
    fn drop(&mut self) {
        if let Some(iterator) = self.iterator.take() {
            let _ = Python::try_attach(|py| beside_any(py, || drop(iterator.into_bound(py))));
        }
    }
}

impl Server {
    /// The core, for a moment: the thread that runs it is asked to let it go. `None` in a handler that the same thread runs.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Option<ramway::rpc::Server>) -> T + Send,
    ) -> Option<T> {
        match self.core.try_lock() {
            Ok(mut core) => return Some(act(&mut core)),
            Err(TryLockError::Poisoned(broken)) => return Some(act(&mut broken.into_inner())),
            Err(TryLockError::WouldBlock) => {}
        }
        if self.is_foreign() || self.runner.get() == Some(std::thread::current().id()) {
            return None;
        }
        Some(py.detach(|| {
            // SeqCst, before the interruption: the thread that it ends sees that somebody wants the core.
            self.wanted.fetch_add(1, Ordering::SeqCst);
            self.stopper.interrupt();
            let mut core = self.lock();
            self.wanted.fetch_sub(1, Ordering::SeqCst);
            act(&mut core)
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<ramway::rpc::Server>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn in_handler(&self, py: Python<'_>) -> PyErr {
        if self.is_foreign() {
            return self.foreign(py);
        }
        let text = format!("the RPC server '{}' is running this handler: from another thread only", self.name);
        error(py, ErrorKind::Busy, text)
    }

    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    #[cold]
    fn foreign(&self, py: Python<'_>) -> PyErr {
        error(py, ErrorKind::Detached, format!("the RPC server '{}' belongs to the parent process", self.name))
    }

    #[cold]
    fn closed(&self, py: Python<'_>) -> PyErr {
        error(py, ErrorKind::Detached, format!("the RPC server '{}' is closed", self.name))
    }

    /// What a handler raised to end the program.
    fn check_ends(&self) -> PyResult<()> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (name, options))]
    fn new(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let mut builder = ramway::rpc::Server::builder(&name.0);
        pass!(options => builder: capacity, align, mode, max_clients, max_in_flight, max_bytes, threads);
        if let Some(uids) = options.get::<Vec<u32>>("allow_uids")? {
            builder = builder.allow_uids(&uids);
        }
        let handshake_timeout = options.timeout("handshake_timeout", Timeout::SECOND)?;
        let Policy(policy) = options.get("wait")?.unwrap_or(Policy::HYBRID);
        options.finish()?;
        let builder = builder.handshake_timeout(handshake_timeout.limit()).wait_policy(policy);
        let core = py.detach(|| builder.bind()).or_raise(py)?;
        Ok(Self {
            stopper: core.stopper(),
            name: name.shown(),
            path: core.path().to_string_lossy().into_owned(),
            policy,
            core: Mutex::new(Some(core)),
            handlers: Gil::default(),
            runner: Gil::default(),
            wanted: AtomicUsize::new(0),
            clients: AtomicUsize::new(0),
            ends: Arc::default(),
            process: std::process::id(),
        })
    }

    /// Registers a handler: `how` is "method", "stream", "pool", "pool_stream" or "deferred".
    fn add(&self, py: Python<'_>, number: u32, name: Option<String>, how: &str, handler: Py<PyAny>) -> PyResult<()> {
        let handler: Handler = Arc::new(Gil::new(Some(handler)));
        let calling = Calling { handler: handler.clone(), ends: self.ends.clone(), stopper: self.stopper.clone() };
        let key = Key { number, name };
        let added = self.with(py, |core| {
            let core = core.as_mut()?;
            Some(match how {
                "method" => core.method(key, move |request| calling.method(request)),
                "pool" => core.pool(key, move |request| calling.method(request)),
                "stream" => core.stream(key, move |request| calling.stream(request)),
                "pool_stream" => core.pool_stream(key, move |request| calling.stream(request)),
                _ => core.deferred(key, move |call| calling.deferred(call)),
            })
        });
        added.ok_or_else(|| self.in_handler(py))?.ok_or_else(|| self.closed(py))?.or_raise(py)?;
        self.handlers.with(|handlers| handlers.push(handler));
        Ok(())
    }

    /// Serves until it is shut down.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let interval = poll_interval(self.policy);
        if self.is_foreign() {
            return Err(self.foreign(py));
        }
        loop {
            let me = std::thread::current().id();
            let ran = py.detach(|| {
                while self.wanted.load(Ordering::SeqCst) != 0 {
                    // Each of them has it for a moment.
                    std::thread::yield_now();
                }
                let mut core = match self.core.try_lock() {
                    Ok(core) => core,
                    Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
                    Err(TryLockError::WouldBlock) => return None,
                };
                let Some(server) = &mut *core else { return Some(Err(ErrorKind::Detached.into())) };
                Python::attach(|_| self.runner.set(Some(me)));
                let ran = server.run_timeout(interval);
                self.clients.store(server.clients(), Ordering::Relaxed);
                Python::attach(|_| self.runner.set(None));
                if ran.is_ok() {
                    *core = None;
                }
                Some(ran)
            });
            py.check_signals()?;
            self.check_ends()?;
            match ran {
                None if self.runner.get().is_some() => {
                    let text = format!("the RPC server '{}' is served by another thread already", self.name);
                    return Err(error(py, ErrorKind::Busy, text));
                }
                None => {}
                Some(Ok(())) => return Ok(()),
                Some(Err(e)) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Some(Err(e)) if e.kind() == ErrorKind::Detached && self.lock().is_none() => return Err(self.closed(py)),
                Some(Err(e)) => return Err(raise(py, e)),
            }
        }
    }

    /// Does what there is to do, for an event loop. False: it was shut down.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        if self.is_foreign() {
            return Err(self.foreign(py));
        }
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            // Another thread has it for a moment: the descriptor stays readable.
            Err(TryLockError::WouldBlock) => return Ok(true),
        };
        let Some(server) = &mut *core else { return Ok(false) };
        // Handlers are Python's, and short or tasks: the interpreter lock stays with this thread, and nothing here waits.
        self.runner.set(Some(std::thread::current().id()));
        let polled = server.poll();
        self.clients.store(server.clients(), Ordering::Relaxed);
        self.runner.set(None);
        let goes_on = match polled {
            Ok(()) => true,
            Err(e) if e.kind() == ErrorKind::Closed => {
                *core = None;
                false
            }
            Err(e) => return Err(raise(py, e)),
        };
        drop(core);
        self.check_ends()?;
        Ok(goes_on)
    }

    /// The descriptor that is readable when `poll` has something to do.
    fn descriptor(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = self.with(py, |core| Some(core.as_mut()?.descriptor().map(|fd| fd.as_raw_fd())));
        fd.ok_or_else(|| self.in_handler(py))?.ok_or_else(|| self.closed(py))?.or_raise(py)
    }

    /// In how many seconds `poll` is to be called though the descriptor is not readable; None: never.
    fn due_in(&self, py: Python<'_>) -> Option<f64> {
        self.with(py, |core| core.as_ref().and_then(ramway::rpc::Server::due_in)).flatten().map(|due| due.as_secs_f64())
    }

    /// Has it shut down. From any thread, and from signal handlers.
    fn shutdown(&self, limit: crate::args::Seconds) {
        self.stopper.shutdown(limit.length());
    }

    /// Drops it: what runs is cancelled.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_foreign() {
            return Ok(());
        }
        let core = self.with(py, Option::take).ok_or_else(|| self.in_handler(py))?;
        py.detach(|| drop(core));
        Ok(())
    }

    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.with(py, |core| core.is_none()).unwrap_or(false)
    }

    /// In one of its handlers: as of the last round.
    #[getter]
    fn clients(&self, py: Python<'_>) -> usize {
        self.with(py, |core| core.as_ref().map_or(0, ramway::rpc::Server::clients))
            .unwrap_or_else(|| self.clients.load(Ordering::Relaxed))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.handlers
            .with(|handlers| handlers.iter().try_for_each(|handler| handler.with(|handler| visit.call(&*handler))))
    }

    fn __clear__(&self) {
        for handler in self.handlers.replace(Vec::new()) {
            drop(handler.replace(None));
        }
    }
}
