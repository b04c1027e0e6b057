//! The receiver's half of the protocol: the mirror image of `producer.rs`. What a subscriber of a topic does by its own
//! rules is in [`Reading`].

use super::half::{Half, Positions, Start};
use super::log::{Ring, Shape};
use crate::endpoint::side::Side;
use crate::endpoint::state::{Rules, State, is_waiting, wake_after_change};
use crate::endpoint::word::RoleWord;
use crate::endpoint::{end, lines};
use crate::facts::WAKE_FRACTION;
use crate::layout::{FRAME_HEADER, MESSAGE_MAX, RingBlock, RoleLine, frame_size, positions_agree};
use crate::segment::{Attachment, Role};
use crate::sync::{AtomicU32, Ordering, Step, compiler_fence, fence, keep, ordered, want_to_read};
use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result};

/// A frame that was checked to lie within what the sender published.
#[derive(Debug)]
pub struct Frame<L: Shape = Ring> {
    /// The payload, aligned to the log's `align`; readable until it is released.
    pub data: *const u8,
    /// Bytes of payload.
    pub len: usize,
    /// The sender's type id.
    pub type_id: u32,
    /// The sender's tag.
    pub tag: u64,
    /// What only this kind of log says.
    pub stamp: L::Stamp,
}

impl<L: Shape> Clone for Frame<L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Shape> Copy for Frame<L> {}

/// What a receiver does by its log's own rules.
pub trait Reading: Shape {
    /// The receiver's words.
    type ReceiverWord: Side;

    /// Whether the log can go on without this side: then messages may be copied, and be gone when they are asked for.
    const MOVES_ON: bool = false;

    /// `Positions::new`.
    ///
    /// # Safety
    /// As there.
    unsafe fn begin_reading(
        block: *const Self::Block,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &Self::Place,
        rules: Rules,
    ) -> Result<Consumer<Self>, ErrorKind>;

    /// `Positions::word`.
    fn receiver_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> Self::ReceiverWord;

    /// Acts on the sender's flags.
    fn act_on_sender(reader: &mut Consumer<Self>);

    /// `Half::wait_for_peer`.
    fn wait_for_sender(half: &mut Half<Consumer<Self>>, wait_limit: WaitLimit) -> Result<u32>;

    /// `Positions::end_is_told`.
    fn end_is_told(reader: &mut Consumer<Self>, kind: ErrorKind);

    /// Loads the shared `tail` and checks it; true if there is more than before.
    fn refresh(reader: &mut Consumer<Self>) -> Result<bool, ErrorKind>;

    /// The frame at `cursor`, which is before its `tail`; `None` if there is none after all (the log moved on). Moves the
    /// cursor, and the reader to where the cursor is.
    fn frame_at(reader: &mut Consumer<Self>, cursor: &mut Cursor) -> Result<Option<Frame<Self>>, ErrorKind>;

    /// Publishes that everything before `head` is released, a position from `released` to `reader.head`. False: the sender
    /// does not wait for this side.
    fn publish_head(reader: &mut Consumer<Self>, head: u64) -> bool;

    /// Whatever was copied for the caller is no longer used.
    #[inline(always)]
    fn forget_copies(_: &mut Consumer<Self>) {}

    /// A batch is to end here, although there may be more.
    #[inline(always)]
    fn batch_is_full(_: &Consumer<Self>) -> bool {
        false
    }

    /// `head` was set back to a position from `released` on.
    fn went_back(_: &mut Consumer<Self>) {}

    /// Whether something is to be told before the next message.
    fn has_pending(_: &Consumer<Self>) -> bool {
        false
    }

    /// What is to be told before the next message.
    fn take_pending(_: &mut Consumer<Self>) -> Option<Error> {
        None
    }

    /// Has what [`take_pending`](Self::take_pending) gave told later.
    fn tell_later(_: &mut Consumer<Self>, _: &Error) {}

    /// The sender's word that says that it waits, and its flags.
    fn sender_words(reader: &Consumer<Self>) -> (&AtomicU32, &AtomicU32);

    /// Bytes that are published and not released, by a load of the shared position.
    fn unread(reader: &Consumer<Self>) -> u64;

    /// Copies the next message to where `room` says that there is room, of which it is told where the payload lies and its
    /// length, and releases it. `Err` of `room`: there is room for this many bytes only, and the message stays the next one.
    fn copy_next(
        half: &mut Half<Consumer<Self>>,
        wait_limit: WaitLimit,
        room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<Self>>;

    /// Whether what this side has not released could be what the sender waits for.
    fn may_block_sender(_: &Consumer<Self>) -> bool {
        true
    }

    /// Whether a close has to wait until everything is released: the sender would write over what views still show.
    fn must_stay(_: &Consumer<Self>) -> bool {
        false
    }
}

/// A receiver's private state. `repr(C)` for `ramway_inline.h`, like the producer's.
#[repr(C)]
#[derive(Debug)]
pub struct Consumer<L: Shape = Ring> {
    /// The log's words in the header page. Valid as long as this.
    pub block: *const L::Block,
    /// The data area, mapped twice back to back, readable.
    pub data: *const u8,
    /// A power of two, at least a page. Never changes.
    pub capacity: u64,
    /// Start of the next frame to read.
    /// Invariant: `released <= head <= tail`, and `tail - released <= capacity`, wrapping.
    pub head: u64,
    /// What the shared `head` holds: everything from here to `head` is received and not released.
    pub released: u64,
    /// The shared `tail` as last seen; can be stale, never ahead of the real one.
    pub tail: u64,
    /// Payload alignment, 16 to 4096. Never changes.
    pub align: u32,
    /// Whether the handle is dead, and what the producer last said of itself.
    pub state: State,
    /// What never changes.
    pub rules: Rules,
    /// What only this kind of log needs.
    pub more: L::Reader,
}

/// Copies of a [`Consumer`]'s fields of the same names.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    pub(crate) data: *const u8,
    /// `capacity - 1`.
    pub(crate) mask: u64,
    pub(crate) align: u32,
    pub(crate) head: u64,
    pub(crate) tail: u64,
}

impl<L: Reading> Positions for Consumer<L> {
    type Log = L;
    type Word = L::ReceiverWord;
    const NOT_NOW: ErrorKind = ErrorKind::Empty;

    unsafe fn new(
        block: *const L::Block,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &L::Place,
        rules: Rules,
    ) -> Result<Self, ErrorKind> {
        // SAFETY: passed on from the caller.
        unsafe { L::begin_reading(block, data, capacity, align, place, rules) }
    }

    fn word(attachment: &Attachment<L>, membarrier_capable: bool) -> L::ReceiverWord {
        L::receiver_word(attachment, membarrier_capable)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    /// The sender's close is acted on where the log is found empty, because what it sent before is delivered first.
    #[cold]
    #[inline(never)]
    fn peer_changed(&mut self) {
        L::act_on_sender(self);
    }

    #[cold]
    #[inline(never)]
    fn wake_slow(&mut self) {
        let waits = is_waiting(L::sender_words(self).0);
        self.state.count(waits);
        // Decides in any case: it may be the peer's flags that have changed.
        self.peer_changed();
        wake_after_change(L::sender_words(self).0);
    }

    fn wait_for_peer(half: &mut Half<Self>, wait_limit: WaitLimit) -> Result<u32> {
        L::wait_for_sender(half, wait_limit)
    }

    fn start(&self) -> Start {
        Start {
            block: self.block.cast(),
            data: self.data,
            capacity: self.capacity,
            align: self.align,
            own: self.released,
            peer: self.tail,
            peer_flags: self.state.peer_flags,
            endings_are_final: self.rules.endings_are_final != 0,
            max_len: 0,
            next_last_tag: 0,
        }
    }

    fn follow(&mut self, own: u64, peer: u64) {
        (self.head, self.released, self.tail) = (own, own, peer);
    }

    fn end_is_told(&mut self, kind: ErrorKind) {
        L::end_is_told(self, kind);
    }

    fn has_pending(&self) -> bool {
        L::has_pending(self)
    }

    fn take_pending(&mut self) -> Option<Error> {
        L::take_pending(self)
    }

    fn must_stay(&self) -> bool {
        L::must_stay(self)
    }
}

impl<L: Reading> Consumer<L> {
    /// The next frame, valid until [`release`](Self::release); `None` if nothing more is published.
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<Frame<L>>, ErrorKind> {
        let mut cursor = self.cursor();
        self.next_frame_at(&mut cursor)
    }

    /// Copies of what the next frame is found by.
    #[inline(always)]
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor { data: self.data, mask: self.capacity - 1, align: self.align, head: self.head, tail: self.tail }
    }

    /// [`next_frame`](Self::next_frame) by a cursor that was taken, or used here last, since anything else was called.
    #[inline(always)]
    pub(crate) fn next_frame_at(&mut self, cursor: &mut Cursor) -> Result<Option<Frame<L>>, ErrorKind> {
        if cursor.head == cursor.tail {
            self.state.check()?;
            if !self.refresh()? {
                return Ok(None);
            }
            cursor.tail = self.tail;
        }
        self.state.check()?;
        if L::batch_is_full(self) {
            return Ok(None);
        }
        L::frame_at(self, cursor)
    }

    /// The next frame, where [`has_cached_frame`](Self::has_cached_frame); `None` if the log has moved on since.
    #[inline(always)]
    pub(crate) fn cached_frame(&mut self) -> Result<Option<Frame<L>>, ErrorKind> {
        self.state.check()?;
        let mut cursor = self.cursor();
        L::frame_at(self, &mut cursor)
    }

    /// Whether a frame is there by the cached position.
    #[inline(always)]
    pub(crate) fn has_cached_frame(&self) -> bool {
        self.head != self.tail
    }

    /// Whether a frame is there, after a load of the shared position if the cached one says no.
    #[inline(always)]
    pub(crate) fn has_frame(&mut self) -> Result<bool, ErrorKind> {
        if self.has_cached_frame() { Ok(true) } else { self.refresh() }
    }

    /// For who polls for an answer: asks for the line where the next frame will begin, and for the one where it will end if it
    /// takes `size` bytes. They are then on their way together with `tail`'s when the frame is there, and not after it. In a
    /// stream they would be taken away from the sender that writes them.
    #[inline(always)]
    pub(crate) fn want_next_frame(&self, size: u32) {
        let at = self.data.wrapping_add((self.head & (self.capacity - 1)) as usize);
        want_to_read(at);
        want_to_read(at.wrapping_add(size as usize - 1));
    }

    /// Reads the shared `tail` again; true if there is more than before.
    #[inline(always)]
    pub(crate) fn refresh(&mut self) -> Result<bool, ErrorKind> {
        L::refresh(self)
    }

    /// Bytes that are published and not released, by a load of the shared position.
    pub(crate) fn len(&self) -> u64 {
        L::unread(self)
    }

    /// Has the frames from `head` on received again, a position from `released` to where this side is.
    pub(crate) fn go_back(&mut self, head: u64) {
        if head == self.head {
            // Nothing was received since. There may be no frame here yet, from which a topic could read its number.
            return;
        }
        self.head = head;
        L::went_back(self);
    }

    /// Whether frames are received and not released.
    #[inline(always)]
    pub fn has_unreleased(&self) -> bool {
        self.head != self.released
    }

    /// Gives the space of every frame read so far back, and wakes the producer if it says it sleeps and a quarter of
    /// the ring is free or the ring is drained. (Otherwise the wake-up is put off, not dropped: one of the two comes
    /// true before this side can find the ring empty, and close wakes regardless.)
    #[inline(always)]
    pub fn release(&mut self) {
        if self.head != self.released {
            self.release_lent();
        } else if L::MOVES_ON {
            // The log may have moved on while copies were out: then there is nothing to give back.
            L::forget_copies(self);
        }
    }

    /// [`release`](Self::release) where there are unreleased frames.
    #[inline(always)]
    pub(crate) fn release_lent(&mut self) {
        self.release_until(self.head);
    }

    /// Gives the frames before `head` back: a position from `released` to `self.head` at which a frame begins.
    #[inline(always)]
    pub(crate) fn release_until(&mut self, head: u64) {
        if L::MOVES_ON && head.wrapping_sub(self.released) > self.head.wrapping_sub(self.released) {
            // Of a frame that this side held before it was moved on: it is gone.
            return;
        }
        debug_assert!(head.wrapping_sub(self.released) <= self.head.wrapping_sub(self.released));
        if self.state.check().is_err() {
            return;
        }
        let awaited = L::publish_head(self, head);
        self.released = head;
        if !awaited {
            return;
        }
        if self.state.fences == 0 {
            // As in `Producer::wake_consumer`: keeps the compiler from moving the loads below above the store.
            compiler_fence(Ordering::SeqCst);
            let (wait, flags) = L::sender_words(self);
            // Relaxed: ordered by the compiler here and by the sleeper's membarrier.
            if wait.load(Ordering::Relaxed) == 0 && flags.load(Ordering::Relaxed) == self.state.peer_flags {
                return;
            }
        }
        self.wake_producer();
    }

    /// What follows a release that needs a fence, or whose producer waits or has new flags.
    #[cold]
    #[inline(never)]
    fn wake_producer(&mut self) {
        // By the cached tail, which may be behind: then this says "free" too often, never too rarely.
        if self.tail.wrapping_sub(self.released) > self.capacity - self.capacity / WAKE_FRACTION {
            return;
        }
        let mut counted_down = false;
        if self.state.fences != 0 {
            if keep(Step::WakerFence) {
                // SeqCst: forbids store(head) … load(wait) to pass each other; pairs with the sleeper's fence.
                fence(Ordering::SeqCst);
            }
            counted_down = self.state.count_down();
        }
        let (wait, flags) = L::sender_words(self);
        // Relaxed: ordered by the fence above, or by the sleeper's membarrier.
        let has_changed = flags.load(Ordering::Relaxed) != self.state.peer_flags;
        if wait.load(Ordering::Relaxed) != 0 || has_changed || counted_down {
            self.wake_slow();
        }
    }
}

impl Reading for Ring {
    type ReceiverWord = RoleWord;

    /// Goes on at `head`.
    unsafe fn begin_reading(
        block: *const RingBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        _: &(),
        rules: Rules,
    ) -> Result<Consumer, ErrorKind> {
        // SAFETY: the caller vouches for `block`.
        let shared = unsafe { &*block };
        // Acquire: pairs with the producer's publish, and with the last consumer's release.
        let head = shared.head.head.load(Ordering::Acquire);
        let tail = shared.tail.tail.load(Ordering::Acquire);
        if !positions_agree(tail, head, capacity, align) {
            return Err(ErrorKind::Corrupt);
        }
        Ok(Consumer { block, data, capacity, head, released: head, tail, align, state: State::new(), rules, more: () })
    }

    fn receiver_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> RoleWord {
        // SAFETY: the attachment keeps the block mapped, and lives beside the word.
        unsafe { RoleWord::new(attachment.block.as_ref(), Role::Consumer, membarrier_capable) }
    }

    fn act_on_sender(reader: &mut Consumer) {
        let (mine, peer) = lines(reader.shared(), Role::Consumer);
        reader.state.follow_flags(&mine.flags, peer, reader.rules);
    }

    fn wait_for_sender(half: &mut Half<Consumer>, wait_limit: WaitLimit) -> Result<u32> {
        half.endpoint.wait_for_peer(wait_limit)
    }

    fn end_is_told(reader: &mut Consumer, kind: ErrorKind) {
        let (mine, peer) = lines(reader.shared(), Role::Consumer);
        if kind == ErrorKind::Closed
            && let Some(epoch) = end::closed_epoch(peer)
        {
            // Release: a reader that sees this close as delivered sees the `head` of that moment.
            mine.close_seen.store(epoch, Ordering::Release);
        }
    }

    /// The producer's position is checked here, once, before it is used: it may only move forward, up to
    /// `released + capacity`, in whole alignment steps.
    #[inline(always)]
    fn refresh(reader: &mut Consumer) -> Result<bool, ErrorKind> {
        // Acquire: the frames up to `tail` are visible after this load.
        let tail = reader.shared().tail.tail.load(ordered(Step::AcquirePosition, Ordering::Acquire));
        if tail == reader.tail {
            return Ok(false);
        }
        let moved = tail.wrapping_sub(reader.tail);
        let room = reader.capacity - reader.tail.wrapping_sub(reader.released);
        if moved > room || moved & (reader.align as u64 - 1) != 0 {
            return Err(reader.state.die(ErrorKind::Corrupt));
        }
        reader.tail = tail;
        Ok(true)
    }

    #[inline(always)]
    fn frame_at(reader: &mut Consumer, cursor: &mut Cursor) -> Result<Option<Frame>, ErrorKind> {
        let at = (cursor.head & cursor.mask) as usize;
        // SAFETY: a frame's first 16 bytes are within the published bytes (`tail - head` is a positive multiple of
        // `align`, so at least 16), which lie within the mapping; `at` is aligned to 16. Volatile: each number is
        // read exactly once, so that a peer that rewrites it cannot pass the check with one value and be used with
        // another.
        let (word, tag) = unsafe {
            let header = cursor.data.add(at);
            (header.cast::<u64>().read_volatile(), header.add(8).cast::<u64>().read_volatile())
        };
        let (word, tag) = (u64::from_le(word), u64::from_le(tag));
        let len = word & 0xFFFF_FFFF;
        let size = frame_size(len, cursor.align);
        if size > cursor.tail.wrapping_sub(cursor.head) || len > MESSAGE_MAX {
            return Err(reader.state.die(ErrorKind::Corrupt));
        }
        cursor.head = cursor.head.wrapping_add(size);
        reader.head = cursor.head;
        // SAFETY: `16 + len <= size <= tail - head <= capacity` (checked above), so the payload ends within the
        // mirrored 2 × capacity bytes.
        let data = unsafe { cursor.data.add(at + FRAME_HEADER as usize) };
        Ok(Some(Frame { data, len: len as usize, type_id: (word >> 32) as u32, tag, stamp: () }))
    }

    #[inline(always)]
    fn publish_head(reader: &mut Consumer, head: u64) -> bool {
        // Release: our reads of the frames go before the position that lets the producer overwrite them.
        reader.shared().head.head.store(head, ordered(Step::Publish, Ordering::Release));
        true
    }

    #[inline(always)]
    fn sender_words(reader: &Consumer) -> (&AtomicU32, &AtomicU32) {
        let peer = reader.peer();
        (&peer.wait, &peer.flags)
    }

    fn unread(reader: &Consumer) -> u64 {
        // Relaxed: a snapshot; clamped because the peer could write anything.
        reader.shared().tail.tail.load(Ordering::Relaxed).wrapping_sub(reader.released).min(reader.capacity)
    }

    #[inline(always)]
    fn copy_next(
        half: &mut Half<Consumer>,
        wait_limit: WaitLimit,
        room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame> {
        half.copy_of_view(wait_limit, room)
    }
}

impl Consumer {
    #[inline(always)]
    fn shared<'a>(&self) -> &'a RingBlock {
        // SAFETY: as in `Producer::shared`.
        unsafe { &*self.block }
    }

    /// The producer's words.
    #[inline(always)]
    fn peer<'a>(&self) -> &'a RoleLine {
        &self.shared().producer
    }
}
