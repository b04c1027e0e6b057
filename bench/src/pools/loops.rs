//! What is timed. Each loop is compiled for each pool, and none allocates but what the pool does.

use super::{Buffers, Crosses, PIPELINE, Sizes, Source, check};
use crate::case::Burst;
use crate::control::Control;
use crate::machine::Pinned;
use crate::{Result, clock};
use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// A line each.
#[repr(align(128))]
struct Line<T>(T);

/// Gets and gives back, `count` times. The memory is somebody's whom the compiler does not know, as if it were read into; what
/// else there is of a buffer may stay in registers, as at a user's.
#[inline(never)]
fn get_many<B: Buffers>(from: &B, len: usize, count: u64) {
    for _ in 0..count {
        let mut buffer = from.get(black_box(len));
        black_box(B::start(&mut buffer));
    }
}

pub(super) fn get<S: Source>(
    pool: &S,
    burst: &Burst,
    control: &Control,
    samples: &mut Vec<u64>,
    cpus: [Option<usize>; 2],
) -> Result<()> {
    if burst.threads > 1 {
        let place = |at: usize| Pinned::to(cpus[at % 2]);
        return threads(pool, burst, control, samples, place, |from, _, count| get_many(from, burst.size, count));
    }
    let from = pool.thread();
    check::owners(&from, burst.size, 0)?;
    control.begin();
    timed(burst, samples, |count| get_many(&from, burst.size, count));
    control.end();
    Ok(())
}

/// Two pools in turn; a get from either is an operation.
pub(super) fn alternate<A: Source, B: Source>(
    one: &A,
    other: &B,
    burst: &Burst,
    control: &Control,
    samples: &mut Vec<u64>,
) -> Result<()> {
    #[inline(never)]
    fn in_turn<A: Buffers, B: Buffers>(one: &A, other: &B, len: usize, count: u64) {
        for n in 0..count {
            if n % 2 == 0 {
                let mut buffer = one.get(black_box(len));
                black_box(A::start(&mut buffer));
            } else {
                let mut buffer = other.get(black_box(len));
                black_box(B::start(&mut buffer));
            }
        }
    }
    let (one, other) = (one.thread(), other.thread());
    check::owners(&one, burst.size, 0)?;
    check::owners(&other, burst.size, 1)?;
    control.begin();
    timed(burst, samples, |count| in_turn(&one, &other, burst.size, count));
    control.end();
    Ok(())
}

/// A sample for every `group` operations.
fn timed(burst: &Burst, samples: &mut Vec<u64>, mut work: impl FnMut(u64)) {
    let group = u64::from(burst.group);
    let mut left = burst.count;
    while left > 0 {
        let count = group.min(left);
        let began = clock::now();
        work(count);
        let took = clock::now() - began;
        left -= count;
        if count == group {
            samples.push(took);
        }
    }
}

/// Each thread has some buffers, and gives one back before it gets the next.
pub(super) fn mixed<S: Source>(pool: &S, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
    #[inline(never)]
    fn replace<'a, B: Buffers>(
        from: &'a B,
        has: &mut [Option<B::Buffer<'a>>],
        sizes: &Sizes,
        first: usize,
        count: u64,
    ) {
        for n in first..first + count as usize {
            let slot = n % has.len();
            has[slot] = None;
            let mut buffer = from.get(sizes.at(n));
            black_box(B::start(&mut buffer));
            has[slot] = Some(buffer);
        }
    }
    let sizes = Sizes::new(burst.size);
    // Wherever the scheduler puts them, which has more threads than processors to place.
    threads(
        pool,
        burst,
        control,
        samples,
        |_| Pinned::nowhere(),
        |from, first, count| {
            // What a chunk begins with is new to the thread's window, and small beside the chunk.
            let mut has: Vec<Option<_>> = (0..burst.batch).map(|_| None).collect();
            replace(from, &mut has, &sizes, first, count);
        },
    )
}

/// `threads` threads that take pieces of the work until no piece is left. The share is what the slowest of them took.
fn threads<S: Source>(
    pool: &S,
    burst: &Burst,
    control: &Control,
    samples: &mut Vec<u64>,
    place: impl Fn(usize) -> Pinned + Sync,
    work: impl Fn(&S::Thread<'_>, usize, u64) + Sync,
) -> Result<()> {
    let threads = burst.threads as usize;
    // Asleep until all are there: who polls has used up some of its share before it begins.
    let (ready, go) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let taken = Line(AtomicU64::new(0));
    let group = u64::from(burst.group);
    let each = |at: usize| {
        let _place = place(at);
        let from = pool.thread();
        let checked = check::owners(&from, burst.size, at as u64);
        let mut mine = Vec::with_capacity((burst.count / group) as usize + 1);
        ready.wait();
        go.wait();
        if checked.is_err() {
            return checked.map(|()| (0, mine));
        }
        let mut did = 0;
        loop {
            // Relaxed: a number, which orders nothing.
            let first = taken.0.fetch_add(group, Relaxed);
            if first >= burst.count {
                return Ok((did, mine));
            }
            let count = group.min(burst.count - first);
            let began = clock::now();
            // Everybody begins elsewhere in the list of sizes.
            work(&from, first as usize + at * 1009, count);
            let took = clock::now() - began;
            did += count;
            if count == group {
                mine.push(took);
            }
        }
    };
    let each = &each;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|at| scope.spawn(move || each(at))).collect();
        ready.wait();
        control.begin();
        go.wait();
        let done: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        control.end();
        let (mut least, mut all) = (u64::MAX, 0);
        for thread in done {
            let (did, mine) = thread.map_err(|_| "a thread panicked")??;
            (least, all) = (least.min(did), all + did);
            samples.extend(mine);
        }
        // Fewer pieces than make a share are a burst of the warm-up.
        if burst.count / group >= 16 * threads as u64 {
            control.ratio("slowest thread / mean", least as f64 * threads as f64 / all as f64);
        }
        Ok(())
    })
}

/// A place for a buffer on its way.
struct Slot<T> {
    full: AtomicBool,
    buffer: UnsafeCell<MaybeUninit<T>>,
}

/// What goes from thread to thread.
struct Way<T>([Line<Slot<T>>; PIPELINE]);

// SAFETY: a slot's buffer is the getting thread's while `full` is false, the other one's while it is true; that it may be
// dropped there is what `Crosses` promises for every `T` this is used with.
unsafe impl<T> Sync for Way<T> {}

/// Got here, given back by another thread.
pub(super) fn pipeline<S: Crosses>(
    pool: &S,
    burst: &Burst,
    control: &Control,
    samples: &mut Vec<u64>,
    cpus: [Option<usize>; 2],
) -> Result<()> {
    let from = pool.thread();
    check::owners(&from, burst.size, 0)?;
    let way = Way(std::array::from_fn(|_| {
        Line(Slot { full: AtomicBool::new(false), buffer: UnsafeCell::new(MaybeUninit::uninit()) })
    }));
    let ready = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let way = &way;
        let other = scope.spawn(|| {
            let _place = Pinned::to(cpus[1]);
            ready.store(true, Release);
            give_back(way, burst)
        });
        // The following process spins for a while before it leaves this processor to the thread.
        std::thread::sleep(Duration::from_micros(200));
        while !ready.load(Acquire) {
            spin_loop();
        }
        control.begin();
        get_and_hand_over(&from, way, burst);
        let mine = other.join().map_err(|_| "the other thread panicked")?;
        control.end();
        samples.extend(mine);
        Ok(())
    })
}

#[inline(never)]
fn get_and_hand_over<'a, B: Buffers>(from: &'a B, way: &Way<B::Buffer<'a>>, burst: &Burst) {
    for n in 0..burst.count as usize {
        let mut buffer = from.get(black_box(burst.size));
        black_box(B::start(&mut buffer));
        let slot = &way.0[n % PIPELINE].0;
        // Acquire: what was there before has been moved out.
        while slot.full.load(Acquire) {
            spin_loop();
        }
        // SAFETY: empty, so this thread's.
        unsafe { (*slot.buffer.get()).write(buffer) };
        slot.full.store(true, Release);
    }
}

#[inline(never)]
fn give_back<T>(way: &Way<T>, burst: &Burst) -> Vec<u64> {
    let group = u64::from(burst.group);
    let mut samples = Vec::with_capacity((burst.count / group) as usize + 1);
    let mut last = None;
    for n in 0..burst.count {
        let slot = &way.0[n as usize % PIPELINE].0;
        // Acquire: the buffer was moved in before.
        while !slot.full.load(Acquire) {
            spin_loop();
        }
        // SAFETY: full, so this thread's, which takes it once.
        let mut buffer = unsafe { (*slot.buffer.get()).assume_init_read() };
        slot.full.store(false, Release);
        black_box(&mut buffer);
        drop(buffer);
        if n % group == 0 {
            let now = clock::now();
            samples.extend(last.map(|last| now - last));
            last = Some(now);
        }
    }
    samples
}
