//! Four producers at once and one consumer: an `Inbox`, and four rings that are polled by hand.

use super::ring::policy;
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Kind, Setup};
use crate::fan::{Gather, ManyToOne, Reads, Writes};
use ramway::{Bus, ErrorKind, Inbox, Incoming, Receiver, Ring, RingBuilder, Sender};
use std::time::Duration;

pub(crate) static INBOX: ManyToOne<Inboxes> = ManyToOne(Inboxes);
pub(crate) static RINGS: ManyToOne<Polled> = ManyToOne(Polled);

/// How many producers.
const PRODUCERS: usize = 4;

#[derive(Clone, Copy)]
pub(crate) struct Inboxes;

/// What it replaces.
#[derive(Clone, Copy)]
pub(crate) struct Polled;

pub(crate) struct Producer(Bus);

pub(crate) struct RingProducer(Sender);

pub(crate) struct Consumer(Inbox);

pub(crate) struct Rings {
    receivers: Vec<Receiver>,
    next: usize,
}

fn can(burst: &Burst) -> bool {
    burst.test == Test::Producers && burst.threads as usize == PRODUCERS
}

/// Either side makes it.
fn ring(setup: &Setup, at: usize) -> RingBuilder {
    let ring = Ring::open_or_create(setup.directory.join(format!("ring-{at}"))).capacity(setup.capacity);
    ring.prefault(true).wait_policy(policy(Mode::Hybrid))
}

impl Writes for Producer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = self.0.sender()?.reserve(size)?;
        fill(&mut slot);
        Ok(slot.commit(size)?)
    }
}

impl Writes for RingProducer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = self.0.reserve(size)?;
        fill(&mut slot);
        Ok(slot.commit(size)?)
    }
}

impl Reads for Consumer {
    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        match self.0.recv()? {
            Incoming::Message(_, message) => {
                assert!(message.len() == size);
                read(&message);
                Ok(0)
            }
            Incoming::Left(..) => Err("a producer has gone".into()),
        }
    }
}

impl Reads for Rings {
    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        loop {
            for _ in 0..PRODUCERS {
                let at = self.next;
                self.next = (at + 1) % PRODUCERS;
                match self.receivers[at].try_recv() {
                    Ok(message) => {
                        assert!(message.len() == size);
                        read(&message);
                        return Ok(0);
                    }
                    Err(e) if e.kind() == ErrorKind::Empty => {}
                    Err(e) => return Err(e.into()),
                }
            }
            // A producer may need this processor.
            std::thread::yield_now();
        }
    }
}

impl Gather for Inboxes {
    type Writer = Producer;
    type Reader = Consumer;

    fn about(&self) -> About {
        let what = format!("an `Inbox` with {PRODUCERS} producers at once; it polls for a while, then sleeps");
        About::new(&format!("inbox-{PRODUCERS}"), Kind::Ramway, false, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst)
    }

    fn writers(&self, setup: &Setup, _burst: &Burst) -> Result<Vec<Producer>> {
        // The other process binds it.
        let connect = |_| {
            let mut bus = Bus::connect(setup.directory.join("inbox"))?;
            bus.sender()?.set_wait_policy(policy(Mode::Hybrid));
            Ok(Producer(bus))
        };
        (0..PRODUCERS).map(connect).collect()
    }

    fn reader(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Consumer> {
        let mut inbox = Inbox::builder(setup.directory.join("inbox")).capacity(setup.capacity).bind()?;
        while inbox.peers().count() < PRODUCERS {
            match inbox.recv_timeout(Duration::from_millis(1)).map(drop) {
                Err(e) if e.kind() != ErrorKind::TimedOut => return Err(e.into()),
                _ => {}
            }
        }
        Ok(Consumer(inbox))
    }
}

impl Gather for Polled {
    type Writer = RingProducer;
    type Reader = Rings;

    fn about(&self) -> About {
        let what = format!("{PRODUCERS} named rings, `try_recv` of one after the other; it yields where all are empty");
        About::new(&format!("rings-{PRODUCERS}"), Kind::Ramway, false, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst)
    }

    fn writers(&self, setup: &Setup, _burst: &Burst) -> Result<Vec<RingProducer>> {
        (0..PRODUCERS).map(|at| Ok(RingProducer(ring(setup, at).sender()?))).collect()
    }

    fn reader(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Rings> {
        let receivers = (0..PRODUCERS).map(|at| ring(setup, at).receiver()).collect::<ramway::Result<Vec<_>>>()?;
        Ok(Rings { receivers, next: 0 })
    }
}
