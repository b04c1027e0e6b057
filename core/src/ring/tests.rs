//! The protocol over memory of the heap: no mapping and no system call, so that miri can run it (`make miri`). Miri
//! checks every access against Rust's aliasing rules and the memory model, which a mapping shared by processes hides.
//!
//! The data area here is not mirrored. So every payload is as long as makes its frame divide the capacity.

use super::consumer::Consumer;
use super::half::Positions;
use super::log::Ring;
use super::producer::{Producer, Writing};
use crate::ErrorKind;
use crate::endpoint::state::Rules;
use crate::layout::{Geometry, HeadLine, LastTag, Line, RingBlock, RoleLine, TailLine, first_position, frame_size};
use crate::segment::Role;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::cell::UnsafeCell;

const CAPACITY: u64 = 512;
const RULES: Rules = Rules { endings_are_final: 1, membarrier_capable: 0 };

#[repr(align(4096))]
struct Data(UnsafeCell<[u8; CAPACITY as usize]>);

struct Memory {
    block: RingBlock,
    data: Data,
}

// SAFETY: the protocol, which is what is tested, says who may touch which bytes when.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(align: u32) -> Box<Self> {
        let first = first_position(align);
        let record = || LastTag { end: AtomicU64::new(0), tag: AtomicU64::new(0) };
        let zero = || AtomicU32::new(0);
        let role = || Line(RoleLine { wait: zero(), flags: zero(), epoch: zero(), close_seen: zero() });
        Box::new(Self {
            block: RingBlock {
                geometry: Line(Geometry { data_offset: 4096, capacity: CAPACITY, len: 0, align, reserved: 0 }),
                tail: Line(TailLine { tail: AtomicU64::new(first), last_tags: [record(), record()] }),
                head: Line(HeadLine { head: AtomicU64::new(first) }),
                producer: role(),
                consumer: role(),
            },
            data: Data(UnsafeCell::new([0; CAPACITY as usize])),
        })
    }

    fn ends(&self, align: u32) -> (Producer, Consumer) {
        let data = self.data.0.get().cast::<u8>();
        // SAFETY: both halves are used while `self` lives, and there is one of each. The bytes beyond the capacity are
        // never touched, because no frame here goes across the end.
        unsafe {
            (
                Producer::new(&self.block, data, CAPACITY, align, &(), RULES).unwrap(),
                Consumer::new(&self.block, data, CAPACITY, align, &(), RULES).unwrap(),
            )
        }
    }
}

/// Sends one message of `len` bytes that say `value`.
fn send(tx: &mut Producer, len: usize, value: u64) -> Result<(), ErrorKind> {
    let to = tx.try_reserve(len as u64)?;
    // SAFETY: reserved just now. By turns in one step and in two.
    unsafe {
        to.write_bytes(value as u8, len);
        tx.frame(to, len as u64, value as u32, value, value.is_multiple_of(2))?;
    }
    tx.publish();
    Ok(())
}

/// Receives one message, checks it and gives it back.
fn recv(rx: &mut Consumer, align: u32) -> Result<Option<u64>, ErrorKind> {
    let Some(frame) = rx.next_frame()? else { return Ok(None) };
    assert_eq!(frame.data as usize % align as usize, 0);
    // SAFETY: checked by `next_frame`, and ours until it is released.
    let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
    assert!(bytes.iter().all(|byte| *byte == frame.tag as u8));
    assert_eq!(frame.type_id, frame.tag as u32);
    rx.release();
    Ok(Some(frame.tag))
}

#[test]
fn miri_messages_go_round_and_round() {
    // A frame that begins before the end of an unmirrored area must also end there: so with an alignment of 16 only.
    for len in [0, 16, 48, 112] {
        let memory = Memory::new(16);
        let (mut tx, mut rx) = memory.ends(16);
        let room = CAPACITY / frame_size(len as u64, 16);
        let (mut sent, mut received) = (0, 0);
        while received < 4 * room {
            while send(&mut tx, len, sent).is_ok() {
                sent += 1;
            }
            assert_eq!(sent - received, room);
            for _ in 0..room / 2 + 1 {
                assert_eq!(recv(&mut rx, 16), Ok(Some(received)));
                received += 1;
            }
        }
        assert_eq!(tx.last_tag(), Some(sent - 1));
    }
}

#[test]
fn miri_a_batch_is_held_while_more_is_sent() {
    let memory = Memory::new(16);
    let (mut tx, mut rx) = memory.ends(16);
    for value in 0..4 {
        send(&mut tx, 48, value).unwrap();
    }
    let held: Vec<_> = (0..3).map(|_| rx.next_frame().unwrap().unwrap()).collect();
    for value in 4..8 {
        send(&mut tx, 48, value).unwrap();
    }
    assert_eq!(send(&mut tx, 48, 8), Err(ErrorKind::Full));
    for (value, frame) in held.iter().enumerate() {
        // SAFETY: not released before the release below.
        let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
        assert!(bytes.iter().all(|byte| *byte == value as u8));
    }
    rx.release();
    for value in 8..11 {
        send(&mut tx, 48, value).unwrap();
    }
    for value in 3..11 {
        assert_eq!(recv(&mut rx, 16), Ok(Some(value)));
    }
    assert_eq!(recv(&mut rx, 16), Ok(None));
}

#[test]
fn miri_two_threads() {
    let memory = Memory::new(16);
    let (mut tx, mut rx) = memory.ends(16);
    struct Moved<T>(T);
    // SAFETY: the raw pointers in there lead to `memory`, which outlives the thread.
    unsafe impl<T> Send for Moved<T> {}
    let total = if cfg!(miri) { 60 } else { 20_000 };
    let tx = Moved(&mut tx);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let Moved(tx) = { tx };
            for value in 0..total {
                while send(tx, 112, value) == Err(ErrorKind::Full) {
                    std::thread::yield_now();
                }
            }
        });
        for value in 0..total {
            loop {
                match recv(&mut rx, 16).unwrap() {
                    Some(got) => break assert_eq!(got, value),
                    None => std::thread::yield_now(),
                }
            }
        }
    });
}

#[test]
fn miri_no_position_and_no_length_leads_outside() {
    let interesting = [0, 1, 15, 16, 496, 512, 528, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 15, u64::MAX];
    for value in interesting {
        let memory = Memory::new(16);
        let (mut tx, mut rx) = memory.ends(16);
        send(&mut tx, 48, 1).unwrap();
        memory.block.tail.tail.store(value, Ordering::Relaxed);
        while let Ok(Some(frame)) = rx.next_frame() {
            assert!(frame.len as u64 <= CAPACITY - 16);
        }
        // Inside the ring lies an old frame, or none: zeros are a message of length 0.
        let possible = value <= CAPACITY && value % 16 == 0;
        assert!(possible || rx.state.check() == Err(ErrorKind::Corrupt), "tail {value:#x}");

        let memory = Memory::new(16);
        let (mut tx, _) = memory.ends(16);
        for i in 0..8 {
            send(&mut tx, 48, i).unwrap();
        }
        memory.block.head.head.store(value, Ordering::Relaxed);
        let answer = tx.try_reserve(48);
        let possible = value <= CAPACITY && value % 16 == 0;
        assert_eq!(answer == Err(ErrorKind::Corrupt), !possible, "head {value:#x}");

        let memory = Memory::new(16);
        let (mut tx, mut rx) = memory.ends(16);
        send(&mut tx, 48, 1).unwrap();
        // SAFETY: nobody else is at it now.
        unsafe { memory.data.0.get().cast::<u64>().write(value) };
        match rx.next_frame() {
            Ok(frame) => assert!(frame.unwrap().len <= 48),
            Err(kind) => assert_eq!(kind, ErrorKind::Corrupt),
        }
    }
}

/// A consumer that sleeps and a producer that wakes it, over one mapping and with fences: what a thread sanitizer can
/// follow (`make tsan`).
#[test]
fn two_threads_that_sleep() {
    use crate::endpoint::word::RoleWord;
    use crate::wait::{Deadline, WaitPolicy, Waiting};
    let memory = Memory::new(16);
    let (mut tx, mut rx) = memory.ends(16);
    struct Moved<T>(T);
    // SAFETY: the raw pointers in there lead to `memory`, which outlives the thread.
    unsafe impl<T> Send for Moved<T> {}
    let total = if cfg!(miri) { 20 } else { 5_000 };
    // SAFETY: the block outlives both threads.
    let words = unsafe {
        let word = |role| RoleWord::new(&memory.block, role, false);
        (word(Role::Producer), word(Role::Consumer))
    };
    let tx = Moved((&mut tx, words.0));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let Moved((tx, word)) = { tx };
            let mut waiting = Waiting::new(WaitPolicy::Block);
            for value in 0..total {
                while send(tx, 112, value) == Err(ErrorKind::Full) {
                    let size = frame_size(112, 16);
                    let ready = || Ring::fits_after_refresh(tx, size).map_err(Into::into);
                    waiting.until(&word, None, Deadline::NEVER, ready, |_| Ok(())).unwrap();
                }
            }
        });
        let mut waiting = Waiting::new(WaitPolicy::Block);
        for value in 0..total {
            let ready = || rx.has_frame().map_err(Into::into);
            waiting.until(&words.1, None, Deadline::NEVER, ready, |_| Ok(())).unwrap();
            assert_eq!(recv(&mut rx, 16), Ok(Some(value)));
        }
    });
}

#[test]
fn the_first_message_that_a_thread_has_sent_since_it_last_waited_counts() {
    use super::sent::take;
    let (mut tx, _rx) = Ring::pair(4096).unwrap();
    take();
    tx.send(0, b"one").unwrap();
    tx.send(0, &[0; 100]).unwrap();
    assert_eq!((take(), take()), (32, 0));
    tx.send(0, &[0; 100]).unwrap();
    assert_eq!(take(), 128);
}
