//! What a publisher does by the topic's own rules: how far it may write, and how a message becomes visible.
//!
//! Its private limit says how far it may write without asking: in [`Producer::head`] as for a ring, which is the limit less
//! the capacity. About 16 times a lap it reaches the limit and goes through [`advance`], which reads the slots, announces
//! in `claim` what it is about to overwrite, and then makes sure that no subscriber joined meanwhile.

use super::Topic;
use super::frame::{Header, read_header, write_header};
use super::patrol::Patrol;
use super::place::{self, SideOptions, State as SlotState, Words, chunk_of, chunk_size};
use super::word::{PublisherWord, after_publish, all_can_membarrier};
use crate::endpoint::state::{Rules, State};
use crate::layout::{SLOT_GATING, Slot, TopicBlock, first_topic_position, is_topic_position, max_topic_message_len};
use crate::ring::half::Half;
use crate::ring::log::Shape;
use crate::ring::producer::{ALL_FLUSHED, NO_SLOT, Producer, Writing};
use crate::segment::Attachment;
use crate::sync::{Ordering, Step, compiler_fence, fence, keep, ordered};
use crate::wait::WaitLimit;
use crate::{ErrorKind, Result};

/// What a commit advances.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// The number of the next message; the first one has 1.
    pub seq: u64,
    /// Where the last committed frame begins.
    pub last: u64,
    /// Every message says when it was sent.
    pub timestamps: bool,
}

/// What a publisher has among its positions besides those of every sender. `repr(C)`, as [`Producer`] is; `ramway_inline.h`
/// knows the public fields.
#[repr(C)]
#[derive(Debug)]
pub struct PublisherState {
    /// The subscribers' word as last acted upon: even. A difference after a publish is looked into on the slow path.
    pub word_seen: u64,
    /// Where the last published frame begins: it stays intact.
    pub published: u64,
    /// The shared words of the subscribers' area.
    pub words: Words,
    /// What the shared `claim` holds.
    claim: u64,
    /// How far the slots let this side write, by the last scan, as a position; `None`: no slot gates.
    gate: Option<u64>,
    /// The count of changes before that scan; `None`: never scanned.
    scanned: Option<u32>,
    patrol: Patrol,
}

impl Writing for Topic {
    type SenderWord = PublisherWord;

    /// Goes on at `tail`, after the last frame that an earlier publisher has published.
    unsafe fn begin_writing(
        block: *const TopicBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &super::Place,
        rules: Rules,
    ) -> Result<Producer<Self>, ErrorKind> {
        // SAFETY: the caller's.
        let shared = unsafe { place::block(block) };
        // Acquire: pairs with the last publisher's stores.
        let tail = shared.positions.tail.load(Ordering::Acquire);
        let last = shared.positions.last.load(Ordering::Acquire);
        let claim = shared.claim.load(Ordering::Acquire);
        if !agree(tail, last, claim, capacity, align) {
            return Err(ErrorKind::Corrupt);
        }
        // A predecessor that was killed between its stores of `tail` and `last` leaves more than one frame.
        let (mut at, mut newest, mut seq) = (last, last, 0);
        while at != tail {
            // SAFETY: `at` is a position within the data, which is mapped.
            let header = unsafe { read_header(data, at, capacity) };
            let size = Self::frame_size(header.len(), align);
            if !header.is_plausible(size, tail.wrapping_sub(at)) || header.seq <= seq || header.seq >> 63 != 0 {
                return Err(ErrorKind::Corrupt);
            }
            (newest, seq) = (at, header.seq);
            at = at.wrapping_add(size);
        }
        for entry in shared.starts.iter() {
            // Relaxed: the next claim publishes it. An entry beyond `tail` is of a frame that was never published.
            if keep(Step::StartsAgain) && tail.wrapping_sub(entry.load(Ordering::Relaxed)) > capacity {
                entry.store(tail, Ordering::Relaxed);
            }
        }
        if newest != last {
            // Release: as in `publish_tail`.
            shared.positions.last.store(newest, Ordering::Release);
        }
        let words = place.words();
        let SideOptions::Publisher { eject_after, timestamps } = place.side else {
            return Err(ErrorKind::InvalidArgument);
        };
        Ok(Producer {
            block,
            data,
            capacity,
            max_len: max_topic_message_len(capacity),
            tail,
            unflushed: ALL_FLUSHED,
            // Nothing may be written before the first advance.
            head: tail.wrapping_sub(capacity),
            slot: NO_SLOT,
            tag: 0,
            align,
            state: State::new(),
            next_last_tag: 0,
            rules,
            reserved: 0,
            commit: Commit { seq: seq + 1, last: newest, timestamps },
            more: PublisherState {
                // Relaxed: a difference is looked into after the first publish.
                word_seen: words.word().load(Ordering::Relaxed) & !1,
                words,
                claim,
                published: newest,
                gate: None,
                scanned: None,
                patrol: Patrol::new(words, place.locks.clone(), eject_after),
            },
        })
    }

    fn sender_word(attachment: &Attachment<Self>, membarrier_capable: bool) -> PublisherWord {
        let place = &attachment.place;
        let eject_after = match place.side {
            SideOptions::Publisher { eject_after, .. } => eject_after,
            SideOptions::Subscriber(_) => 0,
        };
        // SAFETY: the attachment keeps the header and the area mapped, and lives beside the word.
        unsafe {
            let line = &place::block(attachment.block.as_ptr()).publisher;
            PublisherWord::new(line, place.words(), eject_after, place.locks.clone(), membarrier_capable)
        }
    }

    /// Subscribers that come or go are seen after the next publish.
    #[inline(always)]
    fn peer_has_changed(_: &Producer<Self>) -> bool {
        false
    }

    fn act_on_peer(writer: &mut Producer<Self>) {
        let capable = all_can_membarrier(&writer.more.words);
        writer.state.decide_fence(&writer.shared().publisher.role.flags, capable, writer.rules);
    }

    fn wake_receivers_slow(writer: &mut Producer<Self>) {
        let PublisherState { words, word_seen, .. } = &mut writer.more;
        let before = *word_seen as u32;
        let came_or_went = after_publish(words, word_seen);
        writer.state.count(*word_seen as u32 != before);
        if came_or_went || writer.state.is_to_decide(&writer.shared().publisher.role.flags) {
            Self::act_on_peer(writer);
            // SeqCst: whatever was decided just now, this time the publish goes before the load of the word.
            fence(Ordering::SeqCst);
            let PublisherState { words, word_seen, .. } = &mut writer.more;
            after_publish(words, word_seen);
        }
    }

    fn wait_for_receiver(half: &mut Half<Producer<Self>>, wait_limit: WaitLimit) -> Result<u32> {
        wait_for_subscribers(half, 1, wait_limit)?;
        Ok(half.endpoint.peer_epoch())
    }

    fn fits_after_refresh(writer: &mut Producer<Self>, size: u64) -> Result<bool, ErrorKind> {
        loop {
            if advance(writer, size) {
                writer.more.patrol.goes_on();
                return Ok(true);
            }
            if writer.unflushed != ALL_FLUSHED {
                // The last published message moves on, and with it how far this side may write.
                writer.publish();
                continue;
            }
            let blocked = Blocked { tail: writer.tail, limit: writer.limit(), size, published: writer.tail };
            let frames = Frames { data: writer.data, capacity: writer.capacity, align: writer.align };
            if !writer.more.patrol.check(&blocked, &frames) {
                return Ok(false);
            }
            // A dead subscriber was removed, or one that blocked for too long was ejected: the slots are to be read anew.
            writer.more.scanned = None;
        }
    }

    #[inline(always)]
    unsafe fn write_header(commit: &mut Commit, at: u64, to: *mut u8, len: u64, type_id: u32, tag: u64) {
        let time = if commit.timestamps { now() } else { 0 };
        // SAFETY: the caller's; a slot is aligned to 32, and its header stands before it.
        unsafe {
            write_header(to, Header { len_and_type: len | u64::from(type_id) << 32, tag, seq: commit.seq, time })
        };
        // Wrapping: only where somebody else wrote a number that no publisher comes to, and then it makes no call panic.
        commit.seq = commit.seq.wrapping_add(1);
        commit.last = at;
    }

    #[inline(always)]
    fn publish_tail(writer: &mut Producer<Self>, tail: u64, _: u64) {
        let shared = writer.shared();
        let last = writer.commit.last;
        if !keep(Step::Claim) {
            shared.claim.store(writer.more.claim, Ordering::Release);
        }
        // Release: the frames, headers and payloads, go before the position that publishes them.
        shared.positions.tail.store(tail, ordered(Step::Publish, Ordering::Release));
        // Release: who reads at `last` sees the frame there, and a `tail` after it.
        shared.positions.last.store(last, ordered(Step::PublishLast, Ordering::Release));
        writer.more.published = last;
        let mut counted_down = false;
        if writer.state.fences == 0 {
            // Keeps the compiler from moving the load below above the stores; the processor may still do so, and the
            // sleeper's membarrier undoes that.
            compiler_fence(Ordering::SeqCst);
        } else {
            if keep(Step::WakerFence) {
                // SeqCst: forbids the stores and the load to pass each other; pairs with the sleeper's order.
                fence(Ordering::SeqCst);
            }
            counted_down = writer.state.count_down();
        }
        // Relaxed: ordered by the fence above.
        if writer.more.words.word().load(Ordering::Relaxed) != writer.more.word_seen || counted_down {
            wake_cold(writer);
        }
    }

    /// What the slowest gating subscriber has not released.
    fn unreleased(writer: &Producer<Self>) -> u64 {
        let tail = writer.tail;
        let behind = |slot: &Slot| {
            // Relaxed: a snapshot.
            SlotState::load(slot).has(SLOT_GATING).then(|| tail.wrapping_sub(slot.cursor.load(Ordering::Relaxed)))
        };
        // More than the capacity is a slot that does not gate: its subscriber is choosing anew.
        let lags = writer.more.words.slots().filter_map(|(_, slot)| behind(slot));
        lags.filter(|lag| *lag <= writer.capacity).max().unwrap_or(0)
    }

    fn last_tag(writer: &Producer<Self>) -> Option<u64> {
        if writer.published() == first_topic_position(writer.align) && writer.more.published == writer.published() {
            return None;
        }
        // SAFETY: the last published frame is this side's own, and stays intact.
        Some(unsafe { read_header(writer.data, writer.more.published, writer.capacity) }.tag)
    }
}

#[cold]
#[inline(never)]
fn wake_cold(writer: &mut Producer<Topic>) {
    Topic::wake_receivers_slow(writer);
}

/// Whether the positions could be those of a topic that no publisher writes at this moment.
fn agree(tail: u64, last: u64, claim: u64, capacity: u64, align: u32) -> bool {
    is_topic_position(tail, align)
        && is_topic_position(last, align)
        && tail.wrapping_sub(last) <= capacity
        && claim.wrapping_sub(tail) <= capacity
        && claim.wrapping_sub(last) <= capacity
        && (last != tail || tail == first_topic_position(align))
}

/// Where a publisher stands that cannot go on.
#[derive(Debug)]
pub(super) struct Blocked {
    /// Where the message is to begin that does not fit.
    pub(super) tail: u64,
    /// How far it may write.
    pub(super) limit: u64,
    /// Bytes of the message's frame.
    pub(super) size: u64,
    /// Up to where frames are published.
    pub(super) published: u64,
}

/// Where the frames lie.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) data: *const u8,
    pub(super) capacity: u64,
    pub(super) align: u32,
}

impl Producer<Topic> {
    #[inline(always)]
    fn shared<'a>(&self) -> &'a TopicBlock {
        // SAFETY: `new`'s caller keeps the block mapped as long as this is used.
        unsafe { place::block(self.block) }
    }

    /// How far this side may write.
    pub(super) fn limit(&self) -> u64 {
        self.head.wrapping_add(self.capacity)
    }

    pub(super) fn topic_words(&self) -> &Words {
        &self.more.words
    }

    /// For how long a slot has kept this side from going on.
    pub(super) fn blocks_for(&self, slot: u32) -> Option<std::time::Duration> {
        self.more.patrol.blocks_for(slot)
    }

    /// The number of the last published message; 0 before the first.
    pub(super) fn published_seq(&self) -> u64 {
        if self.more.published == self.published() {
            return 0;
        }
        // SAFETY: as in `last_tag`.
        unsafe { read_header(self.data, self.more.published, self.capacity) }.seq
    }
}

/// Moves the limit so that a frame of `size` bytes fits at `tail`, if it may. True: it fits.
fn advance(writer: &mut Producer<Topic>, size: u64) -> bool {
    let (pos, capacity) = (writer.tail, writer.capacity);
    // All positions from here on as distances from `pos`: none of them lies before it.
    let ahead = |position: u64| position.wrapping_sub(pos);
    let keep_last = if keep(Step::KeepLast) { ahead(writer.more.published.wrapping_add(capacity)) } else { capacity };
    let words = writer.more.words;
    let mut changes = words.changes();
    let chunk = chunk_size(capacity);
    // Up to the next part's begin, as seldom as that makes this.
    let want = ahead((pos.wrapping_add(size).wrapping_add(chunk - 1)) & !(chunk - 1));
    // Cursors only move forward: where nobody came, what the slots let this side write is at least what they did.
    let stands = writer.more.scanned == Some(changes) && writer.more.gate.is_none_or(|gate| want <= ahead(gate));
    if !stands {
        scan(writer, changes);
    }
    let gate_of = |writer: &Producer<Topic>| writer.more.gate.map_or(keep_last, |gate| keep_last.min(ahead(gate)));
    let mut gate = gate_of(writer);
    if size > gate {
        return false;
    }
    let shared = writer.shared();
    let entry = &shared.starts[(chunk_of(pos, capacity) % crate::facts::TOPIC_CHUNKS) as usize];
    // The first frame that is noted in a part of the data stays noted for the lap: a later one would make history
    // unreachable that is intact. Relaxed: the claim below publishes it; only this side writes it.
    if !keep(Step::StartOfLap) || chunk_of(entry.load(Ordering::Relaxed), capacity) != chunk_of(pos, capacity) {
        entry.store(pos, Ordering::Relaxed);
    }
    // Never over the last published message.
    let claim = ahead(writer.more.claim).max(want.min(keep_last));
    if claim != ahead(writer.more.claim) {
        writer.more.claim = pos.wrapping_add(claim);
        if keep(Step::Claim) {
            // Release: the entry above goes first. Nothing that this announces is overwritten before the fence below.
            shared.claim.store(writer.more.claim, Ordering::Release);
        }
        if keep(Step::ClaimFence) {
            // SeqCst: a subscriber that joins stores its slot, fences, and loads the claim. Either it sees this claim, or
            // the load below sees its change.
            fence(Ordering::SeqCst);
        }
        let now = words.changes();
        if keep(Step::ChangesAgain) && now != changes {
            changes = now;
            scan(writer, changes);
            gate = gate_of(writer);
        }
    }
    writer.head = pos.wrapping_add(claim.min(gate)).wrapping_sub(capacity);
    size <= claim.min(gate)
}

/// Reads how far the slots let this side write. `changes` was loaded before.
fn scan(writer: &mut Producer<Topic>, changes: u32) {
    let (limit, capacity) = (writer.limit(), writer.capacity);
    let mut least: Option<u64> = None;
    // Where no subscriber may gate there is nothing to read.
    let slots = writer.more.words.may_gate().then(|| writer.more.words.slots());
    for (_, slot) in slots.into_iter().flatten() {
        if !SlotState::load(slot).has(SLOT_GATING) {
            continue;
        }
        // Acquire: the subscriber's last reads of what it gave back come before our writes to it.
        let cursor = slot.cursor.load(ordered(Step::AcquirePosition, Ordering::Acquire));
        let behind = limit.wrapping_sub(cursor);
        // A subscriber that is choosing its cursor anew, or has scribbled over it: it finds out by the claim.
        if behind <= capacity {
            least = Some(least.map_or(behind, |least| least.max(behind)));
        }
    }
    writer.more.gate = least.map(|behind| limit.wrapping_sub(behind).wrapping_add(capacity));
    writer.more.scanned = Some(changes);
}

/// Waits until `count` gating subscribers are there and alive. With `WaitLimit::None` it does not wait: `Empty`.
pub(super) fn wait_for_subscribers(
    half: &mut Half<Producer<Topic>>,
    count: usize,
    wait_limit: WaitLimit,
) -> Result<()> {
    if !half.hot.more.words.may_gate() {
        let text = "waiting for reliable subscribers of a topic that takes none (its creator said lossy_only)";
        return Err(crate::Error::new(ErrorKind::Unsupported, text).context(&half.endpoint.attachment.origin));
    }
    half.endpoint.wait_for_other(
        wait_limit,
        |word| word.living_subscribers() >= count,
        |word, attachment| {
            use crate::endpoint::side::Side;
            word.check_end(&attachment.link, true)
        },
    )
}

/// Nanoseconds since 1970, by the wall clock.
#[cold]
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
