//! The writer's half.

use super::{
    ARMED, ASKED, LAST, LOST, ON, READY, RECEIVED, Reads, SHARE, SKIPPED, TAKEN, WOKEN, WRITTEN, Writes, drops, tell,
    wait_for,
};
use crate::area::{Area, futex_wake};
use crate::case::{Burst, Test};
use crate::channel::{End, fill};
use crate::control::Control;
use crate::{Result, clock};
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::{Duration, Instant};

/// For readers `R`, which are in the other process.
pub(super) struct Lead<W, R> {
    writer: W,
    area: Area,
    /// The number of the burst, as the readers count too.
    burst: u64,
    readers: PhantomData<fn(R)>,
}

impl<W, R> Lead<W, R> {
    pub(super) fn new(writer: W, area: Area) -> Self {
        Self { writer, area, burst: 0, readers: PhantomData }
    }
}

impl<W: Writes, R: Reads> End for Lead<W, R> {
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        self.burst += 1;
        for offset in [ARMED, WOKEN, LAST] {
            tell(&self.area, offset, 0);
        }
        if R::DROPS {
            drops::repeat(&mut self.writer, &self.area, burst.size, drops::first(self.burst), (READY, self.burst))?;
        } else {
            wait_for(&self.area, READY, self.burst)?;
        }
        control.begin();
        match burst.test {
            Test::Readers if R::DROPS => drops::stream(&mut self.writer, burst, self.burst)?,
            Test::Readers | Test::Lapped => self.stream(burst)?,
            Test::Publish => self.publish(burst, samples)?,
            Test::Latest => self.values(burst)?,
            Test::WakeAll => self.wake(burst, samples)?,
            _ => return Err("is for one writer and several readers".into()),
        }
        control.end();
        tell(&self.area, WRITTEN, self.burst);
        if burst.test == Test::Publish {
            self.ask();
        }
        if R::DROPS && burst.test == Test::Readers {
            drops::repeat(&mut self.writer, &self.area, burst.size, drops::last(self.burst), (TAKEN, self.burst))?;
        }
        wait_for(&self.area, TAKEN, self.burst)?;
        // Relaxed, here and below: the number above says that they are there.
        let found = |offset| self.area.word(offset).load(Relaxed);
        match burst.test {
            Test::Readers => {
                if burst.threads > 1 {
                    control.ratio("slowest reader / mean", f64::from_bits(found(SHARE)));
                }
                if R::DROPS {
                    drops::count(control, burst, found(RECEIVED));
                }
            }
            Test::Lapped => {
                let (received, lost) = (found(RECEIVED), found(LOST));
                if received + lost != burst.count {
                    let sent = burst.count;
                    return Err(
                        format!("{sent} messages were sent, {received} received and {lost} said to be lost").into()
                    );
                }
                control.ratio(super::RECEIVED_BY_SENT, received as f64 / burst.count as f64);
            }
            _ => {}
        }
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Err("is the leading process's end".into())
    }
}

impl<W: Writes, R> Lead<W, R> {
    #[inline(never)]
    fn stream(&mut self, burst: &Burst) -> Result<()> {
        for n in 0..burst.count {
            self.writer.write(burst.size, |bytes| fill(bytes, n))?;
        }
        Ok(())
    }

    /// In pieces that fit between two times that the subscribers skip what is there.
    #[inline(never)]
    fn publish(&mut self, burst: &Burst, samples: &mut Vec<u64>) -> Result<()> {
        let group = u64::from(burst.group);
        let room = self.writer.room(burst.size).unwrap_or(u64::MAX);
        if group > room {
            return Err(format!("{group} messages a sample do not fit where there is room for {room}").into());
        }
        let (mut written, mut since) = (0, 0);
        while written < burst.count {
            let count = group.min(burst.count - written);
            if since + count > room {
                let asked = self.ask();
                wait_for(&self.area, SKIPPED, asked)?;
                since = 0;
            }
            let began = clock::now();
            for n in written..written + count {
                self.writer.write(burst.size, |bytes| fill(bytes, n))?;
            }
            let took = clock::now() - began;
            if count == group {
                samples.push(took);
            }
            (written, since) = (written + count, since + count);
        }
        Ok(())
    }

    /// Wakes the readers, which sleep while a publish is timed.
    fn ask(&self) -> u64 {
        u64::from(self.post(ASKED))
    }

    /// Adds 1 to what the readers sleep on, and wakes them.
    fn post(&self, offset: usize) -> u32 {
        let word = self.area.half_word(offset);
        let now = word.load(Relaxed).wrapping_add(1);
        // SeqCst: before the kernel looks for sleepers.
        word.store(now, SeqCst);
        futex_wake(word);
        now
    }

    /// Until the reader has read as often as it should.
    #[inline(never)]
    fn values(&mut self, burst: &Burst) -> Result<()> {
        let size = burst.size;
        // No value is that of an earlier burst.
        let mut n = drops::first(self.burst) + 1;
        if burst.threads == 0 {
            self.writer.write(size, |bytes| fill(bytes, n))?;
            tell(&self.area, WRITTEN, self.burst);
            return wait_for(&self.area, TAKEN, self.burst);
        }
        let gap = clock::ticks(burst.gap_ns);
        let mut due = clock::now();
        let began = Instant::now();
        // Acquire: nothing of the reader's is read before it is through.
        while self.area.word(TAKEN).load(Acquire) != self.burst {
            if gap > 0 {
                while clock::now() < due {
                    std::hint::spin_loop();
                }
                // Not made up for: a writer that lost its processor does not write faster afterwards.
                due = clock::now() + gap;
            }
            self.writer.write(size, |bytes| fill(bytes, n))?;
            if n == drops::first(self.burst) + 1 {
                tell(&self.area, WRITTEN, self.burst);
            }
            n += 1;
            if n.is_multiple_of(1 << 16) && began.elapsed() > Duration::from_secs(60) {
                return Err("the reader hangs".into());
            }
        }
        Ok(())
    }

    fn wake(&mut self, burst: &Burst, samples: &mut Vec<u64>) -> Result<()> {
        let threads = u64::from(burst.threads);
        for n in 0..burst.count {
            let all = (n + 1) * threads;
            wait_for(&self.area, ARMED, all)?;
            // For the last of them to fall asleep; a spread of times, so that no beat with a timer is measured.
            let nap = Duration::from_micros(100 + n * 37 % 80);
            let began = Instant::now();
            while began.elapsed() < nap {
                std::hint::spin_loop();
            }
            let sent = clock::now();
            self.writer.write(burst.size, |bytes| fill(bytes, n))?;
            wait_for(&self.area, WOKEN, all)?;
            samples.push(self.area.word(LAST).load(Relaxed).saturating_sub(sent));
            self.post(ON);
        }
        Ok(())
    }
}
