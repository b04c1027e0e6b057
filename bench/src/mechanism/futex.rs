//! The floor of a wake-up: a word in shared memory and FUTEX_WAKE, nothing else.

use crate::Result;
use crate::area::{Area, futex_wait, futex_wake};
use crate::channel::{Burst, End, Mechanism, Prepared};
use crate::clock;
use crate::control::Control;
use crate::plan::Test;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

const LENGTH: usize = 4096;

pub(crate) struct Futex;

struct Words {
    area: Area,
    turn: u32,
}

impl Mechanism for Futex {
    fn name(&self) -> &'static str {
        "futex"
    }

    fn prepare(&self, _directory: &str, _capacity: u64) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let fd = area.fd();
        let finish = Box::new(move || Ok(Box::new(Words { area, turn: 0 }) as Box<dyn End>));
        Ok(Prepared { ticket: fd.to_string(), inherit: vec![fd], finish })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Words { area: Area::inherited(ticket.parse()?, LENGTH)?, turn: 0 }))
    }
}

fn post(word: &AtomicU32, turn: u32) {
    // SeqCst: before the kernel looks for sleepers.
    word.store(turn, SeqCst);
    futex_wake(word);
}

fn sleep_until(word: &AtomicU32, turn: u32) {
    while word.load(Acquire) != turn {
        futex_wait(word, turn - 1);
    }
}

impl End for Words {
    fn lead(&mut self, burst: &Burst, control: &Control, ticks: &mut Vec<u64>) -> Result<()> {
        let (mine, theirs) = (self.area.half_word(1024), self.area.half_word(2048));
        let mut last = clock::now();
        for n in 0..burst.count {
            self.turn += 1;
            if burst.test == Test::Wake {
                control.let_sleep(n + 1)?;
                post(mine, self.turn);
            } else {
                post(mine, self.turn);
                sleep_until(theirs, self.turn);
                let now = clock::now();
                ticks.push(now - last);
                last = now;
            }
        }
        Ok(())
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        let (theirs, mine) = (self.area.half_word(1024), self.area.half_word(2048));
        for n in 0..burst.count {
            self.turn += 1;
            if burst.test == Test::Wake {
                control.arm(n + 1);
                sleep_until(theirs, self.turn);
                control.woken();
                // Keeps the two words equal: a round trip may come next.
                mine.store(self.turn, SeqCst);
            } else {
                sleep_until(theirs, self.turn);
                post(mine, self.turn);
            }
        }
        Ok(())
    }
}
