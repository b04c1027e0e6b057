//! The receiving half of a stream for a worker of another language: what that language sends is then measured by itself.
//!
//! The counterpart of [`sender`](crate::sender), which it is like: `{"receive": {"protocol", "ring", "cpu", "realtime"}}`,
//! and the worker has created the ring. Each line `{"burst": Burst}` is answered by `{"receiving": null}` when this side
//! polls, and by `{"received": Received}` when it has read the last message, or by an end with another status than 0 if a
//! message was lost or damaged.

use crate::case::{Burst, Mode};
use crate::channel::{DAMAGED, sum, sum_of};
use crate::sender::POOL;
use crate::usage::Usage;
use crate::worker::{Ask, PROTOCOL, say};
use crate::{Result, clock, machine, usage};
use ramway::{Receiver, Ring, WaitPolicy};
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::PathBuf;

#[derive(Serialize, Deserialize)]
pub(crate) struct Receive {
    protocol: u32,
    /// Its name or path.
    ring: PathBuf,
    cpu: Option<usize>,
    realtime: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Receiving(()),
    Received(Received),
}

/// What receiving took.
#[derive(Serialize)]
struct Received {
    /// Nanoseconds of CLOCK_MONOTONIC when the last message was read.
    ended_ns: u64,
    cpu_ns: u64,
    peak_rss: u64,
    shared: u64,
    context_switches: u64,
}

/// The whole of the receiving process.
pub(crate) fn receive(order: Receive) -> Result<()> {
    if order.protocol != PROTOCOL {
        return Err(format!("speaks version {PROTOCOL} of the protocol, not {}", order.protocol).into());
    }
    machine::settle(order.cpu, order.realtime)?;
    let mut receiver = Ring::open(order.ring).allow_disk(true).prefault(true).receiver()?;
    receiver.set_wait_policy(WaitPolicy::Spin);
    for line in std::io::stdin().lock().lines() {
        let burst = match serde_json::from_str(&line?)? {
            Ask::Burst(burst) => burst,
            Ask::Quit(()) => break,
        };
        usage::forget_peak();
        say(&serde_json::to_string(&Answer::Receiving(()))?)?;
        let usage = Usage::begin();
        let whole = stream(&mut receiver, &burst)?;
        let ended_ns = clock::monotonic_ns();
        let used = usage.end();
        if !whole {
            return Err(DAMAGED.into());
        }
        let received = Received {
            ended_ns,
            cpu_ns: used.cpu_ns,
            peak_rss: used.peak_rss,
            shared: used.shared,
            context_switches: used.context_switches,
        };
        say(&serde_json::to_string(&Answer::Received(received))?)?;
    }
    Ok(())
}

/// Reads all of it; gives whether every message was the one that belonged there.
#[inline(never)]
fn stream(receiver: &mut Receiver, burst: &Burst) -> Result<bool> {
    let Burst { size, count, batch, mode, .. } = *burst;
    let together = if mode == Mode::Batch { u64::from(batch.max(1)) } else { 1 };
    let (mut whole, mut n) = (true, 0);
    while n < count {
        for message in receiver.recv_batch(together.min(count - n) as usize)?.iter() {
            whole &= message.len() == size && sum(&message) == sum_of(size, n % POOL);
            n += 1;
        }
    }
    Ok(whole)
}
