//! A client as a `tower::Service` (feature `tower`): for tower's time-outs, retries and limits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Client, Pending};
use crate::rpc::{CallError, CallOptions, CallResult, Reply};

/// A request by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The method's number.
    pub method: u32,
    /// The request's bytes.
    pub body: Vec<u8>,
    /// Its metadata; default none.
    pub meta: Vec<u8>,
    /// The call's time limit; default none.
    pub timeout: Option<Duration>,
}

impl Request {
    /// A request without metadata and time limit.
    pub fn new(method: u32, body: impl Into<Vec<u8>>) -> Self {
        Self { method, body: body.into(), meta: Vec::new(), timeout: None }
    }
}

/// A call of the service that is under way. Dropping it cancels the call.
#[derive(Debug)]
#[must_use = "dropping a call cancels it"]
pub struct Answer(Result<Pending, Option<CallError>>);

impl Future for Answer {
    type Output = CallResult<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallResult<Reply>> {
        match &mut self.0 {
            Ok(pending) => Pin::new(pending).poll(cx),
            Err(error) => Poll::Ready(Err(error.take().expect("a future is not polled again after it is ready"))),
        }
    }
}

/// `poll_ready` waits until a call is sent at once ([`Client::poll_ready`]): with that, a limit of tower's is not needed to keep
/// calls from waiting in the client. No call is repeated by itself: [`CallError::may_have_run`] is for a retry policy.
///
/// ```
/// fn is_service<S: tower_service::Service<ramway::rpc::tokio::Request>>() {}
/// is_service::<ramway::rpc::tokio::Client>();
/// ```
impl tower_service::Service<Request> for Client {
    type Response = Reply;
    type Error = CallError;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<CallResult<()>> {
        Client::poll_ready(self, cx)
    }

    fn call(&mut self, request: Request) -> Answer {
        let mut options = CallOptions::new().meta(&request.meta);
        if let Some(timeout) = request.timeout {
            options = options.timeout(timeout);
        }
        Answer(self.start_with(request.method, &request.body, &options).map_err(Some))
    }
}
