//! What stands in for `segment` in a model: locks that vanish with their holder, and what a side stands on. A ring's memory
//! is in `ring.rs`, a topic's in `topic/memory.rs`.

mod ring;

pub use ring::Ring;
pub(crate) use ring::new_role;

use crate::origin::Origin;
use crate::ring::log::{Ring as RingLog, Shape};
use crate::sys::fork;
use crate::sys::kernel::KERNEL;
use loom::sync::Mutex;
use loom::sync::atomic::AtomicU64;
use std::cell::UnsafeCell;
use std::fmt::{self, Debug};
use std::ptr::NonNull;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

/// How many slots a model's topic has at most.
pub(crate) const SLOTS: usize = 2;

/// The lock of the producer, or of a topic's publisher.
pub(crate) const PRODUCER: usize = Role::Producer as usize;
/// The lock of the consumer.
pub(crate) const CONSUMER: usize = Role::Consumer as usize;
/// The lock of a subscriber with a label that looks for its slot.
pub(crate) const JOIN: usize = 2;
/// The lock of the first slot.
pub(crate) const SLOT: usize = 3;

/// Who holds which lock of a segment: asked and changed under one lock, as in the kernel.
#[derive(Clone)]
pub(crate) struct Locks(Arc<Mutex<[bool; SLOT + SLOTS]>>);

impl Locks {
    /// Nobody holds anything, but for `held`.
    pub(crate) fn new(held: &[usize]) -> Self {
        let mut all = [false; SLOT + SLOTS];
        held.iter().for_each(|&lock| all[lock] = true);
        Self(Arc::new(Mutex::new(all)))
    }

    pub(crate) fn is_held(&self, lock: usize) -> bool {
        self.0.lock().unwrap()[lock]
    }

    /// Takes a lock. `false`: somebody has it.
    pub(crate) fn take(&self, lock: usize) -> bool {
        !std::mem::replace(&mut self.0.lock().unwrap()[lock], true)
    }

    pub(crate) fn release(&self, lock: usize) {
        self.0.lock().unwrap()[lock] = false;
    }
}

impl Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Locks")
    }
}

/// The locks of a topic's slots, for those who only ask.
#[derive(Clone, Debug)]
pub struct SlotLocks(pub(crate) Locks);

impl SlotLocks {
    /// A system call, during which others run: what it has found may be over when it returns.
    pub(crate) fn is_held(&self, slot: u32) -> bool {
        let held = self.0.is_held(SLOT + slot as usize);
        loom::thread::yield_now();
        held
    }
}

/// What keeps a log's words.
pub(crate) type Header = dyn Memory;

/// A log's memory.
pub trait Memory: Debug + Send + Sync {}

/// A data area. It is not mirrored: a model's frames do not go across its end. Loom does not watch it, so that a copy of
/// what is overwritten meanwhile is no race; what must not be overwritten is watched by the tests.
pub(crate) struct Data(Box<[Part]>);

/// A part of a data area, aligned as a mapping is for what is stored into it.
#[repr(C, align(64))]
struct Part(UnsafeCell<[u64; 8]>);

// SAFETY: loom runs one thread at a time, and switches only between its own operations.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    pub(crate) fn new(capacity: u64) -> Self {
        Self((0..capacity.div_ceil(64)).map(|_| Part(UnsafeCell::new([0; 8]))).collect())
    }

    /// Of which parts are overwritten while they are read: see [`sync::touch_data`](crate::sync::touch_data).
    pub(crate) fn overwritten(self) -> Self {
        let start = self.map().as_ptr().addr();
        let range = start..start + size_of_val(&*self.0);
        KERNEL.overwritten.lock().unwrap().push((range, Arc::new(AtomicU64::new(0))));
        self
    }

    pub(crate) fn map(&self) -> DataMap {
        DataMap(self.0.as_ptr().cast_mut().cast())
    }

    /// The offset of a payload that lies here.
    pub(crate) fn offset(&self, payload: &[u8]) -> usize {
        payload.as_ptr().addr() - self.map().as_ptr().addr()
    }
}

/// The word that counts the accesses to the data at this address, where they are counted.
pub(crate) fn touched(address: usize) -> Option<Arc<AtomicU64>> {
    let all = KERNEL.overwritten.lock().unwrap();
    all.iter().find(|(range, _)| range.contains(&address)).map(|(_, touched)| touched.clone())
}

pub(crate) struct DataMap(*mut u8);

impl DataMap {
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0
    }
}

/// As the real one, without a header page.
pub struct Attachment<L: Shape = RingLog> {
    pub(crate) data: DataMap,
    pub(crate) header: Arc<Header>,
    pub(crate) block: NonNull<L::Block>,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    pub(crate) place: L::Place,
    pub(crate) origin: Origin,
    pub(crate) link: Link,
    pub(crate) fork: fork::Entry,
}

impl<L: Shape> Debug for Attachment<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachment")
    }
}

// SAFETY: the pointers lead into memory that `header` keeps alive.
unsafe impl<L: Shape> Send for Attachment<L> {}

/// As the real one; every model's log has locks.
#[derive(Debug)]
pub enum Link {
    Lock(Lock),
    #[allow(dead_code, reason = "asked for by the real code")]
    None,
}

/// The locks that one handle holds.
#[derive(Debug)]
pub struct Lock {
    pub(crate) locks: Locks,
    /// What it holds of them; a subscriber without a slot holds none.
    pub(crate) held: Option<usize>,
    /// Of a segment with a name: its endings are states that a successor ends.
    pub(crate) named: bool,
}

impl Link {
    pub(crate) fn peer_alive(&self, me: Role) -> bool {
        match self {
            Self::Lock(lock) => lock.locks.is_held(1 - me as usize),
            Self::None => true,
        }
    }

    pub(crate) fn name_vanished(&self) -> bool {
        false
    }

    pub(crate) fn endings_are_final(&self) -> bool {
        match self {
            Self::Lock(lock) => !lock.named,
            Self::None => true,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(held) = self.held
        {
            self.locks.release(held);
        }
    }
}
