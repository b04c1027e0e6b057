//! ipc_ring: one ring each way in a file. A message is copied in (`push`) and out (`pop`), and both ends make a
//! `futex` call for each. `try_push` and `try_pop` where the sides poll; `push` and `pop`, which sleep at most 2 ms at
//! a time, where they sleep.

use ipc_ring::{IpcError, RingReader, RingWriter};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use std::path::Path;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct IpcRing;

struct Pair {
    tx: RingWriter,
    rx: RingReader,
    polls: bool,
    /// It takes a whole message from the sender's memory, and gives one in the receiver's.
    out: Vec<u8>,
    input: Vec<u8>,
}

impl Pair {
    fn new(tx: RingWriter, rx: RingReader, setup: &Setup) -> Self {
        Self { tx, rx, polls: false, out: vec![0; setup.largest], input: Vec::with_capacity(setup.largest) }
    }
}

/// Room for two of the largest, of which one may not fit before the end; a power of two.
fn capacity(setup: &Setup) -> usize {
    (setup.capacity as usize).max(2 * (setup.largest + 4)).next_power_of_two()
}

fn open(path: &Path) -> Result<RingReader> {
    let began = Instant::now();
    loop {
        match RingReader::open(path) {
            Ok(ring) => return Ok(ring),
            // Not there yet, or not written yet: its own benchmark tries again, too.
            Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Mechanism for IpcRing {
    fn about(&self) -> About {
        let what = "ipc_ring: an SPSC ring in a file, copied in and out, a futex call at each end for each message";
        About::new("ipc-ring", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        // Its `pop` looks once and sleeps. It has no way to publish several together: a batch is as many messages.
        burst.size > 0 && burst.mode != Mode::Hybrid
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let setup = setup.clone();
        let tx = RingWriter::create(setup.directory.join("there"), capacity(&setup))?;
        let finish = move || {
            let rx = open(&setup.directory.join("back"))?;
            Ok(Box::new(Pair::new(tx, rx, &setup)) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let rx = open(&setup.directory.join("there"))?;
        // Under another name first: a reader must not meet one that is half made.
        let (made, named) = (setup.directory.join("back.new"), setup.directory.join("back"));
        let tx = RingWriter::create(&made, capacity(setup))?;
        std::fs::rename(made, named)?;
        Ok(Box::new(Pair::new(tx, rx, setup)))
    }
}

impl Channel for Pair {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.polls = matches!(mode, Mode::Spin | Mode::Each | Mode::Batch);
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let message = &mut self.out[..size];
        fill(message);
        if !self.polls {
            return Ok(self.tx.push(message, None)?);
        }
        loop {
            match self.tx.try_push(message) {
                Ok(()) => return Ok(()),
                Err(IpcError::Full) => std::hint::spin_loop(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut count = 0;
        while count < max {
            let got = match self.polls || count > 0 {
                true => self.rx.try_pop(&mut self.input)?,
                false => Some(self.rx.pop(&mut self.input, None)?),
            };
            match got {
                Some(len) if len == size => read(&self.input),
                Some(len) => return Err(format!("a message of {len} bytes instead of {size}").into()),
                None if count > 0 => break,
                None => {
                    std::hint::spin_loop();
                    continue;
                }
            }
            count += 1;
        }
        Ok(count)
    }
}

fn main() {
    match ramway_bench::child_main(&[&IpcRing]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
