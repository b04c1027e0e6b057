//! Ramway's bus: the ring's hot path over memory that a listener and a connector agreed on.

use super::ring::Halves;
use crate::Result;
use crate::channel::{End, Mechanism, Prepared};
use ramway::{Bus, Listener};
use std::time::Duration;

pub(crate) struct BusPair;

fn halves(bus: Bus) -> Result<Box<dyn End>> {
    match bus.split() {
        (Some(sender), Some(receiver)) => Ok(Box::new(Halves { sender, receiver, buffer: Vec::new(), copy: false })),
        _ => Err("the bus lacks a direction".into()),
    }
}

impl Mechanism for BusPair {
    fn name(&self) -> &'static str {
        "bus"
    }

    fn prepare(&self, directory: &str, capacity: u64) -> Result<Prepared> {
        let path = format!("{directory}/bus");
        let listener = Listener::builder(&path).capacity(capacity).bind()?;
        let finish = move || halves(listener.accept_timeout(Duration::from_secs(20))?);
        Ok(Prepared { ticket: path, inherit: vec![], finish: Box::new(finish) })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        halves(Bus::connect(ticket)?)
    }
}
