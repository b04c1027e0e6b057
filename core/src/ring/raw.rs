//! What language bindings build on: slots and frames as pointers, with the rules that Rust's borrows otherwise keep
//! checked at run time. Not part of the stable API.

use super::consumer::{Consumer, Frame};
use super::producer::{NO_SLOT, Producer};
use super::{Receiver, Sender, Waker};
use crate::layout::RingBlock;
use crate::sync::{Ordering, spin_hint};
pub use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result, WaitPolicy};
use std::ffi::OsStr;

/// Where a ring lies, and where one side stands in it: what a binding begins with that is the side itself.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The ring's words in the header page.
    pub block: *const RingBlock,
    /// The data area, mapped twice back to back.
    pub data: *const u8,
    /// Bytes of the data area.
    pub capacity: u64,
    /// Payload alignment.
    pub align: u32,
    /// This side's position: the end of the last committed frame, or what is released.
    pub own: u64,
    /// The other side's position as last seen.
    pub peer: u64,
    /// The other side's flags as last acted upon.
    pub peer_flags: u32,
    /// Whether an end of the other side is final: no successor can attach.
    pub endings_are_final: bool,
}

/// Either side of a ring, for bindings: one native half, generic over this, serves [`Sender`] and [`Receiver`].
///
/// `ready` and `wait` are about the next message: for a sender that a payload of `len` bytes fits, for a receiver that
/// a frame is there (`len` says nothing then).
pub trait RawEndpoint: Send + 'static {
    /// Where this side begins.
    fn start(&mut self) -> Start;

    /// Goes on where a binding is that is the side itself: everything before `own` is published or released, and `peer`
    /// is the position of the other side that it saw last.
    fn follow(&mut self, own: u64, peer: u64);

    /// Whether it can go on now. If not, the readiness descriptor is armed, where there is one.
    ///
    /// # Errors
    /// How the stream ended; for a sender what keeps `len` bytes from ever fitting.
    fn ready(&mut self, len: usize) -> Result<bool>;

    /// Waits until it can go on.
    ///
    /// # Errors
    /// As for [`ready`](Self::ready); `Full`, `Empty` or `TimedOut` when the limit is reached; `Interrupted`.
    fn wait(&mut self, len: usize, wait_limit: WaitLimit) -> Result<()>;

    /// The slow half of a publish or release that the binding did itself: agrees anew with the other side on fences, and
    /// wakes it if it waits. Gives its flags.
    fn wake(&mut self) -> u32;

    /// Waits for a living peer; gives its epoch. With [`WaitLimit::None`]: `Empty` if there is none, and the readiness
    /// descriptor, where there is one, is armed for its coming. It then says nothing about messages or room: a later
    /// `try_` call arms it for that again.
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`].
    fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32>;

    /// What this handle is dead of, if anything.
    fn check(&mut self) -> Result<()>;

    /// Marks the handle dead of what the binding found in shared memory.
    fn corrupt(&mut self) -> Error;

    /// Whether this handle's way of waiting begins with polling: not if it sleeps at once, or there is one CPU.
    fn polls(&mut self) -> bool;

    /// A second mapping of the ring's data, for views. A receiver's needs writable views.
    ///
    /// # Errors
    /// `Unsupported` where the memory cannot be mapped again.
    #[cfg(not(loom))]
    fn window(&mut self) -> Result<super::window::Window>;

    /// Says "closed" now, after everything committed is published, and wakes the other side. The role, and what is lent
    /// out, stay until the handle goes: for a close while views live. No call may follow but those that give frames or
    /// a slot back.
    fn say_closed(&mut self);

    /// [`Sender::readiness`], [`Receiver::readiness`].
    ///
    /// # Errors
    /// As for these.
    #[cfg(not(loom))]
    fn readiness(&mut self) -> Result<&crate::Readiness>;

    /// [`Sender::waker`], [`Receiver::waker`].
    fn waker(&self) -> Waker;

    /// [`Sender::set_wait_policy`], [`Receiver::set_wait_policy`].
    fn set_wait_policy(&mut self, policy: WaitPolicy);

    /// [`Sender::set_interruptible`], [`Receiver::set_interruptible`].
    fn set_interruptible(&mut self, yes: bool);

    /// [`Sender::is_peer_alive`], [`Receiver::is_peer_alive`].
    fn is_peer_alive(&self) -> bool;

    /// [`Sender::peer_epoch`], [`Receiver::peer_epoch`].
    fn peer_epoch(&self) -> u32;

    /// [`Sender::epoch`], [`Receiver::epoch`].
    fn epoch(&self) -> u32;

    /// [`Sender::name`], [`Receiver::name`].
    fn name(&self) -> Option<&OsStr>;
}

macro_rules! raw_endpoint {
    ($end:ident, $own:ident, $peer:ident, |$raw:ident, $len:ident, $limit:ident| $ready:expr, $wait:expr, $wake:ident) => {
        impl RawEndpoint for $end {
            fn start(&mut self) -> Start {
                let hot = &self.inner().hot;
                Start {
                    block: hot.block,
                    data: hot.data,
                    capacity: hot.capacity,
                    align: hot.align,
                    own: hot.$own,
                    peer: hot.$peer,
                    peer_flags: hot.peer_flags,
                    endings_are_final: hot.endings_are_final != 0,
                }
            }

            fn follow(&mut self, own: u64, peer: u64) {
                self.raw().follow(own, peer);
            }

            fn ready(&mut self, $len: usize) -> Result<bool> {
                let mut $raw = self.raw();
                $ready
            }

            fn wait(&mut self, $len: usize, $limit: WaitLimit) -> Result<()> {
                let mut $raw = self.raw();
                $wait
            }

            fn wake(&mut self) -> u32 {
                self.raw().$wake();
                self.inner().hot.peer_flags
            }

            fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
                self.attached_peer(wait_limit)
            }

            fn check(&mut self) -> Result<()> {
                self.raw().check()
            }

            fn corrupt(&mut self) -> Error {
                self.raw().corrupt()
            }

            fn polls(&mut self) -> bool {
                self.raw().polls()
            }

            #[cfg(not(loom))]
            fn window(&mut self) -> Result<super::window::Window> {
                self.raw().window()
            }

            fn say_closed(&mut self) {
                self.raw().say_closed();
            }

            #[cfg(not(loom))]
            fn readiness(&mut self) -> Result<&crate::Readiness> {
                self.readiness()
            }

            fn waker(&self) -> Waker {
                self.waker()
            }

            fn set_wait_policy(&mut self, policy: WaitPolicy) {
                self.set_wait_policy(policy);
            }

            fn set_interruptible(&mut self, yes: bool) {
                self.set_interruptible(yes);
            }

            fn is_peer_alive(&self) -> bool {
                self.is_peer_alive()
            }

            fn peer_epoch(&self) -> u32 {
                self.peer_epoch()
            }

            fn epoch(&self) -> u32 {
                self.epoch()
            }

            fn name(&self) -> Option<&OsStr> {
                self.name()
            }
        }
    };
}

#[cfg(not(loom))]
raw_endpoint!(Sender, tail, head, |raw, len, limit| raw.ready(len), raw.wait(len, limit), after_publish);
#[cfg(not(loom))]
raw_endpoint!(Receiver, released, tail, |raw, _len, limit| raw.ready(), raw.wait(limit), after_release);

/// A sender as bindings see it.
#[derive(Debug)]
pub struct RawSender<'a> {
    pub(super) sender: &'a mut Sender,
}

impl RawSender<'_> {
    /// The private state that `ramway_inline.h` works on; its address stays the same for the sender's life.
    pub fn hot(&mut self) -> *mut Producer {
        &mut self.sender.inner().hot
    }

    /// Opens a slot; `Busy` if one is open.
    pub fn reserve(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        let hot = &self.sender.inner().hot;
        // A handle that died with a slot open says what it died of.
        if hot.slot != NO_SLOT && hot.check().is_ok() {
            return Err(Error::new(ErrorKind::Busy, "a slot of this sender is open: commit it or abort it first"));
        }
        let to = self.sender.reserve_raw(len, wait_limit)?;
        self.sender.inner().hot.slot = len as u64;
        Ok(to)
    }

    /// Makes the open slot a message. Any type id: Ramway's own frames are made by bindings.
    pub fn commit(&mut self, len: usize, type_id: u32, tag: u64, flush: bool) -> Result<()> {
        let hot = &mut self.sender.inner().hot;
        if let Err(kind) = hot.check() {
            return Err(self.sender.inner().with_name(super::fail(kind)));
        }
        if hot.slot == NO_SLOT || len as u64 > hot.slot {
            return Err(super::slot::too_long(len));
        }
        hot.slot = NO_SLOT;
        let to = hot.payload();
        // SAFETY: a slot is open, so `try_reserve` found room for it at `tail`, where it still is: only a commit moves
        // `tail`, and closes the slot.
        unsafe { self.sender.commit_raw(to, len, type_id, tag, flush) }
    }

    /// Gives the open slot up.
    pub fn abort(&mut self) {
        self.sender.inner().hot.slot = NO_SLOT;
    }

    /// A second mapping of the ring's data, for views of slots. `Unsupported` where the memory cannot be mapped again.
    #[cfg(not(loom))]
    pub fn window(&mut self) -> Result<super::window::Window> {
        let hot = &self.sender.inner().hot;
        // SAFETY: the sender's data is mirrored and `capacity` bytes long.
        unsafe { super::window::Window::new(hot.data, hot.capacity as usize) }
    }

    /// Goes on where a binding is that is the producer itself: everything up to `tail` is published, and `head` is what
    /// it last saw of the consumer.
    pub fn follow(&mut self, tail: u64, head: u64) {
        let hot = &mut self.sender.inner().hot;
        hot.tail = tail;
        hot.head = head;
    }

    /// Whether a payload of `len` bytes fits now. If not, the readiness descriptor is armed, where there is one.
    pub fn ready(&mut self, len: usize) -> Result<bool> {
        match self.sender.reserve_raw(len, WaitLimit::None) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Full => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Waits until a payload of `len` bytes fits.
    pub fn wait(&mut self, len: usize, wait_limit: WaitLimit) -> Result<()> {
        self.sender.reserve_raw(len, wait_limit).map(|_| ())
    }

    /// Whether this handle's way of waiting begins with looking.
    pub fn polls(&mut self) -> bool {
        self.sender.inner().waiting.polls()
    }

    /// What this handle is dead of, if anything.
    pub fn check(&mut self) -> Result<()> {
        self.sender.inner().check()
    }

    /// Marks the handle dead of what the binding found in shared memory.
    pub fn corrupt(&mut self) -> Error {
        let inner = self.sender.inner();
        let kind = inner.hot.die(ErrorKind::Corrupt);
        inner.with_name(super::fail(kind))
    }

    /// Says "closed" now, after everything committed is published, and wakes the receiver. The role stays until the
    /// handle goes: for a close while views of a slot live. No other call but `abort` may follow.
    pub fn say_closed(&mut self) {
        let inner = self.sender.inner();
        if inner.attachment.fork.is_detached() {
            return;
        }
        inner.hot.slot = NO_SLOT;
        inner.hot.publish();
        super::announce_close(inner.hot.mine(), inner.hot.peer());
    }

    /// Waits for a receiver that lives ([`Sender::wait_for_peer`]); gives its epoch. With [`WaitLimit::None`]: `Empty`
    /// if there is none, and the readiness descriptor, where there is one, is armed for its coming. It then says
    /// nothing about room: a later `try_` call arms it for that again.
    pub fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        self.sender.attached_peer(wait_limit)
    }

    /// The slow half of a publish that the caller did itself: looks at the consumer's flags and wakes it.
    pub fn after_publish(&mut self) {
        self.sender.inner().hot.wake_slow();
    }
}

/// A receiver as bindings see it.
#[derive(Debug)]
pub struct RawReceiver<'a> {
    pub(super) receiver: &'a mut Receiver,
}

impl RawReceiver<'_> {
    /// The private state that `ramway_inline.h` works on.
    pub fn hot(&mut self) -> *mut Consumer {
        &mut self.receiver.inner().hot
    }

    /// The next frame; `Busy` while earlier ones are lent out.
    pub fn recv(&mut self, wait_limit: WaitLimit) -> Result<Frame> {
        let hot = &self.receiver.inner().hot;
        // A handle that died with frames lent out says what it died of.
        if hot.has_unreleased() && hot.check().is_ok() {
            return Err(Error::new(ErrorKind::Busy, "messages of this receiver are lent out: release them first"));
        }
        self.receiver.inner().recv(wait_limit)
    }

    /// One more frame of a batch, if there is one now; may be called while frames are lent out.
    pub fn next_of_batch(&mut self) -> Result<Option<Frame>> {
        self.receiver.inner().hot.next_frame().map_err(super::fail)
    }

    /// The next frame if one is there after up to `looks` looks with a PAUSE between them; earlier ones may be lent
    /// out. Whether the sender is gone is not asked.
    #[inline]
    pub fn look(&mut self, looks: u32) -> Result<Option<Frame>> {
        let hot = &mut self.receiver.inner().hot;
        hot.check().map_err(super::fail)?;
        for look in 0..looks {
            if look != 0 {
                spin_hint();
            }
            if hot.has_frame().map_err(super::fail)? {
                return hot.cached_frame().map(Some).map_err(super::fail);
            }
        }
        Ok(None)
    }

    /// Whether this handle's way of waiting begins with looking: not if it sleeps at once, or there is one CPU.
    pub fn polls(&mut self) -> bool {
        self.receiver.inner().waiting.polls()
    }

    /// [`recv`](Self::recv) while earlier frames are lent out.
    pub fn recv_more(&mut self, wait_limit: WaitLimit) -> Result<Frame> {
        let inner = self.receiver.inner();
        if !inner.hot.has_cached_frame() && inner.hot.has_unreleased() {
            // A release that put the wake-up off counted on this side to find the ring drained. With frames lent out it
            // never is.
            inner.hot.wake_slow();
        }
        inner.recv(wait_limit)
    }

    /// Where the frame that was received last ends: what [`release_until`](Self::release_until) takes.
    #[inline]
    pub fn position(&mut self) -> u64 {
        self.receiver.inner().hot.head
    }

    /// Has the frames that were received after a [`position`](Self::position) received again (`None`: all that are lent
    /// out). No views of them are left.
    pub fn unread(&mut self, position: Option<u64>) {
        let hot = &mut self.receiver.inner().hot;
        let position = position.unwrap_or(hot.released);
        debug_assert!(position.wrapping_sub(hot.released) <= hot.head.wrapping_sub(hot.released));
        hot.head = position;
    }

    /// Gives the frames up to a [`position`](Self::position) back, for those who hold several: a position after the one
    /// released last, and not beyond what was received.
    #[inline]
    pub fn release_until(&mut self, position: u64) {
        self.receiver.inner().hot.release_until(position);
    }

    /// Bytes of the ring that are lent out, frame headers and padding included.
    pub fn lent(&mut self) -> u64 {
        let hot = &self.receiver.inner().hot;
        hot.head.wrapping_sub(hot.released)
    }

    /// Whether the sender sleeps until there is room. Together with nothing to receive and frames lent out: neither
    /// side will ever go on.
    pub fn sender_waits(&mut self) -> bool {
        // Relaxed: a look, repeated by whoever asks.
        self.receiver.inner().hot.peer().wait.load(Ordering::Relaxed) != 0
    }

    /// A second mapping of the ring's data, for views of messages. Needs a receiver with writable views; `Unsupported`
    /// where the memory cannot be mapped again.
    #[cfg(not(loom))]
    pub fn window(&mut self) -> Result<super::window::Window> {
        let hot = &self.receiver.inner().hot;
        // SAFETY: the receiver's data is mirrored and `capacity` bytes long.
        unsafe { super::window::Window::new(hot.data.cast_mut(), hot.capacity as usize) }
    }

    /// Goes on where a binding is that is the consumer itself: everything before `head` is released, and `tail` is what
    /// it last saw of the producer.
    pub fn follow(&mut self, head: u64, tail: u64) {
        let hot = &mut self.receiver.inner().hot;
        hot.tail = tail;
        hot.head = head;
        hot.released = head;
    }

    /// Whether a frame is there now. If not, the readiness descriptor is armed, where there is one.
    #[cfg(not(loom))]
    pub fn ready(&mut self) -> Result<bool> {
        match self.receiver.try_ready() {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Empty => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Waits until a frame is there.
    pub fn wait(&mut self, wait_limit: WaitLimit) -> Result<()> {
        self.receiver.inner().wait(wait_limit)
    }

    /// What this handle is dead of, if anything.
    pub fn check(&mut self) -> Result<()> {
        self.receiver.inner().check()
    }

    /// Marks the handle dead of what the binding found in shared memory.
    pub fn corrupt(&mut self) -> Error {
        let inner = self.receiver.inner();
        let kind = inner.hot.die(ErrorKind::Corrupt);
        inner.with_name(super::fail(kind))
    }

    /// Gives everything lent out back.
    pub fn release(&mut self) {
        self.receiver.inner().hot.release();
    }

    /// Says "closed" now, and wakes the sender: one that would wait for room is told `Closed`. The role, and the frames
    /// that are lent out, stay until the handle goes: for a close while views of messages live. No other calls may
    /// follow but those that give frames back.
    pub fn say_closed(&mut self) {
        let inner = self.receiver.inner();
        if !inner.attachment.fork.is_detached() {
            inner.waiting.leave(inner.hot.mine());
            super::announce_close(inner.hot.mine(), inner.hot.peer());
        }
    }

    /// As [`RawSender::wait_for_peer`]; the descriptor then says nothing about messages.
    pub fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        self.receiver.attached_peer(wait_limit)
    }

    /// The slow half of a release that the caller did itself.
    pub fn after_release(&mut self) {
        self.receiver.inner().hot.wake_slow();
    }
}
