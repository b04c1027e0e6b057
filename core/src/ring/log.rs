//! What differs between the two kinds of log that a sender writes into and a receiver reads from: a [`Ring`], which has
//! one receiver, and a topic, which has any number of subscribers.
//!
//! Everything else is written once, over a `Log`: sender and receiver, slots, messages, batches, tensors, waiting,
//! endings. A ring's own rules are in `producer.rs` and `consumer.rs`, a topic's in `topic/`.

use super::consumer::{Frame, Reading};
use super::message::{Meta, OwnedMessage};
use super::producer::Writing;
use crate::layout::{self, FRAME_HEADER, RingBlock};
use std::fmt::Debug;

/// A kind of log: [`Ring`](crate::Ring) or [`Topic`](crate::Topic).
pub trait Log: Writing + Reading {}

impl<L: Writing + Reading> Log for L {}

/// The types of a kind of log.
pub trait Shape: Sized + 'static {
    /// What people call it.
    const NAME: &str;

    /// Bytes of a frame's header, which stands right before its payload.
    const HEADER: u64;

    /// The log's words in the header page.
    type Block: Debug;

    /// Where it lies besides its block and its data.
    type Place: Debug;

    /// What each committed frame advances, besides the position.
    type Commit: Copy + Debug;

    /// What a sender has among its positions that only this kind of log needs.
    type Writer: Debug;

    /// What a receiver has among its positions that only this kind of log needs.
    type Reader: Debug;

    /// What a frame says besides its length, type id and tag.
    type Stamp: Copy + Debug;

    /// What a copied message was sent with.
    type Meta;

    /// A copy of a message.
    type Owned: Debug;

    /// How many bytes a frame with a payload of `len` takes. Cannot overflow for a `len` up to 2^32.
    #[inline(always)]
    fn frame_size(len: u64, align: u32) -> u64 {
        layout::frame_size(Self::HEADER - FRAME_HEADER + len, align)
    }

    /// What a frame was sent with.
    fn meta(frame: &Frame<Self>) -> Self::Meta;

    /// A message that was copied into `data`.
    fn owned(meta: Self::Meta, data: Vec<u8>) -> Self::Owned;
}

/// A named ring between two processes, or an unnamed one between two threads: where [`Sender`](crate::Sender) and
/// [`Receiver`](crate::Receiver) come from.
///
/// A name (`[A-Za-z0-9._-]{1,80}`, not starting with a dot, not ending in `.sock`) stands in the Ramway directory:
/// `RAMWAY_DIR`, else `/dev/shm/ramway-<euid>`. With a `/` in it, it is a path. Either side may create the ring.
///
/// The name goes when the last handle does, unless messages (or an orderly close) are undelivered: then it stays for
/// the next receiver.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-ring-{}", std::process::id());
/// let mut tx = ramway::Ring::create(&name).capacity(1 << 16).sender()?;
/// tx.send(1, b"hello")?;
/// tx.close()?;
///
/// // In another process, now or later:
/// let mut rx = ramway::Ring::open(&name).receiver()?;
/// assert_eq!(&*rx.recv()?, b"hello");
/// assert_eq!(rx.recv().unwrap_err().kind(), ramway::ErrorKind::Closed);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Ring;

impl Shape for Ring {
    const NAME: &str = "ring";
    const HEADER: u64 = FRAME_HEADER;
    type Block = RingBlock;
    type Place = ();
    type Commit = ();
    type Writer = ();
    type Reader = ();
    type Stamp = ();
    type Meta = Meta;
    type Owned = OwnedMessage;

    fn meta(frame: &Frame) -> Meta {
        Meta { type_id: frame.type_id, tag: frame.tag, len: frame.len }
    }

    fn owned(Meta { type_id, tag, .. }: Meta, data: Vec<u8>) -> OwnedMessage {
        OwnedMessage { type_id, tag, data }
    }
}
