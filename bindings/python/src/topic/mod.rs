//! `ramway.Topic`: where a topic is and how it is to be made. What its ends have in common with those of a ring is in `ring/`.

pub(crate) mod publisher;
pub(crate) mod subscriber;

use crate::args::{Name, Options, Policy, Seconds, Timeout, pass};
use crate::errors::error;
use crate::topic::publisher::Publisher;
use crate::topic::subscriber::{ReadingPolicy, Subscriber};
use crate::waiting::unless_signalled;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use ramway::{ErrorKind, TopicBuilder, WaitPolicy};

/// A topic: where it is and how it is to be made. Opens nothing before publisher() or subscriber() is called, and can be
/// pickled, for a child process to open the same topic.
///
/// One publisher, any number of subscribers, each with a policy of its own: a reliable one sees every message, and the
/// publisher waits for it; a lossy one never holds the publisher up, and is told exactly how many messages it lost; a latest
/// one reads the newest message.
///
/// A name is [A-Za-z0-9._-]{1,80} in RAMWAY_DIR (by default /dev/shm/ramway-<uid>), or a path with a slash. The side that
/// comes first makes the topic; it stays while a process uses it, or while it holds what a durable subscriber has not read.
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Topic {
    name: String,
    builder: TopicBuilder,
    /// The constructor's name and keyword arguments, for pickling.
    made_by: (&'static str, Py<PyDict>),
}

impl Topic {
    fn new(py: Python<'_>, name: Name, intent: &'static str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options::new(py, given)?;
        let mut builder = match intent {
            "create" => ramway::Topic::create(&name.0),
            "open" => ramway::Topic::open(&name.0),
            _ => ramway::Topic::open_or_create(&name.0),
        };
        options.refuse_idle("Topic", intent)?;
        pass!(options => builder: capacity, slots, align, lossy_only, may_eject, discard, persistent, mode, allow_disk,
            membarrier, lock_memory, huge_pages, numa_node, prefault);
        let timeout = options.timeout("timeout", Timeout::NOW)?;
        let builder = builder.timeout(timeout.limit());
        Ok(Self { name: name.shown(), builder, made_by: (intent, options.finish()?) })
    }
}

/// How blocking calls of an end wait.
fn wait_policy(given: Option<Policy>) -> WaitPolicy {
    given.map_or(WaitPolicy::default(), |policy| policy.0)
}

#[pymethods]
impl Topic {
    /// A topic that must be new: AlreadyExistsError if a process uses the name, if it holds what a durable subscriber has
    /// not read (unless discard=True), or if something else has it. A process that has made it opens its other ends by open
    /// or open_or_create.
    ///
    /// `capacity` is in bytes, 32 of each message's being its header, rounded up to a power of two of at least a page
    /// (default 1 MiB); a message takes at most half of it. `slots` is how many reliable subscribers there can be at a time, 1
    /// to 1024 (default 32); `align` what each payload's address is a multiple of, 32 (default) to 4096. A `lossy_only` topic
    /// takes no reliable subscribers, so that its publisher never waits. The publisher of a `may_eject` topic may eject a
    /// reliable subscriber that holds it up (see publisher); reliable subscribers get copies then, not views.
    ///
    /// `timeout` is the seconds to wait for a topic that is not there yet, or a role or label that is taken (default 0, None:
    /// as long as it takes); `mode` the new file's permissions (0o644: other users may read, see subscriber's read_only);
    /// `persistent` keeps the name when the last user goes.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, slots=None, align=None, \
        lossy_only=False, may_eject=False, discard=False, persistent=False, mode=0o600, timeout=0.0, allow_disk=False, \
        membarrier=True, lock_memory=False, huge_pages=False, numa_node=None, prefault=False)")]
    fn create(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "create", options)
    }

    /// A topic that exists, also one that dead processes left. NotFoundError if there is none within `timeout`. Options: see
    /// create. Those that say what a new topic is like (persistent, mode, huge_pages, numa_node, discard) are
    /// InvalidArgumentError; capacity, slots, align, lossy_only and may_eject are compared with what is there.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, slots=None, align=None, \
        lossy_only=False, may_eject=False, timeout=0.0, allow_disk=False, membarrier=True, lock_memory=False, \
        prefault=False)")]
    fn open(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "open", options)
    }

    /// A topic that is opened if it exists and made if not. InvalidArgumentError if it exists with another capacity,
    /// alignment or number of slots than was asked for, or without a property that was asked for. Options: see create;
    /// discard is InvalidArgumentError.
    #[staticmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, *, capacity=None, slots=None, align=None, \
        lossy_only=False, may_eject=False, persistent=False, mode=0o600, timeout=0.0, allow_disk=False, membarrier=True, \
        lock_memory=False, huge_pages=False, numa_node=None, prefault=False)")]
    fn open_or_create(py: Python<'_>, name: Name, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(py, name, "open_or_create", options)
    }

    /// As it was given.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The publisher. It goes on after what an earlier one published. BusyError if the topic has one, in any process.
    ///
    /// With `eject_after`, a reliable subscriber that has kept it waiting for this many seconds (more than 0) without reading
    /// anything is ejected: its next call raises LaggedError, and it goes on at the oldest message that is left. A new topic is
    /// may_eject then; UnsupportedError on an existing one that is not. Without it the publisher waits for as long as the
    /// subscriber's process lives. With `timestamps` every message says when it was sent (some 25 ns a message). `wait` is how
    /// blocking calls wait ('spin', 'hybrid', 'block').
    #[pyo3(signature = (*, eject_after = None, timestamps = false, wait = None),
           text_signature = "($self, *, eject_after=None, timestamps=False, wait='hybrid')")]
    fn publisher(
        &self,
        py: Python<'_>,
        eject_after: Option<Seconds>,
        timestamps: bool,
        wait: Option<Policy>,
    ) -> PyResult<Py<Publisher>> {
        let wait = wait_policy(wait);
        let mut builder = self.builder.clone().timestamps(timestamps).wait_policy(wait);
        if let Some(time) = eject_after {
            builder = builder.eject_after(time.length());
        }
        let core = unless_signalled(py, |go_on| builder.publisher_while(go_on))?;
        Publisher::wrap(py, core, self.name.clone(), wait)
    }

    /// A subscriber. `policy` is 'reliable' (the publisher waits for it: it sees every message), 'lossy' (the publisher never
    /// waits for it: it sees every message that it is fast enough for, and how many it lost) or 'latest' (likewise: it reads
    /// the newest message).
    ///
    /// It begins at the oldest intact message (`start='oldest'`, a reliable one's default), after the newest one ('now', a
    /// lossy one's default), with up to `history` earlier messages, or after the message with the number `after_seq`; at most
    /// one of these three, and none for 'latest'. `label` (1 to 64 bytes of UTF-8) is a name for those who watch; a reliable
    /// subscriber's is its alone. A `durable` one, reliable and with a label, keeps its place when it closes or dies: the next
    /// one with the label goes on there, and the publisher waits for it all the while (see unsubscribe). A `read_only` one
    /// ('lossy' or 'latest', by Topic.open) needs no permission to write, as another user's topic of mode 0o644 gives none: it
    /// is seen by nobody, and checks every millisecond while it waits: a task that awaits one takes some 2 % of a core, and a
    /// message takes up to a millisecond more. It has no fileno(). `wait` is how blocking
    /// calls wait ('spin', 'hybrid', 'block').
    ///
    /// Raises BusyError if every slot is taken or a live subscriber has the label, UnsupportedError for a reliable one where
    /// the topic is lossy_only, PermissionDeniedError, InvalidArgumentError for options that the policy does not have.
    #[pyo3(signature = (policy = ReadingPolicy::RELIABLE, *, label = None, durable = false, start = None, history = None,
               after_seq = None, read_only = false, wait = None),
           text_signature = "($self, policy='reliable', *, label=None, durable=False, start=None, history=None, \
               after_seq=None, read_only=False, wait='hybrid')")]
    #[allow(clippy::too_many_arguments)] // Python's keywords.
    fn subscriber(
        &self,
        py: Python<'_>,
        policy: ReadingPolicy,
        label: Option<String>,
        durable: bool,
        start: Option<&Bound<'_, PyString>>,
        history: Option<&Bound<'_, PyAny>>,
        after_seq: Option<&Bound<'_, PyAny>>,
        read_only: bool,
        wait: Option<Policy>,
    ) -> PyResult<Py<Subscriber>> {
        let wait = wait_policy(wait);
        let mut builder = self.builder.clone().policy(policy.0).durable(durable).read_only(read_only).wait_policy(wait);
        if let Some(label) = &label {
            builder = builder.label(label);
        }
        if [start.is_some(), history.is_some(), after_seq.is_some()].iter().filter(|given| **given).count() > 1 {
            let text = "start, history and after_seq each say where a subscriber begins: expected at most one of them";
            return Err(error(py, ErrorKind::InvalidArgument, text));
        }
        builder = match (start, history, after_seq) {
            (Some(start), ..) => match &*start.to_string_lossy() {
                "oldest" => builder.from_oldest(),
                "now" => builder.from_now(),
                other => {
                    let text = format!("start={other:?}: expected 'oldest' or 'now'");
                    return Err(error(py, ErrorKind::InvalidArgument, text));
                }
            },
            (None, Some(messages), _) => builder.history(crate::args::history(messages)?),
            (None, None, Some(seq)) => builder.after_seq(crate::args::after_seq(seq)?),
            (None, None, None) => builder,
        };
        let core = unless_signalled(py, |go_on| builder.subscriber_while(go_on))?;
        Subscriber::wrap(py, core, self.name.clone(), label, wait)
    }

    /// A topic is pickled as what it was made of.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let remake = py.import("ramway._ramway")?.getattr("_remake_topic")?;
        let options = self.made_by.1.clone_ref(py);
        Ok((remake, (self.made_by.0, self.name.as_str(), options).into_pyobject(py)?))
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Topic {:?}>", self.name)
    }
}

/// What a pickled topic is made by.
#[pyfunction]
pub(crate) fn _remake_topic(py: Python<'_>, intent: &str, name: Name, options: &Bound<'_, PyDict>) -> PyResult<Topic> {
    Topic::new(py, name, crate::args::intent(intent), Some(options))
}
