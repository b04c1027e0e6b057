//! What a subscriber does by the topic's own rules.
//!
//! A reliable one reads as a ring's receiver does: nothing from its cursor on is overwritten. Where the publisher may eject
//! it, and under the other two policies, a message is copied, and what says that it was overwritten is loaded after the copy:
//! the slot's state, or the claim.

use super::Topic;
use super::copies::Copies;
use super::frame::{Header, read_header};
use super::join::{self, View};
use super::newest::Kept;
use super::place::{self, Policy, SideOptions, State as SlotState, Words};
use super::word::SubscriberWord;
use crate::endpoint::end::{self, OnePeer};
use crate::endpoint::state::{Rules, State};
use crate::facts::{NO_POSITION, OVERTAKEN_MAX};
use crate::layout::{SLOT_GATING, Slot, TOPIC_FRAME_HEADER, TopicBlock, is_topic_position};
use crate::ring::consumer::{Consumer, Cursor, Frame, Reading};
use crate::ring::half::Half;
use crate::ring::log::Shape;
use crate::segment::{Attachment, Role};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, keep, ordered, touch_data};
use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result};
use std::ptr::NonNull;

/// What a topic's frame says besides what a ring's does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The message's number.
    pub seq: u64,
    /// Nanoseconds since 1970, or 0.
    pub time: u64,
    /// How many messages were lost right before it.
    pub lost: u64,
}

/// What a subscriber has among its positions besides those of every receiver. `repr(C)`, as [`Consumer`] is;
/// `ramway_inline.h` knows the public fields.
#[repr(C)]
#[derive(Debug)]
pub struct SubscriberState {
    /// The shared cursor, where the publisher waits for this subscriber; else null.
    pub cursor: *const AtomicU64,
    /// The number that the message at `head` should have.
    pub expected: u64,
    /// Messages are copied, because they can be overwritten while they are read.
    pub copies_out: bool,
    /// How it reads.
    pub policy: Policy,
    /// The shared words of the subscribers' area.
    pub words: Words,
    /// `None`: it shows itself to nobody.
    slot: Option<NonNull<Slot>>,
    copies: Copies,
    /// Where the newest message is copied to for who asks for it alone, and which one that was last.
    pub(super) newest: Copies,
    pub(super) kept: Option<Kept>,
    /// Messages that were lost so far.
    pub(super) lost: u64,
    /// Where messages were received that say that others were lost before them, and how many: those that are not released,
    /// and perhaps some that are.
    gaps: Vec<(u64, u64)>,
    /// This subscriber was ejected and has begun anew: so many were lost, which is still to be told.
    lagged: Option<u64>,
}

// SAFETY: `slot` and `cursor` lead into a mapping that the attachment keeps and that has no thread affinity; `copies` and
// `newest` own their memory, into which `kept` points.
unsafe impl Send for SubscriberState {}

/// What an attempt to copy a frame came to.
pub(super) enum Copied {
    Frame(Header, Frame<Topic>, u64),
    Overtaken,
    Ejected,
    /// There is room for this many bytes only; the frame has so many.
    TooLong(usize, usize),
}

impl Reading for Topic {
    type ReceiverWord = SubscriberWord;
    const MOVES_ON: bool = true;

    unsafe fn begin_reading(
        block: *const TopicBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &super::Place,
        rules: Rules,
    ) -> Result<Consumer<Self>, ErrorKind> {
        let SideOptions::Subscriber(joined) = &place.side else { return Err(ErrorKind::InvalidArgument) };
        let words = place.words();
        let slot = joined.slot.map(|index| words.slot(index));
        let gates = joined.policy == Policy::Reliable;
        let cursor = slot.filter(|_| gates).map_or(std::ptr::null(), |slot| &raw const slot.cursor);
        // A position where nothing was read yet: see `refresh`.
        let at = if joined.policy == Policy::Latest { NO_POSITION } else { joined.cursor };
        Ok(Consumer {
            block,
            data,
            capacity,
            head: at,
            released: at,
            tail: at,
            align,
            state: State::new(),
            rules,
            more: SubscriberState {
                cursor,
                expected: joined.expected,
                copies_out: !gates || words.may_eject(),
                policy: joined.policy,
                words,
                slot: slot.map(NonNull::from),
                copies: Copies::default(),
                newest: Copies::default(),
                kept: None,
                lost: joined.lagged.unwrap_or(0),
                // Now, so that a message after lost ones allocates nothing.
                gaps: Vec::with_capacity(8),
                lagged: joined.lagged,
            },
        })
    }

    fn receiver_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> SubscriberWord {
        let SideOptions::Subscriber(joined) = &attachment.place.side else {
            unreachable!("begin_reading has refused it");
        };
        // SAFETY: the attachment keeps the header and the area mapped, and lives beside the word.
        unsafe {
            let publisher = OnePeer::new(&place::block(attachment.block.as_ptr()).publisher.role, Role::Consumer);
            SubscriberWord::new(publisher, attachment.place.words(), joined, membarrier_capable)
        }
    }

    fn act_on_sender(reader: &mut Consumer<Self>) {
        let publisher = &reader.shared().publisher.role;
        match reader.gating_slot() {
            Some(slot) => drop(reader.state.follow_flags(&slot.flags, publisher, reader.rules)),
            // It wakes nobody, so there is nothing to agree on.
            None => reader.state.peer_flags = publisher.flags.load(Ordering::Acquire),
        }
    }

    fn wait_for_sender(half: &mut Half<Consumer<Self>>, wait_limit: WaitLimit) -> Result<u32> {
        half.endpoint.wait_for_peer(wait_limit)
    }

    fn end_is_told(reader: &mut Consumer<Self>, kind: ErrorKind) {
        if kind == ErrorKind::Closed
            && let Some(slot) = reader.gating_slot()
            && let Some(epoch) = end::closed_epoch(&reader.shared().publisher.role)
        {
            // Release: who sees this close as delivered sees the cursor of that moment.
            slot.close_seen.store(epoch, Ordering::Release);
        }
    }

    #[inline(always)]
    fn refresh(reader: &mut Consumer<Self>) -> Result<bool, ErrorKind> {
        match reader.more.policy {
            Policy::Reliable => refresh_reliable(reader),
            Policy::Lossy => refresh_lossy(reader),
            Policy::Latest => refresh_latest(reader),
        }
    }

    #[inline(always)]
    fn frame_at(reader: &mut Consumer<Self>, cursor: &mut Cursor) -> Result<Option<Frame<Self>>, ErrorKind> {
        if reader.more.copies_out {
            return copied_frame_at(reader, cursor);
        }
        let pos = cursor.head;
        // SAFETY: a frame begins here, of which at least the header is published.
        let header = unsafe { read_header(cursor.data, pos, cursor.mask + 1) };
        let size = Self::frame_size(header.len(), cursor.align);
        if !header.is_plausible(size, cursor.tail.wrapping_sub(pos)) || header.seq < reader.more.expected {
            return Err(reader.state.die(ErrorKind::Corrupt));
        }
        cursor.head = pos.wrapping_add(size);
        reader.head = cursor.head;
        let lost = header.seq - reader.more.expected;
        if lost != 0 {
            reader.count_lost(pos, lost);
        }
        // SAFETY: the payload ends within the published bytes (checked above), which lie in the mapping.
        let data = unsafe { cursor.data.add((pos & cursor.mask) as usize + TOPIC_FRAME_HEADER as usize) };
        Ok(Some(reader.take(&header, data, lost)))
    }

    #[inline(always)]
    fn publish_head(reader: &mut Consumer<Self>, head: u64) -> bool {
        if reader.more.copies_out && head == reader.head {
            reader.more.copies.clear();
        }
        let cursor = reader.more.cursor;
        if cursor.is_null() {
            return false;
        }
        // SAFETY: `new`'s caller keeps the area mapped as long as this is used.
        let cursor = unsafe { &*cursor };
        // Release: our reads of the frames go before the position that lets the publisher overwrite them.
        cursor.store(head, ordered(Step::Publish, Ordering::Release));
        true
    }

    #[inline(always)]
    fn sender_words(reader: &Consumer<Self>) -> (&AtomicU32, &AtomicU32) {
        (reader.more.words.publisher_wait(), &reader.shared().publisher.role.flags)
    }

    fn unread(reader: &Consumer<Self>) -> u64 {
        let shared = reader.shared();
        // Relaxed: a snapshot; clamped because the publisher could write anything.
        let tail = shared.positions.tail.load(Ordering::Relaxed);
        let from = match reader.more.policy {
            Policy::Reliable | Policy::Lossy => reader.released,
            Policy::Latest => {
                let last = shared.positions.last.load(Ordering::Relaxed);
                if last == reader.head { tail } else { last }
            }
        };
        tail.wrapping_sub(from).min(reader.capacity)
    }

    #[inline(always)]
    fn forget_copies(reader: &mut Consumer<Self>) {
        if reader.more.copies_out {
            reader.more.copies.clear();
        }
    }

    /// What a batch of copies takes is bounded by the capacity, as what a batch of views keeps is.
    #[inline(always)]
    fn batch_is_full(reader: &Consumer<Self>) -> bool {
        reader.more.copies.held() as u64 >= reader.capacity
    }

    fn went_back(reader: &mut Consumer<Self>) {
        reader.more.expected = expected_at(reader, reader.head);
        // What is received again says again how many were lost before it.
        let (head, capacity) = (reader.head, reader.capacity);
        let SubscriberState { gaps, lost, .. } = &mut reader.more;
        gaps.retain(|(at, count)| {
            let again = at.wrapping_sub(head) <= capacity;
            *lost = lost.saturating_sub(if again { *count } else { 0 });
            !again
        });
    }

    fn has_pending(reader: &Consumer<Self>) -> bool {
        reader.more.lagged.is_some()
    }

    fn take_pending(reader: &mut Consumer<Self>) -> Option<Error> {
        reader.more.lagged.take().map(Error::lagged)
    }

    fn tell_later(reader: &mut Consumer<Self>, pending: &Error) {
        reader.more.lagged = pending.lost();
    }

    fn copy_next(
        half: &mut Half<Consumer<Self>>,
        wait_limit: WaitLimit,
        mut room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<Self>> {
        if !half.hot.more.copies_out {
            return half.copy_of_view(wait_limit, room);
        }
        let mut deadline = None;
        loop {
            half.wait_for_frame(wait_limit, Some(&mut deadline))?;
            half.check()?;
            let mut cursor = half.hot.cursor();
            match copy_at(&mut half.hot, &mut cursor, &mut room).map_err(|kind| half.error(kind))? {
                Some(Ok(frame)) => {
                    half.hot.release();
                    return Ok(frame);
                }
                Some(Err((len, room))) => return Err(half.too_long_for(len, room)),
                None => half.moved_on(wait_limit, &mut deadline)?,
            }
        }
    }

    /// A message that fits takes at most half of the capacity, so that this side has more than that to release if it is in
    /// its way. Another subscriber that is further behind is in the way first.
    fn may_block_sender(reader: &Consumer<Self>) -> bool {
        let behind = |position: u64| reader.head.wrapping_sub(position);
        let unreleased = behind(reader.released);
        // Relaxed: a snapshot. More than the capacity is a slot that does not gate.
        let further = |slot: &Slot| {
            let lag = behind(slot.cursor.load(Ordering::Relaxed));
            SlotState::load(slot).has(SLOT_GATING) && lag > unreleased && lag <= reader.capacity
        };
        unreleased > reader.capacity / 2 && !reader.more.words.slots().any(|(_, slot)| further(slot))
    }

    fn must_stay(reader: &Consumer<Self>) -> bool {
        !reader.more.copies_out && reader.gating_slot().is_some() && reader.has_unreleased()
    }
}

impl Consumer<Topic> {
    #[inline(always)]
    pub(super) fn shared<'a>(&self) -> &'a TopicBlock {
        // SAFETY: `new`'s caller keeps the block mapped as long as this is used.
        unsafe { place::block(self.block) }
    }

    pub(super) fn slot<'a>(&self) -> Option<&'a Slot> {
        // SAFETY: `new`'s caller keeps the area mapped as long as this is used.
        self.more.slot.map(|slot| unsafe { slot.as_ref() })
    }

    /// The slot, where the publisher waits for this subscriber.
    #[inline(always)]
    fn gating_slot<'a>(&self) -> Option<&'a Slot> {
        if self.more.policy == Policy::Reliable { self.slot() } else { None }
    }

    pub(super) fn view(&self) -> View {
        View { block: self.block, words: self.more.words, data: self.data, capacity: self.capacity, align: self.align }
    }

    /// Whether the publisher has ejected this subscriber.
    #[inline(always)]
    fn is_ejected(&self) -> bool {
        keep(Step::EjectedCheck) && self.gating_slot().is_some_and(join::is_ejected)
    }

    /// What a frame gives that was read whole, and what this side expects after it.
    #[inline(always)]
    fn take(&mut self, header: &Header, data: *const u8, lost: u64) -> Frame<Topic> {
        // Wrapping: a number that no publisher gives leads to `Corrupt` at the next message.
        self.more.expected = header.seq.wrapping_add(1);
        let stamp = Stamp { seq: header.seq, time: header.time, lost };
        Frame { data, len: header.len() as usize, type_id: header.type_id(), tag: header.tag, stamp }
    }

    /// So many were lost before the message at `pos`.
    #[cold]
    fn count_lost(&mut self, pos: u64, lost: u64) {
        self.more.lost = self.more.lost.saturating_add(lost);
        let (released, received) = (self.released, self.head.wrapping_sub(self.released));
        self.more.gaps.retain(|(at, _)| at.wrapping_sub(released) < received);
        self.more.gaps.push((pos, lost));
        if let Some(slot) = self.slot() {
            // Relaxed: for those who watch.
            slot.lost.store(self.more.lost, Ordering::Relaxed);
        }
    }

    /// Goes on at the newest message; gives how many are left out.
    pub(super) fn skip_to_newest(&mut self) -> Result<u64, ErrorKind> {
        if self.more.copies_out && self.is_ejected() {
            self.rejoin()?;
        }
        let Some(newest) = self.view().newest()? else { return Ok(0) };
        let seq = newest.header.seq;
        if seq < self.more.expected {
            // It was received.
            return Ok(0);
        }
        let skipped = seq - self.more.expected;
        let at = newest.end.wrapping_sub(Topic::frame_size(newest.header.len(), self.align));
        let all_released = !self.has_unreleased();
        (self.head, self.tail) = (at, newest.end);
        self.more.expected = seq;
        // Else what is held keeps its place, and what is left out goes with it.
        if all_released {
            self.release();
        }
        Ok(skipped)
    }

    /// Begins anew after having been ejected, at the oldest message that it has not received. The number of lost ones is told by the next call.
    #[cold]
    fn rejoin(&mut self) -> Result<(), ErrorKind> {
        let slot = self.gating_slot().expect("only a gating subscriber is ejected");
        let (_, cursor, found, lost) =
            self.view().rejoin(slot, self.more.expected).map_err(|kind| self.state.die(kind))?;
        (self.head, self.released, self.tail) = (cursor, cursor, cursor);
        self.more.expected = found;
        // Copies stay: a batch may be out.
        self.more.lagged = Some(self.more.lagged.unwrap_or(0).saturating_add(lost));
        self.count_lost(cursor, lost);
        self.more.gaps.clear();
        Ok(())
    }
}

fn refresh_reliable(reader: &mut Consumer<Topic>) -> Result<bool, ErrorKind> {
    // Acquire: the frames up to `tail` are visible after this load.
    let tail = reader.shared().positions.tail.load(ordered(Step::AcquirePosition, Ordering::Acquire));
    if tail == reader.tail {
        return Ok(false);
    }
    if reader.more.lagged.is_some() {
        return Err(ErrorKind::Lagged);
    }
    let moved = tail.wrapping_sub(reader.tail);
    let room = reader.capacity - reader.tail.wrapping_sub(reader.released);
    if reader.more.copies_out && reader.is_ejected() {
        reader.rejoin()?;
        return Err(ErrorKind::Lagged);
    }
    if moved > room || moved & (u64::from(reader.align) - 1) != 0 {
        return Err(reader.state.die(ErrorKind::Corrupt));
    }
    reader.tail = tail;
    Ok(true)
}

fn refresh_lossy(reader: &mut Consumer<Topic>) -> Result<bool, ErrorKind> {
    // Acquire: as above.
    let tail = reader.shared().positions.tail.load(Ordering::Acquire);
    let moved = tail.wrapping_sub(reader.tail);
    if moved == 0 {
        return Ok(false);
    }
    if moved >> 63 != 0 || moved & (u64::from(reader.align) - 1) != 0 {
        return Err(reader.state.die(ErrorKind::Corrupt));
    }
    reader.tail = tail;
    Ok(true)
}

/// For a subscriber that reads the newest message, `head` is where the one begins that it read last, and `tail` where the
/// newest one begins; both are no position before the first.
fn refresh_latest(reader: &mut Consumer<Topic>) -> Result<bool, ErrorKind> {
    let shared = reader.shared();
    // Acquire, in this order: `tail` is not older than `last`.
    let last = shared.positions.last.load(Ordering::Acquire);
    if last == reader.tail || last == shared.positions.tail.load(Ordering::Acquire) {
        return Ok(false);
    }
    reader.tail = last;
    Ok(true)
}

#[inline(never)]
fn copied_frame_at(reader: &mut Consumer<Topic>, cursor: &mut Cursor) -> Result<Option<Frame<Topic>>, ErrorKind> {
    let align = reader.align as usize;
    // Taken out for the while: the copy borrows the reader.
    let mut copies = std::mem::take(&mut reader.more.copies);
    let copied = copy_at(reader, cursor, &mut |from, len| Ok(copies.room(len, from, align)));
    if matches!(copied, Ok(Some(Ok(_)))) {
        copies.keep();
    }
    reader.more.copies = copies;
    Ok(match copied? {
        Some(Ok(frame)) => Some(frame),
        Some(Err(_)) | None => None,
    })
}

/// Where a copy of `len` bytes at an address goes, or how many bytes there is room for.
type Room<'a> = dyn FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize> + 'a;

type TooLong = (usize, usize);

/// Copies the frame at the cursor, or, where that is overwritten, the next one that is intact. `None`: there is none, or this
/// subscriber was ejected, which the next call tells.
fn copy_at(
    reader: &mut Consumer<Topic>,
    cursor: &mut Cursor,
    room: &mut Room<'_>,
) -> Result<Option<std::result::Result<Frame<Topic>, TooLong>>, ErrorKind> {
    let latest = reader.more.policy == Policy::Latest;
    let (mut pos, mut tail) = (cursor.head, cursor.tail);
    for _ in 0..OVERTAKEN_MAX {
        if latest {
            // Acquire, in this order: `tail` is not older than `last`.
            pos = reader.shared().positions.last.load(Ordering::Acquire);
            tail = reader.shared().positions.tail.load(Ordering::Acquire);
            if !is_topic_position(pos, reader.align) {
                return Err(reader.state.die(ErrorKind::Corrupt));
            }
        }
        match copy_frame(reader, pos, tail, room)? {
            Copied::Frame(header, frame, size) => {
                let lost = header.seq - reader.more.expected;
                let frame = reader.take(&header, frame.data, lost);
                if latest {
                    // What was skipped needs no release, and what is copied nobody waits for.
                    (cursor.head, cursor.tail) = (pos, pos);
                    (reader.head, reader.tail) = (pos, pos);
                } else {
                    cursor.head = pos.wrapping_add(size);
                    reader.head = cursor.head;
                }
                if lost != 0 {
                    reader.count_lost(pos, lost);
                }
                return Ok(Some(Ok(frame)));
            }
            Copied::TooLong(len, room) => return Ok(Some(Err((len, room)))),
            Copied::Ejected => {
                reader.rejoin()?;
                (cursor.head, cursor.tail) = (reader.head, reader.tail);
                return Ok(None);
            }
            Copied::Overtaken if latest => {}
            Copied::Overtaken => {
                // With half of the capacity to spare: at the very oldest it would be overtaken again at once.
                let (oldest, end) = reader.view().oldest(reader.capacity / 2);
                // Acquire, in this order: `tail` is not older than `last`. With an older one the newest message would not be
                // found that was published meanwhile.
                let last = reader.shared().positions.last.load(Ordering::Acquire);
                let now = reader.shared().positions.tail.load(Ordering::Acquire);
                let next = if oldest == end && last != now && reader.view().frame(last, now).is_some() {
                    last
                } else {
                    oldest
                };
                if !is_topic_position(next, reader.align) || !is_topic_position(now, reader.align) {
                    // A `tail` that no publisher writes.
                    return Err(reader.state.die(ErrorKind::Corrupt));
                }
                // Never back.
                if next.wrapping_sub(pos) >> 63 == 0 {
                    pos = next;
                }
                tail = now;
                skip_to(reader, cursor, pos, tail);
                if pos == tail {
                    return Ok(None);
                }
            }
        }
    }
    // A publisher that is faster than this side can read, or writes what no publisher writes: the next call goes on here, so
    // that the last message is not passed over if the publisher stops.
    Ok(None)
}

/// Goes on at `pos`. What lies before it was overwritten; its number tells how many.
fn skip_to(reader: &mut Consumer<Topic>, cursor: &mut Cursor, pos: u64, tail: u64) {
    if reader.released == reader.head {
        reader.released = pos;
    }
    (reader.head, reader.tail) = (pos, tail);
    (cursor.head, cursor.tail) = (pos, tail);
}

/// Copies the frame at `pos`, and says whether it was whole until after that.
fn copy_frame(reader: &mut Consumer<Topic>, pos: u64, tail: u64, room: &mut Room<'_>) -> Result<Copied, ErrorKind> {
    let view = reader.view();
    let gates = reader.more.policy == Policy::Reliable;
    // SAFETY: the position is aligned as frames are (checked where it comes from), and the data is mapped.
    let header = unsafe { read_header(view.data, pos, view.capacity) };
    // Only then is any number of it believed.
    if gates && reader.is_ejected() {
        return Ok(Copied::Ejected);
    }
    if !gates && keep(Step::OvertakenFirst) && view.is_overtaken(pos) {
        return Ok(Copied::Overtaken);
    }
    let size = Topic::frame_size(header.len(), view.align);
    if !view.lies_within(&header, size, pos, tail) || header.seq < reader.more.expected {
        return Err(reader.state.die(ErrorKind::Corrupt));
    }
    let len = header.len() as usize;
    // SAFETY: the payload ends within `tail - pos`, at most the capacity, so within the mirrored mapping.
    let from = unsafe { view.data.add((pos & (view.capacity - 1)) as usize + TOPIC_FRAME_HEADER as usize) };
    let to = match room(from, len) {
        Ok(to) => to,
        Err(room) => return Ok(Copied::TooLong(len, room)),
    };
    touch_data(from);
    // SAFETY: `len` bytes are mapped there, and there is room for them, which does not overlap. A publisher that writes
    // meanwhile makes the copy a mix of old and new bytes, which the check below throws away.
    unsafe { to.copy_from_nonoverlapping(from, len) };
    if gates && reader.is_ejected() {
        return Ok(Copied::Ejected);
    }
    if !gates && keep(Step::OvertakenAgain) && view.is_overtaken(pos) {
        return Ok(Copied::Overtaken);
    }
    let stamp = Stamp { seq: header.seq, time: header.time, lost: 0 };
    let frame = Frame { data: to.cast_const(), len, type_id: header.type_id(), tag: header.tag, stamp };
    Ok(Copied::Frame(header, frame, size))
}

/// The number that the message at `position` should have, which was received before: its own, less what was lost before it.
#[cold]
fn expected_at(reader: &Consumer<Topic>, position: u64) -> u64 {
    let lost = reader.more.gaps.iter().rev().find(|(at, _)| *at == position).map_or(0, |(_, lost)| *lost);
    let found = if reader.more.policy == Policy::Reliable {
        // Not by the claim, which goes beyond what this side's slot lets the publisher write.
        // SAFETY: a position where a frame was received, in the mapping.
        let header = unsafe { read_header(reader.data, position, reader.capacity) };
        (!reader.is_ejected()).then_some(header)
    } else {
        reader.view().frame(position, reader.tail).map(|found| found.header)
    };
    match found {
        Some(header) => header.seq.saturating_sub(lost),
        // Overwritten since, under a policy that allows it: what comes next tells how many were lost after what was
        // received.
        None => reader.more.expected,
    }
}
