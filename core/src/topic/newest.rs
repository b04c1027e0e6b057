//! The newest message, whatever was received before: copied, and checked after that as a lossy read is.

use super::Topic;
use super::frame::Header;
use super::place::Policy;
use super::subscriber::{Copied, Stamp};
use crate::facts::OVERTAKEN_MAX;
use crate::layout::TOPIC_FRAME_HEADER;
use crate::ring::consumer::{Consumer, Frame};
use crate::ring::half::Half;
use crate::sync::{Ordering, Step, keep, spin_hint, touch_data};
use crate::{ErrorKind, Result};

/// The message that `newest` holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Where its frame begins. No other frame ever begins there: positions only grow.
    position: u64,
    /// Its payload is the copy.
    frame: Frame<Topic>,
}

impl Half<Consumer<Topic>> {
    /// A copy of the newest message, whatever was received before, valid until the next call. `Empty` before the first. One
    /// that was copied by the last call is not copied again: to find that it is still the newest takes one load.
    #[inline]
    pub(super) fn kept_newest(&mut self) -> Result<Frame<Topic>> {
        self.check()?;
        // Relaxed: nothing is read because of it. The copy was checked when it was made.
        let last = self.hot.shared().positions.last.load(Ordering::Relaxed);
        match self.hot.more.kept {
            Some(kept) if kept.position == last => Ok(kept.frame),
            _ => self.keep_newest(),
        }
    }

    #[inline(never)]
    fn keep_newest(&mut self) -> Result<Frame<Topic>> {
        // The room is written over, and may move.
        self.hot.more.kept = None;
        let (position, frame) = self.copy_newest(|reader, from, len| {
            let align = reader.align as usize;
            Ok(reader.more.newest.room(len, from, align))
        })?;
        self.hot.more.kept = Some(Kept { position, frame });
        Ok(frame)
    }

    /// Copies the newest message to where `room` says that there is room, of which it is told where the payload lies and its
    /// length. `Empty` before the first.
    #[inline(always)]
    pub(super) fn newest(
        &mut self,
        mut room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<Topic>> {
        self.check()?;
        self.copy_newest(|_, from, len| room(from, len)).map(|(_, frame)| frame)
    }

    /// Gives where its frame begins, too.
    #[inline(always)]
    fn copy_newest(
        &mut self,
        mut room: impl FnMut(&mut Consumer<Topic>, *const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<(u64, Frame<Topic>)> {
        let reader = &mut self.hot;
        for _ in 0..OVERTAKEN_MAX {
            // Acquire, in this order: `tail` is not older than `last`.
            let last = reader.shared().positions.last.load(Ordering::Acquire);
            let tail = reader.shared().positions.tail.load(Ordering::Acquire);
            if last == tail {
                return Err(ErrorKind::Empty.into());
            }
            let copied = newest_at(reader, last, tail, &mut room);
            match copied {
                Err(kind) => return Err(self.error(kind)),
                Ok(Copied::TooLong(len, room)) => return Err(self.too_long_for(len, room)),
                Ok(Copied::Frame(header, frame, _)) => {
                    if reader.more.policy == Policy::Latest {
                        // It was seen: a wait is for a newer one.
                        (reader.head, reader.tail, reader.released) = (last, last, last);
                        reader.more.expected = reader.more.expected.max(header.seq.wrapping_add(1));
                    }
                    return Ok((last, frame));
                }
                Ok(Copied::Overtaken | Copied::Ejected) => spin_hint(),
            }
        }
        Err(ErrorKind::Empty.into())
    }
}

/// Copies the frame at `last`, of which nothing is known.
// Always inline: what it gives would otherwise go through memory, by loads that are wider than the stores before them (12
// instead of 5 ns, docs/adr/0018).
#[inline(always)]
fn newest_at(
    reader: &mut Consumer<Topic>,
    last: u64,
    tail: u64,
    room: &mut impl FnMut(&mut Consumer<Topic>, *const u8, usize) -> std::result::Result<*mut u8, usize>,
) -> Result<Copied, ErrorKind> {
    let view = reader.view();
    let Some(found) = view.frame(last, tail) else {
        return if view.is_overtaken(last) { Ok(Copied::Overtaken) } else { Err(reader.state.die(ErrorKind::Corrupt)) };
    };
    let len = found.header.len() as usize;
    // SAFETY: as in `copy_frame`.
    let from = unsafe { view.data.add((last & (view.capacity - 1)) as usize + TOPIC_FRAME_HEADER as usize) };
    let to = match room(reader, from, len) {
        Ok(to) => to,
        Err(room) => return Ok(Copied::TooLong(len, room)),
    };
    touch_data(from);
    // SAFETY: as in `copy_frame`.
    unsafe { to.copy_from_nonoverlapping(from, len) };
    if keep(Step::OvertakenAgain) && view.is_overtaken(last) {
        return Ok(Copied::Overtaken);
    }
    let Header { seq, time, tag, .. } = found.header;
    let lost = 0;
    let (data, type_id) = (to.cast_const(), found.header.type_id());
    let frame = Frame { data, len, type_id, tag, stamp: Stamp { seq, time, lost } };
    Ok(Copied::Frame(found.header, frame, tail.wrapping_sub(last)))
}
