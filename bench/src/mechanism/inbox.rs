//! Ten producers and one consumer: an `Inbox`, and ten rings that are polled by hand.

use super::ring::policy;
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Bus, ErrorKind, Inbox, Incoming, Receiver, Ring, Sender};

/// An `Inbox`.
pub(crate) struct Inboxes;

/// What it replaces.
pub(crate) struct Polled;

/// How many producers.
const PRODUCERS: usize = 10;

/// The leading process: one thread is all ten producers in turn, so that what differs is how they are received.
struct Producers<T> {
    senders: Vec<T>,
    next: usize,
}

struct Consumer(Inbox);

struct Rings {
    receivers: Vec<Receiver>,
    next: usize,
}

trait Out {
    fn sender(&mut self) -> Result<&mut Sender>;
}

impl Out for Sender {
    #[inline(always)]
    fn sender(&mut self) -> Result<&mut Sender> {
        Ok(self)
    }
}

impl Out for Bus {
    #[inline(always)]
    fn sender(&mut self) -> Result<&mut Sender> {
        Ok(Self::sender(self)?)
    }
}

const ONE_WAY: &str = "carries messages one way only";

impl<T: Out> Channel for Producers<T> {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        for sender in &mut self.senders {
            sender.sender()?.set_wait_policy(policy(mode));
        }
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let at = self.next;
        self.next = (at + 1) % PRODUCERS;
        let mut slot = self.senders[at].sender()?.reserve(size)?;
        fill(&mut slot);
        Ok(slot.commit(size)?)
    }

    fn receive(&mut self, _size: usize, _max: u32, _read: impl FnMut(&[u8])) -> Result<u32> {
        Err(ONE_WAY.into())
    }
}

impl Channel for Consumer {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, _size: usize, _flush: bool, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        Err(ONE_WAY.into())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        match self.0.recv()? {
            Incoming::Message(_, message) => {
                assert!(message.len() == size);
                read(&message);
                Ok(1)
            }
            Incoming::Left(..) => Err("a producer has gone".into()),
        }
    }
}

impl Channel for Rings {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, _size: usize, _flush: bool, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        Err(ONE_WAY.into())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        loop {
            let at = self.next;
            self.next = (at + 1) % PRODUCERS;
            match self.receivers[at].try_recv() {
                Ok(message) => {
                    assert!(message.len() == size);
                    read(&message);
                    return Ok(1);
                }
                Err(e) if e.kind() == ErrorKind::Empty => std::hint::spin_loop(),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl Mechanism for Inboxes {
    fn about(&self) -> About {
        let what = format!("an `Inbox` with {PRODUCERS} producers, served in turn; it polls for a while, then sleeps");
        About::new(&format!("inbox-{PRODUCERS}"), Kind::Ramway, false, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        matches!(burst.test, Test::OneWay | Test::Paced)
            && burst.size > 0
            && matches!(burst.mode, Mode::Each | Mode::Hybrid)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let socket = setup.directory.join("inbox");
        Ok(Prepared::new("", move || {
            // The other process binds it.
            let senders = (0..PRODUCERS).map(|_| Bus::connect(&socket)).collect::<ramway::Result<Vec<_>>>()?;
            Ok(Box::new(Producers { senders, next: 0 }) as Box<dyn End>)
        }))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let mut inbox = Inbox::builder(setup.directory.join("inbox")).capacity(setup.capacity).bind()?;
        while inbox.peers().count() < PRODUCERS {
            match inbox.recv_timeout(std::time::Duration::from_millis(1)).map(drop) {
                Err(e) if e.kind() != ErrorKind::TimedOut => return Err(e.into()),
                _ => {}
            }
        }
        Ok(Box::new(Consumer(inbox)))
    }
}

impl Mechanism for Polled {
    fn about(&self) -> About {
        let what = format!("{PRODUCERS} named rings, `try_recv` of one after the other: what an inbox replaces");
        About::new(&format!("rings-{PRODUCERS}"), Kind::Ramway, false, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::OneWay && burst.size > 0 && burst.mode == Mode::Each
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let ring =
            |at| Ring::create(setup.directory.join(format!("ring-{at}"))).capacity(setup.capacity).prefault(true);
        let senders = (0..PRODUCERS).map(|at| ring(at).sender()).collect::<ramway::Result<Vec<_>>>()?;
        Ok(Prepared::new("", move || Ok(Box::new(Producers { senders, next: 0 }) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let ring = |at| Ring::open(setup.directory.join(format!("ring-{at}"))).prefault(true);
        let receivers = (0..PRODUCERS).map(|at| ring(at).receiver()).collect::<ramway::Result<Vec<_>>>()?;
        Ok(Box::new(Rings { receivers, next: 0 }))
    }
}
