//! How a subscriber comes: which slot it takes, where it begins, and how it makes sure that nothing from there on is
//! overwritten before the publisher knows of it.
//!
//! A gating subscriber stores where it begins, sets its slot, counts the change, fences, and loads the claim. The publisher
//! stores its claim, fences, and loads the count. At least one sees the other: if the claim has passed the place where the
//! subscriber begins, that chooses anew; else the publisher reads the slot before it writes there.

use super::frame::{Header, read_header};
use super::place::{self, Policy, State, Words};
use crate::endpoint::word::wake;
use crate::facts::{SLOT_FLAG_LATEST, TOPIC_CHUNKS};
use crate::layout::{
    ROLE_MEMBARRIER_CAPABLE, SLOT_ACTIVE, SLOT_DURABLE, SLOT_EJECTED, SLOT_GATING, Slot, TopicBlock, is_topic_position,
};
use crate::sync::{Ordering, Step, fence, keep, spin_hint};
use crate::{Error, ErrorKind, Result};

/// Where a subscriber begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At the oldest message that is intact.
    Oldest,
    /// After the newest message.
    Now,
    /// With this many messages that were published before.
    History(u64),
    /// After the message with this number.
    AfterSeq(u64),
    /// At the message with this number, or the first intact one after it: where one goes on that was ejected. The oldest
    /// message may be one that it has received.
    Again(u64),
}

/// What a subscriber that has come begins with.
#[derive(Debug)]
pub struct Joined {
    pub(super) policy: Policy,
    /// What it calls itself, whether or not a slot shows it.
    pub(super) label: Option<Label>,
    /// `None`: it shows itself to nobody.
    pub(super) slot: Option<u32>,
    pub(super) durable: bool,
    /// It may write to the subscribers' area.
    pub(super) writable: bool,
    /// How often the slot was taken; 1 without one.
    pub(super) epoch: u32,
    /// The publisher's epoch whose close the durable predecessor has seen, or 0.
    pub(super) close_seen: u32,
    pub(super) cursor: u64,
    /// The number of the message that is to come next.
    pub(super) expected: u64,
    /// A durable predecessor was ejected: this many messages were lost.
    pub(super) lagged: Option<u64>,
}

/// A topic as a subscriber sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) block: *const TopicBlock,
    pub(super) words: Words,
    pub(super) data: *const u8,
    pub(super) capacity: u64,
    pub(super) align: u32,
}

/// How often a position is chosen anew before a subscriber gives up against what is not a correct publisher.
// Few under miri, which takes a hundred times as long.
const ATTEMPTS: u32 = if cfg!(miri) { 20 } else { 10_000 };

/// A frame that was whole when it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) end: u64,
}

impl View {
    pub(super) fn shared<'a>(&self) -> &'a TopicBlock {
        // SAFETY: whoever made the view keeps the topic mapped as long as it is used.
        unsafe { place::block(self.block) }
    }

    fn in_place(&self, position: u64) -> bool {
        is_topic_position(position, self.align)
    }

    /// Whether a frame at this position may be overwritten already, or at any moment.
    pub(super) fn is_overtaken(&self, position: u64) -> bool {
        // Acquire fence: everything that was read of the frame comes before the load. Relaxed load: the fence orders it.
        fence(Ordering::Acquire);
        self.shared().claim.load(Ordering::Relaxed).wrapping_sub(position) > self.capacity
    }

    /// Whether the frame at a position, whose header was read before a claim that has not overtaken it, lies within what
    /// was published before that. The claim is never behind `tail`: so what it has not overtaken is at most the capacity
    /// behind `tail` too, whoever wrote the two.
    pub(super) fn lies_within(&self, header: &Header, size: u64, position: u64, tail: u64) -> bool {
        let left = tail.wrapping_sub(position);
        left <= self.capacity && header.is_plausible(size, left)
    }

    /// The frame at a position, if it is one and was whole when it was read.
    pub(super) fn frame(&self, position: u64, tail: u64) -> Option<Found> {
        self.frame_if(position, tail, || !self.is_overtaken(position))
    }

    /// The frame at a position that a gating slot keeps from being overwritten. The claim says nothing about it: it may pass
    /// the cursor, up to the next part's begin, and nothing is written there before the cursor moves.
    fn kept_frame(&self, position: u64, tail: u64) -> Option<Found> {
        self.frame_if(position, tail, || true)
    }

    /// `is_whole` is asked after the header was read.
    fn frame_if(&self, position: u64, tail: u64, is_whole: impl FnOnce() -> bool) -> Option<Found> {
        if !self.in_place(position) {
            return None;
        }
        // SAFETY: the data is mapped, and the position aligned as frames are.
        let header = unsafe { read_header(self.data, position, self.capacity) };
        if !is_whole() {
            return None;
        }
        let size = <super::Topic as crate::ring::log::Shape>::frame_size(header.len(), self.align);
        // The first message has the number 1, and the last one can be followed by another.
        let is_frame = self.lies_within(&header, size, position, tail) && header.seq.wrapping_add(1) > 1;
        is_frame.then(|| Found { header, end: position.wrapping_add(size) })
    }

    /// The newest frame; `None` before the first.
    pub(super) fn newest(&self) -> Result<Option<Found>, ErrorKind> {
        for _ in 0..ATTEMPTS {
            // Acquire, in this order: `tail` is not older than `last`.
            let last = self.shared().positions.last.load(Ordering::Acquire);
            let tail = self.shared().positions.tail.load(Ordering::Acquire);
            if last == tail {
                return Ok(None);
            }
            if let Some(found) = self.frame(last, tail) {
                return Ok(Some(found));
            }
            spin_hint();
        }
        Err(ErrorKind::Corrupt)
    }

    /// Where frames begin by the publisher's notes, the newest frame among them: it is always intact, and nothing else may be
    /// where messages are long.
    fn noted(&self) -> impl Iterator<Item = u64> {
        // Acquire: what is noted was published, if it is not beyond a `tail` that is loaded later.
        let last = self.shared().positions.last.load(Ordering::Acquire);
        let entries: [u64; TOPIC_CHUNKS as usize] =
            std::array::from_fn(|i| self.shared().starts[i].load(Ordering::Acquire));
        entries.into_iter().chain([last])
    }

    /// The oldest frame that is noted and at most `within` bytes behind the claim, or `tail`, which is given too.
    pub(super) fn oldest(&self, within: u64) -> (u64, u64) {
        // Acquire, in this order: an entry that is not beyond `tail` was published, and the claim is not older than it.
        let tail = self.shared().positions.tail.load(Ordering::Acquire);
        let entries = self.noted();
        let claim = self.shared().claim.load(Ordering::Acquire);
        let intact = |entry: &u64| {
            self.in_place(*entry) && tail.wrapping_sub(*entry) <= self.capacity && claim.wrapping_sub(*entry) <= within
        };
        let oldest = entries.into_iter().filter(intact).max_by_key(|entry| tail.wrapping_sub(*entry));
        (oldest.unwrap_or(tail), tail)
    }

    /// The newest noted frame whose number is at most `seq`, else the oldest; and `tail`.
    fn noted_before(&self, seq: u64) -> (u64, u64) {
        let (oldest, tail) = self.oldest(self.capacity);
        let numbered = self.noted().filter(|entry| tail.wrapping_sub(*entry) <= self.capacity).filter_map(|entry| {
            let found = self.frame(entry, tail)?;
            (found.header.seq <= seq).then_some((found.header.seq, entry))
        });
        (numbered.max_by_key(|(seq, _)| *seq).map_or(oldest, |(_, entry)| entry), tail)
    }

    /// The position to begin at, and which number to look for from there, if not the first.
    fn choose(&self, start: Start) -> Result<Choice, ErrorKind> {
        let newest = self.newest()?;
        let after_newest = || match newest {
            Some(found) => Choice { cursor: found.end, first: None, expected: Some(found.header.seq.wrapping_add(1)) },
            None => {
                Choice { cursor: self.shared().positions.tail.load(Ordering::Acquire), first: None, expected: Some(1) }
            }
        };
        let seq = newest.map_or(0, |found| found.header.seq);
        Ok(match start {
            Start::Now | Start::History(0) => after_newest(),
            Start::Oldest => Choice { cursor: self.oldest(self.capacity).0, first: None, expected: None },
            Start::History(count) if count >= seq => {
                Choice { cursor: self.oldest(self.capacity).0, first: None, expected: None }
            }
            Start::History(count) => {
                let first = seq - count + 1;
                Choice { cursor: self.noted_before(first).0, first: Some(first), expected: None }
            }
            Start::Again(first) if first > seq => after_newest(),
            Start::Again(first) => Choice { cursor: self.noted_before(first).0, first: Some(first), expected: None },
            // From another topic of this name, or from the future.
            Start::AfterSeq(after) if after >= seq => after_newest(),
            Start::AfterSeq(after) => {
                Choice { cursor: self.noted_before(after + 1).0, first: Some(after + 1), expected: Some(after + 1) }
            }
        })
    }

    /// From a chosen position, which nobody overwrites (`kept`) or whose frames are checked, to the first frame to read; and
    /// the number to expect there. `None`: overtaken.
    fn settle(&self, choice: &Choice, kept: bool) -> Result<Option<(u64, u64)>, ErrorKind> {
        let mut at = choice.cursor;
        // A frame for each step is the most there can be, unless the publisher writes on meanwhile.
        for _ in 0..ATTEMPTS.max((self.capacity / u64::from(self.align)) as u32) {
            let tail = self.shared().positions.tail.load(Ordering::Acquire);
            if at == tail {
                if !self.in_place(at) {
                    return Err(ErrorKind::Corrupt);
                }
                let expected = match choice.expected {
                    Some(expected) => Some(expected),
                    None => self.number_at(tail)?,
                };
                match expected {
                    Some(expected) => return Ok(Some((at, expected))),
                    // Something has come since.
                    None => continue,
                }
            }
            let found = if kept { self.kept_frame(at, tail) } else { self.frame(at, tail) };
            let Some(found) = found else {
                return if !kept && self.is_overtaken(at) { Ok(None) } else { Err(ErrorKind::Corrupt) };
            };
            if choice.first.is_none_or(|first| found.header.seq >= first) {
                return Ok(Some((at, choice.expected.unwrap_or(found.header.seq))));
            }
            at = found.end;
        }
        Err(ErrorKind::Corrupt)
    }

    /// The number of the message that is to come at `tail`: the one after the newest. `None`: it has come meanwhile.
    fn number_at(&self, tail: u64) -> Result<Option<u64>, ErrorKind> {
        let Some(mut newest) = self.newest()? else { return Ok(Some(1)) };
        // A publisher that was killed between its stores of `tail` and `last` leaves frames between the two.
        while newest.end != tail {
            let Some(next) = self.frame(newest.end, tail) else { return Ok(None) };
            newest = next;
        }
        Ok(Some(newest.header.seq + 1))
    }

    /// Where a subscriber begins that nobody waits for.
    pub(super) fn begin(&self, start: Start) -> Result<(u64, u64), ErrorKind> {
        for _ in 0..ATTEMPTS {
            if let Some(found) = self.settle(&self.choose(start)?, false)? {
                return Ok(found);
            }
            spin_hint();
        }
        Err(ErrorKind::Corrupt)
    }

    /// Begins with a slot that gates, whose lock is held, and whose cursor is to stay if `durable`. Gives the epoch, and where
    /// it begins.
    pub(super) fn gate(&self, slot: &Slot, start: Start, durable: bool) -> Result<(u32, u64, u64), ErrorKind> {
        // Relaxed: the lock orders it after the last holder's store.
        let mut state = State(slot.state.load(Ordering::Relaxed));
        let began = self.gate_as(slot, &mut state, start, durable);
        if began.is_err() {
            // Back to no subscriber.
            state.without_flags().set(slot);
            self.words.count_change();
        }
        let (cursor, expected) = began?;
        if durable {
            set_durable(slot);
        }
        Ok((state.epoch(), cursor, expected))
    }

    fn gate_as(&self, slot: &Slot, state: &mut State, start: Start, durable: bool) -> Result<(u64, u64), ErrorKind> {
        let early = if durable && !keep(Step::DurableLast) { SLOT_DURABLE } else { 0 };
        let mut anew = true;
        for _ in 0..ATTEMPTS {
            let choice = self.choose(start)?;
            // Relaxed: the state, or the count, publishes it.
            slot.cursor.store(choice.cursor, Ordering::Relaxed);
            if anew {
                *state = state.next(SLOT_ACTIVE | SLOT_GATING | early);
                state.set(slot);
            }
            if anew || keep(Step::BumpAgain) {
                self.words.count_change();
            }
            anew = false;
            if keep(Step::JoinFence) {
                // SeqCst: pairs with the publisher's fence between its claim and its load of the count.
                fence(Ordering::SeqCst);
            }
            // Relaxed: ordered by the fence.
            let claim = self.shared().claim.load(Ordering::Relaxed);
            // The publisher may be blocked by what this slot has said before.
            wake(self.words.publisher_wait());
            if keep(Step::JoinClaim) && claim.wrapping_sub(choice.cursor) > self.capacity {
                spin_hint();
                continue;
            }
            let settled = self.settle(&choice, true);
            if is_ejected(slot) {
                // Nothing has kept what was read there.
                anew = true;
                continue;
            }
            let Some((cursor, expected)) = settled? else { continue };
            if cursor != choice.cursor {
                // Release: what was walked over was read before. Forward only, so the publisher needs no count.
                slot.cursor.store(cursor, Ordering::Release);
            }
            return Ok((cursor, expected));
        }
        Err(ErrorKind::Corrupt)
    }

    /// Takes up the cursor of a durable predecessor, whose slot's lock is held now. `None`: the predecessor was ejected.
    fn resume(&self, slot: &Slot, state: State) -> Result<Option<(u32, u64, u64)>, ErrorKind> {
        // Acquire: pairs with the predecessor's release.
        let cursor = slot.cursor.load(Ordering::Acquire);
        let tail = self.shared().positions.tail.load(Ordering::Acquire);
        if !self.in_place(cursor) || tail.wrapping_sub(cursor) > self.capacity {
            return Err(ErrorKind::Corrupt);
        }
        let next = state.next(SLOT_ACTIVE | SLOT_GATING | SLOT_DURABLE);
        if state.swap(slot, next).is_err() {
            return Ok(None);
        }
        self.words.count_change();
        fence(Ordering::SeqCst);
        wake(self.words.publisher_wait());
        let choice = Choice { cursor, first: None, expected: None };
        let settled = self.settle(&choice, true);
        if is_ejected(slot) {
            return Ok(None);
        }
        let (cursor, expected) = settled?.ok_or(ErrorKind::Corrupt)?;
        Ok(Some((next.epoch(), cursor, expected)))
    }

    /// Begins anew, on the same slot, for a subscriber that was ejected and expects `expected` next. Gives the epoch, where
    /// it begins, the number there, and how many it lost.
    pub(super) fn rejoin(&self, slot: &Slot, expected: u64) -> Result<(u32, u64, u64, u64), ErrorKind> {
        // Relaxed: an ejected slot is this side's alone.
        let durable = State(slot.state.load(Ordering::Relaxed)).has(SLOT_DURABLE);
        let (epoch, cursor, found) = self.gate(slot, Start::Again(expected), durable)?;
        Ok((epoch, cursor, found, found.saturating_sub(expected)))
    }
}

/// Whether the publisher has ejected the subscriber of a slot.
pub(super) fn is_ejected(slot: &Slot) -> bool {
    // Acquire fence: what was read of the data comes before the load of the state.
    fence(Ordering::Acquire);
    State::load(slot).has(SLOT_EJECTED)
}

/// Sets the bit that keeps the cursor: last, so that a join that is cut off by a kill leaves nothing that gates.
fn set_durable(slot: &Slot) {
    let mut state = State::load(slot);
    while !state.has(SLOT_EJECTED) || state.has(SLOT_GATING) {
        match state.swap(slot, State(state.0 | SLOT_DURABLE)) {
            Ok(()) => return,
            Err(now) => state = now,
        }
    }
    // Ejected meanwhile: it stays durable, as an ejected slot.
    let _ = state.swap(slot, State(state.0 | SLOT_DURABLE));
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    cursor: u64,
    /// Go on from there to the first frame with at least this number.
    first: Option<u64>,
    /// The number to expect, whatever is found.
    expected: Option<u64>,
}

/// Who holds the locks of the slots: of the real segment, or of a model.
pub(super) trait Seats {
    /// Takes the lock of a slot, if nobody else has it.
    fn take(&mut self, index: u32) -> Result<bool>;
    /// Gives it back.
    fn give_back(&mut self, index: u32);
    /// Whether somebody else has it.
    fn is_held(&self, index: u32) -> bool;
    /// Only one labelled subscriber looks for its slot at a time.
    fn begin_labelled(&mut self) -> Result<()>;
    /// It has found it.
    fn end_labelled(&mut self);
}

/// How a subscriber wants to join.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) policy: Policy,
    pub(super) start: Start,
    pub(super) label: Option<Label>,
    pub(super) durable: bool,
    pub(super) writable: bool,
    pub(super) membarrier_capable: bool,
}

/// A label as a slot holds it: 64 bytes, padded with zeros.
pub(super) type Label = [u8; 64];

/// Joins.
pub(super) fn join(view: &View, wanted: &Wanted, seats: &mut impl Seats) -> Result<Joined> {
    let mut joined = Joined {
        policy: wanted.policy,
        label: wanted.label,
        slot: None,
        durable: wanted.durable,
        writable: wanted.writable,
        epoch: 1,
        close_seen: 0,
        cursor: 0,
        expected: 0,
        lagged: None,
    };
    if wanted.policy != Policy::Reliable {
        (joined.cursor, joined.expected) = view.begin(wanted.start).map_err(not_joined)?;
        if wanted.policy == Policy::Latest {
            // It begins with the newest message, not after it; the first of all has the number 1.
            joined.expected = joined.expected.max(2) - 1;
        }
        if wanted.writable {
            show(view, wanted, seats, &mut joined)?;
        }
        return Ok(joined);
    }
    if wanted.label.is_some() {
        seats.begin_labelled()?;
    }
    let result = join_gating(view, wanted, seats, &mut joined);
    if wanted.label.is_some() {
        seats.end_labelled();
    }
    if let (Err(_), Some(index)) = (&result, joined.slot) {
        seats.give_back(index);
    }
    result.map(|()| joined)
}

fn not_joined(kind: ErrorKind) -> Error {
    Error::new(
        kind,
        "the topic's positions or a frame's length are not what any correct publisher writes. Recreate the topic, and see \
         SECURITY.md if its users are not trusted",
    )
}

fn join_gating(view: &View, wanted: &Wanted, seats: &mut impl Seats, joined: &mut Joined) -> Result<()> {
    let (index, found) = find_slot(view, wanted, seats)?;
    joined.slot = Some(index);
    let slot = view.words.slot(index);
    let flags = if wanted.membarrier_capable { ROLE_MEMBARRIER_CAPABLE } else { 0 };
    // Relaxed, here and below: the state publishes them.
    slot.flags.store(flags, Ordering::Relaxed);
    if let Some(state) = found {
        if state.has(SLOT_EJECTED) && !view.words.may_eject() {
            return Err(not_joined(ErrorKind::Corrupt));
        }
        joined.close_seen = slot.close_seen.load(Ordering::Relaxed);
        if state.has(SLOT_GATING)
            && let Some((epoch, cursor, expected)) = view.resume(slot, state).map_err(not_joined)?
        {
            (joined.epoch, joined.cursor, joined.expected) = (epoch, cursor, expected);
            if !wanted.durable {
                // It takes the cursor up and lets it go at its end. Again where the publisher ejects it meanwhile.
                let mut state = State::load(slot);
                while let Err(now) = state.swap(slot, State(state.0 & !SLOT_DURABLE)) {
                    state = now;
                }
            }
            return Ok(());
        }
        let first_lost = slot.eject_seq.load(Ordering::Relaxed);
        let (epoch, cursor, found) = view.gate(slot, Start::Again(first_lost), wanted.durable).map_err(not_joined)?;
        (joined.epoch, joined.cursor, joined.expected) = (epoch, cursor, found);
        joined.lagged = Some(if first_lost == 0 { 0 } else { found.saturating_sub(first_lost) });
    } else {
        set_label(slot, wanted.label.as_ref());
        slot.close_seen.store(0, Ordering::Relaxed);
        slot.lost.store(0, Ordering::Relaxed);
        slot.eject_seq.store(0, Ordering::Relaxed);
        let (epoch, cursor, expected) = view.gate(slot, wanted.start, wanted.durable).map_err(not_joined)?;
        (joined.epoch, joined.cursor, joined.expected) = (epoch, cursor, expected);
    }
    Ok(())
}

/// Locks the slot of a label, or a free one. With the state of a durable predecessor whose place it is.
fn find_slot(view: &View, wanted: &Wanted, seats: &mut impl Seats) -> Result<(u32, Option<State>)> {
    if let Some(label) = &wanted.label {
        for (index, slot) in view.words.slots() {
            // Of the others a label does not count: of one that nobody waits for, and of one that has left, whose slot
            // somebody may be taking just now who has not written its own label yet.
            let holds = |state: State| state.has(SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED);
            if label_of(slot) != *label || !holds(State::load(slot)) {
                continue;
            }
            if State::load(slot).has(SLOT_DURABLE) && seats.take(index)? {
                // It was loaded before the lock was taken, and may have been given up meanwhile.
                let state = State::load(slot);
                if state.has(SLOT_DURABLE) && label_of(slot) == *label {
                    return Ok((index, Some(state)));
                }
                seats.give_back(index);
            } else if State::load(slot).has(SLOT_DURABLE) || seats.is_held(index) {
                let text = format!(
                    "a reliable subscriber with the label '{}' is attached already: close it, or take another label",
                    printable(label)
                );
                return Err(Error::new(ErrorKind::Busy, text));
            }
        }
    }
    for (index, slot) in view.words.slots() {
        if take_free(index, slot, seats)? {
            return Ok((index, None));
        }
    }
    Err(Error::new(ErrorKind::Busy, no_slot(view, seats)))
}

/// Labels that an error names at most: there can be 1024 of 64 bytes.
const NAMED_MAX: usize = 8;

/// What to say where every slot is taken: by whom.
fn no_slot(view: &View, seats: &impl Seats) -> String {
    let (mut reliable, mut away, mut others) = (0, 0, 0);
    let mut labels = Vec::new();
    for (index, slot) in view.words.slots() {
        let state = State::load(slot);
        let count = match () {
            () if state.has(SLOT_DURABLE) && !seats.is_held(index) => &mut away,
            () if state.has(SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED) => &mut reliable,
            () => &mut others,
        };
        *count += 1;
        let label = printable(&label_of(slot));
        if !label.is_empty() {
            labels.push(format!("'{label}'"));
        }
    }
    let by = [
        (reliable, "by reliable subscribers"),
        (away, "for durable subscribers that are away"),
        (others, "by lossy or latest subscribers"),
    ];
    let by: Vec<_> = by.iter().filter(|(count, _)| *count > 0).map(|(count, whom)| format!("{count} {whom}")).collect();
    let more = labels.len().saturating_sub(NAMED_MAX);
    labels.truncate(NAMED_MAX);
    if more > 0 {
        labels.push(format!("{more} more"));
    }
    let labels = if labels.is_empty() { String::new() } else { format!(" (labels: {})", labels.join(", ")) };
    format!(
        "all {} slots of the topic are taken: {}{labels}. Close a subscriber, unsubscribe a durable one, or create the topic \
         with more slots; ramway inspect shows the processes",
        view.words.slot_count(),
        by.join(", ")
    )
}

/// Locks a slot if it is free. One with DURABLE is not, whoever has its lock.
fn take_free(index: u32, slot: &Slot, seats: &mut impl Seats) -> Result<bool> {
    if State::load(slot).has(SLOT_DURABLE) || !seats.take(index)? {
        return Ok(false);
    }
    // It may have become durable before the lock was taken.
    let free = !State::load(slot).has(SLOT_DURABLE);
    if !free {
        seats.give_back(index);
    }
    Ok(free)
}

/// Takes a free slot for a subscriber that nobody waits for, so that others see it. Without one it goes on unseen: only
/// the upper half of the slots is for such subscribers, so that the other half is left to reliable ones.
fn show(view: &View, wanted: &Wanted, seats: &mut impl Seats, joined: &mut Joined) -> Result<()> {
    let upper = view.words.slots().skip(view.words.slot_count().div_ceil(2) as usize);
    let mut found = None;
    for (index, slot) in upper {
        if take_free(index, slot, seats)? {
            found = Some((index, slot));
            break;
        }
    }
    let Some((index, slot)) = found else { return Ok(()) };
    joined.slot = Some(index);
    let latest = if wanted.policy == Policy::Latest { SLOT_FLAG_LATEST } else { 0 };
    let capable = if wanted.membarrier_capable { ROLE_MEMBARRIER_CAPABLE } else { 0 };
    // Relaxed: the state publishes them.
    slot.flags.store(latest | capable, Ordering::Relaxed);
    set_label(slot, wanted.label.as_ref());
    slot.close_seen.store(0, Ordering::Relaxed);
    slot.lost.store(0, Ordering::Relaxed);
    slot.cursor.store(joined.cursor, Ordering::Relaxed);
    let state = State(slot.state.load(Ordering::Relaxed)).next(SLOT_ACTIVE);
    state.set(slot);
    joined.epoch = state.epoch();
    view.words.count_change();
    // SeqCst: the publisher's next look at the count comes after, or its publish before this side's first check.
    fence(Ordering::SeqCst);
    Ok(())
}

/// The label of a slot.
pub(super) fn label_of(slot: &Slot) -> Label {
    let mut label = [0; 64];
    for (bytes, word) in label.chunks_exact_mut(8).zip(&slot.label) {
        // Relaxed: a label is written before the state, or under the lock, and only shown and compared.
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    label
}

fn set_label(slot: &Slot, label: Option<&Label>) {
    let label = label.unwrap_or(&[0; 64]);
    for (bytes, word) in label.chunks_exact(8).zip(&slot.label) {
        // Relaxed: as in `label_of`.
        word.store(u64::from_le_bytes(bytes.try_into().expect("8 bytes")), Ordering::Relaxed);
    }
}

/// A label as text.
pub(super) fn shown(label: &Label) -> String {
    let end = label.iter().position(|byte| *byte == 0).unwrap_or(label.len());
    String::from_utf8_lossy(&label[..end]).into_owned()
}

/// A label for an error: whoever may write to the topic can put control characters there.
fn printable(label: &Label) -> String {
    shown(label).escape_debug().to_string()
}
