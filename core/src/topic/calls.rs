//! What only a publisher or a subscriber can be asked.

use super::frame::read_header;
use super::join::{label_of, shown};
use super::place::{Policy, SideOptions, State};
use super::publisher::{self};
use super::{Publisher, Subscriber, Topic, TopicMeta};
use crate::facts::{SLOT_ACTIVE, SLOT_DURABLE, SLOT_EJECTED, SLOT_FLAG_LATEST, SLOT_GATING};
use crate::layout::is_topic_position;
use crate::ring::Message;
use crate::ring::consumer::Frame;
use crate::ring::log::Shape;
use crate::segment::Attachment;
use crate::sync::Ordering;
use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result};
use std::time::Duration;

/// How far a subscriber is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Bytes that are published and not released, frame headers and padding included.
    pub bytes: u64,
    /// Messages that are published and not received.
    pub messages: u64,
}

/// A subscriber, as a publisher sees it at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberInfo {
    /// Its slot.
    pub slot: u32,
    /// How it reads.
    pub policy: Policy,
    /// Its label; empty if it has none.
    pub label: String,
    /// Its cursor stays when it goes.
    pub durable: bool,
    /// Its process lives and has it open.
    pub alive: bool,
    /// The publisher has ejected it, and it has not begun anew.
    pub ejected: bool,
    /// How often the slot was taken.
    pub epoch: u32,
    /// How far a reliable one is behind; `None` under another policy, which does not say.
    pub lag: Option<Lag>,
    /// Messages that it has lost.
    pub lost: u64,
    /// For how long it has kept the publisher from going on without reading anything, as far as calls of the publisher have
    /// found it; `None` if it does not.
    pub blocks_for: Option<Duration>,
}

/// An error of a call that this topic, or this handle of it, does not have.
#[cold]
fn misuse(attachment: &Attachment<Topic>, kind: ErrorKind, text: impl Into<String>) -> Error {
    Error::new(kind, text).context(&attachment.origin)
}

/// Of a topic.
impl Publisher {
    /// Waits until `count` reliable subscribers are attached and their processes live, as long as it takes. At once if they
    /// are there already. (Others do not count: the publisher does not wait for them.)
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-wait-for-subscribers-{}", std::process::id());
    /// let mut publisher = ramway::Topic::create(&name).publisher()?;
    /// let subscriber = ramway::Topic::open(&name).subscriber()?;
    /// publisher.wait_for_subscribers(1)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the topic has fewer slots than that, `Unsupported` if it takes no reliable subscribers, `Closed` if
    /// the topic's name was removed, so that nobody can come. `Interrupted` by a [`Waker`](crate::Waker), or by a signal if
    /// [so asked](Self::set_interruptible). `Corrupt`, `Detached`.
    pub fn wait_for_subscribers(&mut self, count: usize) -> Result<()> {
        self.wait_for_count(count, WaitLimit::Forever)
    }

    /// [`wait_for_subscribers`](Self::wait_for_subscribers) for at most `timeout`, then `TimedOut`.
    pub fn wait_for_subscribers_timeout(&mut self, count: usize, timeout: Duration) -> Result<()> {
        self.wait_for_count(count, WaitLimit::For(timeout))
    }

    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn wait_for_count(&mut self, count: usize, wait_limit: WaitLimit) -> Result<()> {
        self.half.check()?;
        let slots = self.half.hot.topic_words().slot_count();
        if count > slots as usize {
            let text = format!("waiting for {count} subscribers: the topic has {slots} slots; create it with more");
            return Err(misuse(&self.half.endpoint.attachment, ErrorKind::InvalidArgument, text));
        }
        publisher::wait_for_subscribers(&mut self.half, count, wait_limit).map_err(|e| self.half.endpoint.with_name(e))
    }

    /// Those who have a slot: every reliable subscriber, and of the others those that could take one. A system call for
    /// each.
    pub fn subscribers(&self) -> Vec<SubscriberInfo> {
        let hot = &self.half.hot;
        let (tail, newest) = (hot.published(), hot.published_seq());
        let place = &self.half.endpoint.attachment.place;
        let mut all = Vec::new();
        for (index, slot) in hot.topic_words().slots() {
            let state = State::load(slot);
            if !state.has(SLOT_ACTIVE | SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED) {
                continue;
            }
            // Relaxed, here and below: for show.
            let flags = slot.flags.load(Ordering::Relaxed);
            let reliable = state.has(SLOT_GATING | SLOT_DURABLE | SLOT_EJECTED);
            let policy = Policy::of_slot(reliable, flags & SLOT_FLAG_LATEST != 0);
            let cursor = slot.cursor.load(Ordering::Relaxed);
            let bytes = tail.wrapping_sub(cursor);
            let lag =
                (state.has(SLOT_GATING) && bytes <= hot.capacity && is_topic_position(cursor, hot.align)).then(|| {
                    let messages = if bytes == 0 {
                        0
                    } else {
                        // SAFETY: a position within the published bytes, which the slot keeps from being overwritten.
                        let seq = unsafe { read_header(hot.data, cursor, hot.capacity) }.seq;
                        newest.saturating_sub(seq).saturating_add(1)
                    };
                    Lag { bytes, messages }
                });
            all.push(SubscriberInfo {
                slot: index,
                policy,
                label: shown(&label_of(slot)),
                durable: state.has(SLOT_DURABLE),
                alive: place.locks.is_held(index),
                ejected: state.has(SLOT_EJECTED),
                epoch: state.epoch(),
                lag,
                lost: slot.lost.load(Ordering::Relaxed),
                blocks_for: hot.blocks_for(index),
            });
        }
        all
    }

    /// The number of the last published message; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.half.hot.published_seq()
    }

    /// Lets the next message's number be `lost` higher than it would be: every subscriber then counts that many messages as
    /// lost before it. For bridges and replays, whose own source has a gap.
    ///
    /// # Errors
    /// `InvalidArgument` if no number would be left; `Corrupt`, `Detached`.
    pub fn skip_seq(&mut self, lost: u64) -> Result<()> {
        self.half.check()?;
        match self.half.hot.commit.seq.checked_add(lost).filter(|seq| *seq < u64::MAX >> 1) {
            Some(seq) => {
                self.half.hot.commit.seq = seq;
                Ok(())
            }
            None => {
                let text =
                    format!("{lost} messages lost after number {}: no such numbers", self.half.hot.commit.seq - 1);
                Err(misuse(&self.half.endpoint.attachment, ErrorKind::InvalidArgument, text))
            }
        }
    }
}

/// Of a topic.
impl Subscriber {
    /// How this subscriber reads.
    pub fn policy(&self) -> Policy {
        self.half.hot.more.policy
    }

    /// The label that it was opened with; `None` without one.
    pub fn label(&self) -> Option<String> {
        match &self.half.endpoint.attachment.place.side {
            SideOptions::Subscriber(joined) => joined.label.as_ref().map(shown),
            SideOptions::Publisher { .. } => None,
        }
    }

    /// Messages that this handle has lost so far: the sum of what its messages say.
    pub fn lost(&self) -> u64 {
        self.half.hot.more.lost
    }

    /// How far it is behind, by a load of the shared positions: can be stale when it returns.
    pub fn lag(&self) -> Lag {
        let hot = &self.half.hot;
        let newest = hot.view().newest().ok().flatten().map_or(0, |found| found.header.seq);
        Lag { bytes: hot.len(), messages: (newest + 1).saturating_sub(hot.more.expected) }
    }

    /// Moves on so that the next message is the newest one, and gives how many it leaves out. They do not count as lost.
    ///
    /// # Errors
    /// `Unsupported` for a subscriber that reads the newest one anyway; `Corrupt`, `Detached`.
    pub fn skip_to_newest(&mut self) -> Result<u64> {
        self.half.hot.release();
        self.skip_to_newest_after_held()
    }

    /// [`skip_to_newest`](Self::skip_to_newest) while messages are held, which keep their places in the log.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn skip_to_newest_after_held(&mut self) -> Result<u64> {
        self.half.check()?;
        if self.policy() == Policy::Latest {
            let text = "skip_to_newest on a subscriber with the policy latest, which reads the newest message anyway";
            return Err(misuse(&self.half.endpoint.attachment, ErrorKind::Unsupported, text));
        }
        self.half.hot.skip_to_newest().map_err(|kind| self.half.error(kind))
    }

    /// The newest message, whatever was received before: the same one again if there is no newer one. Never waits. Under
    /// every policy it is a copy, which is made once: the same message again takes a load. What [`recv`](Self::recv) gives next
    /// stays as it was, but under [`Policy::Latest`] that waits for a message that is newer than this one.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-latest-{}", std::process::id());
    /// let mut publisher = ramway::Topic::create(&name).publisher()?;
    /// let mut settings = ramway::Topic::open(&name).latest().subscriber()?;
    /// assert_eq!(settings.latest().unwrap_err().kind(), ramway::ErrorKind::Empty);
    /// publisher.send(0, b"volume 7")?;
    /// assert_eq!(&*settings.latest()?, b"volume 7");
    /// assert_eq!(&*settings.latest()?, b"volume 7");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Empty` before the first message, and where the publisher overwrites the newest one each of 16 times that this copies
    /// it (what no publisher does that sends less often than a message is copied); `Corrupt`, `Detached`.
    #[inline]
    pub fn latest(&mut self) -> Result<Message<'_, Topic>> {
        let frame = self.half.kept_newest()?;
        Ok(Message { frame, hot: &mut self.half.hot })
    }

    /// [`latest`](Self::latest) into `buffer`, replacing what was there.
    ///
    /// # Errors
    /// As for [`latest`](Self::latest).
    pub fn latest_into(&mut self, buffer: &mut Vec<u8>) -> Result<TopicMeta> {
        let frame = self.half.newest(|_, len| {
            buffer.clear();
            // At most what is published, so at most the capacity, whatever the publisher wrote.
            buffer.reserve(len);
            Ok(buffer.as_mut_ptr())
        })?;
        // SAFETY: this many bytes were written, and there was room for them.
        unsafe { buffer.set_len(frame.len) };
        Ok(Topic::meta(&frame))
    }

    /// [`latest`](Self::latest) into a buffer of a fixed size: the message is its first [`len`](TopicMeta::len) bytes.
    ///
    /// # Errors
    /// `TooLarge` if it is longer than the buffer, with both lengths. As for [`latest`](Self::latest).
    #[inline]
    pub fn latest_into_slice(&mut self, buffer: &mut [u8]) -> Result<TopicMeta> {
        let frame =
            self.half.newest(|_, len| if len <= buffer.len() { Ok(buffer.as_mut_ptr()) } else { Err(buffer.len()) })?;
        Ok(Topic::meta(&frame))
    }

    /// Waits for a message that is newer than the one that [`latest`](Self::latest) or this gave last: the newest one then.
    /// For a subscriber with the policy latest it is the same as [`recv`](Self::recv), in the words of a value that changes.
    ///
    /// # Errors
    /// `Unsupported` under another policy, which receives in order; else as for [`recv`](Self::recv).
    pub fn wait_newer(&mut self) -> Result<Message<'_, Topic>> {
        self.reads_latest()?;
        self.recv()
    }

    /// [`wait_newer`](Self::wait_newer) for at most `timeout`, then `TimedOut`.
    ///
    /// # Errors
    /// As for [`wait_newer`](Self::wait_newer).
    pub fn wait_newer_timeout(&mut self, timeout: Duration) -> Result<Message<'_, Topic>> {
        self.reads_latest()?;
        self.recv_timeout(timeout)
    }

    fn reads_latest(&self) -> Result<()> {
        if self.policy() == Policy::Latest {
            return Ok(());
        }
        let text = "wait_newer on a subscriber that receives in order: use recv, or open it with the policy latest";
        Err(misuse(&self.half.endpoint.attachment, ErrorKind::Unsupported, text))
    }

    /// Closes a durable subscriber for good: its label and cursor are forgotten, and the publisher no longer waits for it.
    /// For any other it is [`close`](Self::close).
    ///
    /// # Errors
    /// As for [`close`](Self::close).
    pub fn unsubscribe(mut self) -> Result<()> {
        self.forget_durable();
        self.close()
    }

    /// What [`unsubscribe`](Self::unsubscribe) does before it closes.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn forget_durable(&mut self) {
        self.half.endpoint.word.forget_durable();
    }

    /// Whether its messages are copies, because they can be overwritten while they are read.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn copies_out(&self) -> bool {
        self.half.hot.more.copies_out
    }

    /// Bytes of the newest message, its header and padding included: as many as [`latest`](Self::latest) copies, and some.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn newest_size(&self) -> u64 {
        let positions = &self.half.hot.shared().positions;
        // Relaxed: a snapshot; clamped because the publisher could write anything.
        let (last, tail) = (positions.last.load(Ordering::Relaxed), positions.tail.load(Ordering::Relaxed));
        tail.wrapping_sub(last).min(self.half.hot.capacity)
    }

    /// [`latest`](Self::latest) to where `room` says that there is room, of which it is told where the payload lies and its
    /// length. `Err` of `room`: there is room for this many bytes only, which is `TooLarge`.
    #[doc(hidden)] // for the bindings; not part of the stable API
    pub fn latest_with(
        &mut self,
        room: impl FnMut(*const u8, usize) -> std::result::Result<*mut u8, usize>,
    ) -> Result<Frame<Topic>> {
        self.half.newest(room)
    }
}
