//! What the tests of topics share: messages that say whether they are whole, and a topic's memory for mischief.

use super::LONG;
use ramway::{Policy, Publisher, Subscriber, Topic, TopicBuilder};
use rustix::mm::{MapFlags, ProtFlags};
use std::sync::atomic::{AtomicU32, AtomicU64};

pub const POLICIES: [Policy; 3] = [Policy::Reliable, Policy::Lossy, Policy::Latest];

/// Offsets of a topic's words in its file, from the tables in `docs/ABI.md`.
pub const FLAGS: usize = 0x424;
pub const TAIL: usize = 0x480;
pub const LAST: usize = 0x488;
pub const CLAIM: usize = 0x500;
pub const STARTS: usize = 0x580;
pub const PUBLISHER: usize = 0x600;
/// In the subscribers' area.
pub const AREA: usize = 0x1000;
pub const WORD: usize = AREA + 0x80;

/// Where slot `index` begins.
pub fn slot(index: usize) -> usize {
    AREA + 0x1000 + 0x80 * index
}

pub const SLOT_CURSOR: usize = 0;
pub const SLOT_STATE: usize = 8;
pub const SLOT_EJECT_SEQ: usize = 0x20;

/// The bits of a slot's state.
pub const ACTIVE: u64 = 1;
pub const GATING: u64 = 2;
pub const DURABLE: u64 = 4;
pub const EJECTED: u64 = 8;

fn mix(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
    x ^= x >> 29;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

/// Fills `payload` so that no part of another message, and no part of another length, passes for it.
pub fn fill(payload: &mut [u8], seq: u64) {
    let seed = mix(seq ^ (payload.len() as u64) << 40);
    for (i, chunk) in payload.chunks_mut(8).enumerate() {
        let word = seed.wrapping_add(mix(i as u64)).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// A message with this number.
pub fn message(seq: u64, len: usize) -> Vec<u8> {
    let mut payload = vec![0; len];
    fill(&mut payload, seq);
    payload
}

/// Whether these bytes are what [`fill`] made for this number, and nothing else.
pub fn is_whole(payload: &[u8], seq: u64) -> bool {
    let seed = mix(seq ^ (payload.len() as u64) << 40);
    payload.chunks(8).enumerate().all(|(i, chunk)| {
        let word = seed.wrapping_add(mix(i as u64)).to_le_bytes();
        *chunk == word[..chunk.len()]
    })
}

/// Sends the next message of this length, with its number as its tag.
pub fn send(publisher: &mut Publisher, len: usize) -> u64 {
    let seq = publisher.seq() + 1;
    publisher.send_tagged(1, seq, &message(seq, len)).unwrap();
    seq
}

/// Sends `count` messages of these lengths in turn.
pub fn send_all(publisher: &mut Publisher, count: u64, lengths: &[usize]) {
    for i in 0..count {
        send(publisher, lengths[i as usize % lengths.len()]);
    }
}

/// Receives the next message, which must be whole; its number and how many were lost before it.
pub fn receive(subscriber: &mut Subscriber) -> (u64, u64) {
    let message = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!(message.seq(), message.tag());
    assert!(is_whole(&message, message.seq()), "message {} of {} bytes is torn", message.seq(), message.len());
    (message.seq(), message.lost())
}

/// Receives messages one after another, none lost, up to the one with the number `last`.
pub fn receive_to(subscriber: &mut Subscriber, first: u64, last: u64) {
    for seq in first..=last {
        assert_eq!(receive(subscriber), (seq, 0));
    }
}

pub fn create(name: &str, capacity: u64) -> TopicBuilder {
    Topic::create(name).capacity(capacity)
}

/// A topic's file, mapped for mischief. Of the page size, with at most 32 slots.
pub struct Memory {
    at: *mut u8,
    len: usize,
}

// SAFETY: only atomic accesses are made through the pointer.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn map(path: &str) -> Self {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let len = file.metadata().unwrap().len() as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &file, 0) };
        Self { at: at.unwrap().cast(), len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn u64(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len);
        // SAFETY: inside the mapping and aligned, and all accesses are atomic.
        unsafe { AtomicU64::from_ptr(self.at.add(at).cast()) }
    }

    pub fn u32(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.at.add(at).cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and no reference into it outlives `self`.
        unsafe { rustix::mm::munmap(self.at.cast(), self.len) }.unwrap();
    }
}
