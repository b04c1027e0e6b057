//! `flood`, `drain` and the `ping` of `speed`: the loops that are measured.

use std::time::Instant;

use crate::Stop;
use crate::args::{Args, Sizes};
use crate::echo::Timer;
use crate::place::open;

/// Something that carries messages of one size.
pub(crate) trait Channel {
    /// Sends a message that `fill` writes; with `flush`, it and all before it are on their way when this returns.
    fn put(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<(), Stop>;
    /// Receives 1 to `max` messages, and gives their space back. How many?
    fn take(&mut self, size: usize, max: u64, read: impl FnMut(&[u8])) -> Result<u64, Stop>;
}

impl Channel for crate::place::Ends {
    #[inline(always)]
    fn put(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<(), Stop> {
        let Some(tx) = &mut self.sender else { return Err(Stop::Usage("nothing to send to")) };
        let mut slot = tx.reserve(size)?;
        fill(&mut slot);
        if flush {
            slot.commit(size)?
        } else {
            slot.commit_unflushed(size)?
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self, size: usize, max: u64, mut read: impl FnMut(&[u8])) -> Result<u64, Stop> {
        let Some(rx) = &mut self.receiver else { return Err(Stop::Usage("nothing to receive from")) };
        if max == 1 {
            let message = rx.recv()?;
            assert!(message.len() == size);
            read(&message);
            return Ok(1);
        }
        let mut count = 0;
        for message in rx.recv_batch(max as usize)?.iter() {
            assert!(message.len() == size);
            read(&message);
            count += 1;
        }
        Ok(count)
    }
}

/// The words `seq`, `seq + 1`, ….
#[inline(always)]
fn fill(bytes: &mut [u8], seq: u64) {
    // The length as a constant, where it matters.
    match <&mut [u8; 32]>::try_from(&mut *bytes) {
        Ok(bytes) => fill_words(bytes, seq),
        Err(_) => fill_words(bytes, seq),
    }
}

#[inline(always)]
fn fill_words(bytes: &mut [u8], seq: u64) {
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&seq.wrapping_add(i as u64).to_le_bytes());
    }
}

#[inline(always)]
fn sum(bytes: &[u8]) -> u64 {
    match <&[u8; 32]>::try_from(bytes) {
        Ok(bytes) => sum_words(bytes),
        Err(_) => sum_words(bytes),
    }
}

#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
    bytes.chunks_exact(8).fold(0, |sum, chunk| sum.wrapping_add(word(chunk)))
}

/// Count, size and batch of the flags.
pub(crate) struct Plan {
    count: u64,
    pub(crate) size: usize,
    batch: u64,
    group: u64,
}

impl Plan {
    pub(crate) fn new(args: &Args) -> Result<Self, Stop> {
        let size = match args.sizes {
            Sizes::Fixed(size) => size as usize,
            _ => 32,
        };
        let count = args.count.ok_or(Stop::Usage("--count is missing"))?;
        Ok(Self { count, size, batch: args.batch.unwrap_or(1).max(1), group: args.group })
    }
}

#[inline(never)]
pub(crate) fn send_all(to: &mut impl Channel, plan: &Plan) -> Result<(), Stop> {
    let Plan { count, size, batch, .. } = *plan;
    let mut in_batch = 0;
    for seq in 0..count {
        in_batch += 1;
        let flush = in_batch == batch || seq + 1 == count;
        if flush {
            in_batch = 0;
        }
        to.put(size, flush, |bytes| fill(bytes, seq))?;
    }
    println!("sent count={count} next={count}");
    Ok(())
}

#[inline(never)]
pub(crate) fn receive_all(from: &mut impl Channel, plan: &Plan) -> Result<(), Stop> {
    let Plan { count, size, batch, .. } = *plan;
    let mut total = 0u64;
    let mut began = Instant::now();
    let mut seen = 0;
    // The first tenth warms up.
    for (until, timed) in [(count / 10, false), (count, true)] {
        if timed {
            began = Instant::now();
        }
        while seen < until {
            seen += from.take(size, batch.min(until - seen), |bytes| total = total.wrapping_add(sum(bytes)))?;
        }
    }
    println!("rate messages={} ns={} sum={total}", count - count / 10, began.elapsed().as_nanos());
    Ok(())
}

#[inline(never)]
pub(crate) fn round_trips(channel: &mut impl Channel, plan: &Plan) -> Result<(), Stop> {
    let Plan { count, size, group, .. } = *plan;
    let mut total = 0u64;
    let mut timer = Timer::new(count, group);
    for seq in 0..count {
        channel.put(size, true, |bytes| fill(bytes, seq))?;
        channel.take(size, 1, |bytes| total = total.wrapping_add(sum(bytes)))?;
        timer.trip(seq);
    }
    timer.report();
    println!("sum value={total}");
    Ok(())
}

pub(crate) fn flood(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, args.ring.as_deref(), None)?;
    ends.sending()?;
    send_all(&mut ends, &Plan::new(args)?)?;
    ends.close();
    Ok(())
}

pub(crate) fn drain(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, None, args.ring.as_deref())?;
    ends.receiving()?;
    receive_all(&mut ends, &Plan::new(args)?)?;
    ends.close();
    Ok(())
}

pub(crate) fn ping(args: &Args) -> Result<(), Stop> {
    let mut ends = open(args, args.ring.as_deref(), args.back.as_deref())?;
    ends.sending()?;
    round_trips(&mut ends, &Plan::new(args)?)?;
    ends.close();
    Ok(())
}
