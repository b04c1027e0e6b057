//! What `lib/options.ts` has checked, on its way to the core's builders.

use crate::error::refuse;
use napi::Result;
use napi_derive::napi;
use ramway::{ErrorKind, ListenerBuilder, Policy, RegionBuilder, RingBuilder, TopicBuilder, WaitPolicy};
use std::time::Duration;

/// A length of time in milliseconds from 0 on; what no clock can count to is as good as forever.
pub(crate) fn milliseconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1e3).unwrap_or(Duration::MAX)
}

/// `wait`, by its name; the default where none is given.
pub(crate) fn policy(name: Option<&str>) -> Result<WaitPolicy> {
    match name {
        Some("spin") => Ok(WaitPolicy::Spin),
        Some("hybrid") | None => Ok(WaitPolicy::Hybrid),
        Some("block") => Ok(WaitPolicy::Block),
        Some(other) => {
            let text = format!("wait: {other:?}: expected 'spin', 'hybrid' or 'block'");
            Err(refuse(ErrorKind::InvalidArgument, text))
        }
    }
}

/// Hands the settings of these names that are given to the methods of these names of a core builder.
macro_rules! pass {
    ($settings:ident => $builder:ident: $($name:ident $(as $number:ty)?),*) => {
        $(if let Some(value) = $settings.$name {
            $builder = $builder.$name(value $(as $number)?);
        })*
    };
}

/// Options of a ring; numbers are whole, except for times.
#[napi(object)]
pub struct RingSettings {
    pub capacity: Option<f64>,
    pub align: Option<u32>,
    pub discard: Option<bool>,
    pub persistent: Option<bool>,
    pub mode: Option<u32>,
    /// In milliseconds.
    pub timeout: Option<f64>,
    pub allow_disk: Option<bool>,
    pub wait: Option<String>,
    pub membarrier: Option<bool>,
    pub lock_memory: Option<bool>,
    pub huge_pages: Option<bool>,
    pub numa_node: Option<u32>,
    pub prefault: Option<bool>,
}

impl RingSettings {
    pub(crate) fn apply(&self, mut builder: RingBuilder) -> Result<RingBuilder> {
        pass!(self => builder: capacity as u64, align, discard, persistent, mode, allow_disk, membarrier, lock_memory,
            huge_pages, numa_node, prefault);
        let timeout = self.timeout.map_or(Duration::ZERO, milliseconds);
        // A typed array cannot be read-only.
        Ok(builder.timeout(timeout).wait_policy(policy(self.wait.as_deref())?).writable_views(true))
    }
}

/// Options of a ring without a name.
#[napi(object)]
pub struct PairSettings {
    pub align: Option<u32>,
    pub wait: Option<String>,
}

/// Options of a topic and of one of its ends.
#[napi(object)]
pub struct TopicSettings {
    pub capacity: Option<f64>,
    pub align: Option<u32>,
    pub slots: Option<u32>,
    pub lossy_only: Option<bool>,
    pub may_eject: Option<bool>,
    pub discard: Option<bool>,
    pub persistent: Option<bool>,
    pub mode: Option<u32>,
    /// In milliseconds.
    pub timeout: Option<f64>,
    pub allow_disk: Option<bool>,
    pub wait: Option<String>,
    pub membarrier: Option<bool>,
    pub lock_memory: Option<bool>,
    pub huge_pages: Option<bool>,
    pub numa_node: Option<u32>,
    pub prefault: Option<bool>,
    /// In milliseconds.
    pub eject_after: Option<f64>,
    pub timestamps: Option<bool>,
    /// "reliable", "lossy" or "latest".
    pub policy: Option<String>,
    /// "oldest" or "now".
    pub start: Option<String>,
    pub history: Option<f64>,
    pub after_seq: Option<f64>,
    pub label: Option<String>,
    pub durable: Option<bool>,
    pub read_only: Option<bool>,
}

impl TopicSettings {
    pub(crate) fn apply(&self, mut builder: TopicBuilder) -> Result<TopicBuilder> {
        pass!(self => builder: capacity as u64, align, slots, lossy_only, may_eject, discard, persistent, mode, allow_disk,
            membarrier, lock_memory, huge_pages, numa_node, prefault, timestamps, durable, read_only);
        if let Some(time) = self.eject_after {
            builder = builder.eject_after(milliseconds(time));
        }
        if let Some(label) = &self.label {
            builder = builder.label(label.as_str());
        }
        builder = match self.policy.as_deref() {
            Some("lossy") => builder.policy(Policy::Lossy),
            Some("latest") => builder.policy(Policy::Latest),
            Some(_) => builder.policy(Policy::Reliable),
            None => builder,
        };
        builder = match (self.start.as_deref(), self.history, self.after_seq) {
            (Some("now"), ..) => builder.from_now(),
            (Some(_), ..) => builder.from_oldest(),
            (None, Some(messages), _) => builder.history(messages as u64),
            (None, None, Some(seq)) => builder.after_seq(seq as u64),
            (None, None, None) => builder,
        };
        let timeout = self.timeout.map_or(Duration::ZERO, milliseconds);
        Ok(builder.timeout(timeout).wait_policy(policy(self.wait.as_deref())?))
    }
}

/// Options of a connector.
#[napi(object)]
pub struct ConnectSettings {
    /// In milliseconds.
    pub timeout: Option<f64>,
    pub allow_uids: Option<Vec<u32>>,
    pub wait: Option<String>,
    pub membarrier: Option<bool>,
}

impl ConnectSettings {
    pub(crate) fn connector(&self, name: &str) -> Result<ramway::Connector> {
        let mut connector = ramway::Bus::connector(name);
        pass!(self => connector: membarrier);
        if let Some(timeout) = self.timeout {
            connector = connector.timeout(milliseconds(timeout));
        }
        let connector = connector.allow_uids(self.allow_uids.as_deref().unwrap_or_default());
        Ok(connector.wait_policy(policy(self.wait.as_deref())?).writable_views(true))
    }
}

/// Options of a listener and of its buses.
#[napi(object)]
pub struct ListenSettings {
    pub capacity: Option<f64>,
    pub to_peer: Option<f64>,
    pub from_peer: Option<f64>,
    pub align: Option<u32>,
    pub mode: Option<u32>,
    pub allow_uids: Option<Vec<u32>>,
    /// In milliseconds.
    pub handshake_timeout: Option<f64>,
    pub backlog: Option<u32>,
    pub wait: Option<String>,
    pub membarrier: Option<bool>,
}

/// The rings of a bus whose listener says nothing of them, in bytes.
const CAPACITY: f64 = ramway::facts::CAPACITY_DEFAULT as f64;

impl ListenSettings {
    pub(crate) fn builder(&self, name: &str) -> Result<ListenerBuilder> {
        let both = self.capacity.unwrap_or(CAPACITY);
        let mut builder = ramway::Listener::builder(name)
            .capacities(self.to_peer.unwrap_or(both) as u64, self.from_peer.unwrap_or(both) as u64);
        pass!(self => builder: align, mode, backlog, membarrier);
        if let Some(timeout) = self.handshake_timeout {
            builder = builder.handshake_timeout(milliseconds(timeout));
        }
        let builder = builder.allow_uids(self.allow_uids.as_deref().unwrap_or_default());
        Ok(builder.wait_policy(policy(self.wait.as_deref())?).writable_views(true))
    }
}

/// Options of an RPC server.
#[napi(object)]
pub struct ServeSettings {
    pub capacity: Option<f64>,
    pub align: Option<u32>,
    pub mode: Option<u32>,
    pub allow_uids: Option<Vec<u32>>,
    /// In milliseconds.
    pub handshake_timeout: Option<f64>,
    pub wait: Option<String>,
    pub max_clients: Option<u32>,
    pub max_in_flight: Option<u32>,
    pub max_bytes: Option<f64>,
}

impl ServeSettings {
    pub(crate) fn builder(&self, name: &str) -> Result<ramway::rpc::ServerBuilder> {
        let mut builder = ramway::rpc::Server::builder(name);
        pass!(self => builder: capacity as u64, align, mode, max_clients as usize, max_in_flight, max_bytes as usize);
        if let Some(timeout) = self.handshake_timeout {
            builder = builder.handshake_timeout(milliseconds(timeout));
        }
        let builder = builder.allow_uids(self.allow_uids.as_deref().unwrap_or_default());
        Ok(builder.wait_policy(policy(self.wait.as_deref())?))
    }
}

/// Options of a region.
#[napi(object)]
pub struct RegionSettings {
    pub read_only: Option<bool>,
    pub persistent: Option<bool>,
    pub discard: Option<bool>,
    pub allow_disk: Option<bool>,
    pub mode: Option<u32>,
    /// In milliseconds.
    pub timeout: Option<f64>,
    pub wait: Option<String>,
    pub lock_memory: Option<bool>,
    pub huge_pages: Option<bool>,
    pub numa_node: Option<u32>,
    pub prefault: Option<bool>,
}

impl RegionSettings {
    pub(crate) fn builder(&self) -> Result<RegionBuilder> {
        let mut builder = ramway::Region::builder();
        pass!(self => builder: read_only, persistent, discard, allow_disk, mode, lock_memory, huge_pages, numa_node,
            prefault);
        let timeout = self.timeout.map_or(Duration::ZERO, milliseconds);
        Ok(builder.timeout(timeout).wait_policy(policy(self.wait.as_deref())?))
    }
}
