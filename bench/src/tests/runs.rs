//! Whole runs: what is kept, what is counted.

use super::{alone, directory};
use crate::pair::Pair;
use crate::plan::GroupPlan;
use crate::run::run_groups;
use crate::*;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn groups(ids: &[&str], names: &[&str]) -> Vec<GroupPlan> {
    let mut groups = plan::groups(Plan::Quick);
    groups.retain(|plan| ids.contains(&plan.group.id.as_str()));
    for plan in &mut groups {
        plan.candidates.retain(|candidate| names.contains(&candidate.mechanism.as_str()));
        plan.budget = Duration::from_millis(50);
    }
    assert_eq!(groups.len(), ids.len());
    groups
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let _alone = alone();
    let place = directory("resume");
    let state = place.join("state.json");
    let groups = || groups(&["rtt-spin", "one-way-32-each"], &["ring", "pipe"]);
    let mut options = Options::quick();
    options.state = Some(state.clone());
    let interrupted = options.interrupted.clone();
    let mut interrupt = |progress: &Progress| {
        if progress.label.starts_with("one-way-32-each") {
            interrupted.store(true, Ordering::Relaxed);
        }
    };
    let error = run_groups(&options, groups(), &mut interrupt).expect_err("interrupted");
    assert!(error.to_string().contains("interrupted"), "{error}");
    options.interrupted.store(false, Ordering::Relaxed);
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&state).expect("kept")).expect("JSON");
    let first = &kept["finished"][0];
    assert_eq!((first["group"]["id"].as_str(), kept["finished"].as_array().map(Vec::len)), (Some("rtt-spin"), Some(1)));

    // Not with other settings, and the old run is left as it was.
    let mut other = options.clone();
    other.plan = Plan::Full;
    let error = run_groups(&other, groups(), &mut |_| {}).expect_err("another plan").to_string();
    assert!(error.contains("plan was \"quick\", not \"full\"") && error.contains("state.json"), "{error}");
    let mut other = options.clone();
    other.placement = Placement::Unpinned;
    let error = run_groups(&other, groups(), &mut |_| {}).expect_err("another placement").to_string();
    assert!(error.contains("processors was") && error.contains("not \"any,any\""), "{error}");

    let mut labels = Vec::new();
    let report = run_groups(&options, groups(), &mut |progress| labels.push(progress.label.clone())).expect("the rest");
    assert!(!labels.iter().any(|label| label.starts_with("rtt-spin")), "{labels:?}");
    assert_eq!(report.groups.len(), 2);
    let rounds = |value: &serde_json::Value| value["figures"]["rounds_ns"].clone();
    let again = serde_json::to_value(&report.rows[0]).expect("JSON");
    assert_eq!(rounds(&again), rounds(&first["rows"][0]));
    assert!(report.rows.iter().all(|row| row.failure.is_none()), "{:?}", report.rows);
    assert!(!state.exists(), "a complete run leaves no state");

    std::fs::write(&state, "not a state").expect("write");
    let error = run_groups(&options, groups(), &mut |_| {}).expect_err("no state").to_string();
    assert!(error.contains("no state of a run"), "{error}");
    std::fs::remove_dir_all(place).expect("remove");
}

#[test]
fn figures_are_complete_and_are_json() {
    let _alone = alone();
    let report = run_groups(&Options::quick(), groups(&["rtt-spin"], &["raw-flag", "ring"]), &mut |_| {}).expect("run");
    let json = serde_json::to_string(&report).expect("JSON");
    let back: Report = serde_json::from_str(&json).expect("the same report");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), json);
    let ring = report.rows.iter().find(|row| row.about.name == "ring").and_then(|row| row.figures.as_ref());
    let ring = ring.expect("figures");
    assert!(ring.ratio_to_floor.is_some_and(|ratio| ratio > 0.0));
    assert!(report.groups[0].rounds >= 5 && report.seconds > 0.0);
    every_round_is_somewhere(&report);
    assert!(ring.curve.len() <= 120 && ring.curve.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1));
    assert!(ring.ns.min <= ring.ns.p50 && ring.ns.p50 <= ring.ns.max && ring.ns.mean > 0.0);
    assert!(ring.cpu_percent.iter().all(|&percent| percent > 0.0));
    assert!(ring.peak_rss.iter().zip(ring.shared).all(|(&all, shared)| all > shared && shared > 0));
    // A ring that polls allocates nothing, in either process. It asks the kernel for nothing either, but that a side gives its
    // processor away when the other one has lost its own: how often is the machine's. `a_pipe_costs_a_call_for_each_message` has
    // what is counted.
    assert_eq!(ring.allocations, Some([0.0; 2]));
    if let Some(calls) = ring.syscalls {
        assert!(calls.iter().all(|&calls| calls >= 0.0 && calls.is_finite()), "{calls:?}");
    }
}

/// Each round of each row is in its figures, or was mixed; and where there are two placements, in one of them.
fn every_round_is_somewhere(report: &Report) {
    for row in &report.rows {
        let group = report.groups.iter().find(|group| group.id == row.group).expect("its group");
        let figures = row.figures.as_ref().expect("figures");
        assert_eq!(figures.rounds_ns.len() + row.mixed as usize, group.rounds as usize, "{row:?}");
        assert_eq!(figures.by_round().count(), figures.rounds_ns.len());
        if group.placements.len() > 1 {
            let apart: usize = row.apart.iter().map(|apart| apart.figures.rounds_ns.len()).sum();
            assert_eq!(apart, figures.rounds_ns.len(), "{row:?}");
        } else {
            assert!(row.apart.is_empty());
        }
    }
}

#[test]
fn a_run_says_where_its_processors_were() {
    let _alone = alone();
    let groups = || groups(&["rtt-spin"], &["raw-flag", "ring"]);
    let report = run_groups(&Options::quick(), groups(), &mut |_| {}).expect("run");
    let placement = report.placement.as_ref().expect("it looked");
    if machine::allowed().len() > 1 {
        assert!(placement.none.is_none() && !report.groups[0].placements.is_empty(), "{placement:?}");
        assert!(placement.seen.iter().all(|seen| seen.flag_ns > 0.0 && seen.probes > 0), "{placement:?}");
    } else {
        assert!(placement.none.as_ref().is_some_and(|why| why.contains("one processor")), "{placement:?}");
    }
    every_round_is_somewhere(&report);
    let mut options = Options::quick();
    options.placement = Placement::Unpinned;
    let report = run_groups(&options, groups(), &mut |_| {}).expect("run");
    let placement = report.placement.as_ref().expect("it says why not");
    assert!(placement.seen.is_empty() && placement.none.as_ref().is_some_and(|why| why.contains("not pinned")));
    assert!(report.groups[0].placements.is_empty());
    every_round_is_somewhere(&report);
}

/// A group that is really measured, between flags that are made up.
fn moved_by(flags: impl FnMut() -> f64 + 'static) -> (Group, Vec<Row>, u64) {
    let mut flags = flags;
    let mut options = Options::quick();
    options.rounds = Some(8);
    let known = programs::all(None).expect("programs");
    let clockwork = rounds::Clockwork { options: &options, conditions: options.conditions(false), known: &known };
    let mut watch = crate::placement::Watch::new(move || Ok(flags()));
    let plan = groups(&["rtt-spin"], &["raw-flag", "ring"]).remove(0);
    let (group, rows) = rounds::measure(&clockwork, &plan, Some(&mut watch), &mut |_, _| {}).expect("measured");
    (group, rows, watch.judge.repeated)
}

#[test]
fn a_group_that_is_moved_has_both_placements() {
    let _alone = alone();
    // Far for the first half, from the middle of a burst on near; rounds of two rows take three flags.
    let mut count = 0;
    let (group, rows, repeated) = moved_by(move || {
        count += 1;
        if count <= 13 { 500.0 } else { 110.0 }
    });
    let seen: Vec<_> = group.placements.iter().map(|seen| (seen.placement, seen.flag_ns)).collect();
    assert_eq!(seen, [(Distance::Near, 110.0), (Distance::Far, 500.0)]);
    // The one between two flags that differ was measured again at once.
    assert_eq!((repeated, group.rounds), (1, 8));
    for row in &rows {
        let numbers: Vec<Vec<u32>> =
            row.apart.iter().map(|apart| apart.figures.by_round().map(|(n, _)| n).collect()).collect();
        assert_eq!((row.mixed, numbers), (0, vec![vec![4, 5, 6, 7], vec![0, 1, 2, 3]]), "{row:?}");
        let ring = row.about.name == "ring";
        assert_eq!(row.apart.iter().all(|apart| apart.figures.ratio_to_floor.is_some()), ring);
    }
}

#[test]
fn a_row_that_is_moved_all_the_time_says_so() {
    let _alone = alone();
    let mut count = 0;
    let (group, rows, repeated) = moved_by(move || {
        count += 1;
        if count % 2 == 0 { 500.0 } else { 110.0 }
    });
    // Not for ever: so many more rounds than planned, and each burst so often again.
    assert_eq!((group.rounds, repeated), (3 * 8, 3 * 8 * 2 * 2));
    for row in rows {
        assert!(row.failure.as_ref().is_some_and(|why| why.contains("no clean burst in 24 rounds")), "{row:?}");
        assert_eq!((row.mixed, row.figures.is_none()), (24, true));
    }
}

#[test]
fn a_flag_without_a_gap_drops_nothing() {
    let _alone = alone();
    let mut flag = 100.0;
    let (group, rows, _) = moved_by(move || {
        flag = if flag > 480.0 { 100.0 } else { flag * 1.1 };
        flag
    });
    assert_eq!((group.rounds, group.placements.len()), (8, 1));
    for row in rows {
        assert_eq!((row.mixed, row.figures.map(|figures| figures.rounds_ns.len())), (0, Some(8)));
    }
}

#[test]
fn a_pipe_costs_a_call_for_each_message() {
    let _alone = alone();
    let mut groups = groups(&["one-way-32-each"], &["pipe"]);
    groups[0].burst.group = 1;
    let report = run_groups(&Options::quick(), groups, &mut |_| {}).expect("run");
    let pipe = report.rows[0].figures.as_ref().expect("figures");
    // One `write` for each; a `read` takes what is there. Where tracing is not allowed, nothing is said.
    if let Some([sends, receives]) = pipe.syscalls {
        assert!((0.9..1.5).contains(&sends) && receives < 2.5, "{sends} {receives}");
    }
}

#[test]
fn counting_leaves_nobody_stopped() {
    let _alone = alone();
    let known = programs::all(None).expect("programs").into_iter().find(|known| known.about.name == "pipe");
    let command = known.expect("known").command.expect("a program");
    let burst = Burst::new(Test::Rtt, Mode::Block, 32, 20);
    let conditions = Options::quick().conditions(false);
    let mut pair = Pair::start(&command, "pipe", 4096, &burst, &conditions).expect("start").expect("can");
    let pids = [pair.pids[0], pair.pids[1]];
    let stopped = || {
        let state = |pid| std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        pids.into_iter().map(state).any(|status| status.lines().any(|l| l.starts_with("State:\tt")))
    };
    // The traced burst fails half way.
    let outcome = syscalls::during(pids, || Err("gave up".into()));
    // Where tracing is refused, nothing was begun.
    assert!(outcome.is_err() || matches!(outcome, Ok(None)));
    assert!(!stopped());
    // And a traced process can be measured again.
    let counted = syscalls::during(pids, || pair.burst(&burst, Duration::ZERO).map(|_| ())).expect("a burst");
    if let Some(counted) = counted {
        assert!(counted.iter().all(|&calls| calls >= 40), "{counted:?}");
    }
    assert!(!stopped());
    assert_eq!(pair.burst(&burst, Duration::ZERO).expect("a burst").operations, 20);
    pair.stop().expect("stop");
}

#[test]
fn what_cannot_be_measured_says_so() {
    let mut options = Options::quick();
    options.only = vec!["carrier-pigeon".into()];
    let error = run(&options, &mut |_| {}).expect_err("no such row").to_string();
    assert!(error.contains("carrier-pigeon"), "{error}");
    let mut options = Options::quick();
    options.cpus = Some([0, 1023]);
    let error = run(&options, &mut |_| {}).expect_err("no such processor").to_string();
    assert!(error.contains("processor 1023"), "{error}");
    let mut options = Options::quick();
    options.peers = Some("/nonexistent/peers".into());
    assert!(run(&options, &mut |_| {}).expect_err("no directory").to_string().contains("/nonexistent/peers"));
    if let Err(refused) = machine::may_be_realtime([Some(0), Some(1)]) {
        let text = refused.to_string();
        assert!(text.contains("ulimit") || text.contains("two processors"), "{text}");
    }
}

#[test]
fn what_killed_runs_left_is_removed() {
    let _alone = alone();
    // One has ended and is gone, of the other one nobody has asked yet how it ended.
    let mut children = ["true", "true"].map(|program| std::process::Command::new(program).spawn().expect("start"));
    let [gone, ended] = children.each_ref().map(std::process::Child::id);
    children[0].wait().expect("wait");
    let stat = || std::fs::read_to_string(format!("/proc/{ended}/stat")).expect("a process");
    while !stat().contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    let base = place::memory();
    let stale = [gone, ended].map(|pid| base.join(format!("ramway-bench-{pid}-7")));
    let file = base.join(format!("ramway-bench-{gone}"));
    let kept = [format!("{}-x", std::process::id()), format!("keep{gone}")];
    let kept = kept.map(|name| base.join(format!("ramway-bench-{name}")));
    for directory in stale.iter().chain(&kept) {
        std::fs::create_dir_all(directory.join("inside")).expect("create");
    }
    std::fs::write(&file, "a shared memory object").expect("write");
    place::remove_stale();
    children[1].wait().expect("wait");
    assert!(!stale[0].exists() && !stale[1].exists() && !file.exists());
    for directory in kept {
        std::fs::remove_dir_all(directory).expect("kept");
    }
}
