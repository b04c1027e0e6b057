//! Two of Ramway's topics, one each way, with one reliable subscriber each: what a topic costs where a ring would do.

use super::ring::{can, channel_in_place};
use crate::Result;
use crate::case::Burst;
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Publisher, Subscriber, Topic};
use std::path::Path;

/// Written in place with `reserve` and `commit`, read in place.
pub(crate) struct Topics;

struct Halves {
    sender: Publisher,
    receiver: Subscriber,
}

/// Either side makes them: who comes first waits for the other, so no message goes to nobody.
fn open(directory: &Path, capacity: u64, [out, back]: [&str; 2]) -> Result<Halves> {
    let topic = |name| Topic::open_or_create(directory.join(name)).capacity(capacity).prefault(true);
    Ok(Halves { sender: topic(out).publisher()?, receiver: topic(back).subscriber()? })
}

impl Mechanism for Topics {
    fn about(&self) -> About {
        let what = "two topics with one reliable subscriber each, written and read in place";
        About::new("topic", Kind::Ramway, false, what)
    }

    fn can(&self, burst: &Burst) -> bool {
        can(burst)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let halves = open(&setup.directory, setup.capacity, ["there", "back"])?;
        Ok(Prepared::new("", move || {
            let mut halves = halves;
            halves.sender.wait_for_subscribers(1)?;
            Ok(Box::new(halves) as Box<dyn End>)
        }))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open(&setup.directory, setup.capacity, ["back", "there"])?))
    }
}

channel_in_place!(Halves);
