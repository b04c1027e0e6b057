//! One ring, with everything that the format had to decide as a constant of its type.

use crate::shared::Shared;
use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};

/// How a frame becomes visible.
#[allow(
    non_upper_case_globals,
    reason = "named like the variants they stand for: a stable Rust has no enum const parameters"
)]
pub mod commit {
    /// A position of its own, stored after the frames.
    pub const Positions: u8 = 0;
    /// A word in the frame's header that says where and in which lap it was written.
    pub const LapStamp: u8 = 1;
    /// A word in the frame's header that was zero until then; each frame zeroes the next one's.
    pub const Terminator: u8 = 2;
}

/// Where the producer notes the end and the tag of its last frame, for its successor after a crash.
#[allow(non_upper_case_globals, reason = "as above")]
pub mod marks {
    /// Nowhere.
    pub const Absent: u8 = 0;
    /// In `tail`'s line, which the receiver polls.
    pub const WithTail: u8 = 1;
    /// In a line that only the producer touches.
    pub const OwnLine: u8 = 2;
}

/// What the implementation may do without a change of the format; any sum of these.
#[allow(non_upper_case_globals, reason = "as above")]
pub mod hint {
    pub const None: u8 = 0;
    /// After a publication the sender asks for the next frame's line in order to write to it.
    pub const OwnNext: u8 = 1;
    /// While the receiver polls `tail` it also asks for the line that the next frame will be in.
    pub const FetchFrame: u8 = 2;
    pub const Both: u8 = 3;
    /// The receiver asks for the frame's line right before each further look, so that both lines travel together.
    pub const FetchWithLook: u8 = 4;
}

/// Where the waiting receiver's word is, which the sender reads after every publication.
#[allow(non_upper_case_globals, reason = "as above")]
pub mod wait {
    /// Not read at all.
    pub const Unread: u8 = 0;
    /// In a line of its own, with the flags.
    pub const OwnLine: u8 = 1;
    /// Beside `head`.
    pub const WithHead: u8 = 2;
}

pub trait Shape {
    const NAME: &'static str;
    const HEADER: usize;
    const ALIGN: usize;
    const LINE: usize;
    const COMMIT: u8;
    const MARKS: u8;
    const HINT: u8;
    /// PAUSEs after the first look that finds nothing, after each of the next four, and after each later one.
    const PAUSES: (u8, u8, u8);
    const WAIT: u8;
    const SEQ_CST: bool;
}

/// Bytes of every payload.
const PAYLOAD: usize = 32;

fn frame<S: Shape>() -> u64 {
    (S::HEADER + PAYLOAD).next_multiple_of(S::ALIGN) as u64
}

fn words<S: Shape>(shared: &Shared, direction: usize) -> (&AtomicU64, &AtomicU64) {
    (shared.word(direction * 2048), shared.word(direction * 2048 + S::LINE))
}

/// The two words that a publication reads: the futex word and the flags beside it.
fn peer_words<S: Shape>(shared: &Shared, direction: usize) -> &[AtomicU32; 2] {
    let offset = direction * 2048 + if S::WAIT == wait::WithHead { S::LINE + 8 } else { 3 * S::LINE };
    // SAFETY: the same eight bytes, only ever read as two atomic halves while a burst runs.
    unsafe { &*std::ptr::from_ref(shared.word(offset)).cast() }
}

struct Producer<'a, S> {
    shared: &'a Shared,
    direction: usize,
    tail: u64,
    head_seen: u64,
    turn: usize,
    tag: u64,
    woken: u64,
    shape: std::marker::PhantomData<S>,
}

impl<'a, S: Shape> Producer<'a, S> {
    fn new(shared: &'a Shared, direction: usize, start: u64) -> Self {
        Self { shared, direction, tail: start, head_seen: start, turn: 0, tag: 0, woken: 0, shape: Default::default() }
    }

    /// Writes one frame and, unless positions are used, makes it visible.
    #[inline(always)]
    fn write(&mut self, payload: &[u64; 4]) {
        // The terminator after the frame needs its room too.
        let need = frame::<S>() + if S::COMMIT == commit::Terminator { S::ALIGN as u64 } else { 0 };
        while self.shared.capacity as u64 - self.tail.wrapping_sub(self.head_seen) < need {
            let (tail, head) = words::<S>(self.shared, self.direction);
            if S::COMMIT == commit::Positions && tail.load(Relaxed) != self.tail {
                self.publish();
            }
            // Acquire: the receiver's reads of the released bytes come before this side's next writes to them.
            self.head_seen = head.load(Acquire);
            if self.shared.capacity as u64 - self.tail.wrapping_sub(self.head_seen) < need {
                spin_loop();
            }
        }
        let at = self.shared.at(self.direction, self.tail);
        self.tag += 1;
        let first = PAYLOAD as u64 | 7 << 32;
        // SAFETY: `need` bytes from `at` are free, contiguous in the double mapping, and nobody reads them before
        // they are published; the first word is atomic because an inline commit is polled.
        unsafe {
            std::ptr::copy_nonoverlapping(payload.as_ptr().cast(), at.add(S::HEADER), PAYLOAD);
            if S::HEADER >= 16 {
                at.add(8).cast::<u64>().write(self.tag);
            }
            let word = &*at.cast::<AtomicU64>();
            match S::COMMIT {
                commit::Positions => at.cast::<u64>().write(first),
                // Release: the payload before the word that shows it.
                commit::LapStamp => word.store(stamp(self.tail), Release),
                _ => {
                    at.add(frame::<S>() as usize).cast::<u64>().write(0);
                    word.store(first, Release);
                }
            }
        }
        self.tail = self.tail.wrapping_add(frame::<S>());
    }

    #[inline(always)]
    fn publish(&mut self) {
        if S::COMMIT == commit::Positions {
            if S::MARKS != marks::Absent {
                let line = if S::MARKS == marks::OwnLine { 4 * S::LINE } else { 8 };
                let mark = self.direction * 2048 + line + 16 * self.turn;
                self.shared.word(mark).store(self.tail, Relaxed);
                self.shared.word(mark + 8).store(self.tag, Relaxed);
                self.turn ^= 1;
            }
            let (tail, _) = words::<S>(self.shared, self.direction);
            // Release: frames and marks before the position that shows them.
            tail.store(self.tail, if S::SEQ_CST { SeqCst } else { Release });
        }
        if S::WAIT != wait::Unread {
            compiler_fence(SeqCst);
            let [word, flags] = peer_words::<S>(self.shared, self.direction);
            if word.load(Relaxed) != 0 || flags.load(Relaxed) != 0 {
                self.woken += 1;
            }
        }
        if S::HINT & hint::OwnNext != 0 {
            own(self.shared.at(self.direction, self.tail));
        }
    }
}

/// Differs from every payload word that is sent here and from its own value a lap ago. A format would need more: the
/// bytes of an old payload can be anything.
fn stamp(position: u64) -> u64 {
    (position >> 3) << 32 | u64::from(STAMPED) | PAYLOAD as u64
}

const STAMPED: u32 = 1 << 31;

struct Consumer<'a, S> {
    shared: &'a Shared,
    direction: usize,
    head: u64,
    tail_seen: u64,
    shape: std::marker::PhantomData<S>,
}

impl<'a, S: Shape> Consumer<'a, S> {
    fn new(shared: &'a Shared, direction: usize, start: u64) -> Self {
        Self { shared, direction, head: start, tail_seen: start, shape: Default::default() }
    }

    /// Whether a frame is there; looks at shared memory only when the last look does not answer that.
    #[inline(always)]
    fn look(&mut self) -> bool {
        if S::COMMIT == commit::Positions {
            if self.tail_seen == self.head {
                // Acquire: pairs with the publication, so the frames are seen with the position.
                self.tail_seen = words::<S>(self.shared, self.direction).0.load(Acquire);
            }
            self.tail_seen != self.head
        } else {
            // SAFETY: inside the mapping and a multiple of 8; polled atomically.
            let word = unsafe { &*self.shared.at(self.direction, self.head).cast::<AtomicU64>() }.load(Acquire);
            if S::COMMIT == commit::LapStamp { word == stamp(self.head) } else { word != 0 }
        }
    }

    /// Waits for one frame and reads all of it.
    #[inline(always)]
    fn read(&mut self) -> [u64; 4] {
        let (mut pauses, mut looks) = (S::PAUSES.0, 0);
        while !self.look() {
            if S::HINT & hint::FetchFrame != 0 {
                fetch(self.shared.at(self.direction, self.head));
            }
            for _ in 0..pauses {
                spin_loop();
            }
            looks += 1;
            pauses = if looks <= 4 { S::PAUSES.1 } else { S::PAUSES.2 };
            if S::HINT & hint::FetchWithLook != 0 {
                fetch(self.shared.at(self.direction, self.head));
            }
        }
        self.take()
    }

    /// Reads all of the frame that [`look`](Self::look) found.
    #[inline(always)]
    fn take(&mut self) -> [u64; 4] {
        let at = self.shared.at(self.direction, self.head);
        // SAFETY: the frame is published and not yet released, so nobody writes to it.
        let (len, payload) =
            unsafe { (at.cast::<u32>().read(), at.add(S::HEADER).cast::<[u64; 4]>().read_unaligned()) };
        let len = if S::COMMIT == commit::LapStamp { len & !STAMPED } else { len };
        assert!(len as usize == PAYLOAD);
        self.head = self.head.wrapping_add(frame::<S>());
        payload
    }

    #[inline(always)]
    fn release(&self) {
        // Release: the reads above come before the sender's next writes to the same bytes.
        words::<S>(self.shared, self.direction).1.store(self.head, Release);
    }
}

/// Asks for a line in order to write to it.
#[inline(always)]
fn own(line: *const u8) {
    // SAFETY: a hint; it reads and writes nothing that a program can see.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
    };
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
    };
}

/// Asks for a line in order to read it.
#[inline(always)]
fn fetch(line: *const u8) {
    // SAFETY: a hint; it reads and writes nothing that a program can see.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast())
    };
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
    };
}

fn payload(n: u64) -> [u64; 4] {
    [n, 2 * n, 3 * n, 4 * n]
}

fn sum(payload: [u64; 4]) -> u64 {
    payload.iter().fold(0, |a, b| a.wrapping_add(*b))
}

#[inline(never)]
pub fn send_all<S: Shape, const BATCH: u64>(shared: &Shared, start: u64, messages: u64) {
    let mut producer = Producer::<S>::new(shared, 0, start);
    for n in 1..=messages {
        producer.write(&payload(n));
        if n % BATCH == 0 || n == messages {
            producer.publish();
        }
    }
    shared.end().store(producer.tail, Relaxed);
    assert!(producer.woken == 0);
}

#[inline(never)]
pub fn receive_all<S: Shape, const BATCH: u64>(shared: &Shared, start: u64, messages: u64) {
    let mut consumer = Consumer::<S>::new(shared, 0, start);
    let (mut n, mut total) = (0, 0u64);
    while n < messages {
        total = total.wrapping_add(sum(consumer.read()));
        n += 1;
        if BATCH > 1 {
            // A batch is what is there, at most 32, released as one.
            let mut more = BATCH - 1;
            while more > 0 && n < messages && consumer.look() {
                total = total.wrapping_add(sum(consumer.take()));
                n += 1;
                more -= 1;
            }
        }
        consumer.release();
    }
    assert!(total == 10 * (messages * (messages + 1) / 2), "the bytes read are not the bytes sent");
}

#[inline(never)]
pub fn ping<S: Shape>(shared: &Shared, start: u64, trips: u64) {
    let (mut out, mut back) = (Producer::<S>::new(shared, 0, start), Consumer::<S>::new(shared, 1, start));
    for n in 1..=trips {
        out.write(&payload(n));
        out.publish();
        assert!(sum(back.read()) == sum(payload(n)));
        back.release();
    }
    shared.end().store(out.tail, Relaxed);
}

#[inline(never)]
pub fn echo<S: Shape>(shared: &Shared, start: u64, trips: u64) {
    let (mut input, mut back) = (Consumer::<S>::new(shared, 0, start), Producer::<S>::new(shared, 1, start));
    for _ in 0..trips {
        let payload = input.read();
        back.write(&payload);
        input.release();
        back.publish();
    }
}
