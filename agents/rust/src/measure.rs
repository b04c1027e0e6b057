//! `measure`: the loops that are timed.

use std::time::Instant;

use ramway::ring::log::Log;
use ramway::rpc::Client;
use ramway::{ErrorKind, Receiver, Result, Sender, Subscriber};

use crate::Stop;
use crate::ends::Ends;
use crate::line::Line;

/// Message number n has the words `n % CYCLE` and those after it.
const CYCLE: u64 = 4096;

struct Plan {
    size: usize,
    count: u64,
    batch: u64,
    /// Operations of one sample.
    group: u64,
}

/// What one loop gives: the sum of all words, and when each group began and the last one ended.
struct Timed {
    words: u64,
    stamps: Vec<u64>,
}

impl Timed {
    fn stamp(&mut self, begin: Instant) {
        self.stamps.push(begin.elapsed().as_nanos() as u64);
    }
}

pub(crate) fn measure(ends: &mut Ends, mut line: Line) -> std::result::Result<(), Stop> {
    let what: String = line.need("do")?;
    let plan = Plan {
        size: line.need("size")?,
        count: line.need("count")?,
        batch: line.get("batch", 1)?,
        group: line.get("group", 1)?,
    };
    let policy = line.wait()?;
    line.end()?;
    if let Some(tx) = &mut ends.sender {
        tx.set_wait_policy(policy);
    }
    if let Some(rx) = &mut ends.receiver {
        rx.set_wait_policy(policy);
    }
    if let Some(tx) = &mut ends.publisher {
        tx.set_wait_policy(policy);
    }
    if let Some(rx) = &mut ends.subscriber {
        rx.set_wait_policy(policy);
    }
    let mut timed = Timed { words: 0, stamps: Vec::with_capacity((plan.count / plan.group) as usize + 2) };
    println!("ready");
    // The other side is told first: it polls by then.
    if what == "ping" || what == "send" {
        Line::next();
    }
    let began = now();
    match (what.as_str(), &mut ends.publisher, &mut ends.subscriber) {
        ("ping", None, None) => ping(ends, &plan, &mut timed)?,
        ("echo", None, None) => echo(ends, &plan, &mut timed)?,
        ("send", Some(tx), _) => send(tx, &plan)?,
        ("send", None, _) => send(ends.sending()?, &plan)?,
        ("receive", _, Some(rx)) => receive(rx, &plan, &mut timed)?,
        ("receive", _, None) => receive(ends.receiving()?, &plan, &mut timed)?,
        ("latest", _, Some(rx)) => latest(rx, &plan, &mut timed)?,
        (other, ..) => return Err(Stop::Refused(format!("do={other}, or it has another kind of end open"))),
    }
    say(began, &timed);
    Ok(())
}

/// `do=call`, of a client.
pub(crate) fn calls(client: &mut Client, mut line: Line) -> std::result::Result<(), Stop> {
    let what: String = line.need("do")?;
    let plan = Plan { size: line.need("size")?, count: line.need("count")?, batch: 1, group: line.get("group", 1)? };
    line.end()?;
    if what != "call" {
        return Err(Stop::Refused(format!("do={what}, with a client open")));
    }
    let mut timed = Timed { words: 0, stamps: Vec::with_capacity((plan.count / plan.group) as usize + 2) };
    println!("ready");
    Line::next();
    let began = now();
    call(client, &plan, &mut timed)?;
    say(began, &timed);
    Ok(())
}

/// What came of a loop that has just ended.
fn say(began: u64, timed: &Timed) {
    let ended = now();
    let samples: Vec<String> = timed.stamps.windows(2).map(|pair| (pair[1] - pair[0]).to_string()).collect();
    println!("measured began_ns={began} ended_ns={ended} words={} samples={}", timed.words, samples.join(","));
}

/// Nanoseconds of CLOCK_MONOTONIC: the same in all processes.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[inline(always)]
fn put<L: Log>(tx: &mut Sender<L>, size: usize, seq: u64, flush: bool) -> Result<()> {
    let mut slot = tx.reserve(size)?;
    // The length as a constant, where it matters.
    match <&mut [u8; 32]>::try_from(&mut *slot) {
        Ok(bytes) => fill(bytes, seq % CYCLE),
        Err(_) => fill(&mut slot, seq % CYCLE),
    }
    if flush { slot.commit(size) } else { slot.commit_unflushed(size) }
}

/// Receives 1 to `max` messages and gives their space back. How many?
#[inline(always)]
fn take<L: Log>(rx: &mut Receiver<L>, size: usize, max: u64, words: &mut u64) -> Result<u64> {
    if max == 1 {
        read(&rx.recv()?, size, words);
        return Ok(1);
    }
    let mut count = 0;
    for message in rx.recv_batch(max as usize)?.iter() {
        read(&message, size, words);
        count += 1;
    }
    Ok(count)
}

#[inline(always)]
fn read(bytes: &[u8], size: usize, words: &mut u64) {
    assert!(bytes.len() == size);
    *words = words.wrapping_add(match <&[u8; 32]>::try_from(bytes) {
        Ok(bytes) => sum(bytes),
        Err(_) => sum(bytes),
    });
}

#[inline(always)]
fn fill(bytes: &mut [u8], seq: u64) {
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&seq.wrapping_add(i as u64).to_le_bytes());
    }
}

#[inline(always)]
fn sum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
    bytes.chunks_exact(8).fold(0, |sum, chunk| sum.wrapping_add(word(chunk)))
}

/// Both ends, for a loop that goes there and back.
fn both(ends: &mut Ends) -> (&mut Sender, &mut Receiver) {
    ends.sender.as_mut().zip(ends.receiver.as_mut()).expect("opened for it")
}

#[inline(never)]
fn ping(ends: &mut Ends, plan: &Plan, timed: &mut Timed) -> Result<()> {
    let (tx, rx) = both(ends);
    let begin = Instant::now();
    timed.stamp(begin);
    let mut due = plan.group;
    for seq in 0..plan.count {
        put(tx, plan.size, seq, true)?;
        take(rx, plan.size, 1, &mut timed.words)?;
        if seq + 1 == due {
            due += plan.group;
            timed.stamp(begin);
        }
    }
    Ok(())
}

#[inline(never)]
fn echo(ends: &mut Ends, plan: &Plan, timed: &mut Timed) -> Result<()> {
    let (tx, rx) = both(ends);
    for seq in 0..plan.count {
        take(rx, plan.size, 1, &mut timed.words)?;
        put(tx, plan.size, seq, true)?;
    }
    Ok(())
}

#[inline(never)]
fn send<L: Log>(tx: &mut Sender<L>, plan: &Plan) -> Result<()> {
    let mut left = plan.batch;
    for seq in 0..plan.count {
        left -= 1;
        let flush = left == 0 || seq + 1 == plan.count;
        if flush {
            left = plan.batch;
        }
        put(tx, plan.size, seq, flush)?;
    }
    Ok(())
}

#[inline(never)]
fn receive<L: Log>(rx: &mut Receiver<L>, plan: &Plan, timed: &mut Timed) -> Result<()> {
    let begin = Instant::now();
    // A stamp stands for a group: what came beyond it belongs to the next.
    let (mut seen, mut due) = (0, 1);
    while seen < plan.count {
        seen += take(rx, plan.size, plan.batch.min(plan.count - seen), &mut timed.words)?;
        if seen >= due {
            due += plan.group;
            timed.stamp(begin);
        }
    }
    Ok(())
}

#[inline(never)]
fn call(client: &mut Client, plan: &Plan, timed: &mut Timed) -> Result<()> {
    let mut request = vec![0; plan.size];
    let begin = Instant::now();
    timed.stamp(begin);
    let mut due = plan.group;
    for seq in 0..plan.count {
        fill(&mut request, seq % CYCLE);
        read(client.call(1, &request)?.body(), plan.size, &mut timed.words);
        if seq + 1 == due {
            due += plan.group;
            timed.stamp(begin);
        }
    }
    Ok(())
}

#[inline(never)]
fn latest(rx: &mut Subscriber, plan: &Plan, timed: &mut Timed) -> Result<()> {
    let begin = Instant::now();
    timed.stamp(begin);
    let (mut seen, mut due) = (0, plan.group);
    while seen < plan.count {
        match rx.latest() {
            Ok(message) => read(&message, plan.size, &mut timed.words),
            // The publisher has overtaken it again and again: a reader tries again.
            Err(e) if e.kind() == ErrorKind::Empty => continue,
            Err(e) => return Err(e),
        }
        seen += 1;
        if seen == due {
            due += plan.group;
            timed.stamp(begin);
        }
    }
    Ok(())
}

/// Keeps all memory of this process where it is, from now on.
pub(crate) fn lock(line: Line) -> std::result::Result<(), Stop> {
    use rustix::mm::{MlockAllFlags, mlockall};
    line.end()?;
    let refused = |cause| Stop::Refused(format!("locking memory is refused: {cause}"));
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(refused)?;
    println!("locked");
    Ok(())
}
