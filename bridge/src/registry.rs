//! The counts of every stream, for the metrics and for `--verbose`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::config::{Direction, Rule};
use crate::counters::Counters;
use crate::lock::locked;

/// Which stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// Of the segment.
    pub name: String,
    /// As the rule says it.
    pub kind: &'static str,
    /// As the rule says it.
    pub direction: Direction,
    /// The rule's part of the key.
    pub prefix: String,
}

impl Label {
    /// Of a segment under a rule.
    #[must_use]
    pub fn new(name: &str, rule: &Rule) -> Self {
        Self { name: name.into(), kind: rule.kind.word(), direction: rule.direction, prefix: rule.prefix.clone() }
    }
}

/// The counts of all streams.
#[derive(Debug, Default)]
pub struct Registry {
    streams: Mutex<BTreeMap<Label, Arc<Counters>>>,
}

impl Registry {
    /// The counts of a stream. A stream that comes again goes on with those that it had: counts never go back.
    pub fn stream(&self, label: Label) -> Arc<Counters> {
        Arc::clone(locked(&self.streams).entry(label).or_default())
    }

    /// All of them, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<(Label, Arc<Counters>)> {
        locked(&self.streams).iter().map(|(label, counters)| (label.clone(), Arc::clone(counters))).collect()
    }
}
