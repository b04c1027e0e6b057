//! Reports by hand, for the tests of what is made of them.

use crate::channel::{About, Kind};
use crate::report::{Figures, Group, Percentiles, Report, Row, SCHEMA, Settings};
use crate::worker::Outcome;
use crate::{case::Mode, case::Test};

/// Figures with these medians of rounds, and the rest made to fit.
pub(crate) fn figures(rounds: &[f64]) -> Figures {
    let middle = crate::bars::median(rounds).unwrap_or(1.0);
    let at = |factor: f64| Some(middle * factor);
    let ns = Percentiles {
        samples: 100_000,
        group: 10,
        min: middle * 0.9,
        mean: middle * 1.05,
        p50: middle,
        p90: at(1.1),
        p95: at(1.2),
        p99: at(1.5),
        p999: at(3.0),
        p9999: None,
        max: middle * 100.0,
    };
    Figures {
        operations: 1_000_000,
        ops_per_s: 1e9 / middle,
        ops_per_s_best: 1e9 / middle,
        mib_per_s: Some(32e9 / middle / f64::from(1 << 20)),
        ns,
        curve: vec![(0.0, middle * 0.9), (50.0, middle), (100.0, middle * 100.0)],
        rounds_ns: rounds.to_vec(),
        rounds: Vec::new(),
        spread: 0.01,
        ratio_to_floor: Some(1.0),
        ratio_to_ceiling: None,
        cpu_percent: [100.0, 99.5],
        peak_rss: [4 << 20, 4 << 20],
        shared: [1 << 20, 1 << 20],
        context_switches: [0.0, 0.0],
        syscalls: Some([0.0, 0.0]),
        allocations: Some([0.0, 0.0]),
        allocated_bytes: None,
        stalls: 0,
        parts: Vec::new(),
        ratios: Vec::new(),
    }
}

/// What a burst of one operation of this many picoseconds measured.
pub(crate) fn outcome(ps: u64) -> Outcome {
    Outcome {
        elapsed_ps: ps,
        operations: 1,
        samples_ps: vec![ps],
        cpu_ns: [1, 1],
        peak_rss: [1, 1],
        shared: [0, 0],
        context_switches: [0, 0],
        allocations: None,
        allocated_bytes: None,
        parts: Vec::new(),
        ratios: Vec::new(),
    }
}

/// A row of one of Ramway's own.
pub(crate) fn row(group: &str, name: &str, figures: Figures) -> Row {
    let about = About::new(name, Kind::Ramway, false, "by hand");
    Row {
        id: format!("{group}/{name}"),
        group: group.into(),
        about,
        failure: None,
        figures: Some(figures),
        apart: Vec::new(),
        mixed: 0,
    }
}

/// A report of these rows, with a group for each that they name, its floor `raw-flag`.
pub(crate) fn report(rows: Vec<Row>) -> Report {
    let mut groups: Vec<Group> = Vec::new();
    for row in &rows {
        if groups.iter().all(|group| group.id != row.group) {
            groups.push(Group {
                id: row.group.clone(),
                title: "round trip, 32 B, both sides polling".into(),
                test: Test::Rtt,
                mode: Mode::Spin,
                size: 32,
                capacity: 1 << 20,
                gap_ns: 0,
                work_ns: 0,
                floor: Some("raw-flag".into()),
                ceiling: None,
                rounds: 5,
                placements: Vec::new(),
            });
        }
    }
    let settings = Settings { plan: "quick".into(), cpus: [Some(0), Some(1)], realtime: false, only: Vec::new() };
    let machine = crate::machine::Machine::read([0, 1]);
    Report {
        schema: SCHEMA,
        began: 1_700_000_000,
        seconds: 1.5,
        settings,
        machine,
        placement: None,
        groups,
        rows,
        bars: Vec::new(),
    }
}
