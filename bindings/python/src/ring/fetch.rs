//! How messages come out of a log: polled for, waited for, given back, and moved out of the sender's way. What comes as a copy
//! is in `copies.rs`.

use crate::args::Timeout;
use crate::endpoint::{CoreEnd, End, ReceiverEnd, Using};
use crate::errors::{OrRaise, error, raise};
use crate::ring::held::Held;
use crate::ring::hot;
use crate::ring::message::Message;
use crate::ring::receiver::Receiver;
use crate::waiting::{poll_interval, wait};
use pyo3::prelude::*;
use ramway::ring::consumer::Frame;
use ramway::ring::log::{Log, Ring};
use ramway::ring::raw::WaitLimit;
use ramway::{ErrorKind, Topic, WaitPolicy};

/// How a receiver's messages come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As views of a ring.
    InRing,
    /// As views of a topic.
    InTopic,
    /// As copies of what is in a topic.
    Copies,
}

/// A kind of log whose messages are views of it.
pub(crate) trait Kind: Log {
    /// The end of such a log.
    fn of(core: &mut ReceiverEnd) -> Option<&mut ramway::Receiver<Self>>;

    /// The end of a receiver whose `form` says that it is one.
    #[inline(always)]
    fn end(core: &mut ReceiverEnd) -> &mut ramway::Receiver<Self> {
        Self::of(core).expect("`form` says so")
    }

    /// The message of a frame that is held under this number.
    fn message(receiver: &Bound<'_, Receiver>, frame: Frame<Self>, number: u64) -> PyResult<Py<Message>>;
}

impl Kind for Ring {
    #[inline(always)]
    fn of(core: &mut ReceiverEnd) -> Option<&mut ramway::Receiver> {
        if let End::Ring(end) = core { Some(end) } else { None }
    }

    #[inline(always)]
    fn message(receiver: &Bound<'_, Receiver>, frame: Frame, number: u64) -> PyResult<Py<Message>> {
        hot::in_ring(receiver, frame, number)
    }
}

impl Kind for Topic {
    #[inline(always)]
    fn of(core: &mut ReceiverEnd) -> Option<&mut ramway::Subscriber> {
        if let End::Topic(end) = core { Some(end) } else { None }
    }

    #[inline(always)]
    fn message(receiver: &Bound<'_, Receiver>, frame: Frame<Topic>, number: u64) -> PyResult<Py<Message>> {
        hot::in_topic(receiver, frame, number)
    }
}

/// Calls `$view` with the kind of log for `$kind`, or `$copy`. What is a topic's is not inlined: a ring's messages are not to
/// take longer because there are topics.
macro_rules! by_kind {
    ($receiver:expr, $kind:ident => $view:expr, $copy:expr) => {
        match $receiver.form {
            Form::InRing => {
                type $kind = Ring;
                $view
            }
            Form::InTopic => {
                type $kind = Topic;
                $crate::ring::fetch::aside(|| $view)
            }
            Form::Copies => $crate::ring::fetch::aside(|| $copy),
        }
    };
}

#[inline(never)]
pub(super) fn aside<R>(call: impl FnOnce() -> R) -> R {
    call()
}

impl Receiver {
    /// The next message within the time, or an error.
    #[inline(always)]
    pub(crate) fn message_within(slf: &Bound<'_, Self>, timeout: Timeout) -> PyResult<Py<Message>> {
        let (py, this) = (slf.py(), slf.get());
        by_kind!(this, K => {
            let mut core = this.enter(py)?;
            match K::end(&mut core).raw().poll(1).or_raise(py)? {
                Some(frame) => {
                    let number = this.hold::<K>(&mut core);
                    drop(core);
                    K::message(slf, frame, number)
                }
                None => Self::waited::<K>(slf, core, timeout),
            }
        }, Self::copied(slf, this.fetch_copy(py, timeout)?))
    }

    /// A message that was not there. Apart, so that the frame of one that is there stays in registers.
    #[cold]
    #[inline(never)]
    fn waited<K: Kind>(slf: &Bound<'_, Self>, mut core: Using<'_, Self>, timeout: Timeout) -> PyResult<Py<Message>> {
        let this = slf.get();
        let frame = this.wait::<K>(slf.py(), &mut core, timeout)?;
        let number = this.hold::<K>(&mut core);
        drop(core);
        K::message(slf, frame, number)
    }

    /// The next message if there is one.
    #[inline(always)]
    pub(crate) fn message_now(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Message>>> {
        let (py, this) = (slf.py(), slf.get());
        by_kind!(this, K => {
            let fetched = this.try_fetch::<K>(py, &mut *this.enter(py)?)?;
            match fetched {
                Some((frame, number)) => K::message(slf, frame, number).map(Some),
                None => Ok(None),
            }
        }, this.try_fetch_copy(py)?.map(|copy| Self::copied(slf, copy)).transpose())
    }

    /// One more message of a batch, if there is one. What else there is to tell is left for the next receive.
    #[inline]
    pub(crate) fn message_more(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Message>>> {
        let (py, this) = (slf.py(), slf.get());
        by_kind!(this, K => {
            let mut core = this.enter(py)?;
            match K::end(&mut core).raw().poll(1) {
                Ok(Some(frame)) => {
                    let number = this.hold::<K>(&mut core);
                    drop(core);
                    K::message(slf, frame, number).map(Some)
                }
                Ok(None) | Err(_) => Ok(None),
            }
        }, this.copy_more(py)?.map(|copy| Self::copied(slf, copy)).transpose())
    }

    /// The next message's frame within the time, of a receiver whose messages are views; notes it as held. Gives its number.
    #[inline]
    pub(super) fn frame(&self, py: Python<'_>, core: &mut ReceiverEnd, timeout: Timeout) -> PyResult<(Frame, u64)> {
        by_kind!(self, K => {
            let (Frame { data, len, type_id, tag, .. }, number) = self.fetch::<K>(py, core, timeout)?;
            Ok((Frame { data, len, type_id, tag, stamp: () }, number))
        }, unreachable!("what is copied is copied to where it is wanted"))
    }

    #[inline]
    fn fetch<K: Kind>(&self, py: Python<'_>, core: &mut ReceiverEnd, timeout: Timeout) -> PyResult<(Frame<K>, u64)> {
        let frame = match K::end(core).raw().poll(1).or_raise(py)? {
            Some(frame) => frame,
            None => self.wait::<K>(py, core, timeout)?,
        };
        Ok((frame, self.hold::<K>(core)))
    }

    /// The next message of such a log if it is one, the message is there, and nothing is in the way; on `None`, call
    /// `message_within`.
    #[inline(always)]
    pub(crate) fn at_once<K: Kind>(&self) -> Option<(Frame<K>, u64)> {
        if self.endpoint.is_shut() {
            return None;
        }
        // Under the interpreter lock nobody can close the handle meanwhile.
        #[cfg(Py_GIL_DISABLED)]
        let _leaving = crate::endpoint::Leaving(self);
        let mut core = self.endpoint.try_enter()?;
        self.settle(&mut core);
        let mut raw = K::of(&mut core)?.raw();
        // What there is to tell else is told by the other call.
        let frame = raw.poll(1).ok()??;
        Some((frame, self.held.with(|held| held.push(raw.position()))))
    }

    #[inline]
    fn try_fetch<K: Kind>(&self, py: Python<'_>, core: &mut ReceiverEnd) -> PyResult<Option<(Frame<K>, u64)>> {
        let frame = match K::end(core).raw().recv_more(WaitLimit::None) {
            Ok(frame) => frame,
            Err(e) if e.kind() == ErrorKind::Empty => {
                self.nothing_there(core);
                return Ok(None);
            }
            Err(e) => return Err(raise(py, e)),
        };
        Ok(Some((frame, self.hold::<K>(core))))
    }

    /// Notes the frame that was received last as held; gives its number.
    #[inline(always)]
    fn hold<K: Kind>(&self, core: &mut ReceiverEnd) -> u64 {
        let position = K::end(core).raw().position();
        self.held.with(|held| held.push(position))
    }

    /// Has the message that was fetched last, in the same use of the end, received again: nothing was made of it. It was not a
    /// copy.
    pub(crate) fn put_back(&self, core: &mut ReceiverEnd) {
        let before = self.held.with(|held| held.forget_last());
        // First release what other threads have given back, so that `unread` does not go back to before it.
        self.settle(core);
        core.unread(before);
    }

    /// Whether there is no message now. Raises how the stream ended.
    pub(crate) fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        let mut core = self.enter(py)?;
        if self.form == Form::InRing {
            let found = self.try_fetch::<Ring>(py, &mut core)?.is_some();
            if found {
                self.put_back(&mut core);
            }
            return Ok(!found);
        }
        let end = core.raw_endpoint();
        if end.ready(0).or_raise(py)? {
            return Ok(false);
        }
        // A wake-up that a release has put off: with messages held the log is never drained.
        end.wake();
        self.nothing_there(&mut core);
        Ok(true)
    }

    #[inline]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Using<'_, Self>> {
        let mut core = Using::of(self, py)?;
        self.settle(&mut core);
        Ok(core)
    }

    /// Does the releases that had to wait for the end to be free.
    #[inline]
    pub(super) fn settle(&self, core: &mut ReceiverEnd) {
        if self.owes.get() {
            self.owes.set(false);
            if let Some(position) = self.owed.replace(None) {
                core.release_until(position);
            }
        }
    }

    /// Changes what is held. Where that has the ring take memory back, it gives up to where, for [`release`](Self::release).
    #[inline(always)]
    fn change_held(&self, change: impl FnOnce(&mut Held) -> Option<u64>) -> Option<u64> {
        self.held.with(|held| {
            let position = change(held)?;
            // Noted before anybody else can find a later one, so that it never goes back.
            #[cfg(Py_GIL_DISABLED)]
            self.owe(position);
            Some(position)
        })
    }

    /// Notes up to where the ring is to take its memory back, for who uses the end next.
    #[inline(always)]
    fn owe(&self, position: u64) {
        self.owed.set(Some(position));
        self.owes.set(true);
    }

    /// Has the ring take its memory back, as [`change_held`](Self::change_held) says.
    #[inline(always)]
    fn release(&self, core: &mut ReceiverEnd, position: Option<u64>) {
        match position {
            Some(position) if !cfg!(Py_GIL_DISABLED) => {
                // What is owed lies before it, and would be a step back afterwards.
                self.owes.set(false);
                core.release_until(position);
            }
            _ => self.settle(core),
        }
    }

    /// [`give_back`](Self::give_back) in a use of the end.
    #[inline]
    pub(super) fn give_back_in(&self, core: &mut ReceiverEnd, number: u64) {
        let position = self.change_held(|held| held.give_back(number));
        self.release(core, position);
    }

    /// Before a wait, however it is waited: what was received last must not be in the sender's way.
    fn nothing_there(&self, core: &mut ReceiverEnd) {
        if self.held.with(|held| held.is_empty()) {
            return;
        }
        let half = core.capacity() as u64 / 2;
        // A caller that waits for the descriptor does not poll again before there is a message.
        if core.unreleased() > half || core.sender_waits() || self.endpoint.has_descriptor() {
            self.make_room(core);
        }
    }

    /// Before a sleep for others too: [`nothing_there`](Self::nothing_there). True if messages are held, so that it is to be
    /// called again now and then.
    pub(crate) fn make_room_before_sleep(&self, core: &mut ReceiverEnd) -> bool {
        self.settle(core);
        self.nothing_there(core);
        !self.held.with(|held| held.is_empty())
    }

    /// Moves what was received last into private memory, if that is all that is held and nobody has a view of it: it is
    /// what a loop's variable still names while the next message is received.
    #[cold]
    #[inline(never)]
    fn make_room(&self, core: &mut ReceiverEnd) {
        let end = self.change_held(|held| {
            let mut end = None;
            for (number, message) in held.latest() {
                // SAFETY: not given back, so alive, and it stays so: its end would have to change what is held.
                if !unsafe { message.as_ref() }.move_out(core.align()) {
                    break;
                }
                end = held.give_back(number).or(end);
            }
            end
        });
        self.release(core, end);
    }

    #[cold]
    #[inline(never)]
    fn wait<K: Kind>(&self, py: Python<'_>, core: &mut ReceiverEnd, timeout: Timeout) -> PyResult<Frame<K>> {
        if let Some(frame) = K::end(core).raw().poll(self.endpoint.first_polls.get()).or_raise(py)? {
            return Ok(frame);
        }
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
            move |wait_limit| K::end(&mut attempt.get().borrow_mut()).raw().recv_more(wait_limit).map(Moving),
            |py| {
                self.endpoint.check_open(py)?;
                self.check_stuck(py, &mut end.borrow_mut())
            },
        );
        // What other threads gave back meanwhile: the sender may need it before the next call.
        self.settle(&mut end.borrow_mut());
        received.map(|moving| moving.0).map_err(|e| self.missing(py, e))
    }

    /// `Subscriber.skip_to_newest`.
    pub(crate) fn skip_to_newest(&self, py: Python<'_>) -> PyResult<u64> {
        let mut core = self.enter(py)?;
        let End::Topic(subscriber) = &mut *core else { unreachable!("a Subscriber is made of a topic's end") };
        let skipped = subscriber.skip_to_newest_after_held().or_raise(py)?;
        let position = core.position();
        // What was left out is given back with the messages before it. If there were some, and another thread has given the last
        // of them back meanwhile, it is now.
        let freed = self.change_held(|held| (!held.push_given_back(position)).then_some(position));
        if cfg!(Py_GIL_DISABLED) {
            self.release(&mut core, freed);
        }
        Ok(skipped)
    }

    /// The error of a wait for a message.
    #[cold]
    pub(super) fn missing(&self, py: Python<'_>, cause: PyErr) -> PyErr {
        self.endpoint.missing(py, cause, "no message")
    }

    /// BusyError if the sender waits for room that only messages held here could give it: for a wait without polls.
    pub(crate) fn is_stuck(&self, py: Python<'_>) -> PyResult<()> {
        let mut core = self.enter(py)?;
        self.check_stuck(py, &mut core)
    }

    fn check_stuck(&self, py: Python<'_>, core: &mut ReceiverEnd) -> PyResult<()> {
        self.settle(core);
        if core.unreleased() == 0 || !core.sender_waits() || core.is_there().or_raise(py)? {
            return Ok(());
        }
        let before = core.unreleased();
        self.make_room(core);
        let held = core.unreleased();
        if held < before {
            return Ok(());
        }
        let (count, capacity) = (self.held.with(|held| held.len()), core.capacity());
        let role = self.endpoint.role();
        let (peer, log) = (role.peer, role.log);
        Err(error(
            py,
            ErrorKind::Busy,
            format!(
                "the {peer} waits for room, and {count} messages ({held} of {capacity} bytes of the {log}) are still held \
                 here, so that neither side could go on: drop or release messages and their views, copy what is to be \
                 kept, or create the {log} with a larger capacity"
            ),
        ))
    }

    /// The message or batch of this number is no longer used.
    #[inline]
    pub(crate) fn give_back(&self, number: u64) {
        let Some(position) = self.change_held(|held| held.give_back(number)) else { return };
        match self.endpoint.try_enter_briefly() {
            Some(mut core) => self.release(&mut core, Some(position)),
            // The thread that is in a call sees to it.
            None if cfg!(Py_GIL_DISABLED) => {}
            None => self.owe(position),
        }
        if self.endpoint.is_shut() {
            self.finish();
        }
    }

    /// Releases the role once the handle is shut and nothing is held.
    #[cold]
    pub(super) fn finish(&self) {
        if self.held.with(|held| held.is_empty()) {
            if let Some(mut core) = self.endpoint.try_enter_briefly() {
                self.settle(&mut core);
            }
            drop(self.endpoint.take());
        } else if !self.said_closed.get()
            && let Some(mut core) = self.endpoint.try_enter_briefly()
        {
            // The memory stays for its views. A ring's sender is not to wait for them; a topic's publisher does, because it
            // would write over them.
            self.said_closed.set(true);
            core.raw_endpoint().say_closed();
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

// SAFETY: used by the thread that is in `wait` alone: by turns while it has given the interpreter lock up, and while it has not.
unsafe impl<T> Send for Shared<'_, T> {}

/// A frame on its way from the core to a message.
struct Moving<K: Kind>(Frame<K>);

// SAFETY: an address in the mapping, which is kept until the frame is given back.
unsafe impl<K: Kind> Send for Moving<K> {}
