//! The words of a ring or region as they were at one moment, out of a copy of the header page.

use std::mem::offset_of;

use super::format::HeaderPage;
use crate::layout::{BLOCK_OFFSETS, HeadLine, LastTag, ROLE_CLOSED, RegionBlock, RingBlock, RoleLine, TailLine};

/// A role's words in a [`Ring`](super::survey::Ring), as they were at one moment.
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

impl RingWords {
    pub(crate) fn read(page: &HeaderPage, block: usize) -> Self {
        let base = BLOCK_OFFSETS[block];
        let role = |at: usize| Role {
            wait: page.u32(base + at + offset_of!(RoleLine, wait)),
            flags: page.u32(base + at + offset_of!(RoleLine, flags)),
            epoch: page.u32(base + at + offset_of!(RoleLine, epoch)),
            close_seen: page.u32(base + at + offset_of!(RoleLine, close_seen)),
        };
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
        self.producer.flags & ROLE_CLOSED != 0
            && self.producer.epoch != 0
            && self.consumer.close_seen != self.producer.epoch
    }
}

/// The notification count of a region and whether somebody waits.
pub(crate) fn region_notify_word(page: &HeaderPage) -> u32 {
    page.u32(BLOCK_OFFSETS[0] + offset_of!(RegionBlock, notify))
}
