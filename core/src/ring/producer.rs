//! The sender's half of the protocol, over a header block and a mirrored data area that somebody else has mapped and
//! validated. No system call but the wake-up of a consumer that says it waits.
//!
//! What a publisher of a topic does likewise is over any log ([`Writing`] has the differences); a ring's own rules follow.

use super::frame::{ask_ahead, write_header};
use super::half::{Half, Positions, Start};
use super::log::{Ring, Shape};
use super::sent;
use crate::endpoint::lines;
use crate::endpoint::side::Side;
use crate::endpoint::state::{Rules, State, is_waiting, wake_after_change};
use crate::endpoint::word::RoleWord;
use crate::facts::NO_POSITION;
use crate::layout::{ROLE_CLOSED, RingBlock, RoleLine, first_position, max_message_len, positions_agree};
use crate::segment::{Attachment, Role};
use crate::sync::{Ordering, Step, compiler_fence, fence, keep, ordered};
use crate::wait::WaitLimit;
use crate::{ErrorKind, Result};

/// [`Producer::slot`] while no slot is open.
pub const NO_SLOT: u64 = u64::MAX;

/// [`Producer::unflushed`] while everything that is committed is published. No position, as `NO_POSITION`.
pub const ALL_FLUSHED: u64 = 1;

/// What a sender does by its log's own rules.
pub trait Writing: Shape {
    /// The sender's words.
    type SenderWord: Side;

    /// `Positions::new`.
    ///
    /// # Safety
    /// As there.
    unsafe fn begin_writing(
        block: *const Self::Block,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &Self::Place,
        rules: Rules,
    ) -> Result<Producer<Self>, ErrorKind>;

    /// `Positions::word`.
    fn sender_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> Self::SenderWord;

    /// Whether something other than the room has changed since this side acted on it last: a hint.
    fn peer_has_changed(writer: &Producer<Self>) -> bool;

    /// Acts on that.
    fn act_on_peer(writer: &mut Producer<Self>);

    /// `Positions::wake_slow`.
    fn wake_receivers_slow(writer: &mut Producer<Self>);

    /// `Half::wait_for_peer`.
    fn wait_for_receiver(half: &mut Half<Producer<Self>>, wait_limit: WaitLimit) -> Result<u32>;

    /// Finds out again how far this side may write. Whether a frame of `size` bytes fits now.
    fn fits_after_refresh(writer: &mut Producer<Self>, size: u64) -> Result<bool, ErrorKind>;

    /// Writes the header of the frame at the position `at`, whose payload is `len` bytes at `to`.
    ///
    /// # Safety
    /// `to` is what [`Producer::try_reserve`] returned last, for at least `len` bytes.
    unsafe fn write_header(commit: &mut Self::Commit, at: u64, to: *mut u8, len: u64, type_id: u32, tag: u64);

    /// Publishes everything before `tail`, where a frame with this tag ends, and wakes who waits for it.
    fn publish_tail(writer: &mut Producer<Self>, tail: u64, tag: u64);

    /// Bytes that this log's receivers have not released.
    fn unreleased(writer: &Producer<Self>) -> u64;

    /// The tag of the last published frame, also one that an earlier sender published; `None` before the first.
    fn last_tag(writer: &Producer<Self>) -> Option<u64>;
}

/// A sender's private state. `repr(C)`, because `ramway_inline.h` runs the hot path over the same fields; the
/// layout is private to one build of the library and not part of the format.
#[repr(C)]
#[derive(Debug)]
pub struct Producer<L: Shape = Ring> {
    /// The log's words in the header page. Valid as long as this.
    pub block: *const L::Block,
    /// The data area, mapped twice back to back: `2 * capacity` bytes, writable.
    pub data: *mut u8,
    /// A power of two, at least a page. Never changes.
    pub capacity: u64,
    /// The longest payload that ever fits. Never changes.
    pub max_len: u64,
    /// End of the last committed frame, flushed or not.
    /// Invariant: `tail - head <= capacity`, wrapping.
    pub tail: u64,
    /// Where the first frame begins that is committed but not published, which is what the shared `tail` holds; else
    /// [`ALL_FLUSHED`]: so a message that is published at once needs no store here (see `frame`).
    pub unflushed: u64,
    /// The shared `head` as last seen; can be stale, never ahead of the real one. Of a topic, how far this side may write
    /// less the capacity.
    pub head: u64,
    /// Payload bytes reserved by the open slot of a binding, or [`NO_SLOT`]. A Rust [`Slot`](super::Slot) knows its
    /// own and leaves this alone.
    pub slot: u64,
    /// Tag of the last frame that was committed unflushed, for the last-tag record.
    pub tag: u64,
    /// Payload alignment, 16 to 4096. Never changes.
    pub align: u32,
    /// Whether the handle is dead, and what the consumer last said of itself.
    pub state: State,
    /// Which of the two last-tag records is written next.
    pub next_last_tag: u32,
    /// What never changes.
    pub rules: Rules,
    /// 0. In the place of padding: C's tests compare whole states.
    pub reserved: u32,
    /// What each committed frame advances.
    pub commit: L::Commit,
    /// What only this kind of log needs.
    pub more: L::Writer,
}

impl<L: Writing> Positions for Producer<L> {
    type Log = L;
    type Word = L::SenderWord;
    const NOT_NOW: ErrorKind = ErrorKind::Full;

    unsafe fn new(
        block: *const L::Block,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &L::Place,
        rules: Rules,
    ) -> Result<Self, ErrorKind> {
        // SAFETY: passed on from the caller.
        unsafe { L::begin_writing(block, data, capacity, align, place, rules) }
    }

    fn word(attachment: &Attachment<L>, membarrier_capable: bool) -> L::SenderWord {
        L::sender_word(attachment, membarrier_capable)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    #[cold]
    #[inline(never)]
    fn peer_changed(&mut self) {
        L::act_on_peer(self);
    }

    #[cold]
    #[inline(never)]
    fn wake_slow(&mut self) {
        L::wake_receivers_slow(self);
    }

    fn wait_for_peer(half: &mut Half<Self>, wait_limit: WaitLimit) -> Result<u32> {
        L::wait_for_receiver(half, wait_limit)
    }

    fn start(&self) -> Start {
        Start {
            block: self.block.cast(),
            data: self.data,
            capacity: self.capacity,
            align: self.align,
            own: self.tail,
            peer: self.head,
            peer_flags: self.state.peer_flags,
            endings_are_final: self.rules.endings_are_final != 0,
            max_len: self.max_len,
            next_last_tag: self.next_last_tag,
        }
    }

    fn follow(&mut self, own: u64, peer: u64) {
        (self.tail, self.head) = (own, peer);
    }

    fn closing(&mut self) {
        self.slot = NO_SLOT;
        self.publish();
    }
}

impl<L: Writing> Producer<L> {
    /// Room for a payload of `len` bytes, aligned to `align`, its frame header right before it. The bytes are
    /// whatever an earlier lap left there. `Full`: nothing is reserved, and whatever was unflushed is flushed.
    #[inline(always)]
    pub fn try_reserve(&mut self, len: u64) -> Result<*mut u8, ErrorKind> {
        self.state.check()?;
        if L::peer_has_changed(self) {
            self.peer_changed();
            self.state.check()?;
        }
        if len > self.max_len {
            return Err(ErrorKind::TooLarge);
        }
        // `len` is at most MESSAGE_MAX, so this cannot overflow; `tail - head` is at most `capacity`.
        let size = L::frame_size(len, self.align);
        if size > self.capacity - self.tail.wrapping_sub(self.head) && !self.refresh(size)? {
            return Err(ErrorKind::Full);
        }
        Ok(self.payload())
    }

    /// Where the payload of the next frame begins.
    #[inline(always)]
    pub(crate) fn payload(&self) -> *mut u8 {
        let at = self.tail & (self.capacity - 1);
        // SAFETY: `at < capacity`, and a header is shorter than the capacity; so this is within the mirrored
        // 2 × capacity bytes.
        unsafe { self.data.add((at + L::HEADER) as usize) }
    }

    /// Whether [`try_reserve`](Self::try_reserve) has something else to report than the room.
    #[inline(always)]
    pub(super) fn state_or_peer_changed(&self) -> bool {
        self.state.check().is_err() || L::peer_has_changed(self)
    }

    /// Goes on where a [`SendBatch`](super::SendBatch) is: at `tail`, after a frame with this tag. Nothing of it is
    /// published yet.
    #[inline(always)]
    pub(super) fn resume(&mut self, tail: u64, tag: u64, commit: L::Commit) {
        if tail == self.tail {
            return;
        }
        if self.unflushed == ALL_FLUSHED {
            self.unflushed = self.tail;
        }
        self.tail = tail;
        self.tag = tag;
        self.commit = commit;
        self.slot = NO_SLOT;
    }

    /// What the shared `tail` holds.
    #[inline(always)]
    pub(crate) fn published(&self) -> u64 {
        if self.unflushed == ALL_FLUSHED { self.tail } else { self.unflushed }
    }

    /// True if a frame of `size` bytes fits after all. If not, flushes.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self, size: u64) -> Result<bool, ErrorKind> {
        if L::fits_after_refresh(self, size)? {
            return Ok(true);
        }
        self.publish();
        Ok(false)
    }

    /// Makes the `len` bytes from `to` a message. It is visible to the consumer after the next [`publish`](Self::publish),
    /// or with `flush` at once: then with one private store less, and a sender whose stores miss the cache is limited
    /// by how many of them its store buffer holds (docs/adr/0018).
    ///
    /// # Safety
    /// `to` is what [`try_reserve`](Self::try_reserve) returned last, for at least `len` bytes, and nothing was
    /// committed since.
    #[inline(always)]
    pub unsafe fn frame(
        &mut self,
        to: *mut u8,
        len: u64,
        type_id: u32,
        tag: u64,
        flush: bool,
    ) -> Result<(), ErrorKind> {
        self.state.check()?;
        // SAFETY: the caller vouches for `to`.
        unsafe { L::write_header(&mut self.commit, self.tail, to, len, type_id, tag) };
        // A binding's slot, opened where this message is now.
        if self.slot != NO_SLOT {
            self.slot = NO_SLOT;
        }
        let size = L::frame_size(len, self.align);
        let tail = self.tail.wrapping_add(size);
        if flush {
            if self.unflushed != ALL_FLUSHED {
                self.unflushed = ALL_FLUSHED;
            }
            self.tail = tail;
            L::publish_tail(self, tail, tag);
        } else {
            if self.unflushed == ALL_FLUSHED {
                self.unflushed = self.tail;
            }
            if self.tag != tag {
                self.tag = tag;
            }
            self.tail = tail;
        }
        sent::committed(size);
        ask_ahead(self.payload(), len);
        Ok(())
    }

    /// Makes everything committed visible, and wakes the consumer if it says it sleeps.
    #[inline(always)]
    pub fn publish(&mut self) {
        if self.unflushed == ALL_FLUSHED || self.state.check().is_err() {
            return;
        }
        self.unflushed = ALL_FLUSHED;
        L::publish_tail(self, self.tail, self.tag);
    }

    /// Bytes that the receivers have not released, by a load of shared positions.
    pub(crate) fn len(&self) -> u64 {
        L::unreleased(self)
    }

    /// The tag of the last published frame, also one that an earlier sender published; `None` before the first.
    pub fn last_tag(&self) -> Option<u64> {
        L::last_tag(self)
    }
}

impl Writing for Ring {
    type SenderWord = RoleWord;

    unsafe fn begin_writing(
        block: *const RingBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        _: &(),
        rules: Rules,
    ) -> Result<Producer, ErrorKind> {
        // SAFETY: the caller vouches for `block`.
        let shared = unsafe { &*block };
        // Acquire: pairs with the last producer's publish (tail) and the consumer's release (head).
        let tail = shared.tail.tail.load(Ordering::Acquire);
        let head = shared.head.head.load(Ordering::Acquire);
        if !positions_agree(tail, head, capacity, align) {
            return Err(ErrorKind::Corrupt);
        }
        // Overwrite the record that is not the last frame's, and forget one that a kill left ahead of `tail`: the next
        // frame may end right there. Relaxed: only producers touch these, one after another, and the role lock orders
        // them.
        let next_last_tag = (shared.tail.last_tags[0].end.load(Ordering::Relaxed) == tail) as u32;
        for record in &shared.tail.last_tags {
            if record.end.load(Ordering::Relaxed) != tail {
                record.end.store(NO_POSITION, Ordering::Relaxed);
            }
        }
        Ok(Producer {
            block,
            data,
            capacity,
            max_len: max_message_len(capacity),
            tail,
            unflushed: ALL_FLUSHED,
            head,
            slot: NO_SLOT,
            tag: 0,
            align,
            state: State::new(),
            next_last_tag,
            rules,
            reserved: 0,
            commit: (),
            more: (),
        })
    }

    fn sender_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> RoleWord {
        // SAFETY: the attachment keeps the block mapped, and lives beside the word.
        unsafe { RoleWord::new(attachment.block.as_ref(), Role::Producer, membarrier_capable) }
    }

    #[inline(always)]
    fn peer_has_changed(writer: &Producer) -> bool {
        // Relaxed: a hint that something changed; the slow path checks properly.
        writer.peer().flags.load(Ordering::Relaxed) != writer.state.peer_flags
    }

    fn act_on_peer(writer: &mut Producer) {
        let (mine, peer) = lines(writer.shared(), Role::Producer);
        let flags = writer.state.follow_flags(&mine.flags, peer, writer.rules);
        if flags & ROLE_CLOSED != 0 && writer.rules.endings_are_final != 0 {
            writer.state.die(ErrorKind::Closed);
        }
    }

    fn wake_receivers_slow(writer: &mut Producer) {
        let wait = &writer.peer().wait;
        writer.state.count(is_waiting(wait));
        // Decides in any case: it may be the peer's flags that have changed.
        Self::act_on_peer(writer);
        wake_after_change(wait);
    }

    fn wait_for_receiver(half: &mut Half<Producer>, wait_limit: WaitLimit) -> Result<u32> {
        half.endpoint.wait_for_peer(wait_limit)
    }

    /// The consumer's position is checked here, once, before it is used: it may only move forward, up to what was
    /// published, in whole alignment steps.
    fn fits_after_refresh(writer: &mut Producer, size: u64) -> Result<bool, ErrorKind> {
        // Acquire: the consumer's last reads of the space it gave back come before our writes to it.
        let head = writer.shared().head.head.load(ordered(Step::AcquirePosition, Ordering::Acquire));
        let moved = head.wrapping_sub(writer.head);
        if moved > writer.published().wrapping_sub(writer.head) || moved & (writer.align as u64 - 1) != 0 {
            return Err(writer.state.die(ErrorKind::Corrupt));
        }
        writer.head = head;
        Ok(size <= writer.capacity - writer.tail.wrapping_sub(head))
    }

    #[inline(always)]
    unsafe fn write_header(_: &mut (), _: u64, to: *mut u8, len: u64, type_id: u32, tag: u64) {
        // SAFETY: the caller's; a slot is aligned to 16, and its header stands before it.
        unsafe { write_header(to, len, type_id, tag) };
    }

    #[inline(always)]
    fn publish_tail(writer: &mut Producer, tail: u64, tag: u64) {
        let shared = writer.shared();
        // Only for a tag: the two stores are 12 to 19 % of a 32-byte message (docs/adr/0001), and no record says "0".
        if tag != 0 {
            let record = &shared.tail.last_tags[(writer.next_last_tag & 1) as usize];
            // Relaxed: only a later producer reads these records, after the role lock has passed to it. A kill between any two
            // of these stores leaves this record not matching `tail`, and the other one matching if it did.
            record.end.store(tail, Ordering::Relaxed);
            record.tag.store(tag, Ordering::Relaxed);
            writer.next_last_tag ^= 1;
        }
        // Release: the frames, headers and payloads, go before the position that publishes them.
        shared.tail.tail.store(tail, ordered(Step::Publish, Ordering::Release));
        wake_consumer(writer);
    }

    fn unreleased(writer: &Producer) -> u64 {
        // Relaxed: a snapshot; clamped because the peer could write anything.
        writer.tail.wrapping_sub(writer.shared().head.head.load(Ordering::Relaxed)).min(writer.capacity)
    }

    fn last_tag(writer: &Producer) -> Option<u64> {
        if writer.published() == first_position(writer.align) {
            return None;
        }
        // Relaxed: see `publish`.
        let ours = |m: &&crate::layout::LastTag| m.end.load(Ordering::Relaxed) == writer.published();
        Some(writer.shared().tail.last_tags.iter().find(ours).map_or(0, |m| m.tag.load(Ordering::Relaxed)))
    }
}

impl Producer {
    #[inline(always)]
    fn shared<'a>(&self) -> &'a RingBlock {
        // SAFETY: `new`'s caller keeps the block valid for as long as this is used; it is atomics all through but for
        // `geometry`, which nobody writes after creation and this type never reads.
        unsafe { &*self.block }
    }

    /// The consumer's words.
    #[inline(always)]
    fn peer<'a>(&self) -> &'a RoleLine {
        &self.shared().consumer
    }
}

#[inline(always)]
fn wake_consumer(writer: &mut Producer) {
    let mut counted_down = false;
    if writer.state.fences == 0 {
        // Keeps the compiler from moving the loads below above the store of `tail`; the CPU may still do so, and
        // the sleeper's membarrier undoes that.
        compiler_fence(Ordering::SeqCst);
    } else {
        if keep(Step::WakerFence) {
            // SeqCst: forbids store(tail) … load(wait) to pass each other; pairs with the sleeper's fence.
            fence(Ordering::SeqCst);
        }
        counted_down = writer.state.count_down();
    }
    let peer = writer.peer();
    // Relaxed: ordered by the fence above.
    if peer.wait.load(Ordering::Relaxed) != 0
        || peer.flags.load(Ordering::Relaxed) != writer.state.peer_flags
        || counted_down
    {
        writer.wake_slow();
    }
}
