//! The methods that a sender and a receiver share.

use crate::args::{Policy, Seconds};
use crate::endpoint::CoreEnd;
use crate::errors::{DUPLICATE, OrRaise, os_error, raise};
use crate::ring::receiver::Receiver;
use crate::ring::sender::Sender;
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::Operation;
use crate::waiting::{POLL_INTERVAL, wait};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use ramway::ErrorKind;
use ramway::ring::raw::WaitLimit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// `$field` is the operation's for its handle.
macro_rules! endpoint_calls {
    ($class:ident, $operation:ident { $field:ident }, $(#[$fileno:meta])*) => {
        impl $class {
            /// A duplicate of what `fileno` gives, which stays when the handle is closed.
            pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<OwnedFd> {
                // Entered, so that nobody closes it meanwhile.
                let mut core = self.enter(py)?;
                let fd = match self.endpoint.known_descriptor() {
                    Some(fd) => fd,
                    None => core.raw_endpoint().readiness().or_raise(py)?.as_raw_fd(),
                };
                self.endpoint.descriptor.set(Some(fd));
                // SAFETY: the end's own, and the end is in use by this call.
                let duplicate = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
                duplicate.map_err(|e| os_error(py, DUPLICATE, e))
            }

            /// wait_for_peer that does not wait: `None` if there is no peer.
            pub(crate) fn peer(&self, py: Python<'_>) -> PyResult<Option<u32>> {
                match self.enter(py)?.raw_endpoint().await_peer(WaitLimit::None) {
                    Ok(epoch) => Ok(Some(epoch)),
                    Err(e) if e.kind() == ErrorKind::Empty => Ok(None),
                    Err(e) => Err(raise(py, e)),
                }
            }
        }

        #[pymethods]
        impl $class {
            $(#[$fileno])*
            pub(crate) fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
                if let Some(fd) = self.endpoint.known_descriptor() {
                    return Ok(fd);
                }
                let fd = self.enter(py)?.raw_endpoint().readiness().or_raise(py)?.as_raw_fd();
                self.endpoint.descriptor.set(Some(fd));
                Ok(fd)
            }

            /// Waits up to `timeout` seconds, without one as long as it takes, until the other side is attached, has not
            /// closed, and its process lives; gives its epoch, which is peer_epoch. At once if there is one already. After
            /// PeerDeadError or ClosedError on a named ring this waits for the successor.
            ///
            /// Raises TimedOutError; ClosedError if the ring's name was removed, so that nobody can come; on a bus and a
            /// pair ClosedError or PeerDeadError if the other side is gone, because no other one comes.
            #[pyo3(signature = (timeout = None))]
            fn wait_for_peer(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<u32> {
                let mut core = self.enter(py)?;
                let attempt = |wait_limit| core.raw_endpoint().await_peer(wait_limit);
                let what = format!("no living {}", self.endpoint.role().peer);
                wait(py, timeout.into(), POLL_INTERVAL, attempt, |py| self.endpoint.check_open(py))
                    .map_err(|e| self.endpoint.missing(py, e, &what))
            }

            /// wait_for_peer for asyncio: an awaitable of the other side's epoch.
            fn wait_for_peer_async(slf: &Bound<'_, Self>) -> Wait {
                Wait::new(Operation::$operation { $field: slf.clone().unbind() })
            }

            /// Whether this handle was closed.
            #[getter]
            pub(crate) fn closed(&self) -> bool {
                self.endpoint.is_shut()
            }

            /// The ring's name; None on a bus or a pair.
            #[getter]
            fn name(&self) -> Option<&str> {
                self.endpoint.name()
            }

            /// Bytes of the data area; a message takes 16 bytes more than its payload, rounded up to align.
            #[getter]
            fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(self.enter(py)?.capacity())
            }

            /// Every payload begins on a multiple of this many bytes.
            #[getter]
            fn align(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(self.enter(py)?.align())
            }

            /// Bytes of the longest message that ever fits.
            #[getter]
            fn max_message_len(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(self.enter(py)?.max_message_len() as usize)
            }

            /// Bytes of the ring, frame headers included, that are sent and not given back. Can be stale.
            #[getter]
            fn used(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(self.enter(py)?.used())
            }

            /// Whether the other side is attached and its process lives.
            #[getter]
            pub(crate) fn peer_alive(&self, py: Python<'_>) -> PyResult<bool> {
                Ok(self.enter(py)?.raw_endpoint_ref().is_peer_alive())
            }

            /// How often the other side has attached; 0 = never yet.
            #[getter]
            fn peer_epoch(&self, py: Python<'_>) -> PyResult<u32> {
                Ok(self.enter(py)?.raw_endpoint_ref().peer_epoch())
            }

            /// How often this side has attached, this handle included.
            #[getter]
            fn epoch(&self, py: Python<'_>) -> PyResult<u32> {
                Ok(self.enter(py)?.raw_endpoint_ref().epoch())
            }

            /// How blocking calls wait: 'spin', 'hybrid' or 'block'. May be set.
            #[getter]
            fn get_wait(&self) -> &'static str {
                Policy(self.endpoint.policy.get()).name()
            }

            #[setter]
            fn set_wait(&self, py: Python<'_>, policy: Policy) -> PyResult<()> {
                let mut core = self.enter(py)?;
                let end = core.raw_endpoint();
                end.set_wait_policy(policy.0);
                self.endpoint.wait_by(policy.0, end.polls());
                Ok(())
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                self.endpoint.waits.traverse(&visit)
            }

            fn __reduce__(&self) -> PyResult<()> {
                let role = self.endpoint.role();
                let text = format!(
                    "a {} cannot be pickled: pass its name (or a {}) and open it there",
                    role.class, role.log_class
                );
                Err(PyTypeError::new_err(text))
            }

            fn __repr__(&self) -> String {
                let (name, closed) = (self.endpoint.name().unwrap_or(""), if self.closed() { ", closed" } else { "" });
                format!("<ramway.{} {name:?}{closed}>", self.endpoint.role().class)
            }
        }
    };
}

endpoint_calls! {
    Sender, Receivers { sender },
    /// A descriptor for event loops: after a FullError of try_send it becomes readable when try_send has something else
    /// to say. It stays readable until a try_send raises FullError again, so try_send in a loop until then. Made at the
    /// first call; it belongs to the sender: do not read from it, do not close it.
}

endpoint_calls! {
    Receiver, Senders { receiver },
    /// A descriptor for event loops (select, epoll) that stays readable until a try_recv gives None: when it is readable,
    /// call try_recv until it does. recv would block after the last message.
    ///
    /// It becomes readable when try_recv would give a message, or raise because the sender is gone. Made at the first
    /// call; it belongs to the receiver: do not read from it, do not close it.
}
