//! The floor of a wake-up: a word in shared memory and FUTEX_WAKE, nothing else.

use crate::Result;
use crate::area::{Area, futex_wait_untimed, futex_wake};
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::sync::atomic::Ordering::{Acquire, SeqCst};

const LENGTH: usize = 4096;
const THERE: usize = 1024;
const BACK: usize = 2048;

pub(crate) struct Futex;

struct Words {
    area: Area,
    /// Where this side's word is, and the other's.
    mine: usize,
    theirs: usize,
    posted: u32,
    seen: u32,
}

impl Words {
    fn boxed(area: Area, mine: usize, theirs: usize) -> Box<dyn End> {
        Box::new(Self { area, mine, theirs, posted: 0, seen: 0 })
    }
}

/// What a signal that sleeps at once, carries no bytes and is only ever answered or waited for can do.
pub(super) fn can_signal(burst: &Burst) -> bool {
    let one_by_one = matches!(burst.test, Test::Rtt | Test::Wake | Test::Paced | Test::Pauses | Test::Idle);
    one_by_one && burst.mode == Mode::Block && burst.size == 0
}

impl Mechanism for Futex {
    fn about(&self) -> About {
        let what = "a word in shared memory and FUTEX_WAKE, nothing else: the floor of a wake-up";
        About::new("futex", Kind::ByHand, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can_signal(burst)
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let fd = area.fd();
        Ok(Prepared::new(fd.to_string(), move || Ok(Words::boxed(area, THERE, BACK))).inherit(vec![fd]))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Words::boxed(Area::inherited(ticket.parse()?, LENGTH)?, BACK, THERE))
    }
}

impl Channel for Words {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, _size: usize, _flush: bool, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.posted = self.posted.wrapping_add(1);
        let word = self.area.half_word(self.mine);
        // SeqCst: before the kernel looks for sleepers.
        word.store(self.posted, SeqCst);
        futex_wake(word);
        Ok(())
    }

    fn receive(&mut self, _size: usize, _max: u32, _read: impl FnMut(&[u8])) -> Result<u32> {
        let word = self.area.half_word(self.theirs);
        // Acquire, as in any hand-off that carries something. Posts that came while nobody looked count as well.
        while word.load(Acquire) == self.seen {
            // A floor sets no timer. Who dies takes the other process along.
            futex_wait_untimed(word, self.seen);
        }
        self.seen = self.seen.wrapping_add(1);
        Ok(1)
    }
}
