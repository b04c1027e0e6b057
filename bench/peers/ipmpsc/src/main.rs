//! ipmpsc: one ring each way in a file, under a process-shared mutex and condition variable. Sent by `serde_bytes`, the
//! only way in, which copies once; read in place by `zero_copy_context`, which its documentation recommends for speed.
//! `try_recv` where the sides poll, `recv` where they sleep.

use ipmpsc::{Receiver, Sender, SharedRingBuffer};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use serde_bytes::Bytes;
use std::path::Path;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Ipmpsc;

struct Pair {
    tx: Sender,
    rx: Receiver,
    polls: bool,
    out: Vec<u8>,
}

/// A length each from the frame and from `serde_bytes`, and the mark at the end.
const OVERHEAD: usize = 24;

/// Room for two of the largest, of which one may not fit before the end. It counts in 32 bits.
fn capacity(setup: &Setup) -> u32 {
    let wanted = (setup.capacity as usize).max(2 * (setup.largest + OVERHEAD));
    wanted.min(u32::MAX as usize / 2) as u32
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| "a path that is not UTF-8".into())
}

/// Makes a ring under another name first: an opener must not meet one that is half made.
fn create(directory: &Path, name: &str, capacity: u32) -> Result<SharedRingBuffer> {
    let made = directory.join(format!("{name}.new"));
    let ring = SharedRingBuffer::create(text(&made)?, capacity)?;
    std::fs::rename(made, directory.join(name))?;
    Ok(ring)
}

fn open(path: &Path) -> Result<SharedRingBuffer> {
    let began = Instant::now();
    while !path.exists() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(SharedRingBuffer::open(text(path)?)?)
}

impl Mechanism for Ipmpsc {
    fn about(&self) -> About {
        let what = "ipmpsc: a ring in a file under a mutex and a condition variable, copied in, read in place";
        About::new("ipmpsc", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        // Its `recv` looks once and sleeps.
        burst.size > 0 && burst.mode != Mode::Hybrid
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let setup = setup.clone();
        // The receiver is meant to create: each side does, and opens the other's.
        let back = create(&setup.directory, "back", capacity(&setup))?;
        let finish = move || {
            let there = open(&setup.directory.join("there"))?;
            let (tx, rx) = (Sender::new(there), Receiver::new(back));
            Ok(Box::new(Pair { tx, rx, polls: false, out: vec![0; setup.largest] }) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let there = create(&setup.directory, "there", capacity(setup))?;
        let back = open(&setup.directory.join("back"))?;
        let (tx, rx) = (Sender::new(back), Receiver::new(there));
        Ok(Box::new(Pair { tx, rx, polls: false, out: vec![0; setup.largest] }))
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
        // Waits for space by itself.
        Ok(self.tx.send(&Bytes::new(message))?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut count = 0;
        while count < max {
            // One message each; dropped, it gives the message's space back.
            let mut context = self.rx.zero_copy_context();
            let message = match self.polls || count > 0 {
                true => context.try_recv::<&Bytes>()?,
                false => Some(context.recv::<&Bytes>()?),
            };
            match message {
                Some(bytes) if bytes.len() == size => read(bytes),
                Some(bytes) => return Err(format!("a message of {} bytes instead of {size}", bytes.len()).into()),
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
    match ramway_bench::child_main(&[&Ipmpsc]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
