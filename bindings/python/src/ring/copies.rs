//! Messages that come as copies: those of a topic's subscriber that the publisher does not wait for, or that it may eject,
//! because what lies in the log can be overwritten while it is read. The copy is made once, to where it stays, and keeps no place
//! in the log.

use crate::args::{Bytes, Timeout};
use crate::endpoint::{CoreEnd, ReceiverEnd};
use crate::errors::{OrRaise, unless};
use crate::ring::fetch::Kind;
use crate::ring::hot;
use crate::ring::message::{Message, Private, new_bytes};
use crate::ring::receiver::Receiver;
use crate::tensor::dlpack::LARGE;
use crate::waiting::{poll_interval, wait};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ramway::ring::consumer::Frame;
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, Result, Topic};

/// Says where a copy of a payload goes, by where the payload is and its length; else for how many bytes there is room.
pub(super) type Room<'a> = dyn FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize> + Send + 'a;

/// A frame whose payload was copied.
pub(super) struct Copied(Frame<Topic>);

// SAFETY: its address is one that the caller gave.
unsafe impl Send for Copied {}

/// A copied message.
pub(crate) struct Copy {
    frame: Frame<Topic>,
    private: Private,
}

impl Receiver {
    /// The message of a copy.
    pub(crate) fn copied(slf: &Bound<'_, Self>, copy: Copy) -> PyResult<Py<Message>> {
        hot::own(slf, copy.frame, copy.private)
    }

    /// [`fetch`](Self::fetch) of a copy.
    #[inline(never)]
    pub(super) fn fetch_copy(&self, py: Python<'_>, timeout: Timeout) -> PyResult<Copy> {
        let mut core = self.enter(py)?;
        let found = keep(core.align(), |room| self.copy(py, &mut core, timeout, room).map(Some))?;
        Ok(found.expect("it was waited for"))
    }

    /// [`try_fetch`](Self::try_fetch) of a copy.
    #[inline(never)]
    pub(super) fn try_fetch_copy(&self, py: Python<'_>) -> PyResult<Option<Copy>> {
        let mut core = self.enter(py)?;
        keep(core.align(), |room| or_nothing(copy_now(py, &mut core, room)).or_raise(py))
    }

    /// One more message of a batch, if there is one. What else there is to tell is left for the next receive.
    pub(super) fn copy_more(&self, py: Python<'_>) -> PyResult<Option<Copy>> {
        let mut core = self.enter(py)?;
        let more = keep(core.align(), |room| {
            let copied = Topic::end(&mut core).raw().copy_if_there(&mut *room).or_raise(py)?;
            Ok(copied.map(Copied))
        });
        Ok(more.unwrap_or(None))
    }

    /// A copy of the newest message, also of one that was received; `None` if there was none within the time.
    pub(crate) fn newest(&self, py: Python<'_>, timeout: Timeout) -> PyResult<Option<Copy>> {
        let mut core = self.enter(py)?;
        let (align, left) = (core.align(), timeout.counting());
        loop {
            let found = keep(align, |room| or_nothing(newest_now(py, &mut core, room)).or_raise(py))?;
            if found.is_some() {
                return Ok(found);
            }
            // Nothing was ever sent: under every policy the first message is the next one.
            if unless(py, ErrorKind::TimedOut, self.wait_for_one(py, &mut core, left()))?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Copies the next message to where `room` says, within the time.
    pub(super) fn copy(
        &self,
        py: Python<'_>,
        core: &mut ReceiverEnd,
        timeout: Timeout,
        room: &mut Room<'_>,
    ) -> PyResult<Copied> {
        let left = timeout.counting();
        let polls = self.endpoint.first_polls.get();
        loop {
            if Topic::end(core).raw().is_there(polls).or_raise(py)? {
                match copy_now(py, core, room) {
                    // It was overwritten before it was read, and there is no newer one.
                    Err(e) if e.kind() == ErrorKind::Empty => {}
                    copied => return copied.or_raise(py),
                }
            }
            self.wait_for_one(py, core, left())?;
        }
    }

    /// `Receiver.recv_bytes`.
    pub(super) fn copy_as_bytes<'py>(&self, py: Python<'py>, timeout: Timeout) -> PyResult<Bound<'py, PyBytes>> {
        let (mut made, mut failed) = (None, None);
        let mut core = self.enter(py)?;
        let copied = self.copy(py, &mut core, timeout, &mut |_, len| {
            // A large copy is made without the interpreter lock.
            Python::attach(|py| match new_bytes(py, len) {
                Ok((bytes, to)) => {
                    made = Some(bytes.unbind());
                    Ok(to)
                }
                Err(e) => {
                    failed = Some(e);
                    Err(0)
                }
            })
        });
        match (copied, made) {
            (Ok(_), Some(made)) => Ok(made.into_bound(py)),
            (copied, _) => Err(failed.or(copied.err()).expect("there are no bytes")),
        }
    }

    /// `Receiver.recv_into`.
    pub(super) fn copy_into(&self, py: Python<'_>, target: &Bytes, timeout: Timeout) -> PyResult<usize> {
        let (to, room) = (target.as_mut_ptr().expose_provenance(), target.len());
        let mut core = self.enter(py)?;
        let copied = self.copy(py, &mut core, timeout, &mut |_, len| {
            if len <= room { Ok(std::ptr::with_exposed_provenance_mut(to)) } else { Err(room) }
        });
        Ok(copied?.0.len)
    }

    /// Waits until a message is there.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_one(&self, py: Python<'_>, core: &mut ReceiverEnd, timeout: Timeout) -> PyResult<()> {
        let attempt = |wait_limit| core.raw_endpoint().wait(0, wait_limit);
        let interval = poll_interval(self.endpoint.policy.get());
        wait(py, timeout, interval, attempt, |py| self.endpoint.check_open(py)).map_err(|e| self.missing(py, e))
    }
}

/// Copies the next message to where `room` says; `Empty` if there is none.
fn copy_now(py: Python<'_>, core: &mut ReceiverEnd, room: &mut Room<'_>) -> Result<Copied> {
    let subscriber = Topic::end(core);
    let much = subscriber.len() >= LARGE;
    beside_others(py, much, || subscriber.raw().copy_next(WaitLimit::None, &mut *room))
}

/// Copies the newest message to where `room` says; `Empty` if there is none.
fn newest_now(py: Python<'_>, core: &mut ReceiverEnd, room: &mut Room<'_>) -> Result<Copied> {
    let subscriber = Topic::end(core);
    let much = subscriber.newest_size() >= LARGE as u64;
    beside_others(py, much, || subscriber.latest_with(&mut *room))
}

/// Lets other threads run while much is copied.
fn beside_others(py: Python<'_>, much: bool, copy: impl FnOnce() -> Result<Frame<Topic>> + Send) -> Result<Copied> {
    if much { py.detach(|| copy().map(Copied)) } else { copy().map(Copied) }
}

fn or_nothing(copied: Result<Copied>) -> Result<Option<Copied>> {
    match copied {
        Err(e) if e.kind() == ErrorKind::Empty => Ok(None),
        copied => copied.map(Some),
    }
}

/// What `copy` copies, in memory of the message's own.
fn keep(align: usize, copy: impl FnOnce(&mut Room<'_>) -> PyResult<Option<Copied>>) -> PyResult<Option<Copy>> {
    let (mut private, mut no_memory) = (None, false);
    let copied = copy(&mut |from, len| {
        private = Private::like(from, len, align);
        no_memory = private.is_none();
        private.as_ref().map(Private::data).ok_or(0)
    });
    match (copied, private) {
        (Ok(Some(Copied(frame))), Some(private)) => Ok(Some(Copy { frame, private })),
        // The message stays the next one.
        (Err(_), _) if no_memory => Err(PyMemoryError::new_err("no memory for a copy of the message")),
        (copied, _) => copied.map(|_| None),
    }
}
