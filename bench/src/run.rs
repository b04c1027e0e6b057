//! A run: group after group, and in each of them rounds, in which every row is measured once, in another order.

use crate::Result;
use crate::bars;
use crate::clock;
use crate::machine::{self, Machine};
use crate::only::Only;
use crate::pair::Conditions;
use crate::place;
use crate::placement::{self, Watch};
use crate::plan::{self, GroupPlan, Plan};
use crate::programs::{self, Known};
use crate::report::{Placements, Report, SCHEMA, Settings};
use crate::resume::Resume;
use crate::rounds::{Clockwork, measure};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where the two processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// The leading process on the first processor that is allowed, the following one on the second.
    Pinned,
    /// The other way round.
    Swapped,
    /// Wherever the scheduler puts them.
    Unpinned,
}

/// What to measure, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How much.
    pub plan: Plan,
    /// Only rows that one of these means: a group, a mechanism, `group/mechanism`, or a part of that; all if there are
    /// none.
    pub only: Vec<String>,
    /// Where the two processes run.
    pub placement: Placement,
    /// The processors to use, the leading process's first; `None`: the first two that are allowed.
    pub cpus: Option<[usize; 2]>,
    /// Every group a second time with the processors exchanged.
    pub both_orders: bool,
    /// SCHED_FIFO and locked memory in both processes.
    pub realtime: bool,
    /// Seconds for each group, instead of the plan's.
    pub group_time: Option<Duration>,
    /// Rounds that count in each group, instead of as many as there is time for.
    pub rounds: Option<u32>,
    /// The directory of the peers' manifests; `None`: RAMWAY_BENCH_PEERS, else `bench-peers` near this program.
    pub peers: Option<PathBuf>,
    /// Where finished groups are kept, to go on from there after an interruption.
    pub state: Option<PathBuf>,
    /// How long a pair of processes may take beyond what is expected of it.
    pub wait_max: Duration,
    /// Set from outside (a signal's handler) to end the run; looked at between bursts.
    pub interrupted: Arc<AtomicBool>,
}

impl Options {
    /// Everything of this plan.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            only: Vec::new(),
            placement: Placement::Pinned,
            cpus: None,
            both_orders: false,
            realtime: false,
            group_time: None,
            rounds: None,
            peers: None,
            state: None,
            wait_max: Duration::from_secs(60),
            interrupted: Arc::default(),
        }
    }

    /// Under a minute.
    pub fn quick() -> Self {
        Self::new(Plan::Quick)
    }

    /// Everything.
    pub fn full() -> Self {
        Self::new(Plan::Full)
    }

    pub(crate) fn cpus(&self) -> [Option<usize>; 2] {
        let [first, second] = self.two_cpus();
        match self.placement {
            Placement::Pinned => [Some(first), Some(second)],
            Placement::Swapped => [Some(second), Some(first)],
            Placement::Unpinned => [None, None],
        }
    }

    fn two_cpus(&self) -> [usize; 2] {
        self.cpus.unwrap_or_else(machine::two_cpus)
    }

    pub(crate) fn conditions(&self, swapped: bool) -> Conditions {
        let [lead, follow] = self.cpus();
        let cpus = if swapped { [follow, lead] } else { [lead, follow] };
        Conditions { cpus, realtime: self.realtime, wait_max: self.wait_max }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            plan: self.plan.name().to_owned(),
            cpus: self.cpus(),
            realtime: self.realtime,
            only: self.only.clone(),
        }
    }

    pub(crate) fn check_interrupted(&self) -> Result<()> {
        // Relaxed: nothing else is told by it.
        if self.interrupted.load(Ordering::Relaxed) { Err("interrupted".into()) } else { Ok(()) }
    }
}

/// How far a run has come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Milliseconds of work done.
    pub done: u64,
    /// Milliseconds of work planned.
    pub total: u64,
    /// What is being done.
    pub label: String,
}

/// Measures. Blocks for as long as the plan says.
///
/// # Errors
/// Nothing matches; the settings are not allowed here; or it was interrupted. A mechanism that fails is a row that says
/// so.
pub fn run(options: &Options, progress: &mut dyn FnMut(&Progress)) -> Result<Report> {
    let groups = plan::groups(options.plan);
    // Who asks for a peer by name has it; otherwise a minute is for the nearest.
    let quick = options.plan == Plan::Quick && options.only.is_empty();
    let groups = if quick { plan::nearest(groups) } else { groups };
    let groups = if options.both_orders { plan::both_orders(groups) } else { groups };
    run_groups(options, groups, progress)
}

/// The groups of which something is wanted, with the candidates that are wanted and known.
fn chosen(options: &Options, groups: Vec<GroupPlan>, known: &[Known]) -> Result<Vec<GroupPlan>> {
    let only = Only::new(&options.only);
    let wanted = |group: &str, mechanism: &str| {
        // A group that is measured in both orders is wanted in both or in none.
        options.only.is_empty() || only.means(group.strip_suffix("-swapped").unwrap_or(group), mechanism)
    };
    let mut groups = groups;
    for plan in &mut groups {
        let GroupPlan { group, candidates, .. } = plan;
        candidates.retain(|candidate| {
            wanted(&group.id, &candidate.mechanism) && known.iter().any(|k| k.about.name == candidate.mechanism)
        });
        if let Some(time) = options.group_time {
            plan.budget = time;
        }
    }
    groups.retain(|plan| !plan.candidates.is_empty());
    if groups.is_empty() {
        return Err(format!("no row matches {}: rows are named group/mechanism", options.only.join(", ")).into());
    }
    Ok(groups)
}

/// The same with groups of one's own.
pub(crate) fn run_groups(
    options: &Options,
    groups: Vec<GroupPlan>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report> {
    let known = programs::all(options.peers.as_deref())?;
    let groups = chosen(options, groups, &known)?;
    if options.realtime {
        machine::may_be_realtime(options.cpus())?;
    }
    machine::may_use(options.cpus())?;
    place::remove_stale();
    let mut resume = Resume::open(options, Machine::read(options.two_cpus()))?;
    let mut report = Report {
        schema: SCHEMA,
        began: resume.began(),
        seconds: 0.0,
        settings: options.settings(),
        machine: resume.machine().clone(),
        placement: None,
        groups: Vec::new(),
        rows: Vec::new(),
        bars: Vec::new(),
    };
    // Measured here once, while nothing else runs.
    clock::rate();
    let mut watch = Watch::start(options, &known)?;
    let total: Duration = groups.iter().map(|plan| plan.budget).sum();
    let mut before = Duration::ZERO;
    for plan in &groups {
        let mut show = |done: Duration, label: &str| {
            let done = (before + done.min(plan.budget)).as_millis() as u64;
            let label = format!("{}: {label}", plan.group.id);
            progress(&Progress { done, total: total.as_millis() as u64, label });
        };
        let clockwork = Clockwork { options, conditions: options.conditions(plan.swapped), known: &known };
        let (group, rows) = match resume.finished(&plan.group.id) {
            Some(finished) => {
                if let Some(watch) = &mut watch {
                    watch.judge.recall(&finished.0.placements);
                }
                finished
            }
            None => {
                let began = Instant::now();
                let (group, rows) = measure(&clockwork, plan, watch.as_mut(), &mut show)?;
                resume.add(&group, &rows, began.elapsed().as_secs_f64())?;
                (group, rows)
            }
        };
        // Of those that are wanted, none may be able to do what the group does.
        if !rows.is_empty() {
            report.groups.push(group);
            report.rows.extend(rows);
        }
        before += plan.budget;
    }
    let total = total.as_millis() as u64;
    progress(&Progress { done: total, total, label: "done".to_owned() });
    report.seconds = resume.seconds();
    report.placement = Some(Placements {
        none: placement::none(options.cpus()).map(str::to_owned),
        repeated: watch.map_or(0, |watch| watch.judge.repeated),
        ..Placements::default()
    });
    placement::name(&mut report);
    report.bars = bars::bars(&report);
    resume.close()?;
    Ok(report)
}
