//! A core handle that several threads may use at once: a region, a listener.

use crate::endpoint::Gil;
use crate::errors::error;
use crate::waiting::watch::Waits;
use pyo3::prelude::*;
use ramway::ErrorKind;
use std::sync::Arc;

pub(crate) struct Shared<T> {
    /// `None` once it is closed. Calls that wait, and exported buffers, hold one more reference.
    core: Gil<Option<Arc<T>>>,
    /// "region" or "listener": for the texts of errors.
    what: &'static str,
    pub(crate) name: String,
    /// The task that waits for it.
    pub(crate) waits: Waits,
}

impl<T> Shared<T> {
    pub(crate) fn new(core: T, what: &'static str, name: String) -> Self {
        Self { core: Gil::new(Some(Arc::new(core))), what, name, waits: Waits::default() }
    }

    pub(crate) fn core(&self, py: Python<'_>) -> PyResult<Arc<T>> {
        self.core
            .with(|core| core.clone())
            .ok_or_else(|| error(py, ErrorKind::Detached, format!("the {} '{}' is closed", self.what, self.name)))
    }

    pub(crate) fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        self.core(py).map(drop)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.core.with(|core| core.is_none())
    }

    pub(crate) fn close(&self, py: Python<'_>) {
        drop(self.core.replace(None));
        self.waits.close(py);
    }
}

/// The methods that the objects share. The docstring is that of `close`, `$instead` what to do in place of pickling.
macro_rules! shared_calls {
    ($class:ident, $instead:literal, $(#[$close:meta])*) => {
        #[pymethods]
        impl $class {
            $(#[$close])*
            fn close(&self, py: Python<'_>) {
                self.shared.close(py);
            }

            /// The name that it was made or opened by.
            #[getter]
            fn name(&self) -> &str {
                &self.shared.name
            }

            /// Whether `close` was called.
            #[getter]
            fn closed(&self) -> bool {
                self.shared.is_closed()
            }

            fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
                slf.get().shared.check_open(slf.py())?;
                Ok(slf)
            }

            #[pyo3(signature = (*exception))]
            fn __exit__(&self, exception: &Bound<'_, PyTuple>) {
                self.close(exception.py());
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                self.shared.waits.traverse(&visit)
            }

            fn __reduce__(&self) -> PyResult<()> {
                let text = concat!("a ", stringify!($class), " cannot be pickled: ", $instead);
                Err(PyTypeError::new_err(text))
            }
        }
    };
}
pub(crate) use shared_calls;
