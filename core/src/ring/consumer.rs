//! The consumer's half of the ring protocol: the mirror image of `producer.rs`.

use super::producer::{agree_on_fences, dead, die};
use crate::ErrorKind;
use crate::layout::{FRAME_HEADER, MESSAGE_MAX, ROLE_CLOSED, RingBlock, RoleLine, frame_size, positions_agree};
use crate::sync::{AtomicU32, Ordering, Step, compiler_fence, fence, keep, ordered};
use crate::wait;

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
    /// What the shared `head` holds: everything from here to `head` is lent out as views.
    pub released: u64,
    /// The shared `tail` as last seen; can be stale, never ahead of the real one.
    pub tail: u64,
    /// Payload alignment, 16 to 4096. Never changes.
    pub align: u32,
    /// 0, or the code of the [`ErrorKind`] that this handle is dead of; see the producer's.
    pub state: AtomicU32,
    /// The producer's flags as last acted upon.
    pub peer_flags: u32,
    /// 1: release without a fence.
    pub fence_free: u32,
    /// 1: the producer's orderly close ends this handle.
    pub endings_are_final: u32,
    /// 1: this process is registered with membarrier.
    pub membarrier_capable: u32,
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

impl Consumer {
    /// Takes the role over: reads and checks the positions that the last holder left, and goes on at `head`.
    ///
    /// # Safety
    /// As for [`Producer::new`](super::producer::Producer::new), with `data` readable, and no one else a consumer.
    pub unsafe fn new(
        block: *const RingBlock,
        data: *const u8,
        capacity: u64,
        align: u32,
        endings_are_final: bool,
        membarrier_capable: bool,
    ) -> Result<Self, ErrorKind> {
        // SAFETY: the caller vouches for `block`.
        let shared = unsafe { &*block };
        // Acquire: pairs with the producer's publish, and with the last consumer's release.
        let head = shared.head.head.load(Ordering::Acquire);
        let tail = shared.tail.tail.load(Ordering::Acquire);
        if !positions_agree(tail, head, capacity, align) {
            return Err(ErrorKind::Corrupt);
        }
        Ok(Self {
            block,
            data,
            capacity,
            head,
            released: head,
            tail,
            align,
            state: AtomicU32::new(0),
            peer_flags: 0,
            fence_free: 0,
            endings_are_final: endings_are_final as u32,
            membarrier_capable: membarrier_capable as u32,
        })
    }

    #[inline(always)]
    fn shared<'a>(&self) -> &'a RingBlock {
        // SAFETY: as in `Producer::shared`.
        unsafe { &*self.block }
    }

    /// This role's own words.
    #[inline(always)]
    pub(crate) fn mine<'a>(&self) -> &'a RoleLine {
        &self.shared().consumer
    }

    /// The producer's words.
    #[inline(always)]
    pub(crate) fn peer<'a>(&self) -> &'a RoleLine {
        &self.shared().producer
    }

    /// The error that this handle is dead of, if any.
    #[inline(always)]
    pub fn check(&self) -> Result<(), ErrorKind> {
        // Relaxed: stored by this thread only.
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(dead(code)),
        }
    }

    /// The next frame, lent out until [`release`](Self::release); `None` if nothing more is published.
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
            self.check()?;
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
        self.check()?;
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
            return Err(self.die(ErrorKind::Corrupt));
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

    /// Reads `tail` again; true if it moved. The producer's position is checked here, once, before it is believed: it
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
            return Err(self.die(ErrorKind::Corrupt));
        }
        self.tail = tail;
        Ok(true)
    }

    /// Whether frames are lent out.
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

    /// [`release`](Self::release) where frames are known to be lent out.
    #[inline(always)]
    pub(crate) fn release_lent(&mut self) {
        self.release_until(self.head);
    }

    /// Gives the frames before `head` back: a position from `released` to `self.head` at which a frame begins.
    #[inline(always)]
    pub(crate) fn release_until(&mut self, head: u64) {
        debug_assert!(head.wrapping_sub(self.released) <= self.head.wrapping_sub(self.released));
        if self.check().is_err() {
            return;
        }
        // Release: our reads of the frames go before the position that lets the producer overwrite them.
        self.shared().head.head.store(head, ordered(Step::Publish, Ordering::Release));
        self.released = head;
        if self.fence_free != 0 {
            // As in `Producer::wake_consumer`: keeps the compiler from moving the loads below above the store.
            compiler_fence(Ordering::SeqCst);
            let peer = self.peer();
            // Relaxed: ordered by the compiler here and by the sleeper's membarrier.
            if peer.wait.load(Ordering::Relaxed) == 0 && peer.flags.load(Ordering::Relaxed) == self.peer_flags {
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
        if self.tail.wrapping_sub(self.released) > self.capacity - self.capacity / 4 {
            return;
        }
        if self.fence_free == 0 && keep(Step::WakerFence) {
            // SeqCst: forbids store(head) … load(wait) to pass each other; pairs with the sleeper's fence.
            fence(Ordering::SeqCst);
        }
        let peer = self.peer();
        // Relaxed: ordered by the fence above, or by the sleeper's membarrier.
        if peer.wait.load(Ordering::Relaxed) != 0 || peer.flags.load(Ordering::Relaxed) != self.peer_flags {
            self.wake_slow();
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn wake_slow(&mut self) {
        self.peer_changed();
        // SeqCst: whatever was agreed on just now, this time the position goes before the load of `wait`.
        fence(Ordering::SeqCst);
        wait::wake_if_waiting(self.peer());
    }

    /// Acts on the producer's flags: who fences. Its close is acted on where the ring is found empty, because what it
    /// sent before is delivered first.
    #[cold]
    #[inline(never)]
    pub(crate) fn peer_changed(&mut self) {
        // Acquire: pairs with the attach or close that wrote them.
        let flags = self.peer().flags.load(Ordering::Acquire);
        self.peer_flags = flags;
        self.fence_free = agree_on_fences(self.mine(), self.membarrier_capable != 0, flags) as u32;
    }

    /// The epoch of a producer that has closed in an orderly way, or `None`.
    pub(crate) fn producer_closed(&self) -> Option<u32> {
        let peer = self.peer();
        // Acquire, all three: the epoch is the closer's only if it is the same before and after its flag was seen.
        let epoch = peer.epoch.load(Ordering::Acquire);
        let closed = peer.flags.load(Ordering::Acquire) & ROLE_CLOSED != 0;
        (closed && peer.epoch.load(Ordering::Acquire) == epoch).then_some(epoch)
    }

    /// Marks this handle dead of `kind`, unless it is dead already, and gives what it is dead of.
    #[cold]
    pub(crate) fn die(&mut self, kind: ErrorKind) -> ErrorKind {
        die(&self.state, kind)
    }
}
