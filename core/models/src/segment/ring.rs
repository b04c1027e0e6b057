//! A ring on the heap.

use super::{Attachment, CONSUMER, Data, Header, Link, Lock, Locks, Memory, PRODUCER, Role};
use crate::layout::{
    ALIGN_MIN, FRAME_HEADER, Geometry, HeadLine, LastTag, Line, ROLE_FENCE_FREE, RingBlock, RoleLine, TailLine,
    first_position,
};
use crate::origin::Origin;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::{clock_runs, fork};
use crate::wait::WaitPolicy;
use crate::{Receiver, Sender};
use std::fmt::{self, Debug};
use std::ptr::NonNull;
use std::sync::Arc;

struct RingMemory {
    block: RingBlock,
    data: Data,
    capacity: u64,
    named: bool,
    locks: Locks,
}

impl Memory for RingMemory {}

impl Debug for RingMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RingMemory")
    }
}

/// A ring for models.
#[derive(Clone)]
pub struct Ring(Arc<RingMemory>);

/// The words of a role that nobody has had yet.
pub(crate) fn new_role() -> RoleLine {
    RoleLine {
        wait: AtomicU32::new(0),
        flags: AtomicU32::new(0),
        epoch: AtomicU32::new(0),
        close_seen: AtomicU32::new(0),
    }
}

impl Ring {
    /// An empty ring of `capacity` bytes. `named`: its endings are states that a successor ends.
    pub fn new(capacity: u64, named: bool) -> Self {
        let first = first_position(ALIGN_MIN);
        let record = || LastTag { end: AtomicU64::new(0), tag: AtomicU64::new(0) };
        let geometry = Geometry { data_offset: 0, capacity, len: 0, align: ALIGN_MIN, reserved: 0 };
        // The socket of a ring without a name is open before either role attaches.
        let locks = Locks::new(if named { &[] } else { &[PRODUCER, CONSUMER] });
        Self(Arc::new(RingMemory {
            block: RingBlock {
                geometry: Line(geometry),
                tail: Line(TailLine { tail: AtomicU64::new(first), last_tags: [record(), record()] }),
                head: Line(HeadLine { head: AtomicU64::new(first) }),
                producer: Line(new_role()),
                consumer: Line(new_role()),
            },
            data: Data::new(capacity),
            capacity,
            named,
            locks,
        }))
    }

    fn attachment(&self, role: Role) -> Attachment {
        let memory = &self.0;
        let held = role as usize;
        memory.locks.take(held);
        let header: Arc<Header> = memory.clone();
        Attachment {
            data: memory.data.map(),
            header,
            block: NonNull::from(&memory.block),
            capacity: memory.capacity,
            align: ALIGN_MIN,
            place: (),
            origin: Origin::unnamed("model"),
            link: Link::Lock(Lock { locks: memory.locks.clone(), held: Some(held), named: memory.named }),
            fork: fork::Entry,
        }
    }

    /// The producer's role, taken by the calling process.
    pub fn sender(&self, membarrier: bool) -> Sender {
        Sender::attach(self.attachment(Role::Producer), WaitPolicy::Block, membarrier).unwrap()
    }

    /// The consumer's role.
    pub fn receiver(&self, membarrier: bool) -> Receiver {
        Receiver::attach(self.attachment(Role::Consumer), WaitPolicy::Block, membarrier).unwrap()
    }

    /// The sender's process is killed here, and every sleeper checks again after its interval.
    pub fn kill_sender(&self, sender: Sender) {
        std::mem::forget(sender);
        self.die(PRODUCER);
    }

    /// The receiver's process is killed here.
    pub fn kill_receiver(&self, receiver: Receiver) {
        std::mem::forget(receiver);
        self.die(CONSUMER);
    }

    fn die(&self, lock: usize) {
        self.0.locks.release(lock);
        clock_runs();
    }

    /// The receiver says that it waits for messages, as it does before it sleeps.
    pub fn receiver_waits(&self) {
        self.0.block.consumer.wait.store(1, Ordering::Relaxed);
    }

    /// The sender says that it waits for room.
    pub fn sender_waits(&self) {
        self.0.block.producer.wait.store(1, Ordering::Relaxed);
    }

    /// Whether the sender says that it does not fence.
    pub fn sender_is_fence_free(&self) -> bool {
        self.0.block.producer.flags.load(Ordering::Relaxed) & ROLE_FENCE_FREE != 0
    }

    /// Wakes the waiter for messages without a reason, as the kernel may.
    pub fn wake_receiver_for_nothing(&self) {
        crate::sys::futex::wake_all(&self.0.block.consumer.wait);
    }

    /// Wakes the waiter for room without a reason.
    pub fn wake_sender_for_nothing(&self) {
        crate::sys::futex::wake_all(&self.0.block.producer.wait);
    }

    /// Which of the ring's 16-byte cells a frame with this payload begins in.
    pub fn cell(&self, payload: &[u8]) -> usize {
        (self.0.data.offset(payload) - FRAME_HEADER as usize) / FRAME_HEADER as usize
    }
}
