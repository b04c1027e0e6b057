use std::os::fd::{AsFd, OwnedFd};

use super::*;
use crate::layout::slot_state;
use crate::segment::{Spec, format, validate};
use crate::sys::lock::Mode;
use crate::sys::mem::page_size;

const BLOCK: u64 = 0x400;

/// A topic in a file of its own.
struct Image {
    file: OwnedFd,
    topic: TopicGeometry,
}

impl Image {
    fn new(capacity: u64, align: u32, slots: u32) -> Self {
        let spec = Spec::topic(capacity, align, slots, 0, page_size()).unwrap();
        let file = fs::scratch();
        rustix::fs::ftruncate(&file, spec.size).unwrap();
        let image = Self { file, topic: spec.topic.unwrap() };
        image.put(0, &format(&spec).0[..]);
        image
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        fs::write_at(self.file.as_fd(), at, bytes).unwrap();
    }

    fn positions(&self, last: u64, tail: u64, claim: u64) {
        self.put(BLOCK + 0x80, &[tail.to_ne_bytes(), last.to_ne_bytes()].concat());
        self.put(BLOCK + 0x100, &claim.to_ne_bytes());
    }

    fn frame(&self, position: u64, len: u32, seq: u64) {
        let at = self.topic.data_offset + (position & (self.topic.capacity - 1));
        let words = [u64::from(len) | 7 << 32, 11, seq, seq.wrapping_add(1_000_000)];
        self.put(at, &words.map(u64::to_ne_bytes).concat());
    }

    fn slot(&self, i: u64, bytes: &[u8]) {
        self.put(self.topic.subs_offset + 0x1000 + 128 * i, bytes);
    }

    fn seen(&self, moves: bool) -> Topic {
        let (page, size) = read_page(self.file.as_fd()).unwrap();
        assert_eq!(validate(&page, size).unwrap().topic, Some(self.topic));
        look_at(self.file.as_fd(), &self.topic, moves).unwrap()
    }
}

#[test]
fn a_new_topic() {
    let seen = Image::new(8192, 64, 5).seen(false);
    assert_eq!((seen.tail, seen.last, seen.claim, seen.slots, seen.align), (32, 32, 32, 5, 64));
    assert!(seen.newest.is_none() && seen.subscribers.is_empty() && seen.damage.is_none());
    assert!(!seen.lossy_only && !seen.may_eject && !seen.has_sleeper && seen.eject_after.is_none());
}

#[test]
fn a_topic_in_use() {
    let image = Image::new(8192, 32, 4);
    // Three frames of 64 bytes.
    for (position, seq) in [(0, 1), (64, 2), (128, 5)] {
        image.frame(position, 20, seq);
    }
    image.positions(128, 192, 512);
    image.put(BLOCK + 0x204, &[3u32.to_ne_bytes(), 6u32.to_ne_bytes()].concat());
    image.put(BLOCK + 0x210, &2_000_000u64.to_ne_bytes());
    image.put(image.topic.subs_offset, &1u32.to_ne_bytes());
    image.put(image.topic.subs_offset + 0x80, &(9u64 << 32 | 5).to_ne_bytes());
    let words = |cursor: u64, state: u64, flags: u32, lost: u64, label: &[u8]| {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&cursor.to_ne_bytes());
        bytes[8..16].copy_from_slice(&state.to_ne_bytes());
        bytes[16..20].copy_from_slice(&flags.to_ne_bytes());
        bytes[24..32].copy_from_slice(&lost.to_ne_bytes());
        bytes[64..64 + label.len()].copy_from_slice(label);
        bytes
    };
    image.slot(0, &words(64, slot_state(3, SLOT_ACTIVE | SLOT_GATING), 3, 0, b""));
    image.slot(1, &words(192, slot_state(1, SLOT_GATING | SLOT_DURABLE), 0, 0, "zähler".as_bytes()));
    image.slot(2, &words(0, slot_state(8, 0), 0, 0, b"left"));
    image.slot(3, &words(0, slot_state(2, SLOT_ACTIVE), SLOT_FLAG_LATEST, 4, &[0xFF; 64]));
    let holder = fs::reopen(image.file.as_fd()).unwrap();
    assert!(lock::try_lock(holder.as_fd(), BYTE_SLOT, Mode::Exclusive).unwrap());
    assert!(lock::try_lock(holder.as_fd(), BYTE_SLOT + 1, Mode::Shared).unwrap());

    let seen = image.seen(true);
    let newest = seen.newest.unwrap();
    assert_eq!((newest.seq, newest.time_ns, newest.len, newest.type_id, newest.tag), (5, 1_000_005, 20, 7, 11));
    assert_eq!((seen.publisher.flags, seen.publisher.epoch, seen.publisher.wait), (3, 6, 1));
    assert_eq!((seen.eject_after, seen.has_sleeper, seen.changes), (Some(Duration::from_millis(2)), true, 9));
    let [first, durable, latest] = &seen.subscribers[..] else { panic!("{:?}", seen.subscribers) };
    assert_eq!((first.slot, first.epoch, first.lag_bytes, first.lag_messages), (0, 3, 128, Some(4)));
    assert!(first.active && first.gating && !first.durable && first.held && first.label.is_none());
    assert_eq!((durable.lag_bytes, durable.lag_messages, durable.label.as_deref()), (0, Some(0), Some("zähler")));
    assert!(!durable.active && durable.durable && !durable.held, "a shared lock is no life");
    assert!(latest.latest && latest.active && !latest.gating && latest.lost == 4 && latest.slot == 3);
    assert_eq!(latest.label.as_ref().map(|label| label.chars().count()), Some(64));
}

/// Whatever the file holds: no panic, numbers in their bounds, and of a still topic the damage in words.
#[test]
fn believes_no_position_and_no_frame() {
    let image = Image::new(4096, 32, 2);
    image.slot(0, &[64u64.to_ne_bytes(), slot_state(1, 3).to_ne_bytes()].concat());
    for (last, tail, claim) in
        [(1, 64, 64), (64, 0, 64), (0, 64, 0), (0, 4096 + 64, 4096 + 64), (0, 64, u64::MAX - 31), (1 << 63, 64, 64)]
    {
        image.positions(last, tail, claim);
        assert!(image.seen(false).damage.unwrap().contains("contradict"), "{last} {tail} {claim}");
        let seen = image.seen(true);
        assert!(seen.damage.is_none() && seen.subscribers[0].lag_bytes <= 4096);
    }
    // `claim` may lie between frames.
    image.positions(0, 64, 250);
    for len in [33, 2017, u32::MAX, i32::MAX as u32] {
        image.frame(0, len, 1);
        let seen = image.seen(false);
        assert!(seen.newest.is_none() && seen.damage.unwrap().contains("claims more"), "{len}");
    }
    image.frame(0, 32, u64::MAX);
    assert_eq!(image.seen(false).newest.unwrap().seq, u64::MAX);
    // The cursor's frame says that it is newer than the newest one; and what is overtaken is not read.
    image.frame(64, 0, 5);
    image.frame(96, 0, 3);
    image.positions(96, 128, 256);
    assert_eq!(image.seen(false).subscribers[0].lag_messages, None);
    image.positions(4096 + 96, 4096 + 128, 4096 + 256);
    let seen = image.seen(false);
    assert_eq!(
        (seen.newest.unwrap().seq, seen.subscribers[0].lag_messages, seen.subscribers[0].lag_bytes),
        (3, None, 4096)
    );
    // Noise all over the area.
    let noise: Vec<u8> = (0..0x1100u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    image.put(image.topic.subs_offset, &noise);
    assert!(image.seen(true).subscribers.iter().all(|one| one.lag_bytes <= 4096));
    // A file that was cut off after it was checked.
    rustix::fs::ftruncate(&image.file, image.topic.subs_offset + 100).unwrap();
    let seen = look_at(image.file.as_fd(), &image.topic, true).unwrap();
    assert!(seen.subscribers.is_empty() && seen.newest.is_none());
}
