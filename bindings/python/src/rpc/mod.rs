//! `ramway.rpc`: calls between the processes of one machine.
//!
//! | file | what |
//! | --- | --- |
//! | `client.rs` | `ramway.rpc.Client`, for any number of threads |
//! | `calls.rs` | what `ramway.rpc.AsyncClient` stands on |
//! | `pending.rs` | calls and streams that are under way |
//! | `reply.rs` | what comes back, and the exceptions of calls |
//! | `server.rs` | the server, and how it calls handlers |
//! | `request.rs`, `deferred.rs` | what a handler gets, and how a task answers |

pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod deferred;
pub(crate) mod pending;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod server;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// A method as a caller names it: its number, or a name, whose number is `method_id`.
pub(crate) struct Method(pub(crate) u32);

impl<'a, 'py> FromPyObject<'a, 'py> for Method {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(name) => Ok(Self(ramway::rpc::method_id(&name.to_cow()?))),
            Err(_) => crate::args::method(&object).map(Self),
        }
    }
}

/// The number of a method's name: the same in every language.
#[pyfunction]
pub(crate) fn method_id(name: &str) -> u32 {
    ramway::rpc::method_id(name)
}
