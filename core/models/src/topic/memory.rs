//! A topic on the heap: its block, its subscribers' area, its data, and the locks of its sides.

use super::join::{Label, Seats, Start, View, Wanted, join};
use super::place::{SideOptions, Words};
use super::{Place, Policy, Publisher, Subscriber, Topic, TopicMeta};
use crate::facts::LABEL_MAX;
use crate::layout::{
    Line, PublisherLine, SLOT_GATING, SLOTS_OFFSET, Slot, SubscribersHead, TOPIC_ALIGN_MIN, TOPIC_CHUNKS, TopicBlock,
    TopicGeometry, TopicPositions, first_topic_position,
};
use crate::origin::Origin;
use crate::ring::consumer::Reading;
use crate::ring::half::{Half, Positions};
use crate::ring::log::Shape;
use crate::segment::{Attachment, Data, Header, JOIN, Link, Lock, Locks, PRODUCER, SLOT, SLOTS, SlotLocks, new_role};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::kernel::KERNEL;
use crate::sys::{clock_runs, fork, time_passes};
use crate::wait::{WaitLimit, WaitPolicy};
use crate::{Error, ErrorKind, Result};
use std::fmt::{self, Debug};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

const PADDING: usize = SLOTS_OFFSET - size_of::<SubscribersHead>();

/// The subscribers' area, with the slots where the shipped code looks for them.
#[repr(C)]
struct Area {
    head: SubscribersHead,
    padding: [u8; PADDING],
    slots: [Slot; SLOTS],
}

struct TopicMemory {
    block: TopicBlock,
    area: Box<Area>,
    data: Data,
    capacity: u64,
    slots: u32,
    flags: u32,
    locks: Locks,
}

impl crate::segment::Memory for TopicMemory {}

impl Debug for TopicMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TopicMemory")
    }
}

/// A topic for models. Its data is not mirrored: a model's frames do not go across its end.
#[derive(Clone)]
pub struct Memory(Arc<TopicMemory>);

/// Where a subscriber begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    Oldest,
    Now,
    History(u64),
    AfterSeq(u64),
}

/// How a subscriber joins.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub policy: Policy,
    pub begin: Begin,
    pub label: Option<&'static str>,
    pub durable: bool,
    pub membarrier: bool,
}

impl Options {
    pub const RELIABLE: Self =
        Self { policy: Policy::Reliable, begin: Begin::Oldest, label: None, durable: false, membarrier: false };
    pub const LOSSY: Self = Self { policy: Policy::Lossy, begin: Begin::Now, ..Self::RELIABLE };
    pub const LATEST: Self = Self { policy: Policy::Latest, begin: Begin::Now, ..Self::RELIABLE };
    pub const DURABLE: Self = Self { label: Some("durable"), durable: true, ..Self::RELIABLE };
}

impl Memory {
    /// An empty topic with this many of at most [`SLOTS`] slots.
    /// `overwritten`: what is read may be overwritten meanwhile.
    pub fn new(capacity: u64, slots: usize, flags: u32, overwritten: bool) -> Self {
        assert!(slots <= SLOTS && capacity.is_power_of_two() && capacity >= TOPIC_CHUNKS);
        let first = first_topic_position(TOPIC_ALIGN_MIN);
        let position = || AtomicU64::new(first);
        let word = || AtomicU64::new(0);
        let slot = || Slot {
            cursor: word(),
            state: word(),
            flags: AtomicU32::new(0),
            close_seen: AtomicU32::new(0),
            lost: word(),
            eject_seq: word(),
            reserved: std::array::from_fn(|_| word()),
            label: std::array::from_fn(|_| word()),
        };
        let geometry = TopicGeometry {
            data_offset: 0,
            capacity,
            len: 0,
            align: TOPIC_ALIGN_MIN,
            reserved: 0,
            slots: slots as u32,
            flags,
            subs_offset: 0,
        };
        Self(Arc::new(TopicMemory {
            block: TopicBlock {
                geometry: Line(geometry),
                positions: Line(TopicPositions { tail: position(), last: position() }),
                claim: Line(position()),
                starts: Line(std::array::from_fn(|_| position())),
                publisher: Line(PublisherLine { role: new_role(), eject_after: word() }),
            },
            area: Box::new(Area {
                head: SubscribersHead { publisher_wait: Line(AtomicU32::new(0)), word: Line(word()) },
                padding: [0; PADDING],
                slots: std::array::from_fn(|_| slot()),
            }),
            data: if overwritten { Data::new(capacity).overwritten() } else { Data::new(capacity) },
            capacity,
            slots: slots as u32,
            flags,
            locks: Locks::new(&[]),
        }))
    }

    fn words(&self) -> Words {
        let area = NonNull::from(&*self.0.area).cast();
        // SAFETY: an area with at least this many slots, which lives as long as the attachments' header.
        unsafe { Words::new(area, self.0.slots, self.0.flags) }
    }

    fn view(&self) -> View {
        View {
            block: &raw const self.0.block,
            words: self.words(),
            data: self.0.data.map().as_ptr(),
            capacity: self.0.capacity,
            align: TOPIC_ALIGN_MIN,
        }
    }

    fn attachment(&self, held: Option<usize>, side: SideOptions) -> Attachment<Topic> {
        let memory = &self.0;
        let header: Arc<Header> = memory.clone();
        Attachment {
            data: memory.data.map(),
            header,
            block: NonNull::from(&memory.block),
            capacity: memory.capacity,
            align: TOPIC_ALIGN_MIN,
            place: Place::new(self.words(), SlotLocks(memory.locks.clone()), side),
            origin: Origin::unnamed("model"),
            link: Link::Lock(Lock { locks: memory.locks.clone(), held, named: true }),
            fork: fork::Entry,
        }
    }

    /// The publisher's role, taken by the calling process.
    ///
    /// # Panics
    /// If somebody has it.
    pub fn publisher(&self, membarrier: bool, eject_after: u64) -> Publisher {
        assert!(self.0.locks.take(PRODUCER), "there is a publisher");
        let side = SideOptions::Publisher { eject_after, timestamps: false };
        let attachment = self.attachment(Some(PRODUCER), side);
        Publisher::attach(attachment, WaitPolicy::Block, membarrier).unwrap()
    }

    /// A subscriber.
    pub fn subscriber(&self, options: &Options) -> Result<Subscriber> {
        let wanted = Wanted {
            policy: options.policy,
            start: match options.begin {
                Begin::Oldest => Start::Oldest,
                Begin::Now => Start::Now,
                Begin::History(count) => Start::History(count),
                Begin::AfterSeq(seq) => Start::AfterSeq(seq),
            },
            label: options.label.map(padded),
            durable: options.durable,
            writable: true,
            membarrier_capable: options.membarrier,
        };
        let mut seats = Held { locks: &self.0.locks, slot: None };
        let joined = join(&self.view(), &wanted, &mut seats)?;
        let held = seats.slot.map(|slot| SLOT + slot as usize);
        let attachment = self.attachment(held, SideOptions::Subscriber(joined));
        Subscriber::attach(attachment, WaitPolicy::Block, options.membarrier)
    }

    /// A handle is used no more; nothing is said to anybody, and its lock stays held.
    pub fn stop_publisher(publisher: Publisher) {
        let publisher = ManuallyDrop::new(publisher);
        // SAFETY: the handle is not used again, nor dropped.
        stop(unsafe { std::ptr::read(&raw const publisher.half) });
    }

    /// The same of a subscriber.
    pub fn stop_subscriber(subscriber: Subscriber) {
        let subscriber = ManuallyDrop::new(subscriber);
        // SAFETY: as above.
        stop(unsafe { std::ptr::read(&raw const subscriber.half) });
    }

    /// The publisher's process is killed here, and every sleeper checks again after its interval.
    pub fn kill_publisher(&self, publisher: Publisher) {
        Self::stop_publisher(publisher);
        self.publisher_is_dead();
    }

    /// A subscriber's process is killed here.
    pub fn kill_subscriber(&self, subscriber: Subscriber) {
        if let Link::Lock(Lock { held: Some(held), .. }) = subscriber.half.endpoint.attachment.link {
            self.0.locks.release(held);
        }
        Self::stop_subscriber(subscriber);
        clock_runs();
    }

    /// Whether a publisher's process lives.
    pub fn has_publisher(&self) -> bool {
        self.0.locks.is_held(PRODUCER)
    }

    /// What the kernel does once the publisher's process is over.
    pub fn publisher_is_dead(&self) {
        self.0.locks.release(PRODUCER);
        clock_runs();
    }

    /// What the kernel does once the process of the one subscriber is over, wherever that was.
    pub fn subscribers_are_dead(&self) {
        [JOIN].into_iter().chain(SLOT..SLOT + SLOTS).for_each(|lock| self.0.locks.release(lock));
        clock_runs();
    }

    /// Lets the 100 ms pass after which a blocked publisher checks its subscribers, and those after which it ejects one.
    pub fn time_passes(&self) {
        time_passes();
    }

    /// Lets a millisecond pass: long enough to be ejected where that is at once, too short for the kernel to be asked.
    pub fn time_ticks(&self) {
        KERNEL.now.fetch_add(1_000_000, Ordering::Relaxed);
    }

    /// How many slots hold the publisher back, as a test sees it that is alone.
    pub fn gating(&self) -> usize {
        let slots = &self.0.area.slots;
        slots.iter().filter(|slot| slot.state.load(Ordering::Relaxed) & SLOT_GATING != 0).count()
    }

    /// Which of the topic's 32-byte cells a frame with this payload begins in.
    pub fn cell(&self, payload: &[u8]) -> usize {
        self.0.data.offset(payload) / 32 - 1
    }

    /// Before a payload is written.
    pub fn touch(payload: &[u8]) {
        crate::sync::touch_data(payload.as_ptr());
    }

    /// The number that the publisher's next message has.
    pub fn next_seq(publisher: &Publisher) -> u64 {
        publisher.half.hot.commit.seq
    }

    /// `recv_into_slice` or `try_recv_into_slice`; `between` runs between the check of a message's header and the copy, with
    /// the message's length.
    pub fn recv(
        subscriber: &mut Subscriber,
        wait: bool,
        buffer: &mut [u8],
        mut between: impl FnMut(usize),
    ) -> Result<TopicMeta> {
        let half = &mut *subscriber.half;
        half.hot.release();
        let limit = if wait { WaitLimit::Forever } else { WaitLimit::None };
        let frame = Topic::copy_next(half, limit, |_, len| {
            between(len);
            if len <= buffer.len() { Ok(buffer.as_mut_ptr()) } else { Err(buffer.len()) }
        })?;
        Ok(Topic::meta(&frame))
    }

    /// `latest_into_slice`, in the same way.
    pub fn latest(subscriber: &mut Subscriber, buffer: &mut [u8], mut between: impl FnMut(usize)) -> Result<TopicMeta> {
        let frame = subscriber.half.newest(|_, len| {
            between(len);
            if len <= buffer.len() { Ok(buffer.as_mut_ptr()) } else { Err(buffer.len()) }
        })?;
        Ok(Topic::meta(&frame))
    }
}

#[allow(clippy::boxed_local, reason = "as a handle has it")]
fn stop<H: Positions>(mut half: Box<Half<H>>) {
    if let Link::Lock(lock) = &mut half.endpoint.attachment.link {
        lock.held = None;
    }
}

fn padded(label: &str) -> Label {
    let mut padded = [0; LABEL_MAX];
    padded[..label.len()].copy_from_slice(label.as_bytes());
    padded
}

/// The locks that one subscriber takes.
struct Held<'a> {
    locks: &'a Locks,
    slot: Option<u32>,
}

impl Seats for Held<'_> {
    fn take(&mut self, index: u32) -> Result<bool> {
        let taken = self.locks.take(SLOT + index as usize);
        if taken {
            self.slot = Some(index);
        }
        Ok(taken)
    }

    fn give_back(&mut self, index: u32) {
        self.locks.release(SLOT + index as usize);
        self.slot = None;
    }

    fn is_held(&self, index: u32) -> bool {
        self.locks.is_held(SLOT + index as usize)
    }

    fn begin_labelled(&mut self) -> Result<()> {
        if self.locks.take(JOIN) { Ok(()) } else { Err(Error::new(ErrorKind::Busy, "another one joins with a label")) }
    }

    fn end_labelled(&mut self) {
        self.locks.release(JOIN);
    }
}
