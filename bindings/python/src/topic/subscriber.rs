//! `ramway.Subscriber`: what a topic's receiving end has besides what a ring's has.

use crate::args::{Seconds, Timeout, calls};
use crate::endpoint::End;
use crate::errors::{OrRaise, error};
use crate::ring::message::Message;
use crate::ring::receiver::Receiver;
use crate::waiting::awaitable::Wait;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;
use ramway::{ErrorKind, Lag, Policy, WaitPolicy};

/// "reliable", "lossy" or "latest".
#[derive(Clone, Copy)]
pub(crate) struct ReadingPolicy(pub(crate) Policy);

impl ReadingPolicy {
    pub(crate) const RELIABLE: Self = Self(Policy::Reliable);

    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Policy::Reliable => "reliable",
            Policy::Lossy => "lossy",
            Policy::Latest => "latest",
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for ReadingPolicy {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let given = object.cast::<PyString>().map_err(PyErr::from)?.to_string_lossy().into_owned();
        let all = [Policy::Reliable, Policy::Lossy, Policy::Latest].map(Self);
        all.into_iter().find(|policy| policy.name() == given).ok_or_else(|| {
            let text = format!("policy={given:?}: expected 'reliable', 'lossy' or 'latest'");
            error(object.py(), ErrorKind::InvalidArgument, text)
        })
    }
}

/// As a `ramway.Lag`.
pub(crate) fn lag(py: Python<'_>, found: Lag) -> PyResult<Bound<'_, PyAny>> {
    py.import("ramway._topic")?.getattr("Lag")?.call1((found.bytes, found.messages))
}

/// The receiving end of a topic: a Receiver that is one of many, with a policy of its own. Its messages are TopicMessages:
/// they have a number (`seq`), a time, and how many messages were lost right before them (`lost`).
///
/// A reliable subscriber's messages are read-only views of the shared memory, for which the publisher waits while they, or
/// views of them, are alive. Under the other policies, and where the topic is may_eject, each is a copy: memory of its own,
/// which may be written, and which nobody waits for.
///
/// `for msg in sub` gives the messages until the publisher closes; one that died raises PeerDeadError, after which a successor
/// may come (wait_for_peer). LaggedError says that the publisher has ejected this subscriber, and how many messages it has lost
/// by that: the next call goes on at the oldest message that is left. One thread at a time may be in a call (BusyError); blocking calls let
/// other threads run and answer Ctrl-C.
#[pyclass(frozen, extends = Receiver, module = "ramway")]
pub(crate) struct Subscriber {
    policy: ReadingPolicy,
    label: Option<String>,
}

impl Subscriber {
    pub(crate) fn wrap(
        py: Python<'_>,
        core: ramway::Subscriber,
        name: String,
        label: Option<String>,
        wait: WaitPolicy,
    ) -> PyResult<Py<Self>> {
        let own = Self { policy: ReadingPolicy(core.policy()), label };
        let receiver = Receiver::wrap(End::Topic(core), Some(name), wait, false);
        Py::new(py, PyClassInitializer::from(receiver).add_subclass(own))
    }

    fn check_latest(&self, py: Python<'_>) -> PyResult<()> {
        if self.policy.0 == Policy::Latest {
            return Ok(());
        }
        let text = "wait_newer on a subscriber that receives in order: use recv, or open it with the policy 'latest'";
        Err(error(py, ErrorKind::Unsupported, text))
    }
}

/// Uses a subscriber's core end.
fn with<R>(
    slf: &Bound<'_, Subscriber>,
    call: impl FnOnce(&mut ramway::Subscriber) -> ramway::Result<R>,
) -> PyResult<R> {
    let py = slf.py();
    match &mut *slf.as_super().get().enter(py)? {
        End::Topic(subscriber) => call(subscriber).or_raise(py),
        End::Ring(_) => unreachable!("a Subscriber is made of a topic's end"),
    }
}

calls! {
    Subscriber as slf:

    /// Waits up to `timeout` seconds, without one as long as it takes, for a message that is newer than the one that latest
    /// or this gave last; gives the newest one then. It is recv in the words of a value that changes.
    ///
    /// Raises TimedOutError, ClosedError and PeerDeadError as recv does; UnsupportedError under another policy than 'latest'.
    wait_newer(timeout) -> Py<Message> {
        slf.get().check_latest(slf.py())?;
        Receiver::message_within(slf.as_super(), timeout)
    }

    /// wait_newer for asyncio: an awaitable of the newest message.
    wait_newer_async() -> Wait {
        slf.get().check_latest(slf.py())?;
        Ok(Wait::message(slf.as_super(), false))
    }
}

#[pymethods]
impl Subscriber {
    /// A copy of the newest message, whatever was received before: the same one again if there is no newer one. None if there
    /// is none yet, after waiting for the first one for `timeout` seconds (default 0: not at all; None: as long as it takes).
    ///
    /// Under every policy what recv gives next stays as it was; but under 'latest' that waits for a message that is newer than
    /// this one. It is given also after the publisher has closed or died.
    #[pyo3(signature = (timeout = Some(Seconds::ZERO)), text_signature = "($self, timeout=0.0)")]
    fn latest(slf: &Bound<'_, Self>, timeout: Option<Seconds>) -> PyResult<Option<Py<Message>>> {
        let receiver = slf.as_super();
        let found = receiver.get().newest(slf.py(), Timeout::from(timeout))?;
        found.map(|copy| Receiver::copied(receiver, copy)).transpose()
    }

    /// Moves on so that the next message is the newest one, and gives how many it leaves out. They do not count as lost.
    /// Messages that are held keep their place. UnsupportedError under 'latest', which reads the newest one anyway.
    fn skip_to_newest(slf: &Bound<'_, Self>) -> PyResult<u64> {
        slf.as_super().get().skip_to_newest(slf.py())
    }

    /// Closes a durable subscriber for good: its label and place are forgotten, and the publisher no longer waits for it. For
    /// any other it is close. Messages that are held keep their memory, and the publisher waits for them, until they go.
    fn unsubscribe(slf: &Bound<'_, Self>) -> PyResult<()> {
        with(slf, |core| {
            core.forget_durable();
            Ok(())
        })?;
        slf.as_super().get().close(slf.py())
    }

    /// How it reads: 'reliable', 'lossy' or 'latest'.
    #[getter]
    fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// The label that it was opened with; None without one.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// How many messages this handle has lost so far: the sum of what its messages, and LaggedError, say.
    #[getter]
    fn lost(slf: &Bound<'_, Self>) -> PyResult<u64> {
        with(slf, |core| Ok(core.lost()))
    }

    /// How far it is behind, as a Lag of bytes and messages: by a load of the shared positions, so it can be stale.
    #[getter]
    fn lag<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let found = with(slf, |core| Ok(core.lag()))?;
        lag(slf.py(), found)
    }

    fn __traverse__(&self, _visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}
