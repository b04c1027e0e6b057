//! What topics, `Select` and inboxes aim at.

use super::{Run, bar, duration, times, whole};
use crate::report::{Bar, Figures};

/// How many messages past an overtaken reader show that none is torn.
const LAPPED: u64 = 100_000_000;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let (topic, ring) = ("topic", "ring");
    let each = "topic: one way, 32 B, each visible at once";
    let mut bars = vec![
        run.rate(each, "topic-32-each", topic, ring, 0.8),
        run.rate("topic: one way, 32 B, batched", "topic-32-batch", topic, ring, 0.75),
        run.rate("topic: one way, 1 MiB", "topic-1M-each", topic, ring, 0.8),
        run.time("topic: round trip, 32 B, both polling", "topic-rtt-spin", topic, ring, 1.05),
        run.rate(each, "topic-32-each", topic, "iceoryx2", 20.0),
        run.rate("topic: one way, 64 KiB", "topic-64K-each", topic, "iceoryx2", 1.3),
    ];
    for policy in ["reliable", "lossy"] {
        for count in [8, 64] {
            let what = format!("topic: publish with {count} {policy} subscribers that read nothing");
            let (many, one) = (format!("topic-{policy}-{count}"), format!("topic-{policy}-1"));
            bars.push(run.time(&what, "topic-publish-32", &many, &one, 1.05));
        }
    }
    let three = "topic: one way, 32 B, three readers";
    bars.push(run.rate(three, "topic-readers-3", "topic-readers", "iceoryx2-readers", 5.0));
    bars.push(run.ratio(
        three,
        ["topic-readers-3", "topic-readers", "slowest reader / mean"],
        |share| share >= 0.5,
        "slowest reader ≥ 0.5 × the mean",
    ));
    for (rate, writer, most) in
        [("idle", "idle writer", 6.0), ("1us", "a write every µs", 6.0), ("full", "full speed", 60.0)]
    {
        let (what, group) = (format!("latest: 64 B, {writer}"), format!("latest-64-{rate}"));
        bars.push(run.below(&what, &group, "topic-latest", &format!("≤ {most} ns"), |figures| {
            (duration(figures.ns.p50), figures.ns.p50 <= most)
        }));
    }
    for (id, shown, least) in [("64", "64 B", 3.0), ("4K", "4 KiB", 1.0)] {
        let (what, group) = (format!("latest: {shown}, a write every µs"), format!("latest-{id}-1us"));
        bars.push(run.rate(&what, &group, "topic-latest", "mmap-sync", least));
    }
    bars.push(lapped(run));
    bars.push(run.below("topic: a subscriber that waits", "topic-idle", topic, "< 0.5 % CPU", |figures| {
        (format!("{:.3} % CPU", figures.cpu_percent[1]), figures.cpu_percent[1] < 0.5)
    }));
    bars.push(cpu(run, "topic: asleep, messages 1 ms apart, subscriber's CPU", 1.1));
    bars.push(run.time("topic: a publish that wakes 8 sleepers", "topic-wake-8", "topic-readers", "futex-all", 2.0));
    for (group, how) in [("select-rtt-spin", "both polling"), ("select-rtt-block", "asleep")] {
        for (count, most) in [(1, 1.2), (16, 1.5), (128, 3.0)] {
            let what = format!("Select: round trip, 32 B, {count} rings, one busy, {how}");
            bars.push(run.time(&what, group, &format!("select-{count}"), ring, most));
        }
    }
    bars
}

/// A row whose reader is told fewer or more than were sent, or reads a torn message, fails.
fn lapped(run: &Run<'_>) -> Bar {
    let enough = |figures: &Figures| match figures.operations {
        few if few < LAPPED => {
            Err(format!("none of {few}; not enough of them (ramway bench --full --only topic-lapped)"))
        }
        all => Ok((format!("none of {all}"), true)),
    };
    let measured = run.figures("topic-lapped-32", "topic-lossy").and_then(enough);
    whole(bar("topic: torn or miscounted messages of an overtaken reader", format!("none of {LAPPED}"), measured))
}

/// Processor time of the follower by a bare futex's.
fn cpu(run: &Run<'_>, what: &str, most: f64) -> Bar {
    let measured = run.pair("topic-paced-1ms-block", ["topic", "futex"]).map(|(ours, theirs)| {
        let ratio = ours.cpu_percent[1] / theirs.cpu_percent[1].max(f64::MIN_POSITIVE);
        (times(ratio, most), ratio <= most)
    });
    bar(what, format!("≤ {most:.2} × futex"), measured)
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
    fn each_aim_of_the_project_names_its_row() {
        let every = bars(&Run(&report(Vec::new())));
        let aims = [
            ("topic: one way, 32 B, each visible at once", "≥ 0.80 × ring", "topic-32-each/topic"),
            ("topic: one way, 32 B, batched", "≥ 0.75 × ring", "topic-32-batch/topic"),
            ("topic: one way, 1 MiB", "≥ 0.80 × ring", "topic-1M-each/topic"),
            ("topic: round trip, 32 B, both polling", "≤ 1.05 × ring", "topic-rtt-spin/topic"),
            ("topic: one way, 32 B, each visible at once", "≥ 20.00 × iceoryx2", "topic-32-each/topic"),
            ("topic: one way, 64 KiB", "≥ 1.30 × iceoryx2", "topic-64K-each/topic"),
            ("topic: publish with 8 reliable", "≤ 1.05 × topic-reliable-1", "topic-publish-32/topic-reliable-8"),
            ("topic: publish with 64 reliable", "≤ 1.05 × topic-reliable-1", "topic-publish-32/topic-reliable-64"),
            ("topic: publish with 8 lossy", "≤ 1.05 × topic-lossy-1", "topic-publish-32/topic-lossy-8"),
            ("topic: publish with 64 lossy", "≤ 1.05 × topic-lossy-1", "topic-publish-32/topic-lossy-64"),
            ("topic: one way, 32 B, three readers", "≥ 5.00 × iceoryx2-readers", "topic-readers-3/topic-readers"),
            ("topic: one way, 32 B, three readers", "slowest reader ≥ 0.5", "topic-readers-3/topic-readers"),
            ("latest: 64 B, idle writer", "≤ 6 ns", "latest-64-idle/topic-latest"),
            ("latest: 64 B, a write every µs", "≤ 6 ns", "latest-64-1us/topic-latest"),
            ("latest: 64 B, full speed", "≤ 60 ns", "latest-64-full/topic-latest"),
            ("latest: 64 B, a write every µs", "≥ 3.00 × mmap-sync", "latest-64-1us/topic-latest"),
            ("latest: 4 KiB, a write every µs", "≥ 1.00 × mmap-sync", "latest-4K-1us/topic-latest"),
            ("topic: torn or miscounted", "none of 100000000", "topic-lapped-32/topic-lossy"),
            ("topic: a subscriber that waits", "< 0.5 % CPU", "topic-idle/topic"),
            ("topic: asleep, messages 1 ms apart", "≤ 1.10 × futex", "topic-paced-1ms-block/topic"),
            ("topic: a publish that wakes 8", "≤ 2.00 × futex-all", "topic-wake-8/topic-readers"),
            ("Select: round trip, 32 B, 1 rings", "≤ 1.20 × ring", "select-rtt-spin/select-1"),
            ("Select: round trip, 32 B, 16 rings", "≤ 1.50 × ring", "select-rtt-spin/select-16"),
            ("Select: round trip, 32 B, 128 rings", "≤ 3.00 × ring", "select-rtt-spin/select-128"),
            ("Select: round trip, 32 B, 1 rings", "≤ 1.20 × ring", "select-rtt-block/select-1"),
            ("Select: round trip, 32 B, 16 rings", "≤ 1.50 × ring", "select-rtt-block/select-16"),
            ("Select: round trip, 32 B, 128 rings", "≤ 3.00 × ring", "select-rtt-block/select-128"),
        ];
        assert_eq!(every.len(), aims.len());
        for (what, is, row) in aims {
            let names = |bar: &&Bar| bar.what.starts_with(what) && bar.bar.starts_with(is);
            let needs = format!("not measured: needs {row}");
            assert!(every.iter().filter(names).any(|bar| bar.measured == needs), "{what} {is}: {row}");
        }
    }

    #[test]
    fn few_messages_do_not_show_that_none_is_torn() {
        let with = |operations| {
            let mut figures = figures(&[5.0; 5]);
            figures.operations = operations;
            found(&report(vec![row("topic-lapped-32", "topic-lossy", figures)]), "overtaken", "none").0
        };
        assert_eq!((with(LAPPED), with(LAPPED - 1)), (Some(true), None));
    }

    #[test]
    fn the_subscribers_processor_time_counts() {
        let with = |ours: f64| {
            let rows = [("topic", ours), ("futex", 2.0)].map(|(name, percent)| {
                let mut figures = figures(&[5.0; 5]);
                figures.cpu_percent = [50.0, percent];
                row("topic-paced-1ms-block", name, figures)
            });
            found(&report(rows.into()), "subscriber's CPU", "futex")
        };
        assert_eq!(with(2.0), (Some(true), "1.00 ×".into()));
        assert_eq!(with(3.0), (Some(false), "1.50 ×".into()));
    }

    #[test]
    fn many_subscribers_are_compared_with_one() {
        let rows = [("topic-reliable-1", 10.0), ("topic-reliable-64", 11.0), ("topic-reliable-8", 10.2)];
        let run = report(rows.map(|(name, ns)| row("topic-publish-32", name, figures(&[ns; 5]))).into());
        assert_eq!(found(&run, "64 reliable", "topic-reliable-1").0, Some(false));
        assert_eq!(found(&run, "with 8 reliable", "topic-reliable-1").0, Some(true));
        assert_eq!(found(&run, "with 8 lossy", "topic-lossy-1").0, None);
    }
}
