//! A call that a task answers: for `ramway._rpc`.

use crate::endpoint::Gil;
use crate::errors::{OrRaise, beside_any};
use crate::rpc::request::{Failed, Request, bytes_of};
use pyo3::prelude::*;
use ramway::ErrorKind;
use ramway::rpc::Call;
use std::task::{Context, Poll, Waker};

/// The call of a handler that is a coroutine or an asynchronous generator.
#[pyclass(frozen, module = "ramway._ramway", name = "_RpcDeferred")]
pub(crate) struct Deferred {
    /// `None` once it is answered.
    call: Gil<Option<Call>>,
    /// The call has something of Python's to tell.
    tells: Gil<bool>,
    /// What its handler gets.
    #[pyo3(get)]
    request: Py<Request>,
}

impl Deferred {
    pub(crate) fn new(py: Python<'_>, call: Call) -> PyResult<Self> {
        let request = Py::new(py, Request::of_call(py, &call))?;
        Ok(Self { call: Gil::new(Some(call)), tells: Gil::default(), request })
    }

    /// The call, to be answered.
    fn take(&self) -> Option<Call> {
        let call = self.call.replace(None)?;
        if self.tells.replace(false) {
            // What it would tell has this object and the request, which shares the call's state: none would ever go.
            call.on_change(|| ());
        }
        Some(call)
    }
}

#[pymethods]
impl Deferred {
    /// Answers it by what its handler has returned.
    fn reply(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of("returned", value)?;
        let meta = self.request.get().take_reply_meta(py)?;
        if let Some(mut call) = self.take() {
            if let Some(meta) = meta {
                call.set_reply_meta(meta.as_slice());
            }
            call.reply(bytes.as_slice());
        }
        Ok(())
    }

    /// The stream is complete.
    fn finish(&self) {
        if let Some(call) = self.take() {
            call.finish();
        }
    }

    /// Answers it by an exception; the same exception if it is to end the program.
    fn fail(&self, py: Python<'_>, exception: Bound<'_, PyAny>) -> Option<PyErr> {
        let failed = Failed::of(py, PyErr::from_value(exception));
        let call = self.take();
        match (failed, call) {
            (Failed::Fault(fault), Some(call)) => call.fail(fault),
            (Failed::Raised(text), Some(call)) => call.fail_unexpectedly(text),
            (Failed::Ends(text, raised), call) => {
                if let Some(call) = call {
                    call.fail_unexpectedly(text);
                }
                return Some(raised);
            }
            (_, None) => {}
        }
        None
    }

    /// Whether another element can be sent now; None: nobody wants it any more.
    fn has_room(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let polled =
            self.call.with(|call| call.as_mut().map(|call| call.poll_ready(&mut Context::from_waker(Waker::noop()))));
        match polled {
            None => Ok(None),
            Some(Poll::Pending) => Ok(Some(false)),
            Some(Poll::Ready(Ok(()))) => Ok(Some(true)),
            Some(Poll::Ready(Err(e))) if e.kind() == ErrorKind::Interrupted => Ok(None),
            Some(Poll::Ready(Err(e))) => Err(crate::errors::raise(py, e)),
        }
    }

    /// Sends an element, for which there is room; false: nobody wants it any more.
    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of("yielded", value)?;
        let meta = self.request.get().take_reply_meta(py)?;
        let sent = self.call.with(|call| {
            let call = call.as_mut()?;
            if let Some(meta) = meta {
                call.set_reply_meta(meta.as_slice());
            }
            Some(call.try_send(bytes.as_slice()))
        });
        match sent {
            None => Ok(false),
            Some(Err(e)) if e.kind() == ErrorKind::Interrupted => Ok(false),
            Some(sent) => sent.or_raise(py).map(|()| true),
        }
    }

    /// Has `tell` called, in the event loop's thread, at each change: when it is cancelled, and when there is room.
    fn on_change(&self, tell: Py<PyAny>) {
        let tell = move || {
            let _ = Python::try_attach(|py| {
                beside_any(py, || {
                    if let Err(raised) = tell.call0(py) {
                        raised.write_unraisable(py, Some(tell.bind(py)));
                    }
                })
            });
        };
        // What the call does not take is dropped outside: that can run anything.
        let mut tell = Some(tell);
        let tells = self.call.with(|call| match (call, &mut tell) {
            (Some(call), tell) => {
                call.on_change(tell.take().expect("once"));
                true
            }
            (None, _) => false,
        });
        self.tells.set(tells);
    }

    /// Whether nobody wants the reply any more.
    #[getter]
    fn cancelled(&self) -> bool {
        self.call.with(|call| call.as_ref().is_none_or(Call::is_cancelled))
    }
}
