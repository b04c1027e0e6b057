//! Figures of one row: a histogram of everything, and one value for each round to compare rows by.

use crate::clock;
use hdrhistogram::Histogram;

pub(crate) struct Series {
    /// Picoseconds, three significant digits.
    histogram: Histogram<u64>,
    /// The smallest, apart: the histogram rounds.
    min_ps: f64,
    /// The median of each round in picoseconds; NaN for a round without samples.
    rounds: Vec<f64>,
}

impl Series {
    pub(crate) fn new() -> Self {
        // 100 s, so that a burst that lost its processor is still counted where it belongs.
        let histogram = Histogram::new_with_max(100_000_000_000_000, 3).expect("constant bounds that are valid");
        Self { histogram, min_ps: f64::INFINITY, rounds: Vec::new() }
    }

    /// Adds a round: the ticks of each operation, or of a whole burst of `operations`.
    pub(crate) fn add(&mut self, mut ticks: Vec<u64>, operations: u32) {
        for &t in &ticks {
            let ps = clock::ps(t) / f64::from(operations);
            self.min_ps = self.min_ps.min(ps);
            self.histogram.saturating_record((ps as u64).max(1));
        }
        ticks.sort_unstable();
        let middle = ticks.get(ticks.len() / 2).map_or(f64::NAN, |&t| clock::ps(t) / f64::from(operations));
        self.rounds.push(middle);
    }

    pub(crate) fn quantile_ns(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1000.0
    }

    pub(crate) fn min_ns(&self) -> f64 {
        self.min_ps / 1000.0
    }

    pub(crate) fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// How many times as long as `other` this takes: the median of the ratios within each round, because what disturbs a
    /// round disturbs both.
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let mut ratios: Vec<f64> = pairs.map(|(a, b)| a / b).filter(|ratio| ratio.is_finite()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
