//! The protocol over memory of the heap: no mapping and no system call, so that miri can run it (`make miri`), and the thread
//! sanitizer what is between two threads (`make tsan`).
//!
//! The data area here is not mirrored: what lies behind it is memory that nobody writes, of the same size. So a frame that
//! goes across the end is read without leaving the area, as in a real one, and is not sent here.
//!
//! Lossy reads between threads are not here. They read what is overwritten meanwhile, and throw it away: a race by the rules
//! of the language, of which the models show that nothing comes of it (`make loom`).

use super::join::{Seats, Start, View, Wanted, join};
use super::place::{Place, Policy, SideOptions, State, Words};
use super::{Topic, TopicMeta};
use crate::endpoint::state::Rules;
use crate::layout::{
    SLOT_EJECTED, SLOT_GATING, Slot, SubscribersHead, TOPIC_ALIGN_MIN, TOPIC_MAY_EJECT, TopicBlock,
    first_topic_position,
};
use crate::ring::consumer::{Consumer, Reading};
use crate::ring::half::Positions;
use crate::ring::log::Shape;
use crate::ring::producer::Producer;
use crate::segment::SlotLocks;
use crate::sync::{AtomicU64, Ordering};
use crate::{ErrorKind, Result};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

const CAPACITY: u64 = 4096;
const SLOTS: usize = 3;
const RULES: Rules = Rules { endings_are_final: 0, membarrier_capable: 0 };
/// A frame of 64 bytes, of which a whole number fits before the end of the data.
const LEN: usize = 32;

#[repr(C)]
struct Area {
    head: SubscribersHead,
    padding: [u8; crate::layout::SLOTS_OFFSET - size_of::<SubscribersHead>()],
    slots: [Slot; SLOTS],
}

#[repr(C, align(4096))]
struct Data(UnsafeCell<[u8; 2 * CAPACITY as usize]>);

struct Memory {
    block: TopicBlock,
    area: Area,
    data: Data,
    flags: u32,
}

// SAFETY: the protocol, which is what is tested, says who may touch which bytes when.
unsafe impl Sync for Memory {}

/// The locks of all slots, for subscribers that never leave.
struct Locks<'a>(&'a Memory);

impl Seats for Locks<'_> {
    fn take(&mut self, index: u32) -> Result<bool> {
        Ok(State::load(&self.0.area.slots[index as usize]).0 == 0)
    }

    fn give_back(&mut self, _: u32) {}

    fn is_held(&self, index: u32) -> bool {
        State::load(&self.0.area.slots[index as usize]).0 != 0
    }

    fn begin_labelled(&mut self) -> Result<()> {
        Ok(())
    }

    fn end_labelled(&mut self) {}
}

impl Memory {
    fn new(flags: u32) -> Box<Self> {
        // SAFETY: integers all through, atomic ones and plain ones, of which 0 is a value.
        let mut memory: Box<Self> = Box::new(unsafe { std::mem::zeroed() });
        memory.flags = flags;
        let first = first_topic_position(TOPIC_ALIGN_MIN);
        let TopicBlock { positions, claim, starts, .. } = &memory.block;
        for word in [&positions.tail, &positions.last, &claim.0].into_iter().chain(starts.iter()) {
            word.store(first, Ordering::Relaxed);
        }
        memory
    }

    fn words(&self) -> Words {
        // SAFETY: an area with this many slots, which outlives whoever stands on it.
        unsafe { Words::new(NonNull::from(&self.area).cast(), SLOTS as u32, self.flags) }
    }

    fn place(&self, side: SideOptions) -> Place {
        Place::new(self.words(), SlotLocks::all_held(), side)
    }

    fn publisher(&self) -> Result<Producer<Topic>, ErrorKind> {
        let place = self.place(SideOptions::Publisher { eject_after: 0, timestamps: false });
        // SAFETY: used while `self` lives, and there is one at a time; two areas of the capacity, one behind the other.
        unsafe { Producer::new(&self.block, self.data(), CAPACITY, TOPIC_ALIGN_MIN, &place, RULES) }
    }

    fn data(&self) -> *mut u8 {
        self.data.0.get().cast()
    }

    fn subscriber(&self, policy: Policy, start: Start) -> Result<Consumer<Topic>> {
        let (block, data) = (&raw const self.block, self.data());
        let view = View { block, words: self.words(), data, capacity: CAPACITY, align: TOPIC_ALIGN_MIN };
        let wanted = Wanted { policy, start, label: None, durable: false, writable: true, membarrier_capable: false };
        let joined = join(&view, &wanted, &mut Locks(self))?;
        let place = self.place(SideOptions::Subscriber(joined));
        // SAFETY: as above; each subscriber has a slot of its own.
        unsafe { Consumer::new(block, data, CAPACITY, TOPIC_ALIGN_MIN, &place, RULES) }.map_err(Into::into)
    }
}

/// Sends one message that says `value` in each byte.
fn send(tx: &mut Producer<Topic>, value: u64) -> Result<(), ErrorKind> {
    let to = tx.try_reserve(LEN as u64)?;
    // SAFETY: reserved just now.
    unsafe {
        to.write_bytes(value as u8, LEN);
        tx.frame(to, LEN as u64, value as u32, value, value.is_multiple_of(2))?;
    }
    tx.publish();
    Ok(())
}

/// Receives one message, checks it and gives it back.
fn recv(rx: &mut Consumer<Topic>) -> Result<Option<TopicMeta>, ErrorKind> {
    let Some(frame) = rx.next_frame()? else { return Ok(None) };
    // SAFETY: checked by `next_frame`, and ours until it is released.
    let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
    assert!(bytes.iter().all(|byte| *byte == frame.tag as u8));
    assert_eq!((frame.type_id, frame.tag), (frame.tag as u32, frame.stamp.seq));
    rx.release();
    Ok(Some(Topic::meta(&frame)))
}

fn number(rx: &mut Consumer<Topic>) -> Option<u64> {
    recv(rx).unwrap().map(|meta| meta.seq)
}

#[test]
fn miri_each_policy_over_several_laps() {
    for flags in [0, TOPIC_MAY_EJECT] {
        let memory = Memory::new(flags);
        let mut tx = memory.publisher().unwrap();
        let mut reliable = memory.subscriber(Policy::Reliable, Start::Oldest).unwrap();
        let mut lossy = memory.subscriber(Policy::Lossy, Start::Now).unwrap();
        let mut latest = memory.subscriber(Policy::Latest, Start::Now).unwrap();
        for seq in 1..200 {
            send(&mut tx, seq).unwrap();
            assert_eq!(number(&mut reliable), Some(seq));
            if seq % 7 == 0 {
                (seq - 6..=seq).for_each(|seq| assert_eq!(number(&mut lossy), Some(seq)));
                assert_eq!((number(&mut latest), number(&mut latest)), (Some(seq), None));
            }
        }
        // Nobody but the reliable one is waited for: a lap and more is lost to the other one.
        for seq in 200..400 {
            send(&mut tx, seq).unwrap();
            assert_eq!(number(&mut reliable), Some(seq));
        }
        let meta = recv(&mut lossy).unwrap().unwrap();
        assert!(meta.lost > 100 && meta.seq == 197 + meta.lost, "{meta:?}");
        (meta.seq + 1..400).for_each(|seq| assert_eq!(number(&mut lossy), Some(seq)));
        // The one that comes now begins with the history.
        let mut late = memory.subscriber(Policy::Lossy, Start::History(5)).unwrap();
        (395..400).for_each(|seq| assert_eq!(number(&mut late), Some(seq)));
        assert_eq!(number(&mut late), None);
    }
}

#[test]
fn miri_a_slow_reliable_subscriber_is_waited_for() {
    let memory = Memory::new(0);
    let mut tx = memory.publisher().unwrap();
    let mut slow = memory.subscriber(Policy::Reliable, Start::Oldest).unwrap();
    let mut next = 1;
    for round in 0..5 {
        let mut sent = next;
        while send(&mut tx, sent).is_ok() {
            sent += 1;
        }
        assert!(sent - next >= CAPACITY / 64 - 1, "round {round}");
        // In place, however much is sent meanwhile.
        let held: Vec<_> = (0..10).map(|_| slow.next_frame().unwrap().unwrap()).collect();
        assert_eq!(send(&mut tx, sent), Err(ErrorKind::Full));
        for (frame, seq) in held.iter().zip(next..) {
            // SAFETY: not released before the release below.
            let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
            assert!(frame.stamp.seq == seq && bytes.iter().all(|byte| *byte == seq as u8));
        }
        slow.release();
        (next + 10..sent).for_each(|seq| assert_eq!(number(&mut slow), Some(seq)));
        next = sent;
    }
}

#[test]
fn miri_an_ejection_between_two_messages() {
    let memory = Memory::new(TOPIC_MAY_EJECT);
    let mut tx = memory.publisher().unwrap();
    let mut slow = memory.subscriber(Policy::Reliable, Start::Oldest).unwrap();
    (1..=3).for_each(|seq| send(&mut tx, seq).unwrap());
    let first = slow.next_frame().unwrap().unwrap();
    // What the publisher does to one that has blocked it for too long.
    let slot = &memory.area.slots[0];
    let state = State::load(slot);
    state.swap(slot, State(state.0 & !SLOT_GATING | SLOT_EJECTED)).unwrap();
    (4..=200).for_each(|seq| send(&mut tx, seq).unwrap());
    // SAFETY: a copy, which stays until it is released.
    let bytes = unsafe { std::slice::from_raw_parts(first.data, first.len) };
    assert!(bytes.iter().all(|byte| *byte == 1));
    assert!(matches!(slow.next_frame(), Ok(None) | Err(ErrorKind::Lagged)));
    slow.release();
    let lost = Topic::take_pending(&mut slow).and_then(|lagged| lagged.lost()).unwrap();
    assert!(lost > 100);
    (lost + 2..=200).for_each(|seq| assert_eq!(number(&mut slow), Some(seq)));
}

#[test]
fn miri_two_threads() {
    struct Moved<T>(T);
    // SAFETY: the raw pointers in there lead to `memory`, which outlives the thread.
    unsafe impl<T> Send for Moved<T> {}
    for flags in [0, TOPIC_MAY_EJECT] {
        let memory = Memory::new(flags);
        let mut tx = memory.publisher().unwrap();
        let total = if cfg!(miri) { 150 } else { 20_000 };
        let readers = [(); 2].map(|()| memory.subscriber(Policy::Reliable, Start::Oldest).unwrap());
        let tx = Moved(&mut tx);
        std::thread::scope(|scope| {
            let mut threads = vec![scope.spawn(move || {
                let Moved(tx) = { tx };
                for value in 1..=total {
                    while send(tx, value) == Err(ErrorKind::Full) {
                        std::thread::yield_now();
                    }
                }
            })];
            for reader in readers {
                let reader = Moved(reader);
                threads.push(scope.spawn(move || {
                    let Moved(mut reader) = { reader };
                    for value in 1..=total {
                        loop {
                            match number(&mut reader) {
                                Some(seq) => break assert_eq!(seq, value),
                                None => std::thread::yield_now(),
                            }
                        }
                    }
                }));
            }
            // The sanitizer does not see the standard library's fence where a handle is dropped that was not joined.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// Whatever is in the words that are shared: no access outside of the memory, no overflow.
#[test]
fn miri_no_word_leads_outside() {
    let values = [0, 1, 31, 32, CAPACITY - 32, CAPACITY, 1 << 31, 1 << 32, 1 << 63, u64::MAX - 31, u64::MAX];
    let words = |memory: &Memory| -> Vec<*const AtomicU64> {
        let TopicBlock { positions, claim, starts, .. } = &memory.block;
        let slot = &memory.area.slots[0];
        let mut words: Vec<*const AtomicU64> = vec![&positions.tail, &positions.last, &claim.0];
        words.extend([&raw const starts[0], &raw const starts[7], &raw const *memory.area.head.word]);
        words.extend([&raw const slot.cursor, &raw const slot.state, &raw const slot.lost, &raw const slot.eject_seq]);
        // The length and the number of the next frame to be read.
        words.extend([0, 16].map(|at| memory.data().wrapping_add(at + 3 * 64).cast_const().cast()));
        words
    };
    for flags in [0, TOPIC_MAY_EJECT] {
        for word in 0..words(&Memory::new(flags)).len() {
            for (case, value) in values.into_iter().enumerate() {
                // Miri takes its time for each: one in eight there.
                if cfg!(miri) && !(word + 3 * case + 5 * flags as usize).is_multiple_of(8) {
                    continue;
                }
                let memory = Memory::new(flags);
                let mut tx = memory.publisher().unwrap();
                let mut readers =
                    [(Policy::Reliable, Start::Oldest), (Policy::Lossy, Start::Oldest), (Policy::Latest, Start::Now)]
                        .map(|(policy, start)| memory.subscriber(policy, start).unwrap());
                (1..=7).for_each(|seq| send(&mut tx, seq).unwrap());
                // SAFETY: one of the words above, aligned, which nobody accesses without atomics at this moment.
                unsafe { (*words(&memory)[word]).store(value, Ordering::Relaxed) };
                for _ in 0..3 {
                    for reader in &mut readers {
                        if let Ok(Some(frame)) = reader.next_frame() {
                            assert!(frame.len as u64 <= CAPACITY);
                            // SAFETY: what every user of a frame may do.
                            let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.len) };
                            std::hint::black_box(bytes.iter().fold(0u8, |sum, byte| sum ^ byte));
                        }
                        reader.release();
                        let _ = reader.skip_to_newest();
                    }
                    let _ = send(&mut tx, 8);
                }
                let _ = memory.publisher().map(|mut tx| send(&mut tx, 9));
                for start in [Start::Oldest, Start::History(3), Start::AfterSeq(2), Start::Again(4)] {
                    let _ = memory.subscriber(Policy::Lossy, start);
                }
            }
        }
    }
}
