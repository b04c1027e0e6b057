//! `ramway.Ring`: where a ring is and how it is to be made.

mod array;
mod copies;
pub(crate) mod fetch;
pub(crate) mod held;
pub(crate) mod hot;
pub(crate) mod message;
pub(crate) mod receiver;
pub(crate) mod sender;
pub(crate) mod slot;

use crate::args::{Name, Options, Policy, Timeout, pass};
use crate::endpoint::End;
use crate::errors::{OrRaise, error, os_error};
use crate::ring::receiver::Receiver;
use crate::ring::sender::Sender;
use crate::waiting::unless_signalled;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ramway::{ErrorKind, RingBuilder, WaitPolicy};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A ring: where it is and how it is to be made. Opens nothing before sender() or receiver() is called, and can be
/// pickled, for a child process to open the same ring. One without a name (`Ring.unnamed`) is for children alone.
///
/// A name is [A-Za-z0-9._-]{1,80} in RAMWAY_DIR (by default /dev/shm/ramway-<uid>), or a path with a slash. The side
/// that comes first makes the ring; it stays while a process uses it or undelivered messages are in it.
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Ring {
    /// `None`: it is behind the descriptor.
    name: Option<String>,
    fd: Option<OwnedFd>,
    builder: RingBuilder,
    policy: WaitPolicy,
    writable_views: bool,
    /// The constructor's name and keyword arguments, for pickling.
    made_by: (&'static str, Py<PyDict>),
}

/// Options that a ring without a name has no use for.
const NAMED_ONLY: [&str; 4] = ["discard", "persistent", "mode", "allow_disk"];

impl Ring {
    fn new(py: Python<'_>, name: Name, intent: &'static str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, given)?;
        let mut builder = match intent {
            "create" => ramway::Ring::create(&name.0),
            "open" => ramway::Ring::open(&name.0),
            _ => ramway::Ring::open_or_create(&name.0),
        };
        options.refuse_idle("Ring", intent)?;
        pass!(options => builder: capacity, align, discard, persistent, mode, allow_disk, membarrier, lock_memory,
            huge_pages, numa_node, prefault);
        Self::of(Some(name.shown()), None, builder, intent, options)
    }

    /// The ring, with the options of its ends.
    fn of(
        name: Option<String>,
        fd: Option<OwnedFd>,
        builder: RingBuilder,
        intent: &'static str,
        mut options: Options<'_>,
    ) -> PyResult<Self> {
        let policy = options.get::<Policy>("wait")?.map_or(WaitPolicy::default(), |policy| policy.0);
        let writable_views = options.flag("writable_views", false)?;
        let timeout = options.timeout("timeout", Timeout::NOW)?;
        let builder = builder.timeout(timeout.limit()).wait_policy(policy).writable_views(writable_views);
        Ok(Self { name, fd, builder, policy, writable_views, made_by: (intent, options.finish()?) })
    }

    /// The ring behind a descriptor of ours.
    fn behind(fd: OwnedFd, mut options: Options<'_>) -> PyResult<Self> {
        options.refuse("a ring without a name", &NAMED_ONLY, "a ring with a name")?;
        let mut builder = ramway::Ring::from_fd(&fd);
        pass!(options => builder: capacity, align, membarrier, lock_memory, prefault);
        Self::of(None, Some(fd), builder, "from_fd", options)
    }
}

/// A descriptor of our own for a caller's.
fn duplicate(py: Python<'_>, fd: i32) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(error(py, ErrorKind::InvalidArgument, format!("fd={fd}: expected an open descriptor")));
    }
    // SAFETY: not negative; the kernel says whether it is open, and it is not kept.
    let duplicate = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    duplicate.map_err(|e| os_error(py, &format!("descriptor {fd}"), e))
}

#[pymethods]
impl Ring {
    /// A ring that must be new: AlreadyExistsError if a process uses the name, if it holds what was never delivered
    /// (unless discard=True), or if something else has it.
    ///
    /// `capacity` is in bytes, 16 of each message's being its header, rounded up to a power of two of at least a page
    /// (default 1 MiB); `align` what each payload's address is a multiple of, 16 (default) to 4096; `timeout` the seconds
    /// to wait for a ring that is not there yet or a role that is taken (default 0, None: as long as it takes); `wait`
    /// how blocking calls wait ('spin', 'hybrid', 'block'); `mode` the new file's permissions; `persistent` keeps the
    /// name when the last user goes; `writable_views` maps a receiver's data writable, for consumers that cannot honour
    /// read-only views.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, align=None, discard=False, \
        persistent=False, mode=0o600, timeout=0.0, allow_disk=False, wait='hybrid', membarrier=True, lock_memory=False, \
        huge_pages=False, numa_node=None, prefault=False, writable_views=False)")]
    fn create(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "create", options)
    }

    /// A ring that exists, also one that dead processes left: its messages are still there. NotFoundError if there is
    /// none within `timeout`. Options: see create. Those that say what a new ring is like (persistent, mode, huge_pages,
    /// numa_node, discard) are InvalidArgumentError; capacity and align are compared with what is there.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, align=None, timeout=0.0, \
        allow_disk=False, wait='hybrid', membarrier=True, lock_memory=False, prefault=False, writable_views=False)")]
    fn open(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "open", options)
    }

    /// A ring that is opened if it exists and made if not. InvalidArgumentError if it exists with another capacity or
    /// alignment than was asked for. Options: see create; discard is InvalidArgumentError.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, align=None, persistent=False, \
        mode=0o600, timeout=0.0, allow_disk=False, wait='hybrid', membarrier=True, lock_memory=False, huge_pages=False, \
        numa_node=None, prefault=False, writable_views=False)")]
    fn open_or_create(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "open_or_create", options)
    }

    /// Both ends of a new ring without a name, for two threads of this process.
    #[staticmethod]
    fn pair(py: Python<'_>, capacity: u64) -> PyResult<(Sender, Receiver)> {
        let (tx, rx) = ramway::Ring::pair(capacity).or_raise(py)?;
        let policy = WaitPolicy::default();
        Ok((Sender::wrap(End::Ring(tx), None, policy), Receiver::wrap(End::Ring(rx), None, policy, false)))
    }

    /// A new ring without a name, to be handed to a child process by its descriptor: as an argument of a
    /// multiprocessing process, with any start method, or by subprocess's pass_fds and `Ring.from_fd` there. A process
    /// with the descriptor takes a role with sender() or receiver(). Nothing is left behind when the last of them goes.
    ///
    /// The ring is made now; its memory is capacity, align, huge_pages and numa_node, as create says. The other options
    /// are those of sender() and receiver(), here and where the ring is handed to. Raises NoSpaceError.
    #[staticmethod]
    #[pyo3(signature = (**options), text_signature = "(*, capacity=None, align=None, timeout=0.0, wait='hybrid', \
        membarrier=True, lock_memory=False, huge_pages=False, numa_node=None, prefault=False, writable_views=False)")]
    fn unnamed(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, options)?;
        let mut builder = ramway::Ring::unnamed();
        options.refuse("Ring.unnamed", &NAMED_ONLY, "a ring with a name")?;
        pass!(options => builder: capacity, align, huge_pages, numa_node);
        // Refused before anything is made.
        options.check_only(&["timeout", "wait", "membarrier", "lock_memory", "prefault", "writable_views"])?;
        let fd = py.detach(|| builder.into_fd()).or_raise(py)?;
        Self::behind(fd, options.rest()?)
    }

    /// The ring behind a descriptor that this process inherited or was sent. The descriptor stays the caller's, who may
    /// close it. capacity and align are compared with what is there; the other options are those of sender() and
    /// receiver(). What the descriptor leads to is checked there.
    #[staticmethod]
    #[pyo3(signature = (fd, **options), text_signature = "(fd, *, capacity=None, align=None, timeout=0.0, wait='hybrid', \
        membarrier=True, lock_memory=False, prefault=False, writable_views=False)")]
    fn from_fd(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::args::fd)] fd: i32,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = Options::new(py, options)?;
        Self::behind(duplicate(py, fd)?, options)
    }

    /// As it was given; None of a ring without one.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The descriptor of a ring without a name, for subprocess's pass_fds. It belongs to this object. Raises
    /// UnsupportedError if the ring has a name: pass that.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        match (&self.fd, &self.name) {
            (Some(fd), _) => Ok(fd.as_raw_fd()),
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let text = format!("the ring '{name}' has no descriptor to hand on: pass its name");
                Err(error(py, ErrorKind::Unsupported, text))
            }
        }
    }

    /// The sending end. BusyError if the ring has one, in any process.
    fn sender(&self, py: Python<'_>) -> PyResult<Sender> {
        let core = unless_signalled(py, |go_on| self.builder.clone().sender_while(go_on))?;
        Ok(Sender::wrap(End::Ring(core), self.name.clone(), self.policy))
    }

    /// The receiving end; it starts with what is undelivered. BusyError if the ring has one, in any process.
    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let core = unless_signalled(py, |go_on| self.builder.clone().receiver_while(go_on))?;
        Ok(Receiver::wrap(End::Ring(core), self.name.clone(), self.policy, self.writable_views))
    }

    /// A ring is pickled as what it was made of; one without a name as a descriptor that multiprocessing hands over.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let module = py.import("ramway._ramway")?;
        let options = self.made_by.1.clone_ref(py);
        if let Some(fd) = &self.fd {
            let handed_on = py.import("multiprocessing.reduction")?.getattr("DupFd")?.call1((fd.as_raw_fd(),))?;
            return Ok((module.getattr("_remake_unnamed")?, (handed_on, options).into_pyobject(py)?));
        }
        Ok((module.getattr("_remake_ring")?, (self.made_by.0, self.name.as_deref(), options).into_pyobject(py)?))
    }

    fn __repr__(&self) -> String {
        match (&self.name, &self.fd) {
            (None, Some(fd)) => format!("<ramway.Ring without a name, descriptor {}>", fd.as_raw_fd()),
            (name, _) => format!("<ramway.Ring {:?}>", name.as_deref().unwrap_or_default()),
        }
    }
}

/// What a pickled ring without a name is made by, where multiprocessing has brought the descriptor.
#[pyfunction]
pub(crate) fn _remake_unnamed(
    py: Python<'_>,
    handed_on: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Ring> {
    let fd: i32 = handed_on.call_method0("detach")?.extract()?;
    if fd < 0 {
        return Err(error(py, ErrorKind::InvalidArgument, format!("multiprocessing has brought the descriptor {fd}")));
    }
    // SAFETY: what `detach` gives is the caller's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // It may be inheritable, as it came here.
    Ring::behind(duplicate(py, fd.as_raw_fd())?, Options::new(py, Some(options))?)
}

/// What a pickled ring is made by.
#[pyfunction]
pub(crate) fn _remake_ring(py: Python<'_>, intent: &str, name: Name, options: &Bound<'_, PyDict>) -> PyResult<Ring> {
    Ring::new(py, name, crate::args::intent(intent), Some(options))
}
