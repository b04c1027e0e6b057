//! Tensors as messages.

use crate::either::each;
use crate::facts::RAMWAY_NDIM_MAX;
use crate::options::wait_limit;
use crate::receiver::ramway_message;
use crate::sender::{SenderHandle, array, ramway_sender};
use crate::status::{Outcome, guard_hot, invalid, null, ramway_status};
use ramway_core::ring::producer::NO_SLOT;
use ramway_core::tensor::{self, Dtype, Plan};
use std::ffi::c_void;

/// What a tensor's elements are: DLPack's type code and the bits of one element.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ramway_dtype {
    /// `RAMWAY_DTYPE_INT` and so on.
    pub code: u8,
    /// 8 to 128.
    pub bits: u8,
}

impl ramway_dtype {
    fn known(self) -> Outcome<Dtype> {
        let Self { code, bits } = self;
        Dtype::new(code, bits).ok_or_else(|| invalid(format!("no element type has the code {code} and {bits} bits")))
    }
}

/// A received tensor. `data` points into the message that it was read from; the rest are copies.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ramway_tensor {
    /// The elements in C order (the last dimension varies fastest), little-endian, on a multiple of 64 bytes.
    pub data: *const c_void,
    /// Bytes of all elements.
    pub nbytes: usize,
    /// The dimensions, the outermost first; 0 from `ndim` on.
    pub shape: [u64; RAMWAY_NDIM_MAX],
    /// How many dimensions: 0 for a single element without any.
    pub ndim: u32,
    /// What the elements are.
    pub dtype: ramway_dtype,
}

/// A tensor whose slot is open: as long as the sender's slot is the one that was opened for it.
#[derive(Debug)]
pub(crate) struct OpenTensor {
    tail: u64,
    room: u64,
    /// Bytes of payload to commit.
    len: usize,
}

/// Opens a slot for a tensor; gives where its elements are to be written.
fn open(handle: &mut SenderHandle, plan: &Plan, timeout_ns: i64) -> Outcome<*mut u8> {
    let wait_limit = wait_limit(timeout_ns)?;
    let payload = each!(&mut handle.sender, sender => sender.raw().reserve(plan.room(), wait_limit))?;
    let offset = plan.place(payload.addr());
    // SAFETY: `room` bytes were reserved there: mapped, never uninitialised, and nobody else's until commit.
    plan.write_header(unsafe { std::slice::from_raw_parts_mut(payload, plan.room()) }, offset);
    let (_, tail) = slot(handle);
    handle.tensor = Some(OpenTensor { tail, room: plan.room() as u64, len: offset + plan.nbytes() });
    // SAFETY: `offset + nbytes <= room`.
    Ok(unsafe { payload.add(offset) })
}

/// How many bytes are reserved, and where.
fn slot(handle: &mut SenderHandle) -> (u64, u64) {
    each!(&mut handle.sender, sender => {
        // SAFETY: the sender's own, which this thread alone uses.
        let hot = unsafe { &*sender.raw().hot() };
        (hot.slot, hot.tail)
    })
}

fn commit(handle: &mut SenderHandle, tag: u64, flush: bool) -> Outcome {
    each!(&mut handle.sender, sender => {
        // SAFETY: as in `slot`.
        unsafe { &*sender.raw().hot() }.state.check()?;
    });
    let (reserved, tail) = slot(handle);
    // The inline functions know nothing of tensors: the slot may have been aborted, and another one opened, since.
    let open = handle.tensor.as_ref().filter(|open| reserved == open.room && tail == open.tail);
    let Some(&OpenTensor { len, .. }) = open.filter(|_| reserved != NO_SLOT) else {
        return Err(invalid("no tensor's slot is open: reserve one first (ramway_reserve_tensor)"));
    };
    handle.tensor = None;
    Ok(each!(&mut handle.sender, sender => sender.raw().commit(len, tensor::TYPE_ID, tag, flush))?)
}

/// # Safety
/// `shape` is null or `ndim` values.
unsafe fn plan(dtype: ramway_dtype, shape: *const u64, ndim: usize) -> Outcome<Plan> {
    // SAFETY: the caller's.
    Ok(Plan::new(dtype.known()?, unsafe { array(shape, ndim, "shape") }?)?)
}

/// Sends a tensor: its elements are copied, in C order, behind a header with their type and shape. `shape` has `ndim`
/// dimensions, the outermost first (it may be null if `ndim` is 0, a single element); `nbytes` is for certainty: what
/// type and shape amount to. It becomes visible at once, as a message with the type id `RAMWAY_TYPE_ID_TENSOR`.
///
/// `RAMWAY_INVALID_ARGUMENT` for a type that there is not, more than `RAMWAY_NDIM_MAX` dimensions, another `nbytes`,
/// or 2^63 bytes and more. `RAMWAY_TOO_LARGE` where the longest message is less than `nbytes + 8 * ndim + 71`. The
/// others of `ramway_send`, and `timeout_ns` as there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_send_tensor(
    sender: *mut ramway_sender,
    dtype: ramway_dtype,
    shape: *const u64,
    ndim: usize,
    tag: u64,
    data: *const c_void,
    nbytes: usize,
    timeout_ns: i64,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (handle, data) = unsafe { (SenderHandle::from(sender)?, array(data.cast::<u8>(), nbytes, "data")?) };
        // SAFETY: the caller's.
        let plan = unsafe { plan(dtype, shape, ndim) }?;
        if data.len() != plan.nbytes() {
            let (dtype, shape, expected) = (plan.dtype(), plan.shape(), plan.nbytes());
            return Err(invalid(format!(
                "{nbytes} bytes of data, expected {expected}: {dtype} of the shape {shape:?}"
            )));
        }
        let to = open(handle, &plan, timeout_ns)?;
        // SAFETY: `to` has room for `nbytes`; the caller's bytes lie outside of the ring's unreserved part, which
        // nothing hands out.
        unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        commit(handle, tag, true)
    })
}

/// Opens a slot for a tensor: `*out` is where its elements are to be written in place, on a multiple of 64 bytes, and
/// `*nbytes` (may be null) how many bytes they take. To be committed by `ramway_commit_tensor`, or aborted by
/// `ramway_abort`; one slot of any kind at a time.
///
/// Errors as for `ramway_send_tensor`, `timeout_ns` as for `ramway_send`; on failure `*out` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_reserve_tensor(
    sender: *mut ramway_sender,
    dtype: ramway_dtype,
    shape: *const u64,
    ndim: usize,
    timeout_ns: i64,
    out: *mut *mut c_void,
    nbytes: *mut usize,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let out = unsafe { out.as_mut() }.ok_or_else(|| null("out"))?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller's.
        let (handle, plan) = unsafe { (SenderHandle::from(sender)?, plan(dtype, shape, ndim)?) };
        *out = open(handle, &plan, timeout_ns)?.cast();
        if !nbytes.is_null() {
            // SAFETY: the caller's.
            unsafe { *nbytes = plan.nbytes() };
        }
        Ok(())
    })
}

/// Sends the tensor whose slot is open, visible at once. `RAMWAY_INVALID_ARGUMENT` if none is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_commit_tensor(sender: *mut ramway_sender, tag: u64) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| commit(unsafe { SenderHandle::from(sender) }?, tag, true))
}

/// `ramway_commit_tensor`, but visible only as `ramway_commit_unflushed` has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_commit_tensor_unflushed(sender: *mut ramway_sender, tag: u64) -> ramway_status {
    // SAFETY: the caller's.
    guard_hot(|| commit(unsafe { SenderHandle::from(sender) }?, tag, false))
}

/// Reads a message as a tensor, in place: `out->data` points into the message and is valid as long as that.
///
/// `RAMWAY_INVALID_ARGUMENT`, with what is wrong, if it is none: its type id is another, or its bytes are not what a
/// tensor's are. `*out` is then untouched, the message is as it was and the ring is fine. Every number was checked:
/// `shape`, `dtype` and `nbytes` agree. Not checked is that `data` lies on a multiple of 64: in a copy of a message
/// (`ramway_recv_into`) it need not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ramway_message_tensor(
    message: *const ramway_message,
    out: *mut ramway_tensor,
) -> ramway_status {
    guard_hot(|| {
        // SAFETY: the caller's.
        let (message, out) =
            unsafe { (message.as_ref().ok_or_else(|| null("the message"))?, out.as_mut().ok_or_else(|| null("out"))?) };
        if message.type_id != tensor::TYPE_ID {
            return Err(invalid(format!(
                "not a tensor frame: its type id is {:#x}, and a tensor's is {:#x}",
                message.type_id,
                tensor::TYPE_ID
            )));
        }
        // SAFETY: the caller's: a message as it was received.
        let tensor = tensor::parse(unsafe { array(message.data.cast::<u8>(), message.len, "the message's data") }?)?;
        let mut shape = [0; RAMWAY_NDIM_MAX];
        shape[..tensor.shape().len()].copy_from_slice(tensor.shape());
        *out = ramway_tensor {
            data: tensor.data().as_ptr().cast(),
            nbytes: tensor.data().len(),
            shape,
            ndim: tensor.shape().len() as u32,
            dtype: ramway_dtype { code: tensor.dtype().code(), bits: tensor.dtype().bits() },
        };
        Ok(())
    })
}
