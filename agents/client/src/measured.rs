//! Whether a receiver that was measured has read what was sent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::{Event, Result};

/// How many messages differ: number n of S bytes is the little-endian 64-bit words `n % CYCLE` and those after it.
pub const CYCLE: u64 = 4096;

/// Compares what a `measured` event says was read with `count` messages of `size` bytes, each read to the last byte in the
/// cheapest way that a language has: `words`, the sum of all words; `adler32`, of all bytes; or `sums`, of all bytes and
/// of these sums.
///
/// # Errors
/// A message was lost, repeated, exchanged or damaged; or the event has none of the three.
pub fn check(event: &Event, count: u64, size: u64) -> Result<()> {
    compare(event, CYCLE, count, size)
}

/// The same for one that has read the newest message `count` times, which was message number 0 all the time.
///
/// # Errors
/// Another message was read, or a damaged one; or the event has none of the three.
pub fn check_latest(event: &Event, count: u64, size: u64) -> Result<()> {
    compare(event, 1, count, size)
}

/// Of messages that begin again after `cycle` of them.
fn compare(event: &Event, cycle: u64, count: u64, size: u64) -> Result<()> {
    let right = if event.get("words").is_some() {
        event.number::<u64>("words")? == words(cycle, count, size)
    } else if event.get("adler32").is_some() {
        event.number::<u32>("adler32")? == known(Kind::Adler, cycle, count, size)[0]
    } else {
        event.numbers::<u32>("sums")? == known(Kind::Sums, cycle, count, size)
    };
    if right { Ok(()) } else { Err("the bytes received are not the bytes sent".into()) }
}

/// The sum of all words, modulo 2^64.
fn words(cycle: u64, count: u64, size: u64) -> u64 {
    let sum = |n: u64| u128::from(n) * u128::from(n.saturating_sub(1)) / 2;
    let numbers = u128::from(count / cycle) * sum(cycle) + sum(count % cycle);
    (u128::from(size / 8) * numbers + u128::from(count) * sum(size / 8)) as u64
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Adler,
    Sums,
}

/// What was read already: all stretches of a run are alike.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// By the way of reading, how many messages differ, how many there are, and of how many bytes.
type Known = HashMap<(Kind, u64, u64, u64), [u32; 2]>;

fn known(kind: Kind, cycle: u64, count: u64, size: u64) -> [u32; 2] {
    // A panic elsewhere leaves the map whole.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.get_or_insert_default().entry((kind, cycle, count, size)).or_insert_with(|| read(kind, cycle, count, size))
}

fn read(kind: Kind, cycle: u64, count: u64, size: u64) -> [u32; 2] {
    let bytes = (0..count).flat_map(|n| (0..size / 8).flat_map(move |word| (n % cycle + word).to_le_bytes()));
    let (mut one, mut two) = (1u32, 0u32);
    for byte in bytes {
        one = one.wrapping_add(byte.into());
        two = two.wrapping_add(one);
        if kind == Kind::Adler {
            (one, two) = (one % 65521, two % 65521);
        }
    }
    if kind == Kind::Adler { [two << 16 | one, 0] } else { [one, two] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let sum =
            |count: u64, size: u64| (0..count).flat_map(|n| (0..size / 8).map(move |i| n % CYCLE + i)).sum::<u64>();
        for (count, size) in [(1, 8), (10, 32), (7, 4096), (4096, 32), (10_000, 32)] {
            assert_eq!(words(CYCLE, count, size), sum(count, size), "{count} of {size}");
        }
        // By Python's zlib, and by hand.
        assert_eq!(read(Kind::Adler, CYCLE, 2, 16), [0x0058_0005, 0]);
        assert_eq!(read(Kind::Sums, CYCLE, 1, 16), [2, 24]);
        let said = |text: &str, count| check(&Event::parse(&format!("measured {text}")), count, 16);
        assert!(said("words=1", 1).is_ok() && said("words=2", 1).is_err() && said("sums=2,24", 1).is_ok());
        // Three times message number 0.
        let newest = |text: &str| check_latest(&Event::parse(&format!("measured {text}")), 3, 16);
        assert!(newest("words=3").is_ok() && newest("words=9").is_err() && newest("sums=4,100").is_err());
        assert!(said("sums=2,23", 1).is_err() && said("adler32=1", 1).is_err() && said("", 1).is_err());
    }
}
