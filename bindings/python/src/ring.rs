use crate::args::{Name, Options, Policy, Timeout, pass};
use crate::errors::OrRaise;
use crate::patience::unless_signalled;
use crate::receiver::Receiver;
use crate::sender::Sender;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ramway::{RingBuilder, WaitPolicy};

/// A named ring: where it is and how it is to be made. Opens nothing before sender() or receiver() is called, and can
/// be pickled, for a child process to open the same ring.
///
/// A name is [A-Za-z0-9._-]{1,80} in RAMWAY_DIR (by default /dev/shm/ramway-<uid>), or a path with a slash. Whichever
/// side comes first makes the ring; it stays while somebody uses it or undelivered messages are in it.
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Ring {
    name: String,
    builder: RingBuilder,
    policy: WaitPolicy,
    writable_views: bool,
    /// The constructor's name and keyword arguments, for pickling.
    made_by: (&'static str, Py<PyDict>),
}

impl Ring {
    fn new(py: Python<'_>, name: Name, intent: &'static str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, given)?;
        let mut builder = match intent {
            "create" => ramway::Ring::create(&name.0),
            "open" => ramway::Ring::open(&name.0),
            _ => ramway::Ring::open_or_create(&name.0),
        };
        let call = format!("Ring.{intent}");
        if intent != "create" {
            options.refuse(&call, "discard", "create")?;
        }
        if intent == "open" {
            for name in ["persistent", "mode", "huge_pages", "numa_node"] {
                options.refuse(&call, name, "create and open_or_create")?;
            }
        }
        pass!(options => builder: capacity, align, discard, persistent, mode, allow_disk, membarrier, lock_memory,
            huge_pages, numa_node, prefault);
        let policy = options.get::<Policy>("wait")?.map_or(WaitPolicy::default(), |policy| policy.0);
        let writable_views = options.flag("writable_views", false)?;
        let timeout = options.timeout("timeout", Timeout::NOW)?;
        let builder = builder.timeout(timeout.limit()).wait_policy(policy).writable_views(writable_views);
        Ok(Self { name: name.shown(), builder, policy, writable_views, made_by: (intent, options.finish()?) })
    }
}

#[pymethods]
impl Ring {
    /// A ring that must be new: AlreadyExistsError if somebody uses the name, if it holds what was never delivered
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
        Ok((Sender::wrap(tx, None, policy), Receiver::wrap(rx, None, policy, false)))
    }

    /// As it was given.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The sending end. BusyError if the ring has one, in whichever process.
    fn sender(&self, py: Python<'_>) -> PyResult<Sender> {
        let core = unless_signalled(py, |go_on| self.builder.clone().sender_while(go_on))?;
        Ok(Sender::wrap(core, Some(self.name.clone()), self.policy))
    }

    /// The receiving end; it starts with what is undelivered. BusyError if the ring has one, in whichever process.
    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let core = unless_signalled(py, |go_on| self.builder.clone().receiver_while(go_on))?;
        Ok(Receiver::wrap(core, Some(self.name.clone()), self.policy, self.writable_views))
    }

    /// A ring is pickled as what it was made of.
    #[allow(clippy::type_complexity, reason = "pickle's own pair of a callable and its arguments")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, String, Py<PyDict>))> {
        let remake = py.import("ramway._ramway")?.getattr("_remake_ring")?;
        Ok((remake, (self.made_by.0, self.name.clone(), self.made_by.1.clone_ref(py))))
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Ring {:?}>", self.name)
    }
}

/// What a pickled ring is made by.
#[pyfunction]
pub(crate) fn _remake_ring(py: Python<'_>, intent: &str, name: Name, options: &Bound<'_, PyDict>) -> PyResult<Ring> {
    let intent = match intent {
        "create" => "create",
        "open" => "open",
        _ => "open_or_create",
    };
    Ring::new(py, name, intent, Some(options))
}
