//! Word error rate, and its form for several speakers.

use std::ops::AddAssign;

use pathfinding::{kuhn_munkres::kuhn_munkres_min, matrix::Matrix};

use super::rate;

/// What it takes to turn a hypothesis into the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordErrors {
    /// Words of the reference heard as another word.
    pub substitutions: usize,
    /// Words of the reference that are missing.
    pub deletions: usize,
    /// Words that nobody said.
    pub insertions: usize,
    /// Words of the reference.
    pub words: usize,
}

impl WordErrors {
    /// All errors together.
    pub fn total(&self) -> usize {
        self.substitutions + self.deletions + self.insertions
    }

    /// The word error rate; above 1 where more was inserted than said.
    pub fn rate(&self) -> f64 {
        rate(self.total(), self.words)
    }
}

impl AddAssign for WordErrors {
    fn add_assign(&mut self, other: Self) {
        self.substitutions += other.substitutions;
        self.deletions += other.deletions;
        self.insertions += other.insertions;
        self.words += other.words;
    }
}

/// Counts the errors of the cheapest alignment (Levenshtein, all costs 1).
///
/// Among alignments of equal cost the one with most substitutions is taken.
/// Takes time for `reference.len() * hypothesis.len()` and memory for one row.
pub fn word_errors<T: PartialEq>(reference: &[T], hypothesis: &[T]) -> WordErrors {
    let mut row: Vec<WordErrors> = (0..=hypothesis.len())
        .map(|insertions| WordErrors {
            insertions,
            ..WordErrors::default()
        })
        .collect();
    for said in reference {
        let mut diagonal = row[0];
        row[0].deletions += 1;
        for (column, heard) in hypothesis.iter().enumerate() {
            let (mut kept, mut deleted, mut inserted) = (diagonal, row[column + 1], row[column]);
            kept.substitutions += usize::from(said != heard);
            deleted.deletions += 1;
            inserted.insertions += 1;
            diagonal = row[column + 1];
            row[column + 1] = [deleted, inserted].into_iter().fold(kept, |best, other| {
                if other.total() < best.total() {
                    other
                } else {
                    best
                }
            });
        }
    }
    WordErrors {
        words: reference.len(),
        ..row[hypothesis.len()]
    }
}

/// The errors behind cpWER (Watanabe et al. 2020): each side holds one stream of
/// words a speaker, concatenated in the order of time, and the pairing of
/// streams with the fewest errors counts. A stream without a partner pairs with
/// silence.
pub fn concatenated_errors<T: PartialEq>(
    reference: &[Vec<T>],
    hypothesis: &[Vec<T>],
) -> WordErrors {
    let size = reference.len().max(hypothesis.len());
    if size == 0 {
        return WordErrors::default();
    }
    let errors = Matrix::from_fn(size, size, |(said, heard)| {
        word_errors(stream(reference, said), stream(hypothesis, heard))
    });
    let (_, pairing) = kuhn_munkres_min(&errors.clone().map(|pair| pair.total() as i64));
    let mut sum = WordErrors::default();
    for (said, heard) in pairing.into_iter().enumerate() {
        sum += errors[(said, heard)];
    }
    sum
}

fn stream<T>(streams: &[Vec<T>], index: usize) -> &[T] {
    streams.get(index).map_or(&[], Vec::as_slice)
}
