//! What stands in for `segment` in a model: a ring on the heap, and role locks that vanish with their holder.

use crate::layout::{
    ALIGN_MIN, FRAME_HEADER, Geometry, HeadLine, LastTag, Line, RingBlock, RoleLine, TailLine, first_position,
};
use crate::origin::Origin;
use crate::sync::{AtomicU32, AtomicU64};
use crate::sys::clock_runs;
use crate::sys::fork;
use crate::wait::WaitPolicy;
use crate::{Receiver, Sender};
use loom::sync::Mutex;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

/// A ring's memory. Its data area is not mirrored: a model sends frames whose size divides the capacity.
pub(crate) struct Memory {
    block: RingBlock,
    data: Box<[UnsafeCell<u64>]>,
    named: bool,
    /// Who holds the producer's and the consumer's lock; asked and changed under a lock, as in the kernel.
    held: Mutex<[bool; 2]>,
}

// SAFETY: loom runs one thread at a time; `data` is written only by the side that the protocol lets write.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

pub(crate) struct DataMap(*mut u8);

impl DataMap {
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0
    }
}

/// What keeps a ring's words.
pub(crate) type Header = Memory;

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

/// As the real one, without a header page.
pub(crate) struct Attachment {
    pub(crate) data: DataMap,
    pub(crate) header: Arc<Memory>,
    pub(crate) block: NonNull<RingBlock>,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    pub(crate) origin: Origin,
    pub(crate) link: Link,
    pub(crate) fork: fork::Entry,
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attachment")
    }
}

// SAFETY: the pointers lead into memory that `link` keeps alive.
unsafe impl Send for Attachment {}

/// As the real one; every model's ring has role locks.
pub(crate) enum Link {
    Lock(Lock),
    #[allow(dead_code, reason = "asked for by the real code")]
    None,
}

/// A role's lock.
pub(crate) struct Lock {
    memory: Arc<Memory>,
    role: Role,
}

impl Link {
    pub(crate) fn peer_alive(&self, me: Role) -> bool {
        match self {
            Self::Lock(lock) => lock.memory.held.lock().unwrap()[1 - me as usize],
            Self::None => true,
        }
    }

    pub(crate) fn name_vanished(&self) -> bool {
        false
    }

    pub(crate) fn endings_are_final(&self) -> bool {
        match self {
            Self::Lock(lock) => !lock.memory.named,
            Self::None => true,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.memory.held.lock().unwrap()[self.role as usize] = false;
        }
    }
}

/// A ring for models.
#[derive(Clone)]
pub struct Ring(Arc<Memory>);

impl Ring {
    /// An empty ring of `capacity` bytes. `named`: its endings are states that a successor ends.
    pub fn new(capacity: u64, named: bool) -> Self {
        let first = first_position(ALIGN_MIN);
        let record = || LastTag { end: AtomicU64::new(0), tag: AtomicU64::new(0) };
        let role = || {
            Line(RoleLine {
                wait: AtomicU32::new(0),
                flags: AtomicU32::new(0),
                epoch: AtomicU32::new(0),
                close_seen: AtomicU32::new(0),
            })
        };
        let geometry = Geometry { data_offset: 0, capacity, len: 0, align: ALIGN_MIN, reserved: 0 };
        Self(Arc::new(Memory {
            block: RingBlock {
                geometry: Line(geometry),
                tail: Line(TailLine { tail: AtomicU64::new(first), last_tags: [record(), record()] }),
                head: Line(HeadLine { head: AtomicU64::new(first) }),
                producer: role(),
                consumer: role(),
            },
            data: (0..capacity / 8).map(|_| UnsafeCell::new(0)).collect(),
            named,
            // The socket of a ring without a name is open before either role attaches.
            held: Mutex::new([!named; 2]),
        }))
    }

    fn attachment(&self, role: Role) -> Attachment {
        self.0.held.lock().unwrap()[role as usize] = true;
        Attachment {
            data: DataMap(UnsafeCell::raw_get(self.0.data.as_ptr()).cast()),
            header: self.0.clone(),
            block: NonNull::from(&self.0.block),
            capacity: self.0.data.len() as u64 * 8,
            align: ALIGN_MIN,
            origin: Origin::unnamed("model"),
            link: Link::Lock(Lock { memory: self.0.clone(), role }),
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
        self.die(Role::Producer);
    }

    /// The receiver's process is killed here.
    pub fn kill_receiver(&self, receiver: Receiver) {
        std::mem::forget(receiver);
        self.die(Role::Consumer);
    }

    fn die(&self, role: Role) {
        self.0.held.lock().unwrap()[role as usize] = false;
        clock_runs();
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
        let base = self.0.data.as_ptr() as usize;
        (payload.as_ptr() as usize - base - FRAME_HEADER as usize) / FRAME_HEADER as usize
    }
}
