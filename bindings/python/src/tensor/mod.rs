//! Tensors: arrays that cross with their type and shape (`ramway::tensor`, docs/ABI.md).

pub(crate) mod dlpack;
pub(crate) mod elements;
mod ndarray;
pub(crate) mod numpy;

use crate::args::{Timeout, calls};
use crate::errors::OrRaise;
use crate::ring::message::Message;
use crate::ring::sender::Sender;
use crate::ring::slot::Slot;
use crate::tensor::dlpack::Asked;
use crate::tensor::elements::{Elements, invalid};
use crate::tensor::numpy::{Memory, Numpy, dims, element_type};
use crate::waiting::awaitable::Wait;
use crate::waiting::operation::room;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use ramway::tensor::{Dtype, Plan, TYPE_ID, parse};
use std::ffi::{CStr, c_int};

/// A received tensor: a view of its message's elements, in C order, on a multiple of 64 bytes.
///
/// np.asarray(t), torch.from_dlpack(t), jax.dlpack.from_dlpack(t) and memoryview(t) take it without a copy, and keep the
/// message in the ring. Like every view it is read-only, unless the ring was opened with writable_views=True. NumPy and
/// JAX see to that; PyTorch ignores that a tensor is read-only, and writing to one in place (t += 1, t.relu_()) ends the
/// process (SIGSEGV): where that is wanted, open the ring with writable_views=True, or write to a clone().
#[pyclass(frozen, module = "ramway")]
pub(crate) struct Tensor {
    message: Py<Message>,
    dtype: Dtype,
    /// Where the elements begin in the payload, and their bytes: as checked, and not read again in memory that the
    /// peer may rewrite.
    offset: usize,
    nbytes: usize,
    /// The shape, then the strides in bytes.
    dims: Box<[isize]>,
}

impl Tensor {
    fn shape(&self) -> &[isize] {
        &self.dims[..self.dims.len() / 2]
    }
}

/// `Message.tensor`.
pub(crate) fn of(message: &Bound<'_, Message>) -> PyResult<Py<Tensor>> {
    let py = message.py();
    let len = message.get().payload_len(py)?;
    let type_id = message.get().type_id();
    if type_id != TYPE_ID {
        let text = format!("not a tensor: this message's type_id is {type_id:#x}, and a tensor's {TYPE_ID:#x}");
        return Err(invalid(py, text));
    }
    // Counted as a view, so that nobody takes the payload away or moves it while it is read.
    let frame = message.get().view(py)?;
    // SAFETY: readable while the view is counted.
    let parsed = parse(unsafe { std::slice::from_raw_parts(frame.data, len) }).map(|tensor| {
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        let mut dims = vec![0; 2 * shape.len()].into_boxed_slice();
        let mut stride = dtype.size() as isize;
        for (i, &extent) in shape.iter().enumerate().rev() {
            // Neither overflows: `parse` has checked the product.
            dims[i] = extent as isize;
            dims[shape.len() + i] = stride;
            stride *= extent.max(1) as isize;
        }
        (dtype, dims, tensor.data().len())
    });
    message.get().unview();
    let (dtype, dims, nbytes) = parsed.or_raise(py)?;
    Py::new(py, Tensor { message: message.clone().unbind(), dtype, offset: len - nbytes, nbytes, dims })
}

/// `Sender.send_tensor`.
pub(crate) fn send(
    slf: &Bound<'_, Sender>,
    array: &Bound<'_, PyAny>,
    tag: u64,
    timeout: Option<Timeout>,
) -> PyResult<()> {
    let (py, sender) = (slf.py(), slf.get());
    let elements = Elements::of(array)?;
    let plan = Plan::new(elements.dtype, elements.shape()).or_raise(py)?;
    let mut core = sender.begin(py, 0)?;
    let to = sender.room(py, &mut core, plan.room(), timeout)?;
    // SAFETY: reserved for this many bytes, and nobody else's until the commit; mapped memory is never uninitialised.
    let data = unsafe { write_header(&plan, to) };
    // SAFETY: `data + nbytes` is at most the room; no array lies in reserved room, as a slot is not open.
    unsafe { elements.copy_to(py, to.add(data), plan.nbytes()) };
    core.commit(data + plan.nbytes(), TYPE_ID, tag, true).or_raise(py)
}

/// `Sender.reserve_tensor`.
pub(crate) fn reserve<'py>(
    slf: &Bound<'py, Sender>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    tag: u64,
    timeout: Option<Timeout>,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = slf.py();
    let dtype = element_type(dtype)?;
    let shape = dims(shape)?;
    let bad = || invalid(py, format!("{shape:?} is no shape: dimensions are numbers from 0 on"));
    let extents = shape.iter().map(|&dim| u64::try_from(dim)).collect::<Result<Vec<_>, _>>().map_err(|_| bad())?;
    let plan = Plan::new(dtype, &extents).or_raise(py)?;
    let class =
        CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("ramway._tensor")?.getattr("TensorSlot")?.unbind()))?;
    let slot = Sender::open_slot(slf, plan.room(), 0, tag, timeout)?;
    let (to, _) = slot.data(py)?;
    // SAFETY: as in `send`; the slot is open, and has no views yet.
    let data = unsafe { write_header(&plan, to) };
    let shape = PyTuple::new(py, &shape)?;
    class.bind(py).call1((Py::new(py, slot)?, shape, dtype.name(), data, plan.nbytes()))
}

/// Writes what stands before the elements; gives where they begin.
///
/// # Safety
/// `plan.room()` bytes at `to` are mapped and nobody else's.
unsafe fn write_header(plan: &Plan, to: *mut u8) -> usize {
    let data = plan.place(to.addr());
    // SAFETY: the caller's; a header ends within the room.
    plan.write_header(unsafe { std::slice::from_raw_parts_mut(to, data) }, data);
    data
}

/// Ends a tensor's slot as a message: its first `n` bytes.
#[pyfunction]
pub(crate) fn _commit_tensor(py: Python<'_>, slot: &Bound<'_, Slot>, n: usize, flush: bool) -> PyResult<()> {
    slot.get().commit_as(py, n, TYPE_ID, flush)
}

/// The elements of a tensor's slot as an array.
#[pyfunction]
pub(crate) fn _slot_array<'py>(
    slot: &Bound<'py, Slot>,
    shape: &Bound<'py, PyTuple>,
    dtype: &str,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slot.py();
    let numpy = Numpy::get(py)?;
    let dtype = Dtype::from_name(dtype).ok_or_else(|| invalid(py, format!("{dtype:?} is no element type")))?;
    numpy.over(Memory::of_buffer(slot)?, numpy.dtype_of(py, dtype)?, dtype.size(), &dims(shape)?, offset)
}

/// The elements of a tensor's slot as a DLPack capsule.
#[pyfunction]
#[pyo3(signature = (slot, shape, dtype, offset, *, stream = None, max_version = None, dl_device = None, copy = None))]
#[allow(clippy::too_many_arguments)] // Python's keywords.
pub(crate) fn _slot_dlpack<'py>(
    slot: &Bound<'py, Slot>,
    shape: Vec<i64>,
    dtype: &str,
    offset: usize,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<(u32, u32)>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slot.py();
    let dtype = Dtype::from_name(dtype).ok_or_else(|| invalid(py, format!("{dtype:?} is no element type")))?;
    dlpack::export(slot, offset, dtype, &shape, &Asked::new(stream, max_version, dl_device, copy)?)
}

#[pymethods]
impl Message {
    /// The array that send_tensor sent, as a view. Raises InvalidArgumentError if the message is no tensor.
    fn tensor(slf: &Bound<'_, Self>) -> PyResult<Py<Tensor>> {
        of(slf)
    }

    /// Whether the message says that it is a tensor.
    #[getter]
    fn is_tensor(&self) -> bool {
        self.type_id() == TYPE_ID
    }
}

/// The methods of DLPack. `$at` gives the message, where in its payload the elements are, their type and shape.
macro_rules! to_dlpack {
    ($class:ident, |$this:ident| $at:expr, $(#[$doc:meta])*) => {
        #[pymethods]
        impl $class {
            $(#[$doc])*
            #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
            fn __dlpack__<'py>(
                $this: &Bound<'py, Self>,
                stream: Option<&Bound<'py, PyAny>>,
                max_version: Option<(u32, u32)>,
                dl_device: Option<(i32, i32)>,
                copy: Option<bool>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let asked = Asked::new(stream, max_version, dl_device, copy)?;
                let (message, offset, dtype, shape): (&Bound<'py, Message>, usize, Dtype, Vec<i64>) = $at;
                dlpack::export(message, offset, dtype, &shape, &asked)
            }

            /// (1, 0): the CPU.
            fn __dlpack_device__(&self) -> (i32, i32) {
                dlpack::CPU
            }
        }
    };
}

to_dlpack! {
    Message,
    |slf| (slf, 0, Dtype::U8, vec![slf.get().payload_len(slf.py())? as i64]),
    /// The bytes as a DLPack 1.x capsule of one dimension (of the older protocol for those who do not ask for 1.x:
    /// BufferError then, as it cannot say "read-only", unless with copy=True or on a ring with writable_views).
}

to_dlpack! {
    Tensor,
    |slf| {
        let this = slf.get();
        let shape = this.shape().iter().map(|&dim| dim as i64).collect();
        (this.message.bind(slf.py()), this.offset, this.dtype, shape)
    },
    /// A DLPack 1.x capsule (of the older protocol for those who do not ask for 1.x: BufferError then, as it cannot say
    /// "read-only", unless with copy=True or on a ring with writable_views).
}

calls! {
    [Sender] as slf:

    /// Sends a copy of an array with its dtype and shape: NumPy's, PyTorch's, JAX's, anything with __dlpack__ on the CPU,
    /// or a buffer. The receiver's msg.tensor() is it, in C order and native byte order. Waits and raises as send does.
    send_tensor(array: any, tag: u64 = 0, * timeout) -> () {
        send(slf, array, tag, Some(timeout))
    }

    /// send_tensor that does not wait: FullError if there is no room now.
    try_send_tensor(array: any, tag: u64 = 0) -> () {
        send(slf, array, tag, None)
    }

    /// send_tensor for asyncio: an awaitable that is done once the array is sent.
    send_tensor_async(array: any, tag: u64 = 0) -> Wait {
        room(slf, "try_send_tensor", (array, tag))
    }

    /// Room for a tensor, to be written in place: np.add(a, b, out=slot.numpy()), slot[...] = a. See TensorSlot.
    reserve_tensor(shape: any, dtype: any, tag: u64 = 0, * timeout) -> Bound<'py, PyAny> {
        reserve(slf, shape, dtype, tag, Some(timeout))
    }

    /// reserve_tensor that does not wait: FullError if there is no room now.
    try_reserve_tensor(shape: any, dtype: any, tag: u64 = 0) -> Bound<'py, PyAny> {
        reserve(slf, shape, dtype, tag, None)
    }

    /// reserve_tensor for asyncio: an awaitable of the TensorSlot.
    reserve_tensor_async(shape: any, dtype: any, tag: u64 = 0) -> Wait {
        room(slf, "try_reserve_tensor", (shape, dtype, tag))
    }
}

#[pymethods]
impl Tensor {
    /// The elements' type by NumPy's or ml_dtypes' name: 'float32', 'bfloat16', 'float8_e4m3fn', ...
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The dimensions, the outermost first.
    #[getter]
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape())
    }

    /// How many dimensions it has.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// The message that it is a view of.
    #[getter]
    fn message(&self, py: Python<'_>) -> Py<Message> {
        self.message.clone_ref(py)
    }

    /// A NumPy array of the elements, without a copy. bfloat16 and the float8s need the package ml_dtypes
    /// (UnsupportedError).
    pub(crate) fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::get(py)?;
        let descr = numpy.dtype_of(py, self.dtype)?;
        let memory = Memory::of_message(self.message.bind(py))?;
        numpy.over(memory, descr, self.dtype.size(), self.shape(), self.offset)
    }

    /// Gives the message back. Raises BufferError while views are alive.
    fn release(&self, _py: Python<'_>) -> PyResult<()> {
        self.message.get().release()
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.numpy(py)?;
        if let Some(dtype) = dtype
            && !array.getattr("dtype")?.eq(dtype)?
        {
            if copy == Some(false) {
                return Err(PyValueError::new_err(format!("{} as {dtype}: not without a copy", self.dtype)));
            }
            return array.call_method1("astype", (dtype,));
        }
        if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
    }

    /// # Safety
    /// Called by the interpreter, with a `view` to fill in.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let message = this.message.get();
        let asks = |bits: c_int| flags & bits == bits;
        let format = format_of(this.dtype);
        if asks(ffi::PyBUF_FORMAT) && format.is_none() {
            let text =
                format!("buffers have no format for {}: use numpy(), which needs ml_dtypes, or DLPack", this.dtype);
            return Err(PyBufferError::new_err(text));
        }
        if asks(ffi::PyBUF_WRITABLE) && !message.is_writable() {
            return Err(PyBufferError::new_err("a received tensor is read-only"));
        }
        if asks(ffi::PyBUF_F_CONTIGUOUS) && this.shape().iter().filter(|&&dim| dim != 1).count() > 1 {
            return Err(PyBufferError::new_err("a tensor is in C order"));
        }
        let frame = message.view(py)?;
        let ndim = this.shape().len();
        let dims = this.dims.as_ptr().cast_mut();
        // SAFETY: `view` is the interpreter's. What it leads to stays as long as the tensor, to which it holds a
        // reference, and the message, which has counted it.
        unsafe {
            let view = &mut *view;
            view.buf = frame.data.add(this.offset).cast_mut().cast();
            view.obj = slf.clone().into_ptr();
            view.len = this.nbytes as isize;
            view.itemsize = this.dtype.size() as isize;
            view.readonly = (!message.is_writable()).into();
            // Without a shape it is bytes in a row, as a memoryview's exports are.
            view.ndim = if asks(ffi::PyBUF_ND) { ndim as c_int } else { 1 };
            view.format = match format {
                Some(format) if asks(ffi::PyBUF_FORMAT) => format.as_ptr().cast_mut(),
                _ => std::ptr::null_mut(),
            };
            view.shape = if asks(ffi::PyBUF_ND) { dims } else { std::ptr::null_mut() };
            view.strides = if asks(ffi::PyBUF_STRIDES) { dims.add(ndim) } else { std::ptr::null_mut() };
            view.suboffsets = std::ptr::null_mut();
            view.internal = std::ptr::null_mut();
        }
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter, once for each view.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.message.get().unview();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Gives the message back, or puts it off until the last view has gone.
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyAny>) {
        self.message.get().release_later();
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.shape().first() {
            Some(&outermost) => Ok(outermost as usize),
            None => Err(PyTypeError::new_err("a tensor without dimensions has no length")),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.message)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Tensor cannot be pickled: send t.numpy().copy()"))
    }

    fn __repr__(&self) -> String {
        format!("<ramway.Tensor of {}, shape {:?}>", self.dtype, self.shape())
    }
}

/// As `struct` and NumPy spell it, of this machine's byte order.
fn format_of(dtype: Dtype) -> Option<&'static CStr> {
    Some(match dtype {
        Dtype::I8 => c"b",
        Dtype::I16 => c"h",
        Dtype::I32 => c"i",
        Dtype::I64 => c"l",
        Dtype::U8 => c"B",
        Dtype::U16 => c"H",
        Dtype::U32 => c"I",
        Dtype::U64 => c"L",
        Dtype::F16 => c"e",
        Dtype::F32 => c"f",
        Dtype::F64 => c"d",
        Dtype::C64 => c"Zf",
        Dtype::C128 => c"Zd",
        Dtype::BOOL => c"?",
        _ => return None,
    })
}
