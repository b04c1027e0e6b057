//! What `lib/options.ts` has checked, on its way to the core's builders.

use napi_derive::napi;
use ramway::{ListenerBuilder, RegionBuilder, RingBuilder, WaitPolicy};
use std::time::Duration;

/// A length of time in milliseconds from 0 on; what no clock can count to is as good as forever.
pub(crate) fn milliseconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value / 1e3).unwrap_or(Duration::MAX)
}

/// `wait`, by its name.
pub(crate) fn policy(name: Option<&str>) -> WaitPolicy {
    match name {
        Some("spin") => WaitPolicy::Spin,
        Some("block") => WaitPolicy::Block,
        _ => WaitPolicy::Hybrid,
    }
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
    pub(crate) fn apply(&self, mut builder: RingBuilder) -> RingBuilder {
        if let Some(bytes) = self.capacity {
            builder = builder.capacity(bytes as u64);
        }
        if let Some(bytes) = self.align {
            builder = builder.align(bytes);
        }
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        if let Some(node) = self.numa_node {
            builder = builder.numa_node(node);
        }
        builder
            .discard(self.discard.unwrap_or(false))
            .persistent(self.persistent.unwrap_or(false))
            .timeout(self.timeout.map_or(Duration::ZERO, milliseconds))
            .allow_disk(self.allow_disk.unwrap_or(false))
            .wait_policy(policy(self.wait.as_deref()))
            .membarrier(self.membarrier.unwrap_or(true))
            .lock_memory(self.lock_memory.unwrap_or(false))
            .huge_pages(self.huge_pages.unwrap_or(false))
            .prefault(self.prefault.unwrap_or(false))
            // A typed array cannot be read-only.
            .writable_views(true)
    }
}

/// Options of a ring without a name.
#[napi(object)]
pub struct PairSettings {
    pub align: Option<u32>,
    pub wait: Option<String>,
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
    pub(crate) fn connector(&self, name: &str) -> ramway::Connector {
        let mut connector = ramway::Bus::connector(name);
        if let Some(timeout) = self.timeout {
            connector = connector.timeout(milliseconds(timeout));
        }
        connector
            .allow_uids(self.allow_uids.as_deref().unwrap_or_default())
            .wait_policy(policy(self.wait.as_deref()))
            .membarrier(self.membarrier.unwrap_or(true))
            .writable_views(true)
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
const CAPACITY: f64 = 1048576.0;

impl ListenSettings {
    pub(crate) fn builder(&self, name: &str) -> ListenerBuilder {
        let both = self.capacity.unwrap_or(CAPACITY);
        let mut builder = ramway::Listener::builder(name)
            .capacities(self.to_peer.unwrap_or(both) as u64, self.from_peer.unwrap_or(both) as u64);
        if let Some(bytes) = self.align {
            builder = builder.align(bytes);
        }
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        if let Some(timeout) = self.handshake_timeout {
            builder = builder.handshake_timeout(milliseconds(timeout));
        }
        if let Some(connectors) = self.backlog {
            builder = builder.backlog(connectors);
        }
        builder
            .allow_uids(self.allow_uids.as_deref().unwrap_or_default())
            .wait_policy(policy(self.wait.as_deref()))
            .membarrier(self.membarrier.unwrap_or(true))
            .writable_views(true)
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
    pub(crate) fn builder(&self) -> RegionBuilder {
        let mut builder = ramway::Region::builder();
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        if let Some(node) = self.numa_node {
            builder = builder.numa_node(node);
        }
        builder
            .read_only(self.read_only.unwrap_or(false))
            .persistent(self.persistent.unwrap_or(false))
            .discard(self.discard.unwrap_or(false))
            .allow_disk(self.allow_disk.unwrap_or(false))
            .timeout(self.timeout.map_or(Duration::ZERO, milliseconds))
            .wait_policy(policy(self.wait.as_deref()))
            .lock_memory(self.lock_memory.unwrap_or(false))
            .huge_pages(self.huge_pages.unwrap_or(false))
            .prefault(self.prefault.unwrap_or(false))
    }
}
