//! The words of a ring or region as they were at one moment, out of a copy of the header page.

use std::mem::offset_of;
use std::os::fd::BorrowedFd;

use super::format::{HeaderPage, TopicGeometry};
use crate::error::Result;
use crate::facts::LABEL_MAX;
use crate::layout::{
    BLOCK_OFFSETS, HeadLine, LastTag, PublisherLine, ROLE_CLOSED, RegionBlock, RingBlock, RoleLine, SLOTS_OFFSET, Slot,
    SubscribersHead, TailLine, TopicBlock, TopicPositions, first_topic_position, topic_positions_agree,
};
use crate::sys::{fs, os};

/// A role's words in a [`Ring`](super::survey::Ring) or [`Topic`](super::survey::Topic), as they were at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Role {
    /// 1 while the holder sleeps.
    pub wait: u32,
    /// [`ROLE_MEMBARRIER_CAPABLE`](crate::layout::ROLE_MEMBARRIER_CAPABLE), [`ROLE_FENCE_FREE`](crate::layout::ROLE_FENCE_FREE),
    /// [`ROLE_CLOSED`].
    pub flags: u32,
    /// How often the role was taken; 0 is never.
    pub epoch: u32,
    /// Consumer only: the producer's epoch whose close it has delivered.
    pub close_seen: u32,
}

/// A ring's words, as they were at one moment (each whole, together not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingWords {
    pub(crate) tail: u64,
    pub(crate) head: u64,
    /// `(end, tag)`, see [`LastTag`].
    pub(crate) last_tags: [(u64, u64); 2],
    pub(crate) producer: Role,
    pub(crate) consumer: Role,
}

impl Role {
    /// The line that begins there in the header page.
    pub(super) fn read(page: &HeaderPage, at: usize) -> Self {
        Self {
            wait: page.u32(at + offset_of!(RoleLine, wait)),
            flags: page.u32(at + offset_of!(RoleLine, flags)),
            epoch: page.u32(at + offset_of!(RoleLine, epoch)),
            close_seen: page.u32(at + offset_of!(RoleLine, close_seen)),
        }
    }

    /// Whether its holder closed in an orderly way, and a peer with this `close_seen` still has to be told.
    pub(super) fn has_unseen_close(&self, close_seen: u32) -> bool {
        self.flags & ROLE_CLOSED != 0 && self.epoch != 0 && close_seen != self.epoch
    }
}

impl RingWords {
    pub(crate) fn read(page: &HeaderPage, block: usize) -> Self {
        let base = BLOCK_OFFSETS[block];
        let role = |at: usize| Role::read(page, base + at);
        let record = |i: usize| {
            let at = base
                + offset_of!(RingBlock, tail)
                + offset_of!(TailLine, last_tags)
                + i * std::mem::size_of::<LastTag>();
            (page.u64(at + offset_of!(LastTag, end)), page.u64(at + offset_of!(LastTag, tag)))
        };
        Self {
            tail: page.u64(base + offset_of!(RingBlock, tail) + offset_of!(TailLine, tail)),
            head: page.u64(base + offset_of!(RingBlock, head) + offset_of!(HeadLine, head)),
            last_tags: [record(0), record(1)],
            producer: role(offset_of!(RingBlock, producer)),
            consumer: role(offset_of!(RingBlock, consumer)),
        }
    }

    /// An orderly close that no receiver has seen: it is delivered like a message.
    pub(crate) fn has_unseen_close(&self) -> bool {
        self.producer.has_unseen_close(self.consumer.close_seen)
    }
}

/// A topic's words in the header page, as they were at one moment (each whole, together not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicWords {
    pub(crate) tail: u64,
    pub(crate) last: u64,
    pub(crate) claim: u64,
    /// Its `wait` is 0 here: that word is in the subscribers' area.
    pub(crate) publisher: Role,
    /// Nanoseconds; 0 is never.
    pub(crate) eject_after: u64,
}

impl TopicWords {
    pub(crate) fn read(page: &HeaderPage) -> Self {
        const BASE: usize = BLOCK_OFFSETS[0];
        let positions = BASE + offset_of!(TopicBlock, positions);
        let publisher = BASE + offset_of!(TopicBlock, publisher);
        Self {
            tail: page.u64(positions + offset_of!(TopicPositions, tail)),
            last: page.u64(positions + offset_of!(TopicPositions, last)),
            claim: page.u64(BASE + offset_of!(TopicBlock, claim)),
            publisher: Role::read(page, publisher + offset_of!(PublisherLine, role)),
            eject_after: page.u64(publisher + offset_of!(PublisherLine, eject_after)),
        }
    }

    /// Whether the positions could be those of a topic at rest.
    pub(crate) fn agree(&self, topic: &TopicGeometry) -> bool {
        // `claim` may lie between frames.
        topic_positions_agree(self.tail, self.last, topic.capacity, topic.align)
            && self.claim.wrapping_sub(self.tail) <= topic.capacity
            && !self.has_overtaken(self.last, topic)
            && (self.last != self.tail || self.tail == first_topic_position(topic.align))
    }

    /// Whether what lies at a position is overwritten, or may be at any moment.
    pub(crate) fn has_overtaken(&self, position: u64, topic: &TopicGeometry) -> bool {
        self.claim.wrapping_sub(position) > topic.capacity
    }
}

/// A slot's words, as they were at one moment (each whole, together not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotWords {
    pub(crate) cursor: u64,
    pub(crate) state: u64,
    pub(crate) flags: u32,
    pub(crate) close_seen: u32,
    pub(crate) lost: u64,
    pub(crate) eject_seq: u64,
    pub(crate) label: [u8; LABEL_MAX],
}

impl SlotWords {
    fn read(bytes: &[u8]) -> Self {
        Self {
            cursor: number(bytes, offset_of!(Slot, cursor)),
            state: number(bytes, offset_of!(Slot, state)),
            flags: number32(bytes, offset_of!(Slot, flags)),
            close_seen: number32(bytes, offset_of!(Slot, close_seen)),
            lost: number(bytes, offset_of!(Slot, lost)),
            eject_seq: number(bytes, offset_of!(Slot, eject_seq)),
            label: bytes[offset_of!(Slot, label)..][..LABEL_MAX].try_into().expect("a slot ends with its label"),
        }
    }

    pub(crate) fn has(&self, flag: u64) -> bool {
        self.state & flag != 0
    }

    /// The label as people read it; `None` without one.
    pub(crate) fn label(&self) -> Option<String> {
        label_text(&self.label)
    }
}

/// A slot's label as people read it, whatever its bytes are; `None` if they are all zero.
pub(crate) fn label_text(label: &[u8; LABEL_MAX]) -> Option<String> {
    let end = label.iter().rposition(|&byte| byte != 0)? + 1;
    Some(String::from_utf8_lossy(&label[..end]).into_owned())
}

/// Eight bytes of a copy of the subscribers' area, as this machine orders them.
fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Four of them.
fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// The words of a topic's subscribers' area, as they were at one moment (each whole, together not).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscribersWords {
    pub(crate) publisher_wait: u32,
    pub(crate) word: u64,
    pub(crate) slots: Vec<SlotWords>,
}

impl SubscribersWords {
    /// Out of the file, without a mapping: a truncated file is zeros there, and not a signal. The geometry's check bounds
    /// what is read to 132 KiB.
    pub(crate) fn read(file: BorrowedFd<'_>, topic: &TopicGeometry) -> Result<Self> {
        let mut bytes = vec![0; topic.subs_len() as usize];
        fs::read_at(file, topic.subs_offset, &mut bytes).map_err(os("reading the subscribers' area"))?;
        Ok(Self {
            publisher_wait: number32(&bytes, offset_of!(SubscribersHead, publisher_wait)),
            word: number(&bytes, offset_of!(SubscribersHead, word)),
            slots: bytes[SLOTS_OFFSET..].chunks_exact(size_of::<Slot>()).map(SlotWords::read).collect(),
        })
    }
}

/// The notification count of a region and whether somebody waits.
pub(crate) fn region_notify_word(page: &HeaderPage) -> u32 {
    page.u32(BLOCK_OFFSETS[0] + offset_of!(RegionBlock, notify))
}
