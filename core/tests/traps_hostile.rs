//! A peer that writes whatever it likes over a ring's words and bytes, through a mapping of its own: this side gives an
//! error, and never crashes, hangs, leaves the mapping or allocates what the peer's numbers ask for.
//!
//! (A bus's handshake and a hostile peer in another process: `bus_handshake.rs`, `bus_memory.rs`.)

mod support;

use proptest::prelude::*;
use ramway::layout::{BLOCK_OFFSETS, Geometry, HeadLine, RingBlock, RoleLine, TailLine};
use ramway::{ErrorKind, Receiver, Ring, Sender, WaitPolicy};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::Dir;

const CAPACITY: u64 = 4096;

/// A hostile peer's view of a ring's file.
struct Scribbler {
    at: *mut u8,
    len: usize,
    data: usize,
}

impl Scribbler {
    fn open(name: &str) -> Self {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
        let len = file.metadata().unwrap().len() as usize;
        // SAFETY: a fresh mapping of the whole file.
        let at = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        let mut this = Self { at: at.cast(), len, data: 0 };
        this.data = this.u64_at(BLOCK_OFFSETS[0] + offset_of!(Geometry, data_offset)).load(Ordering::SeqCst) as usize;
        this
    }

    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len);
        // SAFETY: in the mapping, which lives as long as this, and aligned.
        unsafe { &*self.at.add(offset).cast() }
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.len);
        // SAFETY: as above.
        unsafe { &*self.at.add(offset).cast() }
    }

    fn tail(&self) -> &AtomicU64 {
        self.u64_at(BLOCK_OFFSETS[0] + offset_of!(RingBlock, tail) + offset_of!(TailLine, tail))
    }

    fn head(&self) -> &AtomicU64 {
        self.u64_at(BLOCK_OFFSETS[0] + offset_of!(RingBlock, head) + offset_of!(HeadLine, head))
    }

    /// A word of the producer's (0) or the consumer's (1) line: wait, flags, epoch, close_seen.
    fn role(&self, role: usize, word: usize) -> &AtomicU32 {
        let lines = [offset_of!(RingBlock, producer), offset_of!(RingBlock, consumer)];
        let words = [
            offset_of!(RoleLine, wait),
            offset_of!(RoleLine, flags),
            offset_of!(RoleLine, epoch),
            offset_of!(RoleLine, close_seen),
        ];
        self.u32_at(BLOCK_OFFSETS[0] + lines[role] + words[word])
    }

    /// The 8 bytes at a position of the ring.
    fn data(&self, position: u64) -> &AtomicU64 {
        self.u64_at(self.data + ((position % CAPACITY) & !7) as usize)
    }
}

impl Drop for Scribbler {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which nothing refers any more.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

struct Victim {
    tx: Sender,
    rx: Receiver,
    scribbler: Scribbler,
    _dir: Dir,
    name: String,
}

/// A ring with a few messages in it.
fn victim(messages: usize) -> Victim {
    let dir = Dir::new();
    let name = dir.at("victim");
    let mut tx = Ring::create(&name).capacity(CAPACITY).wait_policy(WaitPolicy::Block).sender().unwrap();
    let rx = Ring::open(&name).wait_policy(WaitPolicy::Block).receiver().unwrap();
    for i in 0..messages {
        tx.try_send(1, &vec![i as u8; 24 * i]).unwrap();
    }
    Victim { tx, rx, scribbler: Scribbler::open(&name), _dir: dir, name }
}

/// What a handle may say of a peer that lies.
fn is_an_answer(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(kind, Full | Empty | TooLarge | TimedOut | Closed | PeerDead | Corrupt)
}

fn check(result: ramway::Result<()>) -> Option<ErrorKind> {
    let kind = result.err().map(|error| error.kind());
    assert!(kind.is_none_or(is_an_answer), "{kind:?}");
    kind
}

/// Every call of a receiver, and nothing that it gives is larger than what the ring holds.
fn drain(rx: &mut Receiver) -> Option<ErrorKind> {
    let mut end = None;
    let mut total = 0;
    // More messages than that cannot be in there.
    for _ in 0..=CAPACITY / 16 {
        let got = rx.try_recv().map(|message| {
            total += 16 + message.len() as u64;
            // Every byte of it is there to be read.
            std::hint::black_box(message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        });
        end = check(got);
        if end.is_some() {
            break;
        }
    }
    assert!(end.is_some() && total <= CAPACITY, "{total} bytes out of a ring of {CAPACITY}");
    end
}

fn use_both(victim: &mut Victim) {
    let Victim { tx, rx, .. } = victim;
    let mut buffer = Vec::new();
    let _ = check(rx.try_recv_into(&mut buffer).map(drop));
    assert!(buffer.capacity() as u64 <= 2 * CAPACITY);
    let _ = check(rx.try_recv_batch(100).map(|mut batch| {
        let bytes: u64 = batch.iter().map(|message| 16 + message.len() as u64).sum();
        assert!(bytes <= CAPACITY);
    }));
    let end = drain(rx);
    if end == Some(ErrorKind::Corrupt) {
        assert_eq!(check(rx.try_recv().map(drop)), end, "the handle stays dead");
    }
    for len in [0, 100, 4080, 4081, 1 << 20] {
        let end = check(tx.try_send(3, &vec![5; len]));
        if end == Some(ErrorKind::Corrupt) {
            assert_eq!(check(tx.try_send(3, b"")), end, "the handle stays dead");
        }
    }
    let _ = check(tx.try_reserve(64).map(|mut slot| slot.fill(1)));
    let _ = check(tx.flush());
    assert!(tx.len() as u64 <= CAPACITY && rx.len() as u64 <= CAPACITY);
    let _ = (tx.is_peer_alive(), rx.is_peer_alive(), tx.peer_epoch(), rx.peer_epoch(), tx.last_tag());
    let start = Instant::now();
    let _ = check(rx.recv_timeout(Duration::from_millis(1)).map(drop));
    let _ = check(tx.send_timeout(3, &[5; 4000], Duration::from_millis(1)));
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// Numbers that have broken something somewhere.
fn tempting(near: u64) -> Vec<u64> {
    let mut values = vec![0, 1, 15, 16, 17, 4080, 4096, 4097, 8192, 1 << 31, 1 << 32, 1 << 63, u64::MAX, u64::MAX - 15];
    for step in [1, 8, 16, 32, 4080, 4096, 4112, 1 << 20, 1 << 32, 1 << 63] {
        values.extend([near.wrapping_add(step), near.wrapping_sub(step)]);
    }
    values
}

/// A length that is checked against the capacity only lets a reader run ahead of what was published.
#[test]
fn a_length_beyond_what_was_published_is_corrupt_and_one_within_is_not() {
    // One published frame of 16 + 40 bytes, so 64 in all: a length up to 48 lies within.
    for len in (0..=200u64).chain([4080, 4081, 4096, 0x7FFF_FFEF, 0x7FFF_FFF0, 0x8000_0000, 0xFFFF_FFF0, 0xFFFF_FFFF]) {
        let mut victim = victim(0);
        let position = victim.scribbler.tail().load(Ordering::SeqCst);
        victim.tx.try_send(7, &[9; 40]).unwrap();
        victim.scribbler.data(position).store(len | 7 << 32, Ordering::SeqCst);
        match victim.rx.try_recv() {
            Ok(message) => assert_eq!((message.len() as u64, message.type_id(), len <= 48), (len, 7, true)),
            Err(error) => assert_eq!((error.kind(), len <= 48), (ErrorKind::Corrupt, false), "length {len}"),
        }
    }
}

#[test]
fn a_tail_that_cannot_be_is_corrupt() {
    let near = victim(3).scribbler.tail().load(Ordering::SeqCst);
    for value in tempting(near) {
        let mut victim = victim(3);
        let head = victim.scribbler.head().load(Ordering::SeqCst);
        victim.scribbler.tail().store(value, Ordering::SeqCst);
        // What lies between is old bytes, perhaps frames by chance: but nothing that is not there.
        let possible = value.wrapping_sub(head) <= CAPACITY && value.is_multiple_of(16);
        let end = drain(&mut victim.rx);
        if !possible {
            assert_eq!(end, Some(ErrorKind::Corrupt), "tail {value:#x}");
        }
        use_both(&mut victim);
    }
}

#[test]
fn a_head_that_cannot_be_is_corrupt() {
    let near = victim(3).scribbler.head().load(Ordering::SeqCst);
    for value in tempting(near) {
        let mut victim = victim(3);
        let tail = victim.scribbler.tail().load(Ordering::SeqCst);
        victim.scribbler.head().store(value, Ordering::SeqCst);
        // So long that it must look at the head.
        let end = check(victim.tx.try_send(1, &[0; 4080]));
        let possible = tail.wrapping_sub(value) <= tail.wrapping_sub(near) && value.is_multiple_of(16);
        if !possible {
            assert_eq!(end, Some(ErrorKind::Corrupt), "head {value:#x}");
        }
        use_both(&mut victim);
    }
}

#[test]
fn no_word_of_a_role_does_more_than_lie() {
    for role in 0..2 {
        for word in 0..4 {
            for value in [0, 1, 2, 3, 4, 7, 8, 0x8000_0000, u32::MAX] {
                let mut victim = victim(2);
                victim.scribbler.role(role, word).store(value, Ordering::SeqCst);
                use_both(&mut victim);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Write {
    Tail(u64),
    Head(u64),
    TailBy(i64),
    HeadBy(i64),
    Role(usize, usize, u32),
    /// A frame header at so many bytes from the head.
    Frame(u64, u32, u32),
    Data(u64, u64),
    Use,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let near = prop_oneof![Just(0u64), Just(u64::MAX), Just(1 << 31), 0u64..10_000, any::<u64>()];
    let by = prop_oneof![3 => (-300i64..300).prop_map(|by| by * 16), 1 => -10_000i64..10_000];
    let len = prop_oneof![3 => 0u32..5000, 1 => any::<u32>()];
    let write = prop_oneof![
        1 => near.clone().prop_map(Write::Tail),
        1 => near.clone().prop_map(Write::Head),
        4 => by.clone().prop_map(Write::TailBy),
        4 => by.prop_map(Write::HeadBy),
        2 => (0usize..2, 0usize..4, any::<u32>()).prop_map(|(role, word, value)| Write::Role(role, word, value)),
        2 => (0usize..2, 0usize..4, 0u32..8).prop_map(|(role, word, value)| Write::Role(role, word, value)),
        4 => (0u64..20, len, any::<u32>()).prop_map(|(at, len, type_id)| Write::Frame(at * 16, len, type_id)),
        2 => (0u64..CAPACITY, near).prop_map(|(at, value)| Write::Data(at, value)),
        6 => Just(Write::Use),
    ];
    prop::collection::vec(write, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_writes_gets_more_than_an_error(writes in writes(), messages in 0usize..6) {
        let mut victim = victim(messages);
        for write in writes {
            let scribbler = &victim.scribbler;
            match write {
                Write::Tail(value) => scribbler.tail().store(value, Ordering::SeqCst),
                Write::Head(value) => scribbler.head().store(value, Ordering::SeqCst),
                Write::TailBy(by) => drop(scribbler.tail().fetch_add(by as u64, Ordering::SeqCst)),
                Write::HeadBy(by) => drop(scribbler.head().fetch_add(by as u64, Ordering::SeqCst)),
                Write::Role(role, word, value) => scribbler.role(role, word).store(value, Ordering::SeqCst),
                Write::Frame(at, len, type_id) => {
                    let head = scribbler.head().load(Ordering::SeqCst);
                    let header = u64::from(len) | u64::from(type_id) << 32;
                    scribbler.data(head.wrapping_add(at)).store(header, Ordering::SeqCst);
                }
                Write::Data(at, value) => scribbler.data(at).store(value, Ordering::SeqCst),
                Write::Use => use_both(&mut victim),
            }
        }
        use_both(&mut victim);
        // The next holders trust it no more than these did.
        let Victim { tx, rx, name, scribbler, _dir } = victim;
        drop((tx, rx));
        for next in [Ring::open(&name).receiver().map(drop), Ring::open(&name).sender().map(drop)] {
            use ErrorKind::*;
            let kind = next.err().map(|error| error.kind());
            prop_assert!(matches!(kind, None | Some(Corrupt | NotFound)), "{kind:?}");
        }
        drop(scribbler);
    }
}
