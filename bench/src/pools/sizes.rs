//! Lengths of buffers as programs that read files and answer requests have them: many short ones, few long ones.

const KIB: usize = 1 << 10;
/// A power of two.
const LENGTHS: usize = 1 << 14;

/// Lengths of 1 to `longest` bytes by Zipf's law: one that takes k KiB comes up 1/k times as often as one of the first KiB.
/// Always the same ones.
pub struct Sizes {
    lengths: Vec<u32>,
    sum: u64,
}

impl Sizes {
    /// Of up to `longest` bytes, at least 1 KiB.
    pub fn new(longest: usize) -> Self {
        let ranks = (longest / KIB).max(1);
        let mut below = 0.0;
        let harmonic: Vec<f64> = (1..=ranks)
            .map(|rank| {
                below += 1.0 / rank as f64;
                below
            })
            .collect();
        let mut random = Random(1);
        let lengths: Vec<u32> = (0..LENGTHS)
            .map(|_| {
                let at = random.next() as f64 / f64::from(u32::MAX) * below;
                let rank = harmonic.partition_point(|&sum| sum < at).min(ranks - 1);
                (rank * KIB + 1 + random.below(KIB)) as u32
            })
            .collect();
        let sum = lengths.iter().map(|&len| u64::from(len)).sum();
        Self { lengths, sum }
    }

    /// Number `n`; they begin again after 16,384.
    #[inline(always)]
    pub fn at(&self, n: usize) -> usize {
        self.lengths[n & (LENGTHS - 1)] as usize
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / LENGTHS as f64
    }
}

/// Numbers that look random, always the same.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((u64::from(self.next()) * limit as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_lengths_are_short_and_some_are_long() {
        let sizes = Sizes::new(1 << 20);
        let all: Vec<usize> = (0..LENGTHS).map(|n| sizes.at(n)).collect();
        assert!(all.iter().all(|len| (1..=1 << 20).contains(len)));
        let share = |most: usize| all.iter().filter(|&&len| len <= most).count() as f64 / LENGTHS as f64;
        // H(1), H(32) and H(512) by H(1024), which is 7.51.
        for (most, expected) in [(KIB, 0.133), (32 * KIB, 0.540), (512 * KIB, 0.908)] {
            assert!((share(most) - expected).abs() < 0.02, "{most}: {}", share(most));
        }
        // 1024 KiB by 7.51, as every rank has the same share of the bytes.
        assert!((sizes.mean() / 1024.0 - 136.0).abs() < 5.0, "{}", sizes.mean());
        assert_eq!(sizes.at(LENGTHS + 7), sizes.at(7));
    }
}
