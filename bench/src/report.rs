//! What a run says: the data, which is also the JSON. `text.rs` prints it, `page/` draws it.

use crate::bars;
use crate::case::{Mode, Test};
use crate::channel::{About, Kind};
use crate::machine::Machine;
use crate::only::Only;
use serde::{Deserialize, Serialize};

/// Of this JSON; raised when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Seconds since 1970, UTC, when it began.
    pub began: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The command line's words that chose what and how to measure.
    pub settings: Settings,
    /// What it ran on.
    pub machine: Machine,
    /// Where the two processors were to each other; `None` of a report that was written before that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placements>,
    /// Rows that are compared with each other, in the order in which they were measured.
    pub groups: Vec<Group>,
    /// One for each candidate of each group.
    pub rows: Vec<Row>,
    /// What the project aims at, and whether this run reached it.
    pub bars: Vec<Bar>,
}

impl Report {
    /// The rows that these texts name, as `--only` has them, their groups, and those of the aims that can be judged by them.
    ///
    /// # Errors
    /// The first text that names no row.
    pub fn only<'a>(&self, texts: &'a [String]) -> Result<Self, &'a str> {
        let names = |only: &Only<'_>| self.rows.iter().any(|row| only.means(&row.group, &row.about.name));
        if let Some(text) = texts.iter().find(|text| !names(&Only::new(std::slice::from_ref(text)))) {
            return Err(text);
        }
        let only = Only::new(texts);
        let mut part = self.clone();
        part.rows.retain(|row| only.means(&row.group, &row.about.name));
        part.groups.retain(|group| part.rows.iter().any(|row| row.group == group.id));
        part.settings.only = texts.to_vec();
        // A bar does not say which rows it needs, but what the rows that are left cannot judge is not judged.
        let judged = bars::bars(&part);
        let needs = |bar: &Bar| {
            judged
                .iter()
                .any(|one| one.what == bar.what && one.bar == bar.bar && !one.measured.starts_with("not measured"))
        };
        part.bars.retain(needs);
        Ok(part)
    }
}

/// How it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// `quick`, `standard` or `full`.
    pub plan: String,
    /// Where the two processes were pinned to, the leading one first; `None`: left to the scheduler.
    pub cpus: [Option<usize>; 2],
    /// Whether SCHED_FIFO and locked memory were asked for.
    pub realtime: bool,
    /// What had to be in a row's name, if anything.
    pub only: Vec<String>,
}

/// Where the two processors were to each other, by the time of a word there and back between them (the raw flag).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Placements {
    /// Near and far, or the only one that there was; empty if none was told apart.
    pub seen: Vec<Seen>,
    /// Why the run has no placement, if it cannot have one: it has one processor, or its processes are not pinned.
    pub none: Option<String>,
    /// How many bursts were measured again because the two processors had moved; of a run that was interrupted, since it goes
    /// on.
    pub repeated: u64,
}

/// One placement, of a run or of a group.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Seen {
    /// Which.
    pub placement: Distance,
    /// Nanoseconds of the raw flag's round trip: the median of the shortest ones of each time it was timed. Of a run, the
    /// median over its groups.
    pub flag_ns: f64,
    /// How often it was timed.
    pub probes: u64,
}

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Distance {
    /// Of two, the one in which the raw flag takes less time.
    Near,
    /// The other one.
    Far,
    /// The only one: whether it is what another run calls near or far, `flag_ns` tells.
    One,
}

impl Distance {
    /// As the report spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::One => "one placement",
        }
    }
}

/// Rows that were measured in the same rounds, and may be compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Group {
    /// `rtt-spin`, `one-way-32-each`, ….
    pub id: String,
    /// For people: "round trip, 32 B, both sides polling".
    pub title: String,
    /// What is timed.
    pub test: Test,
    /// How the sides wait or publish.
    pub mode: Mode,
    /// Bytes of a message, the largest if they differ.
    pub size: usize,
    /// Bytes of buffering that candidates were asked to have.
    pub capacity: u64,
    /// Nanoseconds between messages or bursts; 0 where that is no part of it.
    pub gap_ns: u64,
    /// Nanoseconds of work per message; 0 where that is no part of it.
    pub work_ns: u64,
    /// The mechanism that costs least, for `ratio_to_floor`.
    pub floor: Option<String>,
    /// The mechanism that carries most, for `ratio_to_ceiling`.
    pub ceiling: Option<String>,
    /// How often every row was measured, the warm-up not counted.
    pub rounds: u32,
    /// The placements in which some row was measured: none where the test does not depend on it, two where rows have
    /// `apart`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Seen>,
}

/// The figures of one candidate of one group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// `group/mechanism`.
    pub id: String,
    /// The group's id.
    pub group: String,
    /// What was measured.
    #[serde(flatten)]
    pub about: About,
    /// Why there are no figures; `None` if there are.
    pub failure: Option<String>,
    /// The figures; `None` if it failed. Of the group's placement; a mixture of both, which compares with nothing, where it
    /// has two: see `apart`.
    pub figures: Option<Figures>,
    /// The figures of each placement, where the group has two and the row was measured in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Apart>,
    /// Rounds that are not in the figures, because the two processors moved during the burst and its repetitions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mixed: u32,
}

/// What one row measured in one of two placements.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Apart {
    /// Which.
    pub placement: Distance,
    /// Only of the rounds in which it was measured in that one.
    pub figures: Figures,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Both processes: the leading one (which sends) first.
pub type Both<T> = [T; 2];

/// What one row measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Figures {
    /// Messages, round trips, wake-ups or passes that counted.
    pub operations: u64,
    /// Median over the rounds of operations divided by the time they took. For tests with a gap, that is the gap.
    pub ops_per_s: f64,
    /// Of the best round.
    pub ops_per_s_best: f64,
    /// Payload at the median rate, one direction, in MiB; `None` where none is carried.
    pub mib_per_s: Option<f64>,
    /// Nanoseconds of one operation.
    pub ns: Percentiles,
    /// `(percentile, ns)` from 0 to 100 for the curves: denser towards 100; at most 120 points.
    pub curve: Vec<(f64, f64)>,
    /// The median of each round in ns, in the order of rounds. A round is the same moment in all rows of a group.
    pub rounds_ns: Vec<f64>,
    /// The number of each of these rounds in its group, from 0 on; empty if none is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<u32>,
    /// Half the distance between the quartiles of `rounds_ns`, divided by their median: the noise.
    pub spread: f64,
    /// Time divided by the floor's time: the median of the ratios within each round.
    pub ratio_to_floor: Option<f64>,
    /// Rate divided by the ceiling's rate: the same.
    pub ratio_to_ceiling: Option<f64>,
    /// Processor time in percent of one processor.
    pub cpu_percent: Both<f64>,
    /// The most memory that was resident during a burst, in bytes.
    pub peak_rss: Both<u64>,
    /// Of which shared memory.
    pub shared: Both<u64>,
    /// Voluntary and involuntary, per operation.
    pub context_switches: Both<f64>,
    /// Per operation, counted in bursts of their own; `None` where that is not allowed.
    pub syscalls: Option<Both<f64>>,
    /// Per operation; `None` if the program does not count.
    pub allocations: Option<Both<f64>>,
    /// Bytes per operation from a heap that a garbage collector looks after; `None` where there is no such heap.
    #[serde(default)]
    pub allocated_bytes: Option<Both<f64>>,
    /// Operations that took longer than 20 ms.
    pub stalls: u64,
    /// Parts of an operation, where the mechanism says: nanoseconds by name ("lock", "condition wait", …).
    pub parts: Vec<(String, f64)>,
    /// Plain numbers, where the mechanism says some ("slowest thread", "held / in use, peak"): medians over the rounds.
    #[serde(default)]
    pub ratios: Vec<(String, f64)>,
}

/// From a histogram with three digits. `None` where there were too few samples: a percentile needs ten beyond it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// How many values.
    pub samples: u64,
    /// Operations that one value is the mean of: more than one where reading the clock for each would be a part of what
    /// is measured. The far end is that much flatter.
    pub group: u32,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// The largest.
    pub max: f64,
}

/// An aim and how near this run came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bar {
    /// What is compared.
    pub what: String,
    /// What must hold.
    pub bar: String,
    /// What was measured, in the bar's unit; what was not measured, if something lacks.
    pub measured: String,
    /// Whether it holds; `None` if it was not measured.
    pub met: Option<bool>,
    /// The placement in which it was judged, where the run had two and that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Distance>,
    /// Whether placement does not matter: then it is judged by the run as a whole.
    #[serde(skip)]
    pub(crate) whole: bool,
}

impl Figures {
    /// Each round's number and median, in ascending order.
    pub(crate) fn by_round(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let number = |at: usize| self.rounds.get(at).copied().unwrap_or(at as u32);
        self.rounds_ns.iter().enumerate().map(move |(at, &ns)| (number(at), ns))
    }
}

impl Row {
    /// A row that says why it has no figures.
    pub fn failed(group: &str, about: About, why: String) -> Self {
        let id = format!("{group}/{}", about.name);
        Self { id, group: group.into(), about, failure: Some(why), figures: None, apart: Vec::new(), mixed: 0 }
    }

    /// Whether this is one of Ramway's own.
    pub fn is_ramway(&self) -> bool {
        self.about.kind == Kind::Ramway
    }
}
