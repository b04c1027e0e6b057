//! Topics: one publisher and three subscribers of different languages, each with a policy of its own.
//!
//! Who plays: of each publisher, a cast begins at each language in turn, and takes the two after it. So each language stands
//! once in each place of the cast with each publisher, and with the three policies in the three places each language meets each
//! publisher under each policy. Where the work is spread, a scenario that is not marked as whole plays one cast of each
//! publisher, which begins at another language in each scenario: each language is there in each place once.

mod cast;
mod life;
mod stopped;
mod stream;

use std::time::Instant;

use ramway_agents::{Language, Result};

use super::{Args, LIMIT, Load, Outcome, Processors, work};
use crate::run::{self, Scene};
use cast::Cast;

type Play = fn(&mut Cast<'_>, &Scene) -> Result<()>;

struct Scenario {
    name: &'static str,
    policies: [&'static str; 3],
    /// Every cast plays it, also where the work is spread.
    whole: bool,
    load: Load,
    play: Play,
}

const EACH: [&str; 3] = ["reliable", "lossy", "latest"];

const fn scenario(name: &'static str, load: Load, play: Play) -> Scenario {
    Scenario { name, policies: EACH, whole: false, load, play }
}

const SCENARIOS: &[Scenario] = &[
    Scenario { whole: true, ..scenario("stream", Load::Busy, stream::mixed) },
    Scenario { policies: ["lossy", "lossy", "latest"], ..scenario("nobody-waits", Load::Busy, stream::nobody_waits) },
    scenario("every-length", Load::Busy, stream::every_length),
    scenario("begins", Load::Idle, stream::begins),
    scenario("begins-late", Load::Idle, stream::begins_late),
    scenario("full", Load::Idle, stream::full),
    scenario("publisher-restarts", Load::Idle, life::publisher_restarts),
    scenario("publisher-dies", Load::Idle, life::publisher_dies),
    Scenario {
        policies: ["reliable", "reliable", "latest"],
        ..scenario("reliable-dies", Load::Idle, life::reliable_dies)
    },
    scenario("durable-resumes", Load::Idle, life::durable_resumes),
    scenario("killed-at-random", Load::Busy, life::killed_at_random),
    scenario("others-stopped", Load::Idle, stopped::others_stopped),
    scenario("reliable-stopped", Load::Idle, stopped::reliable_stopped),
    scenario("ejected", Load::Idle, stopped::ejected),
    scenario("publisher-stopped", Load::Idle, stopped::publisher_stopped),
];

/// What is to be played.
pub struct Job<'a> {
    publisher: &'a Language,
    subscribers: [&'a Language; 3],
    scenario: &'static Scenario,
    /// The place of the cast among all casts: the variants are spread by it.
    number: usize,
}

/// The languages that stand in a cast of one publisher that begins at `first`, by their places.
fn three(languages: usize, first: usize) -> [usize; 3] {
    [first, first + 1, first + 2].map(|place| place % languages)
}

/// At which languages the casts of a publisher begin.
fn firsts(languages: usize, publisher: usize, number: usize, whole: bool) -> Vec<usize> {
    if whole { (0..languages).collect() } else { vec![(publisher + 1 + number) % languages] }
}

/// Everything that the arguments choose, of the languages that have topics.
pub fn jobs<'a>(here: &[&'a Language], args: &Args, chosen: &dyn Fn(&Language, &Language) -> bool) -> Vec<Job<'a>> {
    let languages: Vec<_> = here.iter().copied().filter(|language| language.topics).collect();
    let count = languages.len();
    let mut jobs = Vec::new();
    for (p, &publisher) in languages.iter().enumerate() {
        for (s, scenario) in SCENARIOS.iter().enumerate() {
            if !args.wants(&format!("topic/{}", scenario.name)) {
                continue;
            }
            for first in firsts(count, p, s, scenario.whole || !args.spread) {
                let subscribers = three(count, first).map(|place| languages[place]);
                if subscribers.iter().any(|subscriber| chosen(publisher, subscriber)) {
                    // With another scenario another variant: where the work is spread a publisher has one cast of each.
                    jobs.push(Job { publisher, subscribers, scenario, number: p * count + first + s });
                }
            }
        }
    }
    jobs
}

/// Plays them.
pub fn play_all(
    jobs: &[Job<'_>],
    messages: u64,
    seed: u64,
    at_a_time: usize,
    done: impl Fn(&str) + Sync,
) -> Vec<Outcome> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let shared = Processors::new(processors);
    work::each(jobs, at_a_time, |at, job| {
        let outcome = play_one(job, messages, seed ^ at as u64, &shared);
        done(&outcome.producer);
        outcome
    })
}

fn play_one(job: &Job<'_>, messages: u64, seed: u64, shared: &Processors) -> Outcome {
    let &Job { publisher, subscribers, scenario, number } = job;
    let random = fastrand::Rng::with_seed(seed);
    let mut cast =
        Cast { publisher, subscribers, policies: scenario.policies, variant: number, messages, fresh: false, random };
    let cores = usize::from(scenario.load == Load::Busy);
    shared.take(cores);
    let began = Instant::now();
    let (outcome, log) = match Scene::new(LIMIT) {
        Ok(scene) => {
            let outcome = (scenario.play)(&mut cast, &scene);
            let log = if outcome.is_err() { scene.log() } else { Vec::new() };
            (outcome, log)
        }
        Err(cause) => (Err(cause), Vec::new()),
    };
    shared.give(cores);
    // Each cast has other languages.
    run::thin();
    let names = subscribers.map(|language| language.name.clone());
    Outcome {
        producer: publisher.name.clone(),
        consumer: names.join(", "),
        over: "topic",
        scenario: scenario.name,
        subscribers: names.into_iter().zip(scenario.policies).collect(),
        seconds: began.elapsed().as_secs_f64(),
        failure: outcome.err().map(|cause| cause.to_string()),
        log,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn scenarios_have_names_of_their_own() {
        let names: BTreeSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        assert_eq!(SCENARIOS[0].policies, EACH);
        assert!(SCENARIOS[0].whole, "the covering set is the first scenario");
    }

    #[test]
    fn every_language_meets_every_publisher_under_every_policy() {
        for languages in 1..10 {
            for publisher in 0..languages {
                let mut met = BTreeSet::new();
                for first in firsts(languages, publisher, 0, true) {
                    let three = three(languages, first);
                    met.extend(three.iter().copied().zip(EACH));
                    let different: BTreeSet<_> = three.into_iter().collect();
                    assert_eq!(different.len(), languages.min(3));
                }
                assert_eq!(met.len(), languages * EACH.len());
            }
        }
    }

    #[test]
    fn a_spread_scenario_has_every_language_in_every_place() {
        for (languages, number) in (1..10).flat_map(|languages| (0..20).map(move |number| (languages, number))) {
            let mut met = BTreeSet::new();
            for publisher in 0..languages {
                let [first] = firsts(languages, publisher, number, false)[..] else { panic!("one cast") };
                met.extend(three(languages, first).into_iter().enumerate());
            }
            assert_eq!(met.len(), languages * 3);
        }
    }
}
