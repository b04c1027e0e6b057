//! Medians, and ratios within rounds.

/// Of some values; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The smallest; infinity of none.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The median of the ratios within each round, because what disturbs a round disturbs both; `None` of no round.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).filter(|ratio| ratio.is_finite()).collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_even_odd_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(least(&[3.0, 1.0, 2.0]), 1.0);
    }

    #[test]
    fn a_slow_round_is_slow_for_both() {
        assert_eq!(ratio(&[200.0, 800.0, 210.0], &[100.0, 400.0, 100.0]), Some(2.0));
        assert_eq!(ratio(&[], &[]), None);
    }
}
