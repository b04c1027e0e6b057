//! One reliable stream: credit, sequence and resume. No input, output or clock: time is passed in.
//!
//! A frame's number is its position in the near segment's own memory (bytes of a ring, the message's number of a topic). So it
//! outlives the bridges: a near one that was killed goes on with the same numbers, and a far one drops what it has. The near
//! end sends ahead and releases a frame only when the far end has committed it; what is under way is at most a window.
//!
//! Everything that either end says is where it is now, so each message can be lost, doubled or late without harm; the near
//! end says it again while there is anything that it waits for.

mod far;
mod near;
#[cfg(test)]
mod tests;

pub use far::{Far, Judgement};
pub use near::{Near, Step};

use std::time::Duration;

/// A link is not broken that was silent for less: an idle near end says hello every second, and is answered. No rule's `eject_after`
/// is shorter.
pub const SILENCE: Duration = Duration::from_secs(3);
/// After how long a silent end loses the stream to another machine's.
pub const FORGET_AFTER: Duration = Duration::from_secs(30);

/// A place in a stream: the number of a frame, and how much of its payload came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// The frame's number.
    pub frame: u64,
    /// Bytes of its payload.
    pub offset: u32,
}

impl Pos {
    /// Where a frame begins.
    #[must_use]
    pub fn at(frame: u64) -> Self {
        Self { frame, offset: 0 }
    }
}

/// How one side of a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It closed.
    Closed,
    /// It died.
    Dead,
}

/// An end, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// How.
    pub how: Ending,
    /// The epoch of who ended: another one can come and end too.
    pub epoch: u32,
}

/// Where a near end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The near machine.
    pub near: u64,
    /// The segment there. Another one of the same name is another stream.
    pub stream: u64,
    /// Grows with each time that the near end goes back.
    pub attempt: u64,
    /// Frames before this one are released: they cannot be sent again.
    pub released: u64,
    /// What is sent next. Everything before it has been sent.
    pub cursor: Pos,
    /// Alignment of the segment's payloads.
    pub align: u32,
    /// Capacity of the segment.
    pub capacity: u64,
    /// The far end that the stream belongs to; 0 while there is none.
    pub far: u64,
    /// The sender's end, right before the cursor.
    pub end: Option<End>,
    /// Of a connection: nanoseconds of the near bridge's own clock; else 0.
    pub time: u64,
}

/// Where a far end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The far machine.
    pub far: u64,
    /// The stream that is spoken of.
    pub stream: u64,
    /// The newest attempt that was seen.
    pub attempt: u64,
    /// Another one after each start of the far bridge.
    pub run: u64,
    /// Frames before this one are committed.
    pub committed: u64,
    /// What is expected next. Everything before it has arrived.
    pub expected: Pos,
    /// Something of this attempt is missing: go back to `expected`.
    pub again: bool,
    /// The far end knows nothing of this stream: say hello.
    pub unknown: bool,
    /// How the far receiver ended, while nobody has taken its place.
    pub far_end: Option<End>,
    /// The epoch of the near sender whose end was acted upon last; 0: none.
    pub end_seen: u32,
    /// Bytes that may be under way.
    pub window: u32,
}

/// A message, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it begins.
    pub start: Pos,
    /// The number of the next frame.
    pub next: u64,
    /// The message's tag.
    pub tag: u64,
    /// The message's number, if it is a topic's.
    pub seq: u64,
    /// When it was published, if it is a topic's; of a call, when it was sent, as in [`Hello::time`].
    pub time: u64,
    /// Bytes of the whole message.
    pub total: u32,
    /// The message's type id.
    pub type_id: u32,
}

impl Record {
    /// What follows `len` bytes of this.
    #[must_use]
    pub fn after(&self, len: u32) -> Pos {
        let offset = self.start.offset + len;
        if offset == self.total { Pos::at(self.next) } else { Pos { frame: self.start.frame, offset } }
    }
}
