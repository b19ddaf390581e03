//! Who spoke: accuracy under the best one-to-one mapping of labels to people.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    ops::AddAssign,
};

use pathfinding::{kuhn_munkres::kuhn_munkres, matrix::Matrix};

use super::rate;

/// Turns attributed rightly, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Turns whose label is mapped to who really spoke.
    pub right: usize,
    /// All turns.
    pub turns: usize,
}

impl Attribution {
    /// Counts the turns `(who spoke, label)` that are right under `mapping`; an
    /// unknown label is wrong.
    pub fn count<'a, P: PartialEq + 'a, L: Hash + Eq + 'a>(
        turns: impl IntoIterator<Item = &'a (P, Option<L>)>,
        mapping: &HashMap<L, P>,
    ) -> Self {
        let mut sum = Self::default();
        for (person, label) in turns {
            let mapped = label.as_ref().and_then(|label| mapping.get(label));
            sum.turns += 1;
            sum.right += usize::from(mapped == Some(person));
        }
        sum
    }

    /// The share that is right.
    pub fn accuracy(&self) -> f64 {
        rate(self.right, self.turns)
    }
}

impl AddAssign for Attribution {
    fn add_assign(&mut self, other: Self) {
        self.right += other.right;
        self.turns += other.turns;
    }
}

/// The one-to-one mapping of labels to people under which most turns are right
/// (the optimal permutation of VoxPolyMem, appendix D.1).
///
/// A label is left out where there are more labels than people; turns without a
/// label take no part.
pub fn best_mapping<P: Clone + Ord, L: Clone + Ord + Hash>(
    turns: &[(P, Option<L>)],
) -> HashMap<L, P> {
    let mut counts: BTreeMap<(&P, &L), i64> = BTreeMap::new();
    for (person, label) in turns {
        if let Some(label) = label {
            *counts.entry((person, label)).or_default() += 1;
        }
    }
    let people = distinct(counts.keys().map(|(person, _)| *person));
    let labels = distinct(counts.keys().map(|(_, label)| *label));
    let size = people.len().max(labels.len());
    let weights = Matrix::from_fn(size, size, |(row, column)| {
        let pair = people.get(row).zip(labels.get(column));
        pair.and_then(|(person, label)| counts.get(&(*person, *label)))
            .copied()
            .unwrap_or(0)
    });
    if size == 0 {
        return HashMap::new();
    }
    let (_, columns) = kuhn_munkres(&weights);
    let pairs = people.iter().zip(columns).filter_map(|(person, column)| {
        labels
            .get(column)
            .map(|label| ((*label).clone(), (*person).clone()))
    });
    pairs.collect()
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items.dedup();
    items
}
