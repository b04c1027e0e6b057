//! What does not wait forever, does not fit, or finds nothing.

use super::pair::{Over, Pair, Plan, waited};
use ramway_agents::Result;

use crate::run::Scene;

/// How many messages of `size` bytes fill a ring of this plan.
pub fn fill_count(plan: &Plan, size: u64) -> u64 {
    plan.capacity / (16 + size).next_multiple_of(plan.align)
}

/// Lengths that fill a ring to its last byte, with one message or with thousands, and some that leave a rest.
fn size(pair: &Pair<'_>, plan: &Plan) -> u64 {
    pair.pick(&[48, plan.capacity - 16, 0, 200, 1008, 1000])
}

/// A receiver's time-out while the producer lives and sends nothing.
pub fn idle_receiver(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    plan.wait = pair.pick(&["block", "hybrid", "spin"]);
    let (mut producer, mut consumer) = pair.both(scene, &plan)?;
    producer.ask("produce count=0", "sent")?;
    let end = consumer.ask("consume timeout=150", "end")?;
    end.expect("name=TimedOut number=8 received=0 first=-1 last=-1 bytes=0")?;
    waited(&end, 150)?;
    consumer.finish()?;
    producer.finish()
}

/// A sender's time-out on a full ring: just as many messages fit as the format says, and all of them are delivered.
pub fn full(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    plan.align = pair.pick(&[16, 64, 32, 16, 256]);
    let size = size(pair, &plan);
    let fits = fill_count(&plan, size);
    let produce = format!("produce count=100000 sizes={size} timeout=150");
    let (mut producer, mut consumer) = pair.play(scene, &plan, &produce, "consume count=0")?;
    let end = producer.expect("end")?;
    end.expect(&format!("name=TimedOut number=8 sent={fits} next={fits}"))?;
    waited(&end, 150)?;
    producer.finish()?;
    consumer.expect("end")?.expect("name=Count number=0 received=0")?;
    consumer.finish()?;
    if pair.over == Over::Ring {
        let mut consumer = pair.next_consumer(scene, &plan)?;
        let last = fits - 1;
        consumer
            .ask(&format!("consume sizes={size}"), "end")?
            .expect(&format!("name=Closed received={fits} first=0 last={last}"))?;
        consumer.finish()?;
    }
    Ok(())
}

/// Calls that never wait: `Full` to the byte, and `Empty`.
pub fn never_waits(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let size = size(pair, &plan);
    let fits = fill_count(&plan, size);
    let produce = format!("produce how=try count=100000 sizes={size}");
    let (mut producer, consumer) = pair.both(scene, &plan)?;
    let end = format!("name=Full number=5 sent={fits} next={fits}");
    producer.ask(&produce, "end")?.expect(&end)?;
    consumer.finish()?;
    if pair.over == Over::Ring {
        let mut consumer = pair.next_consumer(scene, &plan)?;
        let last = fits - 1;
        consumer
            .ask(&format!("consume how=try sizes={size}"), "end")?
            .expect(&format!("name=Empty number=6 received={fits} first=0 last={last}"))?;
        consumer.finish()?;
    }
    producer.finish()?;
    if pair.over == Over::Bus {
        let (producer, mut consumer) = pair.both(scene, &plan)?;
        consumer.ask("consume how=try", "end")?.expect("name=Empty number=6 received=0")?;
        consumer.finish()?;
        producer.finish()?;
    }
    Ok(())
}

/// A message longer than the longest is refused and leaves nothing behind.
pub fn too_large(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let (mut producer, mut consumer) = pair.both(scene, &plan)?;
    consumer.tell("consume sizes=10")?;
    let one_more = plan.capacity - 15;
    for how in ["send", "reserve", "try"] {
        let end = producer.ask(&format!("produce how={how} count=1 sizes={one_more}"), "end")?;
        end.expect("name=TooLarge number=7 sent=0")?;
    }
    producer.ask("produce count=3 sizes=10", "sent")?.expect("count=3 next=3")?;
    producer.finish()?;
    consumer.expect("end")?.expect("name=Closed received=3 first=0 last=2 bytes=30")?;
    consumer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_filled_to_the_byte() {
        let plan = |capacity, align| Plan { capacity, align, wait: "block", producer_creates: true, talk: false };
        assert_eq!(fill_count(&plan(65536, 16), 48), 1024);
        assert_eq!(fill_count(&plan(65536, 16), 65520), 1);
        assert_eq!(fill_count(&plan(65536, 16), 0), 4096);
        assert_eq!(fill_count(&plan(65536, 16), 200), 292);
        assert_eq!(fill_count(&plan(65536, 256), 0), 256);
        assert_eq!(fill_count(&plan(4096, 4096), 4080), 1);
    }
}
