//! What the buffer pool aims at.

use super::{Run, bar, times};
use crate::report::Bar;

/// Half of the mean: no thread is below.
const SHARE: f64 = 0.5;
/// Held over in use.
const HELD: f64 = 1.3;
/// How far sizes and numbers of threads may be from each other to be called flat.
const FLAT: f64 = 1.25;

const SIZES: [(&str, &str); 4] = [("1K", "1 KiB"), ("64K", "64 KiB"), ("1M", "1 MiB"), ("64M", "64 MiB")];

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (suffix, who) in [("", ""), ("-2t", ", two threads")] {
        for (id, shown) in SIZES {
            let group = format!("pool-get-{id}{suffix}");
            bars.push(run.time(&format!("Pool: get and drop, {shown}{who}"), &group, "pool", "hand-stack", 1.0));
        }
    }
    bars.push(flat(run));
    for (id, shown) in &SIZES[1..] {
        for other in ["malloc", "bytes"] {
            let (what, group) = (format!("Pool: get and drop, {shown}"), format!("pool-get-{id}"));
            bars.push(Bar { bar: format!("≥ 5 × {other}"), ..run.rate(&what, &group, "pool", other, 5.0) });
        }
    }
    let pipeline = "Pool: 1 MiB, got by one thread and dropped by another";
    bars.push(run.rate(pipeline, "pool-pipeline-1M", "pool", "malloc", 3.0));
    let mixed = "Pool: mixed sizes, 8 threads";
    bars.push(run.rate(mixed, "pool-mixed-8t", "pool", "zeropool", 1.0));
    bars.push(run.ratio(
        mixed,
        ["pool-mixed-8t", "pool", "slowest thread / mean"],
        |share| share >= SHARE,
        "slowest thread ≥ 0.5 × the mean",
    ));
    let held = "Pool: memory held over what is in use";
    for alive in ["256", "2048"] {
        for name in ["peak", "mean"] {
            let (group, ratio_is) = (format!("pool-held-{alive}"), format!("held / in use, {name}"));
            let what = format!("{held}, {alive} buffers, {name}");
            bars.push(run.ratio(&what, [&group, "pool", &ratio_is], |held| held <= HELD, "≤ 1.30 ×"));
        }
    }
    bars
}

/// The slowest size and number of threads by the fastest, each by its best round: groups are measured one after the other, and
/// what disturbs one of them for a while is no property of its size.
fn flat(run: &Run<'_>) -> Bar {
    let worst = || {
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for (suffix, (id, _)) in ["", "-2t"].into_iter().flat_map(|suffix| SIZES.map(|size| (suffix, size))) {
            let figures = run.figures(&format!("pool-get-{id}{suffix}"), "pool")?;
            let each =
                figures.rounds_ns.iter().copied().min_by(f64::total_cmp).ok_or("not measured: too few rounds")?;
            (least, most) = (least.min(each), most.max(each));
        }
        Ok((times(most / least, FLAT), most <= FLAT * least))
    };
    let what = "Pool: get and drop, 1 KiB to 64 MiB, one and two threads: slowest by fastest";
    bar(what, format!("≤ {FLAT} ×"), worst())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{figures, report, row};

    fn found(run: &crate::report::Report, what: &str, is: &str) -> (Option<bool>, String) {
        let all = bars(&Run(run));
        let bar = all.into_iter().find(|one| one.what.contains(what) && one.bar.contains(is)).expect("such a bar");
        (bar.met, bar.measured)
    }

    #[test]
    fn flat_is_about_all_sizes_and_threads() {
        let groups = SIZES
            .map(|(id, _)| id)
            .into_iter()
            .flat_map(|id| ["", "-2t"].map(|threads| format!("pool-get-{id}{threads}")));
        let with = |last: f64| {
            let mut rows: Vec<_> = groups.clone().map(|group| row(&group, "pool", figures(&[5.0; 5]))).collect();
            rows.last_mut().expect("a row").figures = Some(figures(&[last; 5]));
            found(&report(rows), "slowest by fastest", "≤ 1.25")
        };
        assert_eq!(with(6.0), (Some(true), "1.20 ×".into()));
        assert_eq!(with(7.0), (Some(false), "1.40 ×".into()));
        let one = report(vec![row("pool-get-1K", "pool", figures(&[5.0; 5]))]);
        assert_eq!(found(&one, "slowest by fastest", "≤").0, None);
    }

    #[test]
    fn shares_and_what_is_held_are_numbers_of_the_row() {
        let with = |group: &str, name: &str, value: f64| {
            let mut figures = figures(&[5.0; 5]);
            figures.ratios = vec![(name.into(), value)];
            report(vec![row(group, "pool", figures)])
        };
        let share = |value| found(&with("pool-mixed-8t", "slowest thread / mean", value), "mixed", "slowest").0;
        assert_eq!((share(0.5), share(0.49)), (Some(true), Some(false)));
        let held = |value| found(&with("pool-held-256", "held / in use, peak", value), "256 buffers, peak", "1.30").0;
        assert_eq!((held(1.3), held(1.31)), (Some(true), Some(false)));
        let without = with("pool-held-256", "something else", 1.0);
        assert_eq!(found(&without, "256 buffers, peak", "1.30"), (None, "not measured: no held / in use, peak".into()));
    }
}
