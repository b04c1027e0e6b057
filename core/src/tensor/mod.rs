//! Tensors as messages: elements of one [`Dtype`] in C order behind a header that has their type and shape.
//! `docs/ABI.md`, section 18, describes the bytes; every language writes and reads the same ones.
//!
//! ```
//! use ramway::tensor::Dtype;
//!
//! # fn main() -> ramway::Result<()> {
//! let (mut tx, mut rx) = ramway::Ring::pair(1 << 16)?;
//! let mut slot = tx.reserve_tensor(Dtype::F32, &[2, 3])?.with_tag(7);
//! slot.as_mut_slice::<f32>()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! slot.commit()?;
//!
//! let message = rx.recv()?;
//! let tensor = message.tensor()?;
//! assert_eq!((tensor.dtype(), tensor.shape()), (Dtype::F32, &[2, 3][..]));
//! assert_eq!(tensor.as_slice::<f32>()?[5], 6.0); // a view of the shared memory, on a multiple of 64 bytes
//! # Ok(()) }
//! ```
//!
//! [`Sender::send_tensor`](crate::Sender::send_tensor) copies; [`Plan`] and [`parse`] are for those who keep tensor
//! frames somewhere else than in a ring.

mod dtype;
#[cfg(test)]
mod tests;

pub use crate::facts::{NDIM_MAX, TENSOR_ALIGN as ALIGN, TYPE_ID_TENSOR as TYPE_ID};
pub use dtype::{Dtype, Element};

use crate::facts::TENSOR_HEADER as FIXED;
use crate::{Error, ErrorKind, Result};

/// No tensor's elements begin further from the start of its payload.
const DATA_OFFSET_MAX: usize = header_len(NDIM_MAX) + ALIGN - 1;

/// Bytes up to the end of the shape.
const fn header_len(ndim: usize) -> usize {
    FIXED + 8 * ndim
}

/// The dimensions, kept without an allocation.
#[derive(Clone, Copy)]
struct Shape {
    ndim: u8,
    dims: [u64; NDIM_MAX],
}

impl Shape {
    fn get(&self) -> &[u64] {
        &self.dims[..self.ndim as usize]
    }

    /// Bytes of all elements. `None` if the product of the dimensions other than 0 and of the element's size is 2^63
    /// or more: no stride then overflows, whatever the order in which a language multiplies.
    fn nbytes(&self, dtype: Dtype) -> Option<usize> {
        let product = |size: u64, &dim: &u64| size.checked_mul(dim.max(1)).filter(|&size| size < 1 << 63);
        let bytes = self.get().iter().try_fold(dtype.size() as u64, product)?;
        Some(if self.get().contains(&0) { 0 } else { bytes as usize })
    }
}

/// A tensor frame, checked. Its elements are a view of the payload; type and shape are copies.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    dtype: Dtype,
    shape: Shape,
    data: &'a [u8],
}

/// Reads a payload as a tensor frame.
///
/// Every number is checked against the others and the payload's length; that the elements begin on a multiple of
/// [`ALIGN`] is not, because a copy of the payload can lie anywhere. In shared memory that a hostile peer can rewrite,
/// the elements can change while they are read; the type, the shape and the length of the data cannot.
///
/// # Errors
/// `InvalidArgument`, with what is wrong: the payload is not a tensor frame. The ring is fine.
pub fn parse(payload: &[u8]) -> Result<Tensor<'_>> {
    let mut header = [0; DATA_OFFSET_MAX];
    let Some(fixed) = payload.first_chunk::<FIXED>() else {
        return Err(not_a_tensor(format_args!("{} bytes, and its header alone has {FIXED}", payload.len())));
    };
    let [code, bits, ndim, zero, offset @ ..] = *fixed;
    let Some(dtype) = Dtype::new(code, bits) else {
        return Err(not_a_tensor(format_args!("there is no element type with the code {code} and {bits} bits")));
    };
    if ndim as usize > NDIM_MAX {
        return Err(not_a_tensor(format_args!("{ndim} dimensions, and {NDIM_MAX} are the most")));
    }
    if zero != 0 {
        return Err(not_a_tensor(format_args!("byte 3 is {zero}, not 0")));
    }
    let (start, offset) = (header_len(ndim as usize), u32::from_le_bytes(offset) as usize);
    if offset < start || offset >= start + ALIGN || offset > payload.len() {
        return Err(not_a_tensor(format_args!(
            "the data of {ndim} dimensions begins at {start} to {}, not at {offset}, in a payload of {} bytes",
            start + ALIGN - 1,
            payload.len()
        )));
    }
    // One copy, which is then checked: nobody rewrites it meanwhile.
    header[FIXED..offset].copy_from_slice(&payload[FIXED..offset]);
    let mut shape = Shape { ndim, dims: [0; NDIM_MAX] };
    for (dim, bytes) in shape.dims.iter_mut().zip(header[FIXED..start].chunks_exact(8)) {
        *dim = u64::from_le_bytes(bytes.try_into().expect("chunks of 8"));
    }
    if header[start..offset].iter().any(|&byte| byte != 0) {
        return Err(not_a_tensor(format_args!("the bytes between shape and data are not all 0")));
    }
    let data = &payload[offset..];
    if shape.nbytes(dtype) != Some(data.len()) {
        return Err(not_a_tensor(format_args!("{} bytes are not {dtype} of the shape {:?}", data.len(), shape.get())));
    }
    Ok(Tensor { dtype, shape, data })
}

impl<'a> Tensor<'a> {
    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, the outermost first; empty for a tensor of one element without any.
    pub fn shape(&self) -> &[u64] {
        self.shape.get()
    }

    /// The elements' bytes, in C order (the last dimension varies fastest), little-endian.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The elements, in C order.
    ///
    /// # Errors
    /// `InvalidArgument` if they are of another type, or lie where a `T` cannot: in a copy of a message, for example.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        same_dtype::<T>(self.dtype)?;
        // An empty tensor lies anywhere.
        if self.data.is_empty() { Ok(&[]) } else { bytemuck::try_cast_slice(self.data).map_err(misplaced::<T>) }
    }
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tensor").field("dtype", &self.dtype).field("shape", &self.shape()).finish_non_exhaustive()
    }
}

/// A tensor that is going to be written: its type, shape and length are known, its place is not yet.
///
/// ```
/// use ramway::tensor::{Dtype, Plan, parse};
///
/// # fn main() -> ramway::Result<()> {
/// let plan = Plan::new(Dtype::U16, &[4])?;
/// let mut frame = vec![0; plan.room()];
/// let data = plan.place(frame.as_ptr().addr());
/// plan.write_header(&mut frame, data);
/// frame[data..][..plan.nbytes()].copy_from_slice(&[1, 0, 2, 0, 3, 0, 4, 0]);
/// let tensor = parse(&frame[..data + plan.nbytes()])?;
/// assert_eq!(tensor.as_slice::<u16>()?, &[1, 2, 3, 4]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Plan {
    dtype: Dtype,
    shape: Shape,
    nbytes: usize,
}

impl Plan {
    /// Checks a type and a shape, the outermost dimension first. No dimension at all is one element, and a dimension
    /// of 0 is none.
    ///
    /// # Errors
    /// `InvalidArgument` for more than [`NDIM_MAX`] dimensions, or if the product of those other than 0 and of the
    /// element's size is 2^63 or more.
    pub fn new(dtype: Dtype, shape: &[u64]) -> Result<Self> {
        let mut copy = Shape { ndim: shape.len().min(NDIM_MAX) as u8, dims: [0; NDIM_MAX] };
        if shape.len() > NDIM_MAX {
            let text = format!("a tensor of {} dimensions: at most {NDIM_MAX}", shape.len());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        copy.dims[..shape.len()].copy_from_slice(shape);
        let Some(nbytes) = copy.nbytes(dtype) else {
            let text = format!("a tensor of {dtype} of the shape {shape:?}: that is 2^63 bytes or more");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        };
        Ok(Self { dtype, shape: copy, nbytes })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, the outermost first.
    pub fn shape(&self) -> &[u64] {
        self.shape.get()
    }

    /// Bytes of all elements.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Bytes of payload to reserve: enough wherever it begins.
    pub fn room(&self) -> usize {
        // At most 2^63 − 1, and a few hundred.
        header_len(self.shape().len()) + ALIGN - 1 + self.nbytes
    }

    /// Where in a payload that begins at `address` the elements begin, so that their address is a multiple of
    /// [`ALIGN`]. What is to be committed is that and [`nbytes`](Self::nbytes).
    pub fn place(&self, address: usize) -> usize {
        let header = header_len(self.shape().len());
        header + address.wrapping_add(header).wrapping_neg() % ALIGN
    }

    /// Writes everything of the frame before its elements, up to `data_offset`.
    ///
    /// # Panics
    /// If `data_offset` is none that [`place`](Self::place) gives, or beyond the payload's end.
    pub fn write_header(&self, payload: &mut [u8], data_offset: usize) {
        let header = header_len(self.shape().len());
        assert!((header..header + ALIGN).contains(&data_offset), "elements at {data_offset}, after {header} of header");
        let payload = &mut payload[..data_offset];
        let (fixed, rest) = payload.split_at_mut(FIXED);
        fixed[..4].copy_from_slice(&[self.dtype.code(), self.dtype.bits(), self.shape.ndim, 0]);
        fixed[4..].copy_from_slice(&(data_offset as u32).to_le_bytes());
        let (dims, padding) = rest.split_at_mut(header - FIXED);
        for (bytes, dim) in dims.chunks_exact_mut(8).zip(self.shape()) {
            bytes.copy_from_slice(&dim.to_le_bytes());
        }
        padding.fill(0);
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("dtype", &self.dtype)
            .field("shape", &self.shape())
            .field("nbytes", &self.nbytes)
            .finish()
    }
}

#[cold]
fn not_a_tensor(why: std::fmt::Arguments<'_>) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("not a tensor frame: {why}"))
}

/// The error for a message with another type id.
#[cold]
pub(crate) fn other_type_id(type_id: u32) -> Error {
    not_a_tensor(format_args!("its type id is {type_id:#x}, and a tensor's is {TYPE_ID:#x}"))
}

/// That the bytes of a `T` are those of a `dtype`.
pub(crate) fn same_dtype<T: Element>(dtype: Dtype) -> Result<()> {
    if dtype == T::DTYPE && dtype.size() == size_of::<T>() {
        return Ok(());
    }
    let text = format!("a tensor of {dtype} read or written as {} ({})", std::any::type_name::<T>(), T::DTYPE);
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

/// The error for elements that lie where a `T` cannot.
#[cold]
pub(crate) fn misplaced<T>(cause: bytemuck::PodCastError) -> Error {
    let text =
        format!("a tensor's elements as {}, aligned to {}: {cause}", std::any::type_name::<T>(), align_of::<T>());
    Error::new(ErrorKind::InvalidArgument, text)
}
