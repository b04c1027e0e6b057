//! A report as one of each placement, for all that reads one.

use super::{APART, REPEATS};
use crate::report::{Distance, Group, Placements, Report, Row, Seen};
use std::borrow::Cow;

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
