//! Two machines whose rules differ in the direction only.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Machine;
use super::bridge::{Bridge, free_port, metric};
use super::net::Net;
use super::proxy::Proxy;

/// The near one exports, the far one imports. Metrics of both are served.
pub struct Pair {
    pub near: Machine,
    pub far: Machine,
    pub export: PathBuf,
    pub import: PathBuf,
    /// Where the far one listens.
    pub port: u16,
    pub near_metrics: SocketAddr,
    pub far_metrics: SocketAddr,
}

pub fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

impl Pair {
    /// With this rule, of which only the direction is missing.
    pub fn of(rule: &str) -> Self {
        Self::linked(rule, free_port(), None)
    }

    /// With a proxy in the path.
    pub fn with_proxy(rule: &str) -> (Self, Proxy) {
        let port = free_port();
        let proxy = Proxy::start(local(port));
        (Self::linked(rule, port, Some(proxy.address)), proxy)
    }

    fn linked(rule: &str, port: u16, by: Option<SocketAddr>) -> Self {
        let (near, far) = (Machine::new("near"), Machine::new("far"));
        let (near_metrics, far_metrics) = (local(free_port()), local(free_port()));
        let text = |link: &str, to: SocketAddr, metrics: SocketAddr, direction: &str| {
            format!(
                "[link]\n{link} = [\"tcp/{to}\"]\n\n[metrics]\nlisten = \"{metrics}\"\n\n[[rule]]\n{rule}\
                 direction = \"{direction}\"\n"
            )
        };
        let here = local(port);
        let export = near.write("bridge.toml", &text("connect", by.unwrap_or(here), near_metrics, "export"));
        let import = far.write("bridge.toml", &text("listen", here, far_metrics, "import"));
        Self { near, far, export, import, port, near_metrics, far_metrics }
    }

    pub fn start_near(&self) -> Bridge {
        Bridge::start(&self.near, &Net::here(), &self.export)
    }

    pub fn start_far(&self) -> Bridge {
        Bridge::start(&self.far, &Net::here(), &self.import)
    }

    /// What the near bridge counts.
    pub fn at_near(&self, name: &str) -> u64 {
        metric(self.near_metrics, name) as u64
    }

    /// What the far bridge counts.
    pub fn at_far(&self, name: &str) -> u64 {
        metric(self.far_metrics, name) as u64
    }
}
