//! How to connect to a server.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::Client;
use super::raw::RawClient;
use crate::bus::{Bus, Connector};
use crate::{Result, WaitPolicy};

/// How to connect to an RPC server: made by [`Client::connector`].
///
/// ```no_run
/// # fn main() -> ramway::Result<()> {
/// use ramway::rpc::Client;
/// use std::time::Duration;
/// let client = Client::connector("store").timeout(Duration::from_secs(1)).max_buffered(1 << 20).connect()?;
/// println!("{} calls may be in flight", client.max_in_flight());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a connector does nothing before connect"]
pub struct ClientConnector {
    name: OsString,
    bus: Connector,
    policy: WaitPolicy,
    max_buffered: Option<usize>,
}

impl ClientConnector {
    pub(super) fn new(name: &OsStr) -> Self {
        Self { name: name.into(), bus: Bus::connector(name).rpc(), policy: WaitPolicy::default(), max_buffered: None }
    }

    /// How long to wait for a server that is not there yet, is busy or flooded. Default 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.bus = self.bus.timeout(timeout);
        self
    }

    /// Other users whose servers will do; without this, only those of our own effective user.
    pub fn allow_uids(mut self, uids: &[u32]) -> Self {
        self.bus = self.bus.allow_uids(uids);
        self
    }

    /// How calls wait. Default [`WaitPolicy::Hybrid`].
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.bus = self.bus.wait_policy(policy);
        self.policy = policy;
        self
    }

    /// Whether this process may use `membarrier(2)`; as [`Connector::membarrier`](crate::Connector::membarrier).
    pub fn membarrier(mut self, yes: bool) -> Self {
        self.bus = self.bus.membarrier(yes);
        self
    }

    /// Bytes of replies, their headers and metadata included, that nobody has taken yet, all calls together. A reply beyond fails
    /// its call (`TooLarge`). Default 4 × the ring's capacity.
    pub fn max_buffered(mut self, bytes: usize) -> Self {
        self.max_buffered = Some(bytes);
        self
    }

    /// Connects. Blocks until the server has taken us, at most the time-out.
    ///
    /// # Errors
    /// `AbiMismatch` where a plain [`Listener`](crate::Listener) is; `Busy` if the server has as many clients as it takes;
    /// else as for [`Connector::connect`](crate::Connector::connect).
    pub fn connect(&self) -> Result<Client> {
        self.connect_while(|| true)
    }

    /// [`connect`](Self::connect) for programs that handle signals or cancelling: asks `go_on` at least every 100 ms, and gives
    /// `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn connect_while(&self, go_on: impl FnMut() -> bool) -> Result<Client> {
        self.connect_raw(go_on).map(Client::new)
    }

    /// For bindings: asks `go_on` at least every 100 ms, and gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn connect_raw(&self, go_on: impl FnMut() -> bool) -> Result<RawClient> {
        let bus = self.bus.connect_while(go_on)?;
        RawClient::new(bus, self.max_buffered, self.policy)
            .map_err(|e| e.context(format_args!("connecting to the RPC server '{}'", self.name.to_string_lossy())))
    }
}
