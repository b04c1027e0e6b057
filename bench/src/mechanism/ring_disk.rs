//! Ramway's ring in a file on a disk: the same memory while it is in use, with the write-back of its pages behind it.

use super::ring;
use crate::Result;
use crate::case::Burst;
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};

pub(crate) struct DiskRings;

impl Mechanism for DiskRings {
    fn about(&self) -> About {
        About::new("ring-disk", Kind::Ramway, false, "two rings in files on a disk instead of tmpfs, in place")
    }

    fn can(&self, burst: &Burst) -> bool {
        ring::can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let halves = ring::create(&setup.disk, setup.capacity, true)?;
        Ok(Prepared::new("", move || Ok(Box::new(halves) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(ring::open(&setup.disk, true)?))
    }
}
