//! Topics: one publisher, and subscribers that come, read, sleep, are killed and come back.
//!
//! A frame without a payload takes 32 bytes, one with up to 32 bytes takes 64. What a subscriber reads must be what the
//! publisher wrote under that number. Where the protocol promises that nobody writes meanwhile, each 32-byte cell has a loom
//! cell beside it, as a ring's has. Where it promises only that what was overwritten is noticed, each has an atomic beside
//! it that orders nothing, so that loom gives any value that a payload's bytes could have.

mod death;
mod gate;
mod read;
mod sleep;

use crate::Held;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use ramway_models::topic::{Memory, Options, Publisher, Subscriber, TopicMeta};
use ramway_models::{Error, ErrorKind, Result};
use std::rc::Rc;

/// What a test says that has read something else than was sent.
const OVERWRITTEN: &str = "not what was sent";

/// Bytes of a payload whose frame takes two cells.
const LONG: usize = 32;

/// A topic whose payloads are watched.
#[derive(Clone)]
struct Topic {
    memory: Memory,
    /// What nobody overwrites while it is read.
    cells: Rc<Vec<UnsafeCell<u64>>>,
    /// What may be overwritten while it is read.
    shadows: Rc<Vec<AtomicU64>>,
    watch: Watch,
}

/// How payloads are watched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// By their values, which may be overwritten while they are read.
    Values,
    /// As what nobody writes while it is read.
    Cells,
    /// The same, and each value may be any that the order of the accesses lets a load give.
    Shadows,
}

impl Topic {
    /// With so many 32-byte cells.
    fn new(cells: usize, slots: usize, flags: u32, watch: Watch) -> Self {
        let count = |wanted| if watch == wanted { cells } else { 0 };
        Self {
            memory: Memory::new(cells as u64 * 32, slots, flags, watch != Watch::Cells),
            cells: Rc::new((0..count(Watch::Cells)).map(|_| UnsafeCell::new(0)).collect()),
            shadows: Rc::new((0..count(Watch::Shadows)).map(|_| AtomicU64::new(0)).collect()),
            watch,
        }
    }

    fn publisher(&self) -> Tx {
        self.publisher_with(false, 0)
    }

    fn publisher_with(&self, membarrier: bool, eject_after: u64) -> Tx {
        Tx { tx: Held::new(self.memory.publisher(membarrier, eject_after)), topic: self.clone() }
    }

    fn subscriber(&self, options: &Options) -> Rx {
        self.try_subscriber(options).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_subscriber(&self, options: &Options) -> Result<Rx> {
        Ok(Rx { rx: Held::new(self.memory.subscriber(options)?), topic: self.clone(), next: 0 })
    }
}

struct Tx {
    tx: Held<Publisher>,
    topic: Topic,
}

impl Tx {
    /// Sends a message whose every word is its number.
    fn put(&mut self, len: usize, wait: bool, flush: bool) -> Result<()> {
        let seq = Memory::next_seq(&self.tx);
        let mut slot = if wait { self.tx.reserve(len)? } else { self.tx.try_reserve(len)? };
        let cell = self.topic.memory.cell(&slot);
        match self.topic.watch {
            Watch::Values => {}
            // SAFETY: loom checks that nobody else has access.
            Watch::Cells => self.topic.cells[cell].with_mut(|at| unsafe { *at = seq }),
            // Relaxed: as the stores of a payload are.
            Watch::Shadows => self.topic.shadows[cell].store(seq, Ordering::Relaxed),
        }
        Memory::touch(&slot);
        slot.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&seq.to_le_bytes()));
        let slot = slot.with_tag(seq);
        if flush { slot.commit(len) } else { slot.commit_unflushed(len) }
    }

    /// Sends so many messages without a payload, waiting for room.
    fn send(&mut self, count: usize) {
        (0..count).for_each(|_| self.put(0, true, true).unwrap_or_else(|error| panic!("{error}")));
    }

    fn try_send(&mut self) -> bool {
        self.try_put(0)
    }

    fn try_put(&mut self, len: usize) -> bool {
        match self.put(len, false, true) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::Full => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Does nothing more.
    fn stop(self) {
        Memory::stop_publisher(self.tx.into_inner());
    }

    fn kill(self) {
        self.topic.memory.clone().kill_publisher(self.tx.into_inner());
    }
}

struct Rx {
    rx: Held<Subscriber>,
    topic: Topic,
    /// The number of the message after the last one that was read; 0: none was.
    next: u64,
}

impl Rx {
    /// The next message's number; it is read in place where the policy allows it.
    fn take(&mut self, wait: bool) -> Result<u64> {
        let message = if wait { self.rx.recv()? } else { self.rx.try_recv()? };
        let seq = message.seq();
        if self.topic.watch == Watch::Cells {
            let cell = self.topic.memory.cell(&message);
            // SAFETY: loom checks that nobody writes.
            let value = self.topic.cells[cell].with(|at| unsafe { *at });
            assert_eq!(value, seq, "{OVERWRITTEN}");
        }
        let (tag, lost) = (message.tag(), message.lost());
        let whole = message.chunks_exact(8).all(|word| word == seq.to_le_bytes());
        // Held back until loom has seen the read: a release that went before it would be a race.
        drop(message);
        assert!(tag == seq && whole, "{OVERWRITTEN}");
        self.counts(seq, lost);
        Ok(seq)
    }

    /// The same by a copy that loom watches; the length of a message says its cell.
    fn copy(&mut self, wait: bool) -> Result<u64> {
        let (mut buffer, mut seen) = ([0; LONG], None);
        let shadows = self.topic.shadows.clone();
        let meta = Memory::recv(&mut self.rx, wait, &mut buffer, |len| seen = shadow(&shadows, len))?;
        check(&meta, &buffer, seen);
        self.counts(meta.seq, meta.lost);
        Ok(meta.seq)
    }

    /// The newest message's number.
    fn latest(&mut self) -> Result<u64> {
        let (mut buffer, mut seen) = ([0; LONG], None);
        let shadows = self.topic.shadows.clone();
        let meta = Memory::latest(&mut self.rx, &mut buffer, |len| seen = shadow(&shadows, len))?;
        check(&meta, &buffer, seen);
        Ok(meta.seq)
    }

    /// What was received and what was lost are what was sent.
    fn counts(&mut self, seq: u64, lost: u64) {
        if self.next != 0 {
            assert_eq!(seq, self.next + lost, "{OVERWRITTEN}: a wrong gap");
        }
        self.next = seq + 1;
    }

    /// Reads what is there, up to `most` messages.
    fn read(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.found(|rx| rx.take(false))).count()
    }

    fn copy_all(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.found(|rx| rx.copy(false))).count()
    }

    fn found(&mut self, take: impl FnOnce(&mut Self) -> Result<u64>) -> bool {
        match take(self) {
            Ok(_) => true,
            // The publisher's end says only that nothing more is there.
            Err(error) if matches!(error.kind(), ErrorKind::Empty | ErrorKind::Closed | ErrorKind::PeerDead) => false,
            Err(error) => panic!("{OVERWRITTEN}: {error}"),
        }
    }

    /// Does nothing more.
    fn stop(self) {
        Memory::stop_subscriber(self.rx.into_inner());
    }

    fn kill(self) {
        self.topic.memory.clone().kill_subscriber(self.rx.into_inner());
    }
}

/// What loom says that the payload of a message of this length holds.
fn shadow(shadows: &[AtomicU64], len: usize) -> Option<u64> {
    // Relaxed: as the loads of a payload are.
    (!shadows.is_empty() && len >= 8).then(|| shadows[len - 8].load(Ordering::Relaxed))
}

fn check(meta: &TopicMeta, buffer: &[u8], seen: Option<u64>) {
    let whole = buffer[..meta.len].chunks_exact(8).all(|word| word == meta.seq.to_le_bytes());
    assert!(meta.tag == meta.seq && whole, "{OVERWRITTEN}: {meta:?}");
    assert!(seen.is_none_or(|seen| seen == meta.seq), "{OVERWRITTEN}: {meta:?} and {seen:?}");
}

fn kind<T>(result: Result<T>) -> Result<T, ErrorKind> {
    result.map_err(|error: Error| error.kind())
}
