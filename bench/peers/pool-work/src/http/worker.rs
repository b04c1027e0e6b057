//! The process that serves: eight threads that go on where they stopped, round after round, as they are told on standard
//! input.

use super::serve::{Memory, Server, WithCapacity, Work, Zeroed};
use crate::usage::{Usage, resident};
use crate::{Result, random};
use ramway_pool::BufferPool;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// What a worker is to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// `pool`, `pool-prepared`, `vec` or `vec-zeroed`.
    pub memory: String,
    /// How many threads.
    pub threads: usize,
    /// Bytes.
    pub smallest: usize,
    /// Bytes.
    pub largest: usize,
    /// Bodies held by each thread.
    pub alive: usize,
    /// One reply of so many is sent by another thread.
    pub handed: u64,
    /// Buffers of each length that `pool-prepared` begins with.
    pub prepared: usize,
    /// Microseconds that a request waits.
    pub wait_us: u64,
}

/// One round's outcome: a line on standard output.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// Seconds.
    pub seconds: f64,
    /// Requests of each thread.
    pub requests: Vec<u64>,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// Replies that another thread sent.
    pub handed: u64,
    /// Page faults.
    pub faults: u64,
    /// Processor time in the program.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Resident bytes at the end, without those before the first round.
    pub resident: u64,
    /// The most there ever were, likewise.
    pub peak_resident: u64,
    /// Allocations of a pool so far.
    pub allocations: Option<u64>,
    /// Bytes that a pool holds: in all, and those in use.
    pub pool_bytes: Option<[u64; 2]>,
    /// Why the round ended early.
    pub failure: Option<String>,
}

/// Serves until standard input ends: each line is a number of milliseconds. At its end every byte that is held is verified.
///
/// # Errors
/// The job names no memory; what `serve` says.
pub fn work(job: &Job) -> Result<()> {
    match job.memory.as_str() {
        "pool" => serve(job, BufferPool::new()),
        "pool-prepared" => serve(job, prepared(job)?),
        "vec" => serve(job, WithCapacity),
        "vec-zeroed" => serve(job, Zeroed),
        other => Err(format!("no memory is called {other}").into()),
    }
}

/// A pool with some buffers of each length that it tells apart, which are eight from one power of two to the next. It does
/// not give them back to the system when more was in use before than now.
fn prepared(job: &Job) -> Result<BufferPool> {
    let pool = BufferPool::new();
    let mut len = job.smallest.next_power_of_two();
    while len < job.largest + len.next_power_of_two() / 8 {
        pool.preallocate(job.prepared, len)?;
        len += (1 << len.ilog2()) / 8;
    }
    pool.warm();
    Ok(pool)
}

#[derive(Default)]
struct Signals {
    stop: AtomicBool,
    quit: AtomicBool,
}

fn serve<M: Memory>(job: &Job, memory: M) -> Result<()> {
    let work = Work {
        smallest: job.smallest,
        largest: job.largest,
        alive: job.alive,
        handed: job.handed,
        wait: Duration::from_micros(job.wait_us),
    };
    let threads = job.threads;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel::<M::Bytes>(32)).unzip();
    let signals = Arc::new(Signals::default());
    let (begin, end) = (Arc::new(Barrier::new(threads + 1)), Arc::new(Barrier::new(threads + 1)));
    let (report, reports) = sync_channel::<std::result::Result<[u64; 3], String>>(threads);
    let mut running = Vec::new();
    for (number, inbox) in receivers.into_iter().enumerate() {
        let others = (0..threads).filter(|&other| other != number).map(|other| senders[other].clone()).collect();
        let mut server = Server::new(memory.clone(), work, number as u64, inbox, others);
        let (signals, begin, end, report) = (signals.clone(), begin.clone(), end.clone(), report.clone());
        running.push(thread::spawn(move || -> Result<u64> {
            loop {
                begin.wait();
                // Relaxed: the barrier orders it.
                if signals.quit.load(Ordering::Relaxed) {
                    // The sender has sent it before the barrier.
                    return server.finish();
                }
                let before = [server.requests, server.bytes, server.handed];
                let mut outcome = Ok(());
                // Relaxed: when it is seen does not matter.
                while outcome.is_ok() && !signals.stop.load(Ordering::Relaxed) {
                    outcome = server.serve();
                }
                let after = [server.requests, server.bytes, server.handed];
                let counts = std::array::from_fn(|at| after[at] - before[at]);
                // The other end lives as long as the process.
                let _ = report.send(outcome.map(|()| counts).map_err(|cause| cause.to_string()));
                end.wait();
            }
        }));
    }
    drop(senders);
    // Payloads and tables are there, and no buffer but those that a pool began with.
    let base = resident()[0].saturating_sub(memory.stats().map_or(0, |stats| stats.held_bytes as u64));
    for line in std::io::stdin().lock().lines() {
        let time = Duration::from_millis(line?.trim().parse()?);
        let usage = Usage::now();
        begin.wait();
        let began = Instant::now();
        thread::sleep(time);
        signals.stop.store(true, Ordering::Relaxed);
        end.wait();
        let seconds = began.elapsed().as_secs_f64();
        signals.stop.store(false, Ordering::Relaxed);
        let used = Usage::now().since(usage);
        let [now, peak] = resident();
        let stats = memory.stats();
        let mut round = Round {
            seconds,
            faults: used.faults,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            resident: now.saturating_sub(base),
            peak_resident: peak.saturating_sub(base),
            allocations: stats.as_ref().map(|stats| stats.allocations),
            pool_bytes: stats.map(|stats| [stats.held_bytes as u64, stats.in_use_bytes as u64]),
            ..Round::default()
        };
        for _ in 0..threads {
            match reports.recv()? {
                Ok([requests, bytes, handed]) => {
                    round.requests.push(requests);
                    round.bytes += bytes;
                    round.handed += handed;
                }
                Err(cause) => round.failure = Some(cause),
            }
        }
        say(&serde_json::to_string(&round)?)?;
    }
    signals.quit.store(true, Ordering::Relaxed);
    begin.wait();
    let mut seen = 0;
    for thread in running {
        seen ^= thread.join().map_err(|_| "a thread that serves panicked")??;
    }
    black_box(random::mix(seen));
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
