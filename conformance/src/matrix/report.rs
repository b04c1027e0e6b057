//! What a run says, as a table and as JSON.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::table;

/// The name of the scenario that has a row of its own.
pub const ZERO_COPY: &str = "zero-copy";

/// One scenario of one pair on one transport, and how it went.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The language that sends.
    pub producer: String,
    /// The language that receives; of a topic those of the three subscribers.
    pub consumer: String,
    /// `ring`, `bus` or `topic`.
    pub over: &'static str,
    /// What was tried.
    pub scenario: &'static str,
    /// Of a topic: each subscriber's language and policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscribers: Vec<(String, &'static str)>,
    /// How long that took.
    pub seconds: f64,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What both programs said, if something went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The languages that took part.
    pub languages: Vec<String>,
    /// The languages that did not, and what they lack.
    pub skipped: Vec<(String, String)>,
    /// Messages of a long stream.
    pub messages: u64,
    /// What the random moments came from.
    pub seed: u64,
    /// Wall clock of the whole run.
    pub seconds: f64,
    /// Everything that was tried.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// How many scenarios went well, and how many did not.
    pub fn counts(&self) -> (usize, usize) {
        let failed = self.outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
        (self.outcomes.len() - failed, failed)
    }

    /// The cell of a pair: what failed first, or how long all of it took.
    fn cell(&self, producer: &str, consumer: &str) -> String {
        let of_pair = || self.outcomes.iter().filter(|o| o.producer == producer && o.consumer == consumer);
        if of_pair().next().is_none() {
            return "–".to_owned();
        }
        let failed: Vec<_> = of_pair().filter(|o| o.failure.is_some()).collect();
        match failed.as_slice() {
            [] => format!("✓ {:.1} s", of_pair().map(|o| o.seconds).sum::<f64>()),
            [one] => format!("✗ {}/{}", one.over, one.scenario),
            [one, rest @ ..] => format!("✗ {}/{} +{}", one.over, one.scenario, rest.len()),
        }
    }

    /// The cell of a publisher and a subscriber of a topic: what failed first of the casts that have both, or under how many
    /// policies it subscribed.
    fn topics_cell(&self, publisher: &str, subscriber: &str) -> String {
        let of_both = || {
            let casts = self.outcomes.iter().filter(|o| o.producer == publisher);
            casts.filter(|o| o.subscribers.iter().any(|(language, _)| language == subscriber))
        };
        let failed = of_both().filter(|o| o.failure.is_some()).count();
        if let Some(first) = of_both().find(|o| o.failure.is_some()) {
            let rest = if failed > 1 { format!(" +{}", failed - 1) } else { String::new() };
            return format!("✗ {}{rest}", first.scenario);
        }
        let policies: BTreeSet<_> = of_both()
            .flat_map(|o| o.subscribers.iter().filter(|(language, _)| language == subscriber))
            .map(|(_, policy)| *policy)
            .collect();
        match policies.len() {
            0 => "–".to_owned(),
            1 => "✓ 1 policy".to_owned(),
            count => format!("✓ {count} policies"),
        }
    }

    /// The table of the topics, where any were played.
    fn topics(&self) -> String {
        let plays = |name: &String| {
            self.outcomes.iter().any(|o| o.producer == *name && !o.subscribers.is_empty())
                || self.outcomes.iter().any(|o| o.subscribers.iter().any(|(language, _)| language == name))
        };
        let names: Vec<_> = self.languages.iter().filter(|name| plays(name)).map(String::as_str).collect();
        if names.is_empty() {
            return String::new();
        }
        let casts = self.outcomes.iter().filter(|o| !o.subscribers.is_empty());
        let (count, seconds) = casts.fold((0, 0.0), |(count, seconds), o| (count + 1, seconds + o.seconds));
        let table = table::pairs(&names, |p, c| self.topics_cell(names[p], names[c]));
        format!("topics, from one publisher to three subscribers: {count} casts, {seconds:.1} s of them\n{table}\n")
    }

    /// Whether every consumer of a language saw the producer's own bytes.
    fn zero_copy(&self, consumer: &str) -> String {
        let of = || self.outcomes.iter().filter(|o| o.consumer == consumer && o.scenario == ZERO_COPY);
        let (all, good) = (of().count(), of().filter(|o| o.failure.is_none()).count());
        match (all, good) {
            (0, _) => "–".to_owned(),
            _ if all == good => "✓ same bytes".to_owned(),
            _ => format!("✗ {good} of {all}"),
        }
    }

    /// The table of the pairs, unless nothing but topics was played.
    fn pairs(&self) -> String {
        if !self.outcomes.is_empty() && self.outcomes.iter().all(|o| !o.subscribers.is_empty()) {
            return String::new();
        }
        let names: Vec<_> = self.languages.iter().map(String::as_str).collect();
        let mut table = table::pairs(&names, |p, c| self.cell(names[p], names[c]));
        let mut last = vec![ZERO_COPY.to_owned()];
        last.extend(names.iter().map(|name| self.zero_copy(name)));
        table.add_row(last);
        format!("{table}\n")
    }

    /// The tables, the skipped languages, and what failed with what was said.
    pub fn text(&self) -> String {
        let mut text = self.pairs() + &self.topics();
        for (name, lacks) in &self.skipped {
            text += &format!("skipped: {name} (missing: {lacks})\n");
        }
        for outcome in &self.outcomes {
            let Some(failure) = &outcome.failure else { continue };
            let Outcome { producer, consumer, over, scenario, .. } = outcome;
            text += &format!("\nFAILED {producer} → {consumer}, {over}/{scenario}: {failure}\n");
            text.extend(outcome.log.iter().map(|line| format!("    {line}\n")));
        }
        if self.counts().1 > 0 {
            text += &format!("\nseed {}\n", self.seed);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(producer: &str, consumer: &str, scenario: &'static str, failure: Option<&str>) -> Outcome {
        Outcome {
            producer: producer.to_owned(),
            consumer: consumer.to_owned(),
            over: "ring",
            scenario,
            subscribers: Vec::new(),
            seconds: 0.26,
            failure: failure.map(str::to_owned),
            log: Vec::new(),
        }
    }

    #[test]
    fn topics_have_a_table_of_their_own() {
        let cast = |publisher: &str, policies: [&'static str; 2], failure: Option<&str>| {
            let languages = ["Rust", "Go"].map(str::to_owned);
            let subscribers = languages.into_iter().zip(policies).collect();
            Outcome { over: "topic", subscribers, ..outcome(publisher, "Rust, Go", "ejected", failure) }
        };
        let good = report(vec![
            cast("Rust", ["lossy", "latest"], None),
            cast("Rust", ["reliable", "latest"], None),
            cast("Go", ["lossy", "lossy"], Some("it was not told")),
        ]);
        assert_eq!(good.topics_cell("Rust", "Rust"), "✓ 2 policies");
        assert_eq!(
            (good.topics_cell("Rust", "Go"), good.topics_cell("Go", "Go")),
            ("✓ 1 policy".into(), "✗ ejected".into())
        );
        assert_eq!((good.cell("Rust", "Go"), good.counts()), ("–".to_owned(), (2, 1)));
        let text = good.text();
        assert!(
            text.contains("3 casts") && text.contains("FAILED Go → Rust, Go, topic/ejected: it was not told"),
            "{text}"
        );
        assert!(!report(vec![outcome("Rust", "Go", "stream", None)]).text().contains("topics"));
    }

    fn report(outcomes: Vec<Outcome>) -> Report {
        let languages = vec!["Rust".to_owned(), "Go".to_owned()];
        Report { languages, skipped: vec![], messages: 1, seed: 7, seconds: 1.0, outcomes }
    }

    #[test]
    fn a_cell_says_what_failed_first() {
        let report = report(vec![
            outcome("Rust", "Go", "stream", None),
            outcome("Rust", "Go", ZERO_COPY, None),
            outcome("Go", "Rust", "full", Some("it was empty")),
            outcome("Go", "Rust", ZERO_COPY, Some("elsewhere")),
        ]);
        assert_eq!(report.cell("Rust", "Go"), "✓ 0.5 s");
        assert_eq!(report.cell("Go", "Rust"), "✗ ring/full +1");
        assert_eq!(report.cell("Go", "Go"), "–");
        assert_eq!((report.zero_copy("Go").as_str(), report.zero_copy("Rust").as_str()), ("✓ same bytes", "✗ 0 of 1"));
        assert_eq!(report.counts(), (2, 2));
        let text = report.text();
        assert!(text.contains("FAILED Go → Rust, ring/full: it was empty") && text.contains("seed 7"), "{text}");
    }
}
