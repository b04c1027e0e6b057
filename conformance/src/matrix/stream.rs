//! Long streams, and messages that go there and back.

use super::pair::{Over, Pair};
use ramway_agents::Result;

use crate::run::Scene;

/// 100,000 messages of all lengths with sequence, checksum, type ids and tags.
pub fn mixed(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    pair.fresh = true;
    let mut plan = pair.plan();
    plan.wait = wait(pair);
    let mut send = pair.pick(&["how=send", "how=reserve", "how=reserve batch=32", "how=send batch=7"]);
    if !pair.producer.reserves {
        send = pair.pick(&["how=send", "how=send batch=7"]);
    }
    let recv = pair.pick(&["how=recv", "how=batch", "how=into", "how=batch batch=5", "how=recv"]);
    let count = pair.messages;
    let (mut producer, mut consumer) =
        pair.play(scene, &plan, &format!("produce count={count} {send}"), &format!("consume {recv}"))?;
    producer.expect("sent")?.expect(&format!("count={count} next={count}"))?;
    producer.finish()?;
    let last = count - 1;
    let end = format!("name=Closed number=9 received={count} first=0 last={last}");
    consumer.expect("end")?.expect(&end)?;
    consumer.finish()?;
    empty(scene)
}

/// Each of the waits with each language in both roles, on one of the two transports; streams that spin need every
/// processor that they can get.
pub fn wait(pair: &Pair<'_>) -> &'static str {
    let at = pair.variant + if pair.over == Over::Bus { 1 } else { 0 };
    ["block", "spin", "block", "hybrid", "spin", "hybrid"][at % 6]
}

/// Every length from 0 to the longest in a ring of one page, at one of the alignments from 16 to 4096.
pub fn every_length(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    (plan.capacity, plan.align) = (4096, 16 << (pair.variant % 9));
    let count = plan.capacity - 15;
    let (mut producer, mut consumer) =
        pair.play(scene, &plan, &format!("produce sizes=ramp count={count}"), "consume sizes=ramp")?;
    producer.expect("sent")?.expect(&format!("count={count}"))?;
    let bytes = count * (count - 1) / 2;
    producer.finish()?;
    consumer.expect("end")?.expect(&format!("name=Closed received={count} bytes={bytes}"))?;
    consumer.finish()?;
    empty(scene)
}

/// Messages that are sent back, one after another: two rings, or both ways of one bus.
pub fn echo(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    plan.wait = wait(pair);
    plan.talk = true;
    // One side creates both rings.
    plan.producer_creates |= pair.over == Over::Ring;
    let count = pair.messages / 50;
    let (mut ping, mut echo) = pair.play(scene, &plan, &format!("ping count={count}"), "echo")?;
    ping.expect("answered")?.expect(&format!("count={count}"))?;
    ping.finish()?;
    let last = count - 1;
    echo.expect("end")?.expect(&format!("name=Closed received={count} first=0 last={last}"))?;
    echo.finish()
}

/// Nothing is left behind: the last one out has removed the name.
pub fn empty(scene: &Scene) -> Result<()> {
    match scene.names()?.first() {
        None => Ok(()),
        Some(name) => Err(format!("'{}' is left behind", name.display()).into()),
    }
}
