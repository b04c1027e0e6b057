//! Streams to three subscribers, where a subscriber begins, and how much fits.

use ramway_agents::Result;

use super::super::pair::waited;
use super::super::stream::empty;
use super::cast::{Cast, FITS, SIZE, finish, sums, tell, whole};
use crate::run::Scene;

/// Messages of all lengths, at one of the alignments.
pub fn mixed(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.plan();
    plan.align = cast.pick(&[32, 64, 32, 256]);
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    let hows = ["how=recv", "how=batch", "how=into", "how=batch batch=5", "how=recv poll=5000"];
    for (place, program) in subscribers.iter_mut().enumerate() {
        program.tell(&format!("consume {}", hows[(cast.variant + place) % hows.len()]))?;
    }
    let how = cast.pick(&["how=send", "how=reserve", "how=reserve batch=32", "how=send batch=7", "how=send poll=5000"]);
    let count = cast.messages;
    publisher.ask(&format!("produce count={count} {how}"), "sent")?.expect(&format!("count={count} next={count}"))?;
    publisher.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", count)?;
    finish(subscribers)?;
    empty(scene)
}

/// Nobody is waited for: a publisher that never waits is never told that the topic is full.
pub fn nobody_waits(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.page();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    tell(&mut subscribers, "consume")?;
    let count = cast.messages;
    publisher.ask(&format!("produce how=try count={count}"), "sent")?.expect(&format!("count={count}"))?;
    publisher.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", count)?;
    finish(subscribers)?;
    empty(scene)
}

/// Every length from 0 to the longest in a topic of one page, at one of the alignments from 32 to 2048.
pub fn every_length(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.page();
    plan.align = 32 << (cast.variant % 7);
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    tell(&mut subscribers, "consume sizes=ramp")?;
    let count = plan.longest() + 1;
    publisher.ask(&format!("produce sizes=ramp count={count}"), "sent")?.expect(&format!("count={count}"))?;
    publisher.finish()?;
    let [reliable, ..] = whole(&mut subscribers, cast.policies, "Closed", count)?;
    reliable.expect(&format!("bytes={}", count * (count - 1) / 2))?;
    finish(subscribers)?;
    empty(scene)
}

/// With up to N of the messages before, after message N, at the oldest, at the newest.
pub fn begins(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    cast.fresh = true;
    let plan = cast.page();
    let consume = format!("consume sizes={SIZE}");
    let mut publisher = cast.publish_first(scene, &plan)?;
    publisher.ask(&format!("produce count=20 sizes={SIZE}"), "sent")?;
    let mut after = cast.subscribe(scene, &plan, 0, "policy=reliable from=after:15")?;
    let mut history = cast.subscribe(scene, &plan, 1, "policy=lossy from=history:3")?;
    let mut latest = cast.subscribe(scene, &plan, 2, "policy=latest")?;
    let mut now = cast.subscribe(scene, &plan, 0, "policy=lossy from=now")?;
    let newest = latest.ask(&format!("{consume} count=1"), "end")?;
    newest.expect("name=Count received=1 first=19 last=19 lost=0")?;
    for program in [&mut after, &mut history, &mut latest, &mut now] {
        program.tell(&consume)?;
    }
    publisher.ask(&format!("produce start=20 count=5 sizes={SIZE}"), "sent")?;
    publisher.finish()?;
    // All 25 fit, so whoever receives in order has everything.
    after.expect("end")?.expect("name=Closed received=10 first=15 last=24 lost=0")?;
    history.expect("end")?.expect("name=Closed received=8 first=17 last=24 lost=0")?;
    now.expect("end")?.expect("name=Closed received=5 first=20 last=24 lost=0")?;
    let end = latest.expect("end")?;
    sums(end.expect("name=Closed last=24")?, 5)?;
    [after, history, latest, now].into_iter().try_for_each(crate::run::Program::finish)?;
    empty(scene)
}

/// In a topic of which the beginning is overwritten: `after` says how many are gone, `oldest` and `history` do not.
pub fn begins_late(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.page();
    let consume = format!("consume sizes={SIZE}");
    let mut publisher = cast.publish_first(scene, &plan)?;
    publisher.ask(&format!("produce count=100 sizes={SIZE}"), "sent")?;
    let mut subscribers = [
        cast.subscribe(scene, &plan, 0, "policy=reliable from=after:1")?,
        cast.subscribe(scene, &plan, 1, "policy=lossy from=oldest")?,
        cast.subscribe(scene, &plan, 2, "policy=lossy from=history:1000")?,
    ];
    tell(&mut subscribers, &consume)?;
    publisher.finish()?;
    let mut firsts = Vec::new();
    for program in &mut subscribers {
        let end = program.expect("end")?;
        let first: u64 = end.expect("name=Closed last=99")?.number("first")?;
        // The last chunk of the lap before may be overwritten at any moment.
        if !(100 - FITS..100).contains(&first) {
            return Err(format!("it begins with message {first} of 100 where {FITS} fit").into());
        }
        firsts.push((first, end));
    }
    let [(first, after), (oldest, second), (longest, third)] = firsts.as_slice() else {
        return Err("three subscribers".into());
    };
    if first != oldest || oldest != longest {
        return Err(format!("the oldest message is {first} to one, {oldest} and {longest} to the others").into());
    }
    after.expect(&format!("received={} lost={}", 100 - first, first - 1))?;
    for end in [second, third] {
        end.expect(&format!("received={} lost=0", 100 - first))?;
    }
    finish(subscribers)?;
    empty(scene)
}

/// A topic takes just as many messages as ABI.md says while a reliable subscriber reads nothing, to the last byte; time-outs
/// last as long as they were told. What is too large leaves nothing behind.
pub fn full(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.plan();
    plan.align = cast.pick(&[32, 64, 32, 256]);
    let size = cast.pick(&[SIZE, plan.longest(), 0, 200, 1008]);
    let fits = plan.fits(size);
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    for how in ["send", "reserve", "try"] {
        let too_large = format!("produce how={how} count=1 sizes={}", plan.longest() + 1);
        publisher.ask(&too_large, "end")?.expect("name=TooLarge number=7 sent=0")?;
    }
    let end = format!("number=5 sent={fits} next={fits}");
    publisher.ask(&format!("produce how=try count=100000 sizes={size}"), "end")?.expect(&format!("name=Full {end}"))?;
    let produce = format!("produce start={fits} count=1 sizes={size}");
    let end = publisher.ask(&format!("{produce} timeout=150"), "end")?;
    waited(end.expect("name=TimedOut number=8 sent=0")?, 150)?;
    tell(&mut subscribers, &format!("consume sizes={size}"))?;
    publisher.ask(&produce, "sent")?;
    publisher.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", fits + 1)?;
    finish(subscribers)?;
    empty(scene)
}
