//! Loops of calls with short time-outs (`poll`), which must learn of an end as soon as one call that waits does.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::crash::in_time_for;
use super::pair::{Pair, Plan};
use ramway_agents::{Language, Result};

use crate::run::Scene;

/// Microseconds: never waiting, less than a spin, less and more than the 100 ms between two looks at the other side.
const TIMES: [u64; 7] = [0, 20, 1000, 5000, 50_000, 99_000, 150_000];

/// How the other side goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Dies,
    Closes,
}

/// What the one that polls plays with `other`: a time-out and an end each. With Rust, and where the work is not spread, all time-outs, of
/// which a ring has every second one end in a death and the others in a close, and a bus the other way round. With
/// another language one time-out and both ends.
fn plays(pair: &Pair<'_>, other: &Language) -> Vec<(u64, End)> {
    if !pair.spread || other.is("rust") {
        let kind = |at: usize| if (at + pair.over as usize).is_multiple_of(2) { End::Dies } else { End::Closes };
        return TIMES.iter().enumerate().map(|(at, &time)| (time, kind(at))).collect();
    }
    let time = pair.pick(&TIMES);
    vec![(time, End::Dies), (time, End::Closes)]
}

pub fn short_waits(pair: &mut Pair<'_>, scene: &Scene) -> Result<()> {
    for (time, end) in plays(pair, pair.producer) {
        apart(pair, scene, &format!("a receiver's wait of {time} us"), |pair, scene, plan| {
            receiver(pair, scene, plan, time, end)
        })?;
    }
    for (time, end) in plays(pair, pair.consumer) {
        apart(pair, scene, &format!("a sender's wait of {time} us"), |pair, scene, plan| {
            sender(pair, scene, plan, time, end)
        })?;
    }
    Ok(())
}

/// Each in a place of its own: a named ring of the one before could still be on its way out.
fn apart(
    pair: &mut Pair<'_>,
    scene: &Scene,
    what: &str,
    play: impl FnOnce(&mut Pair<'_>, &Scene, &Plan) -> Result<()>,
) -> Result<()> {
    let own = Scene::new(scene.left())?;
    let plan = pair.plan();
    play(pair, &own, &plan).map_err(|cause| {
        own.log().iter().for_each(|line| scene.note(what, line));
        format!("{what}: {cause}").into()
    })
}

/// Long enough that a loop is well inside its wait, and at no fixed place in it.
fn a_while(pair: &mut Pair<'_>) {
    sleep(Duration::from_millis(pair.random.u64(20..80)));
}

/// How long a loop goes on at most: what is told later was told too late.
const LOOP_MS: u64 = 10_000;

fn receiver(pair: &mut Pair<'_>, scene: &Scene, plan: &Plan, time: u64, end: End) -> Result<()> {
    let consume = format!("consume poll={time} timeout={LOOP_MS}");
    let (mut producer, mut consumer) = pair.play(scene, plan, "produce count=5", &consume)?;
    producer.expect("sent")?;
    a_while(pair);
    let since = match end {
        End::Dies => producer.kill()?.1,
        End::Closes => {
            let since = Instant::now();
            producer.finish()?;
            since
        }
    };
    let event = consumer.expect("end")?;
    event.expect(match end {
        End::Dies => "name=PeerDead number=11 received=5 first=0 last=4",
        End::Closes => "name=Closed number=9 received=5 first=0 last=4",
    })?;
    in_time_for(pair, since, &event)?;
    consumer.finish()
}

fn sender(pair: &mut Pair<'_>, scene: &Scene, plan: &Plan, time: u64, end: End) -> Result<()> {
    let produce = format!("produce count=100000000 sizes=1000 progress=yes poll={time} timeout={LOOP_MS}");
    let (mut producer, consumer) = pair.both(scene, plan)?;
    producer.tell(&produce)?;
    // The consumer goes once the ring is full: a bus that is closed before takes no more messages.
    let fill = super::limits::fill_count(plan, 1000);
    for seq in 0..fill {
        producer.expect("at")?.expect(&format!("seq={seq}"))?;
    }
    a_while(pair);
    let since = match end {
        End::Dies => consumer.kill()?.1,
        End::Closes => {
            let since = Instant::now();
            consumer.finish()?;
            since
        }
    };
    let event = producer.expect("end")?;
    // A full ring of them was sent, whichever call it was that learned of the end.
    event.expect(&format!("sent={fill}"))?;
    event.expect(match end {
        End::Dies => "name=PeerDead number=11",
        End::Closes => "name=Closed number=9",
    })?;
    in_time_for(pair, since, &event)?;
    producer.finish()
}

#[cfg(test)]
mod tests {
    use super::super::pair::Over;
    use super::*;
    use std::path::PathBuf;

    fn language(name: &str) -> Language {
        let text = format!(r#"{{ "name": "{name}", "order": 1, "needs": [], "run": ["x"] }}"#);
        Language::new(name.to_owned(), PathBuf::from("/somewhere"), &text).expect("well written")
    }

    #[test]
    fn with_rust_every_time_meets_both_ends() {
        let (rust, other) = (language("rust"), language("go"));
        for spread in [true, false] {
            let mut all = Vec::new();
            for over in [Over::Ring, Over::Bus] {
                let random = fastrand::Rng::with_seed(1);
                let pair = Pair {
                    producer: &rust,
                    consumer: &other,
                    over,
                    variant: 3,
                    messages: 1,
                    spread,
                    fresh: false,
                    random,
                };
                let mine = plays(&pair, &rust);
                assert_eq!(mine.iter().map(|(time, _)| *time).collect::<Vec<_>>(), TIMES);
                all.extend(mine);
                assert_eq!(plays(&pair, &other).len(), if spread { 2 } else { 7 });
            }
            for time in TIMES {
                assert!(all.contains(&(time, End::Dies)) && all.contains(&(time, End::Closes)), "{time}");
            }
        }
    }
}
