//! What the project aims at, and how near a run came.

use crate::channel::Kind;
use crate::placement;
use crate::report::{Bar, Distance, Figures, Report, Row};
use crate::stats;
use crate::text::duration;

mod csharp;
mod go;
mod jvm;
mod node;
mod pool;
mod rpc;
mod topic;

/// How many round trips after random pauses show that no wake-up is lost.
const PAUSES: u64 = 100_000;
/// Less than one in a thousand operations: what a counter that starts before a burst sees besides it.
const NONE_PER_OPERATION: f64 = 0.001;
/// The smallest object has 16 bytes: fewer than one in a hundred operations makes one. Whatever else a virtual machine does
/// in its other threads is counted too.
const FEW_BYTES: f64 = 0.1;

/// Every aim, in the order of the project's table. Where a run has two placements, each is judged apart.
pub(crate) fn bars(report: &Report) -> Vec<Bar> {
    let whole = all(report);
    let Some([near, far]) = placement::judged(report) else { return whole };
    let apart = all(&near).into_iter().zip(all(&far));
    apart.zip(whole).flat_map(|((near, far), whole)| joined(near, far, whole)).collect()
}

/// One aim in both placements: one bar, where it does not depend on them or where one of them was not measured.
fn joined(near: Bar, far: Bar, whole: Bar) -> Vec<Bar> {
    if whole.whole {
        return vec![whole];
    }
    let same = near.met == far.met && near.measured == far.measured && near.bar == far.bar;
    if same || near.met.is_none() && far.met.is_none() {
        return vec![near];
    }
    let mut both = vec![Bar { placement: Some(Distance::Near), ..near }, Bar { placement: Some(Distance::Far), ..far }];
    match (both[0].met, both[1].met) {
        (None, _) => drop(both.remove(0)),
        (_, None) => drop(both.pop()),
        _ => {}
    }
    both
}

fn all(report: &Report) -> Vec<Bar> {
    let run = Run(report);
    let mut bars = Vec::new();
    let spin = "rtt-spin";
    bars.push(run.time("ring: round trip, 32 B, both polling", spin, "ring", "raw-flag", Limit::apart(1.0, 1.08)));
    bars.push(run.time("ring: round trip, 32 B, both polling", spin, "ring", "tachyon", 0.9));
    bars.push(run.tail("ring: the same, 99.9th percentile", "ring", "tachyon", |figures| figures.ns.p999));
    bars.push(run.tail("ring: the same, the longest", "ring", "tachyon", |figures| Some(figures.ns.max)));

    let each = "one-way-32-each";
    bars.push(run.rate("ring: one way, 32 B, each visible at once", each, "ring", "tachyon-default", 3.0));
    bars.push(run.rate("ring: one way, 32 B, each visible at once", each, "ring", "hand-ring", 0.7));
    for (size, text, tachyon) in [("32", "32 B", 1.2), ("256", "256 B", 1.2), ("1K", "1 KiB", 1.0)] {
        let (what, group) = (format!("ring: one way, {text}, batched"), format!("one-way-{size}-batch"));
        bars.push(run.rate(&what, &group, "ring", "hand-ring", 0.95));
        bars.push(run.rate(&what, &group, "ring", "tachyon", tachyon));
    }
    bars.push(run.rate("ring: one way, 64 KiB, in place", "one-way-64K-each", "ring", "tachyon", 1.1));
    bars.push(run.best_peer("ring: one way, 1 MiB, in place", "one-way-1M-each", "ring", 1.3));
    bars.push(run.rate("ring: one way, 1 MiB through 4 MiB", "one-way-1M-each", "ring", "hand-ring", 0.95));
    bars.push(run.rate("ring: one way, 1 MiB through 64 MiB", "one-way-1M-in-64M", "ring", "hand-ring", 0.95));

    bars.push(run.time("ring: asleep, messages 1 ms apart", "paced-1ms-block", "ring", "futex", 1.05));
    bars.push(run.lost_wake_ups("ring"));
    let soon = run.below("ring: hybrid, messages 50 µs apart", "paced-50us", "ring", "≤ 120 ns", |figures| {
        (duration(figures.ns.p50), figures.ns.p50 <= 120.0)
    });
    bars.push(run.only_near(soon));
    bars.push(run.below("ring: hybrid, messages 1 ms apart, receiver", "paced-1ms", "ring", "≤ 5 % CPU", |figures| {
        (format!("{:.1} % CPU", figures.cpu_percent[1]), figures.cpu_percent[1] <= 5.0)
    }));
    bars.push(run.time("region: notify to wait, both polling", spin, "region", "raw-flag", 1.0));
    bars.push(run.time("region: notify to wait, asleep", "wake", "region", "futex", 1.05));
    bars.push(run.below("ring: a receiver that waits", "idle", "ring", "< 0.5 % CPU", |figures| {
        (format!("{:.3} % CPU", figures.cpu_percent[1]), figures.cpu_percent[1] < 0.5)
    }));
    bars.push(run.none("ring: system calls a message", |figures| figures.syscalls));
    bars.push(run.none("ring: allocations a message", |figures| figures.allocations));
    bars.extend(python(&run));
    bars.extend(node::bars(&run));
    bars.extend(jvm::bars(&run));
    bars.extend(csharp::bars(&run));
    bars.extend(go::bars(&run));
    bars.extend(pool::bars(&run));
    bars.extend(topic::bars(&run));
    bars.extend(rpc::bars(&run));
    bars
}

/// What the Python package aims at.
fn python(run: &Run<'_>) -> Vec<Bar> {
    let (ring, tachyon, from_rust) = ("ring-python", "tachyon-python", "ring-rust-python");
    let each = "python-one-way-32-each";
    let rate = |what: &str, group: &str, least: f64| {
        let bar_is = format!("≥ {least:.0} M/s");
        run.below(what, group, from_rust, &bar_is, |figures| {
            (format!("{:.1} M/s", figures.ops_per_s / 1e6), figures.ops_per_s >= least * 1e6)
        })
    };
    let view = |size: &str, group: &str| {
        run.below(&format!("Python: a tensor of {size} as an array"), group, ring, "≤ 2 µs", |figures| {
            (duration(figures.ns.p50), figures.ns.p50 <= 2000.0)
        })
    };
    vec![
        run.time("Python: round trip, 32 B, polling", "python-rtt-spin", ring, tachyon, 0.35),
        run.rate("Python: one way, 32 B, for message in rx", each, ring, tachyon, 6.0),
        rate("Python: one way from Rust, for message in rx", "python-from-rust-32-each", 8.0),
        rate("Python: one way from Rust, recv_array", "python-from-rust-32-batch", 40.0),
        view("8 KiB", "python-view-8K"),
        view("8 MiB", "python-view-8M"),
        view("800 MiB", "python-view-800M"),
    ]
}

/// What a bar asks for in each placement; a plain number: the same in both.
#[derive(Clone, Copy)]
struct Limit {
    near: f64,
    far: f64,
}

impl Limit {
    fn apart(near: f64, far: f64) -> Self {
        Self { near, far }
    }

    fn is_apart(self) -> bool {
        self.near != self.far
    }
}

impl From<f64> for Limit {
    fn from(both: f64) -> Self {
        Self { near: both, far: both }
    }
}

/// A run of one placement, or a view of one.
struct Run<'a>(&'a Report);

impl Run<'_> {
    /// The figures, or what is missing and how to have it.
    fn figures(&self, group: &str, mechanism: &str) -> Result<&Figures, String> {
        let row = self.0.rows.iter().find(|row| row.group == group && row.about.name == mechanism);
        match row {
            Some(Row { figures: Some(figures), .. }) => match placement::of_two(self.0) {
                Some(seen) if figures.rounds_ns.len() < placement::ROUNDS => {
                    let (name, rounds) = (seen.placement.name(), figures.rounds_ns.len());
                    Err(format!(
                        "not measured: {mechanism} has {rounds} rounds {name}, of {} at least",
                        placement::ROUNDS
                    ))
                }
                _ => Ok(figures),
            },
            Some(Row { failure, .. }) => {
                let why = failure.as_deref().and_then(|why| why.lines().next()).unwrap_or("no figures");
                Err(format!("not measured: {mechanism}: {why}"))
            }
            None if ["tachyon", "iceoryx2", "mmap-sync", "tonic", "grpc"]
                .iter()
                .any(|peer| mechanism.starts_with(peer))
                && self.0.groups.iter().any(|known| known.id == group) =>
            {
                Err(format!("not measured: needs {mechanism} (make bench-peers)"))
            }
            None => Err(format!("not measured: needs {group}/{mechanism}")),
        }
    }

    fn pair(&self, group: &str, [a, b]: [&str; 2]) -> Result<(&Figures, &Figures), String> {
        Ok((self.figures(group, a)?, self.figures(group, b)?))
    }

    /// The median time is at most `most` times `other`'s.
    fn time(&self, what: &str, group: &str, mechanism: &str, other: &str, most: impl Into<Limit>) -> Bar {
        let measured = self.pair(group, [mechanism, other]).and_then(|(ours, theirs)| self.times_as_long(ours, theirs));
        self.within(what, ("≤", other), most.into(), measured, |ratio, most| ratio <= most)
    }

    /// The rate is at least `least` times `other`'s.
    fn rate(&self, what: &str, group: &str, mechanism: &str, other: &str, least: impl Into<Limit>) -> Bar {
        let measured = self.pair(group, [mechanism, other]).and_then(|(ours, theirs)| self.times_as_long(theirs, ours));
        self.within(what, ("≥", other), least.into(), measured, |ratio, least| ratio >= least)
    }

    /// A bar that is one for processors near each other: a message cannot be there sooner than a word. Where there is one placement
    /// only, nobody knows which of two it is.
    fn only_near(&self, bar: Bar) -> Bar {
        match placement::of_two(self.0).map(|seen| seen.placement) {
            Some(Distance::Far) => {
                Bar { met: None, measured: "not judged: the processors are far apart".into(), ..bar }
            }
            None if bar.met == Some(false) => {
                Bar { met: None, measured: format!("{}: missed if this is near", bar.measured), ..bar }
            }
            _ => bar,
        }
    }

    fn times_as_long(&self, ours: &Figures, theirs: &Figures) -> Result<f64, String> {
        let least = if placement::of_two(self.0).is_some() { placement::ROUNDS } else { 1 };
        let common = stats::ratios(ours.by_round(), theirs.by_round()).len();
        let ratio = ratio_of_times(ours, theirs).filter(|_| common >= least);
        ratio.ok_or_else(|| "not measured: too few rounds".into())
    }

    /// A ratio against the limit of this placement. Where there is one only, nobody knows which of two it is: what keeps within
    /// the limit for near is met, what is beyond the one for far is missed, and what lies between says so.
    fn within(
        &self,
        what: &str,
        (sign, other): (&str, &str),
        limit: Limit,
        measured: Result<f64, String>,
        holds: impl Fn(f64, f64) -> bool,
    ) -> Bar {
        let one = match placement::of_two(self.0).map(|seen| seen.placement) {
            Some(Distance::Far) => Some(limit.far),
            Some(_) => Some(limit.near),
            None => (!limit.is_apart()).then_some(limit.near),
        };
        if let Some(limit) = one {
            let judged = measured.map(|ratio| (times(ratio, limit), holds(ratio, limit)));
            return bar(what, format!("{sign} {limit:.2} × {other}"), judged);
        }
        let Limit { near, far } = limit;
        let judged = measured.and_then(|ratio| match (holds(ratio, near), holds(ratio, far)) {
            (true, _) => Ok((times(ratio, near), true)),
            (_, false) => Ok((times(ratio, far), false)),
            _ => Err(format!("{}: met if this is far, missed if it is near", times(ratio, near))),
        });
        bar(what, format!("{sign} {near:.2} × {other} near, {far:.2} far"), judged)
    }

    /// The same against whichever peer is fastest here.
    fn best_peer(&self, what: &str, group: &str, mechanism: &str, least: f64) -> Bar {
        let peers = self.0.rows.iter().filter(|row| row.group == group && row.about.kind == Kind::Peer);
        let best = peers
            .filter_map(|row| Some((row.about.name.as_str(), row.figures.as_ref()?)))
            .max_by(|a, b| a.1.ops_per_s.total_cmp(&b.1.ops_per_s));
        match best {
            Some((best, _)) => {
                let found = self.rate(what, group, mechanism, best, least);
                Bar { bar: format!("≥ {least:.2} × the best peer ({best})"), ..found }
            }
            None => {
                let missing = match self.figures(group, mechanism) {
                    Ok(_) => "not measured: needs a peer (make bench-peers)".to_owned(),
                    Err(missing) => missing,
                };
                bar(what, format!("≥ {least:.2} × the best peer"), Err(missing))
            }
        }
    }

    /// A figure of the far end is at most the other's. Not within rounds: the far end of one round is one sample.
    fn tail(&self, what: &str, mechanism: &str, other: &str, tail: impl Fn(&Figures) -> Option<f64>) -> Bar {
        let measured = self.pair("rtt-spin", [mechanism, other]).and_then(|(ours, theirs)| {
            let few = || "not measured: too few round trips".to_owned();
            let (ours, theirs) = (tail(ours).ok_or_else(few)?, tail(theirs).ok_or_else(few)?);
            Ok((format!("{} against {}", duration(ours), duration(theirs)), ours <= theirs))
        });
        bar(what, format!("≤ {other}"), measured)
    }

    fn lost_wake_ups(&self, mechanism: &str) -> Bar {
        let measured = self.figures("pauses", mechanism).and_then(|figures| {
            let (found, of) = (figures.stalls, figures.operations);
            if found == 0 && of < PAUSES {
                return Err(format!("none of {of}; not enough of them (ramway bench --full --only pauses)"));
            }
            Ok((format!("{found} of {of}"), found == 0))
        });
        let bar_is = format!("none over 20 ms in {PAUSES}");
        whole(bar(&format!("{mechanism}: round trips after random pauses"), bar_is, measured))
    }

    fn below(
        &self,
        what: &str,
        group: &str,
        mechanism: &str,
        bar_is: &str,
        judge: impl Fn(&Figures) -> (String, bool),
    ) -> Bar {
        bar(what, bar_is.to_owned(), self.figures(group, mechanism).map(judge))
    }

    /// A plain number of a row: `[group, mechanism, name]`.
    fn ratio(&self, what: &str, [group, mechanism, name]: [&str; 3], judge: impl Fn(f64) -> bool, is: &str) -> Bar {
        let measured = self.figures(group, mechanism).and_then(|figures| {
            let found = figures.ratios.iter().find(|(known, _)| known == name);
            let value = found.ok_or_else(|| format!("not measured: no {name}"))?.1;
            Ok((format!("{value:.2} ×"), judge(value)))
        });
        bar(what, is.into(), measured)
    }

    /// In steady state, round trips and streams, nothing of this in either process.
    fn none(&self, what: &str, count: impl Fn(&Figures) -> Option<[f64; 2]>) -> Bar {
        let groups = ["rtt-spin", "one-way-32-each"];
        let worst = || {
            let mut worst = 0.0f64;
            for group in groups {
                let counted = count(self.figures(group, "ring")?);
                let [lead, follow] = counted.ok_or("not measured: cannot be counted here")?;
                worst = worst.max(lead).max(follow);
            }
            let shown = if worst < NONE_PER_OPERATION { "0".to_owned() } else { format!("{worst:.3}") };
            Ok((shown, worst < NONE_PER_OPERATION))
        };
        whole(bar(what, "0".to_owned(), worst()))
    }

    /// In these groups no memory is taken from the heap for a message, in either process.
    fn no_garbage(&self, what: &str, mechanism: &str, groups: &[&str]) -> Bar {
        let worst = || {
            let mut worst = 0.0f64;
            for group in groups {
                let bytes = self.figures(group, mechanism)?.allocated_bytes.ok_or("not measured: is not counted")?;
                worst = worst.max(bytes[0]).max(bytes[1]);
            }
            let shown = if worst < FEW_BYTES { "0 B".to_owned() } else { format!("{worst:.2} B") };
            Ok((shown, worst < FEW_BYTES))
        };
        whole(bar(what, "0 B".to_owned(), worst()))
    }
}

fn bar(what: &str, bar: String, measured: Result<(String, bool), String>) -> Bar {
    let (measured, met) = match measured {
        Ok((measured, met)) => (measured, Some(met)),
        Err(missing) => (missing, None),
    };
    Bar { what: what.into(), bar, measured, met, placement: None, whole: false }
}

/// A bar that does not depend on where the processors are.
fn whole(bar: Bar) -> Bar {
    Bar { whole: true, ..bar }
}

/// How many times as long one takes as the other: the median of the ratios within each round, because what disturbs
/// a round disturbs both.
pub(crate) fn ratio_of_times(ours: &Figures, theirs: &Figures) -> Option<f64> {
    stats::ratio_of_rounds(ours.by_round(), theirs.by_round())
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let median = stats::median(&mut values.to_vec());
    (!values.is_empty()).then_some(median)
}

/// With as many digits as it takes to tell it from the bar.
fn times(ratio: f64, bar: f64) -> String {
    if (ratio - bar).abs() < 0.01 { format!("{ratio:.4} ×") } else { format!("{ratio:.2} ×") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{figures, report, row};

    fn find<'a>(bars: &'a [Bar], what: &str, bar: &str) -> &'a Bar {
        let is = |one: &&Bar| one.what.contains(what) && one.bar.contains(bar);
        bars.iter().find(is).unwrap_or_else(|| panic!("no bar {what:?} {bar:?}"))
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The third round is disturbed, and disturbs both.
        let ring = figures(&[100.0, 90.0, 900.0]);
        let flag = figures(&[100.0, 100.0, 1000.0]);
        assert_eq!(ratio_of_times(&ring, &flag), Some(0.9));
        assert_eq!(ratio_of_times(&figures(&[]), &flag), None);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn a_bar_is_met_missed_or_says_what_lacks() {
        let ns = |name, rounds: &[f64]| row("rtt-spin", name, figures(rounds));
        let run = report(vec![ns("ring", &[100.0; 5]), ns("raw-flag", &[91.0; 5]), ns("tachyon", &[120.0; 5])]);
        let bars = bars(&run);
        let missed = find(&bars, "round trip, 32 B", "raw-flag");
        assert_eq!((missed.met, missed.measured.as_str()), (Some(false), "1.10 ×"));
        assert_eq!(find(&bars, "round trip, 32 B", "tachyon").met, Some(true));
        assert_eq!(find(&bars, "99.9th", "tachyon").met, Some(true));
        assert_eq!(find(&bars, "64 KiB", "tachyon").met, None);

        let without = super::bars(&report(vec![ns("ring", &[100.0; 5])]));
        let lacks = find(&without, "round trip, 32 B", "tachyon");
        assert_eq!((lacks.met, lacks.measured.as_str()), (None, "not measured: needs tachyon (make bench-peers)"));
    }

    #[test]
    fn a_failed_peer_gives_its_reason() {
        let about = crate::channel::About::new("tachyon", Kind::Peer, true, "").version("0.5.1");
        let failed = Row::failed("rtt-spin", about, "did not build: no clang".into());
        let run = report(vec![row("rtt-spin", "ring", figures(&[100.0; 5])), failed]);
        assert_eq!(
            find(&bars(&run), "round trip", "tachyon").measured,
            "not measured: tachyon: did not build: no clang"
        );
    }

    #[test]
    fn the_best_peer_is_named() {
        let peer = |name: &str, ns: f64| {
            let mut peer = row("one-way-1M-each", name, figures(&[ns; 5]));
            peer.about.kind = Kind::Peer;
            peer
        };
        let ring = row("one-way-1M-each", "ring", figures(&[10.0; 5]));
        let run = report(vec![ring, peer("slow", 30.0), peer("fast", 14.0)]);
        let best = bars(&run).into_iter().find(|bar| bar.bar.contains("best peer")).expect("a bar");
        assert_eq!(
            (best.met, best.bar.as_str(), best.measured.as_str()),
            (Some(true), "≥ 1.30 × the best peer (fast)", "1.40 ×")
        );
    }

    #[test]
    fn few_round_trips_do_not_show_that_no_wake_up_is_lost() {
        let pauses = |operations, stalls| {
            let mut figures = figures(&[100.0; 5]);
            (figures.operations, figures.stalls) = (operations, stalls);
            find(&bars(&report(vec![row("pauses", "ring", figures)])), "random pauses", "").met
        };
        assert_eq!(pauses(100_000, 0), Some(true));
        assert_eq!(pauses(100_000, 1), Some(false));
        assert_eq!(pauses(2_000, 1), Some(false));
        assert_eq!(pauses(2_000, 0), None);
    }

    #[test]
    fn no_system_calls_means_none_in_both_groups() {
        let with = |calls: [f64; 2]| {
            let rows = [("rtt-spin", [0.0, 0.0]), ("one-way-32-each", calls)].map(|(group, calls)| {
                let mut figures = figures(&[100.0; 5]);
                (figures.syscalls, figures.allocations) = (Some(calls), None);
                row(group, "ring", figures)
            });
            let bars = bars(&report(rows.into()));
            (find(&bars, "system calls", "0").met, find(&bars, "allocations", "0").met)
        };
        assert_eq!(with([0.0, 0.0]), (Some(true), None));
        assert_eq!(with([0.0, 1.0]), (Some(false), None));
    }
}
