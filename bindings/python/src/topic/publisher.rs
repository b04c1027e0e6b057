//! `ramway.Publisher`: what a topic's sending end has besides what a ring's has.

use crate::args::calls;
use crate::endpoint::{End, Using};
use crate::errors::OrRaise;
use crate::ring::sender::Sender;
use crate::topic::subscriber::{ReadingPolicy, lag};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use crate::waiting::{POLL_INTERVAL, wait};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ramway::ErrorKind;
use ramway::WaitPolicy;
use ramway::ring::raw::WaitLimit;

/// The publishing end of a topic: a Sender whose messages many read. One per topic, in the whole system.
///
/// send waits for the slowest reliable subscriber when the topic is full, and for nobody where there is none: then it
/// overwrites. A subscriber never ends it, so that no call raises ClosedError or PeerDeadError because of one; a reliable one
/// that dies is found within 200 ms. wait_for_peer waits for a reliable subscriber, peer_epoch counts how often subscribers
/// came and went, and last_tag is the tag of the last message, by any publisher of the topic.
///
/// One thread at a time may be in a call (BusyError); blocking calls let other threads run and answer Ctrl-C.
#[pyclass(frozen, extends = Sender, module = "ramway")]
pub(crate) struct Publisher {}

impl Publisher {
    pub(crate) fn wrap(
        py: Python<'_>,
        core: ramway::Publisher,
        name: String,
        policy: WaitPolicy,
    ) -> PyResult<Py<Self>> {
        let sender = Sender::wrap(End::Topic(core), Some(name), policy);
        Py::new(py, PyClassInitializer::from(sender).add_subclass(Self {}))
    }
}

/// Uses a publisher's core end.
fn with<R>(
    py: Python<'_>,
    sender: &Sender,
    call: impl FnOnce(&mut ramway::Publisher) -> ramway::Result<R>,
) -> PyResult<R> {
    match &mut *sender.enter(py)? {
        End::Topic(publisher) => call(publisher).or_raise(py),
        End::Ring(_) => unreachable!("a Publisher is made of a topic's end"),
    }
}

/// Whether so many reliable subscribers are there. If not, the readiness descriptor is armed for their coming.
pub(crate) fn are_there(py: Python<'_>, publisher: &Sender, count: usize) -> PyResult<bool> {
    let found = with(py, publisher, |core| core.wait_for_count(count, WaitLimit::None));
    Ok(crate::errors::unless(py, ErrorKind::Empty, found)?.is_some())
}

calls! {
    Publisher as slf:

    /// Waits up to `timeout` seconds, without one as long as it takes, until `n` reliable subscribers are attached and their
    /// processes live. At once if they are there. (Others do not count: the publisher does not wait for them.)
    ///
    /// Raises TimedOutError, InvalidArgumentError if the topic has fewer slots, ClosedError if the topic's name was removed,
    /// so that nobody can come.
    wait_for_subscribers(n: usize, timeout) -> () {
        let (py, sender) = (slf.py(), slf.as_super().get());
        let mut core: Using<'_, Sender> = sender.enter(py)?;
        let End::Topic(publisher) = &mut *core else { unreachable!("a Publisher is made of a topic's end") };
        let attempt = |wait_limit| publisher.wait_for_count(n, wait_limit);
        let what = format!("fewer than {n} reliable subscribers");
        wait(py, timeout, POLL_INTERVAL, attempt, |py| sender.endpoint.check_open(py))
            .map_err(|e| sender.endpoint.missing(py, e, &what))
    }

    /// wait_for_subscribers for asyncio: an awaitable that is done once they are there.
    wait_for_subscribers_async(n: usize) -> Wait {
        Ok(Wait::new(Operation::Subscribers { publisher: slf.as_super().clone().unbind(), count: n }))
    }
}

#[pymethods]
impl Publisher {
    /// Those who have a slot, as a list of SubscriberInfo: every reliable subscriber, and of the others those that could take
    /// one. Asks the system once for each.
    fn subscribers<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = slf.py();
        let class = py.import("ramway._topic")?.getattr("SubscriberInfo")?;
        let all = with(py, slf.as_super().get(), |core| Ok(core.subscribers()))?;
        all.into_iter()
            .map(|found| {
                let record = PyDict::new(py);
                record.set_item("slot", found.slot)?;
                record.set_item("policy", ReadingPolicy(found.policy).name())?;
                record.set_item("label", Some(found.label).filter(|label| !label.is_empty()))?;
                record.set_item("durable", found.durable)?;
                record.set_item("alive", found.alive)?;
                record.set_item("ejected", found.ejected)?;
                record.set_item("epoch", found.epoch)?;
                record.set_item("lag", found.lag.map(|found| lag(py, found)).transpose()?)?;
                record.set_item("lost", found.lost)?;
                record.set_item("blocks_for", found.blocks_for.map(|time| time.as_secs_f64()))?;
                class.call((), Some(&record))
            })
            .collect()
    }

    /// The number of the last published message; 0 before the first.
    #[getter]
    fn seq(slf: &Bound<'_, Self>) -> PyResult<u64> {
        with(slf.py(), slf.as_super().get(), |core| Ok(core.seq()))
    }

    /// Lets the next message's number be `n` higher than it would be: every subscriber counts that many messages as lost
    /// before it. For bridges and replays whose own source has a gap. InvalidArgumentError if no number would be left.
    fn skip_seq(slf: &Bound<'_, Self>, #[pyo3(from_py_with = crate::args::n)] n: usize) -> PyResult<()> {
        with(slf.py(), slf.as_super().get(), |core| core.skip_seq(n as u64))
    }

    fn __traverse__(&self, _visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}
