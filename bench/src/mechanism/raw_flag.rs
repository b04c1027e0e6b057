//! The floor of a round trip: one word each way, each alone in its line, polled with one PAUSE between two polls.

use crate::Result;
use crate::area::Area;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

const LENGTH: usize = 4096;
const THERE: usize = 1024;
const BACK: usize = 2048;

pub(crate) struct RawFlag;

struct Flags {
    area: Area,
    /// Where this side's word is, and the other's.
    mine: usize,
    theirs: usize,
    /// How often each was raised, so that no burst sees an earlier one's value.
    raised: u64,
    seen: u64,
}

impl Flags {
    fn boxed(area: Area, mine: usize, theirs: usize) -> Box<dyn End> {
        Box::new(Self { area, mine, theirs, raised: 0, seen: 0 })
    }
}

impl Mechanism for RawFlag {
    fn about(&self) -> About {
        let what = "one word each way, each alone in its line, polled with one PAUSE: the floor of a round trip";
        About::new("raw-flag", Kind::ByHand, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Rtt && burst.mode == Mode::Spin && burst.size == 0
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let fd = area.fd();
        Ok(Prepared::new(fd.to_string(), move || Ok(Flags::boxed(area, THERE, BACK))).inherit(vec![fd]))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Flags::boxed(Area::inherited(ticket.parse()?, LENGTH)?, BACK, THERE))
    }
}

/// Far beyond any preemption: the other process is gone.
const POLLS_MAX: u64 = 1 << 32;

#[inline(always)]
pub(super) fn await_value(word: &AtomicU64, value: u64) -> Result<()> {
    let mut polls = 0;
    // Acquire, as in any hand-off that carries something.
    while word.load(Acquire) != value {
        std::hint::spin_loop();
        polls += 1;
        if polls == POLLS_MAX {
            return Err("the other process does not answer".into());
        }
        if polls % (1 << 16) == 0 {
            // Only matters where the two processes share a processor.
            std::thread::yield_now();
        }
    }
    Ok(())
}

impl Channel for Flags {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, _size: usize, _flush: bool, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.raised += 1;
        self.area.word(self.mine).store(self.raised, Release);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, _size: usize, _max: u32, _read: impl FnMut(&[u8])) -> Result<u32> {
        self.seen += 1;
        await_value(self.area.word(self.theirs), self.seen)?;
        Ok(1)
    }
}
