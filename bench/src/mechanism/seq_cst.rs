//! A ring by hand whose positions are stored with `seq_cst`, one store a message: what a channel without an asymmetric
//! fence does. Fixed messages of 32 bytes behind a 16-byte header, positions counted in messages.

use crate::Result;
use crate::area::Area;
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use std::sync::atomic::Ordering::{Acquire, SeqCst};

const SLOTS: u64 = 16 * 1024;
const HEADER: usize = 16;
const PAYLOAD: usize = 32;
const DATA: usize = 4096;
const LENGTH: usize = DATA + SLOTS as usize * (HEADER + PAYLOAD);
const TAIL: usize = 0;
const HEAD: usize = 128;

pub(crate) struct SeqCstRing;

struct Slots {
    area: Area,
    /// This side's position.
    mine: u64,
    /// The other side's as last seen.
    theirs: u64,
}

impl Slots {
    fn at(&self, position: u64) -> *mut u8 {
        let slot = (position % SLOTS) as usize;
        self.area.bytes(DATA + slot * (HEADER + PAYLOAD), HEADER + PAYLOAD)
    }
}

impl Mechanism for SeqCstRing {
    fn about(&self) -> About {
        About::new("seq-cst", Kind::ByHand, false, "a ring by hand that publishes each message with a seq_cst store")
    }

    fn can(&self, burst: &Burst) -> bool {
        let one_way = burst.test == Test::OneWay && burst.mode == Mode::Each;
        one_way && burst.size == PAYLOAD && burst.smallest == PAYLOAD
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let fd = area.fd();
        let finish = move || Ok(Box::new(Slots { area, mine: 0, theirs: 0 }) as Box<dyn End>);
        Ok(Prepared::new(fd.to_string(), finish).inherit(vec![fd]))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Slots { area: Area::inherited(ticket.parse()?, LENGTH)?, mine: 0, theirs: 0 }))
    }
}

impl Channel for Slots {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, _size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        while self.mine - self.theirs == SLOTS {
            std::hint::spin_loop();
            // Acquire: the receiver is through with what it gave back.
            self.theirs = self.area.word(HEAD).load(Acquire);
        }
        let at = self.at(self.mine);
        // SAFETY: the slot is free, so the receiver leaves its bytes alone until `TAIL` says otherwise.
        unsafe {
            at.cast::<u64>().write(PAYLOAD as u64);
            at.add(8).cast::<u64>().write(self.mine);
            fill(std::slice::from_raw_parts_mut(at.add(HEADER), PAYLOAD));
        }
        self.mine += 1;
        self.area.word(TAIL).store(self.mine, SeqCst);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, _size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        while self.mine == self.theirs {
            // Acquire: the message is visible with the position.
            self.theirs = self.area.word(TAIL).load(Acquire);
            std::hint::spin_loop();
        }
        let at = self.at(self.mine);
        // SAFETY: the slot is published, so the sender leaves its bytes alone until `HEAD` says otherwise.
        unsafe {
            assert!(at.cast::<u64>().read() == PAYLOAD as u64);
            read(std::slice::from_raw_parts(at.add(HEADER), PAYLOAD));
        }
        self.mine += 1;
        self.area.word(HEAD).store(self.mine, SeqCst);
        Ok(1)
    }
}
