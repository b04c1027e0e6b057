//! Processes that are stopped (SIGSTOP): alive, and do nothing. What the others do meanwhile, and what they find when they go on.

use ramway_agents::Result;

use super::super::pair::waited;
use super::super::stream::empty;
use super::cast::{Cast, FITS, SIZE, finish, sums, tell, whole};
use crate::run::{Program, Scene};

/// Passes over `at` lines until the one of this message; gives how many there were.
fn until(program: &mut Program, seq: u64) -> Result<u64> {
    let mut count = 0;
    loop {
        match program.event()? {
            Some(event) if event.word == "at" => {
                count += 1;
                if event.number::<u64>("seq")? == seq {
                    return Ok(count);
                }
            }
            other => return Err(format!("{other:?} before message {seq}").into()),
        }
    }
}

/// A lossy and a latest subscriber are stopped while nothing is sent: the publisher does not wait for them. The one finds just
/// as many lost as it did not receive, the other the newest message and nothing else.
pub fn others_stopped(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.page();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    tell(&mut subscribers, &format!("consume sizes={SIZE} progress=yes"))?;
    publisher.ask(&format!("produce count=10 sizes={SIZE}"), "sent")?;
    until(&mut subscribers[1], 9)?;
    let seen = until(&mut subscribers[2], 9)?;
    subscribers[1].stop()?;
    subscribers[2].stop()?;
    publisher.ask(&format!("produce start=10 count=2000 sizes={SIZE}"), "sent")?.expect("count=2000 next=2010")?;
    subscribers[1].go_on()?;
    subscribers[2].go_on()?;
    publisher.finish()?;
    let [_, lossy, latest] = whole(&mut subscribers, cast.policies, "Closed", 2010)?;
    let lost: u64 = lossy.number("lost")?;
    if !(2000 - FITS..2000).contains(&lost) {
        return Err(format!("a subscriber that was stopped lost {lost} of 2000 messages, where {FITS} fit").into());
    }
    latest.expect(&format!("received={}", seen + 1))?;
    finish(subscribers)?;
    empty(scene)
}

/// A reliable subscriber is stopped: the publisher sends as many messages as fit and waits; nothing is lost.
pub fn reliable_stopped(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.page();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    let consume = format!("consume sizes={SIZE}");
    subscribers[1].tell(&consume)?;
    subscribers[2].tell(&consume)?;
    publisher.ask(&format!("produce count=10 sizes={SIZE}"), "sent")?;
    subscribers[0].ask(&format!("{consume} count=10"), "end")?.expect("name=Count received=10")?;
    subscribers[0].tell(&consume)?;
    subscribers[0].stop()?;
    let end = publisher.ask(&format!("produce start=10 count=100 sizes={SIZE} timeout=300"), "end")?;
    let next = 10 + FITS;
    waited(end.expect(&format!("name=TimedOut number=8 sent={FITS} next={next}"))?, 300)?;
    publisher.tell(&format!("produce start={next} count={} sizes={SIZE}", 100 - next))?;
    subscribers[0].go_on()?;
    publisher.expect("sent")?.expect("next=100")?;
    publisher.finish()?;
    let [mut reliable, mut lossy, mut latest] = subscribers;
    reliable.expect("end")?.expect("name=Closed received=90 first=10 last=99 lost=0")?;
    for program in [&mut lossy, &mut latest] {
        sums(program.expect("end")?.expect("name=Closed last=99")?, 100)?;
    }
    finish([reliable, lossy, latest])?;
    empty(scene)
}

/// A reliable subscriber that is stopped is ejected: the publisher goes on, and `Lagged` says just how many messages that
/// cost. Afterwards it is waited for as before.
pub fn ejected(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let mut plan = cast.page();
    (plan.eject_after, plan.publisher_creates) = (Some(200), true);
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    let consume = format!("consume sizes={SIZE}");
    subscribers[1].tell(&consume)?;
    subscribers[2].tell(&consume)?;
    publisher.ask(&format!("produce count=10 sizes={SIZE}"), "sent")?;
    let [reliable, ..] = &mut subscribers;
    reliable.ask(&format!("{consume} count=10"), "end")?.expect("name=Count received=10 lost=0")?;
    reliable.tell(&format!("{consume} start=10 progress=yes"))?;
    reliable.stop()?;
    publisher.ask(&format!("produce start=10 count=500 sizes={SIZE}"), "sent")?.expect("count=500 next=510")?;
    reliable.go_on()?;
    let lost: u64 = reliable.expect("lagged")?.number("lost")?;
    // The newest message is always there.
    if !(500 - FITS..500).contains(&lost) {
        return Err(format!("a subscriber that was ejected lost {lost} of 500 messages, where {FITS} fit").into());
    }
    let received = until(reliable, 509)?;
    if lost + received != 500 {
        return Err(format!("it lost {lost} of 500 messages and received {received}").into());
    }
    // It has everything, so these fit and the publisher does not wait: however long it takes, nobody is ejected.
    let more = FITS - 1;
    publisher.ask(&format!("produce start=510 count={more} sizes={SIZE}"), "sent")?;
    publisher.finish()?;
    let (all, last) = (received + more, 509 + more);
    let end = format!("name=Closed received={all} first={} last={last} lost={lost}", 10 + lost);
    reliable.expect("end")?.expect(&end)?;
    for program in &mut subscribers[1..] {
        sums(program.expect("end")?.expect(&format!("name=Closed last={last}"))?, last + 1)?;
    }
    finish(subscribers)?;
    empty(scene)
}

/// The publisher is stopped: it is alive, so a wait for it ends with its time-out and nothing else.
pub fn publisher_stopped(cast: &mut Cast<'_>, scene: &Scene) -> Result<()> {
    let plan = cast.plan();
    let (mut publisher, mut subscribers) = cast.all(scene, &plan)?;
    publisher.ask("produce count=10", "sent")?;
    publisher.stop()?;
    tell(&mut subscribers, "consume timeout=400")?;
    for end in whole(&mut subscribers, cast.policies, "TimedOut", 10)? {
        waited(&end, 400)?;
    }
    tell(&mut subscribers, "consume")?;
    publisher.go_on()?;
    publisher.ask("produce start=10 count=10", "sent")?;
    publisher.finish()?;
    let [reliable, ..] = &mut subscribers;
    reliable.expect("end")?.expect("name=Closed received=10 first=10 last=19 lost=0")?;
    for program in &mut subscribers[1..] {
        sums(program.expect("end")?.expect("name=Closed last=19")?, 10)?;
    }
    finish(subscribers)?;
    empty(scene)
}
