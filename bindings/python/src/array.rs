//! NumPy arrays: of a buffer's bytes, and of many small messages at once. NumPy is imported at the first use.

use crate::args::Timeout;
use crate::elements::{Buffer, invalid};
use crate::errors::{OrRaise, error, is};
use crate::message::Message;
use crate::patience::wait;
use crate::receiver::Receiver;
use crate::sender::Sender;
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use ramway::ErrorKind;
use ramway::ring::raw::Patience;
use ramway::tensor::Dtype;

/// What is used of NumPy.
pub(crate) struct Numpy {
    ndarray: Py<PyType>,
    dtype: Py<PyAny>,
    frombuffer: Py<PyAny>,
    empty: Py<PyAny>,
    asarray: Py<PyAny>,
    ascontiguousarray: Py<PyAny>,
    /// The dtypes of tensors, in `Dtype::ALL`'s order, from their first use on.
    dtypes: Vec<PyOnceLock<Py<PyAny>>>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

impl Numpy {
    /// # Errors
    /// `UnsupportedError` if it is not installed.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        NUMPY.get_or_try_init(py, || {
            let module = py.import("numpy").map_err(|cause| {
                if !cause.is_instance_of::<PyImportError>(py) {
                    return cause;
                }
                let missing = error(py, ErrorKind::Unsupported, "this needs NumPy: pip install numpy");
                missing.set_cause(py, Some(cause));
                missing
            })?;
            Ok(Self {
                ndarray: module.getattr("ndarray")?.cast_into::<PyType>()?.unbind(),
                dtype: module.getattr("dtype")?.unbind(),
                frombuffer: module.getattr("frombuffer")?.unbind(),
                empty: module.getattr("empty")?.unbind(),
                asarray: module.getattr("asarray")?.unbind(),
                ascontiguousarray: module.getattr("ascontiguousarray")?.unbind(),
                dtypes: Dtype::ALL.iter().map(|_| PyOnceLock::new()).collect(),
            })
        })
    }

    /// NumPy if somebody has imported it: without that no object is an array of its.
    pub(crate) fn if_loaded(py: Python<'_>) -> PyResult<Option<&'static Self>> {
        if let Some(numpy) = NUMPY.get(py) {
            return Ok(Some(numpy));
        }
        let modules = py.import("sys")?.getattr("modules")?;
        if modules.contains("numpy")? { Self::get(py).map(Some) } else { Ok(None) }
    }

    pub(crate) fn is_array(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        object.is_instance(self.ndarray.bind(object.py()))
    }

    pub(crate) fn asarray<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asarray.bind(object.py()).call1((object,))
    }

    /// The `np.dtype` of a tensor's elements.
    ///
    /// # Errors
    /// `UnsupportedError` for those that NumPy has only with `ml_dtypes`, if that is not installed.
    pub(crate) fn dtype_of<'py>(&'static self, py: Python<'py>, dtype: Dtype) -> PyResult<&'static Bound<'py, PyAny>>
    where
        'static: 'py,
    {
        let _ = dtype;
        unreachable!("{py:?}")
    }
}
