//! The readers' half.

use super::{
    ARMED, ASKED, LAST, LOST, ON, READY, RECEIVED, Reads, SHARE, SKIPPED, TAKEN, WOKEN, WRITTEN, drops, tell, wait_for,
};
use crate::area::{Area, futex_wait_untimed};
use crate::case::{Burst, Test};
use crate::channel::{DAMAGED, End, sum, sum_of, verify};
use crate::control::Control;
use crate::machine::Pinned;
use crate::{Failure, Result, clock};
use std::sync::Barrier;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

pub(super) struct Follow<O, R> {
    pub(super) open: O,
    pub(super) readers: Vec<R>,
    pub(super) area: Area,
    /// The number of the burst, as the writer counts too.
    pub(super) burst: u64,
}

/// What a reader has of a stream.
pub(super) struct Taken {
    pub(super) received: u64,
    /// When it had read the last of it.
    pub(super) ended: u64,
}

impl<O, R> End for Follow<O, R>
where
    O: Fn(&Burst) -> std::result::Result<Vec<R>, Failure>,
    R: Reads + Send,
{
    fn lead(&mut self, _burst: &Burst, _control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        Err("is the following process's end".into())
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        self.burst += 1;
        if self.readers.is_empty() {
            self.readers = (self.open)(burst)?;
        }
        match burst.test {
            Test::Readers => self.read_all(burst, control)?,
            Test::Publish => self.stay()?,
            Test::Lapped => self.read_some(burst, control)?,
            Test::Latest => self.read_newest(burst, control)?,
            Test::WakeAll => self.sleep(burst)?,
            _ => return Err("is for one writer and several readers".into()),
        }
        control.end();
        tell(&self.area, TAKEN, self.burst);
        Ok(())
    }
}

impl<O, R: Reads + Send> Follow<O, R> {
    /// Each in a thread; several on whatever processor there is.
    fn read_all(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        let (size, count) = (burst.size, burst.count);
        let several = self.readers.len() > 1;
        let ready = &Barrier::new(self.readers.len() + 1);
        let (area, number) = (&self.area, self.burst);
        let (began, taken) = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .readers
                .iter_mut()
                .map(|reader| {
                    scope.spawn(move || {
                        let _place = several.then(Pinned::nowhere);
                        if R::DROPS {
                            or_die(drops::join(reader, size, number));
                            ready.wait();
                            return or_die(drops::read(reader, size, number));
                        }
                        ready.wait();
                        or_die(read_stream(reader, size, count));
                        Taken { received: count, ended: clock::now() }
                    })
                })
                .collect();
            ready.wait();
            control.begin();
            let began = clock::now();
            tell(area, READY, number);
            let taken: std::result::Result<Vec<Taken>, _> = threads.into_iter().map(|thread| thread.join()).collect();
            taken.map(|taken| (began, taken)).map_err(|_| "a reader panicked")
        })?;
        control.end();
        if let (true, Some(ended)) = (R::DROPS, taken.iter().map(|one| one.ended).max()) {
            // What told the readers that it was over came later.
            control.ended_at(ended.max(began));
        }
        let rate = |one: &Taken| one.received as f64 / one.ended.saturating_sub(began).max(1) as f64;
        let rates: Vec<f64> = taken.iter().map(rate).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let share = rates.iter().copied().fold(f64::INFINITY, f64::min) / mean.max(f64::MIN_POSITIVE);
        // Relaxed: `TAKEN` comes after them.
        self.area.word(SHARE).store(share.to_bits(), Relaxed);
        self.area.word(RECEIVED).store(taken.iter().map(|one| one.received).sum(), Relaxed);
        Ok(())
    }

    /// Asleep, but for when the writer wants room.
    fn stay(&mut self) -> Result<()> {
        let word = self.area.half_word(ASKED);
        let mut seen = word.load(Acquire);
        tell(&self.area, READY, self.burst);
        loop {
            while word.load(Acquire) == seen {
                futex_wait_untimed(word, seen);
            }
            seen = word.load(Acquire);
            for reader in &mut self.readers {
                reader.skip()?;
            }
            tell(&self.area, SKIPPED, u64::from(seen));
            if self.area.word(WRITTEN).load(Acquire) == self.burst {
                return Ok(());
            }
        }
    }

    /// The last message stays intact, so whoever reads on comes to it.
    #[inline(never)]
    fn read_some(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        let Burst { size, count, work_ns, .. } = *burst;
        let labour = clock::ticks(work_ns);
        tell(&self.area, READY, self.burst);
        control.begin();
        let reader = self.readers.first_mut().ok_or("no reader")?;
        let (mut received, mut lost, mut at, mut torn) = (0, 0, 0, false);
        while received == 0 || at + 1 < count {
            lost += reader.next(size, |bytes| {
                at = first_word(bytes);
                torn |= sum(bytes) != sum_of(size, at);
            })?;
            received += 1;
            if labour > 0 {
                let until = clock::now() + labour;
                while clock::now() < until {
                    std::hint::spin_loop();
                }
            }
        }
        if torn {
            return Err(DAMAGED.into());
        }
        // Relaxed: `TAKEN` comes after them.
        self.area.word(RECEIVED).store(received, Relaxed);
        self.area.word(LOST).store(lost, Relaxed);
        Ok(())
    }

    #[inline(never)]
    fn read_newest(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        let Burst { size, count, group, .. } = *burst;
        if R::DROPS {
            drops::find(self.readers.first_mut().ok_or("no reader")?, size, self.burst)?;
        }
        tell(&self.area, READY, self.burst);
        // The first value of the burst, so that there is one.
        wait_for(&self.area, WRITTEN, self.burst)?;
        control.begin();
        let reader = self.readers.first_mut().ok_or("no reader")?;
        let (mut newest, mut wrong) = (drops::first(self.burst), false);
        let mut left = count;
        while left > 0 {
            let now = u64::from(group).min(left);
            let began = clock::now();
            for _ in 0..now {
                reader.newest(size, |bytes| {
                    let first = first_word(bytes);
                    // Torn, or older than one before.
                    wrong |= sum_of_value(bytes) != sum_of(size, first) || first < newest;
                    newest = first;
                })?;
            }
            let took = clock::now() - began;
            if now == u64::from(group) {
                control.sample(took);
            }
            left -= now;
        }
        if wrong { Err(DAMAGED.into()) } else { Ok(()) }
    }

    /// Each in a thread, all on this process's processor.
    fn sleep(&mut self, burst: &Burst) -> Result<()> {
        let (size, count) = (burst.size, burst.count);
        let area = &self.area;
        std::thread::scope(|scope| {
            for reader in &mut self.readers {
                scope.spawn(move || {
                    let mut total = 0u64;
                    for _ in 0..count {
                        // AcqRel: the writer, which sees that all are here, has seen what each did before.
                        area.word(ARMED).fetch_add(1, AcqRel);
                        or_die(reader.next(size, |bytes| total = total.wrapping_add(sum(bytes))));
                        area.word(LAST).fetch_max(clock::now(), Relaxed);
                        let on = area.half_word(ON).load(Acquire);
                        // AcqRel: the times of all go before the count of the last of them.
                        area.word(WOKEN).fetch_add(1, AcqRel);
                        // The next wait is not begun before all are awake: what it costs would be in the time of those that
                        // run after this one.
                        while area.half_word(ON).load(Acquire) == on {
                            futex_wait_untimed(area.half_word(ON), on);
                        }
                    }
                    or_die(verify(total, size, count));
                });
            }
            tell(area, READY, self.burst);
        });
        Ok(())
    }
}

fn read_stream(reader: &mut impl Reads, size: usize, count: u64) -> Result<()> {
    let (mut total, mut lost) = (0u64, 0);
    for _ in 0..count {
        lost += reader.next(size, |bytes| total = total.wrapping_add(sum(bytes)))?;
    }
    if lost > 0 {
        return Err(format!("{lost} messages were lost").into());
    }
    verify(total, size, count)
}

/// A value of a line is read in a few nanoseconds: word by word, as whoever uses its fields does. Loads that the compiler made
/// wider would straddle the stores of the copy, wait until those are in the cache, and take longer than all the rest.
#[inline(always)]
fn sum_of_value(bytes: &[u8]) -> u64 {
    const WORDS: usize = 8;
    let start = bytes.as_ptr().cast::<u64>();
    if bytes.len() != size_of::<[u64; WORDS]>() || !start.is_aligned() {
        return sum(bytes);
    }
    // SAFETY: inside of the bytes, and aligned.
    (0..WORDS).fold(0, |sum, at| sum.wrapping_add(unsafe { start.add(at).read_volatile() }))
}

/// Ends the process, with the reason as its last words: the other readers wait for messages that the writer, which waits for
/// this one, never sends.
pub(super) fn or_die<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|cause| {
        eprintln!("{cause}");
        std::process::exit(1)
    })
}

#[inline(always)]
pub(super) fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |word| u64::from_ne_bytes(*word))
}
