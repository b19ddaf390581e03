//! Two ways to join rankings: by rank and by score.

use std::collections::HashMap;

use anyhow::Result;

use super::{Asked, PoolRecord, Ranked, Retriever, best_first};

type Parts = Vec<Box<dyn Retriever>>;

/// Reciprocal rank fusion (Cormack et al. 2009): the sum of `1 / (60 + rank)`.
pub struct Rrf {
    parts: Parts,
}

impl Rrf {
    /// Joins `parts`.
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }
}

impl Retriever for Rrf {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        self.parts
            .iter_mut()
            .try_for_each(|part| part.index(records))
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        const DAMPING: f32 = 60.0;
        sum(&mut self.parts, question, |ranked| {
            for (rank, (_, score)) in (1..).zip(ranked) {
                *score = 1.0 / (DAMPING + rank as f32);
            }
        })
    }
}

/// The sum of the scores, each scaled to run from 0 for the worst record of its
/// ranking to 1 for the best. A record that a ranking leaves out scores 0 in it.
pub struct MinMax {
    parts: Parts,
    records: usize,
}

impl MinMax {
    /// Joins `parts`.
    pub fn new(parts: Parts) -> Self {
        Self { parts, records: 0 }
    }
}

impl Retriever for MinMax {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        self.records = records.len();
        self.parts
            .iter_mut()
            .try_for_each(|part| part.index(records))
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        let records = self.records;
        sum(&mut self.parts, question, |ranked| {
            let (Some(best), Some(last)) = (ranked.first(), ranked.last()) else {
                return;
            };
            let worst = if ranked.len() < records {
                last.1.min(0.0)
            } else {
                last.1
            };
            let range = (best.1 - worst).max(f32::MIN_POSITIVE);
            for (_, score) in ranked {
                *score = (*score - worst) / range;
            }
        })
    }
}

/// Ranks by the sum of the parts' scores, each ranking first passed to `rescore`.
fn sum(
    parts: &mut Parts,
    question: &Asked<'_>,
    rescore: impl Fn(&mut [Ranked]),
) -> Result<Vec<Ranked>> {
    let mut sums: HashMap<usize, f32> = HashMap::new();
    for part in parts {
        let mut ranked = part.rank(question)?;
        rescore(&mut ranked);
        for (record, score) in ranked {
            *sums.entry(record).or_default() += score;
        }
    }
    let mut ranked: Vec<Ranked> = sums.into_iter().collect();
    best_first(&mut ranked);
    Ok(ranked)
}
