//! The loops that `speed` and the benchmark time: that they carry what they say, whatever it takes.

use ramway_agents::{Result, measured};

use super::pair::Pair;
use super::stream::wait;
use crate::run::Scene;

/// More than differ, whole groups of 10, and no multiple of what goes together.
const COUNT: u64 = measured::CYCLE + 904;
const SIZE: u64 = 32;

/// Round trips, a stream of single messages, one of batches, over the same two rings.
pub fn loops(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    // One side creates both rings.
    (plan.talk, plan.producer_creates, plan.wait) = (true, true, wait(pair));
    let (mut producer, mut consumer) = pair.both(scene, &plan)?;
    for (first, second, batch) in [("ping", "echo", 1), ("send", "receive", 1), ("send", "receive", 32)] {
        let command =
            |half| format!("measure do={half} size={SIZE} count={COUNT} batch={batch} group=10 wait={}", plan.wait);
        producer.ask(&command(first), "ready")?;
        consumer.ask(&command(second), "ready")?;
        let (sent, received) = (producer.ask("go", "measured")?, consumer.expect("measured")?);
        if first == "ping" {
            measured::check(&sent, COUNT, SIZE)?;
            let samples = sent.numbers::<u64>("samples")?.len() as u64;
            if samples != COUNT / 10 {
                return Err(format!("{samples} samples of {COUNT} round trips, 10 each").into());
            }
        }
        measured::check(&received, COUNT, SIZE)?;
        let (began, ended): (u64, u64) = (sent.number("began_ns")?, received.number("ended_ns")?);
        if began >= ended {
            return Err(format!("{second} ended at {ended} ns, {first} began at {began} ns").into());
        }
    }
    producer.finish()?;
    consumer.finish()
}
