//! The local ends of reliable streams, whatever kind of segment they stand on.

use crate::stream::{Ending, Record};
use ramway::ErrorKind;
use ramway::ring::raw::WaitLimit;
use std::time::{Duration, Instant};

/// A frame of the near segment. Its bytes stay where they are until it is released, or the source goes back or is left.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its number.
    pub start: u64,
    /// The number of the next one.
    pub next: u64,
    /// The sender's type id.
    pub type_id: u32,
    /// The sender's tag.
    pub tag: u64,
    /// Of a topic: its number for readers.
    pub seq: u64,
    /// Of a topic: when it was published.
    pub time: u64,
    /// Where its bytes are.
    pub data: *const u8,
    /// How many.
    pub len: u32,
    /// Of a call: since when it is known to be here. The time that it has left grows less by what it waits.
    pub since: Option<Instant>,
}

// SAFETY: the address leads into a mapping that the source keeps, which has no thread affinity.
unsafe impl Send for Found {}

/// A near segment, read ahead of what is released.
pub trait Source: Send {
    /// The next frame after the last one that this gave.
    ///
    /// # Errors
    /// As for [`Receiver::recv`](ramway::Receiver::recv).
    fn next(&mut self, limit: WaitLimit) -> ramway::Result<Found>;

    /// Notes what has come, while it cannot be sent: for frames that must not wait for longer than they say.
    fn look(&mut self) {}

    /// The number of the first frame that is not released.
    fn first(&mut self) -> u64;

    /// Goes back to it.
    fn rewind(&mut self);

    /// Releases the frames before this one, all of which were read.
    fn release(&mut self, before: u64);

    /// Bytes that are published and not released, headers included.
    fn backlog(&self) -> u64;

    /// Ends a wait.
    fn waker(&self) -> ramway::Waker;

    /// Alignment and capacity.
    fn geometry(&self) -> (u32, u64);

    /// The sender's epoch.
    fn peer_epoch(&self) -> u32;

    /// Waits for another sender.
    ///
    /// # Errors
    /// As for [`Receiver::wait_for_peer`](ramway::Receiver::wait_for_peer).
    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32>;

    /// Gives the role up; the sender is told so. `for_good`: nobody is to be waited for, or what stays is for a successor.
    fn leave(self: Box<Self>, how: Ending, for_good: bool);
}

/// A local segment that frames from elsewhere are written to.
pub trait Sink: Send {
    /// Room for a message of `len` bytes.
    ///
    /// # Errors
    /// As for [`Sender::reserve`](ramway::Sender::reserve).
    fn reserve(&mut self, len: u32, limit: WaitLimit) -> ramway::Result<*mut u8>;

    /// Makes the room that was reserved last a message, of the record's length; visible after the next flush at the latest. So
    /// long ago its beginning arrived: a call has less time left by that.
    ///
    /// # Errors
    /// As for [`Slot::commit`](ramway::Slot::commit).
    fn commit(&mut self, record: &Record, spent: Duration) -> ramway::Result<()>;

    /// Gives the reserved room up.
    fn abort(&mut self);

    /// Makes everything visible that is committed.
    fn flush(&mut self);

    /// The number that the next frame will have here.
    fn at(&mut self) -> u64;

    /// What is to be the same at both ends, so that numbers correspond: of a ring the alignment.
    fn align(&self) -> Option<u32>;

    /// The bridge's own epoch as the sender.
    fn epoch(&self) -> u32;

    /// Numbers are left out, for messages that cannot come any more.
    fn skip(&mut self, numbers: u64);

    /// How the receiver has ended, where no other one can take its place.
    fn has_ended(&mut self) -> Option<Ending> {
        None
    }

    /// The receiver's epoch.
    fn peer_epoch(&self) -> u32;

    /// Waits for another receiver.
    ///
    /// # Errors
    /// As for [`Sender::wait_for_peer`](ramway::Sender::wait_for_peer).
    fn wait_for_peer(&mut self, timeout: Duration) -> ramway::Result<u32>;

    /// Gives the role up; the receiver is told so.
    fn leave(self: Box<Self>, how: Ending);
}

/// Opens what is there, whatever its settings are, or makes it. `open_or_create` would refuse what is there with other settings.
///
/// # Errors
/// Those of `open` and `make`, but for what the other one of the two mends.
pub(crate) fn open_or_make<T>(
    open: impl Fn() -> ramway::Result<T>,
    make: impl Fn() -> ramway::Result<T>,
) -> ramway::Result<T> {
    loop {
        match open() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match make() {
            // Somebody else has made it meanwhile.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}
