//! What language bindings build on: slots and frames as pointers, with the rules that Rust's borrows otherwise keep
//! checked at run time. Not part of the stable API.

use super::consumer::{Consumer, Frame};
pub use super::half::Start;
use super::half::{Half, Positions};
use super::log::{Log, Ring};
use super::producer::{NO_SLOT, Producer};
use super::window::Window;
use super::{Receiver, Sender, fail};
use crate::sync::spin_hint;
pub use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result, WaitPolicy};

/// Either side of a ring, for bindings: one native half over this, as a parameter or as `dyn`, serves [`Sender`] and
/// [`Receiver`].
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

    /// Waits for a living peer; gives its epoch. With [`WaitLimit::None`]: `Empty` if there is no peer, and the readiness
    /// descriptor, where there is one, is armed for its coming. It then says nothing about messages or room: a later
    /// `try_` call arms it for that again.
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`].
    fn await_peer(&mut self, wait_limit: WaitLimit) -> Result<u32>;

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
    fn window(&mut self) -> Result<Window>;

    /// Says "closed" now, after everything committed is published, and wakes the other side. The role, and what is
    /// not released, stay until the handle goes: for a close while views live. No call may follow but those that give frames or
    /// a slot back. A topic's subscriber says so when the handle goes, if it has not released everything: until then the
    /// publisher waits for it, because nothing else keeps the frames from being overwritten.
    fn say_closed(&mut self);

    /// [`Sender::readiness`], [`Receiver::readiness`].
    ///
    /// # Errors
    /// As for these.
    fn readiness(&mut self) -> Result<&crate::Readiness>;

    /// [`Sender::set_wait_policy`], [`Receiver::set_wait_policy`].
    fn set_wait_policy(&mut self, policy: WaitPolicy);

    /// [`Sender::is_peer_alive`], [`Receiver::is_peer_alive`].
    fn is_peer_alive(&self) -> bool;

    /// [`Sender::peer_epoch`], [`Receiver::peer_epoch`].
    fn peer_epoch(&self) -> u32;

    /// [`Sender::epoch`], [`Receiver::epoch`].
    fn epoch(&self) -> u32;
}

/// A sender or a receiver: what [`RawEndpoint`] stands on.
pub(crate) trait End {
    type Hot: Positions;

    fn half(&self) -> &Half<Self::Hot>;

    fn half_mut(&mut self) -> &mut Half<Self::Hot>;

    /// Waits until this side can go on with a payload of `len` bytes, or with a frame.
    fn go_on(&mut self, len: usize, wait_limit: WaitLimit) -> Result<()>;
}

impl<L: Log> End for Sender<L> {
    type Hot = Producer<L>;

    fn half(&self) -> &Half<Producer<L>> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut Half<Producer<L>> {
        &mut self.half
    }

    fn go_on(&mut self, len: usize, wait_limit: WaitLimit) -> Result<()> {
        self.half.reserve(len, wait_limit).map(drop)
    }
}

impl<L: Log> End for Receiver<L> {
    type Hot = Consumer<L>;

    fn half(&self) -> &Half<Consumer<L>> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut Half<Consumer<L>> {
        &mut self.half
    }

    fn go_on(&mut self, _: usize, wait_limit: WaitLimit) -> Result<()> {
        self.half.check()?;
        self.half.wait_for_frame(wait_limit, None)
    }
}

impl<E: End + Send + 'static> RawEndpoint for E {
    fn start(&mut self) -> Start {
        self.half().hot.start()
    }

    fn follow(&mut self, own: u64, peer: u64) {
        self.half_mut().hot.follow(own, peer);
    }

    fn ready(&mut self, len: usize) -> Result<bool> {
        match self.go_on(len, WaitLimit::None) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == E::Hot::NOT_NOW => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn wait(&mut self, len: usize, wait_limit: WaitLimit) -> Result<()> {
        self.go_on(len, wait_limit)
    }

    fn wake(&mut self) -> u32 {
        let hot = &mut self.half_mut().hot;
        hot.wake_slow();
        hot.state().peer_flags
    }

    fn await_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        self.half_mut().wait_for_peer(wait_limit)
    }

    fn check(&mut self) -> Result<()> {
        self.half().check()
    }

    fn corrupt(&mut self) -> Error {
        let half = self.half();
        half.error(half.hot.state().die(ErrorKind::Corrupt))
    }

    fn polls(&mut self) -> bool {
        self.half().endpoint.waiting.polls()
    }

    fn window(&mut self) -> Result<Window> {
        let Start { data, capacity, .. } = self.half().hot.start();
        // SAFETY: the data of either side is mirrored and `capacity` bytes long.
        unsafe { Window::new(data.cast_mut(), capacity as usize) }
    }

    fn say_closed(&mut self) {
        if !self.half().hot.must_stay() {
            self.half_mut().close();
        }
    }

    fn readiness(&mut self) -> Result<&crate::Readiness> {
        self.half().check()?;
        self.half_mut().endpoint.readiness()
    }

    fn set_wait_policy(&mut self, policy: WaitPolicy) {
        self.half_mut().endpoint.waiting.policy = policy;
    }

    fn is_peer_alive(&self) -> bool {
        self.half().endpoint.is_peer_alive()
    }

    fn peer_epoch(&self) -> u32 {
        self.half().endpoint.peer_epoch()
    }

    fn epoch(&self) -> u32 {
        self.half().endpoint.epoch()
    }
}

impl<L: Log> Sender<L> {
    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn raw(&mut self) -> RawSender<'_, L> {
        RawSender { sender: self }
    }
}

impl<L: Log> Receiver<L> {
    #[doc(hidden)] // for the C ABI and the bindings; not part of the stable API
    pub fn raw(&mut self) -> RawReceiver<'_, L> {
        RawReceiver { receiver: self }
    }
}

/// A sender as bindings see it.
#[derive(Debug)]
pub struct RawSender<'a, L: Log = Ring> {
    pub(crate) sender: &'a mut Sender<L>,
}

impl<L: Log> RawSender<'_, L> {
    /// The private state that `ramway_inline.h` works on; its address stays the same for the sender's life.
    pub fn hot(&mut self) -> *mut Producer<L> {
        &mut self.sender.half.hot
    }

    /// Opens a slot; `Busy` if one is open.
    pub fn reserve(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        let hot = &self.sender.half.hot;
        // A handle that died with a slot open says what it died of.
        if hot.slot != NO_SLOT && hot.state.check().is_ok() {
            return Err(Error::new(ErrorKind::Busy, "a slot of this sender is open: commit it or abort it first"));
        }
        let to = self.sender.reserve_raw(len, wait_limit)?;
        self.sender.half.hot.slot = len as u64;
        Ok(to)
    }

    /// Makes the open slot a message. Any type id: Ramway's own frames are made by bindings.
    pub fn commit(&mut self, len: usize, type_id: u32, tag: u64, flush: bool) -> Result<()> {
        self.sender.half.check()?;
        let hot = &mut self.sender.half.hot;
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
        self.sender.half.hot.slot = NO_SLOT;
    }
}

/// A receiver as bindings see it.
#[derive(Debug)]
pub struct RawReceiver<'a, L: Log = Ring> {
    pub(super) receiver: &'a mut Receiver<L>,
}

impl<L: Log> RawReceiver<'_, L> {
    /// The private state that `ramway_inline.h` works on.
    pub fn hot(&mut self) -> *mut Consumer<L> {
        &mut self.receiver.half.hot
    }

    /// The next frame; `Busy` while earlier ones are not released.
    pub fn recv(&mut self, wait_limit: WaitLimit) -> Result<Frame<L>> {
        self.check_released()?;
        self.receiver.half.recv(wait_limit)
    }

    /// Copies the next message to where `room` says that there is room, of which it is told where the payload lies and its
    /// length, and releases it; `Busy` while earlier ones are not released. `Err` of `room`: there is room for this many bytes
    /// only, which is `TooLarge`, and the message stays the next one.
    pub fn copy_next(
        &mut self,
        wait_limit: WaitLimit,
        room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<L>> {
        self.check_released()?;
        L::copy_next(&mut self.receiver.half, wait_limit, room)
    }

    /// [`copy_next`](Self::copy_next) that does not wait, and leaves how the stream ended, and what else there is to tell, to
    /// a call that receives: for the messages after the first one of several.
    pub fn copy_if_there(
        &mut self,
        room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Option<Frame<L>>> {
        if !self.is_there(1)? {
            return Ok(None);
        }
        match self.copy_next(WaitLimit::None, room) {
            Err(e) if e.kind() == ErrorKind::Empty => Ok(None),
            Err(e) if e.kind() == ErrorKind::Lagged => {
                L::tell_later(&mut self.receiver.half.hot, &e);
                Ok(None)
            }
            copied => copied.map(Some),
        }
    }

    /// Says "closed" to the sender, and goes on receiving what it had sent before: for a binding's inbox that closes.
    pub fn refuse_more(&mut self) {
        self.receiver.half.close();
    }

    #[inline(always)]
    fn check_released(&self) -> Result<()> {
        let hot = &self.receiver.half.hot;
        // A handle that died with unreleased frames says what it died of.
        if hot.has_unreleased() && hot.state.check().is_ok() {
            return Err(Error::new(ErrorKind::Busy, "messages of this receiver are not released: release them first"));
        }
        Ok(())
    }

    /// Whether a frame is there after up to `polls` polls with a PAUSE between them. Whether the sender is gone is not asked,
    /// and what else there is to tell is left for a call that receives.
    #[inline]
    pub fn is_there(&mut self, polls: u32) -> Result<bool> {
        let hot = &mut self.receiver.half.hot;
        hot.state.check().map_err(fail::<L>)?;
        for poll in 0..polls {
            if poll != 0 {
                spin_hint();
            }
            match hot.has_frame() {
                Ok(false) => {}
                Err(ErrorKind::Lagged) => return Ok(false),
                there => return there.map_err(fail::<L>),
            }
        }
        Ok(false)
    }

    /// One more frame of a batch, if there is one now; may be called while frames are not released.
    pub fn next_of_batch(&mut self) -> Result<Option<Frame<L>>> {
        self.receiver.half.hot.next_frame().map_err(fail::<L>)
    }

    /// The next frame if one is there after up to `polls` polls with a PAUSE between them; earlier ones may be
    /// unreleased. Whether the sender is gone is not asked.
    #[inline(always)]
    pub fn poll(&mut self, polls: u32) -> Result<Option<Frame<L>>> {
        let hot = &mut self.receiver.half.hot;
        hot.state.check().map_err(fail::<L>)?;
        for poll in 0..polls {
            if poll != 0 {
                spin_hint();
            }
            if hot.has_frame().map_err(fail::<L>)?
                && let Some(frame) = hot.cached_frame().map_err(fail::<L>)?
            {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// [`recv`](Self::recv) while earlier frames are not released.
    pub fn recv_more(&mut self, wait_limit: WaitLimit) -> Result<Frame<L>> {
        let inner = &mut *self.receiver.half;
        if !inner.hot.has_cached_frame() && inner.hot.has_unreleased() {
            // A release that put the wake-up off counted on this side to find the ring drained. With unreleased frames it
            // never is.
            inner.hot.wake_slow();
        }
        inner.recv(wait_limit)
    }

    /// Where the frame that was received last ends: what [`release_until`](Self::release_until) takes.
    #[inline]
    pub fn position(&mut self) -> u64 {
        self.receiver.half.hot.head
    }

    /// Has the frames that were received after a [`position`](Self::position) received again (`None`: all that are
    /// not released). No views of them are left.
    pub fn unread(&mut self, position: Option<u64>) {
        let hot = &mut self.receiver.half.hot;
        let position = position.unwrap_or(hot.released);
        debug_assert!(position.wrapping_sub(hot.released) <= hot.head.wrapping_sub(hot.released));
        hot.go_back(position);
    }

    /// Gives the frames up to a [`position`](Self::position) back, for those who hold several: a position after the one
    /// released last, and not beyond what was received.
    #[inline]
    pub fn release_until(&mut self, position: u64) {
        self.receiver.half.hot.release_until(position);
    }

    /// Bytes of the ring that are received and not released, frame headers and padding included.
    pub fn unreleased(&mut self) -> u64 {
        let hot = &self.receiver.half.hot;
        hot.head.wrapping_sub(hot.released)
    }

    /// Whether the sender sleeps until there is room, for which it may be waiting for this side. Together with nothing to
    /// receive and unreleased frames: neither side will ever go on.
    pub fn sender_waits(&mut self) -> bool {
        let half = &self.receiver.half;
        half.endpoint.peer_waits() && L::may_block_sender(&half.hot)
    }

    /// Releases everything that was received.
    pub fn release(&mut self) {
        self.receiver.half.hot.release();
    }
}
