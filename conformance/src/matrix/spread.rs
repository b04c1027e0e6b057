//! What is played of all pairs and scenarios where the work is spread (`--spread`).
//!
//! A language plays everything with Rust, over every transport, and everything with itself, over one. Of two others, a
//! scenario is for those whose distance in a circle of all such languages is one of two, which differ from scenario to
//! scenario: so each language plays each scenario as the producer with two others, and as the consumer with two others, of
//! which one goes over a ring and one over a bus where there are both. A language that chooses whom it meets stands outside
//! the circle and plays everything with each of those, over one transport, and the other way round over the other one.

use super::pair::Over;
use ramway_agents::Language;

/// The languages that stand in the circle: their places among all.
pub struct Spread {
    circle: Vec<usize>,
}

impl Spread {
    /// All languages that take part, in the order of the tables. Rust stands outside, and who chooses whom to meet.
    pub fn new(languages: &[&Language]) -> Self {
        let inside = |language: &Language| !language.is("rust") && language.partners.is_none();
        let circle = languages.iter().enumerate().filter(|(_, language)| inside(language)).map(|(i, _)| i).collect();
        Self { circle }
    }

    /// The transports of a scenario, which has the given number, that a pair plays.
    pub fn of(
        &self,
        languages: &[&Language],
        producer: usize,
        consumer: usize,
        number: usize,
        over: &[Over],
    ) -> Vec<Over> {
        let (p, c) = (languages[producer], languages[consumer]);
        if !p.meets(c) {
            return Vec::new();
        }
        let chosen = p.partners.is_some() || c.partners.is_some();
        if chosen || (producer == consumer && !p.is("rust")) {
            return vec![over[(number + producer.min(consumer) + usize::from(producer < consumer)) % over.len()]];
        }
        let place = |language: usize| self.circle.iter().position(|&inside| inside == language);
        let (Some(from), Some(to)) = (place(producer), place(consumer)) else {
            return over.to_vec();
        };
        let around = self.circle.len();
        let distance = (to + around - from) % around;
        let chosen = distances(around, number);
        // Which of the two goes over the first transport changes with every round of the scenarios.
        let turn = number / (around - 1);
        chosen.iter().position(|&one| one == distance).map(|at| over[(at + turn) % over.len()]).into_iter().collect()
    }
}

/// The two distances, from 1 to `around - 1`, that a scenario is played at; one where there is only one. Over the
/// scenarios each distance comes up as often as any other.
fn distances(around: usize, number: usize) -> Vec<usize> {
    let all = around - 1;
    let mut chosen = vec![1 + number % all, 1 + (number + all.div_ceil(2)) % all];
    chosen.dedup();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    const BOTH: &[Over] = &[Over::Ring, Over::Bus];
    const SCENARIOS: usize = 19;

    fn languages(names: &[&str]) -> Vec<Language> {
        let made = |name: &&str| {
            let partners = if *name == "kotlin" { r#", "partners": ["rust", "java"]"# } else { "" };
            let text = format!(r#"{{ "name": "{name}", "order": 1, "needs": [], "run": ["x"]{partners} }}"#);
            Language::new((*name).to_owned(), PathBuf::from("/somewhere"), &text).expect("well written")
        };
        names.iter().map(made).collect()
    }

    fn all() -> Vec<Language> {
        languages(&["rust", "c", "cpp", "python", "go", "node", "java", "kotlin", "csharp"])
    }

    /// Everybody that a language plays a scenario with, and over what.
    fn partners(all: &[&Language], me: usize, number: usize, sending: bool) -> BTreeSet<(usize, &'static str)> {
        let spread = Spread::new(all);
        let with = |other: usize| {
            let (p, c) = if sending { (me, other) } else { (other, me) };
            spread.of(all, p, c, number, BOTH).into_iter().map(move |over| (other, over.name()))
        };
        (0..all.len()).flat_map(with).collect()
    }

    #[test]
    fn every_language_plays_every_scenario_with_rust_itself_and_two_others() {
        let all = all();
        let all: Vec<_> = all.iter().collect();
        for (me, language) in all.iter().enumerate().filter(|(_, language)| !language.is("rust")) {
            for number in 0..SCENARIOS {
                for sending in [true, false] {
                    let met = partners(&all, me, number, sending);
                    let with = |other: usize| met.iter().filter(|&&(one, _)| one == other).count();
                    let others: BTreeSet<_> = met.iter().filter(|&&(other, _)| other != 0 && other != me).collect();
                    let over: BTreeSet<_> = others.iter().map(|&&(_, over)| over).collect();
                    let found = (with(0), with(me), others.len());
                    match language.id.as_str() {
                        "kotlin" => assert_eq!(found, (1, 1, 1), "{met:?}"),
                        "java" => assert_eq!(found, (2, 1, 3), "{met:?}"),
                        _ => assert_eq!((found, over.len()), ((2, 1, 2), 2), "{}: {met:?}", language.id),
                    }
                }
            }
        }
    }

    #[test]
    fn kotlin_goes_over_either_transport() {
        let all = all();
        let all: Vec<_> = all.iter().collect();
        let kotlin = all.iter().position(|language| language.is("kotlin")).expect("there");
        for number in 0..SCENARIOS {
            let sent = partners(&all, kotlin, number, true);
            let received = partners(&all, kotlin, number, false);
            for other in [0, all.iter().position(|language| language.is("java")).expect("there")] {
                let over: BTreeSet<_> =
                    sent.union(&received).filter(|&&(one, _)| one == other).map(|pair| pair.1).collect();
                assert_eq!(over.len(), 2, "scenario {number} with {}", all[other].id);
            }
        }
    }

    #[test]
    fn every_pair_plays_something_and_none_plays_much() {
        let all = all();
        let all: Vec<_> = all.iter().collect();
        let spread = Spread::new(&all);
        let jobs = |p, c| (0..SCENARIOS).map(|number| spread.of(&all, p, c, number, BOTH).len()).sum::<usize>();
        for p in 1..all.len() {
            for c in (1..all.len()).filter(|&c| c != p) {
                let kotlin = [p, c].iter().any(|&one| all[one].is("kotlin"));
                let expected = if !kotlin {
                    SCENARIOS / 3..=SCENARIOS / 3 + 1
                } else if [p, c].iter().any(|&one| all[one].is("java")) {
                    SCENARIOS..=SCENARIOS
                } else {
                    0..=0
                };
                assert!(expected.contains(&jobs(p, c)), "{} to {}: {}", all[p].id, all[c].id, jobs(p, c));
            }
        }
    }

    #[test]
    fn a_few_languages_will_do() {
        for names in [&["rust", "go"][..], &["rust", "go", "c"], &["go", "c"], &["java", "kotlin"], &["kotlin"]] {
            let all = languages(names);
            let all: Vec<_> = all.iter().collect();
            let spread = Spread::new(&all);
            for (p, c) in (0..all.len()).flat_map(|p| (0..all.len()).map(move |c| (p, c))) {
                let jobs: usize = (0..SCENARIOS).map(|number| spread.of(&all, p, c, number, BOTH).len()).sum();
                assert!(jobs >= SCENARIOS, "{names:?}: {p} to {c} plays {jobs}");
            }
        }
    }
}
