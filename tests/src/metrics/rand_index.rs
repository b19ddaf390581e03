//! Adjusted Rand index.

use std::collections::HashMap;
use std::hash::Hash;

/// How far two clusterings of the same items agree, corrected for chance
/// (Hubert and Arabie 1985): 1 for the same clustering, about 0 for unrelated
/// ones, below 0 for worse than chance.
///
/// An item without a label in the second clustering is a cluster of its own: it
/// claims to be like no other. Where both clusterings are trivial in the same
/// way, or there is at most one item, they agree: 1.
pub fn adjusted_rand_index<A: Hash + Eq + Copy, B: Hash + Eq + Copy>(
    items: &[(A, Option<B>)],
) -> f64 {
    let mut both: HashMap<(A, B), u64> = HashMap::new();
    let mut first: HashMap<A, u64> = HashMap::new();
    let mut second: HashMap<B, u64> = HashMap::new();
    for &(a, b) in items {
        *first.entry(a).or_default() += 1;
        if let Some(b) = b {
            *both.entry((a, b)).or_default() += 1;
            *second.entry(b).or_default() += 1;
        }
    }
    // Clusters of one hold no pair, so unlabelled items need no count.
    let together = pairs_within(both.into_values());
    let (in_first, in_second) = (
        pairs_within(first.into_values()),
        pairs_within(second.into_values()),
    );
    let all = pairs(items.len() as u64);
    let expected = if all > 0.0 {
        in_first * in_second / all
    } else {
        0.0
    };
    let most = f64::midpoint(in_first, in_second);
    if most == expected {
        1.0
    } else {
        (together - expected) / (most - expected)
    }
}

fn pairs_within(sizes: impl Iterator<Item = u64>) -> f64 {
    sizes.map(pairs).sum()
}

fn pairs(items: u64) -> f64 {
    (items * items.saturating_sub(1) / 2) as f64
}
