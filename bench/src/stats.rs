//! Figures of one row: a histogram of everything, and values of each round to compare rows by.

use crate::case::{Burst, Test};
use crate::report::{Both, Figures, Percentiles};
use crate::worker::Outcome;
use hdrhistogram::Histogram;

/// An operation that takes longer has waited for a wake-up that never came, or for a scheduler that was elsewhere.
const STALL_PS: u64 = 20_000_000_000;
/// How many samples must lie beyond a percentile for it to be one.
const BEYOND: f64 = 10.0;

/// What the bursts of a row have measured so far.
pub(crate) struct Series {
    /// Picoseconds, three significant digits.
    histogram: Histogram<u64>,
    /// The extremes and the sum, apart: the histogram rounds.
    min_ps: f64,
    max_ps: f64,
    sum_ps: f64,
    /// Nanoseconds of an operation: the number of each round and its median, in ascending order.
    rounds: Vec<(u32, f64)>,
    /// Operations a second in each round.
    rates: Vec<f64>,
    pub(crate) operations: u64,
    elapsed_ns: f64,
    cpu_ns: Both<u64>,
    peak_rss: Both<u64>,
    shared: Both<u64>,
    context_switches: Both<u64>,
    allocations: Option<Both<u64>>,
    allocated_bytes: Option<Both<u64>>,
    stalls: u64,
    parts: Vec<(String, f64)>,
    /// By name: the value of each round.
    ratios: Vec<(String, Vec<f64>)>,
}

impl Series {
    pub(crate) fn new() -> Self {
        // 100 s, so that a burst that lost its processor is still counted where it belongs.
        let histogram = Histogram::new_with_max(100_000_000_000_000, 3).expect("constant bounds that are valid");
        Self {
            histogram,
            min_ps: f64::INFINITY,
            max_ps: 0.0,
            sum_ps: 0.0,
            rounds: Vec::new(),
            rates: Vec::new(),
            operations: 0,
            elapsed_ns: 0.0,
            cpu_ns: [0; 2],
            peak_rss: [0; 2],
            shared: [0; 2],
            context_switches: [0; 2],
            allocations: Some([0; 2]),
            allocated_bytes: Some([0; 2]),
            stalls: 0,
            parts: Vec::new(),
            ratios: Vec::new(),
        }
    }

    /// Adds a round, later than those that are there.
    pub(crate) fn add(&mut self, number: u32, burst: &Burst, outcome: &Outcome) {
        let operations = outcome.operations.max(1);
        let whole = outcome.elapsed_ps as f64 / operations as f64;
        let group = f64::from(burst.group.max(1));
        let mut samples: Vec<f64> = outcome.samples_ps.iter().map(|&ps| ps as f64 / group).collect();
        if !is_rate(burst.test) {
            self.stalls += outcome.samples_ps.iter().filter(|&&ps| ps > STALL_PS).count() as u64;
        }
        if samples.is_empty() {
            samples.push(whole);
        }
        for &ps in &samples {
            self.min_ps = self.min_ps.min(ps);
            self.max_ps = self.max_ps.max(ps);
            self.sum_ps += ps;
            self.histogram.saturating_record((ps as u64).max(1));
        }
        // A stream's time is that of the whole of it; elsewhere what lies between two operations is no part of them.
        let round = if is_rate(burst.test) { whole } else { median(&mut samples) };
        self.rounds.push((number, round / 1000.0));
        self.rates.push(1e12 / whole);
        self.operations += operations;
        self.elapsed_ns += outcome.elapsed_ps as f64 / 1000.0;
        for side in 0..2 {
            self.cpu_ns[side] += outcome.cpu_ns[side];
            self.context_switches[side] += outcome.context_switches[side];
            self.peak_rss[side] = self.peak_rss[side].max(outcome.peak_rss[side]);
            self.shared[side] = self.shared[side].max(outcome.shared[side]);
        }
        self.allocations = sum(self.allocations, outcome.allocations);
        self.allocated_bytes = sum(self.allocated_bytes, outcome.allocated_bytes);
        for (name, ps) in &outcome.parts {
            self.add_part(name, *ps as f64 / 1000.0);
        }
        for (name, ratio) in &outcome.ratios {
            self.add_ratios(name, &[*ratio]);
        }
    }

    /// Takes in all rounds of another, of the same row.
    pub(crate) fn take(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
        self.min_ps = self.min_ps.min(other.min_ps);
        self.max_ps = self.max_ps.max(other.max_ps);
        self.sum_ps += other.sum_ps;
        self.rounds.extend(&other.rounds);
        self.rounds.sort_by_key(|(number, _)| *number);
        self.rates.extend(&other.rates);
        self.operations += other.operations;
        self.elapsed_ns += other.elapsed_ns;
        for side in 0..2 {
            self.cpu_ns[side] += other.cpu_ns[side];
            self.context_switches[side] += other.context_switches[side];
            self.peak_rss[side] = self.peak_rss[side].max(other.peak_rss[side]);
            self.shared[side] = self.shared[side].max(other.shared[side]);
        }
        self.allocations = sum(self.allocations, other.allocations);
        self.allocated_bytes = sum(self.allocated_bytes, other.allocated_bytes);
        self.stalls += other.stalls;
        for (name, ns) in &other.parts {
            self.add_part(name, *ns);
        }
        for (name, rounds) in &other.ratios {
            self.add_ratios(name, rounds);
        }
    }

    fn add_part(&mut self, name: &str, ns: f64) {
        match self.parts.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += ns,
            None => self.parts.push((name.to_owned(), ns)),
        }
    }

    fn add_ratios(&mut self, name: &str, rounds: &[f64]) {
        match self.ratios.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.extend(rounds),
            None => self.ratios.push((name.to_owned(), rounds.to_vec())),
        }
    }

    /// How many rounds it has.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// The median of this row's times divided by another's, within each round, because what disturbs a round disturbs
    /// both.
    pub(crate) fn ratio_to(&self, other: &Self) -> Option<f64> {
        ratio_of_rounds(self.rounds.iter().copied(), other.rounds.iter().copied())
    }

    /// Nanoseconds of an operation, with what lies between two of them.
    pub(crate) fn each_ns(&self) -> f64 {
        self.elapsed_ns / self.operations.max(1) as f64
    }

    pub(crate) fn figures(&self, burst: &Burst) -> Figures {
        let mut rates = self.rates.clone();
        let ops_per_s = median(&mut rates);
        let ops = self.operations.max(1) as f64;
        let per_op = |both: Both<u64>| both.map(|count| count as f64 / ops);
        let bytes = (burst.size + burst.smallest) as f64 / 2.0;
        let rounds_ns: Vec<f64> = self.rounds.iter().map(|(_, ns)| *ns).collect();
        let gaps = self.rounds.iter().zip(0..).any(|((number, _), at)| *number != at);
        let carries = burst.size > 0 && !matches!(burst.test, Test::View | Test::RandomRead) && !burst.test.is_pool();
        Figures {
            operations: self.operations,
            ops_per_s,
            ops_per_s_best: self.rates.iter().copied().fold(0.0, f64::max),
            mib_per_s: carries.then_some(ops_per_s * bytes / f64::from(1 << 20)),
            ns: self.percentiles(burst.group.max(1)),
            curve: self.curve(),
            spread: spread(&rounds_ns),
            rounds_ns,
            rounds: if gaps { self.rounds.iter().map(|(number, _)| *number).collect() } else { Vec::new() },
            ratio_to_floor: None,
            ratio_to_ceiling: None,
            cpu_percent: self.cpu_ns.map(|ns| 100.0 * ns as f64 / self.elapsed_ns.max(1.0)),
            peak_rss: self.peak_rss,
            shared: self.shared,
            context_switches: per_op(self.context_switches),
            syscalls: None,
            allocations: self.allocations.map(per_op),
            allocated_bytes: self.allocated_bytes.map(per_op),
            stalls: self.stalls,
            parts: self.parts.iter().map(|(name, ns)| (name.clone(), ns / ops)).collect(),
            ratios: self.ratios.iter().map(|(name, rounds)| (name.clone(), median(&mut rounds.clone()))).collect(),
        }
    }

    fn percentiles(&self, group: u32) -> Percentiles {
        let samples = self.histogram.len();
        let at = |quantile: f64| self.histogram.value_at_quantile(quantile) as f64 / 1000.0;
        let known = |quantile: f64| (samples as f64 * (1.0 - quantile) >= BEYOND - 1e-6).then(|| at(quantile));
        Percentiles {
            samples,
            group,
            min: self.min_ps / 1000.0,
            mean: self.sum_ps / samples.max(1) as f64 / 1000.0,
            p50: at(0.5),
            p90: known(0.9),
            p95: known(0.95),
            p99: known(0.99),
            p999: known(0.999),
            p9999: known(0.9999),
            max: self.max_ps / 1000.0,
        }
    }

    /// Twenty points for each nine.
    fn curve(&self) -> Vec<(f64, f64)> {
        let samples = self.histogram.len() as f64;
        let mut curve = vec![(0.0, self.min_ps / 1000.0)];
        for step in 1..=100 {
            let beyond = 10f64.powf(-f64::from(step) / 20.0);
            if samples * beyond < 1.0 {
                break;
            }
            curve.push((100.0 * (1.0 - beyond), self.histogram.value_at_quantile(1.0 - beyond) as f64 / 1000.0));
        }
        curve.push((100.0, self.max_ps / 1000.0));
        curve
    }
}

/// Whether a row of this test is a rate: how long all operations took, divided by their number.
pub(crate) fn is_rate(test: Test) -> bool {
    matches!(test, Test::OneWay | Test::Readers | Test::Lapped | Test::Producers)
        || test.is_access()
        || matches!(test, Test::PoolMixed | Test::PoolPipeline | Test::PoolHeld)
}

fn sum(a: Option<Both<u64>>, b: Option<Both<u64>>) -> Option<Both<u64>> {
    a.zip(b).map(|(a, b)| [a[0] + b[0], a[1] + b[1]])
}

/// The median of the ratios within each round; `None` of no round that both have.
pub(crate) fn ratio_of_rounds(
    ours: impl Iterator<Item = (u32, f64)>,
    theirs: impl Iterator<Item = (u32, f64)>,
) -> Option<f64> {
    let mut ratios = ratios(ours, theirs);
    (!ratios.is_empty()).then(|| median(&mut ratios))
}

/// The ratio within each round that both have.
pub(crate) fn ratios(ours: impl Iterator<Item = (u32, f64)>, theirs: impl Iterator<Item = (u32, f64)>) -> Vec<f64> {
    let mut theirs = theirs.peekable();
    let ratio = |(number, ns): (u32, f64)| {
        while theirs.next_if(|(other, _)| *other < number).is_some() {}
        let (_, other) = theirs.next_if(|(other, _)| *other == number)?;
        Some(ns / other).filter(|ratio| ratio.is_finite())
    };
    ours.filter_map(ratio).collect()
}

/// Of the values, which it sorts; NaN of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = last as f64 * quantile;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// Half the distance between the quartiles, divided by the median.
pub(crate) fn spread(rounds: &[f64]) -> f64 {
    let mut rounds = rounds.to_vec();
    let middle = median(&mut rounds);
    let spread = (quantile(&mut rounds, 0.75) - quantile(&mut rounds, 0.25)) / 2.0 / middle;
    if spread.is_finite() { spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Mode;

    fn outcome(samples_ps: Vec<u64>, elapsed_ps: u64, operations: u64) -> Outcome {
        Outcome {
            elapsed_ps,
            operations,
            samples_ps,
            cpu_ns: [elapsed_ps / 1000, elapsed_ps / 2000],
            peak_rss: [10, 20],
            shared: [1, 2],
            context_switches: [operations, 0],
            allocations: None,
            allocated_bytes: Some([64, 0]),
            parts: vec![("lock".into(), 1000 * operations)],
            ratios: vec![("share".into(), 0.5)],
        }
    }

    #[test]
    fn a_percentile_needs_ten_beyond_it() {
        let burst = Burst::new(Test::Rtt, Mode::Spin, 32, 100);
        let mut series = Series::new();
        series.add(0, &burst, &outcome((1..=100).map(|n| n * 1_000_000).collect(), 5_050_000_000, 100));
        let figures = series.figures(&burst);
        let ns = figures.ns;
        assert_eq!((ns.samples, ns.min, ns.max, ns.mean), (100, 1000.0, 100_000.0, 50_500.0));
        assert!(ns.p90.is_some_and(|p90| (p90 - 90_000.0).abs() < 100.0));
        assert!(ns.p95.is_none() && ns.p99.is_none() && ns.p9999.is_none());
        assert_eq!(figures.cpu_percent, [100.0, 50.0]);
        assert_eq!((figures.context_switches, figures.allocations), ([1.0, 0.0], None));
        assert_eq!(figures.allocated_bytes, Some([0.64, 0.0]));
        assert_eq!(figures.parts, [("lock".to_owned(), 1.0)]);
        assert_eq!(figures.ratios, [("share".to_owned(), 0.5)]);
        assert!((figures.rounds_ns[0] - 50_500.0).abs() < 1.0);
    }

    #[test]
    fn a_stream_is_measured_as_a_whole() {
        let burst = Burst { group: 10, ..Burst::new(Test::OneWay, Mode::Each, 1 << 20, 100) };
        let mut series = Series::new();
        // Ten samples of ten messages; the first message's way is in the elapsed time only.
        series.add(0, &burst, &outcome(vec![10_000_000; 10], 200_000_000, 100));
        let figures = series.figures(&burst);
        assert_eq!((figures.rounds_ns.as_slice(), figures.ns.min), ([2000.0].as_slice(), 1000.0));
        assert_eq!((figures.ops_per_s, figures.mib_per_s), (500_000.0, Some(500_000.0)));
    }

    #[test]
    fn stalls_and_curves() {
        let burst = Burst::new(Test::Pauses, Mode::Hybrid, 32, 100_000);
        let mut samples = vec![1_000_000; 99_999];
        samples.push(30_000_000_000);
        let mut series = Series::new();
        series.add(0, &burst, &outcome(samples, 1_000_000_000_000, 100_000));
        let figures = series.figures(&burst);
        assert_eq!(figures.stalls, 1);
        assert!(figures.curve.len() <= 120 && figures.ns.p9999.is_some());
        assert!(figures.curve.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1));
    }

    #[test]
    fn ratios_are_those_within_rounds() {
        let burst = Burst::new(Test::Rtt, Mode::Spin, 32, 1);
        let series = |rounds: [u64; 3]| {
            let mut series = Series::new();
            for (number, ns) in (0..).zip(rounds) {
                series.add(number, &burst, &outcome(vec![ns * 1000], ns * 1000, 1));
            }
            series
        };
        // The machine was four times as slow in the second round, for both.
        let (a, b) = (series([100, 400, 100]), series([200, 800, 210]));
        assert_eq!(b.ratio_to(&a), Some(2.0));
        assert_eq!(Series::new().ratio_to(&a), None);
        assert_eq!(spread(&[100.0, 100.0, 100.0]), 0.0);
        assert!((spread(&[90.0, 100.0, 110.0, 100.0, 100.0]) - 0.0).abs() < 0.06);
    }
}
