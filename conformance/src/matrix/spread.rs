//! What is played of all pairs and scenarios where the work is spread (`--spread`).
//!
//! A language meets everything with Rust and with itself, over every transport. Of two others, a scenario is for those
//! whose distance in a circle of all such languages is one of two, which differ from scenario to scenario: so each
//! language plays each scenario as the producer with two others, and as the consumer with two others, of which one goes
//! over a ring and one over a bus where there are both.

use super::pair::Over;
use crate::languages::Language;

/// The languages that stand in the circle: their places among all.
pub struct Spread {
    circle: Vec<usize>,
}

impl Spread {
    /// All languages that take part, in the order of the tables. Those that choose whom they meet stand outside.
    pub fn new(languages: &[&Language]) -> Self {
        let inside = |language: &Language| !language.is("rust") && language.partners.is_none();
        let circle = languages.iter().enumerate().filter(|(_, language)| inside(language)).map(|(i, _)| i).collect();
        Self { circle }
    }

    /// The transports of a scenario, which has the given number, that a pair plays.
    pub fn of(&self, languages: &[&Language], producer: usize, consumer: usize, number: usize, over: &[Over]) -> Vec<Over> {
        let (p, c) = (languages[producer], languages[consumer]);
        if !p.meets(c) {
            return Vec::new();
        }
        if producer == consumer || p.is("rust") || c.is("rust") {
            return over.to_vec();
        }
        let place = |language: usize| self.circle.iter().position(|&inside| inside == language);
        let (Some(from), Some(to)) = (place(producer), place(consumer)) else {
            // One of them has chosen the other: they are few. The other way round it is the other transport.
            return vec![over[(number + usize::from(producer < consumer)) % over.len()]];
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
    const SCENARIOS: usize = 18;

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
    fn every_language_plays_every_scenario_with_two_others_besides_rust() {
        let all = all();
        let all: Vec<_> = all.iter().collect();
        for (me, language) in all.iter().enumerate().filter(|(_, language)| !language.is("rust")) {
            for number in 0..SCENARIOS {
                for sending in [true, false] {
                    let met = partners(&all, me, number, sending);
                    assert!(met.contains(&(0, "ring")) && met.contains(&(0, "bus")), "{}: Rust", language.id);
                    assert!(met.contains(&(me, "ring")) && met.contains(&(me, "bus")), "{}: itself", language.id);
                    let others: BTreeSet<_> = met.iter().filter(|&&(other, _)| other != 0 && other != me).collect();
                    let over: BTreeSet<_> = others.iter().map(|&&(_, over)| over).collect();
                    match language.id.as_str() {
                        "kotlin" => assert_eq!(others.len(), 1, "Java, over one transport"),
                        "java" => assert_eq!(others.len(), 3, "two, and Kotlin"),
                        _ => assert_eq!((others.len(), over.len()), (2, 2), "{}: {others:?}", language.id),
                    }
                }
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
                    6
                } else if [p, c].iter().any(|&one| all[one].is("java")) {
                    SCENARIOS
                } else {
                    0
                };
                assert_eq!(jobs(p, c), expected, "{} to {}", all[p].id, all[c].id);
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
