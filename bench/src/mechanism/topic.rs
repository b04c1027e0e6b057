//! Two of Ramway's topics, one each way, with one reliable subscriber each: what a topic costs where a ring would do.

use super::ring::can;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Publisher, Subscriber, Topic, WaitPolicy};
use std::path::Path;

/// Written in place with `reserve` and `commit`, read in place.
pub(crate) struct Topics;

struct Halves {
    publisher: Publisher,
    subscriber: Subscriber,
}

/// How a topic waits in a mode.
pub(super) fn policy(mode: Mode) -> WaitPolicy {
    match mode {
        Mode::Spin | Mode::Each | Mode::Batch => WaitPolicy::Spin,
        Mode::Hybrid => WaitPolicy::Hybrid,
        Mode::Block => WaitPolicy::Block,
    }
}

/// Either side makes them: who comes first waits for the other, so no message goes to nobody.
fn open(directory: &Path, capacity: u64, [out, back]: [&str; 2]) -> Result<Halves> {
    let topic = |name| Topic::open_or_create(directory.join(name)).capacity(capacity).prefault(true);
    Ok(Halves { publisher: topic(out).publisher()?, subscriber: topic(back).subscriber()? })
}

impl Mechanism for Topics {
    fn about(&self) -> About {
        let what = "two topics with one reliable subscriber each, written and read in place";
        About::new("topic", Kind::Ramway, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let halves = open(&setup.directory, setup.capacity, ["there", "back"])?;
        Ok(Prepared::new("", move || {
            let mut halves = halves;
            halves.publisher.wait_for_subscribers(1)?;
            Ok(Box::new(halves) as Box<dyn End>)
        }))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open(&setup.directory, setup.capacity, ["back", "there"])?))
    }
}

impl Channel for Halves {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.publisher.set_wait_policy(policy(mode));
        self.subscriber.set_wait_policy(policy(mode));
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = self.publisher.reserve(size)?;
        fill(&mut slot);
        if flush {
            slot.commit(size)?
        } else {
            slot.commit_unflushed(size)?
        }
        Ok(())
    }

    #[inline(always)]
    fn send_together(&mut self, size: usize, count: u32, mut fill: impl FnMut(u32, &mut [u8])) -> Result<()> {
        let mut batch = self.publisher.batch();
        for at in 0..count {
            batch.write(0, 0, size, |bytes| fill(at, bytes))?;
        }
        batch.flush();
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        if max == 1 {
            let message = self.subscriber.recv()?;
            assert!(message.len() == size);
            read(&message);
            return Ok(1);
        }
        let mut count = 0;
        for message in self.subscriber.recv_batch(max as usize)?.iter() {
            assert!(message.len() == size);
            read(&message);
            count += 1;
        }
        Ok(count)
    }
}
