//! The proof that nothing is copied: both views are the same bytes of the same file, and what one process writes there
//! the other reads, without a call.

use std::path::Path;

use super::pair::Pair;
use ramway_agents::{Event, Result};

use crate::run::{Program, Scene};

/// Where in which file a byte of memory lies.
#[derive(Debug, PartialEq, Eq)]
pub struct Spot {
    device: String,
    inode: u64,
    offset: u64,
}

/// Finds an address, and `len` bytes from it on, in one mapping of `/proc/PID/maps`.
///
/// # Errors
/// It lies in none, or in one without a file.
pub fn spot(maps: &str, address: u64, len: u64) -> Result<Spot> {
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights), Some(offset), Some(device), Some(inode)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
        if !(from..to).contains(&address) {
            continue;
        }
        if address + len > to {
            return Err(format!("{len} bytes at {address:#x} go beyond their mapping, {range}").into());
        }
        let inode = inode.parse()?;
        if inode == 0 || rights.as_bytes().get(3) != Some(&b's') {
            return Err(format!("the mapping of {address:#x} is not shared: {line}").into());
        }
        let offset = u64::from_str_radix(offset, 16)? + (address - from);
        return Ok(Spot { device: device.to_owned(), inode, offset });
    }
    Err(format!("{address:#x} lies in no mapping").into())
}

/// Where the view of an event lies.
fn where_is(view: &Event, pid: u32) -> Result<Spot> {
    let text = view.get("addr").unwrap_or_default();
    let address = u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|_| format!("addr={text}"))?;
    let maps = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("maps"))?;
    spot(&maps, address, view.number("len")?)
}

fn peek(program: &mut Program, offset: u64) -> Result<u8> {
    program.ask(&format!("peek offset={offset}"), "byte")?.number("value")
}

/// The scenario.
pub fn nothing_is_copied(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let (mut producer, mut consumer) = pair.both(scene, &plan)?;
    let there = where_is(producer.ask("write len=4096", "view")?.expect("len=4096")?, producer.pid())?;
    let here = where_is(consumer.ask("hold", "view")?.expect("len=4096")?, consumer.pid())?;
    scene.note("runner", &format!("written at {there:?}, read at {here:?}"));
    if here != there {
        return Err(format!("written at {there:?}, but read at {here:?}").into());
    }
    for offset in [0, 4095, pair.random.u64(1..4095)] {
        let before = peek(&mut consumer, offset)?;
        let value = pair.random.u8(..);
        producer.ask(&format!("poke offset={offset} value={value}"), "poked")?;
        let after = peek(&mut consumer, offset)?;
        if (before, after) != (0x11, value) {
            return Err(format!("byte {offset} was {before:#x}, {value:#x} was written, {after:#x} is read").into());
        }
    }
    for program in [&mut consumer, &mut producer] {
        program.ask("release", "released")?;
    }
    consumer.finish()?;
    producer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000010000 rw-s 00001000 00:18 1234                       /dev/shm/x/r
7f0000010000-7f0000020000 rw-s 00001000 00:18 1234                       /dev/shm/x/r
7f0000030000-7f0000040000 rw-p 00000000 00:00 0                          [heap]
";

    #[test]
    fn both_halves_of_a_mirror_are_the_same_bytes() {
        let first = spot(MAPS, 0x7f00_0000_0010, 4096).expect("there");
        assert_eq!(first, Spot { device: "00:18".to_owned(), inode: 1234, offset: 0x1010 });
        assert_eq!(first, spot(MAPS, 0x7f00_0001_0010, 4096).expect("there"));
    }

    #[test]
    fn what_is_not_shared_is_found_out() {
        assert!(spot(MAPS, 0x7f00_0003_0010, 16).expect_err("private").to_string().contains("not shared"));
        assert!(spot(MAPS, 0x7f00_0005_0000, 16).expect_err("nowhere").to_string().contains("no mapping"));
        assert!(spot(MAPS, 0x7f00_0001_ff00, 4096).expect_err("too long").to_string().contains("beyond"));
    }
}
