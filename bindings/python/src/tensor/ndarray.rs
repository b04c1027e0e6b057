//! NumPy's C interface, as far as a view of memory needs it: by `np.frombuffer` and `reshape` one takes four times as
//! long, which is most of what it takes to receive a tensor.

use crate::errors::error;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use ramway::ErrorKind;
use std::ffi::{c_int, c_uint, c_void};

/// The ABI that NumPy 2 has; that of NumPy 1 differs in nothing used here.
const ABI_MAX: c_uint = 0x0200_0000;
/// `NPY_ARRAY_WRITEABLE`.
const WRITEABLE: c_int = 0x0400;

type Version = unsafe extern "C" fn() -> c_uint;
type NewFromDescr = unsafe extern "C" fn(
    class: *mut ffi::PyTypeObject,
    descr: *mut ffi::PyObject,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    flags: c_int,
    object: *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBaseObject = unsafe extern "C" fn(array: *mut ffi::PyObject, base: *mut ffi::PyObject) -> c_int;

/// Functions of NumPy's, by their places in its table, which are part of its ABI.
pub(crate) struct Functions {
    new_from_descr: NewFromDescr,
    set_base_object: SetBaseObject,
}

impl Functions {
    pub(crate) fn get(py: Python<'_>) -> PyResult<Self> {
        // Moved in NumPy 2.
        let module =
            py.import("numpy._core._multiarray_umath").or_else(|_| py.import("numpy.core._multiarray_umath"))?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: attached; the capsule has no name, and what is no such capsule gives null and an exception.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        let table = table.cast::<*const c_void>();
        // SAFETY: entry 0 says of which ABI the table is, in all of them.
        let abi = unsafe { std::mem::transmute::<*const c_void, Version>(*table)() };
        if abi > ABI_MAX {
            let text =
                format!("this NumPy has the ABI {abi:#x}, and this build of Ramway knows them up to {ABI_MAX:#x}");
            return Err(error(py, ErrorKind::Unsupported, text));
        }
        // SAFETY: what these entries are in the ABIs up to this one. NumPy is never unloaded.
        unsafe {
            Ok(Self {
                new_from_descr: std::mem::transmute::<*const c_void, NewFromDescr>(*table.add(94)),
                set_base_object: std::mem::transmute::<*const c_void, SetBaseObject>(*table.add(282)),
            })
        }
    }

    /// An array of `class` (`np.ndarray`) of what is at `data`, in C order; it keeps `base`.
    ///
    /// # Safety
    /// `base` keeps as many bytes as the shape and the dtype say where they are, writable ones if `writable`; the
    /// elements are no Python objects.
    #[inline]
    pub(crate) unsafe fn over<'py>(
        &self,
        class: &Bound<'py, PyType>,
        descr: &Bound<'py, PyAny>,
        shape: &[isize],
        data: *mut u8,
        writable: bool,
        base: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let flags = if writable { WRITEABLE } else { 0 };
        // SAFETY: attached; a dtype and a shape of as many dimensions as are said. Both calls take over a reference, of
        // the dtype and of the base, also when they fail.
        unsafe {
            let array = (self.new_from_descr)(
                class.as_type_ptr(),
                descr.clone().into_ptr(),
                shape.len() as c_int,
                shape.as_ptr(),
                std::ptr::null(),
                data.cast(),
                flags,
                std::ptr::null_mut(),
            );
            let array = Bound::from_owned_ptr_or_err(class.py(), array)?;
            if (self.set_base_object)(array.as_ptr(), base.into_ptr()) != 0 {
                return Err(PyErr::fetch(class.py()));
            }
            Ok(array)
        }
    }
}
