//! Ramway's bus: the ring's hot path over memory that a listener and a connector agreed on.

use super::ring::{self, Halves};
use crate::Result;
use crate::case::Burst;
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Bus, Listener};
use std::time::Duration;

pub(crate) struct BusPair;

fn halves(bus: Bus) -> Result<Box<dyn End>> {
    match bus.split() {
        (Some(sender), Some(receiver)) => Ok(Box::new(Halves { sender, receiver })),
        _ => Err("the bus lacks a direction".into()),
    }
}

impl Mechanism for BusPair {
    fn about(&self) -> About {
        About::new("bus", Kind::Ramway, false, "a bus, written and read in place")
    }

    fn can(&self, burst: &Burst) -> bool {
        ring::can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let path = setup.directory.join("bus").to_str().ok_or("the directory is not UTF-8")?.to_owned();
        let listener = Listener::builder(&path).capacity(setup.capacity).bind()?;
        let finish = move || halves(listener.accept_timeout(Duration::from_secs(20))?);
        Ok(Prepared::new(path, finish))
    }

    fn join(&self, _setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        halves(Bus::connect(ticket)?)
    }
}
