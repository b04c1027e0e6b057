//! Ramway's bus through `ramway::tokio`, on a runtime of one thread in each process. Streams and round trips are one task
//! each, as a program would have them; the other tests enter the runtime for every message.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup, fill, sum, verify};
use crate::clock;
use crate::control::Control;
use crate::loops::Stamps;
use ramway::tokio::{AsyncReceiver, AsyncSender};
use ramway::{Bus, Listener};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub(crate) struct BusTokio;

/// Both ends and the runtime that they are registered with.
struct Tasks {
    // Before the runtime: they leave it when they go.
    sender: AsyncSender,
    receiver: AsyncReceiver,
    runtime: Runtime,
}

impl Tasks {
    fn open(bus: Bus) -> Result<Box<dyn End>> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (Some(sender), Some(receiver)) = bus.split() else { return Err("the bus lacks a direction".into()) };
        let inside = runtime.enter();
        let (sender, receiver) = (AsyncSender::new(sender)?, AsyncReceiver::new(receiver)?);
        drop(inside);
        Ok(Box::new(Single { tasks: Self { sender, receiver, runtime } }))
    }
}

async fn send(sender: &mut AsyncSender, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
    let mut slot = sender.reserve(size).await?;
    fill(&mut slot);
    if flush {
        slot.commit(size)?
    } else {
        slot.commit_unflushed(size)?
    }
    Ok(())
}

async fn receive(receiver: &mut AsyncReceiver, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
    let (mut count, mut whole) = (0, true);
    let mut take = |message: &[u8]| {
        count += 1;
        whole &= message.len() == size;
        read(message);
    };
    if max == 1 {
        take(&receiver.recv().await?);
    } else {
        receiver.recv_batch(max as usize).await?.iter().for_each(|message| take(&message));
    }
    if whole { Ok(count) } else { Err("the message received is not as long as the one sent".into()) }
}

impl Channel for Tasks {
    /// Tasks wait in the runtime's `epoll_wait`, whatever the policy.
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.runtime.block_on(send(&mut self.sender, size, flush, fill))
    }

    fn receive(&mut self, size: usize, max: u32, read: impl FnMut(&[u8])) -> Result<u32> {
        self.runtime.block_on(receive(&mut self.receiver, size, max, read))
    }
}

/// The tests that are one task on each side, and the others.
struct Single {
    tasks: Tasks,
}

impl Single {
    /// Whether a burst is one of the loops below.
    fn is_task(burst: &Burst) -> bool {
        let plain = burst.smallest == burst.size && burst.work_ns == 0;
        burst.test == Test::Rtt || burst.test == Test::OneWay && plain
    }
}

impl End for Single {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        if !Self::is_task(burst) {
            return self.tasks.lead(burst, control, samples);
        }
        let Tasks { sender, receiver, runtime } = &mut self.tasks;
        let Burst { test, size, count, group, batch, .. } = *burst;
        runtime.block_on(async {
            if test == Test::OneWay {
                for n in 0..count {
                    let flush = (n + 1) % u64::from(batch) == 0 || n + 1 == count;
                    send(sender, size, flush, |bytes| fill(bytes, n)).await?;
                }
                return Ok(());
            }
            let (mut total, mut last) = (0u64, clock::now());
            for n in 0..count {
                send(sender, size, true, |bytes| fill(bytes, n)).await?;
                receive(receiver, size, 1, |bytes| total = total.wrapping_add(sum(bytes))).await?;
                if (n + 1) % u64::from(group) == 0 {
                    let now = clock::now();
                    samples.push(now - last);
                    last = now;
                }
            }
            verify(total, size, count)
        })
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        if !Self::is_task(burst) {
            return self.tasks.follow(burst, control);
        }
        let Tasks { sender, receiver, runtime } = &mut self.tasks;
        let Burst { test, size, count, group, batch, .. } = *burst;
        runtime.block_on(async {
            let mut total = 0u64;
            let mut add = |bytes: &[u8]| total = total.wrapping_add(sum(bytes));
            if test == Test::OneWay {
                let mut stamps = Stamps::new(group.into());
                let mut left = count;
                while left > 0 {
                    let got = receive(receiver, size, u64::from(batch).min(left) as u32, &mut add).await?;
                    left -= u64::from(got);
                    stamps.passed(got.into(), control);
                }
            } else {
                for n in 0..count {
                    receive(receiver, size, 1, &mut add).await?;
                    send(sender, size, true, |bytes| fill(bytes, n)).await?;
                }
            }
            verify(total, size, count)
        })
    }
}

impl Mechanism for BusTokio {
    fn about(&self) -> About {
        let what = "a bus through ramway::tokio, one current-thread runtime in each process, in place";
        About::new("bus-tokio", Kind::Ramway, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        super::ring::can(burst) && burst.mode != Mode::Spin
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let path = setup.directory.join("bus-tokio").to_str().ok_or("the directory's name is not UTF-8")?.to_owned();
        let listener = Listener::builder(&path).capacity(setup.capacity).bind()?;
        Ok(Prepared::new(path, move || Tasks::open(listener.accept_timeout(Duration::from_secs(20))?)))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Tasks::open(Bus::connect(ticket)?)
    }
}
