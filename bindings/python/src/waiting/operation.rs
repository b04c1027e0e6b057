//! What a task can wait for.

use crate::bus::listener::Listener;
use crate::errors;
use crate::many::inbox::Inbox;
use crate::many::merge::Merge;
use crate::many::outbox::Outbox;
use crate::many::sources::Sources;
use crate::region::Region;
use crate::ring::message::Message;
use crate::ring::receiver::Receiver;
use crate::ring::sender::Sender;
use crate::waiting::POLL_INTERVAL;
use crate::waiting::awaitable::Wait;
use crate::waiting::watch::{Waits, Watch};
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ramway::ErrorKind;
use std::os::fd::OwnedFd;

/// Seconds between two polls of a task that waits for a message and holds others: the sender may have come to wait for
/// their room.
pub(crate) const HOLDER_INTERVAL: f64 = POLL_INTERVAL.as_secs_f64();
/// Seconds between two polls of a task that waits for a listener: handshakes that have gone silent end in them.
pub(crate) const LISTENER_INTERVAL: f64 = 1.0;
/// Seconds between two polls of a task that waits for a peer: a name that is removed wakes nobody.
const PEER_INTERVAL: f64 = POLL_INTERVAL.as_secs_f64();

/// Seconds between two polls of a task that waits for what has no descriptor: a subscriber that may only read, an outbox.
pub(crate) const TIMED_INTERVAL: f64 = ramway::facts::UNORDERED_INTERVAL.as_secs_f64();

pub(crate) enum Operation {
    /// The next message; `stream`: as an `async for` wants it, which the end of the stream ends.
    Message {
        receiver: Py<Receiver>,
        stream: bool,
    },
    /// What another method of the receiver gives, the last of whose arguments is a time-out of 0.
    Several {
        receiver: Py<Receiver>,
        method: &'static str,
        arguments: Py<PyTuple>,
    },
    /// What a `try_` method of the sender gives once it does not raise FullError.
    Room {
        sender: Py<Sender>,
        method: &'static str,
        arguments: Py<PyTuple>,
    },
    /// The epoch of a peer that is attached and lives.
    Receivers {
        sender: Py<Sender>,
    },
    Senders {
        receiver: Py<Receiver>,
    },
    /// So many reliable subscribers that are attached and live.
    Subscribers {
        publisher: Py<Sender>,
        count: usize,
    },
    /// The next notification.
    Notification {
        region: Py<Region>,
    },
    /// The next bus; `stream`: as an `async for` wants it, which a closed listener ends.
    Connection {
        listener: Py<Listener>,
        stream: bool,
    },
    /// What comes next from any of many: `async for` alone.
    Merged {
        merge: Py<Merge>,
    },
    /// The next message or departure; `stream`: as an `async for` wants it, which the last departure of a closed one ends.
    Incoming {
        inbox: Py<Inbox>,
        stream: bool,
    },
    /// What `_step`, a method that does not wait, gives once it is not None.
    Outgoing {
        outbox: Py<Outbox>,
        arguments: Py<PyTuple>,
    },
}

impl Operation {
    /// The event loops' side of the handle.
    pub(crate) fn waits(&self) -> &Waits {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } | Self::Senders { receiver } => {
                &receiver.get().endpoint.waits
            }
            Self::Room { sender, .. } | Self::Receivers { sender } | Self::Subscribers { publisher: sender, .. } => {
                &sender.get().endpoint.waits
            }
            Self::Notification { region } => &region.get().shared.waits,
            Self::Connection { listener, .. } => &listener.get().shared.waits,
            Self::Outgoing { outbox, .. } => &outbox.get().waits,
            Self::Merged { .. } | Self::Incoming { .. } => &self.sources().expect("of many").waits,
        }
    }

    /// The many that it waits for.
    fn sources(&self) -> Option<&Sources> {
        match self {
            Self::Merged { merge } => Some(&merge.get().sources),
            Self::Incoming { inbox, .. } => Some(&inbox.get().sources),
            _ => None,
        }
    }

    /// Has the watch woken when one of many is closed.
    pub(crate) fn tell_of_close(&self, py: Python<'_>, watch: &Py<Watch>) {
        if let Some(sources) = self.sources() {
            sources.tell_of_close(py, watch);
        }
    }

    /// Whose operation it is.
    pub(crate) fn handle(&self) -> &Py<PyAny> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } | Self::Senders { receiver } => {
                receiver.as_any()
            }
            Self::Room { sender, .. } | Self::Receivers { sender } | Self::Subscribers { publisher: sender, .. } => {
                sender.as_any()
            }
            Self::Notification { region } => region.as_any(),
            Self::Connection { listener, .. } => listener.as_any(),
            Self::Merged { merge } => merge.as_any(),
            Self::Incoming { inbox, .. } => inbox.as_any(),
            Self::Outgoing { outbox, .. } => outbox.as_any(),
        }
    }

    /// What there is now, or `None`: then the descriptor becomes readable when that changes.
    #[inline]
    pub(crate) fn attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { receiver, stream } => {
                Ok(next_message(receiver.bind(py), *stream)?.map(|message| message.into_any()))
            }
            _ => self.attempt_by_name(py),
        }
    }

    #[inline(never)]
    fn attempt_by_name(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Message { .. } => unreachable!("attempted by its caller"),
            Self::Several { receiver, method, arguments } => {
                if receiver.get().is_empty(py)? {
                    return Ok(None);
                }
                let received = receiver.bind(py).call_method1(*method, arguments);
                // Of a topic: it was overwritten before it was read.
                let Some(received) = errors::unless(py, ErrorKind::TimedOut, received)? else { return Ok(None) };
                let many = matches!(*method, "recv_batch" | "recv_array");
                self.waits().took(if many { received.len()?.try_into().unwrap_or(u32::MAX) } else { 1 });
                Ok(Some(received.unbind()))
            }
            Self::Room { sender, method, arguments } => match sender.bind(py).call_method1(*method, arguments) {
                Ok(sent) => {
                    self.waits().took(1);
                    Ok(Some(sent.unbind()))
                }
                Err(e) if errors::is(py, &e, ErrorKind::Full) => Ok(None),
                Err(e) => Err(e),
            },
            Self::Merged { merge } => {
                let found = Merge::next(merge.bind(py), true)?;
                self.waits().took(found.is_some().into());
                Ok(found)
            }
            Self::Incoming { inbox, stream } => {
                let found = Inbox::next(inbox.bind(py), *stream)?;
                self.waits().took(found.is_some().into());
                Ok(found)
            }
            Self::Outgoing { outbox, arguments } => {
                let done = outbox.bind(py).call_method1(intern!(py, "_step"), arguments)?;
                self.waits().took(done.is_truthy()?.into());
                Ok(done.is_truthy()?.then(|| py.None()))
            }
            Self::Receivers { sender } => epoch(py, sender.get().peer(py)?),
            Self::Senders { receiver } => epoch(py, receiver.get().peer(py)?),
            Self::Subscribers { publisher, count } => {
                let are_there = crate::topic::publisher::are_there(py, publisher.get(), *count)?;
                Ok(are_there.then(|| py.None()))
            }
            Self::Notification { region } => {
                let notified: bool = region.bind(py).call_method0(intern!(py, "try_wait"))?.extract()?;
                self.waits().took(notified.into());
                Ok(notified.then(|| py.None()))
            }
            Self::Connection { listener, stream } => {
                match listener.bind(py).call_method1(intern!(py, "accept"), (0.0,)) {
                    Ok(bus) => {
                        self.waits().took(1);
                        Ok(Some(bus.unbind()))
                    }
                    Err(e) if errors::is(py, &e, ErrorKind::TimedOut) => Ok(None),
                    Err(e) if *stream && errors::is(py, &e, ErrorKind::Detached) => {
                        Err(PyStopAsyncIteration::new_err(()))
                    }
                    Err(e) => Err(e),
                }
            }
        }
    }

    /// Seconds of waiting after which it is attempted again, whatever the descriptor says.
    pub(crate) fn poll_interval(&self) -> Option<f64> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => {
                let holds = !receiver.get().held.with(|held| held.is_empty());
                holds.then_some(HOLDER_INTERVAL)
            }
            Self::Connection { .. } => Some(LISTENER_INTERVAL),
            Self::Receivers { .. } | Self::Senders { .. } | Self::Subscribers { .. } => Some(PEER_INTERVAL),
            Self::Merged { .. } | Self::Incoming { .. } => self.sources().and_then(Sources::poll_interval),
            Self::Room { .. } | Self::Notification { .. } | Self::Outgoing { .. } => None,
        }
    }

    /// An error if it would wait forever.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Message { receiver, .. } | Self::Several { receiver, .. } => receiver.get().is_stuck(py),
            _ => Ok(()),
        }
    }

    /// A duplicate of the descriptor that becomes readable when `attempt` has something else to say than the last `None`; `None`
    /// of what has none.
    pub(crate) fn fd(&self, py: Python<'_>) -> PyResult<Option<OwnedFd>> {
        match self {
            Self::Outgoing { .. } => Ok(None),
            // A subscriber that may only read has none.
            Self::Message { receiver, .. } | Self::Several { receiver, .. } | Self::Senders { receiver } => {
                errors::unless(py, ErrorKind::Unsupported, receiver.get().duplicate(py))
            }
            Self::Room { sender, .. } | Self::Receivers { sender } | Self::Subscribers { publisher: sender, .. } => {
                sender.get().duplicate(py).map(Some)
            }
            Self::Notification { region } => region.get().duplicate(py).map(Some),
            Self::Connection { listener, .. } => listener.get().duplicate(py).map(Some),
            Self::Merged { .. } => self.sources().expect("of many").duplicate(py).map(Some),
            Self::Incoming { inbox, .. } => inbox.get().duplicate(py).map(Some),
        }
    }

    /// The arguments of the method that it calls.
    pub(crate) fn arguments(&self) -> Option<&Py<PyTuple>> {
        match self {
            Self::Several { arguments, .. } | Self::Room { arguments, .. } | Self::Outgoing { arguments, .. } => {
                Some(arguments)
            }
            _ => None,
        }
    }

    /// What is waited for.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Several { .. } => "messages",
            Self::Room { .. } => "room",
            Self::Receivers { .. } | Self::Senders { .. } | Self::Subscribers { .. } => "peer",
            Self::Notification { .. } => "notification",
            Self::Connection { .. } => "connection",
            Self::Merged { .. } => "message of many",
            Self::Incoming { .. } => "message or departure",
            Self::Outgoing { .. } => "worker",
        }
    }
}

fn epoch(py: Python<'_>, found: Option<u32>) -> PyResult<Option<Py<PyAny>>> {
    Ok(match found {
        Some(epoch) => Some(epoch.into_pyobject(py)?.into_any().unbind()),
        None => None,
    })
}

/// The next message if there is one. The end of a `stream` is StopAsyncIteration.
#[inline]
pub(super) fn next_message(receiver: &Bound<'_, Receiver>, stream: bool) -> PyResult<Option<Py<Message>>> {
    let (py, this) = (receiver.py(), receiver.get());
    match Receiver::message_now(receiver) {
        Ok(Some(message)) => {
            this.endpoint.waits.took(1);
            Ok(Some(message))
        }
        Ok(None) => Ok(None),
        Err(e) if stream && errors::is(py, &e, ErrorKind::Closed) => Err(PyStopAsyncIteration::new_err(())),
        Err(e) => Err(e),
    }
}

/// A wait for what `method` of a receiver gives; the last of its arguments is a time-out of 0.
pub(crate) fn several<'py, A>(receiver: &Bound<'py, Receiver>, method: &'static str, arguments: A) -> PyResult<Wait>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let arguments = arguments.into_pyobject(receiver.py())?.unbind();
    Ok(Wait::new(Operation::Several { receiver: receiver.clone().unbind(), method, arguments }))
}

/// A wait for what `method` of a sender gives, one of those that do not wait.
pub(crate) fn room<'py, A>(sender: &Bound<'py, Sender>, method: &'static str, arguments: A) -> PyResult<Wait>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let arguments = arguments.into_pyobject(sender.py())?.unbind();
    Ok(Wait::new(Operation::Room { sender: sender.clone().unbind(), method, arguments }))
}
