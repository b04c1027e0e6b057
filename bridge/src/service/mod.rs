//! Buses and RPC: a listener of this machine that appears on others, each of whose connections is a bus of its own at both ends, with a
//! reliable stream each way between the two.
//!
//! | file | what |
//! | --- | --- |
//! | `exchange.rs` | what comes over the link for connections, and who gets it |
//! | `offering.rs` | the exporting side: says that a listener is here, and connects to it for others |
//! | `mirror.rs` | the importing side: a listener of the same name, as long as the other one is there |
//! | `connection.rs` | one connection at work |
//! | `bus.rs` | the end of a bus that a connection reads |
//!
//! A bus is memory without a name, which ends with the bridge. So a connection lives as long as both bridges do: a link that comes back
//! finds it as it was, and a bridge that does not know it says so, which is its end.

mod bus;
mod connection;
mod exchange;
mod mirror;
mod offering;

pub use exchange::{Asked, Exchange};
pub use mirror::Mirror;
pub use offering::Offering;

use crate::config::{OnDisconnect, Rule};
use crate::counters::Counters;
use crate::link::Link;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What both sides of a rule about listeners have.
#[derive(Clone)]
pub struct Common {
    /// The link.
    pub link: Link,
    /// Where what comes for connections is passed on.
    pub exchange: Arc<Exchange>,
    /// What the keys begin with.
    pub base: String,
    /// `bus` or `rpc`, as in keys.
    pub kind: &'static str,
    /// The listener's name.
    pub name: String,
    /// This machine.
    pub machine: u64,
    /// Another one in every process.
    pub run: u64,
    /// By which it is bridged.
    pub rule: Rule,
    /// Another rule of the same direction is for listeners of the other kind with this name.
    pub is_of_either: bool,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The bridge, or the rule, is to end.
    pub stop: Arc<AtomicBool>,
}

impl Common {
    fn on_disconnect(&self) -> OnDisconnect {
        self.rule.kind.on_disconnect().unwrap_or(OnDisconnect::Block)
    }

    fn max_connections(&self) -> usize {
        match self.rule.kind {
            crate::config::Kind::Bus { max_connections, .. } => max_connections,
            _ => 0,
        }
    }

    fn is_rpc(&self) -> bool {
        matches!(self.rule.kind, crate::config::Kind::Bus { rpc: true, .. })
    }

    fn is_to_end(&self) -> bool {
        // Relaxed: nothing is read by it but that it is time to end.
        self.stop.load(Ordering::Relaxed)
    }
}

/// The connections of one rule and name that run.
#[derive(Default)]
struct Crowd(Vec<(Arc<AtomicBool>, JoinHandle<()>)>);

impl Crowd {
    /// How many there are now.
    fn len(&mut self) -> usize {
        self.0.retain(|(_, thread)| !thread.is_finished());
        self.0.len()
    }

    /// Runs another one, which ends when the flag is set.
    fn run(&mut self, stop: Arc<AtomicBool>, run: impl FnOnce(&AtomicBool) + Send + 'static) -> std::io::Result<()> {
        let of_thread = stop.clone();
        let thread = std::thread::Builder::new().name("connection".into()).spawn(move || run(&of_thread))?;
        self.0.push((stop, thread));
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (stop, _) in &self.0 {
            stop.store(true, Ordering::Relaxed);
        }
        for (_, thread) in self.0.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
