//! Numbers that look random and are the same in every run.

/// SplitMix64's finalizer: one number of 64 bits from another, all bits mixed.
#[inline(always)]
pub fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A sequence of such numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next one.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// The next one below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.word()) * end as u128) >> 64) as usize
    }

    /// Another order of the same.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// `count` lengths in bytes from `smallest` to `largest` by Zipf's law: the k-th multiple of `smallest` is k times as rare
/// as the first. Lengths between two multiples are as likely as each other, since real ones are not round.
pub fn zipf(seed: u64, smallest: usize, largest: usize, count: usize) -> Vec<usize> {
    let ranks = (largest / smallest).max(1);
    let mut sums = Vec::with_capacity(ranks);
    let mut sum = 0.0;
    for rank in 1..=ranks {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    let mut random = Random::new(seed);
    let mut draw = || {
        let at = (random.word() >> 11) as f64 / (1u64 << 53) as f64 * sum;
        let rank = sums.partition_point(|&up_to| up_to <= at).min(ranks - 1) + 1;
        // Between the multiple below and this one; the first has nothing below.
        let less = if rank == 1 { 0 } else { random.below(smallest) };
        rank * smallest - less
    };
    (0..count).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_has_its_bounds_and_its_law() {
        let lengths = zipf(7, 1024, 1 << 20, 100_000);
        assert!(lengths.iter().all(|&len| (1024..=1 << 20).contains(&len)));
        let share = |from: usize, to: usize| {
            lengths.iter().filter(|&&len| len > from && len <= to).count() as f64 / lengths.len() as f64
        };
        // 1 / H(1024) = 0.133 of them are of the first rank, a tenth of that of the tenth.
        assert!((share(0, 1024) - 0.133).abs() < 0.01, "{}", share(0, 1024));
        assert!((share(9 * 1024, 10 * 1024) - 0.0133).abs() < 0.002, "{}", share(9 * 1024, 10 * 1024));
        assert!(lengths.iter().any(|&len| len > 900 << 10));
        assert_eq!(lengths, zipf(7, 1024, 1 << 20, 100_000));
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
