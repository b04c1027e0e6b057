//! What a hostile process can do: write anything anywhere into the memory it shares.
//!
//! Through `/proc/self/mem`, so that the test peer needs neither a second mapping nor `unsafe`, and it works for a
//! bus, whose memory has no name.

use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Result};
use std::os::unix::fs::FileExt;

/// Segment offset of the word `data_offset` of block 0.
const DATA_OFFSET: u64 = 0x400;

/// One line of `/proc/self/maps` that leads into a segment of this process.
struct Mapping {
    start: u64,
    end: u64,
    /// Of its first byte in the segment.
    offset: u64,
    writable: bool,
}

fn mappings() -> Result<Vec<Mapping>> {
    let mut maps = String::new();
    File::open("/proc/self/maps")?.read_to_string(&mut maps)?;
    Ok(maps
        .lines()
        .filter(|line| line.contains("ramway") && !line.contains("ramway-node-peer"))
        .filter_map(parse)
        .collect())
}

/// `start-end rwxs offset device inode path`, all in hexadecimal.
fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(words.next()?)?,
        writable: rights.contains("ws") || rights.contains("w-s"),
    })
}

fn address(offset: u64, len: u64, to_write: bool) -> Result<u64> {
    let all = mappings()?;
    let covers = |m: &&Mapping| m.offset <= offset && offset + len <= m.offset + (m.end - m.start);
    let mapping = all.iter().filter(|m| m.writable || !to_write).find(covers);
    let mapping = mapping.ok_or_else(|| Error::other("no mapping has these bytes"))?;
    Ok(mapping.start + (offset - mapping.offset))
}

/// Writes over bytes of the segment.
pub(crate) fn write(offset: u64, bytes: &[u8]) -> Result<()> {
    let at = address(offset, bytes.len() as u64, true)?;
    OpenOptions::new().write(true).open("/proc/self/mem")?.write_all_at(bytes, at)
}

pub(crate) fn read(offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, address(offset, len as u64, false)?)?;
    Ok(bytes)
}

/// Where the ring data of block 0 begins in the segment.
pub(crate) fn data_of_block_0() -> Result<u64> {
    let word = read(DATA_OFFSET, 8)?;
    Ok(word.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect()
}
