//! The producer's half of the ring protocol, over a header block and a mirrored data area that somebody else has
//! mapped and validated. No system call but the wake-up of a consumer that says it waits.

use super::frame::{ask_ahead, write_header};
use crate::ErrorKind;
use crate::layout::{
    FRAME_HEADER, ROLE_CLOSED, ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE, RingBlock, RoleLine, first_position,
    frame_size, max_message_len, positions_agree,
};
use crate::sync::{AtomicU32, Ordering, Step, compiler_fence, fence, keep, ordered};
use crate::wait;

/// [`Producer::slot`] while no slot is open.
pub const NO_SLOT: u64 = u64::MAX;

/// [`Producer::unflushed`] while everything that is committed is published. No position, as `NO_POSITION`.
pub const ALL_FLUSHED: u64 = 1;

/// No frame ends here: positions are multiples of 16.
const NO_POSITION: u64 = 1;

/// A producer's private state. `repr(C)`, because `ramway_inline.h` runs the hot path over the same fields; the
/// layout is private to one build of the library and not part of the format.
#[repr(C)]
#[derive(Debug)]
pub struct Producer {
    /// The ring's words in the header page. Valid as long as this.
    pub block: *const RingBlock,
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
    /// The shared `head` as last seen; can be stale, never ahead of the real one.
    pub head: u64,
    /// Payload bytes reserved by the open slot of a binding, or [`NO_SLOT`]. A Rust [`Slot`](super::Slot) knows its
    /// own and leaves this alone.
    pub slot: u64,
    /// Tag of the last frame that was committed unflushed, for the last-tag record.
    pub tag: u64,
    /// Payload alignment, 16 to 4096. Never changes.
    pub align: u32,
    /// 0, or the code of the [`ErrorKind`] that this handle is dead of. Atomic because a fork's child handler stores
    /// `Detached` into it, on the only thread that the child has.
    pub state: AtomicU32,
    /// The consumer's flags as last acted upon; a difference is looked into on the slow path.
    pub peer_flags: u32,
    /// 1: publish without a fence (this process is registered with membarrier, and the consumer can use it).
    pub fence_free: u32,
    /// Which of the two last-tag records is written next.
    pub next_last_tag: u32,
    /// 1: the consumer's orderly close ends this handle (a bus, a pair); 0: a successor may come (a named ring).
    pub endings_are_final: u32,
    /// 1: this process is registered with membarrier.
    pub membarrier_capable: u32,
}

impl Producer {
    /// Takes the role over: reads and checks the positions that the last holder left.
    ///
    /// # Safety
    /// `block` and `data` (2 × `capacity` bytes, writable, the second half a mirror of the first) stay valid as long
    /// as the result is used, `capacity` and `align` have been validated, and no one else in the system is a producer
    /// of this ring.
    pub unsafe fn new(
        block: *const RingBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        endings_are_final: bool,
        membarrier_capable: bool,
    ) -> Result<Self, ErrorKind> {
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
        Ok(Self {
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
            state: AtomicU32::new(0),
            peer_flags: 0,
            fence_free: 0,
            next_last_tag,
            endings_are_final: endings_are_final as u32,
            membarrier_capable: membarrier_capable as u32,
        })
    }

    #[inline(always)]
    fn shared<'a>(&self) -> &'a RingBlock {
        // SAFETY: `new`'s caller keeps the block valid for as long as this is used; it is atomics all through but for
        // `geometry`, which nobody writes after birth and this type never reads.
        unsafe { &*self.block }
    }

    /// This role's own words.
    #[inline(always)]
    pub(crate) fn mine<'a>(&self) -> &'a RoleLine {
        &self.shared().producer
    }

    /// The consumer's words.
    #[inline(always)]
    pub(crate) fn peer<'a>(&self) -> &'a RoleLine {
        &self.shared().consumer
    }

    /// The error that this handle is dead of, if any.
    #[inline(always)]
    pub fn check(&self) -> Result<(), ErrorKind> {
        // Relaxed: stored by this thread only (see `state`).
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(dead(code)),
        }
    }

    /// Room for a payload of `len` bytes, aligned to `align`, its frame header right before it. The bytes are
    /// whatever an earlier lap left there. `Full`: nothing is reserved, and whatever was unflushed is flushed.
    #[inline(always)]
    pub fn try_reserve(&mut self, len: u64) -> Result<*mut u8, ErrorKind> {
        self.check()?;
        // Relaxed: a hint that something changed; the slow path checks properly.
        if self.peer().flags.load(Ordering::Relaxed) != self.peer_flags {
            self.peer_changed();
            self.check()?;
        }
        if len > self.max_len {
            return Err(ErrorKind::TooLarge);
        }
        // `len` is at most MESSAGE_MAX, so this cannot overflow; `tail - head` is at most `capacity`.
        let size = frame_size(len, self.align);
        if size > self.capacity - self.tail.wrapping_sub(self.head) && !self.refresh(size)? {
            return Err(ErrorKind::Full);
        }
        let to = self.payload();
        ask_ahead(to, len);
        Ok(to)
    }

    /// Where the payload of the next frame begins.
    #[inline(always)]
    pub(crate) fn payload(&self) -> *mut u8 {
        let at = self.tail & (self.capacity - 1);
        // SAFETY: `at < capacity` and `at + 16 <= capacity`, because both are multiples of 16; so this is within the
        // mirrored 2 × capacity bytes.
        unsafe { self.data.add((at + FRAME_HEADER) as usize) }
    }

    /// Whether [`try_reserve`](Self::try_reserve) has something else to report than the room.
    #[inline(always)]
    pub(super) fn state_or_peer_changed(&self) -> bool {
        // Relaxed: as in `try_reserve`.
        self.check().is_err() || self.peer().flags.load(Ordering::Relaxed) != self.peer_flags
    }

    /// Goes on where a [`SendBatch`](super::SendBatch) is: at `tail`, after a frame with this tag. Nothing of it is
    /// published yet.
    #[inline(always)]
    pub(super) fn resume(&mut self, tail: u64, tag: u64) {
        if tail == self.tail {
            return;
        }
        if self.unflushed == ALL_FLUSHED {
            self.unflushed = self.tail;
        }
        self.tail = tail;
        self.tag = tag;
        self.slot = NO_SLOT;
    }

    /// What the shared `tail` holds.
    #[inline(always)]
    pub(crate) fn published(&self) -> u64 {
        if self.unflushed == ALL_FLUSHED { self.tail } else { self.unflushed }
    }

    /// Reads `head` again; true if a frame of `size` bytes fits now. If not, flushes.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self, size: u64) -> Result<bool, ErrorKind> {
        if self.fits_after_refresh(size)? {
            return Ok(true);
        }
        self.publish();
        Ok(false)
    }

    /// The consumer's position is checked here, once, before it is believed: it may only move forward, up to what was
    /// published, in whole alignment steps.
    pub(crate) fn fits_after_refresh(&mut self, size: u64) -> Result<bool, ErrorKind> {
        // Acquire: the consumer's last reads of the space it gave back come before our writes to it.
        let head = self.shared().head.head.load(ordered(Step::AcquirePosition, Ordering::Acquire));
        let moved = head.wrapping_sub(self.head);
        if moved > self.published().wrapping_sub(self.head) || moved & (self.align as u64 - 1) != 0 {
            return Err(self.die(ErrorKind::Corrupt));
        }
        self.head = head;
        Ok(size <= self.capacity - self.tail.wrapping_sub(head))
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
        self.check()?;
        // SAFETY: the caller vouches for `to`.
        unsafe { write_header(to, len, type_id, tag) };
        // A binding's slot, opened where this message is now.
        if self.slot != NO_SLOT {
            self.slot = NO_SLOT;
        }
        let tail = self.tail.wrapping_add(frame_size(len, self.align));
        if flush {
            if self.unflushed != ALL_FLUSHED {
                self.unflushed = ALL_FLUSHED;
            }
            self.tail = tail;
            self.publish_tail(tail, tag);
        } else {
            if self.unflushed == ALL_FLUSHED {
                self.unflushed = self.tail;
            }
            if self.tag != tag {
                self.tag = tag;
            }
            self.tail = tail;
        }
        Ok(())
    }

    /// Makes everything committed visible, and wakes the consumer if it says it sleeps.
    #[inline(always)]
    pub fn publish(&mut self) {
        if self.unflushed == ALL_FLUSHED || self.check().is_err() {
            return;
        }
        self.unflushed = ALL_FLUSHED;
        self.publish_tail(self.tail, self.tag);
    }

    /// Publishes `tail`, where a frame with this tag ends.
    #[inline(always)]
    fn publish_tail(&mut self, tail: u64, tag: u64) {
        let shared = self.shared();
        // Only for a tag: the two stores are 12 to 19 % of a 32-byte message (docs/adr/0001), and no record says "0".
        if tag != 0 {
            let record = &shared.tail.last_tags[(self.next_last_tag & 1) as usize];
            // Relaxed: only a later producer reads these records, after the role lock has passed to it. A kill between any two
            // of these stores leaves this record not matching `tail`, and the other one matching if it did.
            record.end.store(tail, Ordering::Relaxed);
            record.tag.store(tag, Ordering::Relaxed);
            self.next_last_tag ^= 1;
        }
        // Release: the frames, headers and payloads, go before the position that uncovers them.
        shared.tail.tail.store(tail, ordered(Step::Publish, Ordering::Release));
        self.wake_consumer();
    }

    #[inline(always)]
    fn wake_consumer(&mut self) {
        if self.fence_free != 0 {
            // Keeps the compiler from moving the loads below above the store of `tail`; the CPU may still do so, and
            // the sleeper's membarrier undoes that.
            compiler_fence(Ordering::SeqCst);
        } else if keep(Step::WakerFence) {
            // SeqCst: forbids store(tail) … load(wait) to pass each other; pairs with the sleeper's fence.
            fence(Ordering::SeqCst);
        }
        let peer = self.peer();
        // Relaxed: ordered by the fence above.
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

    /// Acts on the consumer's flags: who fences, and whether it closed.
    #[cold]
    #[inline(never)]
    pub(crate) fn peer_changed(&mut self) {
        // Acquire: pairs with the attach or close that wrote them.
        let flags = self.peer().flags.load(Ordering::Acquire);
        self.peer_flags = flags;
        self.fence_free = agree_on_fences(self.mine(), self.membarrier_capable != 0, flags) as u32;
        if flags & ROLE_CLOSED != 0 && self.endings_are_final != 0 {
            self.die(ErrorKind::Closed);
        }
    }

    /// The tag of the last published frame, also one that an earlier producer published; `None` before the first.
    pub fn last_tag(&self) -> Option<u64> {
        if self.published() == first_position(self.align) {
            return None;
        }
        // Relaxed: see `publish`.
        let ours = |m: &&crate::layout::LastTag| m.end.load(Ordering::Relaxed) == self.published();
        Some(self.shared().tail.last_tags.iter().find(ours).map_or(0, |m| m.tag.load(Ordering::Relaxed)))
    }

    /// Marks this handle dead of `kind`, unless it is dead already, and gives what it is dead of.
    #[cold]
    pub(crate) fn die(&mut self, kind: ErrorKind) -> ErrorKind {
        die(&self.state, kind)
    }
}

/// Decides whether this side, as a waker, may leave its fence out, says so in its own flags, and fences after saying
/// so. The return value is the new `fence_free`.
pub(crate) fn agree_on_fences(mine: &RoleLine, membarrier_capable: bool, peer_flags: u32) -> bool {
    let fence_free = membarrier_capable && peer_flags & ROLE_MEMBARRIER_CAPABLE != 0;
    // Relaxed loads and stores: this role is the only writer of its flags.
    let before = mine.flags.load(Ordering::Relaxed);
    let after = if fence_free { before | ROLE_FENCE_FREE } else { before & !ROLE_FENCE_FREE };
    if after != before {
        mine.flags.store(after, Ordering::Relaxed);
        if !keep(Step::FenceFreeFence) {
            return fence_free;
        }
        // SeqCst: the flag ROLE_FENCE_FREE is visible before the first publish without a fence; and on the way back, a sleeper
        // that no longer sees the bit can rely on fences from here on.
        fence(Ordering::SeqCst);
    }
    fence_free
}

#[cold]
pub(crate) fn die(state: &AtomicU32, kind: ErrorKind) -> ErrorKind {
    // Relaxed: see `Producer::state`.
    match state.load(Ordering::Relaxed) {
        0 => {
            state.store(kind.code() as u32, Ordering::Relaxed);
            kind
        }
        code => dead(code),
    }
}

#[cold]
pub(crate) fn dead(code: u32) -> ErrorKind {
    ErrorKind::from_code(code as i32).unwrap_or(ErrorKind::Detached)
}
