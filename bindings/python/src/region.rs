//! `ramway.Region`: named shared bytes as a buffer.

use crate::args::{Name, Options, Policy, Seconds, Timeout, assign, pass};
use crate::endpoint::{Shared, shared_calls};
use crate::errors::{self, OrRaise};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use crate::waiting::{self, poll_interval, unless_signalled};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyTuple};
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, WaitPolicy};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// Named bytes that any number of processes have mapped, with a notification that costs nothing when nobody waits.
///
/// Made by `Region.create`, `Region.open` and `Region.open_or_create`. `memoryview(region)`, `region[a:b]` and
/// `region.numpy(...)` are the shared bytes themselves, no copy: what one process stores another one sees. Ramway brings
/// no order into that; what was written before a `notify` is seen after the `wait` that it ended.
///
/// All calls may be made from any thread. `close` (or the end of a `with`) releases the region; views of it keep the
/// memory mapped until the last one is gone. A region lives until its last handle is gone, in any process.
#[pyclass(module = "ramway", frozen, weakref)]
pub(crate) struct Region {
    pub(crate) shared: Shared<ramway::Region>,
    pub(crate) read_only: bool,
    policy: WaitPolicy,
}

impl Region {
    /// `intent` is the static method; `open` takes any size.
    fn of(
        py: Python<'_>,
        intent: &'static str,
        name: &Name,
        size: u64,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut options = Options::new(py, given)?;
        options.refuse_idle("Region", intent)?;
        let mut builder = ramway::Region::builder();
        if intent == "open" {
            pass!(options => builder: read_only);
        }
        pass!(options => builder: persistent, discard, allow_disk, mode, lock_memory, huge_pages, numa_node, prefault);
        let Policy(policy) = options.get("wait")?.unwrap_or(Policy::HYBRID);
        let timeout = options.timeout("timeout", Timeout::NOW)?;
        options.finish()?;
        let builder = builder.timeout(timeout.limit()).wait_policy(policy);
        let core = unless_signalled(py, |go_on| match intent {
            "create" => builder.create_while(&name.0, size, go_on),
            "open" => builder.open_while(&name.0, go_on),
            _ => builder.open_or_create_while(&name.0, size, go_on),
        })?;
        let read_only = core.is_read_only();
        Ok(Self { shared: Shared::new(core, "region", name.shown()), read_only, policy })
    }

    /// A duplicate of what `fileno` gives, which stays when the region is closed.
    pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<OwnedFd> {
        let core = self.shared.core(py)?;
        let duplicate = core.readiness().or_raise(py)?.as_fd().try_clone_to_owned();
        duplicate.map_err(|e| errors::os_error(py, errors::DUPLICATE, e))
    }

    /// Waits for a notification by `attempt`; `None` if the time was up.
    fn wait_by<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Seconds>,
        attempt: impl FnMut(WaitLimit) -> ramway::Result<T> + Send,
    ) -> PyResult<Option<T>> {
        let still_open = |py: Python<'_>| self.shared.check_open(py);
        match waiting::wait(py, timeout.into(), poll_interval(self.policy), attempt, still_open) {
            Ok(found) => Ok(Some(found)),
            Err(e) if errors::is(py, &e, ErrorKind::TimedOut) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

shared_calls! {
    Region, "send its name, and open it in the other process",
    /// Releases the region; every later call is DetachedError. Views of it keep the memory mapped. A thread that waits
    /// meanwhile gets `DetachedError` within 100 ms.
}

#[pymethods]
impl Region {
    /// Makes a region of `size` bytes, all zero.
    ///
    /// `name` is `[A-Za-z0-9._-]{1,80}`, not starting with a dot, in the Ramway directory (`RAMWAY_DIR`); with a `/` it
    /// is a path. `persistent` leaves it in place when its last user goes, `discard` throws away a persistent one that
    /// nobody uses, `allow_disk` accepts a disk file system, `mode` is the file's permission bits. `timeout` is in
    /// seconds. `wait` is how `wait` waits. `lock_memory`, `huge_pages`, `numa_node` and `prefault` place the memory.
    ///
    /// Raises `AlreadyExistsError`, `InvalidArgumentError` (a size of 0, an impossible name), `NoSpaceError`,
    /// `PermissionDeniedError`, `UnsupportedError`.
    #[staticmethod]
    #[pyo3(signature = (name, size, **options), text_signature = "(name, size, *, persistent=False, discard=False, \
        allow_disk=False, mode=0o600, timeout=0.0, wait='hybrid', lock_memory=False, huge_pages=False, numa_node=None, \
        prefault=False)")]
    fn create(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::size)] size: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::of(py, "create", &name, size, options)
    }

    /// Opens the region of that name. `timeout` is how long to wait, in seconds, for one that is not there yet (`None`:
    /// as long as it takes).
    ///
    /// With `read_only` its buffers are read-only; such a handle cannot notify, and waits by polling every millisecond.
    ///
    /// Raises `NotFoundError`, `PermissionDeniedError`, `AbiMismatchError`, `InvalidArgumentError` (also for an option
    /// that says what a new region is like).
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, read_only=False, timeout=0.0, allow_disk=False, \
        wait='hybrid', lock_memory=False, prefault=False)")]
    fn open(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::of(py, "open", &name, 0, options)
    }

    /// Opens the region of that name, or makes it, with the options of `create` except `discard`.
    /// `InvalidArgumentError` if it is there with another size.
    #[staticmethod]
    #[pyo3(signature = (name, size, **options), text_signature = "(name, size, *, persistent=False, allow_disk=False, \
        mode=0o600, timeout=0.0, wait='hybrid', lock_memory=False, huge_pages=False, numa_node=None, prefault=False)")]
    fn open_or_create(
        py: Python<'_>,
        name: Name,
        #[pyo3(from_py_with = crate::args::size)] size: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::of(py, "open_or_create", &name, size, options)
    }

    /// Whether this handle may not write.
    #[getter]
    fn read_only(&self) -> bool {
        self.read_only
    }

    /// Tells all that wait that something has changed, after everything that this thread wrote before. Never
    /// blocks. Raises `PermissionDeniedError` on a read-only handle.
    fn notify(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.core(py)?.notify().or_raise(py)
    }

    /// Waits for a notification, for at most `timeout` seconds (`None`: forever). `True`: there was a notification
    /// since the last `wait` or `try_wait` that returned `True`, or since the handle was opened, even if it came before
    /// this call; any number of them count as one. `False`: the time passed.
    ///
    /// Raises `ClosedError` if the region's name was removed meanwhile, so that no one can join any more.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<bool> {
        let core = self.shared.core(py)?;
        let attempt = |wait_limit| {
            if core.wait(Some(waiting::limit(wait_limit)))? { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
        };
        Ok(self.wait_by(py, timeout, attempt)?.is_some())
    }

    /// A number that changes with each notification, for `wait_since`.
    #[getter]
    fn notifications(&self, py: Python<'_>) -> PyResult<u32> {
        self.shared.core(py)?.notifications().or_raise(py)
    }

    /// Waits until `notifications` is another number than `count`, for at most `timeout` seconds (`None`: forever), and
    /// gives the new one; `None` if the time passed. Read the count, read the bytes, then wait: what is notified in
    /// between ends the wait at once. Raises as `wait` does.
    #[pyo3(signature = (count, timeout = None))]
    fn wait_since(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::args::count)] count: u32,
        timeout: Option<Seconds>,
    ) -> PyResult<Option<u32>> {
        let core = self.shared.core(py)?;
        let attempt = |wait_limit| {
            let changed = core.wait_since(count, Some(waiting::limit(wait_limit)))?;
            changed.ok_or_else(|| ErrorKind::TimedOut.into())
        };
        self.wait_by(py, timeout, attempt)
    }

    /// `wait` that does not wait.
    fn try_wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.core(py)?.try_wait().or_raise(py)
    }

    /// A descriptor for event loops, which becomes readable when `try_wait` would say `True`, or the region's name is
    /// gone. Call `try_wait` until it says `False`, which makes it unreadable. It belongs to the region: do not read
    /// from it, do not close it. Raises `UnsupportedError` on a read-only handle.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        let core = self.shared.core(py)?;
        Ok(core.readiness().or_raise(py)?.as_raw_fd())
    }

    /// wait for asyncio: an awaitable that is done after the next notification. One task at a time may wait on a handle
    /// (BusyError). Raises UnsupportedError on a read-only handle.
    fn wait_async(slf: &Bound<'_, Self>) -> Wait {
        Wait::new(Operation::Notification { region: slf.clone().unbind() })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.shared.core(py)?.len() as usize)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf)?.get_item(key)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, key, value)
    }

    /// # Safety
    /// The interpreter calls it, with a view of its own.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let core = this.shared.core(py)?;
        // In a fork's child new views are refused; those of before stay readable.
        core.notifications().or_raise(py)?;
        let (address, len) = (core.as_ptr(), core.len() as ffi::Py_ssize_t);
        let read_only = c_int::from(this.read_only);
        // SAFETY: `view` is the interpreter's; the `len` bytes are mapped while `core` lives, writable unless said
        // otherwise.
        if unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address.cast(), len, read_only, flags) } != 0 {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: filled in just now. What keeps the memory mapped goes with the view.
        unsafe { (*view).internal = Arc::into_raw(core).cast_mut().cast() };
        Ok(())
    }

    /// # Safety
    /// The interpreter calls it once for every view that `__getbuffer__` filled in.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: what `__getbuffer__` put there, taken back once.
        drop(unsafe { Arc::from_raw((*view).internal.cast::<ramway::Region>()) });
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = &self.shared.name;
        match self.shared.core(py) {
            Ok(core) => format!("<ramway.Region '{name}' of {} bytes>", core.len()),
            Err(_) => format!("<ramway.Region '{name}' closed>"),
        }
    }
}
