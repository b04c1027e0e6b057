//! Of made-up flags, rows and reports; what a real group makes of flags is in `tests/runs.rs`.

use super::*;
use crate::bars::bars;
use crate::compare::compare;
use crate::report::{Apart, Figures, Placements, Row};
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
    // So are 67 among 6,699, in runs of 20: a machine whose processors were far all the time, and taken away now and then.
    assert!(!judge(&[&[363.0; 6632][..], &[1574.0; 67]].concat()).two());
    assert!(judge(&[&[110.0; 95][..], &[500.0; 5]].concat()).two());
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
    assert_eq!(self::judge(&[200.0, 200.0]).see(100.0), Some(Class::Mixed));
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
    assert_eq!(one(vec![row("a", "ring", figures(&[1.0; 5]))], 500.0).groups[0].placements[0].placement, Distance::One);
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
    assert_eq!((ids(0), ids(1), ids(2)), (vec!["ring", "raw-flag", "ring"], vec!["raw-flag", "ring"], vec!["ring"]));
    assert_eq!(views[1].rows[0].figures.as_ref().map(|figures| figures.rounds.clone()), Some((6..12).collect()));
    assert_eq!(views[2].groups[0].id, "idle");
    let judged = judged(&run).expect("two placements");
    assert!(judged.iter().all(|view| view.groups.len() == 2));
    assert!(super::judged(&one(vec![row("a", "ring", figures(&[1.0; 5]))], 500.0)).is_none());
}

#[test]
fn a_bar_for_near_is_not_one_for_far() {
    let soon = |run: &Report| {
        let bar = bars(run).into_iter().filter(|bar| bar.bar == "≤ 120 ns");
        bar.map(|bar| (bar.placement, bar.met)).collect::<Vec<_>>()
    };
    let mut run = usual();
    run.groups[0].id = "paced-50us".into();
    run.rows.iter_mut().for_each(|row| row.group = "paced-50us".into());
    assert_eq!(soon(&run), [(Some(Distance::Near), Some(true))]);
    let with = |ns: f64| soon(&one(vec![row("paced-50us", "ring", figures(&[ns; 5]))], ns));
    assert_eq!((with(108.0), with(250.0)), (vec![(None, Some(true))], vec![(None, None)]));
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
    let bar = |line: &str| line.starts_with("  met") && line.contains("  far  ") && line.contains("≤ 1.08 × raw-flag");
    assert!(text.lines().any(bar), "{text}");
    let page = crate::page::html(&run);
    for part in ["<h3 class=\"placement\">Near (raw flag 110 ns)</h3>", "data-placement=\"far\"", "both polling (far)"]
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
        none([Some(1), Some(1)]).is_some_and(|why| why.contains("one processor")) && none([Some(0), Some(1)]).is_none()
    );
}
