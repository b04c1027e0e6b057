//! Two runs side by side: what got slower, what got faster, and what is noise.
//!
//! A row is compared by the medians of its rounds. Where its group has a floor that both runs measured, every round is
//! first divided by the floor's time in that round, because the machine drifts from one run to the next and takes the
//! floor with it. A change counts when all three hold:
//!
//! 1. the 99.9 % bootstrap interval of the ratio of the two medians (rounds drawn with replacement, from each run its
//!    own) does not contain 1;
//! 2. the change is larger than the spreads of both runs together, half the distance between the quartiles each;
//! 3. it is at least [`LEAST`]: where the memory of a run happens to lie is the same in all its rounds, so that no
//!    interval over them sees it.
//!
//! Like is compared with like: the rounds of a placement with those of the placement in which the raw flag took as long. Where
//! one of the two runs was written before placements were told apart, both are compared as a whole.

use crate::Result;
use crate::bars::median;
use crate::placement;
use crate::report::{Distance, Figures, Group, Report, Row, SCHEMA, Seen};
use crate::stats::{ratios, spread};
use crate::text::{duration, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;
use std::path::Path;

/// The smallest change that counts.
pub const LEAST: f64 = 0.05;
/// Draws of the bootstrap.
const DRAWS: usize = 4000;
/// Of the draws, what lies outside of the interval at each end.
const OUTSIDE: f64 = 0.0005;

/// How one row's time changed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// `group/mechanism`.
    pub id: String,
    /// Of the run now, where it has two placements.
    pub placement: Option<Distance>,
    /// Medians of the rounds' medians in ns: before, now.
    pub ns: [f64; 2],
    /// Now divided by before, as measured.
    pub plain: f64,
    /// The same after dividing by the floor, and the floor's name.
    pub to_floor: Option<(f64, String)>,
    /// The 99.9 % interval of the ratio that counts: the one to the floor, if there is one.
    pub interval: [f64; 2],
    /// The spreads of both runs together: no smaller change counts.
    pub noise: f64,
}

impl Change {
    /// The ratio that counts.
    pub fn ratio(&self) -> f64 {
        self.to_floor.as_ref().map_or(self.plain, |(ratio, _)| *ratio)
    }

    /// The row, and its placement where there are two.
    fn name(&self) -> String {
        let placement = self.placement.map_or(String::new(), |placement| format!(" ({})", placement.name()));
        format!("{}{placement}", self.id)
    }

    fn counts(&self) -> bool {
        let [low, high] = self.interval;
        let size = self.ratio().max(1.0 / self.ratio()) - 1.0;
        (low > 1.0 || high < 1.0) && size > self.noise && size >= LEAST
    }
}

/// A run against an earlier one.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Comparison {
    /// Why the two may not be comparable at all.
    pub warnings: Vec<String>,
    /// What takes longer now, the worst first.
    pub slower: Vec<Change>,
    /// What takes less time now, the best first.
    pub faster: Vec<Change>,
    /// What had figures and has none now: the row and why.
    pub broken: Vec<(String, String)>,
    /// How many rows changed by no more than the noise.
    pub same: usize,
    /// Floors, which are the machine's and no row's fault: name of the row, and now divided by before.
    pub floors: Vec<(String, f64)>,
    /// Rows that only one of them has: earlier, now.
    pub only: [Vec<String>; 2],
    /// How many rows both have, but with too few rounds in the same placement.
    pub elsewhere: usize,
}

/// A report that was written by `--json`.
///
/// # Errors
/// It cannot be read, is no such report, or one of another schema.
pub fn read_report(path: &Path) -> Result<Report> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{shown} is not JSON: {error}"))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        None => Err(format!("{shown} is not a report of `ramway bench --json`: it has no `schema`").into()),
        Some(schema) if schema != u64::from(SCHEMA) => {
            Err(format!("{shown} has schema {schema}, this version reads {SCHEMA}: measure it again").into())
        }
        Some(_) => serde_json::from_value(value).map_err(|error| format!("{shown} is damaged: {error}").into()),
    }
}

/// Compares `new` with `old`.
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let mut comparison = Comparison { warnings: warnings(old, new), ..Comparison::default() };
    let [was, is] = [placement::seen(old), placement::seen(new)];
    if was.is_empty() || is.is_empty() {
        comparison.add(old, new, false);
    } else {
        let views = [placement::views(old), placement::views(new)];
        let alike = placement::alike(was, is);
        for &(before, now) in &alike {
            comparison.add(&views[0][before], &views[1][now], true);
        }
        comparison.add(&placement::without(old), &placement::without(new), false);
        comparison.warnings.extend(alone(was, &alike, 0).chain(alone(is, &alike, 1)));
    }
    for row in &new.rows {
        match old.rows.iter().find(|before| before.id == row.id) {
            None => comparison.only[1].push(row.id.clone()),
            // What never had a clean burst is no worse than before.
            Some(before) if before.figures.is_some() && row.figures.is_none() && row.mixed == 0 => {
                let why = row.failure.clone().unwrap_or_else(|| "no figures".into());
                comparison.broken.push((row.id.clone(), why));
            }
            // Failed before: nothing to compare with.
            Some(before) if before.figures.is_none() => comparison.same += usize::from(row.figures.is_none()),
            Some(_) => {}
        }
    }
    let gone = old.rows.iter().filter(|before| new.rows.iter().all(|row| row.id != before.id));
    comparison.only[0] = gone.map(|row| row.id.clone()).collect();
    comparison.slower.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    comparison.faster.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    comparison
}

/// The placements of one run that the other one has not.
fn alone<'a>(seen: &'a [Seen], alike: &'a [(usize, usize)], side: usize) -> impl Iterator<Item = String> + 'a {
    let paired = move |at: usize| alike.iter().any(|&(before, now)| [before, now][side] == at);
    seen.iter().enumerate().filter(move |(at, _)| !paired(*at)).map(move |(_, seen)| {
        let (name, flag, when) = (seen.placement.name(), duration(seen.flag_ns), ["before", "now"][side]);
        format!("{name}, with a raw flag of {flag}, was seen only {when}: what was measured there is not compared")
    })
}

impl Comparison {
    /// Adds the rows of two runs that had the same placement, or of two that nobody knows it of.
    fn add(&mut self, old: &Report, new: &Report, placed: bool) {
        let placement = placement::of_two(new).map(|seen| seen.placement);
        for row in &new.rows {
            let Some(before) = old.rows.iter().find(|before| before.id == row.id) else { continue };
            let (Some(was), Some(is)) = (&before.figures, &row.figures) else { continue };
            let floors = [floor(old, before), floor(new, row)];
            let is_floor = group(new, row).and_then(|group| group.floor.as_ref()) == Some(&row.about.name);
            if placed && group(new, row).is_none_or(|group| group.placements.is_empty()) {
                continue;
            }
            // A handful of rounds has no interval.
            let few = |figures: &Figures| figures.rounds_ns.len() < placement::ROUNDS;
            if placed && (few(was) || few(is)) {
                self.elsewhere += 1;
                continue;
            }
            let Some(change) = change(&row.id, placement, [was, is], floors) else { continue };
            match (is_floor, change.counts()) {
                (true, _) => self.floors.push((change.name(), change.plain)),
                (false, false) => self.same += 1,
                (false, true) if change.ratio() > 1.0 => self.slower.push(change),
                (false, true) => self.faster.push(change),
            }
        }
    }
}

fn warnings(old: &Report, new: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differs = |what: &str, before: String, now: String| {
        if before != now {
            warnings.push(format!("{what} differs: {before} before, {now} now"));
        }
    };
    differs("the processor", old.machine.cpu.clone(), new.machine.cpu.clone());
    differs("the number of processors", old.machine.cpus.to_string(), new.machine.cpus.to_string());
    differs("the kernel", old.machine.kernel.clone(), new.machine.kernel.clone());
    differs("the plan", old.settings.plan.clone(), new.settings.plan.clone());
    let pinned = |report: &Report| {
        let [a, b] = report.settings.cpus.map(|cpu| cpu.map_or("any".to_owned(), |cpu| cpu.to_string()));
        format!("processors {a} and {b}")
    };
    differs("the pinning", pinned(old), pinned(new));
    let realtime = |report: &Report| if report.settings.realtime { "SCHED_FIFO" } else { "the usual" }.to_owned();
    differs("the scheduling", realtime(old), realtime(new));
    if old.placement.is_some() != new.placement.is_some() {
        let which = if old.placement.is_none() { "the earlier run" } else { "the run now" };
        warnings.push(format!("{which} was written before placements were told apart: both are compared as a whole"));
    }
    warnings
}

fn group<'a>(report: &'a Report, row: &Row) -> Option<&'a Group> {
    report.groups.iter().find(|group| group.id == row.group)
}

/// The floor of a row's group, unless it is the row itself.
fn floor<'a>(report: &'a Report, row: &Row) -> Option<(&'a str, &'a Figures)> {
    let name = group(report, row)?.floor.as_deref()?;
    let floor = report.rows.iter().find(|other| other.group == row.group && other.about.name == name)?;
    (row.about.name != name).then_some((name, floor.figures.as_ref()?))
}

fn change(
    id: &str,
    placement: Option<Distance>,
    figures: [&Figures; 2],
    floors: [Option<(&str, &Figures)>; 2],
) -> Option<Change> {
    let ns = [median(&figures[0].rounds_ns)?, median(&figures[1].rounds_ns)?];
    let both = match floors {
        [Some((name, before)), Some((now_name, now))] if name == now_name => {
            let divided =
                [(figures[0], before), (figures[1], now)].map(|(row, floor)| ratios(row.by_round(), floor.by_round()));
            let least = if placement.is_some() { placement::ROUNDS } else { 2 };
            divided.iter().all(|rounds| rounds.len() >= least).then(|| (name.to_owned(), divided))
        }
        _ => None,
    };
    let (rounds, floor) = match both {
        Some((name, divided)) => (divided, Some(name)),
        None => ([figures[0].rounds_ns.clone(), figures[1].rounds_ns.clone()], None),
    };
    let ratio = median(&rounds[1])? / median(&rounds[0])?;
    Some(Change {
        id: id.into(),
        placement,
        ns,
        plain: ns[1] / ns[0],
        to_floor: floor.map(|name| (ratio, name)),
        interval: interval(&rounds)?,
        noise: spread(&rounds[0]) + spread(&rounds[1]),
    })
    .filter(|change| change.ratio().is_finite() && change.ratio() > 0.0)
}

/// The bootstrap interval of the ratio of the medians.
fn interval(rounds: &[Vec<f64>; 2]) -> Option<[f64; 2]> {
    // A fixed start: the same two files always give the same answer.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut drawn = |from: &[f64]| {
        let draw = (0..from.len()).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from[(state >> 33) as usize % from.len()]
        });
        median(&draw.collect::<Vec<_>>())
    };
    let mut ratios = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let before = drawn(&rounds[0])?;
        ratios.push(drawn(&rounds[1])? / before);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let outside = (DRAWS as f64 * OUTSIDE) as usize;
    Some([ratios[outside], ratios[DRAWS - 1 - outside]])
}

impl Comparison {
    /// Whether something takes longer or fails now.
    pub fn got_worse(&self) -> bool {
        !self.slower.is_empty() || !self.broken.is_empty()
    }

    /// In lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let width = width.max(40);
        let mut out = String::new();
        // A write to a string does not fail.
        let _ = self.write(&mut out, width);
        out
    }

    fn write(&self, out: &mut String, width: usize) -> std::fmt::Result {
        for warning in &self.warnings {
            writeln!(out, "{}", wrapped(&format!("warning: {warning}"), width))?;
        }
        for (title, changes) in [("Slower than before", &self.slower), ("Faster than before", &self.faster)] {
            if !changes.is_empty() {
                writeln!(out, "{title}")?;
                write_changes(out, changes, width)?;
            }
        }
        for (id, why) in &self.broken {
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(out, "{}", wrapped(&format!("fails now: {id}: {why}"), width))?;
        }
        if !self.floors.is_empty() {
            let moved = self.floors.iter().map(|(id, ratio)| format!("{id} {}", percent(*ratio)));
            let line = format!("The machine, by its floors: {}", moved.collect::<Vec<_>>().join(", "));
            writeln!(out, "{}", wrapped(&line, width))?;
        }
        let changed = self.slower.len() + self.faster.len();
        writeln!(out, "{changed} rows changed by more than the noise, {} did not", self.same)?;
        if self.elsewhere > 0 {
            let line =
                format!("{} rows were measured in the same placement too few times to be compared", self.elsewhere);
            writeln!(out, "{}", wrapped(&line, width))?;
        }
        for (ids, when) in self.only.iter().zip(["before", "now"]) {
            if !ids.is_empty() {
                writeln!(out, "{}", wrapped(&format!("Only measured {when}: {}", ids.join(", ")), width))?;
            }
        }
        Ok(())
    }
}

fn write_changes(out: &mut String, changes: &[Change], width: usize) -> std::fmt::Result {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.min(usize::from(u16::MAX)) as u16);
    table.set_header(["  row", "before", "now", "change", "to the floor", "99.9 % interval", "noise"]);
    for change in changes {
        let [before, now] = change.ns.map(duration);
        let floor = change.to_floor.as_ref().map_or("-".into(), |(ratio, name)| format!("{} {name}", percent(*ratio)));
        let [low, high] = change.interval.map(percent);
        let noise = format!("±{:.1} %", change.noise * 100.0);
        let id = format!("  {}", change.name());
        table.add_row([id, before, now, percent(change.plain), floor, format!("{low} … {high}"), noise]);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if at == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{figures, report, row};

    /// Rounds around `middle`, `noise` of it up and down.
    fn rounds(middle: f64, noise: f64) -> Vec<f64> {
        (0..12).map(|n| middle * (1.0 + noise * f64::from(n * 5 % 12 - 6) / 6.0)).collect()
    }

    fn run(ring: &[f64], flag: &[f64]) -> Report {
        report(vec![row("rtt-spin", "ring", figures(ring)), row("rtt-spin", "raw-flag", figures(flag))])
    }

    #[test]
    fn what_exceeds_the_noise_counts() {
        let flag = rounds(100.0, 0.01);
        let old = run(&rounds(110.0, 0.02), &flag);
        let slower = compare(&old, &run(&rounds(130.0, 0.02), &flag));
        assert_eq!(slower.slower.len(), 1);
        assert!(slower.got_worse() && slower.faster.is_empty() && slower.floors.len() == 1);
        let text = slower.text(120);
        assert!(text.contains("Slower than before") && text.contains("rtt-spin/ring"), "{text}");
        assert!(text.contains("+18.2 %") && text.contains("raw-flag"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");

        let faster = compare(&old, &run(&rounds(90.0, 0.02), &flag));
        assert!(!faster.got_worse() && faster.faster.len() == 1);
    }

    #[test]
    fn what_does_not_is_the_same() {
        let flag = rounds(100.0, 0.01);
        let old = run(&rounds(110.0, 0.02), &flag);
        for ring in [rounds(110.0, 0.02), rounds(113.0, 0.02), rounds(130.0, 0.6)] {
            let found = compare(&old, &run(&ring, &flag));
            assert!(!found.got_worse() && found.faster.is_empty() && found.same == 1, "{found:?}");
        }
    }

    #[test]
    fn a_machine_that_is_slower_altogether_is_no_fault_of_a_row() {
        let old = run(&rounds(110.0, 0.02), &rounds(100.0, 0.01));
        let found = compare(&old, &run(&rounds(220.0, 0.02), &rounds(200.0, 0.01)));
        assert!(!found.got_worse() && found.same == 1);
        assert!(found.text(120).contains("rtt-spin/raw-flag +100.0 %"));
        // Without the floor there is nothing to blame but the row.
        let alone = |ns| report(vec![row("rtt-spin", "ring", figures(&rounds(ns, 0.02)))]);
        assert!(compare(&alone(110.0), &alone(220.0)).got_worse());
    }

    #[test]
    fn rows_come_go_and_break() {
        let old = run(&rounds(110.0, 0.02), &rounds(100.0, 0.01));
        let mut new = old.clone();
        new.rows[0].figures = None;
        new.rows[0].failure = Some("killed by signal 11".into());
        new.rows[1].id = "rtt-spin/other".into();
        new.machine.cpu = "another".into();
        let found = compare(&old, &new);
        assert!(found.got_worse());
        let text = found.text(80);
        for part in ["fails now: rtt-spin/ring: killed by signal 11", "warning: the processor differs"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(found.only, [vec!["rtt-spin/raw-flag".to_owned()], vec!["rtt-spin/other".to_owned()]]);
    }

    #[test]
    fn files_that_are_no_reports_say_so() {
        let path = std::env::temp_dir().join(format!("ramway-bench-compare-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            read_report(&path)
        };
        let told = |text: &str| read(text).expect_err("no report").to_string();
        assert!(told("{").contains("is not JSON"));
        assert!(told("[]").contains("no `schema`"));
        assert!(told(r#"{"schema": 99}"#).contains("has schema 99"));
        assert!(told(r#"{"schema": 1}"#).contains("is damaged"));
        let report = run(&rounds(110.0, 0.02), &rounds(100.0, 0.01));
        assert_eq!(read(&serde_json::to_string(&report).expect("JSON")).expect("a report").rows.len(), 2);
        std::fs::remove_file(&path).expect("removed");
        assert!(read_report(&path).expect_err("no file").to_string().contains("cannot read"));
    }
}
