//! Several producers at once, one reader.

use super::reads::{first_word, or_die};
use super::{LENGTH, READY, Reads, SHARE, TAKEN, Ticket, Writes, tell, wait_for};
use crate::area::Area;
use crate::case::{Burst, Test};
use crate::channel::{About, DAMAGED, End, Mechanism, Prepared, Setup, fill, sum, sum_of};
use crate::control::Control;
use crate::machine::Pinned;
use crate::{Failure, Result, clock};
use std::any::Any;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;

/// A way from several producers to one reader, which gets all of their messages.
pub trait Gather: Copy + Sync + 'static {
    /// One of the leading process's ends.
    type Writer: Writes + Send + 'static;
    /// The following process's end.
    type Reader: Reads + 'static;
    /// What it is.
    fn about(&self) -> About;
    /// Whether it can do this at all. What it cannot is no row.
    fn can(&self, burst: &Burst) -> bool;
    /// What there must be before the following process is, and what has to live as long as the row.
    ///
    /// # Errors
    /// Becomes the row's text.
    fn prepare(&self, setup: &Setup) -> std::result::Result<(Ticket, Box<dyn Any>), Failure> {
        let _ = setup;
        Ok((Ticket::default(), Box::new(())))
    }
    /// The producers of a burst, `burst.threads`, made before the first one, while the other process makes the reader.
    ///
    /// # Errors
    /// Becomes the row's text.
    fn writers(&self, setup: &Setup, burst: &Burst) -> std::result::Result<Vec<Self::Writer>, Failure>;
    /// The reader, which gives at once what any producer has sent.
    ///
    /// # Errors
    /// Becomes the row's text.
    fn reader(&self, setup: &Setup, ticket: &str, burst: &Burst) -> std::result::Result<Self::Reader, Failure>;
}

/// The mechanism of a [`Gather`].
pub struct ManyToOne<G: Gather>(pub G);

impl<G: Gather> Mechanism for ManyToOne<G> {
    fn about(&self) -> About {
        self.0.about()
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Producers && self.0.can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let (Ticket { text, mut inherit, processes }, kept) = self.0.prepare(setup)?;
        inherit.push(area.fd());
        let (gather, setup, text) = (self.0, setup.clone(), format!("{} {text}", area.fd()));
        let open = move |burst: &Burst| gather.writers(&setup, burst);
        let end = move || Ok(Box::new(Lead { open, writers: Vec::new(), area, burst: 0, _kept: kept }) as Box<dyn End>);
        Ok(Prepared::new(text, end).inherit(inherit).processes(processes))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let (fd, text) = ticket.split_once(' ').ok_or("the ticket has no descriptor")?;
        let area = Area::inherited(fd.parse()?, LENGTH)?;
        let (gather, setup, ticket) = (self.0, setup.clone(), text.to_owned());
        let open = move |burst: &Burst| gather.reader(&setup, &ticket, burst);
        Ok(Box::new(Follow { open, reader: None, area, burst: 0 }))
    }
}

/// Bits of the number of a message within its producer's burst; above them is the producer's number.
const BITS: u32 = 40;

struct Lead<O, W> {
    open: O,
    writers: Vec<W>,
    area: Area,
    burst: u64,
    /// After the writers.
    _kept: Box<dyn Any>,
}

struct Follow<O, R> {
    open: O,
    reader: Option<R>,
    area: Area,
    burst: u64,
}

impl<O, W> End for Lead<O, W>
where
    O: Fn(&Burst) -> std::result::Result<Vec<W>, Failure>,
    W: Writes + Send,
{
    fn lead(&mut self, burst: &Burst, control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        self.burst += 1;
        if self.writers.is_empty() {
            self.writers = (self.open)(burst)?;
        }
        let ready = &Barrier::new(self.writers.len() + 1);
        let (size, shares) = (burst.size, shares(burst));
        wait_for(&self.area, READY, self.burst)?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .writers
                .iter_mut()
                .zip(shares)
                .enumerate()
                .map(|(at, (writer, count))| {
                    scope.spawn(move || {
                        let _place = Pinned::nowhere();
                        ready.wait();
                        or_die(write_stream(writer, size, (at as u64) << BITS, count));
                    })
                })
                .collect();
            control.begin();
            ready.wait();
            threads.into_iter().try_for_each(|thread| thread.join()).map_err(|_| "a producer panicked")
        })?;
        control.end();
        wait_for(&self.area, TAKEN, self.burst)?;
        // Relaxed: the number above says that it is there.
        control.ratio("slowest producer / mean", f64::from_bits(self.area.word(SHARE).load(Relaxed)));
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Err("is the leading process's end".into())
    }
}

impl<O, R> End for Follow<O, R>
where
    O: Fn(&Burst) -> std::result::Result<R, Failure>,
    R: Reads,
{
    fn lead(&mut self, _burst: &Burst, _control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        Err("is the following process's end".into())
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        self.burst += 1;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert((self.open)(burst)?),
        };
        let _place = Pinned::nowhere();
        control.begin();
        let began = clock::now();
        tell(&self.area, READY, self.burst);
        let share = read_streams(reader, burst.size, &shares(burst), began)?;
        control.end();
        // Relaxed: `TAKEN` comes after it.
        self.area.word(SHARE).store(share.to_bits(), Relaxed);
        tell(&self.area, TAKEN, self.burst);
        Ok(())
    }
}

/// How many messages each producer sends.
fn shares(burst: &Burst) -> Vec<u64> {
    let threads = u64::from(burst.threads.max(1));
    (0..threads).map(|at| burst.count / threads + u64::from(at < burst.count % threads)).collect()
}

#[inline(never)]
fn write_stream(writer: &mut impl Writes, size: usize, seed: u64, count: u64) -> Result<()> {
    for n in seed..seed + count {
        writer.write(size, |bytes| fill(bytes, n))?;
    }
    writer.flush()
}

/// Reads all of them, and gives how fast the slowest producer's came by the mean.
#[inline(never)]
fn read_streams(reader: &mut impl Reads, size: usize, shares: &[u64], began: u64) -> Result<f64> {
    let mut next: Vec<u64> = (0..shares.len() as u64).map(|at| at << BITS).collect();
    let mut ended = vec![began; shares.len()];
    let mut left: u64 = shares.iter().sum();
    while left > 0 {
        let (mut found, mut whole) = (0, false);
        reader.next(size, |bytes| {
            found = first_word(bytes);
            whole = sum(bytes) == sum_of(size, found);
        })?;
        let from = (found >> BITS) as usize;
        // In each producer's order, none lost and none twice.
        if !whole || next.get(from) != Some(&found) {
            return Err(DAMAGED.into());
        }
        next[from] += 1;
        left -= 1;
        if next[from] == ((from as u64) << BITS) + shares[from] {
            ended[from] = clock::now();
        }
    }
    let rate = |(&share, &ended): (&u64, &u64)| share as f64 / ended.saturating_sub(began).max(1) as f64;
    let rates: Vec<f64> = shares.iter().zip(&ended).map(rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Ok(rates.iter().copied().fold(f64::INFINITY, f64::min) / mean.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given<I>(I);

    impl<I: Iterator<Item = (u64, u64)>> Reads for Given<I> {
        fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> std::result::Result<u64, Failure> {
            let (producer, n) = self.0.next().ok_or("no more")?;
            let mut message = vec![0; size];
            fill(&mut message, (producer << BITS) + n);
            read(&message);
            Ok(0)
        }
    }

    fn read(given: &[(u64, u64)], shares: &[u64]) -> Result<f64> {
        read_streams(&mut Given(given.iter().copied()), 32, shares, clock::now())
    }

    #[test]
    fn each_producers_messages_come_once_and_in_order() {
        let share = read(&[(0, 0), (1, 0), (1, 1), (0, 1), (0, 2)], &[3, 2]).expect("all of them");
        assert!((0.0..=1.0).contains(&share), "{share}");
        for wrong in [[(0, 0), (0, 0), (1, 0)], [(0, 1), (0, 0), (1, 0)], [(0, 0), (2, 0), (1, 0)]] {
            assert_eq!(read(&wrong, &[2, 1]).expect_err("wrong").to_string(), DAMAGED, "{wrong:?}");
        }
        assert_eq!(read(&[(0, 0)], &[2]).expect_err("one is missing").to_string(), "no more");
    }

    #[test]
    fn producers_share_what_there_is() {
        let burst = Burst { threads: 4, ..Burst::new(Test::Producers, crate::Mode::Each, 32, 10) };
        assert_eq!(shares(&burst), [3, 3, 2, 2]);
    }
}
