//! Handlers that are tasks of tokio's, and a server that is one.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use ::tokio::runtime::Handle;
use futures_core::Stream;

use super::Server;
use super::call::{Call, Cancellation};
use super::methods::MethodKey;
use super::request::{Fault, IntoReply};
use crate::many::Peer;
use crate::tokio::{Fd, failed};
use crate::{Error, ErrorKind, Result};

/// A request as a task gets it: a copy.
pub struct TaskRequest {
    method: u32,
    peer: Peer,
    bytes: Vec<u8>,
    meta: Range<usize>,
    body: Range<usize>,
    deadline: Option<Instant>,
    cancellation: Cancellation,
}

impl TaskRequest {
    fn take(call: &mut Call) -> Self {
        Self {
            method: call.method,
            peer: call.peer,
            bytes: std::mem::take(&mut call.bytes),
            meta: std::mem::take(&mut call.meta),
            body: std::mem::take(&mut call.body),
            deadline: call.deadline,
            cancellation: call.cancellation(),
        }
    }

    /// The method's number.
    pub fn method(&self) -> u32 {
        self.method
    }

    /// The request's bytes.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body.clone()]
    }

    /// The request's bytes, as a value of their own.
    pub fn into_body(mut self) -> Vec<u8> {
        self.bytes.truncate(self.body.end);
        self.bytes.drain(..self.body.start);
        self.bytes
    }

    /// The request's metadata.
    pub fn meta(&self) -> &[u8] {
        &self.bytes[self.meta.clone()]
    }

    /// The client.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// How much time the call has left; `None` without a limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Tells others whether the call was cancelled. The task itself need not ask: it is dropped.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

impl fmt::Debug for TaskRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRequest")
            .field("method", &self.method)
            .field("peer", &self.peer)
            .field("len", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The runtime that a method's tasks run in.
fn runtime() -> Result<Handle> {
    Handle::try_current().map_err(|e| {
        let text = format!("a method whose handler is a task, outside of a tokio runtime: {e}");
        Error::new(ErrorKind::InvalidArgument, text)
    })
}

impl Server {
    /// A method whose handler is an async function: each call is a task of the current tokio runtime. When the call is cancelled, or
    /// its time is over, the future is dropped at its next `await`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> ramway::Result<()> {
    /// # let name = format!("/dev/shm/ramway-doc-rpc-task-{}.sock", std::process::id());
    /// use std::time::Duration;
    ///
    /// let mut server = ramway::rpc::Server::bind(&name)?;
    /// server.task("Sleep", |request| async move {
    ///     tokio::time::sleep(Duration::from_millis(1)).await;
    ///     Ok(request.into_body())
    /// })?;
    /// # server.stopper().shutdown(Duration::ZERO);
    /// server.serve().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`method`](Self::method). `InvalidArgument` outside of a tokio runtime.
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    pub fn task<F, R>(
        &mut self,
        key: impl MethodKey,
        mut handler: impl FnMut(TaskRequest) -> F + Send + 'static,
    ) -> Result<()>
    where
        F: Future<Output = std::result::Result<R, Fault>> + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let runtime = runtime()?;
        self.deferred(key, move |mut call| {
            let work = handler(TaskRequest::take(&mut call));
            let cancellation = call.cancellation();
            runtime.spawn(async move {
                match until_cancelled(&cancellation, work).await {
                    Some(outcome) => call.answer_with(outcome),
                    // The future is gone: only now does the client have its place back.
                    None => call.finish(),
                }
            });
        })
    }

    /// [`task`](Self::task) whose reply is a stream, which is polled for its next element only when the caller has room for it. A caller
    /// that does not want a stream gets [`HandlerFailed`](crate::rpc::Status::HandlerFailed).
    ///
    /// # Errors
    /// As for [`task`](Self::task).
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    pub fn task_stream<S, T>(
        &mut self,
        key: impl MethodKey,
        mut handler: impl FnMut(TaskRequest) -> S + Send + 'static,
    ) -> Result<()>
    where
        S: Stream<Item = std::result::Result<T, Fault>> + Send + 'static,
        T: Into<Vec<u8>> + Send + 'static,
    {
        let runtime = runtime()?;
        self.deferred(key, move |mut call| {
            if !call.is_stream() {
                let text = format!("method {} replies with a stream: call it as one", call.method());
                return call.fail_unexpectedly(text);
            }
            let elements = handler(TaskRequest::take(&mut call));
            let cancellation = call.cancellation();
            runtime.spawn(async move {
                let fault = until_cancelled(&cancellation, send_all(&mut call, elements)).await;
                match fault {
                    Some(Some(fault)) => call.fail(fault),
                    _ => call.finish(),
                }
            });
        })
    }

    /// [`run`](Self::run) for a task: serves until it is shut down by a [stopper](Self::stopper), by the server's
    /// [descriptor](Self::descriptor). If the future is dropped, the server stays as it is.
    ///
    /// # Errors
    /// As for [`run`](Self::run) and [`descriptor`](Self::descriptor).
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    pub async fn serve(&mut self) -> Result<()> {
        let fd = Fd(self.descriptor()?.as_fd().as_raw_fd());
        #[allow(deprecated, reason = "its safe successor is not there yet; the server keeps the descriptor open")]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE).map_err(failed)?;
        loop {
            match self.poll() {
                Err(e) if e.kind() == ErrorKind::Closed => return Ok(()),
                outcome => outcome?,
            }
            if self.hub.take_interrupt() {
                return Err(ErrorKind::Interrupted.into());
            }
            let mut timer = pin!(self.due_in().map(::tokio::time::sleep));
            poll_fn(|cx| {
                if let Some(timer) = timer.as_mut().as_pin_mut()
                    && timer.poll(cx).is_ready()
                {
                    return Poll::Ready(Ok(()));
                }
                // What the next poll finds is found after this: no event is forgotten.
                fd.poll_read_ready(cx).map_ok(|mut event| event.clear_ready())
            })
            .await
            .map_err(failed)?;
        }
    }
}

/// Sends all elements; gives the fault that they end with.
async fn send_all<T: Into<Vec<u8>>>(
    call: &mut Call,
    elements: impl Stream<Item = std::result::Result<T, Fault>>,
) -> Option<Fault> {
    let mut elements = pin!(elements);
    loop {
        // Before it is polled: it is not to run ahead of the caller.
        if call.ready().await.is_err() {
            return None;
        }
        match poll_fn(|cx| elements.as_mut().poll_next(cx)).await? {
            Ok(element) => {
                if call.try_send(element).is_err() {
                    return None;
                }
            }
            Err(fault) => return Some(fault),
        }
    }
}

/// Runs a future until it is done, or nobody wants it any more: then it is dropped.
async fn until_cancelled<T>(cancellation: &Cancellation, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut cancelled) = (pin!(work), pin!(cancellation.cancelled()));
    poll_fn(|cx| {
        if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
            return Poll::Ready(Some(done));
        }
        Pin::new(&mut cancelled).poll(cx).map(|()| None)
    })
    .await
}
