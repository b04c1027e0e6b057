//! DLPack 1.x: memory exported to, and imported from, other array libraries (<https://dmlc.github.io/dlpack>).
//!
//! What is exported is a buffer of its owner, as that of a `memoryview`: the owner's rules about live views cover
//! both. The library that took a capsule calls the deleter in it, from any thread, with or without the interpreter
//! lock, perhaps while the interpreter shuts down.

use crate::tensor::elements::Buffer;
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use ramway::tensor::Dtype;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// `kDLCPU`, number 0: the only device that Ramway's memory is on.
pub(crate) const CPU: (i32, i32) = (1, 0);
/// The newest version whose structures are known here. A minor version only adds element types and flags.
const VERSION: Version = Version { major: 1, minor: 1 };
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
/// Copies from this size on are made without the interpreter lock.
pub(crate) const LARGE: usize = 1 << 16;

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
pub(crate) struct RawTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: Device,
    pub(crate) ndim: i32,
    pub(crate) dtype: DataType,
    pub(crate) shape: *mut i64,
    /// In elements; before version 1.2 it may be null, which is C order.
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub(crate) struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: RawTensor,
}

/// `DLManagedTensor`, of the time before versions and flags.
#[repr(C)]
pub(crate) struct Legacy {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// The two structures, and the names of the capsules that they travel in.
trait Managed: Sized {
    const FRESH: &'static CStr;
    const USED: &'static CStr;
    fn new(tensor: RawTensor, flags: u64) -> Self;
    fn tensor(&self) -> &RawTensor;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Managed for Versioned {
    const FRESH: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";

    fn new(tensor: RawTensor, flags: u64) -> Self {
        Self { version: VERSION, context: std::ptr::null_mut(), deleter: Some(delete), flags, tensor }
    }

    fn tensor(&self) -> &RawTensor {
        &self.tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

impl Managed for Legacy {
    const FRESH: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";

    fn new(tensor: RawTensor, _flags: u64) -> Self {
        Self { tensor, context: std::ptr::null_mut(), deleter: Some(delete) }
    }

    fn tensor(&self) -> &RawTensor {
        &self.tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// What a capsule of ours leads to. The consumer sees `managed`, which is first.
#[repr(C)]
struct Export<M> {
    managed: M,
    /// The shape, then the strides: what `managed` points to.
    dims: Box<[i64]>,
    memory: Memory,
}

/// Keeps the elements where they are until it is dropped.
// Nothing reads it: it is there to be dropped.
#[allow(dead_code)]
enum Memory {
    View(View),
    Copy(Copied),
}

/// A buffer export of an owner, that may be given back from anywhere.
struct View(ManuallyDrop<Buffer>);

impl View {
    fn of(owner: &Bound<'_, PyAny>) -> PyResult<Self> {
        Buffer::get(owner, ffi::PyBUF_SIMPLE).map(|buffer| Self(ManuallyDrop::new(buffer)))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // A thread that may not have the interpreter lock any more keeps the export: the process is about to end.
        if !may_attach() {
            return;
        }
        // SAFETY: `may_attach`; dropped once.
        unsafe {
            let state = ffi::PyGILState_Ensure();
            ManuallyDrop::drop(&mut self.0);
            ffi::PyGILState_Release(state);
        }
    }
}

/// Whether this thread can take the interpreter lock, or has it. While the interpreter shuts down only the thread that
/// does it can, and others would be ended or hang.
fn may_attach() -> bool {
    // SAFETY: both may be called at any time, from any thread.
    let (initialized, state) = unsafe { (ffi::Py_IsInitialized() != 0, ffi::PyGILState_GetThisThreadState()) };
    initialized || (!state.is_null() && is_main_thread())
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    // SAFETY: neither has a precondition.
    unsafe { libc::gettid() == libc::getpid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    // SAFETY: it has no precondition.
    unsafe { libc::pthread_main_np() == 1 }
}

/// Elements in memory of their own, on a multiple of 64 as in a frame.
struct Copied {
    data: NonNull<u8>,
    layout: Layout,
}

impl Copied {
    fn of(py: Python<'_>, from: *const u8, len: usize) -> PyResult<Self> {
        let layout = Layout::from_size_align(len.max(1), ramway::tensor::ALIGN).map_err(|_| {
            PyBufferError::new_err(format!("a copy of {len} bytes: that is more than an address space"))
        })?;
        // SAFETY: the layout's size is not 0.
        let Some(data) = NonNull::new(unsafe { alloc(layout) }) else {
            return Err(PyMemoryError::new_err(format!("a copy of {len} bytes")));
        };
        copy_bytes(py, from, data.as_ptr(), len);
        Ok(Self { data, layout })
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data.as_ptr(), self.layout) }
    }
}

/// Addresses that are used in a closure that runs without the interpreter lock.
#[derive(Clone, Copy)]
pub(crate) struct Addresses(pub(crate) *const u8, pub(crate) *mut u8);

// SAFETY: an address has no thread; what is there is the duty of the code that uses it.
unsafe impl Send for Addresses {}

/// Copies `len` bytes, large ones without the interpreter lock. Both ends stay what they are meanwhile: the callers hold
/// exports of them, or nobody else knows of them.
pub(crate) fn copy_bytes(py: Python<'_>, from: *const u8, to: *mut u8, len: usize) {
    let ends = Addresses(from, to);
    let copy = move || {
        let Addresses(from, to) = { ends };
        // SAFETY: the callers vouch for `len` bytes at both.
        unsafe { to.copy_from(from, len) }
    };
    if len >= LARGE { py.detach(copy) } else { copy() }
}

/// The deleter of both structures, and the end of a capsule that nobody took.
unsafe extern "C" fn delete<M: Managed>(managed: *mut M) {
    // SAFETY: made by `capsule`, whose structures begin with what the consumer was given; called once.
    drop(unsafe { Box::from_raw(managed.cast::<Export<M>>()) });
}

/// The destructor of a capsule: a consumer that took what is in it has renamed it.
unsafe extern "C" fn unused<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule of ours; under this name it leads to a structure that is ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::FRESH.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, M::FRESH.as_ptr()).cast::<M>());
        }
    }
}

/// What a consumer asks for with the keywords of `__dlpack__`.
pub(crate) struct Asked {
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) copy: Option<bool>,
}

impl Asked {
    /// # Errors
    /// `BufferError` for a stream, or a device other than the CPU.
    pub(crate) fn new(
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Self> {
        if stream.is_some() {
            return Err(PyBufferError::new_err("stream: shared memory is on the CPU, which has none: pass None"));
        }
        if let Some(device) = dl_device.filter(|&device| device != CPU) {
            let text =
                format!("dl_device={device:?}: shared memory is on the CPU, {CPU:?}; move the result from there");
            return Err(PyBufferError::new_err(text));
        }
        Ok(Self { max_version, copy })
    }
}

/// A capsule with the elements that are `offset` bytes into `owner`'s buffer, in C order.
///
/// # Errors
/// `BufferError` if the consumer is of the time before flags and the buffer is read-only, or is too short.
pub(crate) fn export<'py>(
    owner: &Bound<'py, PyAny>,
    offset: usize,
    dtype: Dtype,
    shape: &[i64],
    asked: &Asked,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let view = View::of(owner)?;
    let mut dims = vec![0; 2 * shape.len()].into_boxed_slice();
    dims[..shape.len()].copy_from_slice(shape);
    let mut count: i64 = 1;
    for (stride, &extent) in dims[shape.len()..].iter_mut().zip(shape).rev() {
        *stride = count;
        count = count.saturating_mul(extent.max(1));
    }
    let empty = shape.contains(&0);
    let nbytes = if empty { Some(0) } else { usize::try_from(count).ok().and_then(|n| n.checked_mul(dtype.size())) };
    let nbytes = nbytes.filter(|_| shape.iter().all(|&extent| extent >= 0));
    let room = (view.0.view.len as usize).checked_sub(offset);
    let Some(nbytes) = nbytes.filter(|&nbytes| room.is_some_and(|room| nbytes <= room)) else {
        return Err(PyBufferError::new_err(format!("{shape:?} of {dtype} is more than there is from byte {offset}")));
    };
    let read_only = view.0.view.readonly != 0;
    // SAFETY: `offset` is within the view, which was just compared.
    let data = unsafe { view.0.view.buf.cast::<u8>().add(offset) };
    let versioned = asked.max_version.is_some_and(|(major, _)| major >= 1);
    let (memory, data, flags) = if asked.copy == Some(true) {
        let copied = Copied::of(py, data, nbytes)?;
        let data = copied.data.as_ptr();
        (Memory::Copy(copied), data, IS_COPIED)
    } else if read_only && !versioned {
        return Err(PyBufferError::new_err(
            "this view is read-only, and a consumer that does not ask for DLPack 1.0 (max_version) cannot be told so: \
             pass copy=True, or open the ring with writable_views=True",
        ));
    } else {
        (Memory::View(view), data, if read_only { READ_ONLY } else { 0 })
    };
    let (shape_at, strides_at) = {
        let (shape, strides) = dims.split_at_mut(shape.len());
        (shape.as_mut_ptr(), strides.as_mut_ptr())
    };
    let tensor = RawTensor {
        data: data.cast(),
        device: Device { kind: CPU.0, id: CPU.1 },
        ndim: shape.len() as i32,
        dtype: DataType { code: dtype.code(), bits: dtype.bits(), lanes: 1 },
        shape: shape_at,
        strides: strides_at,
        byte_offset: 0,
    };
    if versioned {
        capsule(py, Versioned::new(tensor, flags), dims, memory)
    } else {
        capsule(py, Legacy::new(tensor, flags), dims, memory)
    }
}

fn capsule<M: Managed>(py: Python<'_>, managed: M, dims: Box<[i64]>, memory: Memory) -> PyResult<Bound<'_, PyAny>> {
    let export = Box::into_raw(Box::new(Export { managed, dims, memory }));
    // SAFETY: attached; the pointer is not null and the name static.
    unsafe {
        let capsule = ffi::PyCapsule_New(export.cast(), M::FRESH.as_ptr(), Some(unused::<M>));
        if capsule.is_null() {
            delete(export.cast::<M>());
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// A tensor of another library, taken out of its capsule.
pub(crate) enum Taken {
    Versioned(NonNull<Versioned>),
    Legacy(NonNull<Legacy>),
}

impl Taken {
    /// # Errors
    /// What the producer raises; `BufferError` if it gives what is no capsule, or one of another major version.
    pub(crate) fn from(producer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = producer.py();
        let method = producer.getattr(pyo3::intern!(py, "__dlpack__"))?;
        let asked = pyo3::types::PyDict::new(py);
        asked.set_item(pyo3::intern!(py, "max_version"), (VERSION.major, VERSION.minor))?;
        let capsule = match method.call((), Some(&asked)) {
            // A producer of the time before `max_version`.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => method.call0()?,
            result => result?,
        };
        if let Some(taken) = take::<Versioned>(&capsule)? {
            let taken = Self::Versioned(taken);
            if let Self::Versioned(at) = &taken {
                // SAFETY: the producer's structure, ours until the deleter has run; the version is first in all.
                let major = unsafe { at.as_ref() }.version.major;
                if major != VERSION.major {
                    let text = format!("DLPack {major}: this build reads version {}", VERSION.major);
                    return Err(PyBufferError::new_err(text));
                }
            }
            return Ok(taken);
        }
        match take::<Legacy>(&capsule)? {
            Some(taken) => Ok(Self::Legacy(taken)),
            None => Err(PyBufferError::new_err("__dlpack__ gave no capsule with an unused tensor")),
        }
    }

    pub(crate) fn tensor(&self) -> &RawTensor {
        // SAFETY: as above.
        unsafe {
            match self {
                Self::Versioned(at) => at.as_ref().tensor(),
                Self::Legacy(at) => at.as_ref().tensor(),
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        match *self {
            Self::Versioned(at) => give_back(at),
            Self::Legacy(at) => give_back(at),
        }
    }
}

fn take<M: Managed>(capsule: &Bound<'_, PyAny>) -> PyResult<Option<NonNull<M>>> {
    // One thread at a time: two that were given the same capsule must not both have its tensor.
    // SAFETY: attached; `IsValid` is false for what is no capsule, or one of another name.
    with_critical_section(capsule, || unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::FRESH.as_ptr()) == 0 {
            return Ok(None);
        }
        let at = ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::FRESH.as_ptr());
        // From here on the capsule's own destructor leaves the tensor alone.
        let renamed: c_int = ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr());
        if renamed != 0 { Err(PyErr::fetch(capsule.py())) } else { Ok(NonNull::new(at.cast())) }
    })
}

fn give_back<M: Managed>(at: NonNull<M>) {
    // SAFETY: taken out of its capsule by us, so it is ours to delete, once. Null: there is nothing to delete.
    unsafe {
        if let Some(deleter) = at.as_ref().deleter() {
            deleter(at.as_ptr());
        }
    }
}
