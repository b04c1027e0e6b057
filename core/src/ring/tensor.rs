//! Tensors in a ring: see [`crate::tensor`].

use super::log::{Log, Ring};
use super::{Message, MessageView, Sender};
use crate::tensor::{self, Dtype, Element, Plan, TYPE_ID, Tensor};
use crate::wait::WaitLimit;
use crate::{Error, ErrorKind, Result};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Room for the elements of a tensor, written in place. Holds whatever an earlier message left there; begins on a
/// multiple of 64 bytes.
///
/// As for a [`Slot`](super::Slot): at most one per sender, and dropping it without a commit leaves nothing behind.
#[derive(Debug)]
pub struct TensorSlot<'a, L: Log = Ring> {
    sender: &'a mut Sender<L>,
    plan: Plan,
    /// The whole payload, and where in it the elements begin.
    payload: *mut u8,
    offset: usize,
    tag: u64,
}

// SAFETY: as for `Slot`.
unsafe impl<L: Log> Send for TensorSlot<'_, L> {}

impl<L: Log> TensorSlot<'_, L> {
    /// Sets the message's tag, 0 if never called.
    #[must_use]
    pub fn with_tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.plan.dtype()
    }

    /// The dimensions, the outermost first.
    pub fn shape(&self) -> &[u64] {
        self.plan.shape()
    }

    /// The elements, in C order.
    ///
    /// # Errors
    /// `InvalidArgument` if the tensor was reserved with another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        tensor::same_dtype::<T>(self.dtype())?;
        bytemuck::try_cast_slice_mut(self).map_err(tensor::misplaced::<T>)
    }

    /// Sends the tensor.
    ///
    /// # Errors
    /// What the handle is dead of.
    pub fn commit(self) -> Result<()> {
        self.commit_with(true)
    }

    /// Like [`commit`](Self::commit), but visible only later: see
    /// [`Slot::commit_unflushed`](super::Slot::commit_unflushed).
    pub fn commit_unflushed(self) -> Result<()> {
        self.commit_with(false)
    }

    fn commit_with(self, flush: bool) -> Result<()> {
        let len = self.offset + self.plan.nbytes();
        // SAFETY: `payload` is what the sender reserved last, for `len` bytes or more: it has been borrowed since.
        unsafe { self.sender.commit_raw(self.payload, len, TYPE_ID, self.tag, flush) }
    }
}

impl<L: Log> Deref for TensorSlot<'_, L> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `offset + nbytes` is at most the `room` that was reserved: mapped bytes, never uninitialised, ours
        // alone until commit.
        unsafe { std::slice::from_raw_parts(self.payload.add(self.offset), self.plan.nbytes()) }
    }
}

impl<L: Log> DerefMut for TensorSlot<'_, L> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.payload.add(self.offset), self.plan.nbytes()) }
    }
}

/// As for [`Slot`](super::Slot): so that `drop(slot)` reads as giving it up.
impl<L: Log> Drop for TensorSlot<'_, L> {
    fn drop(&mut self) {}
}

/// Tensors.
impl<L: Log> Sender<L> {
    /// Sends a tensor by a copy of its elements' bytes (C order, little-endian), waiting for room as long as it takes.
    /// The outermost dimension of `shape` is the first; without any it is one element.
    ///
    /// ```
    /// use ramway::tensor::Dtype;
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// let features = [0.5f32, 1.5];
    /// tx.send_tensor(Dtype::F32, &[1, 2], bytemuck::cast_slice(&features))?;
    /// assert_eq!(rx.recv()?.tensor()?.as_slice::<f32>()?, &features);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `data` is not as long as the shape says, and for a shape that [`Plan::new`] refuses.
    /// `TooLarge` if [`Plan::room`] is more than [`max_message_len`](Self::max_message_len). The others of
    /// [`send`](Self::send).
    pub fn send_tensor(&mut self, dtype: Dtype, shape: &[u64], data: &[u8]) -> Result<()> {
        self.put_tensor(dtype, shape, 0, data, WaitLimit::Forever)
    }

    /// [`send_tensor`](Self::send_tensor) with a tag.
    pub fn send_tensor_tagged(&mut self, dtype: Dtype, shape: &[u64], tag: u64, data: &[u8]) -> Result<()> {
        self.put_tensor(dtype, shape, tag, data, WaitLimit::Forever)
    }

    /// [`send_tensor`](Self::send_tensor) that does not wait: `Full` if there is no room now.
    pub fn try_send_tensor(&mut self, dtype: Dtype, shape: &[u64], data: &[u8]) -> Result<()> {
        self.put_tensor(dtype, shape, 0, data, WaitLimit::None)
    }

    /// [`send_tensor`](Self::send_tensor) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn send_tensor_timeout(&mut self, dtype: Dtype, shape: &[u64], data: &[u8], timeout: Duration) -> Result<()> {
        self.put_tensor(dtype, shape, 0, data, WaitLimit::For(timeout))
    }

    /// Reserves room for a tensor whose elements are written in place, waiting as long as it takes.
    ///
    /// # Errors
    /// As for [`send_tensor`](Self::send_tensor).
    pub fn reserve_tensor(&mut self, dtype: Dtype, shape: &[u64]) -> Result<TensorSlot<'_, L>> {
        self.tensor_slot(dtype, shape, WaitLimit::Forever)
    }

    /// [`reserve_tensor`](Self::reserve_tensor) that does not wait: `Full` if there is no room now.
    pub fn try_reserve_tensor(&mut self, dtype: Dtype, shape: &[u64]) -> Result<TensorSlot<'_, L>> {
        self.tensor_slot(dtype, shape, WaitLimit::None)
    }

    /// [`reserve_tensor`](Self::reserve_tensor) that waits for at most `timeout`, then gives `TimedOut`.
    pub fn reserve_tensor_timeout(
        &mut self,
        dtype: Dtype,
        shape: &[u64],
        timeout: Duration,
    ) -> Result<TensorSlot<'_, L>> {
        self.tensor_slot(dtype, shape, WaitLimit::For(timeout))
    }

    fn put_tensor(&mut self, dtype: Dtype, shape: &[u64], tag: u64, data: &[u8], wait_limit: WaitLimit) -> Result<()> {
        let plan = Plan::new(dtype, shape)?;
        if data.len() != plan.nbytes() {
            let text = format!("{} bytes for {dtype} of the shape {shape:?}: that is {}", data.len(), plan.nbytes());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let mut slot = self.room_for(plan, wait_limit)?.with_tag(tag);
        slot.copy_from_slice(data);
        slot.commit()
    }

    fn tensor_slot(&mut self, dtype: Dtype, shape: &[u64], wait_limit: WaitLimit) -> Result<TensorSlot<'_, L>> {
        self.room_for(Plan::new(dtype, shape)?, wait_limit)
    }

    fn room_for(&mut self, plan: Plan, wait_limit: WaitLimit) -> Result<TensorSlot<'_, L>> {
        let room = plan.room();
        let payload = self.reserve_raw(room, wait_limit)?;
        let offset = plan.place(payload.addr());
        // SAFETY: `room` bytes were reserved there: mapped, never uninitialised, and ours alone until commit.
        plan.write_header(unsafe { std::slice::from_raw_parts_mut(payload, room) }, offset);
        Ok(TensorSlot { sender: self, plan, payload, offset, tag: 0 })
    }
}

macro_rules! tensor {
    ($type:ident) => {
        impl<L: Log> $type<'_, L> {
            /// The payload as a [tensor](crate::tensor), in place.
            ///
            /// # Errors
            /// `InvalidArgument`, with what is wrong, if the message is not one: its
            /// [`type_id`](Self::type_id) is not [`tensor::TYPE_ID`], or its bytes are not as [`tensor::parse`] wants.
            pub fn tensor(&self) -> Result<Tensor<'_>> {
                if self.type_id() != TYPE_ID {
                    return Err(tensor::other_type_id(self.type_id()));
                }
                tensor::parse(self)
            }
        }
    };
}

tensor!(Message);
tensor!(MessageView);
