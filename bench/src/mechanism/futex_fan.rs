//! The floor of a wake-up of several sleepers: a word in shared memory and one FUTEX_WAKE, nothing else.

use crate::Result;
use crate::area::{Area, futex_wait_untimed, futex_wake};
use crate::case::{Burst, Mode, Test};
use crate::channel::{About, Kind, Setup};
use crate::fan::{Fan, Reads, Ticket, Writes};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

#[derive(Clone, Copy)]
pub(crate) struct FutexFan;

const LENGTH: usize = 4096;

pub(crate) struct Writer(Area);

pub(crate) struct Reader {
    area: Arc<Area>,
    seen: u32,
}

impl Writes for Writer {
    fn write(&mut self, _size: usize, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let word = self.0.half_word(0);
        // SeqCst: before the kernel looks for sleepers.
        word.store(word.load(Relaxed).wrapping_add(1), SeqCst);
        futex_wake(word);
        Ok(())
    }
}

impl Reads for Reader {
    fn next(&mut self, _size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        let word = self.area.half_word(0);
        // Acquire, as in any hand-off that carries something.
        while word.load(Acquire) == self.seen {
            futex_wait_untimed(word, self.seen);
        }
        self.seen = self.seen.wrapping_add(1);
        read(&[]);
        Ok(0)
    }
}

impl Fan for FutexFan {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        About::new("futex-all", Kind::ByHand, false, "a word in shared memory and one FUTEX_WAKE for all, nothing else")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::WakeAll && burst.mode == Mode::Block && burst.size == 0
    }

    fn writer(&self, _setup: &Setup) -> Result<(Writer, Ticket)> {
        let area = Area::new(LENGTH)?;
        let ticket = Ticket { text: area.fd().to_string(), inherit: vec![area.fd()], ..Ticket::default() };
        Ok((Writer(area), ticket))
    }

    fn readers(&self, _setup: &Setup, ticket: &str, burst: &Burst) -> Result<Vec<Reader>> {
        let area = Arc::new(Area::inherited(ticket.parse()?, LENGTH)?);
        // Relaxed: nothing was posted yet.
        let seen = area.half_word(0).load(Relaxed);
        Ok((0..burst.threads).map(|_| Reader { area: area.clone(), seen }).collect())
    }
}
