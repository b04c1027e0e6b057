//! NumPy, imported at the first use: its dtypes, and arrays of a buffer's bytes.

use crate::errors::error;
use crate::region::Region;
use crate::ring::message::Message;
use crate::ring::slot::Slot;
use crate::tensor::elements::{Buffer, invalid};
use crate::tensor::ndarray::Functions;
use pyo3::exceptions::PyImportError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyString, PyType};
use pyo3::{ffi, intern};
use ramway::ErrorKind;
use ramway::tensor::Dtype;

/// What is used of NumPy.
pub(crate) struct Numpy {
    ndarray: Py<PyType>,
    dtype: Py<PyAny>,
    functions: Functions,
    empty: Py<PyAny>,
    asarray: Py<PyAny>,
    ascontiguousarray: Py<PyAny>,
    /// The dtypes of tensors, in the order of `Dtype::ALL`, each from its first use on.
    dtypes: Vec<PyOnceLock<Py<PyAny>>>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

impl Numpy {
    /// # Errors
    /// `UnsupportedError` if it is not installed.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        NUMPY.get_or_try_init(py, || {
            let module = import(py, "numpy", "this")?;
            Ok(Self {
                ndarray: module.getattr("ndarray")?.cast_into::<PyType>()?.unbind(),
                dtype: module.getattr("dtype")?.unbind(),
                functions: Functions::get(py)?,
                empty: module.getattr("empty")?.unbind(),
                asarray: module.getattr("asarray")?.unbind(),
                ascontiguousarray: module.getattr("ascontiguousarray")?.unbind(),
                dtypes: Dtype::ALL.iter().map(|_| PyOnceLock::new()).collect(),
            })
        })
    }

    /// NumPy if the program has imported it: else no object is one of its arrays.
    pub(crate) fn if_loaded(py: Python<'_>) -> PyResult<Option<&'static Self>> {
        if let Some(numpy) = NUMPY.get(py) {
            return Ok(Some(numpy));
        }
        let module = py.import("sys")?.getattr("modules")?.call_method1("get", ("numpy",))?;
        if module.is_none() { Ok(None) } else { Self::get(py).map(Some) }
    }

    pub(crate) fn is_array(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        object.is_instance(self.ndarray.bind(object.py()))
    }

    pub(crate) fn asarray<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asarray.bind(object.py()).call1((object,))
    }

    pub(crate) fn ascontiguousarray<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.ascontiguousarray.bind(object.py()).call1((object,))
    }

    /// A new array of one dimension, of whatever its memory held.
    pub(crate) fn empty<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        descr: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.empty.bind(py).call1((count, descr))
    }

    /// An array of elements of `size` bytes that are `offset` bytes into `memory`.
    ///
    /// # Errors
    /// `InvalidArgumentError` if they are not all in it.
    #[inline]
    pub(crate) fn over<'py>(
        &self,
        memory: Memory<'py>,
        descr: &Bound<'py, PyAny>,
        size: usize,
        shape: &[isize],
        offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Memory { keeper, data, len, writable } = memory;
        let py = keeper.py();
        let nbytes = shape.iter().try_fold(size, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
        if nbytes.is_none_or(|nbytes| len.checked_sub(offset).is_none_or(|room| nbytes > room)) {
            return Err(invalid(py, format!("{len} bytes, from byte {offset} on, are not {shape:?} of {descr}")));
        }
        let class = self.ndarray.bind(py);
        // SAFETY: within the memory, as was just compared, which the keeper keeps; `size_of` has refused objects.
        unsafe { self.functions.over(class, descr, shape, data.add(offset), writable, keeper) }
    }

    /// The `np.dtype` of a tensor's elements.
    ///
    /// # Errors
    /// `UnsupportedError` for those that NumPy has only with `ml_dtypes`, if that is not installed.
    #[inline]
    pub(crate) fn dtype_of<'a, 'py>(&'a self, py: Python<'py>, dtype: Dtype) -> PyResult<&'a Bound<'py, PyAny>> {
        let index = Dtype::ALL.iter().position(|&other| other == dtype).expect("ALL has all");
        let descr = self.dtypes[index].get_or_try_init(py, || {
            let name = dtype.name();
            let descr = if is_numpys_own(dtype) {
                self.dtype.bind(py).call1((name,))?
            } else {
                let module = import(py, "ml_dtypes", name)?;
                let scalar = module.getattr(name).map_err(|_| {
                    error(
                        py,
                        ErrorKind::Unsupported,
                        format!("{name} needs a newer ml_dtypes: pip install -U ml_dtypes"),
                    )
                })?;
                self.dtype.bind(py).call1((scalar,))?
            };
            Ok::<_, PyErr>(descr.unbind())
        })?;
        Ok(descr.bind(py))
    }

    /// The element type that an `np.dtype` is, and whether its byte order is the machine's.
    ///
    /// # Errors
    /// `InvalidArgumentError` for a dtype that no tensor has.
    #[inline]
    pub(crate) fn tensor_dtype(&self, descr: &Bound<'_, PyAny>) -> PyResult<(Dtype, bool)> {
        let py = descr.py();
        let known = |lock: &PyOnceLock<Py<PyAny>>| lock.get(py).is_some_and(|known| known.is(descr));
        match self.dtypes.iter().position(known) {
            Some(index) => Ok((Dtype::ALL[index], true)),
            None => self.look_up(descr),
        }
    }

    #[cold]
    fn look_up(&self, descr: &Bound<'_, PyAny>) -> PyResult<(Dtype, bool)> {
        let py = descr.py();
        let name = descr.getattr("name")?.extract::<String>()?;
        if !descr.getattr("names")?.is_none() {
            let text = format!("records ({descr}) are no tensor: send_array sends each row as one message");
            return Err(invalid(py, text));
        }
        let Some(dtype) = Dtype::from_name(&name) else {
            let text = format!(
                "no tensor has elements of {descr}: they are bools, integers, floats and complex numbers of 8 to 128 \
                 bits (datetime64 and timedelta64: send array.view('int64'))"
            );
            return Err(invalid(py, text));
        };
        // From now on `tensor_dtype` knows it.
        self.dtype_of(py, dtype)?;
        Ok((dtype, descr.getattr("isnative")?.is_truthy()?))
    }

    /// The `np.dtype` of whatever a caller names one by (the names of `ml_dtypes` too, and PyTorch's dtypes), and bytes
    /// of an element.
    ///
    /// # Errors
    /// `InvalidArgumentError` for Python objects and elements of 0 bytes; what `np.dtype` raises.
    pub(crate) fn resolve<'py>(&self, dtype: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let py = dtype.py();
        if let Some(dtype) = named(dtype)? {
            return Ok((self.dtype_of(py, dtype)?.clone(), dtype.size()));
        }
        let descr = self.dtype.bind(py).call1((dtype,))?;
        let size = size_of(&descr)?;
        Ok((descr, size))
    }
}

/// Bytes, and the object that keeps them where they are.
pub(crate) struct Memory<'py> {
    keeper: Bound<'py, PyAny>,
    data: *mut u8,
    len: usize,
    writable: bool,
}

impl<'py> Memory<'py> {
    /// A message's payload: counted as one more view of it, as a memoryview would be, with less ado.
    #[inline]
    pub(crate) fn of_message(message: &Bound<'py, Message>) -> PyResult<Self> {
        let py = message.py();
        let frame = message.get().view(py)?;
        let keeper = Bound::new(py, View { message: message.clone().unbind() })?.into_any();
        Ok(Self { keeper, data: frame.data.cast_mut(), len: frame.len, writable: message.get().is_writable() })
    }

    /// A buffer's bytes, kept by a memoryview.
    pub(crate) fn of_buffer(owner: &Bound<'py, PyAny>) -> PyResult<Self> {
        let keeper = PyMemoryView::from(owner)?.into_any();
        // Given back at once: the memoryview holds an export of its own.
        let buffer = Buffer::get(&keeper, ffi::PyBUF_SIMPLE)?;
        let (data, len, writable) = (buffer.view.buf.cast(), buffer.view.len as usize, buffer.view.readonly == 0);
        drop(buffer);
        Ok(Self { keeper, data, len, writable })
    }
}

/// One view of a message: the base of the arrays that lead into it.
#[pyclass(frozen, module = "ramway._ramway")]
struct View {
    message: Py<Message>,
}

#[pymethods]
impl View {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.message)
    }
}

impl Drop for View {
    #[inline]
    fn drop(&mut self) {
        self.message.get().unview();
    }
}

/// Bytes of an element of an `np.dtype`.
pub(crate) fn size_of(descr: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = descr.py();
    if descr.getattr(intern!(py, "hasobject"))?.is_truthy()? {
        return Err(invalid(py, format!("{descr} has Python objects in it, which mean nothing in another process")));
    }
    match descr.getattr(intern!(py, "itemsize"))?.extract()? {
        0 => Err(invalid(py, format!("an element of {descr} has 0 bytes"))),
        size => Ok(size),
    }
}

/// The element type that a caller names: by its name, a PyTorch dtype, or anything that `np.dtype` takes.
pub(crate) fn element_type(dtype: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    match named(dtype)? {
        Some(dtype) => Ok(dtype),
        None => {
            let numpy = Numpy::get(dtype.py())?;
            match numpy.tensor_dtype(&numpy.resolve(dtype)?.0)? {
                (dtype, true) => Ok(dtype),
                _ => Err(invalid(dtype.py(), format!("{dtype}: the elements of a tensor are little-endian"))),
            }
        }
    }
}

fn named(dtype: &Bound<'_, PyAny>) -> PyResult<Option<Dtype>> {
    if let Ok(name) = dtype.cast::<PyString>() {
        return Ok(Dtype::from_name(name.to_str()?));
    }
    let kind = dtype.get_type();
    if kind.name()? == "dtype" && kind.module()? == "torch" {
        return Ok(Dtype::from_name(dtype.str()?.to_str()?.trim_start_matches("torch.")));
    }
    Ok(None)
}

/// Whether NumPy has it without `ml_dtypes`.
fn is_numpys_own(dtype: Dtype) -> bool {
    [Dtype::I8, Dtype::U8, Dtype::F32, Dtype::C64, Dtype::BOOL].iter().any(|own| own.code() == dtype.code())
}

fn import<'py>(py: Python<'py>, module: &str, what: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(module).map_err(|cause| {
        if !cause.is_instance_of::<PyImportError>(py) {
            return cause;
        }
        let missing = error(py, ErrorKind::Unsupported, format!("{what} needs {module}: pip install {module}"));
        missing.set_cause(py, Some(cause));
        missing
    })
}

/// The `numpy` methods: a buffer's bytes from `offset` on as an array of `dtype` (none: uint8) and `shape` (none: one
/// dimension, to the end). It is writable where the buffer is. A message must have exactly these bytes.
///
/// # Errors
/// `InvalidArgumentError` if they do not fit; what `np.dtype` raises.
fn view<'py>(
    owner: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    shape: Option<&Bound<'py, PyAny>>,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let numpy = Numpy::get(py)?;
    let (descr, size) = match dtype {
        Some(dtype) => numpy.resolve(dtype)?,
        None => (numpy.dtype_of(py, Dtype::U8)?.clone(), 1),
    };
    let message = owner.cast::<Message>().ok();
    let memory = message.map_or_else(|| Memory::of_buffer(owner), Memory::of_message)?;
    let len = memory.len;
    let mut shape = shape.map_or_else(|| Ok(vec![-1]), dims)?;
    let does_not_fit = |shape: &[isize]| {
        invalid(py, format!("{len} bytes, from byte {offset} on, are not {shape:?} of {descr} ({size} bytes each)"))
    };
    // What the dimensions other than a -1 multiply to, in bytes.
    let known = shape
        .iter()
        .filter(|&&dim| dim != -1)
        .try_fold(size, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
    let (Some(known), Some(room)) = (known, len.checked_sub(offset)) else { return Err(does_not_fit(&shape)) };
    match shape.iter().filter(|&&dim| dim == -1).count() {
        0 if known == room || (known < room && message.is_none()) => (),
        1 if known != 0 && room % known == 0 => {
            let rest = (room / known) as isize;
            shape.iter_mut().filter(|dim| **dim == -1).for_each(|dim| *dim = rest);
        }
        _ => return Err(does_not_fit(&shape)),
    }
    numpy.over(memory, &descr, size, &shape, offset)
}

/// A shape, from an integer or a sequence of them.
pub(crate) fn dims(shape: &Bound<'_, PyAny>) -> PyResult<Vec<isize>> {
    match shape.extract::<isize>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => shape.try_iter()?.map(|dim| dim?.extract()).collect(),
    }
}

#[pymethods]
impl Message {
    /// The payload as a NumPy array, without a copy: of any dtype whose elements the payload consists of, of one
    /// dimension or of `shape` (one dimension may be -1). Read-only, unless the ring was opened with writable_views.
    #[pyo3(signature = (dtype = None, shape = None), text_signature = "($self, dtype='uint8', shape=None)")]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        view(slf, dtype, shape, 0)
    }
}

#[pymethods]
impl Slot {
    /// The bytes as a writable NumPy array of any dtype, of one dimension or of `shape`.
    #[pyo3(signature = (dtype = None, shape = None), text_signature = "($self, dtype='uint8', shape=None)")]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        view(slf, dtype, shape, 0)
    }
}

#[pymethods]
impl Region {
    /// The shared bytes from `offset` on as a NumPy array of any dtype: of `shape`, or of one dimension to the end.
    /// Writable, unless the region is read-only or `writable` is False.
    #[pyo3(signature = (dtype = None, shape = None, *, offset = 0, writable = None),
           text_signature = "($self, dtype='uint8', shape=None, *, offset=0, writable=None)")]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = crate::args::offset)] offset: usize,
        writable: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let read_only = slf.get().read_only;
        match writable {
            Some(true) if read_only => {
                Err(invalid(slf.py(), "writable=True: this region was opened with read_only=True"))
            }
            Some(false) if !read_only => {
                let array = view(slf, dtype, shape, offset)?;
                array.getattr("flags")?.setattr("writeable", false)?;
                Ok(array)
            }
            _ => view(slf, dtype, shape, offset),
        }
    }
}
