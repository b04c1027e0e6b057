//! Two of Ramway's rings, one each way.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Receiver, Ring, Sender, WaitPolicy};
use std::path::Path;

/// Written in place with `reserve` and `commit`, read in place.
pub(crate) struct Rings;

/// The same by `send` from a buffer of the sender's own.
pub(crate) struct CopyingRings;

pub(super) struct Halves {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

struct CopyingHalves {
    halves: Halves,
    /// Where messages are written before they are copied.
    buffer: Vec<u8>,
}

/// What a channel of Ramway's can do.
pub(super) fn can(burst: &Burst) -> bool {
    let other = matches!(burst.test, Test::View | Test::SequentialRead | Test::SequentialWrite | Test::RandomRead);
    burst.size > 0 && !other && !burst.test.is_fan() && !burst.test.is_pool()
}

/// Rings of the leading process, below this directory. Their pages are there from the beginning, as those of the rings by
/// hand are: what is measured is what comes after the first lap.
pub(super) fn create(directory: &Path, capacity: u64, disk: bool) -> Result<Halves> {
    let ring = |name| Ring::create(directory.join(name)).capacity(capacity).allow_disk(disk).prefault(true);
    Ok(Halves { sender: ring("there").sender()?, receiver: ring("back").receiver()? })
}

/// The same rings in the following one.
pub(super) fn open(directory: &Path, disk: bool) -> Result<Halves> {
    let ring = |name| Ring::open(directory.join(name)).allow_disk(disk).prefault(true);
    Ok(Halves { receiver: ring("there").receiver()?, sender: ring("back").sender()? })
}

impl Mechanism for Rings {
    fn about(&self) -> About {
        About::new("ring", Kind::Ramway, false, "two named rings, written and read in place")
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let halves = create(&setup.directory, setup.capacity, false)?;
        Ok(Prepared::new("", move || Ok(Box::new(halves) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open(&setup.directory, false)?))
    }
}

impl Mechanism for CopyingRings {
    fn about(&self) -> About {
        About::new("ring-copy", Kind::Ramway, true, "the same, by `send` from the sender's own buffer")
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst) && burst.mode != Mode::Batch
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let end =
            CopyingHalves { halves: create(&setup.directory, setup.capacity, false)?, buffer: vec![0; setup.largest] };
        Ok(Prepared::new("", move || Ok(Box::new(end) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(CopyingHalves { halves: open(&setup.directory, false)?, buffer: vec![0; setup.largest] }))
    }
}

/// How a channel of Ramway's waits in a mode.
pub(super) fn policy(mode: Mode) -> WaitPolicy {
    match mode {
        Mode::Spin | Mode::Each | Mode::Batch => WaitPolicy::Spin,
        Mode::Hybrid => WaitPolicy::Hybrid,
        Mode::Block => WaitPolicy::Block,
    }
}

/// A channel of a `sender` and a `receiver`, of a ring or of a topic, written and read in place.
macro_rules! channel_in_place {
    ($halves:ty) => {
        impl $crate::channel::Channel for $halves {
            fn configure(&mut self, mode: $crate::case::Mode) -> $crate::Result<()> {
                let policy = $crate::mechanism::ring::policy(mode);
                self.sender.set_wait_policy(policy);
                self.receiver.set_wait_policy(policy);
                Ok(())
            }

            #[inline(always)]
            fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> $crate::Result<()> {
                let mut slot = self.sender.reserve(size)?;
                fill(&mut slot);
                if flush {
                    slot.commit(size)?
                } else {
                    slot.commit_unflushed(size)?
                }
                Ok(())
            }

            #[inline(always)]
            fn send_together(
                &mut self,
                size: usize,
                count: u32,
                mut fill: impl FnMut(u32, &mut [u8]),
            ) -> $crate::Result<()> {
                let mut batch = self.sender.batch();
                for at in 0..count {
                    batch.write(0, 0, size, |bytes| fill(at, bytes))?;
                }
                batch.flush();
                Ok(())
            }

            #[inline(always)]
            fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> $crate::Result<u32> {
                if max == 1 {
                    let message = self.receiver.recv()?;
                    assert!(message.len() == size);
                    read(&message);
                    return Ok(1);
                }
                let mut count = 0;
                for message in self.receiver.recv_batch(max as usize)?.iter() {
                    assert!(message.len() == size);
                    read(&message);
                    count += 1;
                }
                Ok(count)
            }
        }
    };
}
pub(super) use channel_in_place;

channel_in_place!(Halves);

impl Channel for CopyingHalves {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.halves.configure(mode)
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let message = &mut self.buffer[..size];
        fill(message);
        Ok(self.halves.sender.send(0, message)?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, read: impl FnMut(&[u8])) -> Result<u32> {
        self.halves.receive(size, max, read)
    }
}
