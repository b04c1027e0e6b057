//! A lock-free ring by hand, one producer and one consumer, in a memfd that both sides inherit: what Ramway's ring is made
//! of, without names, roles, checks of what the other side says, or anyone who notices that it died.
//!
//! Two positions that only grow, each in a line of its own, each stored by one side with release; each side keeps its own
//! and the last seen one of the other. The data area is mapped twice in a row, so every message is contiguous. A frame
//! is a 16-byte header and the payload, rounded up to 16.

use crate::Result;
use crate::area::{futex_wait, futex_wake};
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

pub(crate) struct HandRing;

const HEADER: u64 = 16;
const PAGE: usize = 4096;

/// PAUSEs before the first poll of a wait: a consumer at the producer's heels would fetch the line of its position for
/// every single message.
const FIRST_PAUSES: u32 = 3;
/// Looks of a hybrid wait before it sleeps: about 50 µs, what a sleep and a wake-up cost.
const POLLS_HYBRID: u32 = 2_000;
/// Polls between two calls of `sched_yield`, which matter only where both sides share a processor.
const POLLS_PER_YIELD: u32 = 1 << 16;
/// Yields without progress after which the other process counts as gone: far beyond any preemption.
const YIELDS_MAX: u32 = 1 << 16;
/// Sleeps of at most a second each, then the other process is gone.
const SLEEPS_MAX: u32 = 60;

/// One word to a line, or rather to the two lines that the prefetcher fetches together.
#[repr(C, align(128))]
struct Line<T>(T);

/// The first page.
#[repr(C)]
struct Words {
    /// Up to where the producer has published.
    tail: Line<AtomicU64>,
    /// Up to where the consumer has released.
    head: Line<AtomicU64>,
    /// 1: the consumer sleeps on this word until there is a message, or is about to.
    for_data: Line<AtomicU32>,
    /// 1: the producer sleeps on this word until there is room, or is about to.
    for_room: Line<AtomicU32>,
}

/// A mapped ring: a page of words, and the data twice in a row.
struct Memory {
    start: *mut u8,
    capacity: u64,
    fd: OwnedFd,
}

impl Memory {
    fn new(capacity: u64) -> Result<Self> {
        let capacity = capacity.next_power_of_two().max(PAGE as u64);
        // SAFETY: the call makes a descriptor, which is then owned here.
        let fd = unsafe {
            let fd = libc::memfd_create(c"ramway-bench-ring".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: only sets the size of that file.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), (PAGE as u64 + capacity) as i64) } != 0 {
            return Err(Error::last_os_error().into());
        }
        Self::map(fd, capacity)
    }

    fn map(fd: OwnedFd, capacity: u64) -> Result<Self> {
        let (raw, data) = (fd.as_raw_fd(), capacity as usize);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let shared = libc::MAP_SHARED | libc::MAP_POPULATE | libc::MAP_FIXED;
        let (nothing, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: addresses wherever the kernel finds them, and over exactly those the file: its `PAGE + capacity`
        // bytes, then its data once more.
        unsafe {
            let start = libc::mmap(null_mut(), PAGE + 2 * data, nothing, private, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(Error::last_os_error().into());
            }
            let start = start.cast::<u8>();
            let memory = Self { start, capacity, fd };
            let first = libc::mmap(start.cast(), PAGE + data, access, shared, raw, 0);
            let again = libc::mmap(start.add(PAGE + data).cast(), data, access, shared, raw, PAGE as i64);
            if first == libc::MAP_FAILED || again == libc::MAP_FAILED {
                return Err(Error::last_os_error().into());
            }
            Ok(memory)
        }
    }

    #[inline(always)]
    fn words(&self) -> &Words {
        // SAFETY: the first page, which is zero at first and which nobody accesses but by these atomics.
        unsafe { &*self.start.cast() }
    }

    /// Where the frame at a position begins: `capacity` bytes from there are mapped in a row.
    #[inline(always)]
    fn at(&self, position: u64) -> *mut u8 {
        // SAFETY: below `PAGE + capacity`.
        unsafe { self.start.add(PAGE + (position & (self.capacity - 1)) as usize) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` has mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), PAGE + 2 * self.capacity as usize) };
    }
}

/// How a side sleeps while a word is 1.
pub(super) trait Sleep {
    /// Returns when somebody has woken the word, when it is not 1, or for any other reason.
    fn sleep(&mut self, word: &AtomicU32) -> Result<()>;
}

/// FUTEX_WAIT.
pub(super) struct Futex;

impl Sleep for Futex {
    fn sleep(&mut self, word: &AtomicU32) -> Result<()> {
        futex_wait(word, 1);
        Ok(())
    }
}

struct Producer {
    memory: Memory,
    /// End of the last frame, published or not.
    tail: u64,
    /// The consumer's position as last seen.
    head: u64,
}

struct Consumer {
    memory: Memory,
    /// Up to where it has released.
    head: u64,
    /// The producer's position as last seen.
    tail: u64,
}

/// A ring each way. `S` is how it waits for a message.
pub(super) struct Ends<S> {
    out: Producer,
    input: Consumer,
    sleep: S,
    /// Looks before it sleeps; `None`: it never does.
    polls: Option<u32>,
}

#[inline(always)]
fn frame(size: usize) -> u64 {
    (HEADER + size as u64).next_multiple_of(HEADER)
}

/// Waits until `ready`, first by polling, then asleep on `word`.
#[inline(always)]
fn wait(polls: Option<u32>, word: &AtomicU32, sleep: &mut impl Sleep, mut ready: impl FnMut() -> bool) -> Result<()> {
    if polls != Some(0) {
        for _ in 0..FIRST_PAUSES {
            std::hint::spin_loop();
        }
    }
    let mut yields = 0;
    loop {
        for _ in 0..polls.unwrap_or(POLLS_PER_YIELD) {
            if ready() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if polls.is_some() {
            return wait_asleep(word, sleep, ready);
        }
        std::thread::yield_now();
        yields += 1;
        if yields == YIELDS_MAX {
            return Err("the other process does not answer".into());
        }
    }
}

#[cold]
#[inline(never)]
fn wait_asleep(word: &AtomicU32, sleep: &mut impl Sleep, mut ready: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..SLEEPS_MAX {
        // Relaxed: the fence puts it before the second check; it pairs with the one in `wake`. At least one of the two
        // sides sees what the other has stored.
        word.store(1, Relaxed);
        fence(SeqCst);
        if ready() {
            word.store(0, Relaxed);
            return Ok(());
        }
        sleep.sleep(word)?;
        if ready() {
            word.store(0, Relaxed);
            return Ok(());
        }
    }
    Err("the other process does not answer".into())
}

/// Wakes the side that says that it sleeps, after the caller has stored what it waits for; if that is `worth` it: a producer
/// is woken when a quarter is free or all is read, not for every message.
#[inline(always)]
fn wake(word: &AtomicU32, worth: impl FnOnce() -> bool) {
    // SeqCst: between that store and this load.
    fence(SeqCst);
    if word.load(Relaxed) != 0 && worth() {
        word.store(0, Relaxed);
        futex_wake(word);
    }
}

impl<S: Sleep> Channel for Ends<S> {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.polls = match mode {
            Mode::Spin | Mode::Each | Mode::Batch => None,
            Mode::Hybrid => Some(POLLS_HYBRID),
            Mode::Block => Some(0),
        };
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let out = &mut self.out;
        let frame = frame(size);
        if frame > out.memory.capacity - (out.tail - out.head) {
            room(out, frame, self.polls)?;
        }
        let at = out.memory.at(out.tail);
        // SAFETY: the frame is free, contiguous and aligned to 16; the consumer leaves it alone until it is published.
        unsafe {
            at.cast::<u64>().write(size as u64);
            at.cast::<u64>().add(1).write(0);
            fill(std::slice::from_raw_parts_mut(at.add(HEADER as usize), size));
        }
        out.tail += frame;
        if flush {
            let words = out.memory.words();
            // Release: the frames go before the position that publishes them.
            words.tail.0.store(out.tail, Release);
            if self.polls.is_some() {
                wake(&words.for_data.0, || true);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let input = &mut self.input;
        if input.head == input.tail {
            data(input, self.polls, &mut self.sleep)?;
        }
        let mut count = 0;
        while count < max && input.head != input.tail {
            let at = input.memory.at(input.head);
            // SAFETY: a published frame, contiguous and aligned to 16; the producer leaves it alone until it is released.
            unsafe {
                if at.cast::<u64>().read() != size as u64 {
                    return Err("the message received is not as long as the one sent".into());
                }
                read(std::slice::from_raw_parts(at.add(HEADER as usize), size));
            }
            input.head += frame(size);
            count += 1;
        }
        let words = input.memory.words();
        // Release: the reads above go before the producer's next writes there.
        words.head.0.store(input.head, Release);
        if self.polls.is_some() {
            wake(&words.for_room.0, || {
                // Acquire: what it publishes may be read without another load.
                input.tail = words.tail.0.load(Acquire);
                let used = input.tail - input.head;
                used == 0 || used <= input.memory.capacity / 4 * 3
            });
        }
        Ok(count)
    }
}

/// Waits for room. What is written and not yet published is published first.
#[inline(never)]
fn room(out: &mut Producer, frame: u64, polls: Option<u32>) -> Result<()> {
    let Producer { memory, tail, head } = out;
    let words = memory.words();
    if frame > memory.capacity {
        return Err("the message is larger than the ring".into());
    }
    let used_max = memory.capacity - frame;
    let mut check = || {
        // Acquire: the consumer is through with what it gave back.
        *head = words.head.0.load(Acquire);
        *tail - *head <= used_max
    };
    if check() {
        return Ok(());
    }
    // Release: as in `send`.
    words.tail.0.store(*tail, Release);
    if polls.is_some() {
        wake(&words.for_data.0, || true);
    }
    wait(polls, &words.for_room.0, &mut Futex, check)
}

/// Waits for a message.
#[inline(always)]
fn data(input: &mut Consumer, polls: Option<u32>, sleep: &mut impl Sleep) -> Result<()> {
    let words = input.memory.words();
    let (head, tail) = (input.head, &mut input.tail);
    wait(polls, &words.for_data.0, sleep, || {
        // Acquire: the frames are visible with the position.
        *tail = words.tail.0.load(Acquire);
        *tail != head
    })
}

impl<S: Sleep + 'static> Ends<S> {
    fn open(out: Memory, input: Memory, sleep: S) -> Box<dyn End> {
        let out = Producer { memory: out, tail: 0, head: 0 };
        let input = Consumer { memory: input, head: 0, tail: 0 };
        Box::new(Self { out, input, sleep, polls: None })
    }
}

/// The leading side of a pair of rings.
pub(super) fn prepare<S: Sleep + 'static>(setup: &Setup, sleep: S) -> Result<Prepared> {
    let (there, back) = (Memory::new(setup.capacity)?, Memory::new(setup.capacity)?);
    let fds = vec![there.fd.as_raw_fd(), back.fd.as_raw_fd()];
    let ticket = format!("{},{},{}", fds[0], fds[1], there.capacity);
    Ok(Prepared::new(ticket, move || Ok(Ends::open(there, back, sleep))).inherit(fds))
}

/// The following side.
pub(super) fn join<S: Sleep + 'static>(ticket: &str, sleep: S) -> Result<Box<dyn End>> {
    let numbers = ticket.split(',').map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
    let &[there, back, capacity] = numbers.as_slice() else { return Err("not a ticket for two rings".into()) };
    // SAFETY: the parent passed these descriptors for this purpose and nothing else here owns them.
    let [there, back] = [there, back].map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
    Ok(Ends::open(Memory::map(back, capacity)?, Memory::map(there, capacity)?, sleep))
}

impl Mechanism for HandRing {
    fn about(&self) -> About {
        let what = "a lock-free ring by hand, written and read in place; sleeps on a bare futex";
        About::new("hand-ring", Kind::ByHand, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        super::ring::can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        prepare(setup, Futex)
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        join(ticket, Futex)
    }
}
