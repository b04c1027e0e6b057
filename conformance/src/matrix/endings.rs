//! Orderly endings, and successors after them.

use super::pair::{Over, Pair, after_last, attached};
use super::stream::empty;
use ramway_agents::Result;

use crate::run::Scene;

/// The consumer closes in the middle of a stream.
pub fn consumer_closes(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let (mut producer, mut consumer) =
        pair.play(scene, &plan, "produce count=10000000 sizes=48", "consume count=10 sizes=48")?;
    consumer.expect("end")?.expect("name=Count number=0 received=10 first=0 last=9 bytes=480")?;
    consumer.finish()?;
    producer.expect("end")?.expect("name=Closed number=9")?;
    producer.finish()
}

/// The producer closes; what it had sent is delivered, and a consumer that comes later still learns of the close.
pub fn producer_closes(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    if pair.over == Over::Bus {
        let (mut producer, mut consumer) = pair.play(scene, &plan, "produce count=20", "consume")?;
        producer.expect("sent")?.expect("count=20")?;
        producer.finish()?;
        consumer.expect("end")?.expect("name=Closed number=9 received=20 last=19")?;
        return consumer.finish();
    }
    plan.producer_creates = true;
    let mut producer = pair.produce(scene, &plan)?;
    attached(&mut producer, &plan)?.expect("epoch=1 peer_epoch=0")?;
    producer.ask("produce count=20 sizes=64", "sent")?.expect("count=20")?;
    producer.finish()?;
    let mut consumer = pair.next_consumer(scene, &plan)?;
    consumer.ask("consume sizes=64", "end")?.expect("name=Closed number=9 received=20 last=19")?;
    consumer.finish()?;
    empty(scene)
}

/// A new producer goes on where the last one ended, for a consumer that has stayed.
pub fn producer_restarts(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let (mut producer, mut consumer) = pair.play(scene, &plan, "produce count=200", "consume endings=2")?;
    producer.expect("sent")?.expect("count=200")?;
    producer.finish()?;
    consumer.expect("end")?.expect("name=Closed received=200 first=0 last=199")?;
    let mut next = pair.next_producer(scene, &plan)?;
    let start = after_last(&mut next)?;
    if start != 200 {
        return Err(format!("the successor of a producer of 200 messages goes on at {start}").into());
    }
    next.ask("produce start=200 count=300", "sent")?.expect("count=300 next=500")?;
    next.finish()?;
    consumer.expect("end")?.expect("name=Closed received=500 first=0 last=499")?;
    consumer.finish()?;
    empty(scene)
}

/// A new consumer goes on where the last one ended, for a producer that has stayed.
pub fn consumer_restarts(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let (mut producer, mut consumer) =
        pair.play(scene, &plan, "produce count=200 sizes=100", "consume count=80 sizes=100")?;
    producer.expect("sent")?.expect("count=200")?;
    consumer.expect("end")?.expect("name=Count received=80 first=0 last=79")?;
    consumer.finish()?;
    let mut next = pair.next_consumer(scene, &plan)?;
    next.tell("consume sizes=100")?;
    producer.finish()?;
    next.expect("end")?.expect("name=Closed received=120 first=80 last=199")?;
    next.finish()?;
    empty(scene)
}
