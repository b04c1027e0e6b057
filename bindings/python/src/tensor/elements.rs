//! The arrays that callers pass: NumPy's, those of libraries that speak DLPack, anything with the buffer protocol.

use crate::errors::error;
use crate::tensor::dlpack::{Addresses, LARGE, Taken, copy_bytes};
use crate::tensor::numpy::Numpy;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use ramway::ErrorKind;
use ramway::tensor::{Dtype, NDIM_MAX};
use std::ffi::{CStr, c_int};

/// The elements of a caller's array, borrowed for one call.
pub(crate) struct Elements {
    data: *const u8,
    pub(crate) dtype: Dtype,
    ndim: usize,
    shape: [u64; NDIM_MAX],
    /// In bytes; can be negative.
    strides: [isize; NDIM_MAX],
    /// Keeps `data` where it is.
    _source: Source,
}

enum Source {
    Buffer { _buffer: Buffer },
    Tensor { _tensor: Taken },
}

impl Elements {
    /// The elements of anything that is an array on this machine's CPU.
    ///
    /// # Errors
    /// `InvalidArgumentError` for element types that a tensor cannot have, more than 32 dimensions and other devices;
    /// `BufferError` and whatever else the array's library raises.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        if let Some(numpy) = Numpy::if_loaded(py)?
            && numpy.is_array(array)?
        {
            return Self::of_numpy(numpy, array);
        }
        if array.hasattr(pyo3::intern!(py, "__dlpack__"))? {
            return Self::of_dlpack(array);
        }
        if array.hasattr(pyo3::intern!(py, "__array__"))? || array.hasattr(pyo3::intern!(py, "__array_interface__"))? {
            let numpy = Numpy::get(py)?;
            return Self::of_numpy(numpy, &numpy.asarray(array)?);
        }
        // SAFETY: attached, and the object is alive.
        if unsafe { ffi::PyObject_CheckBuffer(array.as_ptr()) } != 0 {
            return Self::of_buffer(array);
        }
        let kind = array.get_type().name()?.to_string();
        Err(invalid(
            py,
            format!("a {kind} is no array: expected NumPy's, one with __dlpack__, or a buffer (np.asarray?)"),
        ))
    }

    fn of_numpy(numpy: &Numpy, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let descr = array.getattr(pyo3::intern!(py, "dtype"))?;
        let (dtype, native) = numpy.tensor_dtype(&descr)?;
        // The values cross, not their byte order: a frame is little-endian.
        let swapped = if native { None } else { Some(array.call_method1("astype", (numpy.dtype_of(py, dtype)?,))?) };
        // Without the format, which NumPy has for its own types only.
        let buffer = Buffer::get(swapped.as_ref().unwrap_or(array), ffi::PyBUF_STRIDES)?;
        Self::in_buffer(py, buffer, dtype)
    }

    fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let buffer = Buffer::get(object, ffi::PyBUF_RECORDS_RO)?;
        let format = if buffer.view.format.is_null() {
            c"B"
        } else {
            // SAFETY: a string that lives as long as the view.
            unsafe { CStr::from_ptr(buffer.view.format) }
        };
        match dtype_of_format(format.to_bytes(), buffer.view.itemsize) {
            Some(dtype) => Self::in_buffer(py, buffer, dtype),
            None => Err(invalid(
                py,
                format!(
                    "a buffer of format {format:?} is no tensor: its elements are numbers or bools of this machine's \
                         byte order (records, one a message: send_array)"
                ),
            )),
        }
    }

    fn in_buffer(py: Python<'_>, buffer: Buffer, dtype: Dtype) -> PyResult<Self> {
        let view = &buffer.view;
        // A subclass of NumPy's array can say anything of its dtype.
        if view.itemsize != dtype.size() as isize {
            return Err(PyBufferError::new_err(format!("elements of {} bytes are no {dtype}", view.itemsize)));
        }
        let ndim = rank(py, view.ndim)?;
        if view.shape.is_null() && ndim > 1 {
            return Err(PyBufferError::new_err(format!("a buffer of {ndim} dimensions without a shape")));
        }
        let mut elements = Self {
            data: view.buf.cast(),
            dtype,
            ndim,
            shape: [0; NDIM_MAX],
            strides: [0; NDIM_MAX],
            _source: Source::Buffer { _buffer: buffer },
        };
        let Source::Buffer { _buffer: Buffer { view } } = &elements._source else { unreachable!("made above") };
        let mut dense = dtype.size() as isize;
        for i in (0..ndim).rev() {
            // Some exporters leave out what follows from the rest, asked for or not (ctypes the strides).
            let (extent, stride) = if view.shape.is_null() {
                (view.len / dtype.size() as isize, dense)
            } else {
                // SAFETY: what is there has `ndim` entries.
                unsafe {
                    let extent = *view.shape.add(i);
                    (extent, if view.strides.is_null() { dense } else { *view.strides.add(i) })
                }
            };
            elements.shape[i] = extent as u64;
            elements.strides[i] = stride;
            dense = dense.wrapping_mul(extent);
        }
        Ok(elements)
    }

    fn of_dlpack(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        if let Ok(device) = array.call_method0(pyo3::intern!(py, "__dlpack_device__")) {
            let (kind, id) = device.extract::<(i32, i32)>()?;
            // The CPU, and memory of it that a GPU can reach too (CUDA's and ROCm's pinned memory).
            if !matches!(kind, 1 | 3 | 11) {
                return Err(invalid(
                    py,
                    format!(
                        "this array is on {} {id}: move it to the CPU first, by .cpu() or its library's way",
                        device_name(kind)
                    ),
                ));
            }
        }
        let taken = Taken::from(array)?;
        let tensor = taken.tensor();
        let (code, bits, lanes) = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
        let Some(dtype) = Dtype::new(code, bits).filter(|_| lanes == 1) else {
            let text =
                format!("no tensor has elements of the DLPack type with code {code}, {bits} bits and {lanes} lanes");
            return Err(invalid(py, text));
        };
        if !matches!(tensor.device.kind, 1 | 3 | 11) {
            return Err(invalid(
                py,
                format!("this array is on {}: move it to the CPU", device_name(tensor.device.kind)),
            ));
        }
        let ndim = rank(py, tensor.ndim)?;
        let (mut shape, mut strides) = ([0; NDIM_MAX], [0; NDIM_MAX]);
        let mut dense = dtype.size() as isize;
        for i in (0..ndim).rev() {
            // SAFETY: `ndim` entries, by the protocol.
            let extent = unsafe { *tensor.shape.add(i) };
            shape[i] = u64::try_from(extent)
                .map_err(|_| PyBufferError::new_err(format!("__dlpack__ gave a dimension of {extent}")))?;
            strides[i] = if tensor.strides.is_null() {
                dense
            } else {
                // SAFETY: as above.
                (unsafe { *tensor.strides.add(i) } as isize).wrapping_mul(dtype.size() as isize)
            };
            dense = dense.wrapping_mul(extent as isize);
        }
        let data = tensor.data.cast_const().cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        Ok(Self { data, dtype, ndim, shape, strides, _source: Source::Tensor { _tensor: taken } })
    }

    /// The dimensions, the outermost first.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape[..self.ndim]
    }

    /// Copies the elements, in C order.
    ///
    /// # Safety
    /// There is room for all of them at `to`, which is not theirs.
    pub(crate) unsafe fn copy_to(&self, py: Python<'_>, to: *mut u8, nbytes: usize) {
        if nbytes == 0 {
            return;
        }
        let walk = Walk::of(self.shape(), &self.strides[..self.ndim], self.dtype.size());
        if walk.ndim == 0 {
            copy_bytes(py, self.data, to, nbytes);
            return;
        }
        let ends = Addresses(self.data, to);
        let copy = move || {
            let Addresses(from, to) = { ends };
            // SAFETY: the source is kept by `self`, the caller vouches for the other end.
            unsafe { walk.copy(from, to) }
        };
        if nbytes >= LARGE { py.detach(copy) } else { copy() }
    }
}

/// An order in which to copy an array with strides: runs of bytes that lie together, and the loops around them.
struct Walk {
    run: usize,
    ndim: usize,
    /// Extent and stride, the innermost first. Dimensions that one step describes are one.
    loops: [(usize, isize); NDIM_MAX],
}

impl Walk {
    fn of(shape: &[u64], strides: &[isize], size: usize) -> Self {
        let mut walk = Self { run: size, ndim: 0, loops: [(0, 0); NDIM_MAX] };
        for (&extent, &stride) in shape.iter().zip(strides).rev().filter(|&(&extent, _)| extent != 1) {
            let extent = extent as usize;
            if walk.ndim == 0 && stride == walk.run as isize {
                walk.run *= extent;
                continue;
            }
            if let Some((inner, step)) = walk.loops[..walk.ndim].last_mut()
                && step.wrapping_mul(*inner as isize) == stride
            {
                *inner *= extent;
                continue;
            }
            walk.loops[walk.ndim] = (extent, stride);
            walk.ndim += 1;
        }
        walk
    }

    /// # Safety
    /// There is an array of this shape and these strides at `from`, none of its dimensions 0, and room at `to`.
    unsafe fn copy(&self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's. The lengths of elements are constants, so that each is one load and one store.
        unsafe {
            match self.run {
                1 => self.copy_runs(from, to, |from, to| copy_n::<1>(from, to)),
                2 => self.copy_runs(from, to, |from, to| copy_n::<2>(from, to)),
                4 => self.copy_runs(from, to, |from, to| copy_n::<4>(from, to)),
                8 => self.copy_runs(from, to, |from, to| copy_n::<8>(from, to)),
                16 => self.copy_runs(from, to, |from, to| copy_n::<16>(from, to)),
                run => self.copy_runs(from, to, |from, to| to.copy_from_nonoverlapping(from, run)),
            }
        }
    }

    /// # Safety
    /// As for [`copy`](Self::copy).
    #[inline(always)]
    unsafe fn copy_runs(&self, mut from: *const u8, mut to: *mut u8, one: impl Fn(*const u8, *mut u8)) {
        let (extent, step) = self.loops[0];
        let outer = &self.loops[1..self.ndim];
        let mut at = [0; NDIM_MAX];
        loop {
            let mut source = from;
            for _ in 0..extent {
                one(source, to);
                source = source.wrapping_offset(step);
                to = to.wrapping_add(self.run);
            }
            // One further in the next loop that is not at its end; those before it begin again.
            let mut level = 0;
            loop {
                let Some(&(extent, step)) = outer.get(level) else { return };
                at[level] += 1;
                if at[level] < extent {
                    from = from.wrapping_offset(step);
                    break;
                }
                from = from.wrapping_offset(step.wrapping_mul(1 - extent as isize));
                at[level] = 0;
                level += 1;
            }
        }
    }
}

/// # Safety
/// `N` readable bytes at `from`, `N` of ours at `to`.
#[inline(always)]
pub(crate) unsafe fn copy_n<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's; arrays of bytes lie anywhere.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}

/// An export of an object's buffer, given back by the thread that took it, in the same call.
pub(crate) struct Buffer {
    pub(crate) view: Box<ffi::Py_buffer>,
}

impl Buffer {
    pub(crate) fn get(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        // Boxed: NumPy's and others' exports can point into it.
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: attached, `object` is alive, `view` is ours and stays at its address.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { view })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: filled in by `PyObject_GetBuffer`, released once, with the interpreter attached.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) }
    }
}

fn rank(py: Python<'_>, ndim: i32) -> PyResult<usize> {
    match usize::try_from(ndim) {
        Ok(ndim) if ndim <= NDIM_MAX => Ok(ndim),
        _ => Err(invalid(py, format!("an array of {ndim} dimensions: a tensor has at most {NDIM_MAX}"))),
    }
}

fn device_name(kind: i32) -> String {
    match kind {
        2 | 13 => "a CUDA GPU, number".into(),
        8 => "Metal's GPU, number".into(),
        10 => "a ROCm GPU, number".into(),
        14 => "a oneAPI device, number".into(),
        other => format!("a device of DLPack's type {other}, number"),
    }
}

/// The element type of a `struct` format, by its letter and the size of an element.
fn dtype_of_format(format: &[u8], itemsize: isize) -> Option<Dtype> {
    let letter = match format {
        [b'@' | b'=' | b'<' | b'^', letter @ ..] => letter,
        [b'>' | b'!', letter @ ..] if itemsize == 1 => letter,
        letter => letter,
    };
    let code = match letter {
        b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => Dtype::I8.code(),
        b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" | b"c" => Dtype::U8.code(),
        b"e" | b"f" | b"d" => Dtype::F32.code(),
        b"Zf" | b"Zd" | b"F" | b"D" => Dtype::C64.code(),
        b"?" => Dtype::BOOL.code(),
        _ => return None,
    };
    Dtype::new(code, u8::try_from(itemsize.checked_mul(8)?).ok()?)
}

#[cold]
pub(crate) fn invalid(py: Python<'_>, text: impl AsRef<str>) -> PyErr {
    error(py, ErrorKind::InvalidArgument, text)
}
