//! What a mechanism is: an end in each of two processes, and for those that carry messages the same loops over each.

use crate::Result;
use crate::case::{Burst, Mode};
use crate::control::Control;
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::path::PathBuf;

/// Where a mechanism comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// The operating system's own.
    Kernel,
    /// Shared memory with a few lines around it; floors and ceilings too.
    ByHand,
    /// Ramway.
    Ramway,
    /// Another library.
    Peer,
}

/// What the report says about a mechanism besides figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// Short, lower case, with dashes: the row's name.
    pub name: String,
    /// Where it comes from.
    pub kind: Kind,
    /// One line.
    pub what: String,
    /// Of the library that is measured; empty for what is written here.
    pub version: String,
    /// Whether the payload is copied on its way from where the sender writes it to where the receiver reads it.
    pub copied: bool,
}

impl About {
    /// Of something that is written here.
    pub fn new(name: &str, kind: Kind, copied: bool, what: &str) -> Self {
        Self { name: name.into(), kind, what: what.into(), version: String::new(), copied }
    }

    /// The same with a library's version.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }
}

/// What both processes know before they open a mechanism.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Setup {
    /// A directory in memory, empty at first and nobody else's; removed afterwards.
    pub directory: PathBuf,
    /// The same on a disk.
    pub disk: PathBuf,
    /// Bytes of buffering between the two sides, where that can be chosen.
    pub capacity: u64,
    /// Bytes of the largest message that will come.
    pub largest: usize,
    /// Where the leading and the following process are pinned to; `None`: not pinned.
    pub cpus: [Option<usize>; 2],
    /// Whether to ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
}

/// What the leading process has made ready before the following one exists.
#[non_exhaustive]
pub struct Prepared {
    /// What the other process needs to know to join.
    pub ticket: String,
    /// Descriptors that it inherits under the same numbers. What owns them is inside `finish`.
    pub inherit: Vec<RawFd>,
    /// Processes that were started for the purpose, beside these two: what they use is added to the following one's.
    pub processes: Vec<u32>,
    /// Called when the following process runs (it may be joining at the same time).
    pub finish: Finish,
}

/// Makes the leading process's end.
pub type Finish = Box<dyn FnOnce() -> Result<Box<dyn End>>>;

impl Prepared {
    /// For a mechanism whose other side needs a word only.
    pub fn new(ticket: impl Into<String>, finish: impl FnOnce() -> Result<Box<dyn End>> + 'static) -> Self {
        Self { ticket: ticket.into(), inherit: Vec::new(), processes: Vec::new(), finish: Box::new(finish) }
    }

    /// The same, with descriptors that the other side inherits under the same numbers.
    pub fn inherit(mut self, fds: Vec<RawFd>) -> Self {
        self.inherit = fds;
        self
    }

    /// The same, with processes (a broker) whose use of processor and memory is added to the following process's.
    pub fn processes(mut self, pids: Vec<u32>) -> Self {
        self.processes = pids;
        self
    }
}

/// One way of getting something from a process to another: a file of `mechanism/` each.
pub trait Mechanism: Sync {
    /// What it is.
    fn about(&self) -> About;
    /// Whether it can do this at all. What it cannot is no row.
    fn can(&self, burst: &Burst) -> bool;
    /// The leading process's part.
    ///
    /// # Errors
    /// Becomes the row's text: say what is missing on this machine.
    fn prepare(&self, setup: &Setup) -> Result<Prepared>;
    /// The following process's part.
    ///
    /// # Errors
    /// As for [`prepare`](Self::prepare).
    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>>;
}

/// One side of a mechanism that is ready to be measured. Every [`Channel`] is one.
pub trait End {
    /// The half of the process that measures: adds the ticks of every `group` operations to `samples` if the test
    /// is timed on this side (`rtt`, `pauses`).
    ///
    /// # Errors
    /// Ends the row.
    fn lead(&mut self, burst: &Burst, control: &Control, samples: &mut Vec<u64>) -> Result<()>;
    /// The other half: adds ticks to the control page if the test is timed on this side.
    ///
    /// # Errors
    /// Ends the row.
    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()>;
}

/// An end that carries messages both ways.
pub trait Channel {
    /// How both sides wait from now on.
    ///
    /// # Errors
    /// Ends the row.
    fn configure(&mut self, mode: Mode) -> Result<()>;
    /// Sends `size` bytes that `fill` writes; with `flush`, they and all before them are visible on return.
    ///
    /// # Errors
    /// Ends the row.
    fn send(&mut self, size: usize, flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()>;
    /// Sends `count` messages of `size` bytes that become visible together. `fill` writes each and is told which it is.
    ///
    /// # Errors
    /// Ends the row.
    #[inline(always)]
    fn send_together(&mut self, size: usize, count: u32, mut fill: impl FnMut(u32, &mut [u8])) -> Result<()> {
        for at in 0..count {
            self.send(size, at + 1 == count, |bytes| fill(at, bytes))?;
        }
        Ok(())
    }
    /// Receives at least one and at most `max` messages, the first (all, if `max` is more than 1) of `size` bytes, and
    /// gives their space back. How many? A mechanism whose messages carry their length checks it.
    ///
    /// # Errors
    /// Ends the row.
    fn receive(&mut self, size: usize, max: u32, read: impl FnMut(&[u8])) -> Result<u32>;
}

/// Writes every byte of a message: the 64-bit words `seed`, `seed + 1`, ….
#[inline(always)]
pub fn fill(bytes: &mut [u8], seed: u64) {
    // The length as a constant, where it matters.
    match <&mut [u8; 32]>::try_from(&mut *bytes) {
        Ok(bytes) => fill_words(bytes, seed),
        Err(_) => fill_many(bytes, seed),
    }
}

/// The same instructions for every mechanism: inlined, this loop takes up to 40 % longer in one than in another, by how the
/// compiler unrolls it there.
#[inline(never)]
fn fill_many(bytes: &mut [u8], seed: u64) {
    fill_words(bytes, seed);
}

#[inline(always)]
fn fill_words(bytes: &mut [u8], seed: u64) {
    // As arrays: `copy_from_slice` is a call where the program is not linked as a whole.
    for (i, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *word = seed.wrapping_add(i as u64).to_ne_bytes();
    }
}

/// Reads every byte of a message: the sum of its 64-bit words.
#[inline(always)]
pub fn sum(bytes: &[u8]) -> u64 {
    match <&[u8; 32]>::try_from(bytes) {
        Ok(bytes) => sum_words(bytes),
        Err(_) => sum_many(bytes),
    }
}

/// For the reason that [`fill_many`] has.
#[inline(never)]
fn sum_many(bytes: &[u8]) -> u64 {
    sum_words(bytes)
}

#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    bytes.as_chunks().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// The sum of a message of `size` bytes that [`fill`] wrote with this seed.
#[inline(always)]
pub fn sum_of(size: usize, seed: u64) -> u64 {
    let words = size as u64 / 8;
    words.wrapping_mul(seed).wrapping_add(words * words.saturating_sub(1) / 2)
}

/// Compares what was read with what `count` messages of seeds 0, 1, … hold.
///
/// # Errors
/// A message was lost, repeated or damaged.
pub fn verify(total: u64, size: usize, count: u64) -> Result<()> {
    let (words, count) = (size as u128 / 8, u128::from(count));
    let expected = words * (count * count.saturating_sub(1) / 2) + count * (words * words.saturating_sub(1) / 2);
    if total == expected as u64 { Ok(()) } else { Err(DAMAGED.into()) }
}

/// What a run says of a mechanism that does not carry what it was given.
pub(crate) const DAMAGED: &str = "the bytes received are not the bytes sent";
