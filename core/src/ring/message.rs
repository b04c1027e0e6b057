//! What a receiver gives out: views of the shared memory, one at a time or in batches, and copies.

use super::Receiver;
use super::consumer::{Consumer, Cursor, Frame};
use super::log::{Log, Ring};
use crate::{Error, ErrorKind, Result};
use std::marker::PhantomData;
use std::ops::Deref;

/// What a copied message was sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The sender's type id.
    pub type_id: u32,
    /// The sender's tag.
    pub tag: u64,
    /// Bytes of payload.
    pub len: usize,
}

/// A received message: a view of the shared memory, given back when dropped. At most one per receiver, which the
/// borrow says.
#[derive(Debug)]
pub struct Message<'a, L: Log = Ring> {
    pub(crate) frame: Frame<L>,
    pub(crate) hot: &'a mut Consumer<L>,
}

// SAFETY: a message is a unique borrow of a receiver, which may move between threads.
unsafe impl<L: Log> Send for Message<'_, L> {}
// SAFETY: `&Message` only reads, from the copied frame header and from bytes that are not released yet; nobody can change the
// receiver behind it meanwhile.
unsafe impl<L: Log> Sync for Message<'_, L> {}

/// One message of a [`Batch`], a view that lives as long as the batch.
#[derive(Debug)]
pub struct MessageView<'a, L: Log = Ring> {
    frame: Frame<L>,
    batch: PhantomData<&'a [u8]>,
}

impl<L: Log> Clone for MessageView<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Log> Copy for MessageView<'_, L> {}

// SAFETY: a view is a `&'a [u8]` with three numbers beside it.
unsafe impl<L: Log> Send for MessageView<'_, L> {}
// SAFETY: as above.
unsafe impl<L: Log> Sync for MessageView<'_, L> {}

macro_rules! view {
    ($type:ident) => {
        impl<L: Log> $type<'_, L> {
            /// What the sender said the payload is; below `0xFFFF_0000` for an application's own.
            #[inline(always)]
            pub fn type_id(&self) -> u32 {
                self.frame.type_id
            }

            /// The sender's tag, 0 if it gave none.
            #[inline(always)]
            pub fn tag(&self) -> u64 {
                self.frame.tag
            }

            /// What only this kind of log says.
            #[inline(always)]
            pub(crate) fn stamp(&self) -> L::Stamp {
                self.frame.stamp
            }

            /// The payload as a plain value, in place.
            ///
            /// # Errors
            /// `InvalidArgument` if the length is not that of `T`, or the ring's alignment is not enough for it.
            #[inline(always)]
            pub fn as_pod<T: bytemuck::AnyBitPattern>(&self) -> Result<&T> {
                as_pod(self)
            }
        }

        impl<L: Log> Deref for $type<'_, L> {
            type Target = [u8];
            #[inline(always)]
            fn deref(&self) -> &[u8] {
                // SAFETY: `next_frame` checked that the bytes lie in what was published, which is mapped, never
                // uninitialised, and not given back to the producer while this borrow lives.
                unsafe { std::slice::from_raw_parts(self.frame.data, self.frame.len) }
            }
        }

        impl<L: Log> AsRef<[u8]> for $type<'_, L> {
            #[inline(always)]
            fn as_ref(&self) -> &[u8] {
                self
            }
        }
    };
}

view!(Message);
view!(MessageView);

fn as_pod<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<&T> {
    bytemuck::try_from_bytes(bytes).map_err(|cause| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "a message of {} bytes read as {} ({} bytes, aligned to {}): {cause}",
                bytes.len(),
                std::any::type_name::<T>(),
                size_of::<T>(),
                align_of::<T>(),
            ),
        )
    })
}

impl<L: Log> Message<'_, L> {
    /// Gives the message back, as dropping it does.
    pub fn release(self) {}
}

impl<L: Log> Drop for Message<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        self.hot.release_lent();
    }
}

/// Several messages, given back together when dropped.
#[derive(Debug)]
pub struct Batch<'a, L: Log = Ring> {
    pub(super) hot: &'a mut Consumer<L>,
    pub(super) first: Option<Frame<L>>,
    pub(super) left: usize,
}

// SAFETY: as for `Message`.
unsafe impl<L: Log> Send for Batch<'_, L> {}

impl<L: Log> Batch<'_, L> {
    /// The messages, each once: those that are there when the iterator asks, up to the batch's maximum.
    #[inline(always)]
    pub fn iter(&mut self) -> BatchIter<'_, L> {
        BatchIter { seen: self.hot.cursor(), hot: self.hot, first: &mut self.first, left: &mut self.left }
    }
}

impl<L: Log> Drop for Batch<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        self.hot.release();
    }
}

/// Iterator over a [`Batch`].
#[derive(Debug)]
pub struct BatchIter<'b, L: Log = Ring> {
    hot: &'b mut Consumer<L>,
    /// Where `hot` is: beside the borrow, so that the compiler keeps it in registers from message to message. What it
    /// reads through pointers could otherwise be `hot` itself, for all it knows.
    seen: Cursor,
    first: &'b mut Option<Frame<L>>,
    left: &'b mut usize,
}

// SAFETY: as for `Batch`, of which this is a unique borrow.
unsafe impl<L: Log> Send for BatchIter<'_, L> {}

impl<'b, L: Log> Iterator for BatchIter<'b, L> {
    type Item = MessageView<'b, L>;

    #[inline(always)]
    fn next(&mut self) -> Option<MessageView<'b, L>> {
        let frame = match self.first.take() {
            Some(frame) => frame,
            None if *self.left == 0 => return None,
            // An error ends the batch and stays in the handle's state: the next call returns it.
            None => {
                *self.left -= 1;
                self.hot.next_frame_at(&mut self.seen).ok().flatten()?
            }
        };
        Some(MessageView { frame, batch: PhantomData })
    }
}

/// A copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedMessage {
    /// The sender's type id.
    pub type_id: u32,
    /// The sender's tag.
    pub tag: u64,
    /// The payload.
    pub data: Vec<u8>,
}

/// Iterator of [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, L: Log = Ring> {
    pub(super) receiver: &'a mut Receiver<L>,
    pub(super) done: bool,
}

impl<L: Log> Iterator for Iter<'_, L> {
    type Item = Result<L::Owned>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let mut data = Vec::new();
        match self.receiver.recv_into(&mut data) {
            Ok(meta) => Some(Ok(L::owned(meta, data))),
            Err(error) => {
                self.done = error.kind() != ErrorKind::Lagged;
                (error.kind() != ErrorKind::Closed).then_some(Err(error))
            }
        }
    }
}
