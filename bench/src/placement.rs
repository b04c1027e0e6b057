//! Where the hypervisor has put the two processors: the raw flag between them, timed before and after each burst.
//!
//! Two virtual processors can be moved to other cores at any time. Where they share a cache a word there and back takes a
//! fifth of what it takes elsewhere, and everything that two processes do follows. A median of both is luck, so each burst
//! is sorted by the flags beside it:
//!
//! - A flag of up to [`NEAR`] times the run's shortest is *near*, one of [`FAR`] times or more is *far*.
//! - A burst with two near flags is near, one with two far flags is far, every other one is *mixed*. Where the second flag
//!   is [`NEAR`] times the first or the other way round, it is repeated at once, up to [`REPEATS`] times.
//! - A run has two placements if it has [`PROBES`] flags of each and no more than a tenth between them. Any other run, such as
//!   one on a machine without a hypervisor or one whose processors change their frequency, has one placement, and nothing of
//!   it is dropped.

use crate::Result;
use crate::case::{Burst, Mode, Test};
use crate::pair::Pair;
use crate::programs::Known;
use crate::report::{Distance, Group, Placements, Report, Row, Seen};
use crate::run::Options;
use crate::stats::{Series, median};
use std::borrow::Cow;
use std::time::Duration;

/// Up to so many times the shortest flag it is near.
const NEAR: f64 = 1.5;
/// From so many times the shortest flag on it is far.
const FAR: f64 = 2.2;
/// Two times of the flag that are further apart than this are of two placements: between the two above.
const APART: f64 = 1.8;
/// How many flags of each make two placements.
const PROBES: usize = 3;
/// How often a burst is repeated.
pub(crate) const REPEATS: u32 = 2;
/// Round trips of a probe: 30 µs where they are near, 150 µs where they are far.
const TRIPS: u64 = 300;
/// The fewest rounds of one of two placements by which a row is judged or compared.
pub(crate) const ROUNDS: usize = 3;

/// What times the flag, and what it has seen.
pub(crate) struct Watch {
    timed: Box<dyn FnMut() -> Result<f64>>,
    pub(crate) judge: Judge,
}

impl Watch {
    /// By a pair of processes on the run's two processors; `None` where there is no placement: see [`none`].
    pub(crate) fn start(options: &Options, known: &[Known]) -> Result<Option<Self>> {
        if none(options.cpus()).is_some() {
            return Ok(None);
        }
        let flag = known.iter().find(|known| known.about.name == "raw-flag").ok_or("raw-flag is not known")?;
        let burst = Burst { group: 10, ..Burst::new(Test::Rtt, Mode::Spin, 0, TRIPS) };
        let pair = Pair::start(&flag.command.clone()?, "raw-flag", 1 << 12, &burst, &options.conditions(false))?;
        let mut pair = pair.ok_or("raw-flag cannot do a round trip")?;
        let mut watch = Self::new(move || {
            let outcome =
                pair.burst(&burst, Duration::ZERO).map_err(|cause| format!("timing the raw flag: {cause}"))?;
            let shortest = outcome.samples_ps.iter().min().ok_or("timing the raw flag: no samples")?;
            Ok(*shortest as f64 / f64::from(burst.group) / 1000.0)
        });
        // The first one touches pages for the first time.
        watch.time()?;
        Ok(Some(watch))
    }

    pub(crate) fn new(timed: impl FnMut() -> Result<f64> + 'static) -> Self {
        Self { timed: Box::new(timed), judge: Judge::default() }
    }

    /// Times the flag: nanoseconds of a round trip. The shortest of some, because a process that loses its processor makes a
    /// flag longer, and nothing makes it shorter than the placement allows.
    pub(crate) fn time(&mut self) -> Result<f64> {
        // A clock that stands still for ten round trips is no reason to divide by zero.
        Ok((self.timed)()?.max(0.1))
    }
}

/// Why two processes with these processors have no placement, if they have none.
pub(crate) fn none(cpus: [Option<usize>; 2]) -> Option<&'static str> {
    match cpus {
        [Some(a), Some(b)] if a != b => None,
        [Some(_), Some(_)] => Some("one processor: there is no placement of two"),
        _ => Some("not pinned: the scheduler moves the processes, so placements are not told apart"),
    }
}

/// Whether placement is a part of what a test measures: a receiver that waits for nothing does not depend on it.
pub(crate) fn matters(test: Test) -> bool {
    test != Test::Idle
}

/// Whether the two moved between these two flags.
pub(crate) fn moved(before: f64, after: f64) -> bool {
    before.max(after) > NEAR * before.min(after)
}

/// What a flag or a burst is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Near,
    Far,
    Mixed,
}

/// The flags of a run so far.
#[derive(Default)]
pub(crate) struct Judge {
    flags: Vec<f64>,
    least: Option<f64>,
    /// Bursts that were repeated.
    pub(crate) repeated: u64,
}

impl Judge {
    /// Takes in a flag. Where it is so short that what was near until now is not, says what that is instead.
    pub(crate) fn see(&mut self, flag: f64) -> Option<Class> {
        self.flags.push(flag);
        let before = self.least.unwrap_or(flag);
        self.least = Some(before.min(flag));
        Some(self.class(before)).filter(|class| *class != Class::Near)
    }

    /// Takes in what an earlier part of the run has seen.
    pub(crate) fn recall(&mut self, seen: &[Seen]) {
        for one in seen {
            for _ in 0..one.probes.min(1 << 20) {
                self.see(one.flag_ns);
            }
        }
    }

    /// How many flags there are.
    pub(crate) fn count(&self) -> usize {
        self.flags.len()
    }

    fn class(&self, flag: f64) -> Class {
        match flag / self.least.unwrap_or(flag) {
            times if times <= NEAR => Class::Near,
            times if times >= FAR => Class::Far,
            _ => Class::Mixed,
        }
    }

    /// A burst between two flags.
    pub(crate) fn burst(&self, before: f64, after: f64) -> Class {
        let (before, after) = (self.class(before), self.class(after));
        if before == after { before } else { Class::Mixed }
    }

    /// Whether the run has two placements.
    pub(crate) fn two(&self) -> bool {
        let count = |class| self.flags.iter().filter(|&&flag| self.class(flag) == class).count();
        count(Class::Near) >= PROBES && count(Class::Far) >= PROBES && count(Class::Mixed) * 10 <= self.flags.len()
    }

    /// What the flags from this one on were, for the placements of a group that has `near` and `far` bursts.
    pub(crate) fn seen(&self, from: usize, near: bool, far: bool) -> Vec<Seen> {
        let flags = &self.flags[from.min(self.flags.len())..];
        let of = |placement, is: &dyn Fn(f64) -> bool| {
            let mut found: Vec<f64> = flags.iter().copied().filter(|&flag| is(flag)).collect();
            (!found.is_empty()).then(|| Seen { placement, probes: found.len() as u64, flag_ns: median(&mut found) })
        };
        if !self.two() {
            return of(Distance::One, &|_| true).into_iter().collect();
        }
        let near = near.then(|| of(Distance::Near, &|flag| self.class(flag) == Class::Near)).flatten();
        let far = far.then(|| of(Distance::Far, &|flag| self.class(flag) == Class::Far)).flatten();
        near.into_iter().chain(far).collect()
    }
}

/// A row's bursts, each where it belongs.
pub(crate) struct Sorted {
    pub(crate) near: Series,
    pub(crate) far: Series,
    pub(crate) mixed: Series,
}

impl Sorted {
    pub(crate) fn new() -> Self {
        Self { near: Series::new(), far: Series::new(), mixed: Series::new() }
    }

    pub(crate) fn of(&mut self, class: Class) -> &mut Series {
        match class {
            Class::Near => &mut self.near,
            Class::Far => &mut self.far,
            Class::Mixed => &mut self.mixed,
        }
    }

    /// What was near is not, after a flag that was far shorter.
    pub(crate) fn rename_near(&mut self, class: Class) {
        let near = std::mem::replace(&mut self.near, Series::new());
        self.of(class).take(&near);
    }

    /// What counts: all of it where there is one placement, and without the mixed bursts where there are two.
    pub(crate) fn whole(&self, two: bool) -> Series {
        let mut whole = Series::new();
        whole.take(&self.near);
        whole.take(&self.far);
        if !two {
            whole.take(&self.mixed);
        }
        whole
    }

    pub(crate) fn operations(&self) -> u64 {
        self.near.operations + self.far.operations + self.mixed.operations
    }
}

/// Names the placements at the end of a run, by all that it saw: a group may have been measured before the run knew that there
/// are two.
pub(crate) fn name(report: &mut Report) {
    let all = || report.groups.iter().flat_map(|group| &group.placements);
    let least = all().map(|seen| seen.flag_ns).fold(f64::INFINITY, f64::min);
    let far = |flag_ns: f64| flag_ns > APART * least;
    let two = report.groups.iter().any(|group| group.placements.len() > 1) || all().any(|seen| far(seen.flag_ns));
    for group in &mut report.groups {
        if let [only] = group.placements.as_mut_slice() {
            only.placement = match (two, far(only.flag_ns)) {
                (false, _) => Distance::One,
                (true, false) => Distance::Near,
                (true, true) => Distance::Far,
            };
        }
    }
    let seen = [Distance::Near, Distance::Far, Distance::One].into_iter().filter_map(|placement| {
        let of = report.groups.iter().flat_map(|group| &group.placements).filter(|seen| seen.placement == placement);
        let (flags, probes): (Vec<f64>, Vec<u64>) = of.map(|seen| (seen.flag_ns, seen.probes)).unzip();
        let mut flags = flags;
        (!flags.is_empty()).then(|| Seen { placement, flag_ns: median(&mut flags), probes: probes.iter().sum() })
    });
    let seen = seen.collect();
    if let Some(placement) = &mut report.placement {
        placement.seen = seen;
    }
}

/// What a report saw.
pub(crate) fn seen(report: &Report) -> &[Seen] {
    report.placement.as_ref().map_or(&[], |placement| placement.seen.as_slice())
}

/// The one placement of a report that has one, or of a view.
pub(crate) fn only(report: &Report) -> Option<&Seen> {
    match seen(report) {
        [one] => Some(one),
        _ => None,
    }
}

/// The one of two that a view is of.
pub(crate) fn of_two(report: &Report) -> Option<&Seen> {
    only(report).filter(|seen| seen.placement != Distance::One)
}

/// A report as one of each placement, near first, and one of the groups that were measured without the flag. Where there are
/// not two placements, the report itself.
pub(crate) fn views(report: &Report) -> Vec<Cow<'_, Report>> {
    if seen(report).len() < 2 {
        return vec![Cow::Borrowed(report)];
    }
    let mut views: Vec<_> = seen(report).iter().map(|seen| Cow::Owned(view(report, seen))).collect();
    let without = without(report);
    if !without.groups.is_empty() {
        views.push(Cow::Owned(without));
    }
    views
}

/// The groups that were measured without the flag.
pub(crate) fn without(report: &Report) -> Report {
    within(report, Vec::new(), |group| group.placements.is_empty(), |row| Some(row.clone()))
}

/// The same for what is judged: every view has the groups that were measured without the flag too.
pub(crate) fn judged(report: &Report) -> Option<[Report; 2]> {
    let mut views: Vec<Report> = views(report).into_iter().map(Cow::into_owned).collect();
    if views.len() < 2 {
        return None;
    }
    let without = views.split_off(2).pop();
    for (view, without) in views.iter_mut().zip(without.iter().cycle()) {
        view.groups.extend(without.groups.iter().cloned());
        view.rows.extend(without.rows.iter().cloned());
    }
    views.try_into().ok()
}

fn view(report: &Report, seen: &Seen) -> Report {
    let is = |group: &Group| group.placements.iter().any(|one| one.placement == seen.placement);
    let apart = |row: &Row| report.groups.iter().any(|group| group.id == row.group && group.placements.len() > 1);
    within(report, vec![*seen], is, |row| {
        if row.figures.is_none() || !apart(row) {
            return Some(row.clone());
        }
        let figures = row.apart.iter().find(|apart| apart.placement == seen.placement)?.figures.clone();
        Some(Row { figures: Some(figures), apart: Vec::new(), ..row.clone() })
    })
}

/// The part of a report that has these groups, and what is made of their rows.
fn within(report: &Report, seen: Vec<Seen>, is: impl Fn(&Group) -> bool, of: impl Fn(&Row) -> Option<Row>) -> Report {
    let groups: Vec<Group> = report.groups.iter().filter(|group| is(group)).cloned().collect();
    let held = |row: &&Row| groups.iter().any(|group| group.id == row.group);
    let rows = report.rows.iter().filter(held).filter_map(of).collect();
    Report {
        schema: report.schema,
        began: report.began,
        seconds: report.seconds,
        settings: report.settings.clone(),
        machine: report.machine.clone(),
        placement: Some(Placements { seen, ..report.placement.clone().unwrap_or_default() }),
        groups,
        rows,
        bars: Vec::new(),
    }
}

/// Of two runs, the placements in which the flag takes as long: the index of the view in each.
pub(crate) fn alike(old: &[Seen], new: &[Seen]) -> Vec<(usize, usize)> {
    let same = |a: f64, b: f64| a.max(b) <= APART * a.min(b);
    let nearest = |now: &Seen| {
        let off = |was: &Seen| (was.flag_ns / now.flag_ns).ln().abs();
        let by = old.iter().enumerate().min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)))?;
        same(by.1.flag_ns, now.flag_ns).then_some(by.0)
    };
    new.iter().enumerate().filter_map(|(at, now)| Some((nearest(now)?, at))).collect()
}

/// For people: what a report saw, in a line; `None` of a report of an earlier version, which did not look.
pub(crate) fn said(report: &Report) -> Option<String> {
    let placement = report.placement.as_ref()?;
    if let Some(why) = &placement.none {
        return Some(why.clone());
    }
    let each = |seen: &Seen| {
        let flag = crate::text::duration(seen.flag_ns);
        format!("{}, raw flag {flag} ({} probes)", seen.placement.name(), seen.probes)
    };
    let seen: Vec<String> = placement.seen.iter().map(each).collect();
    let repeated = match placement.repeated {
        0 => String::new(),
        1 => "; one burst repeated".into(),
        many => format!("; {many} bursts repeated"),
    };
    (!seen.is_empty()).then(|| format!("{}{repeated}", seen.join("; ")))
}

/// For people: the placement of a view, as a part of a heading.
pub(crate) fn heading(report: &Report) -> Option<String> {
    let seen = of_two(report)?;
    Some(format!("{} (raw flag {})", seen.placement.name(), crate::text::duration(seen.flag_ns)))
}

/// Why a row that ran has no figures.
pub(crate) fn never_clean(rounds: usize) -> String {
    format!(
        "no clean burst in {rounds} rounds: in each the two processors moved while it was measured, though it was repeated \
         {REPEATS} times"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::bars;
    use crate::compare::compare;
    use crate::report::{Apart, Figures};
    use crate::sample::{figures, report, row};

    fn judge(flags: &[f64]) -> Judge {
        let mut judge = Judge::default();
        for &flag in flags {
            judge.see(flag);
        }
        judge
    }

    #[test]
    fn a_burst_is_what_both_flags_beside_it_are() {
        let judge = judge(&[110.0, 112.0, 108.0, 500.0, 520.0, 490.0]);
        assert!(judge.two());
        assert_eq!(judge.burst(110.0, 130.0), Class::Near);
        assert_eq!(judge.burst(500.0, 640.0), Class::Far);
        for (before, after) in [(110.0, 500.0), (500.0, 110.0), (200.0, 200.0), (110.0, 200.0)] {
            assert_eq!(judge.burst(before, after), Class::Mixed, "{before} {after}");
        }
        // Which of them are measured again does not depend on what the run has seen.
        assert!(moved(110.0, 500.0) && moved(500.0, 110.0) && !moved(110.0, 150.0) && !moved(200.0, 200.0));
    }

    #[test]
    fn one_placement_is_one_however_long_its_flag_takes() {
        for flags in [vec![500.0; 20], vec![110.0, 120.0, 115.0, 131.0, 109.0], vec![100.0; 1]] {
            let judge = judge(&flags);
            assert!(!judge.two());
            let seen = judge.seen(0, true, false);
            assert_eq!((seen.len(), seen[0].placement, seen[0].probes), (1, Distance::One, flags.len() as u64));
        }
        // Two long ones among many are a disturbance.
        assert!(!judge(&[&[110.0; 50][..], &[700.0, 800.0]].concat()).two());
        // A processor that changes its frequency has no gap.
        let slower: Vec<f64> = (0..40).map(|n| 100.0 + 10.0 * f64::from(n)).collect();
        assert!(!judge(&slower).two());
        assert!(judge(&[]).seen(0, false, false).is_empty());
    }

    #[test]
    fn what_was_near_is_far_after_a_much_shorter_flag() {
        let mut judge = judge(&[500.0, 505.0, 510.0]);
        assert_eq!((judge.burst(500.0, 510.0), judge.see(480.0)), (Class::Near, None));
        assert_eq!(judge.see(110.0), Some(Class::Far));
        assert_eq!(judge.burst(500.0, 510.0), Class::Far);
        // Between the two it belongs to neither.
        assert_eq!(super::tests::judge(&[200.0, 200.0]).see(120.0), Some(Class::Mixed));
        // An interrupted run goes on with what it knew.
        let mut again = Judge::default();
        again.recall(&[seen(Distance::One, 110.0)]);
        assert_eq!((again.burst(500.0, 510.0), again.count()), (Class::Far, 10));
    }

    #[test]
    fn mixed_bursts_count_only_where_there_is_one_placement() {
        let burst = Burst::new(Test::Rtt, Mode::Spin, 32, 1);
        let mut sorted = Sorted::new();
        for (number, (class, ns)) in (0..).zip([(Class::Near, 100), (Class::Mixed, 300), (Class::Far, 500)]) {
            sorted.of(class).add(number, &burst, &crate::sample::outcome(ns * 1000));
        }
        let rounds = |series: Series| {
            let figures = series.figures(&burst);
            (figures.rounds_ns, figures.rounds, figures.operations)
        };
        assert_eq!(rounds(sorted.whole(false)), (vec![100.0, 300.0, 500.0], vec![], 3));
        assert_eq!(rounds(sorted.whole(true)), (vec![100.0, 500.0], vec![0, 2], 2));
        assert_eq!((sorted.near.rounds(), sorted.operations()), (1, 3));
        sorted.rename_near(Class::Far);
        assert_eq!((sorted.near.rounds(), rounds(sorted.far)), (0, (vec![100.0, 500.0], vec![0, 2], 2)));
    }

    fn seen(placement: Distance, flag_ns: f64) -> Seen {
        Seen { placement, flag_ns, probes: 10 }
    }

    /// Figures of these rounds of a group.
    fn some(rounds: &[(u32, f64)]) -> Figures {
        let (numbers, ns): (Vec<u32>, Vec<f64>) = rounds.iter().copied().unzip();
        Figures { rounds: numbers, ..figures(&ns) }
    }

    /// A row that took this long in its near and in its far rounds.
    fn both(name: &str, near: f64, far: f64) -> Row {
        let rounds = |first: u32, ns: f64| -> Vec<(u32, f64)> {
            (first..first + 6).map(|n| (n, ns * (1.0 + 0.002 * f64::from(n % 3)))).collect()
        };
        let (near, far) = (rounds(0, near), rounds(6, far));
        let apart = [(Distance::Near, some(&near)), (Distance::Far, some(&far))];
        let apart = apart.map(|(placement, figures)| Apart { placement, figures }).into();
        Row { apart, ..row("rtt-spin", name, some(&[near, far].concat())) }
    }

    /// A run of these rows that saw both placements.
    fn two(rows: Vec<Row>) -> Report {
        let mut report = report(rows);
        report.placement = Some(Placements::default());
        report.groups[0].placements = vec![seen(Distance::Near, 110.0), seen(Distance::Far, 500.0)];
        name(&mut report);
        report
    }

    /// One that saw one, in which the flag took this long.
    fn one(rows: Vec<Row>, flag_ns: f64) -> Report {
        let mut report = report(rows);
        report.placement = Some(Placements::default());
        report.groups[0].placements = vec![seen(Distance::One, flag_ns)];
        name(&mut report);
        report
    }

    fn usual() -> Report {
        two(vec![both("ring", 108.0, 525.0), both("raw-flag", 110.0, 500.0)])
    }

    #[test]
    fn placements_are_named_by_the_whole_run() {
        let run = usual();
        let named: Vec<_> = super::seen(&run).iter().map(|seen| (seen.placement, seen.flag_ns)).collect();
        assert_eq!(named, [(Distance::Near, 110.0), (Distance::Far, 500.0)]);
        // Two groups, each of which saw one only.
        let mut run = report(vec![row("a", "ring", figures(&[1.0; 5])), row("b", "ring", figures(&[5.0; 5]))]);
        run.placement = Some(Placements::default());
        for (group, flag_ns) in run.groups.iter_mut().zip([510.0, 108.0]) {
            group.placements = vec![seen(Distance::One, flag_ns)];
        }
        name(&mut run);
        let of = |at: usize| run.groups[at].placements[0].placement;
        assert_eq!((of(0), of(1)), (Distance::Far, Distance::Near));
        assert_eq!(
            one(vec![row("a", "ring", figures(&[1.0; 5]))], 500.0).groups[0].placements[0].placement,
            Distance::One
        );
    }

    #[test]
    fn a_view_has_the_rows_of_its_placement() {
        let mut run = usual();
        // Not measured while far; failed; measured without the flag.
        run.rows[0].apart.truncate(1);
        run.rows.push(Row::failed("rtt-spin", run.rows[0].about.clone(), "it crashed".into()));
        let idle = report(vec![row("idle", "ring", figures(&[1e9; 5]))]);
        run.groups.extend(idle.groups);
        run.rows.extend(idle.rows);
        let views = views(&run);
        let ids = |at: usize| views[at].rows.iter().map(|row| row.about.name.as_str()).collect::<Vec<_>>();
        assert_eq!(
            (ids(0), ids(1), ids(2)),
            (vec!["ring", "raw-flag", "ring"], vec!["raw-flag", "ring"], vec!["ring"])
        );
        assert_eq!(views[1].rows[0].figures.as_ref().map(|figures| figures.rounds.clone()), Some((6..12).collect()));
        assert_eq!(views[2].groups[0].id, "idle");
        let judged = judged(&run).expect("two placements");
        assert!(judged.iter().all(|view| view.groups.len() == 2));
        assert!(super::judged(&one(vec![row("a", "ring", figures(&[1.0; 5]))], 500.0)).is_none());
    }

    fn ring_bars(run: &Report) -> Vec<(Option<Distance>, Option<bool>, String)> {
        let bars =
            bars(run).into_iter().filter(|bar| bar.what.contains("round trip, 32 B") && bar.bar.contains("raw-flag"));
        bars.filter(|bar| bar.what.starts_with("ring")).map(|bar| (bar.placement, bar.met, bar.bar)).collect()
    }

    #[test]
    fn bars_are_judged_in_each_placement_by_the_limit_that_it_has() {
        let (near, far) = (Some(Distance::Near), Some(Distance::Far));
        let is = |bar: &str| bar.to_owned();
        // 0.98 and 1.05 times as long.
        let expected = [(near, Some(true), is("≤ 1.00 × raw-flag")), (far, Some(true), is("≤ 1.08 × raw-flag"))];
        assert_eq!(ring_bars(&usual()), expected);
        let slower = two(vec![both("ring", 113.0, 560.0), both("raw-flag", 110.0, 500.0)]);
        assert_eq!(ring_bars(&slower).iter().map(|(_, met, _)| *met).collect::<Vec<_>>(), [Some(false); 2]);
        // Too few rounds of one of them: only the other is judged.
        let mut few = usual();
        few.rows[0].apart[1].figures.rounds_ns.truncate(2);
        few.rows[0].apart[1].figures.rounds.truncate(2);
        assert_eq!(ring_bars(&few), expected[..1]);
        // What depends on no placement is judged once, by all of the run.
        let mut counted = usual();
        for row in &mut counted.rows {
            row.figures.as_mut().expect("figures").syscalls = Some([0.0, 0.0]);
        }
        let calls = bars(&counted).into_iter().filter(|bar| bar.what.contains("system calls"));
        assert_eq!(calls.map(|bar| bar.placement).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn one_placement_is_judged_by_both_limits() {
        let with = |ring: f64| {
            let rows = [("ring", ring), ("raw-flag", 100.0)].map(|(name, ns)| row("rtt-spin", name, figures(&[ns; 5])));
            let bars = ring_bars(&one(rows.into(), 100.0));
            assert_eq!((bars.len(), bars[0].0, bars[0].2.as_str()), (1, None, "≤ 1.00 × raw-flag near, 1.08 far"));
            bars[0].1
        };
        assert_eq!((with(99.0), with(105.0), with(110.0)), (Some(true), None, Some(false)));
    }

    #[test]
    fn like_is_compared_with_like() {
        let old = usual();
        let same = compare(&old, &usual());
        assert!(!same.got_worse() && same.faster.is_empty() && same.warnings.is_empty(), "{same:?}");
        assert_eq!((same.same, same.floors.len()), (2, 2));
        // Slower while far only.
        let slower = compare(&old, &two(vec![both("ring", 108.0, 700.0), both("raw-flag", 110.0, 500.0)]));
        assert_eq!((slower.slower.len(), slower.slower[0].placement, slower.same), (1, Some(Distance::Far), 1));
        assert!(slower.text(140).contains("rtt-spin/ring (far)"), "{}", slower.text(140));

        // A run that was far all the time has nothing to do with what was near.
        let far: Vec<f64> = (0..6).map(|n| 525.0 * (1.0 + 0.002 * f64::from(n % 3))).collect();
        let all_far = one(vec![row("rtt-spin", "ring", figures(&far))], 505.0);
        let found = compare(&old, &all_far);
        assert!(!found.got_worse() && found.same == 1, "{found:?}");
        assert!(
            found
                .warnings
                .iter()
                .any(|warning| warning.starts_with("near, with a raw flag of 110 ns, was seen only before"))
        );
        let near = one(vec![row("rtt-spin", "ring", figures(&[108.0; 6]))], 110.0);
        let found = compare(&near, &all_far);
        assert!(!found.got_worse() && found.same == 0 && found.warnings.len() == 2, "{found:?}");
        // Too few rounds to tell.
        let mut few = usual();
        few.rows[0].apart[1].figures.rounds_ns.truncate(2);
        assert_eq!(compare(&old, &few).elsewhere, 1);
    }

    #[test]
    fn an_earlier_report_is_compared_as_one() {
        let mut old = usual();
        let mut text = serde_json::to_value(&old).expect("JSON");
        text.as_object_mut().expect("an object").remove("placement");
        for part in ["groups", "rows"] {
            for one in text[part].as_array_mut().expect("a list") {
                let one = one.as_object_mut().expect("an object");
                for field in ["placements", "apart", "mixed"] {
                    one.remove(field);
                }
                if let Some(figures) = one.get_mut("figures").and_then(|figures| figures.as_object_mut()) {
                    figures.remove("rounds");
                }
            }
        }
        old = serde_json::from_value(text).expect("a report without placements");
        assert!(old.placement.is_none() && said(&old).is_none() && views(&old).len() == 1);
        let found = compare(&old, &usual());
        assert!(!found.got_worse() && found.same == 1, "{found:?}");
        assert!(found.warnings[0].contains("compared as a whole"), "{found:?}");
    }

    #[test]
    fn what_never_was_clean_says_so_and_is_no_change() {
        let old = usual();
        let mut new = usual();
        let failed = Row::failed("rtt-spin", new.rows[0].about.clone(), never_clean(7));
        new.rows[0] = Row { mixed: 7, ..failed };
        assert!(!compare(&old, &new).got_worse());
        let text = crate::text::text(&new, 120);
        assert!(text.contains("no clean burst in 7 rounds"), "{text}");
    }

    #[test]
    fn tables_and_page_tell_both_apart() {
        let mut run = usual();
        run.bars = bars(&run);
        let text = crate::text::text(&run, 120);
        for part in [
            "near, raw flag 110 ns (10 probes); far, raw flag 500 ns (10 probes)",
            "· near (raw flag 110 ns)",
            "· far (raw flag 500 ns)",
            "rounds",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        let bar =
            |line: &str| line.starts_with("  met") && line.contains("  far  ") && line.contains("≤ 1.08 × raw-flag");
        assert!(text.lines().any(bar), "{text}");
        let page = crate::page::html(&run);
        for part in
            ["<h3 class=\"placement\">Near (raw flag 110 ns)</h3>", "data-placement=\"far\"", "both polling (far)"]
        {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("<table class=\"figures\">").count(), 2);

        let alone = one(vec![row("rtt-spin", "ring", figures(&[108.0; 5]))], 500.0);
        let text = crate::text::text(&alone, 120);
        assert!(text.contains("one placement, raw flag 500 ns") && !text.contains("rounds  "), "{text}");
        assert!(!crate::page::html(&alone).contains("data-placement="));
        let mut unpinned = alone;
        unpinned.placement = Some(Placements { none: none([None, None]).map(str::to_owned), ..Placements::default() });
        assert!(crate::text::text(&unpinned, 120).contains("not pinned"));
        assert!(
            none([Some(1), Some(1)]).is_some_and(|why| why.contains("one processor"))
                && none([Some(0), Some(1)]).is_none()
        );
    }
}
