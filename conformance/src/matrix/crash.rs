//! Processes that die, at a point of their own or at one of the runner's, and their successors.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::pair::{Over, Pair, after_last};
use super::stream::empty;
use ramway_agents::{Event, Result};

use crate::run::{Program, Scene};

/// How late a death may be noticed. The promise is 200 ms; the rest is for a busy machine. Without a look at the other
/// side it would be the 20 s of `--timeout`.
const NOTICED: Duration = Duration::from_secs(3);
/// The same where one side runs under an emulator, which may have to translate the whole way of a wait first.
const NOTICED_SLOWLY: Duration = Duration::from_secs(12);

pub fn in_time(death: Instant, event: &Event) -> Result<()> {
    within(NOTICED, death, event)
}

pub fn in_time_for(pair: &Pair<'_>, death: Instant, event: &Event) -> Result<()> {
    let slow = pair.producer.starts_slowly || pair.consumer.starts_slowly;
    within(if slow { NOTICED_SLOWLY } else { NOTICED }, death, event)
}

fn within(limit: Duration, death: Instant, event: &Event) -> Result<()> {
    let late = event.at.saturating_duration_since(death);
    if late <= limit {
        return Ok(());
    }
    Err(format!("a death was noticed after {} ms", late.as_millis()).into())
}

/// The producer dies between a commit and its flush: what was flushed is delivered, what was not is as if it never was.
pub fn producer_dies(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let endings = if pair.over == Over::Ring { 2 } else { 1 };
    let (mut producer, mut consumer) =
        pair.play(scene, &plan, "produce count=57", &format!("consume endings={endings}"))?;
    producer.expect("sent")?.expect("count=57")?;
    producer.ask("write len=100 kept=50 unflushed=yes", "view")?;
    let (_, death) = producer.kill()?;
    let end = consumer.expect("end")?;
    end.expect("name=PeerDead number=11 received=57 first=0 last=56")?;
    in_time_for(pair, death, &end)?;
    if pair.over == Over::Ring {
        let mut next = pair.next_producer(scene, &plan)?;
        let start = after_last(&mut next)?;
        if start != 57 {
            return Err(format!("the successor of a producer of 57 messages goes on at {start}").into());
        }
        next.ask("produce start=57 count=143", "sent")?.expect("count=143 next=200")?;
        next.finish()?;
        consumer.expect("end")?.expect("name=Closed number=9 received=200 first=0 last=199")?;
    }
    consumer.finish()
}

/// The consumer dies with a message in hand: its successor gets that one again, and all after it.
pub fn consumer_dies(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let count = if pair.over == Over::Ring { 200 } else { 10_000_000 };
    let produce = format!("produce count={count} sizes=100");
    let (mut producer, mut consumer) = pair.play(scene, &plan, &produce, "consume count=40 sizes=100")?;
    consumer.expect("end")?.expect("name=Count received=40 last=39")?;
    let held: u64 = consumer.ask("hold", "view")?.expect("len=100")?.number("tag")?;
    if held & 0xFFFF_FFFF != 40 {
        return Err(format!("message {} is in hand, 40 was expected", held & 0xFFFF_FFFF).into());
    }
    let (_, death) = consumer.kill()?;
    if pair.over == Over::Bus {
        let end = producer.expect("end")?;
        end.expect("name=PeerDead number=11")?;
        in_time_for(pair, death, &end)?;
        return producer.finish();
    }
    producer.expect("sent")?.expect("count=200")?;
    let mut next = pair.next_consumer(scene, &plan)?;
    next.tell("consume sizes=100")?;
    producer.finish()?;
    next.expect("end")?.expect("name=Closed number=9 received=160 first=40 last=199")?;
    next.finish()?;
    empty(scene)
}

/// A side that sleeps learns in time that the other one was killed.
pub fn sleepers_learn(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    plan.wait = pair.pick(&["block", "hybrid"]);
    let (producer, mut consumer) = pair.both(scene, &plan)?;
    consumer.tell("consume")?;
    sleep(Duration::from_millis(pair.random.u64(20..80)));
    let (_, death) = producer.kill()?;
    let end = consumer.expect("end")?;
    end.expect("name=PeerDead number=11 received=0")?;
    in_time_for(pair, death, &end)?;
    consumer.finish()?;

    // A second place: a named ring of the first one could still be on its way out.
    let second = Scene::new(scene.left())?;
    let (mut producer, consumer) = pair.both(&second, &plan)?;
    producer.tell("produce count=100000 sizes=100")?;
    sleep(Duration::from_millis(pair.random.u64(50..120)));
    let (_, death) = consumer.kill()?;
    let outcome = producer.expect("end").and_then(|end| {
        end.expect("name=PeerDead number=11")?;
        in_time_for(pair, death, &end)
    });
    if outcome.is_err() {
        second.log().iter().for_each(|line| scene.note("second place", line));
    }
    outcome?;
    producer.finish()
}

/// What one incarnation of a program has said it did: a row of `at` lines without a hole.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub first: Option<u64>,
    pub last: Option<u64>,
}

impl Row {
    /// Takes the next event.
    ///
    /// # Errors
    /// The number is not the one after the last.
    pub fn take(&mut self, event: &Event) -> Result<()> {
        if event.word != "at" {
            return Ok(());
        }
        let seq: u64 = event.number("seq")?;
        if self.last.is_some_and(|last| seq != last + 1) {
            return Err(format!("message {seq} came after message {:?}", self.last).into());
        }
        self.first.get_or_insert(seq);
        self.last = Some(seq);
        Ok(())
    }
}

/// Takes events until so many messages were reported. The other side's deaths may be reported in between.
pub fn watch(program: &mut Program, row: &mut Row, messages: u64) -> Result<()> {
    let mut left = messages;
    while left > 0 {
        match program.event()? {
            Some(event) if event.word == "at" => {
                row.take(&event)?;
                left -= 1;
            }
            Some(event) if event.word == "end" => {
                event.expect("name=PeerDead")?;
            }
            other => return Err(format!("{other:?} in the middle of the stream").into()),
        }
    }
    Ok(())
}

/// Where the successor of a producer may go on that reported `last`: right after it, or one further, if it was killed
/// between sending and reporting.
pub fn resumes_well(reported: Option<u64>, next: u64) -> bool {
    let after = reported.map_or(0, |last| last + 1);
    next == after || next == after + 1
}

/// Where the successor of a consumer may begin: with the message that was in hand, or the next if it was released.
pub fn begins_well(reported: Option<u64>, first: u64) -> bool {
    reported.map_or(first == 0, |last| first == last || first == last + 1)
}

/// Either side is killed at random moments of one stream, several times; successors take over, and not one message is
/// lost, torn or out of order. The stream has no end before the last successor, so no kill can come too late.
pub fn killed_at_random(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let mut plan = pair.plan();
    plan.wait = pair.pick(&["block", "hybrid"]);
    let produce = "produce endings=1000 progress=yes sizes=100";
    let consume = "consume endings=1000 progress=yes sizes=100";
    let (mut producer, mut consumer) = pair.play(scene, &plan, &format!("{produce} count=1000000000"), consume)?;
    let kills = if pair.messages < 20_000 { 1 } else { 2 };
    let (mut sent, mut received) = (Row::default(), Row::default());
    let mut end = 0;
    for round in 1..=kills {
        strike(&mut pair.random, scene, consumer, &mut received, "consumer")?;
        consumer = pair.next_consumer(scene, &plan)?;
        consumer.tell(consume)?;
        let before = std::mem::take(&mut received).last;
        watch(&mut consumer, &mut received, 1)?;
        let first = received.first.unwrap_or_default();
        if !begins_well(before, first) {
            return Err(format!("the consumer had message {before:?}, its successor begins with {first}").into());
        }

        strike(&mut pair.random, scene, producer, &mut sent, "producer")?;
        producer = pair.next_producer(scene, &plan)?;
        let next = after_last(&mut producer)?;
        end = if round == kills { next + 2000 } else { 1_000_000_000 };
        producer.tell(&format!("{produce} start={next} count={}", end - next))?;
        let before = std::mem::take(&mut sent).last;
        if !resumes_well(before, next) {
            return Err(format!("the producer had sent {before:?}, its successor goes on at {next}").into());
        }
    }
    producer.expect("sent")?.expect(&format!("next={end}"))?;
    producer.finish()?;
    loop {
        let event = consumer.expect("end")?;
        if event.get("name") == Some("Closed") {
            event.expect(&format!("last={}", end - 1))?;
            return Ok(());
        }
        event.expect("name=PeerDead")?;
    }
}

/// Kills a program after some of its messages, and some time.
pub fn strike(random: &mut Rng, scene: &Scene, mut program: Program, row: &mut Row, role: &str) -> Result<()> {
    watch(&mut program, row, random.u64(1..600))?;
    sleep(Duration::from_micros(random.u64(0..2000)));
    let (said, _) = program.kill()?;
    said.iter().try_for_each(|event| row.take(event))?;
    scene.note("runner", &format!("killed the {role} after message {:?}", row.last));
    Ok(())
}

/// On a bus: either side is killed in the middle of a stream. What was sent is delivered, and the other side knows.
pub fn cut_off(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    let plan = pair.plan();
    let produce = "produce count=100000000 progress=yes sizes=100";
    let (mut producer, mut consumer) = pair.play(scene, &plan, produce, "consume sizes=100")?;
    let mut sent = Row::default();
    watch(&mut producer, &mut sent, pair.random.u64(1..2000))?;
    let (said, death) = producer.kill()?;
    said.iter().try_for_each(|event| sent.take(event))?;
    let end = consumer.expect("end")?;
    end.expect("name=PeerDead number=11 first=0")?;
    in_time_for(pair, death, &end)?;
    let last: u64 = end.number("last")?;
    if !resumes_well(sent.last, last + 1) {
        return Err(format!("the producer had sent {:?}, the last that arrived is {last}", sent.last).into());
    }
    consumer.finish()?;

    let (mut producer, mut consumer) =
        pair.play(scene, &plan, "produce count=100000000 sizes=100", "consume progress=yes sizes=100")?;
    watch(&mut consumer, &mut Row::default(), pair.random.u64(1..2000))?;
    let (_, death) = consumer.kill()?;
    let end = producer.expect("end")?;
    end.expect("name=PeerDead number=11")?;
    in_time_for(pair, death, &end)?;
    producer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_no_holes() {
        let mut row = Row::default();
        for line in ["attached pid=1", "at seq=7", "at seq=8"] {
            row.take(&Event::parse(line)).expect("no hole");
        }
        assert_eq!(row, Row { first: Some(7), last: Some(8) });
        assert!(row.take(&Event::parse("at seq=10")).is_err());
    }

    #[test]
    fn successors_begin_where_nothing_is_lost() {
        assert!(resumes_well(None, 0) && resumes_well(None, 1) && resumes_well(Some(4), 5) && resumes_well(Some(4), 6));
        assert!(!resumes_well(None, 2) && !resumes_well(Some(4), 4) && !resumes_well(Some(4), 7));
        assert!(begins_well(None, 0) && begins_well(Some(4), 4) && begins_well(Some(4), 5));
        assert!(!begins_well(None, 1) && !begins_well(Some(4), 3) && !begins_well(Some(4), 6));
    }
}
