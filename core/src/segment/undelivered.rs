//! What a ring still holds for its next receiver, and a topic for its durable subscribers.

use std::os::fd::BorrowedFd;

use super::format::{HeaderPage, RingGeometry, TopicGeometry, Valid};
use super::words::{RingWords, SlotWords, SubscribersWords, TopicWords};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{
    FRAME_HEADER, MESSAGE_MAX, SLOT_DURABLE, SLOT_GATING, TOPIC_FRAME_HEADER, TOPIC_MESSAGE_MAX, frame_size,
    positions_agree, topic_frame_size, topic_positions_agree,
};
use crate::sys::{fs, os};

/// How much a ring holds for its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Messages.
    pub messages: u64,
    /// Their payloads in bytes, without headers and padding.
    pub bytes: u64,
}

/// Why a segment that nobody uses is not to be thrown away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    /// This ring holds messages, or its positions contradict each other: what is not understood is not thrown away.
    Messages {
        ring: RingGeometry,
        tail: u64,
        head: u64,
    },
    /// An orderly close that no receiver has seen.
    UnseenClose,
    /// A durable subscriber of this topic has not received everything.
    Behind {
        topic: TopicGeometry,
        words: TopicWords,
        slot: SlotWords,
        /// How many more there are of whom the same is true.
        others: usize,
    },
    /// A durable subscriber of a topic has not seen its publisher's orderly close.
    UnseenEnd(SlotWords),
    /// A topic's positions contradict each other: what is not understood is not thrown away.
    Damaged(TopicWords),
    Persistent,
}

/// `None` if it may be thrown away: nothing is in it for anybody, or another boot has left it. `file` is the segment's, for
/// a topic's slots.
pub(super) fn reason_to_keep(file: BorrowedFd<'_>, page: &HeaderPage, valid: &Valid) -> Result<Option<Reason>> {
    if valid.header.is_of_another_boot() {
        return Ok(None);
    }
    if let Some(reason) = ring_to_keep(page, valid) {
        return Ok(Some(reason));
    }
    if let Some(topic) = &valid.topic
        && let Some(reason) = topic_to_keep(file, page, topic)?
    {
        return Ok(Some(reason));
    }
    Ok(valid.header.is_persistent().then_some(Reason::Persistent))
}

fn ring_to_keep(page: &HeaderPage, valid: &Valid) -> Option<Reason> {
    for (i, ring) in valid.rings.iter().enumerate() {
        let Some(ring) = *ring else { continue };
        let words = RingWords::read(page, i);
        let RingWords { tail, head, .. } = words;
        if tail != head || !positions_agree(tail, head, ring.capacity, ring.align) {
            return Some(Reason::Messages { ring, tail, head });
        }
        if words.has_unseen_close() {
            return Some(Reason::UnseenClose);
        }
    }
    None
}

/// History alone keeps no topic: only what a durable subscriber is still to receive does.
fn topic_to_keep(file: BorrowedFd<'_>, page: &HeaderPage, topic: &TopicGeometry) -> Result<Option<Reason>> {
    let words = TopicWords::read(page);
    if !words.agree(topic) {
        return Ok(Some(Reason::Damaged(words)));
    }
    let subscribers = SubscribersWords::read(file, topic)?;
    let durable = || subscribers.slots.iter().filter(|slot| slot.has(SLOT_DURABLE));
    let mut behind = durable().filter(|slot| slot.cursor != words.tail);
    if let Some(&slot) = behind.next() {
        return Ok(Some(Reason::Behind { topic: *topic, words, slot, others: behind.count() }));
    }
    let unseen = durable().find(|slot| words.publisher.has_unseen_close(slot.close_seen));
    Ok(unseen.map(|&slot| Reason::UnseenEnd(slot)))
}

impl Reason {
    /// In words, and whether somebody can resume the segment.
    pub(super) fn describe(self, file: BorrowedFd<'_>) -> Result<(String, bool)> {
        let text = match self {
            Self::Messages { ring, tail, head } => match count(file, &Frames::from(&ring), tail, head) {
                Ok(found) => format!("it holds {} undelivered messages ({} bytes)", found.messages, found.bytes),
                Err(e) if e.kind() == ErrorKind::Corrupt => return Ok((format!("it is damaged: {e}"), false)),
                Err(e) => return Err(e),
            },
            Self::UnseenClose => "it holds the end of a stream that no receiver has seen".into(),
            Self::Behind { topic, words, slot, others } => {
                let who = format!("the durable subscriber '{}'", slot.label().unwrap_or_default());
                let more = if others > 0 { format!(", and so have {others} others") } else { String::new() };
                // What the publisher has overwritten cannot be counted any more. Of what a slot gates the claim says nothing: it goes
                // farther than the slot lets the publisher write.
                let intact = slot.has(SLOT_GATING) || !words.has_overtaken(slot.cursor, &topic);
                let counted = match count(file, &Frames::from(&topic), words.tail, slot.cursor) {
                    Ok(found) if intact => {
                        format!("{} undelivered messages ({} bytes)", found.messages, found.bytes)
                    }
                    Err(e) if e.kind() != ErrorKind::Corrupt => return Err(e),
                    _ => "undelivered messages, of which some are lost".into(),
                };
                format!("{who} has {counted}{more}")
            }
            Self::UnseenEnd(slot) => {
                let label = slot.label().unwrap_or_default();
                format!("it holds the end of a stream that the durable subscriber '{label}' has not seen")
            }
            Self::Damaged(TopicWords { tail, last, claim, .. }) => {
                let text = format!("it is damaged: the positions {last}, {tail} and {claim} contradict each other");
                return Ok((text, false));
            }
            Self::Persistent => "it is persistent".into(),
        };
        Ok((text, true))
    }
}

/// Where frames lie and of which shape they are: a ring's, or a topic's.
pub(crate) struct Frames {
    data_offset: u64,
    capacity: u64,
    align: u32,
    /// Bytes before each payload; they never straddle the end of the data.
    header: u64,
    longest: u64,
    size: fn(u64, u32) -> u64,
    agree: fn(u64, u64, u64, u32) -> bool,
}

impl From<&RingGeometry> for Frames {
    fn from(&RingGeometry { data_offset, capacity, align }: &RingGeometry) -> Self {
        let (header, longest) = (FRAME_HEADER, MESSAGE_MAX);
        Self { data_offset, capacity, align, header, longest, size: frame_size, agree: positions_agree }
    }
}

impl From<&TopicGeometry> for Frames {
    fn from(&TopicGeometry { data_offset, capacity, align, .. }: &TopicGeometry) -> Self {
        let (header, longest) = (TOPIC_FRAME_HEADER, TOPIC_MESSAGE_MAX);
        Self { data_offset, capacity, align, header, longest, size: topic_frame_size, agree: topic_positions_agree }
    }
}

/// Walks the frames from `head` to `tail`, believing no length. Reads the file in pieces of at most a MiB: no mapping,
/// so a truncated file is an error and not a signal.
pub(crate) fn count(file: BorrowedFd<'_>, ring: &Frames, tail: u64, head: u64) -> Result<Undelivered> {
    const WINDOW: u64 = 1 << 20;
    let corrupt = |text: String| Err(Error::new(ErrorKind::Corrupt, text));
    let pending = tail.wrapping_sub(head);
    if !(ring.agree)(tail, head, ring.capacity, ring.align) {
        return corrupt(format!("the positions {head} and {tail} contradict each other"));
    }
    let mut found = Undelivered::default();
    let mut window = vec![0; WINDOW.min(ring.capacity) as usize];
    // Where the window lies in the ring's data, and how much of it was read.
    let (mut base, mut filled) = (0, 0);
    let mut done = 0;
    while done < pending {
        // A frame's header never straddles the end of the data: it takes 16 (32) bytes at a multiple of as many.
        let at = head.wrapping_add(done) & (ring.capacity - 1);
        if at < base || at + ring.header > base + filled {
            let want = WINDOW.min(ring.capacity - at) as usize;
            filled =
                fs::read_at(file, ring.data_offset + at, &mut window[..want]).map_err(os("reading the data"))? as u64;
            base = at;
            if filled < ring.header {
                return corrupt(format!("the file ends before the frame at {at}"));
            }
        }
        let start = (at - base) as usize;
        let len = u64::from(u32::from_ne_bytes(window[start..start + 4].try_into().expect("4 bytes")));
        let size = (ring.size)(len, ring.align);
        if len > ring.longest || size > pending - done {
            return corrupt(format!("the frame at {at} claims {len} bytes, {} are published", pending - done));
        }
        found.messages += 1;
        found.bytes += len;
        done += size;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, OwnedFd};

    const RING: RingGeometry = RingGeometry { data_offset: 4096, capacity: 1 << 16, align: 64 };

    fn file(data: &[u8]) -> OwnedFd {
        let file = fs::scratch();
        rustix::fs::ftruncate(&file, RING.data_offset + RING.capacity).unwrap();
        fs::write_at(file.as_fd(), RING.data_offset, data).unwrap();
        file
    }

    /// Puts frames of these lengths at a position, wrapping; gives the tail.
    fn frames(data: &mut [u8], mut at: u64, lengths: &[u32]) -> u64 {
        for len in lengths {
            let index = (at & (RING.capacity - 1)) as usize;
            data[index..index + 4].copy_from_slice(&len.to_ne_bytes());
            at = at.wrapping_add(frame_size(u64::from(*len), RING.align));
        }
        at
    }

    #[test]
    fn counts_across_the_wrap_and_past_two_to_the_64() {
        let lengths = [0, 1, 100, 40_000, 5_000, 0, 3, 64, 10_000];
        for head in [48, 48 + 64 * 1000, 48 + 64 * 1023, u64::MAX - 15, u64::MAX - 15 - 64 * 500] {
            let mut data = vec![0xEE; RING.capacity as usize];
            let tail = frames(&mut data, head, &lengths);
            let counted = count(file(&data).as_fd(), &Frames::from(&RING), tail, head).unwrap();
            assert_eq!(counted, Undelivered { messages: 9, bytes: lengths.iter().map(|&l| u64::from(l)).sum() });
        }
        assert_eq!(count(file(&[]).as_fd(), &Frames::from(&RING), 48, 48).unwrap(), Undelivered::default());
    }

    #[test]
    fn believes_no_length_and_no_position() {
        let corrupt = |data: &[u8], tail, head| {
            assert_eq!(
                count(file(data).as_fd(), &Frames::from(&RING), tail, head).unwrap_err().kind(),
                ErrorKind::Corrupt
            );
        };
        for len in [49, 1 << 16, i32::MAX as u32, u32::MAX] {
            let mut data = vec![0; RING.capacity as usize];
            frames(&mut data, 48, &[len]);
            corrupt(&data, 48 + 64, 48);
        }
        for (tail, head) in [(0, 0), (49, 49), (48, 112), (48 + (1 << 16) + 64, 48), (1 << 63, 48), (56, 48)] {
            corrupt(&[], tail, head);
        }
        // Noise all over: an end, whichever it is.
        let noise: Vec<u8> = (0..RING.capacity as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for head in (48..RING.capacity).step_by(64) {
            let _ = count(file(&noise).as_fd(), &Frames::from(&RING), head + RING.capacity, head);
        }
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        let short = file(&[0; 4096]);
        rustix::fs::ftruncate(&short, RING.data_offset + 100).unwrap();
        assert_eq!(
            count(short.as_fd(), &Frames::from(&RING), 48 + 64 * 20, 48).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }
}
