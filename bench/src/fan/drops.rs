//! A stream of which a reader may miss messages: publish-subscribe over sockets. The first word of a message is the number of
//! the burst and, below it, 0 before the stream begins, 1 and on for its messages, and [`LAST`] after it. The writer repeats the
//! first until every reader has seen one, and the last until every reader has said that it is through: any of them may be lost.

use super::reads::{Taken, first_word};
use super::{RECEIVED_BY_SENT, Reads, Writes};
use crate::area::Area;
use crate::case::Burst;
use crate::channel::{DAMAGED, fill, sum, sum_of};
use crate::control::Control;
use crate::{Result, clock};
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// Bits of the number of a message within its burst.
const BITS: u32 = 40;
const LAST: u64 = (1 << BITS) - 1;
/// Between two repetitions, in which readers and the library's threads run.
const PAUSE: Duration = Duration::from_micros(100);
/// Beyond it the readers hang.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What comes before the messages of a burst.
pub(super) fn first(burst: u64) -> u64 {
    burst << BITS
}

/// What comes after them.
pub(super) fn last(burst: u64) -> u64 {
    first(burst) | LAST
}

/// Writes a message again and again until the word of the area at `until.0` is `until.1`.
pub(super) fn repeat(
    writer: &mut impl Writes,
    area: &Area,
    size: usize,
    message: u64,
    until: (usize, u64),
) -> Result<()> {
    let began = Instant::now();
    // Acquire: pairs with `tell`.
    while area.word(until.0).load(Acquire) != until.1 {
        writer.write(size, |bytes| fill(bytes, message))?;
        writer.flush()?;
        std::thread::sleep(PAUSE);
        if began.elapsed() > WAIT_MAX {
            return Err("the readers get nothing".into());
        }
    }
    Ok(())
}

#[inline(never)]
pub(super) fn stream(writer: &mut impl Writes, burst: &Burst, number: u64) -> Result<()> {
    let begin = first(number) + 1;
    for n in begin..begin + burst.count {
        writer.write(burst.size, |bytes| fill(bytes, n))?;
    }
    writer.flush()
}

/// Until a message of this burst has come: then the writer knows this reader.
pub(super) fn join(reader: &mut impl Reads, size: usize, number: u64) -> Result<()> {
    let mut found = 0;
    while found >> BITS != number {
        reader.next(size, |bytes| found = first_word(bytes))?;
    }
    Ok(())
}

/// The same of a reader of the newest value.
pub(super) fn find(reader: &mut impl Reads, size: usize, number: u64) -> Result<()> {
    let (mut found, began) = (0, Instant::now());
    while found >> BITS != number {
        reader.newest(size, |bytes| found = first_word(bytes))?;
        if began.elapsed() > WAIT_MAX {
            return Err("no value arrives".into());
        }
    }
    Ok(())
}

/// Reads what arrives of a stream, every byte of it.
#[inline(never)]
pub(super) fn read(reader: &mut impl Reads, size: usize, number: u64) -> Result<Taken> {
    let (mut received, mut ended, mut newest) = (0, 0, 0);
    loop {
        let (mut found, mut whole) = (0, false);
        reader.next(size, |bytes| {
            found = first_word(bytes);
            whole = sum(bytes) == sum_of(size, found);
        })?;
        let (burst, at) = (found >> BITS, found & LAST);
        if !whole || burst > number {
            return Err(DAMAGED.into());
        }
        // One that was repeated, and came late.
        if burst < number || at == 0 {
            continue;
        }
        if at == LAST {
            return Ok(Taken { received, ended });
        }
        if at <= newest {
            return Err("a message came twice, or after one that was sent later".into());
        }
        (received, newest, ended) = (received + 1, at, clock::now());
    }
}

/// Says what came of a burst, of all readers together.
pub(super) fn count(control: &Control, burst: &Burst, received: u64) {
    let readers = u64::from(burst.threads.max(1));
    control.ratio(RECEIVED_BY_SENT, received as f64 / (burst.count * readers) as f64);
    control.operations(received / readers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::fan::{READY, TAKEN, tell};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A way that loses each message for which the first function says so, and changes others by the second one.
    struct Leaky<L, C> {
        to: Sender<Vec<u8>>,
        sent: u64,
        loses: L,
        change: C,
    }

    impl<L: FnMut(u64) -> bool, C: FnMut(u64, &mut [u8])> Writes for Leaky<L, C> {
        fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> std::result::Result<(), Failure> {
            let mut message = vec![0; size];
            fill(&mut message);
            (self.change)(self.sent, &mut message);
            if !(self.loses)(self.sent) {
                self.to.send(message)?;
            }
            self.sent += 1;
            Ok(())
        }
    }

    struct From(Receiver<Vec<u8>>);

    impl Reads for From {
        fn next(&mut self, _size: usize, mut read: impl FnMut(&[u8])) -> std::result::Result<u64, Failure> {
            read(&self.0.recv()?);
            Ok(0)
        }
    }

    /// Two bursts of `count` messages; what came of each.
    fn run(
        count: u64,
        loses: impl FnMut(u64) -> bool + Send,
        change: impl FnMut(u64, &mut [u8]) + Send,
    ) -> Result<Vec<u64>> {
        let burst = Burst::new(crate::Test::Readers, crate::Mode::Each, 32, count);
        let area = &Area::new(crate::fan::LENGTH)?;
        let (to, from) = channel();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut reader = From(from);
                let mut all = Vec::new();
                for number in 1..=2 {
                    join(&mut reader, 32, number)?;
                    tell(area, READY, number);
                    let taken = read(&mut reader, 32, number);
                    // The writer goes on in any case.
                    tell(area, TAKEN, number);
                    all.push(taken?.received);
                }
                Ok(all)
            });
            let mut writer = Leaky { to, sent: 0, loses, change };
            for number in 1..=2 {
                // An error means that the reader is gone, which says why itself.
                let _ = repeat(&mut writer, area, 32, first(number), (READY, number))
                    .and_then(|()| stream(&mut writer, &burst, number))
                    .and_then(|()| repeat(&mut writer, area, 32, last(number), (TAKEN, number)));
                if reader.is_finished() {
                    break;
                }
            }
            drop(writer);
            reader.join().map_err(|_| "the reader panicked")?
        })
    }

    #[test]
    fn what_arrives_is_counted() {
        assert_eq!(run(1000, |_| false, |_, _| {}).expect("two bursts"), [1000, 1000]);
        // Of the first message of each kind too, which is sent again.
        let half = run(1000, |n| n % 2 == 0, |_, _| {}).expect("two bursts");
        assert!(half.iter().all(|received| (499..=501).contains(received)), "{half:?}");
        assert_eq!(run(0, |n| n % 3 > 0, |_, _| {}).expect("two bursts"), [0, 0]);
    }

    #[test]
    fn what_is_damaged_or_comes_twice_is_found() {
        // The number of a message that is sent after the ones before the stream, however many those are.
        let at = |bytes: &[u8]| first_word(bytes) & LAST;
        let torn = run(1000, |_| false, |_, bytes| bytes[24] ^= u8::from(at(bytes) == 500));
        assert_eq!(torn.expect_err("damaged").to_string(), DAMAGED);
        let twice = run(
            1000,
            |_| false,
            |_, bytes| {
                if at(bytes) == 500 {
                    fill(bytes, first_word(bytes) - 1);
                }
            },
        );
        assert!(twice.expect_err("twice").to_string().contains("came twice"));
    }
}
