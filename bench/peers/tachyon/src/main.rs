//! Tachyon: one SPSC bus each way over a sealed memfd. Written and read in place (`acquire_tx`, `acquire_rx`).
//!
//! Settings, by its integration guide: where a receiver has a processor to itself it never sleeps and says so
//! (`set_polling_mode`), which spares the sender a fence per flush; otherwise it spins `HYBRID` times and sleeps.
//! `tachyon-default` is the same without that call, which is what a user has who does not know it.

mod rpc;

use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use std::time::{Duration, Instant};
use tachyon_ipc::{Bus, TachyonError};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Tachyon {
    /// Whether a receiver that polls says that it will never sleep.
    says_so: bool,
}

struct Pair {
    tx: Bus,
    rx: Bus,
    says_so: bool,
    spins: u32,
}

/// What its README and its guide pass to `acquire_rx`.
const HYBRID: u32 = 10_000;
/// As long as its spinning can last: two minutes.
const FOREVER: u32 = u32::MAX;
/// A receiver tells a sender of free space after so many messages only, and cannot be asked to.
const TELLS_AFTER: usize = 32;
const CAPACITY_MAX: usize = 1 << 31;

/// Header and payload, in its units of 64 bytes.
fn frame(size: usize) -> usize {
    (64 + size).next_multiple_of(64)
}

/// A sender needs room for what the receiver keeps to itself, one more message, and the gap before the end.
fn least_capacity(size: usize) -> usize {
    ((TELLS_AFTER + 2) * frame(size)).next_power_of_two()
}

impl Mechanism for Tachyon {
    fn about(&self) -> About {
        let (name, what) = match self.says_so {
            true => ("tachyon", "Tachyon's SPSC bus in place, in its polling mode where the receiver polls"),
            false => ("tachyon-default", "the same without its polling mode: a fence and a look per flush"),
        };
        About::new(name, Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        // 64 MiB would need more than the 2 GiB that a ring can have: see TELLS_AFTER.
        let fits = burst.size > 0 && least_capacity(burst.size) <= CAPACITY_MAX;
        // The two differ where the sides poll.
        fits && (self.says_so || matches!(burst.mode, Mode::Spin | Mode::Each | Mode::Batch))
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (setup, says_so) = (setup.clone(), self.says_so);
        let finish = move || {
            // Returns when the other side has connected.
            let tx = Bus::listen(&path(&setup, "there")?, capacity(&setup))?;
            let rx = Bus::listen(&path(&setup, "back")?, capacity(&setup))?;
            Ok(Box::new(Pair { tx, rx, says_so, spins: HYBRID }) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let rx = connect(&path(setup, "there")?)?;
        let tx = connect(&path(setup, "back")?)?;
        Ok(Box::new(Pair { tx, rx, says_so: self.says_so, spins: HYBRID }))
    }
}

fn path(setup: &Setup, name: &str) -> Result<String> {
    Ok(setup.directory.join(name).to_str().ok_or("a path that is not UTF-8")?.to_owned())
}

fn capacity(setup: &Setup) -> usize {
    (setup.capacity as usize).next_power_of_two().max(least_capacity(setup.largest)).min(CAPACITY_MAX)
}

/// The listener may not be there yet; a connection of its own that does not get through is an error as well.
fn connect(path: &str) -> Result<Bus> {
    let began = Instant::now();
    loop {
        match Bus::connect(path) {
            Ok(bus) => return Ok(bus),
            Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Channel for Pair {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        let polls = matches!(mode, Mode::Spin | Mode::Each | Mode::Batch);
        self.spins = match mode {
            Mode::Block => 0,
            Mode::Hybrid => HYBRID,
            // Without the polling mode a sleep is possible, as in its own benchmark, but far away.
            _ => FOREVER,
        };
        self.rx.set_polling_mode((self.says_so && polls).into());
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = loop {
            match self.tx.acquire_tx(size) {
                Ok(slot) => break slot,
                // It has no way to wait for space; what was not flushed must be, or nobody makes any.
                Err(TachyonError::BufferFull) => self.tx.flush(),
                Err(error) => return Err(error.into()),
            }
            std::hint::spin_loop();
        };
        // SAFETY: `size` bytes were acquired and no more are written.
        fill(unsafe { slot.as_mut_slice() });
        match flush {
            true => slot.commit(size, 1)?,
            false => slot.commit_unflushed(size, 1)?,
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let wrong = |len: usize| Failure::from(format!("a message of {len} bytes instead of {size}"));
        if max == 1 {
            let message = self.rx.acquire_rx(self.spins)?;
            if message.actual_size != size {
                return Err(wrong(message.actual_size));
            }
            read(message.data());
            message.commit()?;
            return Ok(1);
        }
        let batch = self.rx.drain_batch(max as usize, self.spins)?;
        for message in batch.iter() {
            if message.actual_size() != size {
                return Err(wrong(message.actual_size()));
            }
            read(message.data());
        }
        let count = batch.len() as u32;
        batch.commit()?;
        Ok(count)
    }
}

fn main() {
    let peers: [&dyn Mechanism; 3] = [&Tachyon { says_so: true }, &Tachyon { says_so: false }, &rpc::Rpc];
    match ramway_bench::child_main(&peers) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
