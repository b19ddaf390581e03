//! Exact percentiles.

/// The smallest value that at least `percent` of all values do not exceed
/// (nearest rank); 0 where there is none. `percent` lies from 0 to 100.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}
