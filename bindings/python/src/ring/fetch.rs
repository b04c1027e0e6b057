//! How messages come out of the ring: polled for, waited for, given back, and moved out of the sender's way.

use crate::args::Timeout;
use crate::endpoint::Using;
use crate::errors::{OrRaise, error, raise};
use crate::ring::receiver::Receiver;
use crate::waiting::{poll_interval, wait};
use pyo3::prelude::*;
use ramway::ring::consumer::Frame;
use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::{ErrorKind, WaitPolicy};

impl Receiver {
    /// The next message within the time, or an error; notes it as held. Gives its frame and number.
    #[inline]
    pub(crate) fn fetch(&self, py: Python<'_>, timeout: Timeout) -> PyResult<(Frame, u64)> {
        let mut core = self.enter(py)?;
        let mut raw = core.raw();
        let frame = match raw.poll(self.endpoint.first_polls.get()).or_raise(py)? {
            Some(frame) => frame,
            None => {
                let received = self.wait(py, &mut core, timeout);
                // What other threads gave back meanwhile: the sender may need it before the next call.
                self.settle(&mut core);
                received?
            }
        };
        Ok(self.hold(&mut core, frame))
    }

    /// The next message if it is there and nothing is in the way; on `None`, call `fetch`.
    #[inline(always)]
    pub(crate) fn at_once(&self) -> Option<(Frame, u64)> {
        if self.endpoint.is_shut() {
            return None;
        }
        let mut core = self.endpoint.try_enter()?;
        self.settle(&mut core);
        let frame = core.raw().poll(1).ok()??;
        Some(self.hold(&mut core, frame))
    }

    /// The next message if there is one.
    #[inline]
    pub(crate) fn try_fetch(&self, py: Python<'_>) -> PyResult<Option<(Frame, u64)>> {
        let mut core = self.enter(py)?;
        let frame = match core.raw().recv_more(WaitLimit::None) {
            Ok(frame) => frame,
            Err(e) if e.kind() == ErrorKind::Empty => {
                self.nothing_there(&mut core);
                return Ok(None);
            }
            Err(e) => return Err(raise(py, e)),
        };
        Ok(Some(self.hold(&mut core, frame)))
    }

    /// Notes the frame that was received last as held; gives it and its number.
    #[inline(always)]
    pub(super) fn hold(&self, core: &mut ramway::Receiver, frame: Frame) -> (Frame, u64) {
        let position = core.raw().position();
        (frame, self.held.with(|held| held.push(position)))
    }

    /// Has the message that was fetched last received again: nothing was made of it.
    pub(crate) fn put_back(&self, py: Python<'_>) -> PyResult<()> {
        let mut core = self.enter(py)?;
        let before = self.held.with(|held| held.forget_last());
        core.raw().unread(before);
        Ok(())
    }

    /// Whether there is no message now. Raises how the stream ended.
    pub(crate) fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        let found = self.try_fetch(py)?.is_some();
        if found {
            self.put_back(py)?;
        }
        Ok(!found)
    }

    #[inline]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Using<'_, Self>> {
        let mut core = Using::of(self, py)?;
        self.settle(&mut core);
        Ok(core)
    }

    /// Does the releases that had to wait for the end to be free.
    #[inline]
    fn settle(&self, core: &mut ramway::Receiver) {
        if let Some(position) = self.owed.get() {
            self.owed.set(None);
            core.raw().release_until(position);
        }
    }

    /// Before a wait, however it is waited: what was received last must not be in the sender's way.
    fn nothing_there(&self, core: &mut ramway::Receiver) {
        if self.held.with(|held| held.is_empty()) {
            return;
        }
        let half = core.capacity() as u64 / 2;
        let mut raw = core.raw();
        // A caller that waits for the descriptor does not poll again before there is a message.
        if raw.unreleased() > half || raw.sender_waits() || self.endpoint.has_descriptor() {
            self.make_room(core);
        }
    }

    /// Moves what was received last into private memory, if that is all that is held and nobody has a view of it: it is
    /// what a loop's variable still names while the next message is received.
    #[cold]
    #[inline(never)]
    fn make_room(&self, core: &mut ramway::Receiver) {
        let mut end = None;
        for (number, message) in self.held.with(|held| held.latest()) {
            // SAFETY: not given back, so alive, and it stays so: nothing here gives the interpreter lock up or calls
            // into Python.
            if !unsafe { message.as_ref() }.move_out() {
                break;
            }
            end = self.held.with(|held| held.give_back(number)).or(end);
        }
        if let Some(end) = end {
            core.raw().release_until(end);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, py: Python<'_>, core: &mut ramway::Receiver, timeout: Timeout) -> PyResult<Frame> {
        self.nothing_there(core);
        // Messages that other threads give back meanwhile are settled after each interval.
        let interval = if self.held.with(|held| held.is_empty()) {
            poll_interval(self.endpoint.policy.get())
        } else {
            poll_interval(WaitPolicy::Spin)
        };
        let end = std::cell::RefCell::new(core);
        let attempt = Shared(&end);
        let received = wait(
            py,
            timeout,
            interval,
            move |wait_limit| attempt.get().borrow_mut().raw().recv_more(wait_limit).map(Moving),
            |py| {
                self.endpoint.check_open(py)?;
                self.check_stuck(py, &mut end.borrow_mut())
            },
        );
        received.map(|moving| moving.0).map_err(|e| self.endpoint.missing(py, e, "no message"))
    }

    /// BusyError if the sender waits for room that only messages held here could give it: for a wait without polls.
    pub(crate) fn is_stuck(&self, py: Python<'_>) -> PyResult<()> {
        let mut core = self.enter(py)?;
        self.check_stuck(py, &mut core)
    }

    fn check_stuck(&self, py: Python<'_>, core: &mut ramway::Receiver) -> PyResult<()> {
        self.settle(core);
        let mut raw = core.raw();
        if raw.unreleased() == 0 || !raw.sender_waits() {
            return Ok(());
        }
        let position = raw.position();
        if raw.poll(1).or_raise(py)?.is_some() {
            // For the next attempt to receive.
            raw.unread(Some(position));
            return Ok(());
        }
        let before = raw.unreleased();
        self.make_room(core);
        let held = core.raw().unreleased();
        if held < before {
            return Ok(());
        }
        let (count, capacity) = (self.held.with(|held| held.len()), core.capacity());
        Err(error(
            py,
            ErrorKind::Busy,
            format!(
                "the sender waits for room, and {count} messages ({held} of {capacity} bytes of the ring) are still held \
                 here, so that neither side could go on: drop or release messages and their views, copy what is to be \
                 kept, or create the ring with a larger capacity"
            ),
        ))
    }

    /// The message or batch of this number is no longer used.
    #[inline]
    pub(crate) fn give_back(&self, number: u64) {
        let Some(position) = self.held.with(|held| held.give_back(number)) else { return };
        match self.endpoint.try_enter() {
            Some(mut core) => {
                // What is owed lies before it, and would be a step back afterwards.
                self.owed.set(None);
                core.raw().release_until(position);
            }
            None => self.owed.set(Some(position)),
        }
        if self.endpoint.is_shut() {
            self.finish();
        }
    }

    /// Releases the role once the handle is shut and nothing is held.
    #[cold]
    pub(super) fn finish(&self) {
        if self.held.with(|held| held.is_empty()) {
            if let Some(mut core) = self.endpoint.try_enter() {
                self.settle(&mut core);
            }
            drop(self.endpoint.take());
        } else if !self.said_closed.get()
            && let Some(mut core) = self.endpoint.try_enter()
        {
            // The memory stays for its views; the sender is not to wait for them.
            self.said_closed.set(true);
            core.say_closed();
        }
    }
}

/// Carries a reference across the release of the interpreter lock.
struct Shared<'a, T>(&'a T);

impl<T> Shared<'_, T> {
    fn get(&self) -> &T {
        self.0
    }
}

// SAFETY: `wait` uses it while it has given the interpreter lock up, and its other user runs only while it has not.
unsafe impl<T> Send for Shared<'_, T> {}

/// A frame on its way from the core to a message.
#[derive(Clone, Copy)]
struct Moving(Frame);

// SAFETY: an address in the mapping, which is kept until the frame is given back.
unsafe impl Send for Moving {}
