//! A `Select` over several rings, one of which is busy: what waiting for any of them costs beside waiting for that one.

use super::ring::policy;
use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Receiver, Ring, RingBuilder, Select, Sender, Source};
use std::path::Path;

/// Of `N` rings each way; `MIXED`: as if they were sources of several types, which are put into a list for each call.
pub(crate) struct Selected<const N: usize, const MIXED: bool>;

struct Many<const N: usize, const MIXED: bool> {
    /// All of them have their sender; one sends.
    senders: [Sender; N],
    receivers: [Receiver; N],
    select: Select,
}

/// Bytes of a ring in which nothing happens.
const IDLE: u64 = 64 << 10;

fn open<const N: usize, const MIXED: bool>(
    directory: &Path,
    capacity: Option<u64>,
    [out, back]: [&str; 2],
) -> Result<Many<N, MIXED>> {
    let ring = |name: &str, at: usize| -> RingBuilder {
        let path = directory.join(format!("{name}-{at}"));
        match capacity {
            Some(capacity) if at == N / 2 => Ring::create(path).capacity(capacity).prefault(true),
            Some(_) => Ring::create(path).capacity(IDLE),
            None => Ring::open(path).prefault(at == N / 2),
        }
    };
    let senders = (0..N).map(|at| ring(out, at).sender()).collect::<ramway::Result<Vec<_>>>()?;
    let receivers = (0..N).map(|at| ring(back, at).receiver()).collect::<ramway::Result<Vec<_>>>()?;
    Ok(Many {
        senders: senders.try_into().map_err(|_| "as many as were made")?,
        receivers: receivers.try_into().map_err(|_| "as many as were made")?,
        select: Select::new(),
    })
}

impl<const N: usize, const MIXED: bool> Mechanism for Selected<N, MIXED> {
    fn about(&self) -> About {
        let (name, call) = if MIXED { ("select-mixed", "wait") } else { ("select", "wait_slice") };
        let what = format!("`Select::{call}` over {N} named rings, of which one carries messages; then `try_recv`");
        About::new(&format!("{name}-{N}"), Kind::Ramway, false, &what)
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.size > 0 && burst.mode != Mode::Batch && matches!(burst.test, Test::Rtt | Test::OneWay | Test::Wake)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let many = open::<N, MIXED>(&setup.directory, Some(setup.capacity), ["there", "back"])?;
        Ok(Prepared::new("", move || Ok(Box::new(many) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open::<N, MIXED>(&setup.directory, None, ["back", "there"])?))
    }
}

impl<const N: usize, const MIXED: bool> Channel for Many<N, MIXED> {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.select.set_wait_policy(policy(mode));
        self.senders[N / 2].set_wait_policy(policy(mode));
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = self.senders[N / 2].reserve(size)?;
        fill(&mut slot);
        if flush {
            slot.commit(size)?
        } else {
            slot.commit_unflushed(size)?
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let ready = if MIXED {
            let mut sources = self.receivers.each_mut().map(|receiver| receiver as &mut dyn Source);
            self.select.wait(&mut sources, None)?[0]
        } else {
            self.select.wait_slice(&mut self.receivers, None)?[0]
        };
        let message = self.receivers[ready].try_recv()?;
        assert!(message.len() == size);
        read(&message);
        Ok(1)
    }
}
