//! The newest value by hand: a sequence number and the words, in a memfd that both sides inherit. Nothing is checked, the size
//! is fixed, and one value is all there is: what reading the newest one can cost.

use crate::Result;
use crate::area::Area;
use crate::case::{Burst, Test};
use crate::channel::{About, Kind, Setup};
use crate::fan::{Fan, Lines, Reads, Ticket, Writes};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{compiler_fence, fence};

#[derive(Clone, Copy)]
pub(crate) struct Seqlock;

/// Where the words begin, in a line after the number's.
const DATA: usize = 64;
const WORD: usize = 8;

pub(crate) struct Writer {
    area: Area,
    buffer: Lines,
}

pub(crate) struct Reader {
    area: Area,
    buffer: Lines,
}

impl Writes for Writer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let bytes = self.buffer.bytes(size);
        fill(bytes);
        let number = self.area.word(0);
        let now = number.load(Relaxed);
        // Odd while it is written. The fence keeps the words after it.
        number.store(now + 1, Relaxed);
        fence(Release);
        // SAFETY: inside of the area (asserted). A reader that copies meanwhile throws its copy away.
        unsafe { self.area.bytes(DATA, size).copy_from_nonoverlapping(bytes.as_ptr(), size) };
        // Release: the words go before it.
        number.store(now + 2, Release);
        Ok(())
    }
}

impl Reads for Reader {
    fn next(&mut self, _size: usize, _read: impl FnMut(&[u8])) -> Result<u64> {
        Err("has nothing but the newest value".into())
    }

    #[inline(always)]
    fn newest(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        let number = self.area.word(0);
        let bytes = self.buffer.bytes(size);
        loop {
            // Acquire: the words come after it.
            let before = number.load(Acquire);
            if before.is_multiple_of(2) {
                // SAFETY: inside of the area (asserted); what the writer changes meanwhile is thrown away.
                unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.area.bytes(DATA, size), size) };
                // The words go before the second look at the number.
                compiler_fence(Acquire);
                fence(Acquire);
                if number.load(Relaxed) == before {
                    break;
                }
            }
            std::hint::spin_loop();
        }
        read(bytes);
        Ok(())
    }
}

impl Fan for Seqlock {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        About::new("hand-seqlock", Kind::ByHand, true, "a number and the words by hand, copied and looked at again")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Latest
    }

    fn writer(&self, setup: &Setup) -> Result<(Writer, Ticket)> {
        let area = Area::new(DATA + setup.largest.next_multiple_of(WORD))?;
        let ticket = Ticket { text: area.fd().to_string(), inherit: vec![area.fd()], ..Ticket::default() };
        Ok((Writer { area, buffer: Lines::new(setup.largest) }, ticket))
    }

    fn readers(&self, setup: &Setup, ticket: &str, _burst: &Burst) -> Result<Vec<Reader>> {
        let area = Area::inherited(ticket.parse()?, DATA + setup.largest.next_multiple_of(WORD))?;
        Ok(vec![Reader { area, buffer: Lines::new(setup.largest) }])
    }
}
