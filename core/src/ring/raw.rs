//! What language bindings build on: slots and frames as pointers, with the rules that Rust's borrows otherwise keep
//! checked at run time. Not part of the stable API.

use super::consumer::{Consumer, Frame};
use super::producer::{NO_SLOT, Producer};
use super::{Receiver, Sender};
use crate::sync::{Ordering, spin_hint};
pub use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result};

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
