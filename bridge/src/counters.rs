//! What each stream has done, counted where it happens, and read by the metrics and by `--verbose`.
//!
//! All of it is for people: nothing waits for or decides by these numbers, so that every access is relaxed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::config::{Direction, Rule};

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

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The other machine has not answered yet, or does not any more.
    NoLink,
    /// Messages cross as they come.
    Open,
    /// The far side has no room.
    Full,
    /// The other end of the segment on this machine is not there.
    NoPeer,
    /// It closed or died, and that was forwarded.
    Ended,
    /// It cannot go on; the log says why.
    Failed,
}

impl State {
    /// In words.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            Self::NoLink => "no link",
            Self::Open => "open",
            Self::Full => "far side full",
            Self::NoPeer => "waits for its local side",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    fn of(number: u8) -> Self {
        [Self::NoLink, Self::Open, Self::Full, Self::NoPeer, Self::Ended, Self::Failed]
            .into_iter()
            .find(|state| *state as u8 == number)
            .unwrap_or(Self::Failed)
    }
}

/// The counts of one stream.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages that crossed: of an export those that the far side has committed, or, where nothing is awaited, those handed to the
    /// link; of an import those that stand in the segment here.
    pub messages: AtomicU64,
    /// Bytes of their payloads.
    pub bytes: AtomicU64,
    /// Bytes that may be sent before the far side says more.
    pub credit: AtomicU64,
    /// Messages that were taken from the segment and are not released yet.
    pub lag: AtomicU64,
    /// How often it went on after the link or either bridge was gone.
    pub resumes: AtomicU64,
    /// Messages of a lossy rule that were lost: overwritten before they were read, dropped by the link, or missing on arrival.
    pub lost: AtomicU64,
    /// Messages that the rule's rate or `every` left out.
    pub left_out: AtomicU64,
    /// Messages that may have arrived twice, because a bridge was gone between their commit and its being known.
    pub possible_duplicates: AtomicU64,
    /// The last round trip in nanoseconds; 0: none yet.
    pub round_trip: AtomicU64,
    state: AtomicU8,
}

impl Counters {
    /// A message crossed.
    pub fn message(&self, bytes: u64) {
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// A message and its answer took so long.
    pub fn round_trip_was(&self, time: Duration) {
        self.round_trip.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// What it waits for now.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// What it waits for.
    #[must_use]
    pub fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
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
        Arc::clone(self.lock().entry(label).or_default())
    }

    /// All of them, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<(Label, Arc<Counters>)> {
        self.lock().iter().map(|(label, counters)| (label.clone(), Arc::clone(counters))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Label, Arc<Counters>>> {
        // Nothing is done under the lock that could leave the map half changed.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
