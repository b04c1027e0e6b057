//! One writer and several readers, one reader that the writer does not wait for, or several writers and one reader. A program
//! that measures another library implements [`Fan`] or [`Gather`] with [`Writes`] and [`Reads`], and offers [`OneToMany`] or
//! [`ManyToOne`]; the loops are shared. What writes is the leading process, what reads the following one. The several are
//! handles of one process, each in a thread of its own where they work at once.

mod drops;
mod gather;
mod leads;
mod reads;

use crate::area::Area;
use crate::case::{Burst, Test};
use crate::channel::{About, End, Mechanism, Prepared, Setup};
use crate::control::spin_until;
use crate::{Failure, Result};
use std::sync::atomic::Ordering::{Acquire, Release};

pub use gather::{Gather, ManyToOne};

/// The writing end.
pub trait Writes {
    /// Writes a message or a value of `size` bytes, which is visible on return.
    ///
    /// # Errors
    /// Ends the row.
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> std::result::Result<(), Failure>;

    /// Sends what was written and kept back, where writing does that.
    ///
    /// # Errors
    /// Ends the row.
    fn flush(&mut self) -> std::result::Result<(), Failure> {
        Ok(())
    }

    /// How many messages of this size it may write before it would wait for readers that read nothing; `None`: it never
    /// waits for them.
    fn room(&self, size: usize) -> Option<u64> {
        let _ = size;
        None
    }
}

/// A reading end.
pub trait Reads {
    /// Whether it misses what is sent before the writer knows of it, and what a full queue has no room for. Then what a stream
    /// loses is counted and shown, and only what arrives counts as an operation.
    const DROPS: bool = false;

    /// Waits for the next message and reads it; gives how many were lost right before it.
    ///
    /// # Errors
    /// Ends the row.
    fn next(&mut self, size: usize, read: impl FnMut(&[u8])) -> std::result::Result<u64, Failure>;

    /// Reads the newest message or value, whatever was read before. Waits for the first one only.
    ///
    /// # Errors
    /// Ends the row.
    fn newest(&mut self, size: usize, read: impl FnMut(&[u8])) -> std::result::Result<(), Failure> {
        let _ = (size, read);
        Err("has no newest value".into())
    }

    /// Leaves out everything that was written so far.
    ///
    /// # Errors
    /// Ends the row.
    fn skip(&mut self) -> std::result::Result<(), Failure> {
        Ok(())
    }
}

/// A way from one writer to many readers.
pub trait Fan: Copy + Sync + 'static {
    /// The leading process's end.
    type Writer: Writes + 'static;
    /// One of the following process's ends.
    type Reader: Reads + Send + 'static;
    /// What it is.
    fn about(&self) -> About;
    /// Whether it can do this at all. What it cannot is no row.
    fn can(&self, burst: &Burst) -> bool;
    /// The writer, and what the other process needs to know to join.
    ///
    /// # Errors
    /// Becomes the row's text.
    fn writer(&self, setup: &Setup) -> std::result::Result<(Self::Writer, Ticket), Failure>;
    /// The readers of a burst, made before the first one: with [`Test::Publish`](crate::Test::Publish) as many as the
    /// mechanism is about, else `burst.threads`, and at least one.
    ///
    /// # Errors
    /// Becomes the row's text.
    fn readers(&self, setup: &Setup, ticket: &str, burst: &Burst) -> std::result::Result<Vec<Self::Reader>, Failure>;
}

/// What the other process needs to know to join.
#[derive(Clone, Debug, Default)]
pub struct Ticket {
    /// In words of the mechanism's own.
    pub text: String,
    /// Descriptors that it inherits under the same numbers; the writer keeps them open.
    pub inherit: Vec<std::os::fd::RawFd>,
    /// Processes that were started for the purpose.
    pub processes: Vec<u32>,
}

/// Memory of whole lines: a copy that straddles two takes half as long again, by where the heap happens to put it.
pub struct Lines(Vec<Line>);

#[derive(Clone)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

impl Lines {
    /// At least this many bytes.
    pub fn new(len: usize) -> Self {
        Self(vec![Line { _bytes: [0; 64] }; len.div_ceil(64)])
    }

    /// The first `len` bytes.
    #[inline(always)]
    pub fn bytes(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.0.len() * 64);
        // SAFETY: inside of the vector, whose elements are bytes without gaps.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

/// The mechanism of a [`Fan`].
pub struct OneToMany<F: Fan>(pub F);

/// The name of the share of a stream that arrived.
pub(crate) const RECEIVED_BY_SENT: &str = "received / sent";
const LENGTH: usize = 4096;
/// The number of the burst for which the readers are ready.
const READY: usize = 0;
/// The number of the burst that was written to its end.
const WRITTEN: usize = 128;
/// The number of the burst that was read to its end.
const TAKEN: usize = 256;
/// How often the readers were asked to skip, and how often they have.
const ASKED: usize = 384;
const SKIPPED: usize = 512;
/// What the readers found.
const RECEIVED: usize = 640;
const LOST: usize = 768;
const SHARE: usize = 896;
/// How many sleepers were about to sleep so far in this burst, how many were woken, and when the last of them was.
const ARMED: usize = 1024;
const WOKEN: usize = 1152;
const LAST: usize = 1280;
/// How often all of them were let go on, on which they sleep until then.
const ON: usize = 1408;

impl<F: Fan> Mechanism for OneToMany<F> {
    fn about(&self) -> About {
        self.0.about()
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test.is_fan() && burst.test != Test::Producers && self.0.can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let area = Area::new(LENGTH)?;
        let (writer, ticket) = self.0.writer(setup)?;
        let mut inherit = ticket.inherit;
        inherit.push(area.fd());
        let text = format!("{} {}", area.fd(), ticket.text);
        let end = move || Ok(Box::new(leads::Lead::<_, F::Reader>::new(writer, area)) as Box<dyn End>);
        Ok(Prepared::new(text, end).inherit(inherit).processes(ticket.processes))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let (fd, text) = ticket.split_once(' ').ok_or("the ticket has no descriptor")?;
        let area = Area::inherited(fd.parse()?, LENGTH)?;
        let (fan, setup, ticket) = (self.0, setup.clone(), text.to_owned());
        let open = move |burst: &Burst| fan.readers(&setup, &ticket, burst);
        Ok(Box::new(reads::Follow { open, readers: Vec::new(), area, burst: 0 }))
    }
}

/// Says a number to the other process, which polls.
fn tell(area: &Area, offset: usize, value: u64) {
    // Release: what was stored before is visible to who sees it.
    area.word(offset).store(value, Release);
}

/// Waits for a number, outside of what is timed.
fn wait_for(area: &Area, offset: usize, value: u64) -> Result<()> {
    // Acquire: pairs with `tell`.
    spin_until(|| area.word(offset).load(Acquire) == value)
}
