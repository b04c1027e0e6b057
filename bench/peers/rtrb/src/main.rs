//! rtrb: for reference, a ring between two threads of one process, which has no process to cross to. Bytes are written
//! and read in place by chunks (`write_chunk_uninit`, `read_chunk`); the ring holds a whole number of messages, so that no
//! chunk is in two pieces. The second thread has the following process's processor; that process sleeps.

use core::mem::MaybeUninit;
use ramway_bench::{About, Burst, Bystander, Control, End, Failure, Kind, Mechanism, Mode, Prepared, Setup, Test};
use ramway_bench::{clock, fill, sum, verify};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Rtrb;

/// A ring, for as long as the pair lives: a new one for each burst would be memory that nobody has touched yet.
type Ring = (Producer<u8>, Consumer<u8>);

/// The process that leads; what follows sleeps.
struct Threads {
    there: Ring,
    back: Ring,
    /// Where the second thread runs.
    cpu: Option<usize>,
}

/// Of a whole number of messages; two, so that neither side has to wait for the other at every message.
fn ring(setup: &Setup) -> Ring {
    let size = setup.largest.max(1);
    RingBuffer::new((setup.capacity as usize / size).max(2) * size)
}

impl Mechanism for Rtrb {
    fn about(&self) -> About {
        let what = "rtrb between two threads of one process, in place: for reference, it does not cross processes";
        About::new("rtrb", Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        let polls = match burst.test {
            Test::Rtt => burst.mode == Mode::Spin,
            Test::OneWay => matches!(burst.mode, Mode::Each | Mode::Batch),
            _ => false,
        };
        // It only polls, and messages of different sizes would be in two pieces.
        polls && burst.size > 0 && burst.smallest == burst.size && burst.work_ns == 0
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let threads = Threads { there: ring(setup), back: ring(setup), cpu: setup.cpus[1] };
        Ok(Prepared::new(String::new(), move || Ok(Box::new(threads) as Box<dyn End>)))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Bystander))
    }
}

impl End for Threads {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        let ((there_tx, there_rx), (back_tx, back_rx)) = (&mut self.there, &mut self.back);
        let (cpu, ready) = (self.cpu, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                pin_to(cpu);
                ready.store(true, Release);
                match burst.test {
                    Test::Rtt => echo(burst, there_rx, back_tx).map(|()| Vec::new()),
                    _ => receive_all(burst, there_rx),
                }
            });
            // Acquire: nothing comes with it; the thread is where it should be.
            while !ready.load(Acquire) {
                std::hint::spin_loop();
            }
            control.begin();
            let lead = match burst.test {
                Test::Rtt => ping(burst, there_tx, back_rx, samples),
                _ => send_all(burst, there_tx),
            };
            // A thread that is waited for forever is killed with the pair.
            let other = other.join().map_err(|_| "the second thread panicked")?;
            control.end();
            samples.extend(other?);
            lead
        })
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Err("only leads".into())
    }
}

fn pin_to(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    // SAFETY: a set on the stack; a refusal leaves the thread where it is.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Space for `messages`, written by `fill` one after the other and published together.
#[inline(always)]
fn send(tx: &mut Producer<u8>, size: usize, messages: u64, first: u64) {
    let mut chunk = loop {
        match tx.write_chunk_uninit(size * messages as usize) {
            Ok(chunk) => break chunk,
            Err(_) => std::hint::spin_loop(),
        }
    };
    // In two pieces where a batch goes over the end, but at a whole message.
    let (one, two) = chunk.as_mut_slices();
    let mut seed = first;
    for piece in [one, two] {
        for message in piece.chunks_exact_mut(size) {
            let message: &mut [MaybeUninit<u8>] = message;
            // SAFETY: the same bytes; `fill` only writes, and writes all of them.
            fill(unsafe { std::slice::from_raw_parts_mut(message.as_mut_ptr().cast(), size) }, seed);
            seed += 1;
        }
    }
    // SAFETY: filled just now.
    unsafe { chunk.commit_all() };
}

/// At least one and at most `max` messages.
#[inline(always)]
fn receive(rx: &mut Consumer<u8>, size: usize, max: u64, total: &mut u64) -> u64 {
    loop {
        let there = if max == 1 { 1 } else { (rx.slots() / size) as u64 };
        if let Ok(chunk) = rx.read_chunk(size * there.clamp(1, max) as usize) {
            let (one, two) = chunk.as_slices();
            for message in one.chunks_exact(size).chain(two.chunks_exact(size)) {
                *total = total.wrapping_add(sum(message));
            }
            chunk.commit_all();
            return there.clamp(1, max);
        }
        std::hint::spin_loop();
    }
}

#[inline(never)]
fn ping(burst: &Burst, tx: &mut Producer<u8>, rx: &mut Consumer<u8>, samples: &mut Vec<u64>) -> Result<()> {
    let (mut total, mut last) = (0, clock::now());
    for n in 0..burst.count {
        send(tx, burst.size, 1, n);
        receive(rx, burst.size, 1, &mut total);
        if (n + 1).is_multiple_of(burst.group.into()) {
            let at = clock::now();
            samples.push(at - last);
            last = at;
        }
    }
    verify(total, burst.size, burst.count)
}

#[inline(never)]
fn echo(burst: &Burst, rx: &mut Consumer<u8>, tx: &mut Producer<u8>) -> Result<()> {
    let mut total = 0;
    for n in 0..burst.count {
        receive(rx, burst.size, 1, &mut total);
        send(tx, burst.size, 1, n);
    }
    verify(total, burst.size, burst.count)
}

#[inline(never)]
fn send_all(burst: &Burst, tx: &mut Producer<u8>) -> Result<()> {
    // What cannot fit is never waited for.
    let batch = u64::from(burst.batch).clamp(1, (tx.buffer().capacity() / burst.size) as u64);
    let mut n = 0;
    while n < burst.count {
        let messages = batch.min(burst.count - n);
        send(tx, burst.size, messages, n);
        n += messages;
    }
    Ok(())
}

/// The ticks of every `group` messages, from the first one's arrival.
#[inline(never)]
fn receive_all(burst: &Burst, rx: &mut Consumer<u8>) -> Result<Vec<u64>> {
    let group = u64::from(burst.group);
    let mut samples = Vec::with_capacity((burst.count / group) as usize + 1);
    let (mut total, mut left, mut passed, mut last) = (0, burst.count, 0, None);
    while left > 0 {
        let got = receive(rx, burst.size, u64::from(burst.batch).min(left), &mut total);
        left -= got;
        passed += got;
        if passed >= group || last.is_none() {
            let at = clock::now();
            if let Some(last) = last {
                samples.push((at - last) * group / passed);
            }
            (last, passed) = (Some(at), 0);
        }
    }
    verify(total, burst.size, burst.count)?;
    Ok(samples)
}

fn main() {
    match ramway_bench::child_main(&[&Rtrb]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
