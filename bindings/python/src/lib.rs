//! The native module of the Python package `ramway`: the core's handles as Python objects, and the rules by which their
//! views live.

// The docstrings are Python's: `<uid>` and `[...]` mean nothing to rustdoc.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

mod args;
mod array;
mod awaitable;
mod bus;
mod bus_calls;
mod dlpack;
mod elements;
mod errors;
mod handle;
mod hot;
mod lent;
mod listener;
mod message;
mod ndarray;
mod numpy;
mod operation;
mod receiver;
mod region;
mod ring;
mod sender;
mod slot;
mod survey;
mod tensor;
mod waiting;
mod watch;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

// What changes in the objects is ordered by the interpreter lock (`handle::Gil`).
#[pymodule(gil_used = true)]
fn _ramway(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // An event loop of Python's looks and polls in one thread.
    ramway::cooperate();
    // SAFETY: attached.
    if unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } != 0 {
        // What is kept in statics (exceptions, NumPy's objects) is the first interpreter's.
        return Err(PyImportError::new_err("ramway does not work in sub-interpreters"));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<ring::Ring>()?;
    module.add_class::<sender::Sender>()?;
    module.add_class::<receiver::Receiver>()?;
    module.add("Message", hot::types(module.py())?)?;
    module.add_class::<slot::Slot>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_function(wrap_pyfunction!(tensor::_commit_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::_slot_array, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::_slot_dlpack, module)?)?;
    module.add_class::<region::Region>()?;
    module.add_class::<bus::Bus>()?;
    module.add_class::<bus::Connecting>()?;
    module.add_class::<listener::Listener>()?;
    module.add_class::<awaitable::Wait>()?;
    module.add_class::<watch::Watch>()?;
    module.add_function(wrap_pyfunction!(survey::_ls, module)?)?;
    module.add_function(wrap_pyfunction!(survey::_unlink, module)?)?;
    module.add_function(wrap_pyfunction!(survey::_clean, module)?)?;
    module.add_function(wrap_pyfunction!(ring::_remake_ring, module)?)?;
    module.add_function(wrap_pyfunction!(ring::_remake_unnamed, module)?)
}
