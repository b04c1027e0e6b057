//! The floor of a round trip: one word each way, each alone in its line, polled with one PAUSE between two looks.

use crate::Result;
use crate::area::Area;
use crate::channel::{Burst, End, Mechanism, Prepared};
use crate::clock;
use crate::control::Control;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

const LENGTH: usize = 4096;

pub(crate) struct RawFlag;

struct Flags {
    area: Area,
    /// Both sides count alike, so that no burst sees an earlier one's value.
    turn: u64,
}

impl Mechanism for RawFlag {
    fn name(&self) -> &'static str {
        "raw-flag"
    }

    fn prepare(&self, _directory: &str, _capacity: u64) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let fd = area.fd();
        let finish = Box::new(move || Ok(Box::new(Flags { area, turn: 0 }) as Box<dyn End>));
        Ok(Prepared { ticket: fd.to_string(), inherit: vec![fd], finish })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Flags { area: Area::inherited(ticket.parse()?, LENGTH)?, turn: 0 }))
    }
}

/// Far beyond any preemption: the other process is gone.
const LOOKS_MAX: u64 = 1 << 32;

#[inline(always)]
pub(super) fn await_value(word: &AtomicU64, value: u64) -> Result<()> {
    let mut looks = 0;
    // Acquire, as in any hand-off that carries something.
    while word.load(Acquire) != value {
        std::hint::spin_loop();
        looks += 1;
        if looks == LOOKS_MAX {
            return Err("the other process does not answer".into());
        }
        if looks % (1 << 16) == 0 {
            // Only matters where the two processes share a processor.
            std::thread::yield_now();
        }
    }
    Ok(())
}

impl End for Flags {
    #[inline(never)]
    fn lead(&mut self, burst: &Burst, _control: &Control, ticks: &mut Vec<u64>) -> Result<()> {
        let (mine, theirs) = (self.area.word(1024), self.area.word(2048));
        let mut last = clock::now();
        for n in 0..burst.count {
            self.turn += 1;
            mine.store(self.turn, Release);
            await_value(theirs, self.turn)?;
            if (n + 1) % burst.group == 0 {
                let now = clock::now();
                ticks.push(now - last);
                last = now;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn follow(&mut self, burst: &Burst, _control: &Control) -> Result<()> {
        let (theirs, mine) = (self.area.word(1024), self.area.word(2048));
        for _ in 0..burst.count {
            self.turn += 1;
            await_value(theirs, self.turn)?;
            mine.store(self.turn, Release);
        }
        Ok(())
    }
}
