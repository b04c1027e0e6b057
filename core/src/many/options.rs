//! How a side with many peers listens.

use std::time::Duration;

use crate::facts::{CAPACITY_DEFAULT, HANDSHAKE_TIMEOUT};
use crate::{ErrorKind, Listener, ListenerBuilder, Result};

/// What a side with many peers listens with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: std::ffi::OsString,
    pub(crate) capacity: u64,
    pub(crate) align: u32,
    pub(crate) max_peers: usize,
    pub(crate) mode: Option<u32>,
    pub(crate) allowed: Vec<u32>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) policy: crate::WaitPolicy,
}

impl Options {
    pub(crate) fn new(name: &std::ffi::OsStr) -> Self {
        Self {
            name: name.into(),
            capacity: CAPACITY_DEFAULT,
            align: crate::layout::ALIGN_MIN,
            max_peers: 128,
            mode: None,
            allowed: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            policy: crate::WaitPolicy::default(),
        }
    }

    /// How to listen; `to_peer` and `from_peer` are the capacities of every bus.
    pub(crate) fn builder(&self, to_peer: u64, from_peer: u64) -> Result<ListenerBuilder> {
        if self.max_peers == 0 {
            let text = format!("'{}' for at most 0 peers: expected at least 1", self.name.to_string_lossy());
            return Err(crate::Error::new(ErrorKind::InvalidArgument, text));
        }
        let mut builder = Listener::builder(&self.name)
            .capacities(to_peer, from_peer)
            .align(self.align)
            .allow_uids(&self.allowed)
            .handshake_timeout(self.handshake_timeout)
            .wait_policy(self.policy);
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        Ok(builder)
    }

    /// Listens, as [`builder`](Self::builder) says.
    pub(super) fn bind(&self, to_peer: u64, from_peer: u64) -> Result<Listener> {
        self.builder(to_peer, from_peer)?.bind_at_most(self.max_peers)
    }
}

/// The methods that set what all of them have in [`Options`], the field `options`.
macro_rules! listener_options {
    () => {
        /// Alignment of every payload in bytes, a power of two from 16 (default) to 4096.
        pub fn align(mut self, bytes: u32) -> Self {
            self.options.align = bytes;
            self
        }

        /// As [`ListenerBuilder::mode`](crate::ListenerBuilder::mode).
        pub fn mode(mut self, mode: u32) -> Self {
            self.options.mode = Some(mode);
            self
        }

        /// As [`ListenerBuilder::allow_uids`](crate::ListenerBuilder::allow_uids).
        pub fn allow_uids(mut self, uids: &[u32]) -> Self {
            self.options.allowed = uids.to_vec();
            self
        }

        /// As [`ListenerBuilder::handshake_timeout`](crate::ListenerBuilder::handshake_timeout).
        pub fn handshake_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.handshake_timeout = timeout;
            self
        }

        /// How it waits; [`WaitPolicy::Hybrid`](crate::WaitPolicy::Hybrid) by default.
        pub fn wait_policy(mut self, policy: crate::WaitPolicy) -> Self {
            self.options.policy = policy;
            self
        }
    };
}
pub(crate) use listener_options;
