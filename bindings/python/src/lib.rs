//! The native module of the Python package `ramway`: the core's handles as Python objects, and the rules by which their
//! views live.

// The docstrings are Python's: `<uid>` and `[...]` mean nothing to rustdoc.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

mod args;
mod bus;
mod endpoint;
mod errors;
mod many;
mod region;
mod ring;
mod rpc;
mod segment;
mod tensor;
mod topic;
mod waiting;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

// The interpreter lock orders changes of the objects. A free-threaded interpreter has none: there each value has a lock (`endpoint::Gil`).
#[pymodule(gil_used = false)]
fn _ramway(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // An event loop of Python's calls and polls in one thread.
    ramway::cooperate();
    // SAFETY: attached.
    if unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } != 0 {
        // What is kept in statics (exceptions, NumPy's objects) is the first interpreter's.
        return Err(PyImportError::new_err("ramway does not work in sub-interpreters"));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<ring::Ring>()?;
    module.add_class::<ring::sender::Sender>()?;
    module.add_class::<ring::receiver::Receiver>()?;
    let [message, topic_message] = ring::hot::types(module.py())?;
    module.add("Message", message)?;
    module.add("TopicMessage", topic_message)?;
    module.add_class::<ring::slot::Slot>()?;
    module.add_class::<topic::Topic>()?;
    module.add_class::<topic::publisher::Publisher>()?;
    module.add_class::<topic::subscriber::Subscriber>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_function(wrap_pyfunction!(tensor::_commit_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::_slot_array, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::_slot_dlpack, module)?)?;
    module.add_class::<region::Region>()?;
    module.add_class::<bus::Bus>()?;
    module.add_class::<bus::Connecting>()?;
    module.add_class::<bus::listener::Listener>()?;
    module.add_class::<many::select::Room>()?;
    module.add_class::<many::select::Select>()?;
    module.add_function(wrap_pyfunction!(many::select::select, module)?)?;
    module.add_class::<many::merge::Merge>()?;
    module.add_function(wrap_pyfunction!(many::merge::merge, module)?)?;
    module.add_class::<many::inbox::Inbox>()?;
    module.add_class::<many::outbox::Outbox>()?;
    module.add_class::<waiting::awaitable::Wait>()?;
    module.add_class::<waiting::watch::Watch>()?;
    module.add_class::<rpc::client::Client>()?;
    module.add_class::<rpc::client::Connecting>()?;
    module.add_class::<rpc::calls::Calls>()?;
    module.add_class::<rpc::pending::Pending>()?;
    module.add_class::<rpc::pending::Stream>()?;
    module.add_class::<rpc::reply::Reply>()?;
    module.add_class::<rpc::server::Server>()?;
    module.add_class::<rpc::request::Request>()?;
    module.add_class::<rpc::deferred::Deferred>()?;
    module.add("_METHOD_PING", ramway::facts::METHOD_PING)?;
    module.add("_METHOD_DESCRIBE", ramway::facts::METHOD_DESCRIBE)?;
    module.add_function(wrap_pyfunction!(rpc::reply::_corrupt_description, module)?)?;
    module.add_function(wrap_pyfunction!(rpc::method_id, module)?)?;
    module.add_function(wrap_pyfunction!(segment::_ls, module)?)?;
    module.add_function(wrap_pyfunction!(segment::_unlink, module)?)?;
    module.add_function(wrap_pyfunction!(segment::_clean, module)?)?;
    module.add_function(wrap_pyfunction!(ring::_remake_ring, module)?)?;
    module.add_function(wrap_pyfunction!(topic::_remake_topic, module)?)?;
    module.add_function(wrap_pyfunction!(ring::_remake_unnamed, module)?)
}
