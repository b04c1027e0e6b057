//! How to serve.

use std::ffi::OsStr;

use super::Server;
use super::ledger::Limits;
use crate::facts::{RPC_BYTES_FACTOR, RPC_CLIENTS_DEFAULT, RPC_IN_FLIGHT_DEFAULT, RPC_IN_FLIGHT_MAX};
use crate::many::{Options, listener_options};
use crate::{Error, ErrorKind, Result};

/// Options of a [`Server`]: made by [`Server::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before bind"]
pub struct ServerBuilder {
    options: Options,
    max_in_flight: u32,
    max_bytes: Option<usize>,
    threads: Option<usize>,
}

impl ServerBuilder {
    pub(super) fn new(name: &OsStr) -> Self {
        let mut options = Options::new(name);
        options.max_peers = RPC_CLIENTS_DEFAULT;
        Self { options, max_in_flight: RPC_IN_FLIGHT_DEFAULT, max_bytes: None, threads: None }
    }

    /// Bytes of both rings of every client, rounded up to a power of two of at least a page. Default 1 MiB. The longest request and
    /// the longest reply are 32 bytes shorter. For long replies twice the longest one is fastest: more is memory that has left the
    /// processors' caches before it is used again.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.options.capacity = bytes;
        self
    }

    listener_options!();

    /// How many clients there may be at a time; one beyond is refused (`Busy`). Default 128. A client that is gone counts until its
    /// handlers have ended.
    pub fn max_clients(mut self, count: usize) -> Self {
        self.options.max_peers = count;
        self
    }

    /// How many calls a client may have in flight, from 1 to 1,048,576; one beyond waits in the client. Default 1024.
    pub fn max_in_flight(mut self, calls: u32) -> Self {
        self.max_in_flight = calls;
        self
    }

    /// Bytes of requests and replies that are copied for one client at a time. A request beyond is answered with
    /// [`Overloaded`](crate::rpc::Status::Overloaded), a reply beyond with [`ReplyTooLarge`](crate::rpc::Status::ReplyTooLarge).
    /// Default 4 × the capacity.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// How many threads the pool has at most, which are started when there is work for them. Default: as many as the process may use
    /// processors, at least 2.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = Some(count);
        self
    }

    /// Starts to listen. Calls are served by [`Server::run`] and its like.
    ///
    /// # Errors
    /// As for [`ListenerBuilder::bind`](crate::ListenerBuilder::bind); `InvalidArgument` for at most 0 clients, 0 threads, or for calls
    /// in flight out of range.
    pub fn bind(&self) -> Result<Server> {
        let wrong = |what: &str, expected: &str| {
            let text = format!("'{}' with {what}: expected {expected}", self.options.name.to_string_lossy());
            Err(Error::new(ErrorKind::InvalidArgument, text))
        };
        if !(1..=RPC_IN_FLIGHT_MAX).contains(&self.max_in_flight) {
            let what = format!("{} calls in flight", self.max_in_flight);
            return wrong(&what, &format!("1 to {RPC_IN_FLIGHT_MAX}"));
        }
        if self.threads == Some(0) {
            return wrong("0 threads", "at least 1");
        }
        let capacity = self.options.capacity;
        let listener = self.options.builder(capacity, capacity)?.rpc(self.max_in_flight);
        let listener = listener.bind_at_most(self.options.max_peers)?;
        // As the rings are: rounded up.
        let capacity = usize::try_from(capacity.next_power_of_two()).unwrap_or(usize::MAX).max(4096);
        let max_bytes = self.max_bytes.unwrap_or_else(|| capacity.saturating_mul(RPC_BYTES_FACTOR as usize));
        let threads =
            self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, |n| n.get().max(2)));
        let limits = Limits { max_in_flight: self.max_in_flight, max_bytes };
        Ok(Server::new(listener, limits, threads, self.options.policy))
    }
}
