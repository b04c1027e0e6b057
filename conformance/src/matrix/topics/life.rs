//! Either side closes or is killed, and successors.

use std::thread::sleep;
use std::time::Duration;

use ramway_agents::Result;

use super::super::crash::{Row, begins_well, in_time, resumes_well, strike, watch};
use super::super::pair::after_last;
use super::super::stream::empty;
use super::cast::{Cast, FITS, SIZE, finish, sums, tell, whole};
use crate::run::{Program, Scene};

/// The successor of a publisher of so many messages goes on after them.
fn goes_on(program: &mut Program, after: u64) -> Result<()> {
    match after_last(program)? {
        start if start == after => Ok(()),
        start => Err(format!("the successor of a publisher of {after} messages goes on at {start}").into()),
    }
}

/// A new publisher goes on where the last one ended, for subscribers that have stayed.
pub fn publisher_restarts(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.plan();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    tell(&mut subscribers, "consume endings=2")?;
    publisher.ask("produce count=200", "sent")?;
    publisher.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", 200)?;
    let mut next = cast.next_publisher(scene, &plan)?;
    goes_on(&mut next, 200)?;
    next.ask("produce start=200 count=300", "sent")?.expect("count=300 next=500")?;
    next.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", 500)?;
    finish(subscribers)?;
    empty(scene)
}

/// The publisher dies between a commit and its publishing, while its subscribers sleep or poll: what was published is
/// delivered, what was not is as if it never was, and each learns of the death in time.
pub fn publisher_dies(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.plan();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    tell(&mut subscribers, &format!("consume endings=2{}", cast.pick(&["", " poll=5000", ""])))?;
    publisher.ask("produce count=57", "sent")?.expect("count=57")?;
    publisher.ask("write len=100 kept=50 unflushed=yes", "view")?;
    sleep(Duration::from_millis(cast.random.u64(0..60)));
    let (_, death) = publisher.kill()?;
    for end in &whole(&mut subscribers, cast.policies, "PeerDead", 57)? {
        in_time(death, end)?;
    }
    let mut next = cast.next_publisher(scene, &plan)?;
    goes_on(&mut next, 57)?;
    next.ask("produce start=57 count=143", "sent")?.expect("count=143 next=200")?;
    next.finish()?;
    whole(&mut subscribers, cast.policies, "Closed", 200)?;
    finish(subscribers)?;
    empty(scene)
}

/// A reliable subscriber dies with a message in hand while the publisher waits for it: the publisher goes on in time, and
/// another reliable one receives everything.
pub fn reliable_dies(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.page();
    let (mut publisher, [mut victim, mut other, mut third]) = cast.all(scene, &plan)?;
    publisher.tell(&format!("produce count=500 sizes={SIZE}"))?;
    other.tell(&format!("consume sizes={SIZE} progress=yes"))?;
    third.tell(&format!("consume sizes={SIZE}"))?;
    victim.ask(&format!("consume count=10 sizes={SIZE}"), "end")?.expect("name=Count received=10 last=9 lost=0")?;
    victim.ask("hold", "view")?.expect(&format!("len={SIZE}"))?;
    // As many as are there while the victim holds one, and not one more.
    let mut row = Row::default();
    watch(&mut other, &mut row, 10 + FITS)?;
    if publisher.any() {
        return Err("the publisher did not wait for a reliable subscriber".into());
    }
    let (_, death) = victim.kill()?;
    let next = other.event()?.ok_or("another reliable subscriber ended")?;
    in_time(death, next.expect(&format!("seq={}", 10 + FITS))?)?;
    publisher.expect("sent")?.expect("count=500")?;
    publisher.finish()?;
    other.expect("end")?.expect("name=Closed received=500 first=0 last=499 lost=0")?;
    sums(third.expect("end")?.expect("name=Closed last=499")?, 500)?;
    other.finish()?;
    third.finish()?;
    empty(scene)
}

/// A durable subscriber dies with a message in hand, and is waited for; one of another language resumes with that message.
/// It closes in an orderly way, and a third one resumes after the last that it released.
pub fn durable_resumes(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.page();
    plan.durable = true;
    let (mut publisher, [mut victim, mut lossy, mut latest]) = cast.all(scene, &plan)?;
    let consume = format!("consume sizes={SIZE}");
    publisher.tell(&format!("produce count=200 sizes={SIZE}"))?;
    lossy.tell(&consume)?;
    latest.tell(&consume)?;
    victim.ask(&format!("{consume} count=10"), "end")?.expect("name=Count received=10 last=9 lost=0")?;
    let held: u64 = victim.ask("hold", "view")?.expect(&format!("len={SIZE}"))?.number("tag")?;
    if held & 0xFFFF_FFFF != 10 {
        return Err(format!("message {} is in hand, 10 was expected", held & 0xFFFF_FFFF).into());
    }
    victim.kill()?;
    let mut second = cast.subscribe(scene, &plan, 1, "policy=reliable label=r durable=yes")?;
    // Its cursor was where the victim's was: 42 of 200 are published.
    if publisher.any() {
        return Err("the publisher did not wait for a durable subscriber that was gone".into());
    }
    let end = second.ask(&format!("{consume} count=50"), "end")?;
    end.expect("name=Count received=50 first=10 last=59 lost=0")?;
    second.finish()?;
    let mut third = cast.subscribe(scene, &plan, 2, "policy=reliable label=r durable=yes")?;
    if publisher.any() {
        return Err("the publisher did not wait for a durable subscriber that had closed".into());
    }
    third.tell(&consume)?;
    publisher.expect("sent")?.expect("count=200")?;
    publisher.finish()?;
    third.expect("end")?.expect("name=Closed received=140 first=60 last=199 lost=0")?;
    for program in [&mut lossy, &mut latest] {
        sums(program.expect("end")?.expect("name=Closed last=199")?, 200)?;
    }
    finish([third, lossy, latest])?;
    empty(scene)
}

/// The publisher and a durable subscriber are killed at random moments of one stream, and successors take over: the durable
/// one's line has no hole, and the others know just how many they have lost. The stream has no end before the last successor,
/// so no kill can come too late.
pub fn killed_at_random(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.plan();
    plan.durable = true;
    let produce = "produce progress=yes sizes=100";
    let consume = "consume endings=1000 progress=yes sizes=100";
    let (mut publisher, [mut durable, mut lossy, mut latest]) = cast.all(scene, &plan)?;
    for program in [&mut lossy, &mut latest] {
        program.tell("consume endings=1000 sizes=100")?;
    }
    durable.tell(consume)?;
    publisher.tell(&format!("{produce} count=1000000000"))?;
    let (mut sent, mut received) = (Row::default(), Row::default());
    let (kills, mut end) = (if cast.messages < 20_000 { 1 } else { 3 }, 0);
    for round in 1..=kills {
        strike(&mut cast.random, scene, durable, &mut received, "subscriber")?;
        // Another language each time.
        durable = cast.subscribe(scene, &plan, round % 3, "policy=reliable label=r durable=yes")?;
        durable.tell(consume)?;
        let before = std::mem::take(&mut received).last;
        watch(&mut durable, &mut received, 1)?;
        let first = received.first.unwrap_or_default();
        if !begins_well(before, first) {
            return Err(format!("the subscriber had message {before:?}, its successor begins with {first}").into());
        }

        strike(&mut cast.random, scene, publisher, &mut sent, "publisher")?;
        publisher = cast.next_publisher(scene, &plan)?;
        let next = after_last(&mut publisher)?;
        end = if round == kills { next + 2000 } else { 1_000_000_000 };
        publisher.tell(&format!("{produce} start={next} count={}", end - next))?;
        let before = std::mem::take(&mut sent).last;
        if !resumes_well(before, next) {
            return Err(format!("the publisher had sent {before:?}, its successor goes on at {next}").into());
        }
    }
    publisher.expect("sent")?.expect(&format!("next={end}"))?;
    publisher.finish()?;
    let mut programs = [durable, lossy, latest];
    for (place, program) in programs.iter_mut().enumerate() {
        let last = loop {
            let event = program.expect("end")?;
            if event.get("name") == Some("Closed") {
                break event;
            }
            event.expect("name=PeerDead")?;
        };
        last.expect(&format!("last={}", end - 1))?;
        if place == 0 {
            last.expect("lost=0")?;
        } else {
            sums(&last, end)?;
        }
    }
    // They wait for one more successor; the scene's end is theirs.
    Ok(())
}
