//! The sending half of a stream for a worker of another language: what that language receives is then measured by itself.
//!
//! The worker starts the program that `RAMWAY_BENCH_PROGRAM` names (a JSON array, the program and its arguments) with
//! `{"send": {"protocol", "ring", "cpu", "realtime"}}` in `RAMWAY_BENCH_WORKER`, having created the ring. Each line
//! `{"burst": Burst}` on standard input makes the stream, and one line `{"sent": Sent}` on standard output when it is all in
//! the ring; `{"quit": null}` or the end of the input ends the process. Message n is that of `n % 4096`, as the Python
//! worker has them.

use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::fill;
use crate::usage::Usage;
use crate::worker::{Ask, PROTOCOL, say};
use crate::{clock, machine, usage};
use ramway::{Ring, Sender, WaitPolicy};
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::PathBuf;

/// How many messages differ.
pub(crate) const POOL: u64 = 4096;

#[derive(Serialize, Deserialize)]
pub(crate) struct Send {
    protocol: u32,
    /// Its name or path.
    ring: PathBuf,
    cpu: Option<usize>,
    realtime: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Sent(Sent),
}

/// What sending took.
#[derive(Serialize)]
struct Sent {
    /// Nanoseconds of CLOCK_MONOTONIC when the first message began.
    began_ns: u64,
    cpu_ns: u64,
    peak_rss: u64,
    shared: u64,
    context_switches: u64,
}

/// The whole of the sending process.
pub(crate) fn send(order: Send) -> Result<()> {
    if order.protocol != PROTOCOL {
        return Err(format!("speaks version {PROTOCOL} of the protocol, not {}", order.protocol).into());
    }
    machine::settle(order.cpu, order.realtime)?;
    let mut sender = Ring::open(order.ring).allow_disk(true).prefault(true).sender()?;
    sender.set_wait_policy(WaitPolicy::Spin);
    for line in std::io::stdin().lock().lines() {
        let burst = match serde_json::from_str(&line?)? {
            Ask::Burst(burst) => burst,
            Ask::Quit(()) => break,
        };
        usage::forget_peak();
        let usage = Usage::begin();
        let began_ns = clock::monotonic_ns();
        stream(&mut sender, &burst)?;
        let used = usage.end();
        let sent = Sent {
            began_ns,
            cpu_ns: used.cpu_ns,
            peak_rss: used.peak_rss,
            shared: used.shared,
            context_switches: used.context_switches,
        };
        say(&serde_json::to_string(&Answer::Sent(sent))?)?;
    }
    Ok(())
}

#[inline(never)]
fn stream(sender: &mut Sender, burst: &Burst) -> Result<()> {
    let Burst { size, count, batch, mode, .. } = *burst;
    if mode != Mode::Batch {
        for n in 0..count {
            let mut slot = sender.reserve(size)?;
            fill(&mut slot, n % POOL);
            slot.commit(size)?;
        }
        return Ok(());
    }
    let mut n = 0;
    while n < count {
        let together = u64::from(batch.max(1)).min(count - n);
        let mut batch = sender.batch();
        for at in n..n + together {
            batch.write(0, 0, size, |bytes| fill(bytes, at % POOL))?;
        }
        batch.flush();
        n += together;
    }
    Ok(())
}
