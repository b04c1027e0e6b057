//! The consumer's half of the ring protocol: the mirror image of `producer.rs`.

use super::half::Positions;
use super::half::Start;
use crate::ErrorKind;
use crate::endpoint::end;
use crate::endpoint::lines;
use crate::endpoint::state::{Rules, State, wake_after_change};
use crate::facts::WAKE_FRACTION;
use crate::layout::{FRAME_HEADER, MESSAGE_MAX, RingBlock, RoleLine, frame_size, positions_agree};
use crate::segment::Role;
use crate::sync::{Ordering, Step, compiler_fence, fence, keep, ordered};

/// A frame that was checked to lie within what the producer published.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The payload, aligned to the ring's `align`; readable until it is released.
    pub data: *const u8,
    /// Bytes of payload.
    pub len: usize,
    /// The sender's type id.
    pub type_id: u32,
    /// The sender's tag.
    pub tag: u64,
}

/// A consumer's private state. `repr(C)` for `ramway_inline.h`, like the producer's.
#[repr(C)]
#[derive(Debug)]
pub struct Consumer {
    /// The ring's words in the header page. Valid as long as this.
    pub block: *const RingBlock,
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
}

/// Copies of a [`Consumer`]'s fields of the same names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    data: *const u8,
    /// `capacity - 1`.
    mask: u64,
    align: u32,
    head: u64,
    tail: u64,
}

impl Positions for Consumer {
    const ROLE: Role = Role::Consumer;
    const NOT_NOW: ErrorKind = ErrorKind::Empty;

    /// Goes on at `head`.
    unsafe fn new(
        block: *const RingBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        rules: Rules,
    ) -> Result<Self, ErrorKind> {
        // SAFETY: the caller vouches for `block`.
        let shared = unsafe { &*block };
        // Acquire: pairs with the producer's publish, and with the last consumer's release.
        let head = shared.head.head.load(Ordering::Acquire);
        let tail = shared.tail.tail.load(Ordering::Acquire);
        if !positions_agree(tail, head, capacity, align) {
            return Err(ErrorKind::Corrupt);
        }
        Ok(Self { block, data, capacity, head, released: head, tail, align, state: State::new(), rules })
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    /// The producer's close is acted on where the ring is found empty, because what it sent before is delivered first.
    #[cold]
    #[inline(never)]
    fn peer_changed(&mut self) {
        let (mine, peer) = lines(self.shared(), Self::ROLE);
        self.state.follow_flags(mine, peer, self.rules);
    }

    #[cold]
    #[inline(never)]
    fn wake_slow(&mut self) {
        self.peer_changed();
        wake_after_change(self.peer());
    }

    fn start(&self) -> Start {
        Start {
            block: self.block,
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
        let (mine, peer) = lines(self.shared(), Self::ROLE);
        if kind == ErrorKind::Closed
            && let Some(epoch) = end::closed_epoch(peer)
        {
            // Release: a reader that sees this close as delivered sees the `head` of that moment.
            mine.close_seen.store(epoch, Ordering::Release);
        }
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

    /// The next frame, valid until [`release`](Self::release); `None` if nothing more is published.
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ErrorKind> {
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
    pub(crate) fn next_frame_at(&mut self, cursor: &mut Cursor) -> Result<Option<Frame>, ErrorKind> {
        if cursor.head == cursor.tail {
            self.state.check()?;
            if !self.refresh()? {
                return Ok(None);
            }
            cursor.tail = self.tail;
        }
        self.frame_at(cursor).map(Some)
    }

    /// The next frame, where [`has_cached_frame`](Self::has_cached_frame).
    #[inline(always)]
    pub(crate) fn cached_frame(&mut self) -> Result<Frame, ErrorKind> {
        let mut cursor = self.cursor();
        self.frame_at(&mut cursor)
    }

    #[inline(always)]
    fn frame_at(&mut self, cursor: &mut Cursor) -> Result<Frame, ErrorKind> {
        self.state.check()?;
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
            return Err(self.state.die(ErrorKind::Corrupt));
        }
        cursor.head = cursor.head.wrapping_add(size);
        self.head = cursor.head;
        // SAFETY: `16 + len <= size <= tail - head <= capacity` (checked above), so the payload ends within the
        // mirrored 2 × capacity bytes.
        let data = unsafe { cursor.data.add(at + FRAME_HEADER as usize) };
        Ok(Frame { data, len: len as usize, type_id: (word >> 32) as u32, tag })
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

    /// Reads `tail` again; true if it moved. The producer's position is checked here, once, before it is used: it
    /// may only move forward, up to `released + capacity`, in whole alignment steps.
    #[inline(always)]
    pub(crate) fn refresh(&mut self) -> Result<bool, ErrorKind> {
        // Acquire: the frames up to `tail` are visible after this load.
        let tail = self.shared().tail.tail.load(ordered(Step::AcquirePosition, Ordering::Acquire));
        if tail == self.tail {
            return Ok(false);
        }
        let moved = tail.wrapping_sub(self.tail);
        let room = self.capacity - self.tail.wrapping_sub(self.released);
        if moved > room || moved & (self.align as u64 - 1) != 0 {
            return Err(self.state.die(ErrorKind::Corrupt));
        }
        self.tail = tail;
        Ok(true)
    }

    /// Bytes that are published and not released, by a load of the shared position.
    pub(crate) fn len(&self) -> u64 {
        // Relaxed: a snapshot; clamped because the peer could write anything.
        self.shared().tail.tail.load(Ordering::Relaxed).wrapping_sub(self.released).min(self.capacity)
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
        debug_assert!(head.wrapping_sub(self.released) <= self.head.wrapping_sub(self.released));
        if self.state.check().is_err() {
            return;
        }
        // Release: our reads of the frames go before the position that lets the producer overwrite them.
        self.shared().head.head.store(head, ordered(Step::Publish, Ordering::Release));
        self.released = head;
        if self.state.fence_free != 0 {
            // As in `Producer::wake_consumer`: keeps the compiler from moving the loads below above the store.
            compiler_fence(Ordering::SeqCst);
            let peer = self.peer();
            // Relaxed: ordered by the compiler here and by the sleeper's membarrier.
            if peer.wait.load(Ordering::Relaxed) == 0 && peer.flags.load(Ordering::Relaxed) == self.state.peer_flags {
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
        if self.state.fence_free == 0 && keep(Step::WakerFence) {
            // SeqCst: forbids store(head) … load(wait) to pass each other; pairs with the sleeper's fence.
            fence(Ordering::SeqCst);
        }
        let peer = self.peer();
        // Relaxed: ordered by the fence above, or by the sleeper's membarrier.
        if peer.wait.load(Ordering::Relaxed) != 0 || peer.flags.load(Ordering::Relaxed) != self.state.peer_flags {
            self.wake_slow();
        }
    }
}
